//! TUN and TAP devices: opening, reading and writing. The crate `tun-rs` makes the system calls.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use super::config::{TunConfig, TunLayer};
use super::offload::SuperPacket;
use crate::base::{FrameBatch, LinkType};
use crate::source::error::Error;
use crate::source::now;
use crate::source::stats::SourceStats;
use crate::wire::virtio_net::{self, VirtioNet};

/// Number of octets in front of each packet of a batch: space for the virtio-net header and for an Ethernet header with
/// two VLAN tags.
pub(crate) const HEADROOM: usize = 32;

/// Maximum number of packets that one read drops, so that it ends although others follow.
const DROPPED_COUNT_MAX: u32 = 256;

const QUEUE_COUNT_MAX: u16 = 256;
const PACKET_LEN_MAX: u32 = 1 << 20;
const BATCH_LEN_MAX: u32 = 64 << 20;

/// Link type of single packets, and of super-packets.
const IP_TYPES: [LinkType; 2] = [LinkType::RAW, LinkType::SUPER_PACKET_IP];
const ETHERNET_TYPES: [LinkType; 2] = [LinkType::ETHERNET, LinkType::SUPER_PACKET_ETHERNET];

/// An open TUN or TAP device. The interface exists as long as the device is open, unless it is persistent.
///
/// The name of the interface is that at the time of opening. The device works after its interface was moved to another
/// network namespace.
///
/// ```no_run
/// use flowgauge::source::{TunConfig, TunDevice, TunSource};
/// use flowgauge::{Pipeline, Records, RunOptions};
///
/// let mut config = TunConfig::default();
/// config.up = true;
/// let device = TunDevice::open("flow0", config)?;
/// let mut pipeline = Pipeline::builder().build(Records::new(|record| println!("{}", record.key)))?;
/// pipeline.run(&mut TunSource::new(device), &RunOptions::default())?;
/// # Ok::<(), flowgauge::Error>(())
/// ```
#[derive(Debug)]
pub struct TunDevice {
    name: Arc<str>,
    config: TunConfig,
    hardware_address: Option<[u8; 6]>,
    queues: Vec<Arc<Queue>>,
}

impl TunDevice {
    /// Opens a device with the given name; `%d` in the name stands for the first free number. Needs the capability
    /// `CAP_NET_ADMIN`, unless the interface is persistent and belongs to the user.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Tun`] with the reason: no permission, no such interface, an interface of another kind, or a
    /// setting that is out of range.
    pub fn open(name: &str, config: TunConfig) -> Result<Self, Error> {
        let fail = |message: String| tun_error(name, message);
        let ranges = [
            ("queue_count", u32::from(config.queue_count), u32::from(QUEUE_COUNT_MAX)),
            ("packet_len_max", config.packet_len_max, PACKET_LEN_MAX),
            ("batch_len", config.batch_len, BATCH_LEN_MAX),
        ];
        for (field, value, max) in ranges {
            if value == 0 || value > max {
                return Err(fail(format!("{field} must be from 1 to {max}, not {value}")));
            }
        }
        if !config.create && !Path::new("/sys/class/net").join(name).exists() {
            return Err(fail("there is no interface with this name".to_owned()));
        }
        let layer = match config.layer {
            TunLayer::Ip => Layer::L3,
            TunLayer::Ethernet => Layer::L2,
        };
        let mut devices: Vec<SyncDevice> = Vec::new();
        // Further queues are opened by the name that the kernel chose for the first one.
        let mut chosen: Arc<str> = name.into();
        for _ in 0..config.queue_count {
            let mut builder = DeviceBuilder::new().name(&*chosen).layer(layer).inherit_enable_state();
            builder = builder.with(|settings| {
                settings.offload(config.offload).multi_queue(config.queue_count > 1);
            });
            if let Some(mtu) = config.mtu.filter(|_| devices.is_empty()) {
                builder = builder.mtu(mtu);
            }
            if config.up && devices.is_empty() {
                builder = builder.enable(true);
            }
            let device = builder.build_sync().map_err(|error| fail(open_message(&error)))?;
            device.set_nonblocking(true).map_err(|error| fail(open_message(&error)))?;
            chosen = device.name().map_err(|error| fail(open_message(&error)))?.into();
            devices.push(device);
        }
        let is_ethernet = config.layer == TunLayer::Ethernet;
        let hardware_address =
            devices.first().filter(|_| is_ethernet).and_then(|device| device.mac_address().ok());
        let queue = |device| Arc::new(Queue { device, config, name: Arc::clone(&chosen) });
        let queues = devices.into_iter().map(queue).collect();
        Ok(Self { name: chosen, config, hardware_address, queues })
    }

    /// Returns the name of the interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the configuration with which the device was opened.
    #[must_use]
    pub const fn config(&self) -> &TunConfig {
        &self.config
    }

    /// Returns the hardware address of the interface of a TAP device. This is the address of the host's side of the
    /// link; a program on the other side uses another one.
    #[must_use]
    pub const fn hardware_address(&self) -> Option<[u8; 6]> {
        self.hardware_address
    }

    /// Sends an IP packet, or an Ethernet frame on a TAP device, with complete checksums. One system call, no
    /// allocation.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Tun`] if the interface does not accept the packet: it is down, it was removed, or the packet
    /// contradicts its headers.
    pub fn send(&self, packet: &[u8]) -> Result<(), Error> {
        let Some(queue) = self.queues.first() else { return Ok(()) };
        queue.send(packet).map_err(|error| tun_error(&self.name, send_message(&error)))
    }

    pub(crate) fn queues(&self) -> &[Arc<Queue>] {
        &self.queues
    }
}

/// Result of reading a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    pub(crate) packet_count: usize,
    /// True if no further packet is available.
    pub(crate) is_drained: bool,
}

/// One queue of a device.
pub(crate) struct Queue {
    device: SyncDevice,
    config: TunConfig,
    name: Arc<str>,
}

impl Queue {
    pub(crate) const fn has_header(&self) -> bool {
        self.config.offload
    }

    pub(crate) fn is_ethernet(&self) -> bool {
        self.config.layer == TunLayer::Ethernet
    }

    /// Reads packets into a batch until none is available or the batch is full. Each packet follows [`HEADROOM`] octets,
    /// the last of which are its virtio-net header, or zeros.
    pub(crate) fn read(&self, batch: &mut FrameBatch, stats: &mut SourceStats) -> Result<Burst, Error> {
        let before = batch.len();
        let packet_len_max = self.config.packet_len_max as usize;
        // One octet more than the longest packet, which shows that a packet was truncated.
        let need = HEADROOM + packet_len_max + 1;
        let block_len = (self.config.batch_len as usize).max(need);
        let now = now();
        let mut is_drained = false;
        let mut dropped_count = 0;
        while dropped_count < DROPPED_COUNT_MAX && batch.bytes().len() + need <= block_len {
            let start = batch.bytes().len();
            let space = batch.space(block_len);
            let offset = if self.has_header() { HEADROOM - virtio_net::HEADER_LEN } else { HEADROOM };
            let Some(buffer) = space.get_mut(offset..need) else { break };
            let len = match self.device.recv(buffer) {
                Ok(len) => (offset + len).saturating_sub(HEADROOM),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    is_drained = true;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // Packets that were already read are delivered first; the error occurs again at the next call.
                Err(_) if batch.len() > before => break,
                Err(error) => return Err(self.read_error(&error)),
            };
            if len > packet_len_max || len == 0 {
                stats.oversized_frame_count += u64::from(len != 0);
                dropped_count += 1;
                continue;
            }
            let Some((headroom, packet)) = space.split_at_mut_checked(HEADROOM) else { break };
            let header_at = HEADROOM - virtio_net::HEADER_LEN;
            let (super_packet, packet) = match (headroom.get_mut(header_at..), packet.get(..len)) {
                (Some(header), Some(packet)) if self.has_header() => {
                    (self.super_packet(header, packet), packet)
                }
                (Some(header), Some(packet)) => {
                    header.fill(0);
                    (None, packet)
                }
                _ => break,
            };
            let [single_type, super_type] = if self.is_ethernet() { ETHERNET_TYPES } else { IP_TYPES };
            let link_type = if super_packet.is_some() { super_type } else { single_type };
            let wire_len = super_packet.map_or(len, |segments| segments.wire_len(packet.len()));
            stats.frame_count += 1;
            stats.captured_octet_count += len as u64;
            stats.wire_octet_count += wire_len as u64;
            stats.super_packet_count += u64::from(super_packet.is_some());
            batch.fill(HEADROOM + len);
            batch.split().1.push(start + HEADROOM, len as u32, wire_len as u32, now, link_type, 0);
        }
        Ok(Burst { packet_count: batch.len() - before, is_drained })
    }

    /// Returns the segments of a packet, if its virtio-net header announces more than one.
    fn super_packet(&self, header: &[u8], packet: &[u8]) -> Option<SuperPacket> {
        SuperPacket::new(packet, &VirtioNet::read(header)?, self.is_ethernet())
    }

    /// Waits until a packet can be read, but no longer than `timeout`. An error of the device is reported by the next
    /// read.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<(), Error> {
        let timeout = Timespec::try_from(timeout).ok();
        self.waited(poll(&mut [PollFd::new(&self.device, PollFlags::IN)], timeout.as_ref()))
    }

    fn waited(&self, result: Result<usize, Errno>) -> Result<(), Error> {
        match result {
            Err(errno) if errno != Errno::INTR => {
                Err(tun_error(&self.name, format!("cannot be polled: {}", io::Error::from(errno))))
            }
            _ => Ok(()),
        }
    }

    /// Writes a packet as it is: behind its virtio-net header if the device has one.
    pub(crate) fn write(&self, octets: &[u8]) -> io::Result<()> {
        loop {
            match self.device.send(octets) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map(drop),
            }
        }
    }

    /// Sends a single packet with complete checksums.
    pub(crate) fn send(&self, packet: &[u8]) -> io::Result<()> {
        if !self.has_header() {
            return self.write(packet);
        }
        let header = [0; virtio_net::HEADER_LEN];
        let parts = [io::IoSlice::new(&header), io::IoSlice::new(packet)];
        self.device.send_vectored(&parts).map(drop)
    }

    /// Returns whether an error of a write means that the device no longer exists. Other errors concern the packet, or
    /// an interface that is down.
    pub(crate) fn is_gone(error: &io::Error) -> bool {
        Errno::from_io_error(error).is_some_and(|errno| matches!(errno, Errno::BADFD | Errno::BADF))
    }

    pub(crate) fn gone(&self) -> Error {
        tun_error(&self.name, "the interface was removed".to_owned())
    }

    pub(crate) fn read_error(&self, error: &io::Error) -> Error {
        // A read that waits while the interface is removed ends with EFAULT.
        if Self::is_gone(error) || Errno::from_io_error(error) == Some(Errno::FAULT) {
            return self.gone();
        }
        tun_error(&self.name, format!("cannot be read: {error}"))
    }
}

#[cfg(feature = "tun-async")]
impl std::os::fd::AsRawFd for Queue {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.device.as_raw_fd()
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Waits until a packet can be read from one of the queues, but no longer than `timeout`.
pub(super) fn wait(queues: &[Arc<Queue>], timeout: Duration) -> Result<(), Error> {
    let timeout = Timespec::try_from(timeout).ok();
    let mut list: Vec<_> = queues.iter().map(|queue| PollFd::new(&queue.device, PollFlags::IN)).collect();
    let result = poll(&mut list, timeout.as_ref());
    queues.first().map_or(Ok(()), |queue| queue.waited(result))
}

pub(super) fn tun_error(name: &str, message: String) -> Error {
    Error::Tun { device: name.to_owned(), message }
}

fn open_message(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            format!("cannot be opened: {error}; the capability CAP_NET_ADMIN is required")
        }
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => {
            format!("cannot be opened: {error}; the kernel has no /dev/net/tun")
        }
        Some(Errno::BUSY) => format!("cannot be opened: {error}; another program uses the interface"),
        Some(Errno::INVAL) => format!(
            "cannot be opened: {error}; an interface with this name may be of another kind or have another number of queues"
        ),
        _ => format!("cannot be opened: {error}"),
    }
}

fn send_message(error: &io::Error) -> String {
    if Queue::is_gone(error) {
        return "the interface was removed".to_owned();
    }
    match Errno::from_io_error(error) {
        Some(Errno::IO) => format!("cannot send: {error}; the interface is down"),
        _ => format!("cannot send: {error}"),
    }
}
