//! Encapsulation of flows, and counters of the packets that a flow carries. Stored only for flows in tunnels, and only
//! if requested.

use crate::base::{Account, Budget, Encapsulation, EncapsulationHeader};
use crate::record::EncapsulationRecord;

/// Account of the memory and the number of all stored encapsulation records.
#[derive(Debug)]
pub(super) struct EncapsulationAccount {
    live_count: u32,
    max: u32,
    held_bytes: u64,
    budget: Budget,
}

impl EncapsulationAccount {
    const BYTES: u64 = size_of::<EncapsulationRecord>() as u64;

    pub(super) const fn new(max: u32, budget: Budget) -> Self {
        Self { live_count: 0, max, held_bytes: 0, budget }
    }

    fn charge(&mut self, bytes: u64) -> bool {
        let is_charged = self.budget.charge(Account::Flows, bytes);
        self.held_bytes += if is_charged { bytes } else { 0 };
        is_charged
    }

    /// Returns a new, empty encapsulation record, if the limits allow one more.
    pub(super) fn take(&mut self) -> Option<Box<EncapsulationRecord>> {
        if self.live_count >= self.max || !self.charge(Self::BYTES) {
            return None;
        }
        self.live_count += 1;
        Some(Box::default())
    }

    /// Returns an encapsulation with a copy of the outer headers, if the budget allows the memory.
    pub(super) fn copy(&mut self, headers: &[EncapsulationHeader]) -> Option<Encapsulation> {
        let bytes = Encapsulation::allocated_len(headers.len()) as u64;
        self.charge(bytes).then(|| Encapsulation::new(headers))
    }

    /// Subtracts the memory of an encapsulation record from the account. A list of headers that a flow record still
    /// shares is subtracted too: from then on, the owner of the flow record is responsible for it.
    pub(super) fn release(&mut self, record: &EncapsulationRecord) {
        let allocated_len = |encapsulation: &Encapsulation| {
            Encapsulation::allocated_len(encapsulation.headers().len()) as u64
        };
        let bytes =
            Self::BYTES + allocated_len(&record.encapsulation) + allocated_len(&record.reverse_encapsulation);
        self.live_count -= 1;
        self.held_bytes -= bytes;
        self.budget.release(Account::Flows, bytes);
    }
}

impl Drop for EncapsulationAccount {
    fn drop(&mut self) {
        self.budget.release(Account::Flows, self.held_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::HeaderKind;

    #[test]
    fn the_layout_has_the_size_stated_by_the_limits() {
        assert_eq!(EncapsulationAccount::BYTES, 176);
        assert_eq!(Encapsulation::allocated_len(0), 0);
        assert_eq!(Encapsulation::allocated_len(3), 16 + 3 * 40);
    }

    #[test]
    fn all_memory_is_charged_and_released() {
        let budget = Budget::new(1000);
        let mut account = EncapsulationAccount::new(3, budget.clone());
        let mut first = account.take().unwrap();
        first.reverse_encapsulation =
            account.copy(&[EncapsulationHeader::new(HeaderKind::Vxlan, 42); 2]).unwrap();
        assert_eq!(budget.held(), 176 + 16 + 80);
        let others = [account.take().unwrap(), account.take().unwrap()];
        assert_eq!(account.take(), None, "the limit");
        account.release(&first);
        assert_eq!(budget.held(), 2 * 176);
        assert_eq!(account.copy(&[EncapsulationHeader::new(HeaderKind::Mpls, 1); 16]), None, "the budget");
        account.release(&others[0]);
        drop(account);
        assert_eq!(budget.held(), 0);
    }
}
