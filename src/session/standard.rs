//! The protocols of this crate, as one set.

use super::{dns, ftp, http1, http2, quic, recognised, smtp, ssh, tls};

crate::protocols! {
    /// Every protocol of this crate: those with a parser, then those that are recognised only. The order is that in which probes are
    /// asked; each is strict, so that it seldom matters.
    #[derive(Debug)]
    pub enum Standard;

    /// What they say. Serialised, a message is one flat object whose `message` tells its kind.
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

    recognised { &http1::WEBSOCKET }
    recognised_in recognised::ALL
}

impl Message<'_> {
    /// Whether it is a piece of what is carried (a body, a mail, a file), and not about it.
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
