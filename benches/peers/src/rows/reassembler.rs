//! Stream reassembly of segments of 1500 octets.

use std::hint::black_box;

use flowgauge::base::{Limits, Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{
    Buffered, BufferedOverflow, OverflowPolicy, Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent,
};
use flowscope::{BufferedReassembler, Reassembler as _, SegmentBufferReassembler};

use super::{FLOWGAUGE, FLOWSCOPE, MakeRow};
use crate::cases::{CLIENT, SERVER, tcp};
use crate::gopacket::Gopacket;
use crate::interleave::{Contender, Row};

const LEN: u32 = 1500;

pub(super) fn rows() -> Vec<MakeRow> {
    let row = |id: &str, contenders: fn() -> Vec<Contender>, work: Option<&'static str>| -> MakeRow {
        let make = move |gopacket: Option<&Gopacket>| {
            let mut contenders = contenders();
            if let (Some(gopacket), Some(work)) = (gopacket, work) {
                let frame = tcp((CLIENT, 40_000), (SERVER, 443), &payload()[..1400]);
                contenders.push(gopacket.contender(work, &[frame], 0));
            }
            Row::new(contenders)
        };
        (format!("reassembler/{id}"), Box::new(make))
    };
    vec![
        row(
            "in_order_1500_uncapped",
            || vec![collecting(usize::MAX, 1_000_000), their_collecting(None, 1_000_000)],
            None,
        ),
        row(
            "in_order_1500_capped_1m",
            || vec![collecting(1 << 20, 512 << 10), their_collecting(Some(1 << 20), 512 << 10)],
            None,
        ),
        row("in_order_1500_borrowed", || vec![borrowing(&[0])], Some("assemble_in_order")),
        row(
            "sliding_window_overflow",
            || vec![collecting(100, usize::MAX), their_collecting(Some(100), usize::MAX)],
            None,
        ),
        row("ooo_drops", || vec![dropping(OverflowPolicy::DropNewest), their_dropping(false)], None),
        row(
            "out_of_order_1500",
            || vec![borrowing(&[1, 0]), their_out_of_order()],
            Some("assemble_out_of_order"),
        ),
        row("drop_flow_poisoned", || vec![dropping(OverflowPolicy::Poison), their_dropping(true)], None),
    ]
}

fn payload() -> Vec<u8> {
    (0..LEN).map(|at| (at / 7) as u8).collect()
}

/// A stream that expects the octet with sequence number 0, and the payload of its segments.
struct Ours {
    reassembler: Reassembler<u32>,
    stream: Stream,
    payload: Vec<u8>,
    seq: u32,
    octet_count: u64,
}

impl Ours {
    fn new(config: ReassemblerConfig, limits: Limits) -> Self {
        let mut reassembler =
            Reassembler::new(config, &Resources::new(limits)).expect("a valid configuration");
        let mut stream = Stream::default();
        let syn = Segment::new(SeqNum(u32::MAX), TcpFlags::SYN, &[], Timestamp::ZERO);
        reassembler.segment(&mut stream, 0, &syn, |_| {});
        let answer = Segment::new(SeqNum(0), TcpFlags::ACK, &[], Timestamp::ZERO).with_ack(SeqNum(0));
        reassembler.acknowledgment(&mut stream, 0, &answer, |_| {});
        Self { reassembler, stream, payload: payload(), seq: 0, octet_count: 0 }
    }

    #[inline]
    fn feed(&mut self, seq: u32, each: impl FnMut(StreamEvent<'_>)) {
        let payload = black_box(self.payload.as_slice());
        let segment = Segment::new(SeqNum(seq), TcpFlags::ACK, payload, Timestamp::ZERO);
        self.reassembler.segment(&mut self.stream, 0, &segment, each);
    }
}

/// Collects octets in a buffer that is emptied when it is longer than `taken_above`.
fn collecting(cap: usize, taken_above: usize) -> Contender {
    let buffered = Buffered::with_cap(cap, BufferedOverflow::Slide);
    let state = (Ours::new(ReassemblerConfig::default(), Limits::DEFAULT), buffered, 0_u64);
    let step = move |(ours, buffered, taken_count): &mut (Ours, Buffered, u64)| {
        ours.feed(ours.seq, |event| buffered.push(&event));
        ours.seq = ours.seq.wrapping_add(LEN);
        if buffered.len() > taken_above {
            *taken_count += black_box(buffered.take()).len() as u64;
        }
    };
    Contender::new(FLOWGAUGE, state, step, |(ours, buffered, taken_count), done| {
        let octet_count = *taken_count + buffered.len() as u64 + buffered.dropped_octet_count();
        assert_eq!((ours.stream.offset(), octet_count), (done * 1500, done * 1500));
    })
}

fn their_collecting(cap: Option<usize>, taken_above: usize) -> Contender {
    let reassembler = BufferedReassembler::new();
    let reassembler = match cap {
        Some(cap) => reassembler.with_max_buffer(cap),
        None => reassembler,
    };
    type State = (BufferedReassembler, Vec<u8>, u32, u64);
    let step = move |(reassembler, payload, seq, taken_count): &mut State| {
        reassembler.segment(*seq, black_box(payload), flowscope::Timestamp::default());
        *seq = seq.wrapping_add(LEN);
        if reassembler.buffered_len() > taken_above {
            *taken_count += black_box(reassembler.take()).len() as u64;
        }
    };
    let state: State = (reassembler, payload(), 0, 0);
    Contender::new(FLOWSCOPE, state, step, |(reassembler, _, _, taken_count), done| {
        let kept_count = *taken_count + reassembler.buffered_len() as u64;
        assert_eq!(kept_count + reassembler.bytes_dropped_oversize(), done * 1500);
    })
}

/// Repeats segments in this order, with borrowed delivery to the caller.
fn borrowing(order: &'static [u32]) -> Contender {
    let step = move |ours: &mut Ours| {
        let mut octet_count = 0;
        for position in order {
            ours.feed(ours.seq.wrapping_add(position * LEN), |event| {
                if let StreamEvent::Chunk(chunk) = black_box(event) {
                    octet_count += chunk.bytes.len() as u64;
                }
            });
        }
        ours.octet_count += octet_count;
        ours.seq = ours.seq.wrapping_add(order.len() as u32 * LEN);
    };
    Contender::new(
        FLOWGAUGE,
        Ours::new(ReassemblerConfig::default(), Limits::DEFAULT),
        step,
        move |ours, done| {
            let sent_count = done * order.len() as u64 * 1500;
            assert_eq!((ours.octet_count, ours.stream.offset()), (sent_count, sent_count));
        },
    )
}

/// The reassembler of flowscope that buffers segments; its buffer is emptied after each pair.
fn their_out_of_order() -> Contender {
    type State = (SegmentBufferReassembler, Vec<u8>, u32, u64);
    let step = |(reassembler, payload, seq, octet_count): &mut State| {
        for position in [1, 0] {
            let seq = seq.wrapping_add(position * LEN);
            reassembler.segment(seq, black_box(payload), flowscope::Timestamp::default());
        }
        *seq = seq.wrapping_add(2 * LEN);
        *octet_count += black_box(reassembler.take()).len() as u64;
    };
    // The first segment defines the start of the stream.
    let mut reassembler = SegmentBufferReassembler::new();
    reassembler.segment(0, &payload(), flowscope::Timestamp::default());
    reassembler.take();
    let state: State = (reassembler, payload(), LEN, 0);
    Contender::new(FLOWSCOPE, state, step, |(_, _, _, octet_count), done| {
        assert_eq!(*octet_count, done * 3000);
    })
}

/// A segment far ahead that must be dropped.
fn dropping(overflow: OverflowPolicy) -> Contender {
    let mut config = ReassemblerConfig::default();
    config.overflow = overflow;
    let mut limits = Limits::DEFAULT;
    limits.stream_side_bytes_max = 0;
    let mut ours = Ours::new(config, limits);
    if overflow == OverflowPolicy::Poison {
        ours.feed(1_000_000, |_| {});
        assert!(ours.stream.is_poisoned());
    }
    let step = |ours: &mut Ours| ours.feed(1_000_000, |_| panic!("an event was emitted"));
    Contender::new(FLOWGAUGE, ours, step, move |ours, done| {
        assert_eq!(ours.stream.offset(), 0);
        if overflow == OverflowPolicy::DropNewest {
            assert_eq!(ours.reassembler.stats().refused_count, done);
        }
    })
}

fn their_dropping(is_poisoned: bool) -> Contender {
    let mut reassembler = BufferedReassembler::new();
    if is_poisoned {
        reassembler =
            reassembler.with_max_buffer(100).with_overflow_policy(flowscope::OverflowPolicy::DropFlow);
    }
    reassembler.segment(0, &payload(), flowscope::Timestamp::default());
    assert_eq!(reassembler.is_poisoned(), is_poisoned);
    let step = |(reassembler, payload): &mut (BufferedReassembler, Vec<u8>)| {
        reassembler.segment(1_000_000, black_box(payload), flowscope::Timestamp::default());
    };
    Contender::new(FLOWSCOPE, (reassembler, payload()), step, move |(reassembler, _), done| {
        assert_eq!(reassembler.dropped_segments(), if is_poisoned { 0 } else { done });
    })
}
