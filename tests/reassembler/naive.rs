//! What hosts do with overlapping segments, octet by octet: the model that the reassembler is compared with.

use flowgauge::reassembler::OverlapPolicy;

/// A chunk of a test: where it begins and ends, and the octet that it is full of.
pub(crate) type Chunk = (usize, usize, u8);

/// Octets that never came.
pub(crate) const HOLE: u8 = b'.';

/// A stream as an array of octets, each owned by the row of segments that it belongs to.
pub(crate) struct Model {
    policy: OverlapPolicy,
    octets: Vec<Option<(u8, usize)>>,
    /// Where each row begins and ends. Only Linux joins segments; for others a row is one segment.
    rows: Vec<(u64, u64)>,
    delivered: usize,
}

impl Model {
    pub(crate) fn new(policy: OverlapPolicy, len: usize) -> Self {
        Self { policy, octets: vec![None; len], rows: Vec::new(), delivered: 0 }
    }

    /// Whether Linux would choose by the shape of its tree: one row ends where the chunk begins, and another goes on there.
    pub(crate) fn is_open(&self, (start, _, _): Chunk) -> bool {
        let ends = |row: &(u64, u64)| row.1 == start as u64;
        let goes_on = |row: &(u64, u64)| row.0 <= start as u64 && row.1 > start as u64;
        start > self.delivered && self.rows.iter().any(ends) && self.rows.iter().any(goes_on)
    }

    pub(crate) fn push(&mut self, (start, end, fill): Chunk) {
        let mut range = (start as u64, end as u64);
        let mut row = self.rows.len();
        // What is held right in front, and was not delivered.
        let before = start.checked_sub(1).filter(|before| *before >= self.delivered);
        let joined = before.and_then(|before| self.octets[before]).map(|(_, row)| row);
        let joined =
            joined.filter(|row| self.policy == OverlapPolicy::Linux && self.rows[*row].1 == start as u64);
        let is_covered = self.octets[start].is_some_and(|(_, held)| self.rows[held].0 <= range.0);
        if let Some(left) = joined.filter(|_| !is_covered) {
            row = left;
            range.0 = self.rows[left].0;
        }
        for position in start.max(self.delivered)..end {
            let is_taken = match self.octets[position] {
                None => true,
                Some((_, held)) => self.policy.new_wins(self.rows[held], range),
            };
            if is_taken {
                self.octets[position] = Some((fill, row));
            }
        }
        if row < self.rows.len() {
            self.rows[row] = range;
        } else {
            self.rows.push(range);
        }
        while self.octets.get(self.delivered).is_some_and(Option::is_some) {
            self.delivered += 1;
        }
    }

    /// The octets in order, with holes.
    pub(crate) fn octets(&self) -> Vec<u8> {
        self.octets.iter().map(|octet| octet.map_or(HOLE, |(fill, _)| fill)).collect()
    }
}
