//! Frames from a network interface, through libpcap (feature `live`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use pcap::{Active, Capture, Precision};

use super::error::Error;
use super::stats::{SourceStats, Tally};
use super::warning::Warning;
use super::{Interface, Source, TimeResolution};
use crate::base::{Frame, FrameBatch, Limits, LinkType, NANOS_PER_SECOND, Timestamp};

/// Frames that are taken from the library at once.
const DISPATCH_COUNT: usize = 64;

/// How long to sleep when nothing is there. The library's own waiting would not end on a quiet interface.
const NAP: Duration = Duration::from_millis(1);

/// Linux offers nanoseconds everywhere. Where the library would fall back in silence, microseconds are asked for.
const PRECISION: (Precision, u64, TimeResolution) = if cfg!(target_os = "linux") {
    (Precision::Nano, 1, TimeResolution::NANOSECONDS)
} else {
    (Precision::Micro, 1000, TimeResolution::MICROSECONDS)
};

/// How to listen on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveConfig {
    /// Octets of each frame to keep. Default 262,144: all.
    pub snap_len: u32,
    /// Whether to see frames that are not for this host. Default true.
    pub promiscuous: bool,
    /// Octets of the kernel's buffer, which bridges the times in which nobody reads. Default 16 MiB.
    pub buffer_len: u32,
    /// After how long without frames [`Source::next_batch`] returns an empty batch, and how long the kernel may gather
    /// frames if not in immediate mode. Default 100 ms.
    pub read_timeout: Duration,
    /// Whether the kernel hands over each frame at once. Default false: in groups, which costs less.
    pub immediate: bool,
    /// Octets after which a batch is full. A batch holds at most this and 64 frames more. Default that of [`Limits`].
    pub batch_len: u32,
}

impl Default for LiveConfig {
    fn default() -> Self {
        Self {
            snap_len: Limits::DEFAULT.frame_len_max,
            promiscuous: true,
            buffer_len: 16 << 20,
            read_timeout: Duration::from_millis(100),
            immediate: false,
            batch_len: Limits::DEFAULT.batch_len,
        }
    }
}

/// Ends a [`LiveSource`] from any thread, or from a handler of signals that runs on a thread.
#[derive(Clone, Debug)]
pub struct StopHandle {
    stopped: Arc<AtomicBool>,
}

impl StopHandle {
    /// Makes the source end: within about a millisecond if it waits, else at its next call.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }
}

/// A network interface that is being listened on.
///
/// [`Source::next_batch`] gives what has arrived, an empty batch after [`LiveConfig::read_timeout`] without frames, and
/// `false` once a [`StopHandle`] was used. Each frame is copied once, out of the kernel's buffer.
pub struct LiveSource {
    capture: Capture<Active>,
    interface: Interface,
    config: LiveConfig,
    tally: Tally,
    /// The library's counters as last seen; they wrap.
    drops: (u32, u32),
    stop: StopHandle,
}

impl LiveSource {
    /// Listens on an interface by name; `any` is all of them, on Linux.
    ///
    /// # Errors
    ///
    /// [`Error::Live`] in the library's words: no such interface, no permission.
    pub fn open(device: &str, config: LiveConfig) -> Result<Self, Error> {
        let error = |error: pcap::Error| live_error(device, &error);
        let clamped = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let timeout = i32::try_from(config.read_timeout.as_millis()).unwrap_or(i32::MAX).max(1);
        let capture = Capture::from_device(device)
            .map_err(error)?
            .snaplen(clamped(config.snap_len))
            .promisc(config.promiscuous)
            .buffer_size(clamped(config.buffer_len))
            .timeout(timeout)
            .immediate_mode(config.immediate)
            .precision(PRECISION.0)
            .open()
            .map_err(error)?
            .setnonblock()
            .map_err(error)?;
        let interface = Interface {
            name: Some(device.to_owned()),
            resolution: PRECISION.2,
            snap_len: Some(config.snap_len),
            ..Interface::new(LinkType(capture.get_datalink().0 as u16))
        };
        let stop = StopHandle { stopped: Arc::default() };
        Ok(Self { capture, interface, config, tally: Tally::default(), drops: (0, 0), stop })
    }

    /// A handle that ends this source.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Takes up to [`DISPATCH_COUNT`] frames that have arrived; how many.
    fn take(&mut self, batch: &mut FrameBatch) -> Result<usize, Error> {
        let (link_type, tally) = (self.interface.link_type, &mut self.tally);
        let taken = self.capture.dispatch(Some(DISPATCH_COUNT), |packet| {
            let seconds = u64::try_from(packet.header.ts.tv_sec).unwrap_or(0);
            let fraction = u64::try_from(packet.header.ts.tv_usec).unwrap_or(0).saturating_mul(PRECISION.1);
            let timestamp =
                Timestamp::from_nanos(seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(fraction));
            let wire_len = packet.header.len;
            tally.timed_frame(timestamp, packet.data.len() as u32, wire_len);
            batch.push(&Frame { timestamp, link_type, data: packet.data, wire_len, interface: 0 });
        });
        taken.map_err(|error| live_error(self.device(), &error))
    }

    fn device(&self) -> &str {
        self.interface.name.as_deref().unwrap_or_default()
    }

    fn count_drops(&mut self) {
        if let Ok(stat) = self.capture.stats() {
            let (kernel, interface) = self.drops;
            let stats = &mut self.tally.stats;
            stats.kernel_drop_count += u64::from(stat.dropped.wrapping_sub(kernel));
            stats.interface_drop_count += u64::from(stat.if_dropped.wrapping_sub(interface));
            self.drops = (stat.dropped, stat.if_dropped);
        }
    }
}

fn live_error(device: &str, error: &pcap::Error) -> Error {
    Error::Live { device: device.to_owned(), message: error.to_string() }
}

impl Source for LiveSource {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<bool, Error> {
        batch.clear();
        let mut waited = Duration::ZERO;
        loop {
            if self.stop.stopped.load(Relaxed) {
                // What was taken already is delivered first.
                return Ok(!batch.is_empty());
            }
            let taken = self.take(batch)?;
            let full = batch.bytes().len() >= self.config.batch_len as usize;
            if full || (taken == 0 && (!batch.is_empty() || waited >= self.config.read_timeout)) {
                self.count_drops();
                return Ok(true);
            }
            if taken == 0 {
                thread::sleep(NAP);
                waited += NAP;
            }
        }
    }

    fn warnings(&self) -> &[Warning] {
        &[]
    }

    fn stats(&self) -> SourceStats {
        self.tally.stats
    }

    fn interfaces(&self) -> &[Interface] {
        std::slice::from_ref(&self.interface)
    }

    /// Octets captured.
    fn progress(&self) -> u64 {
        self.tally.stats.captured_octet_count
    }
}

impl std::fmt::Debug for LiveSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveSource")
            .field("device", &self.device())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn loopback_is_heard_until_it_is_stopped() {
        let config = LiveConfig { immediate: true, ..LiveConfig::default() };
        let mut source = match LiveSource::open("lo", config) {
            Ok(source) => source,
            Err(error) => return println!("skipped: {error}"),
        };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mark = b"flowgauge hears this";
        let mut batch = FrameBatch::new();
        let heard = (0..50).any(|_| {
            socket.send_to(mark, socket.local_addr().unwrap()).unwrap();
            assert!(source.next_batch(&mut batch).unwrap());
            batch.iter().any(|frame| {
                frame.data.ends_with(mark) && frame.timestamp > Timestamp::from_parts(1_600_000_000, 0)
            })
        });
        assert!(heard);
        assert_eq!(source.interfaces()[0].name.as_deref(), Some("lo"));
        let stop = source.stop_handle();
        thread::spawn(move || stop.stop()).join().unwrap();
        assert!(!source.next_batch(&mut batch).unwrap());
    }

    #[test]
    fn an_unknown_interface_is_an_error_with_its_name() {
        let error = LiveSource::open("no-such-if", LiveConfig::default()).unwrap_err();
        assert!(error.to_string().starts_with("no-such-if: "), "{error}");
    }
}
