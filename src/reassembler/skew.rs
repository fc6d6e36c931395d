//! Skew between the directions of a capture, measured by answers that were captured before their requests.

use std::time::Duration;

/// Maximum number of directions that are counted.
const DIRECTION_COUNT: usize = 4;

/// Number of late requests from which a skew is reported as constant.
const COUNT_MIN: u64 = 3;

/// Delay up to which packets count as reordered between the queues of one interface.
const REORDERING_MAX: Duration = Duration::from_micros(500);

/// Where the packets of one direction of connections were captured, or who sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CaptureSide {
    /// The interface with this index, if the directions were captured on two.
    Interface(u32),
    /// The sender of frames with this source address, if the directions were captured on one interface.
    Mac([u8; 6]),
    /// The initiators of flows (true) or the responders, if nothing else is known.
    Initiator(bool),
}

/// A direction whose packets were captured later than answers to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LateSide {
    /// The direction.
    pub side: CaptureSide,
    /// Number of requests that were captured after their answer.
    pub count: u64,
    /// Sum of the times from the answer to the request, in nanoseconds.
    pub total_ns: u64,
    /// The longest such time in nanoseconds: the skew without the time that the answer took.
    pub max_ns: u64,
}

/// The directions of a capture that are late, by answers that waited for octets which their sender had acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct SkewStats {
    /// The first directions that were late.
    pub late: [Option<LateSide>; DIRECTION_COUNT],
    /// Number of late requests in other directions.
    pub other_count: u64,
}

impl SkewStats {
    /// Counts a request of `side` that was captured `late_ns` nanoseconds after an answer to it. The reassembler does so for
    /// TCP; a program that matches datagrams can add those.
    pub fn note(&mut self, side: CaptureSide, late_ns: u64) {
        self.add_side(&LateSide { side, count: 1, total_ns: late_ns, max_ns: late_ns });
    }

    /// Adds the counters of another reassembler.
    pub fn add(&mut self, other: &Self) {
        other.late.iter().flatten().for_each(|late| self.add_side(late));
        self.other_count += other.other_count;
    }

    fn add_side(&mut self, added: &LateSide) {
        let is_place = |place: &&mut Option<LateSide>| place.is_none_or(|late| late.side == added.side);
        match self.late.iter_mut().find(is_place) {
            Some(Some(late)) => {
                late.count += added.count;
                late.total_ns = late.total_ns.saturating_add(added.total_ns);
                late.max_ns = late.max_ns.max(added.max_ns);
            }
            Some(place) => *place = Some(*added),
            None => self.other_count += added.count,
        }
    }

    /// Returns the direction that is late by a constant time, and this time: at least three of its requests were captured
    /// after their answers and, with few exceptions, no others were. The time is that without the shortest time in which
    /// an answer was sent.
    #[must_use]
    pub fn constant(&self) -> Option<(CaptureSide, Duration)> {
        let all_count = self.other_count + self.late.iter().flatten().map(|late| late.count).sum::<u64>();
        let late = self.late.iter().flatten().max_by_key(|late| late.count)?;
        let (mean, max) = (late.total_ns / late.count.max(1), Duration::from_nanos(late.max_ns));
        let is_constant = mean >= late.max_ns / 4 && max > REORDERING_MAX;
        let is_usual = late.count >= COUNT_MIN && late.count >= all_count - all_count / 10;
        (is_constant && is_usual).then_some((late.side, max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_is_constant_if_one_direction_is_late() {
        let stats = |late: &[(CaptureSide, u64)]| {
            let mut stats = SkewStats::default();
            late.iter().for_each(|(side, millis)| stats.note(*side, millis * 1_000_000));
            stats
        };
        let [a, b, c] = [0, 1, 2].map(CaptureSide::Interface);
        let millis = Duration::from_millis;
        assert_eq!(stats(&[(a, 20), (a, 19), (a, 12)]).constant(), Some((a, millis(20))));
        assert_eq!(stats(&[(a, 20), (a, 19)]).constant(), None, "too few");
        assert_eq!(stats(&[(a, 20), (b, 19), (a, 20), (a, 20), (a, 19)]).constant(), None, "both are late");
        assert_eq!(stats(&[(a, 40), (a, 1), (a, 1), (a, 1), (a, 1)]).constant(), None, "mostly in order");
        let many: Vec<_> = (0..20).map(|number| (CaptureSide::Interface(number), 20)).collect();
        let mut all = stats(&many);
        assert_eq!((all.constant(), all.other_count), (None, 16));
        all = stats(&[(b, 5), (b, 5)]);
        all.add(&stats(&[(b, 6)]));
        assert_eq!(all.constant(), Some((b, millis(6))));
        all.add(&stats(&[(c, 6)]));
        assert_eq!(all.constant(), None);
    }
}
