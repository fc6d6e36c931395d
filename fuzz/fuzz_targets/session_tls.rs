//! Recorded dialogues of TLS and DTLS with octets changed, turns added, holes made: nothing panics, a stream says the same
//! however it is split, all messages can be serialised, and all memory is given back.
#![no_main]

use std::sync::LazyLock;

use flowgauge::base::IpProtocol;
use flowgauge::session::tls::{self, DtlsParser, TlsParser};
use flowgauge::session::{About, Role};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "tests use more of it")]
#[path = "../../tests/session/harness.rs"]
mod harness;

use harness::{Said, Talk, Turn, hear};

flowgauge::protocols! {
    /// The parsers at hand.
    #[derive(Debug)]
    enum Set;
    /// What they say.
    #[derive(Debug)]
    enum Heard;
    parsers { Tls: TlsParser = &tls::PROTOCOL, Dtls: DtlsParser = &tls::DTLS }
    recognised {}
}

type Recorded = Vec<(Role, Vec<u8>)>;

static DIALOGUES: LazyLock<[Recorded; 5]> = LazyLock::new(|| {
    [
        include_str!("../../tests/session/tls/tls12_new.txt"),
        include_str!("../../tests/session/tls/tls12_resumed.txt"),
        include_str!("../../tests/session/tls/tls13_retry.txt"),
        include_str!("../../tests/session/tls/refused.txt"),
        include_str!("../../tests/session/tls/dtls12.txt"),
    ]
    .map(recorded)
});

fn recorded(text: &str) -> Recorded {
    let turn = |line: &str| {
        let (who, digits) = line.split_once(' ').expect("who, and what");
        let octet = |place| u8::from_str_radix(&digits[place..place + 2], 16).expect("hex");
        let from = if who == "C" { Role::Client } else { Role::Server };
        (from, (0..digits.len()).step_by(2).map(octet).collect())
    };
    text.lines().map(turn).collect()
}

fn describe(about: &About, message: Heard<'_>) -> Said {
    let (Heard::Tls(message) | Heard::Dtls(message)) = message;
    let json = serde_json::to_string(&message).expect("serialisable");
    Said::Whole(format!("{} {json} {}", about.from.name(), format!("{message:?}").len()))
}

fn role(octet: u8) -> Role {
    if octet & 1 == 0 { Role::Client } else { Role::Server }
}

fuzz_target!(|data: &[u8]| {
    let [which, edit_count, split, rest @ ..] = data else { return };
    let is_datagrams = which % 6 > 3;
    let mut dialogue = DIALOGUES.get(usize::from(which % 6)).cloned().unwrap_or_default();
    // Octets changed: turn, place, value.
    let edit_len = (usize::from(edit_count % 16) * 4).min(rest.len());
    let (edits, mut rest) = rest.split_at(edit_len);
    for edit in edits.chunks_exact(4) {
        let place = usize::from(u16::from_be_bytes([edit[1], edit[2]]));
        if let Some(octet) =
            dialogue.get_mut(usize::from(edit[0])).and_then(|(_, bytes)| bytes.get_mut(place))
        {
            *octet = edit[3];
        }
    }
    // Turns added: who and where, how long.
    while let [head, len, after @ ..] = rest {
        let (bytes, after) = after.split_at(usize::from(*len).min(after.len()));
        let place = usize::from(head >> 1).min(dialogue.len());
        dialogue.insert(place, (role(*head), bytes.to_vec()));
        rest = after;
    }
    let turns: Vec<Turn<'_>> = dialogue.iter().map(|(from, bytes)| (*from, bytes.as_slice())).collect();
    if is_datagrams {
        let mut talk = Talk::<Set>::new(IpProtocol::UDP, 4433, describe);
        for (from, bytes) in turns {
            talk.send(from, bytes);
        }
        talk.finish();
        return;
    }
    let whole = hear::<Set>(443, &turns, describe, || usize::MAX);
    let piece_len = usize::from(split % 64) + 2;
    assert_eq!(hear::<Set>(443, &turns, describe, || piece_len), whole, "{piece_len} octets at a time");
    // A hole in each turn that is long enough.
    let mut talk = Talk::<Set>::new(IpProtocol::TCP, 443, describe);
    for (from, bytes) in turns {
        let (start, len) = (usize::from(*split), usize::from(*edit_count));
        if let (Some(before), Some(after)) = (bytes.get(..start), bytes.get(start + len..)) {
            talk.say(from, before);
            talk.lose(from, len as u64);
            talk.say(from, after);
        } else {
            talk.say(from, bytes);
        }
    }
    talk.finish();
});
