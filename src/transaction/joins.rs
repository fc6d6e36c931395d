//! What flows know of each other: control connections and data connections of FTP, requests and files of TFTP.

use super::config::TransactionConfig;
use super::data_connections::DataConnections;
use super::requests::Requests;
use crate::checkpoint::{Invalid, Saved, StateWriter};
use crate::codec::Reader;

/// What the transactions of several flows have in common: the configuration, the data connections of FTP, and the requests of
/// TFTP.
#[derive(Debug, Default)]
pub struct Joins {
    pub(super) config: TransactionConfig,
    pub(super) connections: DataConnections,
    pub(super) requests: Requests,
}

impl Joins {
    /// Creates joins without data connections.
    #[must_use]
    pub fn new(config: TransactionConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Writes the connections and requests to a checkpoint.
    pub(crate) fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.connections.save(writer)?;
        self.requests.save(writer)
    }

    /// Reads connections and requests from a checkpoint.
    pub(crate) fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        (self.connections, self.requests) = (Saved::load(reader)?, Saved::load(reader)?);
        Ok(())
    }

    /// Returns the joins with another configuration.
    #[must_use]
    pub(crate) fn config(mut self, config: TransactionConfig) -> Self {
        self.config = config;
        self
    }
}
