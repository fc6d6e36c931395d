//! The state of one flow, arranged by frequency of access.
//!
//! [`Hot`] is three cache lines: one for the key and the flow's common state, and one for each side. A packet accesses
//! the first line and the line of its sender. [`Cold`] is accessed when a flow begins, ends, changes its list, or
//! gets a letter of its history. An [`Extra`](super::extras::Extra) exists only for flows with unusual events.

use std::fmt;

use super::class::UNLISTED;
use super::recency::{Linked, Links};
use super::slab::Vacant;
use super::timing::Timing;
use crate::base::Packet;
use crate::base::{
    DirectionEvidence, FlowKey, History, IpProtocol, SeqNum, Side, TcpFlags, TcpState, VlanIds,
};

/// Identifier of a flow: the index of an entry of the flow table, and a generation that distinguishes the flows that
/// used the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl fmt::Display for FlowId {
    /// Writes the index and the generation, as `17.3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// Position of an iteration over the open flows that is done in steps.
///
/// Between two steps the flows may change. The iteration returns a flow that is open all the time exactly once; one that
/// begins or ends meanwhile may be returned or not.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowScan {
    /// Entry of the flow table at which the next step begins.
    pub(super) next: u32,
}

/// The state of a flow that packets access, in three cache lines.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Hot {
    pub(super) key: FlowKey,
    /// Time of the flow's last packet in nanoseconds, on the tracker's clock.
    pub(super) last_ns: u64,
    /// Index of the flow's additional state ([`Extra`](super::extras::Extra)), if the bit [`EXTRA`](FlowBits::EXTRA) is
    /// set.
    pub(super) extra: u32,
    /// Number of the recency list that contains the flow; [`UNLISTED`] before the first packet is counted.
    pub(super) list: u8,
    /// Epoch of the flow's recency list when the flow was last moved in it.
    pub(super) epoch: u8,
    pub(super) state: TcpState,
    pub(super) bits: FlowBits,
    pub(super) sides: [SideState; 2],
}

/// Packet counters and TCP state of one side of a flow: a cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct SideState {
    pub(super) packet_count: u64,
    pub(super) octet_count: u64,
    pub(super) ip_octet_count: u64,
    pub(super) payload_octet_count: u64,
    /// Initial sequence number of the side; for ICMP, the code of the side's first packet.
    pub(super) initial_seq: SeqNum,
    /// Sequence number after the highest octet that the side sent, including SYN and FIN: SND.NXT as observed.
    pub(super) next_seq: SeqNum,
    /// Highest acknowledgment number that this side sent.
    pub(super) ack: SeqNum,
    pub(super) window: u16,
    pub(super) flags: TcpFlags,
    /// Window scale that the side announced, or [`WINDOW_SCALE_UNKNOWN`].
    pub(super) window_scale: u8,
    pub(super) hop_limit_min: u8,
    pub(super) hop_limit_max: u8,
    pub(super) traffic_class: u8,
    pub(super) mac: [u8; 6],
    pub(super) vlan_ids: [u8; 3],
    pub(super) endpoint: Endpoint,
    /// History letters that this side has added, as bits.
    pub(super) letters: u8,
    pub(super) bits: SideBits,
}

pub(super) const WINDOW_SCALE_UNKNOWN: u8 = u8::MAX;

/// State of one end of a TCP connection, with the detail that the outcome code of a connection requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Endpoint {
    #[default]
    Inactive,
    SynSent,
    SynAckSent,
    /// The end sends in the middle of a connection, and the beginning of the connection was not seen.
    Partial,
    Established,
    /// The end sent FIN.
    Closed,
    /// The end sent RST.
    Reset,
}

impl Endpoint {
    /// All states of an end, in the order of their codes.
    pub(super) const ALL: [Self; 7] = [
        Self::Inactive,
        Self::SynSent,
        Self::SynAckSent,
        Self::Partial,
        Self::Established,
        Self::Closed,
        Self::Reset,
    ];
}

/// Boolean properties of a flow, its initiator, and the evidence for the initiator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowBits(u8);

impl FlowBits {
    pub(super) const INITIATOR_B: u8 = 1;
    const EVIDENCE_SHIFT: u32 = 1;
    const EVIDENCE: u8 = 7 << Self::EVIDENCE_SHIFT;
    /// The sink muted the flow: no more packets and events are delivered.
    pub(super) const MUTED: u8 = 1 << 4;
    /// The flow has additional state ([`Extra`](super::extras::Extra)).
    pub(super) const EXTRA: u8 = 1 << 5;
    /// A possibly forged reset was seen, and no data after it.
    pub(super) const SUSPECT: u8 = 1 << 6;
    /// The latest timestamp of the record is behind the tracker's clock, by `lag_ns` in the flow's additional state.
    pub(super) const LAG: u8 = 1 << 7;

    /// The bits of a flow without evidence for its initiator.
    pub(crate) const UNKNOWN: Self = Self(0);

    pub(super) const fn from_octet(octet: u8) -> Self {
        Self(octet)
    }

    pub(super) const fn octet(self) -> u8 {
        self.0
    }

    #[inline(always)]
    pub(super) const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    #[inline(always)]
    pub(super) const fn set(&mut self, bit: u8, is_set: bool) {
        self.0 = if is_set { self.0 | bit } else { self.0 & !bit };
    }

    pub(super) const fn initiator(self) -> Side {
        if self.has(Self::INITIATOR_B) { Side::B } else { Side::A }
    }

    pub(super) const fn evidence_bits(self) -> u8 {
        (self.0 & Self::EVIDENCE) >> Self::EVIDENCE_SHIFT
    }

    /// Returns whether a SYN or SYN-ACK proves the initiator.
    pub(crate) const fn is_proven(self) -> bool {
        matches!(
            DirectionEvidence::from_bits(self.evidence_bits()),
            DirectionEvidence::SynAck | DirectionEvidence::Syn
        )
    }

    pub(super) const fn set_direction(&mut self, initiator: Side, evidence: u8) {
        self.set(Self::INITIATOR_B, matches!(initiator, Side::B));
        self.0 = self.0 & !Self::EVIDENCE | evidence << Self::EVIDENCE_SHIFT;
    }
}

/// Boolean properties of one side of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SideBits(u8);

impl SideBits {
    /// The side sent at least one packet.
    pub(super) const SEEN: u8 = 1;
    /// The field `next_seq` of the side is valid.
    pub(super) const SEQ: u8 = 1 << 1;
    /// The field `ack` of the side is valid.
    pub(super) const ACK: u8 = 1 << 2;
    /// The side sent FIN, which `next_seq` includes.
    pub(super) const FIN: u8 = 1 << 3;
    /// The side's SYN was seen, so its field `initial_seq` is exact.
    pub(super) const SYN: u8 = 1 << 4;
    /// Octets that the side sent are missing; `hole` in the flow's additional state is their range.
    pub(super) const HOLE: u8 = 1 << 5;
    /// The current record has no packet yet, because an active timeout ended the previous one.
    pub(super) const FRESH: u8 = 1 << 6;

    pub(super) const fn from_octet(octet: u8) -> Self {
        Self(octet)
    }

    pub(super) const fn octet(self) -> u8 {
        self.0
    }

    #[inline(always)]
    pub(super) const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    #[inline(always)]
    pub(super) const fn has_all(self, bits: u8) -> bool {
        self.0 & bits == bits
    }

    #[inline(always)]
    pub(super) const fn set(&mut self, bit: u8) {
        self.0 |= bit;
    }

    pub(super) const fn clear(&mut self, bit: u8) {
        self.0 &= !bit;
    }

    /// Returns whether the side sent a packet in the current record.
    #[inline(always)]
    pub(super) const fn is_under_way(self) -> bool {
        self.0 & (Self::SEEN | Self::FRESH) == Self::SEEN
    }
}

impl SideState {
    pub(super) const NEW: Self = Self {
        packet_count: 0,
        octet_count: 0,
        ip_octet_count: 0,
        payload_octet_count: 0,
        initial_seq: SeqNum(0),
        next_seq: SeqNum(0),
        ack: SeqNum(0),
        window: 0,
        flags: TcpFlags(0),
        window_scale: WINDOW_SCALE_UNKNOWN,
        hop_limit_min: u8::MAX,
        hop_limit_max: 0,
        traffic_class: 0,
        mac: [0; 6],
        vlan_ids: [0; 3],
        endpoint: Endpoint::Inactive,
        letters: 0,
        bits: SideBits(0),
    };

    pub(super) fn set_vlan_ids(&mut self, ids: VlanIds) {
        let [low, middle, high, _] = ids.to_bits().to_le_bytes();
        self.vlan_ids = [low, middle, high];
    }

    pub(super) fn vlan_ids(&self) -> VlanIds {
        let [low, middle, high] = self.vlan_ids;
        VlanIds::from_bits(u32::from_le_bytes([low, middle, high, 0]))
    }

    /// Counts a packet that the side sent.
    #[inline(always)]
    pub(super) fn count(&mut self, packet: &Packet<'_>) {
        self.packet_count += 1;
        self.octet_count += u64::from(packet.wire_len);
        self.ip_octet_count += u64::from(packet.ip_len);
        self.payload_octet_count += u64::from(packet.payload_len);
        if packet.hop_limit < self.hop_limit_min {
            self.hop_limit_min = packet.hop_limit;
        }
        if packet.hop_limit > self.hop_limit_max {
            self.hop_limit_max = packet.hop_limit;
        }
    }

    /// Counts the segments of a super-packet that was counted as one packet with all octets on the wire.
    pub(super) fn count_segments(&mut self, packet: &Packet<'_>) {
        let copy_count = u64::from(packet.segment_count()) - 1;
        let header_len = packet.payload_offset.saturating_sub(packet.ip_offset);
        self.packet_count += copy_count;
        self.ip_octet_count += copy_count * u64::from(header_len);
    }

    /// Resets the delta counters for a new record; the properties of the side are kept.
    pub(super) fn restart_counters(&mut self) {
        self.packet_count = 0;
        self.octet_count = 0;
        self.ip_octet_count = 0;
        self.payload_octet_count = 0;
        self.flags = TcpFlags(0);
        self.hop_limit_min = u8::MAX;
        self.hop_limit_max = 0;
        self.bits.set(SideBits::FRESH);
    }
}

impl Hot {
    pub(super) fn new(key: FlowKey, now_ns: u64) -> Self {
        Self {
            key,
            last_ns: now_ns,
            extra: 0,
            list: UNLISTED,
            epoch: 0,
            state: TcpState::None,
            bits: FlowBits::default(),
            sides: [SideState::NEW, SideState::NEW],
        }
    }

    #[inline(always)]
    pub(super) fn protocol(&self) -> IpProtocol {
        self.key.protocol()
    }

    pub(super) fn is_answered(&self) -> bool {
        self.sides.iter().all(|side| side.bits.has(SideBits::SEEN))
    }
}

/// Value of a record's start time for a record that has no packet yet. A packet with exactly this timestamp is treated
/// as one nanosecond earlier.
pub(super) const NOT_STARTED: u64 = u64::MAX;

/// State of a flow that packets of a known flow usually do not access.
#[derive(Clone, Debug)]
pub(super) struct Cold {
    /// Timestamp of the record's first packet in nanoseconds, as captured; [`NOT_STARTED`] after an active timeout.
    pub(super) start_ns: u64,
    pub(super) timing: Timing,
    pub(super) history: [u64; 2],
    pub(super) links: Links,
    pub(super) interface: u32,
    pub(super) sequence_number: u32,
    /// Number of flows that used the slot before this one.
    pub(super) generation: u32,
}

impl Cold {
    pub(super) const fn new(start_ns: u64, now_ns: u64, interface: u32) -> Self {
        Self {
            start_ns: started(start_ns),
            timing: Timing::of_syn(start_ns, now_ns),
            history: [0; 2],
            links: Links::NONE,
            interface,
            sequence_number: 0,
            generation: 0,
        }
    }

    pub(super) fn history(&self) -> History {
        History::from_halves(self.history)
    }

    pub(super) fn push_history(&mut self, letter: u8) {
        let mut history = self.history();
        history.push(letter);
        self.history = history.to_halves();
    }
}

impl Vacant for Hot {
    fn vacant() -> Self {
        Self::new(FlowKey::VACANT, 0)
    }
}

impl Vacant for Cold {
    fn vacant() -> Self {
        Self::new(0, 0, 0)
    }
}

/// Returns the start time of a record, given the timestamp of its first packet, in nanoseconds.
pub(super) const fn started(own_ns: u64) -> u64 {
    if own_ns == NOT_STARTED { own_ns - 1 } else { own_ns }
}

impl Linked for Cold {
    fn links(&self) -> Links {
        self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_has_the_size_stated_by_the_limits() {
        assert_eq!(size_of::<SideState>(), 64);
        assert_eq!(size_of::<Hot>(), 192);
        assert_eq!(size_of::<Cold>(), 56);
    }
}
