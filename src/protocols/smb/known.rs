//! What is known of a connection: sessions, shares and files.

use super::status::ShareType;
use crate::base::Timestamp;
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::protocols::dcerpc::Uuid;
use crate::session::kit::{Kept, Measured};

/// Identifier of an open file: of SMB 1, its number and the share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileId {
    pub(super) octets: [u8; 16],
}

impl FileId {
    /// The file of the request before in a compound.
    pub(super) const RELATED: Self = Self { octets: [0xFF; 16] };

    pub(super) const fn uuid(self) -> Uuid {
        Uuid::of_little(self.octets)
    }
}

/// A session with its user.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) user: Kept<256>,
}

/// A share to which a client is connected.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) session: u64,
    pub(super) number: u32,
    pub(super) share: Kept<256>,
    pub(super) share_type: Option<ShareType>,
}

/// An open file, with what the server stated of it: length, and times of creation, access, modification and change.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) id: FileId,
    pub(super) name: Kept<512>,
    pub(super) len: Option<u64>,
    pub(super) times: [Option<Timestamp>; 4],
}

state! { struct FileId { octets } }
state! { struct Session { number, user } }
state! { struct Tree { session, number, share, share_type } }
state! { struct File { id, name, len, times } }

/// An item of a list with a maximum length.
pub(super) trait Item: Saved {
    /// Maximum number of items.
    const COUNT_MAX: usize;

    /// Returns the number of octets that the item has allocated.
    fn heap_len(&self) -> usize;
}

impl Item for Session {
    const COUNT_MAX: usize = 8;

    fn heap_len(&self) -> usize {
        self.user.heap_len()
    }
}

impl Item for Tree {
    const COUNT_MAX: usize = 32;

    fn heap_len(&self) -> usize {
        self.share.heap_len()
    }
}

impl Item for File {
    const COUNT_MAX: usize = 64;

    fn heap_len(&self) -> usize {
        self.name.heap_len()
    }
}

/// Items with identifiers, of which the oldest ones are displaced.
#[derive(Debug)]
pub(super) struct Known<T> {
    items: Vec<T>,
    /// Number of octets that the items have allocated.
    items_len: usize,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { items: Vec::new(), items_len: 0 }
    }
}

impl<T: Item> Known<T> {
    pub(super) fn heap_len(&self) -> usize {
        self.items.capacity() * size_of::<T>() + self.items_len
    }

    /// Returns an item, of which the latest ones are compared first.
    pub(super) fn find(&self, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        self.items.iter().rev().find(|item| is_it(item))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// Returns an item, of which what is allocated must not change.
    pub(super) fn find_mut(&mut self, is_it: impl Fn(&T) -> bool) -> Option<&mut T> {
        self.items.iter_mut().rev().find(|item| is_it(item))
    }

    /// Removes an item.
    pub(super) fn take(&mut self, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let place = self.items.iter().position(is_it)?;
        let item = self.items.remove(place);
        self.items_len -= item.heap_len();
        Some(item)
    }

    /// Removes the oldest item if there are as many as are kept.
    pub(super) fn displace(&mut self) -> Option<T> {
        if self.items.len() < T::COUNT_MAX { None } else { self.take(|_| true) }
    }

    /// Adds an item, in the place of the one with the same identifier.
    pub(super) fn insert(&mut self, item: T, is_it: impl Fn(&T) -> bool) {
        self.remove(is_it);
        self.displace();
        self.items_len += item.heap_len();
        self.items.push(item);
    }

    /// Removes the items for which a function returns true.
    pub(super) fn remove(&mut self, is_it: impl Fn(&T) -> bool) {
        let items_len = &mut self.items_len;
        self.items.retain(|item| {
            let is_kept = !is_it(item);
            if !is_kept {
                *items_len -= item.heap_len();
            }
            is_kept
        });
    }
}

impl<T: Item> Saved for Known<T> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.items.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let items: Vec<T> = Saved::load(reader)?;
        if items.len() > T::COUNT_MAX {
            return Err(Invalid::new("too many items"));
        }
        let items_len = items.iter().map(Item::heap_len).sum();
        Ok(Self { items, items_len })
    }
}
