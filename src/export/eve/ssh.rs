//! Events of type `ssh`.

use crate::row::Group;
use crate::transaction;

/// A connection of SSH in an event, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Ssh<'a> {
    connection: Connection<'a>,
}

/// The object `ssh`.
#[derive(Clone, Copy, Debug)]
struct Connection<'a> {
    client: Option<Software<'a>>,
    server: Option<Software<'a>>,
}

/// The software of a side.
#[derive(Clone, Copy, Debug)]
struct Software<'a> {
    proto_version: &'a str,
    software_version: Option<&'a str>,
    hassh: Option<Hassh<'a>>,
}

/// The fingerprint of a side.
#[derive(Clone, Copy, Debug)]
struct Hassh<'a> {
    hash: &'a str,
}

impl<'a> Ssh<'a> {
    pub(super) fn new(ssh: &'a transaction::Ssh) -> Self {
        let client = ssh.client.as_deref().and_then(|line| Software::of(line, ssh.hassh.as_deref()));
        let server = ssh.server.as_deref().and_then(|line| Software::of(line, ssh.hassh_server.as_deref()));
        Self { connection: Connection { client, server } }
    }
}

impl<'a> Software<'a> {
    /// Returns the parts of an identification line (RFC 4253 section 4.2).
    fn of(line: &'a str, hassh: Option<&'a str>) -> Option<Self> {
        let (proto_version, rest) = line.strip_prefix("SSH-")?.split_once('-')?;
        let software = rest.split(' ').next().filter(|software| !software.is_empty());
        Some(Self { proto_version, software_version: software, hassh: hassh.map(|hash| Hassh { hash }) })
    }
}

crate::table! {
    /// Connections of SSH.
    impl['a] "eve.ssh" for Ssh<'a> as row {
        /// The software of both sides.
        "ssh": Group<Connection<'a>> = Group(row.connection);
    }
}

crate::table! {
    /// The software of both sides.
    impl['a] "eve.ssh.ssh" for Connection<'a> as row {
        /// Software of the client.
        "client": Option<Group<Software<'a>>> = row.client.map(Group);
        /// Software of the server.
        "server": Option<Group<Software<'a>>> = row.server.map(Group);
    }
}

crate::table! {
    /// The software of a side.
    impl['a] "eve.ssh.ssh.client" for Software<'a> as row {
        /// Version of the protocol in the identification line.
        "proto_version": &'a str = row.proto_version;
        /// Name of the software in the identification line, without comments.
        "software_version": Option<&'a str> = row.software_version;
        /// HASSH fingerprint.
        "hassh": Option<Group<Hassh<'a>>> = row.hassh.map(Group);
    }
}

crate::table! {
    /// A HASSH fingerprint.
    impl['a] "eve.ssh.ssh.client.hassh" for Hassh<'a> as row {
        /// `hassh`, or `hassh_server`.
        "hash": &'a str = row.hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identification_line_has_version_software_and_comments() {
        let parts = |line| Software::of(line, None).map(|side| (side.proto_version, side.software_version));
        assert_eq!(parts("SSH-2.0-OpenSSH_9.2p1 Debian-2"), Some(("2.0", Some("OpenSSH_9.2p1"))));
        assert_eq!(parts("SSH-1.99-a-b"), Some(("1.99", Some("a-b"))));
        assert_eq!(parts("SSH-2.0-"), Some(("2.0", None)));
        assert_eq!(parts("220 ready"), None);
    }
}
