//! DTLS: hello messages in datagrams, and fragments of messages that are never completed.

use flowgauge::session::Role::{Client, Server};

use super::feed::{Case, Expected, Input, filled};
use super::tls::{client_hello, server_hello, typical};

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const CERTIFICATE: u8 = 11;

/// A record with a fragment of a handshake message.
fn fragment(kind: u8, sequence: u16, (offset, len): (usize, usize), octets: &[u8]) -> Vec<u8> {
    let u24 = |number: usize| (number as u32).to_be_bytes()[1..].to_vec();
    let mut content = vec![kind];
    content.extend(u24(len));
    content.extend(sequence.to_be_bytes());
    content.extend(u24(offset));
    content.extend(u24(octets.len()));
    content.extend(octets);
    let mut record = vec![22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0];
    record.extend((content.len() as u16).to_be_bytes());
    record.extend(content);
    record
}

fn whole(kind: u8, sequence: u16, body: &[u8]) -> Vec<u8> {
    fragment(kind, sequence, (0, body.len()), body)
}

fn hello() -> Vec<u8> {
    let (suites, extensions) = typical();
    client_hello(Some(&[]), &suites, &extensions)
}

pub(crate) fn benign() -> Case {
    let input = filled(Input::udp(4433), |input, _| {
        input.flow();
        input.send(Client, &whole(CLIENT_HELLO, 0, &hello()));
        input.send(Server, &whole(SERVER_HELLO, 0, &server_hello()));
        for (offset, part) in [(0, [5; 900]), (900, [6; 900])] {
            input.send(Server, &fragment(CERTIFICATE, 1, (offset, 1800), &part));
        }
    });
    (input, Expected::messages(40))
}

/// A hello in fragments of one octet, as many as fit in each datagram.
pub(crate) fn one_octet_fragments() -> Case {
    let body = hello();
    let datagrams: Vec<Vec<u8>> = body
        .iter()
        .enumerate()
        .map(|(position, octet)| fragment(CLIENT_HELLO, 0, (position, body.len()), &[*octet]))
        .collect::<Vec<_>>()
        .chunks(50)
        .map(<[_]>::concat)
        .collect();
    let input = filled(Input::udp(4433), |input, _| {
        input.flow();
        datagrams.iter().for_each(|datagram| input.send(Client, datagram));
    });
    (input, Expected::messages(3))
}

/// The last octets of messages of maximum length that are never completed.
pub(crate) fn unfinished_messages() -> Case {
    let datagram = |round: u32| -> Vec<u8> {
        let sequence = |position: u32| ((50 * round + position) % 40) as u16 + 1;
        (0..50)
            .flat_map(|position| fragment(CERTIFICATE, sequence(position), (65_535, 65_536), &[1]))
            .collect()
    };
    let input = filled(Input::udp(4433), |input, round| {
        if round == 0 {
            input.send(Client, &whole(CLIENT_HELLO, 0, &hello()));
        }
        input.send(Client, &datagram(round));
    });
    (input, Expected::messages(1))
}

/// The same with occasional new handshakes, which discard the messages.
pub(crate) fn unfinished_handshakes() -> Case {
    let datagram = |round: u32| -> Vec<u8> {
        let mut datagram =
            fragment(CLIENT_HELLO, 0, (0, 65_536), &[&[3, 3][..], &round.to_be_bytes(), &[0; 8]].concat());
        datagram.extend((1..5).flat_map(|sequence| fragment(CERTIFICATE, sequence, (65_535, 65_536), &[1])));
        datagram
    };
    let input = filled(Input::udp(4433), |input, round| {
        if round == 0 {
            input.send(Client, &whole(CLIENT_HELLO, 0, &hello()));
        }
        input.send(Client, &datagram(round));
    });
    (input, Expected::messages(1))
}
