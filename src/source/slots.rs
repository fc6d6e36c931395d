//! Slots of a listener for simultaneous connections.

use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Time without a complete frame or message after which a connection loses its slot to a new one.
const REPLACEABLE_AFTER: Duration = Duration::from_secs(10);

/// Number of slots that one address may use in any case.
const OF_ADDRESS_MIN: usize = 4;

/// Slots of a listener for simultaneous connections, so that connections that send nothing do not prevent others.
///
/// A connection is active when a complete frame or message arrived; single octets do not count. If all slots are in
/// use, or half of them and at least four by one address, a new connection takes the slot of the one that has been
/// inactive for the longest time, at least ten seconds; among those of its own address in the second case. If there is
/// none, the new connection is refused. The caller closes the connection that lost its slot, and passes all times. Linear in the
/// number of slots.
#[derive(Debug)]
pub struct Slots {
    slots: Vec<Slot>,
    count_max: usize,
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    id: SlotId,
    address: IpAddr,
    active_at: Instant,
}

/// Identity of a slot, which is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(u64);

/// Slot of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Slot of the connection.
    pub slot: SlotId,
    /// Slot that another connection lost; it is to be closed.
    pub replaced: Option<SlotId>,
}

impl Slots {
    /// Creates slots for at most `count_max` connections, at least one.
    #[must_use]
    pub fn new(count_max: usize) -> Self {
        Self { slots: Vec::new(), count_max: count_max.max(1), next: 0 }
    }

    /// Returns a slot for a new connection; `None` if it is refused.
    pub fn admit(&mut self, address: IpAddr, now: Instant) -> Option<Admission> {
        let of_address = self.slots.iter().filter(|slot| slot.address == address).count();
        let replaced = if of_address >= (self.count_max / 2).max(OF_ADDRESS_MIN) {
            Some(self.release_inactive(Some(address), now)?)
        } else if self.slots.len() >= self.count_max {
            Some(self.release_inactive(None, now)?)
        } else {
            None
        };
        let slot = SlotId(self.next);
        self.next += 1;
        self.slots.push(Slot { id: slot, address, active_at: now });
        Some(Admission { slot, replaced })
    }

    /// Releases the slot of the connection that has been inactive for the longest time, at least ten seconds; only of
    /// one address if there is one. The connection is to be closed.
    pub fn release_inactive(&mut self, address: Option<IpAddr>, now: Instant) -> Option<SlotId> {
        let is_candidate = |slot: &&Slot| {
            address.is_none_or(|address| slot.address == address)
                && now.saturating_duration_since(slot.active_at) >= REPLACEABLE_AFTER
        };
        let slot = *self.slots.iter().filter(is_candidate).min_by_key(|slot| slot.active_at)?;
        self.release(slot.id);
        Some(slot.id)
    }

    /// Records that a complete frame or message arrived on the connection of a slot.
    pub fn note_activity(&mut self, id: SlotId, now: Instant) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.id == id) {
            slot.active_at = now;
        }
    }

    /// Releases the slot of a connection that was closed.
    pub fn release(&mut self, id: SlotId) {
        self.slots.retain(|slot| slot.id != id);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const A: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

    /// Returns slots and the slots of the given addresses, all admitted at the start.
    fn slots(count_max: usize, addresses: &[IpAddr], start: Instant) -> (Slots, Vec<SlotId>) {
        let mut slots = Slots::new(count_max);
        let admitted = addresses.iter().map(|address| slots.admit(*address, start).expect("a slot").slot);
        let admitted = admitted.collect();
        (slots, admitted)
    }

    #[test]
    fn an_inactive_connection_loses_its_slot_if_all_are_in_use() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let (mut slots, admitted) = slots(3, &[A, A, B], start);
        assert_eq!(slots.admit(B, at(9)), None);
        slots.note_activity(admitted[0], at(1));
        slots.note_activity(admitted[1], at(2));
        assert_eq!(slots.admit(B, at(10)).unwrap().replaced, Some(admitted[2]));
        assert_eq!(slots.admit(B, at(11)).unwrap().replaced, Some(admitted[0]));
        assert_eq!(slots.admit(B, at(11)), None);
        slots.release(admitted[1]);
        assert_eq!(slots.admit(A, at(11)).unwrap().replaced, None);
        assert_eq!(slots.release_inactive(Some(A), at(20)), None);
        assert!(slots.release_inactive(None, at(20)).is_some());
    }

    #[test]
    fn an_address_replaces_connections_of_its_own() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let (mut slots, admitted) = slots(10, &[B, A, A, A, A, A], start);
        assert_eq!(slots.admit(A, at(9)), None);
        let admission = slots.admit(A, at(10)).unwrap();
        assert_eq!(admission.replaced, Some(admitted[1]));
        assert_eq!(slots.admit(B, at(10)).unwrap().replaced, None);
    }
}
