//! The dynamic table of HPACK (RFC 7541 section 4).

use std::collections::VecDeque;

/// Maximum size in octets of an HPACK dynamic table. A larger table is not supported.
pub(in crate::protocols::http2) const TABLE_LEN_MAX: usize = 64 << 10;

/// Maximum size in octets to which an encoder may set an HPACK dynamic table before SETTINGS announce another one (RFC
/// 9113 section 6.5.2).
pub(in crate::protocols::http2) const TABLE_LEN_DEFAULT: usize = 4096;

/// Size in octets that RFC 7541 section 4.1 adds to the lengths of an entry's name and value.
const ENTRY_OVERHEAD: usize = 32;

/// An HPACK dynamic table: fields that were sent before, indexed from the newest.
#[derive(Debug)]
pub(super) struct Table {
    /// Names and values of the entries from the oldest to the newest, preceded by evicted ones that are not yet
    /// removed.
    text: Vec<u8>,
    /// Number of octets of evicted entries at the start of `text`.
    dead_len: usize,
    /// Entries of the table, the oldest first.
    entries: VecDeque<Entry>,
    /// Sum of the sizes of all entries in octets (RFC 7541 section 4.1).
    len: usize,
    max: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    name_len: u32,
    value_len: u32,
    /// Total number of octets of names and values added to the table before this entry, modulo 2^32.
    start: u32,
}

impl Entry {
    const fn text_len(self) -> usize {
        self.name_len as usize + self.value_len as usize
    }
}

impl Default for Table {
    fn default() -> Self {
        Self { text: Vec::new(), dead_len: 0, entries: VecDeque::new(), len: 0, max: TABLE_LEN_DEFAULT }
    }
}

impl Table {
    /// Returns name and value of the field at an index of the dynamic table, 0 for the newest.
    pub(super) fn field(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let place = self.entries.len().checked_sub(index.checked_add(1)?)?;
        let entry = self.entries.get(place)?;
        let oldest = self.entries.front()?;
        let start = self.dead_len + entry.start.wrapping_sub(oldest.start) as usize;
        self.text.get(start..start + entry.text_len())?.split_at_checked(entry.name_len as usize)
    }

    /// Adds a field, and evicts the oldest entries beyond the maximum size of the table. A field that exceeds the
    /// maximum size alone evicts all entries and is not added.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        let len = name.len() + value.len() + ENTRY_OVERHEAD;
        self.evict_to(self.max.saturating_sub(len));
        if len > self.max {
            return;
        }
        let newest = self.entries.back();
        let start = newest.map_or(0, |entry| entry.start.wrapping_add(entry.text_len() as u32));
        // The octets of an entry are moved at most once while as many are written.
        if self.dead_len > 0 && self.dead_len * 2 >= self.text.len() {
            self.text.drain(..self.dead_len);
            self.dead_len = 0;
        }
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.entries.push_back(Entry { name_len: name.len() as u32, value_len: value.len() as u32, start });
        self.len += len;
    }

    /// Sets the maximum size of the table in octets, and evicts entries that exceed it. Returns whether the size is
    /// supported.
    pub(super) fn resize(&mut self, max: usize) -> bool {
        if max > TABLE_LEN_MAX {
            return false;
        }
        self.max = max;
        self.evict_to(max);
        true
    }

    fn evict_to(&mut self, len: usize) {
        while self.len > len
            && let Some(entry) = self.entries.pop_front()
        {
            self.len -= entry.text_len() + ENTRY_OVERHEAD;
            self.dead_len += entry.text_len();
        }
        debug_assert!(!self.entries.is_empty() || self.len == 0);
    }

    /// Returns the number of octets of memory that the table has allocated.
    pub(super) fn heap_len(&self) -> usize {
        self.text.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_a_plain_list() {
        let mut table = Table::default();
        // The newest first, as many as fit.
        let mut plain: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut max = TABLE_LEN_DEFAULT;
        let size =
            |plain: &[(Vec<u8>, Vec<u8>)]| plain.iter().map(|(a, b)| a.len() + b.len() + 32).sum::<usize>();
        let mut seed = 7_u32;
        for round in 0..5000_u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if round % 97 == 0 {
                max = (seed >> 20) as usize;
                assert!(table.resize(max));
            } else {
                let name = vec![b'a' + (round % 26) as u8; (seed >> 28) as usize];
                let value = round.to_string().repeat((seed >> 8) as usize % 60).into_bytes();
                table.add(&name, &value);
                plain.insert(0, (name, value));
            }
            while size(&plain) > max {
                plain.pop();
            }
            assert_eq!(table.len(), size(&plain));
            for (index, (name, value)) in plain.iter().enumerate() {
                assert_eq!(table.field(index), Some((&name[..], &value[..])));
            }
            assert_eq!(table.field(plain.len()), None);
            assert!(table.text.len() <= 2 * TABLE_LEN_DEFAULT + 4096, "{}", table.text.len());
        }
        assert!(!table.resize(TABLE_LEN_MAX + 1));
    }
}
