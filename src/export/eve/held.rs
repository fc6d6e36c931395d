//! What events need from earlier transactions of their flow.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::session::Protocol;
use crate::tracker::FlowId;
use crate::transaction::{Content, Transaction, X509};

/// Maximum number of files of a flow that are held until their exchange or mail ends: with texts of at most 4 KiB, less than
/// what open transactions have.
const FILE_MAX: usize = 16;

/// What is held of all open flows. The number of flows is bounded by that of the tracker.
#[derive(Debug, Default)]
pub(super) struct Held {
    flows: HashMap<FlowId, Box<HeldFlow>>,
    /// Memory of what is held of the flows in bytes.
    held_len: usize,
}

/// What is held of a flow.
#[derive(Debug, Default)]
struct HeldFlow {
    /// The certificate of the client, and that of the server.
    certificates: [Option<X509>; 2],
    /// Files, oldest first.
    files: Vec<Transaction>,
}

impl HeldFlow {
    fn heap_len(&self) -> usize {
        let certificates: usize = self.certificates.iter().flatten().map(X509::heap_len).sum();
        let files: usize = self.files.iter().map(Transaction::heap_len).sum();
        size_of::<Self>() + certificates + self.files.capacity() * size_of::<Transaction>() + files
    }
}

impl Held {
    /// Returns the memory in bytes that was allocated. Takes constant time.
    pub(super) fn heap_len(&self) -> usize {
        self.flows.capacity() * size_of::<(FlowId, usize)>() * 2 + self.held_len
    }

    /// Changes what is held of a flow.
    fn change<T>(&mut self, flow: FlowId, with: impl FnOnce(&mut HeldFlow) -> T) -> T {
        let held = match self.flows.entry(flow) {
            Entry::Occupied(known) => {
                self.held_len -= known.get().heap_len();
                known.into_mut()
            }
            Entry::Vacant(place) => place.insert(Box::default()),
        };
        let result = with(held);
        self.held_len += held.heap_len();
        result
    }

    /// Takes something that is held of a flow.
    fn take<T: Default>(&mut self, flow: FlowId, with: impl FnOnce(&mut HeldFlow) -> T) -> T {
        if self.flows.contains_key(&flow) { self.change(flow, with) } else { T::default() }
    }

    /// Holds the certificate of a side itself, until it is taken.
    pub(super) fn hold_certificate(&mut self, flow: FlowId, x509: &X509) {
        if x509.position == 0 {
            self.change(flow, |held| *x509.role.of_mut(&mut held.certificates) = Some(x509.clone()));
        }
    }

    /// Returns the certificate of the client and that of the server, once.
    pub(super) fn take_certificates(&mut self, flow: FlowId) -> [Option<X509>; 2] {
        self.take(flow, |held| std::mem::take(&mut held.certificates))
    }

    /// Holds a file until its exchange or mail ends. Returns the oldest file if there are too many.
    pub(super) fn hold_file(&mut self, flow: FlowId, file: &Transaction) -> Option<Transaction> {
        self.change(flow, |HeldFlow { files, .. }| {
            files.reserve_exact(1);
            files.push(file.clone());
            (files.len() > FILE_MAX).then(|| files.remove(0))
        })
    }

    /// Returns the files of an exchange or mail, oldest first.
    pub(super) fn take_files(&mut self, flow: FlowId, of: (&Protocol, u64)) -> Vec<Transaction> {
        let is_of = |file: &mut Transaction| {
            let number = if let Content::File(content) = &file.content { content.number } else { 0 };
            (file.protocol().name(), number) == (of.0.name(), of.1)
        };
        self.take(flow, |held| {
            let files = held.files.extract_if(.., is_of).collect();
            held.files.shrink_to_fit();
            files
        })
    }

    /// Returns all files of a flow, oldest first.
    pub(super) fn take_all_files(&mut self, flow: FlowId) -> Vec<Transaction> {
        self.take(flow, |held| std::mem::take(&mut held.files))
    }

    /// Releases what is held of a flow that ended.
    pub(super) fn release(&mut self, flow: FlowId) {
        if let Some(held) = self.flows.remove(&flow) {
            self.held_len -= held.heap_len();
        }
    }
}
