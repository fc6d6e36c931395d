//! The frames of a part that belong to flows which may be open at its beginning.

use super::memory::charge;
use crate::base::{Account, Budget, FlowKey, Frame, FrameBatch, Resources};
use crate::decode::extractor::{Extractor, KeyPolicy, Packet, PacketMarks, Skip, quoted_key};
use crate::decode::link::Unsupported;
use crate::source::{End, Next, PartRange, PartReaders, Source};

/// Maximum length of the frames of a part in octets.
const LEN_MAX: u64 = 64 << 20;

/// Number of octets whose memory is charged at a time.
const CHARGED_LEN: u64 = 1 << 20;

/// Frames of a part in order.
pub(super) struct Gathered {
    pub(super) frames: FrameBatch,
    /// Time in nanoseconds that the packets of the part have reached before each frame.
    pub(super) clocks_ns: Vec<u64>,
    /// Time of the first packet that advances the clock, or an earlier one of a frame before it, in nanoseconds.
    pub(super) first_ns: u64,
    budget: Budget,
    charged_bytes: u64,
}

impl Gathered {
    /// Adds a frame. Returns whether there is memory for it.
    fn push(&mut self, frame: &Frame<'_>, clock_ns: u64) -> bool {
        let len = self.frames.bytes().len() as u64 + frame.data.len() as u64;
        while self.charged_bytes < len {
            if len > LEN_MAX || !charge(&self.budget, CHARGED_LEN) {
                return false;
            }
            self.charged_bytes += CHARGED_LEN;
        }
        self.frames.push(frame);
        self.clocks_ns.push(clock_ns);
        true
    }
}

impl Drop for Gathered {
    fn drop(&mut self) {
        self.budget.release(Account::Queues, self.charged_bytes);
    }
}

/// Collects the frames of a part with packets of flows, or quotes of such packets, whose keys `wants` accepts, and all
/// fragments. Returns `None` if the part cannot be read, or if the frames take too much memory.
pub(super) fn gather(
    (readers, range): (&PartReaders, PartRange),
    (policy, resources): (KeyPolicy, &Resources),
    wants: impl Fn(&FlowKey) -> bool,
) -> Option<Gathered> {
    let extractor = Extractor::new(policy).with_limits(resources.limits);
    let mut gathered = Gathered {
        frames: FrameBatch::new(),
        clocks_ns: Vec::new(),
        first_ns: u64::MAX,
        budget: resources.budget.clone(),
        charged_bytes: 0,
    };
    let mut reader = readers.open(range).ok()?;
    let (mut batch, mut clock_ns) = (FrameBatch::new(), 0);
    loop {
        match reader.next_batch(&mut batch).ok()? {
            Next::End(End::Complete) => return Some(gathered),
            Next::End(End::Stopped) => return None,
            Next::Frames | Next::Idle(_) => {}
        }
        for frame in batch.iter() {
            let mut packet = Packet::EMPTY;
            let extracted = extractor.extract_into(&frame, &mut packet);
            let is_packet = extracted.is_ok();
            // The packets in an aggregate are not examined here.
            let is_aggregate = extracted == Err(Skip::Unsupported(Unsupported::WlanAggregate));
            let is_fragment = is_packet && packet.marks.contains(PacketMarks::FRAGMENT);
            let own_ns = frame.timestamp.as_nanos();
            if clock_ns == 0 {
                gathered.first_ns = gathered.first_ns.min(own_ns);
            }
            let is_wanted = is_aggregate
                || is_packet
                    && (is_fragment
                        || wants(&packet.key)
                        || quoted_key(&packet, &policy).is_some_and(|(key, _)| wants(&key)));
            if is_wanted && !gathered.push(&frame, clock_ns) {
                return None;
            }
            if is_aggregate || is_packet && !is_fragment {
                clock_ns = clock_ns.max(own_ns);
            }
        }
    }
}
