//! Merging of flow records: grouping does not matter, sums and the like do not depend on the order, and every column follows
//! its rule.
#![cfg(feature = "serde")]

use std::collections::BTreeMap;
use std::time::Duration;

use flowgauge::base::{Evidence, History};
use flowgauge::record::{DifferentFlows, EncapsulationRecord};
use flowgauge::row::{Merge, Table as _};
use flowgauge::tracker::Timeouts;
use flowgauge::{
    Application, ConnState, EndReason, FieldSet, FlowKey, FlowRecord, IpProtocol, Side, SideRecord, TcpFlags,
    TcpState, Timestamp,
};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Returns a history. Only the tracker appends letters, so that the history is that of a record that is read.
fn history(letters: &str) -> History {
    let object =
        json!({"source_address": "192.0.2.1", "destination_address": "192.0.2.2", "history": letters});
    serde_json::from_value::<FlowRecord>(object).expect("a record").history
}

fn fields(record: &FlowRecord) -> BTreeMap<String, Value> {
    let Ok(Value::Object(object)) = serde_json::to_value(record) else { panic!("an object") };
    object.into_iter().collect()
}

fn merged(records: &[&FlowRecord]) -> FlowRecord {
    let (first, rest) = records.split_first().expect("a record");
    rest.iter().fold((*first).clone(), |mut merged, record| {
        merged.merge(record).expect("the same key");
        merged
    })
}

fn key(protocol: IpProtocol) -> FlowKey {
    FlowKey::new(protocol, ([192, 0, 2, 1].into(), 40_000), ([192, 0, 2, 2].into(), 80)).0
}

fn record(protocol: IpProtocol, start: u64, end: u64) -> FlowRecord {
    let mut record = FlowRecord::new(key(protocol), Side::A, Timestamp::from_nanos(start));
    record.end = Timestamp::from_nanos(end);
    record.open_end = record.end;
    record
}

fn side() -> impl Strategy<Value = SideRecord> {
    let counts = (0_u64..3, 0_u64..2000, 0_u64..1500, 0_u64..1400);
    let properties = (0_u16..256, proptest::option::of(0_u8..8), any::<u8>(), any::<u8>(), any::<bool>());
    let tcp = (0_u32..9, 0_u32..9, prop_oneof![Just(0), Just(u32::MAX)]);
    (counts, properties, tcp).prop_map(|(counts, (flags, mac, first_ttl, second_ttl, has_dscp), tcp)| {
        let mut side = SideRecord::default();
        let counters = &mut side.counters;
        counters.packet_count = counts.0;
        side.mac = mac.map(|octet| [2, 0, 0, 0, 0, octet]);
        (side.tcp.retransmitted_count, side.tcp.out_of_order_count, side.tcp.zero_window_count) = tcp;
        if counts.0 > 0 {
            (counters.octet_count, counters.ip_octet_count, counters.payload_octet_count) =
                (counts.1, counts.2, counts.3);
            side.tcp_flags = TcpFlags(flags);
            side.hop_limits = Some((first_ttl.min(second_ttl), first_ttl.max(second_ttl)));
            side.dscp = has_dscp.then_some(first_ttl >> 2);
        }
        side
    })
}

fn letters() -> impl Strategy<Value = String> {
    let letter = select("SHADFRIshadfriTtGgWw".chars().collect::<Vec<_>>());
    (any::<bool>(), proptest::collection::vec(letter, 1..6)).prop_map(|(is_turned, letters)| {
        let mut text = String::from(if is_turned { "^" } else { "" });
        for letter in letters {
            if !text.contains(letter) {
                text.push(letter);
            }
        }
        text
    })
}

fn application() -> impl Strategy<Value = Option<Application>> {
    let names = select(vec!["http", "tls", "dns"]);
    let evidence = select(vec![Evidence::Content, Evidence::Port]);
    proptest::option::of((names, evidence)).prop_map(|application| {
        let (name, evidence) = application?;
        let object = json!({
            "source_address": "192.0.2.1",
            "destination_address": "192.0.2.2",
            "application": name,
            "application_evidence": evidence.name(),
        });
        serde_json::from_value::<FlowRecord>(object).expect("a record").application
    })
}

/// Returns whether the initiator and the responder sent packets.
fn has_sent(record: &FlowRecord) -> (bool, bool) {
    (record.forward.counters.packet_count > 0, record.reverse.counters.packet_count > 0)
}

/// Returns the outcome of an exchange of datagrams.
fn exchange(sent: (bool, bool)) -> ConnState {
    match sent {
        (true, true) => ConnState::Sf,
        (true, false) => ConnState::S0,
        (false, true) => ConnState::Shr,
        (false, false) => ConnState::Oth,
    }
}

fn conn_states() -> Vec<ConnState> {
    use ConnState::{Oth, Rej, Rsto, Rstr, S0, S1, S2, S3, Sf, Sh, Shr};
    vec![Oth, Rej, Rsto, Rstr, S0, S1, S2, S3, Sf, Sh, Shr]
}

/// Returns any record of a protocol, without a sequence number.
fn any_record(protocol: IpProtocol) -> impl Strategy<Value = FlowRecord> {
    use flowgauge::base::DirectionEvidence::{FirstSeen, ServicePort, Syn, SynAck};
    let states = vec![
        TcpState::None,
        TcpState::SynSent,
        TcpState::Established,
        TcpState::FinWait1,
        TcpState::LastAck,
        TcpState::TimeWait,
        TcpState::Closed,
    ];
    let reasons = vec![
        EndReason::IdleTimeout,
        EndReason::ActiveTimeout,
        EndReason::EndOfFlow,
        EndReason::ForcedEnd,
        EndReason::LackOfResources,
    ];
    let shape = (side(), side(), any::<bool>(), select(vec![FirstSeen, ServicePort, SynAck, Syn]));
    let states = (select(states), select(conn_states()), select(reasons), letters(), application());
    let sampling = select(vec![(None, None), (Some(10), None), (Some(100), None), (Some(10), Some(10))]);
    let counts = (
        0_u32..5,
        0_u32..5,
        0_u32..5,
        proptest::option::of(0_u32..5),
        proptest::option::of(1_u64..99),
        sampling,
    );
    let times = (0_u64..1000, 0_u64..1000);
    (times, shape, states, counts).prop_map(move |(times, shape, states, counts)| {
        let mut record = record(protocol, times.0, times.0 + times.1);
        let is_b;
        (record.forward, record.reverse, is_b, record.direction_evidence) = shape;
        record.initiator = if is_b { Side::B } else { Side::A };
        let letters;
        (record.tcp_state, record.conn_state, record.flow_end_reason, letters, record.application) = states;
        record.history = match protocol {
            IpProtocol::TCP => history(&letters),
            _ => {
                let sent = has_sent(&record);
                history(&format!("{}{}", if sent.0 { "D" } else { "" }, if sent.1 { "d" } else { "" }))
            }
        };
        if protocol != IpProtocol::TCP {
            record.tcp_state = TcpState::None;
        }
        let (flow_count, rtt, sampling);
        (record.icmp_error_count, record.fragment_count, record.interface, flow_count, rtt, sampling) =
            counts;
        record.handshake_rtt = rtt.map(Duration::from_nanos);
        (record.sampling_interval, record.counter_scale) = sampling;
        record.encapsulation = flow_count.map(|count| {
            let mut encapsulation = EncapsulationRecord::default();
            encapsulation.inner_flow_count = count;
            encapsulation.encapsulation_changed_count = 2 * count;
            encapsulation.carried_octet_count = 100 * u64::from(count);
            Box::new(encapsulation)
        });
        record
    })
}

/// Returns three consecutive records of a flow. Those with consecutive sequence numbers are of one tracker, which repeats the
/// history.
fn three_records() -> impl Strategy<Value = [FlowRecord; 3]> {
    let protocols = select(vec![IpProtocol::TCP, IpProtocol::UDP, IpProtocol::SCTP]);
    let numbers = select(vec![[0, 0, 0], [0, 1, 2], [0, 1, 0], [0, 0, 1], [2, 0, 1], [1, 2, 0]]);
    let known = select(vec!["", "history", "dscp", "reverse_octet_count", "start"]);
    protocols.prop_flat_map(move |protocol| {
        let records = [any_record(protocol), any_record(protocol), any_record(protocol)];
        (records, numbers.clone(), known.clone()).prop_map(move |(mut records, numbers, unknown)| {
            for index in 0..3 {
                records[index].sequence_number = if unknown == "history" { 0 } else { numbers[index] };
                if !unknown.is_empty() {
                    let set = FieldSet::of_names([unknown]).expect("a field");
                    records[index].known = FieldSet::ALL.difference(set);
                }
                if unknown == "history" {
                    records[index].history = History::EMPTY;
                } else if index > 0 && numbers[index] == numbers[index - 1] + 1 {
                    let (before, own) = (records[index - 1].history, records[index].history);
                    let mut text = before.to_string();
                    text.extend(
                        own.letters().filter(|letter| !before.letters().any(|known| known == *letter)),
                    );
                    records[index].history = history(&text);
                    records[index].initiator = records[index - 1].initiator;
                }
                let has = |letter| records[index].history.letters().any(|known| known == letter);
                let sent = (has('D'), has('d'));
                records[index].conn_state = match (protocol, unknown) {
                    (IpProtocol::TCP, _) => records[index].conn_state,
                    (IpProtocol::UDP, "history") => exchange(has_sent(&records[index])),
                    (IpProtocol::UDP, _) => exchange(sent),
                    _ => ConnState::Oth,
                };
            }
            records
        })
    })
}

/// Returns the values of the columns with a rule.
fn columns_with(record: &FlowRecord, rules: &[Merge]) -> BTreeMap<String, Value> {
    let mut fields = fields(record);
    let has_rule = |name: &str| {
        FlowRecord::COLUMNS.iter().any(|column| column.name == name && rules.contains(&column.merge))
    };
    fields.retain(|name, _| has_rule(name));
    // The letters have an order.
    if let Some(Value::String(history)) = fields.get_mut("history") {
        let mut letters: Vec<_> = history.chars().filter(|letter| *letter != '^').collect();
        letters.sort_unstable();
        *history = letters.into_iter().collect();
    }
    fields
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(debug_assertions) { 2000 } else { 50_000 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn grouping_does_not_matter(records in three_records()) {
        let [first, second, third] = &records;
        let left = merged(&[&merged(&[first, second]), third]);
        let right = merged(&[first, &merged(&[second, third])]);
        let [mut left, mut right] = [left, right].map(|record| {
            let mut fields = fields(&record);
            fields.insert("known".to_owned(), format!("{:?}", record.known).into());
            fields
        });
        // A connection may be closed by one record after another.
        left.remove("open_duration");
        right.remove("open_duration");
        prop_assert_eq!(left, right);
    }

    #[test]
    fn order_does_not_matter_for_sums_and_extremes(records in three_records(), initiator in any::<bool>()) {
        let mut records = records;
        for record in &mut records {
            // Otherwise, the initiator is that of the first record with the strongest evidence.
            record.initiator = if initiator { Side::A } else { Side::B };
            record.sequence_number = 0;
        }
        let [first, second, third] = &records;
        let rules = [Merge::Key, Merge::Sum, Merge::Min, Merge::Max, Merge::Union];
        let expected = columns_with(&merged(&[first, second, third]), &rules);
        for order in [[first, third, second], [third, second, first], [second, third, first]] {
            prop_assert_eq!(&columns_with(&merged(&order), &rules), &expected);
        }
    }

    #[test]
    fn columns_follow_their_rules(records in three_records()) {
        let [mut first, mut second, _] = records;
        second.initiator = first.initiator;
        // Otherwise, the counts are scaled first.
        (second.sampling_interval, second.counter_scale) = (first.sampling_interval, first.counter_scale);
        // A side has the properties of its first packet.
        for side in [&mut first.forward, &mut first.reverse] {
            side.counters.packet_count += 1;
            (side.mac, side.dscp) = (Some([2; 6]), Some(0));
        }
        let both = fields(&merged(&[&first, &second]));
        let (first, second) = (fields(&first), fields(&second));
        for column in FlowRecord::COLUMNS {
            let (earlier, later, found) = (&first[column.name], &second[column.name], &both[column.name]);
            let numbers = earlier.as_u64().zip(later.as_u64());
            let expected = match (column.merge, numbers) {
                (Merge::Key | Merge::First, _) if !earlier.is_null() => earlier.clone(),
                (Merge::Key | Merge::First, _) => later.clone(),
                (_, None) if column.merge != Merge::Strongest && earlier.is_null() != later.is_null() => {
                    let is_nullable = column.is_nullable;
                    let known = if earlier.is_null() { later } else { earlier };
                    if is_nullable { known.clone() } else { Value::Null }
                }
                (_, None) if earlier.is_null() && later.is_null() => Value::Null,
                // The maximum of a count is that of its type.
                (Merge::Sum, Some((earlier, later))) if earlier.max(later) == u64::from(u32::MAX) => json!(u32::MAX),
                (Merge::Sum, Some((earlier, later))) => json!(earlier + later),
                (Merge::Min, Some((earlier, later))) => json!(earlier.min(later)),
                (Merge::Max, Some((earlier, later))) => json!(earlier.max(later)),
                (Merge::Union, Some((earlier, later))) => json!(earlier | later),
                _ => found.clone(),
            };
            prop_assert_eq!(found, &expected, "{}", column.name);
        }
    }

    #[test]
    fn records_of_different_flows_are_not_merged(records in three_records()) {
        let [first, mut second, _] = records;
        second.key = second.key.with_scope(7);
        let mut unchanged = first.clone();
        prop_assert_eq!(unchanged.merge(&second), Err(DifferentFlows));
        prop_assert_eq!(unchanged, first);
    }
}

#[test]
fn all_columns_of_a_record_have_a_rule() {
    assert!(FlowRecord::COLUMNS.iter().all(|column| column.merge != Merge::Cannot));
}

fn tcp(letters: &str, state: TcpState, reason: EndReason, times: (u64, u64)) -> FlowRecord {
    let seconds = 1_000_000_000;
    let mut record = record(IpProtocol::TCP, times.0 * seconds, times.1 * seconds);
    record.history = history(letters);
    (record.tcp_state, record.flow_end_reason) = (state, reason);
    record.forward.counters.packet_count = 1;
    record.reverse.counters.packet_count = 1;
    record
}

#[test]
fn an_open_flow_continues_after_a_short_pause() {
    use EndReason::{ActiveTimeout, EndOfFlow, ForcedEnd, IdleTimeout, LackOfResources};
    use TcpState::{Established, SynSent, TimeWait};
    let later = |letters, start| tcp(letters, Established, ForcedEnd, (start, start + 1));
    for (letters, state, reason, next, start, expected) in [
        ("ShAD", Established, ForcedEnd, "Da", 20, true),
        ("ShAD", Established, ActiveTimeout, "Da", 20, true),
        ("ShAD", Established, LackOfResources, "Da", 20, true),
        ("ShAD", Established, IdleTimeout, "Da", 20, false),
        // The idle timeout of a connection is 300 s.
        ("ShAD", Established, ForcedEnd, "Da", 309, true),
        ("ShAD", Established, ForcedEnd, "Da", 310, false),
        // That of a handshake is 65 s; the SYN is sent again.
        ("S", SynSent, ForcedEnd, "ShA", 74, true),
        ("S", SynSent, ForcedEnd, "ShA", 75, false),
        // Another connection on the same ports.
        ("ShAD", Established, ForcedEnd, "ShA", 20, false),
        ("ShAD", Established, ForcedEnd, "^shA", 20, true),
        // A closed connection is kept for 15 s.
        ("ShADadFf", TimeWait, EndOfFlow, "fa", 24, true),
        ("ShADadFf", TimeWait, EndOfFlow, "fa", 25, false),
        ("ShADadFf", TimeWait, EndOfFlow, "S", 12, false),
        // The end of flow without a closed connection is another flow.
        ("S", SynSent, EndOfFlow, "S", 12, false),
        // Both overlap: two captures of the same packets, or a clock that was set back.
        ("ShAD", Established, ForcedEnd, "Da", 8, false),
    ] {
        let record = tcp(letters, state, reason, (0, 10));
        let pause_max = Timeouts::DEFAULT.of_record(&record).expect("an idle timeout");
        let is_continued = record.is_continued_by(&later(next, start), pause_max);
        assert_eq!(is_continued, expected, "{letters} {state} {reason}, then {next} at {start} s");
    }
}

#[test]
fn records_of_one_tracker_are_continued_in_their_order() {
    let [mut first, mut second] = [0, 10].map(|start| {
        let mut record = record(IpProtocol::UDP, start, start + 10);
        record.flow_end_reason = EndReason::EndOfFlow;
        record
    });
    second.sequence_number = 1;
    let minute = Duration::from_secs(60);
    assert!(first.is_continued_by(&second, minute));
    first.sequence_number = 1;
    assert!(!first.is_continued_by(&second, minute));
    first.sequence_number = 0;
    first.flow_end_reason = EndReason::IdleTimeout;
    assert!(!first.is_continued_by(&second, minute));
    let mut other = second.clone();
    other.key = other.key.with_scope(7);
    assert!(!first.is_continued_by(&other, minute));
}

#[test]
fn the_end_of_a_connection_follows_from_both_parts() {
    let first = tcp("ShADadF", TcpState::FinWait2, EndReason::ForcedEnd, (0, 10));
    let second = tcp("fA", TcpState::FinWait2, EndReason::ForcedEnd, (10, 11));
    let both = merged(&[&first, &second]);
    assert_eq!(both.history.to_string(), "ShADadFf");
    assert_eq!((both.tcp_state, both.conn_state), (TcpState::TimeWait, ConnState::Sf));
    assert_eq!(both.flow_end_reason, EndReason::EndOfFlow);
    // A reset after both FINs changes nothing.
    let reset = tcp("R", TcpState::Closed, EndReason::EndOfFlow, (11, 12));
    assert_eq!(merged(&[&both, &reset]).conn_state, ConnState::Sf);
    assert_eq!(merged(&[&first, &reset]).conn_state, ConnState::Rsto);
}

#[test]
fn sides_are_exchanged_if_the_evidence_of_the_other_record_is_stronger() {
    let mut first = tcp("ShAD", TcpState::Established, EndReason::ForcedEnd, (0, 10));
    first.direction_evidence = flowgauge::base::DirectionEvidence::Syn;
    let mut second = tcp("Da", TcpState::Established, EndReason::ForcedEnd, (10, 12));
    second.initiator = Side::B;
    second.forward.counters.packet_count = 70;
    let both = merged(&[&first, &second]);
    assert_eq!((both.initiator, both.reverse.counters.packet_count), (Side::A, 71));
    assert_eq!(both.history.to_string(), "ShADd");
    let both = merged(&[&second, &first]);
    assert_eq!((both.initiator, both.reverse.counters.packet_count), (Side::A, 71));
}

#[test]
fn counts_of_different_sampling_are_estimates() {
    let with_interval = |interval| {
        let mut record = record(IpProtocol::UDP, 0, 1);
        record.forward.counters.packet_count = 3;
        record.sampling_interval = interval;
        record
    };
    let [complete, ten, hundred] = [None, Some(10), Some(100)].map(with_interval);
    let count = |record: &FlowRecord| (record.packet_count(), record.sampling_interval, record.counter_scale);
    assert_eq!(count(&merged(&[&ten, &ten])), (6, Some(10), None));
    assert_eq!(count(&merged(&[&ten, &complete])), (33, Some(10), Some(10)));
    assert_eq!(count(&merged(&[&ten, &hundred])), (330, Some(100), Some(100)));
    let mut scaled = merged(&[&ten, &hundred]);
    scaled.scale();
    assert_eq!(scaled.packet_count(), 330);
}

#[test]
fn absent_values_are_known_if_one_record_knows_them() {
    let mut first = record(IpProtocol::TCP, 0, 1);
    first.handshake_rtt = Some(Duration::from_millis(3));
    let mut second = record(IpProtocol::TCP, 2, 3);
    let unknown = FieldSet::of_names(["handshake_rtt", "octet_count"]).expect("fields");
    second.known = FieldSet::ALL.difference(unknown);
    let both = fields(&merged(&[&first, &second]));
    assert_eq!(both["handshake_rtt"], json!(3_000_000));
    assert_eq!(both["octet_count"], Value::Null);
    assert_eq!(both["packet_count"], json!(0));
}
