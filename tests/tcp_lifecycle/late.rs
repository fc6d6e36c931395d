//! Late and repeated segments, the clock of the capture, and flows after an idle timeout.

use std::time::Duration;

use flowgauge::base::{EndReason, Timestamp};
use flowgauge::record::FlowRecord;
use flowgauge::tracker::{FlowView, Observer, Tracker};

use super::dialogue::{CLIENT, run, segment};
use super::{after_handshake, tcp_counts};

/// Returns the retransmitted and out-of-order segments of the client of the only record.
fn counts(records: &[FlowRecord]) -> [u32; 2] {
    let [record] = records else { panic!("{records:?}") };
    let [[retransmitted, out_of_order, _], _] = tcp_counts(record);
    [retransmitted, out_of_order]
}

#[test]
fn missing_octets_were_overtaken_within_a_round_trip_and_lost_after_it() {
    let fill_after = |delay: u32, duplicate_count: usize| {
        let fill = format!("> A 1101 a5001 l100 @{delay}");
        let mut steps =
            vec![("> A 1001 a5001 l100", ""), ("> A 1201 a5001 l100", ""), ("< A 5001 a1101", "")];
        steps.extend(vec![("< A 5001 a1101", ""); duplicate_count]);
        steps.push((&fill, ""));
        counts(&after_handshake(&steps))
    };
    // The handshake took 20 ms.
    assert_eq!(fill_after(1, 0), [0, 1]);
    assert_eq!(fill_after(20, 0), [0, 1]);
    assert_eq!(fill_after(21, 0), [1, 0]);
    assert_eq!(fill_after(1000, 0), [1, 0]);
    // RFC 5681 section 3.2: the third duplicate acknowledgment. For tshark, the second one suffices.
    assert_eq!(fill_after(1, 2), [0, 1]);
    assert_eq!(fill_after(1, 3), [1, 0]);
    assert_eq!(fill_after(1, 300), [1, 0]);
}

#[test]
fn acknowledged_octets_are_late_however_late_they_are() {
    // The directions are captured with different delays: the acknowledgment is captured before the octets.
    let records = after_handshake(&[
        ("> A 1001 a5001 l100", ""),
        ("< A 5001 a1301", "!unseen"),
        ("> A 1101 a5001 l100 @500", ""),
        ("> A 1201 a5001 l100 @500", ""),
    ]);
    assert_eq!(counts(&records), [0, 2]);
}

#[test]
fn only_acknowledgments_without_octets_ask_again() {
    let records = after_handshake(&[
        ("> A 1001 a5001 l100", ""),
        ("> A 1201 a5001 l100", ""),
        ("< A 5001 a1101", ""),
        ("< A 5001 a1101 l10", ""),
        ("< A 5011 a1101 l10", ""),
        ("< A 5021 a1101 l10", ""),
        ("> A 1101 a5031 l100 @1", ""),
    ]);
    assert_eq!(counts(&records), [0, 1]);
    // Those for an earlier hole do not count for a later one.
    let ask = [("< A 5001 a1101", ""); 4];
    let records = after_handshake(
        &[
            &[("> A 1001 a5001 l100", ""), ("> A 1201 a5001 l100", "")][..],
            &ask,
            &[("> A 1101 a5001 l100", ""), ("< A 5001 a1301", "")],
            &[("> A 1401 a5001 l100", ""), ("> A 1301 a5001 l100", "")],
        ]
        .concat(),
    );
    assert_eq!(counts(&records), [1, 1]);
}

#[test]
fn three_milliseconds_are_assumed_without_a_handshake() {
    for (delay, expected) in [(3, [0, 1]), (4, [1, 0])] {
        let fill = format!("> A 1101 a5001 l100 @{delay}");
        let records =
            run(&[("> A 1001 a5001 l100", "start to:established"), ("> A 1201 a5001 l100", ""), (&fill, "")]);
        assert_eq!(counts(&records), expected, "in the stream");
        let before = format!("> A 901 a5001 l100 @{delay}");
        let records = run(&[("> A 1001 a5001 l100", "start to:established"), (&before, "")]);
        assert_eq!(counts(&records), expected, "before the first octets");
    }
}

#[derive(Default)]
struct Records(Vec<FlowRecord>);

impl Observer<()> for Records {
    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, (): ()) {
        self.0.push(flow.record(reason));
    }
}

#[test]
fn a_clock_that_is_set_back_shortens_no_flow_by_more_than_the_step() {
    let steps = [
        "> S 1000",
        "< SA 5000 a1001 @5",
        "> A 1001 a5001 @15",
        "> PA 1001 a5001 l100 @1000",
        "< PA 5001 a1101 l200 @700",
        "> PA 1101 a5201 l100 @300",
        "> FA 1201 a5201 @10",
        "< FA 5201 a1202 @10",
        "> A 1202 a5202 @10",
    ];
    let record_of = |first_late: usize, step: Duration| {
        let (mut tracker, mut records) = (Tracker::<()>::default(), Records::default());
        let mut now = Timestamp::from_parts(100_000, 0);
        let mut times = Vec::new();
        for (number, text) in steps.iter().enumerate() {
            let mut packet = segment(text, &mut now);
            if number >= first_late {
                packet.timestamp =
                    Timestamp::from_nanos(packet.timestamp.as_nanos() - step.as_nanos() as u64);
            }
            times.push(packet.timestamp);
            tracker.track(&packet, &mut records);
        }
        tracker.finish(&mut records);
        (records.0, times)
    };
    let (whole, _) = record_of(steps.len(), Duration::ZERO);
    let whole = whole[0].duration();
    for step in [1, 400, 1500, 3_600_000].map(Duration::from_millis) {
        for first_late in 1..steps.len() {
            let (records, times) = record_of(first_late, step);
            let [record] = &records[..] else { panic!("one flow") };
            assert_eq!(
                (record.start, record.end),
                (times[0], *times.iter().max().unwrap()),
                "{first_late} {step:?}"
            );
            assert!(record.duration() <= whole && whole - record.duration() <= step.min(whole));
            assert!(record.open_end <= record.end);
        }
    }
}

#[test]
fn the_flow_after_an_idle_timeout_keeps_the_direction_of_the_handshake() {
    let records = after_handshake(&[
        ("> PA 1001 a5001 l100", ""),
        ("< PA 5001 a1101 l10 @100000000", "end:idle_timeout:ShAD start to:established"),
        ("> A 1101 a5011 @10", ""),
        ("end", "end:forced_end:^dA"),
    ]);
    let directions: Vec<_> =
        records.iter().map(|record| (record.initiator, record.direction_evidence.name())).collect();
    assert_eq!(directions, [(CLIENT, "syn"), (CLIENT, "syn")]);
    // Without a handshake, there is nothing to keep.
    let records = run(&[
        ("> A 1001 a5001 l100", "start to:established"),
        ("< A 5001 a1101 l10 @100000000", "end:idle_timeout:D start to:established"),
    ]);
    assert_eq!((records[1].initiator, records[1].direction_evidence.name()), (CLIENT.other(), "first_seen"));
}
