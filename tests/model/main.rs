//! The tracker compared with a naive model: a map from keys to flows, and the documented rules.
//!
//! The model has no recency lists, no expiry, and no batches: it ends a flow only when the next packet of the flow
//! arrives, or at the end. Both process random packets of few flows, with few sequence numbers and times that step
//! back, and must emit the same records; and so must the tracker itself for any division of the packets into batches.

mod naive;
mod packets;
#[path = "../support/record_list.rs"]
mod record_list;

use std::time::Duration;

use flowgauge::base::{Resources, Side, Timestamp};
use flowgauge::decode::extractor::Packet;
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{Tracker, TrackerConfig};
use proptest::prelude::*;

use naive::{Model, Record};
use packets::{packets, step};
use record_list::RecordList;

fn summary(record: &FlowRecord) -> Record {
    let counts = [&record.forward, &record.reverse].map(|side| {
        let counters = side.counters;
        [counters.packet_count, counters.octet_count, counters.ip_octet_count, counters.payload_octet_count]
    });
    Record {
        key: record.key,
        start: record.start.as_nanos(),
        sequence_number: record.sequence_number,
        end: record.end.as_nanos(),
        reason: record.flow_end_reason,
        initiator: record.initiator,
        counts: if record.initiator == Side::A { counts } else { [counts[1], counts[0]] },
    }
}

/// Returns a tracker. Staging, which only batches use, and huge pages must not change the records.
fn tracker(active: Option<Duration>, is_staged: bool) -> Tracker<()> {
    let mut config = TrackerConfig::default();
    config.active_timeout = active;
    config.staged_flow_count_min = if is_staged { 0 } else { u32::MAX };
    config.huge_pages = is_staged;
    Tracker::new(config, &Resources::default()).expect("a valid configuration")
}

fn sorted(mut records: Vec<FlowRecord>) -> Vec<FlowRecord> {
    records.sort_by_cached_key(summary);
    records
}

/// Returns the records of packets that are processed one by one.
fn records_one_by_one(packets: &[Packet<'_>], active: Option<Duration>) -> Vec<FlowRecord> {
    let mut records = RecordList::default();
    let mut tracker = tracker(active, false);
    for packet in packets {
        tracker.track(packet, &mut records);
        tracker.check_invariants();
    }
    tracker.finish(&mut records);
    sorted(records.0)
}

/// Returns the records of packets that are processed in batches, with the clock advanced between them.
fn records_in_batches(
    packets: &[Packet<'_>],
    active: Option<Duration>,
    batches: &[(usize, u8)],
    is_staged: bool,
) -> Vec<FlowRecord> {
    let mut records = RecordList::default();
    let mut tracker = tracker(active, is_staged);
    let mut rest = packets;
    for (len, share) in batches.iter().cycle() {
        let (batch, remaining) = rest.split_at((*len).min(rest.len()));
        tracker.track_batch(batch, &mut records);
        rest = remaining;
        let Some(next) = rest.first() else { break };
        let now = tracker.now().as_nanos();
        let ahead = next.timestamp.as_nanos().saturating_sub(now);
        tracker.advance(Timestamp::from_nanos(now + ahead / 255 * u64::from(*share)), &mut records);
        tracker.check_invariants();
    }
    tracker.finish(&mut records);
    sorted(records.0)
}

/// Returns the packets, and the records that are in only one of both lists, as text.
fn difference<R: PartialEq + std::fmt::Debug>(
    packets: &[Packet<'_>],
    bases: [u32; 2],
    found: &[R],
    wanted: &[R],
) -> String {
    let mut text = String::from("\n");
    for packet in packets {
        let (own, peer) = if packet.side == Side::A { (0, 1) } else { (1, 0) };
        let tcp = &packet.tcp;
        text += &format!(
            "{} {} {:?} {} seq {} ack {} len {} window {} header {}\n",
            packet.timestamp,
            packet.key,
            packet.side,
            tcp.flags,
            tcp.seq.0.wrapping_sub(bases[own]),
            tcp.ack.0.wrapping_sub(bases[peer]),
            packet.payload_len,
            tcp.window,
            packet.frame.len(),
        );
    }
    for record in found.iter().filter(|record| !wanted.contains(record)) {
        text += &format!("found  {record:?}\n");
    }
    for record in wanted.iter().filter(|record| !found.contains(record)) {
        text += &format!("wanted {record:?}\n");
    }
    text
}

fn cases() -> ProptestConfig {
    let cases = if cfg!(debug_assertions) { 3000 } else { 30_000 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn records_equal_those_of_the_model(
        steps in prop::collection::vec(step(), 1..60),
        bases in prop_oneof![Just([1000, 77_000]), Just([u32::MAX - 50, 0]), any::<[u32; 2]>()],
        active in prop_oneof![2 => Just(None), 1 => Just(Some(10)), 1 => Just(Some(100))],
        batches in prop::collection::vec((1..40_usize, any::<u8>()), 1..8),
    ) {
        let packets = packets(&steps, bases);
        let active: Option<Duration> = active.map(Duration::from_secs);
        let mut model = Model::new(active);
        packets.iter().for_each(|packet| model.packet(packet));
        let records = records_one_by_one(&packets, active);
        let found: Vec<_> = records.iter().map(summary).collect();
        let wanted = model.finish();
        prop_assert!(found == wanted, "{}", difference(&packets, bases, &found, &wanted));
        for is_staged in [false, true] {
            let in_batches = records_in_batches(&packets, active, &batches, is_staged);
            prop_assert!(in_batches == records, "{}", difference(&packets, bases, &in_batches, &records));
        }
    }
}
