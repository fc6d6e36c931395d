//! What flows know of each other: control connections and data connections of FTP, requests and files of TFTP, messages of
//! exchanges across flows.

use super::config::TransactionConfig;
use super::data_connections::DataConnections;
use super::exchanges::Exchanges;
use super::requests::Requests;
use crate::checkpoint::{Invalid, Saved, StateWriter};
use crate::codec::Reader;

/// What the transactions of several flows have in common: the configuration, the data connections of FTP, the requests of
/// TFTP, and the exchanges of DHCP.
#[derive(Debug, Default)]
pub struct Joins {
    pub(super) config: TransactionConfig,
    pub(super) connections: DataConnections,
    pub(super) requests: Requests,
    pub(super) exchanges: Exchanges,
    /// Memory of the open transactions of all flows in bytes.
    pub(super) flows_len: usize,
    /// Memory of connections, requests and exchanges in bytes, as measured last.
    common_len: usize,
    /// True if they may have changed since they were measured.
    pub(super) is_changed: bool,
}

impl Joins {
    /// Creates joins without data connections.
    #[must_use]
    pub fn new(config: TransactionConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Returns the memory in bytes that was allocated: for the open transactions of all flows that were passed messages with
    /// this value, and for what the flows have in common. Takes constant time, unless there were messages of FTP, TFTP or
    /// DHCP since the last call; then, time linear in the number of connections, requests and exchanges, at most 256 of each.
    pub fn heap_len(&mut self) -> usize {
        if std::mem::take(&mut self.is_changed) {
            self.common_len =
                self.connections.heap_len() + self.requests.heap_len() + self.exchanges.heap_len();
        }
        self.flows_len + self.common_len
    }

    /// Returns the memory of the open transactions of all flows in bytes.
    pub(crate) const fn flows_len(&self) -> usize {
        self.flows_len
    }

    /// Writes what flows have in common to a checkpoint.
    pub(crate) fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.connections.save(writer)?;
        self.requests.save(writer)?;
        self.exchanges.save(writer)
    }

    /// Reads what flows have in common from a checkpoint.
    pub(crate) fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        self.connections = Saved::load(reader)?;
        self.requests = Saved::load(reader)?;
        self.exchanges = Saved::load(reader)?;
        self.is_changed = true;
        Ok(())
    }

    /// Returns the joins with another configuration.
    #[must_use]
    pub(crate) fn config(mut self, config: TransactionConfig) -> Self {
        self.config = config;
        self
    }
}
