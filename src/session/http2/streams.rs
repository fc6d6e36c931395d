//! The streams that are open.

use super::STREAM_COUNT_MAX;

/// How far a direction of a stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was heard.
    #[default]
    Idle,
    /// A head was heard, or a part of the body.
    Open,
    /// It is over.
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
    /// The client's, the server's.
    pub(super) halves: [Half; 2],
}

/// Streams in the order in which they were heard of.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: Vec<Stream>,
}

impl Streams {
    /// A stream by its number, which is opened if it is not there.
    pub(super) fn of(&mut self, id: u32) -> &mut Stream {
        // The newest are asked for most.
        let place = match self.open.iter().rposition(|stream| stream.id == id) {
            Some(place) => place,
            None => {
                if self.open.len() == STREAM_COUNT_MAX {
                    self.open.remove(0);
                }
                self.open.push(Stream { id, halves: Default::default() });
                self.open.len() - 1
            }
        };
        #[allow(clippy::indexing_slicing, reason = "found, or pushed")]
        &mut self.open[place]
    }

    pub(super) fn close(&mut self, id: u32) {
        if let Some(place) = self.open.iter().rposition(|stream| stream.id == id) {
            self.open.remove(place);
        }
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    pub(super) fn heap_len(&self) -> usize {
        self.open.capacity() * size_of::<Stream>()
    }
}
