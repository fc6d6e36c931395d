//! The streams that are open.

use std::collections::VecDeque;

use super::STREAM_COUNT_MAX;

/// Progress of a direction of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was received.
    #[default]
    Idle,
    /// A head or a part of the body was received.
    Open,
    /// The direction ended.
    Closed,
}

/// A direction of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Half {
    pub(super) body_len: u64,
    pub(super) missing_len: u64,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    /// The client's and the server's.
    pub(super) halves: [Half; 2],
}

/// Streams by number, the lowest first, which usually is the oldest.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: VecDeque<Stream>,
}

impl Streams {
    /// Returns a stream by its number, and opens it if it does not exist.
    pub(super) fn of(&mut self, id: u32) -> &mut Stream {
        let place = self.find(id).unwrap_or_else(|mut place| {
            if self.open.len() == STREAM_COUNT_MAX {
                self.open.pop_front();
                place = place.saturating_sub(1);
            }
            self.open.insert(place, Stream { id, halves: Default::default() });
            place
        });
        #[allow(clippy::indexing_slicing, reason = "found, or inserted")]
        &mut self.open[place]
    }

    pub(super) fn close(&mut self, id: u32) {
        if let Ok(place) = self.find(id) {
            self.open.remove(place);
        }
    }

    /// Returns the index of a stream, or the one at which to insert it.
    fn find(&self, id: u32) -> Result<usize, usize> {
        // The newest streams are accessed most often.
        match self.open.back() {
            Some(newest) if newest.id == id => Ok(self.open.len() - 1),
            Some(newest) if newest.id > id => self.open.binary_search_by_key(&id, |stream| stream.id),
            _ => Err(self.open.len()),
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    pub(super) fn heap_len(&self) -> usize {
        self.open.capacity() * size_of::<Stream>()
    }
}
