//! Segments in, events out: one case per rule.

use std::time::Duration;

use flowgauge::base::{Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{
    GapReason, OverflowPolicy, Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent,
};

/// One direction that receives handwritten segments, and records events as text.
pub(crate) struct Rig {
    pub(crate) reassembler: Reassembler<u8>,
    pub(crate) stream: Stream,
    now: Timestamp,
    log: Vec<String>,
}

fn note(event: StreamEvent<'_>) -> String {
    match event {
        StreamEvent::Chunk(chunk) => format!("{}:{}", chunk.offset, String::from_utf8_lossy(chunk.bytes)),
        StreamEvent::Gap(gap) => format!("{}:gap {} {}", gap.offset, gap.len, gap.reason.name()),
        StreamEvent::Conflict(conflict) => format!(
            "{}:conflict {} kept {}, held {}+{}, new {}+{}",
            conflict.offset,
            conflict.len,
            if conflict.is_new_kept { "new" } else { "old" },
            conflict.old.offset,
            conflict.old.len,
            conflict.new.offset,
            conflict.new.len
        ),
        StreamEvent::Repeated { offset, len } => format!("{offset}:repeated {len}"),
        StreamEvent::AfterFin { offset, len } => format!("{offset}:after fin {len}"),
        StreamEvent::Fin { offset, .. } => format!("{offset}:fin"),
        StreamEvent::Poisoned { offset } => format!("{offset}:poisoned"),
        other => format!("{other:?}"),
    }
}

impl Rig {
    pub(crate) fn new(config: ReassemblerConfig, resources: &Resources) -> Self {
        let reassembler = Reassembler::new(config, resources).expect("a valid configuration");
        Self { reassembler, stream: Stream::default(), now: Timestamp::ZERO, log: vec![] }
    }

    pub(crate) fn with(change: impl FnOnce(&mut ReassemblerConfig, &mut Resources)) -> Self {
        let (mut config, mut resources) = (ReassemblerConfig::default(), Resources::default());
        change(&mut config, &mut resources);
        Self::new(config, &resources)
    }

    pub(crate) fn send(&mut self, seq: u32, flags: TcpFlags, text: &str, wire_len: usize) -> &mut Self {
        let segment =
            Segment::new(SeqNum(seq), flags, text.as_bytes(), self.now).with_wire_len(wire_len as u32);
        let log = &mut self.log;
        self.reassembler.segment(&mut self.stream, 7, &segment, |event| log.push(note(event)));
        self.reassembler.check_invariants();
        self
    }

    pub(crate) fn data(&mut self, seq: u32, text: &str) -> &mut Self {
        self.send(seq, TcpFlags::ACK, text, 0)
    }

    pub(crate) fn syn(&mut self, seq: u32, text: &str) -> &mut Self {
        self.send(seq, TcpFlags::SYN, text, 0)
    }

    pub(crate) fn fin(&mut self, seq: u32, text: &str) -> &mut Self {
        self.send(seq, TcpFlags::FIN | TcpFlags::ACK, text, 0)
    }

    pub(crate) fn acked_by(&mut self, flags: TcpFlags, ack: u32) -> &mut Self {
        let segment = Segment::new(SeqNum(0), flags, &[], self.now).with_ack(SeqNum(ack));
        let log = &mut self.log;
        self.reassembler.acknowledgment(&mut self.stream, 7, &segment, |event| log.push(note(event)));
        self.reassembler.check_invariants();
        self
    }

    pub(crate) fn acked(&mut self, ack: u32) -> &mut Self {
        self.acked_by(TcpFlags::ACK, ack)
    }

    pub(crate) fn after_ms(&mut self, ms: u64) -> &mut Self {
        self.now = Timestamp::from_nanos(self.now.as_nanos() + ms * 1_000_000);
        self
    }

    pub(crate) fn sweep(&mut self) -> &mut Self {
        while let Some(name) = self.reassembler.next_due(self.now) {
            assert_eq!(name, 7);
            let log = &mut self.log;
            self.reassembler.skip(&mut self.stream, 7, |event| log.push(note(event)));
            self.reassembler.check_invariants();
        }
        self
    }

    pub(crate) fn finish(&mut self) -> &mut Self {
        let log = &mut self.log;
        self.reassembler.finish(&mut self.stream, |event| log.push(note(event)));
        self.reassembler.check_invariants();
        assert_eq!(self.reassembler.held_stream_count(), 0);
        self
    }

    #[track_caller]
    pub(crate) fn emits(&mut self, expected: &[&str]) -> &mut Self {
        assert_eq!(self.log, expected);
        self.log.clear();
        self
    }
}

pub(crate) fn rig() -> Rig {
    Rig::with(|_, _| {})
}

#[test]
fn in_order_segments_are_delivered() {
    rig()
        .syn(99, "")
        .data(100, "abc")
        .data(103, "de")
        .fin(105, "f")
        .emits(&["0:abc", "3:de", "5:f", "6:fin"]);
}

#[test]
fn a_hole_is_filled() {
    rig()
        .syn(99, "")
        .data(103, "def")
        .data(106, "g")
        .emits(&[])
        .data(100, "abc")
        .emits(&["0:abc", "3:def", "6:g"]);
}

#[test]
fn two_holes_are_filled_back_to_front() {
    let mut rig = rig();
    rig.syn(99, "").data(106, "g").data(102, "c").data(103, "def").emits(&[]);
    rig.data(100, "ab").emits(&["0:ab", "2:c", "3:def", "6:g"]);
    assert!(!rig.stream.is_held());
}

#[test]
fn a_capture_may_begin_mid_stream() {
    rig().data(500, "abc").data(503, "d").emits(&["0:abc", "3:d"]);
    // A segment without octets shows the position of the stream.
    rig().data(500, "").data(503, "d").data(500, "abc").emits(&["0:abc", "3:d"]);
    // A keep-alive does not: its sequence number is one lower.
    rig().data(499, "").data(500, "a").emits(&["0:a"]);
    rig().data(500, "").data(499, "").data(500, "a").emits(&["0:a"]);
}

#[test]
fn a_syn_ack_gives_the_beginning_of_a_stream_without_syn() {
    rig().acked_by(TcpFlags::SYN | TcpFlags::ACK, 100).data(102, "c").data(100, "ab").emits(&["0:ab", "2:c"]);
}

#[test]
fn a_syn_may_carry_data_and_be_retransmitted() {
    rig().syn(99, "abc").syn(99, "abc").data(103, "d").emits(&["0:abc", "0:repeated 3", "3:d"]);
    // Another SYN is handled by another layer; a late SYN changes nothing.
    rig().data(100, "abc").syn(99, "").syn(7_000, "").data(103, "d").emits(&["0:abc", "3:d"]);
}

#[test]
fn a_syn_may_follow_its_acknowledgment() {
    rig().data(100, "").syn(99, "").data(100, "a").emits(&["0:a"]);
}

#[test]
fn acknowledged_missing_octets_are_a_gap_after_the_grace_period() {
    let mut rig = rig();
    rig.syn(99, "").data(103, "def").acked(106).after_ms(9).data(106, "g").sweep().emits(&[]);
    rig.after_ms(1).data(107, "h").emits(&["0:gap 3 acknowledged", "3:def", "6:g", "7:h"]);
    // Octets of the gap that arrive later are reported, and not delivered.
    rig.data(100, "abc").emits(&["0:repeated 3"]);
}

#[test]
fn a_sweep_ends_a_hole_without_another_segment() {
    let mut rig = rig();
    rig.syn(99, "").data(103, "def").acked(106).after_ms(10).sweep();
    rig.emits(&["0:gap 3 acknowledged", "3:def"]);
}

#[test]
fn acknowledgments_in_steps_end_holes_one_by_one() {
    let mut rig = rig();
    rig.syn(99, "").data(102, "c").data(104, "e").acked(102).after_ms(6).acked(105).after_ms(4).sweep();
    rig.emits(&["0:gap 2 acknowledged", "2:c"]);
    rig.after_ms(5).sweep().emits(&[]).after_ms(1).sweep().emits(&["3:gap 1 acknowledged", "4:e"]);
}

#[test]
fn acknowledged_octets_at_the_end_of_the_stream_are_a_gap() {
    rig()
        .syn(99, "")
        .data(100, "ab")
        .acked(110)
        .after_ms(49)
        .sweep()
        .emits(&["0:ab"])
        .after_ms(1)
        .sweep()
        .emits(&["2:gap 8 acknowledged"]);
    // One additional octet is treated as a FIN that was not captured, until data follows it.
    let mut rig = rig();
    rig.syn(99, "").data(100, "ab").acked(103).after_ms(5000).sweep().emits(&["0:ab"]);
    rig.data(103, "d").emits(&[]).after_ms(10).sweep().emits(&["2:gap 1 acknowledged", "3:d"]);
}

#[test]
fn acknowledged_octets_behind_a_hole_that_ends_may_still_be_late() {
    let mut rig = rig();
    rig.syn(99, "").data(100, "ab").data(104, "ef").acked(110).after_ms(10).sweep();
    rig.emits(&["0:ab", "2:gap 2 acknowledged", "4:ef"]);
    rig.after_ms(39).sweep().emits(&[]).data(106, "gh").emits(&["6:gh"]);
    rig.after_ms(1).sweep().emits(&["8:gap 2 acknowledged"]);
}

#[test]
fn an_acknowledgment_of_the_fin_is_not_a_gap() {
    rig().syn(99, "").fin(100, "ab").acked(103).after_ms(99).sweep().finish().emits(&["0:ab", "2:fin"]);
}

#[test]
fn implausible_acknowledgments_are_ignored() {
    let mut rig = rig();
    rig.syn(99, "").data(100, "ab").acked(102 + (17 << 20)).after_ms(99).sweep().data(102, "c");
    rig.emits(&["0:ab", "2:c"]);
    assert_eq!(rig.reassembler.stats().implausible_ack_count, 1);
}

#[test]
fn without_acknowledgments_a_deadline_ends_a_hole() {
    let mut rig = rig();
    rig.syn(99, "").data(103, "def").after_ms(2_999).sweep().emits(&[]);
    rig.after_ms(1).sweep().emits(&["0:gap 3 deadline", "3:def"]);
    // If acknowledgments do not go beyond the hole, the sender will retransmit its octets.
    let mut rig = self::rig();
    rig.syn(99, "").acked(100).data(103, "def").after_ms(60_000).sweep().emits(&[]);
    rig.data(100, "abc").emits(&["0:abc", "3:def"]);
}

#[test]
fn progress_renews_the_deadline() {
    let mut rig = rig();
    rig.syn(99, "").data(110, "k").after_ms(2_000).data(100, "ab").after_ms(2_000).sweep().emits(&["0:ab"]);
    rig.after_ms(1_000).data(111, "l").emits(&["2:gap 8 deadline", "10:k", "11:l"]);
}

#[test]
fn a_fin_may_precede_data() {
    rig().syn(99, "").fin(103, "d").data(100, "abc").emits(&["0:abc", "3:d", "4:fin"]);
    rig().syn(99, "").fin(103, "").data(100, "abc").emits(&["0:abc", "3:fin"]);
    rig().syn(99, "").fin(103, "").finish().emits(&["0:gap 3 end_of_stream", "3:fin"]);
}

#[test]
fn data_after_the_fin_is_reported_and_not_delivered() {
    let mut rig = rig();
    rig.syn(99, "").fin(100, "ab").data(103, "xy").data(101, "bXY").emits(&[
        "0:ab",
        "2:fin",
        "3:after fin 2",
        "2:after fin 2",
        "1:repeated 1",
    ]);
    // A keep-alive has the sequence number of the FIN, and so does a retransmitted FIN.
    rig.data(102, "0").fin(102, "").emits(&[]).fin(100, "ab").emits(&["0:repeated 2"]);
    rig.fin(110, "").emits(&[]);
    // The data is buffered before the FIN arrives.
    self::rig().syn(99, "").data(105, "xy").fin(100, "ab").emits(&["0:ab", "2:fin", "5:after fin 2"]);
}

#[test]
fn keep_alives_and_window_probes_are_distinguished() {
    // RFC 9293 section 3.8.4: the octet before the next one, with any content.
    let mut rig = Rig::with(|config, _| config.compared_len = 4096);
    rig.syn(99, "").data(100, "abc").data(102, "").data(102, "0").data(103, "d").emits(&["0:abc", "3:d"]);
    // A window probe is an octet of the stream, which is retransmitted later.
    rig.data(104, "e").data(104, "efg").emits(&["4:e", "4:repeated 1", "5:fg"]);
}

#[test]
fn resets_are_ignored() {
    rig().syn(99, "").send(103, TcpFlags::RST, "text", 0).data(100, "a").emits(&["0:a"]);
}

#[test]
fn a_truncated_segment_leaves_a_gap_of_known_length() {
    rig().syn(99, "").send(100, TcpFlags::ACK, "abc", 10).data(110, "k").emits(&[
        "0:abc",
        "3:gap 7 truncated",
        "10:k",
    ]);
    // Truncated segments may also be out of order; a whole copy fills the octets that a truncated one lacks.
    let mut rig = rig();
    rig.syn(99, "").send(102, TcpFlags::ACK, "cd", 5).data(107, "h").data(100, "ab");
    rig.emits(&["0:ab", "2:cd", "4:gap 3 truncated", "7:h"]);
    rig.send(110, TcpFlags::ACK, "kl", 5).data(110, "KLmno").data(108, "ij").emits(&[
        "10:repeated 2",
        "10:conflict 2 kept old, held 10+5, new 10+5",
        "12:repeated 3",
        "8:ij",
        "10:kl",
        "12:mno",
    ]);
}

#[test]
fn conflicts_report_the_offsets_of_both_segments() {
    let mut rig = rig();
    rig.syn(99, "")
        .data(104, "efgh")
        .data(103, "dEfG")
        .emits(&["4:repeated 3", "4:conflict 3 kept new, held 4+4, new 3+4"]);
    rig.data(100, "abc").emits(&["0:abc", "3:d", "4:EfG", "7:h"]);
    assert_eq!(
        (rig.reassembler.stats().conflict_count, rig.reassembler.stats().conflict_octet_count),
        (1, 3)
    );
}

#[test]
fn delivered_octets_are_compared_when_configured() {
    let mut rig = Rig::with(|config, _| config.compared_len = 4);
    rig.syn(99, "").data(100, "abcdefgh").data(100, "XbcdefgH").data(108, "i").emits(&[
        "0:abcdefgh",
        "0:repeated 8",
        // Only the last four octets are stored for comparison.
        "7:conflict 1 kept old, held 4+4, new 0+8",
        "8:i",
    ]);
    rig.finish();
    assert_eq!(rig.reassembler.held_bytes() % 2, 0);
}

#[test]
fn offsets_continue_when_sequence_numbers_wrap() {
    let mut rig = rig();
    rig.syn(u32::MAX - 2, "");
    let payload = vec![b'x'; 1 << 20];
    let mut seq = SeqNum(u32::MAX - 1);
    for _ in 0..3 * 4096 {
        let segment = Segment::new(seq, TcpFlags::ACK, &payload, Timestamp::ZERO);
        rig.reassembler.segment(&mut rig.stream, 7, &segment, |_| {});
        seq = seq.add(1 << 20);
    }
    rig.data(seq.0.wrapping_add(1), "b").data(seq.0, "a");
    let offset = 3_u64 << 32;
    rig.emits(&[&format!("{offset}:a"), &format!("{}:b", offset + 1)]);
}

#[test]
fn stray_segments_are_dropped_until_they_are_contiguous() {
    let mut rig = rig();
    let far = 110 + (1 << 30);
    rig.syn(99, "").data(100, "ab").data(far, "x").data(far + 5, "y").data(102, "c").emits(&["0:ab", "2:c"]);
    for number in 0..8 {
        rig.data(far + number, "z");
    }
    let len = far + 7 - 103;
    rig.emits(&[&format!("3:gap {len} resynchronized"), &format!("{}:z", 3 + len)]);
}

#[test]
fn the_slide_policy_ends_the_first_hole() {
    let mut rig = Rig::with(|_, resources| resources.limits.stream_side_segment_count_max = 2);
    rig.syn(99, "").data(102, "c").data(104, "e").emits(&[]);
    rig.data(106, "g").emits(&["0:gap 2 overflow", "2:c"]);
    rig.data(108, "i").emits(&["3:gap 1 overflow", "4:e"]);
    // A segment that itself begins at the first hole.
    rig.data(105, "f").emits(&["5:f", "6:g"]);
}

#[test]
fn the_poison_policy_stops_the_direction() {
    let mut rig = Rig::with(|config, resources| {
        resources.limits.stream_side_segment_count_max = 1;
        config.overflow = OverflowPolicy::Poison;
    });
    rig.syn(99, "").data(100, "a").data(102, "c").data(104, "e").emits(&["0:a", "1:poisoned"]);
    assert!(rig.stream.is_poisoned() && rig.stream.is_stopped());
    assert_eq!(rig.reassembler.held_stream_count(), 0);
    rig.data(101, "b").fin(102, "").acked(103).finish().emits(&[]);
}

#[test]
fn limits_of_zero_still_deliver_in_order_octets() {
    for overflow in [OverflowPolicy::Slide, OverflowPolicy::DropNewest, OverflowPolicy::Poison] {
        for which in 0..3 {
            let mut rig = Rig::with(|config, resources| {
                config.overflow = overflow;
                let limits = &mut resources.limits;
                match which {
                    0 => limits.stream_bytes_max = 0,
                    1 => limits.stream_side_bytes_max = 0,
                    _ => limits.stream_side_segment_count_max = 0,
                }
            });
            rig.syn(99, "").data(100, "a").data(101, "b").emits(&["0:a", "1:b"]).data(103, "d");
            match overflow {
                OverflowPolicy::Slide => rig.emits(&["2:gap 1 overflow", "3:d"]),
                OverflowPolicy::DropNewest => rig.emits(&[]).data(102, "c").emits(&["2:c"]),
                _ => rig.emits(&["2:poisoned"]),
            };
        }
    }
}

#[test]
fn a_dropped_segment_is_a_gap_once_it_is_acknowledged() {
    let mut rig = Rig::with(|config, resources| {
        resources.limits.stream_side_bytes_max = 0;
        config.overflow = OverflowPolicy::DropNewest;
    });
    rig.syn(99, "").data(103, "def").acked(106).after_ms(10).data(106, "g");
    rig.emits(&["0:gap 6 acknowledged", "6:g"]);
    assert_eq!(rig.reassembler.stats().refused_count, 1);
}

/// A segment beyond the largest window is not of the stream, also if no octets are held.
#[test]
fn a_segment_beyond_the_largest_window_is_a_stray_and_not_dropped() {
    for (ahead, counts) in
        [((1 << 30) - 1, (1, 0)), (1 << 30, (0, 1)), ((1 << 30) + 1, (0, 1)), (1 << 31, (0, 1))]
    {
        let mut rig = Rig::with(|config, resources| {
            resources.limits.stream_side_bytes_max = 0;
            config.overflow = OverflowPolicy::DropNewest;
        });
        rig.syn(99, "").acked(100).data(100_u32.wrapping_add(ahead), "abc").emits(&[]);
        let stats = rig.reassembler.stats();
        assert_eq!((stats.refused_count, stats.stray_count), counts, "{ahead} octets ahead");
    }
}

#[test]
fn a_stopped_stream_ignores_segments() {
    let mut rig = rig();
    rig.syn(99, "").data(102, "c");
    rig.reassembler.stop(&mut rig.stream);
    rig.reassembler.check_invariants();
    rig.data(100, "ab").acked(103).sweep().finish().emits(&[]);
}

#[test]
fn an_abandoned_stream_is_released() {
    let mut rig = rig();
    rig.syn(99, "").data(102, "c").after_ms(4_000);
    assert_eq!(rig.reassembler.next_due(rig.now), Some(7));
    assert_eq!(rig.reassembler.next_due(rig.now), None);
    assert_eq!((rig.reassembler.stats().orphaned_count, rig.reassembler.held_stream_count()), (1, 0));
    // The stream finds that its handle is stale, and continues.
    rig.data(103, "d").data(100, "ab").emits(&["0:ab"]).data(102, "c").emits(&["2:c", "3:d"]);
}

#[test]
fn the_end_of_the_stream_reports_missing_octets() {
    let mut rig = rig();
    rig.syn(99, "").data(102, "c").data(105, "f").acked(110).finish();
    rig.emits(&["0:gap 2 end_of_stream", "2:c", "3:gap 2 end_of_stream", "5:f", "6:gap 4 end_of_stream"]);
    assert_eq!(rig.reassembler.stats().gap_count(GapReason::EndOfStream), 3);
    assert_eq!(rig.reassembler.stats().gap_octet_count, 8);
    // The stream can be used again, for the next connection of these ports.
    rig.syn(7, "").data(8, "x").emits(&["0:x"]);
}

#[test]
fn the_grace_period_and_the_deadline_are_configurable() {
    let mut rig = Rig::with(|config, _| {
        config.ack_grace = Duration::ZERO;
        config.hole_timeout = Duration::MAX;
    });
    rig.syn(99, "").data(102, "c").after_ms(1 << 40).sweep().emits(&[]).acked(103).sweep();
    rig.emits(&["0:gap 2 acknowledged", "2:c"]);
}

#[test]
fn a_fin_acknowledged_before_it_arrives_is_not_an_octet() {
    let mut rig = rig();
    rig.syn(99, "").acked(103).fin(100, "ab").after_ms(20).data(100, "ab").sweep().finish();
    rig.emits(&["0:ab", "2:fin", "0:repeated 2"]);
    // A FIN that did not arrive is not an octet either, although a hole precedes it.
    for is_swept in [false, true] {
        let mut rig = self::rig();
        rig.syn(99, "").data(102, "c").acked(104).after_ms(20);
        let reason = if is_swept {
            rig.sweep().emits(&["0:gap 2 acknowledged", "2:c"]).finish()
        } else {
            rig.finish()
        };
        reason.emits(if is_swept { &[] } else { &["0:gap 2 end_of_stream", "2:c"] });
    }
}

#[test]
fn a_later_acknowledgment_applies_after_the_first_is_reached() {
    let mut rig = rig();
    rig.syn(99, "").acked(105).after_ms(1).acked(110).data(100, "abcdef").after_ms(50).sweep();
    rig.emits(&["0:abcdef", "6:gap 4 acknowledged"]);
}

#[test]
fn consecutive_deadlines_count_from_each_other() {
    let mut rig = rig();
    rig.syn(99, "").data(101, "b").data(103, "d").data(105, "f").after_ms(8_999).data(107, "h");
    rig.emits(&["0:gap 1 deadline", "1:b", "2:gap 1 deadline", "3:d"]);
    rig.after_ms(1).sweep().emits(&["4:gap 1 deadline", "5:f"]);
    rig.after_ms(3_000).sweep().emits(&["6:gap 1 deadline", "7:h"]);
    // A hole that opens after all earlier ones have ended has its own deadline.
    rig.data(109, "j").after_ms(4_000).data(111, "l").emits(&["8:gap 1 deadline", "9:j"]);
    rig.after_ms(2_999).sweep().emits(&[]).after_ms(1).sweep().emits(&["10:gap 1 deadline", "11:l"]);
}

#[test]
fn a_stale_handle_does_not_affect_other_streams() {
    let mut rig = rig();
    rig.syn(99, "").data(102, "c").after_ms(4_000);
    // The stream is returned as due, is not processed, and is released; its slot is reused by another stream.
    assert_eq!((rig.reassembler.next_due(rig.now), rig.reassembler.next_due(rig.now)), (Some(7), None));
    let mut stale = std::mem::take(&mut rig.stream);
    rig.syn(99, "").data(102, "c");
    rig.reassembler.finish(&mut stale, |event| panic!("{event:?}"));
    rig.reassembler.check_invariants();
    rig.data(100, "ab").emits(&["0:ab", "2:c"]);
}

#[test]
fn sweeps_end_when_memory_is_short_and_nothing_is_buffered() {
    let mut rig = rig();
    let bytes_max = rig.syn(99, "").acked(105).reassembler.held_bytes() + 100;
    let mut rig = Rig::with(|_, resources| resources.limits.stream_bytes_max = bytes_max);
    for ack in [101, 105] {
        rig.syn(99, "").acked(ack);
        assert!(rig.stream.is_held());
        rig.sweep().finish();
    }
    rig.emits(&["0:gap 5 overflow"]);
}

#[test]
fn a_stream_with_continuous_loss_does_not_delay_others() {
    let mut reassembler: Reassembler<u8> = Reassembler::default();
    let (mut lossy, mut quiet) = (Stream::default(), Stream::default());
    let at = |ms: u64| Timestamp::from_nanos(ms * 1_000_000);
    let acked = |ack: u32, ms| Segment::new(SeqNum(0), TcpFlags::ACK, &[], at(ms)).with_ack(SeqNum(ack));
    let syn = Segment::new(SeqNum(99), TcpFlags::SYN, &[], at(0));
    reassembler.segment(&mut lossy, 1, &syn, |_| {});
    reassembler.segment(&mut quiet, 2, &syn, |_| {});
    reassembler.acknowledgment(&mut lossy, 1, &acked(110, 0), |_| {});
    reassembler.acknowledgment(&mut quiet, 2, &acked(110, 1), |_| {});
    let mut ended_ms = None;
    for ms in 2..100 {
        // Each acknowledgment covers octets that never arrive.
        reassembler.acknowledgment(&mut lossy, 1, &acked(110 + 10 * ms as u32, ms), |_| {});
        while let Some(name) = reassembler.next_due(at(ms)) {
            let stream = if name == 1 { &mut lossy } else { &mut quiet };
            reassembler.skip(stream, name, |_| {});
            ended_ms = ended_ms.or((name == 2).then_some(ms));
        }
    }
    assert_eq!(ended_ms, Some(51));
}

#[test]
fn a_fin_within_buffered_octets_ends_the_stream_there() {
    let mut rig = rig();
    rig.syn(99, "").data(103, "defgh").fin(105, "").emits(&[]);
    rig.data(100, "abc").emits(&["0:abc", "3:de", "5:fin", "5:after fin 3"]);
    assert!(!rig.stream.is_held());
    // A FIN before all buffered octets.
    let mut rig = self::rig();
    rig.syn(99, "").data(110, "k").fin(103, "").after_ms(3_000).sweep();
    rig.emits(&["0:gap 3 deadline", "3:fin", "10:after fin 1"]);
    let mut rig = self::rig();
    rig.syn(99, "").data(110, "k").fin(103, "").finish();
    rig.emits(&["0:gap 3 end_of_stream", "3:fin", "10:after fin 1"]);
}
