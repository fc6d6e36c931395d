//! Layers of a pipeline below the stage: from a frame to a tracked packet.

use std::collections::HashSet;
use std::sync::Arc;

use ahash::RandomState;

use super::config::Config;
use super::dispatch::{Content, Dispatch, Dispatched, Dispatcher};
use super::jumps::Jumps;
use super::observer::Above;
use super::runner::IntakeState;
use super::stats::{PipelineStats, Unsaved};
use crate::base::{
    Account, ConfigError, EncapsulationHeader, FlowKey, Frame, FrameBatch, NeighborProtocol, Resources,
    Timestamp,
};
use crate::checkpoint::{Invalid, StateWriter};
use crate::codec::Reader;
use crate::decode::extractor::{Extractor, Packet};
use crate::decode::{ChecksumHandling, Counted, Decoded, Decoder, Emit};
use crate::dedup::Window;
use crate::filter::Filter;
use crate::record::OuterFlow;
use crate::tracker::{GROUP_LEN, Share, Tracker};

/// All layers of a pipeline below the stage of its sink. `S` is the type of the state that each flow has.
#[derive(Debug)]
pub(super) struct Core<S> {
    jumps: Jumps,
    dedup: Option<Box<Window>>,
    decoder: Decoder,
    tracker: Tracker<S>,
    filter: Option<Filter>,
    frame_count: u64,
    octet_count: u64,
    filtered_count: u64,
    /// What was not in the checkpoint from which the pipeline was restored.
    unsaved: Unsaved,
    /// Latest time of packets that are not tracked here, because the filter drops them or another shard tracks them, in
    /// nanoseconds.
    foreign_ns: u64,
    /// True while frames are processed that another pipeline has also processed.
    is_again: bool,
    /// Slots of the flows that are still to be ended, while the flows are ended one by one at the end of the input.
    ending: Option<std::vec::IntoIter<u32>>,
}

enum Input<'a> {
    /// A frame as it was captured, not extracted yet.
    Frame(Frame<'a>),
    /// A frame that a dispatcher has already counted and, in most cases, extracted.
    Dispatched(Dispatched<'a>),
}

/// The next step in the processing of a frame.
enum Extracted {
    /// The frame contains one packet, which is tracked next.
    Packet,
    /// The decoder emits the packets of the frame: it is a fragment of a datagram, or has outer headers that are
    /// recorded.
    SlowPath,
    /// The frame contains one packet, which is earlier than packets that are not tracked here: the clock advances to
    /// their time before the packet is tracked.
    Late,
    /// The packet is not tracked here, and is an ICMP error that quotes a packet of a flow that is.
    Quoting,
    /// The frame contains a message between neighbors, which belongs to no flow.
    Neighbor(NeighborProtocol),
    /// The frame contains nothing to track.
    None,
}

impl<S: Default> Core<S> {
    pub(super) fn new(config: &Config, resources: &Resources) -> Result<Self, ConfigError> {
        let policy = config.tracker.key_policy;
        let tracker = Tracker::new(config.tracker.clone(), resources)?;
        let dedup = config.dedup.map(|dedup| Window::new(dedup, resources)).transpose()?.map(Box::new);
        Ok(Self {
            jumps: Jumps::new(!config.is_time_checked),
            dedup,
            decoder: Decoder::new(&config.decoder, policy, resources)?,
            tracker,
            filter: config.filter.clone(),
            frame_count: 0,
            octet_count: 0,
            filtered_count: 0,
            unsaved: Unsaved::default(),
            foreign_ns: 0,
            is_again: false,
            ending: None,
        })
    }

    /// Restricts the tracker to a share of the flows, because other shards track the rest.
    pub(super) fn restrict(&mut self, share: Share) {
        self.tracker.restrict(share);
    }

    /// Restricts the tracker to the flows with some keys, or ends the restriction.
    pub(super) fn restrict_to(&mut self, keys: Option<Arc<HashSet<FlowKey, RandomState>>>) {
        self.tracker.restrict_to(keys);
    }

    /// Returns the time that packets have reached, in nanoseconds.
    pub(super) fn clock_ns(&self) -> u64 {
        self.foreign_ns.max(self.tracker.now().as_nanos())
    }

    /// Advances the clock to the time that packets have reached which are not tracked here.
    pub(super) fn note_clock(&mut self, clock_ns: u64) {
        self.foreign_ns = self.foreign_ns.max(clock_ns);
        self.tracker.note_time(self.foreign_ns);
    }

    pub(super) const fn jumps(&self) -> &Jumps {
        &self.jumps
    }

    pub(super) const fn jumps_mut(&mut self) -> &mut Jumps {
        &mut self.jumps
    }

    pub(super) fn flow_count_max(&self) -> u64 {
        self.tracker.flow_count_max().into()
    }

    /// Returns whether fragments wait for others.
    pub(super) fn has_fragments(&self) -> bool {
        self.decoder.held_datagram_count() > 0
    }

    /// Processes frames that another pipeline has also processed, and has counted. Each is preceded by the time that packets
    /// have reached before it. Only counters of flows change.
    pub(super) fn again<K: Above<S> + ?Sized>(
        &mut self,
        batch: &FrameBatch,
        clocks_ns: &[u64],
        observer: &mut K,
    ) {
        let counters = (self.decoder.counters(), self.filtered_count, *self.tracker.stats());
        let frames = batch.iter().zip(clocks_ns).map(|(frame, clock_ns)| {
            Input::Dispatched(Dispatched { content: Content::ForAll(frame), clock_ns: *clock_ns })
        });
        self.is_again = true;
        self.frames::<GROUP_LEN, _>(frames, observer);
        self.is_again = false;
        self.relieve(observer);
        let (decoder, filtered_count, tracker) = counters;
        self.decoder.set_counters(decoder);
        self.filtered_count = filtered_count;
        self.tracker.keep_packet_counters(&tracker);
    }

    pub(super) const fn tracker_mut(&mut self) -> &mut Tracker<S> {
        &mut self.tracker
    }

    pub(super) const fn tracker(&self) -> &Tracker<S> {
        &self.tracker
    }

    pub(super) fn state(&self) -> IntakeState {
        IntakeState {
            frame_count: self.frame_count,
            flow_count: Some(self.tracker.len() as u64),
            held_bytes: self.tracker.budget().held(),
        }
    }

    /// Returns the current counters of the layers below the stage; the counters of stages and queues are zero.
    pub(super) fn stats(&self) -> PipelineStats {
        let (orphan_fragment_count, orphan_fragment_octet_count) = self.decoder.orphan_counts();
        PipelineStats {
            frame_count: self.frame_count,
            octet_count: self.octet_count,
            times: self.jumps.times(),
            doubted_time_count: self.jumps.doubted_count,
            dedup: self.dedup.as_deref().map(|window| *window.stats()).unwrap_or_default(),
            skipped: self.decoder.skipped().clone(),
            filtered_count: self.filtered_count,
            checksums: self.decoder.checksums(),
            orphan_fragment_count,
            orphan_fragment_octet_count,
            fragments: self.decoder.fragments(),
            outer_packet_count: self.decoder.outer_packet_count(),
            aggregated_count: self.decoder.aggregated_count(),
            tracker: *self.tracker.stats(),
            unsaved: self.unsaved,
            ..PipelineStats::default()
        }
    }

    /// Writes the state of the layers around the tracker to a checkpoint.
    pub(super) fn save(&self, out: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Unsaved {
            datagram_count: self.decoder.held_datagram_count(),
            hash_count: self.dedup.as_deref().map_or(0, |window| window.len() as u64),
        }
        .save(out)?;
        out.be(self.foreign_ns)?;
        self.jumps.save(out)
    }

    /// Reads the state of the layers around the tracker from a checkpoint.
    pub(super) fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        self.unsaved = Unsaved::load(reader)?;
        self.foreign_ns = reader.be()?;
        self.jumps.load(reader)
    }

    /// Returns a dispatcher that extracts packets for this pipeline, with the state of its time check, which must be
    /// returned to [`end_ahead`](Self::end_ahead).
    pub(super) fn begin_ahead(&mut self) -> Dispatcher {
        let jumps = std::mem::replace(&mut self.jumps, Jumps::new(true));
        let is_all_for_all = self.dedup.is_some() || self.decoder.is_verifying();
        Dispatcher {
            jumps,
            extractor: *self.decoder.extractor(),
            slow_path_marks: self.decoder.slow_path_marks(),
            is_all_for_all,
            share: None,
            clock_ns: 0,
        }
    }

    /// Continues the time check with the state that the dispatcher of [`begin_ahead`](Self::begin_ahead) has reached.
    pub(super) fn end_ahead(&mut self, jumps: Jumps) {
        self.jumps = jumps;
    }

    /// Processes the frames of a batch. The last frame is deferred to the next batch if its time is far ahead of all
    /// earlier ones ([`TIME_JUMP_MAX`](super::TIME_JUMP_MAX)).
    pub(super) fn batch<K: Above<S> + ?Sized>(&mut self, batch: &FrameBatch, observer: &mut K) {
        let reviewed = self.jumps.review(batch);
        self.frames::<GROUP_LEN, _>(reviewed.as_ref().unwrap_or(batch).iter().map(Input::Frame), observer);
        self.relieve(observer);
    }

    /// Processes one frame as [`batch`](Self::batch) does, and releases memory as often, and at once after a session was
    /// charged.
    #[inline(always)]
    pub(super) fn frame<K: Above<S> + ?Sized>(&mut self, frame: &Frame<'_>, observer: &mut K) {
        match self.jumps.review_frame(frame) {
            None => self.frames::<1, _>(std::iter::once(Input::Frame(*frame)), observer),
            Some(reviewed) => self.frames::<1, _>(reviewed.iter().map(Input::Frame), observer),
        }
        let is_group_over = self.frame_count.is_multiple_of(GROUP_LEN as u64);
        if observer.take_charged() | is_group_over | self.needs_fragment_memory() {
            self.relieve(observer);
        }
    }

    /// Processes those frames of a batch that the dispatcher assigned to the shard with the index `shard`.
    pub(super) fn dispatched<K: Above<S> + ?Sized>(
        &mut self,
        batch: &FrameBatch,
        dispatch: &Dispatch,
        shard: usize,
        observer: &mut K,
    ) {
        self.frame_count += dispatch.frame_count;
        self.octet_count += dispatch.octet_count;
        if let Some(queue) = dispatch.queue(shard) {
            self.frames::<GROUP_LEN, _>(queue.iter(batch).map(Input::Dispatched), observer);
        }
        self.foreign_ns = self.foreign_ns.max(dispatch.clock.as_nanos());
        self.relieve(observer);
    }

    /// Processes frames in groups of `N` packets. Memory is released between groups; the caller releases it at the end.
    #[inline(always)]
    fn frames<'a, const N: usize, K: Above<S> + ?Sized>(
        &mut self,
        frames: impl Iterator<Item = Input<'a>>,
        observer: &mut K,
    ) {
        let mut packets = [Packet::EMPTY; N];
        let mut count = 0;
        for input in frames {
            match self.receive(&input, &mut packets[count]) {
                Extracted::Packet => count += 1,
                Extracted::None => {}
                Extracted::Late => {
                    self.track::<N, _>(&packets[..count], observer);
                    self.tracker.note_time(self.foreign_ns);
                    packets[0] = packets[count];
                    count = 1;
                }
                Extracted::Quoting => {
                    self.track::<N, _>(&packets[..count], observer);
                    self.tracker.note_time(self.foreign_ns);
                    self.tracker.note_quoted_in(&packets[count], observer);
                    count = 0;
                }
                Extracted::Neighbor(protocol) => {
                    self.track::<N, _>(&packets[..count], observer);
                    self.neighbor(protocol, &packets[count], observer);
                    count = 0;
                }
                Extracted::SlowPath => {
                    // Earlier packets are tracked first.
                    self.track::<N, _>(&packets[..count], observer);
                    let taken = std::mem::take(&mut count);
                    if let Input::Frame(frame)
                    | Input::Dispatched(Dispatched { content: Content::ForAll(frame), .. }) = &input
                    {
                        self.slow_path(frame, &packets[taken], observer);
                    }
                }
            }
            if count == N {
                self.track::<N, _>(&packets, observer);
                if N > 1 {
                    self.relieve(observer);
                }
                count = 0;
            }
        }
        self.track::<N, _>(&packets[..count], observer);
    }

    #[inline(always)]
    fn track<const N: usize, K: Above<S> + ?Sized>(&mut self, packets: &[Packet<'_>], observer: &mut K) {
        if N == 1 {
            packets.iter().for_each(|packet| self.tracker.track(packet, observer));
        } else {
            self.tracker.track_batch(packets, observer);
        }
    }

    /// Releases memory of all layers if it is short.
    #[inline(always)]
    fn relieve<K: Above<S> + ?Sized>(&mut self, observer: &mut K) {
        observer.relieve(&mut self.tracker);
        if self.needs_fragment_memory() {
            self.relieve_fragments(observer);
        }
    }

    /// Returns whether the budget requests memory of the pool of fragments.
    #[inline(always)]
    fn needs_fragment_memory(&self) -> bool {
        self.decoder.is_reassembling() && self.tracker.budget().is_pressed(Account::Fragments)
    }

    /// Evicts waiting fragments to release memory for other layers.
    #[cold]
    #[inline(never)]
    fn relieve_fragments<K: Above<S> + ?Sized>(&mut self, observer: &mut K) {
        self.with_emitter(observer, |decoder, emit| decoder.relieve(emit));
    }

    /// Ends datagrams and flows that are due at the time `now`, for live capture while no packets arrive. Processes a
    /// deferred frame first.
    pub(super) fn advance<K: Above<S> + ?Sized>(&mut self, now: Timestamp, observer: &mut K) {
        if let Some(held) = self.jumps.release_at(now) {
            self.frames::<1, _>(held.iter().map(Input::Frame), observer);
        }
        self.with_emitter(observer, |decoder, emit| decoder.advance(now, emit));
        self.tracker.advance(now, observer);
        self.relieve(observer);
    }

    /// Ends waiting fragmented datagrams and then all flows, in the order in which the flows began.
    pub(super) fn finish<K: Above<S> + ?Sized>(&mut self, observer: &mut K) {
        while self.end_next(observer) {}
    }

    /// Ends one open flow as at the end of the input; the first call also processes everything that is pending below
    /// the tracker. Returns whether a flow was ended.
    pub(super) fn end_next<K: Above<S> + ?Sized>(&mut self, observer: &mut K) -> bool {
        loop {
            let Some(slots) = &mut self.ending else {
                self.end_input(observer);
                if self.tracker.is_empty() {
                    return false;
                }
                self.ending = Some(self.tracker.slots_in_order().into_iter());
                continue;
            };
            match slots.next() {
                Some(slot) if self.tracker.is_open(slot) => {
                    self.tracker.finish_one(slot, observer);
                    return true;
                }
                // A frame processed in between has ended it.
                Some(_) => {}
                None => self.ending = None,
            }
        }
    }

    /// Processes the deferred frame at the end of the input, and ends waiting datagrams and all flows that are due.
    fn end_input<K: Above<S> + ?Sized>(&mut self, observer: &mut K) {
        if let Some(held) = self.jumps.release() {
            self.frames::<1, _>(held.iter().map(Input::Frame), observer);
        }
        self.tracker.note_time(self.foreign_ns);
        self.with_emitter(observer, |decoder, emit| decoder.finish(emit));
        // Orphan fragments may be packets of other shards, and later than all other packets.
        self.tracker.note_time(self.foreign_ns);
        self.tracker.advance(self.tracker.now(), observer);
    }

    /// Panics unless the internal account of each layer is consistent. For tests and fuzzers; takes time linear in the
    /// stored state.
    pub(super) fn check_invariants(&self) {
        self.tracker.check_invariants();
        self.dedup.as_deref().inspect(|window| window.check_invariants());
        self.decoder.check_invariants();
    }

    /// Tracks the packets of a frame that may contain several, or that waits for other fragments.
    #[cold]
    #[inline(never)]
    fn slow_path<K: Above<S> + ?Sized>(&mut self, frame: &Frame<'_>, packet: &Packet<'_>, observer: &mut K) {
        self.with_emitter(observer, |decoder, emit| decoder.frame(frame, packet, emit));
    }

    /// Calls the decoder with an emitter that filters and tracks the packets that the decoder emits.
    fn with_emitter<K: Above<S> + ?Sized>(
        &mut self,
        observer: &mut K,
        work: impl FnOnce(&mut Decoder, &mut dyn Emit),
    ) {
        let Self { decoder, tracker, filter, filtered_count, foreign_ns, is_again, .. } = self;
        let (filter, is_again) = (filter.as_ref(), *is_again);
        work(decoder, &mut Emitter { tracker, filter, filtered_count, foreign_ns, is_again, observer });
    }

    /// Passes on a message between neighbors that belongs to no flow.
    #[cold]
    #[inline(never)]
    fn neighbor<K: Above<S> + ?Sized>(
        &mut self,
        protocol: NeighborProtocol,
        packet: &Packet<'_>,
        observer: &mut K,
    ) {
        self.with_emitter(observer, |_, emit| emit.neighbor(protocol, packet));
    }

    #[inline(always)]
    fn count_frame(&mut self, frame: &Frame<'_>) {
        self.frame_count += 1;
        self.octet_count += u64::from(frame.wire_len);
    }

    /// Writes the packet of an input to `packet`, and returns the next step for the input.
    #[inline(always)]
    fn receive<'a>(&mut self, input: &Input<'a>, packet: &mut Packet<'a>) -> Extracted {
        match input {
            Input::Frame(frame) => {
                self.count_frame(frame);
                self.extract(frame, packet)
            }
            Input::Dispatched(dispatched) => {
                self.foreign_ns = self.foreign_ns.max(dispatched.clock_ns);
                match dispatched.content {
                    Content::Own(own, data) => {
                        *packet = Packet { frame: data, ..*own };
                        self.choose(packet)
                    }
                    Content::ForAll(frame) => self.extract(&frame, packet),
                }
            }
        }
    }

    /// Extracts the packet of a frame into `packet`, and returns the next step for the frame.
    #[inline(always)]
    fn extract<'a>(&mut self, frame: &Frame<'a>, packet: &mut Packet<'a>) -> Extracted {
        if let Some(window) = &mut self.dedup
            && is_duplicate(window, frame)
        {
            return Extracted::None;
        }
        match self.decoder.read(frame, packet) {
            Decoded::Packet => {}
            Decoded::Several => return Extracted::SlowPath,
            Decoded::Neighbor(protocol) => return Extracted::Neighbor(protocol),
            Decoded::Nothing => return Extracted::None,
        }
        if self.tracker.is_restricted() {
            return self.choose_shard(packet);
        }
        self.choose(packet)
    }

    /// Returns the next step for a packet of a flow that this shard tracks if the filter permits.
    #[inline(always)]
    fn choose(&mut self, packet: &Packet<'_>) -> Extracted {
        match &self.filter {
            Some(filter) if !filter.may_match(&packet.key) => {
                self.filtered_count += 1;
                self.pass_by(packet)
            }
            _ if packet.timestamp.as_nanos() < self.foreign_ns => Extracted::Late,
            _ => Extracted::Packet,
        }
    }

    /// Returns the next step for a packet of a flow that may belong to another shard.
    #[inline(never)]
    fn choose_shard(&mut self, packet: &Packet<'_>) -> Extracted {
        if self.tracker.takes(&packet.key) { self.choose(packet) } else { self.pass_by(packet) }
    }

    /// Returns the next step for a packet that is not tracked here. The packet advances the clock all the same, so that
    /// records depend neither on the filter nor on the number of shards.
    #[inline(never)]
    fn pass_by(&mut self, packet: &Packet<'_>) -> Extracted {
        self.foreign_ns = self.foreign_ns.max(packet.timestamp.as_nanos());
        if is_quoted_here(&self.tracker, self.filter.as_ref(), packet) {
            Extracted::Quoting
        } else {
            Extracted::None
        }
    }
}

/// Returns whether a packet is an ICMP error that quotes a packet of a flow that this tracker tracks.
fn is_quoted_here<S: Default>(tracker: &Tracker<S>, filter: Option<&Filter>, packet: &Packet<'_>) -> bool {
    tracker.quoted_key(packet).is_some_and(|key| filter.is_none_or(|filter| filter.may_match(&key)))
}

/// Returns a dispatcher that distributes frames over shards with this configuration; for a single pipeline if `share`
/// is `None`.
pub(super) fn dispatcher(config: &Config, resources: &Resources, share: Option<Share>) -> Dispatcher {
    let policy = config.tracker.key_policy;
    let slow_path_marks = config.decoder.slow_path_marks(&policy);
    let is_all_for_all = config.dedup.is_some() || config.decoder.checksums != ChecksumHandling::Ignore;
    Dispatcher {
        extractor: Extractor::new(policy).with_limits(resources.limits),
        slow_path_marks,
        is_all_for_all,
        share,
        jumps: Jumps::new(!config.is_time_checked),
        clock_ns: 0,
    }
}

/// Filters and tracks the packets that the decoder emits.
struct Emitter<'a, S, K: ?Sized> {
    tracker: &'a mut Tracker<S>,
    filter: Option<&'a Filter>,
    filtered_count: &'a mut u64,
    /// Latest time of packets that are not tracked here, in nanoseconds.
    foreign_ns: &'a mut u64,
    /// True if the frames were processed before, with all that is not of flows.
    is_again: bool,
    observer: &'a mut K,
}

impl<S: Default, K: Above<S> + ?Sized> Emit for Emitter<'_, S, K> {
    fn packet(&mut self, packet: &Packet<'_>) {
        let is_own = self.tracker.takes(&packet.key);
        let is_dropped = self.filter.is_some_and(|filter| !filter.may_match(&packet.key));
        if is_own && !is_dropped {
            self.tracker.note_time(*self.foreign_ns);
            self.tracker.track(packet, self.observer);
            return;
        }
        *self.filtered_count += u64::from(is_own);
        *self.foreign_ns = (*self.foreign_ns).max(packet.timestamp.as_nanos());
        if is_quoted_here(self.tracker, self.filter, packet) {
            self.tracker.note_quoted_in(packet, self.observer);
        }
    }

    fn encapsulation(
        &mut self,
        packet: &Packet<'_>,
        packet_count: u32,
        headers: &[EncapsulationHeader],
        outer_flow: Option<OuterFlow>,
    ) {
        self.tracker.note_encapsulation(&packet.key, packet.side, packet_count, headers, outer_flow);
    }

    fn carried(&mut self, packet: &Packet<'_>, counted: Counted) {
        let Counted { packet_count, octet_count } = counted;
        self.tracker.note_carried(&packet.key, packet_count.into(), octet_count);
    }

    fn neighbor(&mut self, protocol: NeighborProtocol, packet: &Packet<'_>) {
        if !self.is_again && self.tracker.takes(&packet.key) {
            self.observer.neighbor(protocol, packet, self.filter);
        }
    }
}

/// Returns whether a frame is a duplicate. A separate function, so that the run loop stays as small as without
/// deduplication.
#[inline(never)]
fn is_duplicate(window: &mut Window, frame: &Frame<'_>) -> bool {
    window.check(frame).is_duplicate()
}
