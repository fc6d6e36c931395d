//! Forwarding on the tokio runtime (feature `tun-async`).

use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

use super::packets::Packets;
use super::route::Route;
use super::{Core, DeviceSide, End, ForwardHandler, ForwardStats, Forwarder, WAIT_TIME};
use crate::base::StopHandle;
use crate::pipeline::{Pipeline, Sink};
use crate::source;
use crate::source::tun::Queue;

impl<K: Sink + 'static, H: ForwardHandler<K> + 'static> Forwarder<K, H>
where
    Pipeline<K>: Send,
{
    /// Forwards packets as [`run`](Self::run) does, with a task for each thread. Must be awaited on a tokio runtime with
    /// input, output and time enabled. The tasks are aborted if the future is dropped; flows that are open then end in
    /// the next run.
    ///
    /// # Errors
    ///
    /// Same as [`run`](Self::run).
    pub async fn run_async(&mut self, stop: &StopHandle) -> Result<(), source::Error> {
        self.core.check()?;
        let end = End { stop: stop.clone(), is_over: StopHandle::new() };
        let mut tasks = JoinSet::new();
        let queue_count = self.core.queue_count();
        let directions = [DeviceSide::Left, DeviceSide::Right];
        for (side, index) in directions.into_iter().flat_map(|side| (0..queue_count).map(move |i| (side, i)))
        {
            let direction = Direction { core: Arc::clone(&self.core), side, index, end: end.clone() };
            let Some(channel_len) = self.channel_len else {
                tasks.spawn(direction.forward());
                continue;
            };
            let (to_writer, from_reader) = channel(channel_len);
            let (to_reader, from_writer) = channel(channel_len + 1);
            tasks.spawn(direction.clone().read_to_channel(to_writer, from_writer));
            tasks.spawn(direction.write_from_channel(from_reader, to_reader));
        }
        while let Some(result) = tasks.join_next().await {
            if let Err(error) = result
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        self.core.end_run()
    }
}

/// One direction of a pair of queues, for a task that owns what it uses.
struct Direction<K: Sink, H> {
    core: Arc<Core<K, H>>,
    side: DeviceSide,
    index: usize,
    end: End,
}

impl<K: Sink, H> Clone for Direction<K, H> {
    fn clone(&self) -> Self {
        let Self { core, side, index, end } = self;
        Self { core: Arc::clone(core), side: *side, index: *index, end: end.clone() }
    }
}

/// Queue that a task reads, and its readiness.
struct Inlet {
    fd: AsyncFd<Arc<Queue>>,
    is_drained: bool,
}

impl Inlet {
    #[allow(
        deprecated,
        reason = "the replacement is an unsafe function; the queue keeps its descriptor open"
    )]
    fn new(queue: &Arc<Queue>) -> Result<Self, source::Error> {
        match AsyncFd::with_interest(Arc::clone(queue), Interest::READABLE) {
            Ok(fd) => Ok(Self { fd, is_drained: true }),
            Err(error) => Err(queue.read_error(&error)),
        }
    }
}

impl<K: Sink, H: ForwardHandler<K>> Direction<K, H> {
    async fn forward(self) {
        let _over = self.end.over_on_drop();
        let result = self.forward_packets().await;
        self.core.note_result(result);
    }

    async fn forward_packets(&self) -> Result<(), source::Error> {
        let Some(route) = self.core.route(self.side, self.index) else { return Ok(()) };
        let mut inlet = Inlet::new(route.from)?;
        let (mut packets, mut stats) = (Packets::default(), ForwardStats::default());
        while !self.end.is_reached() {
            self.read(&mut inlet, &mut packets, route, &mut stats).await?;
            packets.write(route.to, &mut stats)?;
        }
        self.core.add(self.side, &mut stats);
        Ok(())
    }

    async fn read_to_channel(self, to_writer: Sender<Packets>, from_writer: Receiver<Packets>) {
        let _over = self.end.over_on_drop();
        let result = self.read_packets(&to_writer, from_writer).await;
        self.core.note_result(result);
    }

    async fn read_packets(
        &self,
        to_writer: &Sender<Packets>,
        mut from_writer: Receiver<Packets>,
    ) -> Result<(), source::Error> {
        let Some(route) = self.core.route(self.side, self.index) else { return Ok(()) };
        let mut inlet = Inlet::new(route.from)?;
        let (mut packets, mut stats) = (Packets::default(), ForwardStats::default());
        while !self.end.is_reached() {
            self.read(&mut inlet, &mut packets, route, &mut stats).await?;
            let count = packets.outgoing_count();
            if count > 0 {
                match to_writer.try_send(packets) {
                    Ok(()) => packets = from_writer.try_recv().unwrap_or_default(),
                    // No packets wait to be read, so that the writer has time.
                    Err(TrySendError::Full(full)) if inlet.is_drained => {
                        if to_writer.send(full).await.is_err() {
                            break;
                        }
                        packets = from_writer.try_recv().unwrap_or_default();
                    }
                    Err(TrySendError::Full(full)) => {
                        stats.overflow_count += count;
                        packets = full;
                    }
                    // The writer has ended with an error.
                    Err(TrySendError::Closed(_)) => break,
                }
            }
        }
        self.core.add(self.side, &mut stats);
        Ok(())
    }

    async fn write_from_channel(self, mut from_reader: Receiver<Packets>, to_reader: Sender<Packets>) {
        let _over = self.end.over_on_drop();
        let Some(route) = self.core.route(self.side, self.index) else { return };
        let mut stats = ForwardStats::default();
        let mut result = Ok(());
        while let Some(mut packets) = from_reader.recv().await {
            result = packets.write(route.to, &mut stats);
            if result.is_err() {
                break;
            }
            // A reader that has ended needs no batches.
            let _ = to_reader.try_send(packets);
        }
        self.core.add(self.side, &mut stats);
        self.core.note_result(result);
    }

    /// Waits until packets are available, but for a limited time, then reads and processes them.
    async fn read(
        &self,
        inlet: &mut Inlet,
        packets: &mut Packets,
        route: Route<'_>,
        stats: &mut ForwardStats,
    ) -> Result<(), source::Error> {
        let mut guard = None;
        if inlet.is_drained {
            // An error of the device is reported by the read.
            guard = timeout(WAIT_TIME, inlet.fd.readable()).await.ok().and_then(Result::ok);
        } else {
            // Other tasks run between batches.
            yield_now().await;
        }
        inlet.is_drained = self.core.read(packets, route, &self.end, stats)?;
        if let Some(mut guard) = guard.filter(|_| inlet.is_drained) {
            guard.clear_ready();
        }
        Ok(())
    }
}
