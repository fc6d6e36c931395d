//! What control connections and data connections of FTP know of each other.

use std::collections::VecDeque;

use super::config::TransactionConfig;
use super::transfer::{FlowOrigin, Transfer, Transferred};
use crate::base::{FlowKey, Side};
use crate::protocols::ftp::DataEnd;
use crate::session::{AnnouncedEnds, MessageMeta};

/// Maximum number of data connections that are known. At the limit, the one that was announced first is forgotten.
const CONNECTIONS_MAX: usize = 256;

/// What the transactions of several flows have in common: the configuration, and the data connections of FTP.
#[derive(Debug, Default)]
pub struct Joins {
    pub(super) config: TransactionConfig,
    pub(super) connections: DataConnections,
}

impl Joins {
    /// Creates joins without data connections.
    #[must_use]
    pub fn new(config: TransactionConfig) -> Self {
        Self { config, connections: DataConnections::default() }
    }
}

/// A data connection that a control connection announced.
#[derive(Debug)]
struct Connection {
    control: FlowOrigin,
    ends: AnnouncedEnds,
    transfer: Option<Transfer>,
    file: Option<Transferred>,
}

/// The data connections that control connections announced, at most one of each.
#[derive(Debug, Default)]
pub(super) struct DataConnections(VecDeque<Connection>);

impl DataConnections {
    /// Notes a data connection, which replaces an earlier one of the same control connection.
    pub(super) fn announce(&mut self, control: FlowOrigin, meta: &MessageMeta, end: DataEnd) {
        let opener = if end.opened_by == meta.from { meta.side } else { meta.side.other() };
        let ends = AnnouncedEnds::new(&control.key, opener, end.address, end.port);
        self.close(control);
        if self.0.len() >= CONNECTIONS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Connection { control, ends, transfer: None, file: None });
    }

    /// Forgets the data connection of a control connection.
    pub(super) fn close(&mut self, control: FlowOrigin) {
        self.0.retain(|known| known.control != control);
    }

    /// Notes the command that uses the data connection of its control connection.
    pub(super) fn transfer(&mut self, transfer: Transfer) {
        if let Some(known) = self.0.iter_mut().find(|known| known.control == transfer.control) {
            (known.transfer, known.file) = (Some(transfer), None);
        }
    }

    /// Returns the command to which the file of a data connection belongs.
    pub(super) fn of_data(&self, key: &FlowKey) -> Option<Transfer> {
        let is_data =
            |known: &&Connection| [Side::A, Side::B].iter().any(|side| known.ends.are_of(key, *side));
        self.0.iter().rev().find(is_data).and_then(|known| known.transfer.clone())
    }

    /// Notes a file that was transferred.
    pub(super) fn transferred(&mut self, transfer: &Transfer, file: Transferred) {
        let is_of = |known: &&mut Connection| known.transfer.as_ref() == Some(transfer);
        if let Some(known) = self.0.iter_mut().find(is_of) {
            known.file = Some(file);
        }
    }

    /// Returns the file that a command of a control connection transferred.
    pub(super) fn file(&self, control: FlowOrigin, number: u64) -> Option<Transferred> {
        let is_of = |transfer: &Transfer| transfer.control == control && transfer.number == number;
        self.0.iter().find(|known| known.transfer.as_ref().is_some_and(is_of))?.file
    }
}
