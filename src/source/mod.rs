//! Sources of frames: capture files, plain or compressed, one or several, network interfaces, mirror sessions, and
//! captures that arrive over TCP.
//!
//! A [`Source`] fills a [`FrameBatch`] that the caller owns and recycles. [`FileSource`] reads one capture
//! from a path or any reader, [`Files`] merges several captures in time order, [`MirrorSource`] receives frames inside
//! datagrams, [`StreamSource`] reads captures from TCP connections, `LiveSource` (feature `live`) captures on an
//! interface, and `TunSource` (feature `tun`) reads a TUN or TAP device. [`PcapngWriter`] writes frames to a file.
//!
//! Damaged input is not an error: the source returns the frames before the damage and then ends, and
//! [`Source::warnings`] reports the position. An [`Error`] is returned only for input that is not a capture,
//! and for errors of the operating system.
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

#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod capture;
mod compressed;
mod config;
mod datagram;
mod error;
mod file;
mod head;
mod input;
mod interfaces;
#[cfg(feature = "live")]
mod live;
mod memory;
mod mirror;
mod pcap;
mod pcapng;
mod pcapng_writer;
mod read_ahead;
mod several;
mod slots;
mod stats;
mod stream;
#[cfg(all(feature = "tun", target_os = "linux"))]
pub(crate) mod tun;
mod walk;
mod warning;
#[cfg(feature = "compression")]
mod zstd;

use std::time::{Duration, SystemTime};

use crate::base::{FrameBatch, LinkType, Timestamp};

pub use config::SourceConfig;
pub use datagram::{DatagramSocket, ReceivedDatagram};
pub use error::Error;
pub use file::FileSource;
#[cfg(feature = "live")]
pub use live::{Device, LiveConfig, LiveSource};
#[doc(hidden)]
pub use mirror::MirrorState;
pub use mirror::{MirrorConfig, MirrorEncapsulation, MirrorSource, MirroredFrame};
pub use pcapng::TimeResolution;
pub use pcapng_writer::PcapngWriter;
pub use read_ahead::ReadAhead;
pub use several::Files;
#[doc(hidden)]
pub use slots::{Admission, SlotId, Slots};
pub use stats::SourceStats;
pub use stream::{StreamConfig, StreamSource};
#[cfg(all(feature = "tun", target_os = "linux"))]
#[doc(hidden)]
pub use tun::split_super_packet;
#[cfg(all(feature = "tun", target_os = "linux"))]
pub use tun::{TunConfig, TunDevice, TunLayer, TunSource};
pub use warning::{BadBlock, Warning, WarningKind};

/// Maximum time for which a live source waits for frames.
const IDLE_INTERVAL: Duration = Duration::from_millis(100);

/// Returns the time of the system clock, which is also the clock of frames that are received live.
pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX))
}

/// Result of [`Source::next_batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// The batch contains frames.
    Frames,
    /// A live source has no frames at present. The value is the current time of the source's clock.
    Idle(Timestamp),
    /// The input ended. The batch is empty.
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
    /// [`Next::Frames`] with an empty batch instead. Takes time linear in the number of octets read, and
    /// allocates nothing per frame once the batch has grown to its size.
    ///
    /// # Errors
    ///
    /// Returns an [`Error`] if the operating system returns an error for a read. A capture that is truncated
    /// or damaged is not an error: it ends early, and [`warnings`](Self::warnings) reports the position.
    /// Frames that were read before the error are in the batch, and [`Files`] continues with the other files
    /// at the next call.
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error>;

    /// Returns the positions of damaged input so far: at most a few per file, because reading a file ends at
    /// its first damage.
    fn warnings(&self) -> &[Warning];

    /// Returns the counts of frames, blocks and errors so far.
    fn stats(&self) -> SourceStats;

    /// Returns the interfaces that the input has described so far;
    /// [`Frame::interface`](crate::base::Frame::interface) is an index into this slice. The slice grows while
    /// the input is read, because a pcapng file may describe another interface at any position.
    fn interfaces(&self) -> &[Interface];

    /// Returns the number of octets of the input that were read; for a compressed file, the number of
    /// compressed octets.
    fn progress(&self) -> u64;

    /// Returns the value of [`progress`](Self::progress) at the end of the input, if it is known: the length
    /// of all files, in octets.
    fn total_len(&self) -> Option<u64> {
        None
    }
}

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

/// Description of an interface on which frames were captured, as recorded in the capture.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Interface {
    /// Name of the interface, such as `eth0` (pcapng if_name); truncated to 255 octets.
    pub name: Option<String>,
    /// Description of the interface (pcapng if_description); truncated to 255 octets.
    pub description: Option<String>,
    /// Type of the link header at the start of the interface's frames. Unregistered values are kept
    /// unchanged.
    pub link_type: LinkType,
    /// Unit of the interface's timestamps in the file. The timestamps of [frames](crate::base::Frame) are
    /// always in nanoseconds.
    pub resolution: TimeResolution,
    /// Maximum number of octets per frame that the capture kept (the snap length), if it is recorded.
    pub snap_len: Option<u32>,
    /// Length of the frame check sequence at the end of each frame, in octets, if a classic pcap header
    /// contains it. The frame check sequence remains in the frames: the lengths of the inner protocols
    /// distinguish it from payload.
    pub fcs_len: Option<u8>,
}

impl Interface {
    /// Creates an interface with a link type and timestamps in microseconds, without a name and other fields.
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
    sendable::<ReadAhead>();
    sendable::<Files>();
    sendable::<MirrorSource>();
    sendable::<StreamSource>();
    #[cfg(feature = "live")]
    sendable::<LiveSource>();
};
