//! The tests that each protocol of the kit passes, over cases: dialogues with the rows that are expected.
//!
//! The rows of a case are the same if its datagrams are followed by a checkpoint. A response that is captured before its
//! request changes the times only. Truncated and damaged datagrams give at most as many rows as there are datagrams, and
//! memory is bounded under a flood of requests.

use std::time::Duration;

use super::message::KitMessage;
use super::parser::{KitEntry, KitParser};
use crate::base::Timestamp;
use crate::checkpoint::StateWriter;
use crate::codec::Reader;
use crate::row::{Row as _, Value};
use crate::session::{Datagram, End, EndKind, Role};

/// A dialogue of datagrams.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The datagrams, one each 10 ms.
    pub(crate) turns: Vec<(Role, Vec<u8>)>,
    /// The rows: the table, and the columns that are not null or zero.
    pub(crate) rows: &'static [&'static str],
}

const CLIENT: Role = Role::Client;
const SERVER: Role = Role::Server;

/// A parser with the rows that it has reported.
struct Player {
    start: fn() -> Box<dyn KitParser>,
    parser: Box<dyn KitParser>,
    rows: Vec<String>,
    now_ns: u64,
}

impl Player {
    fn new(entry: &KitEntry) -> Self {
        Self { start: entry.start, parser: (entry.start)(), rows: Vec::new(), now_ns: 1_000_000_000 }
    }

    fn datagram(&mut self, from: Role, bytes: &[u8], len: usize) {
        self.now_ns += 10_000_000;
        let datagram = Datagram { len, ..Datagram::new(bytes, from, Timestamp::from_nanos(self.now_ns)) };
        let rows = &mut self.rows;
        let progress = self.parser.datagram(&datagram, &mut |message| rows.push(described(&message)));
        progress.expect("a datagram is no fault");
    }

    /// Continues with a parser that reads the state of this one.
    fn restore(&mut self) {
        let mut octets = Vec::new();
        self.parser.save(&mut StateWriter::growing(&mut octets)).expect("a state");
        let mut other = (self.start)();
        let mut reader = Reader::new(&octets);
        other.load(&mut reader).expect("the state of a parser");
        assert!(reader.is_empty() && other.heap_len() <= self.parser.heap_len());
        self.parser = other;
    }

    fn end(mut self) -> Vec<String> {
        let (rows, timestamp) = (&mut self.rows, Timestamp::from_nanos(self.now_ns));
        for from in [CLIENT, SERVER] {
            let end = End { rest: &[], offset: 0, from, kind: EndKind::Flow, timestamp };
            self.parser.end(&end, &mut |message| rows.push(described(&message)));
        }
        self.rows
    }
}

fn played(entry: &KitEntry, turns: &[(Role, Vec<u8>)]) -> Vec<String> {
    let mut player = Player::new(entry);
    turns.iter().for_each(|(from, bytes)| player.datagram(*from, bytes, bytes.len()));
    player.end()
}

/// Returns the table of a row, and the columns that are not null, false or zero.
fn described(message: &KitMessage<'_>) -> String {
    let row = message.row();
    let columns = row.own_columns();
    let values = row.values(&(0..columns.len()).collect());
    let mut text = row.table.name.to_owned();
    for (column, value) in columns.iter().zip(values) {
        let value = match value {
            Value::Null | Value::Bool(false) | Value::Unsigned(0) | Value::Duration(Duration::ZERO) => {
                continue;
            }
            Value::Name(name) => name.to_owned(),
            Value::Text(text) => text,
            Value::Unsigned(number) => number.to_string(),
            Value::Timestamp(time) => format!("{}s", time.as_nanos() / 1_000_000_000),
            Value::Duration(duration) => format!("{duration:?}"),
            value => format!("{value:?}"),
        };
        text.push_str(&format!(" {}={value}", column.name));
    }
    text
}

/// Returns a row without the columns that depend on times.
fn timeless(row: &str) -> String {
    let mut parts: Vec<_> = row.split(' ').collect();
    parts.retain(|part| !part.starts_with("response_time"));
    parts.join(" ")
}

/// Runs all tests over cases.
pub(crate) fn check(entry: &KitEntry, cases: &[Case]) {
    for case in cases {
        let rows = played(entry, &case.turns);
        assert_eq!(rows, case.rows, "{}: {rows:#?}", case.name);
        saved(entry, case);
        early(entry, case);
        truncated(entry, case);
        damaged(entry, case);
        flooded(entry, case);
    }
}

fn saved(entry: &KitEntry, case: &Case) {
    let mut player = Player::new(entry);
    for (from, bytes) in &case.turns {
        player.datagram(*from, bytes, bytes.len());
        player.restore();
    }
    assert_eq!(player.end(), case.rows, "{}: after checkpoints", case.name);
}

/// The first response is captured before its request.
fn early(entry: &KitEntry, case: &Case) {
    let is_pair = |pair: &[(Role, Vec<u8>)]| pair[0].0 == CLIENT && pair[1].0 == SERVER;
    let Some(index) = case.turns.windows(2).position(is_pair) else { return };
    let mut turns = case.turns.clone();
    turns.swap(index, index + 1);
    if turns[..index].contains(&turns[index + 1]) {
        // A repetition that is captured late is another request.
        return;
    }
    let sorted = |mut rows: Vec<String>| {
        rows.sort_unstable();
        rows
    };
    let expected = case.rows.iter().map(|row| timeless(row)).collect();
    let found = played(entry, &turns).iter().map(|row| timeless(row)).collect();
    assert_eq!(sorted(found), sorted(expected), "{}: a response before its request", case.name);
}

fn truncated(entry: &KitEntry, case: &Case) {
    for (index, (from, bytes)) in case.turns.iter().enumerate() {
        for len in 0..bytes.len() {
            let mut player = Player::new(entry);
            for (at, (role, other)) in case.turns.iter().enumerate() {
                if at == index {
                    player.datagram(*from, &bytes[..len], bytes.len());
                } else {
                    player.datagram(*role, other, other.len());
                }
            }
            let rows = player.end();
            assert!(rows.len() <= case.turns.len(), "{}: {index} truncated at {len}: {rows:?}", case.name);
        }
    }
}

fn damaged(entry: &KitEntry, case: &Case) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |max: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % max
    };
    for _ in 0..1000 {
        let mut turns = case.turns.clone();
        for _ in 0..=random(8) {
            let index = random(turns.len());
            let bytes = &mut turns[index].1;
            let at = random(bytes.len());
            bytes[at] = random(256) as u8;
        }
        let rows = played(entry, &turns);
        assert!(rows.len() <= turns.len(), "{}: {rows:?}", case.name);
    }
}

/// Many requests and responses without a counterpart, each with other numbers.
fn flooded(entry: &KitEntry, case: &Case) {
    for (from, bytes) in &case.turns {
        let (mut player, mut held_max) = (Player::new(entry), 0);
        for number in 0..20_000_u32 {
            let mut bytes = bytes.clone();
            // After the first octets, by which the kind of a message is known.
            for (at, octet) in bytes.iter_mut().enumerate().skip(2) {
                *octet ^= number.to_be_bytes()[at % 4];
            }
            player.datagram(*from, &bytes, bytes.len());
            held_max = held_max.max(player.parser.heap_len());
        }
        assert!(held_max < 64 << 10, "{}: {held_max} octets are held", case.name);
        let rows = player.end();
        assert!(rows.len() <= 20_000, "{}: {} rows", case.name, rows.len());
    }
}
