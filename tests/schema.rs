//! The formats, serde, and the documentation agree with the schema of records.
#![cfg(feature = "serde")]

#[path = "support/capture_records.rs"]
mod capture_records;
#[path = "support/captures.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod captures;

use std::fmt::Write as _;
use std::{env, fs};

use flowgauge::export::{
    Format, FormatOptions, Lines, Nulls, RecordWriter, Selection, Style, TimeFormat, write_json,
};
use flowgauge::record::SortKey;
use flowgauge::row::{Column, ColumnSide, InformationElement, Row as _, Table as _, Value};
use flowgauge::{FieldSet, FlowKey, FlowRecord, IpProtocol, Side, Timestamp};
use proptest::prelude::*;

use capture_records::records;
use captures::{captures, root};

/// Returns what a format writes for records.
fn written(format: Format, options: FormatOptions, records: &[FlowRecord]) -> String {
    let mut out = Vec::new();
    let mut writer = format.writer(&mut out, options).unwrap();
    records.iter().for_each(|record| writer.write(record).unwrap());
    assert_eq!(writer.finish().unwrap().row_count, records.len() as u64);
    String::from_utf8(out).unwrap()
}

fn json(record: &FlowRecord, style: Style) -> serde_json::Value {
    let mut out = b"before".to_vec();
    write_json(&mut out, record, style);
    serde_json::from_slice(out.strip_prefix(b"before").unwrap()).unwrap()
}

/// Returns a csv cell as the writer is documented to write a value.
fn cell(value: &Value) -> String {
    match value {
        Value::List(items) if items.is_empty() => String::new(),
        Value::List(items) => {
            format!("\"{}\"", items.iter().map(member).collect::<Vec<_>>().join(";"))
        }
        Value::Group(_) => format!("\"{}\"", member(value)),
        value => value.to_string(),
    }
}

fn member(value: &Value) -> String {
    let Value::Group(members) = value else { return value.to_string() };
    let members = members.iter().filter(|(_, value)| *value != Value::Null);
    members.map(|(column, value)| format!("{}={value}", column.name)).collect::<Vec<_>>().join(" ")
}

/// Compares both writers with serde_json and the values of the columns, which are implemented separately.
fn check_formats(record: &FlowRecord) {
    // serde_json writes null where the writer omits an entry.
    let expected = serde_json::to_value(record).unwrap();
    let mut nulls = Style::default();
    nulls.nulls = Nulls::Null;
    assert_eq!(json(record, nulls), expected);
    let known = expected.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
    let known: serde_json::Map<_, _> =
        known.map(|(key, value)| (key.clone(), without_nulls(value))).collect();
    assert_eq!(json(record, Style::default()), serde_json::Value::Object(known));
    let cells: Vec<_> = (0..FlowRecord::COLUMNS.len()).map(|index| cell(&record.value(index))).collect();
    let csv = written(Format::Csv, FormatOptions::default(), std::slice::from_ref(record));
    let names: Vec<_> = FlowRecord::COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(csv, format!("{}\n{}\n", names.join(","), cells.join(",")));
}

/// Returns a value without the members of objects that are null.
fn without_nulls(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Array(items) => items.iter().map(without_nulls).collect(),
        serde_json::Value::Object(members) => {
            let known = members.iter().filter(|(_, value)| !value.is_null());
            known
                .map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        value => value.clone(),
    }
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
            let read: FlowRecord = serde_json::from_str(&json).unwrap();
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
    let read = json(&record, Style::default());
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
    let mut names: Vec<_> = FlowRecord::COLUMNS.iter().map(|field| field.name).collect();
    let of = |side| FlowRecord::COLUMNS.iter().filter(move |field| field.side == side);
    let exceptions = [("source_mac_address", "destination_mac_address")];
    assert_eq!(of(ColumnSide::Forward).count(), of(ColumnSide::Reverse).count());
    for (forward, reverse) in of(ColumnSide::Forward).zip(of(ColumnSide::Reverse)) {
        let is_exception = exceptions.contains(&(forward.name, reverse.name));
        assert!(is_exception || reverse.name == format!("reverse_{}", forward.name), "{}", reverse.name);
        assert_eq!((forward.column_type, forward.unit), (reverse.column_type, reverse.unit));
        if let (false, Some(InformationElement::Iana(element))) = (is_exception, forward.ipfix) {
            assert_eq!(reverse.ipfix, Some(InformationElement::Reverse(element)), "RFC 5103 section 6.1");
        }
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), FlowRecord::COLUMNS.len());
    let elements: std::collections::HashSet<_> =
        FlowRecord::COLUMNS.iter().filter_map(|field| field.ipfix).collect();
    let derived = FlowRecord::COLUMNS.iter().filter(|field| field.ipfix.is_none()).map(|field| field.name);
    let derived: Vec<_> = derived.collect();
    assert_eq!(derived, ["duration", "outer_community_id", "reverse_outer_community_id", "key_vlan_ids"]);
    assert_eq!(
        elements.len() + derived.len(),
        FlowRecord::COLUMNS.len(),
        "each field has an element of its own"
    );
    let keys: Vec<_> = FlowRecord::COLUMNS.iter().filter_map(|column| column.sort_key).collect();
    assert!(SortKey::ALL.iter().all(|key| keys.contains(&key.name())) && keys.len() == SortKey::ALL.len());
}

#[test]
fn some_fields_are_written_in_the_given_order() {
    let chosen = ["octet_count", "vlan_ids", "icmp_type", "encapsulation", "protocol"];
    let mut options = FormatOptions::default();
    options.selection = Some(Selection::of::<FlowRecord>(chosen).unwrap());
    let index_of = |name| FlowRecord::COLUMNS.iter().position(|column| column.name == name).unwrap();
    for path in captures() {
        let records = records(&path);
        let cells = |record: &FlowRecord| chosen.map(|name| cell(&record.value(index_of(name)))).join(",");
        let lines: Vec<_> = std::iter::once(chosen.join(",")).chain(records.iter().map(cells)).collect();
        assert_eq!(written(Format::Csv, options.clone(), &records), lines.join("\n") + "\n");
        for (line, record) in written(Format::Ndjson, options.clone(), &records).lines().zip(&records) {
            let known = chosen.iter().filter(|name| record.value(index_of(name)) != Value::Null);
            let entries = known.map(|name| format!("\"{name}\":{}", json(record, Style::default())[name]));
            // Objects inside are compared as values, because their keys are in another order here.
            let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(parsed(line), parsed(&format!("{{{}}}", entries.collect::<Vec<_>>().join(","))));
            assert!(
                line.starts_with("{\"octet_count\":")
                    && line.ends_with(&format!("\"protocol\":{}}}", record.protocol().0))
            );
        }
    }
    assert_eq!(written(Format::Csv, options.clone(), &[]), chosen.join(",") + "\n");
    assert_eq!(written(Format::Ndjson, options, &[]), "");
    assert_eq!(Selection::of::<FlowRecord>(["protocol", "none"]), Err("none"));
    assert_eq!(Selection::of::<FlowRecord>(["protocol", "protocol"]), Err("protocol"));
}

#[test]
fn times_have_the_chosen_format() {
    let record = &records(&root().join("examples/data/web.pcap"))[0];
    let mut options = FormatOptions::default();
    options.selection = Some(Selection::of::<FlowRecord>(["start", "duration"]).unwrap());
    let line = |format, time| {
        let mut options = options.clone();
        options.style.time = time;
        written(format, options, std::slice::from_ref(record))
    };
    let (start, duration) = (record.start.as_nanos(), record.duration().as_nanos());
    let seconds = |nanos: u128| format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    assert_eq!(line(Format::Csv, TimeFormat::Nanoseconds), format!("start,duration\n{start},{duration}\n"));
    let expected = format!("{{\"start\":{},\"duration\":{}}}\n", seconds(start.into()), seconds(duration));
    assert_eq!(line(Format::Ndjson, TimeFormat::Unix), expected);
    let date = humantime_of(start);
    assert_eq!(
        line(Format::Ndjson, TimeFormat::Rfc3339),
        format!("{{\"start\":\"{date}\",\"duration\":{}}}\n", seconds(duration))
    );
    assert_eq!(
        line(Format::Csv, TimeFormat::Rfc3339),
        format!("start,duration\n{date},{}\n", seconds(duration))
    );
}

/// Returns a time in 2026 as RFC 3339, by counting days.
fn humantime_of(nanos: u64) -> String {
    let (mut days, seconds) = (nanos / 86_400_000_000_000 - 20_454, nanos / 1_000_000_000 % 86_400);
    let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = nanos % 1_000_000_000;
    format!("2026-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}Z", month + 1, days + 1)
}

#[test]
fn a_refused_row_leaves_nothing() {
    let records = records(&root().join("examples/data/web.pcap"));
    for format in [Format::Ndjson, Format::Csv, Format::Table, Format::Fixed] {
        let mut out = Vec::new();
        let mut writer = format.writer(&mut out, FormatOptions::default()).unwrap();
        for (index, record) in records.iter().enumerate() {
            let mut len = 0;
            let mut permits = |row_len| {
                len = row_len;
                index == 3
            };
            assert_eq!(writer.write_if(record, &mut permits).unwrap(), index == 3);
            assert!(len > 50, "{format}: {len}");
        }
        assert_eq!(writer.finish().unwrap().row_count, 1);
        if format == Format::Ndjson {
            let expected = written(format, FormatOptions::default(), &records[3..4]);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
    let names: Vec<_> = Format::ALL.iter().map(|format| format.name().parse::<Format>().unwrap()).collect();
    assert_eq!(names, Format::ALL);
    assert!("xml".parse::<Format>().unwrap_err().to_string().contains("table, ndjson, csv, ipfix, fixed"));
    let lines = Lines::ndjson(Vec::new(), None, Style::default());
    assert_eq!(lines.into_inner().unwrap(), b"");
}

/// Compares `docs/fields.md` with the schema; with `UPDATE_DOCS=1` the test writes the page.
#[test]
fn the_field_documentation_is_up_to_date() {
    let mut page = String::from(
        "# Fields of a flow record\n\n\
         This page lists the fields of `FlowRecord::COLUMNS`, in the order in which `flowgauge flows --format ndjson` and `csv`\n\
         write them. A value that does not apply or is not known is omitted in ndjson and empty in csv. Forward fields\n\
         describe the packets of the initiator, reverse fields those of the responder (RFC 5103). IPFIX elements of the enterprise 29305\n\
         are reverse elements. Elements with *N* are defined by this project, under the enterprise number that the user sets\n\
         (`--enterprise-number`). Timestamps are nanoseconds since 1970-01-01 00:00 UTC, durations nanoseconds. For an address, the table has the element for IPv4, for times the one in nanoseconds, and for\n\
         VLAN ids the one for the outer id; an inner id is 245. The column *merge* has the rule by which the values of two records of\n\
         one flow [become one](design/record.md#merging).\n\n\
         This page is generated: `UPDATE_DOCS=1 cargo test --test schema` writes it from `src/record/schema.rs`.\n\n\
         | field | type | unit | direction | meaning | merge | IPFIX | sort key |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for field in FlowRecord::COLUMNS {
        let side = match field.side {
            ColumnSide::Shared => "both",
            ColumnSide::Forward => "forward",
            ColumnSide::Reverse => "reverse",
        };
        let ipfix = match field.ipfix {
            Some(InformationElement::Iana(element)) => element.to_string(),
            Some(InformationElement::Reverse(element)) => format!("29305/{element}"),
            Some(InformationElement::Own(element)) => format!("*N*/{element}"),
            _ => String::new(),
        };
        let code = |name: Option<&str>| name.map(|name| format!("`{name}`")).unwrap_or_default();
        let sort = code(field.sort_key);
        let (name, unit, text) = (field.name, field.unit.name(), field.description);
        let (kind, merge) = (field.column_type, field.merge.name());
        writeln!(page, "| `{name}` | {kind} | {unit} | {side} | {text} | {merge} | {ipfix} | {sort} |")
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

/// Compares the tables of `docs/features.md` with those that are declared; with `UPDATE_DOCS=1` the test writes them.
#[test]
fn the_documentation_of_features_is_up_to_date() {
    const START: &str = "## Columns\n";
    let mut section =
        format!("{START}\nThis section is generated: `UPDATE_DOCS=1 cargo test --test schema` writes it.\n");
    for table in flowgauge::features::Features::tables() {
        writeln!(section, "\n### `{}`\n\n| column | type | meaning |\n|---|---|---|", table.name).unwrap();
        write_columns(&mut section, table.columns, 0);
    }
    let path = root().join("docs/features.md");
    let current = fs::read_to_string(&path).unwrap();
    let page = format!("{}\n\n{section}", current.split(START).next().unwrap().trim_end());
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == page, "docs/features.md: run with UPDATE_DOCS=1");
}

/// Compares a generated page with what it should be; with `UPDATE_DOCS=1`, writes it.
fn check_page(path: &str, page: &str) {
    let file = root().join(path);
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, page).unwrap();
    } else {
        let current = fs::read_to_string(&file).unwrap_or_default();
        assert!(current == page, "{path}: run with UPDATE_DOCS=1");
    }
}

/// Compares the tables of Zeek's logs in `docs/reference/zeek.md` with those that are declared.
#[cfg(feature = "protocols")]
#[test]
fn the_documentation_of_zeek_logs_is_up_to_date() {
    use flowgauge::export::zeek;
    use flowgauge::row::TableInfo;

    let tables = [
        TableInfo::of::<zeek::Head>(),
        TableInfo::of::<zeek::Conn<'_>>(),
        TableInfo::of::<zeek::Dns<'_>>(),
        TableInfo::of::<zeek::FileHead>(),
        TableInfo::of::<zeek::CrossingHead>(),
        TableInfo::of::<zeek::Files<'_>>(),
        TableInfo::of::<zeek::Ftp<'_>>(),
        TableInfo::of::<zeek::Http<'_>>(),
        TableInfo::of::<zeek::KnownHost>(),
        TableInfo::of::<zeek::KnownService>(),
        TableInfo::of::<zeek::Quic<'_>>(),
        TableInfo::of::<zeek::Smtp<'_>>(),
        TableInfo::of::<zeek::Ssh<'_>>(),
        TableInfo::of::<zeek::Ssl<'_>>(),
        TableInfo::of::<zeek::Tunnel>(),
        TableInfo::of::<zeek::Weird<'_>>(),
        TableInfo::of::<zeek::X509<'_>>(),
    ];
    let tables = tables.into_iter().chain(flowgauge::protocols::zeek_tables().into_iter().copied());
    let mut section = String::from(
        "# Columns of Zeek's logs\n\n\
         [Formats](../formats.md#logs-of-zeek) describes the logs. All but `files.log`, which begins with the columns of\n\
         `zeek.file_head`, `dhcp.log`, which begins with those of `zeek.crossing_head`, `known_hosts.log`, `known_services.log` and `x509.log`\n\
         begin with those of `zeek.head`.\n\n\
         This page is generated: `UPDATE_DOCS=1 cargo test --features serde,protocols --test schema` writes it.\n",
    );
    for table in tables {
        let description = plain(table.description);
        writeln!(section, "\n## `{}`\n\n{description}\n", table.name).unwrap();
        section.push_str("| column | value |\n|---|---|\n");
        for column in table.columns {
            writeln!(section, "| `{}` | {} |", column.name, plain(column.description).replace('|', "\\|"))
                .unwrap();
        }
    }
    check_page("docs/reference/zeek.md", &section);
}

/// Returns ports as text, with ranges of at least three.
#[cfg(feature = "protocols")]
fn ports(transport: &str, ports: &[u16]) -> Option<String> {
    let mut sorted = ports.to_vec();
    sorted.sort_unstable();
    let ranges = sorted.chunk_by(|a, b| a + 1 == *b).flat_map(|range| match range {
        [first, _, .., last] => vec![format!("{first} to {last}")],
        _ => range.iter().map(u16::to_string).collect(),
    });
    let ranges: Vec<_> = ranges.collect();
    (!ranges.is_empty()).then(|| format!("{transport} {}", ranges.join(", ")))
}

/// Returns the table of the protocols with a parser.
#[cfg(feature = "protocols")]
fn parsed_protocols() -> String {
    use flowgauge::session::Protocols as _;

    let mut out = String::from(
        "| protocol | ports | in Zeek | in EVE | limits | standards |\n|---|---|---|---|---|---|\n",
    );
    let entries = flowgauge::Standard::TABLE.iter().filter(|entry| entry.has_parser);
    let mut protocols: Vec<_> = entries.map(|entry| entry.protocol).collect();
    protocols.sort_by_key(|protocol| protocol.name());
    for protocol in protocols {
        assert!(!protocol.limits().is_empty() && !protocol.standards().is_empty(), "{protocol} is described");
        let known = [("TCP", protocol.stream_ports()), ("UDP", protocol.datagram_ports())];
        let of_transports: Vec<_> = match known {
            [(_, tcp), (_, udp)] if tcp == udp => ports("TCP/UDP", tcp).into_iter().collect(),
            _ => known.into_iter().filter_map(|(transport, list)| ports(transport, list)).collect(),
        };
        let mut zeek: Vec<_> =
            [true, false].into_iter().filter_map(|is_tcp| protocol.zeek_name(is_tcp)).collect();
        zeek.dedup();
        let name =
            |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let cells = [
            name(&[protocol.name()]),
            of_transports.join(", "),
            name(&zeek),
            name(protocol.eve_name().as_slice()),
            protocol.limits().to_owned(),
            protocol.standards().to_owned(),
        ];
        writeln!(out, "| {} |", cells.join(" | ")).unwrap();
    }
    out
}

/// Compares the tables in `docs/reference/protocols.md` with what the parsers declare.
#[cfg(feature = "protocols")]
#[test]
fn the_documentation_of_messages_is_up_to_date() {
    use flowgauge::row::{TableInfo, Union};
    use flowgauge::session::{MessageHead, SessionEvent};
    use flowgauge::tracker::FlowAnomaly;

    let mut tables = vec![TableInfo::of::<MessageHead>()];
    tables.extend(<flowgauge::Message<'_> as Union>::tables());
    tables.extend(SessionEvent::tables());
    tables.push(TableInfo::of::<flowgauge::neighbor::NeighborHead>());
    tables.extend(flowgauge::neighbor::NeighborMessage::tables());
    tables.push(TableInfo::of::<FlowAnomaly<'_>>());
    tables.push(TableInfo::of::<flowgauge::Packet<'_>>());
    tables.push(TableInfo::of::<flowgauge::transaction::TransactionHead>());
    // A message of the kit is a transaction, too.
    let messages: Vec<_> = tables.iter().map(|table| table.name).collect();
    let transactions = flowgauge::transaction::Content::tables().into_iter();
    tables.extend(transactions.filter(|table| !messages.contains(&table.name)));
    let mut section = format!(
        "# Protocols and columns of their messages\n\n\
         [Protocols](../protocols.md) describes what is read, and which others are recognized.\n\n\
         This page is generated: `UPDATE_DOCS=1 cargo test --features serde,protocols --test schema` writes it.\n\n\
         ## Parsed protocols\n\n\
         A protocol is recognized by its first octets on any port, and otherwise by its ports. Limits add to [those of the\n\
         driver](../limits.md); the [threat model](../threats.md#protocol-parsers-protocols) has attacks and tests.\n\n\
         {}\n\
         ## Columns of messages\n\n\
         `flowgauge sessions` writes the columns of `session.head` and those of the message, with `--transactions` those of\n\
         `transaction.head` and of the transaction. The rows of messages between neighbors have those of `neighbor.head`, and\n\
         those of the message. False, zero and empty lists are omitted in the columns with an asterisk. The columns of a group are indented.\n",
        parsed_protocols()
    );
    for (index, table) in tables.iter().enumerate() {
        let description = plain(table.description);
        writeln!(section, "\n### `{}`\n\n{description}", table.name).unwrap();
        if !table.columns.is_empty() {
            section.push_str("\n| column | type | meaning |\n|---|---|---|\n");
        }
        // Columns that an earlier table has too are described there.
        let mut rest = table.columns;
        while let [column, others @ ..] = rest {
            let repeated = tables[..index]
                .iter()
                .find(|known| known.columns.len() >= 8 && rest.starts_with(known.columns));
            rest = if let Some(known) = repeated {
                writeln!(section, "| the columns of `{}` | | |", known.name).unwrap();
                &rest[known.columns.len()..]
            } else {
                write_columns(&mut section, std::slice::from_ref(column), 0);
                others
            };
        }
    }
    check_page("docs/reference/protocols.md", &section);
}

/// The guide to a new protocol shows code of one that exists.
#[test]
fn the_guide_to_adding_a_protocol_quotes_its_code() {
    let guide = fs::read_to_string(root().join("docs/adding-a-protocol.md")).unwrap();
    let code = fs::read_to_string(root().join("src/protocols/modbus.rs")).unwrap();
    let quotes: Vec<_> =
        guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(quotes.len() > 8);
    for quote in quotes {
        assert!(
            code.contains(quote),
            "docs/adding-a-protocol.md has other code than src/protocols/modbus.rs:\n{quote}"
        );
    }
}

/// A column whose name ends in `_time` is a length of time, and a moment has one of few names, in all tables: a condition
/// on one name means the same everywhere. Formats of other programs have the names of these.
#[cfg(feature = "protocols")]
#[test]
fn names_of_times_state_what_they_are() {
    use flowgauge::row::{TableInfo, Type, Union};
    use flowgauge::session::{MessageHead, SessionEvent};

    let mut tables = vec![
        TableInfo::of::<FlowRecord>(),
        TableInfo::of::<MessageHead>(),
        TableInfo::of::<flowgauge::tracker::FlowAnomaly<'_>>(),
        TableInfo::of::<flowgauge::Packet<'_>>(),
        TableInfo::of::<flowgauge::reassembler::Gap>(),
        TableInfo::of::<flowgauge::transaction::TransactionHead>(),
    ];
    tables.extend(<flowgauge::Message<'_> as Union>::tables());
    tables.extend(SessionEvent::tables());
    tables.extend(flowgauge::neighbor::NeighborMessage::tables());
    tables.extend(flowgauge::transaction::Content::tables());
    let is_ours = |table: &TableInfo| !table.name.contains("cic") && !table.name.contains("nfstream");
    tables.extend(flowgauge::features::Features::tables().into_iter().filter(is_ours));
    let (mut moment_count, mut length_count) = (0, 0);
    let mut rest: Vec<(&str, &Column)> =
        tables.iter().flat_map(|table| table.columns.iter().map(|column| (table.name, column))).collect();
    while let Some((table, column)) = rest.pop() {
        let name = column.name;
        let column_type = match column.column_type {
            Type::List(item) => item.column_type,
            other => other,
        };
        if let Type::Group(members) = column_type {
            rest.extend(members.iter().map(|member| (table, member)));
        }
        let is_moment = matches!(name, "timestamp" | "start" | "end") || name.ends_with("_timestamp");
        assert_eq!(column_type == Type::Timestamp, is_moment, "{table}: {name} is {column_type}");
        if name == "time" || name.ends_with("_time") {
            assert_eq!(column_type, Type::Duration, "{table}: {name}");
        }
        moment_count += usize::from(is_moment);
        length_count += usize::from(column_type == Type::Duration);
    }
    assert!(moment_count >= 10 && length_count >= 10, "{moment_count} {length_count}");
}

/// A column name means one thing in the tables that one condition is about: values of one name have one kind. Versions
/// are numbers or names, as the protocols state them.
#[cfg(feature = "protocols")]
#[test]
fn columns_of_one_name_have_one_kind_of_values() {
    use flowgauge::row::{Table as _, Type, Union};
    use flowgauge::session::MessageHead;
    use flowgauge::transaction::{Content, TransactionHead};
    use std::collections::{BTreeMap, BTreeSet};

    fn kind(column_type: Type) -> &'static str {
        match column_type {
            Type::Bool => "bool",
            Type::Unsigned(_) | Type::Signed(_) | Type::Float => "number",
            Type::Timestamp => "timestamp",
            Type::Duration => "duration",
            Type::Address => "address",
            Type::List(item) => kind(item.column_type),
            Type::Group(_) => "group",
            _ => "text",
        }
    }
    for (tables, exceptions) in [
        (
            [<flowgauge::Message<'_> as Union>::tables(), flowgauge::neighbor::NeighborMessage::tables()]
                .concat(),
            &["address", "data", "version"][..],
        ),
        (flowgauge::transaction::Content::tables(), &["version"]),
    ] {
        let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for column in tables.iter().flat_map(|table| table.columns) {
            kinds.entry(column.name).or_default().insert(kind(column.column_type));
        }
        kinds.retain(|_, kinds| kinds.len() > 1);
        assert!(kinds.keys().all(|name| exceptions.contains(name)), "{kinds:?}");
    }
    // A row has each key once.
    let heads = [MessageHead::COLUMNS, TransactionHead::COLUMNS];
    for (tables, head) in
        [<flowgauge::Message<'_> as Union>::tables(), Content::tables()].into_iter().zip(heads)
    {
        for (table, column) in
            tables.iter().flat_map(|table| table.columns.iter().map(move |column| (table, column)))
        {
            let is_new = head.iter().all(|known| known.name != column.name);
            assert!(is_new, "{}: {} is a column of the head", table.name, column.name);
        }
    }
    // What a ClientHello states has one name, also within QUIC, and no column of a transaction is inside of a group, where
    // a condition would not find it.
    let transactions = flowgauge::transaction::Content::tables();
    for table in transactions.iter().filter(|table| matches!(table.kind(), "tls" | "quic")) {
        for name in ["server_name", "alpn", "version", "ja4", "certificates"] {
            assert!(table.columns.iter().any(|column| column.name == name), "{}: {name}", table.name);
        }
    }
    for table in transactions {
        let groups = table.columns.iter().filter(|column| matches!(column.column_type, Type::Group(_)));
        assert_eq!(groups.count(), 0, "{}", table.name);
    }
    let requests = <flowgauge::Message<'_> as Union>::tables();
    for table in requests.iter().filter(|table| matches!(table.name, "http.request" | "http2.request")) {
        assert!(table.columns.iter().any(|column| column.name == "target"), "{}", table.name);
    }
}

/// Returns a doc comment without the links of rustdoc.
fn plain(description: &str) -> String {
    let mut out = String::new();
    let mut rest = description;
    while let Some((before, after)) = rest.split_once('[') {
        let (text, after) = after.split_once(']').expect("the end of a link");
        let target = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        out.push_str(before);
        out.push_str(text);
        rest = target.map_or(after, |(_, after)| after);
    }
    out + rest
}

fn write_columns(out: &mut String, columns: &[Column], depth: usize) {
    use flowgauge::row::Type;
    for column in columns {
        let (indent, mark) = ("&emsp;".repeat(depth), if column.is_sparse { "*" } else { "" });
        let (type_name, members) = match column.column_type {
            Type::Group(members) => ("group".to_owned(), Some(members)),
            Type::List(item) => match item.column_type {
                Type::Group(members) => ("list of groups".to_owned(), Some(members)),
                _ => (column.column_type.to_string(), None),
            },
            other => (other.to_string(), None),
        };
        let unit = column.unit.name();
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        let text = plain(column.description);
        writeln!(out, "| {indent}`{}`{mark} | {type_name}{unit} | {text} |", column.name).unwrap();
        if let Some(members) = members {
            write_columns(out, members, depth + 1);
        }
    }
}

/// A row with texts from the network.
struct Texts {
    one: String,
    many: Vec<String>,
}

flowgauge::table! {
    /// A row with texts.
    impl "texts" for Texts as texts {
        /// A text.
        "one": &str = &texts.one;
        /// Texts.
        "many": flowgauge::row::ListOf<&'static str> => flowgauge::row::List(texts.many.iter());
    }
}

/// Splits a line of csv (RFC 4180).
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut is_quoted, mut letters) = (vec![String::new()], false, line.chars().peekable());
    while let Some(letter) = letters.next() {
        let cell = cells.last_mut().unwrap();
        match letter {
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            letter => cell.push(letter),
        }
    }
    cells
}

/// Splits a list at semicolons without a backslash.
fn items(cell: &str) -> Vec<String> {
    let (mut items, mut letters) = (vec![String::new()], cell.chars());
    while let Some(letter) = letters.next() {
        match letter {
            ';' => items.push(String::new()),
            '\\' => match letters.next() {
                Some(';') => items.last_mut().unwrap().push(';'),
                other => items.last_mut().unwrap().extend(std::iter::once(letter).chain(other)),
            },
            letter => items.last_mut().unwrap().push(letter),
        }
    }
    items
}

/// Returns a text without the escapes of JSON.
fn unescaped(text: &str) -> String {
    serde_json::from_str(&format!("\"{}\"", text.replace('"', "\\\""))).unwrap()
}

proptest! {
    /// Any text can be read again from csv and JSON, in which a row is one line without controls.
    #[test]
    fn texts_are_read_as_they_were_written(
        one in "([a-z,;\"\\\\ \n\u{85}ü\u{202e}]|.){0,12}",
        many in prop::collection::vec("([a-z,;\"\\\\ \n\u{85}ü\u{202e}]|.){0,6}", 1..4),
    ) {
        let row = Texts { one, many };
        let mut lines = Lines::csv(Vec::new(), None, Style::default());
        RecordWriter::write(&mut lines, &row).unwrap();
        let text = String::from_utf8(lines.into_inner().unwrap()).unwrap();
        prop_assert_eq!(text.lines().count(), 2);
        prop_assert!(!text.replace('\n', "").contains(char::is_control));
        let cells = cells(text.lines().nth(1).unwrap());
        prop_assert_eq!(unescaped(&cells[0]), row.one.clone());
        prop_assert_eq!(items(&cells[1]).iter().map(|item| unescaped(item)).collect::<Vec<_>>(), row.many.clone());
        let mut json = Vec::new();
        write_json(&mut json, &row, Style::default());
        let read: serde_json::Value = serde_json::from_slice(&json).unwrap();
        prop_assert_eq!(read, serde_json::json!({ "one": row.one, "many": row.many }));
    }

    /// Records with arbitrary values, which no tracker produces.
    #[test]
    fn all_writers_agree_on_any_record(
        numbers in prop::array::uniform16(any::<u64>()),
        addresses in (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<bool>()),
        (protocol, known, macs) in (any::<u8>(), prop::collection::vec(0_usize..67, 0..67), any::<[Option<[u8; 6]>; 2]>()),
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
