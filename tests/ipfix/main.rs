//! Export and collection of flow records with IPFIX and NetFlow.
#![cfg(all(feature = "serde", feature = "compression"))]

#[path = "../support/capture_records.rs"]
mod capture_records;
#[path = "../support/captures.rs"]
mod captures;
mod exported;
mod faults;
mod netflow;
mod round_trip;
mod sampled;

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use flowgauge::ipfix::collector::{Collector, CollectorConfig, CollectorStats};
use flowgauge::ipfix::{Exporter, ExporterConfig, ExporterStats, Transport};
use flowgauge::{FlowRecord, Timestamp};

/// Enterprise number that is reserved for documentation (RFC 5612).
const ENTERPRISE_NUMBER: u32 = 32_473;

/// Messages as datagrams.
#[derive(Clone, Debug, Default)]
struct Datagrams(Rc<RefCell<Vec<Vec<u8>>>>);

impl Transport for Datagrams {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().push(message.to_vec());
        Ok(())
    }
}

/// Messages of a stream.
#[derive(Clone, Debug, Default)]
struct Stream(Rc<RefCell<Vec<Vec<u8>>>>);

impl Transport for Stream {
    fn is_datagram(&self) -> bool {
        false
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().push(message.to_vec());
        Ok(())
    }
}

fn exporter_address() -> SocketAddr {
    "192.0.2.1:40000".parse().unwrap()
}

fn with_own_elements() -> ExporterConfig {
    let mut config = ExporterConfig::default();
    config.enterprise_number = Some(ENTERPRISE_NUMBER);
    config
}

/// Exports records as datagrams.
fn export(records: &[FlowRecord], config: ExporterConfig) -> (Vec<Vec<u8>>, ExporterStats) {
    let datagrams = Datagrams::default();
    let mut exporter = Exporter::new(config, datagrams.clone()).unwrap();
    for record in records {
        exporter.export(record, record.end).unwrap();
    }
    exporter.flush().unwrap();
    let stats = exporter.stats();
    let messages = datagrams.0.take();
    (messages, stats)
}

fn collect<'m>(messages: impl IntoIterator<Item = &'m [u8]>) -> (Vec<FlowRecord>, CollectorStats) {
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    let mut records = Vec::new();
    for message in messages {
        collector.message(exporter_address(), message, Timestamp::ZERO, |one| {
            records.extend(one.record().cloned())
        });
    }
    (records, collector.stats())
}
