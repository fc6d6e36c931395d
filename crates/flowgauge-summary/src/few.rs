//! Distinct values, of which the first ones are known exactly.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Maximum number of values.
const VALUE_MAX: usize = 256;

/// Up to 256 distinct values, and whether there are more.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "T: Ord + Deserialize<'de>"))]
pub struct Few<T> {
    values: BTreeSet<T>,
    has_more: bool,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { values: BTreeSet::new(), has_more: false }
    }
}

impl<T: Ord> Few<T> {
    /// Adds a value.
    pub fn insert(&mut self, value: T) {
        if self.values.len() < VALUE_MAX {
            self.values.insert(value);
        } else {
            self.has_more |= !self.values.contains(&value);
        }
    }

    /// Removes a value.
    pub(crate) fn remove(&mut self, value: &T) {
        self.values.remove(value);
    }

    /// Adds the values of others.
    pub fn add(&mut self, others: &Self)
    where
        T: Clone,
    {
        others.values.iter().for_each(|value| self.insert(value.clone()));
        self.has_more |= others.has_more;
    }

    /// Returns the number of values that are known, at most 256.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are more values than are known.
    pub(crate) const fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns whether a value is among those that are known.
    pub(crate) fn contains(&self, value: &T) -> bool {
        self.values.contains(value)
    }

    /// Returns the memory of the values in bytes: nodes of a tree are at least half full.
    pub(crate) fn heap_bytes(&self) -> usize {
        2 * self.values.len() * size_of::<T>()
    }

    /// Returns whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the number as text: `12`, or `more than 256`.
    #[must_use]
    pub fn count(&self) -> String {
        if self.has_more { format!("more than {VALUE_MAX}") } else { self.values.len().to_string() }
    }

    /// Returns the values that are known, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }
}
