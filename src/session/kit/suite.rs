//! The tests that each protocol of the kit passes, over cases: dialogues with the rows that are expected.
//!
//! The rows of a case are the same if its datagrams are followed by a checkpoint. A response that is captured before its
//! request changes the times only. Truncated and damaged datagrams give at most a row each, and one for each table at the
//! end of the flow, and memory is bounded under a flood of requests.
//!
//! The rows of a stream are also the same if its octets arrive one by one or in two parts, with a checkpoint after each. After a
//! gap at any place, rows are at most as many as PDUs, and what is buffered is bounded.
//!
//! The turns of the cases are also in `tests/data/cases`, where the fuzz targets and the inputs of `work/kit` read them:
//! `UPDATE_CASES=1 cargo test --lib` writes them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use super::message::KitMessage;
use super::parser::{KitEntry, KitParser};
use crate::base::Timestamp;
use crate::checkpoint::StateWriter;
use crate::codec::Reader;
use crate::reassembler::GapReason;
use crate::row::{Row as _, Value};
use crate::session::{AfterGap, Datagram, End, EndKind, Input, Missing, PieceContent, Progress, Role};

/// A dialogue.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// The datagrams or segments, one each 10 ms.
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
    seen: Seen,
    now_ns: u64,
    lanes: [Octets; 2],
}

/// What a parser reported.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) rows: Vec<String>,
    /// Number of octets of each file.
    files: BTreeMap<u64, u64>,
    /// The octets of all files.
    pub(crate) octets: Vec<u8>,
}

impl Seen {
    /// Notes a row. The pieces of a file must follow each other.
    fn note(&mut self, message: &KitMessage<'_>) {
        if let Some(piece) = message.piece() {
            let position = self.files.entry(piece.file).or_default();
            assert_eq!(piece.offset, *position, "of file {}", piece.file);
            match piece.content {
                PieceContent::Octets(octets) => {
                    *position += octets.len() as u64;
                    return self.octets.extend_from_slice(octets);
                }
                PieceContent::Gap(len) => {
                    *position = position.saturating_add(len);
                    return;
                }
                PieceContent::End { .. } => {}
            }
        }
        self.rows.push(described(message));
    }
}

/// One direction of a stream, with what the parser did not consume.
#[derive(Clone, Default)]
struct Octets {
    buffered: Vec<u8>,
    offset: u64,
    need: usize,
    is_over: bool,
}

impl Player {
    fn new(entry: &KitEntry) -> Self {
        let (seen, lanes) = (Seen::default(), Default::default());
        Self { start: entry.start, parser: (entry.start)(), seen, now_ns: 1_000_000_000, lanes }
    }

    /// Passes octets as the driver does, with what was not consumed in front of the next ones.
    fn octets(&mut self, from: Role, bytes: &[u8]) {
        let (seen, timestamp) = (&mut self.seen, Timestamp::from_nanos(self.now_ns));
        let lane = from.of_mut(&mut self.lanes);
        if lane.is_over {
            return;
        }
        let mut seen_len = lane.buffered.len();
        lane.buffered.extend_from_slice(bytes);
        while lane.buffered.len() > seen_len && lane.buffered.len() >= lane.need {
            let input = Input::new(&lane.buffered, lane.offset, from, timestamp).with_seen_len(seen_len);
            let progress = self.parser.bytes(&input, &mut |message| seen.note(&message));
            let (taken, need) = match progress {
                Ok(Progress::Took(taken)) => (taken, 0),
                Ok(Progress::Needs { taken, need }) => (taken, need),
                Ok(Progress::Handover { .. }) | Err(_) => return self.stop(),
                Ok(_) => {
                    lane.is_over = true;
                    return;
                }
            };
            lane.need = need;
            lane.offset += taken as u64;
            lane.buffered.drain(..taken);
            seen_len = if taken > 0 { 0 } else { lane.buffered.len() };
        }
        assert!(lane.buffered.len() <= 16 << 10, "{} octets are buffered", lane.buffered.len());
    }

    /// Passes a gap.
    fn gap(&mut self, from: Role, len: u64) {
        let (seen, timestamp) = (&mut self.seen, Timestamp::from_nanos(self.now_ns));
        let lane = from.of_mut(&mut self.lanes);
        if lane.is_over {
            return;
        }
        let rest = std::mem::take(&mut lane.buffered);
        let offset = lane.offset + rest.len() as u64;
        let missing = Missing { rest: &rest, offset, len, from, reason: GapReason::Acknowledged, timestamp };
        let after = self.parser.gap(&missing, &mut |message| seen.note(&message));
        (lane.offset, lane.need) = (offset + len, 0);
        if after == AfterGap::Stop {
            self.stop();
        }
    }

    /// The driver drops the parser.
    fn stop(&mut self) {
        let seen = &mut self.seen;
        self.parser.finish(&mut |message| seen.note(&message));
        self.lanes.iter_mut().for_each(|lane| lane.is_over = true);
    }

    fn datagram(&mut self, from: Role, bytes: &[u8], len: usize) {
        self.now_ns += 10_000_000;
        let datagram = Datagram { len, ..Datagram::new(bytes, from, Timestamp::from_nanos(self.now_ns)) };
        let seen = &mut self.seen;
        let progress = self.parser.datagram(&datagram, &mut |message| seen.note(&message));
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

    fn end(mut self) -> Seen {
        let (seen, timestamp) = (&mut self.seen, Timestamp::from_nanos(self.now_ns));
        for from in [CLIENT, SERVER] {
            let lane = from.of(&self.lanes);
            if lane.is_over {
                continue;
            }
            let end = End { rest: &lane.buffered, offset: lane.offset, from, kind: EndKind::Flow, timestamp };
            self.parser.end(&end, &mut |message| seen.note(&message));
        }
        let seen = &mut self.seen;
        self.parser.finish(&mut |message| seen.note(&message));
        self.seen
    }
}

pub(crate) fn played(entry: &KitEntry, turns: &[(Role, Vec<u8>)]) -> Vec<String> {
    let mut player = Player::new(entry);
    turns.iter().for_each(|(from, bytes)| player.datagram(*from, bytes, bytes.len()));
    player.end().rows
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
            Value::List(items) if items.is_empty() => continue,
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

/// Compares the turns of cases with their file, or writes it. A published crate does not have the files.
fn recorded(entry: &KitEntry, transport: &str, ports: &[u16], cases: &[Case]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cases");
    if !folder.exists() {
        return;
    }
    let mut text = format!("{}\n", ports.first().copied().unwrap_or_default());
    for case in cases {
        text.push('\n');
        for (from, octets) in &case.turns {
            let digits = octets.iter().fold(String::new(), |mut digits, octet| {
                let _ = write!(digits, "{octet:02x}");
                digits
            });
            let _ = writeln!(text, "{} {digits}", if *from == CLIENT { 'C' } else { 'S' });
        }
    }
    let path = folder.join(format!("{}-{transport}.txt", entry.protocol.name()));
    if env::var_os("UPDATE_CASES").is_some() {
        fs::write(&path, text).expect("a file");
    } else {
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "{} differs: UPDATE_CASES=1 cargo test --lib writes it", path.display());
    }
}

/// Runs all tests over cases.
pub(crate) fn check(entry: &KitEntry, cases: &[Case]) {
    recorded(entry, "udp", entry.protocol.datagram_ports(), cases);
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

/// Runs all tests over cases in streams.
pub(crate) fn check_stream(entry: &KitEntry, cases: &[Case]) {
    recorded(entry, "tcp", entry.protocol.stream_ports(), cases);
    for case in cases {
        let rows = streamed(entry, case, &|_, _| true, false);
        assert_eq!(rows, case.rows, "{}: {rows:#?}", case.name);
        assert_eq!(streamed(entry, case, &|_, _| true, true), case.rows, "{}: after checkpoints", case.name);
        let single = streamed(entry, case, &|_, _| false, true);
        assert_eq!(single, case.rows, "{}: octet by octet", case.name);
        for (turn, (_, bytes)) in case.turns.iter().enumerate() {
            for split in 1..bytes.len() {
                let is_whole = |at: usize, index: usize| at != turn || index != split;
                let rows = streamed(entry, case, &is_whole, false);
                assert_eq!(rows, case.rows, "{}: {turn} split at {split}", case.name);
            }
            for at in 0..bytes.len() {
                torn(entry, case, (turn, at));
            }
        }
        damaged_stream(entry, case);
        flooded_stream(entry, case);
    }
}

/// Plays a case as a stream. `continues` returns whether an octet of a turn arrives with the one before it.
fn streamed(
    entry: &KitEntry,
    case: &Case,
    continues: &dyn Fn(usize, usize) -> bool,
    has_checkpoints: bool,
) -> Vec<String> {
    let mut player = Player::new(entry);
    for (turn, (from, bytes)) in case.turns.iter().enumerate() {
        player.now_ns += 10_000_000;
        let mut start = 0;
        for end in 1..=bytes.len() {
            if end == bytes.len() || !continues(turn, end) {
                player.octets(*from, &bytes[start..end]);
                start = end;
                if has_checkpoints {
                    player.restore();
                }
            }
        }
    }
    player.end().rows
}

/// Plays a stream in segments of a length. Returns what was reported.
pub(crate) fn segmented(entry: &KitEntry, turns: &[(Role, Vec<u8>)], len: usize) -> Seen {
    let mut player = Player::new(entry);
    for (from, bytes) in turns {
        player.now_ns += 10_000_000;
        bytes.chunks(len).for_each(|part| player.octets(*from, part));
    }
    player.end()
}

/// The most rows that octets can give, as no PDU has fewer than two octets: one for each PDU, and one for the flow.
fn row_count_max<'t>(turns: impl IntoIterator<Item = &'t (Role, Vec<u8>)>) -> usize {
    turns.into_iter().map(|(_, bytes)| bytes.len().div_ceil(2) + 1).sum::<usize>() + 1
}

/// Octets of a turn are missing: one, or all that follow.
fn torn(entry: &KitEntry, case: &Case, (turn, at): (usize, usize)) {
    for len in [1, case.turns[turn].1.len() - at] {
        let mut player = Player::new(entry);
        for (index, (from, bytes)) in case.turns.iter().enumerate() {
            player.now_ns += 10_000_000;
            if index == turn {
                player.octets(*from, &bytes[..at]);
                player.gap(*from, len as u64);
                player.restore();
                player.octets(*from, &bytes[at + len..]);
            } else {
                player.octets(*from, bytes);
            }
        }
        let rows = player.end().rows;
        assert!(rows.len() <= row_count_max(&case.turns), "{}: {turn} torn at {at}: {rows:?}", case.name);
    }
}

fn damaged_stream(entry: &KitEntry, case: &Case) {
    let mut random = random();
    for _ in 0..1000 {
        let mut player = Player::new(entry);
        let turns = damage(case, &mut random);
        for (from, bytes) in &turns {
            player.octets(*from, bytes);
        }
        let rows = player.end().rows;
        assert!(rows.len() <= row_count_max(&turns), "{}: {rows:?}", case.name);
    }
}

/// Many requests and responses without a counterpart, each with other numbers in its first octets.
fn flooded_stream(entry: &KitEntry, case: &Case) {
    for (from, bytes) in &case.turns {
        let (mut player, mut held_max) = (Player::new(entry), 0);
        for number in 0..5000_u16 {
            let mut bytes = bytes.clone();
            for (octet, other) in bytes.iter_mut().zip(number.to_be_bytes()) {
                *octet ^= other;
            }
            player.octets(*from, &bytes);
            held_max = held_max.max(player.parser.heap_len());
        }
        assert!(held_max < 256 << 10, "{}: {held_max} octets are held", case.name);
    }
}

fn saved(entry: &KitEntry, case: &Case) {
    let mut player = Player::new(entry);
    for (from, bytes) in &case.turns {
        player.datagram(*from, bytes, bytes.len());
        player.restore();
    }
    assert_eq!(player.end().rows, case.rows, "{}: after checkpoints", case.name);
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
            let rows = player.end().rows;
            assert!(
                rows.len() <= case.turns.len() + entry.tables.len(),
                "{}: {index} truncated at {len}: {rows:?}",
                case.name
            );
        }
    }
}

/// Returns a function that returns a number below a maximum.
fn random() -> impl FnMut(usize) -> usize {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move |max: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % max
    }
}

/// Returns the turns of a case with up to eight other octets.
fn damage(case: &Case, random: &mut impl FnMut(usize) -> usize) -> Vec<(Role, Vec<u8>)> {
    let mut turns = case.turns.clone();
    for _ in 0..=random(8) {
        let index = random(turns.len());
        let bytes = &mut turns[index].1;
        let at = random(bytes.len());
        bytes[at] = random(256) as u8;
    }
    turns
}

fn damaged(entry: &KitEntry, case: &Case) {
    let mut random = random();
    for _ in 0..1000 {
        let turns = damage(case, &mut random);
        let rows = played(entry, &turns);
        assert!(rows.len() <= turns.len() + entry.tables.len(), "{}: {rows:?}", case.name);
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
        let rows = player.end().rows;
        assert!(rows.len() <= 20_000 + entry.tables.len(), "{}: {} rows", case.name, rows.len());
    }
}
