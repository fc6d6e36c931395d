//! Lost templates, restarted exporters, floods, and messages with contradictory lengths.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use flowgauge::base::IpProtocol;
use flowgauge::ipfix::collector::{Collector, CollectorConfig, TransportSession, UniflowJoiner};
use flowgauge::ipfix::{Exporter, ExporterConfig, Transport};
use flowgauge::row::Table as _;
use flowgauge::{FlowKey, FlowRecord, Resources, Timestamp};
use proptest::prelude::*;

use super::capture_records::records;
use super::captures::own_captures;
use super::{collect, export, exporter_address, with_own_elements};

fn messages() -> Vec<Vec<u8>> {
    let captures = own_captures();
    let web = captures.iter().find(|path| path.ends_with("web.pcap")).expect("a capture");
    let records = records(web);
    let records: Vec<_> = (0..10).flat_map(|_| records.clone()).collect();
    let mut config = with_own_elements();
    config.template_refresh_message_count = 4;
    export(&records, config).0
}

fn message(sequence_number: u32, domain: u32, sets: &[u8]) -> Vec<u8> {
    let mut message = vec![0, 10];
    message.extend((16 + sets.len() as u16).to_be_bytes());
    message.extend(1_700_000_000_u32.to_be_bytes());
    message.extend(sequence_number.to_be_bytes());
    message.extend(domain.to_be_bytes());
    message.extend(sets);
    message
}

fn set(id: u16, body: &[u16]) -> Vec<u8> {
    let mut set = Vec::new();
    set.extend(id.to_be_bytes());
    set.extend((4 + 2 * body.len() as u16).to_be_bytes());
    set.extend(body.iter().flat_map(|word| word.to_be_bytes()));
    set
}

/// A template with the addresses and the number of packets.
fn template(id: u16) -> Vec<u8> {
    set(2, &[id, 3, 8, 4, 12, 4, 2, 4])
}

/// A data record of [`template`] between documentation addresses.
fn data(id: u16, packet_count: u16) -> Vec<u8> {
    set(id, &[0xc000, 0x0201, 0xc000, 0x0202, 0, packet_count])
}

#[test]
fn a_lost_message_is_counted_and_later_records_are_complete() {
    let messages = messages();
    let (all, _) = collect(messages.iter().map(Vec::as_slice));
    // Templates that are lost are sent again within a few messages.
    for lost in 1..messages.len() - 10 {
        let kept = messages.iter().enumerate().filter(|(index, _)| *index != lost);
        let (collected, stats) = collect(kept.map(|(_, message)| message.as_slice()));
        assert!(stats.lost_count > 0 || stats.unknown_template_set_count > 0, "{lost}");
        assert_eq!(stats.malformed_message_count, 0);
        assert_eq!(collected.last(), all.last());
        assert!(collected.iter().all(|record| all.contains(record)));
    }
}

#[test]
fn a_missing_template_is_counted_until_it_arrives() {
    let messages = [
        message(0, 1, &data(256, 1)),
        message(1, 1, &[template(256), data(256, 2)].concat()),
        message(2, 1, &data(256, 3)),
    ];
    let (collected, stats) = collect(messages.iter().map(Vec::as_slice));
    assert_eq!(stats.unknown_template_set_count, 1);
    assert_eq!(collected.iter().map(FlowRecord::packet_count).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(stats.lost_count + stats.restart_count, 0);
}

#[test]
fn a_restarted_exporter_continues_with_new_templates() {
    let other = set(2, &[256, 3, 2, 4, 8, 4, 12, 4]);
    let reversed = set(256, &[0, 9, 0xc000, 0x0201, 0xc000, 0x0202]);
    let messages = [
        message(500_000, 1, &[template(256), data(256, 1)].concat()),
        message(0, 1, &[other, reversed].concat()),
    ];
    let (collected, stats) = collect(messages.iter().map(Vec::as_slice));
    assert_eq!(stats.restart_count, 1);
    assert_eq!(collected.iter().map(FlowRecord::packet_count).collect::<Vec<_>>(), [1, 9]);
    assert_eq!(collected[0].key, collected[1].key);
}

#[test]
fn withdrawn_templates_are_not_used() {
    for withdrawal in [set(2, &[256, 0]), set(2, &[2, 0])] {
        let messages = [
            message(0, 1, &[template(256), data(256, 1)].concat()),
            message(1, 1, &[withdrawal, data(256, 2)].concat()),
        ];
        let (collected, stats) = collect(messages.iter().map(Vec::as_slice));
        assert_eq!((collected.len(), stats.unknown_template_set_count), (1, 1));
    }
}

#[test]
fn domains_and_exporters_have_separate_templates() {
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    let mut record_count = 0;
    let mut send = |collector: &mut Collector, port: u16, message: &[u8]| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        collector.message(address, message, Timestamp::ZERO, |_| record_count += 1);
    };
    send(&mut collector, 1, &message(0, 1, &template(256)));
    send(&mut collector, 1, &message(0, 1, &data(256, 1)));
    send(&mut collector, 1, &message(0, 2, &data(256, 1)));
    send(&mut collector, 2, &message(0, 1, &data(256, 1)));
    assert_eq!(collector.stats().unknown_template_set_count, 2);
    // The templates of a connection end with it.
    collector.disconnect(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    send(&mut collector, 1, &message(1, 1, &data(256, 1)));
    assert_eq!(collector.stats().unknown_template_set_count, 3);
    assert_eq!(record_count, 1);
}

/// An exporter with the same port over each transport protocol has three sessions (RFC 7011 section 10).
#[test]
fn transport_sessions_have_separate_templates() {
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    let sessions = [IpProtocol::UDP, IpProtocol::TCP, IpProtocol::SCTP]
        .map(|protocol| TransportSession::new(protocol, exporter_address()));
    let send = |collector: &mut Collector, session, message: &[u8]| {
        let mut count = 0;
        collector.session_message(session, message, Timestamp::ZERO, |_| count += 1);
        count
    };
    for (index, session) in sessions.into_iter().enumerate() {
        assert_eq!(send(&mut collector, session, &message(0, 1, &data(256, 1))), 0, "{index}");
        assert_eq!(send(&mut collector, session, &message(0, 1, &template(256))), 0);
        assert_eq!(send(&mut collector, session, &message(0, 1, &data(256, 1))), 1);
    }
    collector.end_session(sessions[1]);
    let counts = sessions.map(|session| send(&mut collector, session, &message(1, 1, &data(256, 1))));
    assert_eq!(counts, [1, 0, 1]);
    assert_eq!(collector.stats().unknown_template_set_count, 4);
    collector.disconnect(exporter_address());
    let counts = sessions.map(|session| send(&mut collector, session, &message(2, 1, &data(256, 1))));
    assert_eq!(counts, [0, 0, 0]);
}

#[test]
fn a_flood_of_exporters_and_templates_does_not_displace_an_exporter() {
    let mut config = CollectorConfig::default();
    (config.domain_count_max, config.template_bytes_max) = (100, 1 << 20);
    let mut collector = Collector::new(config).unwrap();
    let mut record_count = 0;
    collector.message(
        exporter_address(),
        &message(0, 1, &[template(256), data(256, 1)].concat()),
        Timestamp::ZERO,
        |_| record_count += 1,
    );
    for index in 0..10_000_u32 {
        let address = SocketAddr::from((Ipv4Addr::from(0x0a00_0000 + index), 4739));
        let templates: Vec<u8> = (256..300).flat_map(template).collect();
        collector.message(address, &message(0, index, &templates), Timestamp::ZERO, |_| record_count += 1);
    }
    // Templates of one domain that are too large alone.
    let template: Vec<u16> = [300_u16, 8000].into_iter().chain((0..8000).flat_map(|_| [999, 1])).collect();
    for id in 0..100_u16 {
        let mut template = template.clone();
        template[0] += id;
        collector.message(exporter_address(), &message(1, 7, &set(2, &template)), Timestamp::ZERO, |_| {
            record_count += 1
        });
    }
    let stats = collector.stats();
    assert!(stats.evicted_domain_count > 9000 && stats.refused_template_count > 0, "{stats:?}");
    collector
        .message(exporter_address(), &message(1, 1, &data(256, 2)), Timestamp::ZERO, |_| record_count += 1);
    assert_eq!(record_count, 2);
}

/// Returns the number of records of an exporter's last message, which needs the template of its first one. Between the
/// two, `flood` sends messages from other addresses, `count` of them; the last one arrives `seconds` later.
fn records_after_a_flood(seconds: u64, count: u32, flood: impl Fn(u32) -> SocketAddr) -> u32 {
    let mut config = CollectorConfig::default();
    config.domain_count_max = 1000;
    let mut collector = Collector::new(config).unwrap();
    let mut record_count = 0;
    let start = Timestamp::from_parts(1_700_000_000, 0);
    let later = start.saturating_add(Duration::from_secs(seconds));
    let first = message(0, 1, &[template(256), data(256, 1)].concat());
    collector.message(exporter_address(), &first, start, |_| ());
    collector.message(exporter_address(), &message(1, 1, &data(256, 1)), later, |_| ());
    for index in 0..count {
        // Each domain sends a record, as an exporter does.
        collector.message(
            flood(index),
            &message(0, index, &[template(256), data(256, 1)].concat()),
            later,
            |_| (),
        );
    }
    collector.message(exporter_address(), &message(2, 1, &data(256, 1)), later, |_| record_count += 1);
    record_count
}

#[test]
fn domains_of_few_addresses_do_not_displace_an_exporter() {
    let address = |index: u32| SocketAddr::from((Ipv4Addr::from(0x0a00_0000 + index % 200), 4739));
    assert_eq!(records_after_a_flood(0, 10_000, address), 1);
    // One address that opens a connection for each domain.
    let ports = |index: u32| SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), index as u16));
    assert_eq!(records_after_a_flood(0, 10_000, ports), 1);
}

#[test]
fn an_exporter_that_has_sent_records_for_a_minute_is_kept_before_new_addresses() {
    let address = |index: u32| SocketAddr::from((Ipv4Addr::from(0x0a00_0000 + index), 4739));
    assert_eq!(records_after_a_flood(60, 10_000, address), 1);
}

#[test]
fn memory_of_withdrawn_templates_is_released_and_counted() {
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    for domain in 0..50 {
        let all: Vec<u16> = (256..16_256).collect();
        for ids in all.chunks(4000) {
            let templates: Vec<u16> = ids.iter().flat_map(|id| [*id, 1, 8, 4]).collect();
            collector.message(
                exporter_address(),
                &message(0, domain, &set(2, &templates)),
                Timestamp::ZERO,
                |_| (),
            );
        }
        collector.message(exporter_address(), &message(0, domain, &set(2, &[2, 0])), Timestamp::ZERO, |_| ());
    }
    // All of them together fit the limit only if withdrawn templates use no memory.
    let stats = collector.stats();
    assert_eq!((stats.template_count, stats.evicted_domain_count), (50 * 16_000, 0));
}

/// Definitions that change all the time: the meaning of an element is the last one for which compilation was permitted,
/// and records are decoded all the same.
#[test]
fn changing_definitions_of_elements_do_not_stop_records() {
    const TYPE_RECORD: [u16; 9] = [999, 3, 1, 346, 4, 303, 2, 341, 65_535];
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    let long: Vec<u16> =
        [256, 8002, 8, 4, 12, 4].into_iter().chain((0..8000).flat_map(|_| [210, 0])).collect();
    let templates = [set(2, &long), set(3, &TYPE_RECORD)].concat();
    collector.message(exporter_address(), &message(0, 1, &templates), Timestamp::ZERO, |_| ());
    let mut record_count = 0;
    for number in 0..500_u16 {
        let mut definition = vec![0x03, 0xe7, 0, 22, 0, 0, 0x7e, 0xd9];
        definition.extend((1 + number % 2).to_be_bytes());
        definition.extend(b"\x0bcommunityId");
        let record = [1, 0, 0, 12, 192, 0, 2, 1, 192, 0, 2, 2];
        let body = [&definition[..], &record].concat();
        collector.message(exporter_address(), &message(0, 1, &body), Timestamp::ZERO, |_| record_count += 1);
    }
    assert_eq!((record_count, collector.stats().malformed_message_count), (500, 0));
}

#[test]
fn lengths_that_contradict_each_other_are_counted() {
    let good = message(0, 1, &[template(256), data(256, 1)].concat());
    let too_long = |at: usize, value: u16| {
        let mut message = good.clone();
        message[at..at + 2].copy_from_slice(&value.to_be_bytes());
        message
    };
    let cases = [
        good[..10].to_vec(),
        vec![0, 10],
        Vec::new(),
        vec![0, 11, 0, 16],
        too_long(2, 15),
        too_long(2, 2000),
        // The length of the set of templates, and the number of its fields.
        too_long(18, 3),
        too_long(18, 2000),
        too_long(22, 2000),
        [good.clone(), vec![1]].concat(),
    ];
    for (index, case) in cases.iter().enumerate() {
        let (collected, stats) = collect([case.as_slice(), good.as_slice()]);
        assert_eq!(stats.malformed_message_count, 1, "{index}");
        assert_eq!(collected.last().map(FlowRecord::packet_count), Some(1), "{index}");
    }
    // A record of variable length that exceeds its set.
    let variable = set(2, &[256, 3, 8, 4, 12, 4, 96, 65_535]);
    let lying = set(256, &[0xc000, 0x0201, 0xc000, 0x0202, 0xff10, 0x0041]);
    let (collected, stats) = collect([message(0, 1, &[variable, lying].concat()).as_slice()]);
    assert_eq!((collected.len(), stats.malformed_message_count), (0, 1));
    // A template whose records have no octets would describe an unlimited number of them.
    let empty = set(2, &[256, 1, 8, 0]);
    let (_, stats) = collect([message(0, 1, &[empty, set(256, &[0])].concat()).as_slice()]);
    assert_eq!((stats.refused_template_count, stats.unknown_template_set_count), (1, 1));
}

#[test]
fn unknown_elements_are_skipped_and_invalid_values_are_absent() {
    let template = set(2, &[256, 7, 4, 1, 8, 4, 0x8000 | 7, 65_535, 0, 9999, 12, 4, 900, 2, 136, 1, 2, 3]);
    let mut record = vec![17, 192, 0, 2, 1, 3, 1, 2, 3, 192, 0, 2, 2, 9, 9, 77, 1, 0, 0];
    let mut data = [1, 0].to_vec();
    data.extend((4 + record.len() as u16).to_be_bytes());
    data.append(&mut record);
    let (collected, stats) = collect([message(0, 1, &[template, data].concat()).as_slice()]);
    assert_eq!(stats.invalid_value_count, 1, "77 is no flowEndReason");
    let index = FlowRecord::COLUMNS.iter().position(|field| field.name == "flow_end_reason").unwrap();
    assert!(!collected[0].known.contains(index) && collected[0].known.contains(0));
    // Three octets are a reduced-size encoding.
    assert_eq!(collected[0].packet_count(), 65_536);
    assert_eq!(collected[0].destination_address(), Ipv4Addr::new(192, 0, 2, 2));
}

/// Bits that RFC 7011 section 6.1.9 (dateTimeMicroseconds) and RFC 9565 section 3 (tcpControlBits) reserve.
#[test]
fn reserved_bits_are_ignored() {
    let template = set(2, &[256, 5, 8, 4, 12, 4, 4, 1, 154, 8, 6, 2]);
    let mut data = vec![1, 0, 0, 23, 192, 0, 2, 1, 192, 0, 2, 2, 6];
    data.extend([0xe8, 0xfe, 0x7f, 0x80, 0, 0, 7, 0xff, 0x50, 0x12]);
    let (collected, _) = collect([message(0, 1, &[template, data].concat()).as_slice()]);
    assert_eq!(collected[0].start, Timestamp::from_parts(1_700_004_096, 0));
    assert_eq!(collected[0].forward.tcp_flags.0, 0x12);
}

#[test]
fn the_first_of_equal_elements_and_the_most_precise_time_count() {
    // Two numbers of packets, and a time in seconds behind one in milliseconds.
    let template = set(2, &[256, 6, 8, 4, 12, 4, 2, 1, 2, 1, 152, 8, 150, 4]);
    let mut data = vec![1, 0, 0, 26, 192, 0, 2, 1, 192, 0, 2, 2, 5, 9];
    data.extend(1_700_000_000_123_u64.to_be_bytes());
    data.extend(1_u32.to_be_bytes());
    let (collected, _) = collect([message(0, 1, &[template, data].concat()).as_slice()]);
    assert_eq!(collected[0].packet_count(), 5);
    assert_eq!(collected[0].start.as_nanos(), 1_700_000_000_123_000_000);
}

#[test]
fn names_of_applications_are_compared_without_regard_to_case() {
    let template = set(2, &[256, 4, 8, 4, 12, 4, 4, 1, 96, 8]);
    let mut data = vec![1, 0, 0, 38];
    for name in [b"HTTP\0\0\0\0", b"Unknown\0"] {
        data.extend([192, 0, 2, 1, 192, 0, 2, 2, 6]);
        data.extend(name);
    }
    let (collected, _) = collect([message(0, 1, &[template, data].concat()).as_slice()]);
    let names =
        collected.iter().map(|record| record.application.map(|application| application.name.to_string()));
    assert_eq!(names.collect::<Vec<_>>(), [Some("http".into()), None]);
}

/// A transport that loses its first message, and keeps the others.
#[derive(Default)]
struct Failing {
    has_failed: bool,
    messages: Vec<Vec<u8>>,
}

impl Transport for Failing {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_failed, true) {
            return Err(io::ErrorKind::NetworkUnreachable.into());
        }
        self.messages.push(message.to_vec());
        Ok(())
    }
}

#[test]
fn an_error_of_the_transport_loses_no_later_record() {
    let mut config = ExporterConfig::default();
    (config.is_uniflow, config.template_refresh) = (true, Duration::from_secs(1));
    let mut exporter = Exporter::new(config, Failing::default()).unwrap();
    let captures = own_captures();
    let web = records(captures.iter().find(|path| path.ends_with("web.pcap")).unwrap());
    let record = web.iter().find(|record| record.reverse.counters.packet_count > 0).unwrap();
    exporter.export(record, Timestamp::from_parts(1, 0)).unwrap();
    // Templates are due again, so that the message before is sent. Its error does not concern this record.
    assert!(exporter.export(record, Timestamp::from_parts(3, 0)).is_err());
    exporter.flush().unwrap();
    let messages = exporter.into_transport().messages;
    let (collected, _) = collect(messages.iter().map(Vec::as_slice));
    let packet_counts: Vec<_> = collected.iter().map(FlowRecord::packet_count).collect();
    assert_eq!(packet_counts, [record.forward.counters.packet_count, record.reverse.counters.packet_count]);
}

#[test]
fn a_protocol_of_the_other_ip_version_is_kept() {
    let template = set(2, &[256, 4, 8, 4, 12, 4, 4, 1, 32, 2]);
    let data = [&[1, 0, 0, 15, 192, 0, 2, 1, 192, 0, 2, 2, 58, 128, 0][..]].concat();
    let (collected, _) = collect([message(0, 1, &[template, data].concat()).as_slice()]);
    assert_eq!(collected[0].protocol().0, 58);
    assert_eq!(collected[0].icmp, Some((128, 0)));
}

#[test]
fn records_without_addresses_are_counted() {
    let template = set(2, &[256, 2, 2, 4, 1, 4]);
    let (collected, stats) =
        collect([message(0, 1, &[template, set(256, &[0, 1, 0, 60])].concat()).as_slice()]);
    assert_eq!((collected.len(), stats.unkeyed_record_count), (0, 1));
    // Addresses of both versions of IP.
    let template = set(2, &[256, 2, 8, 4, 28, 16]);
    let (collected, stats) = collect([message(0, 1, &[template, set(256, &[1; 10])].concat()).as_slice()]);
    assert_eq!((collected.len(), stats.unkeyed_record_count), (0, 1));
}

#[test]
fn waiting_uniflows_are_bounded() {
    let mut joiner = UniflowJoiner::new(100, Duration::from_secs(10), &Resources::default()).unwrap();
    let mut emitted_count = 0;
    for index in 0..10_000_u32 {
        // Half of the uniflows have the same Flow Key.
        let port = if index % 2 == 0 { 1 } else { index as u16 };
        let (key, side) = FlowKey::tcp(([192, 0, 2, 1], port).into(), ([192, 0, 2, 2], 80).into());
        let record = FlowRecord::new(key, side, Timestamp::from_parts(1_700_000_000, 0));
        joiner.push(&record, Timestamp::from_parts(1_700_000_000, 0), |_| emitted_count += 1);
        assert!(index + 1 - emitted_count <= 100);
    }
    // Those that remain wait for at most ten seconds.
    let (key, side) = FlowKey::tcp(([192, 0, 2, 9], 1).into(), ([192, 0, 2, 2], 80).into());
    let last = FlowRecord::new(key, side, Timestamp::from_parts(1_700_000_011, 0));
    joiner.push(&last, last.end, |_| emitted_count += 1);
    assert_eq!(emitted_count, 10_000);
    joiner.finish(|_| emitted_count += 1);
    assert_eq!(emitted_count, 10_001);
    assert!(UniflowJoiner::new(0, Duration::ZERO, &Resources::default()).is_err());
}

proptest! {
    /// Changed messages are decoded without a panic, and a valid message is decoded completely afterwards.
    #[test]
    fn changed_messages_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        len in any::<prop::sample::Index>(),
    ) {
        let mut message = message(0, 1, &[template(256), data(256, 1), template(257), data(257, 3)].concat());
        for (index, octet) in changes {
            let index = index.index(message.len());
            message[index] = octet;
        }
        message.truncate(len.index(message.len() + 1));
        let valid = self::message(0, 1, &[template(256), data(256, 1)].concat());
        let (collected, stats) = collect([message.as_slice(), valid.as_slice()]);
        prop_assert!(collected.len() <= 3 + message.len() / 8);
        prop_assert_eq!(collected.len() as u64, stats.record_count);
        prop_assert_eq!(collected.last().map(FlowRecord::packet_count), Some(1));
    }
}

/// Each number of microseconds, as an exporter rounds it down to the NTP format and clears the eleven lowest bits (RFC
/// 7011 section 6.1.9).
#[test]
fn microseconds_are_exact() {
    let template = set(2, &[256, 4, 8, 4, 12, 4, 4, 1, 154, 8]);
    let (seconds, ntp_seconds) = (1_700_000_000_u64, 1_700_000_000_u64 + 2_208_988_800);
    let all = (0..1_000_000_u64).step_by(499).chain([1, 2, 499_999, 500_000, 999_998, 999_999]);
    let microseconds: Vec<_> = all.collect();
    for mask in [!0x7ff_u64, u64::MAX] {
        let mut messages = Vec::new();
        for some in microseconds.chunks(1000) {
            let mut data = vec![1, 0];
            data.extend((4 + some.len() as u16 * 17).to_be_bytes());
            for microsecond in some {
                data.extend([192, 0, 2, 1, 192, 0, 2, 2, 6]);
                data.extend((((ntp_seconds << 32) | ((microsecond << 32) / 1_000_000)) & mask).to_be_bytes());
            }
            messages.push(message(0, 1, &[template.clone(), data].concat()));
        }
        let (collected, _) = collect(messages.iter().map(Vec::as_slice));
        for (record, microsecond) in collected.iter().zip(&microseconds) {
            assert_eq!(record.start, Timestamp::from_parts(seconds, microsecond * 1000), "{microsecond}");
        }
        assert_eq!(collected.len(), microseconds.len());
    }
}

/// The uptime of an exporter wraps after 49.7 days. The time of the message states how often it has wrapped.
#[test]
fn the_uptime_of_an_exporter_may_wrap() {
    const WRAP_MS: u64 = 1 << 32;
    let export_ms = 1_700_000_000_000_u64;
    // Addresses, protocol, systemInitTimeMilliseconds, flowStartSysUpTime, flowEndSysUpTime.
    let template = set(2, &[256, 6, 8, 4, 12, 4, 4, 1, 160, 8, 22, 4, 21, 4]);
    for uptime_ms in [5000, WRAP_MS - 1, WRAP_MS, WRAP_MS + 1000, WRAP_MS + 5000, 9 * WRAP_MS + 2500] {
        let init_ms = export_ms - uptime_ms;
        let mut data = vec![1, 0, 0, 29, 192, 0, 2, 1, 192, 0, 2, 2, 6];
        data.extend(init_ms.to_be_bytes());
        // From four seconds before the message to half a second after it.
        data.extend(((uptime_ms - 4000) as u32).to_be_bytes());
        data.extend(((uptime_ms + 500) as u32).to_be_bytes());
        let mut message = message(0, 1, &[template.clone(), data].concat());
        message[4..8].copy_from_slice(&((export_ms / 1000) as u32).to_be_bytes());
        let (collected, _) = collect([message.as_slice()]);
        let times = [collected[0].start, collected[0].end].map(|time| time.as_nanos() / 1_000_000);
        assert_eq!(times, [export_ms - 4000, export_ms + 500], "{uptime_ms}");
    }
}
