//! The formats, serde, and the documentation agree with the schema of records.
#![cfg(feature = "serde")]

#[path = "support/capture_records.rs"]
mod capture_records;
#[path = "support/captures.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod captures;

use std::fmt::Write as _;
use std::{env, fs};

use flowgauge::export::{Format, write_fields, write_fields_header, write_header, write_record};
use flowgauge::record::{FieldSide, InformationElement, SortKey, Value};
use flowgauge::{FieldSet, FlowKey, FlowRecord, IpProtocol, Side, Timestamp};
use proptest::prelude::*;

use capture_records::records;
use captures::{captures, root};

fn line(format: Format, record: &FlowRecord) -> String {
    let mut out = b"before".to_vec();
    write_record(&mut out, format, record);
    String::from_utf8(out).unwrap().strip_prefix("before").unwrap().strip_suffix('\n').unwrap().to_owned()
}

/// Compares both writers with serde_json and `Display`, which are implemented separately.
fn check_formats(record: &FlowRecord) {
    let json = line(Format::Ndjson, record);
    // serde_json writes null where the writer omits an entry.
    let mut expected = serde_json::to_string(record).unwrap();
    for field in FlowRecord::SCHEMA {
        let null = format!("\"{}\":null", field.name);
        expected =
            expected.replace(&format!("{null},"), "").replace(&format!(",{null}"), "").replace(&null, "");
    }
    assert_eq!(json, expected);
    let values: Vec<_> = (0..FlowRecord::SCHEMA.len()).map(|index| record.value(index).to_string()).collect();
    assert!(values.iter().all(|value| !value.contains([',', '"', '\n'])), "{values:?}");
    assert_eq!(line(Format::Csv, record), values.join(","));
}

#[test]
fn writers_agree_with_serde_and_display_on_captures() {
    let mut record_count = 0;
    for path in captures() {
        for record in records(&path) {
            check_formats(&record);
            record_count += 1;
        }
    }
    assert!(record_count > 100, "{record_count}");
}

#[test]
fn serialized_records_deserialize_to_equal_records() {
    for path in captures() {
        for record in records(&path) {
            let json = serde_json::to_string(&record).unwrap();
            let mut read: FlowRecord = serde_json::from_str(&json).unwrap();
            // A key has parts that are in no field: the tag of a fragment without ports, an ICMP identifier.
            if read.key != record.key {
                assert_eq!(read.community_id(), record.community_id(), "{json}");
                (read.key, read.initiator) = (record.key, record.initiator);
            }
            assert_eq!(read, record, "{json}");
            let key: FlowKey = serde_json::from_value(serde_json::to_value(record.key).unwrap()).unwrap();
            assert_eq!(key, record.key);
        }
    }
}

#[test]
fn unknown_values_are_omitted() {
    let (key, initiator) = FlowKey::tcp("192.0.2.1:4000".parse().unwrap(), "192.0.2.2:80".parse().unwrap());
    let mut record = FlowRecord::new(key, initiator, Timestamp::from_parts(5, 0));
    record.known = FieldSet::of_names(["source_address", "destination_address", "packet_count"]).unwrap();
    let read: serde_json::Value = serde_json::from_str(&line(Format::Ndjson, &record)).unwrap();
    assert_eq!(read["packet_count"], 0);
    let mut keys: Vec<_> = read.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["destination_address", "packet_count", "source_address"]);
    check_formats(&record);
    assert_eq!(FieldSet::of_names(["packet_count", "packets"]), Err("packets"));
}

#[test]
fn fields_may_be_missing_but_not_invalid() {
    let read = |json: &str| serde_json::from_str::<FlowRecord>(json).map_err(|error| error.to_string());
    let ends = r#""source_address":"192.0.2.9","destination_address":"192.0.2.1""#;
    let record = read(&format!(
        r#"{{{ends},"protocol":6,"source_port":50000,"destination_port":22,"packet_count":7,"new":[1]}}"#
    ))
    .unwrap();
    assert_eq!((record.source_port(), record.destination_port()), (Some(50_000), Some(22)));
    assert_eq!((record.initiator, record.forward.counters.packet_count), (Side::B, 7));
    assert_eq!(record.value(0), Value::Unsigned(6));
    let names = [
        "source_address",
        "destination_address",
        "protocol",
        "source_port",
        "destination_port",
        "packet_count",
    ];
    assert_eq!(record.known, FieldSet::of_names(names).unwrap());
    for (wrong, message) in [
        (r#"{"protocol":6}"#.to_owned(), "source_address"),
        (format!(r#"{{{ends},"protocol":256}}"#), "the value of protocol is invalid"),
        (format!(r#"{{{ends},"tcp_state":"open"}}"#), "tcp_state"),
        (format!(r#"{{{ends},"source_mac_address":"02:00:00:00:00"}}"#), "source_mac_address"),
        (format!(r#"{{{ends},"history":"Sy"}}"#), "history"),
        (format!(r#"{{{ends},"application":"a b"}}"#), "application"),
        (format!(r#"{{{ends},"packet_count":-1}}"#), "-1"),
    ] {
        let error = read(&wrong).unwrap_err();
        assert!(error.contains(message), "{wrong}: {error}");
    }
}

#[test]
fn sides_correspond_and_names_are_distinct() {
    let mut names: Vec<_> = FlowRecord::SCHEMA.iter().map(|field| field.name).collect();
    let of = |side| FlowRecord::SCHEMA.iter().filter(move |field| field.side == side);
    let exceptions = [("source_mac_address", "destination_mac_address")];
    assert_eq!(of(FieldSide::Forward).count(), of(FieldSide::Reverse).count());
    for (forward, reverse) in of(FieldSide::Forward).zip(of(FieldSide::Reverse)) {
        let is_exception = exceptions.contains(&(forward.name, reverse.name));
        assert!(is_exception || reverse.name == format!("reverse_{}", forward.name), "{}", reverse.name);
        assert_eq!((forward.field_type, forward.unit), (reverse.field_type, reverse.unit));
        if let (false, Some(InformationElement::Iana(element))) = (is_exception, forward.ipfix) {
            assert_eq!(reverse.ipfix, Some(InformationElement::Reverse(element)), "RFC 5103 section 6.1");
        }
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FlowRecord::SCHEMA.len());
    let elements: std::collections::HashSet<_> =
        FlowRecord::SCHEMA.iter().filter_map(|field| field.ipfix).collect();
    let derived = FlowRecord::SCHEMA.iter().filter(|field| field.ipfix.is_none()).map(|field| field.name);
    let derived: Vec<_> = derived.collect();
    assert_eq!(derived, ["duration_ns", "outer_community_id", "reverse_outer_community_id"]);
    assert_eq!(
        elements.len() + derived.len(),
        FlowRecord::SCHEMA.len(),
        "each field has an element of its own"
    );
    let keys: Vec<_> = FlowRecord::SCHEMA.iter().filter_map(|field| field.sort).collect();
    assert!(SortKey::ALL.iter().all(|key| keys.contains(key)) && keys.len() == SortKey::ALL.len());
}

#[test]
fn the_csv_header_has_all_names() {
    let mut out = Vec::new();
    write_header(&mut out, Format::Csv);
    write_header(&mut out, Format::Ndjson);
    let names: Vec<_> = FlowRecord::SCHEMA.iter().map(|field| field.name).collect();
    assert_eq!(String::from_utf8(out).unwrap(), names.join(",") + "\n");
}

#[test]
fn some_fields_are_written_in_the_given_order() {
    let index_of = |name| FlowRecord::SCHEMA.iter().position(|field| field.name == name).unwrap();
    let some = ["protocol", "icmp_type", "vlan_ids", "octet_count"].map(index_of);
    let mut reversed = some;
    reversed.reverse();
    let all: Vec<_> = (0..FlowRecord::SCHEMA.len()).collect();
    let selected = |format, record: &FlowRecord, indices: &[usize]| {
        let mut out = Vec::new();
        write_fields(&mut out, format, record, indices);
        String::from_utf8(out).unwrap()
    };
    for path in captures() {
        for record in records(&path) {
            for format in [Format::Ndjson, Format::Csv] {
                assert_eq!(selected(format, &record, &all), line(format, &record) + "\n");
            }
            let cells = selected(Format::Csv, &record, &some);
            let mut cells: Vec<_> = cells.trim_end_matches('\n').split(',').collect();
            cells.reverse();
            assert_eq!(selected(Format::Csv, &record, &reversed), cells.join(",") + "\n");
        }
    }
    let record = &records(&root().join("examples/data/web.pcap"))[0];
    let object = selected(Format::Ndjson, record, &reversed);
    assert!(object.starts_with("{\"octet_count\":") && object.ends_with("\"protocol\":6}\n"), "{object}");
    let nothing = [Format::Ndjson, Format::Csv].map(|format| selected(format, record, &[usize::MAX]));
    assert_eq!(nothing, ["{}\n", "\n"]);
    let mut header = Vec::new();
    write_fields_header(&mut header, Format::Csv, &reversed);
    write_fields_header(&mut header, Format::Ndjson, &reversed);
    assert_eq!(header, b"octet_count,vlan_ids,icmp_type,protocol\n");
}

/// Compares `docs/fields.md` with the schema; with `UPDATE_DOCS=1` the test writes the page.
#[test]
fn the_field_documentation_is_up_to_date() {
    let mut page = String::from(
        "# Fields of a flow record\n\n\
         This page lists the fields of `FlowRecord::SCHEMA`, in the order in which `flowgauge flows --format ndjson` and `csv`\n\
         write them. A value that does not apply or is not known is omitted in ndjson and empty in csv. Forward fields\n\
         describe the packets of the initiator, reverse fields those of the responder (RFC 5103). IPFIX elements of the enterprise 29305\n\
         are reverse elements. Elements with *N* are defined by this project, under the enterprise number that the user sets\n\
         (`--enterprise-number`). For an address, the table has the element for IPv4, for times the one in nanoseconds, and for\n\
         VLAN ids the one for the outer id; an inner id is 245.\n\n\
         This page is generated: `UPDATE_DOCS=1 cargo test --test schema` writes it from `src/record/schema.rs`.\n\n\
         | field | type | unit | direction | meaning | IPFIX | Zeek | EVE | sort key |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for field in FlowRecord::SCHEMA {
        let side = match field.side {
            FieldSide::Shared => "both",
            FieldSide::Forward => "forward",
            FieldSide::Reverse => "reverse",
        };
        let ipfix = match field.ipfix {
            Some(InformationElement::Iana(element)) => element.to_string(),
            Some(InformationElement::Reverse(element)) => format!("29305/{element}"),
            Some(InformationElement::Own(element)) => format!("*N*/{element}"),
            _ => String::new(),
        };
        let code = |name: Option<&str>| name.map(|name| format!("`{name}`")).unwrap_or_default();
        let sort = code(field.sort.map(SortKey::name));
        let (name, unit, text) = (field.name, field.unit.name(), field.description);
        let (zeek, eve) = (code(field.zeek), code(field.eve));
        writeln!(
            page,
            "| `{name}` | {} | {unit} | {side} | {text} | {ipfix} | {zeek} | {eve} | {sort} |",
            field.field_type
        )
        .unwrap();
    }
    let path = root().join("docs/fields.md");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|current| current == page),
        "docs/fields.md: run with UPDATE_DOCS=1"
    );
}

proptest! {
    /// Records with arbitrary values, which no tracker produces.
    #[test]
    fn all_writers_agree_on_any_record(
        numbers in prop::array::uniform16(any::<u64>()),
        addresses in (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<bool>()),
        (protocol, known, macs) in (any::<u8>(), prop::collection::vec(0_usize..62, 0..62), any::<[Option<[u8; 6]>; 2]>()),
    ) {
        let (a, b, is_ipv6) = addresses;
        let address = |octets: [u8; 16]| match is_ipv6 {
            true => std::net::IpAddr::from(octets),
            false => std::net::IpAddr::from([octets[0], octets[1], octets[2], octets[3]]),
        };
        let [n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, ..] = numbers;
        let (key, initiator) =
            FlowKey::new(IpProtocol(protocol), (address(a), n0 as u16), (address(b), n1 as u16));
        let mut record = FlowRecord::new(key.with_scope(n2 as u32), initiator, Timestamp::from_nanos(n3));
        record.end = Timestamp::from_nanos(n4);
        (record.forward.counters.packet_count, record.reverse.counters.octet_count) = (n5, n6);
        record.forward.tcp_flags.0 = n7 as u16;
        record.reverse.hop_limits = Some((n8 as u8, n9 as u8));
        (record.forward.mac, record.reverse.mac) = (macs[0], macs[1]);
        check_formats(&record);
        record.known = known.into_iter().fold(FieldSet::EMPTY, FieldSet::with);
        check_formats(&record);
    }
}
