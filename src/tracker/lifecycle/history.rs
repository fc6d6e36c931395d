//! The letters of the history: the events of each side of a flow, in the order of their first occurrence.

use super::super::flow::FlowBits;
use super::rules::CONTROL;
use super::segment::Update;
use crate::base::TcpSegment;
use crate::base::{SeqNum, TcpFlags};

/// History letters that each side of a flow adds only once, as bits of [`SideState::letters`].
pub(super) mod letter {
    pub(in crate::tracker::lifecycle) const SYN: u8 = 1;
    pub(in crate::tracker::lifecycle) const FIN: u8 = 1 << 1;
    pub(in crate::tracker::lifecycle) const RST: u8 = 1 << 2;
    pub(in crate::tracker::lifecycle) const DATA: u8 = 1 << 3;
    pub(in crate::tracker::lifecycle) const ACK: u8 = 1 << 4;
    pub(in crate::tracker::lifecycle) const FIN_RST: u8 = 1 << 5;
    pub(in crate::tracker::lifecycle) const MULTIPLE: u8 = 1 << 6;
}

/// Returns the history letter of the first segment of a side that has only the letter bit `bit`: payload, or an
/// acknowledgment without payload.
pub(super) const fn of_first(bit: u8, is_initiator: bool) -> u8 {
    let letter = if bit == letter::DATA { b'D' } else { b'A' };
    if is_initiator { letter } else { letter.to_ascii_lowercase() }
}

impl Update<'_> {
    pub(super) fn push(&mut self, letter: u8, is_of_sender: bool) {
        let is_initiator = self.is_initiator() == is_of_sender;
        self.cold.push_history(if is_initiator { letter } else { letter.to_ascii_lowercase() });
    }

    /// Adds a history letter of the sender, unless the sender has already added it.
    fn push_once(&mut self, letter: u8, bit: u8) {
        let own = self.own();
        if own.letters & bit == 0 {
            own.letters |= bit;
            self.push(letter, true);
        }
    }

    /// Adds a history letter of the sender once, and again whenever the sequence number of its segment differs from the
    /// previous one. `first` is the number for the first letter, which is derived from the side itself; only later
    /// numbers are stored.
    fn push_numbered(&mut self, letter: u8, bit: u8, seq: SeqNum, first: SeqNum) {
        if self.own().letters & bit == 0 {
            return self.push_once(letter, bit);
        }
        let has_extra = self.hot.bits.has(FlowBits::EXTRA);
        if !has_extra && seq == first {
            return;
        }
        let Some(extra) = self.extra(self.side) else { return };
        let place = match bit {
            letter::SYN => 0,
            letter::FIN => 1,
            _ => 2,
        };
        if extra.replace_number(place, seq).unwrap_or(first) != seq {
            self.push(letter, true);
        }
    }

    pub(super) fn control_letters(&mut self) {
        let TcpSegment { seq, flags, .. } = self.segment;
        let payload_len = self.payload_len;
        let own = self.own();
        let (initial_seq, next_seq) = (own.initial_seq, own.next_seq);
        match TcpFlags(flags.0 & CONTROL.0) {
            TcpFlags(0) if payload_len > 0 => self.push_once(b'D', letter::DATA),
            TcpFlags(0) if flags.contains(TcpFlags::ACK) => self.push_once(b'A', letter::ACK),
            TcpFlags(0) => {}
            TcpFlags::SYN => {
                let name = if flags.contains(TcpFlags::ACK) { b'H' } else { b'S' };
                self.push_numbered(name, letter::SYN, seq, initial_seq);
            }
            // The number of a FIN is that of its own octet: the last octet sent.
            TcpFlags::FIN => self.push_numbered(b'F', letter::FIN, seq.add(payload_len + 1), next_seq),
            TcpFlags::RST => self.push_numbered(b'R', letter::RST, seq, next_seq),
            control if control.contains(TcpFlags::FIN) && control.contains(TcpFlags::RST) => {
                self.push_once(b'I', letter::FIN_RST);
            }
            _ => self.push_once(b'Q', letter::MULTIPLE),
        }
    }
}
