//! The protocols of this crate, as one set.

use super::{dns, ftp, ftp_data, http1, http2, quic, recognizers, smtp, ssh, tftp, tls};

crate::protocols! {
    /// The set of all protocols of this crate: those with a parser, then those that are recognized only. Probes are
    /// called in this order, which seldom matters because each probe is strict.
    #[derive(Debug)]
    pub enum Standard;

    /// Message of any protocol of this crate.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Message: Union;

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
        FtpData: ftp_data::FtpDataParser = &ftp_data::PROTOCOL,
        Quic: quic::QuicParser = &quic::PROTOCOL,
        Dtls: tls::DtlsParser = &tls::DTLS,
        Tftp: tftp::TftpParser = &tftp::PROTOCOL,
    }

    recognized { &http1::WEBSOCKET }
    recognized_in recognizers::ALL
}

impl<'m> Message<'m> {
    /// Returns the ClientHello in a message of TLS, DTLS or QUIC.
    #[must_use]
    pub const fn client_hello(&self) -> Option<&tls::ClientHello<'m>> {
        match self {
            Self::Tls(tls::Message::ClientHello(hello)) | Self::Dtls(tls::Message::ClientHello(hello)) => {
                Some(hello)
            }
            Self::Quic(quic::Message::ClientHello(hello)) => Some(&hello.hello),
            _ => None,
        }
    }

    /// Returns whether the message only marks the end of an HTTP message without a body, which the command does not write.
    #[must_use]
    pub const fn is_plain_end(&self) -> bool {
        match self {
            Self::Http1(http1::Message::End(end)) => end.body_len == 0 && end.complete,
            Self::Http2(http2::Message::End(end)) => {
                end.body_len == 0 && end.complete && end.grpc_status.is_none()
            }
            _ => false,
        }
    }
}
