//! Whether a RST is one to believe.

use super::super::flow::{SideBits, SideState, WINDOW_SCALE_UNKNOWN};
use super::super::sink::Anomaly;
use super::segment::Update;
use crate::base::{TcpFlags, TcpState};
use crate::wire::tcp::{TcpSegment, WINDOW_SCALE_MAX};

impl Update<'_> {
    /// Whether a RST is one that its receiver would act on.
    pub(super) fn reset(&mut self) -> bool {
        let TcpSegment { seq, ack, .. } = self.segment;
        let own = &self.hot.sides[self.side.index()];
        let peer = &self.hot.sides[self.side.other().index()];
        let window = window_of(peer);
        let is_valid = if self.hot.state == TcpState::SynSent && peer.bits.has(SideBits::SYN) {
            // RFC 9293 section 3.10.7.3: in SYN-SENT a reset counts if it acknowledges the SYN.
            self.has(TcpFlags::ACK) && ack.is_after(peer.initial_seq) && !ack.is_after(peer.next_seq)
        } else if !peer.bits.has(SideBits::SEEN) {
            !own.bits.has(SideBits::SEQ) || !seq.is_before(own.next_seq)
        } else if peer.bits.has(SideBits::ACK) {
            // What the peer expects next, and the end of the window that it offered.
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

/// The window that a side offers, in octets; of a scale that was not seen the largest is assumed.
fn window_of(side: &SideState) -> u32 {
    let scale = if side.window_scale == WINDOW_SCALE_UNKNOWN { WINDOW_SCALE_MAX } else { side.window_scale };
    u32::from(side.window) << scale
}
