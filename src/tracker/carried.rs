//! What a tracker records of tunnels: the outer headers of flows, and the flows that carry others.

use super::tracker::Tracker;
use crate::base::{EncapsulationHeader, FlowKey, OuterFlow, Side};
use crate::record::EncapsulationRecord;

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
        key: &FlowKey,
        side: Side,
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
