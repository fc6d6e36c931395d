//! Features of TCP connections: round-trip times, retransmissions by kind, windows and options.

use std::time::Duration;

use super::moments::Moments;
use crate::base::{Packet, SeqNum, Side, TcpFlags};
use crate::record::FlowRecord;
use crate::row::List;
use crate::wire::tcp::{OptionValue, Options};

/// Maximum number of segments and of timestamps of a side whose answers are awaited. Further ones are not timed.
const AWAITED_MAX: usize = 64;
/// Number of duplicate acknowledgments behind which a retransmission is a fast one (RFC 5681 section 3.2).
const DUPLICATE_MIN: u32 = 3;
/// Silence of a sender behind which a retransmission is by timeout: the least retransmission timeout of Linux.
const TIMEOUT_MIN_NS: u64 = 200_000_000;
/// Maximum number of options that are kept.
const OPTION_COUNT_MAX: usize = 20;

/// Round-trip time of a connection whose handshake was not seen, as in the tracker.
const UNKNOWN_RTT_NS: u64 = 3_000_000;

/// What was counted of the TCP segments of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Tcp {
    sides: [TcpSide; 2],
    handshake: Handshake,
}

/// The handshake of a connection: the last SYN, whether it was answered, and the time to the acknowledgment of the answer.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    syn: Option<(Side, u64)>,
    is_answered: bool,
    rtt_ns: Option<u64>,
}

impl Handshake {
    fn note(&mut self, packet: &Packet<'_>, now: u64) {
        let has = |flag| packet.tcp.flags.contains(flag);
        match (self.syn, has(TcpFlags::SYN), has(TcpFlags::ACK)) {
            _ if self.rtt_ns.is_some() => {}
            (_, true, false) => self.syn = Some((packet.side, now)),
            (Some(_), true, true) => self.is_answered = true,
            (Some((side, syn_ns)), false, true) if self.is_answered && side == packet.side => {
                self.rtt_ns = Some(now - syn_ns);
            }
            _ => {}
        }
    }
}

/// What was counted of the segments of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpSide {
    numbers: Numbers,
    /// Ends of segments, and timestamps, that the other side has not answered.
    ends: Awaited,
    stamps: Awaited,
    /// Times from a segment of this side to its acknowledgment, and from a timestamp to its echo.
    ack_rtt: Delays,
    timestamp_rtt: Delays,
    /// The greatest acknowledgment, and the number of its copies.
    ack: Option<SeqNum>,
    ack_window: u16,
    duplicate_run: u32,
    duplicate_ack_count: u32,
    /// Time of the last segment that occupies sequence numbers.
    sent_ns: Option<u64>,
    retransmitted: [u32; 4],
    keep_alive_count: u32,
    /// When the window became zero, and for how long it was in all.
    closed_since_ns: Option<u64>,
    closed_ns: u64,
    /// Windows behind the handshake, without scaling.
    windows: Moments,
    syn: Option<Syn>,
    hop_limit: Option<u8>,
}

/// Kinds of retransmitted segments, as indices.
mod kind {
    pub(super) const SPURIOUS: usize = 0;
    pub(super) const FAST: usize = 1;
    pub(super) const TIMEOUT: usize = 2;
    pub(super) const OTHER: usize = 3;
}

/// Options of the first SYN of a side.
#[derive(Clone, Debug)]
struct Syn {
    mss: Option<u16>,
    window_scale: Option<u8>,
    kinds: Vec<u8>,
}

impl Syn {
    fn read(header: &[u8]) -> Self {
        let mut syn = Self { mss: None, window_scale: None, kinds: Vec::new() };
        for (kind, value) in Options::of(header).take(OPTION_COUNT_MAX) {
            syn.kinds.push(kind);
            match value {
                OptionValue::Mss(mss) => syn.mss = Some(mss),
                OptionValue::WindowScale(shift) => syn.window_scale = Some(shift),
                _ => {}
            }
        }
        syn
    }
}

/// The sequence numbers that a side has used.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    next: Option<SeqNum>,
    /// Numbers that were skipped: the first one, and the one after the last.
    hole: Option<(SeqNum, SeqNum)>,
    /// When the hole was opened or extended, and the acknowledgments that asked for its octets since it was opened.
    hole_since_ns: u64,
    asked_count: u32,
}

/// How a segment relates to the numbers before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    New,
    Late,
    Again,
}

impl Numbers {
    /// Notes an acknowledgment: skipped numbers before it were not captured when they were sent, and are not awaited.
    fn acknowledged(&mut self, ack: SeqNum) {
        self.hole = self.hole.filter(|(_, last)| last.is_after(ack));
        if let Some((first, _)) = &mut self.hole
            && ack.is_after(*first)
        {
            *first = ack;
        }
    }

    /// Adds the numbers from `start` to before `end`.
    fn add(&mut self, start: SeqNum, end: SeqNum, now: u64) -> Order {
        let Some(next) = self.next else {
            self.next = Some(end);
            return Order::New;
        };
        if end.is_after(next) {
            self.next = Some(end);
            if start.is_after(next) {
                self.asked_count = self.hole.map_or(0, |_| self.asked_count);
                self.hole_since_ns = now;
                self.hole = Some((self.hole.map_or(next, |(first, _)| first), start));
            }
            return Order::New;
        }
        match self.hole {
            Some((first, last)) if !first.is_after(start) && last.is_after(start) => {
                self.hole = match (start == first, !last.is_after(end)) {
                    (true, true) => None,
                    (true, false) => Some((end, last)),
                    (false, true) => Some((first, start)),
                    (false, false) => Some((first, last)),
                };
                Order::Late
            }
            _ => Order::Again,
        }
    }
}

/// Numbers in ascending order whose answers are awaited, and when they were sent first.
#[derive(Clone, Debug, Default)]
struct Awaited(Vec<(u32, u64)>);

impl Tcp {
    /// Returns the memory in bytes that was allocated.
    pub(super) fn heap_len(&self) -> usize {
        let of_side = |side: &TcpSide| {
            let awaited_count = side.ends.0.capacity() + side.stamps.0.capacity();
            awaited_count * size_of::<(u32, u64)>() + side.syn.as_ref().map_or(0, |syn| syn.kinds.capacity())
        };
        size_of::<Self>() + self.sides.iter().map(of_side).sum::<usize>()
    }
}

impl Awaited {
    /// Adds a number, unless it is not after the last one, or too many are awaited.
    fn push(&mut self, number: u32, now: u64) {
        let is_new = self.0.last().is_none_or(|(last, _)| SeqNum(number).is_after(SeqNum(*last)));
        if is_new && self.0.len() < AWAITED_MAX {
            self.0.push((number, now));
        }
    }

    /// Removes a number and those before it. Returns when it was sent, if it was awaited.
    fn take(&mut self, number: u32) -> Option<u64> {
        let answered = self.0.iter().take_while(|(awaited, _)| !SeqNum(*awaited).is_after(SeqNum(number)));
        let count = answered.count();
        let last = self.0.drain(..count).next_back();
        last.filter(|(awaited, _)| *awaited == number).map(|(_, sent_ns)| sent_ns)
    }

    /// Removes the numbers after one that was sent again: their answers may be answers to either segment.
    fn forget_after(&mut self, number: SeqNum) {
        self.0.retain(|(awaited, _)| !SeqNum(*awaited).is_after(number));
    }
}

/// Samples of a delay in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Delays {
    all: Moments,
    last: u64,
    /// Differences of consecutive samples.
    variations: Moments,
}

impl Delays {
    fn push(&mut self, delay: u64) {
        if self.all.count() > 0 {
            self.variations.push(delay.abs_diff(self.last));
        }
        self.all.push(delay);
        self.last = delay;
    }
}

impl Tcp {
    /// Counts a segment; `now` is its time, not before that of the one before.
    pub(super) fn add(&mut self, packet: &Packet<'_>, now: u64) {
        self.handshake.note(packet, now);
        let rtt_ns = self.handshake.rtt_ns.unwrap_or(UNKNOWN_RTT_NS);
        let [a, b] = &mut self.sides;
        let (own, peer) = if packet.side == Side::A { (a, b) } else { (b, a) };
        let (segment, header) = (packet.tcp, packet.transport_bytes());
        let flags = segment.flags;
        own.hop_limit.get_or_insert(packet.hop_limit);
        if flags.contains(TcpFlags::SYN) && own.syn.is_none() {
            own.syn = Some(Syn::read(header));
        }
        if flags.contains(TcpFlags::ACK) {
            own.acknowledge(peer, packet, now);
        }
        if !flags.contains(TcpFlags::RST) {
            own.send(peer, packet, (now, rtt_ns));
            own.stamp(peer, packet, now);
            own.window(packet, now);
        }
    }

    pub(super) const fn side(&self, side: Side) -> &TcpSide {
        let [a, b] = &self.sides;
        match side {
            Side::A => a,
            Side::B => b,
        }
    }
}

impl TcpSide {
    fn acknowledge(&mut self, peer: &mut Self, packet: &Packet<'_>, now: u64) {
        let (ack, window) = (packet.tcp.ack, packet.tcp.window);
        peer.numbers.acknowledged(ack);
        if let Some(sent_ns) = peer.ends.take(ack.0) {
            peer.ack_rtt.push(now - sent_ns);
        }
        let is_bare = packet.payload_len == 0
            && !packet.tcp.flags.intersects(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        let has_outstanding = peer.numbers.next.is_some_and(|next| next.is_after(ack));
        if self.ack == Some(ack) {
            peer.numbers.asked_count += u32::from(is_bare);
            if is_bare && has_outstanding && window == self.ack_window {
                self.duplicate_run += 1;
                self.duplicate_ack_count += 1;
            }
        } else if self.ack.is_none_or(|greatest| ack.is_after(greatest)) {
            (self.ack, self.duplicate_run) = (Some(ack), 0);
        }
        self.ack_window = window;
    }

    /// Counts the sequence numbers that a segment occupies.
    fn send(&mut self, peer: &Self, packet: &Packet<'_>, (now, rtt_ns): (u64, u64)) {
        let (start, flags) = (packet.tcp.seq, packet.tcp.flags);
        let control_len = u32::from(flags.contains(TcpFlags::SYN)) + u32::from(flags.contains(TcpFlags::FIN));
        let end = start.add(packet.payload_len.wrapping_add(control_len));
        // A keep-alive has no octet or one, before the next number.
        let is_probe = control_len == 0 && packet.payload_len <= 1 && self.numbers.next == Some(start.add(1));
        if is_probe && packet.payload_len == 0 {
            self.keep_alive_count += 1;
            return;
        }
        if end == start {
            self.numbers.next.get_or_insert(start);
            return;
        }
        let silence = self.sent_ns.map_or(0, |sent_ns| now - sent_ns);
        // Skipped numbers were lost, and not overtaken, if they come after a round trip, or after they were asked for.
        let is_lost = now - self.numbers.hole_since_ns > rtt_ns || self.numbers.asked_count >= DUPLICATE_MIN;
        match self.numbers.add(start, end, now) {
            Order::New => self.ends.push(end.0, now),
            Order::Late if !is_lost => {}
            Order::Again if is_probe => self.keep_alive_count += 1,
            Order::Late | Order::Again => {
                self.ends.forget_after(start);
                let is_acked = peer.ack.is_some_and(|ack| !end.is_after(ack));
                let kind = if is_acked {
                    kind::SPURIOUS
                } else if peer.duplicate_run >= DUPLICATE_MIN && peer.ack == Some(start) {
                    kind::FAST
                } else if silence >= TIMEOUT_MIN_NS {
                    kind::TIMEOUT
                } else {
                    kind::OTHER
                };
                if let Some(count) = self.retransmitted.get_mut(kind) {
                    *count += 1;
                }
            }
        }
        self.sent_ns = Some(now);
    }

    /// Counts the timestamps of a segment (RFC 7323 section 3.2).
    fn stamp(&mut self, peer: &mut Self, packet: &Packet<'_>, now: u64) {
        let stamps = Options::of(packet.transport_bytes()).find_map(|(_, option)| match option {
            OptionValue::Timestamps(value, echo) => Some((value, echo)),
            _ => None,
        });
        let Some((value, echo)) = stamps else { return };
        self.stamps.push(value, now);
        // The echo of a segment without ACK is not valid.
        if packet.tcp.flags.contains(TcpFlags::ACK)
            && let Some(sent_ns) = peer.stamps.take(echo)
        {
            peer.timestamp_rtt.push(now - sent_ns);
        }
    }

    fn window(&mut self, packet: &Packet<'_>, now: u64) {
        let is_opening = packet.tcp.flags.contains(TcpFlags::SYN);
        match (packet.tcp.window, self.closed_since_ns) {
            (0, None) if !is_opening => self.closed_since_ns = Some(now),
            (1.., Some(since_ns)) => {
                self.closed_ns += now - since_ns;
                self.closed_since_ns = None;
            }
            _ => {}
        }
        if !is_opening {
            self.windows.push(packet.tcp.window.into());
        }
    }

    fn retransmitted(&self, kind: usize) -> u32 {
        self.retransmitted.get(kind).copied().unwrap_or_default()
    }
}

/// Features of the segments of a TCP connection as a row.
pub(super) struct TcpRow<'a> {
    forward: Option<&'a TcpSide>,
    backward: Option<&'a TcpSide>,
    last_ns: u64,
}

impl<'a> TcpRow<'a> {
    /// Creates the row of what was counted up to the last packet of a record.
    pub(super) fn new(record: &FlowRecord, tcp: Option<&'a Tcp>, last_ns: u64) -> Self {
        let side = |side| tcp.map(|tcp| tcp.side(side));
        let initiator = record.initiator;
        Self { forward: side(initiator), backward: side(initiator.other()), last_ns }
    }

    /// Returns how long the window of a side was zero.
    fn closed(&self, side: Option<&TcpSide>) -> Option<Duration> {
        let open_ns = |since_ns| self.last_ns.saturating_sub(since_ns);
        side.map(|side| Duration::from_nanos(side.closed_ns + side.closed_since_ns.map_or(0, open_ns)))
    }

    /// Returns the windows of a side, and the shift that applies to them, if both SYNs were seen.
    fn windows<'s>(&self, side: Option<&'s TcpSide>) -> Option<(&'s Moments, u8)> {
        let shift = |side: Option<&TcpSide>| side?.syn.as_ref().map(|syn| syn.window_scale);
        let (own, forward, backward) = (shift(side)?, shift(self.forward)?, shift(self.backward)?);
        // Scaling is in use if both SYNs have the option.
        let is_scaled = forward.is_some() && backward.is_some();
        Some((&side?.windows, own.filter(|_| is_scaled).unwrap_or_default()))
    }

    fn window(&self, side: Option<&TcpSide>, of: fn(&Moments) -> Option<u64>) -> Option<u64> {
        self.windows(side).and_then(|(windows, shift)| Some(of(windows)? << shift))
    }

    fn mean_window(&self, side: Option<&TcpSide>) -> Option<f64> {
        self.windows(side).and_then(|(windows, shift)| Some(windows.mean()? * f64::from(1_u32 << shift)))
    }
}

/// Returns a number of nanoseconds of the samples of a side, rounded.
fn delay(
    side: Option<&TcpSide>,
    delays: fn(&TcpSide) -> &Delays,
    of: fn(&Delays) -> Option<f64>,
) -> Option<Duration> {
    side.and_then(|side| of(delays(side))).map(|nanoseconds| Duration::from_nanos(nanoseconds.round() as u64))
}

/// Statistics of samples.
mod of {
    use super::Delays;

    pub(super) fn min(delays: &Delays) -> Option<f64> {
        delays.all.min().map(|delay| delay as f64)
    }

    pub(super) fn mean(delays: &Delays) -> Option<f64> {
        delays.all.mean()
    }

    pub(super) fn max(delays: &Delays) -> Option<f64> {
        delays.all.max().map(|delay| delay as f64)
    }

    pub(super) fn deviation(delays: &Delays) -> Option<f64> {
        delays.all.deviation()
    }

    pub(super) fn jitter(delays: &Delays) -> Option<f64> {
        delays.variations.mean()
    }
}

const fn acked(side: &TcpSide) -> &Delays {
    &side.ack_rtt
}

const fn echoed(side: &TcpSide) -> &Delays {
    &side.timestamp_rtt
}

fn count(side: Option<&TcpSide>, delays: fn(&TcpSide) -> &Delays) -> Option<u64> {
    side.map(|side| delays(side).all.count())
}

fn retransmitted(side: Option<&TcpSide>, kind: usize) -> Option<u32> {
    side.map(|side| side.retransmitted(kind))
}

fn syn(side: Option<&TcpSide>) -> Option<&Syn> {
    side.and_then(|side| side.syn.as_ref())
}

fn options(side: Option<&TcpSide>) -> Option<List<&[u8]>> {
    syn(side).map(|syn| List(syn.kinds.as_slice()))
}

/// Returns the least usual initial hop limit that is at least the one of the first segment.
fn initial_hop_limit(side: Option<&TcpSide>) -> Option<u8> {
    let hop_limit = side?.hop_limit.filter(|hop_limit| *hop_limit > 0)?;
    [32, 64, 128].into_iter().find(|initial| hop_limit <= *initial).or(Some(255))
}

crate::table! {
    /// Round-trip times, retransmissions by kind, windows and options of a TCP connection.
    impl['a] "tcp" for TcpRow<'a> as row {
        /// Number of times from a segment of the initiator to its acknowledgment.
        "ack_rtt_count": Option<u64> = count(row.forward, acked);
        /// Least time from a segment of the initiator to its acknowledgment.
        "ack_rtt_min": Option<Duration> = delay(row.forward, acked, of::min);
        /// Mean time from a segment of the initiator to its acknowledgment.
        "ack_rtt_mean": Option<Duration> = delay(row.forward, acked, of::mean);
        /// Greatest time from a segment of the initiator to its acknowledgment.
        "ack_rtt_max": Option<Duration> = delay(row.forward, acked, of::max);
        /// Sample standard deviation of the time from a segment of the initiator to its acknowledgment.
        "ack_rtt_deviation": Option<Duration> = delay(row.forward, acked, of::deviation);
        /// Mean difference of consecutive times from a segment of the initiator to its acknowledgment.
        "ack_rtt_jitter": Option<Duration> = delay(row.forward, acked, of::jitter);
        /// Number of times from a timestamp of the initiator to its echo.
        "timestamp_rtt_count": Option<u64> = count(row.forward, echoed);
        /// Least time from a timestamp of the initiator to its echo.
        "timestamp_rtt_min": Option<Duration> = delay(row.forward, echoed, of::min);
        /// Mean time from a timestamp of the initiator to its echo.
        "timestamp_rtt_mean": Option<Duration> = delay(row.forward, echoed, of::mean);
        /// Greatest time from a timestamp of the initiator to its echo.
        "timestamp_rtt_max": Option<Duration> = delay(row.forward, echoed, of::max);
        /// Sample standard deviation of the time from a timestamp of the initiator to its echo.
        "timestamp_rtt_deviation": Option<Duration> = delay(row.forward, echoed, of::deviation);
        /// Mean difference of consecutive times from a timestamp of the initiator to its echo.
        "timestamp_rtt_jitter": Option<Duration> = delay(row.forward, echoed, of::jitter);
        /// Segments of the initiator that were sent again although all their octets had been acknowledged.
        "spurious_retransmitted_count": Option<u32> [packets] = retransmitted(row.forward, kind::SPURIOUS);
        /// Segments of the initiator that were sent again behind three duplicate acknowledgments.
        "fast_retransmitted_count": Option<u32> [packets] = retransmitted(row.forward, kind::FAST);
        /// Segments of the initiator that were sent again after it had sent nothing for at least 200 ms.
        "timeout_retransmitted_count": Option<u32> [packets] = retransmitted(row.forward, kind::TIMEOUT);
        /// Other segments of the initiator that were sent again.
        "other_retransmitted_count": Option<u32> [packets] = retransmitted(row.forward, kind::OTHER);
        /// Keep-alive segments of the initiator: no octet or one, before the next one.
        "keep_alive_count": Option<u32> [packets] = row.forward.map(|side| side.keep_alive_count);
        /// Duplicate acknowledgments of the initiator (RFC 5681).
        "duplicate_ack_count": Option<u32> [packets] = row.forward.map(|side| side.duplicate_ack_count);
        /// How long the window of the initiator was zero.
        "zero_window_duration": Option<Duration> = row.closed(row.forward);
        /// Least window of the initiator behind its SYN, scaled; absent if a SYN was not seen.
        "window_min": Option<u64> [octets] = row.window(row.forward, Moments::min);
        /// Mean window of the initiator.
        "window_mean": Option<f64> [octets] = row.mean_window(row.forward);
        /// Greatest window of the initiator.
        "window_max": Option<u64> [octets] = row.window(row.forward, Moments::max);
        /// Maximum segment size that the SYN of the initiator offers.
        "mss": Option<u16> [octets] = syn(row.forward).and_then(|syn| syn.mss);
        /// Shift of windows that the SYN of the initiator offers, at most 14.
        "window_scale": Option<u8> = syn(row.forward).and_then(|syn| syn.window_scale);
        /// Kinds of the options of the SYN of the initiator, in order (IANA TCP Option Kind Numbers).
        "tcp_options": Option<List<&'a [u8]>> = options(row.forward);
        /// Likely initial TTL or hop limit of the initiator: the least of 32, 64, 128 and 255 that is not below that of its first segment.
        "initial_hop_limit": Option<u8> = initial_hop_limit(row.forward);
        /// Number of times from a segment of the responder to its acknowledgment.
        "reverse_ack_rtt_count": Option<u64> = count(row.backward, acked);
        /// Least time from a segment of the responder to its acknowledgment.
        "reverse_ack_rtt_min": Option<Duration> = delay(row.backward, acked, of::min);
        /// Mean time from a segment of the responder to its acknowledgment.
        "reverse_ack_rtt_mean": Option<Duration> = delay(row.backward, acked, of::mean);
        /// Greatest time from a segment of the responder to its acknowledgment.
        "reverse_ack_rtt_max": Option<Duration> = delay(row.backward, acked, of::max);
        /// Sample standard deviation of the time from a segment of the responder to its acknowledgment.
        "reverse_ack_rtt_deviation": Option<Duration> = delay(row.backward, acked, of::deviation);
        /// Mean difference of consecutive times from a segment of the responder to its acknowledgment.
        "reverse_ack_rtt_jitter": Option<Duration> = delay(row.backward, acked, of::jitter);
        /// Number of times from a timestamp of the responder to its echo.
        "reverse_timestamp_rtt_count": Option<u64> = count(row.backward, echoed);
        /// Least time from a timestamp of the responder to its echo.
        "reverse_timestamp_rtt_min": Option<Duration> = delay(row.backward, echoed, of::min);
        /// Mean time from a timestamp of the responder to its echo.
        "reverse_timestamp_rtt_mean": Option<Duration> = delay(row.backward, echoed, of::mean);
        /// Greatest time from a timestamp of the responder to its echo.
        "reverse_timestamp_rtt_max": Option<Duration> = delay(row.backward, echoed, of::max);
        /// Sample standard deviation of the time from a timestamp of the responder to its echo.
        "reverse_timestamp_rtt_deviation": Option<Duration> = delay(row.backward, echoed, of::deviation);
        /// Mean difference of consecutive times from a timestamp of the responder to its echo.
        "reverse_timestamp_rtt_jitter": Option<Duration> = delay(row.backward, echoed, of::jitter);
        /// Segments of the responder that were sent again although all their octets had been acknowledged.
        "reverse_spurious_retransmitted_count": Option<u32> [packets] = retransmitted(row.backward, kind::SPURIOUS);
        /// Segments of the responder that were sent again behind three duplicate acknowledgments.
        "reverse_fast_retransmitted_count": Option<u32> [packets] = retransmitted(row.backward, kind::FAST);
        /// Segments of the responder that were sent again after it had sent nothing for at least 200 ms.
        "reverse_timeout_retransmitted_count": Option<u32> [packets] = retransmitted(row.backward, kind::TIMEOUT);
        /// Other segments of the responder that were sent again.
        "reverse_other_retransmitted_count": Option<u32> [packets] = retransmitted(row.backward, kind::OTHER);
        /// Keep-alive segments of the responder: no octet or one, before the next one.
        "reverse_keep_alive_count": Option<u32> [packets] = row.backward.map(|side| side.keep_alive_count);
        /// Duplicate acknowledgments of the responder (RFC 5681).
        "reverse_duplicate_ack_count": Option<u32> [packets] = row.backward.map(|side| side.duplicate_ack_count);
        /// How long the window of the responder was zero.
        "reverse_zero_window_duration": Option<Duration> = row.closed(row.backward);
        /// Least window of the responder behind its SYN, scaled; absent if a SYN was not seen.
        "reverse_window_min": Option<u64> [octets] = row.window(row.backward, Moments::min);
        /// Mean window of the responder.
        "reverse_window_mean": Option<f64> [octets] = row.mean_window(row.backward);
        /// Greatest window of the responder.
        "reverse_window_max": Option<u64> [octets] = row.window(row.backward, Moments::max);
        /// Maximum segment size that the SYN of the responder offers.
        "reverse_mss": Option<u16> [octets] = syn(row.backward).and_then(|syn| syn.mss);
        /// Shift of windows that the SYN of the responder offers, at most 14.
        "reverse_window_scale": Option<u8> = syn(row.backward).and_then(|syn| syn.window_scale);
        /// Kinds of the options of the SYN of the responder, in order (IANA TCP Option Kind Numbers).
        "reverse_tcp_options": Option<List<&'a [u8]>> = options(row.backward);
        /// Likely initial TTL or hop limit of the responder: the least of 32, 64, 128 and 255 that is not below that of its first segment.
        "reverse_initial_hop_limit": Option<u8> = initial_hop_limit(row.backward);
    }
}
