//! All overlaps of up to three chunks, for each policy, and for each position at which the sequence numbers wrap.

use flowgauge::base::{Resources, SeqNum, TcpFlags, Timestamp};
use flowgauge::reassembler::{OverlapPolicy, Reassembler, ReassemblerConfig, Segment, Stream, StreamEvent};

use super::naive::{Chunk, HOLE, Model};

/// Length of the stream in octets.
const LEN: usize = 7;

/// Returns the ranges of all chunks within a stream: 28 of them.
fn ranges() -> Vec<(usize, usize)> {
    (0..LEN).flat_map(|start| (start + 1..=LEN).map(move |end| (start, end))).collect()
}

/// Returns the reassembled octets for chunks of a stream with a given sequence number of its first octet.
pub(crate) fn reassembled(
    reassembler: &mut Reassembler<()>,
    first: SeqNum,
    chunks: impl Iterator<Item = Chunk>,
    len: usize,
) -> Vec<u8> {
    let mut stream = Stream::default();
    let mut octets = Vec::with_capacity(len);
    let mut out = |event: StreamEvent<'_>| match event {
        StreamEvent::Chunk(chunk) => {
            assert_eq!(chunk.offset, octets.len() as u64);
            octets.extend_from_slice(chunk.bytes);
        }
        StreamEvent::Gap(gap) => {
            assert_eq!(gap.offset, octets.len() as u64);
            octets.resize(octets.len() + gap.len as usize, HOLE);
        }
        _ => {}
    };
    let syn = Segment::new(SeqNum(first.0.wrapping_sub(1)), TcpFlags::SYN, &[], Timestamp::ZERO);
    reassembler.segment(&mut stream, (), &syn, &mut out);
    for (start, end, fill) in chunks {
        let bytes = vec![fill; end - start];
        let segment = Segment::new(first.add(start as u32), TcpFlags::ACK, &bytes, Timestamp::ZERO);
        reassembler.segment(&mut stream, (), &segment, &mut out);
    }
    reassembler.finish(&mut stream, &mut out);
    octets
}

pub(crate) fn with_policy(policy: OverlapPolicy) -> Reassembler<()> {
    let mut config = ReassemblerConfig::default();
    config.overlap = policy;
    Reassembler::new(config, &Resources::default()).expect("a valid configuration")
}

#[test]
fn three_chunks_at_all_offsets_match_the_model() {
    let ranges = ranges();
    for policy in OverlapPolicy::ALL {
        let mut reassembler = with_policy(policy);
        for a in &ranges {
            for b in &ranges {
                for c in &ranges {
                    let chunks = [(a.0, a.1, b'a'), (b.0, b.1, b'b'), (c.0, c.1, b'c')];
                    let mut model = Model::new(policy, LEN);
                    chunks.iter().for_each(|chunk| model.push(*chunk));
                    let mut expected = model.octets();
                    // Octets at the end that were not sent are not a gap.
                    expected.truncate(chunks.iter().map(|chunk| chunk.1).max().unwrap_or(0));
                    let got = reassembled(&mut reassembler, SeqNum(1), chunks.into_iter(), LEN);
                    assert_eq!(got, expected, "{policy}: {chunks:?}");
                }
            }
        }
        reassembler.check_invariants();
        assert_eq!(reassembler.held_stream_count(), 0);
    }
}

#[test]
fn the_sequence_number_wrap_does_not_change_the_result() {
    let ranges = ranges();
    for policy in OverlapPolicy::ALL {
        let mut reassembler = with_policy(policy);
        for (number, a) in ranges.iter().enumerate() {
            for b in &ranges {
                // Only a selection of third chunks, because testing all positions of the wrap takes long.
                let c = ranges[(number * 5 + b.0 * 3 + b.1) % ranges.len()];
                let chunks = [(a.0, a.1, b'a'), (b.0, b.1, b'b'), (c.0, c.1, b'c')];
                let plain = reassembled(&mut reassembler, SeqNum(1000), chunks.into_iter(), LEN);
                for wrap in 0..=LEN as u32 + 1 {
                    let first = SeqNum(0_u32.wrapping_sub(wrap));
                    let wrapped = reassembled(&mut reassembler, first, chunks.into_iter(), LEN);
                    assert_eq!(wrapped, plain, "{policy}: {chunks:?}, {wrap} octets before the wrap");
                }
            }
        }
    }
}
