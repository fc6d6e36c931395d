//! The columns that a writer has, compared with those of the rows that it receives.

use std::any::type_name;

use super::column::Column;
use super::table::Row;

/// The columns of the type of rows for which a writer was created. Rows are compared by their type, and only if that is
/// another one by their columns, so that a row costs one comparison.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Name of the type of the latest row.
    type_name: &'static str,
    columns: Vec<&'static Column>,
}

impl Shape {
    /// Returns the shape of the rows of a type.
    #[must_use]
    pub fn of<R: Row>() -> Self {
        Self { type_name: type_name::<R>(), columns: R::columns() }
    }

    /// Returns the columns in the order of the row.
    #[must_use]
    pub fn columns(&self) -> &[&'static Column] {
        &self.columns
    }

    /// Checks that rows of a type have these columns: the same names and types in the same order.
    ///
    /// # Errors
    ///
    /// Returns the first difference.
    #[inline]
    pub fn check<R: Row>(&mut self) -> Result<(), String> {
        if std::ptr::eq(self.type_name, type_name::<R>()) { Ok(()) } else { self.compare::<R>() }
    }

    #[cold]
    #[inline(never)]
    fn compare<R: Row>(&mut self) -> Result<(), String> {
        let columns = R::columns();
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
                    "a row of the type {} has {} where the output has {}; use a writer of its own",
                    type_name::<R>(),
                    describe(other),
                    describe(own)
                ));
            }
        }
        self.type_name = type_name::<R>();
        Ok(())
    }
}
