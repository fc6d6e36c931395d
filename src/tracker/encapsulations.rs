//! Encapsulation of flows, and counters of the packets that a flow carries. Stored only for flows in tunnels, and only
//! if requested.

use super::Tracker;
use crate::base::{Account, Budget, Encapsulation, EncapsulationHeader, FlowKey, Side};
use crate::record::{EncapsulationRecord, OuterFlow};

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
    fn copy(&mut self, headers: &[EncapsulationHeader]) -> Option<Encapsulation> {
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

impl<S> Tracker<S> {
    /// Returns the slot of the open flow with a key. Tries the cache of recently used flows first.
    fn slot_of(&self, key: &FlowKey) -> Option<u32> {
        let guess = self.table.guess(key).filter(|slot| self.table.hot(*slot).key == *key);
        guess.or_else(|| self.table.find(self.table.hash(key), key))
    }

    /// Records the encapsulation and the outer flow of `packet_count` packets that were just tracked; counts packets
    /// with another encapsulation than the flow's first one.
    pub(crate) fn note_encapsulation(
        &mut self,
        (key, side): (&FlowKey, Side),
        packet_count: u32,
        headers: &[EncapsulationHeader],
        outer_flow: Option<OuterFlow>,
    ) {
        let is_nothing = headers.is_empty() && outer_flow.is_none();
        let Some(slot) = self.slot_of(key).filter(|_| !is_nothing) else { return };
        let (hot, _, extras) = self.table.parts(slot);
        let Some((record, account)) = extras.encapsulation_of(hot) else {
            self.stats.encapsulation_refused_count += u64::from(packet_count);
            return;
        };
        let (own, changed_count, own_flow, peer_flow) = match side {
            Side::A => (
                &mut record.encapsulation,
                &mut record.encapsulation_changed_count,
                &mut record.outer_flow,
                &record.reverse_outer_flow,
            ),
            Side::B => (
                &mut record.reverse_encapsulation,
                &mut record.reverse_encapsulation_changed_count,
                &mut record.reverse_outer_flow,
                &record.outer_flow,
            ),
        };
        if !own.is_empty() || own_flow.is_some() {
            let is_same = own.headers() == headers && *own_flow == outer_flow;
            *changed_count = changed_count.saturating_add(if is_same { 0 } else { packet_count });
            return;
        }
        let Some(copy) = account.copy(headers) else {
            self.stats.encapsulation_refused_count += u64::from(packet_count);
            return;
        };
        *own = copy;
        *own_flow = outer_flow;
        let is_counted = peer_flow.map(|flow| flow.key) == outer_flow.map(|flow| flow.key);
        if let Some(flow) = outer_flow.filter(|_| !is_counted) {
            self.change_carrier(&flow.key, |carrier| carrier.inner_flow_count += 1);
        }
    }

    /// Counts packets of an outer flow that carried another packet, or fragments of one.
    pub(crate) fn note_carried(&mut self, key: &FlowKey, packet_count: u64, octet_count: u64) {
        self.change_carrier(key, |carrier| {
            carrier.carried_packet_count += packet_count;
            carrier.carried_octet_count += octet_count;
        });
    }

    fn change_carrier(&mut self, key: &FlowKey, change: impl FnOnce(&mut EncapsulationRecord)) {
        let Some(slot) = self.slot_of(key) else { return };
        let (hot, _, extras) = self.table.parts(slot);
        match extras.encapsulation_of(hot) {
            Some((carrier, _)) => change(carrier),
            None => self.stats.encapsulation_refused_count += 1,
        }
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
