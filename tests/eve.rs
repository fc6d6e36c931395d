//! The events of `export::eve` are those of `docs/eve.schema.json` and of `docs/formats.md`.
#![cfg(feature = "protocols")]

#[path = "support/captures.rs"]
mod captures;
#[path = "support/eve.rs"]
mod eve;
#[path = "support/json_schema.rs"]
mod json_schema;
#[path = "support/parallel.rs"]
mod parallel;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::{env, fs};

use flowgauge::export::FlowLog as _;
use flowgauge::export::eve::{
    Anomaly, Arp, Dns, EveConfig, Events, Fileinfo, Flow, Ftp, FtpData, Head, Http, Netflow, Quic, Smtp, Ssh,
    Stats, Tls,
};
use flowgauge::row::{Column, TableInfo, Type};
use flowgauge::tracker::TrackerConfig;
use flowgauge::{FileSource, records};
use serde_json::Value;

use captures::{captures, own_captures, root};
use eve::events_of;

fn schema() -> Value {
    let text = fs::read_to_string(root().join("docs/eve.schema.json")).expect("the schema");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns the tables of all types of events, without the head.
fn tables() -> Vec<TableInfo> {
    let tables = [
        TableInfo::of::<Flow>(),
        TableInfo::of::<Netflow>(),
        TableInfo::of::<Http<'_>>(),
        TableInfo::of::<Dns<'_>>(),
        TableInfo::of::<Tls<'_>>(),
        TableInfo::of::<Ssh<'_>>(),
        TableInfo::of::<Smtp<'_>>(),
        TableInfo::of::<Ftp<'_>>(),
        TableInfo::of::<FtpData<'_>>(),
        TableInfo::of::<Quic<'_>>(),
        TableInfo::of::<Fileinfo<'_>>(),
        TableInfo::of::<Anomaly>(),
        TableInfo::of::<Arp>(),
        TableInfo::of::<Stats>(),
    ];
    tables.into_iter().chain(flowgauge::protocols::eve_tables().into_iter().copied()).collect()
}

fn config() -> EveConfig {
    EveConfig::default().has_netflow(true).has_stats(true)
}

#[test]
fn events_of_all_captures_are_valid() {
    let schema = schema();
    let checked = parallel::map(&captures(), |path| {
        let (mut counts, mut failures, mut commands) =
            (BTreeMap::<String, usize>::new(), Vec::new(), BTreeSet::new());
        let mut anonymous = BTreeMap::new();
        for event in events_of(path, config(), TrackerConfig::default()) {
            let kind = event["event_type"].as_str().unwrap_or_default().to_owned();
            let found = json_schema::violations(&schema, &event);
            failures.extend(found.iter().map(|violation| format!("{}: {kind} {violation}", path.display())));
            *counts.entry(kind).or_default() += 1;
            if let Some(command) = event["ftp"]["command"].as_str() {
                let data = event["ftp"]["command_data"].as_str();
                let flow = event["flow_id"].as_u64();
                if command == "USER" {
                    anonymous.insert(flow, matches!(data, Some("anonymous" | "ftp")));
                }
                // Anonymous users have no password.
                let may_have = command == "PASS" && anonymous.get(&flow) == Some(&true);
                let has_secret = matches!(command, "PASS" | "ACCT") && data.is_some() && !may_have;
                assert!(!has_secret, "{event}");
                commands.insert(command.to_owned());
            }
        }
        (counts, failures, commands)
    });
    let (mut counts, mut failures, mut commands) =
        (BTreeMap::<String, usize>::new(), Vec::new(), BTreeSet::new());
    for (of_capture, found, used) in checked {
        of_capture.into_iter().for_each(|(kind, count)| *counts.entry(kind).or_default() += count);
        failures.extend(found);
        commands.extend(used);
    }
    println!("{counts:?}");
    assert!(env::var_os("FLOWGAUGE_CORPUS").is_none() || commands.contains("PASS"), "{commands:?}");
    assert!(failures.is_empty(), "{} violations:\n{}", failures.len(), failures.join("\n"));
    for kind in
        ["flow", "netflow", "http", "dns", "tls", "ssh", "smtp", "ftp", "ftp_data", "fileinfo", "stats"]
    {
        assert!(counts.contains_key(kind), "no events of type {kind}");
    }
}

/// Adds the paths of the columns of a table, such as `dns.answers[].ttl`.
fn add_columns(columns: &'static [Column], prefix: &str, out: &mut BTreeSet<String>) {
    for column in columns {
        let (path, inner) = match column.column_type {
            Type::List(item) => (format!("{prefix}{}[]", column.name), item.column_type),
            other => (format!("{prefix}{}", column.name), other),
        };
        match inner {
            Type::Group(members) => add_columns(members, &format!("{path}."), out),
            _ => drop(out.insert(path)),
        }
    }
}

/// Adds the paths of the values in a schema.
fn add_properties(root: &Value, schema: &Value, path: &str, out: &mut BTreeSet<String>) {
    if let Some(pointer) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(pointer.trim_start_matches('#')).expect("a definition");
        return add_properties(root, target, path, out);
    }
    if let Some(items) = schema.get("items") {
        return add_properties(root, items, &format!("{path}[]"), out);
    }
    match schema.get("properties").and_then(Value::as_object) {
        Some(members) => {
            for (name, member) in members {
                let separator = if path.is_empty() { "" } else { "." };
                add_properties(root, member, &format!("{path}{separator}{name}"), out);
            }
        }
        None => drop(out.insert(path.to_owned())),
    }
}

#[test]
fn the_schema_has_the_keys_of_the_tables() {
    let schema = schema();
    let head = TableInfo::of::<Head>();
    // Events of a type may have several tables.
    let mut types: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for table in tables() {
        let (_, kind) = table.name.split_once('.').expect("a name with a dot");
        add_columns(table.columns, "", types.entry(kind).or_default());
    }
    let mut of_heads = BTreeSet::new();
    for (kind, columns) in types {
        let mut properties = BTreeSet::new();
        add_properties(&schema, &schema["$defs"][kind], "", &mut properties);
        let missing: Vec<_> = columns.difference(&properties).collect();
        assert!(missing.is_empty(), "{kind}: the schema has no {missing:?}");
        of_heads.extend(properties.difference(&columns).cloned());
    }
    let mut columns = BTreeSet::new();
    add_columns(head.columns, "", &mut columns);
    assert_eq!(of_heads, columns, "keys of the schema in no table of an event, and keys of heads");
}

#[test]
fn events_of_a_flow_have_its_identifier() {
    for path in own_captures() {
        let events = events_of(&path, config(), TrackerConfig::default());
        let mut flows = BTreeMap::new();
        for event in events.iter().filter(|event| event["event_type"] == "flow") {
            let ends = [(&event["src_ip"], &event["src_port"]), (&event["dest_ip"], &event["dest_port"])];
            let known =
                flows.insert(event["flow_id"].as_u64().expect("an identifier"), (ends, &event["proto"]));
            assert!(known.is_none(), "{}: an identifier of two flows", path.display());
        }
        // Counters, and messages of ARP, belong to no flow.
        let without_flow = ["stats", "arp"];
        for event in
            events.iter().filter(|event| without_flow.iter().all(|kind| event["event_type"] != *kind))
        {
            let mut ends = [(&event["src_ip"], &event["src_port"]), (&event["dest_ip"], &event["dest_port"])];
            let (of_flow, protocol) = flows[&event["flow_id"].as_u64().expect("an identifier")];
            if ends != of_flow {
                ends.reverse();
            }
            assert_eq!((ends, &event["proto"]), (of_flow, protocol), "{}", path.display());
        }
        let packets = |event: &Value| {
            event["flow"]["pkts_toserver"].as_u64().zip(event["flow"]["pkts_toclient"].as_u64())
        };
        let sum: u64 = events.iter().filter_map(packets).map(|(there, back)| there + back).sum();
        let stats = events.last().expect("an event");
        assert_eq!(
            (&stats["event_type"], &stats["stats"]["decoder"]["pkts"]),
            (&"stats".into(), &sum.into())
        );
        assert_eq!(stats["stats"]["flow"]["total"], flows.len());
    }
}

/// Returns the events of a type.
fn of_type<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event_type"] == kind).collect()
}

#[test]
fn events_of_data_connections_name_their_control_connection() {
    let path = root().join("examples/data/transfer.pcap");
    let events = events_of(&path, config(), TrackerConfig::default());
    let controls = of_type(&events, "ftp");
    let commands: Vec<_> = controls
        .iter()
        .filter(|event| {
            ["RETR", "STOR", "LIST"].iter().any(|verb| event["ftp"]["command"] == *verb)
                && event["ftp"]["completion_code"][0] == "226"
        })
        .map(|event| (&event["flow_id"], &event["ftp"]["command"]))
        .collect();
    let data = of_type(&events, "ftp_data");
    let transfers: Vec<_> =
        data.iter().map(|event| (&event["parent_id"], &event["ftp_data"]["command"])).collect();
    assert_eq!(transfers, commands);
    assert_eq!(transfers.len(), 7);
    for event in data {
        let is_of = |other: &&&Value| other["flow_id"] == event["flow_id"];
        let (files, flows) = (of_type(&events, "fileinfo"), of_type(&events, "flow"));
        let (file, flow) = (files.iter().find(is_of).expect("a file"), flows.iter().find(is_of));
        assert_eq!(file["fileinfo"]["filename"], event["ftp_data"]["filename"]);
        assert_eq!(flow.expect("a flow")["parent_id"], event["parent_id"]);
        assert_eq!(event["app_proto"], "ftp-data");
    }
}

#[test]
fn statistics_are_written_at_intervals_and_flows_alone_on_request() {
    let path = root().join("examples/data/web.pcap");
    let second = std::time::Duration::from_secs(1);
    let config = EveConfig::default().has_stats(true).stats_interval(second);
    let events = events_of(&path, config, TrackerConfig::default());
    let of_stats: Vec<_> = events.iter().filter(|event| event["event_type"] == "stats").collect();
    let uptimes: Vec<_> = of_stats.iter().map(|event| event["stats"]["uptime"].as_u64()).collect();
    assert!(uptimes.is_sorted() && uptimes.len() > 2, "{uptimes:?}");
    assert_eq!(events.last(), of_stats.last().copied());
    let config = EveConfig::default().has_flows_only(true);
    let flows = events_of(&path, config, TrackerConfig::default());
    assert!(flows.len() == 27 && flows.iter().all(|event| event["event_type"] == "flow"));
}

/// Records of the same flows have the same events, but neither recognized protocols nor replies of ICMP.
#[test]
fn records_of_other_programs_have_events() {
    let schema = schema();
    for path in own_captures() {
        let config = EveConfig::default().has_flows_only(true).has_netflow(true);
        let mut expected = events_of(&path, config.clone(), TrackerConfig::default());
        let mut lines = Vec::new();
        let mut events = Box::new(Events::stream(&mut lines, config));
        for record in records(FileSource::open(&path).expect("a capture")) {
            events.collected(&record.expect("a record"), &mut |_| true).expect("memory");
        }
        events.close().expect("memory");
        let text = String::from_utf8(lines).expect("UTF-8");
        let mut found: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        for event in &found {
            assert_eq!(json_schema::violations(&schema, event), [""; 0], "{event}");
        }
        for event in expected.iter_mut().chain(&mut found) {
            let keys =
                ["timestamp", "app_proto", "app_proto_orig", "response_icmp_type", "response_icmp_code"];
            let members = event.as_object_mut().expect("an object");
            members.retain(|key, _| !keys.contains(&&**key));
            if members["event_type"] == "netflow" {
                members.retain(|key, _| !key.starts_with("icmp_"));
            }
        }
        let key = |event: &Value| event.to_string();
        expected.sort_by_key(key);
        found.sort_by_key(key);
        assert_eq!(found, expected, "{}", path.display());
    }
}

const START: &str = "## EVE events\n";

const INTRODUCTION: &str = "\
Events of Suricata's EVE format: one JSON object per line, with keys, types and values of Suricata 8.
[eve.schema.json](eve.schema.json) is a JSON schema of what is written.

```sh
flowgauge sessions capture.pcap --format eve | jq -r 'select(.event_type == \"tls\") | [.src_ip, .tls.sni, .tls.version] | @tsv'
flowgauge sessions capture.pcap --format eve | jq -s 'group_by(.event_type) | map({(.[0].event_type): length}) | add'
flowgauge flows capture.pcap --format eve | jq '.flow.bytes_toserver + .flow.bytes_toclient'
```

| command | output |
|---|---|
| `flows`, `live` with `--format eve` | events of type `flow` on standard output |
| `collect`, `subscribe` with `--format eve` | the same of records of other programs, with the time of their end |
| `sessions --format eve` | all events on standard output |
| `--format eve --out DIR`, `--write eve=DIR` | all events in `DIR/eve.json`, at the end one of type `stats` |

The library writes the same as `export::eve::Events`, with options for `netflow` and for the interval of `stats`. Keys with an
asterisk are omitted if they are false or empty, others if their value is not known. Differences from Suricata:

- An event of a transaction is written when the transaction ends, with the time of its last packet; the query of DNS together
  with its response.
- The state of a flow of TCP does not depend on a handshake: a connection that began before the capture is `established`.
- There are neither alerts nor other values that depend on rules. The events of `anomaly` have the names of flowgauge.
- Credentials are never written, such as `command_data` of `PASS`.

";

fn write_columns(out: &mut String, columns: &[Column], prefix: &str) {
    for column in columns {
        let (path, inner) = match column.column_type {
            Type::List(item) => (format!("{prefix}{}[]", column.name), item.column_type),
            other => (format!("{prefix}{}", column.name), other),
        };
        let mark = if column.is_sparse { "*" } else { "" };
        writeln!(out, "| `{path}`{mark} | {} |", column.description).expect("a string");
        if let Type::Group(members) = inner {
            write_columns(out, members, &format!("{path}."));
        }
    }
}

/// Compares the section of `docs/formats.md` with the tables; with `UPDATE_DOCS=1` the test writes it.
#[test]
fn the_documentation_of_events_is_up_to_date() {
    let mut section = format!("{START}\n{INTRODUCTION}");
    section.push_str(
        "The tables are generated: `UPDATE_DOCS=1 cargo test --features protocols --test eve` writes them.\n",
    );
    let head = TableInfo::of::<Head>();
    let titles =
        tables().into_iter().map(|table| (table.name.split_once('.').expect("a name with a dot").1, table));
    let mut previous = "";
    for (title, table) in std::iter::once(("Keys of all events", head)).chain(titles) {
        // Events of a type may have several tables.
        if std::mem::replace(&mut previous, title) != title {
            write!(section, "\n### {title}\n").expect("a string");
        }
        write!(section, "\n{}\n\n| key | rule |\n|---|---|\n", table.description).expect("a string");
        write_columns(&mut section, table.columns, "");
    }
    let path = root().join("docs/formats.md");
    let current = fs::read_to_string(&path).expect("the page");
    let (before, rest) = current.split_once(START).expect("the section");
    let after = rest.find("\n## ").and_then(|end| rest.get(end..)).unwrap_or_default();
    let page = format!("{}\n\n{section}{after}", before.trim_end());
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).expect("a writable page");
    }
    assert!(
        fs::read_to_string(&path).is_ok_and(|current| current == page),
        "docs/formats.md: run with UPDATE_DOCS=1"
    );
}
