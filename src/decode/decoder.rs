//! Decoder: yields the packets of a frame in one walk.
//!
//! [`Decoder::read`] writes the packet of a common frame in place and walks every other frame once. If the
//! packet is a fragment, or if outer headers are requested, [`Decoder::frame`] then emits it from the result
//! of that walk. Fragments wait in the pool, so [`advance`](Decoder::advance), [`relieve`](Decoder::relieve)
//! and [`finish`](Decoder::finish) emit packets too.

use super::defragmenter::{Defragmenter, FragmentHandling};
use super::emit::{Counted, Emit};
use super::encapsulation::{DecodeContext, PacketEncapsulation};
use super::extractor::{Extractor, KeyPolicy, Packet, PacketMarks, Skip, SkipStats};
use super::fragment::{FragmentStats, PoolConfig};
use super::link::{Decapsulation, FrameEncapsulation, NoPacket, Unsupported, Walked, aggregated};
use super::neighbor::{mark, message_in, neighbor_protocol};
use super::verifier::{ChecksumHandling, ChecksumStats, Verifier};
use crate::base::{ConfigError, Frame, NeighborProtocol, Resources, Timestamp};

/// Result of decoding a frame: one packet, several packets, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// The frame holds one packet, which was written to the caller's packet.
    Packet,
    /// The frame may hold several packets or a fragment, or its packet a message between neighbors; the caller has to
    /// call [`Decoder::frame`], which emits them.
    Several,
    /// The frame holds a message between neighbors instead of an IP packet. The caller's packet describes where it is; it
    /// belongs to no flow, and the frame was counted as one without a packet.
    Neighbor(NeighborProtocol),
    /// The frame counts for no flow. The reason was counted.
    Nothing,
}

/// Settings of a [`Decoder`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DecoderConfig {
    pub(crate) fragments: FragmentHandling,
    pub(crate) fragment_pool: PoolConfig,
    pub(crate) checksums: ChecksumHandling,
    /// True if the outer headers of each packet (tunnels, label stacks, PPPoE) are reported.
    pub(crate) is_encapsulation_kept: bool,
}

impl DecoderConfig {
    /// Returns the marks of the packets that [`Decoder::frame`] has to emit.
    pub(crate) fn slow_path_marks(&self, policy: &KeyPolicy) -> PacketMarks {
        let is_linked = policy.decapsulation == Decapsulation::Both;
        PacketMarks::NEIGHBOR
            .with(PacketMarks::FRAGMENT, self.fragments != FragmentHandling::AsTheyCome)
            .with(PacketMarks::ENCAPSULATED, is_linked || self.is_encapsulation_kept)
    }
}

/// Counters of a [`Decoder`].
pub(crate) struct DecoderCounters {
    skipped: SkipStats,
    checksums: ChecksumStats,
    fragments: FragmentStats,
    orphan_counts: (u64, u64),
    outer_packet_count: u64,
    aggregated_count: u64,
}

/// Converts frames to packets: decapsulates, reassembles fragments, verifies checksums, and counts nested
/// packets.
#[derive(Debug)]
pub(crate) struct Decoder {
    extractor: Extractor,
    verifier: Verifier,
    slow_path_marks: PacketMarks,
    fragments: Option<Box<Defragmenter>>,
    /// Innermost packet of the frame that was walked last, and the headers around it.
    walked: Walked<FrameEncapsulation>,
    encapsulation: PacketEncapsulation,
    skipped: SkipStats,
    /// True if the frame that was walked last is an 802.11 aggregate of several frames.
    is_aggregate: bool,
    /// Number of frames in aggregates in addition to the first of each.
    aggregated_count: u64,
}

impl Decoder {
    pub(crate) fn new(
        config: &DecoderConfig,
        policy: KeyPolicy,
        resources: &Resources,
    ) -> Result<Self, ConfigError> {
        let fragments = match config.fragments {
            FragmentHandling::AsTheyCome => None,
            handling => Some(Box::new(Defragmenter::new(config.fragment_pool, handling, resources)?)),
        };
        let is_linked = policy.decapsulation == Decapsulation::Both;
        Ok(Self {
            extractor: Extractor::new(policy).with_limits(resources.limits),
            verifier: Verifier::new(config.checksums),
            slow_path_marks: config.slow_path_marks(&policy),
            fragments,
            walked: Walked::new(FrameEncapsulation::new(is_linked)),
            encapsulation: PacketEncapsulation::new(config.is_encapsulation_kept, is_linked),
            skipped: SkipStats::default(),
            is_aggregate: false,
            aggregated_count: 0,
        })
    }

    /// Reads a frame and writes its innermost packet to `packet`. If the result is [`Decoded::Several`], the
    /// caller has to call [`frame`](Self::frame), which emits the packets.
    #[inline(always)]
    pub(crate) fn read<'a>(&mut self, frame: &Frame<'a>, packet: &mut Packet<'a>) -> Decoded {
        if !self.extractor.read_in_place(frame, packet) {
            return self.walk(frame, packet);
        }
        if self.verifier.is_wanted() && !self.verifier.accepts_plain(packet, self.extractor.limits()) {
            return Decoded::Nothing;
        }
        Decoded::Packet
    }

    /// Reads a frame that the fast path does not support, and writes its innermost packet to `packet`.
    #[inline(never)]
    fn walk<'a>(&mut self, frame: &Frame<'a>, packet: &mut Packet<'a>) -> Decoded {
        if let Err(reason) = self.extractor.walk(frame, None, &mut self.walked) {
            return self.without_packet(reason, frame, packet);
        }
        if self.verifier.is_wanted() && !self.verifier.accepts(frame.data, &self.walked.packet) {
            return Decoded::Nothing;
        }
        *packet = self.extractor.packet(frame, &self.walked.packet);
        packet.note_link_type(frame.link_type);
        mark(packet, self.walked.other.as_ref());
        if packet.marks.contains(self.slow_path_marks) { Decoded::Several } else { Decoded::Packet }
    }

    /// Counts a frame without a packet, unless it is an aggregate, which [`frame`](Self::frame) divides.
    #[cold]
    fn without_packet<'a>(
        &mut self,
        reason: NoPacket,
        frame: &Frame<'a>,
        packet: &mut Packet<'a>,
    ) -> Decoded {
        self.is_aggregate = matches!(reason, NoPacket::Unsupported(Unsupported::WlanAggregate));
        if self.is_aggregate {
            return Decoded::Several;
        }
        self.skipped.count(&Skip::from(reason));
        match self.walked.other.and_then(|other| message_in(frame, &other)) {
            Some((protocol, message)) => {
                *packet = message;
                Decoded::Neighbor(protocol)
            }
            None => Decoded::Nothing,
        }
    }

    /// Processes each part of an aggregate as a frame of its own.
    #[inline(never)]
    fn aggregate(&mut self, frame: &Frame<'_>, emit: &mut dyn Emit) {
        self.is_aggregate = false;
        for (index, part) in aggregated(frame).into_iter().flatten().enumerate() {
            self.aggregated_count += u64::from(index > 0);
            let mut packet = Packet::EMPTY;
            match self.read(&part, &mut packet) {
                Decoded::Packet => emit.packet(&packet),
                // An Ethernet frame is no aggregate.
                Decoded::Several => self.frame(&part, &packet, emit),
                Decoded::Neighbor(protocol) => emit.neighbor(protocol, &packet),
                Decoded::Nothing => {}
            }
        }
    }

    /// Emits the packets of the frame for which [`read`](Self::read) just returned `Several`; `packet` is the
    /// innermost one, unless the frame is an aggregate. If flows are linked, the packets of the outer flows are emitted first. If `packet` is a
    /// fragment that completes its datagram, all packets of the datagram are emitted.
    #[cold]
    #[inline(never)]
    pub(crate) fn frame(&mut self, frame: &Frame<'_>, packet: &Packet<'_>, emit: &mut dyn Emit) {
        if self.is_aggregate {
            return self.aggregate(frame, emit);
        }
        if let Some(protocol) = neighbor_protocol(packet) {
            emit.neighbor(protocol, packet);
        } else if let Some((protocol, message)) =
            self.walked.other.and_then(|other| message_in(frame, &other))
        {
            emit.neighbor(protocol, &message);
        }
        let counted = Counted { packet_count: 1, octet_count: frame.wire_len.into() };
        let Self { extractor, encapsulation, fragments, walked, .. } = self;
        let mut context = DecodeContext { extractor, encapsulation, emit };
        context.encapsulation.begin();
        context.emit_outer(frame, walked, |context, packet, _| {
            context.emit.packet(packet);
            counted
        });
        if let Some(fragments) = fragments.as_deref_mut().filter(|_| walked.packet.ip.is_fragment) {
            return fragments.frame(frame, walked, &mut context);
        }
        context.emit.packet(packet);
        context.report(frame, walked.encapsulation.headers(), packet, counted);
    }

    /// Discards fragments whose deadline has passed at `now`.
    pub(crate) fn advance(&mut self, now: Timestamp, emit: &mut dyn Emit) {
        self.with_fragments(emit, |fragments, context| fragments.advance(now, context));
    }

    /// Discards the oldest fragments while the budget requests memory.
    pub(crate) fn relieve(&mut self, emit: &mut dyn Emit) {
        self.with_fragments(emit, |fragments, context| fragments.relieve(context));
    }

    /// Discards all fragments that wait for the rest of their datagrams, at the end of the input.
    pub(crate) fn finish(&mut self, emit: &mut dyn Emit) {
        self.with_fragments(emit, |fragments, context| fragments.finish(context));
    }

    fn with_fragments(
        &mut self,
        emit: &mut dyn Emit,
        work: impl FnOnce(&mut Defragmenter, &mut DecodeContext<'_>),
    ) {
        let Self { extractor, encapsulation, fragments, .. } = self;
        if let Some(fragments) = fragments {
            work(fragments, &mut DecodeContext { extractor, encapsulation, emit });
        }
    }

    pub(crate) const fn extractor(&self) -> &Extractor {
        &self.extractor
    }

    /// Returns the marks of the packets that [`frame`](Self::frame) has to emit.
    pub(crate) const fn slow_path_marks(&self) -> PacketMarks {
        self.slow_path_marks
    }

    /// Returns whether checksums are verified.
    pub(crate) fn is_verifying(&self) -> bool {
        self.verifier.is_wanted()
    }

    /// Returns whether fragments are reassembled, so that a pool of them holds memory.
    #[inline(always)]
    pub(crate) const fn is_reassembling(&self) -> bool {
        self.fragments.is_some()
    }

    /// Returns the counters that frames change, so that [`set_counters`](Self::set_counters) can restore them.
    pub(crate) fn counters(&self) -> DecoderCounters {
        DecoderCounters {
            skipped: self.skipped.clone(),
            checksums: self.verifier.stats,
            fragments: self.fragments(),
            orphan_counts: self.orphan_counts(),
            outer_packet_count: self.outer_packet_count(),
            aggregated_count: self.aggregated_count,
        }
    }

    pub(crate) fn set_counters(&mut self, counters: DecoderCounters) {
        let DecoderCounters { skipped, checksums, fragments, orphan_counts, .. } = counters;
        self.aggregated_count = counters.aggregated_count;
        self.skipped = skipped;
        self.verifier.stats = checksums;
        self.encapsulation.outer_packet_count = counters.outer_packet_count;
        if let Some(own) = &mut self.fragments {
            own.set_counters(fragments, orphan_counts);
        }
    }

    pub(crate) const fn skipped(&self) -> &SkipStats {
        &self.skipped
    }

    pub(crate) const fn checksums(&self) -> ChecksumStats {
        self.verifier.stats
    }

    pub(crate) fn fragments(&self) -> FragmentStats {
        self.fragments.as_deref().map(|fragments| *fragments.stats()).unwrap_or_default()
    }

    /// Returns the number of datagrams with fragments that wait for others.
    pub(crate) fn held_datagram_count(&self) -> u64 {
        self.fragments.as_deref().map_or(0, |fragments| fragments.held_datagram_count() as u64)
    }

    /// Returns the number of fragments that were counted for no flow, and the octets of their frames on the
    /// wire.
    pub(crate) fn orphan_counts(&self) -> (u64, u64) {
        self.fragments.as_deref().map(Defragmenter::orphan_counts).unwrap_or_default()
    }

    /// Returns the number of packets that were counted for an outer flow, which is a flow that carries other
    /// flows.
    pub(crate) const fn outer_packet_count(&self) -> u64 {
        self.encapsulation.outer_packet_count
    }

    /// Returns the number of frames in 802.11 aggregates in addition to the first of each.
    pub(crate) const fn aggregated_count(&self) -> u64 {
        self.aggregated_count
    }

    /// Panics unless the fragment pool is consistent with its own accounting. Takes time linear in the
    /// content of the pool.
    pub(crate) fn check_invariants(&self) {
        self.fragments.as_deref().inspect(|fragments| fragments.check_invariants());
    }
}
