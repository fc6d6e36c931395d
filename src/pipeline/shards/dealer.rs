//! Which frames of a batch each shard has to look at.
//!
//! The reader extracts each frame. A plain packet goes to the shard that tracks its flow, which need not look at the octets
//! of its headers again: they would come from another core's cache. What is not that simple goes to all shards as it was
//! captured: fragments, errors that quote a packet of another flow, frames of no flow.

use super::super::jumps::Jumps;
use crate::base::{Frame, FrameBatch, Span, Timestamp};
use crate::extractor::{Extractor, Packet, PacketMarks, Transport};
use crate::filter::Filter;
use crate::tracker::Share;

/// A frame that all shards look at.
const FOR_ALL: u32 = 1 << 31;
/// A frame before which the clock stands at the next of the noted times.
const HAS_CLOCK: u32 = 1 << 30;

/// The frames of a batch that one shard looks at, by place.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Hand {
    entries: Vec<u32>,
    clocks_ns: Vec<u64>,
    /// Those of its own flows, without their octets.
    packets: Vec<(Packet<'static>, Span)>,
}

/// What a shard is given of a frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::pipeline) struct Dealt<'a> {
    pub(in crate::pipeline) what: What<'a>,
    /// The time that packets of other shards have reached, if that matters; else zero.
    pub(in crate::pipeline) clock_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::pipeline) enum What<'a> {
    /// A packet of a flow that is the shard's.
    Own(&'a Packet<'static>, &'a [u8]),
    /// A frame that all shards look at.
    ForAll(Frame<'a>),
}

impl Hand {
    /// The frames in order.
    #[inline]
    pub(in crate::pipeline) fn iter<'a>(&'a self, batch: &'a FrameBatch) -> impl Iterator<Item = Dealt<'a>> {
        let mut clocks_ns = self.clocks_ns.iter();
        let mut packets = self.packets.iter();
        self.entries.iter().filter_map(move |entry| {
            let clock_ns = if entry & HAS_CLOCK == 0 { 0 } else { clocks_ns.next().copied()? };
            let what = if entry & FOR_ALL == 0 {
                let (packet, span) = packets.next()?;
                What::Own(packet, batch.octets(*span))
            } else {
                What::ForAll(batch.get((entry & !(FOR_ALL | HAS_CLOCK)) as usize)?)
            };
            Some(Dealt { what, clock_ns })
        })
    }

    const fn held_bytes(&self) -> u64 {
        let packets = self.packets.capacity() * size_of::<(Packet<'static>, Span)>();
        (self.entries.capacity() * size_of::<u32>() + self.clocks_ns.capacity() * size_of::<u64>() + packets)
            as u64
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.clocks_ns.clear();
        self.packets.clear();
    }

    #[inline]
    fn push(&mut self, entry: u32, clock_ns: Option<u64>) {
        match clock_ns {
            None => self.entries.push(entry),
            Some(clock_ns) => {
                self.entries.push(entry | HAS_CLOCK);
                self.clocks_ns.push(clock_ns);
            }
        }
    }
}

/// What is dealt of a batch: a hand for each shard, and what all are to know.
#[derive(Debug, Default)]
pub struct Deal {
    hands: Vec<Hand>,
    pub(in crate::pipeline) frame_count: u64,
    pub(in crate::pipeline) octet_count: u64,
    /// The time that plain packets have reached.
    pub(in crate::pipeline) clock: Timestamp,
}

impl Deal {
    /// The frames for a shard.
    pub(in crate::pipeline) fn hand(&self, shard: usize) -> Option<&Hand> {
        self.hands.get(shard)
    }

    /// Bytes that its allocations take.
    pub(super) fn held_bytes(&self) -> u64 {
        let hands = (self.hands.capacity() * size_of::<Hand>()) as u64;
        hands + self.hands.iter().map(Hand::held_bytes).sum::<u64>()
    }
}

/// Looks at frames for all shards.
#[derive(Debug)]
pub(in crate::pipeline) struct Dealer {
    pub(in crate::pipeline) jumps: Jumps,
    pub(in crate::pipeline) extractor: Extractor,
    pub(in crate::pipeline) filter: Option<Filter>,
    /// Packets with one of these are for all shards.
    pub(in crate::pipeline) apart_marks: PacketMarks,
    /// Whether something is to look at all frames before they are extracted.
    pub(in crate::pipeline) is_all_for_all: bool,
    pub(in crate::pipeline) share: Share,
    pub(in crate::pipeline) clock_ns: u64,
}

impl Dealer {
    /// Puts into a batch what is to be taken in its place, as far as times are to be believed; with the frame that waits, if
    /// it is the last one.
    pub(in crate::pipeline) fn review(&mut self, batch: &mut FrameBatch, is_last: bool) {
        if let Some(reviewed) = self.jumps.review(batch) {
            *batch = reviewed;
        }
        if is_last && let Some(held) = self.jumps.release() {
            held.iter().for_each(|frame| batch.push(&frame));
        }
    }

    pub(in crate::pipeline) fn deal(&mut self, batch: &FrameBatch, deal: &mut Deal) {
        deal.hands.resize_with(self.share.count(), Hand::default);
        deal.hands.iter_mut().for_each(Hand::clear);
        (deal.frame_count, deal.octet_count) = (0, 0);
        for (place, frame) in batch.iter().enumerate() {
            let mut packet = Packet::EMPTY;
            deal.frame_count += 1;
            deal.octet_count += u64::from(frame.wire_len);
            debug_assert!(place < HAS_CLOCK as usize, "a batch has at most 4 GiB");
            let place = place as u32;
            let is_plain = !self.is_all_for_all
                && self.extractor.extract_into(&frame, &mut packet).is_ok()
                && !packet.marks.contains(self.apart_marks)
                && packet.transport != Transport::Icmp;
            if !is_plain {
                deal.hands.iter_mut().for_each(|hand| hand.push(place | FOR_ALL, Some(self.clock_ns)));
                continue;
            }
            let time_ns = frame.timestamp.as_nanos();
            if let Some(hand) = deal.hands.get_mut(self.share.owner(&packet.key)) {
                hand.push(place, (time_ns < self.clock_ns).then_some(self.clock_ns));
                hand.packets.push((Packet { frame: &[], ..packet }, batch.span(place as usize)));
            }
            // What a filter drops moves no clock.
            let is_dropped = self.filter.as_ref().is_some_and(|filter| !filter.may_match(&packet.key));
            if time_ns > self.clock_ns && !is_dropped {
                self.clock_ns = time_ns;
            }
        }
        deal.clock = Timestamp::from_nanos(self.clock_ns);
    }
}
