//! What the reassembler takes.

use crate::base::{SeqNum, TcpFlags, Timestamp};
use crate::extractor::{Packet, PacketMarks, Transport};

/// A TCP segment of one side. Borrows its payload; `Copy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment<'a> {
    /// When it was captured.
    pub timestamp: Timestamp,
    /// Its payload, as far as captured.
    pub payload: &'a [u8],
    /// Octets of its payload on the wire; never fewer than were captured.
    pub len: u32,
    /// Sequence number: of SYN if it has that, of the first octet otherwise.
    pub seq: SeqNum,
    /// Acknowledgment number; means something if ACK is set.
    pub ack: SeqNum,
    /// Control bits.
    pub flags: TcpFlags,
}

impl<'a> Segment<'a> {
    /// A segment whose payload was captured whole.
    #[must_use]
    #[inline]
    pub const fn new(seq: SeqNum, flags: TcpFlags, payload: &'a [u8], timestamp: Timestamp) -> Self {
        Self { timestamp, payload, len: payload.len() as u32, seq, ack: SeqNum(0), flags }
    }

    /// The same with an acknowledgment.
    #[must_use]
    pub const fn with_ack(mut self, ack: SeqNum) -> Self {
        self.ack = ack;
        self.flags = TcpFlags(self.flags.0 | TcpFlags::ACK.0);
        self
    }

    /// The same with a length on the wire that exceeds what was captured; a smaller one is not taken.
    #[must_use]
    pub const fn with_wire_len(mut self, len: u32) -> Self {
        if len as usize > self.payload.len() {
            self.len = len;
        }
        self
    }

    /// The segment in a packet, unless that is no TCP or its header is cut. What a length field claims beyond the end of the
    /// frame on the wire does not exist.
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
        Some(Self { timestamp: packet.timestamp, payload, len, seq, ack, flags })
    }
}
