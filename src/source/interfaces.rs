//! The interfaces of all captures that are read together, each once.

use std::collections::HashMap;

use ahash::RandomState;

use super::Interface;
use super::memory::{Charge, Memory};

/// Bytes that an interface takes without its texts: itself and its place in the table, both of which grow by doubling.
const FIXED_BYTES: u64 =
    2 * (size_of::<Interface>() + size_of::<Entry>() + size_of::<(u64, u32)>() + 8) as u64;

/// What names may take of the memory of all captures, as a divisor: what is needed to read frames comes first.
const MEMORY_PART: u64 = 4;

/// Finds an interface by what its capture says of it.
#[derive(Debug)]
struct Entry {
    /// Interfaces before it in the same section that are described alike.
    occurrence: u32,
    /// The next one with the same hash; its own number if there is none.
    next: u32,
}

/// Interfaces that are described alike are one, whatever section or file describes them, so that the files of a rotated capture
/// have one, and so has a file that was put together of many sections. Those of one section are never joined.
#[derive(Debug)]
pub(super) struct Interfaces {
    list: Vec<Interface>,
    entries: Vec<Entry>,
    /// The first one for a keyed hash of description and occurrence.
    numbers: HashMap<u64, u32>,
    hasher: RandomState,
    count_max: u32,
    charge: Charge,
    max_bytes: u64,
    /// The one that stands for all for which there was no room.
    others: Option<u32>,
    /// Nothing is kept: the numbers mean nothing.
    is_idle: bool,
}

/// What an interface is from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) number: u32,
    /// It has all that its capture says of it.
    pub(super) is_whole: bool,
}

impl Interfaces {
    pub(super) fn new(count_max: u32, memory: &Memory) -> Self {
        Self {
            list: Vec::new(),
            entries: Vec::new(),
            numbers: HashMap::new(),
            hasher: RandomState::new(),
            count_max: count_max.max(2),
            charge: memory.charge(),
            max_bytes: memory.max_bytes() / MEMORY_PART,
            others: None,
            is_idle: false,
        }
    }

    /// A table that keeps nothing: for captures of which only the first time is asked.
    pub(super) fn idle(memory: &Memory) -> Self {
        Self { is_idle: true, ..Self::new(0, memory) }
    }

    pub(super) fn as_slice(&self) -> &[Interface] {
        &self.list
    }

    /// A keyed hash of what a capture says of an interface.
    pub(super) fn hash(&self, interface: &Interface) -> u64 {
        if self.is_idle { 0 } else { self.hasher.hash_one(interface) }
    }

    /// The number of an interface with a [hash](Self::hash), described alike so many times before in its section.
    pub(super) fn number(&mut self, interface: Interface, hash: u64, occurrence: u32) -> Number {
        if self.is_idle {
            return Number { number: 0, is_whole: true };
        }
        if let Some(number) = self.find_or_add(interface, hash, occurrence) {
            return Number { number, is_whole: true };
        }
        Number { number: self.others(), is_whole: false }
    }

    fn find_or_add(&mut self, interface: Interface, hash: u64, occurrence: u32) -> Option<u32> {
        let hash = self.hasher.hash_one((hash, occurrence));
        let first = self.numbers.get(&hash).copied();
        let mut at = first;
        while let Some(number) = at {
            let (entry, known) = (self.entries.get(number as usize)?, self.list.get(number as usize)?);
            if entry.occurrence == occurrence && *known == interface {
                return Some(number);
            }
            at = Some(entry.next).filter(|next| *next != number);
        }
        // One place is left for all others.
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

    /// The interface for all for which there is no room, which needs none itself.
    fn others(&mut self) -> u32 {
        if let Some(number) = self.others {
            return number;
        }
        let number = self.list.len() as u32;
        self.list.push(Interface::new(crate::base::LinkType::NULL));
        // It equals no other one: such an occurrence there is never.
        self.entries.push(Entry { occurrence: u32::MAX, next: number });
        self.others = Some(number);
        number
    }
}
