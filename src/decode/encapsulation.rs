//! Encapsulation of packets, and their outer flows.
//!
//! A frame has one level for each IP packet in it, the outermost first. If flows are linked, the frame counts
//! for the flow of each level, and each flow refers to the flow of the level around it.

use super::emit::{Counted, Emit};
use super::extractor::{Extractor, Packet};
use super::link::{FrameEncapsulation, HeaderPosition, IpPacket, Walked};
use crate::base::OuterFlow;
use crate::base::{EncapsulationHeader, Frame, HeaderKind};

/// Outer headers and outer flow of the current packet, as far as the configuration requests them.
#[derive(Debug, Default)]
pub(super) struct PacketEncapsulation {
    /// True if the outer headers of packets are reported.
    is_reported: bool,
    /// True if a frame counts for the flow of each nested IP packet, and these flows are linked to each
    /// other.
    is_linked: bool,
    headers: Vec<EncapsulationHeader>,
    /// Number of headers around the reassembled datagram that is being walked; zero in a captured frame.
    datagram_header_count: usize,
    outer_flow: Option<OuterFlow>,
    /// Number of packets that were counted for an outer flow, which is a flow that carries other flows.
    pub(super) outer_packet_count: u64,
}

impl PacketEncapsulation {
    pub(super) fn new(is_reported: bool, is_linked: bool) -> Self {
        Self { is_reported, is_linked, ..Self::default() }
    }

    /// Clears the outer headers and the outer flow of the previous frame, before a captured frame is
    /// processed.
    pub(super) fn begin(&mut self) {
        self.headers.clear();
        self.datagram_header_count = 0;
        self.outer_flow = None;
    }

    /// Replaces the recorded headers with those around a packet in `frame`. If `frame` is a reassembled
    /// datagram, the headers around the datagram remain.
    fn set_headers(&mut self, frame: &Frame<'_>, headers: &[HeaderPosition]) {
        self.headers.truncate(self.datagram_header_count);
        if self.is_reported {
            self.headers.extend(headers.iter().map(|position| position.header(frame.data)));
        }
    }

    /// Records the headers around a fragment as the headers around its datagram. All fragments of the
    /// datagram have the same headers around them, because the pool separates fragments with different
    /// headers.
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

/// The extractor, the current encapsulation and the receiver of packets, which are needed to emit packets.
pub(super) struct DecodeContext<'a> {
    pub(super) extractor: &'a Extractor,
    pub(super) encapsulation: &'a mut PacketEncapsulation,
    pub(super) emit: &'a mut dyn Emit,
}

impl DecodeContext<'_> {
    /// Counts a frame for each flow that carries the frame's innermost packet, the outermost first, if flows
    /// are linked. The `count` callback emits one outer packet and returns what was counted for its flow.
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

    /// Reports the outer headers and the outer flow of an emitted packet, with the number of frames that
    /// carried it; does nothing if neither was requested.
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
