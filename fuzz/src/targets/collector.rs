//! Messages of exporters. Records are bounded by the octets of the input, and a record that was collected is the same
//! after it is exported and collected again.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use flowgauge::codec::Reader;
use flowgauge::export::{Style, write_json};
use flowgauge::ipfix::collector::{Collector, CollectorConfig};
use flowgauge::ipfix::{Exporter, ExporterConfig, Transport};
use flowgauge::{FlowRecord, Timestamp};

/// Number of records that are exported again.
const EXPORTED_COUNT_MAX: usize = 64;

/// A record has at least two addresses.
const RECORD_LEN_MIN: usize = 8;

/// Keeps the messages of an exporter.
#[derive(Default)]
struct Messages(Vec<Vec<u8>>);

impl Transport for Messages {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.push(message.to_vec());
        Ok(())
    }
}

fn line(record: &FlowRecord) -> String {
    let mut line = Vec::new();
    write_json(&mut line, record, Style::default());
    String::from_utf8(line).expect("ndjson is UTF-8")
}

fn exporter(number: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, number), 4739))
}

/// Each message follows the number of its exporter and its length in two octets.
pub fn run(input: &[u8]) {
    let mut config = CollectorConfig::default();
    (config.domain_count_max, config.template_bytes_max) = (4, 4096);
    let mut collector = Collector::new(config).expect("a valid configuration");
    let mut reader = Reader::new(input);
    let (mut records, mut record_count, mut packet_count) = (Vec::new(), 0, 0);
    let mut now = Timestamp::ZERO;
    while let Ok(number) = reader.be::<u8>() {
        let Ok(len) = reader.be::<u16>() else { break };
        let message = reader.bytes(usize::from(len).min(reader.remaining_len())).unwrap_or_default();
        now = now.saturating_add(Duration::from_secs(number.into()));
        collector.message(exporter(number), message, now, |collected| {
            let Some(record) = collected.record() else {
                packet_count += 1;
                return;
            };
            record_count += 1;
            // IPFIX cannot express later times.
            let is_representable = record.start.max(record.end) <= Timestamp::from_parts(u32::MAX.into(), 0);
            if records.len() < EXPORTED_COUNT_MAX && is_representable {
                records.push(record.clone());
            }
        });
        if number & 0x80 != 0 {
            collector.disconnect(exporter(number));
        }
    }
    let stats = collector.stats();
    assert_eq!((stats.record_count, stats.packet_count), (record_count, packet_count));
    assert!((record_count + packet_count) as usize <= input.len() / RECORD_LEN_MIN);

    let mut config = ExporterConfig::default();
    config.enterprise_number = Some(32_473);
    let mut exporter = Exporter::new(config, Messages::default()).expect("a valid configuration");
    for record in &records {
        exporter.export(record, Timestamp::ZERO).expect("a transport without errors");
    }
    exporter.flush().expect("a transport without errors");
    assert_eq!(exporter.stats().shortened_record_count, 0);
    let mut collector = Collector::new(CollectorConfig::default()).expect("a valid configuration");
    let mut expected = records.iter();
    for message in exporter.into_transport().0 {
        collector.message(self::exporter(1), &message, Timestamp::ZERO, |collected| {
            let record = collected.record().expect("no packet was exported");
            assert_eq!(expected.next().map(line), Some(line(record)));
        });
    }
    assert_eq!(expected.next(), None);
    let stats = collector.stats();
    assert_eq!(stats.malformed_message_count + stats.invalid_value_count + stats.lost_count, 0);
}
