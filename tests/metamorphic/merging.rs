//! Records that are merged: those of a capture that is split in two parts at a packet, which are tracked separately, and
//! those of active timeouts. They are the records of one pass, except for columns that depend on packets of both parts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use flowgauge::row::Table as _;
use flowgauge::tracker::Timeouts;
use flowgauge::{Builder, FlowKey, FlowRecord, TrackerConfig};

use super::capture::{Capture, builder, fields, records_of};

/// Maximum number of packets of a capture that is split at each of them.
const ALL_COUNT_MAX: usize = 200;

/// Number of random positions at which a longer capture is split.
const RANDOM_COUNT: usize = 20;

/// Receives merged records, and the keys of the flows that were divided.
type Emit<'e> = dyn FnMut(Vec<FlowRecord>, HashSet<FlowKey>) + 'e;

/// A division of the records of flows.
pub(crate) struct Division {
    pub(crate) name: &'static str,
    /// Emits the merged records of a capture, once for each position at which it is divided.
    merged: fn(&Capture, &mut Emit<'_>),
}

pub(crate) const DIVISIONS: &[Division] = &[
    Division { name: "split", merged: split },
    Division { name: "timeout of 100 ms", merged: |capture, emit| active_timeout(capture, 100, emit) },
    Division { name: "timeout of 5 s", merged: |capture, emit| active_timeout(capture, 5000, emit) },
];

const OTHER_PART: &str = "a segment is compared with one in the other part";
const FRAGMENTS: &str = "fragments of a datagram in both parts; ports that are used again at the border";
const JUMPS: &str = "times that decrease at the border; fragments in both parts";

const TURNS: &str = "a part that begins with an answer, of a protocol in which both ends send requests";

/// The name of the row for the numbers of records of a flow.
pub(crate) const COUNT: &str = "number of records";

/// The columns that may differ, and the causes.
pub(crate) const CAUSES: &[(&str, &str)] = &[
    (COUNT, "ports that are used again at the border; times that decrease; fragments in both parts"),
    ("start", JUMPS),
    ("end", JUMPS),
    ("duration", JUMPS),
    ("open_duration", "the FINs of a connection in different parts"),
    ("packet_count", FRAGMENTS),
    ("octet_count", FRAGMENTS),
    ("ip_octet_count", FRAGMENTS),
    ("payload_octet_count", FRAGMENTS),
    ("reverse_packet_count", FRAGMENTS),
    ("reverse_octet_count", FRAGMENTS),
    ("reverse_ip_octet_count", FRAGMENTS),
    ("reverse_payload_octet_count", FRAGMENTS),
    ("tcp_flags", FRAGMENTS),
    ("ttl_min", FRAGMENTS),
    ("fragment_count", FRAGMENTS),
    ("direction_evidence", FRAGMENTS),
    ("retransmitted_count", OTHER_PART),
    ("out_of_order_count", OTHER_PART),
    ("zero_window_count", OTHER_PART),
    ("reverse_retransmitted_count", OTHER_PART),
    ("reverse_out_of_order_count", OTHER_PART),
    ("reverse_zero_window_count", OTHER_PART),
    ("history", OTHER_PART),
    ("tcp_state", "the FINs of a connection in different parts; a reset that is invalid by the other part"),
    ("conn_state", "a reset that is invalid by the other part; fragments in both parts"),
    ("handshake_rtt", "SYN and ACK of the handshake in different parts"),
    ("flow_end_reason", "the end of a flow without packets after the border"),
    (
        "icmp_error_count",
        "an error that quotes a packet before the border, of a flow without packets after it",
    ),
    (
        "application",
        "octets that identify or contradict the protocol in different parts; a port, at the end of a flow",
    ),
    ("application_evidence", "as the application"),
    ("encapsulation_changed_count", "a change of the tunnel at the border"),
    ("reverse_encapsulation_changed_count", "a change of the tunnel at the border"),
    ("source_address", TURNS),
    ("source_port", TURNS),
    ("source_mac_address", TURNS),
    ("destination_address", TURNS),
    ("destination_port", TURNS),
    ("destination_mac_address", TURNS),
    ("ttl_max", TURNS),
    ("reverse_ttl_min", TURNS),
    ("reverse_ttl_max", TURNS),
    ("inner_flow_count", "flows in a tunnel with packets in both parts"),
];

/// Comparison of merged records with those of one pass.
#[derive(Default)]
pub(crate) struct Comparison {
    /// Number of positions at which captures were divided.
    pub(crate) position_count: usize,
    /// Number of records of flows that were divided.
    pub(crate) record_count: usize,
    /// Number of records that differ, by column, and the number of flow keys with another number of records.
    pub(crate) different: BTreeMap<String, usize>,
    /// The first difference of each column.
    examples: BTreeMap<String, String>,
}

pub(crate) fn empty() -> Vec<Comparison> {
    DIVISIONS.iter().map(|_| Comparison::default()).collect()
}

/// Compares the merged records of a capture after each division.
pub(crate) fn check(capture: &Capture, comparisons: &mut [Comparison]) {
    let whole = records_of(&own_builder(), &capture.frames);
    let whole = by_key(&whole);
    for (division, comparison) in DIVISIONS.iter().zip(comparisons) {
        (division.merged)(capture, &mut |records, divided| {
            comparison.add(&whole, &records, &divided, &capture.name);
        });
    }
}

fn own_builder() -> Builder {
    builder().encapsulation(true)
}

/// Returns the positions at which a capture is split.
fn positions(count: usize) -> Vec<usize> {
    if count <= ALL_COUNT_MAX {
        return (1..count).collect();
    }
    // The splitmix64 generator.
    let mut state = count as u64;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    };
    (0..RANDOM_COUNT).map(|_| 1 + (next() % (count as u64 - 1)) as usize).collect()
}

fn is_continued(earlier: &FlowRecord, later: &FlowRecord) -> bool {
    let timeout = Timeouts::DEFAULT.of_record(earlier).expect("an idle timeout");
    earlier.is_continued_by(later, timeout)
}

/// Merges the last record of each key in the first part with the first one in the second part if it continues it.
fn split(capture: &Capture, emit: &mut Emit<'_>) {
    for position in positions(capture.frames.len()) {
        let (first, second) = capture.frames.split_at(position);
        let mut records = records_of(&own_builder(), first);
        let last: HashMap<_, _> =
            records.iter().enumerate().map(|(index, record)| (record.key, index)).collect();
        let (mut seen, mut divided) = (HashSet::new(), HashSet::new());
        for record in records_of(&own_builder(), second) {
            let is_first = seen.insert(record.key);
            match last.get(&record.key).and_then(|index| records.get_mut(*index)).filter(|_| is_first) {
                Some(earlier) => {
                    divided.insert(record.key);
                    if is_continued(earlier, &record) {
                        earlier.merge(&record).expect("the same key");
                    } else {
                        records.push(record);
                    }
                }
                None => records.push(record),
            }
        }
        emit(records, divided);
    }
}

/// Merges the records that an active timeout creates.
fn active_timeout(capture: &Capture, milliseconds: u64, emit: &mut Emit<'_>) {
    let mut config = TrackerConfig::default();
    config.active_timeout = Some(Duration::from_millis(milliseconds));
    let mut records: Vec<FlowRecord> = Vec::new();
    let (mut last, mut divided) = (HashMap::new(), HashSet::new());
    for record in records_of(&own_builder().tracker(config), &capture.frames) {
        if record.sequence_number > 0 {
            divided.insert(record.key);
        }
        match last.get(&record.key).and_then(|index: &usize| records.get_mut(*index)) {
            Some(earlier) if is_continued(earlier, &record) => earlier.merge(&record).expect("the same key"),
            _ => {
                last.insert(record.key, records.len());
                records.push(record);
            }
        }
    }
    emit(records, divided);
}

type ByKey<'r> = HashMap<FlowKey, Vec<&'r FlowRecord>>;

fn by_key(records: &[FlowRecord]) -> ByKey<'_> {
    let mut by_key = ByKey::new();
    records.iter().for_each(|record| by_key.entry(record.key).or_default().push(record));
    by_key
}

impl Comparison {
    /// Compares the records of one pass with merged ones.
    fn add(&mut self, whole: &ByKey<'_>, merged: &[FlowRecord], divided: &HashSet<FlowKey>, name: &str) {
        self.position_count += 1;
        let merged = by_key(merged);
        let mut keys: Vec<_> = whole.keys().chain(merged.keys()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let [expected, found] =
                [whole, &merged].map(|records| records.get(key).cloned().unwrap_or_default());
            if expected.len() != found.len() {
                let (expected, found) = (expected.len(), found.len());
                let id = key.community_id(0);
                self.differs(COUNT, || format!("{name}, {id}: {found} instead of {expected}"));
                continue;
            }
            self.record_count += if divided.contains(key) { expected.len() } else { 0 };
            for (expected, found) in expected.into_iter().zip(found) {
                self.compare(expected, found, name);
            }
        }
    }

    fn compare(&mut self, expected: &FlowRecord, found: &FlowRecord, name: &str) {
        if expected == found {
            return;
        }
        let id = expected.community_id();
        let (expected, found) = (fields(expected), fields(found));
        for (column, value) in &expected {
            if found[column] != *value {
                self.differs(column, || format!("{name}, {id}: {} instead of {value}", found[column]));
            }
        }
    }

    fn differs(&mut self, column: &str, example: impl FnOnce() -> String) {
        *self.different.entry(column.to_owned()).or_default() += 1;
        self.examples.entry(column.to_owned()).or_insert_with(example);
    }

    /// Returns the number of records that differ in a column.
    pub(crate) fn count(&self, column: &str) -> usize {
        self.different.get(column).copied().unwrap_or_default()
    }

    /// Checks that no other columns differ than those with a known cause.
    pub(crate) fn check_causes(&self) {
        let mut unknown = Vec::new();
        for (column, example) in &self.examples {
            println!("{column}: {} records, such as in {example}", self.count(column));
            if !CAUSES.iter().any(|(name, _)| name == column) {
                unknown.push(format!("{column}: {example}"));
            }
        }
        assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    }
}

#[test]
fn causes_are_those_of_columns_that_can_be_merged() {
    for (name, _) in CAUSES.iter().skip(1) {
        assert!(FlowRecord::COLUMNS.iter().any(|column| column.name == *name), "{name}");
    }
}

#[test]
fn long_captures_are_split_at_a_few_positions() {
    assert!(positions(1).is_empty());
    assert_eq!(positions(4), [1, 2, 3]);
    let positions = positions(10_000);
    assert_eq!(positions.len(), RANDOM_COUNT);
    assert!(positions.iter().all(|position| (1..10_000).contains(position)));
}
