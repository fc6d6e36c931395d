//! What an exporter sends is what a collector receives.

use std::collections::BTreeMap;
use std::time::Duration;

use flowgauge::export::{FixedRecord, FixedRecordError};
use flowgauge::export::{Style, write_json};
use flowgauge::ipfix::collector::UniflowJoiner;
use flowgauge::ipfix::{Exporter, ExporterConfig, MessageReader, StreamTransport, TimePrecision};
use flowgauge::row::Table as _;
use flowgauge::{FieldSet, FlowKey, FlowRecord, Resources, Side, Timestamp};

use super::capture_records::records;
use super::captures::{captures, own_captures, root};
use super::{ENTERPRISE_NUMBER, Stream, collect, export, with_own_elements};

/// Returns records as text, without their exporter, which only collected ones have.
fn lines(records: &[FlowRecord]) -> Vec<String> {
    let line = |record: &FlowRecord| {
        let mut out = Vec::new();
        let mut record = record.clone();
        record.exported = None;
        write_json(&mut out, &record, Style::default());
        String::from_utf8(out).unwrap()
    };
    records.iter().map(line).collect()
}

fn web() -> Vec<FlowRecord> {
    records(&root().join("examples/data/web.pcap"))
}

#[test]
fn records_of_captures_survive_export_and_collection() {
    let mut record_count = 0;
    for path in captures() {
        let records = records(&path);
        let (messages, sent) = export(&records, with_own_elements());
        let (collected, received) = collect(messages.iter().map(Vec::as_slice));
        for (original, collected) in lines(&records).iter().zip(lines(&collected)) {
            assert_eq!(*original, collected, "{}", path.display());
        }
        assert_eq!(records.len(), collected.len(), "{}", path.display());
        assert_eq!(received.record_count, sent.data_record_count);
        assert_eq!(received.message_count, sent.message_count);
        assert_eq!(received.template_count, sent.template_count);
        assert_eq!(received.malformed_message_count + received.lost_count + received.invalid_value_count, 0);
        assert!(messages.iter().all(|message| message.len() <= 1400));
        record_count += records.len();
    }
    assert!(record_count > 100, "{record_count}");
}

#[test]
fn a_stream_has_the_records_of_datagrams() {
    let records = web();
    let mut file = Vec::new();
    let mut exporter = Exporter::new(with_own_elements(), StreamTransport::new(&mut file)).unwrap();
    for record in &records {
        exporter.export(record, record.end).unwrap();
    }
    exporter.flush().unwrap();
    let mut reader = MessageReader::new(&file[..]);
    let mut messages = Vec::new();
    while let Some(message) = reader.next().unwrap() {
        messages.push(message.to_vec());
    }
    let (collected, _) = collect(messages.iter().map(Vec::as_slice));
    assert_eq!(lines(&records), lines(&collected));
    assert_eq!(file.len(), messages.iter().map(Vec::len).sum::<usize>());
}

#[test]
fn the_smallest_messages_suffice_for_all_records() {
    let mut config = with_own_elements();
    config.message_len_max = 512;
    for path in own_captures() {
        let records = records(&path);
        let (messages, stats) = export(&records, config);
        assert!(messages.iter().all(|message| message.len() <= 512));
        let (collected, _) = collect(messages.iter().map(Vec::as_slice));
        assert_eq!(stats.shortened_record_count, 0, "{}", path.display());
        assert_eq!(lines(&records), lines(&collected), "{}", path.display());
    }
}

#[test]
fn without_an_enterprise_number_only_registered_elements_are_sent() {
    let records = web();
    let (messages, _) = export(&records, ExporterConfig::default());
    let (collected, stats) = collect(messages.iter().map(Vec::as_slice));
    assert_eq!(stats.options_record_count, 0);
    for (original, collected) in records.iter().zip(&collected) {
        assert_eq!((original.key, original.initiator), (collected.key, collected.initiator));
        assert_eq!((original.start, original.end), (collected.start, collected.end));
        assert_eq!(original.packet_count(), collected.packet_count());
        assert_eq!(original.octet_count(), collected.octet_count());
        assert_eq!(original.forward.tcp_flags, collected.forward.tcp_flags);
        assert_eq!(original.flow_end_reason, collected.flow_end_reason);
        let is_known = |name| {
            let index = FlowRecord::COLUMNS.iter().position(|field| field.name == name).unwrap();
            collected.known.contains(index)
        };
        assert!(is_known("reverse_packet_count") && is_known("community_id") && !is_known("conn_state"));
    }
}

#[test]
fn times_in_milliseconds_are_rounded_down() {
    let records = web();
    let mut config = ExporterConfig::default();
    config.time_precision = TimePrecision::Milliseconds;
    let (messages, _) = export(&records, config);
    let (collected, _) = collect(messages.iter().map(Vec::as_slice));
    for (original, collected) in records.iter().zip(&collected) {
        let rounded = |time: Timestamp| time.as_nanos() / 1_000_000 * 1_000_000;
        assert_eq!(collected.start.as_nanos(), rounded(original.start));
        assert_eq!(collected.end.as_nanos(), rounded(original.end));
    }
}

#[test]
fn uniflows_are_joined_to_the_original_biflows() {
    for path in own_captures() {
        let records = records(&path);
        let mut config = ExporterConfig::default();
        config.is_uniflow = true;
        let (messages, stats) = export(&records, config);
        let (uniflows, _) = collect(messages.iter().map(Vec::as_slice));
        assert_eq!(uniflows.len() as u64, stats.data_record_count);
        assert!(uniflows.iter().all(|record| record.reverse.counters.is_empty()));
        let mut joiner = UniflowJoiner::new(1000, Duration::from_secs(30), &Resources::default()).unwrap();
        let mut joined = Vec::new();
        for uniflow in &uniflows {
            joiner.push(uniflow, uniflow.end, |record| joined.push(record.clone()));
        }
        joiner.finish(|record| joined.push(record.clone()));
        let summary = |records: &[FlowRecord]| {
            let mut summary = BTreeMap::<_, (u64, u64, u64)>::new();
            for record in records {
                // A flow whose initiator sent nothing is exported with the responder as the source.
                let initiator = if record.forward.counters.is_empty() {
                    record.initiator.other()
                } else {
                    record.initiator
                };
                let totals = summary.entry((record.key, initiator)).or_default();
                totals.0 += 1;
                totals.1 += record.packet_count();
                totals.2 += record.octet_count();
            }
            summary
        };
        assert_eq!(summary(&joined), summary(&records), "{}", path.display());
    }
}

/// Returns a record of which only some fields are known, as from a collector.
fn partial(index: u16, known: u128) -> FlowRecord {
    let (key, initiator) = FlowKey::tcp(([192, 0, 2, 1], index).into(), ([192, 0, 2, 2], 80).into());
    let mut record = FlowRecord::new(key, initiator, Timestamp::from_parts(1_700_000_000, 0));
    let required = FieldSet::of_names(["protocol", "source_address", "destination_address"]).unwrap();
    let known = (0..FlowRecord::COLUMNS.len()).filter(|index| known >> index & 1 == 1);
    record.known = known.fold(required, FieldSet::with);
    record
}

#[test]
fn templates_are_withdrawn_from_a_stream_when_there_are_too_many() {
    let stream = Stream::default();
    let mut exporter = Exporter::new(with_own_elements(), stream.clone()).unwrap();
    let mut expected = Vec::new();
    // More layouts than templates; the first ones are used again after they were withdrawn.
    for round in 0..2_u16 {
        for index in 0..1500_u16 {
            // The counts of both directions, which every record has.
            let known = u128::from(index & 0xff) << 8 | u128::from(index >> 8) << 21;
            let record = partial(index + round, known);
            exporter.export(&record, record.end).unwrap();
            expected.push(record);
        }
    }
    exporter.flush().unwrap();
    assert!(exporter.stats().assigned_template_count > 2000);
    let (collected, stats) = collect(stream.0.borrow().iter().map(Vec::as_slice));
    assert_eq!(stats.unknown_template_set_count + stats.malformed_message_count, 0);
    assert_eq!(collected.len(), expected.len());
    for (collected, expected) in collected.iter().zip(&expected) {
        assert_eq!(collected.source_address(), expected.source_address());
        assert_eq!(collected.packet_count(), expected.packet_count());
    }
}

#[test]
fn templates_are_sent_again_over_datagrams() {
    let mut config = with_own_elements();
    config.template_refresh_message_count = 4;
    let records: Vec<_> = (0..40).flat_map(|_| web()).collect();
    let (messages, stats) = export(&records, config);
    assert!(messages.len() > 50 && stats.template_count >= messages.len() as u64 / 4);
    // A collector that starts late decodes everything after the next refresh.
    let begins_with_data = |message: &Vec<u8>| message[16] > 0;
    let late = messages.iter().skip(messages.len() / 2).skip_while(|message| !begins_with_data(message));
    let (collected, received) = collect(late.map(Vec::as_slice));
    assert!(received.unknown_template_set_count > 0);
    let last = lines(&records[records.len() - 27 * 15..]);
    let collected = lines(&collected);
    assert_eq!(collected[collected.len() - last.len()..], last);

    // The refresh also depends on the time.
    let mut config = ExporterConfig::default();
    config.template_refresh = Duration::from_secs(10);
    let datagrams = super::Datagrams::default();
    let mut exporter = Exporter::new(config, datagrams).unwrap();
    let record = partial(1, 0);
    for second in 0..=25 {
        exporter.export(&record, Timestamp::from_parts(1_700_000_000 + second, 0)).unwrap();
    }
    exporter.flush().unwrap();
    assert_eq!(exporter.stats().template_count, 3);
}

#[test]
fn headers_and_configurations_are_checked() {
    let records = web();
    let mut config = with_own_elements();
    config.observation_domain_id = 0x0102_0304;
    let (messages, _) = export(&records, config);
    let mut sequence_number = 0;
    for message in &messages {
        let field = |at: usize| u32::from_be_bytes(message[at..at + 4].try_into().unwrap());
        assert_eq!(message[..2], [0, 10]);
        assert_eq!(usize::from(u16::from_be_bytes([message[2], message[3]])), message.len());
        assert_eq!((field(8), field(12)), (sequence_number, 0x0102_0304));
        let (collected, stats) =
            collect(messages.iter().take_while(|m| *m != message).chain([message]).map(|m| &m[..]));
        sequence_number = (collected.len() as u64 + stats.options_record_count) as u32;
    }

    for len in [0, 511, 65_536] {
        let mut config = ExporterConfig::default();
        config.message_len_max = len;
        let error = Exporter::new(config, Stream::default()).unwrap_err();
        assert_eq!(error.to_string(), "ipfix: message_len_max must be from 512 to 65535");
    }
    let mut config = ExporterConfig::default();
    config.template_refresh_message_count = 0;
    assert!(Exporter::new(config, Stream::default()).is_err());
}

#[test]
fn times_outside_of_the_ntp_format_are_the_nearest_ones() {
    let mut record = partial(1, u128::MAX);
    for nanos in [0, 1, 999_999_999, 4_294_967_295_000_000_000] {
        (record.start, record.end) = (Timestamp::from_nanos(nanos), Timestamp::from_nanos(nanos));
        let (messages, _) = export(std::slice::from_ref(&record), with_own_elements());
        let (collected, _) = collect(messages.iter().map(Vec::as_slice));
        assert_eq!(collected[0].start.as_nanos(), nanos);
    }
    (record.start, record.end) = (Timestamp::MAX, Timestamp::MAX);
    let (messages, _) = export(std::slice::from_ref(&record), with_own_elements());
    let (collected, _) = collect(messages.iter().map(Vec::as_slice));
    assert_eq!(collected[0].start, Timestamp::from_parts(u32::MAX.into(), 0));
    assert_eq!((collected[0].initiator, ENTERPRISE_NUMBER), (Side::A, 32_473));
}

#[test]
fn fixed_records_have_the_fields_of_captures() {
    for path in captures() {
        let records = records(&path);
        let encoded: Vec<u8> = records.iter().flat_map(FixedRecord::encode).collect();
        assert_eq!(encoded.len(), 64 * records.len());
        for (record, fixed) in records.iter().zip(FixedRecord::all(&encoded)) {
            let fixed = fixed.unwrap();
            let decoded = fixed.to_record();
            // The scope and an echo identifier are not part of the record.
            assert_eq!(decoded.source_address(), record.source_address());
            assert_eq!(decoded.destination_address(), record.destination_address());
            assert_eq!(
                (decoded.source_port(), decoded.destination_port()),
                (record.source_port(), record.destination_port())
            );
            assert_eq!((decoded.protocol(), decoded.start), (record.protocol(), record.start));
            assert_eq!(
                (decoded.conn_state, decoded.flow_end_reason),
                (record.conn_state, record.flow_end_reason)
            );
            assert_eq!(
                (decoded.packet_count(), decoded.octet_count()),
                (record.packet_count(), record.octet_count())
            );
            assert_eq!(decoded.forward.counters.packet_count, record.forward.counters.packet_count);
            assert!(record.icmp.is_none() || record.source_port().is_some() || decoded.icmp == record.icmp);
            let rounding = record.duration().saturating_sub(decoded.duration());
            assert!(decoded.end <= record.end && rounding <= record.duration() / 250_000);
            assert_eq!(FixedRecord::encode(&decoded), FixedRecord::encode(record));
            assert!(!fixed.is_saturated());
        }
    }
}

#[test]
fn fixed_records_are_checked_and_saturate() {
    let mut record = web().remove(0);
    record.forward.counters.packet_count = 1 << 24;
    record.reverse.counters.octet_count = u64::MAX;
    let encoded = FixedRecord::encode(&record);
    let fixed = FixedRecord::new(&encoded).unwrap();
    assert!(fixed.is_saturated());
    assert_eq!((fixed.packet_count(), fixed.reverse_octet_count()), ((1 << 24) - 1, u32::MAX.into()));

    let mut other = encoded;
    other[0] = 0x20 | other[0] & 0xf;
    assert_eq!(FixedRecord::new(&other), Err(FixedRecordError::Version(2)));
    for outcome in [0xd3, 0xf1, 0x00, 0x06] {
        other = encoded;
        other[2] = outcome;
        assert_eq!(FixedRecord::new(&other), Err(FixedRecordError::Outcome(outcome)));
    }
    let octets = [&encoded[..], &encoded[..10]].concat();
    let all: Vec<_> = FixedRecord::all(&octets).collect();
    assert_eq!((all.len(), all[1]), (2, Err(FixedRecordError::Truncated { available: 10 })));
}

/// The layout is that of the documentation, on every machine.
#[test]
fn a_fixed_record_has_its_documented_layout() {
    let (key, initiator) = FlowKey::tcp(([192, 0, 2, 2], 0x1234).into(), ([192, 0, 2, 1], 0x0050).into());
    let mut record = FlowRecord::new(key, initiator, Timestamp::from_nanos(0x0102_0304_0506_0708));
    record.end = record.start.saturating_add(Duration::from_nanos(0x10_0000));
    record.forward.counters.packet_count = 0x0a_0b0c;
    record.forward.counters.octet_count = 0x1112_1314;
    record.reverse.counters.packet_count = 0x0d_0e0f;
    record.reverse.counters.octet_count = 0x2122_2324;
    let expected = [
        0x12, 6, 0xc4, 0x14, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22,
        0x23, 0x24, 1, 2, 3, 4, 5, 6, 7, 8, 0x12, 0x34, 0, 0x50, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0,
        2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1,
    ];
    assert_eq!(FixedRecord::encode(&record), expected);
}
