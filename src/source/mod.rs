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
//! use flowgauge::source::{FileSource, Source};
//!
//! let (mut frame_count, mut octet_count) = (0, 0);
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! let mut batch = FrameBatch::new();
//! while !source.next_batch(&mut batch)?.is_end() {
//!     frame_count += batch.len();
//!     octet_count += batch.iter().map(|frame| u64::from(frame.wire_len)).sum::<u64>();
//! }
//! assert_eq!((frame_count, octet_count), (1286, 1_318_794));
//! assert!(source.warnings().is_empty());
//! # Ok::<(), flowgauge::source::Error>(())
//! ```
//!
//! [`FrameBatch`]: crate::base::FrameBatch

#![cfg_attr(
    not(test),
    deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod capture;
#[cfg(any(feature = "net", feature = "live", feature = "tun"))]
mod clock;
mod compressed;
mod config;
mod contents;
#[cfg(feature = "net")]
mod datagram;
mod error;
mod file;
mod head;
mod input;
mod interface;
mod interfaces;
#[cfg(feature = "live")]
mod live;
mod memory;
#[cfg(feature = "net")]
mod mirror;
mod parts;
mod pcap;
mod pcapng;
mod pcapng_writer;
mod read_ahead;
mod several;
mod shifted;
#[cfg(feature = "net")]
mod slots;
#[allow(clippy::module_inception, reason = "the trait that the layer is named after")]
mod source;
mod stats;
mod storage;
#[cfg(feature = "net")]
mod stream;
#[cfg(all(feature = "tun", target_os = "linux"))]
pub(crate) mod tun;
mod walk;
mod warning;
#[cfg(feature = "compression")]
mod zstd;

#[cfg(any(feature = "net", feature = "live", feature = "tun"))]
pub(crate) use clock::now;
pub use config::SourceConfig;
pub use contents::Contents;
#[cfg(feature = "net")]
pub use datagram::{DatagramSocket, ReceivedDatagram};
pub use error::Error;
pub use file::FileSource;
pub use interface::Interface;
#[cfg(feature = "live")]
pub use live::{Device, LiveConfig, LiveSource};
#[cfg(feature = "net")]
#[doc(hidden)]
pub use mirror::MirrorState;
#[cfg(feature = "net")]
pub use mirror::{MirrorConfig, MirrorEncapsulation, MirrorSource, MirroredFrame};
pub use parts::FileParts;
pub(crate) use parts::{PartRange, PartReaders, PartsOutcome};
pub use pcapng::TimeResolution;
pub use pcapng_writer::PcapngWriter;
pub use read_ahead::ReadAhead;
pub use several::Files;
pub use shifted::{Shifted, ShiftedFrames};
#[cfg(feature = "net")]
#[doc(hidden)]
pub use slots::{Admission, SlotId, Slots};
pub use source::{End, Next, Source};
pub use stats::SourceStats;
pub use storage::Storage;
#[cfg(feature = "net")]
pub use stream::{StreamConfig, StreamSource};
#[cfg(all(feature = "tun", target_os = "linux"))]
#[doc(hidden)]
pub use tun::split_super_packet;
#[cfg(all(feature = "tun", target_os = "linux"))]
pub use tun::{TunConfig, TunDevice, TunLayer, TunSource};
pub use warning::{BadBlock, Warning, WarningKind};

const _: () = {
    const fn sendable<T: Send + ?Sized>() {}
    sendable::<dyn Source>();
    sendable::<FileSource>();
    sendable::<ReadAhead>();
    sendable::<Files>();
    #[cfg(feature = "net")]
    sendable::<MirrorSource>();
    #[cfg(feature = "net")]
    sendable::<StreamSource>();
    #[cfg(feature = "live")]
    sendable::<LiveSource>();
};
