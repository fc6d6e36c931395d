//! Table of the open streams of an HTTP/2 connection.

use std::collections::VecDeque;

use super::STREAM_COUNT_MAX;

/// Progress of one direction of an HTTP/2 stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing of this direction was received.
    #[default]
    Idle,
    /// A head or a part of the body was received in this direction.
    Open,
    /// The direction of the stream has ended.
    Closed,
}

/// State of one direction of an HTTP/2 stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Half {
    pub(super) body_len: u64,
    pub(super) missing_len: u64,
    pub(super) phase: Phase,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    /// States of the two directions: from the client, then from the server.
    pub(super) halves: [Half; 2],
}

/// Open streams sorted by identifier, the lowest first, which usually is the oldest.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: VecDeque<Stream>,
}

impl Streams {
    /// Returns the stream with an identifier, and adds it to the table if it does not exist. The stream with the lowest
    /// identifier is evicted if the table is full.
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

    /// Returns the index of the stream with an identifier, or as an error the index at which to insert it.
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
