//! Conversion of TLS handshake messages to session messages, and the state that it requires.

use super::certificate::CertificateChain;
use super::client_hello::{ClientHello, Transport};
use super::message::{HelloVerifyRequest, Message, NewSessionTicket, ServerKeyExchange, Step};
use super::numbers::{CipherSuite, Version};
use super::server_hello::ServerHello;
use crate::checkpoint::state;
use crate::session::{Fault, Role};

/// Maximum length in octets of a TLS or DTLS handshake message that is parsed, without its header.
pub const HANDSHAKE_LEN_MAX: usize = 65_536;

/// Length in octets of the header of a handshake message in a TLS stream.
pub(super) const HEADER_LEN: usize = 4;

pub(super) const CLIENT_HELLO: u8 = 1;
pub(super) const SERVER_HELLO: u8 = 2;
pub(super) const HELLO_VERIFY_REQUEST: u8 = 3;
pub(super) const NEW_SESSION_TICKET: u8 = 4;
pub(super) const CERTIFICATE: u8 = 11;
pub(super) const SERVER_KEY_EXCHANGE: u8 = 12;
pub(super) const CERTIFICATE_REQUEST: u8 = 13;
pub(super) const SERVER_HELLO_DONE: u8 = 14;
pub(super) const CERTIFICATE_VERIFY: u8 = 15;
pub(super) const CLIENT_KEY_EXCHANGE: u8 = 16;
pub(super) const CERTIFICATE_STATUS: u8 = 22;

/// Returns the side that sends handshake messages of type `kind`; `None` if either side may send them.
pub(super) const fn sender(kind: u8) -> Option<Role> {
    match kind {
        CLIENT_HELLO | CLIENT_KEY_EXCHANGE | CERTIFICATE_VERIFY => Some(Role::Client),
        SERVER_HELLO | HELLO_VERIFY_REQUEST | NEW_SESSION_TICKET | SERVER_KEY_EXCHANGE
        | CERTIFICATE_REQUEST | SERVER_HELLO_DONE | CERTIFICATE_STATUS => Some(Role::Server),
        _ => None,
    }
}

/// Returns whether `kind` is a type of handshake message that may be sent in the clear.
pub(super) const fn is_kind(kind: u8) -> bool {
    // Types that imply no sender: HelloRequest, HelloRetryRequest of drafts, Finished, CertificateURL,
    // SupplementalData.
    sender(kind).is_some() || matches!(kind, 0 | 6 | CERTIFICATE | 20 | 21 | 23)
}

/// State derived from the hello messages of a handshake.
#[derive(Debug)]
pub(super) struct Handshake {
    transport: Transport,
    session_id_len: Option<u8>,
    session_id: [u8; 32],
    /// Version chosen by the server.
    pub(super) chosen: Option<Version>,
    suite: Option<CipherSuite>,
    /// True if the client offers a version with an encrypted handshake, such as TLS 1.3.
    pub(super) offers_hiding: bool,
    /// True if the client sends encrypted early data before it knows the chosen version.
    pub(super) has_early_data: bool,
}

state! { enum Transport { 0 = Stream, 1 = Datagram, 2 = Quic } }
state! { struct Handshake {
    transport, session_id_len, session_id, chosen, suite, offers_hiding, has_early_data,
} }

impl Handshake {
    pub(super) const fn new(transport: Transport) -> Self {
        Self {
            transport,
            session_id_len: None,
            session_id: [0; 32],
            chosen: None,
            suite: None,
            offers_hiding: false,
            has_early_data: false,
        }
    }

    /// Returns whether all messages after the hellos are encrypted in the chosen version; `None` if no ServerHello was
    /// captured yet.
    pub(super) fn hides(&self) -> Option<bool> {
        self.chosen.map(Version::hides_handshake)
    }

    /// Processes a complete handshake message of type `kind`, and reports its content to `out`.
    pub(super) fn take(
        &mut self,
        (kind, body): (u8, &[u8]),
        out: &mut dyn for<'m> FnMut(Message<'m>),
    ) -> Result<(), Fault> {
        let step = Message::Step(Step { handshake_type: Some(kind) });
        match kind {
            CLIENT_HELLO => {
                let hello = ClientHello::parse(body, self.transport).ok_or(Fault::new("bad_client_hello"))?;
                self.remember(&hello);
                out(Message::ClientHello(hello));
            }
            SERVER_HELLO => {
                let session_id = self.session_id_len.and_then(|len| self.session_id.get(..usize::from(len)));
                let hello = ServerHello::parse(body, session_id).ok_or(Fault::new("bad_server_hello"))?;
                if hello.is_hello_retry_request() {
                    self.offers_hiding = true;
                } else {
                    (self.chosen, self.suite) = (Some(hello.version()), Some(hello.cipher_suite));
                }
                out(Message::ServerHello(hello));
            }
            HELLO_VERIFY_REQUEST if self.transport == Transport::Datagram => {
                let request =
                    HelloVerifyRequest::parse(body).ok_or(Fault::new("bad_hello_verify_request"))?;
                out(Message::HelloVerifyRequest(request));
            }
            NEW_SESSION_TICKET => out(NewSessionTicket::parse(body).map_or(step, Message::NewSessionTicket)),
            SERVER_KEY_EXCHANGE => {
                let exchange = self.suite.and_then(|suite| ServerKeyExchange::parse(body, suite));
                out(exchange.map_or(step, Message::ServerKeyExchange));
            }
            CERTIFICATE => out(Message::CertificateChain(CertificateChain::parse(body))),
            _ => out(step),
        }
        Ok(())
    }

    fn remember(&mut self, hello: &ClientHello<'_>) {
        let sent = hello.session_id.0;
        // For a ticket without a session id, the server's hello does not indicate whether it was accepted (RFC 5077
        // section 3.4).
        let is_evidence = !sent.is_empty() || !hello.has_session_ticket();
        self.session_id_len = self.session_id.get_mut(..sent.len()).filter(|_| is_evidence).map(|known| {
            known.copy_from_slice(sent);
            sent.len() as u8
        });
        self.offers_hiding = hello.version().hides_handshake()
            || hello.supported_versions().iter().any(Version::hides_handshake);
        self.has_early_data = hello.has_early_data();
    }
}
