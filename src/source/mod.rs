//! Where frames come from: capture files, plain or compressed, one or several, and live interfaces.
//!
//! A [`Source`] fills a [`FrameBatch`] that the caller owns and recycles. [`FileSource`] reads one capture from a path
//! or any reader, [`Files`] merges several in time order, [`PcapngWriter`] writes frames out again, and `LiveSource`
//! (feature `live`) listens on an interface.
//!
//! Bad input is data: what a file holds before the place where it breaks is delivered, then the source ends and
//! [`Source::warnings`] names the place. An [`Error`] is for what is no capture at all, and for the operating system's
//! refusals.

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

use crate::base::{FrameBatch, LinkType};

pub use config::SourceConfig;
pub use error::Error;
pub use file::FileSource;
#[cfg(feature = "live")]
pub use live::{LiveConfig, LiveSource, StopHandle};
pub use pcapng::TimeResolution;
pub use pcapng_writer::PcapngWriter;
pub use several::Files;
pub use stats::SourceStats;
pub use warning::{BadBlock, Warning, WarningKind};

/// Something that gives frames, batch by batch.
///
/// Object-safe and `Send`, so that a `Box<dyn Source>` may be read on a thread of its own.
pub trait Source: Send {
    /// Clears the batch and fills it with the next frames; `false` at the end, with an empty batch.
    ///
    /// A batch may come back empty with `true`: a live source does so when its time-out passes, so that the caller can
    /// let time go on. Costs O(octets read) and, once the batch has grown to its size, allocates nothing per frame.
    ///
    /// # Errors
    ///
    /// [`Error`] if the operating system refuses to read. A capture that is cut or damaged is no error: it ends early,
    /// and [`warnings`](Self::warnings) says where. Frames that were gathered before the refusal are in the batch, and
    /// [`Files`] goes on with the other files at the next call.
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<bool, Error>;

    /// Places where input broke, so far. At most a few per file: reading a file ends at its first bad place.
    fn warnings(&self) -> &[Warning];

    /// What was read so far.
    fn stats(&self) -> SourceStats;

    /// The interfaces met so far; [`Frame::interface`](crate::base::Frame::interface) is an index into them. Grows
    /// while reading, as a pcapng file may describe another interface at any place.
    fn interfaces(&self) -> &[Interface];

    /// Octets of the input that were read: those of the file, hence compressed ones where it is compressed.
    fn progress(&self) -> u64;

    /// What [`progress`](Self::progress) will have come to at the end, where that is known: the length of the files.
    fn total_len(&self) -> Option<u64> {
        None
    }
}

impl<S: Source + ?Sized> Source for Box<S> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<bool, Error> {
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

/// What a capture says about the interface that frames were seen on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Interface {
    /// Its name, such as `eth0` (pcapng if_name); cut at 255 octets.
    pub name: Option<String>,
    /// What it is (pcapng if_description); cut at 255 octets.
    pub description: Option<String>,
    /// What its frames start with. A value that nobody registered is kept as it is.
    pub link_type: LinkType,
    /// The unit of its timestamps in the file. Frames carry nanoseconds whatever it is.
    pub resolution: TimeResolution,
    /// The most octets of a frame that the capture kept, where it says so.
    pub snap_len: Option<u32>,
    /// Octets of frame check sequence at the end of each frame, where a classic pcap header states them. They are left
    /// in the frames: the lengths of the enclosed protocols tell them from payload.
    pub fcs_len: Option<u8>,
}

impl Interface {
    /// An interface of which only the link type is known, with microseconds.
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
