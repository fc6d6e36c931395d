//! The run loop.

use super::ConfigError;
use super::checksums::{ChecksumHandling, ChecksumStats, Verifier};
use super::fragments::{Defragmenter, FragmentHandling, Way};
use super::jumps::Jumps;
use super::shards::{Deal, Dealer, Dealt, QueueStats, What};
use super::tunnels::{Counted, Tunnels};
use crate::base::{Account, Frame, FrameBatch, Timestamp};
use crate::dedup::{DedupConfig, DedupStats, Window};
use crate::extractor::{Extractor, KeyPolicy, Packet, PacketMarks, SkipStats};
use crate::filter::Filter;
use crate::fragment::{FragmentStats, PoolConfig};
use crate::link::Decapsulation;
use crate::reassembler::ReassemblerStats;
use crate::session::DriverStats;
use crate::source::{Error, Source};
use crate::tracker::{FlowSink, Share, Tracker, TrackerConfig, TrackerStats};

/// Packets that are extracted before they are tracked together.
const CHUNK: usize = 32;

/// What went through a [`Pipeline`].
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PipelineStats {
    /// Frames.
    pub frame_count: u64,
    /// Octets of the frames on the wire.
    pub octet_count: u64,
    /// Frames with a time far ahead of all before, which the next one did not confirm: they count at the latest time before.
    /// See [`TIME_JUMP_MAX`](super::TIME_JUMP_MAX).
    pub doubted_time_count: u64,
    /// Duplicates, which are dropped before anything else; all zero if that was not asked for.
    pub dedup: DedupStats,
    /// Frames that are no packet of any flow, by reason.
    pub skipped: SkipStats,
    /// Packets that the filter dropped.
    pub filtered_count: u64,
    /// What verifying checksums found.
    pub checksums: ChecksumStats,
    /// Fragments that are no packet of any flow, because the first part of their datagram never came.
    pub fragment_alone_count: u64,
    /// Octets of their frames on the wire.
    pub fragment_alone_octet_count: u64,
    /// What the pool of fragments counted.
    pub fragments: FragmentStats,
    /// Packets that were counted for a flow that carries others, beside the one for the innermost flow; none unless
    /// [`Decapsulation::Both`] is asked for.
    pub enclosing_count: u64,
    /// What the reassembler counted; all zero without streams.
    pub streams: ReassemblerStats,
    /// What the session driver counted; all zero without sessions.
    pub sessions: DriverStats,
    /// What queues between threads held; all zero without [`Shards`](super::Shards).
    pub queues: QueueStats,
    /// What the tracker counted.
    pub tracker: TrackerStats,
}

/// Extractor and tracker, wired: takes frames, batches, or a whole source. `S` is the caller's state per flow.
#[derive(Debug)]
pub struct Pipeline<S> {
    jumps: Jumps,
    dedup: Option<Box<Window>>,
    extractor: Extractor,
    tracker: Tracker<S>,
    filter: Option<Filter>,
    fragments: Option<Box<Defragmenter>>,
    verifier: Verifier,
    tunnels: Tunnels,
    /// Packets with one of these are not tracked in batches.
    apart_marks: PacketMarks,
    frame_count: u64,
    octet_count: u64,
    filtered_count: u64,
    skipped: SkipStats,
    /// The latest time of packets of other shards.
    foreign_ns: u64,
}

/// What comes in.
enum Given<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// What the reader of several shards made of one. It was counted.
    Dealt(Dealt<'a>),
}

/// What becomes of a frame.
enum Extracted {
    /// A packet, to be tracked.
    Packet,
    /// A fragment of a datagram, or a packet of which is noted what encloses it.
    Apart,
    /// The same, but packets of other shards were later.
    Late,
    /// A packet of another shard that quotes one of a flow here.
    Quoting,
    /// Nothing that is tracked.
    None,
}

impl Default for Pipeline<()> {
    /// With default configuration and without a state per flow.
    #[expect(clippy::expect_used, reason = "the default configuration is valid, which a test holds")]
    fn default() -> Self {
        Self::new(TrackerConfig::default()).expect("the default configuration is valid")
    }
}

impl<S: Default> Pipeline<S> {
    /// A pipeline with a tracker configuration of the caller's; its key policy, limits, budget and seeds go for the other
    /// layers too.
    ///
    /// # Errors
    ///
    /// As [`Tracker::new`], and [`Pool::new`](crate::fragment::Pool::new) for the pool of fragments.
    pub fn new(config: TrackerConfig) -> Result<Self, ConfigError> {
        let policy: KeyPolicy = config.key_policy;
        let extractor = Extractor::new(policy).with_limits(config.limits);
        let mut pool = PoolConfig::default();
        (pool.limits, pool.budget, pool.seeds) = (config.limits, config.budget.clone(), config.seeds);
        let tracker = Tracker::new(config)?;
        let mut tunnels = Tunnels::default();
        tunnels.is_linked = policy.decapsulation == Decapsulation::Both;
        let pipeline = Self {
            jumps: Jumps::default(),
            dedup: None,
            extractor,
            tracker,
            filter: None,
            fragments: None,
            verifier: Verifier::default(),
            tunnels,
            apart_marks: PacketMarks::default(),
            frame_count: 0,
            octet_count: 0,
            filtered_count: 0,
            skipped: SkipStats::default(),
            foreign_ns: 0,
        };
        pipeline.with_fragments(FragmentHandling::default(), pool)
    }

    /// The same with other ways for fragments, and a pool of the caller's for them; without one if
    /// [they are taken as they come](FragmentHandling::AsTheyCome).
    ///
    /// # Errors
    ///
    /// As [`Pool::new`](crate::fragment::Pool::new).
    pub fn with_fragments(
        mut self,
        handling: FragmentHandling,
        pool: PoolConfig,
    ) -> Result<Self, ConfigError> {
        // What the pool had is given back first.
        self.fragments = None;
        if handling != FragmentHandling::AsTheyCome {
            self.fragments = Some(Box::new(Defragmenter::new(pool, handling)?));
        }
        self.choose_apart();
        Ok(self)
    }

    /// Drops frames that were captured twice, which are taken as they come by default.
    ///
    /// # Errors
    ///
    /// As [`Window::new`].
    pub fn with_dedup(mut self, config: DedupConfig) -> Result<Self, ConfigError> {
        // What an earlier window had is given back first.
        self.dedup = None;
        self.dedup = Some(Box::new(Window::new(config)?));
        Ok(self)
    }

    /// Drops packets before the flow table that belong to no flow which the filter could let pass.
    ///
    /// A filter with `src`, `dst` or `vlan` is about a whole flow; ask it again of the record.
    #[must_use]
    pub fn with_filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Verifies the checksums of each frame, which are not looked at by default.
    #[must_use]
    pub fn with_checksums(mut self, handling: ChecksumHandling) -> Self {
        self.verifier.handling = handling;
        self
    }

    /// Keeps what encloses the packets of each flow, for [`FlowRecord::enclosure`](crate::record::FlowRecord): headers with
    /// their numbers, and the ends of tunnels. Off by default; flows that nothing encloses pay nothing for it.
    #[must_use]
    pub fn with_encapsulation(mut self, is_kept: bool) -> Self {
        self.tunnels.is_noted = is_kept;
        self.choose_apart();
        self
    }

    /// Chooses whether a frame with a time far ahead of all before it waits for the next frame to confirm it, as it does by
    /// default. Without the check every time is believed, and a frame is tracked in the call that brings it.
    #[must_use]
    pub const fn with_time_check(mut self, is_checked: bool) -> Self {
        self.jumps.is_off = !is_checked;
        self
    }

    fn choose_apart(&mut self) {
        self.apart_marks = PacketMarks::default()
            .with(PacketMarks::FRAGMENT, self.fragments.is_some())
            .with(PacketMarks::ENCAPSULATED, self.tunnels.is_wanted());
    }

    /// The tracker: for look-ups, removal and its clock.
    pub const fn tracker_mut(&mut self) -> &mut Tracker<S> {
        &mut self.tracker
    }

    /// The tracker, to look at.
    #[must_use]
    pub const fn tracker(&self) -> &Tracker<S> {
        &self.tracker
    }

    /// What went through so far. Copies the counts by reason.
    #[must_use]
    pub fn stats(&self) -> PipelineStats {
        let fragments = self.fragments.as_deref();
        let (fragment_alone_count, fragment_alone_octet_count) =
            fragments.map(Defragmenter::alone).unwrap_or_default();
        PipelineStats {
            frame_count: self.frame_count,
            octet_count: self.octet_count,
            doubted_time_count: self.jumps.doubted_count,
            dedup: self.dedup.as_deref().map(|window| *window.stats()).unwrap_or_default(),
            skipped: self.skipped.clone(),
            filtered_count: self.filtered_count,
            checksums: self.verifier.stats,
            fragment_alone_count,
            fragment_alone_octet_count,
            fragments: fragments.map(|fragments| *fragments.stats()).unwrap_or_default(),
            enclosing_count: self.tunnels.enclosing_count,
            streams: ReassemblerStats::default(),
            sessions: DriverStats::default(),
            queues: QueueStats::default(),
            tracker: *self.tracker.stats(),
        }
    }

    /// Takes all frames of a source, then ends the flows.
    ///
    /// Stops early, between batches, if the sink wants no more. What a source met that it could not read, it tells
    /// by its warnings.
    ///
    /// # Errors
    ///
    /// What the source gives; the flows so far are ended before it is returned.
    pub fn run<K: FlowSink<S> + ?Sized>(
        &mut self,
        source: &mut (impl Source + ?Sized),
        sink: &mut K,
    ) -> Result<(), Error> {
        let outcome = drive(source, |batch| {
            self.batch(batch, sink);
            sink.wants_more()
        });
        self.finish(sink);
        outcome
    }

    /// Takes the frames of a batch. The last one waits for the next batch if its time lies far ahead of all before it
    /// ([`TIME_JUMP_MAX`](super::TIME_JUMP_MAX)).
    pub fn batch<K: FlowSink<S> + ?Sized>(&mut self, batch: &FrameBatch, sink: &mut K) {
        let reviewed = self.jumps.review(batch);
        self.frames(reviewed.as_ref().unwrap_or(batch).iter().map(Given::Frame), sink);
    }

    /// Takes the frames of a batch that are dealt to this shard.
    pub(super) fn dealt<K: FlowSink<S> + ?Sized>(
        &mut self,
        batch: &FrameBatch,
        deal: &Deal,
        shard: usize,
        sink: &mut K,
    ) {
        self.frame_count += deal.frame_count;
        self.octet_count += deal.octet_count;
        if let Some(hand) = deal.hand(shard) {
            self.frames(hand.iter(batch).map(Given::Dealt), sink);
        }
        self.foreign_ns = self.foreign_ns.max(deal.clock.as_nanos());
    }

    #[inline(always)]
    fn frames<'a, K: FlowSink<S> + ?Sized>(&mut self, frames: impl Iterator<Item = Given<'a>>, sink: &mut K) {
        let mut packets = [Packet::EMPTY; CHUNK];
        let mut count = 0;
        for given in frames {
            match self.receive(&given, &mut packets[count]) {
                Extracted::Packet => count += 1,
                Extracted::None => {}
                Extracted::Late => {
                    self.tracker.track_batch(&packets[..count], sink);
                    self.tracker.note_time(self.foreign_ns);
                    packets[0] = packets[count];
                    count = 1;
                }
                Extracted::Quoting => {
                    self.tracker.track_batch(&packets[..count], sink);
                    self.tracker.note_time(self.foreign_ns);
                    self.tracker.note_quoted_in(&packets[count], sink);
                    count = 0;
                }
                Extracted::Apart => {
                    // What came before it is tracked before it.
                    self.tracker.track_batch(&packets[..count], sink);
                    count = 0;
                    if let Given::Frame(frame) | Given::Dealt(Dealt { what: What::ForAll(frame), .. }) =
                        &given
                    {
                        self.apart(frame, sink);
                    }
                }
            }
            if count == CHUNK {
                self.tracker.track_batch(&packets, sink);
                count = 0;
            }
        }
        self.tracker.track_batch(&packets[..count], sink);
        if self.is_asked_for_fragments() {
            self.relieve(sink);
        }
    }

    /// Whether fragments wait, and the budget asks for their memory.
    #[inline(always)]
    fn is_asked_for_fragments(&self) -> bool {
        let has_some = self.fragments.as_ref().is_some_and(|fragments| fragments.held_bytes() > 0);
        has_some && self.tracker.budget().is_pressed(Account::Fragments)
    }

    /// Gives up fragments that wait, so that others find memory.
    #[cold]
    #[inline(never)]
    fn relieve<K: FlowSink<S> + ?Sized>(&mut self, sink: &mut K) {
        self.with_way(sink, |fragments, way| {
            if let Some(fragments) = fragments {
                fragments.relieve(way);
            }
        });
    }

    /// Takes one frame, as a batch of one.
    pub fn frame<K: FlowSink<S> + ?Sized>(&mut self, frame: &Frame<'_>, sink: &mut K) {
        match self.jumps.review_frame(frame) {
            None => self.take_frame(frame, sink),
            Some(reviewed) => reviewed.iter().for_each(|frame| self.take_frame(&frame, sink)),
        }
    }

    fn take_frame<K: FlowSink<S> + ?Sized>(&mut self, frame: &Frame<'_>, sink: &mut K) {
        let mut packet = Packet::EMPTY;
        self.count_frame(frame);
        match self.extract(frame, &mut packet) {
            Extracted::Packet => self.tracker.track(&packet, sink),
            Extracted::Late => {
                self.tracker.note_time(self.foreign_ns);
                self.tracker.track(&packet, sink);
            }
            Extracted::Quoting => {
                self.tracker.note_time(self.foreign_ns);
                self.tracker.note_quoted_in(&packet, sink);
            }
            Extracted::Apart => self.apart(frame, sink),
            Extracted::None => {}
        }
        if self.is_asked_for_fragments() {
            self.relieve(sink);
        }
    }

    /// Ends datagrams and flows that are due at a time, for live capture when no packets come. A frame that waits is taken.
    pub fn advance<K: FlowSink<S> + ?Sized>(&mut self, now: Timestamp, sink: &mut K) {
        if let Some(held) = self.jumps.release_at(now) {
            self.frames(held.iter().map(Given::Frame), sink);
        }
        self.with_way(sink, |fragments, way| {
            if let Some(fragments) = fragments {
                fragments.advance(now, way);
            }
        });
        self.tracker.advance(now, sink);
    }

    /// Ends all datagrams and flows; see [`Tracker::finish`].
    pub fn finish<K: FlowSink<S> + ?Sized>(&mut self, sink: &mut K) {
        if let Some(held) = self.jumps.release() {
            self.frames(held.iter().map(Given::Frame), sink);
        }
        self.tracker.note_time(self.foreign_ns);
        self.with_way(sink, |fragments, way| {
            if let Some(fragments) = fragments {
                fragments.finish(way);
            }
        });
        // Fragments that were given up may be packets of other shards, and later than all others.
        self.tracker.note_time(self.foreign_ns);
        self.tracker.finish(sink);
    }

    /// Panics unless each layer agrees with its own account. For tests and fuzzers; takes time linear in what is held.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.tracker.check_invariants();
        self.dedup.as_deref().inspect(|window| window.check_invariants());
        self.fragments.as_deref().inspect(|fragments| fragments.check_invariants());
    }

    /// Counts a packet that is a fragment, or that something encloses.
    #[cold]
    #[inline(never)]
    fn apart<K: FlowSink<S> + ?Sized>(&mut self, frame: &Frame<'_>, sink: &mut K) {
        let frame = &Frame { wire_len: frame.wire_len.max(frame.data.len() as u32), ..*frame };
        let counted = Counted { packet_count: 1, octet_count: frame.wire_len.into() };
        self.with_way(sink, |fragments, way| {
            let Some(found) = way.extractor.find(frame, None) else { return };
            way.tunnels.begin();
            way.track_enclosing(frame, None, &found, |way, packet, _| {
                way.track(packet);
                counted
            });
            if let Some(fragments) = fragments.filter(|_| found.ip.is_fragment) {
                return fragments.frame(frame, &found, way);
            }
            let packet = way.extractor.packet(frame, &found);
            way.track(&packet);
            way.note(frame, &found, &packet, counted);
        });
    }

    /// Lends what it takes to count packets apart from a batch.
    fn with_way<K: FlowSink<S> + ?Sized>(
        &mut self,
        sink: &mut K,
        work: impl FnOnce(Option<&mut Defragmenter>, &mut Way<'_, S, K>),
    ) {
        let Self { extractor, tracker, filter, fragments, filtered_count, tunnels, foreign_ns, .. } = self;
        let filter = filter.as_ref();
        work(
            fragments.as_deref_mut(),
            &mut Way { extractor, tracker, filter, filtered_count, tunnels, foreign_ns, sink },
        );
    }

    #[inline(always)]
    fn count_frame(&mut self, frame: &Frame<'_>) {
        self.frame_count += 1;
        self.octet_count += u64::from(frame.wire_len);
    }

    /// Makes a packet of what is given; what is to be done with it.
    #[inline(always)]
    fn receive<'a>(&mut self, given: &Given<'a>, packet: &mut Packet<'a>) -> Extracted {
        match given {
            Given::Frame(frame) => {
                self.count_frame(frame);
                self.extract(frame, packet)
            }
            Given::Dealt(dealt) => {
                self.foreign_ns = self.foreign_ns.max(dealt.clock_ns);
                match dealt.what {
                    What::Own(own, data) => {
                        *packet = Packet { frame: data, ..*own };
                        self.choose(packet)
                    }
                    What::ForAll(frame) => self.extract(&frame, packet),
                }
            }
        }
    }

    /// Reads a frame into `packet`; what is to be done with it.
    #[inline(always)]
    fn extract<'a>(&mut self, frame: &Frame<'a>, packet: &mut Packet<'a>) -> Extracted {
        if let Some(window) = &mut self.dedup
            && is_duplicate(window, frame)
        {
            return Extracted::None;
        }
        if let Err(skip) = self.extractor.extract_into(frame, packet) {
            self.skipped.count(&skip);
            return Extracted::None;
        }
        if self.verifier.handling != ChecksumHandling::Ignore
            && !self.verifier.accepts(frame, &self.extractor)
        {
            return Extracted::None;
        }
        if packet.marks.contains(self.apart_marks) {
            return Extracted::Apart;
        }
        if self.tracker.is_restricted() {
            return self.deal(packet);
        }
        self.choose(packet)
    }

    /// What is to be done with a packet whose flow is tracked here.
    #[inline(always)]
    fn choose(&mut self, packet: &Packet<'_>) -> Extracted {
        match &self.filter {
            Some(filter) if !filter.may_match(&packet.key) => {
                self.filtered_count += 1;
                Extracted::None
            }
            _ if packet.timestamp.as_nanos() < self.foreign_ns => Extracted::Late,
            _ => Extracted::Packet,
        }
    }

    /// What looks at frames for all shards that are made as this one.
    pub(super) fn dealer(&self, share: Share) -> Dealer {
        Dealer {
            extractor: self.extractor,
            filter: self.filter.clone(),
            apart_marks: self.apart_marks,
            is_all_for_all: self.dedup.is_some() || self.verifier.handling != ChecksumHandling::Ignore,
            share,
            jumps: Jumps::new(self.jumps.is_off),
            clock_ns: 0,
        }
    }

    /// What is to be done with a packet where other shards take the rest. Time goes on for all of them alike.
    #[inline(never)]
    fn deal(&mut self, packet: &Packet<'_>) -> Extracted {
        let is_own = self.tracker.takes(&packet.key);
        if self.filter.as_ref().is_some_and(|filter| !filter.may_match(&packet.key)) {
            self.filtered_count += u64::from(is_own);
            return Extracted::None;
        }
        let time_ns = packet.timestamp.as_nanos();
        match is_own {
            true if time_ns < self.foreign_ns => Extracted::Late,
            true => Extracted::Packet,
            false => {
                self.foreign_ns = self.foreign_ns.max(time_ns);
                if self.tracker.is_quoted_in(packet) { Extracted::Quoting } else { Extracted::None }
            }
        }
    }
}

/// Hands over the batches of a source while `take` says to go on.
pub(super) fn drive(
    source: &mut (impl Source + ?Sized),
    mut take: impl FnMut(&FrameBatch) -> bool,
) -> Result<(), Error> {
    let mut batch = FrameBatch::new();
    loop {
        match source.next_batch(&mut batch) {
            Ok(false) => return Ok(()),
            Ok(true) if !take(&batch) => return Ok(()),
            Ok(true) => {}
            Err(error) => {
                // What was read before the error is in the batch.
                take(&batch);
                return Err(error);
            }
        }
    }
}

/// Apart, so that the run loop stays as small as without.
#[inline(never)]
fn is_duplicate(window: &mut Window, frame: &Frame<'_>) -> bool {
    window.check(frame).is_duplicate()
}
