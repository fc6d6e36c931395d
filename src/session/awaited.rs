//! What arrives in a flow whose announcement may be captured later, and the flows that may announce it.

use std::collections::VecDeque;
use std::time::Duration;

use super::datagram_probing::PROBE_DATAGRAM_COUNT_MAX;
use super::octets::Payload;
use crate::base::{FlowKey, Side, Timestamp};
use crate::reassembler::Gap;

/// Time after the first octets of a flow within which its announcement may be captured.
pub const AWAITED_TIME: Duration = Duration::from_millis(50);

/// Maximum number of octets of a flow that are kept until its announcement.
pub const AWAITED_LEN_MAX: usize = 64 << 10;

/// Maximum number of segments or datagrams of a flow that are kept until its announcement.
pub const AWAITED_COUNT_MAX: usize = 128;

/// Maximum number of datagrams of a flow that are kept until one of the other side.
pub(super) const EARLY_COUNT_MAX: usize = PROBE_DATAGRAM_COUNT_MAX as usize;

/// Maximum number of flows that are known to announce others. At the limit, the first one is forgotten.
const ANNOUNCER_COUNT_MAX: usize = 64;

/// What arrives in a flow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrived<'a> {
    Octets { offset: u64, bytes: &'a [u8] },
    Datagram(Payload<'a>),
    Gap(Gap),
    Fin,
}

/// What arrived in a flow, without its octets.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) side: Side,
    timestamp: Timestamp,
    /// Number of octets that are kept.
    len: usize,
    kind: KeptKind,
}

#[derive(Clone, Copy, Debug)]
enum KeptKind {
    Octets { offset: u64 },
    Datagram { len: usize },
    Gap(Gap),
    Fin,
}

/// A flow that waits for its announcement, with what has arrived in order.
#[derive(Debug, Default)]
pub(super) struct Awaiting {
    pub(super) kept: Vec<Kept>,
    bytes: Vec<u8>,
}

impl Awaiting {
    /// Returns the time up to which the announcement may be captured.
    pub(super) fn until(&self) -> Timestamp {
        let first = self.kept.first().map_or(Timestamp::ZERO, |first| first.timestamp);
        Timestamp::from_nanos(first.as_nanos().saturating_add(AWAITED_TIME.as_nanos() as u64))
    }

    /// Keeps what arrived. Returns false if that is too much, or too late.
    pub(super) fn push(&mut self, side: Side, timestamp: Timestamp, arrived: Arrived<'_>) -> bool {
        let (kind, bytes): (_, &[u8]) = match arrived {
            Arrived::Octets { offset, bytes } => (KeptKind::Octets { offset }, bytes),
            Arrived::Datagram(Payload { bytes, len }) => (KeptKind::Datagram { len }, bytes),
            Arrived::Gap(gap) => (KeptKind::Gap(gap), &[]),
            Arrived::Fin => (KeptKind::Fin, &[]),
        };
        let is_late = !self.kept.is_empty() && timestamp > self.until();
        if is_late || self.kept.len() >= AWAITED_COUNT_MAX || self.bytes.len() + bytes.len() > AWAITED_LEN_MAX
        {
            return false;
        }
        self.kept.push(Kept { side, timestamp, len: bytes.len(), kind });
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// Returns what arrived, in order: sender, capture time, and content.
    pub(super) fn arrived(&self) -> impl Iterator<Item = (Side, Timestamp, Arrived<'_>)> {
        let mut rest = self.bytes.as_slice();
        self.kept.iter().filter_map(move |kept| {
            let (bytes, after) = rest.split_at_checked(kept.len)?;
            rest = after;
            let arrived = match kept.kind {
                KeptKind::Octets { offset } => Arrived::Octets { offset, bytes },
                KeptKind::Datagram { len } => Arrived::Datagram(Payload { bytes, len }),
                KeptKind::Gap(gap) => Arrived::Gap(gap),
                KeptKind::Fin => Arrived::Fin,
            };
            Some((kept.side, kept.timestamp, arrived))
        })
    }

    pub(super) fn allocated_len(&self) -> usize {
        size_of::<Self>() + self.kept.capacity() * size_of::<Kept>() + self.bytes.capacity()
    }
}

/// The flows whose parsers announce streams, in the order in which they began. They are not removed at their end: a
/// stream between their hosts waits in vain then.
#[derive(Debug, Default)]
pub(super) struct Announcers(VecDeque<FlowKey>);

impl Announcers {
    /// Adds a flow.
    #[cold]
    pub(super) fn insert(&mut self, key: &FlowKey) {
        if self.may_announce(key) {
            return;
        }
        if self.0.len() >= ANNOUNCER_COUNT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(*key);
    }

    /// Returns whether one of the flows may announce a flow: it has the same hosts.
    pub(super) fn may_announce(&self, key: &FlowKey) -> bool {
        let hosts = |key: &FlowKey| [Side::A, Side::B].map(|side| key.address(side));
        let scope = |key: &FlowKey| (key.protocol(), key.scope(), key.vni(), key.vlan_ids());
        let [a, b] = hosts(key);
        self.0
            .iter()
            .any(|known| (hosts(known) == [a, b] || hosts(known) == [b, a]) && scope(known) == scope(key))
    }
}
