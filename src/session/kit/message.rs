//! What the parsers of the kit report.

use std::any::Any;

use super::head::ExchangeHead;
use crate::row::{DynRow, TableInfo, TableRow};

/// A row that may stay open between two messages; [`exchange!`](super::exchange!) implements it.
pub(crate) trait KitRow: DynRow + Any + Send + Sync {
    /// Returns the table of the row.
    fn table(&self) -> &'static TableInfo;

    /// Returns times and state of the row.
    fn head(&self) -> &ExchangeHead;

    /// Returns times and state of the row.
    fn head_mut(&mut self) -> &mut ExchangeHead;

    /// Returns the number of octets that the row has allocated.
    fn heap_len(&self) -> usize;
}

/// A message of a parser of the kit: a row of one of the tables of its protocol.
#[derive(Clone, Copy)]
pub struct KitMessage<'m>(&'m dyn KitRow);

impl<'m> KitMessage<'m> {
    pub(super) const fn of(row: &'m dyn KitRow) -> Self {
        Self(row)
    }

    /// Returns times, and what was not captured.
    #[must_use]
    pub fn exchange(&self) -> &'m ExchangeHead {
        self.0.head()
    }

    /// Returns the row with its table.
    #[must_use]
    pub fn row(&self) -> TableRow<'m> {
        TableRow::new(self.0.table(), self.0)
    }

    /// Returns the row, if it is of this type.
    ///
    /// ```
    /// use flowgauge::protocols::ntp;
    /// use flowgauge::{Message, Standard, on_message};
    ///
    /// let mut strata = Vec::new();
    /// let sink = on_message::<Standard>(|_, _, message| {
    ///     if let Message::Kit(message) = message
    ///         && let Some(exchange) = message.get::<ntp::Exchange>()
    ///     {
    ///         strata.push(exchange.stratum);
    ///     }
    /// });
    /// # let _ = sink;
    /// ```
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&'m T> {
        let row: &'m dyn Any = self.0;
        row.downcast_ref()
    }
}

impl std::fmt::Debug for KitMessage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.row().fmt(f)
    }
}
