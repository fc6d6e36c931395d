//! Octets over time, in a bounded number of intervals.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum number of intervals from the first to the last one. For a longer time, pairs of them are joined.
const INTERVAL_MAX: u64 = 512;

/// Length of the first intervals in nanoseconds.
const START_NS: u64 = 1_000_000;

/// Octets of `N` kinds of traffic over time, in up to 512 intervals of equal length. Intervals begin at multiples of their
/// length, as those of `flowgauge flows --time-series`.
#[derive(Debug)]
pub struct Timeline<const N: usize = 1> {
    interval_ns: u64,
    /// Octets by number of the interval.
    octets: BTreeMap<u64, [u64; N]>,
    /// Octets of neighboring packets that are not in the map yet.
    pending: Pending,
}

/// Octets of one kind in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    start_ns: u64,
    /// Start of the next interval; zero if nothing is pending.
    end_ns: u64,
    number: u64,
    kind: usize,
    octet_count: u64,
}

impl<const N: usize> Default for Timeline<N> {
    fn default() -> Self {
        Self { interval_ns: START_NS, octets: BTreeMap::new(), pending: Pending::default() }
    }
}

/// A timeline of one kind of traffic in a checkpoint.
#[derive(Serialize, Deserialize)]
struct SavedTimeline {
    interval_ns: u64,
    /// Octets by number of the interval.
    octets: BTreeMap<u64, u64>,
}

impl Serialize for Timeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { interval_ns, octets, pending } = self;
        let mut octets: BTreeMap<_, _> = octets.iter().map(|(number, [octets])| (*number, *octets)).collect();
        if let Some(octets) = octets.get_mut(&pending.number) {
            *octets += pending.octet_count;
        }
        SavedTimeline { interval_ns: *interval_ns, octets }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Timeline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let SavedTimeline { interval_ns, octets } = Deserialize::deserialize(deserializer)?;
        let bounds = octets.first_key_value().zip(octets.last_key_value());
        if interval_ns == 0 || bounds.is_some_and(|((first, _), (last, _))| last - first >= INTERVAL_MAX) {
            return Err(Error::custom("impossible intervals"));
        }
        let octets = octets.into_iter().map(|(number, octets)| (number, [octets])).collect();
        Ok(Self { interval_ns, octets, pending: Pending::default() })
    }
}

impl<const N: usize> Timeline<N> {
    /// Adds octets of a kind of traffic, which is less than `N`, at a time in nanoseconds since 1970.
    #[inline]
    pub fn add(&mut self, time_ns: u64, kind: usize, octet_count: u64) {
        let pending = &mut self.pending;
        if (pending.start_ns..pending.end_ns).contains(&time_ns) && pending.kind == kind {
            pending.octet_count += octet_count;
        } else {
            self.begin(time_ns, kind, octet_count);
        }
    }

    /// Adds the pending octets to the map, and begins with those of another interval or kind.
    fn begin(&mut self, time_ns: u64, kind: usize, octet_count: u64) {
        let Pending { number, kind: pending_kind, octet_count: sum, .. } = std::mem::take(&mut self.pending);
        if let Some(octets) = self.octets.get_mut(&number).and_then(|octets| octets.get_mut(pending_kind)) {
            *octets += sum;
        }
        let mut number = time_ns / self.interval_ns;
        let bounds = self.octets.first_key_value().zip(self.octets.last_key_value());
        let (mut first, mut last) = bounds
            .map_or((number, number), |((first, _), (last, _))| (*first.min(&number), *last.max(&number)));
        while last - first >= INTERVAL_MAX {
            self.interval_ns = self.interval_ns.saturating_mul(2);
            (first, last, number) = (first / 2, last / 2, number / 2);
            let finer = std::mem::take(&mut self.octets);
            finer.into_iter().for_each(|(number, octets)| self.join(number / 2, octets));
        }
        self.octets.entry(number).or_insert([0; N]);
        let start_ns = number.saturating_mul(self.interval_ns);
        let end_ns = start_ns.saturating_add(self.interval_ns);
        self.pending = Pending { start_ns, end_ns, number, kind, octet_count };
    }

    fn join(&mut self, number: u64, octets: [u64; N]) {
        let sums = self.octets.entry(number).or_insert([0; N]);
        sums.iter_mut().zip(octets).for_each(|(sum, octets)| *sum += octets);
    }

    /// Returns the number of all octets.
    #[must_use]
    pub fn octet_count(&self) -> u64 {
        self.octets.values().flatten().sum::<u64>() + self.pending.octet_count
    }

    /// Returns the length of an interval.
    #[must_use]
    pub const fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_ns)
    }

    /// Returns the start of the first interval in nanoseconds, and the octets of all intervals, also of those without traffic.
    #[must_use]
    pub fn intervals(&self) -> (u64, Vec<[u64; N]>) {
        let bounds = self.octets.first_key_value().zip(self.octets.last_key_value());
        let Some(((first, _), (last, _))) = bounds else { return (0, Vec::new()) };
        let octets = |number| {
            let mut octets = self.octets.get(&number).copied().unwrap_or([0; N]);
            if let Some(sum) = octets.get_mut(self.pending.kind).filter(|_| self.pending.number == number) {
                *sum += self.pending.octet_count;
            }
            octets
        };
        (first.saturating_mul(self.interval_ns), (*first..=*last).map(octets).collect())
    }

    /// Returns the octets in this number of equal parts of the time from the first to the last interval, as an octet belongs to
    /// the parts that its interval overlaps.
    #[must_use]
    pub fn parts(&self, count: usize) -> Vec<u64> {
        let (_, intervals) = self.intervals();
        let len = intervals.len();
        let mut parts = vec![0_f64; count];
        for (index, octets) in intervals.iter().enumerate() {
            let octets: u64 = octets.iter().sum();
            let (from, to) = (index as f64 / len as f64, (index + 1) as f64 / len as f64);
            for (number, part) in parts.iter_mut().enumerate() {
                let (begin, end) = (number as f64 / count as f64, (number + 1) as f64 / count as f64);
                let overlap = (to.min(end) - from.max(begin)).max(0.0) / (to - from);
                *part += octets as f64 * overlap;
            }
        }
        parts.into_iter().map(|part| part.round() as u64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_kept_for_any_duration() {
        for step in [1_u64, 1_000_000, 3_600_000_000_000, 86_400_000_000_000] {
            let mut timeline = Timeline::<2>::default();
            for number in 0..10_000 {
                // Some packets are late.
                let time = 1_700_000_000_000_000_000 + (number ^ 5) * step;
                timeline.add(time, (number % 2) as usize, 10);
            }
            let (start, intervals) = timeline.intervals();
            let interval = timeline.interval().as_nanos() as u64;
            assert!(intervals.len() as u64 <= INTERVAL_MAX && start % interval == 0);
            assert!(start <= 1_700_000_000_000_000_000 && 1_700_000_000_000_000_000 - start < interval);
            for kind in 0..2 {
                assert_eq!(intervals.iter().map(|octets| octets[kind]).sum::<u64>(), 50_000);
            }
            for count in [1, 7, 60] {
                let parts = timeline.parts(count);
                let sum: u64 = parts.iter().sum();
                assert!(parts.len() == count && sum.abs_diff(100_000) <= count as u64, "{parts:?}");
            }
        }
    }

    #[test]
    fn a_timeline_continues_from_a_checkpoint() {
        let time = |number: u64| 1_700_000_000_000_000_000 + (number ^ 3) * 700_000;
        let (mut whole, mut divided) = (Timeline::<1>::default(), Timeline::<1>::default());
        for number in 0..2_000 {
            whole.add(time(number), 0, number);
            if number % 97 == 0 {
                divided =
                    serde_json::from_slice(&serde_json::to_vec(&divided).expect("text")).expect("a timeline");
            }
            divided.add(time(number), 0, number);
        }
        assert_eq!((divided.interval(), divided.intervals()), (whole.interval(), whole.intervals()));
        for wrong in [
            r#"{"interval_ns":0,"octets":{"1":1}}"#,
            r#"{"interval_ns":1,"octets":{"0":1,"18446744073709551615":1}}"#,
        ] {
            assert!(serde_json::from_str::<Timeline<1>>(wrong).is_err());
        }
    }
}
