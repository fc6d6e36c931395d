//! What exporters send beside the packets: addresses of either version of IP, their own identity, interfaces, counts after
//! processing, autonomous systems, translations and events; and records with few counts or odd times.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use flowgauge::export::{FixedRecord, Style, write_json};
use flowgauge::ipfix::collector::{Collector, CollectorConfig, UniflowJoiner};
use flowgauge::ipfix::{Exporter, ExporterConfig, MessageReader, StreamTransport};
use flowgauge::record::{ExportedRecord, FlowDirection};
use flowgauge::{FieldSet, FlowKey, FlowRecord, Resources, Timestamp};

use super::collect;

/// A field of a template: its element, and its value in each record.
type Field<'v> = (u16, &'v [&'v [u8]]);

/// Returns a message of IPFIX with a template and its records. Element identifiers with the highest bit are reverse ones.
fn ipfix(fields: &[Field<'_>]) -> Vec<u8> {
    let mut template = vec![];
    for (id, values) in fields {
        template.extend(id.to_be_bytes());
        template.extend((values[0].len() as u16).to_be_bytes());
        if id & 0x8000 != 0 {
            template.extend(29_305_u32.to_be_bytes());
        }
    }
    let set =
        |id: u16, body: &[u8]| [&id.to_be_bytes()[..], &(4 + body.len() as u16).to_be_bytes(), body].concat();
    let head = [256_u16, fields.len() as u16].map(u16::to_be_bytes).concat();
    let mut records = Vec::new();
    for index in 0..fields[0].1.len() {
        fields.iter().for_each(|(_, values)| records.extend(values[index]));
    }
    let sets = [set(2, &[head, template].concat()), set(256, &records)].concat();
    let mut message = [10_u16, 16 + sets.len() as u16].map(u16::to_be_bytes).concat();
    message.extend([1_700_000_000_u32, 0, 3].map(u32::to_be_bytes).concat());
    message.extend(sets);
    message
}

fn records(fields: &[Field<'_>]) -> Vec<FlowRecord> {
    let (records, stats) = collect([ipfix(fields).as_slice()]);
    assert_eq!((stats.malformed_message_count, stats.unkeyed_record_count), (0, 0));
    records
}

const V4: [&[u8]; 2] = [&[10, 0, 0, 1], &[10, 0, 0, 2]];
const V6: [&[u8]; 2] = [
    &[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    &[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
];
const NO_V4: &[u8] = &[0; 4];
const NO_V6: &[u8] = &[0; 16];

/// The four addresses of a record of IPv4 and of one of IPv6, in each order, with the version, or with the addresses that are
/// not zero, and with a field of variable length before them.
#[test]
fn each_record_has_the_addresses_of_its_version() {
    let addresses: [Field<'_>; 4] =
        [(8, &[V4[0], NO_V4]), (12, &[V4[1], NO_V4]), (27, &[NO_V6, V6[0]]), (28, &[NO_V6, V6[1]])];
    let others: [Field<'_>; 2] = [(4, &[&[17], &[17]]), (2, &[&[5], &[6]])];
    let version: Field<'_> = (60, &[&[4], &[6]]);
    for order in [[0, 1, 2, 3], [2, 3, 0, 1], [0, 2, 1, 3], [0, 2, 3, 1], [3, 1, 0, 2], [2, 0, 1, 3]] {
        let mut fields: Vec<_> = order.map(|index| addresses[index]).into();
        fields.extend(others);
        for with_version in [false, true] {
            let mut fields = fields.clone();
            if with_version {
                fields.insert(1, version);
            }
            let records = records(&fields);
            let found = records.iter().map(|record| (record.source_address(), record.destination_address()));
            let expected = [
                (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])),
                ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap()),
            ];
            assert_eq!(found.collect::<Vec<_>>(), expected, "{order:?} {with_version}");
            assert_eq!(records.iter().map(FlowRecord::packet_count).collect::<Vec<_>>(), [5, 6]);
        }
    }
    // The version decides if both are set, and otherwise the first address.
    let both: [Field<'_>; 4] = [(27, &[V6[0]; 2]), (28, &[V6[1]; 2]), (8, &[V4[0]; 2]), (12, &[V4[1]; 2])];
    let with_version = records(&[&both[..], &[version]].concat());
    assert!(!with_version[0].key.is_ipv6() && with_version[1].key.is_ipv6());
    assert!(records(&both).iter().all(|record| record.key.is_ipv6()));
}

/// Types of ICMP and ICMPv6 in the elements of their version, in templates with both.
#[test]
fn icmp_types_are_those_of_the_version() {
    let fields: [Field<'_>; 7] = [
        (27, &[NO_V6, V6[0]]),
        (28, &[NO_V6, V6[1]]),
        (8, &[V4[0], NO_V4]),
        (12, &[V4[1], NO_V4]),
        (4, &[&[1], &[58]]),
        (32, &[&[8, 0], &[0, 0]]),
        (139, &[&[0, 0], &[128, 0]]),
    ];
    let types = |records: Vec<FlowRecord>| records.iter().map(|record| record.icmp).collect::<Vec<_>>();
    assert_eq!(types(records(&fields)), [Some((8, 0)), Some((128, 0))]);
    let separate: [Field<'_>; 4] =
        [(176, &[&[8], &[0]]), (177, &[&[1], &[0]]), (178, &[&[0], &[129]]), (179, &[&[0], &[2]])];
    assert_eq!(types(records(&[&fields[..5], &separate[..]].concat())), [Some((8, 1)), Some((129, 2))]);
    // A template of one version with the elements of both.
    let of_ipv6: Vec<Field<'_>> =
        vec![(27, &V6[..1]), (28, &V6[1..]), (4, &[&[58]]), (32, &[&[0, 0]]), (139, &[&[128, 0]])];
    assert_eq!(types(records(&of_ipv6)), [Some((128, 0))]);
    // Some exporters send the type of ICMPv6 in the element of ICMP.
    assert_eq!(types(records(&of_ipv6[..4])), [Some((0, 0))]);
}

fn exported(record: &FlowRecord) -> ExportedRecord {
    *record.exported.as_deref().expect("an exporter")
}

#[test]
fn columns_of_exporters_are_those_of_their_elements() {
    let ipv6 = "2001:db8::9".parse::<Ipv6Addr>().unwrap().octets();
    let ipv6_values: [&[u8]; 1] = [&ipv6];
    let fields: Vec<Field<'_>> = vec![
        (8, &V4[..1]),
        (12, &V4[1..]),
        (14, &[&[2]]),
        (61, &[&[1]]),
        (24, &[&[3]]),
        (23, &[&[1, 44]]),
        (0x8000 | 24, &[&[4]]),
        (0x8000 | 23, &[&[1, 45]]),
        (16, &[&[0xfc, 0]]),
        (17, &[&[0, 1, 0, 0]]),
        (225, &[&[198, 51, 100, 1]]),
        (226, &[NO_V4]),
        (282, &ipv6_values),
        (227, &[&[0x9c, 0x40]]),
        (228, &[&[0, 80]]),
        (233, &[&[2]]),
        (230, &[&[5]]),
    ];
    let records = records(&fields);
    let found = exported(&records[0]);
    let mut expected = ExportedRecord::default();
    expected.exporter_address = Some(Ipv4Addr::new(192, 0, 2, 1).into());
    expected.observation_domain = Some(3);
    expected.egress_interface = Some(2);
    expected.flow_direction = Some(FlowDirection::Egress);
    (expected.egress_packet_count, expected.egress_octet_count) = (Some(3), Some(300));
    (expected.reverse_egress_packet_count, expected.reverse_egress_octet_count) = (Some(4), Some(301));
    (expected.source_as, expected.destination_as) = (Some(64_512), Some(65_536));
    expected.post_nat_source_address = Some(Ipv4Addr::new(198, 51, 100, 1).into());
    expected.post_nat_source_port = Some(40_000);
    expected.post_nat_destination_address = Some(Ipv6Addr::from(ipv6).into());
    expected.post_nat_destination_port = Some(80);
    (expected.firewall_event, expected.nat_event) = (Some(2), Some(5));
    assert_eq!(found, expected);
    // Counts that left the exporter are those of sums and of formats without absent values.
    assert_eq!((records[0].packet_count(), records[0].octet_count()), (7, 601));

    // Sent again and collected, serialized and read, and turned twice by a merge, the record is the same.
    let mut file = Vec::new();
    let mut config = ExporterConfig::default();
    config.enterprise_number = Some(super::ENTERPRISE_NUMBER);
    let mut exporter = Exporter::new(config, StreamTransport::new(&mut file)).unwrap();
    exporter.export(&records[0], Timestamp::ZERO).unwrap();
    exporter.flush().unwrap();
    drop(exporter);
    let mut reader = MessageReader::new(&file[..]);
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    let mut relayed = Vec::new();
    while let Some(message) = reader.next().unwrap() {
        // Another sender, which does not replace the exporter in the record.
        let relay = SocketAddr::from(([203, 0, 113, 1], 1));
        collector.message(relay, message, Timestamp::ZERO, |one| relayed.extend(one.record().cloned()));
    }
    assert_eq!(exported(&relayed[0]), expected);
    let read: FlowRecord = serde_json::from_str(&serde_json::to_string(&records[0]).unwrap()).unwrap();
    assert_eq!(exported(&read), expected);
    assert_eq!((read.packet_count(), read.octet_count()), (7, 601));
}

#[test]
fn each_record_has_its_own_exporter() {
    let fields: [Field<'_>; 3] = [(8, &[V4[0], V4[0]]), (12, &[V4[1], V4[1]]), (233, &[&[1], &[9]])];
    let plain: [Field<'_>; 2] = [(8, &V4[..1]), (12, &V4[1..])];
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    let mut found = Vec::new();
    for (sender, fields) in [(1, &fields[..]), (2, &plain[..]), (1, &plain[..]), (0, &plain[..])] {
        let sender: [u8; 4] = if sender == 0 { [0; 4] } else { [192, 0, 2, sender] };
        collector.message((sender, 2055).into(), &ipfix(fields), Timestamp::ZERO, |one| {
            let exported = exported(one.record().expect("a record"));
            found.push((exported.exporter_address, exported.observation_domain, exported.firewall_event));
        });
    }
    let address = |last| Some(IpAddr::from([192, 0, 2, last]));
    let domain = Some(3);
    let expected = [
        (address(1), domain, Some(1)),
        (address(1), domain, Some(9)),
        (address(2), domain, None),
        (address(1), domain, None),
        // A file has no sender.
        (None, domain, None),
    ];
    assert_eq!(found, expected);
}

#[test]
fn events_are_not_flows() {
    let events: [&[u8]; 6] = [&[0], &[1], &[2], &[3], &[4], &[5]];
    let fields: [Field<'_>; 3] = [(8, &[V4[0]; 6]), (12, &[V4[1]; 6]), (233, &events)];
    let found: Vec<_> = records(&fields).iter().map(FlowRecord::is_event).collect();
    assert_eq!(found, [false, true, false, true, true, true]);
    let translation: [Field<'_>; 3] = [(8, &[V4[0]; 2]), (12, &[V4[1]; 2]), (230, &[&[4], &[0]])];
    let records = records(&translation);
    assert!(records[0].is_event() && !records[1].is_event());
    // An event does not wait for the other direction.
    let mut joiner = UniflowJoiner::new(10, Duration::from_secs(60), &Resources::default()).unwrap();
    let mut emitted = 0;
    joiner.push(&records[0], Timestamp::ZERO, |_| emitted += 1);
    assert_eq!(emitted, 1);
}

/// Octets of templates with other counts than those of frames are in sums, fixed records and merges, and not in columns.
#[test]
fn counts_of_few_layers_are_in_sums() {
    for (element, column) in [(1, "ip_octet_count"), (231, "payload_octet_count"), (23, "egress_octet_count")]
    {
        let octets = 6_000_000_u32.to_be_bytes();
        let fields: [Field<'_>; 3] = [(8, &V4[..1]), (12, &V4[1..]), (element, &[&octets])];
        let mut record = records(&fields).remove(0);
        assert_eq!((record.octet_count(), record.packet_count()), (6_000_000, 0), "{column}");
        assert_eq!(FixedRecord::new(&FixedRecord::encode(&record)).unwrap().octet_count(), 6_000_000);
        let mut json = Vec::new();
        write_json(&mut json, &record, Style::default());
        let object: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!((&object[column], object.get("octet_count")), (&6_000_000.into(), None));
        let read: FlowRecord = serde_json::from_slice(&json).unwrap();
        assert_eq!(read.octet_count(), 6_000_000);
        record.merge(&read).unwrap();
        assert_eq!(record.octet_count(), 12_000_000, "{column}");
    }
}

#[test]
fn an_end_before_the_start_is_absent_and_counted() {
    let times = |seconds: [u64; 2]| seconds.map(|seconds| (1000 * seconds).to_be_bytes());
    let [[a, b], [c, d]] = [times([1_700_000_050, 1_700_000_040]), times([1_700_000_050, 1_700_000_060])];
    let fields: [Field<'_>; 4] = [(8, &[V4[0]; 2]), (12, &[V4[1]; 2]), (152, &[&a, &c]), (153, &[&b, &d])];
    let (records, stats) = collect([ipfix(&fields).as_slice()]);
    assert_eq!(stats.invalid_value_count, 1);
    let has = |record: &FlowRecord, name| {
        let set = FieldSet::of_names([name]).unwrap();
        record.known.union(set) == record.known
    };
    assert!(has(&records[0], "start") && !has(&records[0], "end") && !has(&records[0], "duration"));
    assert_eq!(records[0].end, records[0].start);
    assert!(has(&records[1], "end") && records[1].duration() == Duration::from_secs(10));
}

/// Records with only the time of an event, and without any time, are at the time of the event and of the message.
#[test]
fn records_without_times_of_the_flow_are_near_their_message() {
    let observed = 1_699_999_999_123_u64.to_be_bytes();
    let fields: [Field<'_>; 3] = [(8, &V4[..1]), (12, &V4[1..]), (323, &[&observed])];
    let record = records(&fields).remove(0);
    assert_eq!([record.start, record.end].map(Timestamp::as_nanos), [1_699_999_999_123_000_000; 2]);
    let without = records(&fields[..2]).remove(0);
    assert_eq!([without.start, without.end], [Timestamp::from_parts(1_700_000_000, 0); 2]);
    assert_ne!(without.known.union(FieldSet::of_names(["start"]).unwrap()), without.known);
    // Times of the flow are more precise.
    let start = 1_699_999_990_000_u64.to_be_bytes();
    let end = 1_699_999_995_000_u64.to_be_bytes();
    let both = records(&[&fields[..], &[(152, &[&start]), (153, &[&end])]].concat()).remove(0);
    assert_eq!(both.end.as_nanos(), 1_699_999_995_000_000_000);
}

#[test]
fn uniflows_of_one_exporter_are_joined_before_those_of_two() {
    let [forward, reverse] = [[V4[0], V4[1]], [V4[1], V4[0]]]
        .map(|[source, destination]| ipfix(&[(8, &[source]), (12, &[destination]), (2, &[&[1]])]));
    let mut collector = Collector::new(CollectorConfig::default()).unwrap();
    let mut joiner = UniflowJoiner::new(10, Duration::from_secs(60), &Resources::default()).unwrap();
    let mut joined = Vec::new();
    for (exporter, message) in [(1, &reverse), (2, &reverse), (2, &forward), (3, &forward)] {
        collector.message(([192, 0, 2, exporter], 1).into(), message, Timestamp::ZERO, |one| {
            joiner.push(one.record().expect("a record"), Timestamp::ZERO, |record| {
                joined.push(exported(record).exporter_address.unwrap());
            });
        });
    }
    // Two exporters may each see one direction.
    assert_eq!(joined, [IpAddr::from([192, 0, 2, 2]), IpAddr::from([192, 0, 2, 1])]);
}

/// A query and its response whose times are rounded, in any order of arrival.
#[test]
fn uniflows_of_the_same_time_are_joined_by_their_ports() {
    let uniflow = |is_query: bool, port: u16, nanos: u64| {
        let (client, server) = (([10, 0, 0, 1].into(), 40_000), ([10, 0, 0, 2].into(), port));
        let ends = if is_query { (client, server) } else { (server, client) };
        let (key, initiator) = FlowKey::new(flowgauge::IpProtocol::UDP, ends.0, ends.1);
        let mut record = FlowRecord::new(key, initiator, Timestamp::from_nanos(nanos));
        record.forward.counters.packet_count = 1;
        record
    };
    let initiator = |records: [FlowRecord; 2]| {
        let mut joiner = UniflowJoiner::new(10, Duration::from_secs(60), &Resources::default()).unwrap();
        let mut joined = Vec::new();
        records.iter().for_each(|one| joiner.push(one, one.end, |record| joined.push(record.clone())));
        assert_eq!(joined.len(), 1);
        assert!(!joined[0].reverse.counters.is_empty());
        joined[0].source_port().unwrap()
    };
    const SECOND: u64 = 1_700_000_000_000_000_000;
    for (query, response, expected) in [
        (SECOND, SECOND, 40_000),
        (SECOND + 5_000_000, SECOND + 5_000_000, 40_000),
        // One of both is rounded to seconds.
        (SECOND + 400_000_000, SECOND, 40_000),
        // The times differ by more than their resolution.
        (SECOND + 6_000_000, SECOND + 5_000_000, 53),
    ] {
        let pair = [uniflow(true, 53, query), uniflow(false, 53, response)];
        assert_eq!(initiator(pair.clone()), expected, "{query} {response}");
        let [first, second] = pair;
        assert_eq!(initiator([second, first]), expected, "{query} {response}");
    }
    // Without a port of a service, and with finer times, the order of arrival decides.
    assert_eq!(initiator([uniflow(false, 50_000, SECOND), uniflow(true, 50_000, SECOND)]), 50_000);
    assert_eq!(initiator([uniflow(false, 53, SECOND + 1), uniflow(true, 53, SECOND + 1)]), 53);
}
