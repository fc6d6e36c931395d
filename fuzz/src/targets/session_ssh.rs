//! SSH: the reports of identifications and packets do not depend on the pieces of the input.

use flowgauge::protocols::ssh::{Message, SshParser};
use flowgauge::session::MessageMeta;

use super::dialogue::{Expectations, Line, json, run_all_variants};

crate::one_parser!(SshParser, "ssh", 22);

fn describe(meta: &MessageMeta, Report::One(message): Report<'_>) -> Line {
    let json = json(&message);
    // What lengths of segments say.
    if matches!(message, Message::Authentication(_)) {
        return Line::None;
    }
    Line::Whole(format!("{} {json} {message:?}", meta.from.name()))
}

const WORDS: &[&[u8]] = &[
    b"SSH-2.0-a\r\n",
    b"SSH-1.99-b c\n",
    b"SSH-1.5-d\r\n",
    b"a banner\r\n",
    // Packets: DEBUG, an empty packet, NEWKEYS, KEXDH_INIT.
    b"\0\0\0\x0c\x06\x04abcde\0\0\0\0\0",
    b"\0\0\0\x01\0",
    b"\0\0\0\x0c\x0a\x15\0\0\0\0\0\0\0\0\0\0",
    b"\0\0\0\x1c\x0a\x1e\0\0\0\x0caaaaaaaaaaaa\0\0\0\0\0\0\0\0\0\0",
    // Parts of KEXINIT: the start up to its lists, a list, an empty list, the end.
    b"\0\0\0\x5c\x04\x14aaaaaaaaaaaaaaaa",
    b"\0\0\0\x03a,b",
    b"\0\0\0\x1acurve25519-sha256,ext-info-c",
    b"\0\0\0\0",
    b"\0\0\0\0\0\0\0\0\0",
    // A KEXINIT with empty lists.
    b"\0\0\0\x44\x05\x14aaaaaaaaaaaaaaaa\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
      \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    b"\0",
    b"a",
];

/// Maximum number of held octets: packets of both directions with spare capacity, and both lists.
const HELD_MAX: u64 = 4 * 35_000 + 4096;

pub fn run(data: &[u8]) {
    run_all_variants::<Set>(data, || Expectations::<Set>::tcp(22, WORDS, describe, HELD_MAX));
}
