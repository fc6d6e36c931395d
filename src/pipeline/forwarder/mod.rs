//! Forwarding between two TUN or TAP devices, with flow tracking (feature `tun`).

#[cfg(feature = "tun-async")]
mod asynchronous;
mod handler;
mod packets;
mod route;
mod stats;
mod translation;

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

pub use handler::{DeviceSide, ForwardAction, ForwardHandler};
pub use stats::ForwardStats;

use super::{Pipeline, Sink};
use crate::base::StopHandle;
use crate::source::tun::Queue;
use crate::source::{self, TunDevice, now};
use crate::tap::NeighborTable;
use packets::{Packets, Shared};
use route::Route;
use translation::Translation;

/// Maximum time for which a direction waits for packets before it checks whether it should stop.
const WAIT_TIME: Duration = Duration::from_millis(100);

/// Forwards packets between two TUN or TAP devices and tracks their flows.
///
/// Each packet is tracked by the pipeline when it is received, then the [`ForwardHandler`] decides whether it is passed,
/// dropped or rewritten. A super-packet is passed to a device with offload as it is, with its virtio-net header, and
/// counts as its segments. It is split only for a rewrite, or for a device without offload.
///
/// Each direction and each pair of queues has a thread of its own; with a [channel](Self::channel), there is a second
/// one for writing. The threads share the pipeline and the handler through a lock, once per batch. In steady state,
/// nothing is allocated per packet.
///
/// ```no_run
/// use flowgauge::pipeline::Forwarder;
/// use flowgauge::source::{TunConfig, TunDevice};
/// use flowgauge::{Pipeline, Records, StopHandle};
///
/// let pipeline = Pipeline::builder().build(Records::new(|record| println!("{}", record.key)))?;
/// let open = |name| TunDevice::open(name, TunConfig::default());
/// let mut forwarder = Forwarder::new(pipeline, (), open("left0")?, open("right0")?)?;
/// forwarder.run(&StopHandle::new())?;
/// # Ok::<(), flowgauge::Error>(())
/// ```
pub struct Forwarder<K: Sink, H = ()> {
    core: Arc<Core<K, H>>,
    channel_len: Option<usize>,
}

/// State that the threads or tasks of a forwarder share.
struct Core<K: Sink, H> {
    devices: [TunDevice; 2],
    state: Mutex<State<K, H>>,
}

struct State<K: Sink, H> {
    pipeline: Pipeline<K>,
    handler: H,
    translation: Translation,
    stats: [ForwardStats; 2],
    /// First error of a direction, which ends the run.
    error: Option<source::Error>,
    is_tracking: bool,
}

impl<K: Sink, H> Forwarder<K, H> {
    /// Creates a forwarder between two devices. The handler decides on each packet; `()` passes everything.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Tun`](source::Error::Tun) if the devices have different numbers of queues.
    pub fn new(
        pipeline: Pipeline<K>,
        handler: H,
        left: TunDevice,
        right: TunDevice,
    ) -> Result<Self, source::Error> {
        let [left_count, right_count] = [&left, &right].map(|device| device.queues().len());
        if left_count != right_count {
            let message = format!("has {right_count} queues, but {} has {left_count}", left.name());
            return Err(source::Error::Tun { device: right.name().to_owned(), message });
        }
        let state = State {
            pipeline,
            handler,
            translation: Translation::default(),
            stats: [ForwardStats::default(); 2],
            error: None,
            is_tracking: true,
        };
        Ok(Self {
            core: Arc::new(Core { devices: [left, right], state: Mutex::new(state) }),
            channel_len: None,
        })
    }

    /// Writes packets on a thread of their own, behind a channel for `batch_count` batches in each direction (at least
    /// one). While the channel is full, packets wait in the queue of the device, and a batch that is full
    /// ([`TunConfig::batch_len`](crate::source::TunConfig::batch_len)) is dropped and counted
    /// ([`ForwardStats::overflow_count`]). `None`, the default, writes packets on the thread that read them.
    #[must_use]
    pub fn channel(self, batch_count: Option<usize>) -> Self {
        Self { channel_len: batch_count.map(|count| count.max(1)), ..self }
    }

    /// Forwards without tracking if `is_tracking` is false, so that the cost of tracking can be measured.
    #[doc(hidden)]
    #[must_use]
    pub fn tracking(self, is_tracking: bool) -> Self {
        self.core.lock().is_tracking = is_tracking;
        self
    }

    /// Sets the neighbor table of a TAP device, which is required if the other device is a TUN device. The hardware
    /// address and the local addresses of the table are those of the router that the forwarder is for the hosts behind
    /// the TAP device; destinations of packets to that device are resolved directly.
    #[must_use]
    pub fn neighbors(self, side: DeviceSide, table: NeighborTable) -> Self {
        let mut state = self.core.lock();
        if let Some(entry) = state.translation.tables.get_mut(side.index()) {
            *entry = Some(table);
        }
        drop(state);
        self
    }

    /// Returns the counts of the packets that were received from a device, as of the last batch.
    #[must_use]
    pub fn stats(&self, from: DeviceSide) -> ForwardStats {
        self.core.lock().stats.get(from.index()).copied().unwrap_or_default()
    }

    /// Calls a function with the pipeline, which holds the flows and the sink. May be called during a run; the
    /// forwarder then waits.
    pub fn with_pipeline<R>(&self, call: impl FnOnce(&mut Pipeline<K>) -> R) -> R {
        call(&mut self.core.lock().pipeline)
    }
}

impl<K: Sink, H: ForwardHandler<K>> Forwarder<K, H> {
    /// Forwards packets until the stop handle is set or [`Sink::batch_ended`] ends the run, then ends all open flows.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Tun`](source::Error::Tun) if a device cannot be read or was removed, or if a TAP device has no
    /// [neighbor table](Self::neighbors) and the other device is a TUN device. All open flows are ended before.
    pub fn run(&mut self, stop: &StopHandle) -> Result<(), source::Error>
    where
        K: Send,
        Pipeline<K>: Send,
    {
        self.core.check()?;
        let core = &*self.core;
        // Ends all directions once one of them ends.
        let end = End { stop: stop.clone(), is_over: StopHandle::new() };
        let indexes = 0..core.queue_count();
        let directions =
            indexes.flat_map(|index| [DeviceSide::Left, DeviceSide::Right].map(|side| (side, index)));
        thread::scope(|scope| {
            for route in directions.filter_map(|(side, index)| core.route(side, index)) {
                let end = &end;
                let Some(channel_len) = self.channel_len else {
                    scope.spawn(move || {
                        let _over = end.over_on_drop();
                        core.note_result(core.forward(route, end));
                    });
                    continue;
                };
                let (to_writer, from_reader) = sync_channel(channel_len);
                let (to_reader, from_writer) = sync_channel(channel_len + 1);
                scope.spawn(move || {
                    let _over = end.over_on_drop();
                    core.note_result(core.read_to_channel(route, end, &to_writer, &from_writer));
                });
                scope.spawn(move || {
                    let _over = end.over_on_drop();
                    core.note_result(core.write_from_channel(route, &from_reader, &to_reader));
                });
            }
        });
        self.core.end_run()
    }
}

/// Conditions that end a run.
#[derive(Clone, Debug)]
struct End {
    /// Handle of the caller.
    stop: StopHandle,
    /// Set once a direction has ended.
    is_over: StopHandle,
}

impl End {
    fn is_reached(&self) -> bool {
        self.stop.is_stopped() || self.is_over.is_stopped()
    }

    /// Returns a value that ends all directions when it is dropped, also by a panic.
    fn over_on_drop(&self) -> OverOnDrop {
        OverOnDrop(self.is_over.clone())
    }
}

struct OverOnDrop(StopHandle);

impl Drop for OverOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl<K: Sink, H> Core<K, H> {
    fn lock(&self) -> MutexGuard<'_, State<K, H>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the queues of a direction, from the device on one side to the other.
    fn route(&self, side: DeviceSide, index: usize) -> Option<Route<'_>> {
        let [left, right] = &self.devices;
        let (left, right) = (left.queues().get(index)?, right.queues().get(index)?);
        Some(match side {
            DeviceSide::Left => Route { from: left, to: right, side },
            DeviceSide::Right => Route { from: right, to: left, side },
        })
    }

    fn queue_count(&self) -> usize {
        let [left, _] = &self.devices;
        left.queues().len()
    }

    /// Checks that packets can be converted between the devices.
    fn check(&self) -> Result<(), source::Error> {
        let state = self.lock();
        let [left, right] = &self.devices;
        let is_mixed = left.config().layer != right.config().layer;
        for (device, table) in self.devices.iter().zip(&state.translation.tables) {
            let is_missing = table.is_none() && device.config().layer == source::TunLayer::Ethernet;
            if is_mixed && is_missing {
                let message = "needs a neighbor table, because the other device is a TUN device".to_owned();
                return Err(source::Error::Tun { device: device.name().to_owned(), message });
            }
        }
        Ok(())
    }

    /// Ends all flows after the last direction has ended, and returns the first error.
    fn end_run(&self) -> Result<(), source::Error> {
        let mut state = self.lock();
        state.pipeline.finish();
        state.error.take().map_or(Ok(()), Err)
    }

    /// Keeps the first error of the directions.
    fn note_result(&self, result: Result<(), source::Error>) {
        if let Err(error) = result {
            self.lock().error.get_or_insert(error);
        }
    }

    /// Adds counts to those of a direction, and resets them.
    fn add(&self, side: DeviceSide, stats: &mut ForwardStats) {
        if let Some(sum) = self.lock().stats.get_mut(side.index()) {
            *sum += std::mem::take(stats);
        }
    }
}

impl<K: Sink, H: ForwardHandler<K>> Core<K, H> {
    /// Forwards packets in one direction on one thread.
    fn forward(&self, route: Route<'_>, end: &End) -> Result<(), source::Error> {
        let (mut packets, mut stats) = (Packets::default(), ForwardStats::default());
        while !end.is_reached() {
            let is_drained = self.read(&mut packets, route, end, &mut stats)?;
            packets.write(route.to, &mut stats)?;
            self.wait(route.from, is_drained)?;
        }
        self.add(route.side, &mut stats);
        Ok(())
    }

    /// Reads packets in one direction and sends them to a channel.
    fn read_to_channel(
        &self,
        route: Route<'_>,
        end: &End,
        to_writer: &SyncSender<Packets>,
        from_writer: &Receiver<Packets>,
    ) -> Result<(), source::Error> {
        let (mut packets, mut stats) = (Packets::default(), ForwardStats::default());
        while !end.is_reached() {
            let is_drained = self.read(&mut packets, route, end, &mut stats)?;
            let count = packets.outgoing_count();
            if count > 0 {
                match to_writer.try_send(packets) {
                    Ok(()) => packets = from_writer.try_recv().unwrap_or_default(),
                    // No packets wait to be read, so that the writer has time.
                    Err(TrySendError::Full(full)) if is_drained => {
                        if to_writer.send(full).is_err() {
                            break;
                        }
                        packets = from_writer.try_recv().unwrap_or_default();
                    }
                    Err(TrySendError::Full(full)) => {
                        stats.overflow_count += count;
                        packets = full;
                    }
                    // The writer has ended with an error.
                    Err(TrySendError::Disconnected(_)) => break,
                }
            }
            self.wait(route.from, is_drained)?;
        }
        self.add(route.side, &mut stats);
        Ok(())
    }

    /// Writes the packets from a channel until it is closed.
    fn write_from_channel(
        &self,
        route: Route<'_>,
        from_reader: &Receiver<Packets>,
        to_reader: &SyncSender<Packets>,
    ) -> Result<(), source::Error> {
        let mut stats = ForwardStats::default();
        let mut result = Ok(());
        while let Ok(mut packets) = from_reader.recv() {
            result = packets.write(route.to, &mut stats);
            if result.is_err() {
                break;
            }
            // A reader that has ended needs no batches.
            let _ = to_reader.try_send(packets);
        }
        self.add(route.side, &mut stats);
        result
    }

    /// Reads and processes the packets that are available. Returns whether all of them were read.
    fn read(
        &self,
        packets: &mut Packets,
        route: Route<'_>,
        end: &End,
        stats: &mut ForwardStats,
    ) -> Result<bool, source::Error> {
        packets.clear();
        let burst = route.from.read(&mut packets.batch, &mut stats.received);
        let mut state = self.lock();
        if let Some(sum) = state.stats.get_mut(route.side.index()) {
            *sum += std::mem::take(stats);
        }
        let burst = burst?;
        let State { pipeline, handler, translation, is_tracking, .. } = &mut *state;
        if burst.packet_count == 0 {
            pipeline.advance(now());
        } else {
            let mut shared = Shared { pipeline, handler, translation, is_tracking: *is_tracking };
            packets.process(route, &mut shared, stats);
        }
        if pipeline.sink_mut().batch_ended().is_break() {
            end.is_over.stop();
        }
        Ok(burst.is_drained)
    }

    fn wait(&self, from: &Queue, is_drained: bool) -> Result<(), source::Error> {
        if is_drained { from.wait(WAIT_TIME) } else { Ok(()) }
    }
}

impl<K: Sink, H> std::fmt::Debug for Forwarder<K, H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Forwarder")
            .field("devices", &self.core.devices)
            .field("channel_len", &self.channel_len)
            .finish_non_exhaustive()
    }
}
