//! Encapsulation of flows, and counters of carried packets: stored only for flows in tunnels, and only if requested.

use super::Tracker;
use crate::base::{Account, Budget, EncapsulationStack, FlowKey, OuterHeader, Side};
use crate::record::{Carried, FlowEncapsulation, OuterFlow, SideEncapsulation};

/// The storage account of all encapsulations.
#[derive(Debug)]
pub(super) struct Encapsulations {
    live_count: u32,
    max: u32,
    held_bytes: u64,
    budget: Budget,
}

impl Encapsulations {
    const BYTES: u64 = size_of::<FlowEncapsulation>() as u64;

    pub(super) const fn new(max: u32, budget: Budget) -> Self {
        Self { live_count: 0, max, held_bytes: 0, budget }
    }

    fn charge(&mut self, bytes: u64) -> bool {
        let is_charged = self.budget.charge(Account::Flows, bytes);
        self.held_bytes += if is_charged { bytes } else { 0 };
        is_charged
    }

    /// Returns a new one, if the limits allow it.
    pub(super) fn take(&mut self) -> Option<Box<FlowEncapsulation>> {
        if self.live_count >= self.max || !self.charge(Self::BYTES) {
            return None;
        }
        self.live_count += 1;
        Some(Box::default())
    }

    /// Returns a copy of a stack, if the budget allows it.
    fn stack(&mut self, headers: &[OuterHeader]) -> Option<EncapsulationStack> {
        let bytes = EncapsulationStack::allocated_len(headers.len()) as u64;
        self.charge(bytes).then(|| EncapsulationStack::new(headers))
    }

    /// Removes one from the account. Stacks that are still used by records belong to the owners of the records.
    pub(super) fn release(&mut self, encapsulation: &FlowEncapsulation) {
        let stack_len =
            |side: &SideEncapsulation| EncapsulationStack::allocated_len(side.stack.headers().len());
        let stacks_len = stack_len(&encapsulation.forward) + stack_len(&encapsulation.reverse);
        let bytes = Self::BYTES + stacks_len as u64;
        self.live_count -= 1;
        self.held_bytes -= bytes;
        self.budget.release(Account::Flows, bytes);
    }
}

impl Drop for Encapsulations {
    fn drop(&mut self) {
        self.budget.release(Account::Flows, self.held_bytes);
    }
}

impl<S> Tracker<S> {
    /// Returns the slot of a flow that was used recently.
    fn slot_of(&self, key: &FlowKey) -> Option<u32> {
        let guess = self.table.guess(key).filter(|slot| self.table.hot(*slot).key == *key);
        guess.or_else(|| self.table.find(self.table.hash(key), key))
    }

    /// Records the encapsulation of packets that were just tracked: the headers, and the flow that carried them.
    pub(crate) fn note_encapsulation(
        &mut self,
        (key, side): (&FlowKey, Side),
        packet_count: u32,
        headers: &[OuterHeader],
        outer: Option<OuterFlow>,
    ) {
        let is_nothing = headers.is_empty() && outer.is_none();
        let Some(slot) = self.slot_of(key).filter(|_| !is_nothing) else { return };
        let (hot, _, extras) = self.table.parts(slot);
        let Some((encapsulation, account)) = extras.encapsulation_of(hot) else {
            self.stats.encapsulation_refused_count += u64::from(packet_count);
            return;
        };
        let [own, peer] = match side {
            Side::A => [&mut encapsulation.forward, &mut encapsulation.reverse],
            Side::B => [&mut encapsulation.reverse, &mut encapsulation.forward],
        };
        if !own.stack.is_empty() || own.outer.is_some() {
            let is_same = own.stack.headers() == headers && own.outer == outer;
            own.changed_count = own.changed_count.saturating_add(if is_same { 0 } else { packet_count });
            return;
        }
        let Some(stack) = account.stack(headers) else {
            self.stats.encapsulation_refused_count += u64::from(packet_count);
            return;
        };
        own.stack = stack;
        own.outer = outer;
        let is_counted = peer.outer.map(|outer| outer.key) == outer.map(|outer| outer.key);
        if let Some(outer) = outer.filter(|_| !is_counted) {
            self.change_carried(&outer.key, |carried| carried.inner_flow_count += 1);
        }
    }

    /// Counts packets of a flow that carried another packet, or fragments of one.
    pub(crate) fn note_carried(&mut self, key: &FlowKey, packet_count: u64, octet_count: u64) {
        self.change_carried(key, |carried| {
            carried.packet_count += packet_count;
            carried.octet_count += octet_count;
        });
    }

    fn change_carried(&mut self, key: &FlowKey, change: impl FnOnce(&mut Carried)) {
        let Some(slot) = self.slot_of(key) else { return };
        let (hot, _, extras) = self.table.parts(slot);
        match extras.encapsulation_of(hot) {
            Some((encapsulation, _)) => change(&mut encapsulation.carried),
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
        assert_eq!(Encapsulations::BYTES, 184);
        assert_eq!(EncapsulationStack::allocated_len(0), 0);
        assert_eq!(EncapsulationStack::allocated_len(3), 16 + 3 * 40);
    }

    #[test]
    fn all_memory_is_charged_and_released() {
        let budget = Budget::new(1000);
        let mut account = Encapsulations::new(3, budget.clone());
        let mut first = account.take().unwrap();
        first.reverse.stack = account.stack(&[OuterHeader::new(HeaderKind::Vxlan, 42); 2]).unwrap();
        assert_eq!(budget.held(), 184 + 16 + 80);
        let others = [account.take().unwrap(), account.take().unwrap()];
        assert_eq!(account.take(), None, "the limit");
        account.release(&first);
        assert_eq!(budget.held(), 2 * 184);
        assert_eq!(account.stack(&[OuterHeader::new(HeaderKind::Mpls, 1); 16]), None, "the budget");
        account.release(&others[0]);
        drop(account);
        assert_eq!(budget.held(), 0);
    }
}
