//! Sources of frames: capture files, plain or compressed, one or several, and live interfaces.
//!
//! A [`Source`] fills a [`FrameBatch`] that the caller owns and recycles. [`FileSource`] reads one capture
//! from a path or any reader, [`Files`] merges several in time order, [`PcapngWriter`] writes frames to a
//! file, and `LiveSource` (feature `live`) captures on an interface.
//!
//! A program that needs frames, but no flows, reads a source directly:
//!
//! ```
//! use flowgauge::base::FrameBatch;
//! use flowgauge::source::{FileSource, Next, Source};
//!
//! let (mut frame_count, mut octet_count) = (0, 0);
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! let mut batch = FrameBatch::new();
//! while source.next_batch(&mut batch)? != Next::End {
//!     frame_count += batch.len();
//!     octet_count += batch.iter().map(|frame| u64::from(frame.wire_len)).sum::<u64>();
//! }
//! assert_eq!((frame_count, octet_count), (1286, 1_318_794));
//! assert!(source.warnings().is_empty());
//! # Ok::<(), flowgauge::source::Error>(())
//! ```
//!
//! Bad input is data: the frames before the position of the damage are delivered, then the source ends and
//! [`Source::warnings`] reports the position. An [`Error`] is returned only for input that is not a capture,
//! and for errors of the operating system.

#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod capture;
mod compressed;
mod config;
mod error;
mod file;
mod head;
mod input;
mod interfaces;
#[cfg(feature = "live")]
mod live;
mod memory;
mod pcap;
mod pcapng;
mod pcapng_writer;
mod several;
mod stats;
mod walk;
mod warning;
#[cfg(feature = "compression")]
mod zstd;

use crate::base::{FrameBatch, LinkType, Timestamp};

pub use config::SourceConfig;
pub use error::Error;
pub use file::FileSource;
#[cfg(feature = "live")]
pub use live::{LiveConfig, LiveSource};
pub use pcapng::TimeResolution;
pub use pcapng_writer::PcapngWriter;
pub use several::Files;
pub use stats::SourceStats;
pub use warning::{BadBlock, Warning, WarningKind};

/// Result of [`Source::next_batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// The batch contains frames.
    Frames,
    /// There are no frames at present, from a live source. The time is that of the source's clock: no other
    /// component reads a clock.
    Idle(Timestamp),
    /// End of the input. The batch is empty.
    End,
}

/// Source of frames, delivered in batches.
///
/// Object-safe and `Send`, so that a `Box<dyn Source>` can be read on another thread.
pub trait Source: Send {
    /// Clears the batch and fills it with the next frames.
    ///
    /// A live source returns [`Next::Idle`] within about 100 ms if there are no frames, so that the caller
    /// can process timeouts and check whether it should stop. A pipe or a socket, which has no clock, returns
    /// [`Next::Frames`] with an empty batch instead. Costs O(octets read) and, once the batch has grown to
    /// its size, allocates nothing per frame.
    ///
    /// # Errors
    ///
    /// Returns an [`Error`] if the operating system returns an error for a read. A capture that is truncated
    /// or damaged is not an error: it ends early, and [`warnings`](Self::warnings) reports the position.
    /// Frames that were read before the error are in the batch, and [`Files`] continues with the other files
    /// at the next call.
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error>;

    /// Positions of damaged input so far. At most a few per file, because reading a file ends at its first
    /// damage.
    fn warnings(&self) -> &[Warning];

    /// Counters of the input so far.
    fn stats(&self) -> SourceStats;

    /// Interfaces so far; [`Frame::interface`](crate::base::Frame::interface) is an index into them. Grows
    /// while reading, because a pcapng file may describe another interface at any position.
    fn interfaces(&self) -> &[Interface];

    /// Number of octets of the input that were read: for a compressed file, the compressed octets.
    fn progress(&self) -> u64;

    /// Value of [`progress`](Self::progress) at the end, if known: the length of the files.
    fn total_len(&self) -> Option<u64> {
        None
    }
}

/// Forwards all methods to the source that a pointer refers to.
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

/// Description in a capture of the interface on which frames were captured.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Interface {
    /// Name, such as `eth0` (pcapng if_name); truncated at 255 octets.
    pub name: Option<String>,
    /// Description (pcapng if_description); truncated at 255 octets.
    pub description: Option<String>,
    /// Type of the header at the start of its frames. Unregistered values are kept unchanged.
    pub link_type: LinkType,
    /// Unit of its timestamps in the file. Frames always carry nanoseconds.
    pub resolution: TimeResolution,
    /// Maximum number of octets per frame that the capture kept, if it is recorded.
    pub snap_len: Option<u32>,
    /// Octets of frame check sequence at the end of each frame, if a classic pcap header contains the number.
    /// They are left in the frames: the lengths of the inner protocols distinguish them from payload.
    pub fcs_len: Option<u8>,
}

impl Interface {
    /// Creates an interface with only a link type, and with microseconds.
    #[must_use]
    pub const fn new(link_type: LinkType) -> Self {
        Self {
            name: None,
            description: None,
            link_type,
            resolution: TimeResolution::MICROSECONDS,
            snap_len: None,
            fcs_len: None,
        }
    }
}

const _: () = {
    const fn sendable<T: Send + ?Sized>() {}
    sendable::<dyn Source>();
    sendable::<FileSource>();
    sendable::<Files>();
    #[cfg(feature = "live")]
    sendable::<LiveSource>();
};
