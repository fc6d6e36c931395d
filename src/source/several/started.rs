//! The files that a merge has started, in the order of their next frames.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::reader::{Key, Reader};
use crate::base::Timestamp;

/// Files that the merge has started. The next file is found in constant time, and changing its next frame takes time
/// logarithmic in their number.
#[derive(Debug, Default)]
pub(super) struct Started {
    /// The files by their order; `None` for those that are not started, are being read, or have ended.
    readers: Vec<Option<Box<Reader>>>,
    /// Time of the next frame and order of each file. A file without a time has an exhausted batch, and precedes all
    /// others.
    queue: BinaryHeap<Reverse<(Option<Timestamp>, usize)>>,
    /// Orders of the files that are open, the one that was read least recently first.
    held: VecDeque<usize>,
}

impl Started {
    /// Returns the number of files.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the key of the next frame, whose time is `None` if the batch of the file is exhausted.
    pub(super) fn first(&self) -> Option<(Option<Timestamp>, usize)> {
        self.queue.peek().map(|Reverse(first)| *first)
    }

    /// Returns the key of the next frame, with the earliest time if the batch of the file is exhausted.
    pub(super) fn first_key(&self) -> Option<Key> {
        self.first().map(|(head, order)| (head.unwrap_or(Timestamp::ZERO), order))
    }

    /// Removes the file with the next frame.
    pub(super) fn pop(&mut self) -> Option<Box<Reader>> {
        let Reverse((_, order)) = self.queue.pop()?;
        self.readers.get_mut(order)?.take()
    }

    /// Adds a file at the position that its next frame determines.
    pub(super) fn push(&mut self, reader: Box<Reader>) {
        let order = reader.order;
        self.queue.push(Reverse((reader.head, order)));
        if order >= self.readers.len() {
            self.readers.resize_with(order + 1, || None);
        }
        if let Some(slot) = self.readers.get_mut(order) {
            *slot = Some(reader);
        }
    }

    /// Notes that a file is open and is the one that was read most recently.
    pub(super) fn hold(&mut self, order: usize) {
        self.held.push_back(order);
    }

    /// Removes a file that is about to be read, or has ended, from those that can be closed.
    pub(super) fn release(&mut self, order: usize) {
        self.held.retain(|held| *held != order);
    }

    /// Closes the files that were read least recently until their next read, so that fewer than `limit` are open.
    /// Returns whether that was possible.
    pub(super) fn close_least_recent(&mut self, limit: usize) -> bool {
        while self.held.len() >= limit {
            let readers = &mut self.readers;
            let closed = self.held.iter().position(|order| {
                readers.get_mut(*order).and_then(Option::as_mut).is_some_and(|reader| reader.source.park())
            });
            let Some(closed) = closed else { return false };
            self.held.remove(closed);
        }
        true
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Reader> {
        self.readers.iter().filter_map(Option::as_deref)
    }
}
