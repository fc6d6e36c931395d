//! A transaction: its times and flow, and what its protocol states.

use super::dns::Dns;
use super::file::File;
use super::ftp::Ftp;
use super::http::Http;
use super::open::Pending;
use super::smtp::Mail;
use super::span::Span;
use super::ssh::Ssh;
use super::tls::{Quic, Tls};
use super::transfer::FlowOrigin;
use super::x509::X509;
use crate::base::{Side, Timestamp};
use crate::session::kit::{KitMessage, KitTransaction};
use crate::session::{Lack, MessageMeta, Protocol};

/// A transaction of a flow.
#[derive(Clone, Debug)]
pub struct Transaction {
    pub(super) span: Span,
    pub(super) lacks: Option<Lack>,
    /// The flows of its messages, if it may have several.
    pub(super) flows: Box<[FlowOrigin]>,
    /// What the protocol states.
    pub content: Content,
}

impl Transaction {
    /// Returns the transaction of a message of the kit.
    pub(super) fn of_kit(meta: &MessageMeta, message: &KitMessage<'_>) -> Self {
        let exchange = message.exchange();
        let span = Span { start: exchange.start, end: exchange.end, ..Span::of(meta) };
        let flows = Box::default();
        Self { span, lacks: exchange.lacks, flows, content: Content::Kit(message.kept()) }
    }

    /// Returns the protocol of the messages.
    #[must_use]
    pub const fn protocol(&self) -> &'static Protocol {
        self.span.protocol
    }

    /// Returns what the transaction lacks.
    #[must_use]
    pub const fn lacks(&self) -> Option<Lack> {
        self.lacks
    }

    /// Returns the memory in bytes that was allocated for a file; 0 for other transactions, which are not kept.
    pub(crate) fn heap_len(&self) -> usize {
        if let Content::File(file) = &self.content { file.heap_len() } else { 0 }
    }

    /// Returns the flows of the messages, if the exchanges of the protocol may be in several, such as those of DHCP.
    #[must_use]
    pub(crate) fn flows(&self) -> &[FlowOrigin] {
        &self.flows
    }

    /// Returns the side of the client.
    #[must_use]
    pub const fn client(&self) -> Side {
        self.span.client
    }

    /// Returns the time of the packet that completed the first message.
    #[must_use]
    pub const fn start(&self) -> Timestamp {
        self.span.start
    }

    /// Returns the time of the packet that completed the last message.
    #[must_use]
    pub const fn end(&self) -> Timestamp {
        self.span.end
    }

    /// Returns the number of octets that the parsers of the flow had received with the last message, as
    /// [`MessageMeta::received_len`](crate::session::MessageMeta::received_len).
    #[must_use]
    pub const fn received_len(&self) -> u64 {
        self.span.received_len
    }
}

crate::messages! {
    /// The content of a transaction.
    #[derive(Clone, Debug)]
    pub enum Content<> {
        /// A request and a response of HTTP.
        Http(Http),
        /// A query and its response.
        Dns(Dns),
        /// A connection of TLS or DTLS.
        Tls(Tls),
        /// A connection of QUIC.
        Quic(Quic),
        /// A certificate.
        X509(X509),
        /// A connection of SSH.
        Ssh(Ssh),
        /// A mail over SMTP.
        Mail(Mail),
        /// A command of FTP with its reply.
        Ftp(Ftp),
        /// A body of HTTP, a part of a mail, or a file of FTP, TFTP or SMB.
        File(File),
        ..
        /// An exchange of one of the protocols of the [kit](crate::session::kit).
        Kit(KitTransaction),
    }
}

/// Each kind of content is a transaction.
macro_rules! contents {
    ($($type:ident),+) => {$(
        impl From<$type> for Content {
            fn from(content: $type) -> Self {
                Self::$type(content)
            }
        }
    )+};
}

contents! { Http, Dns, Tls, Quic, X509, Ssh, Mail, Ftp, File }

impl<T> From<Pending<T>> for Transaction
where
    Content: From<T>,
{
    fn from(pending: Pending<T>) -> Self {
        let Pending { span, lacks, content, .. } = pending;
        Self { span, lacks, flows: Box::default(), content: content.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::{Message, Standard};
    use crate::row::Union;
    use crate::session::Protocols as _;

    #[test]
    fn each_table_is_declared_by_a_protocol_with_a_parser() {
        let declared: Vec<&str> = Standard::TABLE
            .iter()
            .filter(|entry| entry.has_parser)
            .flat_map(|entry| {
                assert!(!entry.protocol.kinds().is_empty(), "{} declares no table", entry.protocol.name());
                entry.protocol.kinds()
            })
            .copied()
            .collect();
        let messages = <Message<'static> as Union>::tables().into_iter().map(|table| table.prefix());
        // Several protocols transfer files.
        let transactions =
            Content::tables().into_iter().map(|table| table.kind()).filter(|kind| *kind != "file");
        for kind in messages.chain(transactions) {
            assert!(declared.contains(&kind), "no protocol declares {kind}");
        }
    }
}
