//! Sets of columns.

use super::column::Column;

/// A set of columns of a row, by their indices: one bit for each column, of any number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ColumnSet {
    words: Vec<u64>,
}

impl ColumnSet {
    const WORD_BITS: usize = u64::BITS as usize;

    /// Adds a column.
    pub fn insert(&mut self, index: usize) {
        let word = index / Self::WORD_BITS;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= 1 << (index % Self::WORD_BITS);
        }
    }

    /// Returns whether a column is in the set.
    #[must_use]
    #[inline]
    pub fn contains(&self, index: usize) -> bool {
        let word = self.words.get(index / Self::WORD_BITS);
        word.is_some_and(|word| word >> (index % Self::WORD_BITS) & 1 == 1)
    }

    /// Returns the set of the columns with these names.
    ///
    /// # Errors
    ///
    /// Returns the first name that is not the name of one of `columns`.
    pub fn of_names<'n>(
        columns: &[&'static Column],
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, &'n str> {
        let mut set = Self::default();
        for name in names {
            set.insert(columns.iter().position(|column| column.name == name).ok_or(name)?);
        }
        Ok(set)
    }
}

impl FromIterator<usize> for ColumnSet {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut set = Self::default();
        indices.into_iter().for_each(|index| set.insert(index));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_set_contains_what_was_inserted(
            indices in proptest::collection::btree_set(0_usize..300, 0..50)
        ) {
            let set: ColumnSet = indices.iter().copied().collect();
            for index in 0..400 {
                proptest::prop_assert_eq!(set.contains(index), indices.contains(&index));
            }
        }
    }
}
