//! Segments, acknowledgments and other calls for a few streams, with conflicting overlaps: each stream is delivered
//! once and in order, each octet is one that was sent at its offset, and memory stays below its limits.
use std::collections::HashMap;
use std::time::Duration;

use flowgauge::base::{Account, Budget, Limits, Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{
    OverflowPolicy, OverlapPolicy, Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent,
};

const STREAMS: usize = 4;

/// Sequence numbers of first octets: in the middle of the sequence space, and before each wraparound.
const FIRST: [u32; STREAMS] = [1000, 0_u32.wrapping_sub(40), 0x7fff_ffe0, 0_u32.wrapping_sub(3000)];

/// Octets that were sent in a stream, and the delivered part.
#[derive(Default)]
struct Expected {
    /// Sent octets by sequence number, as bits.
    sent: HashMap<u32, u8>,
    end: u64,
    has_fin: bool,
    is_over: bool,
}

/// An event that is kept until the call has returned and the stream can be inspected.
enum Seen {
    Chunk(u64, Vec<u8>),
    Gap(u64, u64),
    Fin(u64),
    Poisoned(u64),
    Resynchronized(u64, u64),
}

fn note(seen: &mut Vec<Seen>, event: StreamEvent<'_>) {
    match event {
        StreamEvent::Chunk(chunk) => seen.push(Seen::Chunk(chunk.offset, chunk.bytes.to_vec())),
        StreamEvent::Gap(gap) if gap.reason.name() == "resynchronized" => {
            seen.push(Seen::Resynchronized(gap.offset, gap.len));
        }
        StreamEvent::Gap(gap) => seen.push(Seen::Gap(gap.offset, gap.len)),
        StreamEvent::Fin { offset, .. } => seen.push(Seen::Fin(offset)),
        StreamEvent::Poisoned { offset } => seen.push(Seen::Poisoned(offset)),
        StreamEvent::Conflict(conflict) => {
            assert!(conflict.len > 0);
            for position in [conflict.old, conflict.new] {
                assert!(position.offset <= conflict.offset);
                assert!(conflict.offset + conflict.len <= position.offset + position.len, "{conflict:?}");
            }
        }
        StreamEvent::Repeated { len, .. } | StreamEvent::AfterFin { len, .. } => assert!(len > 0),
        _ => {}
    }
}

impl Expected {
    /// Checks events of a stream; `first` is the sequence number of the octet at offset zero.
    fn take(&mut self, seen: Vec<Seen>, first: Option<u32>) {
        for seen in seen {
            assert!(!self.is_over, "an event after the stream was poisoned");
            let at = self.end;
            match seen {
                Seen::Chunk(offset, bytes) => {
                    assert!(offset == at && !bytes.is_empty());
                    let first = first.expect("a stream with an initial sequence number");
                    for (seq, byte) in (offset..).map(|offset| first.wrapping_add(offset as u32)).zip(&bytes)
                    {
                        let sent = self.sent.get(&seq).copied().unwrap_or(0);
                        assert!(sent & 1 << byte != 0, "{byte} was never sent at {seq}");
                    }
                    self.end += bytes.len() as u64;
                }
                Seen::Gap(offset, len) => {
                    assert!(offset == at && len > 0);
                    self.end += len;
                }
                Seen::Resynchronized(offset, len) => {
                    assert!(offset == at && len > 0);
                    self.end += len;
                    self.has_fin = false;
                }
                Seen::Fin(offset) => {
                    assert_eq!(offset, at);
                    assert!(!std::mem::replace(&mut self.has_fin, true), "a second FIN");
                }
                Seen::Poisoned(offset) => {
                    assert_eq!(offset, at);
                    self.is_over = true;
                }
            }
        }
    }
}

struct Rig {
    reassembler: Reassembler<usize>,
    streams: [Stream; STREAMS],
    expected: [Expected; STREAMS],
    bytes_max: u64,
    budget: Budget,
}

impl Rig {
    fn first(&self, number: usize) -> Option<u32> {
        let stream = &self.streams[number];
        stream.next_seq().map(|next| next.0.wrapping_sub(stream.offset() as u32))
    }

    fn check(&mut self, number: usize, seen: Vec<Seen>) {
        let first = self.first(number);
        self.expected[number].take(seen, first);
        let (stream, expected) = (&self.streams[number], &self.expected[number]);
        assert_eq!(stream.offset(), expected.end);
        assert_eq!(stream.has_ended(), expected.has_fin);
        self.check_memory();
    }

    fn check_memory(&self) {
        self.reassembler.check_invariants();
        let held_bytes = self.reassembler.held_bytes();
        assert!(held_bytes <= self.bytes_max && held_bytes == self.budget.held_by(Account::Streams));
    }

    fn sweep(&mut self, now: Timestamp) {
        let mut count = 0;
        while let Some(number) = self.reassembler.next_due(now) {
            let mut seen = Vec::new();
            self.reassembler.skip(&mut self.streams[number], number, |event| note(&mut seen, event));
            self.check(number, seen);
            count += 1;
            assert!(count < 100_000, "the sweeps do not end");
        }
    }

    fn finish(&mut self, number: usize) {
        let (mut seen, first) = (Vec::new(), self.first(number));
        self.reassembler.finish(&mut self.streams[number], |event| note(&mut seen, event));
        self.expected[number].take(seen, first);
        self.expected[number] = Expected::default();
        self.check_memory();
    }
}

fn configured(head: &[u8; 5]) -> (ReassemblerConfig, Resources) {
    let mut config = ReassemblerConfig::default();
    config.overlap = OverlapPolicy::ALL[usize::from(head[0] & 7)];
    config.overflow = match head[0] >> 3 & 3 {
        0 | 1 => OverflowPolicy::Slide,
        2 => OverflowPolicy::Poison,
        _ => OverflowPolicy::DropNewest,
    };
    config.compared_len = [0, 0, 0, 16, 16, 4096, 8192, 20_000][usize::from(head[0] >> 5)];
    (config.ack_grace, config.skew_max) = (Duration::from_nanos(10), Duration::from_nanos(50));
    config.hole_timeout = Duration::from_nanos(300);
    let mut limits = Limits::DEFAULT;
    let cap = |octet: u8, scale: u64, default: u64| match octet {
        0..128 => default,
        octet => u64::from(octet - 128) * scale,
    };
    limits.stream_bytes_max = cap(head[1], 500, 1 << 20);
    limits.stream_side_bytes_max = cap(head[2], 150, 1 << 20);
    limits.stream_side_segment_count_max = cap(head[3], 1, 2048) as u32;
    let budget = Budget::new(cap(head[4], 500, 1 << 20));
    (config, Resources::new(limits).with_budget(budget))
}

pub fn run(data: &[u8]) {
    let Some((head, steps)) = data.split_first_chunk::<5>() else { return };
    let (config, resources) = configured(head);
    let bytes_max = resources.limits.stream_bytes_max;
    let budget = resources.budget.clone();
    let reassembler = Reassembler::new(config, &resources).expect("a valid configuration");
    let (streams, expected) = (Default::default(), Default::default());
    let mut rig = Rig { reassembler, streams, expected, bytes_max, budget: budget.clone() };
    let (mut now, mut long_count, mut leaked_count) = (1000_u64, 0, 0);
    for step in steps.chunks_exact(6).take(300) {
        let [what, position, far, len, flags, time] = [step[0], step[1], step[2], step[3], step[4], step[5]];
        now = match time {
            250.. => now.saturating_sub(5),
            200..250 => now + 301,
            _ => now + u64::from(time / 16),
        };
        let stamp = Timestamp::from_nanos(now);
        let number = usize::from(what & 3);
        let offset = match far {
            0..200 => u32::from(position),
            200..240 => u32::from(position) + u32::from(far - 200) * 70,
            240..250 => u32::from(position) << (far - 240) << 8,
            _ => u32::from(position) << 24,
        };
        let seq = SeqNum(FIRST[number].wrapping_add(offset).wrapping_sub(8));
        let mut seen = Vec::new();
        match what >> 2 {
            0..40 => {
                let mut count = u32::from(len & 63);
                if len >= 240 && long_count < 6 {
                    (long_count, count) = (long_count + 1, u32::from(len) * 20);
                }
                let control = match flags & 31 {
                    0 => TcpFlags::SYN,
                    1 | 2 => TcpFlags::FIN | TcpFlags::ACK,
                    3 => TcpFlags::RST,
                    4 => TcpFlags::SYN | TcpFlags::FIN,
                    _ => TcpFlags::ACK,
                };
                let at = seq.add(u32::from(control.contains(TcpFlags::SYN)));
                let (shape, fill) = (u32::from(flags >> 5 & 1), u32::from(flags >> 6));
                let bytes: Vec<u8> =
                    (0..count).map(|position| (at.add(position).0 / 3 * shape + fill) as u8 & 7).collect();
                let captured = match time & 15 {
                    0 => bytes.len() / 2,
                    1 => 0,
                    _ => bytes.len(),
                };
                for (position, byte) in (0..).zip(&bytes[..captured]) {
                    *rig.expected[number].sent.entry(at.add(position).0).or_default() |= 1 << byte;
                }
                let segment = Segment::new(seq, control, &bytes[..captured], stamp).with_wire_len(count);
                let stream = &mut rig.streams[number];
                rig.reassembler.segment(stream, number, &segment, |event| note(&mut seen, event));
                rig.check(number, seen);
            }
            40..52 => {
                let control = if flags & 15 == 0 { TcpFlags::SYN } else { TcpFlags::ACK };
                let segment = Segment::new(SeqNum(0), control, &[], stamp).with_ack(seq.add(len.into()));
                let stream = &mut rig.streams[number];
                rig.reassembler.acknowledgment(stream, number, &segment, |event| note(&mut seen, event));
                rig.check(number, seen);
            }
            52..58 => rig.sweep(stamp),
            58 | 59 => rig.finish(number),
            60 => rig.reassembler.stop(&mut rig.streams[number]),
            61 => {
                // The stream that is due is not skipped, so that its memory is released.
                let _ = rig.reassembler.next_due(stamp);
                rig.check_memory();
            }
            62 => {
                leaked_count += usize::from(rig.streams[number].is_held());
                (rig.streams[number], rig.expected[number]) = Default::default();
            }
            _ => {}
        }
    }
    for number in 0..STREAMS {
        rig.finish(number);
    }
    assert!(rig.reassembler.held_stream_count() <= leaked_count);
    drop(rig);
    assert_eq!(budget.held(), 0);
}
