//! Captures of random conversations: several senders, a network with loss, receivers that acknowledge the octets that
//! they received, and a capture that itself drops, delays, duplicates and truncates segments.

use flowgauge::base::{SeqNum, TcpFlags};
use proptest::prelude::*;

/// Random choices of a step: stream, action, position, length, fate of the segment, and delay after the previous step.
pub(crate) type Step = (usize, u8, usize, usize, u32, u8);

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![6 => 1..40_usize, 2 => 1..600_usize, 1 => 1..5000_usize];
    (0..4_usize, 0..16_u8, any::<u16>().prop_map(usize::from), len, any::<u32>(), any::<u8>())
}

/// Captured segment. Positions are those of the sender: its octets are counted from zero, after the SYN.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Segment { stream: usize, flags: TcpFlags, start: usize, end: usize, captured_end: usize },
    Ack { stream: usize, flags: TcpFlags, end: usize },
}

#[derive(Clone, Debug)]
pub(crate) struct Capture {
    /// Number of octets of each sender.
    pub(crate) lens: Vec<usize>,
    /// Sequence number of the first octet of each sender.
    pub(crate) first: Vec<SeqNum>,
    /// Events in the order of capture, with timestamps in milliseconds, which sometimes step back.
    pub(crate) events: Vec<(u64, Event)>,
}

/// Returns the octet at a position of a stream.
pub(crate) fn octet(stream: usize, position: usize) -> u8 {
    let mixed = (position as u64 * 4 + stream as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

struct Sender {
    len: usize,
    has_acks: bool,
    sent_end: usize,
    received: Vec<bool>,
    captured: Vec<bool>,
    is_fin_received: bool,
    is_fin_captured: bool,
}

impl Sender {
    /// Returns the position up to which the receiver acknowledges; the FIN counts as one octet.
    fn acked(&self) -> usize {
        let end = self.received.iter().position(|is_present| !is_present).unwrap_or(self.len);
        end + usize::from(end == self.len && self.is_fin_received)
    }
}

struct Network {
    is_lossless: bool,
    now_ms: u64,
    senders: Vec<Sender>,
    /// Time of capture, timestamp, event.
    events: Vec<(u64, u64, Event)>,
}

impl Network {
    /// Records an event at the capture. The skew is below the grace period if the capture is lossless.
    fn note(&mut self, fate: u32, event: Event) {
        let skew = match fate >> 8 & 0xff {
            skew @ 0..128 => u64::from(skew) % 6,
            skew @ 128..240 if !self.is_lossless => u64::from(skew) % 40,
            240.. if !self.is_lossless => 4000,
            _ => 0,
        };
        let time = self.now_ms + skew;
        self.events.push((time, time - u64::from(fate >> 16 & 3), event));
    }

    fn transmit(&mut self, stream: usize, range: (usize, usize), fate: u32, is_sure: bool) {
        let (start, end) = range;
        let sender = &mut self.senders[stream];
        let has_fin = end == sender.len && (is_sure || fate & 1 << 30 != 0);
        // The segment is dropped before the capture, after it, by the capture itself, or not at all.
        let outcome = if is_sure { 15 } else { fate & 15 };
        let is_received = !matches!(outcome, 0..4);
        let is_captured = !matches!(outcome, 0..2) && (self.is_lossless || outcome > 5);
        let is_truncated = !self.is_lossless && fate >> 4 & 7 == 0;
        let captured_end = if is_truncated { start + (end - start) / 2 } else { end };
        if is_received {
            sender.received[start..end].fill(true);
            sender.is_fin_received |= has_fin;
        }
        if is_captured {
            sender.captured[start..end].fill(true);
            sender.is_fin_captured |= has_fin;
            // Without PSH, a single first octet would be interpreted as a keep-alive.
            let pushed = TcpFlags::ACK | TcpFlags::PSH;
            let flags = if has_fin { TcpFlags::FIN | pushed } else { pushed };
            let event = Event::Segment { stream, flags, start, end, captured_end };
            if fate >> 20 & 7 == 0 {
                self.note(fate.rotate_left(5), event.clone());
            }
            self.note(fate, event);
        }
    }

    fn acknowledge(&mut self, stream: usize, fate: u32) {
        let sender = &self.senders[stream];
        if sender.has_acks && fate & 7 != 0 {
            let event = Event::Ack { stream, flags: TcpFlags::ACK, end: sender.acked() };
            self.note(fate & !0xff00 | if self.is_lossless { 0xff00 } else { fate & 0xff00 }, event);
        }
    }

    fn open(&mut self, stream: usize, fate: u32) {
        if self.is_lossless || fate & 3 != 0 {
            let event = Event::Segment { stream, flags: TcpFlags::SYN, start: 0, end: 0, captured_end: 0 };
            self.note(if self.is_lossless { 0xff00 } else { fate }, event);
        }
        let sender = &self.senders[stream];
        if sender.has_acks && (self.is_lossless || fate & 12 != 0) {
            let flags = TcpFlags::SYN | TcpFlags::ACK;
            self.note(
                if self.is_lossless { 0xff00 } else { fate >> 3 },
                Event::Ack { stream, flags, end: 0 },
            );
        }
    }

    fn step(&mut self, step: Step) {
        let (stream, action, position, len, fate, time) = step;
        let stream = stream % self.senders.len();
        let is_patient = !self.is_lossless || self.senders.iter().all(|sender| sender.has_acks);
        self.now_ms += match time {
            0..160 => 0,
            160..230 => u64::from(time) % 3,
            230..252 => 15,
            _ if is_patient => 3500,
            _ => 0,
        };
        let sender = &mut self.senders[stream];
        match action {
            0..8 => {
                let start = sender.sent_end;
                sender.sent_end = (start + len).min(sender.len);
                let end = sender.sent_end;
                if start < end {
                    self.transmit(stream, (start, end), fate, false);
                }
            }
            8..12 if sender.sent_end > 0 => {
                let start = position % sender.sent_end;
                let end = (start + len).min(sender.sent_end);
                self.transmit(stream, (start, end), fate, false);
            }
            12 => {
                let flags = if fate & 1 == 0 { TcpFlags::RST } else { TcpFlags::SYN };
                let start = if fate & 1 == 0 { sender.sent_end } else { 0 };
                self.note(fate, Event::Segment { stream, flags, start, end: start, captured_end: start });
            }
            _ => self.acknowledge(stream, fate),
        }
    }

    /// Retransmits all octets that were not captured, and the FIN.
    fn retransmit_missing(&mut self) {
        for stream in 0..self.senders.len() {
            let sender = &self.senders[stream];
            let (len, mut start) = (sender.len, 0);
            let missing: Vec<bool> = sender.captured.iter().map(|is_present| !is_present).collect();
            while let Some(from) = missing[start..].iter().position(|is_missing| *is_missing) {
                let from = start + from;
                start = missing[from..].iter().position(|is_missing| !is_missing).map_or(len, |to| from + to);
                self.transmit(stream, (from, start), 0xff00, true);
            }
            if !self.senders[stream].is_fin_captured {
                self.transmit(stream, (len, len), 0xff00, true);
            }
            self.acknowledge(stream, 7);
        }
    }
}

/// Returns a capture of the steps. If it is lossless, all octets of all streams are captured, at most one grace period
/// after their acknowledgment, or before the deadline if there are no acknowledgments.
pub(crate) fn capture(steps: &[Step], streams: &[(usize, bool, u32)], is_lossless: bool) -> Capture {
    let sender = |&(len, has_acks, _): &(usize, bool, u32)| Sender {
        len,
        has_acks,
        sent_end: 0,
        received: vec![false; len],
        captured: vec![false; len],
        is_fin_received: false,
        is_fin_captured: false,
    };
    let senders = streams.iter().map(sender).collect();
    let mut network = Network { is_lossless, now_ms: 10_000, senders, events: Vec::new() };
    for (stream, step) in (0..streams.len()).zip(steps.iter().cycle()) {
        network.open(stream, step.4.rotate_left(11));
    }
    network.now_ms += 4;
    steps.iter().for_each(|step| network.step(*step));
    if is_lossless {
        network.retransmit_missing();
    }
    network.events.sort_by_key(|(time, _, _)| *time);
    Capture {
        lens: streams.iter().map(|(len, _, _)| *len).collect(),
        first: streams.iter().map(|(_, _, first)| SeqNum(*first)).collect(),
        events: network.events.into_iter().map(|(_, timestamp, event)| (timestamp, event)).collect(),
    }
}
