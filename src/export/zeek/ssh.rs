//! Rows of `ssh.log`.

use std::borrow::Cow;

use crate::row::{Displayed, Name};
use crate::transaction;

/// A connection of SSH in `ssh.log`, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Ssh<'a> {
    ssh: &'a transaction::Ssh,
    is_local: [bool; 2],
}

impl<'a> Ssh<'a> {
    /// `is_local` states which ends are in a local network: the originator, and the responder.
    pub(super) const fn new(ssh: &'a transaction::Ssh, is_local: [bool; 2]) -> Self {
        Self { ssh, is_local }
    }

    fn mac(&self) -> Option<Displayed<Cow<'a, str>>> {
        let [client, server] = &self.ssh.common_macs;
        both(client.as_deref(), server.as_deref())
    }

    const fn direction(&self) -> Option<Name> {
        match self.is_local {
            [true, false] => Some(Name("OUTBOUND")),
            [false, true] => Some(Name("INBOUND")),
            _ => None,
        }
    }
}

/// Returns the algorithm of both directions, or both if they differ.
fn both<'a>(client: Option<&'a str>, server: Option<&'a str>) -> Option<Displayed<Cow<'a, str>>> {
    let text = match (client?, server?) {
        (client, server) if client == server => client.into(),
        (client, server) => format!("To server: {client}, to client: {server}").into(),
    };
    Some(Displayed(text))
}

crate::table! {
    /// Connections of SSH.
    impl['a] "zeek.ssh" for Ssh<'a> as row {
        /// `version`.
        "version": Option<u64> = row.ssh.version.map(u64::from);
        /// `is_accepted`.
        "auth_success": Option<bool> = row.ssh.is_accepted;
        /// `attempt_count`.
        "auth_attempts": u64 = row.ssh.attempt_count.into();
        /// `OUTBOUND` from a local network to another one, `INBOUND` the other way.
        "direction": Option<Name> = row.direction();
        /// `client`.
        "client": Option<&'a str> => row.ssh.client.as_deref();
        /// `server`.
        "server": Option<&'a str> => row.ssh.server.as_deref();
        /// `client_cipher`, and `server_cipher` if it differs.
        "cipher_alg": Option<Displayed<Cow<'a, str>>> => both(row.ssh.client_cipher.as_deref(), row.ssh.server_cipher.as_deref());
        /// The first MAC algorithm that both sides support, and that of the other direction if it differs, even if the cipher
        /// authenticates.
        "mac_alg": Option<Displayed<Cow<'a, str>>> => row.mac();
        /// `client_compression`, and `server_compression` if it differs.
        "compression_alg": Option<Displayed<Cow<'a, str>>> => both(row.ssh.client_compression.as_deref(), row.ssh.server_compression.as_deref());
        /// `kex_algorithm`.
        "kex_alg": Option<&'a str> => row.ssh.kex_algorithm.as_deref();
        /// `host_key_algorithm`.
        "host_key_alg": Option<&'a str> => row.ssh.host_key_algorithm.as_deref();
        /// `host_key_fingerprint`, of which Zeek writes 32 letters.
        "host_key_fingerprint": Option<&'a str> =>
            row.ssh.host_key_fingerprint.as_deref().map(|text| text.get(.."SHA256:".len() + 32).unwrap_or(text));
    }
}
