//! List of the sessions that hold memory, in the order of their latest charge.

use crate::tracker::FlowId;

/// Index of an entry in the list of charged sessions; [`Charged::NONE`] for a session that is not listed.
pub(super) type Node = u32;

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: FlowId,
    previous: Node,
    next: Node,
}

/// Linked list of the sessions that hold memory, oldest charge first, identified by their flows. All operations take
/// constant time.
#[derive(Debug)]
pub(super) struct Charged {
    entries: Vec<Entry>,
    /// Index of the first free entry; further free entries are linked by `next`.
    free: Node,
    oldest: Node,
    latest: Node,
}

impl Default for Charged {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Self::NONE, oldest: Self::NONE, latest: Self::NONE }
    }
}

impl Charged {
    pub(super) const NONE: Node = Node::MAX;

    /// Size in bytes of an entry of the list.
    pub(super) const ENTRY_LEN: usize = size_of::<Entry>();

    /// Appends the session of a flow to the list, as the one that was charged last. Returns its index.
    pub(super) fn insert(&mut self, id: FlowId) -> Node {
        let entry = Entry { id, previous: Self::NONE, next: Self::NONE };
        let node = match self.entries.get_mut(self.free as usize) {
            Some(free) => {
                let node = self.free;
                self.free = free.next;
                *free = entry;
                node
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as Node
            }
        };
        self.append(node);
        node
    }

    /// Moves a listed session to the end of the list, because it was charged.
    pub(super) fn touch(&mut self, node: Node) {
        if node != self.latest {
            self.unlink(node);
            self.append(node);
        }
    }

    /// Removes a session from the list of charged sessions.
    pub(super) fn remove(&mut self, node: Node) {
        self.unlink(node);
        if let Some(entry) = self.entries.get_mut(node as usize) {
            entry.next = self.free;
            self.free = node;
        }
    }

    /// Returns the session that was charged longest ago: its index in the list, and its flow.
    pub(super) fn oldest(&self) -> Option<(Node, FlowId)> {
        self.entries.get(self.oldest as usize).map(|entry| (self.oldest, entry.id))
    }

    /// Panics unless the `previous` and `next` links of the list agree. Returns the number of sessions in the list.
    /// Takes linear time.
    pub(super) fn check_invariants(&self) -> usize {
        let (mut count, mut previous, mut node) = (0, Self::NONE, self.oldest);
        while let Some(entry) = self.entries.get(node as usize) {
            assert_eq!(entry.previous, previous, "the list of charged sessions is linked in both directions");
            (count, previous, node) = (count + 1, node, entry.next);
            assert!(count <= self.entries.len(), "the list of charged sessions ends");
        }
        assert_eq!(self.latest, previous, "the list ends with the latest charge");
        count
    }

    fn append(&mut self, node: Node) {
        let latest = std::mem::replace(&mut self.latest, node);
        match self.entries.get_mut(latest as usize) {
            Some(entry) => entry.next = node,
            None => self.oldest = node,
        }
        if let Some(entry) = self.entries.get_mut(node as usize) {
            (entry.previous, entry.next) = (latest, Self::NONE);
        }
    }

    fn unlink(&mut self, node: Node) {
        let Some(&Entry { previous, next, .. }) = self.entries.get(node as usize) else { return };
        match self.entries.get_mut(previous as usize) {
            Some(entry) => entry.next = next,
            None => self.oldest = next,
        }
        match self.entries.get_mut(next as usize) {
            Some(entry) => entry.previous = previous,
            None => self.latest = previous,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> FlowId {
        FlowId { slot: number, generation: 0 }
    }

    /// Compares the list of charged sessions with a vector that is changed in the same way.
    #[test]
    fn entries_are_ordered_by_their_last_charge() {
        let (mut charged, mut model) = (Charged::default(), Vec::<(u32, Node)>::new());
        let mut state = 7_u64;
        for number in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let position = (state >> 33) as usize % (model.len() + 3);
            match (position < model.len(), state >> 63) {
                (true, 0) => {
                    let (id, node) = model.remove(position);
                    charged.touch(node);
                    model.push((id, node));
                }
                (true, _) => charged.remove(model.remove(position).1),
                (false, _) => model.push((number, charged.insert(id(number)))),
            }
            assert_eq!(charged.oldest(), model.first().map(|(number, node)| (*node, id(*number))));
        }
        assert_eq!(charged.check_invariants(), model.len());
        assert!(charged.entries.len() < 2000, "nodes are reused");
    }
}
