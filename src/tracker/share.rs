//! Share of all flows, for one of several trackers that divide the flows among them.

use std::collections::HashSet;
use std::sync::Arc;

use ahash::RandomState;

use crate::base::{FlowKey, hash_state};

/// The flows that a tracker tracks, because other trackers track the rest.
#[derive(Clone, Debug)]
pub(crate) enum Restriction {
    /// One of several shares.
    Share(Share),
    /// The flows with these keys.
    Keys(Arc<HashSet<FlowKey, RandomState>>),
}

impl Restriction {
    /// Returns whether the flow with a key is tracked.
    #[inline]
    pub(crate) fn takes(&self, key: &FlowKey) -> bool {
        match self {
            Self::Share(share) => share.takes(key),
            Self::Keys(keys) => keys.contains(key),
        }
    }
}

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
        // The seeds differ from those of the flow table, so that the flows of a share are as well distributed in the
        // table as all flows.
        let hasher = hash_state(seeds.map(|seeds| seeds.map(|seed| !seed)));
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
    pub(super) fn part_of(&self, flow_count: u32) -> u32 {
        let (index, owner_count) = (self.index as u32, self.owner_count as u32);
        if index >= owner_count {
            0
        } else {
            flow_count / owner_count + u32::from(index < flow_count % owner_count)
        }
    }
}
