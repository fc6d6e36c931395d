//! Values that are rows of one of several tables.

use super::table::{Row, TableInfo};

/// A value that is a row of one of several tables, such as a message of a parser.
pub trait Union {
    /// Returns all tables of which a value may be a row, each name once.
    fn tables() -> Vec<&'static TableInfo>;

    /// Passes the row and its table to a receiver.
    fn row<R: Receiver>(&self, receiver: R) -> R::Output;
}

/// Receives a row of a type that is known only when the program runs.
pub trait Receiver {
    /// What the receiver returns.
    type Output;

    /// Receives a row of a table.
    fn row<R: Row>(self, table: &'static TableInfo, row: &R) -> Self::Output;
}
