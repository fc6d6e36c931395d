//! Update of a flow by a TCP segment that is not simply the next one.

use super::super::endpoint;
use super::super::event::Anomaly;
use super::super::extras::{ExtraSide, Extras};
use super::super::flow::{Cold, Hot, SideBits, SideState, WINDOW_SCALE_UNKNOWN};
use super::super::timing::{self, Timing};
use super::rules::is_power_of_ten;
use crate::base::Packet;
use crate::base::TcpSegment;
use crate::base::{Side, TcpFlags, TcpState};
use crate::wire::tcp;

/// Changes to a flow caused by a TCP segment.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tracker) struct Changes {
    pub(in crate::tracker) is_established: bool,
    /// True for a SYN that restarts the timeout of the handshake.
    pub(in crate::tracker) is_attempt: bool,
    pub(in crate::tracker) anomaly: Option<Anomaly>,
    pub(in crate::tracker) is_extra_refused: bool,
}

/// The context in which a TCP segment that is not simply the next one is processed.
pub(super) struct Update<'t> {
    pub(super) hot: &'t mut Hot,
    pub(super) cold: &'t mut Cold,
    pub(super) extras: &'t mut Extras,
    pub(super) side: Side,
    pub(super) segment: TcpSegment,
    pub(super) payload_len: u32,
    /// Capture time of the packet in nanoseconds.
    pub(super) own_ns: u64,
    pub(super) now_ns: u64,
    pub(super) changes: Changes,
}

/// Updates a flow by a TCP segment of any kind, after its packet was counted.
#[inline(never)]
pub(in crate::tracker) fn segment(
    hot: &mut Hot,
    cold: &mut Cold,
    extras: &mut Extras,
    packet: &Packet<'_>,
    now_ns: u64,
) -> Changes {
    let (side, segment, payload_len) = (packet.side, packet.tcp, packet.payload_len);
    let own_ns = packet.timestamp.as_nanos();
    hot.sides[side.index()].flags |= segment.flags;
    let mut update =
        Update { hot, cold, extras, side, segment, payload_len, own_ns, now_ns, changes: Changes::default() };
    update.control_letters();
    update.window(packet.transport_bytes());
    let is_valid_reset = segment.flags.contains(TcpFlags::RST) && update.reset();
    if segment.flags.contains(TcpFlags::SYN) {
        update.syn();
    }
    if segment.flags.contains(TcpFlags::ACK) && !segment.flags.contains(TcpFlags::RST) {
        update.acknowledgment();
    }
    if !segment.flags.contains(TcpFlags::RST) {
        update.octets();
    }
    if !segment.flags.contains(TcpFlags::RST) || is_valid_reset {
        update.endpoints();
    }
    update.state(is_valid_reset);
    update.changes
}

impl Update<'_> {
    pub(super) fn own(&mut self) -> &mut SideState {
        &mut self.hot.sides[self.side.index()]
    }

    pub(super) fn peer(&self) -> &SideState {
        &self.hot.sides[self.side.other().index()]
    }

    pub(super) fn is_initiator(&self) -> bool {
        self.hot.bits.initiator() == self.side
    }

    pub(super) fn has(&self, flag: TcpFlags) -> bool {
        self.segment.flags.contains(flag)
    }

    /// Returns the additional state of one side of the flow, if there is memory for it.
    pub(super) fn extra(&mut self, side: Side) -> Option<&mut ExtraSide> {
        let extra = self.extras.of(self.hot);
        self.changes.is_extra_refused |= extra.is_none();
        extra.map(|extra| &mut extra.sides[side.index()])
    }

    fn window(&mut self, header: &[u8]) {
        let TcpSegment { window, .. } = self.segment;
        let peer_is_closed = self.peer().bits.has(SideBits::FIN);
        let was_reset = self.hot.state == TcpState::Closed;
        if window == 0 && !self.has(TcpFlags::RST) && !peer_is_closed && !was_reset {
            let count = self.extra(self.side).map(|extra| {
                extra.zero_window_count += 1;
                extra.zero_window_count
            });
            if count.is_some_and(is_power_of_ten) {
                self.push(b'W', true);
            }
        }
        // The window of a reset is meaningless, and that of a SYN of another connection does not apply to this one.
        if self.has(TcpFlags::RST) || self.is_foreign_syn() {
            return;
        }
        let has_syn = self.has(TcpFlags::SYN);
        let own = self.own();
        own.window = window;
        if has_syn {
            let is_complete = tcp::header_len(header).is_some_and(|len| len <= header.len());
            let unseen = if is_complete { 0 } else { WINDOW_SCALE_UNKNOWN };
            own.window_scale = tcp::window_scale(header).unwrap_or(unseen);
        }
    }

    /// Returns whether the segment is a SYN that does not belong to the flow's connection as known so far.
    fn is_foreign_syn(&mut self) -> bool {
        let (seq, is_opening) = (self.segment.seq, self.hot.state <= TcpState::SynReceived);
        let own = self.own();
        let is_new = is_opening && !own.bits.has(SideBits::SYN);
        let is_known = own.bits.has(SideBits::SEQ) && own.initial_seq == seq;
        self.has(TcpFlags::SYN) && !is_new && !is_known
    }

    fn syn(&mut self) {
        let (side, seq) = (self.side, self.segment.seq);
        let is_opening = self.hot.state <= TcpState::SynReceived;
        let is_bare = !self.has(TcpFlags::ACK);
        let own = self.own();
        let is_seen = own.bits.has(SideBits::SYN);
        if own.bits.has(SideBits::SEQ) && own.initial_seq == seq && (is_seen || !is_opening) {
            // A retransmission, or a SYN that arrives after later segments. During the handshake, it restarts the
            // round-trip measurement.
            if is_opening && is_bare {
                self.note_attempt();
            }
            return;
        }
        if is_opening && !is_seen {
            own.initial_seq = seq;
            own.next_seq = seq;
            own.bits.set(SideBits::SYN);
            own.bits.set(SideBits::SEQ);
            if is_bare {
                self.note_attempt();
            }
            return;
        }
        if is_bare {
            self.changes.anomaly = Some(Anomaly::SynOnOpenFlow);
            if let Some(extra) = self.extras.of(self.hot) {
                extra.pending_syn = Some((side, seq));
            }
        } else {
            self.contest_start();
        }
    }

    /// Begins the measurement of the handshake with this SYN.
    fn note_attempt(&mut self) {
        let (own_ns, now_ns) = (self.own_ns, self.now_ns);
        self.cold.timing = Timing::of_syn(own_ns, now_ns);
        self.changes.is_attempt = true;
        let lag_ns = now_ns.saturating_sub(own_ns);
        if timing::is_long(lag_ns)
            && let Some(extra) = self.extras.of(self.hot)
        {
            extra.syn_lag_ns = lag_ns;
        }
    }

    fn endpoints(&mut self) {
        let (sender, peer) = (self.own().endpoint, self.peer().endpoint);
        let (sender, peer) =
            endpoint::after(sender, peer, self.is_initiator(), self.segment.flags, self.payload_len);
        self.own().endpoint = sender;
        self.hot.sides[self.side.other().index()].endpoint = peer;
    }
}
