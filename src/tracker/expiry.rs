//! The end of flows: by timeout, by eviction, or at the end of the input.

use std::iter;

use super::class::{CLASSES, Class, UserClass, is_handshake};
use super::flow::{FlowBits, NOT_STARTED};
use super::observer::Observer;
use super::recency::List;
use super::tracker::Tracker;
use super::view::FlowView;
use crate::base::{EndReason, IpProtocol, TcpState, Timestamp};

impl<S> Tracker<S> {
    /// Returns whether the flow in a slot has been idle for its timeout.
    pub(super) fn is_due(&mut self, slot: u32) -> bool {
        let list = self.table.hot(slot).list;
        let timeout_ns = self.lists.of(list).timeout_ns;
        timeout_ns != u64::MAX && self.now_ns - self.refreshed_ns(slot) >= timeout_ns
    }

    /// Returns the time in nanoseconds at which the flow in a slot reaches its idle timeout.
    fn due_ns(&mut self, slot: u32) -> u64 {
        let list = self.table.hot(slot).list;
        let timeout_ns = self.lists.of(list).timeout_ns;
        self.refreshed_ns(slot).saturating_add(timeout_ns)
    }

    /// Returns the time in nanoseconds from which the idle timeout of the flow in a slot is counted: its last packet,
    /// or during a handshake its last SYN.
    fn refreshed_ns(&self, slot: u32) -> u64 {
        let hot = self.table.hot(slot);
        let is_waiting = is_handshake(hot.list) && hot.state <= TcpState::SynReceived;
        if is_waiting { self.table.cold().at(slot).timing.syn_ns().min(self.now_ns) } else { hot.last_ns }
    }

    /// Returns the end reason of the flow in a slot, after the flow has been idle for its timeout.
    pub(super) fn idle_reason(&self, slot: u32) -> EndReason {
        if self.is_closed(slot) { EndReason::EndOfFlow } else { EndReason::IdleTimeout }
    }

    /// Returns whether the protocol ended the flow in a slot. A later out-of-window reset does not change the result.
    fn is_closed(&self, slot: u32) -> bool {
        self.table.hot(slot).state.is_closed()
    }

    /// Adds the flow in a slot, which is in no list, to the recency list `list_number` as the most recent flow.
    /// Schedules a sweep for the flow's idle timeout.
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

    /// Schedules the next sweep of due flows no later than `due_ns`.
    pub(super) fn sweep_by(&mut self, due_ns: u64) {
        self.next_sweep_ns = self.next_sweep_ns.min(due_ns);
        self.wake_ns = self.wake_ns.min(due_ns);
    }

    /// Processes the deadlines of the observer no later than at `due_ns`.
    pub(crate) fn wake_by(&mut self, due_ns: u64) {
        self.wake_ns = self.wake_ns.min(due_ns);
    }

    pub(super) fn delist(&mut self, slot: u32) {
        let list = self.table.hot(slot).list;
        self.lists.of(list).remove(self.table.cold_mut(), slot);
    }

    /// Returns the slot of the flow in a recency list that is due first (exact up to one epoch), and the time in
    /// nanoseconds when it is due.
    fn oldest_due(&self, list: &List) -> Option<(u32, u64)> {
        let slot = list.oldest()?;
        Some((slot, self.refreshed_ns(slot).saturating_add(list.timeout_ns)))
    }

    /// Returns the slot of the flow with the oldest current record, and the time in nanoseconds of the flow's active
    /// timeout.
    fn active_due(&self) -> Option<(u32, u64)> {
        let slot = self.active.list.oldest()?;
        Some((slot, self.active.began_ns(slot)?.saturating_add(self.active_ns)))
    }

    /// Returns the time of the next timeout, at which [`Tracker::advance`] has work to do. `None` if no open flow can
    /// time out.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let idle = self.lists.0.iter().filter_map(|list| self.oldest_due(list)).map(|(_, due_ns)| due_ns);
        let active = self.active_due().map(|(_, due_ns)| due_ns);
        idle.chain(active).filter(|due_ns| *due_ns != u64::MAX).min().map(Timestamp::from_nanos)
    }
}

/// Maximum number of flows that one packet ends because they are due. If more are due, for example after a jump of the
/// clock, the next packets end them, so that a caller that collects ended flows does not receive all flows at once. The
/// time at which a flow ends is determined by its timeout in any case.
const SWEEP_COUNT_MAX: u32 = 64;

impl<S: Default> Tracker<S> {
    /// Moves the tracker's clock forward to `now`, and ends flows that are due. For live capture, while no packets
    /// arrive. Takes time linear in the number of flows that end.
    pub fn advance<K: Observer<S> + ?Sized>(&mut self, now: Timestamp, observer: &mut K) {
        self.now_ns = self.now_ns.max(now.as_nanos());
        if self.now_ns >= self.wake_ns {
            self.wake(observer);
        }
        // At the end of time, nothing more can become due.
        while self.now_ns >= self.next_sweep_ns && self.next_sweep_ns != u64::MAX {
            self.sweep(observer);
            self.wake_ns = self.wake_ns.min(self.next_sweep_ns);
        }
    }

    /// Processes everything that is due at the current time: first the deadlines of the observer, then flows.
    #[inline(never)]
    pub(super) fn wake<K: Observer<S> + ?Sized>(&mut self, observer: &mut K) {
        let now = self.now();
        while let Some(id) = observer.next_due(now) {
            if let Some(slot) = self.table.resolve(id) {
                let mut flow = self.table.flow(slot);
                observer.due(&mut flow, now);
                let changes = flow.changes();
                if changes.is_some() {
                    self.apply(slot, changes, observer.interest(), observer);
                }
            }
        }
        if self.now_ns >= self.next_sweep_ns {
            self.sweep(observer);
        }
        self.wake_ns = self.next_sweep_ns.min(observer.next_due_ns());
    }

    /// Ends flows that are due, oldest first in each recency list, at most [`SWEEP_COUNT_MAX`] of them, and schedules
    /// the next sweep: immediately if more may be due.
    #[inline(never)]
    pub(super) fn sweep<K: Observer<S> + ?Sized>(&mut self, observer: &mut K) {
        let mut left = SWEEP_COUNT_MAX;
        while let Some((slot, due_ns)) = self.active_due()
            && due_ns <= self.now_ns
            && due_ns != u64::MAX
        {
            if left == 0 {
                self.next_sweep_ns = self.now_ns;
                return;
            }
            left -= 1;
            self.active_timeout_if_due(slot, observer);
        }
        let mut next_ns = self.active_due().map_or(u64::MAX, |(_, due_ns)| due_ns);
        let mut next_list = 0;
        while let Some(list) = self.lists.next_nonempty(next_list) {
            next_list = list + 1;
            while let Some((slot, due_ns)) = self.oldest_due(&self.lists.0[list])
                && due_ns != u64::MAX
            {
                if due_ns > self.now_ns {
                    next_ns = next_ns.min(due_ns);
                    break;
                }
                if left == 0 {
                    self.next_sweep_ns = self.now_ns;
                    return;
                }
                left -= 1;
                let reason = self.idle_reason(slot);
                self.end(slot, reason, observer);
            }
        }
        self.next_sweep_ns = next_ns;
    }

    /// Ends flows that are due when a new flow needs memory, before any other flow is evicted. Returns whether any flow
    /// ended.
    pub(super) fn sweep_overdue<K: Observer<S> + ?Sized>(&mut self, observer: &mut K) -> bool {
        let open_count = self.table.live_count();
        if self.now_ns >= self.next_sweep_ns {
            self.sweep(observer);
        }
        self.table.live_count() < open_count
    }

    /// Delivers the record of the active timeout of the flow in a slot, if it passed before the idle timeout.
    pub(super) fn active_timeout_if_due<K: Observer<S> + ?Sized>(&mut self, slot: u32, observer: &mut K) {
        let Some(began_ns) = self.active.began_ns(slot) else { return };
        let due_ns = began_ns.saturating_add(self.active_ns);
        let list = self.table.hot(slot).list;
        let idle_due_ns = self.refreshed_ns(slot).saturating_add(self.lists.of(list).timeout_ns);
        if due_ns > self.now_ns || due_ns == u64::MAX {
            return;
        }
        self.active.remove(slot);
        if idle_due_ns < due_ns {
            // Its idle timeout passed first: the sweep of its list delivers that end.
            return;
        }
        self.deliver_record(slot, EndReason::ActiveTimeout, observer);
        self.stats.active_timeout_count += 1;
    }

    /// Delivers the record of a connection that just closed, if no record has to wait for late segments.
    #[inline(never)]
    pub(super) fn record_close<K: Observer<S> + ?Sized>(&mut self, slot: u32, observer: &mut K) {
        self.active.remove(slot);
        self.deliver_record(slot, EndReason::EndOfFlow, observer);
        self.stats.close_record_count += 1;
    }

    /// Delivers a record of the flow in a slot, and resets the delta counters for the flow's next record.
    fn deliver_record<K: Observer<S> + ?Sized>(&mut self, slot: u32, reason: EndReason, observer: &mut K) {
        let mut flow = self.table.flow(slot);
        observer.record(&mut flow, reason);
        if flow.is_muted() {
            self.table.hot_mut(slot).bits.set(FlowBits::MUTED, true);
        }
        let (hot, cold, extras) = self.table.parts(slot);
        hot.sides.iter_mut().for_each(super::flow::SideState::restart_counters);
        if let Some(extra) = extras.get_mut(hot) {
            extra.restart_counters();
        }
        cold.start_ns = NOT_STARTED;
        cold.sequence_number = cold.sequence_number.wrapping_add(1);
    }

    /// Evicts the least recently used flow of the first nonempty group. The groups, in order: incomplete TCP
    /// handshakes (by their last SYN), flows without a reply, closed TCP flows that are kept for late segments, all
    /// others.
    #[inline(never)]
    pub(super) fn evict<K: Observer<S> + ?Sized>(&mut self, observer: &mut K) {
        if let Some(slot) = self.least_recent(iter::once(Class::HalfOpen.list(false))) {
            self.stats.evicted_half_open_count += 1;
            return self.end(slot, EndReason::LackOfResources, observer);
        }
        if let Some(slot) = self.least_recent(open_classes().map(|class| class.list(false))) {
            self.stats.evicted_unanswered_count += 1;
            return self.end(slot, EndReason::LackOfResources, observer);
        }
        if let Some(slot) = self.least_recent(both(Class::Closing).into_iter()) {
            self.stats.evicted_closed_count += 1;
            return self.end(slot, EndReason::LackOfResources, observer);
        }
        if let Some(slot) = self.least_recent(open_classes().map(|class| class.list(true))) {
            self.stats.evicted_answered_count += 1;
            self.end(slot, EndReason::LackOfResources, observer);
        }
    }

    /// [Evicts](Self::evict) a flow because its caller needs memory. Returns false if no flow is open.
    pub(crate) fn evict_for_memory<K: Observer<S> + ?Sized>(&mut self, observer: &mut K) -> bool {
        let is_open = !self.is_empty();
        if is_open {
            self.stats.evicted_by_budget_count += 1;
            self.evict(observer);
        }
        is_open
    }

    /// Returns the slot of the least recently used flow among the oldest entries of the given recency lists.
    fn least_recent(&self, lists: impl Iterator<Item = u8>) -> Option<u32> {
        lists
            .filter_map(|list| self.lists.0[usize::from(list)].oldest())
            .min_by_key(|slot| self.table.hot(*slot).last_ns)
    }

    /// Ends the flow in a slot: removes it from the table and returns its state to the caller.
    #[inline(never)]
    pub(super) fn end<K: Observer<S> + ?Sized>(&mut self, slot: u32, reason: EndReason, observer: &mut K) {
        self.stats.count_end(reason);
        let clock_ns = self.now_ns.min(self.due_ns(slot));
        let hot = self.table.hot(slot);
        let is_idle = reason == EndReason::IdleTimeout && hot.protocol() == IpProtocol::TCP;
        if is_idle && hot.bits.is_proven() {
            let view = self.table.view(slot);
            self.proven.note(view.key(), view.initiator(), view.direction_evidence());
        }
        let mut flow = self.table.flow(slot);
        flow.view.clock_ns = clock_ns;
        observer.ending(&mut flow);
        let changes = flow.changes();
        if changes.has_turned() {
            self.apply(slot, changes, observer.interest(), observer);
        }
        self.delist(slot);
        self.active.remove(slot);
        let state = self.table.take_state(slot);
        observer.ended(&FlowView { clock_ns, ..self.table.view(slot) }, reason, state);
        self.table.remove(slot);
    }

    /// Ends all flows: first those that are due by their timeout, then the others in the order in which they began
    /// (then by key). Closed flows end with [`EndReason::EndOfFlow`], other open ones with [`EndReason::ForcedEnd`].
    /// The tracker can be used again.
    pub fn finish<K: Observer<S> + ?Sized>(&mut self, observer: &mut K) {
        self.advance(self.now(), observer);
        for slot in self.slots_in_order() {
            self.finish_one(slot, observer);
        }
    }

    /// Returns the slots of all open flows in the order in which [`finish`](Self::finish) ends them.
    pub(crate) fn slots_in_order(&self) -> Vec<u32> {
        let mut slots = Vec::with_capacity(self.len());
        slots.extend(self.table.slots());
        // The slots are nearly in this order already, which the sort exploits; exceptions are late packets and reused
        // slots.
        slots.sort_unstable_by_key(|slot| (self.table.cold().at(*slot).start_ns, self.table.hot(*slot).key));
        slots
    }

    /// Ends the flow in a slot at the end of the input.
    pub(crate) fn finish_one<K: Observer<S> + ?Sized>(&mut self, slot: u32, observer: &mut K) {
        self.active_timeout_if_due(slot, observer);
        let is_over = self.is_due(slot) || self.is_closed(slot);
        let reason = if is_over { self.idle_reason(slot) } else { EndReason::ForcedEnd };
        self.end(slot, reason, observer);
    }
}

/// Returns the numbers of both recency lists of a timeout class: flows without a reply, and with one.
fn both(class: Class) -> [u8; 2] {
    [class.list(false), class.list(true)]
}

/// Returns the timeout classes of flows that are neither in a handshake nor closed.
fn open_classes() -> impl Iterator<Item = Class> {
    let user = (0..(CLASSES - Class::BUILT_IN.len()) as u8).map(|number| Class::User(UserClass(number)));
    [Class::Established, Class::Udp, Class::Icmp, Class::Other].into_iter().chain(user)
}
