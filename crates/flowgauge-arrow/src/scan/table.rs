//! The tables of captures.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use flowgauge::features::{FeatureSet, Features};
use flowgauge::neighbor::{NeighborHead, NeighborMessage};
use flowgauge::row::{Column, RowType as _, Table as _, TableInfo, Union};
use flowgauge::session::{MessageHead, Protocol};
use flowgauge::transaction::{Content, TransactionHead};
use flowgauge::{FlowRecord, Message, Packet, SessionEvent};
use flowgauge_summary::{Finding, HostRow};

use crate::batch::qualified;

/// A table of captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Table {
    /// A row for each flow record.
    Flows,
    /// A row for each packet of a flow.
    Packets,
    /// A row for each message of the tables with this name, such as `dns` or `dns.response`; `neighbor` for messages between
    /// neighbors on a link.
    Messages(&'static str),
    /// A row for each transaction of the table with this name, such as `http`.
    Transactions(&'static str),
    /// A row for each finding of `flowgauge summary` in all captures together.
    Findings,
    /// A row for each host of `flowgauge hosts` in all captures together.
    Hosts,
}

/// A name that no table has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTable {
    name: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown kind of rows: {:?}; known are {}", self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownTable {}

/// The file of a row.
pub(super) struct InFile<'f>(pub(super) Option<&'f str>);

flowgauge::table! {
    /// The capture that contains the packets of a row.
    impl['f] "file" for InFile<'f> as row {
        /// Path of the capture; null if several captures are read as one.
        "file": Option<&'f str> = row.0;
    }
}

/// Returns a column whose name is that of a column of another kind with another type, under a name of its own. There are
/// few, and each is created once.
fn renamed(table: &TableInfo, column: &Column) -> &'static Column {
    static RENAMED: Mutex<Vec<&'static Column>> = Mutex::new(Vec::new());
    let name = qualified(table.kind(), column.name);
    let mut known = RENAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |known: &&&'static Column| known.name == name && known.column_type == column.column_type;
    if let Some(found) = known.iter().find(is_same) {
        return found;
    }
    let name: &'static str = Box::leak(name.into_boxed_str());
    let created: &'static Column =
        Box::leak(Box::new(Column::new(name, column.description, column.column_type, true)));
    known.push(created);
    created
}

/// Returns the tables of messages, with those of events of sessions.
fn message_tables() -> Vec<&'static TableInfo> {
    // The recognition of a protocol is no row of its own: flow records have it.
    let events = SessionEvent::tables().into_iter().filter(|table| table.kind() != "recognized");
    <Message<'static> as Union>::tables().into_iter().chain(events).collect()
}

impl Table {
    /// Returns the table of messages with a name: that of the protocol for all of its messages, such as `dns`, or that of a
    /// kind, such as `dns.response`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such table.
    pub fn messages(name: &str) -> Result<Self, UnknownTable> {
        let tables = [message_tables(), NeighborMessage::tables()].concat();
        let found = tables
            .iter()
            .find_map(|table| [table.name, table.prefix()].into_iter().find(|known| *known == name));
        found.map(Self::Messages).ok_or_else(|| {
            let mut known: Vec<_> = tables.iter().map(|table| table.prefix()).collect();
            known.sort_unstable();
            known.dedup();
            UnknownTable { name: name.to_owned(), known }
        })
    }

    /// Returns the table of transactions with a name, such as `http`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such table.
    pub fn transactions(name: &str) -> Result<Self, UnknownTable> {
        let tables = Content::tables();
        let mut kinds = tables.iter().map(|table| table.kind());
        kinds
            .clone()
            .find(|kind| *kind == name)
            .map(Self::Transactions)
            .ok_or_else(|| UnknownTable { name: name.to_owned(), known: kinds.by_ref().collect() })
    }

    /// Returns the name of the function that returns the table: `flows`, `packets`, `messages`, `transactions`,
    /// `findings` or `hosts`.
    #[must_use]
    pub const fn function(&self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::Packets => "packets",
            Self::Messages(_) => "messages",
            Self::Transactions(_) => "transactions",
            Self::Findings => "findings",
            Self::Hosts => "hosts",
        }
    }

    /// Returns the kind of rows of a table of messages or transactions.
    #[must_use]
    pub const fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Flows | Self::Packets | Self::Findings | Self::Hosts => None,
            Self::Messages(name) | Self::Transactions(name) => Some(name),
        }
    }

    /// Returns the name of the column with the time of a row; `None` if rows have no time.
    #[must_use]
    pub const fn time_column(&self) -> Option<&'static str> {
        match self {
            Self::Flows => Some("start"),
            Self::Packets | Self::Messages(_) | Self::Transactions(_) => Some("timestamp"),
            Self::Findings | Self::Hosts => None,
        }
    }

    /// Returns whether the captures are always read as one, so that rows have no column `file`.
    #[must_use]
    pub const fn is_joined(&self) -> bool {
        matches!(self, Self::Findings | Self::Hosts)
    }

    /// Returns whether rows of a table of messages or transactions belong to this table.
    pub(super) fn has(&self, table: &TableInfo) -> bool {
        match self {
            Self::Messages(name) => table.name == *name || table.prefix() == *name,
            Self::Transactions(name) => table.kind() == *name,
            _ => false,
        }
    }

    /// Returns whether the rows are messages between neighbors, which belong to no flow.
    pub(super) fn is_of_neighbors(&self) -> bool {
        matches!(self, Self::Messages(name) if name.split('.').next() == Some("neighbor"))
    }

    /// Returns the columns of the table, and the names of those that only some rows have.
    pub(super) fn columns(&self, features: &FeatureSet) -> (Vec<&'static Column>, Vec<&'static str>) {
        let (mut columns, tables) = match self {
            Self::Flows if *features == FeatureSet::default() => (FlowRecord::columns(), Vec::new()),
            Self::Flows => (<(&FlowRecord, Features<'_>)>::columns(), Vec::new()),
            Self::Packets => (Packet::columns(), Vec::new()),
            Self::Messages(_) if self.is_of_neighbors() => {
                (NeighborHead::columns(), NeighborMessage::tables())
            }
            Self::Messages(_) => (MessageHead::columns(), message_tables()),
            Self::Transactions(_) => (TransactionHead::columns(), Content::tables()),
            Self::Findings => (Finding::columns(), Vec::new()),
            Self::Hosts => (HostRow::columns(), Vec::new()),
        };
        let tables: Vec<_> = tables.into_iter().filter(|table| self.has(table)).collect();
        let mut optional = Vec::new();
        for table in &tables {
            for column in table.columns {
                let column = match columns.iter().find(|known| known.name == column.name) {
                    None => column,
                    Some(known) if known.column_type == column.column_type => continue,
                    Some(_) => renamed(table, column),
                };
                let is_in = |table: &&TableInfo| table.columns.iter().any(|known| known.name == column.name);
                if !tables.iter().all(is_in) {
                    optional.push(column.name);
                }
                columns.push(column);
            }
        }
        if !self.is_joined() {
            columns.extend(InFile::COLUMNS);
        }
        (columns, optional)
    }

    /// Returns the names of the columns that the table has with these features.
    pub(super) fn names(&self, features: &FeatureSet) -> Vec<&'static str> {
        let (columns, _) = self.columns(features);
        if *self != Self::Flows {
            return columns.iter().map(|column| column.name).collect();
        }
        let records = FlowRecord::columns().into_iter().chain(features.columns());
        records.chain(InFile::COLUMNS).map(|column| column.name).collect()
    }

    /// Returns whether a flow of this protocol may have rows of the table.
    pub(super) fn may_follow(&self, protocol: &Protocol) -> bool {
        match self.kind() {
            // Any parser may stop, and several transfer files.
            Some("session" | "file") => true,
            Some(kind) => protocol.may_lead_to(kind.split_once('.').map_or(kind, |(prefix, _)| prefix)),
            None => false,
        }
    }
}
