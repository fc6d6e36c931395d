//! The protocols of this crate, as one set.

use super::{dns, ftp, http1, http2, quic, recognizers, smtp, ssh, tls};

crate::protocols! {
    /// The set of all protocols of this crate: those with a parser, then those that are recognized only. Probes are
    /// called in this order, which seldom matters because each probe is strict.
    #[derive(Debug)]
    pub enum Standard;

    /// Message of any protocol of this crate. Serialized as one flat object, in which `message` is the kind of message.
    #[derive(Debug)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize), serde(untagged))]
    #[non_exhaustive]
    pub enum Message;

    parsers {
        Http2: http2::Http2Parser = &http2::PROTOCOL,
        Http1: http1::HttpParser = &http1::PROTOCOL,
        Tls: tls::TlsParser = &tls::PROTOCOL,
        Dns: dns::DnsParser = &dns::PROTOCOL,
        Mdns: dns::MdnsParser = &dns::MDNS,
        Llmnr: dns::LlmnrParser = &dns::LLMNR,
        Ssh: ssh::SshParser = &ssh::PROTOCOL,
        Smtp: smtp::SmtpParser = &smtp::PROTOCOL,
        Ftp: ftp::FtpParser = &ftp::PROTOCOL,
        Quic: quic::QuicParser = &quic::PROTOCOL,
        Dtls: tls::DtlsParser = &tls::DTLS,
    }

    recognized { &http1::WEBSOCKET }
    recognized_in recognizers::ALL
}

impl Message<'_> {
    /// Returns whether the message is a piece of transported content: of a body, a mail or a file.
    #[must_use]
    pub const fn is_content(&self) -> bool {
        match self {
            Self::Http1(message) => message.is_content(),
            Self::Http2(message) => message.is_content(),
            Self::Dns(_)
            | Self::Mdns(_)
            | Self::Llmnr(_)
            | Self::Ssh(_)
            | Self::Smtp(_)
            | Self::Ftp(_)
            | Self::Quic(_)
            | Self::Tls(_)
            | Self::Dtls(_) => false,
        }
    }
}
