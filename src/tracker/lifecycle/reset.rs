//! Validation of RST segments.

use super::super::event::Anomaly;
use super::super::flow::{SideBits, SideState, WINDOW_SCALE_UNKNOWN};
use super::segment::Update;
use crate::base::TcpSegment;
use crate::base::{TcpFlags, TcpState};
use crate::wire::tcp::WINDOW_SCALE_MAX;

impl Update<'_> {
    /// Returns whether the receiver of a RST segment would accept it.
    pub(super) fn reset(&mut self) -> bool {
        let TcpSegment { seq, ack, .. } = self.segment;
        let own = &self.hot.sides[self.side.index()];
        let peer = &self.hot.sides[self.side.other().index()];
        let window = window_of(peer);
        let is_valid = if self.hot.state == TcpState::SynSent && peer.bits.has(SideBits::SYN) {
            // RFC 9293 section 3.10.7.3: in SYN-SENT, a reset is valid if it acknowledges the SYN.
            self.has(TcpFlags::ACK) && ack.is_after(peer.initial_seq) && !ack.is_after(peer.next_seq)
        } else if !peer.bits.has(SideBits::SEEN) {
            !own.bits.has(SideBits::SEQ) || !seq.is_before(own.next_seq)
        } else if peer.bits.has(SideBits::ACK) {
            // The sequence number that the peer expects next, and the end of the window that it advertised.
            let end = if own.bits.has(SideBits::SEQ) { own.next_seq } else { peer.ack };
            !seq.is_before(peer.ack) && !seq.is_after(end.add(window))
        } else {
            !own.bits.has(SideBits::SEQ)
                || (!seq.is_before(own.initial_seq) && !seq.is_after(own.next_seq.add(window)))
        };
        if !is_valid {
            self.changes.anomaly = Some(Anomaly::ResetOutOfWindow);
        }
        is_valid
    }
}

/// Returns the window that a side advertised, in octets. If its window scale was not seen, the largest scale is
/// assumed.
fn window_of(side: &SideState) -> u32 {
    let scale = if side.window_scale == WINDOW_SCALE_UNKNOWN { WINDOW_SCALE_MAX } else { side.window_scale };
    u32::from(side.window) << scale
}
