//! Export and collection of flow records with IPFIX, and fixed records.

use std::hint::black_box;
use std::io;
use std::net::SocketAddr;

use flowgauge::export::FixedRecord;
use flowgauge::ipfix::collector::{Collector, CollectorConfig};
use flowgauge::ipfix::{Exporter, ExporterConfig, Transport};
use flowgauge::{FlowRecord, Timestamp};
use gungraun::prelude::*;

use crate::cases::flow_records::{RECORD_COUNT, flow_records};

/// Keeps messages, or only counts their octets.
#[derive(Default)]
struct Messages {
    kept: Option<Vec<Vec<u8>>>,
    octet_count: usize,
}

impl Transport for Messages {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.octet_count += message.len();
        if let Some(kept) = &mut self.kept {
            kept.push(message.to_vec());
        }
        Ok(())
    }
}

/// An exporter that has sent its templates, and records.
struct Exporting {
    exporter: Exporter<Messages>,
    records: Vec<FlowRecord>,
}

impl Exporting {
    fn export(&mut self) {
        for record in &self.records {
            self.exporter.export(black_box(record), record.end).expect("a transport without errors");
        }
    }
}

fn exporting() -> Exporting {
    let exporter = Exporter::new(ExporterConfig::default(), Messages::default());
    let mut exporting = Exporting { exporter: exporter.expect("a configuration"), records: flow_records() };
    exporting.export();
    exporting
}

fn exported(exporting: Exporting) {
    assert_eq!(exporting.exporter.stats().record_count, 2 * u64::from(RECORD_COUNT));
}

#[library_benchmark(setup = exporting, teardown = exported)]
#[bench::biflows()]
fn ipfix_encode(mut exporting: Exporting) -> Exporting {
    exporting.export();
    exporting
}

/// A collector that knows the templates, and messages.
struct Collecting {
    collector: Collector,
    messages: Vec<Vec<u8>>,
    packet_count: u64,
}

impl Collecting {
    fn collect(&mut self) {
        let exporter = SocketAddr::from(([192, 0, 2, 1], 4739));
        for message in &self.messages {
            let packet_count = &mut self.packet_count;
            self.collector.message(exporter, black_box(message), Timestamp::ZERO, |one| {
                *packet_count += one.record().map_or(0, |record| record.packet_count());
            });
        }
    }
}

fn collecting() -> Collecting {
    let transport = Messages { kept: Some(Vec::new()), octet_count: 0 };
    let mut exporter = Exporter::new(ExporterConfig::default(), transport).expect("a configuration");
    for record in flow_records() {
        exporter.export(&record, record.end).expect("a transport without errors");
    }
    exporter.flush().expect("a transport without errors");
    let messages = exporter.into_transport().kept.expect("messages");
    let collector = Collector::new(CollectorConfig::default()).expect("a configuration");
    let mut collecting = Collecting { collector, messages, packet_count: 0 };
    collecting.collect();
    collecting
}

fn collected(collecting: Collecting) {
    assert_eq!(collecting.packet_count, 2 * 24 * u64::from(RECORD_COUNT));
}

#[library_benchmark(setup = collecting, teardown = collected)]
#[bench::biflows()]
fn ipfix_decode(mut collecting: Collecting) -> Collecting {
    collecting.collect();
    collecting
}

/// Records, their encoding, and a sum of their packets.
struct Fixed {
    records: Vec<FlowRecord>,
    encoded: Vec<u8>,
    packet_count: u64,
}

fn fixed() -> Fixed {
    let records = flow_records();
    let encoded = records.iter().flat_map(FixedRecord::encode).collect();
    Fixed { records, encoded, packet_count: 24 * u64::from(RECORD_COUNT) }
}

fn complete(fixed: Fixed) {
    assert_eq!(fixed.packet_count, 24 * u64::from(RECORD_COUNT));
    let encoded: Vec<u8> = fixed.records.iter().flat_map(FixedRecord::encode).collect();
    assert_eq!(fixed.encoded, encoded);
}

#[library_benchmark(setup = fixed, teardown = complete)]
#[bench::records()]
fn fixed_encode(mut fixed: Fixed) -> Fixed {
    let (targets, _) = fixed.encoded.as_chunks_mut::<{ FixedRecord::LEN }>();
    for (target, record) in targets.iter_mut().zip(&fixed.records) {
        *target = FixedRecord::encode(black_box(record));
    }
    fixed
}

#[library_benchmark(setup = fixed, teardown = complete)]
#[bench::records()]
fn fixed_decode(mut fixed: Fixed) -> Fixed {
    let records = FixedRecord::all(black_box(&fixed.encoded)).flatten();
    fixed.packet_count = records.map(|record| record.packet_count() + record.reverse_packet_count()).sum();
    fixed
}

library_benchmark_group!(
    name = codec_group,
    benchmarks = [ipfix_encode, ipfix_decode, fixed_encode, fixed_decode]
);
