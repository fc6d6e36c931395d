//! SSH's packets with any payload, and any octets: nothing panics, the same is heard however the octets are cut, memory stays
//! below its caps and is given back.
#![no_main]

#[allow(dead_code, reason = "steps of this target are its own")]
#[path = "dialogue.rs"]
mod dialogue;

use dialogue::{Turn, hear};
use flowgauge::base::Side;
use flowgauge::session::ssh::{PROTOCOL, SshParser};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

one_parser!(SshParser, &PROTOCOL);

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    Octets {
        of_server: bool,
        octets: &'a [u8],
    },
    /// A line, which may be an identification.
    Line {
        of_server: bool,
        is_identification: bool,
        text: &'a str,
    },
    Packet {
        of_server: bool,
        number: u8,
        padding_len: u8,
        payload: &'a [u8],
    },
    KexInit {
        of_server: bool,
        lists: [&'a [u8]; 10],
        rest: &'a [u8],
    },
}

fn packet(padding_len: u8, payload: &[u8]) -> Vec<u8> {
    let len = 1 + payload.len() + usize::from(padding_len);
    let padding = vec![0; usize::from(padding_len)];
    [&(len as u32).to_be_bytes(), &[padding_len][..], payload, &padding].concat()
}

fn turn(step: &Step<'_>) -> Turn {
    let side = |of_server| if of_server { Side::B } else { Side::A };
    match *step {
        Step::Octets { of_server, octets } => Turn::Octets(side(of_server), octets.to_vec()),
        Step::Line { of_server, is_identification, text } => {
            let start = if is_identification { "SSH-2.0-" } else { "" };
            Turn::Octets(side(of_server), format!("{start}{text}\r\n").into_bytes())
        }
        Step::Packet { of_server, number, padding_len, payload } => {
            Turn::Octets(side(of_server), packet(padding_len, &[&[number], payload].concat()))
        }
        Step::KexInit { of_server, lists, rest } => {
            let mut payload = vec![20; 17];
            for list in lists {
                payload.extend((list.len() as u32).to_be_bytes());
                // Names are printable; a few that are not, other steps have.
                payload.extend(list.iter().map(|octet| b'!' + octet % 94));
            }
            Turn::Octets(side(of_server), packet(4, &[&payload, rest].concat()))
        }
    }
}

fuzz_target!(|input: (u8, Vec<Step<'_>>)| {
    let mut turns = vec![Turn::Octets(Side::A, b"SSH-2.0-a\r\n".to_vec())];
    turns.extend(input.1.iter().map(turn));
    let held_max = 4 * 35_000 + 4096;
    let whole = hear::<Set, Said>(&turns, 22, usize::MAX, held_max);
    let pieces = hear::<Set, Said>(&turns, 22, usize::from(input.0 % 40) + 1, held_max);
    assert_eq!(whole, pieces);
});
