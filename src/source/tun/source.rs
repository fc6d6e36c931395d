//! Frames from a TUN or TAP device.

use super::config::TunLayer;
use super::device::{self, TunDevice};
use crate::base::{FrameBatch, LinkType, StopHandle};
use crate::source::clock::{IDLE_INTERVAL, now};
use crate::source::error::Error;
use crate::source::stats::SourceStats;
use crate::source::warning::Warning;
use crate::source::{End, Interface, Next, Source, TimeResolution};

/// The packets that the kernel sends to a TUN or TAP device.
///
/// A super-packet is one frame with the link type [`LinkType::SUPER_PACKET_IP`] or
/// [`LinkType::SUPER_PACKET_ETHERNET`], and counts as its segments. [`Source::next_batch`] returns [`Next::Idle`] after
/// 100 ms without packets, and [`End::Stopped`] once the source's [`StopHandle`] is set. Each packet is copied once, out of
/// the kernel.
#[derive(Debug)]
pub struct TunSource {
    device: TunDevice,
    interface: Interface,
    stats: SourceStats,
    /// Index of the queue that is read first next, so that none fills all batches.
    first_queue: usize,
    stop: StopHandle,
}

impl TunSource {
    /// Creates a source that reads all queues of a device.
    #[must_use]
    pub fn new(device: TunDevice) -> Self {
        let link_type = match device.config().layer {
            TunLayer::Ip => LinkType::RAW,
            TunLayer::Ethernet => LinkType::ETHERNET,
        };
        let interface = Interface {
            name: Some(device.name().to_owned()),
            resolution: TimeResolution::NANOSECONDS,
            ..Interface::new(link_type)
        };
        Self { device, interface, stats: SourceStats::default(), first_queue: 0, stop: StopHandle::new() }
    }

    /// Returns a stop handle, which ends this source once it is set.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Returns the device, for sending packets.
    #[must_use]
    pub const fn device(&self) -> &TunDevice {
        &self.device
    }

    fn read(&mut self, batch: &mut FrameBatch) -> Result<(), Error> {
        let queues = self.device.queues();
        for queue in queues.iter().cycle().skip(self.first_queue).take(queues.len()) {
            queue.read(batch, &mut self.stats)?;
        }
        self.first_queue = (self.first_queue + 1) % queues.len().max(1);
        Ok(())
    }
}

impl Source for TunSource {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        if self.stop.is_stopped() {
            return Ok(Next::End(End::Stopped));
        }
        self.read(batch)?;
        if batch.is_empty() {
            device::wait(self.device.queues(), IDLE_INTERVAL)?;
            self.read(batch)?;
        }
        Ok(if batch.is_empty() { Next::Idle(now()) } else { Next::Frames })
    }

    fn warnings(&self) -> &[Warning] {
        &[]
    }

    fn stats(&self) -> SourceStats {
        self.stats
    }

    fn interfaces(&self) -> &[Interface] {
        std::slice::from_ref(&self.interface)
    }

    /// Returns the number of octets captured so far.
    fn progress(&self) -> u64 {
        self.stats.captured_octet_count
    }
}
