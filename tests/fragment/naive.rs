//! A naive model of the documented rules for fragments, with an owner per octet.

use std::collections::HashMap;

use flowgauge::decode::fragment::{DatagramKey, Discard, Fragment, Malformed, OverlapPolicy};

/// The expected outcome of a push, in the terms of `Outcome`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Atomic,
    Held { tags: Vec<u32>, has_first: bool, overlaps: bool },
    Duplicate { tags: Vec<u32> },
    Completed { payload: Vec<u8>, payload_len: u32, tags: Vec<u32>, is_truncated: bool },
    Discarded(Discard),
    AlreadyDiscarded,
    Malformed(Malformed),
}

struct Octet {
    /// The fragment, or the sequence of fragments, that this octet belongs to.
    owner: u32,
    /// `None` if it was not captured.
    value: Option<u8>,
}

#[derive(Default)]
struct Datagram {
    octets: Vec<Option<Octet>>,
    total: Option<usize>,
    /// The first octet that a truncated fragment lacks, even if a later fragment has it.
    truncated_at: Option<usize>,
    tags: Vec<u32>,
    fragment_count: u32,
    deadline: u64,
    is_tombstone: bool,
}

impl Datagram {
    fn owner(&self, at: usize) -> Option<u32> {
        self.octets.get(at)?.as_ref().map(|octet| octet.owner)
    }

    /// Returns the range of adjacent octets with the same owner around an octet.
    fn piece(&self, at: usize) -> (usize, usize) {
        let owner = self.owner(at);
        let start = (0..at).rev().take_while(|before| self.owner(*before) == owner).last().unwrap_or(at);
        let end = (at..).take_while(|after| self.owner(*after) == owner).last().expect("at itself") + 1;
        (start, end)
    }
}

pub(crate) struct Model {
    datagrams: HashMap<DatagramKey, Datagram>,
    policy: OverlapPolicy,
    clock: u64,
    timeout: u64,
    fragment_max: u32,
    next_owner: u32,
    /// Datagrams that ended, with their tags.
    pub(crate) ended: Vec<(DatagramKey, Option<Discard>, Vec<u32>)>,
}

impl Model {
    pub(crate) fn new(policy: OverlapPolicy, timeout: u64, fragment_max: u32) -> Self {
        Self {
            datagrams: HashMap::new(),
            policy,
            clock: 0,
            timeout,
            fragment_max,
            next_owner: 0,
            ended: vec![],
        }
    }

    pub(crate) fn advance(&mut self, now: u64) {
        self.clock = self.clock.max(now);
        let due: Vec<_> =
            self.datagrams.iter().filter(|(_, it)| it.deadline <= self.clock).map(|(key, _)| *key).collect();
        for key in due {
            let datagram = self.datagrams.remove(&key).expect("the datagram exists");
            if !datagram.is_tombstone {
                self.ended.push((key, None, datagram.tags));
            }
        }
    }

    pub(crate) fn finish(&mut self) {
        self.advance(u64::MAX);
    }

    pub(crate) fn push(&mut self, fragment: &Fragment<'_>, tag: u32) -> Expected {
        self.advance(fragment.timestamp.as_nanos());
        if fragment.offset == 0 && !fragment.more_fragments {
            return Expected::Atomic;
        }
        let (start, mut end) =
            (usize::from(fragment.offset), usize::from(fragment.offset) + fragment.len as usize);
        if fragment.len == 0 {
            return Expected::Malformed(Malformed::Empty);
        }
        if end + usize::from(fragment.header_len) > 65_535 {
            return Expected::Malformed(Malformed::BeyondMaximum);
        }
        if fragment.more_fragments && !fragment.len.is_multiple_of(8) {
            // Linux ignores octets beyond the last whole unit of eight; other hosts drop the fragment, as RFC 8200
            // requires.
            let is_linux =
                [OverlapPolicy::Discard, OverlapPolicy::Linux, OverlapPolicy::Linux2].contains(&self.policy);
            end = end / 8 * 8;
            if !is_linux || fragment.key.is_ipv6() || end == start {
                return Expected::Malformed(Malformed::Unaligned);
            }
        }
        let policy = if fragment.key.is_ipv6() { OverlapPolicy::Discard } else { self.policy };
        let deadline = self.clock + self.timeout;
        let datagram = self
            .datagrams
            .entry(fragment.key)
            .or_insert_with(|| Datagram { deadline, ..Datagram::default() });
        if datagram.is_tombstone {
            return Expected::AlreadyDiscarded;
        }
        let bytes = &fragment.bytes[..fragment.bytes.len().min(end - start)];
        let value = |at: usize| bytes.get(at - start).copied();
        let is_last = !fragment.more_fragments;
        let highest = datagram.octets.len();
        let overlaps = (start..end).any(|at| datagram.owner(at).is_some());
        let is_conflict = if is_last {
            end < highest || datagram.total.is_some_and(|total| total != end)
        } else {
            datagram.total.is_some_and(|total| end > total)
        };
        let is_piece = datagram.owner(start).is_some() && datagram.piece(start) == (start, end);
        let is_same = datagram.truncated_at.is_some()
            || (start..end).all(|at| match (datagram.octets.get(at), value(at)) {
                (Some(Some(Octet { value: Some(held), .. })), Some(new)) => *held == new,
                _ => true,
            });
        let is_linux = policy == OverlapPolicy::Linux;
        let is_duplicate = if is_linux {
            overlaps && !is_conflict && datagram.owner(start).is_some() && datagram.piece(start).1 >= end
        } else {
            is_piece && is_same && is_last == (datagram.total == Some(end))
        };
        let discard = if is_conflict && !is_duplicate {
            Some(Discard::EndConflict)
        } else if overlaps && !is_duplicate && policy.discards() {
            Some(Discard::Overlap)
        } else if datagram.fragment_count >= self.fragment_max {
            Some(Discard::TooManyFragments)
        } else {
            None
        };
        if let Some(discard) = discard {
            self.ended.push((fragment.key, Some(discard), std::mem::take(&mut datagram.tags)));
            datagram.is_tombstone = true;
            datagram.deadline = deadline;
            if is_linux && discard != Discard::TooManyFragments {
                self.datagrams.remove(&fragment.key);
            }
            return Expected::Discarded(discard);
        }
        datagram.tags.push(tag);
        datagram.fragment_count += 1;
        if is_last && (!is_duplicate || is_linux) {
            datagram.total = Some(end);
        }
        if is_duplicate {
            return Expected::Duplicate { tags: datagram.tags.clone() };
        }
        let owner = match datagram.owner(highest.wrapping_sub(1)) {
            Some(run) if is_linux && start == highest => run,
            _ => {
                self.next_owner += 1;
                self.next_owner
            }
        };
        let mut wins = vec![];
        while start + wins.len() < end {
            let at = start + wins.len();
            let held = datagram.owner(at).map(|_| datagram.piece(at));
            let is_won = held.is_none_or(|(held_start, held_end)| {
                policy.new_wins((held_start as u32, held_end as u32), (start as u32, end as u32))
            });
            wins.resize(held.map_or(at + 1, |(_, held_end)| held_end.min(end)) - start, is_won);
        }
        if highest < end {
            datagram.octets.resize_with(end, || None);
        }
        for (at, wins) in (start..end).zip(wins) {
            if wins {
                datagram.octets[at] = Some(Octet { owner, value: value(at) });
                if value(at).is_none() {
                    datagram.truncated_at =
                        Some(datagram.truncated_at.map_or(at, |truncated| truncated.min(at)));
                }
            }
        }
        if datagram.total == Some(datagram.octets.len()) && datagram.octets.iter().all(Option::is_some) {
            let datagram = self.datagrams.remove(&fragment.key).expect("the datagram exists");
            let payload: Vec<u8> =
                (datagram.octets.iter().flatten().take(datagram.truncated_at.unwrap_or(usize::MAX)))
                    .map(|octet| octet.value.expect("captured"))
                    .collect();
            let payload_len = datagram.octets.len() as u32;
            let is_truncated = datagram.truncated_at.is_some();
            return Expected::Completed { payload, payload_len, tags: datagram.tags, is_truncated };
        }
        let has_first = datagram.owner(0).is_some();
        Expected::Held { tags: datagram.tags.clone(), has_first, overlaps }
    }
}
