//! Distribution of the frames of a batch over the shards, or extraction for a single pipeline on another thread.
//!
//! The reader extracts each frame. A plain packet is sent to the shard that tracks its flow, which need not read its
//! header octets again; they would come from the cache of another core. Every other frame is sent to all shards as
//! captured: fragments, frames of no flow, messages of neighbors, and, if there are several shards, errors that quote a packet of another flow.
//! A single pipeline that has received all batches receives the next one as it was captured, and extracts it itself.

use super::super::jumps::Jumps;
use crate::base::{Frame, FrameBatch, Span, Timestamp};
use crate::decode::extractor::{Extractor, Packet, PacketMarks, Transport};
use crate::tracker::{GROUP_LEN, Share};

/// Bit of an entry in a [`ShardQueue`]: the frame is sent to all shards.
const FOR_ALL: u32 = 1 << 31;
/// Bit of an entry in a [`ShardQueue`]: before the frame, the clock advances to the next time in `clocks_ns`.
const HAS_CLOCK: u32 = 1 << 30;

/// The frames of a batch that one shard processes, as frame indices with marks.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct ShardQueue {
    entries: Vec<u32>,
    clocks_ns: Vec<u64>,
    /// Packets of the shard's own flows in order, and the positions of their octets in the batch.
    packets: Vec<(Packet<'static>, Span)>,
}

/// A frame that a dispatcher sends to a shard.
#[derive(Clone, Copy, Debug)]
pub(in crate::pipeline) struct Dispatched<'a> {
    pub(in crate::pipeline) content: Content<'a>,
    /// Time in nanoseconds that packets of other shards have reached before this frame, if it matters; otherwise zero.
    pub(in crate::pipeline) clock_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::pipeline) enum Content<'a> {
    /// A packet of a flow of this shard, and the octets of its frame.
    Own(&'a Packet<'static>, &'a [u8]),
    /// A frame that is sent to all shards as it was captured.
    ForAll(Frame<'a>),
}

impl ShardQueue {
    /// Iterates over the shard's frames in the order of the batch.
    #[inline]
    pub(in crate::pipeline) fn iter<'a>(
        &'a self,
        batch: &'a FrameBatch,
    ) -> impl Iterator<Item = Dispatched<'a>> {
        let mut clocks_ns = self.clocks_ns.iter();
        let mut packets = self.packets.iter();
        self.entries.iter().filter_map(move |entry| {
            let clock_ns = if entry & HAS_CLOCK == 0 { 0 } else { clocks_ns.next().copied()? };
            let content = if entry & FOR_ALL == 0 {
                let (packet, span) = packets.next()?;
                Content::Own(packet, batch.octets(*span))
            } else {
                Content::ForAll(batch.get((entry & !(FOR_ALL | HAS_CLOCK)) as usize)?)
            };
            Some(Dispatched { content, clock_ns })
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

/// A distributed batch: a queue for each shard, and the counters common to all shards.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Dispatch {
    queues: Vec<ShardQueue>,
    pub(in crate::pipeline) frame_count: u64,
    pub(in crate::pipeline) octet_count: u64,
    /// Time that the packets of the batch and of all earlier batches have reached. It includes only packets that were
    /// extracted by the dispatcher.
    pub(in crate::pipeline) clock: Timestamp,
}

impl Dispatch {
    /// Returns the frames for the shard with the index `shard`.
    pub(in crate::pipeline) fn queue(&self, shard: usize) -> Option<&ShardQueue> {
        self.queues.get(shard)
    }

    /// Returns the allocated memory of all queues in bytes.
    pub(super) fn held_bytes(&self) -> u64 {
        let queues = (self.queues.capacity() * size_of::<ShardQueue>()) as u64;
        queues + self.queues.iter().map(ShardQueue::held_bytes).sum::<u64>()
    }
}

/// Distributes the frames of each batch over the shards.
#[derive(Debug)]
pub(in crate::pipeline) struct Dispatcher {
    pub(in crate::pipeline) jumps: Jumps,
    pub(in crate::pipeline) extractor: Extractor,
    /// Marks of packets that are sent to all shards, because they need more than plain extraction.
    pub(in crate::pipeline) slow_path_marks: PacketMarks,
    /// True if all frames are sent to all shards, because they must be checked before they are extracted.
    pub(in crate::pipeline) is_all_for_all: bool,
    /// Share of the flows of any shard; `None` if there is a single pipeline, which tracks all flows.
    pub(in crate::pipeline) share: Option<Share>,
    /// Time in nanoseconds that packets of all shards have reached; zero if there is a single pipeline.
    pub(in crate::pipeline) clock_ns: u64,
}

/// Packets that were extracted, and not yet added to the queues. A packet that is copied at once would be read in units
/// that are wider than the stores that wrote it, for which the processor has to wait.
struct Group<'a> {
    packets: [Packet<'a>; GROUP_LEN],
    /// Index of the queue of each packet, and the position of its octets in the batch.
    places: [(usize, Span); GROUP_LEN],
    len: usize,
}

impl Group<'_> {
    const EMPTY: Self =
        Self { packets: [Packet::EMPTY; GROUP_LEN], places: [(0, Span::EMPTY); GROUP_LEN], len: 0 };

    /// Moves the packets to their queues.
    fn flush(&mut self, queues: &mut [ShardQueue]) {
        for (packet, (queue, span)) in self.packets.iter().zip(self.places).take(self.len) {
            if let Some(queue) = queues.get_mut(queue) {
                queue.packets.push((Packet { frame: &[], ..*packet }, span));
            }
        }
        self.len = 0;
    }
}

impl Dispatcher {
    /// Replaces a batch by one with corrected frame times, if a time is not plausible. The last batch also includes the
    /// deferred frame.
    pub(in crate::pipeline) fn review(&mut self, batch: &mut FrameBatch, is_last: bool) {
        if let Some(reviewed) = self.jumps.review(batch) {
            *batch = reviewed;
        }
        if is_last && let Some(held) = self.jumps.release() {
            held.iter().for_each(|frame| batch.push(&frame));
        }
    }

    /// Advances the clock to `now` while no frames arrive. Returns a deferred frame.
    pub(in crate::pipeline) fn idle(&mut self, now: Timestamp) -> Option<FrameBatch> {
        if self.share.is_some() {
            self.clock_ns = self.clock_ns.max(now.as_nanos());
        }
        self.jumps.release_at(now)
    }

    /// Distributes the frames of a batch. With `as_captured`, no frame is extracted, for a single pipeline.
    pub(in crate::pipeline) fn dispatch(
        &mut self,
        batch: &FrameBatch,
        dispatch: &mut Dispatch,
        as_captured: bool,
    ) {
        let is_all_for_all = self.is_all_for_all || as_captured;
        let Dispatch { queues, frame_count, octet_count, clock } = dispatch;
        queues.resize_with(self.share.as_ref().map_or(1, Share::count), ShardQueue::default);
        queues.iter_mut().for_each(ShardQueue::clear);
        debug_assert!(batch.len() < HAS_CLOCK as usize, "a batch has at most 4 GiB");
        let mut group = Group::EMPTY;
        let mut batch_octet_count = 0;
        for (entry, frame) in (0..).zip(batch.iter()) {
            batch_octet_count += u64::from(frame.wire_len);
            let packet = &mut group.packets[group.len];
            let is_plain = !is_all_for_all
                && self.extractor.extract_into(&frame, packet).is_ok()
                && !packet.marks.contains(self.slow_path_marks)
                && (self.share.is_none() || packet.transport != Transport::Icmp);
            if !is_plain {
                let clock_ns = self.share.as_ref().map(|_| self.clock_ns);
                queues.iter_mut().for_each(|queue| queue.push(entry | FOR_ALL, clock_ns));
                continue;
            }
            let (owner, clock_ns) = self.place(packet);
            if let Some(queue) = queues.get_mut(owner) {
                queue.push(entry, clock_ns);
            }
            group.places[group.len] = (owner, batch.span(entry as usize));
            group.len += 1;
            if group.len == GROUP_LEN {
                group.flush(queues);
            }
        }
        group.flush(queues);
        (*frame_count, *octet_count) = (batch.len() as u64, batch_octet_count);
        *clock = Timestamp::from_nanos(self.clock_ns);
    }

    /// Returns the index of the queue of a packet, and the time to which the clock of its shard advances before, if
    /// packets of other shards have reached a later one. Advances the time of all shards to that of the packet.
    #[inline(always)]
    fn place(&mut self, packet: &Packet<'_>) -> (usize, Option<u64>) {
        let Some(share) = &self.share else { return (0, None) };
        let time_ns = packet.timestamp.as_nanos();
        let clock_ns = (time_ns < self.clock_ns).then_some(self.clock_ns);
        self.clock_ns = self.clock_ns.max(time_ns);
        (share.owner(&packet.key), clock_ns)
    }
}
