//! What events need from earlier transactions of their flow.

use std::collections::HashMap;

use crate::session::Protocol;
use crate::tracker::FlowId;
use crate::transaction::{Content, Transaction, X509};

/// Maximum number of files of a flow that are held until their exchange or mail ends: with texts of at most 4 KiB, less than
/// what open transactions have.
const FILE_MAX: usize = 16;

/// What is held of all open flows. The number of flows is bounded by that of the tracker.
#[derive(Debug, Default)]
pub(super) struct Held(HashMap<FlowId, HeldFlow>);

/// What is held of a flow.
#[derive(Debug, Default)]
struct HeldFlow {
    /// The certificate of the client, and that of the server.
    certificates: [Option<X509>; 2],
    /// Files, oldest first.
    files: Vec<Transaction>,
}

impl Held {
    /// Holds the certificate of a side itself, until it is taken.
    pub(super) fn hold_certificate(&mut self, flow: FlowId, x509: &X509) {
        if x509.position == 0 {
            let certificates = &mut self.0.entry(flow).or_default().certificates;
            *x509.role.of_mut(certificates) = Some(x509.clone());
        }
    }

    /// Returns the certificate of the client and that of the server, once.
    pub(super) fn take_certificates(&mut self, flow: FlowId) -> [Option<X509>; 2] {
        self.0.get_mut(&flow).map(|held| std::mem::take(&mut held.certificates)).unwrap_or_default()
    }

    /// Holds a file until its exchange or mail ends. Returns the oldest file if there are too many.
    pub(super) fn hold_file(&mut self, flow: FlowId, file: &Transaction) -> Option<Transaction> {
        let files = &mut self.0.entry(flow).or_default().files;
        files.push(file.clone());
        (files.len() > FILE_MAX).then(|| files.remove(0))
    }

    /// Returns the files of an exchange or mail, oldest first.
    pub(super) fn take_files(&mut self, flow: FlowId, of: (&Protocol, u64)) -> Vec<Transaction> {
        let is_of = |file: &mut Transaction| {
            let number = if let Content::File(content) = &file.content { content.number } else { 0 };
            (file.protocol().name(), number) == (of.0.name(), of.1)
        };
        self.0.get_mut(&flow).map(|held| held.files.extract_if(.., is_of).collect()).unwrap_or_default()
    }

    /// Returns all files of a flow, oldest first.
    pub(super) fn take_all_files(&mut self, flow: FlowId) -> Vec<Transaction> {
        self.0.get_mut(&flow).map(|held| std::mem::take(&mut held.files)).unwrap_or_default()
    }

    /// Releases what is held of a flow that ended.
    pub(super) fn release(&mut self, flow: FlowId) {
        self.0.remove(&flow);
    }
}
