//! Bytes of an incomplete datagram, in pages that are allocated only where bytes are present.
//!
//! A page keeps two bits per unit of eight octets, the unit of the fragment offset field: whether the unit is
//! filled, and whether a piece begins there. A piece ends at the start of the next one or at a hole. These
//! bits replace the list of holes of RFC 815: lookups, fills and comparisons work on 128 units at a time.

/// Length of one unit of the fragment offset field, in octets.
pub(super) const UNIT_LEN: usize = 8;

/// Number of units of eight octets per page.
const PAGE_UNITS: u32 = 128;

/// Length of a page, in octets.
const PAGE_LEN: usize = PAGE_UNITS as usize * UNIT_LEN;

/// Number of pages of the longest possible datagram.
const PAGE_COUNT: usize = 65_536 / PAGE_LEN;

/// Number of units of eight octets of the longest possible datagram.
const UNIT_COUNT: u32 = PAGE_COUNT as u32 * PAGE_UNITS;

#[derive(Debug)]
pub(super) struct Page {
    filled: u128,
    starts: u128,
    bytes: [u8; PAGE_LEN],
}

/// Memory that a page uses, in bytes, including the allocator's overhead.
pub(super) const PAGE_COST: u64 = (size_of::<Page>() + 16) as u64;

impl Page {
    fn new() -> Box<Self> {
        Box::new(Self { filled: 0, starts: 0, bytes: [0; PAGE_LEN] })
    }
}

/// Pages that belong to no datagram: kept for the next datagram, or set aside for the current fragment.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "pages change hands without being copied")]
pub(super) struct SparePages(Vec<Box<Page>>);

impl SparePages {
    /// Maximum number of pages that are kept for later datagrams; they use 68 KiB of memory.
    const MAX: usize = 64;

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Releases the memory of one spare page. Returns whether there was a spare page.
    pub(super) fn drop_one(&mut self) -> bool {
        self.0.pop().is_some()
    }

    pub(super) fn add_new(&mut self) {
        self.0.push(Page::new());
    }

    /// Moves a page from `other` to this list. Returns whether `other` had a page.
    pub(super) fn add_from(&mut self, other: &mut Self) -> bool {
        other.0.pop().map(|page| self.0.push(page)).is_some()
    }
}

/// Returns a mask with the bits from `from` to `to` (exclusive) set, one bit per unit of a page.
const fn mask(from: u32, to: u32) -> u128 {
    if from >= to { 0 } else { (u128::MAX >> (PAGE_UNITS - (to - from))) << from }
}

/// Splits the range of units from `from` to `to` (exclusive) at the page boundaries. Yields, for each page,
/// its index, the index of the first unit within the page, and the index after the last unit within the page.
fn parts(from: u32, to: u32) -> impl Iterator<Item = (usize, u32, u32)> {
    let mut at = from;
    std::iter::from_fn(move || {
        if at >= to {
            return None;
        }
        let page = at / PAGE_UNITS;
        let begin = page * PAGE_UNITS;
        let end = to.min(begin + PAGE_UNITS);
        let part = (page as usize, at - begin, end - begin);
        at = end;
        Some(part)
    })
}

/// Pages of one datagram. Unless noted otherwise, positions are indexes of units of eight octets, below 8192,
/// and ranges exclude their end.
#[derive(Debug)]
pub(super) struct Pages {
    pages: [Option<Box<Page>>; PAGE_COUNT],
    /// Bit set of the indexes of the pages that are present.
    present: u64,
}

impl Pages {
    pub(super) const fn new() -> Self {
        Self { pages: [const { None }; PAGE_COUNT], present: 0 }
    }

    pub(super) const fn page_count(&self) -> u32 {
        self.present.count_ones()
    }

    fn page(&self, index: usize) -> Option<&Page> {
        self.pages.get(index)?.as_deref()
    }

    fn page_mut(&mut self, index: usize) -> Option<&mut Page> {
        self.pages.get_mut(index)?.as_deref_mut()
    }

    /// Returns the number of pages in a range of units that are not present.
    pub(super) fn missing_count(&self, from: u32, to: u32) -> usize {
        parts(from, to).filter(|(page, ..)| self.page(*page).is_none()).count()
    }

    /// Moves pages from `from_pages` to the positions in a range of units where pages are missing.
    /// `from_pages` must contain enough pages.
    pub(super) fn add_missing(&mut self, from: u32, to: u32, from_pages: &mut SparePages) {
        for (index, ..) in parts(from, to) {
            if let Some(vacant @ None) = self.pages.get_mut(index) {
                let Some(mut page) = from_pages.0.pop() else { return };
                (page.filled, page.starts) = (0, 0);
                *vacant = Some(page);
                self.present |= 1 << index;
            }
        }
    }

    /// Removes all pages of the datagram. The pages are moved to `spare` until it is full, and the memory of
    /// the remaining pages is released. Returns the number of pages that were released.
    pub(super) fn clear(&mut self, spare: &mut SparePages) -> usize {
        let mut dropped_count = 0;
        while self.present != 0 {
            let index = self.present.trailing_zeros();
            self.present &= self.present - 1;
            let Some(page) = self.pages.get_mut(index as usize).and_then(Option::take) else { continue };
            if spare.0.len() < SparePages::MAX {
                spare.0.push(page);
            } else {
                dropped_count += 1;
            }
        }
        dropped_count
    }

    fn bits(&self, unit: u32) -> (u128, u128, u32) {
        let bit = unit % PAGE_UNITS;
        match self.page((unit / PAGE_UNITS) as usize) {
            Some(page) => (page.filled, page.starts, bit),
            None => (0, 0, bit),
        }
    }

    pub(super) fn is_filled(&self, unit: u32) -> bool {
        let (filled, _, bit) = self.bits(unit);
        filled >> bit & 1 != 0
    }

    /// Returns the index of the first filled unit in a range, or the end of the range if no unit in it is
    /// filled.
    pub(super) fn next_filled(&self, from: u32, to: u32) -> u32 {
        for (index, first, end) in parts(from, to) {
            let filled = self.page(index).map_or(0, |page| page.filled) & mask(first, end);
            if filled != 0 {
                return index as u32 * PAGE_UNITS + filled.trailing_zeros();
            }
        }
        to
    }

    /// Returns the index of the first unit of the piece that contains a filled unit.
    pub(super) fn piece_start(&self, unit: u32) -> u32 {
        let (_, starts, bit) = self.bits(unit);
        let mut starts = starts & mask(0, bit + 1);
        let mut index = (unit / PAGE_UNITS) as usize;
        while starts == 0 && index > 0 {
            index -= 1;
            starts = self.page(index).map_or(0, |page| page.starts);
        }
        debug_assert_ne!(starts, 0, "a filled unit lies in a piece");
        index as u32 * PAGE_UNITS + starts.checked_ilog2().unwrap_or(0)
    }

    /// Returns the index of the unit after the piece that contains a filled unit: the start of the next
    /// piece, or a hole.
    pub(super) fn piece_end(&self, unit: u32) -> u32 {
        for (index, first, end) in parts(unit + 1, UNIT_COUNT) {
            let (filled, starts) = self.page(index).map_or((0, 0), |page| (page.filled, page.starts));
            let edges = (starts | !filled) & mask(first, end);
            if edges != 0 {
                return index as u32 * PAGE_UNITS + edges.trailing_zeros();
            }
        }
        UNIT_COUNT
    }

    /// Marks all units of a range as filled and makes the range one piece; its pages must be present. Returns
    /// the number of units in the range that were not filled before.
    pub(super) fn fill(&mut self, from: u32, to: u32) -> u32 {
        let mut new_count = 0;
        for (index, first, end) in parts(from, to) {
            let Some(page) = self.page_mut(index) else { continue };
            let mask = mask(first, end);
            new_count += (mask & !page.filled).count_ones();
            page.filled |= mask;
            page.starts &= !mask;
        }
        self.set_start(from);
        new_count
    }

    /// Marks a unit as the start of a piece, a run of filled units.
    pub(super) fn set_start(&mut self, unit: u32) {
        if let Some(page) = self.page_mut((unit / PAGE_UNITS) as usize) {
            page.starts |= 1 << (unit % PAGE_UNITS);
        }
    }

    /// Merges the piece that starts at a unit with the piece before it.
    pub(super) fn clear_start(&mut self, unit: u32) {
        if let Some(page) = self.page_mut((unit / PAGE_UNITS) as usize) {
            page.starts &= !(1 << (unit % PAGE_UNITS));
        }
    }

    /// Writes bytes at an offset in octets from the start of the datagram, where pages are present.
    pub(super) fn write(&mut self, start: u32, mut bytes: &[u8]) {
        let mut at = start as usize;
        while !bytes.is_empty() {
            let within = at % PAGE_LEN;
            let (here, rest) = bytes.split_at(bytes.len().min(PAGE_LEN - within));
            if let Some(target) =
                self.page_mut(at / PAGE_LEN).and_then(|page| page.bytes.get_mut(within..within + here.len()))
            {
                target.copy_from_slice(here);
            }
            at += here.len();
            bytes = rest;
        }
    }

    /// Returns whether the pages contain these bytes at an offset in octets from the start of the datagram.
    pub(super) fn holds(&self, start: u32, mut bytes: &[u8]) -> bool {
        let mut at = start as usize;
        while !bytes.is_empty() {
            let within = at % PAGE_LEN;
            let (here, rest) = bytes.split_at(bytes.len().min(PAGE_LEN - within));
            let held = self.page(at / PAGE_LEN).and_then(|page| page.bytes.get(within..within + here.len()));
            if held != Some(here) {
                return false;
            }
            at += here.len();
            bytes = rest;
        }
        true
    }

    /// Returns the bytes from the start of the datagram to its first hole or the end of its first page.
    pub(super) fn head(&self) -> &[u8] {
        let Some(page) = self.page(0) else { return &[] };
        page.bytes.get(..page.filled.trailing_ones() as usize * UNIT_LEN).unwrap_or_default()
    }

    /// Replaces the content of `out` with the first `len` octets of the datagram.
    pub(super) fn gather(&self, len: u32, out: &mut Vec<u8>) {
        out.clear();
        let mut left = len as usize;
        for page in &self.pages {
            let Some(page) = page else { return };
            out.extend_from_slice(page.bytes.get(..left.min(PAGE_LEN)).unwrap_or_default());
            left = left.saturating_sub(PAGE_LEN);
            if left == 0 {
                return;
            }
        }
    }

    /// Panics unless all units of every piece are filled and every filled unit lies in a piece. Returns the
    /// number of filled units.
    pub(super) fn check_invariants(&self) -> u32 {
        let mut filled_count = 0;
        let mut is_filled_before = false;
        for unit in 0..UNIT_COUNT {
            let (filled, starts, bit) = self.bits(unit);
            let (is_filled, is_start) = (filled >> bit & 1 != 0, starts >> bit & 1 != 0);
            assert!(is_filled || !is_start, "a piece begins in a hole, at unit {unit}");
            assert!(!is_filled || is_start || is_filled_before, "no piece begins at unit {unit}");
            filled_count += u32::from(is_filled);
            is_filled_before = is_filled;
        }
        filled_count
    }
}
