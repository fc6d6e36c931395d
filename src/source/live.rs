//! Frames from a network interface, through libpcap (feature `live`).

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use pcap::{Active, Capture, Precision};

use super::error::Error;
use super::stats::{SourceStats, Tally};
use super::warning::{Warning, WarningKind};
use super::{End, Interface, Next, Source, TimeResolution, now};
use crate::base::{Frame, FrameBatch, Limits, LinkType, NANOS_PER_SECOND, StopHandle, Timestamp};

/// Maximum number of frames that are read from the capture library at once.
const DISPATCH_COUNT: usize = 64;

/// Sleep time before frames are read again if none are available. The wait of the capture library itself
/// would not end on an interface without traffic.
const NAP: Duration = Duration::from_millis(1);

/// End of libpcap's message if a socket in non-blocking mode has no data: the text of `EAGAIN`.
const WOULD_BLOCK: &str = "Resource temporarily unavailable";

/// Time between two checks of the state of the interface while no frames arrive.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Number of warnings that a source keeps; later ones are only counted.
const WARNING_COUNT_MAX: usize = 64;

/// Resolution of timestamps: as requested from the capture library, as nanoseconds per unit, and as reported
/// in the [`Interface`]. Linux supports nanoseconds on all interfaces; on other systems, where the library
/// may fall back without an error, microseconds are requested.
const PRECISION: (Precision, u64, TimeResolution) = if cfg!(target_os = "linux") {
    (Precision::Nano, 1, TimeResolution::NANOSECONDS)
} else {
    (Precision::Micro, 1000, TimeResolution::MICROSECONDS)
};

crate::base::configuration! {
    /// Configuration of a live capture on a network interface.
    #[derive(Clone, Debug)]
    pub struct LiveConfig {
        /// Snap length: maximum number of octets that are kept of each frame. The default is 262,144 octets,
        /// which keeps complete frames.
        pub snap_len: u32,
        /// True to capture also frames that are not for this host (promiscuous mode). The default is true.
        pub promiscuous: bool,
        /// Size of the kernel's buffer in octets, which holds frames until they are read. The default is 16 MiB.
        pub buffer_len: u32,
        /// Time without frames after which [`Source::next_batch`] returns [`Next::Idle`], and maximum time that
        /// the kernel may collect frames if not in immediate mode. The default is 100 ms.
        pub read_timeout: Duration,
        /// True if the kernel delivers each frame immediately. The default is false: frames are delivered in
        /// groups, which costs less.
        pub immediate: bool,
        /// Number of octets after which a batch is full. A batch holds at most these octets and 64 more frames.
        /// The default is that of [`Limits`].
        pub batch_len: u32,
        /// Expression of pcap-filter(7) that the kernel applies, so that other frames cost nothing. The default is `None`,
        /// for all frames.
        pub capture_filter: Option<String>,
        /// Handle that ends the source once it is set. The default is `None`, for a handle of its own.
        pub stop: Option<StopHandle>,
    }
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
            capture_filter: None,
            stop: None,
        }
    }
}

/// Network interface on which frames can be captured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Device {
    /// Name of the interface, such as `eth0`.
    pub name: String,
    /// Description of the interface, if the system has one.
    pub description: Option<String>,
    /// IP addresses of the interface.
    pub addresses: Vec<IpAddr>,
    /// True if the interface is enabled.
    pub is_up: bool,
    /// True if the interface is operational, for example because its cable is connected.
    pub is_running: bool,
    /// True for the loopback interface.
    pub is_loopback: bool,
}

/// Live capture on a network interface.
///
/// [`Source::next_batch`] returns the frames that have arrived, [`Next::Idle`] after
/// [`LiveConfig::read_timeout`] without frames, and [`End::Stopped`] once the source's [`StopHandle`] is set.
/// Each frame is copied once, out of the kernel's buffer.
///
/// A frame may contain several segments that the kernel or the network card merged (GRO, TSO), up to 64 KiB. libpcap does
/// not report their number, so such a frame counts as one packet;
/// [`SourceStats::merged_frame_count`](super::SourceStats::merged_frame_count) is the number of these frames.
///
/// An interface that vanishes during the capture is an error. While it is disabled, the source waits, with a
/// [warning](Source::warnings).
pub struct LiveSource {
    capture: Capture<Active>,
    interface: Interface,
    config: LiveConfig,
    tally: Tally,
    /// Last values of the capture library's counters, which wrap: frames dropped by the kernel, and frames
    /// dropped by the interface.
    drops: (u32, u32),
    /// Length of the longest frame that the interface sends or receives, in octets, if it is known.
    frame_len_max: u32,
    link: Option<LinkWatch>,
    warnings: Vec<Warning>,
    stop: StopHandle,
}

/// State of an interface, which libpcap does not report: it waits until a disabled interface is enabled again. Only
/// interfaces that were listed as enabled at first are watched; others, such as `nflog:5`, have no such state.
#[derive(Debug)]
struct LinkWatch {
    is_up: bool,
    next_check: Instant,
}

impl LiveSource {
    /// Starts a capture on the interface with the given name; on Linux, `any` selects all interfaces.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Permission`] if the process may not capture, and [`Error::Live`] with the message of the capture
    /// library otherwise, for example if there is no such interface or the filter is invalid.
    pub fn open(device: &str, config: LiveConfig) -> Result<Self, Error> {
        let error = |error: pcap::Error| live_error(device, &error);
        let clamped = |value: u32| i32::try_from(value).unwrap_or(i32::MAX);
        let timeout = i32::try_from(config.read_timeout.as_millis()).unwrap_or(i32::MAX).max(1);
        let mut capture = Capture::from_device(device)
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
        if let Some(filter) = &config.capture_filter {
            capture.filter(filter, true).map_err(|error| Error::Live {
                device: device.to_owned(),
                message: format!("invalid capture filter `{filter}`: {}", text(&error)),
            })?;
        }
        let interface = Interface {
            name: Some(device.to_owned()),
            resolution: PRECISION.2,
            snap_len: Some(config.snap_len),
            ..Interface::new(LinkType(capture.get_datalink().0 as u16))
        };
        let stop = config.stop.clone().unwrap_or_default();
        let frame_len_max = frame_len_max(device, interface.link_type);
        let is_watched = Self::devices()
            .is_ok_and(|devices| devices.iter().any(|listed| listed.name == device && listed.is_up));
        let link = is_watched.then(|| LinkWatch { is_up: true, next_check: Instant::now() + CHECK_INTERVAL });
        let (tally, drops, warnings) = (Tally::default(), (0, 0), Vec::new());
        Ok(Self { capture, interface, config, tally, drops, frame_len_max, link, warnings, stop })
    }

    /// Lists the interfaces on which frames can be captured.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Live`] with the message of the capture library.
    pub fn devices() -> Result<Vec<Device>, Error> {
        let devices = pcap::Device::list().map_err(|error| live_error("interfaces", &error))?;
        let device = |device: pcap::Device| Device {
            addresses: device.addresses.iter().map(|address| address.addr).collect(),
            is_up: device.flags.is_up(),
            is_running: device.flags.is_running(),
            is_loopback: device.flags.is_loopback(),
            name: device.name,
            description: device.desc,
        };
        Ok(devices.into_iter().map(device).collect())
    }

    /// Returns a stop handle, which ends this source once it is set.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Appends up to [`DISPATCH_COUNT`] frames that have arrived to the batch. Returns the number of frames
    /// appended.
    fn take(&mut self, batch: &mut FrameBatch) -> Result<usize, Error> {
        let (link_type, tally) = (self.interface.link_type, &mut self.tally);
        let frame_len_max = self.frame_len_max;
        let taken = self.capture.dispatch(Some(DISPATCH_COUNT), |packet| {
            let seconds = u64::try_from(packet.header.ts.tv_sec).unwrap_or(0);
            let fraction = u64::try_from(packet.header.ts.tv_usec).unwrap_or(0).saturating_mul(PRECISION.1);
            let timestamp =
                Timestamp::from_nanos(seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(fraction));
            let wire_len = packet.header.len;
            tally.stats.merged_frame_count += u64::from(wire_len > frame_len_max);
            tally.timed_frame(timestamp, packet.data.len() as u32, wire_len);
            batch.push(&Frame { timestamp, link_type, data: packet.data, wire_len, interface: 0 });
        });
        match taken {
            // For some kinds of interfaces, such as `nflog`, libpcap reports an empty socket as an error.
            Err(pcap::Error::PcapError(message)) if message.ends_with(WOULD_BLOCK) => Ok(0),
            taken => taken.map_err(|error| live_error(self.device(), &error)),
        }
    }

    /// Checks, at most once per [`CHECK_INTERVAL`], whether the interface still exists and is enabled.
    fn check_link(&mut self) -> Result<(), Error> {
        let Some(link) = self.link.as_mut().filter(|link| Instant::now() >= link.next_check) else {
            return Ok(());
        };
        link.next_check = Instant::now() + CHECK_INTERVAL;
        // A list that cannot be obtained does not end a capture that works.
        let Ok(devices) = Self::devices() else { return Ok(()) };
        let name = self.interface.name.as_deref().unwrap_or_default();
        let device = devices.iter().find(|device| device.name == name).ok_or_else(|| {
            let message = "the interface disappeared".to_owned();
            Error::Live { device: name.to_owned(), message }
        })?;
        if link.is_up && !device.is_up {
            self.tally.stats.interface_down_count += 1;
            if self.warnings.len() < WARNING_COUNT_MAX {
                let (path, frame_number) = (name.into(), self.tally.stats.frame_count + 1);
                let kind = WarningKind::InterfaceDown;
                self.warnings.push(Warning { path, offset: 0, frame_number, kind });
            }
        }
        link.is_up = device.is_up;
        Ok(())
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

/// Returns the text of an error of the capture library, without a prefix.
fn text(error: &pcap::Error) -> String {
    match error {
        pcap::Error::PcapError(message) => message.clone(),
        error => error.to_string(),
    }
}

fn live_error(device: &str, error: &pcap::Error) -> Error {
    let message = text(error);
    // The library reports its reasons only as text.
    if message.contains("permission") || message.contains("Operation not permitted") {
        return Error::Permission { name: device.to_owned() };
    }
    Error::Live { device: device.to_owned(), message }
}

/// Returns the length of the longest frame that an interface sends or receives, in octets: its MTU and an Ethernet header
/// with two VLAN tags. The largest number if it is unknown.
fn frame_len_max(device: &str, link_type: LinkType) -> u32 {
    const HEADER_LEN_MAX: u32 = 22;
    // A name with a slash is no interface.
    let path = format!("/sys/class/net/{device}/mtu");
    let mtu = || std::fs::read_to_string(path).ok()?.trim().parse::<u32>().ok();
    let is_ethernet = link_type == LinkType::ETHERNET && !device.contains('/');
    is_ethernet.then(mtu).flatten().map_or(u32::MAX, |mtu| mtu.saturating_add(HEADER_LEN_MAX))
}

impl Source for LiveSource {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        let mut waited = Duration::ZERO;
        loop {
            if self.stop.is_stopped() {
                // Frames that were already taken are delivered first.
                return Ok(if batch.is_empty() { Next::End(End::Stopped) } else { Next::Frames });
            }
            let taken = self.take(batch)?;
            let full = batch.bytes().len() >= self.config.batch_len as usize;
            if full || (taken == 0 && (!batch.is_empty() || waited >= self.config.read_timeout)) {
                self.count_drops();
                if !batch.is_empty() {
                    return Ok(Next::Frames);
                }
                self.check_link()?;
                return Ok(Next::Idle(now()));
            }
            if taken == 0 {
                thread::sleep(NAP);
                waited += NAP;
            }
        }
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn stats(&self) -> SourceStats {
        self.tally.stats
    }

    fn interfaces(&self) -> &[Interface] {
        std::slice::from_ref(&self.interface)
    }

    /// Returns the number of octets captured so far.
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
    fn loopback_is_captured_until_it_is_stopped() {
        let config = LiveConfig { immediate: true, ..LiveConfig::default() };
        let mut source = match LiveSource::open("lo", config) {
            Ok(source) => source,
            Err(error) => return println!("skipped: {error}"),
        };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mark = b"flowgauge receives this";
        let mut batch = FrameBatch::new();
        let is_captured = (0..50).any(|_| {
            socket.send_to(mark, socket.local_addr().unwrap()).unwrap();
            assert!(!source.next_batch(&mut batch).unwrap().is_end());
            batch.iter().any(|frame| {
                frame.data.ends_with(mark) && frame.timestamp > Timestamp::from_parts(1_600_000_000, 0)
            })
        });
        assert!(is_captured);
        assert_eq!(source.interfaces()[0].name.as_deref(), Some("lo"));
        let stop = source.stop_handle();
        thread::spawn(move || stop.stop()).join().unwrap();
        assert_eq!(source.next_batch(&mut batch).unwrap(), Next::End(End::Stopped));
    }

    #[test]
    fn an_unknown_interface_is_an_error_with_its_name() {
        let error = LiveSource::open("no-such-if", LiveConfig::default()).unwrap_err();
        assert!(error.to_string().starts_with("no-such-if: "), "{error}");
    }
}
