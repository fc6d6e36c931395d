//! Which columns of a row are written, and in which order.

use crate::row::{Column, ColumnSet, RowType};

/// A choice of columns of a row, in the order in which they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The columns in the order in which they are written.
    columns: Vec<&'static Column>,
    set: ColumnSet,
    /// For each column in the order of the row, its place in the order in which they are written; empty if both orders
    /// are the same.
    places: Vec<usize>,
}

impl Selection {
    /// Chooses the columns of `R` with these names, in their order.
    ///
    /// # Errors
    ///
    /// Returns the first name that is not the name of a column, or that is repeated.
    pub fn of<'n, R: RowType>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, &'n str> {
        Self::among(&R::columns(), names)
    }

    /// Chooses the columns with these names among those of a row, or of rows of several types.
    ///
    /// # Errors
    ///
    /// Same as for [`of`](Self::of).
    #[doc(hidden)]
    pub fn among<'n>(
        all: &[&'static Column],
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, &'n str> {
        let (mut columns, mut indices) = (Vec::new(), Vec::new());
        for name in names {
            let index = all.iter().position(|column| column.name == name).ok_or(name)?;
            if indices.contains(&index) {
                return Err(name);
            }
            columns.push(all[index]);
            indices.push(index);
        }
        let mut places: Vec<usize> = (0..indices.len()).collect();
        places.sort_unstable_by_key(|place| indices[*place]);
        if places.is_sorted() {
            places.clear();
        }
        Ok(Self { columns, set: indices.into_iter().collect(), places })
    }

    /// Returns the columns in the order in which they are written.
    #[must_use]
    pub fn columns(&self) -> &[&'static Column] {
        &self.columns
    }

    /// Returns whether the columns were chosen among these.
    pub(super) fn is_among(&self, all: &[&'static Column]) -> bool {
        let chosen = all.iter().enumerate().filter(|(index, _)| self.set.contains(*index));
        let chosen: Vec<_> = chosen.map(|(_, column)| column).collect();
        let is_same =
            |one: &Column, other: &Column| (one.name, one.column_type) == (other.name, other.column_type);
        let is_chosen = |column: &&'static Column| chosen.iter().any(|known| is_same(known, column));
        chosen.len() == self.columns.len() && self.columns.iter().all(is_chosen)
    }

    /// Returns whether a column with this name is chosen.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// Arranges the values of a row at the end of `line` in the order of the selection.
    pub(super) fn arrange(&self, line: &mut Vec<u8>, Scratch { starts, spare }: &mut Scratch) {
        let Some(&first) = starts.first() else { return };
        if self.places.is_empty() {
            return;
        }
        spare.clear();
        for place in 0..self.places.len() {
            let at = self.places.iter().position(|known| *known == place);
            let start = at.and_then(|at| starts.get(at)).copied().unwrap_or(first);
            let end = at.and_then(|at| starts.get(at + 1)).copied().unwrap_or(line.len());
            spare.extend_from_slice(line.get(start..end).unwrap_or_default());
        }
        line.truncate(first);
        line.extend_from_slice(spare);
    }
}

/// Buffers for the values of a selection.
#[derive(Clone, Debug)]
pub(super) struct Scratch {
    /// Offsets in the line at which the values begin, in the order of the row. The last value ends with the line.
    starts: Vec<usize>,
    /// Octets that are moved.
    spare: Vec<u8>,
}

impl Scratch {
    pub(super) const fn new() -> Self {
        Self { starts: Vec::new(), spare: Vec::new() }
    }
}

/// Decides for a visitor which columns it wants. Columns inside of a list or group belong to that column.
pub(super) trait Choice {
    /// Returns whether the next column is wanted. `len` is the length of the line before it.
    fn next(&mut self, len: usize) -> bool;
    fn enter(&mut self);
    fn leave(&mut self);
}

/// All columns.
pub(super) struct All;

impl Choice for All {
    #[inline(always)]
    fn next(&mut self, _: usize) -> bool {
        true
    }

    #[inline(always)]
    fn enter(&mut self) {}

    #[inline(always)]
    fn leave(&mut self) {}
}

/// The columns of a selection, and the offsets at which their values begin.
pub(super) struct Chosen<'s> {
    selection: &'s Selection,
    starts: &'s mut Vec<usize>,
    next: usize,
    depth: u32,
}

impl<'s> Chosen<'s> {
    pub(super) fn new(selection: &'s Selection, scratch: &'s mut Scratch) -> Self {
        scratch.starts.clear();
        Self { selection, starts: &mut scratch.starts, next: 0, depth: 0 }
    }
}

impl Choice for Chosen<'_> {
    #[inline]
    fn next(&mut self, len: usize) -> bool {
        if self.depth > 0 {
            return true;
        }
        let is_wanted = self.selection.set.contains(self.next);
        self.next += 1;
        if is_wanted {
            self.starts.push(len);
        }
        is_wanted
    }

    #[inline]
    fn enter(&mut self) {
        self.depth += 1;
    }

    #[inline]
    fn leave(&mut self) {
        self.depth -= 1;
    }
}
