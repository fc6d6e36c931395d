//! Encapsulation of packets, and their outer flows.
//!
//! A frame has one level for each IP packet in it, the outermost first. If flows are linked, the frame counts
//! for the flow of each level, and each flow refers to the flow of the level around it.

use super::emit::{Counted, Emit};
use super::extractor::{Extractor, Packet};
use super::link::{FrameEncapsulation, HeaderPosition, IpPacket, Walked};
use crate::base::{EncapsulationHeader, Frame, HeaderKind};
use crate::record::OuterFlow;

/// Encapsulation and outer flow of the current packet, if they are requested.
#[derive(Debug, Default)]
pub(super) struct PacketEncapsulation {
    /// True if headers are reported.
    is_reported: bool,
    /// True if the flows of all levels count and are linked.
    is_linked: bool,
    headers: Vec<EncapsulationHeader>,
    /// Number of headers around the reassembled datagram that is being walked; zero in a captured frame.
    datagram_header_count: usize,
    outer_flow: Option<OuterFlow>,
    /// Packets that were counted for a flow that carries others.
    pub(super) outer_packet_count: u64,
}

impl PacketEncapsulation {
    pub(super) fn new(is_reported: bool, is_linked: bool) -> Self {
        Self { is_reported, is_linked, ..Self::default() }
    }

    /// Starts the processing of a captured frame.
    pub(super) fn begin(&mut self) {
        self.headers.clear();
        self.datagram_header_count = 0;
        self.outer_flow = None;
    }

    /// Replaces the headers around a packet in the frame or in the reassembled datagram.
    fn set_headers(&mut self, frame: &Frame<'_>, headers: &[HeaderPosition]) {
        self.headers.truncate(self.datagram_header_count);
        if self.is_reported {
            self.headers.extend(headers.iter().map(|position| position.header(frame.data)));
        }
    }

    /// Enters the datagram that a packet is a fragment of. The headers around all its fragments are the same,
    /// because the pool separates fragments with different headers.
    pub(super) fn enter_datagram(&mut self, frame: &Frame<'_>, headers: &[HeaderPosition]) {
        self.set_headers(frame, headers);
        self.datagram_header_count = self.headers.len();
    }

    /// Returns the headers around the current packet; none if they are only VLAN tags, which a record
    /// contains in any case.
    fn headers(&self) -> &[EncapsulationHeader] {
        let is_tagged_only = self.headers.iter().all(|header| header.kind == HeaderKind::Vlan);
        if is_tagged_only { &[] } else { &self.headers }
    }
}

/// Dependencies for emitting packets.
pub(super) struct DecodeContext<'a, E: ?Sized> {
    pub(super) extractor: &'a Extractor,
    pub(super) encapsulation: &'a mut PacketEncapsulation,
    pub(super) emit: &'a mut E,
}

impl<E: Emit + ?Sized> DecodeContext<'_, E> {
    /// Counts a frame for the flows that carry its innermost packet, outermost first, if flows are linked.
    /// `count` emits the packet of a level.
    pub(super) fn emit_outer(
        &mut self,
        frame: &Frame<'_>,
        innermost: &Walked<FrameEncapsulation>,
        mut count: impl FnMut(&mut Self, &Packet<'_>, &IpPacket) -> Counted,
    ) {
        for (found, headers) in innermost.encapsulation.outer_packets() {
            let packet = self.extractor.packet(frame, found);
            let counted = count(self, &packet, found);
            self.report(frame, headers, &packet, counted);
            self.emit.carried(&packet, counted);
            self.encapsulation.outer_packet_count += u64::from(counted.packet_count);
            self.encapsulation.outer_flow = Some(OuterFlow::new(packet.key, packet.side));
        }
    }

    /// Reports the encapsulation and the outer flow of an emitted packet, with the number of its frames.
    pub(super) fn report(
        &mut self,
        frame: &Frame<'_>,
        headers: &[HeaderPosition],
        packet: &Packet<'_>,
        counted: Counted,
    ) {
        if !self.encapsulation.is_reported && !self.encapsulation.is_linked {
            return;
        }
        self.encapsulation.set_headers(frame, headers);
        let PacketEncapsulation { outer_flow, .. } = *self.encapsulation;
        self.emit.encapsulation(packet, counted.packet_count, self.encapsulation.headers(), outer_flow);
    }
}
