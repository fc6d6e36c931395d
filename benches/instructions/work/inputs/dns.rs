//! DNS: queries and responses of resolvers, and messages that expand to more than their octets.

use flowgauge::session::Role::{self, Client, Server};

use super::feed::{Case, Expected, Input, filled};

const RESPONSE: u16 = 0x8180;
const QUERY: u16 = 0x0100;

fn message(id: u16, flags: u16, counts: [u16; 4], rest: &[u8]) -> Vec<u8> {
    let mut message: Vec<u8> =
        [id, flags].iter().chain(&counts).flat_map(|number| number.to_be_bytes()).collect();
    message.extend(rest);
    message
}

fn name(text: &str) -> Vec<u8> {
    let mut name: Vec<u8> =
        text.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    name.push(0);
    name
}

fn question(name: &[u8]) -> Vec<u8> {
    [name, &[0, 1, 0, 1]].concat()
}

fn record(name: &[u8], record_type: u16, data: &[u8]) -> Vec<u8> {
    let mut record = name.to_vec();
    record.extend([record_type, 1].iter().flat_map(|number| number.to_be_bytes()));
    record.extend(300_u32.to_be_bytes());
    record.extend((data.len() as u16).to_be_bytes());
    record.extend(data);
    record
}

/// A response with as many of the records as fit.
fn response(id: u16, front: &[u8], records: &[Vec<u8>]) -> Vec<u8> {
    let question = question(&name("www.example.org"));
    message(id, RESPONSE, [1, records.len() as u16, 0, 0], &[&question, front, &records.concat()].concat())
}

fn dialogue(stream: bool) -> Input {
    let input = if stream { Input::tcp(53) } else { Input::udp(53) };
    filled(input, |input, round| {
        let name = name(&format!("host-{round}.www.example.org"));
        let records = [
            record(&[0xc0, 12], 5, &[&[3][..], b"cdn", &[0xc0, 12 + 6]].concat()),
            record(&[0xc0, 12], 1, &[192, 0, 2, 1]),
            record(&[0xc0, 12], 28, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ];
        let question = question(&name);
        let query = message(round as u16, QUERY, [1, 0, 0, 0], &question);
        let answer =
            message(round as u16, RESPONSE, [1, 3, 0, 0], &[&question[..], &records.concat()].concat());
        for (from, message) in [(Client, query), (Server, answer)] {
            if stream {
                let len = (message.len() as u16).to_be_bytes();
                input.send(from, &[&len[..], &message].concat());
            } else {
                input.send(from, &message);
            }
        }
    })
}

/// Responses over UDP, each in a separate flow.
fn responses(make: impl Fn(u16) -> Vec<u8>) -> Input {
    filled(Input::udp(53), |input, round| {
        input.flow();
        input.send(Server, &make(round as u16));
    })
}

pub(crate) fn benign() -> Case {
    (dialogue(false), Expected::messages(200))
}

pub(crate) fn over_tcp() -> Case {
    (dialogue(true), Expected::messages(200))
}

/// Each record has a long name in two octets.
pub(crate) fn pointers_to_long_names() -> Case {
    let long = [&[63][..], &[b'n'; 63]].concat().repeat(3);
    let front = record(&[&long[..], &[0]].concat(), 1, &[192, 0, 2, 1]);
    // After the header and the question of 21 octets.
    let records = vec![record(&[0xc0, 33], 5, &[0xc0, 33]); 80];
    let make = |id| {
        let mut message = response(id, &front, &records);
        message[6..8].copy_from_slice(&81_u16.to_be_bytes());
        message
    };
    (responses(make), Expected::messages(30))
}

/// Each record has a name with the maximum number of pointers.
pub(crate) fn chains_of_pointers() -> Case {
    // The data of a NULL record: a root name, and pointers that each refer to the previous one.
    let start = 33 + 11;
    let mut chain = vec![1, b'a', 0];
    for position in 0..120 {
        let target = start + if position == 0 { 0 } else { 3 + 2 * (position - 1) };
        chain.extend((0xc000 | target as u16).to_be_bytes());
    }
    let front = record(&[0], 10, &chain);
    let last = (0xc000 | (start + 3 + 2 * 119) as u16).to_be_bytes();
    let records = vec![record(&last, 14, &[last, last].concat()); 70];
    let make = |id| {
        let mut message = response(id, &front, &records);
        message[6..8].copy_from_slice(&71_u16.to_be_bytes());
        message
    };
    (responses(make), Expected::messages(30))
}

/// Each record has a name with the maximum number of labels.
pub(crate) fn names_of_many_labels() -> Case {
    let front = record(&[&[1, b'a'].repeat(126)[..], &[0]].concat(), 1, &[192, 0, 2, 1]);
    let records = vec![record(&[0xc0, 33], 14, &[0xc0, 33, 0xc0, 33]); 70];
    let make = |id| {
        let mut message = response(id, &front, &records);
        message[6..8].copy_from_slice(&71_u16.to_be_bytes());
        message
    };
    (responses(make), Expected::messages(30))
}

/// Bitmaps with all types.
pub(crate) fn sets_of_types() -> Case {
    let windows: Vec<u8> = (0..38).flat_map(|window| [&[window, 32][..], &[0xff; 32]].concat()).collect();
    let records = [record(&[0xc0, 12], 47, &[&[0][..], &windows].concat())];
    (responses(|id| response(id, &[], &records)), Expected::messages(30))
}

/// Labels of octets that must be escaped.
pub(crate) fn escaped_labels() -> Case {
    let long = [&[63][..], &[1; 63]].concat().repeat(3);
    let front = record(&[&long[..], &[0]].concat(), 1, &[192, 0, 2, 1]);
    let records = vec![record(&[0xc0, 33], 1, &[192, 0, 2, 1]); 70];
    let make = |id| {
        let mut message = response(id, &front, &records);
        message[6..8].copy_from_slice(&71_u16.to_be_bytes());
        message
    };
    (responses(make), Expected::messages(30))
}

/// Queries of minimum length over TCP without responses.
pub(crate) fn unanswered_queries() -> Case {
    let queries = |round: u32| -> Vec<u8> {
        let query = |position: u32| {
            let query = message((76 * round + position) as u16, QUERY, [1, 0, 0, 0], &question(&[0]));
            [&(query.len() as u16).to_be_bytes()[..], &query].concat()
        };
        (0..76).flat_map(query).collect()
    };
    (filled(Input::tcp(53), |input, round| input.send(Client, &queries(round))), Expected::messages(1000))
}

/// Responses that each answer one of many queries.
pub(crate) fn answers_to_many() -> Case {
    let octets = |from: Role, round: u32| -> Vec<u8> {
        let flags = if from == Client { QUERY } else { RESPONSE };
        let make = |position: u32| {
            let message =
                message(((76 * round + position) % 250) as u16, flags, [1, 0, 0, 0], &question(&[0]));
            [&(message.len() as u16).to_be_bytes()[..], &message].concat()
        };
        (0..76).flat_map(make).collect()
    };
    let input = filled(Input::tcp(53), |input, round| {
        let from = if round < 4 { Client } else { Server };
        input.send(from, &octets(from, round));
    });
    (input, Expected::messages(1000))
}
