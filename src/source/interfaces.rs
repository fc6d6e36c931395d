//! Table of the interfaces of all captures that are read together, each listed once.

use std::collections::HashMap;

use ahash::RandomState;

use super::Interface;
use super::memory::{Charge, Memory};

/// Memory of an interface without its name and description, in bytes: the interface and its table entries, in
/// collections that grow by doubling.
const FIXED_BYTES: u64 =
    2 * (size_of::<Interface>() + size_of::<Entry>() + size_of::<(u64, u32)>() + 8) as u64;

/// Divisor of the memory limit of all captures: the interface table may use a quarter of it, because the
/// memory for reading frames has priority.
const MEMORY_PART: u64 = 4;

/// Entry for lookups by the description of an interface.
#[derive(Debug)]
struct Entry {
    /// Number of interfaces with the same description that precede this interface in its section.
    occurrence: u32,
    /// Index of the next interface with the same hash; the index of this interface if there is none.
    next: u32,
}

/// Table of interfaces. Interfaces with the same description are merged, regardless of the section or file
/// that describes them, so that the files of a rotated capture, or the sections of a concatenated file, have
/// one interface. Interfaces of the same section are never merged.
#[derive(Debug)]
pub(super) struct Interfaces {
    list: Vec<Interface>,
    entries: Vec<Entry>,
    /// Index of the first interface for each keyed hash of a description. The hash includes the occurrence
    /// within the section unless that is zero.
    numbers: HashMap<u64, u32>,
    hasher: RandomState,
    count_max: u32,
    charge: Charge,
    max_bytes: u64,
    /// Index of the interface that represents all interfaces for which there was not enough memory.
    others: Option<u32>,
    /// True if the table stores no interfaces, in which case the indexes that it returns are meaningless.
    is_idle: bool,
}

/// Index that was assigned to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) number: u32,
    /// True if the interface is stored with its complete description.
    pub(super) is_complete: bool,
}

impl Interfaces {
    pub(super) fn new(count_max: u32, memory: &Memory) -> Self {
        Self {
            list: Vec::new(),
            entries: Vec::new(),
            numbers: HashMap::new(),
            hasher: crate::base::hash_state(None),
            count_max: count_max.max(2),
            charge: memory.charge(),
            max_bytes: memory.max_bytes() / MEMORY_PART,
            others: None,
            is_idle: false,
        }
    }

    /// Creates a table that stores no interfaces, for reading only the first timestamp of captures.
    pub(super) fn idle(memory: &Memory) -> Self {
        Self { is_idle: true, ..Self::new(0, memory) }
    }

    pub(super) fn as_slice(&self) -> &[Interface] {
        &self.list
    }

    /// Returns a keyed hash of the description of an interface.
    pub(super) fn hash(&self, interface: &Interface) -> u64 {
        if self.is_idle { 0 } else { self.hasher.hash_one(interface) }
    }

    /// Returns the index of an interface, which is added to the table if it is new. `hash` is the
    /// [hash](Self::hash) of its description, and `occurrence` the number of interfaces with this description
    /// that precede it in its section.
    pub(super) fn number(&mut self, interface: Interface, hash: u64, occurrence: u32) -> Number {
        if self.is_idle {
            return Number { number: 0, is_complete: true };
        }
        if let Some(number) = self.find_or_add(interface, hash, occurrence) {
            return Number { number, is_complete: true };
        }
        Number { number: self.others(), is_complete: false }
    }

    fn find_or_add(&mut self, interface: Interface, hash: u64, occurrence: u32) -> Option<u32> {
        let hash = if occurrence == 0 { hash } else { self.hasher.hash_one((hash, occurrence)) };
        let first = self.numbers.get(&hash).copied();
        let mut at = first;
        while let Some(number) = at {
            let (entry, known) = (self.entries.get(number as usize)?, self.list.get(number as usize)?);
            if entry.occurrence == occurrence && *known == interface {
                return Some(number);
            }
            at = Some(entry.next).filter(|next| *next != number);
        }
        // One entry is reserved for all others.
        let number = self.list.len() as u32;
        let text_len = [&interface.name, &interface.description].into_iter().flatten().map(String::capacity);
        let bytes = FIXED_BYTES + text_len.sum::<usize>() as u64;
        let is_within = self.charge.bytes() + bytes <= self.max_bytes;
        if number + 1 >= self.count_max || !is_within || self.charge.add(bytes).is_err() {
            return None;
        }
        self.numbers.insert(hash, number);
        self.entries.push(Entry { occurrence, next: first.unwrap_or(number) });
        self.list.push(interface);
        Some(number)
    }

    /// Returns the index of the interface that represents all interfaces for which there was not enough
    /// memory. No memory is charged for this interface.
    fn others(&mut self) -> u32 {
        if let Some(number) = self.others {
            return number;
        }
        let number = self.list.len() as u32;
        self.list.push(Interface::new(crate::base::LinkType::NULL));
        // Equals no other entry, because this occurrence never exists.
        self.entries.push(Entry { occurrence: u32::MAX, next: number });
        self.others = Some(number);
        number
    }
}
