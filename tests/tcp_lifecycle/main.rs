//! The life cycle of TCP connections: states, events and end reasons that result from segments.
//!
//! A case is a list of steps. A step is a segment and the events that the sink receives for it. Segments are written as
//! `> SA 1000 a5001 l10 w500 s7 @20`: the sender, which is the client (`>`) or the server (`<`), control bits, and
//! sequence number. Optional fields follow: acknowledgment number, payload length, window, window scale in the header
//! (`s-` for a header without the option, `s?` for a header that was not captured) and milliseconds since the last
//! step. The sink logs `start`, `to:STATE`, `est:MILLISECONDS`, `dir:INITIATOR:EVIDENCE`, `!ANOMALY`, and
//! `end:REASON:HISTORY`.

mod dialogue;
mod late;
mod numbers;

use std::time::Duration;

use flowgauge::base::{Resources, Side, TcpState, Timestamp};
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{Timeouts, Tracker, TrackerConfig};

use dialogue::{CLIENT, Log, run, run_with, segment};

const HANDSHAKE: [(&str, &str); 3] = [
    ("> S 1000", "start to:syn_sent"),
    ("< SA 5000 a1001 @5", "to:syn_received"),
    ("> A 1001 a5001 @15", "to:established est:20"),
];

/// Runs steps after a handshake.
fn after_handshake(steps: &[(&str, &str)]) -> Vec<FlowRecord> {
    run(&[&HANDSHAKE, steps].concat())
}

/// Returns the counts of retransmitted, out-of-order and zero-window segments of initiator and responder.
fn tcp_counts(record: &FlowRecord) -> [[u32; 3]; 2] {
    [&record.forward, &record.reverse]
        .map(|side| [side.tcp.retransmitted_count, side.tcp.out_of_order_count, side.tcp.zero_window_count])
}

#[test]
fn a_complete_connection() {
    let records = after_handshake(&[
        ("> PA 1001 a5001 l100", ""),
        ("< A 5001 a1101", ""),
        ("< PA 5001 a1101 l200", ""),
        ("> FA 1101 a5201", "to:fin_wait_1"),
        ("< FA 5201 a1102", "to:last_ack"),
        ("> A 1102 a5202", "to:time_wait"),
        ("end", "end:end_of_flow_detected:ShADadFf"),
    ]);
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!(record.handshake_rtt, Some(Duration::from_millis(20)));
    assert_eq!((record.conn_state.name(), record.tcp_state), ("SF", TcpState::TimeWait));
    assert_eq!((record.forward.counters.packet_count, record.reverse.counters.packet_count), (5, 4));
    assert_eq!(
        (record.forward.counters.payload_octet_count, record.reverse.counters.octet_count),
        (100, 416)
    );
    assert_eq!(tcp_counts(record), [[0; 3]; 2]);
}

#[test]
fn simultaneous_open() {
    let records = run(&[
        ("> S 1000", "start to:syn_sent"),
        ("< S 5000", "to:syn_received"),
        ("> SA 1000 a5001", ""),
        ("< SA 5000 a1001", ""),
        ("> A 1001 a5001", "to:established est:0"),
        ("< PA 5001 a1001 l9", ""),
    ]);
    assert_eq!((records.len(), records[0].initiator), (1, CLIENT));
}

#[test]
fn a_retransmitted_syn_extends_the_handshake() {
    let records = run(&[
        ("> S 1000", "start to:syn_sent"),
        ("> S 1000 @64000", ""),
        ("> S 1000 @64000", ""),
        ("< SA 5000 a1001 @64000", "to:syn_received"),
        ("> A 1001 a5001 @10", "to:established est:64010"),
    ]);
    assert_eq!(tcp_counts(&records[0])[0], [2, 0, 0]);
}

#[test]
fn only_a_retransmitted_syn_extends_a_handshake() {
    run(&[
        ("> S 1000", "start to:syn_sent"),
        ("< SA 5000 a1001 @30000", "to:syn_received"),
        ("< SA 5000 a1001 @30000", ""),
        ("< SA 5000 a1001 @5000", "end:idle_timeout:Sh start to:syn_received"),
        ("end", "end:forced_end:^h"),
    ]);
    run(&[("> S 1000", "start to:syn_sent"), ("> S 1000 @65000", "end:idle_timeout:S start to:syn_sent")]);
}

#[test]
fn syn_with_data() {
    let records = run(&[
        ("> S 1000 l10", "start to:syn_sent"),
        ("< SA 5000 a1011", "to:syn_received"),
        ("> A 1011 a5001", "to:established est:0"),
        ("> PA 1011 a5001 l5", ""),
        ("< A 5001 a1016", ""),
    ]);
    assert_eq!(records[0].forward.counters.payload_octet_count, 15);
    assert_eq!(tcp_counts(&records[0]), [[0; 3]; 2]);
}

#[test]
fn fast_open_server_sends_and_closes_before_the_client_acknowledges() {
    // RFC 7413, Appendix A: the request is in the SYN.
    let records = run(&[
        ("> S 1000 l10", "start to:syn_sent"),
        ("< SA 5000 a1011 @20", "to:syn_received"),
        ("< PA 5001 a1011 l100", ""),
        ("< FA 5101 a1011", ""),
        ("> A 1011 a5102 @30", "to:fin_wait_2 est:50"),
        ("> FA 1011 a5102", "to:last_ack"),
        ("< A 5102 a1012", "to:time_wait"),
    ]);
    let [record] = &records[..] else { panic!("{records:?}") };
    assert_eq!(record.handshake_rtt, Some(Duration::from_millis(50)));
    assert_eq!((record.conn_state.name(), record.history.to_string().as_str()), ("SF", "ShdfAFa"));
    // Without octets in the SYN, the acknowledgment of the client is missing.
    let records = run(&[
        ("> S 1000", "start to:syn_sent"),
        ("< SA 5000 a1001 @20", "to:syn_received"),
        ("< PA 5001 a1001 l100", "to:established est:?"),
        ("> A 1001 a5101 @30", ""),
    ]);
    assert_eq!(records[0].handshake_rtt, None);
}

#[test]
fn a_connection_without_its_beginning() {
    let records = run(&[
        ("< PA 5001 a1001 l10", "start to:established"),
        ("> A 1001 a5011", ""),
        ("> FA 1001 a5011", "to:fin_wait_1"),
        ("< A 5011 a1002", "to:fin_wait_2"),
        ("end", "end:forced_end:DafA"),
    ]);
    assert_eq!((records[0].initiator, records[0].direction_evidence.name()), (Side::B, "first_seen"));
    assert_eq!(records[0].handshake_rtt, None);
}

#[test]
fn half_close() {
    after_handshake(&[
        ("> FA 1001 a5001", "to:fin_wait_1"),
        ("< A 5001 a1002", "to:fin_wait_2"),
        // A half-closed connection counts as open: its timeout is 300 s, not 5 s.
        ("< PA 5001 a1002 l100 @299999", ""),
        ("> A 1002 a5101", ""),
        ("< FA 5101 a1002", "to:last_ack"),
        ("> A 1002 a5102", "to:time_wait"),
        ("end", "end:end_of_flow_detected:ShAFadf"),
    ]);
}

#[test]
fn simultaneous_close() {
    after_handshake(&[
        ("> FA 1001 a5001", "to:fin_wait_1"),
        ("< FA 5001 a1001", "to:closing"),
        ("> A 1002 a5002", "to:last_ack"),
        ("< A 5002 a1002", "to:time_wait"),
    ]);
}

#[test]
fn a_fin_after_a_gap_counts() {
    let records = after_handshake(&[
        ("> FA 1501 a5001 l10", "to:fin_wait_1"),
        ("< FA 5001 a1001", "to:closing"),
        // The missing octets arrive late.
        ("> PA 1001 a5001 l500", ""),
        ("end", "end:end_of_flow_detected:ShAFfDT"),
    ]);
    assert_eq!(tcp_counts(&records[0])[0], [0, 1, 0]);
}

#[test]
fn a_reset_in_the_window_closes_the_connection() {
    for reset in ["> R 1001 a0", "> RA 1001 a5001", "> R 2001", "< R 5001", "< RA 6001 a1001"] {
        let history = if reset.starts_with('>') { "ShAR" } else { "ShAr" };
        after_handshake(&[(reset, "to:closed"), ("end", &format!("end:end_of_flow_detected:{history}"))]);
    }
}

#[test]
fn a_reset_out_of_window_does_not_close_the_connection() {
    for reset in ["> R 1000", "> R 2002", "< R 6002", "< R 4999", "< R 2147488650"] {
        let letter = if reset.starts_with('>') { 'R' } else { 'r' };
        after_handshake(&[
            (reset, "!reset"),
            // The flow ends after 15 s without packets.
            ("> A 1001 a5001 @15000", &format!("end:idle_timeout:ShA{letter} start to:established")),
        ]);
        after_handshake(&[
            (reset, "!reset"),
            // Data restores the usual timeout, an acknowledgment does not.
            ("> A 1001 a5001 @3000", ""),
            ("> PA 1001 a5001 l10 @14999", ""),
            ("< A 5001 a1011 @299999", ""),
            ("end", &format!("end:forced_end:ShA{letter}Da")),
        ]);
        after_handshake(&[(reset, "!reset"), ("end", &format!("end:forced_end:ShA{letter}"))]);
    }
}

#[test]
fn an_invalid_reset_after_the_close_changes_nothing() {
    after_handshake(&[
        ("> RA 1001 a5001", "to:closed"),
        ("< R 99", "!reset"),
        ("< A 5001 a1001 @15000", "end:end_of_flow_detected:ShARr start to:established"),
    ]);
}

#[test]
fn a_reset_in_syn_sent_must_acknowledge_the_syn() {
    let records = run(&[
        ("> S 1000", "start to:syn_sent"),
        ("< RA 0 a1001", "to:closed"),
        ("end", "end:end_of_flow_detected:Sr"),
    ]);
    assert_eq!(records[0].conn_state.name(), "REJ");
    for reset in ["< RA 0 a1000", "< RA 0 a1002", "< R 0", "< RA 1001 a0"] {
        run(&[
            ("> S 1000", "start to:syn_sent"),
            (reset, "!reset"),
            ("< SA 5000 a1001 @2", "to:syn_received"),
            ("> A 1001 a5001 @2", "to:established est:4"),
        ]);
    }
}

#[test]
fn a_reset_without_any_segment_of_the_peer() {
    run(&[("> S 1000", "start to:syn_sent"), ("> R 1001", "to:closed")]);
    run(&[("> S 1000", "start to:syn_sent"), ("> R 1000", "!reset")]);
    run(&[("> PA 1000 l10", "start to:established"), ("> R 1010", "to:closed")]);
    run(&[("> PA 1000 l10", "start to:established"), ("> R 1009", "!reset")]);
    run(&[("> R 77", "start to:closed")]);
}

#[test]
fn ports_reused_after_a_close() {
    let closed = [("> RA 1001 a5001", "to:closed")];
    let steps = [("> S 9000 @10", "end:end_of_flow_detected:ShAR start to:syn_sent")];
    let records = after_handshake(&[&closed[..], &steps].concat());
    assert_eq!((records.len(), records[0].forward.counters.packet_count), (2, 3));
    // The server's SYN-ACK of a new connection, without the client's SYN in the capture.
    let steps = [("< SA 8000 a9001 @10", "end:end_of_flow_detected:ShAR start to:syn_received")];
    after_handshake(&[&closed[..], &steps].concat());
    // A repetition of the same SYN is a late segment.
    let steps = [("> S 1000 @10", ""), ("< SA 5000 a1001", ""), ("> PA 1001 a5001 l3", "")];
    assert_eq!(after_handshake(&[&closed[..], &steps].concat()).len(), 1);
}

#[test]
fn ports_reused_in_syn_sent() {
    run(&[
        ("> S 1000", "start to:syn_sent"),
        ("> S 9000 @1000", "end:end_of_flow_detected:S start to:syn_sent"),
        ("< SA 5000 a9001 @1", "to:syn_received"),
        ("> A 9001 a5001 @1", "to:established est:2"),
    ]);
}

#[test]
fn a_bare_syn_never_splits_an_open_connection() {
    let records = after_handshake(&[
        ("> S 9000", "!syn"),
        ("< A 5001 a1001", ""),
        ("> PA 1001 a5001 l100", ""),
        ("< S 9000", "!syn"),
        ("> PA 1101 a5001 l100", ""),
        ("end", "end:forced_end:ShASaDs"),
    ]);
    assert_eq!(records.len(), 1);
    assert_eq!(tcp_counts(&records[0]), [[0; 3]; 2]);
    // The same is true in SYN-RECEIVED.
    run(&[
        ("> S 1000", "start to:syn_sent"),
        ("< SA 5000 a1001", "to:syn_received"),
        ("> S 9000", "!syn"),
        ("> A 1001 a5001", "to:established est:0"),
    ]);
}

/// A connection that one side has closed, and that was silent for twice the maximum segment lifetime.
#[test]
fn a_syn_splits_a_connection_that_its_side_has_closed_long_ago() {
    let closed = [("> FA 1001 a5001", "to:fin_wait_1"), ("< A 5001 a1002", "to:fin_wait_2")];
    let with = |steps: &[(&'static str, &'static str)]| after_handshake(&[&closed[..], steps].concat());
    let ended = "end:end_of_flow_detected:ShAFa start to:syn_sent";
    let records = with(&[
        ("> S 9000 @240000", ended),
        ("< SA 7000 a9001", "to:syn_received"),
        ("> A 9001 a7001", "to:established est:0"),
    ]);
    assert_eq!((records.len(), records[1].initiator), (2, CLIENT));
    // The SYN-ACK is captured first.
    let ended = "end:end_of_flow_detected:ShAFa start to:syn_received";
    let records = with(&[
        ("< SA 7000 a9001 @240000", ended),
        ("> S 9000", ""),
        ("> A 9001 a7001", "to:established est:0"),
    ]);
    assert_eq!((records.len(), records[1].initiator), (2, CLIENT));
    // Earlier, or from the side that has not closed, as on an open connection.
    assert_eq!(with(&[("> S 9000 @239999", "!syn")]).len(), 1);
    assert_eq!(with(&[("< S 9000 @240000", "!syn")]).len(), 1);
    assert_eq!(with(&[("> SA 9000 a7001 @240000", "!unseen")]).len(), 1);
    assert_eq!(after_handshake(&[("> S 9000 @240000", "!syn")]).len(), 1);
}

#[test]
fn an_acknowledged_syn_splits_an_open_connection() {
    let records = after_handshake(&[
        ("> S 9000 @10", "!syn"),
        ("< SA 7000 a9001 @10", "end:end_of_flow_detected:ShAS start to:syn_received"),
        ("> A 9001 a7001 @10", "to:established est:?"),
    ]);
    assert_eq!(records[1].initiator, CLIENT);
    // A SYN-ACK with another acknowledgment number or from the same side does not split it.
    for answer in ["< SA 7000 a9000", "< SA 7000 a1001", "> SA 7000 a9001"] {
        assert_eq!(run(&[&HANDSHAKE[..], &[("> S 9000", "!syn")]].concat()).len(), 1);
        let records = {
            let mut tracker: Tracker<()> = Tracker::default();
            let (mut log, mut now) = (Log::default(), Timestamp::from_parts(1000, 0));
            for step in HANDSHAKE.iter().map(|(step, _)| *step).chain(["> S 9000", answer]) {
                tracker.track(&segment(step, &mut now), &mut log);
            }
            tracker.finish(&mut log);
            log.records
        };
        assert_eq!(records.len(), 1, "{answer}");
    }
}

#[test]
fn late_segments_start_no_new_flow() {
    let close = [("> FA 1001 a5001", "to:fin_wait_1"), ("< FA 5001 a1002", "to:last_ack")];
    let late = [
        ("> A 1002 a5002 @14999", "to:time_wait"),
        ("< A 5002 a1002 @14999", ""),
        ("> A 1002 a5002 @15000", "end:end_of_flow_detected:ShAFfa start to:established"),
    ];
    let records = after_handshake(&[&close[..], &late].concat());
    // The record ends with its last packet, not with the linger time.
    assert_eq!(records[0].end, Timestamp::from_parts(1000, 20_000_000 + 29_998_000_000));
}

#[test]
fn a_retransmitted_fin_belongs_to_the_connection_that_it_closed() {
    let records = after_handshake(&[
        ("> FA 1001 a5001", "to:fin_wait_1"),
        ("< FA 5001 a1002", "to:last_ack"),
        ("> A 1002 a5002", "to:time_wait"),
        // After 7, 8 and 13 seconds without a packet.
        ("< FA 5001 a1002 @7000", ""),
        ("< FA 5001 a1002 @8000", ""),
        ("> A 1002 a5002", ""),
        ("< FA 5001 a1002 @13000", ""),
        ("end", "end:end_of_flow_detected:ShAFf"),
    ]);
    assert_eq!((records.len(), tcp_counts(&records[0])), (1, [[0; 3], [3, 0, 0]]));
}

#[test]
fn without_a_linger_time_the_record_is_delivered_at_the_close() {
    let tracker = || {
        let config = TrackerConfig::default().timeouts(Timeouts::default().linger(Duration::ZERO));
        Tracker::new(config, &Resources::default()).unwrap()
    };
    let closed = [
        ("> FA 1001 a5001", "to:fin_wait_1"),
        ("< FA 5001 a1002", "to:last_ack"),
        ("> A 1002 a5002", "to:time_wait record:end_of_flow_detected"),
    ];
    let ended = [("end", "end:end_of_flow_detected:ShAFf")];
    let records = run_with(tracker(), &[&HANDSHAKE[..], &closed, &ended].concat());
    let counts = |record: &FlowRecord| (record.sequence_number, record.forward.counters.packet_count);
    // The flow ends without a record, because it has no packets since the last one.
    assert_eq!(counts(&records[0]), (0, 4));
    assert!(records[1..].iter().all(|record| record.packet_count() == 0));

    let late =
        [("< FA 5001 a1002 @1000", ""), ("> A 1002 a5002", ""), ("end", "end:end_of_flow_detected:ShAFf")];
    let records = run_with(tracker(), &[&HANDSHAKE[..], &closed, &late].concat());
    assert_eq!(records.iter().map(counts).collect::<Vec<_>>(), [(0, 4), (1, 1)]);

    let reset = [
        ("< RA 5001 a1001", "to:closed record:end_of_flow_detected"),
        ("< R 5001", ""),
        ("end", "end:end_of_flow_detected:ShAr"),
    ];
    let records = run_with(tracker(), &[&HANDSHAKE[..], &reset].concat());
    assert_eq!(records.len(), 2);

    // The first packet of a flow may close it.
    let records = run_with(
        tracker(),
        &[("< R 5001", "start to:closed record:end_of_flow_detected"), ("end", "end:end_of_flow_detected:R")],
    );
    assert_eq!(records.iter().map(FlowRecord::packet_count).collect::<Vec<_>>(), [1, 0]);
}

/// A connection that was accepted and is opened again with the same initial sequence number is a new one. Its octets
/// have the same sequence numbers.
#[test]
fn a_connection_that_is_reopened_with_the_same_number_is_a_new_one() {
    let reset = [("> PA 1001 a5001 l10", ""), ("< RA 5001 a1011", "to:closed")];
    let retransmission = |millis: u32, expected: &'static str| [(format!("> S 1000 @{millis}"), expected)];
    let retried = |millis, expected| {
        let syn = retransmission(millis, expected);
        after_handshake(&[&reset[..], &[(syn[0].0.as_str(), syn[0].1)]].concat())
    };
    assert_eq!(retried(100, "end:end_of_flow_detected:ShADr start to:syn_sent").len(), 2);
    // An earlier SYN was reordered.
    assert_eq!(retried(99, "").len(), 1);
    let closed = [("> FA 1001 a5001", "to:fin_wait_1"), ("< FA 5001 a1002", "to:last_ack")];
    let reopened = [("> S 1000 @2000", "end:end_of_flow_detected:ShAFf start to:syn_sent")];
    assert_eq!(after_handshake(&[&closed[..], &reopened].concat()).len(), 2);
    // A refused connection is one attempt, however often the client repeats it.
    let records = run(&[
        ("> S 1000", "start to:syn_sent"),
        ("< RA 0 a1001", "to:closed"),
        ("> S 1000 @500", ""),
        ("< RA 0 a1001", ""),
        ("> S 1000 @500", ""),
        ("< RA 0 a1001", ""),
        ("end", "end:end_of_flow_detected:Sr"),
    ]);
    assert_eq!((records.len(), records[0].conn_state.name()), (1, "REJ"));
}

#[test]
fn keep_alives_are_not_retransmissions() {
    let records = after_handshake(&[
        ("> PA 1001 a5001 l100", ""),
        ("< A 5001 a1101", ""),
        ("> A 1100 a5001 @100000", ""),
        ("< A 5001 a1101", ""),
        ("> A 1100 a5001 l1 @100000", ""),
        ("< A 5001 a1101", ""),
        // A segment one octet earlier is a retransmission.
        ("> A 1099 a5001 l1 @100000", ""),
    ]);
    assert_eq!(tcp_counts(&records[0]), [[1, 0, 0], [0; 3]]);
}

#[test]
fn late_and_retransmitted_segments_are_distinguished() {
    let records = after_handshake(&[
        ("> PA 1001 a5001 l100", ""),
        // 1101 to 1200 are missing.
        ("> PA 1201 a5001 l100", ""),
        ("> PA 1101 a5001 l100", ""),
        // All these octets were already captured.
        ("> PA 1001 a5001 l100", ""),
        ("> PA 1201 a5001 l100", ""),
        // Half of the octets are new.
        ("> PA 1251 a5001 l100", ""),
        ("> PA 1351 a5001 l100", ""),
        // The receiver acknowledges octets that were not captured.
        ("< A 5001 a1551", "!unseen"),
        ("> PA 1451 a5001 l100", ""),
    ]);
    assert_eq!(tcp_counts(&records[0])[0], [2, 2, 0]);
    assert_eq!(records[0].history.to_string(), "ShADTaG");
}

#[test]
fn zero_windows_are_counted() {
    let records = after_handshake(&[
        ("< A 5001 a1001 w0", ""),
        ("< A 5001 a1001 w0", ""),
        ("< A 5001 a1001 w10", ""),
        ("< RA 5001 a1001 w0", "to:closed"),
    ]);
    assert_eq!(tcp_counts(&records[0]), [[0; 3], [0, 0, 2]]);
    assert_eq!(records[0].history.to_string(), "ShAawr");
}

#[test]
fn a_zero_window_is_not_counted_after_the_peer_has_closed() {
    let records = after_handshake(&[
        ("> FA 1001 a5001", "to:fin_wait_1"),
        ("< A 5001 a1002 w0", "to:fin_wait_2"),
        ("> A 1002 a5001 w0", ""),
    ]);
    assert_eq!(tcp_counts(&records[0]), [[0, 0, 1], [0; 3]]);
}

#[test]
fn the_history_shows_retransmissions_at_powers_of_ten() {
    for (count, history) in [(1, "ShADT"), (9, "ShADT"), (10, "ShADTT"), (99, "ShADTT"), (100, "ShADTTT")] {
        let retransmission = ("> PA 1001 a5001 l100", "");
        let records = after_handshake(&vec![retransmission; 1 + count]);
        assert_eq!(tcp_counts(&records[0])[0], [count as u32, 0, 0]);
        assert_eq!(records[0].history.to_string(), history, "{count}");
    }
}

#[test]
fn a_segment_in_an_acknowledged_gap_is_a_retransmission() {
    let records = after_handshake(&[
        ("> PA 1001 a5001 l100", ""),
        ("> PA 1201 a5001 l100", ""),
        // The receiver has the hundred octets in between.
        ("< A 5001 a1301", ""),
        ("> PA 1101 a5001 l100", ""),
    ]);
    assert_eq!(tcp_counts(&records[0]), [[1, 0, 0], [0; 3]]);
}

#[test]
fn sequence_numbers_wrap() {
    let records = run(&[
        ("> S 4294967290", "start to:syn_sent"),
        ("< SA 4294967295 a4294967291", "to:syn_received"),
        ("> A 4294967291 a0", "to:established est:0"),
        ("> PA 4294967291 a0 l100", ""),
        ("< PA 0 a95 l10", ""),
        ("> PA 95 a10 l10", ""),
        ("> PA 4294967291 a10 l100", ""),
        ("> R 105 a10", "to:closed"),
    ]);
    assert_eq!(tcp_counts(&records[0]), [[1, 0, 0], [0; 3]]);
}

#[test]
fn an_unknown_window_scale_counts_as_14() {
    let maximum_scaled = 1001 + (1000 << 14);
    let reset = |at: u32| format!("> R {at}");
    let start = |scale: &str| [format!("> S 1000 {scale}"), format!("< SA 5000 a1001 {scale}")];
    for (scale, last) in
        [("s?", maximum_scaled), ("s-", 2001), ("s7", 1001 + (1000 << 7)), ("s99", maximum_scaled)]
    {
        for (at, expected) in [(last, "to:closed"), (last + 1, "!reset")] {
            let [syn, syn_ack] = start(scale);
            run(&[
                (&syn, "start to:syn_sent"),
                (&syn_ack, "to:syn_received"),
                ("> A 1001 a5001", "to:established est:0"),
                (&reset(at), expected),
            ]);
        }
    }
    run(&[
        ("> PA 991 a5001 l10", "start to:established"),
        ("< A 5001 a1001", ""),
        (&reset(maximum_scaled + 1), "!reset"),
        (&reset(maximum_scaled), "to:closed"),
    ]);
}

#[test]
fn the_window_of_a_foreign_syn_is_ignored() {
    after_handshake(&[("< S 7 w65535 s14", "!syn"), ("> R 2002", "!reset"), ("> R 2001", "to:closed")]);
}

#[test]
fn better_evidence_reverses_the_direction() {
    let records = run(&[
        ("> SA 1000 a5001", "start to:syn_received"),
        ("> S 1000 @10", "dir:>:syn"),
        ("< SA 5000 a1001 @10", ""),
        ("> A 1001 a5001 @10", "to:established est:20"),
        ("end", "end:forced_end:^H^hA"),
    ]);
    assert_eq!((records[0].initiator, records[0].direction_evidence.name()), (CLIENT, "syn"));
    assert_eq!(records[0].forward.counters.packet_count, 3);
    // A SYN-ACK determines the responder. A late SYN changes nothing.
    let records = run(&[
        ("< SA 5000 a1001", "start to:syn_received"),
        ("> S 1000", ""),
        ("> A 1001 a5001", "to:established est:0"),
        ("end", "end:forced_end:^hSA"),
    ]);
    assert_eq!((records[0].initiator, records[0].reverse.counters.packet_count), (CLIENT, 1));
    // A SYN on an open flow is no evidence.
    let records = run(&[("< PA 5001 a1001 l10", "start to:established"), ("> S 2000", "!syn")]);
    assert_eq!(records[0].initiator, Side::B);
    // A reordered SYN is no evidence either, but it is not an anomaly.
    let records = run(&[("< PA 5001 a1001 l10", "start to:established"), ("> S 1000", "")]);
    assert_eq!(records[0].initiator, Side::B);
}

#[test]
fn idle_connections_time_out() {
    after_handshake(&[
        ("> PA 1001 a5001 l1 @299999", ""),
        ("> PA 1002 a5001 l1 @300000", "end:idle_timeout:ShAD start to:established"),
    ]);
}

/// A connection is closed when both ends have closed it. Later packets count in the record, but not in its open
/// duration.
#[test]
fn a_connection_is_open_until_both_ends_have_closed_it() {
    let open_millis = |steps: &[(&str, &str)]| {
        let records = after_handshake(steps);
        assert_eq!(records.len(), 1);
        (records[0].open_duration().as_millis(), records[0].duration().as_millis())
    };
    // The handshake takes 20 ms.
    let fins = [("> FA 1001 a5001 @100", "to:fin_wait_1"), ("< FA 5001 a1002 @50", "to:last_ack")];
    let late = [("> A 1002 a5002 @7", "to:time_wait"), ("< FA 5001 a1002 @6000", "")];
    assert_eq!(open_millis(&fins), (170, 170));
    assert_eq!(open_millis(&[&fins[..], &late].concat()), (170, 6177));
    // Only one end has closed.
    assert_eq!(open_millis(&[fins[0], ("< A 5001 a1002 @300", "to:fin_wait_2")]), (420, 420));
    let resets = [("> RA 1001 a5001 @100", "to:closed"), ("< A 5001 a1001 @5", ""), ("< R 5001 @5", "")];
    assert_eq!(open_millis(&resets), (130, 130));
    assert_eq!(open_millis(&[&resets[..], &[("> A 1001 a5001 @1000", "")]].concat()), (130, 1130));
    // A reset by an end without earlier segments closes that end too.
    let records = run(&[("> R 77", "start to:closed"), ("< R 5 @10", ""), ("> A 78 a5 @10", "")]);
    assert_eq!((records[0].open_duration().as_millis(), records[0].duration().as_millis()), (10, 20));
}
