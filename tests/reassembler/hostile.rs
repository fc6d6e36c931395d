//! Handwritten hostile input: memory stays below its limits, each outcome has its own counter, and the cost of a
//! segment does not grow with the amount of buffered data.

use flowgauge::base::{Account, Budget, Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{
    GapReason, OverflowPolicy, OverlapPolicy, Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent,
};

fn new_reassembler(
    change: impl FnOnce(&mut ReassemblerConfig, &mut Resources),
) -> (Reassembler<u32>, Budget) {
    let (mut config, mut resources) = (ReassemblerConfig::default(), Resources::default());
    change(&mut config, &mut resources);
    let budget = resources.budget.clone();
    (Reassembler::new(config, &resources).expect("a valid configuration"), budget)
}

fn data(seq: u32, bytes: &[u8]) -> Segment<'_> {
    Segment::new(SeqNum(seq), TcpFlags::ACK, bytes, Timestamp::ZERO)
}

fn opened(reassembler: &mut Reassembler<u32>, name: u32) -> Stream {
    let mut stream = Stream::default();
    let syn = Segment::new(SeqNum(99), TcpFlags::SYN, &[], Timestamp::ZERO);
    reassembler.segment(&mut stream, name, &syn, |event| panic!("{event:?}"));
    stream
}

/// Returns the number of pieces that were examined or moved; zero in release builds, which do not count them.
fn steps<R>(reassembler: &mut Reassembler<u32>, run: impl FnOnce(&mut Reassembler<u32>) -> R) -> (u64, R) {
    let before = reassembler.step_count();
    let result = run(reassembler);
    (reassembler.step_count() - before, result)
}

#[test]
fn memory_is_bounded_with_out_of_order_segments_on_many_streams() {
    const BYTES_MAX: u64 = 2 << 20;
    let count = if cfg!(debug_assertions) { 20_000 } else { 200_000 };
    for overflow in [OverflowPolicy::Slide, OverflowPolicy::Poison, OverflowPolicy::DropNewest] {
        for payload_len in [1, 1460] {
            let (mut reassembler, budget) = new_reassembler(|config, resources| {
                (config.overflow, resources.limits.stream_bytes_max) = (overflow, BYTES_MAX);
            });
            let payload = vec![7; payload_len];
            let (mut streams, mut octet_count, mut gap_count) = (Vec::new(), 0, 0);
            let mut out = |event: StreamEvent<'_>| match event {
                StreamEvent::Chunk(chunk) => octet_count += chunk.bytes.len(),
                StreamEvent::Gap(_) => gap_count += 1,
                _ => {}
            };
            for name in 0..count {
                let mut stream = opened(&mut reassembler, name);
                reassembler.segment(&mut stream, name, &data(100 + (1 << 29), &payload), &mut out);
                assert!(reassembler.held_bytes() <= BYTES_MAX);
                streams.push(stream);
            }
            reassembler.check_invariants();
            let stats = reassembler.stats();
            let abandoned_count = match overflow {
                OverflowPolicy::Slide => stats.gap_count(GapReason::Overflow),
                OverflowPolicy::Poison => stats.poisoned_count,
                _ => stats.refused_count,
            };
            assert_eq!(stats.held_segment_count + abandoned_count, count.into(), "{overflow:?}");
            assert!(stats.held_segment_count > 500 && abandoned_count > 1000, "{stats:?}");
            assert!(stats.held_bytes_max <= BYTES_MAX && budget.peak() <= BYTES_MAX);
            // Memory is short, and sweeps release memory: each call ends one hole.
            let mut swept_count = 0;
            while let Some(name) = reassembler.next_due(Timestamp::ZERO) {
                reassembler.skip(&mut streams[name as usize], name, &mut out);
                swept_count += 1;
                assert!(swept_count <= count);
            }
            assert!(swept_count > 0 && reassembler.held_bytes() <= BYTES_MAX / 8 * 7);
            for stream in &mut streams {
                reassembler.finish(stream, &mut out);
            }
            if overflow == OverflowPolicy::Slide {
                assert_eq!((octet_count, gap_count), (count as usize * payload_len, count));
            }
            assert_eq!(reassembler.held_stream_count(), 0);
            drop(reassembler);
            assert_eq!(budget.held_by(Account::Streams), 0);
        }
    }
}

#[test]
fn an_exhausted_budget_still_delivers_in_order_octets() {
    let (mut reassembler, budget) = new_reassembler(|_, resources| resources.budget = Budget::new(1 << 20));
    assert!(budget.charge(Account::Flows, budget.limit()));
    let mut stream = opened(&mut reassembler, 0);
    let mut reported = Vec::new();
    for segment in [data(100, b"ab"), data(104, b"ef"), data(106, b"gh"), data(102, b"cd")] {
        reassembler.segment(&mut stream, 0, &segment, |event| reported.push(format!("{event:?}")));
    }
    assert_eq!((reassembler.held_bytes(), reassembler.stats().gap_count(GapReason::Overflow)), (0, 1));
    assert_eq!((stream.offset(), reported.len(), reassembler.stats().repeated_count), (8, 5, 1));
}

#[test]
fn a_flood_of_single_octets_has_bounded_memory_and_cost() {
    let (mut reassembler, _) = new_reassembler(|_, _| {});
    let mut stream = opened(&mut reassembler, 0);
    let (mut chunk_end, mut step_count_max) = (0, 0);
    // Every second octet is sent, so that no segments are contiguous.
    for number in 0..30_000_u32 {
        let (count, ()) = steps(&mut reassembler, |reassembler| {
            reassembler.segment(&mut stream, 0, &data(102 + 2 * number, b"x"), |event| match event {
                StreamEvent::Chunk(chunk) => chunk_end = chunk.end(),
                StreamEvent::Gap(gap) => assert_eq!(gap.reason, GapReason::Overflow),
                other => panic!("{other:?}"),
            });
        });
        step_count_max = step_count_max.max(count);
        assert!(reassembler.held_bytes() < 256 << 10, "single octets share blocks");
    }
    assert!(step_count_max < 16, "{step_count_max} steps for a segment");
    assert_eq!((chunk_end, stream.offset()), (2 * (30_000 - 2048) + 1, chunk_end));
    assert_eq!(reassembler.stats().gap_count(GapReason::Overflow), 30_000 - 2048);
    // In descending order, each octet before all buffered ones.
    let mut stream = opened(&mut reassembler, 1);
    let (count, ()) = steps(&mut reassembler, |reassembler| {
        for number in (0..2048_u32).rev() {
            reassembler.segment(&mut stream, 1, &data(102 + 2 * number, b"x"), |event| panic!("{event:?}"));
        }
    });
    assert!(count < 16 * 2048, "{count} steps for 2048 segments");
}

/// A segment that overlaps all buffered segments takes a number of steps in proportion to the number of pieces,
/// repeatedly and for each policy.
#[test]
fn overlapping_segments_have_bounded_cost() {
    const PIECES: u32 = 1000;
    for policy in OverlapPolicy::ALL {
        for gap_len in [0, 1] {
            let (mut reassembler, _) = new_reassembler(|config, _| config.overlap = policy);
            let mut stream = opened(&mut reassembler, 0);
            for number in 0..PIECES {
                let segment = data(110 + (1 + gap_len) * number, b"a");
                reassembler.segment(&mut stream, 0, &segment, |event| panic!("{event:?}"));
            }
            // The first segment may fill holes; each piece that it creates moves others, but only once.
            let mut bytes = vec![b'b'; 4000];
            for round in 0..20_u32 {
                bytes.fill(b'b' + round as u8);
                // Some segments begin with the buffered octets, some before them, and each ends later than the previous
                // one.
                let begin = 110 - round % 3;
                let end = 110 + PIECES * (1 + gap_len) + round;
                let segment = data(begin, &bytes[..(end - begin) as usize]);
                let (mut event_count, is_first) = (0, round == 0);
                let (count, ()) = steps(&mut reassembler, |reassembler| {
                    reassembler.segment(&mut stream, 0, &segment, |_| event_count += 1);
                });
                let piece_count = u64::from(2 * PIECES) + 40;
                assert!(event_count <= 2 * piece_count);
                assert!(is_first || count <= 4 * piece_count, "{policy}, {round}: {count} steps");
                assert!(count <= piece_count * piece_count / 4, "{policy}: {count} steps");
            }
            reassembler.check_invariants();
            assert!(reassembler.stats().conflict_octet_count >= u64::from(PIECES) * 15, "{policy}");
            assert!(reassembler.held_bytes() <= 4 << 20);
        }
    }
}

#[test]
fn the_cost_of_a_segment_does_not_depend_on_other_streams() {
    let run = |other_count: u32| {
        let (mut reassembler, _) = new_reassembler(|_, _| {});
        let mut others: Vec<Stream> = (0..other_count).map(|name| opened(&mut reassembler, name)).collect();
        for (name, stream) in (0..).zip(&mut others) {
            for number in 0..5 {
                reassembler.segment(stream, name, &data(200 + 10 * number, b"wait"), |_| {});
            }
        }
        let mut stream = opened(&mut reassembler, other_count);
        steps(&mut reassembler, |reassembler| {
            for seq in [130, 120, 125, 110, 100] {
                reassembler.segment(&mut stream, other_count, &data(seq, b"0123456789"), |_| {});
            }
        })
        .0
    };
    assert_eq!(run(0), run(5000));
}

#[test]
fn random_fin_and_rst_flags_end_each_stream_once() {
    let (mut reassembler, budget) = new_reassembler(|_, _| {});
    let mut random = 5_u64;
    let mut below = |count: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) % count) as u32
    };
    let (mut fin_count, mut after_count) = (0, 0);
    for name in 0..2000 {
        let mut stream = opened(&mut reassembler, name);
        let (mut end, mut fin_end) = (0, None);
        let mut out = |event: StreamEvent<'_>| match event {
            StreamEvent::Chunk(chunk) => {
                assert!(chunk.offset == end && fin_end.is_none(), "nothing is delivered after the FIN");
                end = chunk.end();
            }
            StreamEvent::Gap(gap) => {
                assert!(gap.offset == end && fin_end.is_none());
                end += gap.len;
            }
            StreamEvent::Fin { offset, .. } => {
                assert_eq!((offset, fin_end.replace(offset)), (end, None), "one FIN");
                fin_count += 1;
            }
            StreamEvent::AfterFin { offset, len } => {
                assert!(len > 0 && offset >= fin_end.unwrap_or(0));
                after_count += 1;
            }
            _ => {}
        };
        for _ in 0..30 {
            let flags = [TcpFlags::ACK, TcpFlags::FIN, TcpFlags::RST, TcpFlags::RST | TcpFlags::FIN];
            let mut segment = data(100 + below(40), &b"0123456789"[..below(11) as usize]);
            segment.flags = flags[below(4) as usize];
            reassembler.segment(&mut stream, name, &segment, &mut out);
        }
        reassembler.check_invariants();
        reassembler.finish(&mut stream, &mut out);
    }
    assert_eq!((fin_count, reassembler.held_stream_count()), (2000, 0));
    assert!(after_count > 10_000 && reassembler.stats().after_fin_count == after_count);
    assert!(budget.peak() < 1 << 20);
}
