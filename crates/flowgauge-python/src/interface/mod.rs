//! Frames of network interfaces.

#[cfg(target_os = "linux")]
mod ring;
#[cfg(not(target_os = "linux"))]
mod unsupported;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

#[cfg(target_os = "linux")]
pub(crate) use ring::Ring;
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::Ring;

/// How an interface is captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Time after which the capture ends.
    pub(crate) duration: Option<Duration>,
    /// True if frames for other hosts are captured.
    pub(crate) is_promiscuous: bool,
}

/// What a capture shares with other threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    /// Ends the capture, as if the interface had no more frames.
    pub(crate) is_ended: Arc<AtomicBool>,
    /// Number of frames that the kernel dropped because its buffer was full.
    pub(crate) drop_count: Arc<AtomicU64>,
}
