//! Packets between reading and writing: the batch that was read, and the packets to write.

use std::io;
use std::ops::Range;

use super::handler::{ForwardAction, ForwardHandler};
use super::route::Route;
use super::stats::ForwardStats;
use super::translation::{Translated, Translation};
use crate::base::{FrameBatch, Timestamp};
use crate::pipeline::{Pipeline, Sink};
use crate::source;
use crate::source::tun::{HEADROOM, Queue, SuperPacket, complete_checksum};
use crate::wire::virtio_net::{HEADER_LEN, VirtioNet};

/// A packet to write: its positions, without the virtio-net header in front of it.
#[derive(Clone, Debug)]
struct Outgoing {
    range: Range<usize>,
    /// True if the packet is one of the rewritten packets, false if it is in the batch.
    is_rewritten: bool,
    is_split: bool,
}

/// A batch of packets, and those of them that are to be written. Reused, so that it allocates only until it has held its
/// largest content.
#[derive(Debug, Default)]
pub(super) struct Packets {
    pub(super) batch: FrameBatch,
    outgoing: Vec<Outgoing>,
    /// Packets after a rewrite, each behind [`HEADROOM`] octets.
    rewritten: Vec<u8>,
    segment: Vec<u8>,
}

/// Parts of a forwarder that all directions share.
pub(super) struct Shared<'a, K: Sink, H> {
    pub(super) pipeline: &'a mut Pipeline<K>,
    pub(super) handler: &'a mut H,
    pub(super) translation: &'a mut Translation,
    pub(super) is_tracking: bool,
}

impl Packets {
    pub(super) fn clear(&mut self) {
        self.batch.clear();
        self.outgoing.clear();
        self.rewritten.clear();
    }

    /// Returns the number of packets to write; a super-packet that is to be split is one.
    pub(super) fn outgoing_count(&self) -> u64 {
        self.outgoing.len() as u64
    }

    /// Tracks the packets of the batch, requests the decision on each of them, and prepares those to write.
    pub(super) fn process<K: Sink, H: ForwardHandler<K>>(
        &mut self,
        route: Route<'_>,
        shared: &mut Shared<'_, K, H>,
        stats: &mut ForwardStats,
    ) {
        let Shared { pipeline, handler, translation, is_tracking } = shared;
        let Self { batch, outgoing, rewritten, segment } = self;
        for place in 0..batch.len() {
            let Some(frame) = batch.get(place) else { continue };
            let now = frame.timestamp;
            if *is_tracking {
                pipeline.frame(&frame);
            }
            if translation.is_neighbor_message(&frame, route) {
                stats.neighbor_count += 1;
                continue;
            }
            let range = batch.range(place);
            match handler.packet(pipeline.sink_mut(), &frame, route.side) {
                ForwardAction::Drop => stats.dropped_count += 1,
                ForwardAction::Pass => {
                    let mut prepare = Prepare { route, translation, stats, now };
                    outgoing.extend(prepare.packet(batch.bytes_mut(), range, false));
                }
                ForwardAction::Rewrite => {
                    let sink = pipeline.sink_mut();
                    let mut prepare = Prepare { route, translation, stats, now };
                    let is_split = split(batch.bytes_mut(), range, route.from, segment, |segment| {
                        handler.rewrite(sink, segment, route.side);
                        if segment.is_empty() {
                            prepare.stats.dropped_count += 1;
                            return;
                        }
                        let start = rewritten.len() + HEADROOM;
                        rewritten.resize(start, 0);
                        rewritten.extend_from_slice(segment);
                        outgoing.extend(prepare.packet(rewritten, start..start + segment.len(), true));
                    });
                    stats.split_count += u64::from(is_split);
                }
            }
        }
    }

    /// Writes the packets. Packets that the device does not accept are counted.
    pub(super) fn write(&mut self, to: &Queue, stats: &mut ForwardStats) -> Result<(), source::Error> {
        for Outgoing { range, is_rewritten, is_split } in &self.outgoing {
            let block = if *is_rewritten { &mut *self.rewritten } else { self.batch.bytes_mut() };
            if *is_split {
                let mut result = Ok(());
                split(block, range.clone(), to, &mut self.segment, |segment| {
                    result =
                        std::mem::replace(&mut result, Ok(())).and_then(|()| written(to, segment, stats));
                });
                result?;
                stats.split_count += 1;
            } else {
                let header_len = if to.has_header() { HEADER_LEN } else { 0 };
                let octets = block.get(range.start - header_len..range.end).unwrap_or_default();
                written(to, octets, stats)?;
            }
        }
        Ok(())
    }
}

/// Writes a packet and counts the result. An error means that the device was removed.
fn written(to: &Queue, octets: &[u8], stats: &mut ForwardStats) -> Result<(), source::Error> {
    match to.write(octets) {
        Ok(()) => stats.sent_count += 1,
        Err(error) if Queue::is_gone(&error) => return Err(to.gone()),
        Err(error) => {
            debug_assert!(error.kind() != io::ErrorKind::Interrupted);
            stats.rejected_count += 1;
        }
    }
    Ok(())
}

/// Calls `each` with the segments of the packet at `range` of `block`, which have complete checksums. Returns whether it
/// is a super-packet.
fn split(
    block: &mut [u8],
    range: Range<usize>,
    queue: &Queue,
    segment: &mut Vec<u8>,
    mut each: impl FnMut(&mut Vec<u8>),
) -> bool {
    let header = block.get(range.start - HEADER_LEN..).and_then(VirtioNet::read);
    let Some(packet) = block.get_mut(range) else { return false };
    let super_packet = header.and_then(|header| SuperPacket::new(packet, &header, queue.is_ethernet()));
    if let Some(super_packet) = super_packet {
        let each = |segment: &mut Vec<u8>| {
            each(segment);
            Ok::<_, std::convert::Infallible>(())
        };
        super_packet.split(packet, segment, each);
        return true;
    }
    if let Some(positions) = header.and_then(|header| header.checksum) {
        complete_checksum(packet, positions);
    }
    segment.clear();
    segment.extend_from_slice(packet);
    each(segment);
    false
}

/// Prepares packets for the other device.
struct Prepare<'a> {
    route: Route<'a>,
    translation: &'a mut Translation,
    stats: &'a mut ForwardStats,
    now: Timestamp,
}

impl Prepare<'_> {
    /// Converts the packet at `range` of `block` for the other device: adds or removes the Ethernet header, and completes
    /// the checksum or notes a split if the device has no offload. Returns `None` if the packet is dropped, which is
    /// counted.
    fn packet(&mut self, block: &mut [u8], range: Range<usize>, is_rewritten: bool) -> Option<Outgoing> {
        let Self { route, translation, stats, now } = self;
        let range = match translation.translate(block, range, *route, *now) {
            Translated::Packet(range) => range,
            Translated::Unresolved => {
                stats.unresolved_count += 1;
                return None;
            }
            Translated::NotIp => {
                stats.untranslated_count += 1;
                return None;
            }
        };
        let mut is_split = false;
        if !route.to.has_header() {
            let header = block.get(range.start - HEADER_LEN..).and_then(VirtioNet::read);
            let packet = block.get_mut(range.clone())?;
            if let Some(header) = header {
                is_split = SuperPacket::new(packet, &header, route.to.is_ethernet()).is_some();
                if let Some(positions) = header.checksum.filter(|_| !is_split) {
                    complete_checksum(packet, positions);
                }
            }
        }
        Some(Outgoing { range, is_rewritten, is_split })
    }
}
