//! Values that are rows of one of several tables.

use super::column::Column;
use super::table::{DynRow, Row, TableInfo};
use super::visitor::Visitor;

/// A value that is a row of one of several tables, such as a message of a parser.
pub trait Union {
    /// Returns all tables of which a value may be a row, each name once.
    fn tables() -> Vec<&'static TableInfo>;

    /// Returns the row with its table.
    fn row(&self) -> TableRow<'_>;
}

/// A row of a table that is known only when the program runs.
///
/// All rows of messages and transactions have this type, so that a format is compiled once for all tables. A call of the visitor
/// costs about a nanosecond more per column than that of a row whose type is known.
#[derive(Clone, Copy)]
pub struct TableRow<'r> {
    /// Name, description and columns of the table.
    pub table: &'static TableInfo,
    row: &'r dyn DynRow,
}

impl<'r> TableRow<'r> {
    /// Creates a row of a table, which may have further columns before those of the table.
    #[must_use]
    pub const fn new(table: &'static TableInfo, row: &'r dyn DynRow) -> Self {
        Self { table, row }
    }
}

impl std::fmt::Debug for TableRow<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.own_columns();
        let values = self.values(&(0..columns.len()).collect());
        let mut debug = formatter.debug_struct(self.table.name);
        for (column, value) in columns.iter().zip(values) {
            debug.field(column.name, &value);
        }
        debug.finish()
    }
}

impl Row for TableRow<'_> {
    fn own_columns(&self) -> Vec<&'static Column> {
        self.row.own_columns_dyn()
    }

    fn shape_id(&self) -> usize {
        std::ptr::from_ref(self.table).addr()
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) {
        self.row.visit(visitor);
    }
}
