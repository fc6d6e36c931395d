//! TLS and DTLS: the reports of records and handshakes do not depend on the pieces of the input, and datagrams in any
//! order cause no failure.

use flowgauge::protocols::tls::{DtlsParser, TlsParser};
use flowgauge::session::MessageMeta;

use super::dialogue::{Expectations, Input, Line, json, play, run_all_variants};
use super::input::structured;

static TLS: flowgauge::session::Protocol =
    flowgauge::session::Protocol::new("tls").over_streams(&[443], None);
static DTLS: flowgauge::session::Protocol =
    flowgauge::session::Protocol::new("dtls").over_datagrams(&[443], None);

flowgauge::protocols! {
    /// Set with both parsers.
    #[derive(Debug)]
    enum Set;
    /// Messages of both parsers.
    #[derive(Debug)]
    enum Report;
    parsers { Tls: TlsParser = &TLS, Dtls: DtlsParser = &DTLS }
}

fn describe(meta: &MessageMeta, message: Report<'_>) -> Line {
    let (Report::Tls(message) | Report::Dtls(message)) = message;
    let json = json(&message);
    Line::Whole(format!("{} {json} {}", meta.from.name(), format!("{message:?}").len()))
}

const WORDS: &[&[u8]] = &[
    // Records: a ClientHello, a ServerHello of TLS 1.2, a ServerHello of TLS 1.3, ServerHelloDone, ChangeCipherSpec, an
    // alert, application data, an empty handshake record.
    b"\x16\x03\x01\x00\x45\x01\x00\x00\x41\x03\x03aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\x00\x00\x04\x13\x01\xc0\x2f\
      \x01\x00\x00\x14\x00\x00\x00\x10\x00\x0e\x00\x00\x0ba.example.b",
    b"\x16\x03\x03\x00\x2a\x02\x00\x00\x26\x03\x03bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\x00\xc0\x2f\x00",
    b"\x16\x03\x03\x00\x32\x02\x00\x00\x2e\x03\x03bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\x00\x13\x01\x00\x00\x06\
      \x00\x2b\x00\x02\x03\x04",
    b"\x16\x03\x03\x00\x04\x0e\x00\x00\x00",
    b"\x14\x03\x03\x00\x01\x01",
    b"\x15\x03\x03\x00\x02\x02\x28",
    b"\x17\x03\x03\x00\x10dddddddddddddddd",
    b"\x16\x03\x03\x00\x00",
    // Headers of handshake messages: Certificate, NewSessionTicket, CertificateStatus, a long message.
    b"\x16\x03\x03\x00\x07\x0b\x00\x00\x03\x00\x00\x00",
    b"\x16\x03\x03\x00\x0a\x04\x00\x00\x06\x00\x00\x0e\x10\x00\x00",
    b"\x16\x03\x03\x00\x08\x16\x00\x00\x04\x01\x00\x00\x00",
    b"\x16\x03\x03\x00\x05\x0b\x00\xff\xff\x00",
    // DTLS: a ClientHello in one fragment, HelloVerifyRequest, a record of another epoch.
    b"\x16\xfe\xfd\0\0\0\0\0\0\0\0\0\x39\x01\0\0\x2d\0\0\0\0\0\0\0\x2d\xfe\xfdaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\0\0\
      \0\x04\xc0\x2b\xc0\x2f\x01\0\0\0",
    b"\x16\xfe\xff\0\0\0\0\0\0\0\0\0\x13\x03\0\0\x07\0\0\0\0\0\0\0\x07\xfe\xff\x04abcd",
    b"\x16\xfe\xfd\0\x01\0\0\0\0\0\0\0\x04abcd",
    // SSL 2.
    b"\x80\x2e\x01\x03\x01\0\x15\0\0\0\x10\0\0\x2f\0\0\x35\0\0\x05\0\0\x04\0\0\x0a\0\0\xffcccccccccccccccc",
    b"\0",
    b"\xff",
];

/// Maximum number of held octets: a record and a handshake message of both directions with spare capacity.
const HELD_MAX: u64 = 600 * 1024;

pub fn run(data: &[u8]) {
    let Some(input) = structured::<Input<'_>>(data) else { return };
    let terms = || Expectations::<Set>::tcp(443, WORDS, describe, HELD_MAX);
    if input.choice & 0x80 == 0 {
        run_all_variants(data, terms);
    } else {
        play(&terms().udp(), &input.steps, usize::MAX);
        play(&terms().udp().with_limits(input.choice), &input.steps, usize::MAX);
    }
}
