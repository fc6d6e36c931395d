//! Naive model of the way in which hosts resolve overlapping segments, octet by octet, for comparison with the
//! reassembler.

use flowgauge::reassembler::OverlapPolicy;

/// Chunk of a test: its begin, its end, and the octet that fills it.
pub(crate) type Chunk = (usize, usize, u8);

/// Placeholder for octets that did not arrive.
pub(crate) const HOLE: u8 = b'.';

/// Stream as an array of octets, each with the index of the run of segments that owns it.
pub(crate) struct Model {
    policy: OverlapPolicy,
    octets: Vec<Option<(u8, usize)>>,
    /// Begin and end of each run. Only Linux joins segments; for other policies a run is one segment.
    runs: Vec<(u64, u64)>,
    delivered: usize,
}

impl Model {
    pub(crate) fn new(policy: OverlapPolicy, len: usize) -> Self {
        Self { policy, octets: vec![None; len], runs: Vec::new(), delivered: 0 }
    }

    /// Returns true if the result of Linux depends on the shape of its tree: one run ends where the chunk begins, and
    /// another run contains this position.
    pub(crate) fn is_open(&self, (start, _, _): Chunk) -> bool {
        let ends = |run: &(u64, u64)| run.1 == start as u64;
        let contains = |run: &(u64, u64)| run.0 <= start as u64 && run.1 > start as u64;
        start > self.delivered && self.runs.iter().any(ends) && self.runs.iter().any(contains)
    }

    pub(crate) fn push(&mut self, (start, end, fill): Chunk) {
        let mut range = (start as u64, end as u64);
        let mut run = self.runs.len();
        // The buffered octet directly before the chunk, if it was not delivered.
        let before = start.checked_sub(1).filter(|before| *before >= self.delivered);
        let joined = before.and_then(|before| self.octets[before]).map(|(_, run)| run);
        let joined =
            joined.filter(|run| self.policy == OverlapPolicy::Linux && self.runs[*run].1 == start as u64);
        let is_covered = self.octets[start].is_some_and(|(_, held)| self.runs[held].0 <= range.0);
        if let Some(left) = joined.filter(|_| !is_covered) {
            run = left;
            range.0 = self.runs[left].0;
        }
        for position in start.max(self.delivered)..end {
            let is_taken = match self.octets[position] {
                None => true,
                Some((_, held)) => self.policy.new_wins(self.runs[held], range),
            };
            if is_taken {
                self.octets[position] = Some((fill, run));
            }
        }
        if run < self.runs.len() {
            self.runs[run] = range;
        } else {
            self.runs.push(range);
        }
        while self.octets.get(self.delivered).is_some_and(Option::is_some) {
            self.delivered += 1;
        }
    }

    /// Returns the octets in order, with holes.
    pub(crate) fn octets(&self) -> Vec<u8> {
        self.octets.iter().map(|octet| octet.map_or(HOLE, |(fill, _)| fill)).collect()
    }
}
