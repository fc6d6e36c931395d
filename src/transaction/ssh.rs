//! Connections of SSH.

use super::open::{Copier, HeapLen, Open, Pending};
use super::span::Span;
use crate::checkpoint::state;
use crate::protocols::ssh::Message;
use crate::session::Lack;
use crate::session::{MessageMeta, Role};

crate::message! {
    /// A connection of SSH: what its messages in the clear state.
    #[derive(Clone, Debug, Default, PartialEq)]
    "transaction.ssh" pub struct Ssh {
        /// Version of the protocol that both sides support: 1 or 2.
        pub version: Option<u8>,
        /// Identification line of the client, for example `SSH-2.0-OpenSSH_9.2p1`.
        pub client: Option<Box<str>>,
        /// Identification line of the server.
        pub server: Option<Box<str>>,
        /// HASSH fingerprint of the client.
        pub hassh: Option<Box<str>>,
        /// HASSHServer fingerprint of the server.
        pub hassh_server: Option<Box<str>>,
        /// Negotiated key exchange method.
        pub kex_algorithm: Option<Box<str>>,
        /// Negotiated host key algorithm.
        pub host_key_algorithm: Option<Box<str>>,
        /// SHA-256 fingerprint of the key of the server, for example `SHA256:` and 43 letters.
        pub host_key_fingerprint: Option<Box<str>>,
        /// Cipher from client to server.
        pub client_cipher: Option<Box<str>>,
        /// Cipher from server to client.
        pub server_cipher: Option<Box<str>>,
        /// MAC algorithm from client to server; absent also if the cipher authenticates.
        pub client_mac: Option<Box<str>>,
        /// MAC algorithm from server to client; absent also if the cipher authenticates.
        pub server_mac: Option<Box<str>>,
        /// Compression method from client to server.
        pub client_compression: Option<Box<str>>,
        /// Compression method from server to client.
        pub server_compression: Option<Box<str>>,
        /// Number of attempts to authenticate, as the lengths of encrypted segments indicate them.
        pub attempt_count: u32 [sparse],
        /// True if the server accepted the user, false if there were only refusals, as the lengths of encrypted segments indicate.
        pub is_accepted: Option<bool>,
        /// Description of the reason for which a side ended the connection in the clear.
        pub disconnect: Option<Box<str>>,
        ..
        /// First MAC algorithms that both sides support, from client to server and back, even if the cipher authenticates.
        pub common_macs: [Option<Box<str>>; 2],
    }
}

state! { struct Ssh {
    version, client, server, hassh, hassh_server, kex_algorithm, host_key_algorithm, host_key_fingerprint, client_cipher,
    server_cipher, client_mac, server_mac, client_compression, server_compression,
    attempt_count, is_accepted, disconnect, common_macs,
} }

/// The open connection of a flow.
#[derive(Debug, Default)]
pub(super) struct SshOpen {
    open: Open<Ssh>,
    /// Whether the client and the server support version 2.
    supports_2: [Option<bool>; 2],
    /// The transaction of the flow was passed on.
    is_over: bool,
}

state! { struct SshOpen { open, supports_2, is_over } }

impl HeapLen for Ssh {}

impl SshOpen {
    pub(super) fn heap_len(&self) -> usize {
        self.open.heap_len()
    }

    pub(super) fn message(
        &mut self,
        meta: &MessageMeta,
        message: &Message<'_>,
        out: &mut dyn FnMut(Pending<Ssh>),
    ) {
        if self.is_over {
            return;
        }
        if self.open.get(0).is_none() {
            self.open.push(Pending::new(0, Span::of(meta), Ssh::default(), &Copier::default()), out);
        }
        let Some(pending) = self.open.get(0) else { return };
        pending.span.extend(meta);
        let (ssh, mut copier) = (&mut pending.content, Copier::default());
        match message {
            Message::Identification(line) => {
                let comments = line.comments.map(|comments| format!(" {comments}")).unwrap_or_default();
                let text = format!("SSH-{}-{}{comments}", line.protocol_version, line.software_version);
                let own = match meta.from {
                    Role::Client => &mut ssh.client,
                    Role::Server => &mut ssh.server,
                };
                *own = Some(copier.display(text));
                *meta.from.of_mut(&mut self.supports_2) = Some(line.is_version_2());
                ssh.version = match self.supports_2 {
                    [Some(client), Some(server)] => Some(if client && server { 2 } else { 1 }),
                    _ => None,
                };
            }
            Message::KexInit(offer) => {
                let own = match meta.from {
                    Role::Client => &mut ssh.hassh,
                    Role::Server => &mut ssh.hassh_server,
                };
                *own = Some(copier.display(offer.hassh_hex()));
            }
            Message::Negotiated(all) => {
                ssh.kex_algorithm = copier.optional(all.kex_algorithm);
                ssh.host_key_algorithm = copier.optional(all.server_host_key_algorithm);
                ssh.client_cipher = copier.optional(all.encryption_algorithm_client_to_server);
                ssh.server_cipher = copier.optional(all.encryption_algorithm_server_to_client);
                ssh.client_mac = copier.optional(all.mac_algorithm_client_to_server);
                ssh.server_mac = copier.optional(all.mac_algorithm_server_to_client);
                ssh.common_macs = all.common_macs.map(|mac| copier.optional(mac));
                ssh.client_compression = copier.optional(all.compression_algorithm_client_to_server);
                ssh.server_compression = copier.optional(all.compression_algorithm_server_to_client);
            }
            Message::HostKey(key) => ssh.host_key_fingerprint = Some(copier.display(key.fingerprint)),
            Message::Authentication(says) => {
                ssh.attempt_count = ssh.attempt_count.saturating_add(1);
                ssh.is_accepted = Some(says.is_accepted);
            }
            Message::Disconnect(end) => ssh.disconnect = Some(copier.text(end.description)),
        }
        pending.add(&copier);
        // Nothing that is looked at follows.
        if matches!(message, Message::Authentication(says) if says.is_accepted)
            && let Some(pending) = self.open.take(0)
        {
            self.is_over = true;
            out(pending);
        }
    }

    pub(super) fn finish(&mut self, out: &mut dyn FnMut(Pending<Ssh>)) {
        for mut pending in self.open.take_all() {
            let ssh = &pending.content;
            // With these methods of key exchange, the key is not known.
            let has_no_key = |method: &str| method.starts_with("gss-") || method.starts_with("rsa");
            if ssh.server.is_none() {
                pending.lack(Lack::Response);
            } else if ssh.host_key_fingerprint.is_none()
                && !ssh.kex_algorithm.as_deref().is_some_and(has_no_key)
            {
                pending.lack(Lack::End);
            }
            out(pending);
        }
    }
}
