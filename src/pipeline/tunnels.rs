//! Packets that something encloses: what it is, and the flows that carry them.
//!
//! A frame has a level for each IP packet in it, the outermost first. If flows are linked, it counts for the flow of each
//! level, and each flow names the one of the level around it.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::fragments::Way;
use crate::base::{EnclosingHeader, Frame, HeaderKind};
use crate::extractor::Packet;
use crate::link::{Entry, IpPacket};
use crate::record::OuterFlow;
use crate::tracker::FlowSink;

/// What is asked for, and what is known of the way to the packet at hand.
#[derive(Debug, Default)]
pub(super) struct Tunnels {
    /// Whether headers are noted.
    pub(super) is_noted: bool,
    /// Whether the flows of all levels count, and are linked.
    pub(super) is_linked: bool,
    /// The headers around the packet at hand.
    headers: Vec<EnclosingHeader>,
    /// How many of them are around the frame's octets, if these are a datagram that was put together.
    around_len: usize,
    /// The flow that carries the packet at hand.
    outer: Option<OuterFlow>,
    /// Packets that were counted for a flow that carries others.
    pub(super) enclosing_count: u64,
}

/// Frames that were counted for a flow, and their octets on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) packet_count: u32,
    pub(super) octet_count: u64,
}

impl Tunnels {
    pub(super) const fn is_wanted(&self) -> bool {
        self.is_noted || self.is_linked
    }

    /// Begins a frame that was captured.
    pub(super) fn begin(&mut self) {
        self.headers.clear();
        self.around_len = 0;
        self.outer = None;
    }

    /// Notes the way to a packet in the frame, or in the datagram that was put together.
    fn note_way(&mut self, frame: &Frame<'_>, found: &IpPacket) {
        self.headers.truncate(self.around_len);
        if self.is_noted {
            let way = found.encapsulation.headers();
            self.headers.extend(way.iter().map(|header| match header.kind {
                HeaderKind::Ip => ip_header(frame.data, header.offset as usize),
                kind => EnclosingHeader::new(kind, header.id),
            }));
        }
    }

    /// What comes next is the datagram of which the packet is a fragment. All its fragments came the same way: the pool
    /// tells others apart.
    pub(super) fn enter_datagram(&mut self, frame: &Frame<'_>, found: &IpPacket) {
        self.note_way(frame, found);
        self.around_len = self.headers.len();
    }

    /// The headers around the packet at hand; none if they are VLAN tags, which a record has in any case.
    fn headers(&self) -> &[EnclosingHeader] {
        let is_tagged_only = self.headers.iter().all(|header| header.kind == HeaderKind::Vlan);
        if is_tagged_only { &[] } else { &self.headers }
    }
}

impl<S: Default, K: FlowSink<S> + ?Sized> Way<'_, S, K> {
    /// Counts a frame for the flows that carry its innermost packet, outermost first, if flows are linked. `count` tracks
    /// the packet of a level.
    pub(super) fn track_enclosing(
        &mut self,
        frame: &Frame<'_>,
        entry: Option<Entry>,
        innermost: &IpPacket,
        mut count: impl FnMut(&mut Self, &Packet<'_>, &IpPacket) -> Counted,
    ) {
        if !self.tunnels.is_linked {
            return;
        }
        // Walked anew for each level, of which there are few; what is not linked does not pay for it.
        for level in 0..innermost.encapsulation.level() {
            let Some(found) = self.extractor.find_at(frame, entry, level) else { return };
            let packet = self.extractor.packet(frame, &found);
            let counted = count(self, &packet, &found);
            self.note(frame, &found, &packet, counted);
            let Counted { packet_count, octet_count } = counted;
            self.tracker.note_carried(&packet.key, packet_count.into(), octet_count);
            self.tunnels.enclosing_count += u64::from(packet_count);
            self.tunnels.outer = Some(OuterFlow::new(packet.key, packet.side));
        }
    }

    /// Notes what encloses a packet that was tracked, in so many frames.
    pub(super) fn note(
        &mut self,
        frame: &Frame<'_>,
        found: &IpPacket,
        packet: &Packet<'_>,
        counted: Counted,
    ) {
        if !self.tunnels.is_wanted() {
            return;
        }
        self.tunnels.note_way(frame, found);
        let Tunnels { outer, .. } = *self.tunnels;
        let flow = (&packet.key, packet.side);
        self.tracker.note_enclosed(flow, counted.packet_count, self.tunnels.headers(), outer);
    }
}

/// The header at an offset, with its addresses if they were captured.
fn ip_header(data: &[u8], at: usize) -> EnclosingHeader {
    let header = data.get(at..).unwrap_or_default();
    let v4 = |at: usize| header.get(at..)?.first_chunk().map(|octets: &[u8; 4]| Ipv4Addr::from(*octets));
    let v6 = |at: usize| header.get(at..)?.first_chunk().map(|octets: &[u8; 16]| Ipv6Addr::from(*octets));
    let ends = match header.first().map(|octet| octet >> 4) {
        Some(6) => v6(8).zip(v6(24)).map(|(source, destination)| (source.into(), destination.into())),
        _ => v4(12).zip(v4(16)).map(|(source, destination)| (source.into(), destination.into())),
    };
    match ends {
        Some((source, destination)) => EnclosingHeader::ip(source, destination),
        None => EnclosingHeader::new(HeaderKind::Ip, 0),
    }
}
