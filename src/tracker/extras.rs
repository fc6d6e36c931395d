//! Additional state of flows with unusual events (an [`Extra`]), and its storage.

use super::encapsulations::EncapsulationAccount;
use super::flow::{FlowBits, Hot};
use super::slab::{SEGMENT_LEN, Slab};
use crate::base::{Account, Budget, Limits, SeqNum, Side};
use crate::record::EncapsulationRecord;

/// Additional state of a flow, allocated at its first unusual event.
#[derive(Clone, Debug, Default)]
pub(super) struct Extra {
    pub(super) sides: [ExtraSide; 2],
    /// Time in nanoseconds by which the latest timestamp of the record is behind the time of its last packet on the
    /// tracker's clock. In a free
    /// entry: the index of the next free entry.
    pub(super) lag_ns: u64,
    /// Time in nanoseconds by which the timestamp of the last SYN is behind the tracker's clock, if it is long.
    pub(super) syn_lag_ns: u64,
    /// A SYN of this side with a sequence number that differs from the SYN of its connection and is not acknowledged
    /// yet. On an open flow, a SYN-ACK may confirm it; if it is a SYN-ACK, an acknowledgment or octets confirm one of
    /// the two numbers.
    pub(super) pending_syn: Option<(Side, SeqNum)>,
    /// Number of ICMP errors that quoted a packet of the flow.
    pub(super) icmp_error_count: u32,
    /// Number of the flow's packets that are fragments.
    pub(super) fragment_count: u32,
    /// Encapsulation of both sides of the flow, side A first, and counters of the packets that the flow carries.
    pub(super) encapsulation: Option<Box<EncapsulationRecord>>,
}

/// Additional state of one side of a TCP flow with unusual events. The fields that each retransmission updates are
/// adjacent, in one cache line for both sides.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct ExtraSide {
    pub(super) retransmitted_count: u32,
    /// Number of segments with payload but without new octets, which the history letter `t` counts.
    pub(super) stale_count: u32,
    /// Value of `stale_count` at which the history letter `t` is added again.
    pub(super) stale_letter_count: u32,
    pub(super) out_of_order_count: u32,
    pub(super) zero_window_count: u32,
    /// Value of `zero_window_count` at the start of the current record.
    pub(super) zero_window_before_count: u32,
    pub(super) gap_count: u32,
    /// Range of missing octets that were skipped: sequence number of the first missing octet, and after the last one.
    pub(super) hole: Option<(SeqNum, SeqNum)>,
    /// Capture time of the segment that opened or extended the hole, in units of 1024 ns, modulo 2^32.
    pub(super) hole_since: u32,
    /// Sequence numbers of the side's last SYN, FIN and RST.
    pub(super) last_numbers: [SeqNum; 3],
    /// Which of `last_numbers` are known, as bits. That of the SYN is not until the side sends a second one.
    pub(super) known_numbers: u8,
    /// Number of acknowledgments without octets of the other side that did not advance while the hole was open.
    pub(super) duplicate_ack_count: u8,
}

impl ExtraSide {
    /// Returns the sequence numbers of the side's last SYN, FIN and RST, as far as they are known.
    pub(super) fn last_numbers(&self) -> [Option<SeqNum>; 3] {
        [0, 1, 2].map(|place| (self.known_numbers & 1 << place != 0).then_some(self.last_numbers[place]))
    }

    /// Replaces the sequence number of the side's last SYN (`place` is 0), FIN (1) or RST (2). Returns the previous one.
    pub(super) fn replace_number(&mut self, place: usize, seq: SeqNum) -> Option<SeqNum> {
        let before = self.last_numbers()[place];
        self.last_numbers[place] = seq;
        self.known_numbers |= 1 << place;
        before
    }
}

impl Extra {
    /// Resets the delta counters for a new record. State that history letters and missing octets depend on is kept.
    pub(super) fn restart_counters(&mut self) {
        self.icmp_error_count = 0;
        self.fragment_count = 0;
        if let Some(encapsulation) = &mut self.encapsulation {
            encapsulation.restart_counters();
        }
        for side in &mut self.sides {
            side.retransmitted_count = 0;
            side.out_of_order_count = 0;
            side.zero_window_before_count = side.zero_window_count;
        }
    }
}

/// The additional state of all flows with unusual events.
#[derive(Debug)]
pub(super) struct Extras {
    entries: Slab<Extra>,
    free: u32,
    live_count: u32,
    max: u32,
    budget: Budget,
    pub(super) encapsulations: EncapsulationAccount,
}

const NO_FREE: u32 = u32::MAX;

/// Memory in bytes that is charged for a segment of entries.
const SEGMENT_BYTES: u64 = (SEGMENT_LEN * size_of::<Extra>()) as u64;

impl Extras {
    pub(super) fn new(limits: &Limits, budget: Budget, in_huge_pages: bool) -> Self {
        let encapsulations = EncapsulationAccount::new(limits.encapsulation_count_max, budget.clone());
        let max = limits.tcp_extra_count_max;
        Self { entries: Slab::new(in_huge_pages), free: NO_FREE, live_count: 0, max, budget, encapsulations }
    }

    pub(super) fn get(&self, hot: &Hot) -> Option<&Extra> {
        if hot.bits.has(FlowBits::EXTRA) { self.entries.get(hot.extra) } else { None }
    }

    pub(super) fn get_mut(&mut self, hot: &Hot) -> Option<&mut Extra> {
        hot.bits.has(FlowBits::EXTRA).then(|| self.entries.at_mut(hot.extra))
    }

    /// Returns the additional state at the index `extra`, which must be in use.
    #[inline(always)]
    pub(super) fn at_mut(&mut self, extra: u32) -> &mut Extra {
        self.entries.at_mut(extra)
    }

    /// Returns the additional state of a flow; creates it if there is none. Returns `None` if there is no memory for
    /// it.
    pub(super) fn of(&mut self, hot: &mut Hot) -> Option<&mut Extra> {
        if !hot.bits.has(FlowBits::EXTRA) {
            hot.extra = self.take()?;
            hot.bits.set(FlowBits::EXTRA, true);
        }
        Some(self.entries.at_mut(hot.extra))
    }

    fn take(&mut self) -> Option<u32> {
        if self.live_count >= self.max {
            return None;
        }
        let index = if self.free != NO_FREE {
            let index = self.free;
            let entry = self.entries.at_mut(index);
            self.free = entry.lag_ns as u32;
            *entry = Extra::default();
            index
        } else {
            if self.entries.is_full() && !self.budget.charge(Account::Flows, SEGMENT_BYTES) {
                return None;
            }
            self.entries.push(Extra::default())
        };
        self.live_count += 1;
        Some(index)
    }

    pub(super) fn release(&mut self, hot: &Hot) {
        if hot.bits.has(FlowBits::EXTRA) {
            let entry = self.entries.at_mut(hot.extra);
            entry.lag_ns = self.free.into();
            if let Some(encapsulation) = entry.encapsulation.take() {
                self.encapsulations.release(&encapsulation);
            }
            self.free = hot.extra;
            self.live_count -= 1;
        }
    }

    /// Returns the encapsulation record of a flow and the account of its memory; creates the record if there is none.
    /// Returns `None` if there is no memory for it.
    pub(super) fn encapsulation_of(
        &mut self,
        hot: &mut Hot,
    ) -> Option<(&mut EncapsulationRecord, &mut EncapsulationAccount)> {
        self.of(hot)?;
        let index = &mut self.entries.at_mut(hot.extra).encapsulation;
        if index.is_none() {
            *index = Some(self.encapsulations.take()?);
        }
        index.as_deref_mut().map(|encapsulation| (encapsulation, &mut self.encapsulations))
    }

    pub(super) const fn live_count(&self) -> u32 {
        self.live_count
    }
}

impl Drop for Extras {
    fn drop(&mut self) {
        let segment_count = self.entries.len().div_ceil(SEGMENT_LEN) as u64;
        self.budget.release(Account::Flows, segment_count * SEGMENT_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::FlowKey;

    #[test]
    fn the_layout_has_the_size_stated_by_the_limits() {
        assert_eq!(size_of::<Extra>(), 160);
    }

    #[test]
    fn extras_are_reused_and_limited() {
        let limits = Limits { tcp_extra_count_max: 2, ..Limits::DEFAULT };
        let mut extras = Extras::new(&limits, Budget::default(), false);
        let mut flows: Vec<Hot> = (0..3).map(|_| Hot::new(FlowKey::VACANT, 0)).collect();
        for (index, hot) in flows.iter_mut().enumerate() {
            let extra = extras.of(hot);
            assert_eq!(extra.is_some(), index < 2);
            if let Some(extra) = extra {
                extra.icmp_error_count = 7;
            }
        }
        extras.release(&flows[0]);
        assert_eq!(extras.of(&mut flows[2]).map(|extra| extra.icmp_error_count), Some(0));
        assert_eq!(extras.live_count(), 2);
    }
}
