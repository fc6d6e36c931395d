//! Input of the reassembler: TCP segments.

use crate::base::{Packet, PacketMarks, Transport};
use crate::base::{SeqNum, TcpFlags, Timestamp};

/// Maximum number of octets of padding behind the headers of IPv4 and TCP.
pub(super) const PADDING_LEN_MAX: usize = 6;

/// Length of the shortest Ethernet frame without its checksum, in octets.
const FRAME_LEN_MIN: u32 = 60;

/// Length of the shortest Ethernet frame that was captured with its checksum, or to which a switch added a VLAN tag after
/// the padding, in octets.
const EXTENDED_FRAME_LEN_MIN: u32 = FRAME_LEN_MIN + 4;

/// A TCP segment of one direction of a connection. Borrows its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment<'a> {
    /// Capture time of the segment.
    pub timestamp: Timestamp,
    /// The captured octets of the segment's payload.
    pub payload: &'a [u8],
    /// Length of the payload on the wire in octets; never less than the captured length.
    pub len: u32,
    /// Sequence number of the segment: of the SYN if the segment contains one, otherwise of the first octet of payload.
    pub seq: SeqNum,
    /// Acknowledgment number; valid only if the ACK bit is set.
    pub ack: SeqNum,
    /// TCP control bits.
    pub flags: TcpFlags,
    /// Length of the frame on the wire in octets; zero if it is not known.
    pub frame_len: u32,
}

impl<'a> Segment<'a> {
    /// Creates a segment with a payload that was captured completely.
    #[must_use]
    #[inline]
    pub const fn new(seq: SeqNum, flags: TcpFlags, payload: &'a [u8], timestamp: Timestamp) -> Self {
        Self { timestamp, payload, len: payload.len() as u32, seq, ack: SeqNum(0), flags, frame_len: 0 }
    }

    /// Sets the acknowledgment number and the ACK bit.
    #[must_use]
    pub const fn with_ack(mut self, ack: SeqNum) -> Self {
        self.ack = ack;
        self.flags = TcpFlags(self.flags.0 | TcpFlags::ACK.0);
        self
    }

    /// Sets the length of the frame on the wire in octets.
    #[must_use]
    pub const fn with_frame_len(self, frame_len: u32) -> Self {
        Self { frame_len, ..self }
    }

    /// Sets the length of the payload on the wire in octets if `len` exceeds the captured length; otherwise changes
    /// nothing.
    #[must_use]
    pub const fn with_wire_len(mut self, len: u32) -> Self {
        if len as usize > self.payload.len() {
            self.len = len;
        }
        self
    }

    /// Returns the TCP segment in a packet; `None` if the packet is not TCP or its header is truncated. A payload
    /// length beyond the end of the frame on the wire is reduced to the octets up to that end.
    #[must_use]
    #[inline(always)]
    pub fn of(packet: &Packet<'a>) -> Option<Self> {
        if packet.transport != Transport::Tcp {
            return None;
        }
        let payload = packet.payload();
        let mut len = packet.payload_len;
        if len as usize != payload.len() && !packet.marks.contains(PacketMarks::REASSEMBLED) {
            len = len.min(packet.wire_len.saturating_sub(packet.payload_offset)).max(payload.len() as u32);
        }
        let (seq, ack, flags) = (packet.tcp.seq, packet.tcp.ack, packet.tcp.flags);
        Some(Self { timestamp: packet.timestamp, payload, len, seq, ack, flags, frame_len: packet.wire_len })
    }

    /// Returns whether the payload may be padding: up to six zeros without PSH in the shortest frame, which may have four
    /// octets more: a VLAN tag or its checksum.
    #[inline]
    pub(super) fn may_be_padding(&self) -> bool {
        const EXCLUDED: TcpFlags =
            TcpFlags(TcpFlags::PSH.0 | TcpFlags::SYN.0 | TcpFlags::FIN.0 | TcpFlags::RST.0);
        !self.payload.is_empty()
            && self.payload.len() <= PADDING_LEN_MAX
            && matches!(self.frame_len, FRAME_LEN_MIN | EXTENDED_FRAME_LEN_MIN)
            && !self.flags.intersects(EXCLUDED)
            && self.len as usize == self.payload.len()
            && self.payload.iter().all(|octet| *octet == 0)
    }
}
