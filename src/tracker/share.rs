//! Share of all flows, for one of several trackers that divide the flows among them.

use ahash::RandomState;

use super::Tracker;
use super::observer::Observer;
use crate::base::FlowKey;
use crate::base::Packet;
use crate::decode::extractor::quoted_key;

/// One of several shares of all flows. A keyed hash of the flow key, which is the same for both directions, assigns
/// each flow to a share.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    hasher: RandomState,
    index: usize,
    count: usize,
    /// Number of shares that have flows: the first ones, and at most as many as the maximum number of flows.
    owner_count: usize,
}

impl Share {
    /// Returns `count` shares, to which at most `flow_count_max` flows in total are assigned.
    pub(crate) fn all(
        count: usize,
        flow_count_max: u32,
        seeds: Option<[u64; 4]>,
    ) -> impl Iterator<Item = Self> {
        let hasher = match seeds {
            // The seeds differ from those of the flow table, so that the flows of a share are as well distributed in
            // the table as all flows.
            Some([a, b, c, d]) => RandomState::with_seeds(!a, !b, !c, !d),
            None => RandomState::new(),
        };
        let owner_count = count.min(flow_count_max as usize).max(1);
        (0..count).map(move |index| Self { hasher: hasher.clone(), index, count, owner_count })
    }

    /// Returns whether the flow with a key belongs to this share.
    #[inline]
    pub(crate) fn takes(&self, key: &FlowKey) -> bool {
        self.owner(key) == self.index
    }

    /// Returns the index of the share to which the flow with a key belongs.
    #[inline]
    pub(crate) fn owner(&self, key: &FlowKey) -> usize {
        let spread = u128::from(self.hasher.hash_one(key)) * self.owner_count as u128;
        (spread >> 64) as usize
    }

    /// Returns the number of shares into which the flows are divided.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Returns this share's part of `flow_count`, a maximum number of flows. The parts of all shares add up to exactly
    /// `flow_count`.
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
    /// Restricts the tracker to a share of the flows, before the first packet. The limit on the number of flows is
    /// divided among the shares, too.
    pub(crate) fn restrict(&mut self, share: Share) {
        debug_assert!(self.is_empty());
        // A share without flows receives no packets either.
        let max = share.part_of(self.resources.limits.flow_count_max).max(1);
        self.resources.limits.flow_count_max = max;
        self.table.set_max(max);
        self.share = Some(share);
    }

    /// Returns whether this tracker tracks the flow with a key.
    #[inline(always)]
    pub(crate) fn takes(&self, key: &FlowKey) -> bool {
        self.share.as_ref().is_none_or(|share| share.takes(key))
    }

    /// Returns whether other trackers track some of the flows.
    pub(crate) const fn is_restricted(&self) -> bool {
        self.share.is_some()
    }

    /// Moves the tracker's clock forward to the time that packets of all flows have reached, including those that are
    /// not tracked here.
    pub(crate) fn note_time(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }
}

impl<S: Default> Tracker<S> {
    /// Returns the key of the flow of this share that an ICMP error quotes; `None` for any other packet.
    pub(crate) fn quoted_key(&self, packet: &Packet<'_>) -> Option<FlowKey> {
        packet.icmp()?;
        quoted_key(packet, &self.config.key_policy).map(|(key, _)| key).filter(|key| self.takes(key))
    }

    /// Counts an ICMP error that is not tracked here on the flow of this share with the packet that it quotes.
    pub(crate) fn note_quoted_in<K: Observer<S> + ?Sized>(&mut self, packet: &Packet<'_>, observer: &mut K) {
        self.note_time(packet.timestamp.as_nanos());
        self.note_quoted(packet, observer.interest(), observer);
    }
}
