//! The collector of flowgauge and netflow_parser read the same values from the same messages.

mod generator;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use flowgauge::base::{Application, ApplicationName, Evidence};
use flowgauge::ipfix::collector::{Collector, CollectorConfig, CollectorStats};
use flowgauge::ipfix::{ExporterConfig, TimePrecision};
use flowgauge::row::Table as _;
use flowgauge::{FieldSet, FileSource, FlowKey, FlowRecord, Pipeline, Timestamp};
use netflow_parser::NetflowParser;

use crate::cases::Random;
use crate::messages::{NetflowHeader, exported, set};
use crate::values::{Values, of_packet};
use generator::{Generator, Protocol, ip_protocol};

/// Number of generated exporters per protocol, with some messages each.
const CASE_COUNT: u64 = 1000;

fn ours(messages: &[Vec<u8>]) -> (Vec<Values>, CollectorStats) {
    let mut collector = Collector::new(CollectorConfig::default()).expect("a valid configuration");
    let exporter = SocketAddr::from(([192, 0, 2, 1], 4739));
    let mut found = Vec::new();
    for message in messages {
        collector.message(exporter, message, Timestamp::ZERO, |one| {
            found.extend(one.record().map(Values::of_record));
        });
    }
    (found, collector.stats())
}

fn theirs(messages: &[Vec<u8>]) -> Vec<Values> {
    let mut parser = NetflowParser::default();
    let mut found = Vec::new();
    for message in messages {
        let result = parser.parse_bytes(message);
        assert!(result.error.is_none(), "{:?}", result.error);
        assert_eq!(result.packets.len(), 1);
        of_packet(&result.packets[0], |values| found.push(values));
    }
    found
}

/// Asserts that both read the same values, and returns their number.
fn agree(messages: &[Vec<u8>], case: &str) -> usize {
    let (ours, stats) = ours(messages);
    let theirs = theirs(messages);
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "{case}: {messages:02x?}");
    }
    assert_eq!(ours.len(), theirs.len(), "{case}: {messages:02x?}");
    let CollectorStats { malformed_message_count, invalid_value_count, refused_template_count, .. } = stats;
    assert_eq!((malformed_message_count, invalid_value_count, refused_template_count), (0, 0, 0), "{case}");
    ours.len()
}

/// Returns the records of all captures of the repository.
fn captured() -> Vec<(String, Vec<FlowRecord>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data");
    let paths = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let captures = paths.filter(|path| path.extension().is_some_and(|it| it == "pcap" || it == "pcapng"));
    let captures = captures.map(|path| {
        let source = FileSource::open(&path).expect("a capture");
        let records = Pipeline::builder().encapsulation(true).records(source).expect("valid settings");
        let records = records.map(|record| without_empty_texts(record.expect("a complete file")));
        (path.display().to_string(), records.collect())
    });
    captures.collect()
}

/// Sets the application, and removes an empty history, because netflow_parser does not read empty texts.
fn without_empty_texts(mut record: FlowRecord) -> FlowRecord {
    if record.history.to_string().is_empty() {
        let names = FlowRecord::COLUMNS.iter().map(|field| field.name).filter(|name| *name != "history");
        record.known = FieldSet::of_names(names).expect("names of fields");
    }
    let name = ApplicationName::new("https").expect("a valid name");
    record.application = Some(Application { name, evidence: Evidence::Port });
    record
}

fn configurations() -> impl Iterator<Item = ExporterConfig> {
    (0..8).map(|choice| {
        let mut config = ExporterConfig::default();
        config.is_uniflow = choice & 1 != 0;
        if choice & 2 != 0 {
            config.time_precision = TimePrecision::Milliseconds;
        }
        config.enterprise_number = (choice & 4 != 0).then_some(32_473);
        config
    })
}

#[test]
fn exported_records_of_captures() {
    let captured = captured();
    assert_eq!(captured.len(), 9);
    let mut record_count = 0;
    for (path, records) in &captured {
        for config in configurations() {
            record_count += agree(&exported(records, config), path);
        }
    }
    assert!(record_count > 1000, "{record_count}");
}

/// RFC 7011 permits a value of zero octets: a string has "zero or more octets" (section 6.1.6), and the short form of a
/// length is for all lengths below 255 (section 7). netflow_parser 1.0.6 discards the rest of the set. The other tests
/// therefore have no such values.
#[test]
fn netflow_parser_does_not_read_a_value_of_zero_octets() {
    let (key, initiator) = FlowKey::tcp(([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 443).into());
    let record = FlowRecord::new(key, initiator, Timestamp::from_parts(1_700_000_000, 0));
    let mut config = ExporterConfig::default();
    // The history of the record is empty.
    config.enterprise_number = Some(32_473);
    let messages = exported(&[record.clone(), record.clone()], config);
    assert_eq!((ours(&messages).0.len(), theirs(&messages).len()), (2, 0));
}

/// The withdrawal of an options template consists of an identifier and the field count zero, without a count of scope
/// fields (RFC 7011 section 8.1, figure S). netflow_parser 1.0.6 discards the rest of the message.
#[test]
fn netflow_parser_does_not_read_a_withdrawal_of_an_options_template() {
    let templates = set(2, &[256, 3, 8, 4, 12, 4, 2, 4].map(u16::to_be_bytes).concat());
    let withdrawal = set(3, &[257, 0].map(u16::to_be_bytes).concat());
    let data = set(256, &[192, 0, 2, 1, 192, 0, 2, 2, 0, 0, 0, 5]);
    let message = |sets: &[u8]| [&[0, 10, 0, 16 + sets.len() as u8][..], &[0; 12], sets].concat();
    assert_eq!(agree(&[message(&[&templates[..], &data].concat())], "without a withdrawal"), 1);
    let messages = [message(&[&templates[..], &withdrawal, &data].concat())];
    assert_eq!((ours(&messages).0.len(), theirs(&messages).len()), (1, 0));
}

#[test]
fn generated_messages() {
    for protocol in [Protocol::Ipfix, Protocol::Netflow9] {
        let mut record_count = 0;
        for seed in 0..CASE_COUNT {
            let messages = Generator::new(protocol, seed).messages();
            record_count += agree(&messages, &format!("{protocol:?}, seed {seed}"));
        }
        assert!(record_count > 10 * CASE_COUNT as usize / 2, "{protocol:?}: {record_count}");
    }
}

#[test]
fn generated_messages_of_netflow_5() {
    let mut random = Random(5);
    for case in 0..CASE_COUNT {
        let record_count = 1 + (random.next() % 30) as u16;
        let uptime_ms = random.next() as u32 >> 1;
        let mut records = Vec::new();
        for _ in 0..record_count {
            let mut record: Vec<_> = (0..48).map(|_| random.next() as u8).collect();
            for time in [24, 28] {
                let time_ms = uptime_ms.saturating_sub(random.next() as u32 % 100_000);
                record[time..time + 4].copy_from_slice(&time_ms.to_be_bytes());
            }
            record[38] = ip_protocol(random.next(), false);
            records.extend(record);
        }
        let sequence_number = random.next() as u32;
        let header = NetflowHeader { record_count, uptime_ms, unix_seconds: 1_700_000_000, sequence_number };
        let count = agree(&[header.netflow5(&records)], &format!("case {case}"));
        assert_eq!(count, record_count.into());
    }
}
