//! What flows know of each other: control connections and data connections of FTP, requests and files of TFTP.

use super::config::TransactionConfig;
use super::data_connections::DataConnections;
use super::requests::Requests;

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
}
