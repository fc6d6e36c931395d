//! How flows end: by timeout, to make room, or with the input.

use super::Tracker;
use super::class::{CLASSES, Class, UserClass, is_handshake};
use super::flow::{FlowBits, NOT_STARTED};
use super::recency::{Linked, Links, List};
use super::sink::{FlowEvent, FlowSink};
use super::slab::{Slab, Vacant};
use super::view::FlowView;
use crate::base::{EndReason, TcpState, Timestamp};

/// Flows in the order in which their records began, for the active timeout. Empty, and without memory, if there is
/// none.
#[derive(Debug)]
pub(super) struct ActiveList {
    entries: Slab<ActiveEntry>,
    list: List,
}

#[derive(Clone, Copy, Debug)]
struct ActiveEntry {
    links: Links,
    is_listed: bool,
    /// When the record began, on the tracker's clock.
    began_ns: u64,
}

impl Vacant for ActiveEntry {
    fn vacant() -> Self {
        Self { links: Links::NONE, is_listed: false, began_ns: 0 }
    }
}

impl Linked for ActiveEntry {
    fn links(&self) -> Links {
        self.links
    }

    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Default for ActiveList {
    fn default() -> Self {
        Self { entries: Slab::new(), list: List::new(u64::MAX) }
    }
}

impl ActiveList {
    /// Bytes for each slot of the flow table.
    pub(super) const ENTRY_LEN: usize = size_of::<ActiveEntry>();

    /// Adds a flow whose record begins now.
    pub(super) fn add(&mut self, slot: u32, now_ns: u64) {
        while self.entries.len() <= slot as usize {
            self.entries.push(ActiveEntry::vacant());
        }
        self.remove(slot);
        self.list.add(&mut self.entries, slot, now_ns);
        let entry = self.entries.at_mut(slot);
        entry.is_listed = true;
        entry.began_ns = now_ns;
    }

    /// When the record of a flow began, if its active timeout is still to come.
    fn began_ns(&self, slot: u32) -> Option<u64> {
        self.entries.get(slot).filter(|entry| entry.is_listed).map(|entry| entry.began_ns)
    }

    fn remove(&mut self, slot: u32) {
        if self.entries.get(slot).is_some_and(|entry| entry.is_listed) {
            self.list.remove(&mut self.entries, slot);
            self.entries.at_mut(slot).is_listed = false;
        }
    }
}

impl<S> Tracker<S> {
    /// Whether a flow has been silent for its timeout.
    pub(super) fn is_due(&mut self, slot: u32) -> bool {
        let list = self.table.hot(slot).list;
        let timeout_ns = self.lists.of(list).timeout_ns;
        timeout_ns != u64::MAX && self.now_ns - self.refreshed_ns(slot) >= timeout_ns
    }

    /// When a flow will have been silent for its timeout.
    fn due_ns(&mut self, slot: u32) -> u64 {
        let list = self.table.hot(slot).list;
        let timeout_ns = self.lists.of(list).timeout_ns;
        self.refreshed_ns(slot).saturating_add(timeout_ns)
    }

    /// From when on a flow's idle timeout runs: its last packet, or for a handshake its last SYN.
    fn refreshed_ns(&self, slot: u32) -> u64 {
        let hot = self.table.hot(slot);
        let is_waiting = is_handshake(hot.list) && hot.state <= TcpState::SynReceived;
        if is_waiting { self.table.cold().at(slot).timing.syn_ns().min(self.now_ns) } else { hot.last_ns }
    }

    /// Why a flow ends that nothing came for.
    pub(super) fn idle_reason(&self, slot: u32) -> EndReason {
        if self.is_closed(slot) { EndReason::EndOfFlow } else { EndReason::IdleTimeout }
    }

    /// Whether the flow's protocol ended it. A reset out of window that follows does not undo that.
    fn is_closed(&self, slot: u32) -> bool {
        self.table.hot(slot).state.is_closed()
    }

    /// Puts a flow to the front of a list and sees to it that its timeout is looked at.
    pub(super) fn enlist(&mut self, slot: u32, list_number: u8) {
        let now_ns = self.now_ns;
        let list = self.lists.of(list_number);
        let epoch = list.add(self.table.cold_mut(), slot, now_ns);
        let due_ns = now_ns.saturating_add(list.timeout_ns);
        let hot = self.table.hot_mut(slot);
        hot.list = list_number;
        hot.epoch = epoch;
        self.sweep_by(due_ns);
    }

    /// Sees to it that a sweep comes by a time.
    pub(super) fn sweep_by(&mut self, due_ns: u64) {
        self.next_sweep_ns = self.next_sweep_ns.min(due_ns);
        self.wake_ns = self.wake_ns.min(due_ns);
    }

    pub(super) fn delist(&mut self, slot: u32) {
        let list = self.table.hot(slot).list;
        self.lists.of(list).remove(self.table.cold_mut(), slot);
    }

    /// The flow of a list that is due first, up to an epoch, and when.
    fn oldest_due(&self, list: &List) -> Option<(u32, u64)> {
        let slot = list.oldest()?;
        Some((slot, self.refreshed_ns(slot).saturating_add(list.timeout_ns)))
    }

    /// When the oldest active record is due.
    fn active_due(&self) -> Option<(u32, u64)> {
        let slot = self.active.list.oldest()?;
        Some((slot, self.active.began_ns(slot)?.saturating_add(self.active_ns)))
    }

    /// The time at which [`Tracker::advance`] has something to do: the next timeout. `None` if no open flow can time
    /// out.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let idle = self.lists.0.iter().filter_map(|list| self.oldest_due(list)).map(|(_, due_ns)| due_ns);
        let active = self.active_due().map(|(_, due_ns)| due_ns);
        idle.chain(active).filter(|due_ns| *due_ns != u64::MAX).min().map(Timestamp::from_nanos)
    }
}

impl<S: Default> Tracker<S> {
    /// Moves the clock to `now`, if it is not there yet, and ends what is due. For live capture, when no packets
    /// come. Costs time linear in the number of flows that end.
    pub fn advance<K: FlowSink<S> + ?Sized>(&mut self, now: Timestamp, sink: &mut K) {
        self.now_ns = self.now_ns.max(now.as_nanos());
        if self.now_ns >= self.wake_ns {
            self.wake(sink);
        }
    }

    /// Ends what is due: the sink's own, then flows.
    #[inline(never)]
    pub(super) fn wake<K: FlowSink<S> + ?Sized>(&mut self, sink: &mut K) {
        let now = self.now();
        while let Some(id) = sink.next_due(now) {
            if let Some(slot) = self.table.resolve(id)
                && let Some(mut flow) = self.table.flow(slot)
            {
                sink.due(&mut flow, now);
                if flow.is_muted() {
                    self.table.hot_mut(slot).bits.set(FlowBits::MUTED, true);
                }
            }
        }
        if self.now_ns >= self.next_sweep_ns {
            self.sweep(sink);
        }
        self.wake_ns = self.next_sweep_ns.min(sink.next_due_ns());
    }

    /// Ends the flows that are due, each list from its oldest, and notes when to look again.
    #[inline(never)]
    pub(super) fn sweep<K: FlowSink<S> + ?Sized>(&mut self, sink: &mut K) {
        while let Some((slot, due_ns)) = self.active_due()
            && due_ns <= self.now_ns
            && due_ns != u64::MAX
        {
            self.active_timeout_if_due(slot, sink);
        }
        let mut next_ns = self.active_due().map_or(u64::MAX, |(_, due_ns)| due_ns);
        for list in 0..self.lists.0.len() {
            while let Some((slot, due_ns)) = self.oldest_due(&self.lists.0[list])
                && due_ns != u64::MAX
            {
                if due_ns > self.now_ns {
                    next_ns = next_ns.min(due_ns);
                    break;
                }
                let reason = self.idle_reason(slot);
                self.end(slot, reason, sink);
            }
        }
        self.next_sweep_ns = next_ns;
    }

    /// Makes a record of a flow that goes on, if its active timeout passed before its idle timeout.
    pub(super) fn active_timeout_if_due<K: FlowSink<S> + ?Sized>(&mut self, slot: u32, sink: &mut K) {
        let Some(began_ns) = self.active.began_ns(slot) else { return };
        let due_ns = began_ns.saturating_add(self.active_ns);
        let list = self.table.hot(slot).list;
        let idle_due_ns = self.refreshed_ns(slot).saturating_add(self.lists.of(list).timeout_ns);
        if due_ns > self.now_ns || due_ns == u64::MAX {
            return;
        }
        self.active.remove(slot);
        if idle_due_ns < due_ns {
            // Its idle timeout came first: that end is delivered by the list that it is in.
            return;
        }
        self.tell(slot, &FlowEvent::ActiveTimeout, sink);
        let (hot, cold, extras) = self.table.parts(slot);
        hot.sides.iter_mut().for_each(super::flow::SideState::restart_counters);
        if let Some(extra) = extras.get_mut(hot) {
            extra.restart_counters();
        }
        cold.start_ns = NOT_STARTED;
        cold.sequence_number = cold.sequence_number.wrapping_add(1);
        self.stats.active_timeout_count += 1;
    }

    /// Makes room: the least recent flow of the first group that has any. First handshakes that are not complete, then
    /// flows that never saw a reply, then closed ones that linger, then the rest.
    #[inline(never)]
    pub(super) fn evict<K: FlowSink<S> + ?Sized>(&mut self, sink: &mut K) {
        let handshakes = [Class::Unanswered, Class::HalfOpen].into_iter().flat_map(both);
        if let Some(slot) = self.least_recent(handshakes) {
            self.stats.evicted_half_open_count += 1;
            return self.end(slot, EndReason::LackOfResources, sink);
        }
        if let Some(slot) = self.least_recent(open_classes().map(|class| class.list(false))) {
            self.stats.evicted_unanswered_count += 1;
            return self.end(slot, EndReason::LackOfResources, sink);
        }
        if let Some(slot) = self.least_recent(both(Class::Closing).into_iter()) {
            self.stats.evicted_closed_count += 1;
            return self.end(slot, EndReason::LackOfResources, sink);
        }
        if let Some(slot) = self.least_recent(open_classes().map(|class| class.list(true))) {
            self.stats.evicted_answered_count += 1;
            self.end(slot, EndReason::LackOfResources, sink);
        }
    }

    /// Of the oldest entries of some lists, the one whose last packet is longest ago.
    fn least_recent(&self, lists: impl Iterator<Item = u8>) -> Option<u32> {
        lists
            .filter_map(|list| self.lists.0[usize::from(list)].oldest())
            .min_by_key(|slot| self.table.hot(*slot).last_ns)
    }

    /// Ends a flow: takes it out and hands its state back.
    #[inline(never)]
    pub(super) fn end<K: FlowSink<S> + ?Sized>(&mut self, slot: u32, reason: EndReason, sink: &mut K) {
        self.stats.count_end(reason);
        let clock_ns = self.now_ns.min(self.due_ns(slot));
        self.delist(slot);
        self.active.remove(slot);
        if let Some(state) = self.table.take_state(slot) {
            sink.ended(&FlowView { clock_ns, ..self.table.view(slot) }, reason, state);
        }
        self.table.remove(slot);
    }

    /// Ends all flows: those that are due by their timeout, then the others, in the order in which they began (then of
    /// their keys), closed ones as such. The tracker can be used again.
    pub fn finish<K: FlowSink<S> + ?Sized>(&mut self, sink: &mut K) {
        self.wake(sink);
        let mut slots: Vec<u32> = self.table.slots().collect();
        // The order of slots is nearly this one already, which sorting notices; it is another where packets came late,
        // and where slots were used again.
        slots.sort_unstable_by_key(|slot| (self.table.cold().at(*slot).start_ns, self.table.hot(*slot).key));
        for slot in slots {
            self.active_timeout_if_due(slot, sink);
            let is_over = self.is_due(slot) || self.is_closed(slot);
            let reason = if is_over { self.idle_reason(slot) } else { EndReason::ForcedEnd };
            self.end(slot, reason, sink);
        }
    }
}

/// Both lists of a class.
fn both(class: Class) -> [u8; 2] {
    [class.list(false), class.list(true)]
}

/// The classes of flows that are neither in a handshake nor closed.
fn open_classes() -> impl Iterator<Item = Class> {
    let user = (0..(CLASSES - Class::BUILT_IN.len()) as u8).map(|number| Class::User(UserClass(number)));
    [Class::Established, Class::Udp, Class::Icmp, Class::Other].into_iter().chain(user)
}
