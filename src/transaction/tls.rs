//! Connections of TLS, DTLS and QUIC.

use super::open::{Copier, HeapLen, Open, Pending, allocated};
use super::span::Span;
use super::x509::X509;
use crate::base::fnv1a;
use crate::checkpoint::state;
use crate::protocols::tls::{
    CipherSuite, ClientHello, DistinguishedName, Message, NamedGroup, ServerHello, Version,
};
use crate::protocols::{quic, tls};
use crate::row::{Column, Row, RowType, Table, Visitor, concat};
use crate::session::Lack;
use crate::session::{MessageMeta, Role};

/// Maximum number of names of application protocols, and of alerts, that are kept.
const LIST_LEN_MAX: usize = 16;

/// Maximum number of letters of a history.
const HISTORY_LEN_MAX: usize = 100;

/// Appends letters to a history: in lower case for the server.
fn note(history: &mut String, from: Role, letters: &str) {
    for letter in letters.chars().take(HISTORY_LEN_MAX.saturating_sub(history.len())) {
        history.push(if from == Role::Server { letter.to_ascii_lowercase() } else { letter });
    }
}

/// Returns the letter of a message; nothing for the first encrypted record.
fn letter(message: &Message<'_>) -> &'static str {
    match message {
        Message::ClientHello(_) | Message::Ssl2ClientHello(_) => "C",
        Message::ServerHello(hello) if hello.is_hello_retry_request() => "J",
        Message::ServerHello(_) => "S",
        Message::HelloVerifyRequest(_) => "V",
        Message::CertificateChain(_) => "X",
        Message::ServerKeyExchange(_) => "K",
        Message::NewSessionTicket(_) => "T",
        Message::ChangeCipherSpec(_) => "I",
        Message::Alert(_) => "L",
        Message::Step(step) => match step.handshake_type {
            None => "",
            Some(0) => "H",
            Some(4) => "T",
            Some(6) => "J",
            Some(12) => "K",
            Some(13) => "R",
            Some(14) => "N",
            Some(15) => "Y",
            Some(16) => "G",
            Some(20) => "F",
            Some(21) => "W",
            Some(22) => "U",
            Some(23) => "A",
            Some(_) => "Z",
        },
    }
}

crate::message! {
    /// A connection of TLS or DTLS: what its messages in the clear state.
    #[derive(Clone, Debug, Default, PartialEq)]
    "transaction.tls" pub struct Tls {
        /// Server name that the client requests.
        pub server_name: Option<Box<str>>,
        /// Highest version that the client offers.
        pub offered_version: Option<Version>,
        /// Version that the server selected.
        pub version: Option<Version>,
        /// Cipher suite that the server selected.
        pub cipher_suite: Option<CipherSuite>,
        /// Group of the key exchange.
        pub group: Option<NamedGroup>,
        /// Application protocols that the client offers, at most 16.
        pub offered_alpn: Vec<Box<str>>,
        /// Application protocol that the server selected; encrypted since TLS 1.3.
        pub alpn: Option<Box<str>>,
        /// JA3 fingerprint of the client.
        pub ja3: Option<Box<str>>,
        /// JA4 fingerprint of the client.
        pub ja4: Option<Box<str>>,
        /// JA3S fingerprint of the server.
        pub ja3s: Option<Box<str>>,
        /// True if a session was resumed; absent if that is not known.
        pub is_resumed: Option<bool>,
        /// True if the server requested another ClientHello.
        pub has_retry: bool,
        /// True if both sides changed to encryption, or since TLS 1.3 both sent an encrypted record; absent if that is not known.
        pub is_established: Option<bool>,
        /// SHA-256 fingerprints of the certificates of the server, its own first; encrypted since TLS 1.3.
        pub certificates: Vec<Box<str>>,
        /// SHA-256 fingerprints of the certificates of the client.
        pub client_certificates: Vec<Box<str>>,
        /// Lifetime hint in seconds of a session ticket of the server.
        pub ticket_lifetime_s: Option<u32>,
        /// Alerts of the client in the clear, at most 16.
        pub client_alerts: Vec<tls::AlertDescription>,
        /// Alerts of the server in the clear, at most 16.
        pub alerts: Vec<tls::AlertDescription>,
        ..
        /// The last alert of either side.
        pub last_alert: Option<tls::AlertDescription>,
        /// Letters of the messages in the order of their arrival, as in Zeek's `ssl_history`: upper case for the client, at most
        /// 100.
        pub history: String,
        /// Names for which the server's certificate is valid, if it was captured: its DNS names, or else its common name.
        pub certified_names: Option<Vec<Box<str>>>,
    }
}

crate::message! {
    /// What the packets of a connection of QUIC state beside TLS.
    #[derive(Clone, Debug, Default, PartialEq)]
    "transaction.quic_packets" pub struct QuicPackets {
        /// Number of the connection in its flow, starting at zero.
        pub number: u64,
        /// Version of the packets with the last hello.
        pub quic_version: Option<quic::Version>,
        /// Destination connection id of the packet with the first ClientHello, in hexadecimal digits.
        pub client_dcid: Option<Box<str>>,
        /// Connection id that the client chose for itself.
        pub client_scid: Option<Box<str>>,
        /// Connection id that the server chose for itself.
        pub server_scid: Option<Box<str>>,
        /// True if the server requested validation of the address of the client (Retry packet).
        pub has_retry_packet: bool,
        /// Versions that the server supports, if it refused that of the client.
        pub server_versions: Vec<quic::Version> [sparse],
        /// Error code with which the connection was closed before it was established.
        pub close_error: Option<u64>,
    }
}

/// A connection of QUIC: what its Initial packets state.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Quic {
    /// Packets.
    pub packets: QuicPackets,
    /// Hellos of TLS.
    pub tls: Tls,
    /// Letters of the packets with a message, as in Zeek's `history` of QUIC: upper case for the client, at most 100.
    pub history: String,
}

impl RowType for Quic {
    fn columns() -> Vec<&'static Column> {
        Self::COLUMNS.iter().collect()
    }
}

impl Row for Quic {
    fn own_columns(&self) -> Vec<&'static Column> {
        Self::columns()
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        self.packets.visit(visitor);
        self.tls.visit(visitor);
    }
}

impl Table for Quic {
    const NAME: &'static str = "transaction.quic";
    const DESCRIPTION: &'static str = "A connection of QUIC: what its Initial packets state.";
    const COLUMNS: &'static [Column] = {
        const PARTS: [&[Column]; 2] = [QuicPackets::COLUMNS, Tls::COLUMNS];
        &concat::<{ PARTS[0].len() + PARTS[1].len() }>(&PARTS)
    };
}

state! { struct Tls {
    server_name, offered_version, version, cipher_suite, group, offered_alpn, alpn, ja3, ja4, ja3s, is_resumed, has_retry,
    is_established, certificates, client_certificates, ticket_lifetime_s, client_alerts, alerts, last_alert, history,
    certified_names,
} }
state! { struct QuicPackets {
    number, quic_version, client_dcid, client_scid, server_scid, has_retry_packet, server_versions, close_error,
} }
state! { struct Quic { packets, tls, history } }

/// Returns the names of servers in a certificate: its DNS names, or else the common name of its subject (RFC 6125 section
/// 6.4.4).
fn certified_names(x509: &X509, subject: DistinguishedName<'_>, copier: &mut Copier) -> Vec<Box<str>> {
    if x509.dns_names.is_empty() {
        return subject.common_name().map(|name| copier.display(name)).into_iter().collect();
    }
    copier.count_list::<Box<str>>(x509.dns_names.len());
    x509.dns_names.iter().for_each(|name| copier.count(Some(name)));
    x509.dns_names.clone()
}

impl Tls {
    fn client_hello(&mut self, hello: &ClientHello<'_>, copier: &mut Copier) {
        // A second one follows a request of the server, and has the same names.
        self.server_name = copier.optional(hello.server_name());
        self.offered_version = Some(hello.version());
        copier.count_list::<Box<str>>(LIST_LEN_MAX);
        self.offered_alpn = hello.alpn().iter().take(LIST_LEN_MAX).map(|name| copier.text(name)).collect();
        self.ja3.get_or_insert_with(|| copier.display(hello.ja3()));
        self.ja4.get_or_insert_with(|| copier.display(hello.ja4()));
    }

    fn server_hello(&mut self, hello: &ServerHello<'_>, copier: &mut Copier) {
        if hello.is_hello_retry_request() {
            self.has_retry = true;
            return;
        }
        self.version = Some(hello.version());
        self.cipher_suite = Some(hello.cipher_suite);
        self.group = hello.key_share_group().or(self.group);
        self.alpn = copier.optional(hello.alpn());
        self.is_resumed = hello.is_resumed;
        self.ja3s = Some(copier.display(hello.ja3s()));
    }

    fn lack(&self) -> Option<Lack> {
        if self.offered_version.is_none() {
            return Some(Lack::Request);
        }
        self.version.is_none().then_some(Lack::Response)
    }
}

/// The open connection of a flow.
#[derive(Debug, Default)]
pub(super) struct TlsOpen {
    open: Open<Tls>,
    /// Which sides changed to encryption: the client, and the server.
    changed: [bool; 2],
    /// Which sides sent an encrypted record.
    encrypted: [bool; 2],
    /// First octets of the client's random value, which differ in another handshake of the flow (DTLS); zero before.
    random: u64,
    /// Hash of the session id of a server whose hello is captured before that of the client (DTLS).
    early_session: Option<u64>,
}

state! { struct TlsOpen { open, changed, encrypted, random, early_session } }

impl HeapLen for Tls {
    fn heap_len(&self) -> usize {
        let names = self.certificates.capacity() + self.client_certificates.capacity();
        allocated(16 * names)
            + allocated(self.history.capacity())
            + allocated(2 * self.alerts.capacity())
            + allocated(2 * self.client_alerts.capacity())
    }
}

impl HeapLen for Quic {
    fn heap_len(&self) -> usize {
        let versions = allocated(4 * self.packets.server_versions.capacity());
        allocated(self.history.capacity()) + versions + self.tls.heap_len()
    }
}

impl TlsOpen {
    pub(super) fn heap_len(&self) -> usize {
        self.open.heap_len()
    }

    /// Adds a message. Returns the certificates in it.
    pub(super) fn message(
        &mut self,
        meta: &MessageMeta,
        message: &Message<'_>,
        out: &mut dyn FnMut(Pending<Tls>),
    ) -> Vec<Pending<X509>> {
        let mut certificates = Vec::new();
        if let Message::ClientHello(hello) = message
            && let Some(random) = hello.random.0.first_chunk().map(|octets| u64::from_be_bytes(*octets))
            && std::mem::replace(&mut self.random, random) != random
        {
            // Another handshake ends the one before. A client may change its random value if the server requests another hello
            // (early versions of OpenSSL); the request may be captured later than that hello.
            if self.open.get(0).is_some_and(|pending| {
                let tls = &pending.content;
                let is_other = match hello.message_sequence {
                    0 => tls.version.is_some() || !tls.has_retry,
                    _ => tls.is_established == Some(true),
                };
                tls.offered_version.is_some() && is_other
            }) {
                self.finish(out);
                (self.changed, self.encrypted) = ([false; 2], [false; 2]);
            }
        }
        if self.open.get(0).is_none() {
            let pending = Pending::new(0, Span::of(meta), Tls::default(), &Copier::default());
            self.open.push(pending, out);
        }
        let Some(pending) = self.open.get(0) else { return certificates };
        pending.span.extend(meta);
        let (tls, mut copier) = (&mut pending.content, Copier::default());
        note(&mut tls.history, meta.from, letter(message));
        match message {
            Message::ClientHello(hello) => {
                if let Some(session) = self.early_session.take() {
                    let sent = hello.session_id.0;
                    // A ticket without a session id says nothing, as if the hello of the client is captured first.
                    if !sent.is_empty() || !hello.has_session_ticket() {
                        tls.is_resumed = Some(!sent.is_empty() && fnv1a(sent) == session);
                    }
                }
                tls.client_hello(hello, &mut copier);
            }
            Message::Ssl2ClientHello(hello) => tls.offered_version = Some(hello.version),
            Message::ServerHello(hello) => {
                let is_early = tls.offered_version.is_none() && hello.is_resumed.is_none();
                self.early_session = is_early.then(|| fnv1a(hello.session_id.0));
                tls.server_hello(hello, &mut copier);
            }
            Message::CertificateChain(chain) => {
                let names = match meta.from {
                    Role::Client => &mut tls.client_certificates,
                    Role::Server => &mut tls.certificates,
                };
                names.clear();
                for (position, certificate) in chain.iter().enumerate() {
                    let mut own = Copier::default();
                    let x509 = X509::new(&certificate, meta.from, position as u32, &mut own);
                    copier.count(Some(&x509.sha256));
                    names.push(x509.sha256.clone());
                    if position == 0 && meta.from == Role::Server {
                        tls.certified_names = Some(certified_names(&x509, certificate.subject, &mut copier));
                    }
                    let mut transaction = Pending::new(0, Span::of(meta), x509, &Copier::default());
                    if own.is_truncated {
                        transaction.lack(Lack::Limit);
                    }
                    certificates.push(transaction);
                }
            }
            Message::ServerKeyExchange(exchange) => tls.group = Some(exchange.group),
            Message::NewSessionTicket(ticket) => tls.ticket_lifetime_s = Some(ticket.lifetime_s),
            Message::ChangeCipherSpec(_) => {
                *meta.from.of_mut(&mut self.changed) = true;
                let is_clear = tls.version.is_some_and(|version| version != Version::TLS_1_3);
                if self.changed == [true, true] && is_clear {
                    tls.is_established = Some(true);
                }
            }
            Message::Alert(alert) => {
                let alerts = match meta.from {
                    Role::Client => &mut tls.client_alerts,
                    Role::Server => &mut tls.alerts,
                };
                if alerts.len() < LIST_LEN_MAX {
                    alerts.push(alert.description);
                }
                tls.last_alert = Some(alert.description);
            }
            Message::HelloVerifyRequest(_) => tls.has_retry = true,
            Message::Step(step) if step.handshake_type.is_none() => {
                *meta.from.of_mut(&mut self.encrypted) = true;
                if self.encrypted == [true, true] && tls.version.is_some() {
                    tls.is_established = Some(true);
                }
            }
            Message::Step(_) => {}
        }
        pending.add(&copier);
        certificates
    }

    pub(super) fn finish(&mut self, out: &mut dyn FnMut(Pending<Tls>)) {
        for mut pending in self.open.take_all() {
            if let Some(lack) = pending.content.lack() {
                pending.lack(lack);
            }
            out(pending);
        }
    }
}

/// The open connections of a flow.
#[derive(Debug, Default)]
pub(super) struct QuicOpen(Open<Quic>);

state! { numbers QuicOpen }

impl QuicOpen {
    pub(super) fn heap_len(&self) -> usize {
        self.0.heap_len()
    }

    pub(super) fn message(
        &mut self,
        meta: &MessageMeta,
        message: &quic::Message<'_>,
        out: &mut dyn FnMut(Pending<Quic>),
    ) {
        use quic::Message;

        let number = match message {
            Message::ClientHello(hello) => hello.transaction,
            Message::ServerHello(hello) => hello.transaction,
            Message::VersionNegotiation(negotiation) => negotiation.transaction,
            Message::Retry(retry) => retry.transaction,
            Message::Close(close) => close.transaction,
            Message::UnsupportedVersion(unsupported) => unsupported.transaction,
        };
        if self.0.get(number).is_none() {
            let packets = QuicPackets { number, ..QuicPackets::default() };
            let quic = Quic { packets, ..Quic::default() };
            self.0.push(Pending::new(number, Span::of(meta), quic, &Copier::default()), out);
        }
        let Some(pending) = self.0.get(number) else { return };
        pending.span.extend(meta);
        let (quic, mut copier) = (&mut pending.content, Copier::default());
        match message {
            Message::ClientHello(hello) => {
                note(&mut quic.history, meta.from, "IS");
                note(&mut quic.tls.history, meta.from, "C");
                quic.packets.quic_version = Some(hello.quic_version);
                quic.packets.client_dcid.get_or_insert_with(|| copier.display(hello.dcid));
                quic.packets.client_scid = Some(copier.display(hello.scid));
                quic.tls.client_hello(&hello.hello, &mut copier);
            }
            Message::ServerHello(hello) => {
                note(&mut quic.history, meta.from, "IS");
                note(
                    &mut quic.tls.history,
                    meta.from,
                    if hello.hello.is_hello_retry_request() { "J" } else { "S" },
                );
                quic.packets.quic_version = Some(hello.quic_version);
                quic.packets.server_scid = Some(copier.display(hello.scid));
                quic.tls.server_hello(&hello.hello, &mut copier);
            }
            Message::VersionNegotiation(negotiation) => {
                quic.packets.server_versions = negotiation.versions.iter().take(LIST_LEN_MAX).collect();
            }
            Message::Retry(_) => {
                note(&mut quic.history, meta.from, "R");
                quic.packets.has_retry_packet = true;
            }
            Message::Close(close) => {
                note(&mut quic.history, meta.from, "C");
                quic.packets.close_error = Some(close.error_code);
            }
            Message::UnsupportedVersion(unsupported) => {
                note(&mut quic.history, meta.from, "U");
                quic.packets.quic_version = Some(unsupported.quic_version);
                quic.packets.client_dcid = Some(copier.display(unsupported.dcid));
                quic.packets.client_scid = Some(copier.display(unsupported.scid));
            }
        }
        pending.add(&copier);
    }

    pub(super) fn finish(&mut self, out: &mut dyn FnMut(Pending<Quic>)) {
        for mut pending in self.0.take_all() {
            if let Some(lack) = pending.content.tls.lack() {
                pending.lack(lack);
            }
            out(pending);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Side, Timestamp};
    use crate::protocols::tls::{DTLS, Transport};

    /// Returns what is known of the resumption after the hellos of both sides with these session ids.
    fn resumed(client: &[u8], server: &[u8], is_client_late: bool) -> Option<bool> {
        let hello = |version: &[u8], session_id: &[u8], rest: &[u8]| {
            let parts: [&[u8]; 5] = [version, &[7; 32], &[session_id.len() as u8], session_id, rest];
            parts.concat()
        };
        let sent = hello(&[0xfe, 0xfd], client, &[0, 0, 2, 0, 5, 1, 0]);
        let answered = hello(&[0xfe, 0xfd], server, &[0, 5, 0]);
        let known = (!is_client_late).then_some(client);
        let messages = [
            Message::ClientHello(ClientHello::parse(&sent, Transport::Datagram).expect("a hello")),
            Message::ServerHello(ServerHello::parse(&answered, known).expect("a hello")),
        ];
        let (mut open, mut rows) = (TlsOpen::default(), Vec::new());
        for index in if is_client_late { [1, 0] } else { [0, 1] } {
            let from = [Role::Client, Role::Server][index];
            let (side, timestamp) = (Side::A, Timestamp::ZERO);
            let meta = MessageMeta { protocol: &DTLS, from, side, timestamp, received_len: 0 };
            open.message(&meta, &messages[index], &mut |_| {});
        }
        open.finish(&mut |pending| rows.push(pending.content.is_resumed));
        assert_eq!(rows.len(), 1);
        rows[0]
    }

    #[test]
    fn a_late_client_changes_nothing_about_the_resumption() {
        for (client, server, expected) in
            [(&b"id"[..], &b"id"[..], true), (b"id", b"other", false), (b"id", b"", false), (b"", b"", false)]
        {
            for is_client_late in [false, true] {
                assert_eq!(resumed(client, server, is_client_late), Some(expected), "{client:?} {server:?}");
            }
        }
    }
}
