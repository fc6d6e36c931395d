//! The state of a TCP connection, with the names of RFC 9293.

use super::super::event::Anomaly;
use super::super::flow::{FlowBits, SideBits, SideState};
use super::segment::Update;
use crate::base::{TcpFlags, TcpState};

impl Update<'_> {
    pub(super) fn state(&mut self, is_valid_reset: bool) {
        let is_suspect = matches!(self.changes.anomaly, Some(Anomaly::ResetOutOfWindow));
        if is_suspect || self.payload_len > 0 {
            self.hot.bits.set(FlowBits::SUSPECT, is_suspect);
        }
        let before = self.hot.state;
        if is_valid_reset {
            self.hot.state = TcpState::Closed;
            if before < TcpState::Established {
                self.cold.timing.end_handshake(None);
            }
        }
        if self.has(TcpFlags::RST) || before == TcpState::Closed {
            return;
        }
        self.hot.state = match before {
            TcpState::None | TcpState::SynSent | TcpState::SynReceived => self.opening(before),
            _ => self.open_or_closing(),
        };
        match before {
            TcpState::SynSent | TcpState::SynReceived if self.hot.state >= TcpState::Established => {
                self.established()
            }
            TcpState::None if self.hot.state >= TcpState::Established => {
                self.cold.timing.end_handshake(None);
            }
            _ => {}
        }
    }

    /// Returns the state of a TCP connection after a segment, until the end of the handshake.
    fn opening(&self, before: TcpState) -> TcpState {
        let is_initiator = self.is_initiator();
        if self.has(TcpFlags::SYN) {
            let both = self.hot.sides.iter().all(|side| side.bits.has(SideBits::SYN));
            return if self.has(TcpFlags::ACK) || both {
                TcpState::SynReceived
            } else {
                before.max(TcpState::SynSent)
            };
        }
        match before {
            // An acknowledgment of the responder before its SYN-ACK, or one of an older connection.
            TcpState::SynSent if !is_initiator && self.payload_len == 0 && !self.has(TcpFlags::FIN) => before,
            TcpState::SynReceived if !is_initiator && self.payload_len == 0 && !self.has(TcpFlags::FIN) => {
                before
            }
            // TCP Fast Open: after octets in the SYN, the responder may send, and even close, before the initiator
            // acknowledges its SYN-ACK (RFC 7413 section 4.2).
            TcpState::SynReceived if !is_initiator && self.peer().payload_octet_count > 0 => before,
            _ => self.open_or_closing(),
        }
    }

    /// Returns the state of a TCP connection after its handshake, according to which sides sent FIN, and which FINs are
    /// acknowledged.
    fn open_or_closing(&self) -> TcpState {
        let [a, b] = &self.hot.sides;
        let is_acked = |sender: &SideState, receiver: &SideState| {
            receiver.bits.has(SideBits::ACK) && !receiver.ack.is_before(sender.next_seq)
        };
        match (a.bits.has(SideBits::FIN), b.bits.has(SideBits::FIN)) {
            (false, false) => TcpState::Established,
            (true, false) if is_acked(a, b) => TcpState::FinWait2,
            (false, true) if is_acked(b, a) => TcpState::FinWait2,
            (true, false) | (false, true) => TcpState::FinWait1,
            (true, true) => match (is_acked(a, b), is_acked(b, a)) {
                (true, true) => TcpState::TimeWait,
                (false, false) => TcpState::Closing,
                _ => TcpState::LastAck,
            },
        }
    }

    fn established(&mut self) {
        self.changes.is_established = true;
        let initiator = &self.hot.sides[self.hot.bits.initiator().index()];
        let saw_handshake =
            self.is_initiator() && initiator.bits.has(SideBits::SYN) && self.has(TcpFlags::ACK);
        let long_lag_ns =
            self.extras.get(self.hot).map(|extra| extra.syn_lag_ns).filter(|lag_ns| *lag_ns != 0);
        let elapsed_ns = self.cold.timing.since_syn_ns(self.own_ns, long_lag_ns).filter(|_| saw_handshake);
        self.cold.timing.end_handshake(elapsed_ns);
    }
}
