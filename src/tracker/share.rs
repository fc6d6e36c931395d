//! The part of all flows that one of several trackers takes.

use ahash::RandomState;

use super::Tracker;
use super::sink::FlowSink;
use crate::base::FlowKey;
use crate::extractor::{KeyPolicy, Packet, quoted_key};

/// Flows by a keyed hash of their key, which is the same for both directions.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    hasher: RandomState,
    index: usize,
    count: usize,
    /// Shares that have flows, the first ones: no more than there may be flows.
    owner_count: usize,
}

impl Share {
    /// All shares of a whole of at most `flow_count_max` flows.
    pub(crate) fn all(
        count: usize,
        flow_count_max: u32,
        seeds: Option<[u64; 4]>,
    ) -> impl Iterator<Item = Self> {
        let hasher = match seeds {
            // Others than the flow table's, so that a share is as well spread there as the whole.
            Some([a, b, c, d]) => RandomState::with_seeds(!a, !b, !c, !d),
            None => RandomState::new(),
        };
        let owner_count = count.min(flow_count_max as usize).max(1);
        (0..count).map(move |index| Self { hasher: hasher.clone(), index, count, owner_count })
    }

    /// Whether a flow belongs to it.
    #[inline]
    pub(crate) fn takes(&self, key: &FlowKey) -> bool {
        self.owner(key) == self.index
    }

    /// The number of the share to which a flow belongs, from zero.
    #[inline]
    pub(crate) fn owner(&self, key: &FlowKey) -> usize {
        let spread = u128::from(self.hasher.hash_one(key)) * self.owner_count as u128;
        (spread >> 64) as usize
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Its part of so many flows: the parts of all shares come to exactly that.
    fn part_of(&self, flow_count: u32) -> u32 {
        let (index, owner_count) = (self.index as u32, self.owner_count as u32);
        if index >= owner_count {
            0
        } else {
            flow_count / owner_count + u32::from(index < flow_count % owner_count)
        }
    }
}

impl<S> Tracker<S> {
    /// Leaves all flows but a share to others, before the first packet. The cap is shared, too.
    pub(crate) fn restrict(&mut self, share: Share) {
        debug_assert!(self.is_empty());
        // One without a flow gets no packet either.
        let max = share.part_of(self.config.limits.flow_count_max).max(1);
        self.config.limits.flow_count_max = max;
        self.table.set_max(max);
        self.share = Some(share);
    }

    /// Whether a flow is tracked here.
    #[inline(always)]
    pub(crate) fn takes(&self, key: &FlowKey) -> bool {
        self.share.as_ref().is_none_or(|share| share.takes(key))
    }

    /// What the caller configured.
    pub(crate) const fn key_policy(&self) -> &KeyPolicy {
        &self.config.key_policy
    }

    /// The cap on flows.
    pub(crate) const fn flow_count_max(&self) -> u32 {
        self.config.limits.flow_count_max
    }

    /// The seeds, if they are the caller's.
    pub(crate) const fn seeds(&self) -> Option<[u64; 4]> {
        self.config.seeds
    }

    /// Whether there are flows that are tracked elsewhere.
    pub(crate) const fn is_restricted(&self) -> bool {
        self.share.is_some()
    }

    /// The time that packets of all shares have reached.
    pub(crate) fn note_time(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }
}

impl<S: Default> Tracker<S> {
    /// Whether a packet of another share is an ICMP error that quotes a packet of this one.
    pub(crate) fn is_quoted_in(&self, packet: &Packet<'_>) -> bool {
        packet.icmp().is_some()
            && quoted_key(packet, &self.config.key_policy).is_some_and(|(key, _)| self.takes(&key))
    }

    /// Counts such an error.
    pub(crate) fn note_quoted_in<K: FlowSink<S> + ?Sized>(&mut self, packet: &Packet<'_>, sink: &mut K) {
        self.note_time(packet.timestamp.as_nanos());
        self.note_quoted(packet, sink.interest(), sink);
    }
}
