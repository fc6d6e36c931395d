//! The columns that a writer has, compared with those of the rows that it receives.

use super::column::Column;
use super::table::{Row, RowType};

/// The columns for which a writer was created. Rows are compared by the identity of their columns, and only if that is another
/// one by the columns, so that a row costs one comparison.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The identity of the columns of the latest row.
    shape_id: Option<usize>,
    columns: Vec<&'static Column>,
}

impl Shape {
    /// Returns the shape of the rows of a type.
    #[must_use]
    pub fn of<R: RowType>() -> Self {
        Self::new(R::columns())
    }

    /// Returns the shape of rows with these columns.
    #[must_use]
    pub const fn new(columns: Vec<&'static Column>) -> Self {
        Self { shape_id: None, columns }
    }

    /// Returns the columns in the order of the row.
    #[must_use]
    pub fn columns(&self) -> &[&'static Column] {
        &self.columns
    }

    /// Checks that a row has these columns: the same names and types in the same order.
    ///
    /// # Errors
    ///
    /// Returns the first difference.
    #[inline]
    pub fn check(&mut self, row: &impl Row) -> Result<(), String> {
        let shape_id = row.shape_id();
        if self.shape_id == Some(shape_id) { Ok(()) } else { self.compare(shape_id, &row.own_columns()) }
    }

    #[cold]
    #[inline(never)]
    fn compare(&mut self, shape_id: usize, columns: &[&'static Column]) -> Result<(), String> {
        let describe = |column: Option<&&Column>| {
            column.map_or_else(
                || "no further column".to_owned(),
                |column| format!("{} ({})", column.name, column.column_type),
            )
        };
        for index in 0..self.columns.len().max(columns.len()) {
            let (own, other) = (self.columns.get(index), columns.get(index));
            let key = |column: &&Column| (column.name, column.column_type);
            if own.map(key) != other.map(key) {
                return Err(format!(
                    "a row has {} where the output has {}; use a writer of its own",
                    describe(other),
                    describe(own)
                ));
            }
        }
        self.shape_id = Some(shape_id);
        Ok(())
    }
}
