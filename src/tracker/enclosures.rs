//! What encloses flows, and what they carry: kept only of flows in tunnels, and only if it is asked for.

use super::Tracker;
use crate::base::{Account, Budget, EncapsulationStack, EnclosingHeader, FlowKey, Side};
use crate::record::{Carried, Enclosure, OuterFlow, SideEnclosure};

/// The account of all enclosures.
#[derive(Debug)]
pub(super) struct Enclosures {
    live_count: u32,
    max: u32,
    held_bytes: u64,
    budget: Budget,
}

impl Enclosures {
    const BYTES: u64 = size_of::<Enclosure>() as u64;

    pub(super) const fn new(max: u32, budget: Budget) -> Self {
        Self { live_count: 0, max, held_bytes: 0, budget }
    }

    fn charge(&mut self, bytes: u64) -> bool {
        let is_charged = self.budget.charge(Account::Flows, bytes);
        self.held_bytes += if is_charged { bytes } else { 0 };
        is_charged
    }

    /// A new one, if there is room for it.
    pub(super) fn take(&mut self) -> Option<Box<Enclosure>> {
        if self.live_count >= self.max || !self.charge(Self::BYTES) {
            return None;
        }
        self.live_count += 1;
        Some(Box::default())
    }

    /// A copy of a stack, if there is room for it.
    fn stack(&mut self, headers: &[EnclosingHeader]) -> Option<EncapsulationStack> {
        let bytes = EncapsulationStack::allocated_len(headers.len()) as u64;
        self.charge(bytes).then(|| EncapsulationStack::new(headers))
    }

    /// Takes one out of the account. Stacks that live on in records are their owner's.
    pub(super) fn release(&mut self, enclosure: &Enclosure) {
        let stack_len = |side: &SideEnclosure| EncapsulationStack::allocated_len(side.stack.headers().len());
        let stacks_len = stack_len(&enclosure.forward) + stack_len(&enclosure.reverse);
        let bytes = Self::BYTES + stacks_len as u64;
        self.live_count -= 1;
        self.held_bytes -= bytes;
        self.budget.release(Account::Flows, bytes);
    }
}

impl Drop for Enclosures {
    fn drop(&mut self) {
        self.budget.release(Account::Flows, self.held_bytes);
    }
}

impl<S> Tracker<S> {
    /// The slot of a flow that was just used.
    fn slot_of(&self, key: &FlowKey) -> Option<u32> {
        let guess = self.table.guess(key).filter(|slot| self.table.hot(*slot).key == *key);
        guess.or_else(|| self.table.find(self.table.hash(key), key))
    }

    /// Notes what enclosed packets that were just tracked: the headers, and the flow that carried them.
    pub(crate) fn note_enclosed(
        &mut self,
        (key, side): (&FlowKey, Side),
        packet_count: u32,
        headers: &[EnclosingHeader],
        outer: Option<OuterFlow>,
    ) {
        let is_nothing = headers.is_empty() && outer.is_none();
        let Some(slot) = self.slot_of(key).filter(|_| !is_nothing) else { return };
        let (hot, _, extras) = self.table.parts(slot);
        let Some((enclosure, account)) = extras.enclosure_of(hot) else {
            self.stats.enclosure_refused_count += u64::from(packet_count);
            return;
        };
        let [own, peer] = match side {
            Side::A => [&mut enclosure.forward, &mut enclosure.reverse],
            Side::B => [&mut enclosure.reverse, &mut enclosure.forward],
        };
        if !own.stack.is_empty() || own.outer.is_some() {
            let is_same = own.stack.headers() == headers && own.outer == outer;
            own.changed_count = own.changed_count.saturating_add(if is_same { 0 } else { packet_count });
            return;
        }
        let Some(stack) = account.stack(headers) else {
            self.stats.enclosure_refused_count += u64::from(packet_count);
            return;
        };
        own.stack = stack;
        own.outer = outer;
        let is_counted = peer.outer.map(|outer| outer.key) == outer.map(|outer| outer.key);
        if let Some(outer) = outer.filter(|_| !is_counted) {
            self.change_carried(&outer.key, |carried| carried.inner_flow_count += 1);
        }
    }

    /// Counts packets of a flow that carried another packet, or parts of one.
    pub(crate) fn note_carried(&mut self, key: &FlowKey, packet_count: u64, octet_count: u64) {
        self.change_carried(key, |carried| {
            carried.packet_count += packet_count;
            carried.octet_count += octet_count;
        });
    }

    fn change_carried(&mut self, key: &FlowKey, change: impl FnOnce(&mut Carried)) {
        let Some(slot) = self.slot_of(key) else { return };
        let (hot, _, extras) = self.table.parts(slot);
        match extras.enclosure_of(hot) {
            Some((enclosure, _)) => change(&mut enclosure.carried),
            None => self.stats.enclosure_refused_count += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::HeaderKind;

    #[test]
    fn the_layout_is_the_one_that_the_limits_state() {
        assert_eq!(Enclosures::BYTES, 184);
        assert_eq!(EncapsulationStack::allocated_len(0), 0);
        assert_eq!(EncapsulationStack::allocated_len(3), 16 + 3 * 40);
    }

    #[test]
    fn all_of_it_is_charged_and_given_back() {
        let budget = Budget::new(1000);
        let mut account = Enclosures::new(3, budget.clone());
        let mut first = account.take().unwrap();
        first.reverse.stack = account.stack(&[EnclosingHeader::new(HeaderKind::Vxlan, 42); 2]).unwrap();
        assert_eq!(budget.held(), 184 + 16 + 80);
        let others = [account.take().unwrap(), account.take().unwrap()];
        assert_eq!(account.take(), None, "the cap");
        account.release(&first);
        assert_eq!(budget.held(), 2 * 184);
        assert_eq!(account.stack(&[EnclosingHeader::new(HeaderKind::Mpls, 1); 16]), None, "the budget");
        account.release(&others[0]);
        drop(account);
        assert_eq!(budget.held(), 0);
    }
}
