//! TLS: typical handshakes, and handshakes with as many parts as possible.

use flowgauge::session::Role::{self, Client, Server};

use super::feed::{Case, Expected, Input, filled};

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const CERTIFICATE: u8 = 11;

fn counted<const N: usize>(octets: &[u8]) -> Vec<u8> {
    let len = octets.len().to_be_bytes();
    [&len[len.len() - N..], octets].concat()
}

pub(crate) fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &counted::<2>(data)].concat()
}

/// The body of a ClientHello.
pub(crate) fn client_hello(cookie: Option<&[u8]>, suites: &[u8], extensions: &[u8]) -> Vec<u8> {
    let mut body = [&[3, 3][..], &[7; 32], &counted::<1>(&[9; 32])].concat();
    body.extend(cookie.map(counted::<1>).unwrap_or_default());
    body.extend(counted::<2>(suites));
    body.extend([1, 0]);
    body.extend(counted::<2>(extensions));
    body
}

/// Cipher suites and extensions as sent by a browser.
pub(crate) fn typical() -> (Vec<u8>, Vec<u8>) {
    let suites: Vec<u8> =
        [0x1301_u16, 0x1303, 0x1302, 0xc02b, 0xc02f, 0xcca9, 0xcca8, 0xc02c, 0xc030, 0xc00a, 0xc009]
            .iter()
            .flat_map(|suite| suite.to_be_bytes())
            .collect();
    let extensions = [
        extension(0, &counted::<2>(&[&[0][..], &counted::<2>(b"www.example.org")].concat())),
        extension(23, &[]),
        extension(0xff01, &[0]),
        extension(10, &counted::<2>(&[0, 29, 0, 23, 0, 24, 0, 25])),
        extension(11, &[1, 0]),
        extension(16, &counted::<2>(b"\x02h2\x08http/1.1")),
        extension(13, &counted::<2>(&[4, 3, 5, 3, 6, 3, 8, 4, 8, 5, 8, 6, 4, 1, 5, 1, 6, 1])),
        extension(43, &counted::<1>(&[3, 4, 3, 3])),
        extension(51, &counted::<2>(&[&[0, 29][..], &counted::<2>(&[5; 32])].concat())),
    ];
    (suites, extensions.concat())
}

/// The body of a ServerHello of TLS 1.2, in which certificates are not encrypted.
pub(crate) fn server_hello() -> Vec<u8> {
    let extensions = [extension(0xff01, &[0]), extension(16, &counted::<2>(b"\x02h2"))].concat();
    [&[3, 3][..], &[8; 32], &counted::<1>(&[6; 32]), &[0xc0, 0x2f, 0], &counted::<2>(&extensions)].concat()
}

fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    if content.len() < 128 {
        [&[tag, content.len() as u8][..], content].concat()
    } else {
        [&[tag, 0x82][..], &counted::<2>(content)].concat()
    }
}

fn name(organization: &[u8]) -> Vec<u8> {
    let attribute = |kind: u8, text: &[u8]| {
        let pair = [value(6, &[0x55, 4, kind]), value(12, text)].concat();
        value(0x31, &value(0x30, &pair))
    };
    value(
        0x30,
        &[attribute(6, b"CH"), attribute(10, organization), attribute(3, b"www.example.org")].concat(),
    )
}

/// An X.509 certificate with given encoded alternative names and a signature of 256 octets.
fn certificate(alt_names: &[u8]) -> Vec<u8> {
    let alt_names = value(0x30, &[value(6, &[0x55, 0x1d, 0x11]), value(4, &value(0x30, alt_names))].concat());
    let extensions = value(0xa3, &value(0x30, &alt_names));
    let algorithm =
        value(0x30, &[value(6, &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11]), value(5, &[])].concat());
    let validity = value(0x30, &[value(0x17, b"250101000000Z"), value(0x17, b"260101000000Z")].concat());
    let key = value(0x30, &[&algorithm[..], &value(3, &[1; 270])].concat());
    let signed = [
        &value(0xa0, &value(2, &[2]))[..],
        &value(2, &[9; 16]),
        &algorithm,
        &name(b"Example Authority"),
        &validity,
        &name(b"Example Organization"),
        &key,
        &extensions,
    ];
    value(0x30, &[&value(0x30, &signed.concat())[..], &algorithm, &value(3, &[2; 257])].concat())
}

fn chain(certificates: &[Vec<u8>]) -> Vec<u8> {
    counted::<3>(&certificates.iter().flat_map(|certificate| counted::<3>(certificate)).collect::<Vec<_>>())
}

pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &counted::<3>(body)].concat()
}

/// A message in records of a given length.
fn records(record_len: usize, octets: &[u8]) -> Vec<u8> {
    octets.chunks(record_len).flat_map(|part| [&[22, 3, 3][..], &counted::<2>(part)].concat()).collect()
}

/// The messages of both sides of a handshake that are not encrypted.
fn handshake() -> [(Role, Vec<u8>); 2] {
    let (suites, extensions) = typical();
    let names = [b"www.example.org".as_slice(), b"example.org", b"mail.example.org"]
        .map(|name| value(0x82, name))
        .concat();
    let answer = [
        message(SERVER_HELLO, &server_hello()),
        message(CERTIFICATE, &chain(&[certificate(&names), certificate(&[])])),
    ];
    [(Client, message(CLIENT_HELLO, &client_hello(None, &suites, &extensions))), (Server, answer.concat())]
}

fn handshakes(record_len: usize, packet_len: usize) -> Input {
    filled(Input::tcp(443), |input, _| {
        input.flow();
        for (from, octets) in handshake() {
            input.send_in(packet_len, from, &records(record_len, &octets));
        }
    })
}

/// Successive ClientHello messages in a flow.
fn hellos(suites: &[u8], extensions: &[u8]) -> Case {
    let hello = records(16_000, &message(CLIENT_HELLO, &client_hello(None, suites, extensions)));
    (filled(Input::tcp(443), |input, _| input.send(Client, &hello)), Expected::messages(1))
}

pub(crate) fn benign() -> Case {
    (handshakes(16_000, 1460), Expected::messages(60))
}

/// The same handshakes with one octet per segment.
pub(crate) fn one_octet_segments() -> Case {
    (handshakes(16_000, 1), Expected::messages(1))
}

/// The same handshakes with one octet per record.
pub(crate) fn one_octet_records() -> Case {
    (handshakes(1, 1460), Expected::messages(9))
}

/// As many empty extensions as fit.
pub(crate) fn extensions() -> Case {
    let extensions: Vec<u8> = (0..14_000_u16).flat_map(|number| extension(number % 64, &[])).collect();
    hellos(&[0x13, 1], &extensions)
}

/// As many known cipher suites as fit.
pub(crate) fn cipher_suites() -> Case {
    hellos(&[0xc0, 0x2f].repeat(30_000), &[])
}

/// ClientHello messages without cipher suites and extensions.
pub(crate) fn empty_hellos() -> Case {
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 0, 0]].concat();
    let hellos = records(16_000, &message(CLIENT_HELLO, &body).repeat(380));
    (filled(Input::tcp(443), |input, _| input.send(Client, &hellos)), Expected::messages(100))
}

/// Certificates with empty names only, in successive chains.
pub(crate) fn alt_names() -> Case {
    let chain = message(CERTIFICATE, &chain(&[certificate(&[0x82, 0].repeat(14_000))]));
    let input = filled(Input::tcp(443), |input, round| {
        if round == 0 {
            input.send(Server, &records(16_000, &message(SERVER_HELLO, &server_hello())));
        }
        input.send(Server, &records(16_000, &chain));
    });
    (input, Expected::messages(2))
}

/// Chains of the maximum number of certificates, which are almost empty.
pub(crate) fn certificates() -> Case {
    let chain = message(CERTIFICATE, &chain(&vec![value(0x30, &value(0x30, &[])); 32]));
    let input = filled(Input::tcp(443), |input, round| {
        if round == 0 {
            input.send(Server, &records(16_000, &message(SERVER_HELLO, &server_hello())));
        }
        input.send(Server, &records(16_000, &chain.repeat(60)));
    });
    (input, Expected::messages(100))
}

/// Alerts, the shortest messages.
pub(crate) fn alerts() -> Case {
    let alerts = [21, 3, 3, 0, 2, 1, 90].repeat(208);
    let input = filled(Input::tcp(443), |input, round| {
        if round == 0 {
            input.send(Client, &records(16_000, &handshake()[0].1));
        }
        input.send(Client, &alerts);
    });
    (input, Expected::messages(1000))
}
