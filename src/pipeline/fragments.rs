//! Fragments on their way to the flow of their datagram.
//!
//! A fragment waits in the pool with a [`Tag`]: what its packet needs once the datagram tells whose it is. A datagram that
//! is whole re-enters the walk where it stopped, so that the flow may lie in a tunnel inside it, or it may be a fragment
//! again.

use ahash::RandomState;

use super::reassembled::Datagram;
use super::tunnels::{Counted, Tunnels};
use crate::base::{FlowKey, Frame, IpProtocol, LinkType, Side, Timestamp, VlanIds};
use crate::extractor::{Extractor, Packet, PacketMarks, Transport};
use crate::filter::Filter;
use crate::fragment::{ConfigError, DatagramKey, Ended, Fragment, FragmentStats, Outcome, Pool, PoolConfig};
use crate::link::{Entry, HeaderKind, IpPacket, LinkInfo, fragment_header};
use crate::tracker::{FlowSink, Tracker};

/// What a [`Pipeline`](super::Pipeline) does with IP fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FragmentHandling {
    /// Puts datagrams together: each fragment is a packet of its datagram's flow, counted when the datagram is whole or
    /// given up, and the payload counts once, with the fragment that completes it. Fragments whose first part never
    /// came are no packets of any flow, and counted in
    /// [`PipelineStats::fragment_alone_count`](super::PipelineStats::fragment_alone_count).
    #[default]
    Reassemble,
    /// The same, but fragments whose first part never came count for the flow of their address pair, without ports.
    ReassembleOrPair,
    /// Nothing waits: a first fragment counts by its ports, all others for the flow of their address pair.
    AsTheyCome,
}

/// What is kept of a fragment's frame until its flow is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    timestamp: Timestamp,
    wire_len: u32,
    ip_len: u32,
    interface: u32,
    vlan_ids: VlanIds,
    vni: Option<u32>,
    destination_mac: Option<[u8; 6]>,
    source_mac: Option<[u8; 6]>,
    /// As the fragment itself tells it.
    protocol: IpProtocol,
    hop_limit: u8,
    traffic_class: u8,
}

impl Tag {
    fn new(frame: &Frame<'_>, found: &IpPacket) -> Self {
        let macs = found.link.mac_addresses;
        Self {
            timestamp: frame.timestamp,
            wire_len: frame.wire_len.max(frame.data.len() as u32),
            ip_len: u32::try_from(found.ip.len).unwrap_or(u32::MAX),
            interface: frame.interface,
            vlan_ids: found.link.vlan_ids,
            vni: found.link.vni,
            destination_mac: macs.destination(frame.data),
            source_mac: macs.source(frame.data),
            protocol: found.ip.protocol,
            hop_limit: found.ip.hop_limit,
            traffic_class: found.ip.traffic_class,
        }
    }

    /// Takes what a packet says that the datagram carried in a tunnel: it counts once, with the frame that completes it.
    fn carry(&mut self, frame: &Frame<'_>, found: &IpPacket, is_last: bool) {
        let inner = Self::new(frame, found);
        let ip_len = if is_last { inner.ip_len } else { 0 };
        let Self { timestamp, wire_len, interface, .. } = *self;
        *self = Self { timestamp, wire_len, interface, ip_len, ..inner };
    }

    /// What the headers before the fragment said, in front of which its hardware addresses are written.
    pub(super) fn link(&self, addresses: &mut [u8; Datagram::ADDRESSES_LEN]) -> LinkInfo {
        let mac_addresses = Datagram::write_addresses(addresses, self.destination_mac, self.source_mac);
        LinkInfo { mac_addresses, vlan_ids: self.vlan_ids, vni: self.vni }
    }

    /// When and where it was captured.
    pub(super) const fn captured(&self) -> (Timestamp, u32) {
        (self.timestamp, self.interface)
    }

    /// Traffic class, and time to live or hop limit.
    pub(super) const fn service(&self) -> (u8, u8) {
        (self.traffic_class, self.hop_limit)
    }
}

/// Where packets go: what the pipeline lends for the time of one fragment.
pub(super) struct Way<'a, S, K: ?Sized> {
    pub(super) extractor: &'a Extractor,
    pub(super) tracker: &'a mut Tracker<S>,
    pub(super) filter: Option<&'a Filter>,
    pub(super) filtered_count: &'a mut u64,
    pub(super) tunnels: &'a mut Tunnels,
    /// The latest time of packets of other shards.
    pub(super) foreign_ns: &'a mut u64,
    pub(super) sink: &'a mut K,
}

impl<S: Default, K: FlowSink<S> + ?Sized> Way<'_, S, K> {
    pub(super) fn track(&mut self, packet: &Packet<'_>) {
        let is_own = self.tracker.takes(&packet.key);
        if self.filter.is_some_and(|filter| !filter.may_match(&packet.key)) {
            *self.filtered_count += u64::from(is_own);
        } else if is_own {
            self.tracker.note_time(*self.foreign_ns);
            self.tracker.track(packet, self.sink);
        } else {
            *self.foreign_ns = (*self.foreign_ns).max(packet.timestamp.as_nanos());
            if self.tracker.is_quoted_in(packet) {
                self.tracker.note_quoted_in(packet, self.sink);
            }
        }
    }

    /// A fragment of which nothing but its frame counts.
    fn track_tag(&mut self, tag: &Tag, (key, side): (FlowKey, Side), marks: PacketMarks) {
        let mut addresses = [0; Datagram::ADDRESSES_LEN];
        let link = tag.link(&mut addresses);
        let end = addresses.len() as u32;
        self.track(&Packet {
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

/// The pool, and room for datagrams that leave it.
#[derive(Debug)]
pub(super) struct Defragmenter {
    pool: Pool<Tag>,
    whole: Datagram,
    /// The frames of the datagram at hand, the one that was just read last.
    tags: Vec<Tag>,
    lone: Lone,
    /// Keyed, so that nobody can choose tunnels whose scopes are one.
    scopes: RandomState,
}

/// What happens to datagrams that were given up.
#[derive(Debug)]
struct Lone {
    is_pair: bool,
    count: u64,
    octet_count: u64,
    head: Datagram,
    /// The flow of the datagram that the fragment at hand ended.
    ended: Option<(DatagramKey, (FlowKey, Side))>,
}

impl Defragmenter {
    pub(super) fn new(config: PoolConfig, handling: FragmentHandling) -> Result<Self, ConfigError> {
        let lone = Lone {
            is_pair: handling == FragmentHandling::ReassembleOrPair,
            count: 0,
            octet_count: 0,
            head: Datagram::default(),
            ended: None,
        };
        let scopes = match config.seeds {
            // In another order than the pool's, so that it is another hash.
            Some([a, b, c, d]) => RandomState::with_seeds(d, c, b, a),
            None => RandomState::new(),
        };
        Ok(Self { pool: Pool::new(config)?, whole: Datagram::default(), tags: Vec::new(), lone, scopes })
    }

    pub(super) const fn held_bytes(&self) -> u64 {
        self.pool.held_bytes()
    }

    pub(super) fn check_invariants(&self) {
        self.pool.check_invariants();
    }

    pub(super) const fn stats(&self) -> &FragmentStats {
        self.pool.stats()
    }

    /// Fragments that were counted for no flow, and the octets of their frames on the wire.
    pub(super) const fn alone(&self) -> (u64, u64) {
        (self.lone.count, self.lone.octet_count)
    }

    /// Takes a frame whose innermost packet is a fragment.
    #[inline(never)]
    pub(super) fn frame<S: Default, K: FlowSink<S> + ?Sized>(
        &mut self,
        frame: &Frame<'_>,
        found: &IpPacket,
        way: &mut Way<'_, S, K>,
    ) {
        self.tags.clear();
        self.tags.push(Tag::new(frame, found));
        let mut scope = scope_of(&self.scopes, way.extractor.policy().scope_of(frame).into(), frame, found);
        way.tunnels.enter_datagram(frame, found);
        if !self.push(frame, found, scope, way) {
            return;
        }
        // Each datagram put together may hold a fragment again, as deep as tunnels may be.
        for _ in 0..way.extractor.limits().encapsulation_depth_max {
            let Some(tag) = self.tags.last().copied() else { return };
            let mut whole = std::mem::take(&mut self.whole);
            let (frame, entry) = whole.frame(&tag);
            let found = way.extractor.find(&frame, Some(entry));
            if let Some(found) = &found {
                let tags = &mut self.tags;
                way.track_enclosing(&frame, Some(entry), found, |way, packet, found| {
                    carry(tags, &frame, entry, found);
                    track_whole(tags, packet, way)
                });
                carry(tags, &frame, entry, found);
            }
            let goes_on = match found {
                Some(found) if found.ip.is_fragment => {
                    scope = scope_of(&self.scopes, scope, &frame, &found);
                    way.tunnels.enter_datagram(&frame, &found);
                    self.push(&frame, &found, scope, way)
                }
                Some(found) => {
                    let packet = way.extractor.packet(&frame, &found);
                    let counted = track_whole(&mut self.tags, &packet, way);
                    way.note(&frame, &found, &packet, counted);
                    false
                }
                None => false,
            };
            // The room of the outer datagram is used again, unless a new one came out of it.
            if self.whole.is_empty() {
                self.whole = whole;
            }
            if !goes_on {
                return;
            }
        }
        self.count_rest(way);
    }

    /// Gives a fragment to the pool, once for each frame that it came in; whether a datagram is whole, which is then in
    /// `whole`, and its frames in `tags`.
    fn push<S: Default, K: FlowSink<S> + ?Sized>(
        &mut self,
        frame: &Frame<'_>,
        found: &IpPacket,
        scope: u64,
        way: &mut Way<'_, S, K>,
    ) -> bool {
        let Some(fragment) = fragment(frame, found, scope, way.extractor) else {
            // Its header is cut: nothing tells where it belongs.
            let packet = way.extractor.packet(frame, found);
            let tags = std::mem::take(&mut self.tags);
            for tag in &tags {
                way.track_tag(tag, (packet.key, packet.side), packet.marks);
            }
            self.tags = tags;
            return false;
        };
        let Self { pool, whole, tags, lone, .. } = self;
        lone.ended = None;
        // Hosts drop it, and what was sent of it is not known: its octets are no part of a datagram.
        if found.ip.is_over_long {
            tags.iter().for_each(|tag| lone.refuse(tag, &fragment, frame, found, way));
            return false;
        }
        // More than one frame brought it if it was inside a fragmented datagram: the further ones are its duplicates.
        for place in 0..tags.len() {
            let Some(tag) = tags.get(place).copied() else { return false };
            match pool.push(&fragment, tag, |ended| lone.end(&ended, way)) {
                Outcome::Held(_) | Outcome::Duplicate(_) => {}
                Outcome::Completed(completed) | Outcome::CompletedCut(completed) => {
                    whole.put_together(&completed);
                    tags.splice(..=place, completed.tags.iter().copied());
                    return true;
                }
                _ => lone.refuse(&tag, &fragment, frame, found, way),
            }
        }
        false
    }

    /// Counts the frames of a datagram that is nested too deep on the flow that its outermost level tells.
    fn count_rest<S: Default, K: FlowSink<S> + ?Sized>(&mut self, way: &mut Way<'_, S, K>) {
        let Some(tag) = self.tags.last().copied() else { return };
        let (frame, entry) = self.whole.frame(&tag);
        let Some(found) = way.extractor.find(&frame, Some(entry)) else { return };
        let packet = way.extractor.packet(&frame, &found);
        let marks = packet.marks.with(PacketMarks::TOO_DEEP, true);
        self.tags.iter().for_each(|tag| way.track_tag(tag, (packet.key, packet.side), marks));
    }

    /// Gives up what is due at a time.
    pub(super) fn advance<S: Default, K: FlowSink<S> + ?Sized>(
        &mut self,
        now: Timestamp,
        way: &mut Way<'_, S, K>,
    ) {
        let Self { pool, lone, .. } = self;
        pool.advance(now, |ended| lone.end(&ended, way));
    }

    /// Gives up what has waited longest while the budget asks for memory back.
    pub(super) fn relieve<S: Default, K: FlowSink<S> + ?Sized>(&mut self, way: &mut Way<'_, S, K>) {
        let Self { pool, lone, .. } = self;
        pool.relieve(&mut |ended| lone.end(&ended, way));
    }

    /// Gives up all that waits.
    pub(super) fn finish<S: Default, K: FlowSink<S> + ?Sized>(&mut self, way: &mut Way<'_, S, K>) {
        let Self { pool, lone, .. } = self;
        pool.finish(|ended| lone.end(&ended, way));
    }
}

impl Lone {
    /// Counts the fragments of a datagram that was given up: on its flow, if the first part told it.
    fn end<S: Default, K: FlowSink<S> + ?Sized>(&mut self, ended: &Ended<'_, Tag>, way: &mut Way<'_, S, K>) {
        let flow = ended.head.zip(ended.tags.last()).and_then(|(head, tag)| {
            self.head.put_head(&ended.key, ended.protocol.unwrap_or(tag.protocol), head);
            let (frame, entry) = self.head.frame(tag);
            let found = way.extractor.find(&frame, Some(entry))?;
            let packet = way.extractor.packet(&frame, &found);
            Some((packet.key, packet.side))
        });
        self.ended = flow.map(|flow| (ended.key, flow));
        for tag in ended.tags {
            match flow {
                Some(flow) => way.track_tag(tag, flow, PacketMarks::default()),
                None => self.alone(tag, &ended.key, way),
            }
        }
    }

    /// Counts a fragment that the pool did not keep: on its flow if it is a first part or ended a datagram that had one.
    fn refuse<S: Default, K: FlowSink<S> + ?Sized>(
        &mut self,
        tag: &Tag,
        fragment: &Fragment<'_>,
        frame: &Frame<'_>,
        found: &IpPacket,
        way: &mut Way<'_, S, K>,
    ) {
        let of_ended = self.ended.filter(|(key, _)| *key == fragment.key).map(|(_, flow)| flow);
        let flow = of_ended.or_else(|| {
            let packet = way.extractor.packet(frame, found);
            let has_ports = packet.transport != Transport::Other || !tag.protocol.has_ports();
            (fragment.offset == 0 && has_ports).then_some((packet.key, packet.side))
        });
        let marks = PacketMarks::default().with(PacketMarks::BAD_IP_LEN, found.ip.is_over_long);
        match flow {
            Some(flow) => way.track_tag(tag, flow, marks),
            None => self.alone(tag, &fragment.key, way),
        }
    }

    fn alone<S: Default, K: FlowSink<S> + ?Sized>(
        &mut self,
        tag: &Tag,
        key: &DatagramKey,
        way: &mut Way<'_, S, K>,
    ) {
        if !self.is_pair {
            self.count += 1;
            self.octet_count += u64::from(tag.wire_len);
            return;
        }
        let policy = way.extractor.policy();
        let [source, destination] = [key.source(), key.destination()].map(|address| match address {
            std::net::IpAddr::V4(address) => u128::from(address.to_bits()),
            std::net::IpAddr::V6(address) => address.to_bits(),
        });
        let (pair, side) = policy.key(tag.protocol, key.is_ipv6(), (source, 0), (destination, 0), false);
        let link = tag.link(&mut [0; Datagram::ADDRESSES_LEN]);
        let (timestamp, interface) = tag.captured();
        let frame = Frame { timestamp, link_type: LinkType::RAW, data: &[], wire_len: 0, interface };
        let pair = policy.complete(pair, &frame, &link);
        way.track_tag(tag, (pair, side), PacketMarks::WITHOUT_PORTS);
    }
}

/// Gives the frames of a datagram what a packet says that it carried in a tunnel.
fn carry(tags: &mut [Tag], frame: &Frame<'_>, entry: Entry, found: &IpPacket) {
    if found.offset != entry.offset {
        let count = tags.len();
        tags.iter_mut().zip(1..).for_each(|(tag, number)| tag.carry(frame, found, number == count));
    }
}

/// Counts the packet of a datagram on its flow: its frames in the order in which they came, the last one with the payload.
fn track_whole<S: Default, K: FlowSink<S> + ?Sized>(
    tags: &mut [Tag],
    packet: &Packet<'_>,
    way: &mut Way<'_, S, K>,
) -> Counted {
    let Some((last, others)) = tags.split_last_mut() else { return Counted::default() };
    // Fragments of fragments come in the order in which the outer datagrams were whole.
    others.sort_unstable_by_key(|tag| tag.timestamp);
    for tag in &*others {
        way.track_tag(tag, (packet.key, packet.side), PacketMarks::default());
    }
    let marks = packet.marks.with(PacketMarks::FRAGMENT, true).with(PacketMarks::REASSEMBLED, true);
    way.track(&Packet { wire_len: last.wire_len, ip_len: last.ip_len, marks, ..*packet });
    Counted {
        packet_count: tags.len() as u32,
        octet_count: tags.iter().map(|tag| u64::from(tag.wire_len)).sum(),
    }
}

/// What the pool is to know of the fragment that the walk found.
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

/// A number for what encloses a fragment: tunnels with their ids and endpoints, and VLANs. Datagrams of two tenants with
/// the same addresses are kept apart by it. It grows by header, so that it is the same whether what encloses the fragment
/// was itself in fragments or not.
fn scope_of(scopes: &RandomState, outer: u64, frame: &Frame<'_>, found: &IpPacket) -> u64 {
    found.encapsulation.headers().iter().fold(outer, |scope, header| {
        let ends = match header.kind {
            HeaderKind::Ip => addresses(frame.data, header.offset as usize),
            _ => None,
        };
        scopes.hash_one((scope, header.kind, header.id, ends))
    })
}

/// Source and destination in the IP header at an offset.
fn addresses(data: &[u8], at: usize) -> Option<&[u8]> {
    let header = data.get(at..)?;
    if header.first()? >> 4 == 6 { header.get(8..40) } else { header.get(12..20) }
}
