//! JA4: a readable fingerprint of a client's parameters that does not depend on the order of extensions.
//!
//! The fingerprint consists, as specified by FoxIO, of transport, highest version, presence of a server name, number of
//! cipher suites and extensions, and the first and last character of the first application protocol; then twelve digits
//! each of SHA-256 over the sorted cipher suites, and over the sorted extensions and the signature schemes in their
//! original order. GREASE is ignored everywhere.

use std::fmt;

use sha2::{Digest, Sha256};

use super::client_hello::{ClientHello, Transport};
use super::numbers::{Version, is_grease};
use crate::row::{Cell, Column, Type, Visitor};
use crate::session::Text;

/// Length of a JA4 fingerprint in octets.
const LEN: usize = 36;

/// A JA4 fingerprint: text of 36 ASCII characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ja4([u8; LEN]);

impl ClientHello<'_> {
    /// Returns the JA4 fingerprint of the client. Sorts and hashes on each call; allocates if a list has more than 128
    /// numbers.
    #[must_use]
    pub fn ja4(&self) -> Ja4 {
        Ja4::new(self)
    }
}

impl Ja4 {
    pub(super) fn new(hello: &ClientHello<'_>) -> Self {
        let mut suites = Sorted::of(hello.cipher_suites.iter().map(|suite| suite.0));
        let mut kinds = Sorted::of(hello.extensions.iter().map(|extension| extension.kind.0));
        let (suites, kinds) = (suites.numbers(), kinds.numbers());
        let mut text = [b'0'; LEN];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            if let Some(place) = text.get_mut(at..at + part.len()) {
                place.copy_from_slice(part);
                at += part.len();
            }
        };
        put(match hello.transport {
            Transport::Stream => b"t",
            Transport::Datagram => b"d",
            Transport::Quic => b"q",
        });
        put(version(highest(hello)));
        put(if kinds.contains(&0) { b"d" } else { b"i" });
        put(&two_digits(suites.len()));
        put(&two_digits(kinds.len()));
        put(&protocol(hello.alpn().first()));
        put(b"_");
        let mut list = Hashed::default();
        list.add(suites.iter().copied());
        put(&list.digits());
        put(b"_");
        let mut list = Hashed::default();
        list.add(kinds.iter().copied().filter(|kind| !matches!(kind, 0 | 16)));
        let schemes = hello.signature_algorithms();
        let mut schemes =
            schemes.iter().map(|scheme| scheme.0).filter(|scheme| !is_grease(*scheme)).peekable();
        if schemes.peek().is_some() {
            list.put(b"_");
            list.add(schemes);
        }
        put(&list.digits());
        Self(text)
    }

    /// Returns the JA4 fingerprint as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Ja4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Ja4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Cell for Ja4 {
    const TYPE: Type = Type::Text;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.text(column, self.as_str());
    }
}

/// Numbers in ascending order, without GREASE. Those of usual messages are stored inline.
struct Sorted {
    inline: [u16; Self::INLINE_COUNT],
    len: usize,
    /// All numbers, if there are more than fit inline.
    more: Vec<u16>,
}

impl Sorted {
    const INLINE_COUNT: usize = 128;

    fn of(numbers: impl Iterator<Item = u16> + Clone) -> Self {
        let numbers = numbers.filter(|number| !is_grease(*number));
        let mut sorted = Self { inline: [0; Self::INLINE_COUNT], len: 0, more: Vec::new() };
        for (place, number) in sorted.inline.iter_mut().zip(numbers.clone()) {
            *place = number;
            sorted.len += 1;
        }
        if numbers.clone().nth(Self::INLINE_COUNT).is_some() {
            sorted.more = numbers.collect();
        }
        sorted.numbers().sort_unstable();
        sorted
    }

    fn numbers(&mut self) -> &mut [u16] {
        if self.more.is_empty() {
            self.inline.get_mut(..self.len).unwrap_or_default()
        } else {
            &mut self.more
        }
    }
}

/// Returns the offered version with the highest number, as JA4 specifies: drafts of TLS 1.3 have higher numbers than
/// TLS 1.3.
fn highest(hello: &ClientHello<'_>) -> Version {
    let offered = hello.supported_versions();
    // Version numbers of DTLS descend.
    let number = |version: &Version| if version.is_datagram() { !version.0 } else { version.0 };
    offered.iter().filter(|version| !is_grease(version.0)).max_by_key(number).unwrap_or(hello.legacy_version)
}

const fn version(version: Version) -> &'static [u8; 2] {
    match version {
        Version::TLS_1_3 => b"13",
        Version::TLS_1_2 => b"12",
        Version::TLS_1_1 => b"11",
        Version::TLS_1_0 => b"10",
        Version::SSL_3_0 => b"s3",
        Version::SSL_2_0 => b"s2",
        Version::DTLS_1_0 => b"d1",
        Version::DTLS_1_2 => b"d2",
        Version::DTLS_1_3 => b"d3",
        _ => b"00",
    }
}

const fn two_digits(count: usize) -> [u8; 2] {
    let count = if count > 99 { 99 } else { count as u8 };
    [b'0' + count / 10, b'0' + count % 10]
}

/// Returns the first and the last character of an application protocol's name; if one of them is not alphanumeric, the
/// first and the last hexadecimal digit of the name; `00` without a name.
fn protocol(name: Option<Text<'_>>) -> [u8; 2] {
    let Some((&first, &last)) = name.and_then(|name| Some((name.0.first()?, name.0.last()?))) else {
        return *b"00";
    };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        [first, last]
    } else {
        [digit(first >> 4), digit(last & 0xf)]
    }
}

const fn digit(number: u8) -> u8 {
    if number < 10 { b'0' + number } else { b'a' + number - 10 }
}

/// A SHA-256 digest over lists of numbers, which are written as four hex digits and joined by commas.
#[derive(Default)]
struct Hashed {
    hasher: Sha256,
    is_filled: bool,
}

impl Hashed {
    fn put(&mut self, text: &[u8]) {
        self.is_filled = true;
        self.hasher.update(text);
    }

    fn add(&mut self, numbers: impl IntoIterator<Item = u16>) {
        for (place, number) in numbers.into_iter().enumerate() {
            if place > 0 {
                self.put(b",");
            }
            let [high, low] = number.to_be_bytes();
            self.put(&[digit(high >> 4), digit(high & 0xf), digit(low >> 4), digit(low & 0xf)]);
        }
    }

    /// Returns the first twelve hex digits of the SHA-256 digest; zeros if the input is empty.
    fn digits(self) -> [u8; 12] {
        let mut digits = [b'0'; 12];
        if self.is_filled {
            let hash = self.hasher.finalize();
            for (pair, octet) in digits.chunks_exact_mut(2).zip(hash) {
                pair.copy_from_slice(&[digit(octet >> 4), digit(octet & 0xf)]);
            }
        }
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpn_is_reduced_to_its_first_and_last_character() {
        for (name, expected) in [
            (&b"h2"[..], b"h2"),
            (b"http/1.1", b"h1"),
            (b"h", b"hh"),
            (b"", b"00"),
            (b"\xab", b"ab"),
            (b"\xab\xcd", b"ad"),
            (b"\x30\xab", b"3b"),
            (b"\x30\x31\xab\xcd", b"3d"),
        ] {
            assert_eq!(&protocol(Some(Text(name))), expected, "{}", name.escape_ascii());
        }
        assert_eq!(&protocol(None), b"00");
    }

    #[test]
    fn counts_are_limited_to_99() {
        assert_eq!(
            [two_digits(0), two_digits(7), two_digits(99), two_digits(130)],
            [*b"00", *b"07", *b"99", *b"99"]
        );
    }

    #[test]
    fn long_lists_are_sorted_too() {
        for count in [0, 1, 127, 128, 129, 1000_u16] {
            let numbers =
                (0..count).map(|index| index.wrapping_mul(40_503)).filter(|number| !is_grease(*number));
            let mut expected: Vec<u16> = numbers.clone().collect();
            expected.sort_unstable();
            assert_eq!(Sorted::of(numbers.chain([0x0a0a])).numbers(), expected);
        }
    }

    #[test]
    fn hashes_match_the_description() {
        // Cipher suites, extensions and signature schemes of the example in the description of JA4.
        let mut list = Hashed::default();
        list.add([
            0x002f, 0x0035, 0x009c, 0x009d, 0x1301, 0x1302, 0x1303, 0xc013, 0xc014, 0xc02b, 0xc02c, 0xc02f,
            0xc030, 0xcca8, 0xcca9,
        ]);
        assert_eq!(&list.digits(), b"8daaf6152771");
        let mut list = Hashed::default();
        list.add([
            0x0005, 0x000a, 0x000b, 0x000d, 0x0012, 0x0015, 0x0017, 0x001b, 0x0023, 0x002b, 0x002d, 0x0033,
            0x4469, 0xff01,
        ]);
        list.put(b"_");
        list.add([0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601]);
        assert_eq!(&list.digits(), b"e5627efa2ab1");
    }
}
