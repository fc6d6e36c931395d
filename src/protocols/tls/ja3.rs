//! JA3 and JA3S fingerprints of the parameters that a client offers or a server chooses in its hello, in use since
//! 2017.
//!
//! A fingerprint is the MD5 of decimal numbers, joined by `-` within a list and by `,` between lists, without GREASE.
//! For a client: version of the fixed part, cipher suites, extensions, groups and point formats; for a server: version,
//! cipher suite and extensions.

use std::fmt;

use md5::{Digest, Md5};

use super::client_hello::ClientHello;
use super::lists::{Extensions, Hex};
use super::numbers::is_grease;
use super::server_hello::ServerHello;

/// A JA3 or JA3S fingerprint: an MD5 digest, displayed and written as lower-case hex.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ja3(pub [u8; 16]);

impl ClientHello<'_> {
    /// Returns the JA3 fingerprint of the client. Hashes some hundred octets on each call.
    #[must_use]
    pub fn ja3(&self) -> Ja3 {
        Ja3::of_client(self)
    }
}

impl ServerHello<'_> {
    /// Returns the JA3S fingerprint of the server. Hashes some dozen octets on each call.
    #[must_use]
    pub fn ja3s(&self) -> Ja3 {
        Ja3::of_server(self)
    }
}

impl Ja3 {
    pub(super) fn of_client(hello: &ClientHello<'_>) -> Self {
        let mut hasher = Md5::new();
        write_client(hello, &mut |text| hasher.update(text));
        Self(hasher.finalize().into())
    }

    pub(super) fn of_server(hello: &ServerHello<'_>) -> Self {
        let mut hasher = Md5::new();
        let mut put = |text: &[u8]| hasher.update(text);
        write_number(hello.legacy_version.0, &mut put);
        put(b",");
        write_number(hello.cipher_suite.0, &mut put);
        put(b",");
        write_list(kinds(&hello.extensions), &mut put);
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Ja3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl fmt::Debug for Ja3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

crate::row::cells! { displayed Ja3; }

fn write_client(hello: &ClientHello<'_>, put: &mut impl FnMut(&[u8])) {
    write_number(hello.legacy_version.0, put);
    put(b",");
    write_list(hello.cipher_suites.iter().map(|suite| suite.0), put);
    put(b",");
    write_list(kinds(&hello.extensions), put);
    put(b",");
    write_list(hello.supported_groups().iter().map(|group| group.0), put);
    put(b",");
    write_list(hello.ec_point_formats().iter().map(|format| u16::from(*format)), put);
}

fn kinds<'a>(extensions: &Extensions<'a>) -> impl Iterator<Item = u16> + use<'a> {
    extensions.iter().map(|extension| extension.kind.0)
}

fn write_list(numbers: impl Iterator<Item = u16>, put: &mut impl FnMut(&[u8])) {
    let mut is_first = true;
    for number in numbers.filter(|number| !is_grease(*number)) {
        if !std::mem::take(&mut is_first) {
            put(b"-");
        }
        write_number(number, put);
    }
}

/// Passes the decimal digits of a number to `put`.
fn write_number(number: u16, put: &mut impl FnMut(&[u8])) {
    let mut digits = [b'0'; 5];
    let mut rest = number;
    let mut len = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
        len += 1;
        if rest == 0 {
            break;
        }
    }
    put(digits.get(5 - len..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_decimal() {
        for number in [0, 9, 10, 771, 4865, 10_000, 65_535] {
            let mut text = Vec::new();
            write_number(number, &mut |digits| text.extend_from_slice(digits));
            assert_eq!(text, number.to_string().into_bytes());
        }
    }

    #[test]
    fn grease_values_are_omitted_from_lists() {
        let mut text = Vec::new();
        write_list([0x0a0a, 23, 0xfafa, 65281].into_iter(), &mut |part| text.extend_from_slice(part));
        assert_eq!(text, b"23-65281");
    }
}
