//! The protocols of this crate, as one set.

use super::{Kit, dns, ftp, ftp_data, http1, http2, quic, smtp, ssh, tftp, tls};

crate::protocols! {
    /// The set of all protocols of this crate: those with a parser of their own, then those of the kit and those that are
    /// recognized only. Probes are
    /// called in this order, which seldom matters because each probe is strict.
    #[derive(Debug)]
    pub enum Standard;

    /// Message of any protocol of this crate.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum Message: Union;

    extends Kit;

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

#[cfg(test)]
mod tests {
    use super::super::recognizers::samples::octets;
    use super::*;
    use crate::session::{DatagramOpening, Protocols, Role, StreamOpening, Verdict};

    /// First octets of protocols with a parser.
    const PARSED: [&[u8]; 8] = [
        b"220 mail.example.com ESMTP\r\n",
        b"220 FTP server\r\n",
        b"EHLO client\r\n",
        b"USER anonymous\r\n",
        b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
        b"SSH-2.0-client\r\n",
        b"\x16\x03\x01\x00\x40\x01\x00\x00\x3C\x03\x03",
        b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64",
    ];

    /// Whatever follows, whichever the ports are, and whatever the other side sent: octets that are not declared are
    /// refuted.
    #[test]
    fn probes_refute_all_octets_that_are_not_declared() {
        for entry in Standard::TABLE {
            let protocol = entry.protocol;
            let ports = protocol.stream_ports().iter().chain(protocol.datagram_ports()).copied();
            let ports: Vec<_> =
                ports.chain([40_405]).flat_map(|port| [(40_404, port), (port, 40_404)]).collect();
            for first in 0..=u8::MAX {
                let [in_stream, in_datagram] = protocol.may_begin_with(first);
                // A part of the samples for each octet, so that the test takes seconds.
                let samples = octets().skip(usize::from(first % 15)).step_by(15).chain(PARSED);
                for octets in samples.flat_map(|octets| [octets, octets.get(1..).unwrap_or_default()]) {
                    let bytes = [&[first], octets].concat();
                    for &(client, server) in &ports {
                        if !in_stream {
                            for (by_client, by_server) in [
                                (&bytes[..], &[][..]),
                                (&[], &bytes),
                                (&bytes, &bytes),
                                (&bytes[..1], &bytes),
                            ] {
                                let opening = StreamOpening::new(by_client, by_server, client, server);
                                assert_eq!(
                                    protocol.probe_stream(&opening),
                                    Verdict::No,
                                    "{protocol}: {opening:?}"
                                );
                            }
                        }
                        if !in_datagram {
                            let opening = DatagramOpening::first(&bytes, client, server);
                            for opening in [
                                opening,
                                DatagramOpening { from: Role::Server, previous: octets, ..opening },
                                DatagramOpening { previous: octets, answered: octets, ..opening },
                                DatagramOpening { bytes: &bytes[..1], len: 1, ..opening },
                            ] {
                                assert_eq!(
                                    protocol.probe_datagram(&opening),
                                    Verdict::No,
                                    "{protocol}: {opening:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
