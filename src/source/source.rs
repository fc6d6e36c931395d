//! The trait of all sources of frames.

use super::error::Error;
use super::interface::Interface;
use super::stats::SourceStats;
use super::warning::Warning;
use crate::base::{FrameBatch, StopHandle, Timestamp};

/// Result of [`Source::next_batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// The batch contains frames.
    Frames,
    /// A live source has no frames at present. The value is the current time of the source's clock.
    Idle(Timestamp),
    /// The source has no more frames, for the given reason. The batch is empty.
    End(End),
}

impl Next {
    /// Returns whether the source has no more frames, for any reason.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::End(_))
    }
}

/// Reason for which a source has no more frames.
///
/// A caller that remembers what was read, such as the files that need not be read again, relies on [`End::Complete`]
/// only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// The input was read to its end, or to the position at which it is damaged; errors that the source returned before
    /// state what else is missing.
    Complete,
    /// The source was stopped, for example by its [`StopHandle`](crate::base::StopHandle): there may be frames that were
    /// not read.
    Stopped,
}

impl End {
    /// Returns the reason for the end of an input whose last read returned nothing. A stop that arrives after the true end
    /// of the input, but before this call, counts as the reason, because a read does not tell them apart.
    pub(super) fn of(stop: &StopHandle) -> Self {
        if stop.is_stopped() { Self::Stopped } else { Self::Complete }
    }
}

/// Source of frames, delivered in batches.
///
/// Object-safe and `Send`, so that a `Box<dyn Source>` can be read on another thread.
pub trait Source: Send {
    /// Clears the batch and fills it with the next frames.
    ///
    /// A live source returns [`Next::Idle`] within about 100 ms if there are no frames, so that the caller
    /// can process timeouts and check whether it should stop. A pipe or a socket, which has no clock, returns
    /// [`Next::Frames`] with an empty batch instead. Takes time linear in the number of octets read, and
    /// allocates nothing per frame once the batch has grown to its size.
    ///
    /// # Errors
    ///
    /// Returns an [`Error`] if the operating system returns an error for a read. A capture that is truncated
    /// or damaged is not an error: it ends early, and [`warnings`](Self::warnings) reports the position.
    /// Frames that were read before the error are in the batch, and [`Files`](super::Files) continues with the other files
    /// at the next call.
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error>;

    /// Returns the positions of damaged input so far: at most a few per file, because reading a file ends at
    /// its first damage. None by default.
    fn warnings(&self) -> &[Warning] {
        &[]
    }

    /// Returns the counts of frames, blocks and errors so far. All zero by default.
    fn stats(&self) -> SourceStats {
        SourceStats::default()
    }

    /// Returns the interfaces that the input has described so far;
    /// [`Frame::interface`](crate::base::Frame::interface) is an index into this slice. The slice grows while
    /// the input is read, because a pcapng file may describe another interface at any position. None by default.
    fn interfaces(&self) -> &[Interface] {
        &[]
    }

    /// Returns the number of octets of the input that were read; for a compressed file, the number of
    /// compressed octets. 0 by default.
    fn progress(&self) -> u64 {
        0
    }

    /// Returns the value of [`progress`](Self::progress) at the end of the input, if it is known: the length
    /// of all files, in octets.
    fn total_len(&self) -> Option<u64> {
        None
    }
}

/// Implements the methods of [`Source`] besides [`next_batch`](Source::next_batch) by forwarding them to a field, for a source
/// that changes or observes the frames of another one.
///
/// ```
/// use flowgauge::base::FrameBatch;
/// use flowgauge::source::{Error, Next, Source};
///
/// /// Counts the frames of a source.
/// struct Counted<S> {
///     source: S,
///     frame_count: usize,
/// }
///
/// impl<S: Source> Source for Counted<S> {
///     fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
///         let next = self.source.next_batch(batch);
///         self.frame_count += batch.len();
///         next
///     }
///
///     flowgauge::forward_source!(source);
/// }
/// ```
#[macro_export]
macro_rules! forward_source {
    ($field:ident) => {
        fn warnings(&self) -> &[$crate::source::Warning] {
            self.$field.warnings()
        }

        fn stats(&self) -> $crate::source::SourceStats {
            self.$field.stats()
        }

        fn interfaces(&self) -> &[$crate::source::Interface] {
            self.$field.interfaces()
        }

        fn progress(&self) -> u64 {
            self.$field.progress()
        }

        fn total_len(&self) -> Option<u64> {
            self.$field.total_len()
        }
    };
}

pub(super) use forward_source;

/// Implements [`Source`] for a pointer to a source, by forwarding all methods to that source.
macro_rules! forward {
    ($pointer:ty) => {
        impl<S: Source + ?Sized> Source for $pointer {
            fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
                (**self).next_batch(batch)
            }

            fn warnings(&self) -> &[Warning] {
                (**self).warnings()
            }

            fn stats(&self) -> SourceStats {
                (**self).stats()
            }

            fn interfaces(&self) -> &[Interface] {
                (**self).interfaces()
            }

            fn progress(&self) -> u64 {
                (**self).progress()
            }

            fn total_len(&self) -> Option<u64> {
                (**self).total_len()
            }
        }
    };
}

forward!(&mut S);
forward!(Box<S>);
