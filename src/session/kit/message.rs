//! What the parsers of the kit report.

use std::any::Any;
use std::{fmt, io};

use super::head::ExchangeHead;
use super::log::{EachLogRow, LogFormat, LogOf};
use crate::row::{Cell, Column, DynRow, Row, Table, TableInfo, TableRow, Visitor};
use crate::session::{Expectation, Lack, Piece};

/// A row that [`exchange!`](super::exchange!) declares.
pub(crate) trait Declared: Table + Clone + Send + Sync + 'static {
    /// The table of messages: the columns of the row, and what it lacks.
    const MESSAGE: &'static TableInfo;
    /// The logs of other programs to which the rows belong.
    const LOGS: &'static [LogOf<Self>];

    /// Returns times and state of the row.
    fn head(&self) -> &ExchangeHead;
    /// Returns times and state of the row.
    fn head_mut(&mut self) -> &mut ExchangeHead;
    /// Returns the number of octets that the row has allocated.
    fn heap_len(&self) -> usize;

    /// Returns the flow that the row announces.
    fn expectation(&self) -> Option<Expectation> {
        None
    }
}

/// A column of messages only: transactions have it in their [head](crate::transaction::TransactionHead).
const LACKS: Column = Column::new(
    "lacks",
    "What was not captured: the request, the response, or further responses (`end`); `limit` if more exchanges were open than \
     are kept.",
    <Option<Lack>>::TYPE,
    true,
);

/// Returns the columns of the messages of a type.
pub(crate) const fn columns_of_message<T: Table, const COUNT: usize>() -> [Column; COUNT] {
    crate::row::concat(&[T::COLUMNS, &[LACKS]])
}

/// A row that may stay open between two messages: a [`Declared`] one without its type.
pub(crate) trait KitRow: DynRow + Any + Send + Sync {
    /// Returns the table of messages.
    fn message_table(&self) -> &'static TableInfo;
    /// Returns the table of transactions.
    fn table(&self) -> &'static TableInfo;
    /// Returns times and state of the row.
    fn head(&self) -> &ExchangeHead;
    /// Returns times and state of the row.
    fn head_mut(&mut self) -> &mut ExchangeHead;
    /// Returns the number of octets that the row has allocated.
    fn heap_len(&self) -> usize;
    /// Returns the flow that the row announces.
    fn expectation(&self) -> Option<Expectation>;
    /// Copies the row.
    fn boxed(&self) -> Box<dyn KitRow>;
    /// Passes on the rows of the logs of a program. Returns whether all were written.
    fn logs(&self, format: LogFormat, out: EachLogRow<'_>) -> io::Result<bool>;
}

impl<T: Declared> KitRow for T {
    fn message_table(&self) -> &'static TableInfo {
        T::MESSAGE
    }

    fn table(&self) -> &'static TableInfo {
        const { &TableInfo::of::<T>() }
    }

    fn head(&self) -> &ExchangeHead {
        Declared::head(self)
    }

    fn head_mut(&mut self) -> &mut ExchangeHead {
        Declared::head_mut(self)
    }

    fn heap_len(&self) -> usize {
        Declared::heap_len(self)
    }

    fn expectation(&self) -> Option<Expectation> {
        Declared::expectation(self)
    }

    fn boxed(&self) -> Box<dyn KitRow> {
        Box::new(self.clone())
    }

    fn logs(&self, format: LogFormat, out: EachLogRow<'_>) -> io::Result<bool> {
        let mut is_written = true;
        for log in T::LOGS.iter().filter(|log| log.format == format) {
            is_written &= log.each(self, Declared::head(self), out)?;
        }
        Ok(is_written)
    }
}

/// A message of a parser of the kit: a row of one of the tables of its protocol.
#[derive(Clone, Copy)]
pub struct KitMessage<'m> {
    row: &'m dyn KitRow,
    piece: Option<&'m Piece<'m>>,
}

impl<'m> KitMessage<'m> {
    pub(super) const fn of(row: &'m dyn KitRow) -> Self {
        Self { row, piece: None }
    }

    pub(super) const fn of_piece(row: &'m dyn KitRow, piece: &'m Piece<'m>) -> Self {
        Self { row, piece: Some(piece) }
    }

    /// Returns the piece of a file that the message transfers; the row describes the file.
    #[must_use]
    pub const fn piece(&self) -> Option<Piece<'m>> {
        self.piece.copied()
    }

    /// Returns times, and what was not captured.
    #[must_use]
    pub fn exchange(&self) -> &'m ExchangeHead {
        self.row.head()
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
        let row: &'m dyn Any = self.row;
        row.downcast_ref()
    }

    /// Returns the flow that the message announces.
    pub(crate) fn expectation(&self) -> Option<Expectation> {
        self.row.expectation()
    }

    /// Returns a copy that is independent of the parser. Allocates.
    pub(crate) fn kept(&self) -> KitTransaction {
        KitTransaction::of(self.row)
    }
}

impl Row for KitMessage<'_> {
    fn own_columns(&self) -> Vec<&'static Column> {
        self.row.message_table().columns.iter().collect()
    }

    fn shape_id(&self) -> usize {
        std::ptr::from_ref(self.row.message_table()).addr()
    }

    fn visit(&self, mut visitor: &mut (impl Visitor + ?Sized)) {
        self.row.visit_dyn(&mut visitor);
        if let [.., lacks] = self.row.message_table().columns
            && visitor.wants(lacks)
        {
            self.row.head().lacks.visit(lacks, visitor);
        }
    }
}

impl fmt::Debug for KitMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TableRow::new(self.row.message_table(), self).fmt(f)
    }
}

impl KitMessage<'_> {
    /// Returns the row with its table.
    pub(crate) fn row(&self) -> TableRow<'_> {
        TableRow::new(self.row.message_table(), self)
    }
}

/// A row of a parser of the kit as a transaction: [`message`](Self::message) gives access to it.
pub struct KitTransaction(Box<dyn KitRow>);

impl KitTransaction {
    /// Copies a row.
    pub(crate) fn of(row: &dyn KitRow) -> Self {
        Self(row.boxed())
    }

    /// Returns the message, which has the same values.
    #[must_use]
    pub fn message(&self) -> KitMessage<'_> {
        KitMessage::of(&*self.0)
    }

    /// Passes on the rows of the logs of a program. Returns whether all were written.
    pub(crate) fn logs(&self, format: LogFormat, out: EachLogRow<'_>) -> io::Result<bool> {
        self.0.logs(format, out)
    }

    /// Returns the row with its table.
    pub(crate) fn row(&self) -> TableRow<'_> {
        TableRow::new(self.0.table(), &*self.0)
    }
}

impl Clone for KitTransaction {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl fmt::Debug for KitTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message().fmt(f)
    }
}
