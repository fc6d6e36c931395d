//! The initial sequence number of a side that sent more than one SYN.
//!
//! A second SYN-ACK with another initial sequence number comes from another host behind an anycast address, from a
//! middlebox, or from a server that lost its state; stale SYN-ACKs are retransmitted. The peer's acknowledgment, or the
//! octets that follow, determine which initial sequence number is valid.

use super::super::flow::{SideBits, SideState, WINDOW_SCALE_UNKNOWN};
use super::history::letter;
use super::segment::Update;
use crate::base::{SeqNum, Side};

/// Maximum distance in octets from a SYN to the first acknowledgment that confirms it: the largest window without
/// scaling.
const FIRST_WINDOW_LEN: i32 = 65_535;

impl Update<'_> {
    /// Records a SYN-ACK with a sequence number that differs from the initial one of its sender.
    pub(super) fn contest_start(&mut self) {
        let (side, seq) = (self.side, self.segment.seq);
        let peer = self.peer();
        let is_confirmed = peer.bits.has(SideBits::ACK) && peer.ack == seq.add(1);
        if !has_only_syn(self.own()) {
            return;
        }
        if is_confirmed {
            self.start_at(side, seq);
            // The SYN itself is not counted yet.
            self.own().next_seq = seq;
            return;
        }
        if let Some(extra) = self.extras.of(self.hot)
            && extra.pending_syn.is_none_or(|(pending_side, _)| pending_side == side)
        {
            extra.pending_syn = Some((side, seq));
        }
    }

    /// Sets the initial sequence number of a side according to the SYN that an acknowledgment of its peer confirms.
    pub(super) fn confirm_start(&mut self, side: Side, ack: SeqNum) {
        let state = &self.hot.sides[side.index()];
        let initial_seq = state.initial_seq;
        if !has_only_syn(state) {
            return;
        }
        let Some(pending_seq) = self.pending_syn(side) else { return };
        let ahead = |seq: &SeqNum| ack.distance_from(seq.add(1));
        let nearest = [initial_seq, pending_seq]
            .into_iter()
            .filter(|seq| (0..=FIRST_WINDOW_LEN).contains(&ahead(seq)))
            .min_by_key(ahead);
        // Neither of the two: there were more SYNs, of which only the last one is known.
        let seq = nearest.unwrap_or(ack.add(u32::MAX));
        if seq != initial_seq {
            self.start_at(side, seq);
            let own = self.own();
            own.ack = ack;
            own.bits.set(SideBits::ACK);
        }
    }

    /// Sets the initial sequence number of a segment's sender according to the SYN that the segment's octets follow.
    pub(super) fn follow_start(&mut self) {
        let (side, seq) = (self.side, self.segment.seq);
        let own = self.own();
        let is_first = own.bits.has(SideBits::SYN) && own.next_seq == own.initial_seq.add(1);
        let is_elsewhere = is_first && seq != own.next_seq;
        if is_elsewhere
            && let Some(pending_seq) = self.pending_syn(side)
            && seq == pending_seq.add(1)
        {
            self.start_at(side, pending_seq);
        }
    }

    fn pending_syn(&self, side: Side) -> Option<SeqNum> {
        let (pending_side, seq) = self.extras.get(self.hot)?.pending_syn?;
        (pending_side == side).then_some(seq)
    }

    /// Sets the initial sequence number of a side to `seq`, the number of another SYN. The previous SYN remains a
    /// candidate.
    fn start_at(&mut self, side: Side, seq: SeqNum) {
        let state = &mut self.hot.sides[side.index()];
        let initial_seq = std::mem::replace(&mut state.initial_seq, seq);
        state.next_seq = seq.add(1);
        // The scale in the other SYN is no longer known.
        state.window_scale = WINDOW_SCALE_UNKNOWN;
        state.bits.clear(SideBits::HOLE);
        if let Some(extra) = self.extras.get_mut(self.hot) {
            extra.pending_syn = Some((side, initial_seq));
            extra.sides[side.index()].hole = None;
        }
    }
}

/// Returns whether a side sent its SYN, but neither octets nor a FIN.
pub(super) const fn has_only_syn(state: &SideState) -> bool {
    state.bits.has(SideBits::SYN) && !state.bits.has(SideBits::FIN) && state.letters & letter::DATA == 0
}
