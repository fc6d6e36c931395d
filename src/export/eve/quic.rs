//! Events of type `quic`.

use std::borrow::Cow;

use crate::protocols::quic::Version;
use crate::row::{Displayed, Group};
use crate::session::Role;
use crate::transaction;

/// A hello of QUIC in an event, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Quic<'a> {
    hello: Hello<'a>,
}

/// The object `quic`.
#[derive(Clone, Copy, Debug)]
struct Hello<'a> {
    quic: &'a transaction::Quic,
    from: Role,
}

/// A fingerprint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fingerprint<'a> {
    pub(super) hash: &'a str,
}

impl<'a> Quic<'a> {
    pub(super) const fn new(quic: &'a transaction::Quic, from: Role) -> Self {
        Self { hello: Hello { quic, from } }
    }
}

impl<'a> Hello<'a> {
    /// Returns a text of the hello of one side.
    fn of(&self, role: Role, text: Option<&'a str>) -> Option<&'a str> {
        text.filter(|_| self.from == role)
    }
}

/// Returns EVE's name of a version.
fn version_name(version: Version) -> Cow<'static, str> {
    match version.0 {
        1 => "1".into(),
        0x6b33_43cf => "2".into(),
        number => match number.to_be_bytes() {
            [b'Q', digits @ ..] if digits.iter().all(u8::is_ascii_digit) => {
                format!("Q{}", digits.map(char::from).iter().collect::<String>()).into()
            }
            _ => format!("{number:x}").into(),
        },
    }
}

crate::table! {
    /// Hellos of QUIC: an event for that of the client, and one for that of the server.
    impl['a] "eve.quic" for Quic<'a> as row {
        /// The hello.
        "quic": Group<Hello<'a>> = Group(row.hello);
    }
}

crate::table! {
    /// A hello of QUIC.
    impl['a] "eve.quic.quic" for Hello<'a> as row {
        /// `quic_version`: `1`, `2`, `Q046` and so on; otherwise hexadecimal digits.
        "version": Option<Displayed<Cow<'static, str>>> = row.quic.packets.quic_version.map(|version| Displayed(version_name(version)));
        /// `server_name`, of the client.
        "sni": Option<&'a str> => row.of(Role::Client, row.quic.tls.server_name.as_deref());
        /// JA3 fingerprint of the client.
        "ja3": Option<Group<Fingerprint<'a>>> => row.of(Role::Client, row.quic.tls.ja3.as_deref()).map(|hash| Group(Fingerprint { hash }));
        /// JA3S fingerprint of the server.
        "ja3s": Option<Group<Fingerprint<'a>>> => row.of(Role::Server, row.quic.tls.ja3s.as_deref()).map(|hash| Group(Fingerprint { hash }));
        /// JA4 fingerprint of the client.
        "ja4": Option<&'a str> => row.of(Role::Client, row.quic.tls.ja4.as_deref());
    }
}

crate::table! {
    /// A fingerprint.
    impl['a] "eve.fingerprint" for Fingerprint<'a> as row {
        /// MD5 digest in hexadecimal digits.
        "hash": &'a str = row.hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_names() {
        let names = [1, 0x6b33_43cf, 0x5130_3436, 0xff00_001d].map(|number| version_name(Version(number)));
        assert_eq!(names, ["1", "2", "Q046", "ff00001d"]);
    }
}
