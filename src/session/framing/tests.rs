//! Streams of PDUs in any segmentation, with gaps and invalid lengths, against a naive model.

use proptest::prelude::*;

use super::{AfterPdu, Cut, Framing, Lane, Width};
use crate::base::Timestamp;
use crate::reassembler::GapReason;
use crate::session::{AfterGap, End, EndKind, Fault, Input, Missing, Progress, Role, Search};

const KEEP: usize = 24;
const FRAMINGS: [Framing; 8] = [
    Framing::prefix(Width::U16),
    Framing::prefix(Width::U24_LE),
    Framing::length(1, Width::U8).plus(2),
    Framing::length(2, Width::U32_LE),
    Framing::varint(1),
    Framing::BER,
    Framing::LINES,
    Framing::by(|_, octets| Cut::Pdu(1 + u64::from(octets[0]))),
];

/// Returns a PDU with content of a length, and how many octets of it are not part of the PDU.
fn encoded(index: usize, content: &[u8]) -> (Vec<u8>, usize) {
    let len = content.len();
    let (head, tail, prefix_len) = match index {
        0 => ((len as u16).to_be_bytes().to_vec(), &b""[..], 2),
        1 => ((len as u32).to_le_bytes()[..3].to_vec(), &b""[..], 3),
        2 => (vec![0x7e, len as u8], &b""[..], 0),
        3 => ([&b"ab"[..], &(len as u32 + 6).to_le_bytes()].concat(), &b""[..], 0),
        4 if len < 128 => (vec![0x30, len as u8], &b""[..], 0),
        4 => (vec![0x30, len as u8 | 0x80, (len >> 7) as u8], &b""[..], 0),
        5 if len < 128 => (vec![0x30, len as u8], &b""[..], 0),
        5 => (vec![0x30, 0x81, len as u8], &b""[..], 0),
        6 => (Vec::new(), &b"\n"[..], 0),
        _ => (vec![len as u8], &b""[..], 0),
    };
    ([&head, content, tail].concat(), prefix_len)
}

/// What a PDU is after it was cut: its octets, and its length.
type Seen = (Vec<u8>, u64);

/// Passes octets as the driver does, with what was not consumed in front of the next ones.
#[derive(Default)]
struct Stream {
    lane: Lane,
    buffered: Vec<u8>,
    seen: Vec<Seen>,
    need: usize,
}

impl Stream {
    /// Passes octets in segments of these lengths.
    fn of(framing: &Framing, octets: &[u8], cuts: &[usize]) -> Self {
        let (mut stream, mut rest) = (Self::default(), octets);
        for len in cuts.iter().cycle() {
            let (segment, after) = rest.split_at((*len).min(rest.len()));
            stream.push(framing, segment).unwrap();
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        stream
    }

    fn push(&mut self, framing: &Framing, bytes: &[u8]) -> Result<(), Fault> {
        let mut seen_len = self.buffered.len();
        self.buffered.extend_from_slice(bytes);
        while self.buffered.len() > seen_len && self.buffered.len() >= self.need {
            let input = Input::new(&self.buffered, 0, Role::Client, Timestamp::ZERO).with_seen_len(seen_len);
            let seen = &mut self.seen;
            let progress = self.lane.cut(framing, &input, &mut |pdu| {
                if pdu.is_rest {
                    let (octets, len) = seen.last_mut().expect("the PDU");
                    assert_eq!(*len, octets.len() as u64 + pdu.len, "up to the end of the PDU");
                    octets.extend_from_slice(pdu.bytes);
                } else {
                    seen.push((pdu.bytes.to_vec(), pdu.len));
                }
                Ok(AfterPdu::More)
            })?;
            let (taken, need) = match progress {
                Progress::Took(taken) => (taken, 0),
                Progress::Needs { taken, need } => (taken, need),
                other => panic!("{other:?}"),
            };
            self.need = need;
            self.buffered.drain(..taken);
            seen_len = self.buffered.len();
        }
        assert!(self.buffered.len() <= framing.keep.max(16) + 1, "no more octets are kept than declared");
        Ok(())
    }

    fn gap(&mut self, framing: &Framing, len: u64) -> AfterGap {
        let rest = std::mem::take(&mut self.buffered);
        let missing = Missing {
            rest: &rest,
            offset: 0,
            len,
            from: Role::Client,
            reason: GapReason::Acknowledged,
            timestamp: Timestamp::ZERO,
        };
        let seen = &mut self.seen;
        self.need = 0;
        self.lane.gap(framing, &missing, &mut |pdu| {
            seen.push((pdu.bytes.to_vec(), pdu.len));
            Ok(AfterPdu::More)
        })
    }
}

/// Returns what is seen of a PDU that was captured completely.
fn whole(index: usize, pdu: &[u8], prefix_len: usize) -> Seen {
    let body = &pdu[prefix_len..];
    let len = if index == 6 { body.len().min(KEEP + 1) } else { body.len() };
    (body[..body.len().min(KEEP)].to_vec(), len as u64)
}

fn contents() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let octet = prop_oneof![Just(b'x'), any::<u8>()].prop_map(|octet| if octet == b'\n' { 0 } else { octet });
    prop::collection::vec(prop::collection::vec(octet, 0..100), 1..6)
}

proptest! {
    #[test]
    fn pdus_do_not_depend_on_segments(
        index in 0..FRAMINGS.len(),
        contents in contents(),
        cuts in prop::collection::vec(1_usize..40, 1..30),
    ) {
        let framing = FRAMINGS[index].keep(KEEP);
        let pdus: Vec<_> = contents.iter().map(|content| encoded(index, content)).collect();
        let expected: Vec<_> = pdus.iter().map(|(pdu, prefix_len)| whole(index, pdu, *prefix_len)).collect();
        let octets: Vec<u8> = pdus.iter().flat_map(|(pdu, _)| pdu).copied().collect();
        let stream = Stream::of(&framing, &octets, &cuts);
        prop_assert_eq!(stream.seen, expected);
        prop_assert!(stream.buffered.is_empty());
    }

    #[test]
    fn octets_that_are_not_kept_are_passed_on(
        index in prop_oneof![0_usize..6, Just(7)],
        contents in contents(),
        cuts in prop::collection::vec(1_usize..40, 1..30),
    ) {
        let framing = FRAMINGS[index].keep(KEEP).with_rest();
        let pdus: Vec<_> = contents.iter().map(|content| encoded(index, content)).collect();
        let expected: Vec<_> =
            pdus.iter().map(|(pdu, prefix_len)| (pdu[*prefix_len..].to_vec(), (pdu.len() - prefix_len) as u64)).collect();
        let octets: Vec<u8> = pdus.iter().flat_map(|(pdu, _)| pdu).copied().collect();
        let stream = Stream::of(&framing, &octets, &cuts);
        prop_assert_eq!(stream.seen, expected);
    }

    #[test]
    fn a_gap_inside_of_a_pdu_loses_no_other(
        index in prop_oneof![0_usize..6, Just(7)],
        contents in contents(),
        torn in 0_usize..6,
        from in 0.0_f64..1.0,
        to in 0.0_f64..1.0,
    ) {
        let framing = FRAMINGS[index].keep(KEEP);
        let pdus: Vec<_> = contents.iter().map(|content| encoded(index, content)).collect();
        let torn = torn % pdus.len();
        let (pdu, prefix_len) = &pdus[torn];
        let head_len = pdu.len() - contents[torn].len();
        prop_assume!(pdu.len() > head_len);
        // The gap begins after the length, and ends in the PDU or with it.
        let start = head_len + (from * (pdu.len() - head_len) as f64) as usize;
        let end = start + 1 + (to * (pdu.len() - start - 1) as f64) as usize;
        let mut stream = Stream::default();
        for (before, _) in &pdus[..torn] {
            stream.push(&framing, before).unwrap();
        }
        stream.push(&framing, &pdu[..start]).unwrap();
        prop_assert_eq!(stream.gap(&framing, (end - start) as u64), AfterGap::Resume);
        stream.push(&framing, &pdu[end..]).unwrap();
        for (after, _) in &pdus[torn + 1..] {
            stream.push(&framing, after).unwrap();
        }
        let mut expected: Vec<_> =
            pdus.iter().map(|(pdu, prefix_len)| whole(index, pdu, *prefix_len)).collect();
        let captured_len = (start - prefix_len).min(KEEP);
        expected[torn].0.truncate(captured_len);
        prop_assert_eq!(stream.seen, expected);
    }
}

#[test]
fn the_beginning_of_a_pdu_is_searched_for_after_other_gaps() {
    fn search(_: Role, octets: &[u8]) -> Search {
        match octets.windows(2).position(|pair| pair == b"\x7e\x02") {
            Some(at) => Search::Found(at),
            None => Search::From(octets.len().saturating_sub(1)),
        }
    }
    let framing = Framing::length(1, Width::U8).plus(2).keep(KEEP);
    for framing in [framing, framing.resync(search)] {
        let mut stream = Stream::default();
        stream.push(&framing, b"\x7e\x02ab").unwrap();
        let after = stream.gap(&framing, 7);
        if framing.resync.is_none() {
            assert_eq!(after, AfterGap::Stop);
            continue;
        }
        assert_eq!(after, AfterGap::Resume);
        stream.push(&framing, b"of another one\x7e").unwrap();
        stream.push(&framing, b"\x02cd\x7e\x02ef").unwrap();
        let texts: Vec<_> = stream.seen.iter().map(|(octets, _)| &octets[2..]).collect();
        assert_eq!(texts, [b"ab", b"cd", b"ef"]);
    }
}

#[test]
fn invalid_lengths_are_faults() {
    let push = |framing: &Framing, octets: &[u8]| Stream::default().push(framing, octets);
    assert_eq!(push(&Framing::length(0, Width::U16), b"\0\x01"), Err(Framing::TOO_SHORT));
    assert_eq!(push(&Framing::length(0, Width::U8).plus(-5), b"\x04"), Err(Framing::TOO_SHORT));
    assert_eq!(push(&Framing::length(0, Width::U16).len_max(9), b"\0\x0a"), Err(Framing::TOO_LONG));
    assert_eq!(push(&Framing::varint(0), &[0xff; 5]), Err(Framing::MALFORMED));
    for head in [&b"\x3f\x01"[..], b"\x30\x80", b"\x30\x85"] {
        assert_eq!(push(&Framing::BER, head), Err(Framing::MALFORMED), "{head:?}");
    }
    assert_eq!(push(&Framing::by(|_, _| Cut::Need(1 << 20)), b"x"), Err(Framing::TOO_LONG));
    assert_eq!(push(&Framing::by(|_, _| Cut::Pdu(0)), b"x"), Err(Framing::TOO_SHORT));
}

#[test]
fn the_last_pdu_may_be_incomplete() {
    for (framing, octets, expected) in [
        (Framing::prefix(Width::U16), &b"\0\x04ab"[..], Some((b"ab".to_vec(), 4))),
        (Framing::length(1, Width::U8).plus(2), b"\x7e\x04ab", Some((b"\x7e\x04ab".to_vec(), 6))),
        (Framing::length(1, Width::U8).plus(2), b"\x7e", None),
        (Framing::prefix(Width::U16), b"\0", None),
    ] {
        let mut stream = Stream::default();
        stream.push(&framing, octets).unwrap();
        let mut seen = None;
        let end = End {
            rest: &stream.buffered,
            offset: 0,
            from: Role::Client,
            kind: EndKind::Flow,
            timestamp: Timestamp::ZERO,
        };
        stream.lane.end(&framing, &end, &mut |pdu| {
            assert!(pdu.is_truncated());
            seen = Some((pdu.bytes.to_vec(), pdu.len));
            Ok(AfterPdu::More)
        });
        assert_eq!(seen, expected, "{octets:?}");
    }
}
