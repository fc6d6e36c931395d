//! Export and collection of flow records with IPFIX and NetFlow.
#![cfg(all(feature = "serde", feature = "compression"))]

mod faults;
mod netflow;
mod round_trip;

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{env, fs};

use flowgauge::codec::collector::{Collector, CollectorConfig, CollectorStats};
use flowgauge::codec::ipfix::{Exporter, ExporterConfig, ExporterStats, Transport};
use flowgauge::{FileSource, FlowRecord, Pipeline, Records, RunOptions};

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
        collector.message(exporter_address(), message, |record| records.push(record.clone()));
    }
    (records, collector.stats())
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the captures of this repository, and those of the corpus if it is available.
fn captures() -> Vec<PathBuf> {
    let mut folders = vec![root().join("examples/data")];
    folders.extend(env::var_os("FLOWGAUGE_CORPUS").map(PathBuf::from));
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let extension = path.extension().unwrap_or_default();
            if path.is_dir() {
                folders.push(path);
            } else if extension == "pcap" || extension == "pcapng" {
                paths.push(path);
            }
        }
    }
    assert!(paths.len() >= 8);
    paths
}

/// Returns the records of a capture, with all optional fields.
fn records(path: &Path) -> Vec<FlowRecord> {
    let Ok(mut source) = FileSource::open(path) else { return Vec::new() };
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record));
    #[cfg(feature = "protocols")]
    let sink = sink.with_stage::<flowgauge::Sessions<flowgauge::Standard>>();
    let builder = Pipeline::builder().encapsulation(true);
    builder.build(sink).unwrap().run(&mut source, &RunOptions::default()).unwrap();
    records
}
