//! SSH_MSG_KEXINIT: the algorithm lists of a side, its HASSH fingerprint, and the negotiated algorithms.

use std::collections::HashSet;
use std::fmt;

use md5::{Digest, Md5};

use crate::row::{Cell, Column, Displayed, List, ListOf, Type, Visitor};
use crate::session::{Role, Text};

/// Maximum number of names in an algorithm list that is searched linearly instead of with a set. Implementations
/// usually list about twenty.
const SHORT_LIST_COUNT: usize = 32;

/// An SSH name-list: names in order of preference, comma-separated as on the wire (RFC 4251 section 5).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct NameList<'a>(pub &'a [u8]);

impl<'a> NameList<'a> {
    /// Iterates over the names of the list; an empty list has none.
    pub fn iter(self) -> impl Iterator<Item = Text<'a>> + Clone + use<'a> {
        self.0.split(|octet| *octet == b',').filter(|name| !name.is_empty()).map(Text)
    }

    /// Returns the first name of this list that `other` contains too. Searches a short `other` linearly for each name;
    /// builds a set of a long `other`, which allocates.
    #[must_use]
    pub fn first_in(self, other: NameList<'_>) -> Option<Text<'a>> {
        if other.iter().nth(SHORT_LIST_COUNT).is_none() {
            return self.iter().find(|name| other.iter().any(|offered| offered.0 == name.0));
        }
        let mut offered = HashSet::with_hasher(crate::base::hash_state(None));
        offered.extend(other.iter());
        self.iter().find(|name| offered.contains(name))
    }
}

impl Cell for NameList<'_> {
    const TYPE: Type = ListOf::<Text<'_>>::TYPE;

    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        List(self.iter()).visit(column, visitor);
    }
}

impl fmt::Debug for NameList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&Text(self.0), f)
    }
}

impl<'a> From<&'a str> for NameList<'a> {
    fn from(names: &'a str) -> Self {
        Self(names.as_bytes())
    }
}

/// SSH_MSG_KEXINIT: the algorithms that a side supports, most preferred first (RFC 4253 section 7.1). In pairs of
/// lists, the list for client to server comes first.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KexInit<'m> {
    /// Side that sent the message.
    pub from: Role,
    /// Key exchange methods, including extension markers.
    pub kex_algorithms: NameList<'m>,
    /// Host key algorithms, most preferred first.
    pub server_host_key_algorithms: NameList<'m>,
    /// Ciphers from client to server, and from server to client.
    pub encryption_algorithms: [NameList<'m>; 2],
    /// Message authentication codes from client to server, and from server to client.
    pub mac_algorithms: [NameList<'m>; 2],
    /// Compression methods from client to server, and from server to client.
    pub compression_algorithms: [NameList<'m>; 2],
    /// Language tags from client to server, and from server to client; usually empty.
    pub languages: [NameList<'m>; 2],
    /// True if a key exchange packet follows that the side sends before the method is negotiated, as a guess.
    pub first_kex_packet_follows: bool,
}

impl<'m> KexInit<'m> {
    /// Parses the payload of an SSH_MSG_KEXINIT packet after the message number. Octets after the reserved field are
    /// tolerated.
    pub(super) fn parse(payload: &'m [u8], from: Role) -> Option<Self> {
        // The cookie is random.
        let (_, mut rest) = payload.split_first_chunk::<16>()?;
        let mut list = || {
            let (len, behind) = rest.split_first_chunk()?;
            let (names, behind) = behind.split_at_checked(u32::from_be_bytes(*len) as usize)?;
            rest = behind;
            // RFC 4251 section 5: names are printable US-ASCII.
            names.iter().all(u8::is_ascii_graphic).then_some(NameList(names))
        };
        let (kex_algorithms, server_host_key_algorithms) = (list()?, list()?);
        let (encryption_algorithms, mac_algorithms) = ([list()?, list()?], [list()?, list()?]);
        let (compression_algorithms, languages) = ([list()?, list()?], [list()?, list()?]);
        let (follows, _reserved) = rest.split_first_chunk::<1>()?;
        Some(Self {
            from,
            kex_algorithms,
            server_host_key_algorithms,
            encryption_algorithms,
            mac_algorithms,
            compression_algorithms,
            languages,
            first_kex_packet_follows: *follows != [0],
        })
    }

    /// Returns the text from which the HASSH digest is computed: key exchange methods, then the ciphers, MACs and
    /// compression methods of the direction from this side, separated by semicolons.
    #[must_use]
    pub fn hassh_algorithms(&self) -> String {
        self.hassh_parts().map(|part| Text(part).to_str_lossy().into_owned()).join(";")
    }

    /// Returns the HASSH fingerprint of a client or the HASSHServer fingerprint of a server: an MD5 digest.
    #[must_use]
    pub fn hassh(&self) -> [u8; 16] {
        let mut hash = Md5::new();
        for (place, part) in self.hassh_parts().into_iter().enumerate() {
            if place > 0 {
                hash.update(b";");
            }
            hash.update(part);
        }
        hash.finalize().into()
    }

    /// Returns the HASSH or HASSHServer fingerprint in hexadecimal digits, as it is published.
    #[must_use]
    pub fn hassh_hex(&self) -> String {
        self.hassh_digits().to_string()
    }

    fn hassh_digits(&self) -> Digits {
        Digits(self.hassh())
    }

    fn hassh_parts(&self) -> [&'m [u8]; 4] {
        let own = |lists: &[NameList<'m>; 2]| self.from.of(lists).0;
        [
            self.kex_algorithms.0,
            own(&self.encryption_algorithms),
            own(&self.mac_algorithms),
            own(&self.compression_algorithms),
        ]
    }
}

/// A digest that is displayed in hexadecimal digits.
struct Digits([u8; 16]);

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for KexInit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KexInit")
            .field("from", &self.from)
            .field("hassh", &self.hassh_hex())
            .field("kex_algorithms", &self.kex_algorithms)
            .field("server_host_key_algorithms", &self.server_host_key_algorithms)
            .field("encryption_algorithms", &self.encryption_algorithms)
            .field("mac_algorithms", &self.mac_algorithms)
            .field("compression_algorithms", &self.compression_algorithms)
            .field("languages", &self.languages)
            .field("first_kex_packet_follows", &self.first_kex_packet_follows)
            .finish()
    }
}

crate::table! {
    /// SSH_MSG_KEXINIT: the algorithms that a side supports, most preferred first (RFC 4253 section 7.1).
    impl['m] "ssh.kex_init" for KexInit<'m> as message {
        /// HASSH fingerprint of a client.
        "hassh": Option<Displayed<Digits>> = (message.from == Role::Client).then(|| Displayed(message.hassh_digits()));
        /// HASSHServer fingerprint of a server.
        "hassh_server": Option<Displayed<Digits>> = (message.from == Role::Server).then(|| Displayed(message.hassh_digits()));
        /// Key exchange methods, including extension markers.
        "kex_algorithms": NameList<'m> = message.kex_algorithms;
        /// Host key algorithms, most preferred first.
        "server_host_key_algorithms": NameList<'m> = message.server_host_key_algorithms;
        /// Ciphers from client to server.
        "encryption_algorithms_client_to_server": NameList<'m> = *Role::Client.of(&message.encryption_algorithms);
        /// Ciphers from server to client.
        "encryption_algorithms_server_to_client": NameList<'m> = *Role::Server.of(&message.encryption_algorithms);
        /// Message authentication codes from client to server.
        "mac_algorithms_client_to_server": NameList<'m> = *Role::Client.of(&message.mac_algorithms);
        /// Message authentication codes from server to client.
        "mac_algorithms_server_to_client": NameList<'m> = *Role::Server.of(&message.mac_algorithms);
        /// Compression methods from client to server.
        "compression_algorithms_client_to_server": NameList<'m> = *Role::Client.of(&message.compression_algorithms);
        /// Compression methods from server to client.
        "compression_algorithms_server_to_client": NameList<'m> = *Role::Server.of(&message.compression_algorithms);
        /// Language tags from client to server.
        "languages_client_to_server": NameList<'m> = *Role::Client.of(&message.languages);
        /// Language tags from server to client.
        "languages_server_to_client": NameList<'m> = *Role::Server.of(&message.languages);
        /// True if a key exchange packet follows that the side sends before the method is negotiated, as a guess.
        "first_kex_packet_follows": bool = message.first_kex_packet_follows;
    }
}

crate::message! {
    /// Algorithms negotiated by both KEXINIT messages: from each pair of lists, the client's first name that the server
    /// lists too (RFC 4253 section 7.1). `None` if there is no such name, which ends the connection.
    ///
    /// RFC 4253 section 7.1 skips a key exchange method that requires a type of host key which the server lacks; this rule
    /// is not implemented.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ssh.negotiated" pub struct Negotiated<'m> {
        /// Negotiated key exchange method.
        pub kex_algorithm: Option<Text<'m>>,
        /// Negotiated host key algorithm.
        pub server_host_key_algorithm: Option<Text<'m>>,
        /// Cipher from client to server.
        pub encryption_algorithm_client_to_server: Option<Text<'m>>,
        /// Cipher from server to client.
        pub encryption_algorithm_server_to_client: Option<Text<'m>>,
        /// MAC algorithm from client to server; `None` also if the cipher authenticates (RFC 5647 section 5.1, OpenSSH
        /// PROTOCOL 1.6).
        pub mac_algorithm_client_to_server: Option<Text<'m>>,
        /// MAC algorithm from server to client; `None` also if the cipher authenticates.
        pub mac_algorithm_server_to_client: Option<Text<'m>>,
        /// Compression method from client to server.
        pub compression_algorithm_client_to_server: Option<Text<'m>>,
        /// Compression method from server to client.
        pub compression_algorithm_server_to_client: Option<Text<'m>>,
        ..
        /// First MAC algorithms that both sides support, from client to server and back, even if the cipher authenticates.
        pub common_macs: [Option<Text<'m>>; 2],
    }
}

impl<'m> Negotiated<'m> {
    /// Determines the algorithms that the KEXINIT messages of a client and a server negotiate.
    pub(super) fn of(client: &KexInit<'m>, server: &KexInit<'m>) -> Self {
        let both = |of: fn(&KexInit<'m>) -> [NameList<'m>; 2]| {
            let ([to_server, to_client], [at_server, at_client]) = (of(client), of(server));
            [to_server.first_in(at_server), to_client.first_in(at_client)]
        };
        let ciphers = both(|offer| offer.encryption_algorithms);
        let macs = both(|offer| offer.mac_algorithms);
        let [compression_to_server, compression_to_client] = both(|offer| offer.compression_algorithms);
        let [cipher_to_server, cipher_to_client] = ciphers;
        let [mac_to_server, mac_to_client] = macs;
        let mac = |cipher: Option<Text<'m>>, mac| if cipher.is_some_and(authenticates) { None } else { mac };
        Self {
            kex_algorithm: client.kex_algorithms.first_in(server.kex_algorithms),
            server_host_key_algorithm: client
                .server_host_key_algorithms
                .first_in(server.server_host_key_algorithms),
            encryption_algorithm_client_to_server: cipher_to_server,
            encryption_algorithm_server_to_client: cipher_to_client,
            mac_algorithm_client_to_server: mac(cipher_to_server, mac_to_server),
            mac_algorithm_server_to_client: mac(cipher_to_client, mac_to_client),
            compression_algorithm_client_to_server: compression_to_server,
            compression_algorithm_server_to_client: compression_to_client,
            common_macs: macs,
        }
    }
}

/// Returns whether a cipher also authenticates, so that no separate MAC algorithm is used.
fn authenticates(cipher: Text<'_>) -> bool {
    cipher.0.starts_with(b"chacha20-poly1305")
        || cipher.0.starts_with(b"AEAD_")
        || cipher.0.ends_with(b"-gcm@openssh.com")
        || matches!(cipher.0, b"aes128-gcm" | b"aes256-gcm")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer<'a>(from: Role, lists: [&'a str; 8]) -> KexInit<'a> {
        let [kex, key, c1, c2, m1, m2, z1, z2] = lists.map(NameList::from);
        KexInit {
            from,
            kex_algorithms: kex,
            server_host_key_algorithms: key,
            encryption_algorithms: [c1, c2],
            mac_algorithms: [m1, m2],
            compression_algorithms: [z1, z2],
            languages: [NameList::default(); 2],
            first_kex_packet_follows: false,
        }
    }

    #[test]
    fn hassh_matches_the_published_example() {
        // Cyberduck 6.7.1, from the page that defines HASSH.
        let kex = "curve25519-sha256@libssh.org,diffie-hellman-group-exchange-sha256,ecdh-sha2-nistp521,ecdh-sha2-nistp384,\
            ecdh-sha2-nistp256,diffie-hellman-group-exchange-sha1,diffie-hellman-group1-sha1,diffie-hellman-group14-sha1,\
            diffie-hellman-group14-sha256,diffie-hellman-group15-sha512,diffie-hellman-group16-sha512,\
            diffie-hellman-group17-sha512,diffie-hellman-group18-sha512,diffie-hellman-group14-sha256@ssh.com,\
            diffie-hellman-group15-sha256,diffie-hellman-group15-sha256@ssh.com,diffie-hellman-group15-sha384@ssh.com,\
            diffie-hellman-group16-sha256,diffie-hellman-group16-sha384@ssh.com,diffie-hellman-group16-sha512@ssh.com,\
            diffie-hellman-group18-sha512@ssh.com";
        let ciphers = "aes128-cbc,aes128-ctr,aes192-cbc,aes192-ctr,aes256-cbc,aes256-ctr,blowfish-cbc,blowfish-ctr,cast128-cbc,\
            cast128-ctr,idea-cbc,idea-ctr,serpent128-cbc,serpent128-ctr,serpent192-cbc,serpent192-ctr,serpent256-cbc,\
            serpent256-ctr,3des-cbc,3des-ctr,twofish128-cbc,twofish128-ctr,twofish192-cbc,twofish192-ctr,twofish256-cbc,\
            twofish256-ctr,twofish-cbc,arcfour,arcfour128,arcfour256";
        let macs = "hmac-sha1,hmac-sha1-96,hmac-md5,hmac-md5-96,hmac-sha2-256,hmac-sha2-512";
        let lists = [kex, "ssh-rsa", ciphers, "x", macs, "y", "zlib@openssh.com,zlib,none", "z"];
        assert_eq!(offer(Role::Client, lists).hassh_hex(), "8a8ae540028bf433cd68356c1b9e8d5b");
        assert_eq!(
            offer(Role::Server, ["k", "h", "c", "C", "m", "M", "z", "Z"]).hassh_algorithms(),
            "k;C;M;Z"
        );
    }

    #[test]
    fn the_first_common_name_is_found_in_lists_of_any_length() {
        for count in [1, 5, 31, 32, 33, 34, 500] {
            let theirs: Vec<String> = (0..count).map(|number| format!("their-{number}")).collect();
            for common in [0, count / 2, count - 1, count] {
                let ours = format!("our-1,,their-{common},our-2,their-0");
                let expected = if common < count { format!("their-{common}") } else { "their-0".to_owned() };
                let found = NameList::from(ours.as_str()).first_in(NameList::from(theirs.join(",").as_str()));
                assert_eq!(found, Some(expected.as_str().into()), "{count} {common}");
            }
            assert_eq!(NameList(b"our-1").first_in(NameList::from(theirs.join(",").as_str())), None);
        }
    }

    #[test]
    fn the_preference_of_the_client_decides() {
        let client = offer(
            Role::Client,
            ["k1,k2,ext-info-c", "h1,h2", "c1,c2", "c2", "m1", "m2,m3", "none", "zlib,none"],
        );
        let server = offer(Role::Server, ["k2,k1", "h2", "c2,c1", "c2", "m0,m1", "m3,m2", "none", "zlib2"]);
        let agreed = Negotiated::of(&client, &server);
        assert_eq!(agreed.kex_algorithm, Some("k1".into()));
        assert_eq!(agreed.server_host_key_algorithm, Some("h2".into()));
        assert_eq!(agreed.encryption_algorithm_client_to_server, Some("c1".into()));
        assert_eq!(agreed.mac_algorithm_server_to_client, Some("m2".into()));
        assert_eq!(agreed.compression_algorithm_client_to_server, Some("none".into()));
        assert_eq!(agreed.compression_algorithm_server_to_client, None);
        let cipher = "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com";
        let client = offer(Role::Client, ["k", "h", cipher, "c", "m", "m", "none", "none"]);
        let server = offer(Role::Server, ["k", "h", "aes256-gcm@openssh.com", "c", "m", "m", "none", "none"]);
        let agreed = Negotiated::of(&client, &server);
        assert_eq!(agreed.mac_algorithm_client_to_server, None, "the cipher authenticates");
        assert_eq!(agreed.mac_algorithm_server_to_client, Some("m".into()));
    }
}
