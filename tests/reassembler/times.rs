//! Times of events: a gap has the time at which it was due, independently of when it is noticed; octets have the time
//! of the packet that made them deliverable.

use flowgauge::base::{Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent};

/// Segment, acknowledgment or sweep at a time in milliseconds.
#[derive(Clone, Copy)]
enum Step {
    Data(u64, u32, &'static str),
    Truncated(u64, u32, &'static str, u32),
    Fin(u64, u32),
    Ack(u64, u32),
    Sweep(u64),
}

use Step::{Ack, Data, Fin, Sweep, Truncated};

/// Returns the events with their times in milliseconds.
fn reported(steps: &[Step], end_ms: u64) -> Vec<String> {
    let mut reassembler =
        Reassembler::new(ReassemblerConfig::default(), &Resources::default()).expect("a valid configuration");
    let (mut stream, mut log) = (Stream::default(), Vec::new());
    let at = |ms: u64| Timestamp::from_nanos(ms * 1_000_000);
    let ms = |timestamp: Timestamp| timestamp.as_nanos() / 1_000_000;
    let mut note = |event: StreamEvent<'_>| match event {
        StreamEvent::Chunk(chunk) => {
            log.push(format!("{} @{}", String::from_utf8_lossy(chunk.bytes), ms(chunk.timestamp)));
        }
        StreamEvent::Gap(gap) => {
            log.push(format!("gap {} {} @{}", gap.len, gap.reason.name(), ms(gap.timestamp)))
        }
        StreamEvent::Fin { timestamp, .. } => log.push(format!("fin @{}", ms(timestamp))),
        _ => {}
    };
    reassembler.segment(&mut stream, 7, &Segment::new(SeqNum(99), TcpFlags::SYN, &[], at(0)), &mut note);
    for step in steps {
        match *step {
            Data(time, seq, text) => {
                let segment = Segment::new(SeqNum(seq), TcpFlags::ACK, text.as_bytes(), at(time));
                reassembler.segment(&mut stream, 7, &segment, &mut note);
            }
            Truncated(time, seq, text, len) => {
                let segment = Segment::new(SeqNum(seq), TcpFlags::ACK, text.as_bytes(), at(time));
                reassembler.segment(&mut stream, 7, &segment.with_wire_len(len), &mut note);
            }
            Fin(time, seq) => {
                let segment = Segment::new(SeqNum(seq), TcpFlags::FIN, &[], at(time));
                reassembler.segment(&mut stream, 7, &segment, &mut note);
            }
            Ack(time, ack) => {
                let segment = Segment::new(SeqNum(1), TcpFlags::ACK, &[], at(time)).with_ack(SeqNum(ack));
                reassembler.acknowledgment(&mut stream, 7, &segment, &mut note);
            }
            Sweep(time) => {
                while reassembler.next_due(at(time)).is_some() {
                    reassembler.skip(&mut stream, 7, &mut note);
                }
            }
        }
    }
    reassembler.finish_at(at(end_ms), &mut stream, &mut note);
    log
}

/// Checks that the events are the same without sweeps, with one sweep at each step, and with one sweep each
/// millisecond.
#[track_caller]
fn check(steps: &[Step], end_ms: u64, expected: &[&str]) {
    let time = |step: &Step| match *step {
        Data(time, ..) | Truncated(time, ..) | Fin(time, _) | Ack(time, _) | Sweep(time) => time,
    };
    let (mut swept_per_step, mut swept_per_millisecond, mut before) = (Vec::new(), Vec::new(), 0);
    for step in steps {
        swept_per_step.extend([Sweep(time(step)), *step]);
        swept_per_millisecond.extend((before..=time(step)).map(Sweep));
        swept_per_millisecond.push(*step);
        before = before.max(time(step));
    }
    swept_per_millisecond.extend((before..=end_ms).map(Sweep));
    for steps in [steps, &swept_per_step, &swept_per_millisecond] {
        assert_eq!(reported(steps, end_ms), expected);
    }
}

#[test]
fn octets_have_the_time_of_the_packet_that_made_them_deliverable() {
    check(&[Data(1, 100, "ab"), Data(2, 102, "c")], 9, &["ab @1", "c @2"]);
    // The segment that fills the hole is later than the buffered ones, or was captured before them and read after them.
    check(&[Data(2, 102, "c"), Data(3, 103, "d"), Data(5, 100, "ab")], 9, &["ab @5", "c @5", "d @5"]);
    check(&[Data(8, 102, "c"), Data(9, 103, "d"), Data(5, 100, "ab")], 9, &["ab @5", "c @8", "d @9"]);
}

#[test]
fn a_gap_has_the_time_at_which_it_was_due() {
    // The octets are acknowledged at 4 ms, and due after the grace period of 10 ms; the buffered octets were captured
    // before that.
    let lossy = [Data(2, 102, "c"), Data(3, 103, "d"), Ack(4, 104)];
    let reported = ["gap 2 acknowledged @14", "c @2", "d @3"];
    check(&lossy, 14, &reported);
    check(&lossy, 9000, &reported);
    check(
        &[&lossy[..], &[Data(50, 104, "e")]].concat(),
        60,
        &["gap 2 acknowledged @14", "c @2", "d @3", "e @50"],
    );
    // Two acknowledgments, each with a gap of its own.
    check(
        &[Data(2, 102, "c"), Data(3, 104, "e"), Ack(4, 103), Ack(9, 105), Data(40, 105, "f")],
        50,
        &["gap 2 acknowledged @14", "c @2", "gap 1 acknowledged @19", "e @3", "f @40"],
    );
    // Without acknowledgments, three seconds for each hole.
    check(
        &[Data(2, 102, "c"), Data(3, 104, "e"), Data(7000, 105, "f")],
        7500,
        &["gap 2 deadline @3002", "c @2", "gap 1 deadline @6002", "e @3", "f @7000"],
    );
}

#[test]
fn truncation_gaps_and_final_gaps_have_the_time_of_their_cause() {
    check(&[Truncated(3, 100, "ab", 5), Data(4, 105, "f")], 9, &["ab @3", "gap 3 truncated @3", "f @4"]);
    check(&[Truncated(3, 102, "cd", 5), Data(4, 100, "ab")], 9, &["ab @4", "cd @4", "gap 3 truncated @4"]);
    check(&[Data(3, 102, "c"), Ack(4, 101)], 9, &["gap 2 end_of_stream @9", "c @3"]);
}

#[test]
fn the_fin_has_the_time_of_its_packet_or_of_the_octets_before_it() {
    check(&[Data(1, 100, "ab"), Fin(2, 102)], 9, &["ab @1", "fin @2"]);
    check(&[Fin(2, 102), Data(3, 100, "ab")], 9, &["ab @3", "fin @3"]);
    check(&[Data(2, 102, "c"), Fin(3, 103), Ack(4, 104)], 90, &["gap 2 acknowledged @14", "c @2", "fin @3"]);
}
