//! Messages of an SSH connection.

use std::fmt;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::kexinit::{KexInit, Negotiated};
use crate::session::Text;

crate::messages! {
    /// An SSH message, reported by [`SshParser`](super::SshParser).
    #[derive(Clone, Debug, PartialEq)]
    pub enum Message<'m> {
        /// The identification line of a side.
        Identification(Identification<'m>),
        /// An SSH_MSG_KEXINIT: the algorithm lists of a side.
        KexInit(KexInit<'m>),
        /// The negotiated algorithms, reported after the second side's KEXINIT.
        Negotiated(Negotiated<'m>),
        /// The key of the server, in its reply of the key exchange.
        HostKey(HostKey<'m>),
        /// An SSH_MSG_DISCONNECT that a side sends before its KEXINIT.
        Disconnect(Disconnect<'m>),
        /// What the length of an encrypted segment of the server says about the authentication.
        Authentication(Authentication),
    }
}

crate::message! {
    /// An SSH identification line: `SSH-` version `-` software, and comments after a space (RFC 4253 section 4.2).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ssh.identification" pub struct Identification<'m> {
        /// Protocol version, for example `2.0`.
        pub protocol_version: Text<'m>,
        /// Name and version of the software, for example `OpenSSH_9.2p1`.
        pub software_version: Text<'m>,
        /// Comments: the text after the first space of the line; `None` if there is no space.
        pub comments: Option<Text<'m>>,
        /// Number of other lines that the side sent before its identification line.
        pub preceding_line_count: u8,
    }
}

crate::message! {
    /// Content of an SSH_MSG_DISCONNECT (RFC 4253 section 11.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ssh.disconnect" pub struct Disconnect<'m> {
        /// Reason code of the disconnect (RFC 4250 section 4.2.2).
        pub reason_code: u32,
        /// Description of the reason, for human readers.
        pub description: Text<'m>,
    }
}

crate::message! {
    /// What the length of an encrypted segment of the server says about the authentication: an inference, which depends on the
    /// segments in which the server sends.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ssh.authentication" pub struct Authentication {
        /// True if the user is accepted, false if an attempt is refused.
        pub is_accepted: bool,
    }
}

crate::message! {
    /// The key of a server, with which it proves its identity (RFC 4253 section 8).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    "ssh.host_key" pub struct HostKey<'m> {
        /// Algorithm of the key, for example `ssh-ed25519`.
        pub algorithm: Text<'m>,
        /// SHA-256 fingerprint of the key, as `ssh-keygen -l` shows it.
        pub fingerprint: Fingerprint,
    }
}

/// SHA-256 digest of a key, displayed as `SHA256:` and the digest in base64 without padding, as OpenSSH does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SHA256:{}", Base64Display::new(&self.0, &STANDARD_NO_PAD))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

crate::row::cells! { displayed Fingerprint; }

/// Splits off a string: a length of 32 bits and as many octets (RFC 4251 section 5).
fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*len) as usize)
}

impl<'m> HostKey<'m> {
    /// Parses the payload of a reply of the key exchange after the message number: it begins with the key.
    pub(super) fn parse(payload: &'m [u8]) -> Option<Self> {
        let (key, _) = split_string(payload)?;
        let (algorithm, rest) = split_string(key)?;
        let is_name = (1..=64).contains(&algorithm.len()) && algorithm.iter().all(u8::is_ascii_graphic);
        let fingerprint = Fingerprint(Sha256::digest(key).into());
        (is_name && !rest.is_empty()).then_some(Self { algorithm: Text(algorithm), fingerprint })
    }
}

impl<'m> Identification<'m> {
    /// Parses an identification line without its line end. Stores `preceding_line_count`, the number of lines before
    /// it.
    pub(super) fn parse(line: &'m [u8], preceding_line_count: u8) -> Option<Self> {
        let rest = line.strip_prefix(b"SSH-")?;
        let hyphen = rest.iter().position(|octet| *octet == b'-')?;
        let (version, rest) = rest.split_at_checked(hyphen)?;
        let rest = rest.get(1..)?;
        let (software, comments) = match rest.iter().position(|octet| *octet == b' ') {
            Some(blank) => (rest.get(..blank)?, Some(Text(rest.get(blank + 1..)?))),
            None => (rest, None),
        };
        Some(Self {
            protocol_version: Text(version),
            software_version: Text(software),
            comments,
            preceding_line_count,
        })
    }

    /// Returns whether the side supports SSH 2, by its protocol version: `2.` or `1.99`.
    #[must_use]
    pub fn is_version_2(&self) -> bool {
        self.protocol_version.0.starts_with(b"2.") || self.protocol_version.0 == b"1.99"
    }
}

impl<'m> Disconnect<'m> {
    /// Parses the payload of an SSH_MSG_DISCONNECT packet after the message number.
    pub(super) fn parse(payload: &'m [u8]) -> Option<Self> {
        let (reason, rest) = payload.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let description = rest.get(..u32::from_be_bytes(*len) as usize)?;
        Some(Self { reason_code: u32::from_be_bytes(*reason), description: Text(description) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identification_lines_are_parsed() {
        // From RFC 4253 section 4.2, and from real servers.
        let parse = |line: &'static str| Identification::parse(line.as_bytes(), 0);
        let id = parse("SSH-2.0-billsSSH_3.6.3q3").expect("a line");
        assert_eq!(
            (id.protocol_version, id.software_version, id.comments),
            ("2.0".into(), "billsSSH_3.6.3q3".into(), None)
        );
        let id = parse("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u7").expect("a line");
        assert_eq!(
            (id.software_version, id.comments),
            ("OpenSSH_9.2p1".into(), Some("Debian-2+deb12u7".into()))
        );
        assert!(
            parse("SSH-1.99-Cisco-1.25")
                .is_some_and(|id| id.is_version_2() && id.software_version == "Cisco-1.25".into())
        );
        assert!(parse("SSH-1.5-1.2.27").is_some_and(|id| !id.is_version_2()));
        assert_eq!(parse("SSH-2.0"), None);
        assert_eq!(parse("SSH 2.0-x"), None);
    }
}
