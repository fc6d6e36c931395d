//! Defragmentation: attributes fragments to the flow of their datagram.
//!
//! A fragment waits in the pool with a [`Tag`], which holds the data of the fragment's frame that is needed
//! to count the fragment once the flow of the datagram is known. A complete datagram is walked from its IP
//! header, so the flow may be inside a tunnel in the datagram, or the datagram may itself contain a fragment.

use ahash::RandomState;

use super::emit::Counted;
use super::encapsulation::DecodeContext;
use super::extractor::{Extractor, Packet, PacketMarks, Transport};
use super::fragment::{DatagramKey, Ended, Fragment, FragmentStats, Outcome, Pool, PoolConfig};
use super::link::{Entry, FrameEncapsulation, HeaderKind, IpPacket, Walked, fragment_header};
use super::reassembled::Datagram;
use super::tag::Tag;
use crate::base::{ConfigError, FlowKey, Frame, LinkType, Resources, Side, Timestamp};
use crate::wire::ethernet::ADDRESSES_LEN;
use crate::wire::ip::is_ipv6;
use crate::wire::{ipv4, ipv6};

/// Handling of IP fragments in a [`Pipeline`](crate::pipeline::Pipeline).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FragmentHandling {
    /// Reassembles datagrams. Each fragment is a packet of its datagram's flow and is counted when the
    /// datagram is complete or discarded. The payload counts once, with the fragment that completes the
    /// datagram. Fragments of a datagram whose first fragment never arrived are packets of no flow and are
    /// counted in
    /// [`PipelineStats::orphan_fragment_count`](crate::pipeline::PipelineStats::orphan_fragment_count).
    #[default]
    Reassemble,
    /// Reassembles datagrams as [`Reassemble`](Self::Reassemble) does, but fragments of a datagram whose
    /// first fragment never arrived count for the flow of their address pair, without ports.
    ReassembleOrPair,
    /// Does not reassemble datagrams: a first fragment counts for the flow of its ports, and a later fragment
    /// for the flow of its address pair, without ports.
    AsTheyCome,
}

impl DecodeContext<'_> {
    /// Emits a packet for the frame that a tag describes. The packet counts the frame and its IP octets, but
    /// no payload.
    fn emit_tag(&mut self, tag: &Tag, (key, side): (FlowKey, Side), marks: PacketMarks) {
        let mut addresses = [0; ADDRESSES_LEN];
        let link = tag.link(&mut addresses);
        let end = addresses.len() as u32;
        self.emit.packet(&Packet {
            wire_len: tag.wire_len,
            ip_len: tag.ip_len,
            ip_offset: end,
            transport_offset: end,
            payload_offset: end,
            interface: tag.interface,
            mac_addresses: link.mac_addresses,
            vlan_ids: tag.vlan_ids,
            hop_limit: tag.hop_limit,
            traffic_class: tag.traffic_class,
            marks: marks.with(PacketMarks::FRAGMENT, true),
            ..Packet::new(key, side, tag.timestamp, &addresses)
        });
    }
}

/// Fragment pool, and a buffer for the datagrams that the pool completes.
#[derive(Debug)]
pub(super) struct Defragmenter {
    pool: Pool<Tag>,
    whole: Datagram,
    /// Frames of the current datagram; the last one is the frame that was just read.
    tags: Vec<Tag>,
    orphans: OrphanFragments,
    /// Keyed hash for the scopes of datagrams, so that an attacker cannot choose tunnels whose scopes
    /// collide.
    scopes: RandomState,
    /// Scope of the current fragment: a hash of its outer headers and of its interface.
    scope: u64,
}

/// Counting of fragments whose datagram was discarded, and of fragments that the pool did not keep.
#[derive(Debug)]
struct OrphanFragments {
    is_pair: bool,
    count: u64,
    octet_count: u64,
    head: Datagram,
    /// Key of the datagram that ended last while the current fragment was pushed, and the flow key and side
    /// of that datagram; `None` if no datagram ended, or if the flow is not known.
    ended: Option<(DatagramKey, (FlowKey, Side))>,
}

impl Defragmenter {
    pub(super) fn new(
        config: PoolConfig,
        handling: FragmentHandling,
        resources: &Resources,
    ) -> Result<Self, ConfigError> {
        let orphans = OrphanFragments {
            is_pair: handling == FragmentHandling::ReassembleOrPair,
            count: 0,
            octet_count: 0,
            head: Datagram::default(),
            ended: None,
        };
        // In a different order from the pool's, so that the hash differs from the pool's.
        let scopes = crate::base::hash_state(resources.seeds.map(|[a, b, c, d]| [d, c, b, a]));
        let pool = Pool::new(config, resources)?;
        Ok(Self { pool, whole: Datagram::default(), tags: Vec::new(), orphans, scopes, scope: 0 })
    }

    pub(super) const fn held_datagram_count(&self) -> usize {
        self.pool.len()
    }

    pub(super) fn check_invariants(&self) {
        self.pool.check_invariants();
    }

    pub(super) const fn stats(&self) -> &FragmentStats {
        self.pool.stats()
    }

    /// Number of fragments that were counted for no flow, and the octets of their frames on the wire.
    pub(super) const fn set_counters(&mut self, stats: FragmentStats, orphans: (u64, u64)) {
        self.pool.set_stats(stats);
        (self.orphans.count, self.orphans.octet_count) = orphans;
    }

    pub(super) const fn orphan_counts(&self) -> (u64, u64) {
        (self.orphans.count, self.orphans.octet_count)
    }

    /// Processes a frame whose innermost packet is a fragment; `walked` is the result of the walk over the
    /// frame. If the fragment completes its datagram, the datagram is walked too.
    #[inline(never)]
    pub(super) fn frame(
        &mut self,
        frame: &Frame<'_>,
        walked: &mut Walked<FrameEncapsulation>,
        context: &mut DecodeContext<'_>,
    ) {
        self.tags.clear();
        self.tags.push(Tag::new(frame, &walked.packet));
        let interface_scope = context.extractor.policy().scope_of(frame).into();
        self.scope = scope_of(&self.scopes, interface_scope, frame, walked);
        context.encapsulation.enter_datagram(frame, walked.encapsulation.headers());
        if !self.push(frame, &walked.packet, context) {
            return;
        }
        // Each reassembled datagram may contain a fragment again, up to the maximum depth of tunnels.
        for _ in 0..context.extractor.limits().encapsulation_depth_max {
            let Some(tag) = self.tags.last().copied() else { return };
            let mut whole = std::mem::take(&mut self.whole);
            let (frame, entry) = whole.frame(&tag);
            let is_found = context.extractor.walk(&frame, Some(entry), walked).is_ok();
            let goes_on = is_found && self.inside(&frame, entry, walked, context);
            // The memory of the outer datagram is reused unless it completed a new one.
            if self.whole.is_empty() {
                self.whole = whole;
            }
            if !goes_on {
                return;
            }
        }
        self.count_rest(context);
    }

    /// Emits the packets of a complete datagram. Returns whether its innermost packet is a fragment that
    /// completes another datagram.
    fn inside(
        &mut self,
        frame: &Frame<'_>,
        entry: Entry,
        walked: &Walked<FrameEncapsulation>,
        context: &mut DecodeContext<'_>,
    ) -> bool {
        let tags = &mut self.tags;
        context.emit_outer(frame, walked, |context, packet, found| {
            carry(tags, frame, entry, found);
            emit_whole(tags, packet, context)
        });
        carry(tags, frame, entry, &walked.packet);
        if walked.packet.ip.is_fragment {
            self.scope = scope_of(&self.scopes, self.scope, frame, walked);
            context.encapsulation.enter_datagram(frame, walked.encapsulation.headers());
            return self.push(frame, &walked.packet, context);
        }
        let packet = context.extractor.packet(frame, &walked.packet);
        let counted = emit_whole(tags, &packet, context);
        context.report(frame, walked.encapsulation.headers(), &packet, counted);
        false
    }

    /// Pushes a fragment to the pool, once for each frame that carried a part of the fragment (several if the
    /// fragment was inside a fragmented datagram). Returns whether a datagram is now complete; if so, `whole`
    /// contains the datagram and `tags` its frames.
    fn push(&mut self, frame: &Frame<'_>, found: &IpPacket, context: &mut DecodeContext<'_>) -> bool {
        let Some(fragment) = fragment(frame, found, self.scope, context.extractor) else {
            // The header is truncated, so the datagram cannot be identified.
            let packet = context.extractor.packet(frame, found);
            let tags = std::mem::take(&mut self.tags);
            for tag in &tags {
                context.emit_tag(tag, (packet.key, packet.side), packet.marks);
            }
            self.tags = tags;
            return false;
        };
        let Self { pool, whole, tags, orphans, .. } = self;
        orphans.ended = None;
        // Hosts drop it, and its octets as sent are not known, so they are not part of a datagram.
        if found.ip.is_over_long {
            tags.iter().for_each(|tag| orphans.refuse(tag, &fragment, frame, found, context));
            return false;
        }
        // Several frames carried it if it was inside a fragmented datagram: the others are its duplicates.
        for index in 0..tags.len() {
            let Some(tag) = tags.get(index).copied() else { return false };
            match pool.push(&fragment, tag, |ended| orphans.end(&ended, context)) {
                Outcome::Held(_) | Outcome::Duplicate(_) => {}
                Outcome::Completed(completed) | Outcome::CompletedTruncated(completed) => {
                    whole.put_together(&completed);
                    tags.splice(..=index, completed.tags.iter().copied());
                    return true;
                }
                _ => orphans.refuse(&tag, &fragment, frame, found, context),
            }
        }
        false
    }

    /// Counts the frames of a reassembled datagram that is nested too deep, for the flow of the packet that
    /// one more walk over this datagram finds.
    fn count_rest(&mut self, context: &mut DecodeContext<'_>) {
        let Some(tag) = self.tags.last().copied() else { return };
        let (frame, entry) = self.whole.frame(&tag);
        let mut found = Walked::new(());
        if context.extractor.walk(&frame, Some(entry), &mut found).is_err() {
            return;
        }
        let packet = context.extractor.packet(&frame, &found.packet);
        let marks = packet.marks.with(PacketMarks::TOO_DEEP, true);
        self.tags.iter().for_each(|tag| context.emit_tag(tag, (packet.key, packet.side), marks));
    }

    /// Discards incomplete datagrams whose deadline has passed at `now`.
    pub(super) fn advance(&mut self, now: Timestamp, context: &mut DecodeContext<'_>) {
        let Self { pool, orphans, .. } = self;
        pool.advance(now, |ended| orphans.end(&ended, context));
    }

    /// Discards the oldest incomplete datagrams while the budget requests memory.
    pub(super) fn relieve(&mut self, context: &mut DecodeContext<'_>) {
        let Self { pool, orphans, .. } = self;
        pool.relieve(&mut |ended| orphans.end(&ended, context));
    }

    /// Discards all incomplete datagrams, at the end of the input.
    pub(super) fn finish(&mut self, context: &mut DecodeContext<'_>) {
        let Self { pool, orphans, .. } = self;
        pool.finish(|ended| orphans.end(&ended, context));
    }
}

impl OrphanFragments {
    /// Counts the fragments of a discarded datagram: for its flow if the first fragment arrived and
    /// identifies the flow, otherwise as orphan fragments.
    fn end(&mut self, ended: &Ended<'_, Tag>, context: &mut DecodeContext<'_>) {
        let flow = ended.head.zip(ended.tags.last()).and_then(|(head, tag)| {
            self.head.put_head(&ended.key, ended.protocol.unwrap_or(tag.protocol), head);
            let (frame, entry) = self.head.frame(tag);
            let mut found = Walked::new(());
            context.extractor.walk(&frame, Some(entry), &mut found).ok()?;
            let packet = context.extractor.packet(&frame, &found.packet);
            Some((packet.key, packet.side))
        });
        self.ended = flow.map(|flow| (ended.key, flow));
        for tag in ended.tags {
            match flow {
                Some(flow) => context.emit_tag(tag, flow, PacketMarks::default()),
                None => self.count_orphan(tag, &ended.key, context),
            }
        }
    }

    /// Counts a fragment that the pool did not keep. The fragment counts for a flow if it is a first
    /// fragment, or if it caused a datagram with a first fragment to be discarded; otherwise it is an orphan
    /// fragment.
    fn refuse(
        &mut self,
        tag: &Tag,
        fragment: &Fragment<'_>,
        frame: &Frame<'_>,
        found: &IpPacket,
        context: &mut DecodeContext<'_>,
    ) {
        let of_ended = self.ended.filter(|(key, _)| *key == fragment.key).map(|(_, flow)| flow);
        let flow = of_ended.or_else(|| {
            let packet = context.extractor.packet(frame, found);
            let has_ports = packet.transport != Transport::Other || !tag.protocol.has_ports();
            (fragment.offset == 0 && has_ports).then_some((packet.key, packet.side))
        });
        let marks = PacketMarks::default().with(PacketMarks::BAD_IP_LEN, found.ip.is_over_long);
        match flow {
            Some(flow) => context.emit_tag(tag, flow, marks),
            None => self.count_orphan(tag, &fragment.key, context),
        }
    }

    fn count_orphan(&mut self, tag: &Tag, key: &DatagramKey, context: &mut DecodeContext<'_>) {
        if !self.is_pair {
            self.count += 1;
            self.octet_count += u64::from(tag.wire_len);
            return;
        }
        let policy = context.extractor.policy();
        let [source, destination] = [key.source(), key.destination()].map(|address| match address {
            std::net::IpAddr::V4(address) => u128::from(address.to_bits()),
            std::net::IpAddr::V6(address) => address.to_bits(),
        });
        let (pair, side) = policy.key(tag.protocol, key.is_ipv6(), (source, 0), (destination, 0), false);
        let link = tag.link(&mut [0; ADDRESSES_LEN]);
        let (timestamp, interface) = tag.captured();
        let frame = Frame { timestamp, link_type: LinkType::RAW, data: &[], wire_len: 0, interface };
        let pair = policy.complete(pair, &frame, &link);
        context.emit_tag(tag, (pair, side), PacketMarks::WITHOUT_PORTS);
    }
}

/// Copies the fields of a packet that a walk found to the tags of the reassembled datagram's frames, if the
/// packet is inside a tunnel in the datagram.
fn carry(tags: &mut [Tag], frame: &Frame<'_>, entry: Entry, found: &IpPacket) {
    if found.offset != entry.offset {
        let count = tags.len();
        tags.iter_mut().zip(1..).for_each(|(tag, number)| tag.carry(frame, found, number == count));
    }
}

/// Emits the frames of a reassembled datagram as packets of its flow, in order of arrival. The last packet
/// contains the payload.
fn emit_whole(tags: &mut [Tag], packet: &Packet<'_>, context: &mut DecodeContext<'_>) -> Counted {
    let Some((last, others)) = tags.split_last_mut() else { return Counted::default() };
    // Fragments of fragments arrive in the order in which the outer datagrams were completed.
    others.sort_unstable_by_key(|tag| tag.timestamp);
    for tag in &*others {
        context.emit_tag(tag, (packet.key, packet.side), PacketMarks::default());
    }
    let marks = packet.marks.with(PacketMarks::FRAGMENT, true).with(PacketMarks::REASSEMBLED, true);
    context.emit.packet(&Packet { wire_len: last.wire_len, ip_len: last.ip_len, marks, ..*packet });
    Counted {
        packet_count: tags.len() as u32,
        octet_count: tags.iter().map(|tag| u64::from(tag.wire_len)).sum(),
    }
}

/// Returns the fragment that a walk found, as input of the pool; `None` if its header is truncated.
fn fragment<'a>(
    frame: &Frame<'a>,
    found: &IpPacket,
    scope: u64,
    extractor: &Extractor,
) -> Option<Fragment<'a>> {
    let end = (found.offset + found.ip.len).min(frame.data.len());
    let packet = frame.data.get(found.offset..end)?;
    let header = fragment_header(packet, found.ether_type, extractor.limits())?;
    let (source, destination) = (found.ip.source, found.ip.destination);
    let key = if found.ip.is_ipv6 {
        DatagramKey::v6(source.into(), destination.into(), header.identification, scope)
    } else {
        let [source, destination] = [source, destination].map(|bits| (bits as u32).into());
        DatagramKey::v4(source, destination, header.identification as u16, header.protocol, scope)
    };
    Some(Fragment {
        key,
        timestamp: frame.timestamp,
        protocol: header.protocol,
        offset: header.offset,
        more_fragments: header.more_fragments,
        header_len: header.header_len,
        len: u32::try_from(found.ip.len.saturating_sub(header.payload_offset)).unwrap_or(u32::MAX),
        bytes: packet.get(header.payload_offset..).unwrap_or_default(),
    })
}

/// Returns a hash that identifies the outer headers of a fragment: tunnels with their identifiers and
/// endpoints, and VLANs. The hash separates the datagrams of two tenants with the same addresses. It is
/// computed header by header, starting from `outer`, so it does not depend on whether the outer packet was
/// itself fragmented.
fn scope_of(scopes: &RandomState, outer: u64, frame: &Frame<'_>, walked: &Walked<FrameEncapsulation>) -> u64 {
    walked.encapsulation.headers().iter().fold(outer, |scope, header| {
        let ends = match header.kind {
            HeaderKind::Ip => addresses(frame.data, header.offset as usize),
            _ => None,
        };
        scopes.hash_one((scope, header.kind, header.id, ends))
    })
}

/// Returns the octets of the source and destination addresses in the IP header at the offset `at` of `data`.
fn addresses(data: &[u8], at: usize) -> Option<&[u8]> {
    let header = data.get(at..)?;
    if is_ipv6(header) {
        ipv6::addresses(header).map(|octets| octets.as_slice())
    } else {
        ipv4::addresses(header).map(|octets| octets.as_slice())
    }
}
