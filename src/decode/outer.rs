//! Outer headers and outer flows.
//!
//! A frame has one level for each IP packet in it, the outermost first. If flows are linked, the frame counts
//! for the flow of each level, and each flow refers to the flow of the level around it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::emit::{Counted, Emit};
use super::extractor::{Extractor, Packet};
use super::link::{EncapsulationHeader, IpPacket, Trail};
use crate::base::{Frame, HeaderKind, OuterHeader};
use crate::record::OuterFlow;
use crate::wire::ip::is_ipv6;
use crate::wire::ipv4::Ipv4;
use crate::wire::ipv6::Ipv6;

/// Headers around the current packet and the flow that carried it, if they are requested.
#[derive(Debug, Default)]
pub(super) struct OuterHeaders {
    /// True if headers are reported.
    is_reported: bool,
    /// True if the flows of all levels count and are linked.
    is_linked: bool,
    headers: Vec<OuterHeader>,
    /// Number of headers around the reassembled datagram that is being walked; zero in a captured frame.
    datagram_header_count: usize,
    outer: Option<OuterFlow>,
    /// Packets that were counted for a flow that carries others.
    pub(super) outer_packet_count: u64,
}

impl OuterHeaders {
    pub(super) fn new(is_reported: bool, is_linked: bool) -> Self {
        Self { is_reported, is_linked, ..Self::default() }
    }

    /// Starts the processing of a captured frame.
    pub(super) fn begin(&mut self) {
        self.headers.clear();
        self.datagram_header_count = 0;
        self.outer = None;
    }

    /// Replaces the headers around a packet in the frame or in the reassembled datagram.
    fn set_headers(&mut self, frame: &Frame<'_>, headers: &[EncapsulationHeader]) {
        self.headers.truncate(self.datagram_header_count);
        if self.is_reported {
            self.headers.extend(headers.iter().map(|header| match header.kind {
                HeaderKind::Ip => ip_header(frame.data, header.offset as usize),
                kind => OuterHeader::new(kind, header.id),
            }));
        }
    }

    /// Enters the datagram that a packet is a fragment of. The headers around all its fragments are the same,
    /// because the pool separates fragments with different headers.
    pub(super) fn enter_datagram(&mut self, frame: &Frame<'_>, headers: &[EncapsulationHeader]) {
        self.set_headers(frame, headers);
        self.datagram_header_count = self.headers.len();
    }

    /// Returns the headers around the current packet; none if they are only VLAN tags, which a record
    /// contains in any case.
    fn headers(&self) -> &[OuterHeader] {
        let is_tagged_only = self.headers.iter().all(|header| header.kind == HeaderKind::Vlan);
        if is_tagged_only { &[] } else { &self.headers }
    }
}

/// Dependencies for emitting packets.
pub(super) struct DecodeContext<'a, E: ?Sized> {
    pub(super) extractor: &'a Extractor,
    pub(super) outer: &'a mut OuterHeaders,
    pub(super) emit: &'a mut E,
}

impl<E: Emit + ?Sized> DecodeContext<'_, E> {
    /// Counts a frame for the flows that carry its innermost packet, outermost first, if flows are linked.
    /// `count` emits the packet of a level.
    pub(super) fn emit_outer(
        &mut self,
        frame: &Frame<'_>,
        innermost: &IpPacket<Trail>,
        mut count: impl FnMut(&mut Self, &Packet<'_>, &IpPacket<()>) -> Counted,
    ) {
        for (found, headers) in innermost.encapsulation.outer_packets() {
            let packet = self.extractor.packet(frame, found);
            let counted = count(self, &packet, found);
            self.report(frame, headers, &packet, counted);
            self.emit.carried(&packet, counted);
            self.outer.outer_packet_count += u64::from(counted.packet_count);
            self.outer.outer = Some(OuterFlow::new(packet.key, packet.side));
        }
    }

    /// Reports the outer headers of an emitted packet, with the number of its frames.
    pub(super) fn report(
        &mut self,
        frame: &Frame<'_>,
        headers: &[EncapsulationHeader],
        packet: &Packet<'_>,
        counted: Counted,
    ) {
        if !self.outer.is_reported && !self.outer.is_linked {
            return;
        }
        self.outer.set_headers(frame, headers);
        let OuterHeaders { outer, .. } = *self.outer;
        self.emit.encapsulation(packet, counted.packet_count, self.outer.headers(), outer);
    }
}

/// Returns the header at an offset, with its addresses if they were captured.
fn ip_header(data: &[u8], at: usize) -> OuterHeader {
    let data = data.get(at..).unwrap_or_default();
    let ends: Option<(IpAddr, IpAddr)> = if is_ipv6(data) {
        Ipv6::read(data)
            .map(|ip| (Ipv6Addr::from_bits(ip.source()).into(), Ipv6Addr::from_bits(ip.destination()).into()))
    } else {
        Ipv4::read(data)
            .map(|ip| (Ipv4Addr::from_bits(ip.source()).into(), Ipv4Addr::from_bits(ip.destination()).into()))
    };
    match ends {
        Some((source, destination)) => OuterHeader::ip(source, destination),
        None => OuterHeader::new(HeaderKind::Ip, 0),
    }
}
