//! Logs of Zeek, several outputs in one run, and rotation.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Map, Value, json};

use super::{Folder, run};

const CAPTURES: [&str; 7] =
    ["any.pcap", "dns.pcap", "lossy.pcap", "mail.pcap", "raw-tun.pcap", "ssh.pcap", "web.pcap"];

/// Returns a value of TSV as JSON, by its type; `None` if it is unset.
fn value(text: &str, kind: &str) -> Option<Value> {
    let unescaped = |text: &str| -> String {
        let mut octets = Vec::new();
        let mut rest = text.as_bytes();
        while let [first, after @ ..] = rest {
            (rest, _) = match (first, after) {
                (b'\\', [b'x', high, low, after @ ..]) => {
                    let digits = String::from_utf8(vec![*high, *low]).unwrap();
                    octets.push(u8::from_str_radix(&digits, 16).unwrap());
                    (after, ())
                }
                (b'\\', [b'\\', after @ ..]) => {
                    octets.push(b'\\');
                    (after, ())
                }
                (octet, after) => {
                    octets.push(*octet);
                    (after, ())
                }
            };
        }
        String::from_utf8(octets).unwrap()
    };
    if text == "-" {
        return None;
    }
    if let Some((_, item)) = kind.split_once('[') {
        let item = item.strip_suffix(']').unwrap();
        let items = text.split(',').filter(|_| text != "(empty)");
        return Some(items.map(|text| value(text, item).unwrap()).collect());
    }
    Some(match kind {
        "bool" => json!(match text {
            "T" => true,
            "F" => false,
            _ => panic!("{text}"),
        }),
        "count" | "port" => json!(text.parse::<u64>().unwrap()),
        "time" | "interval" => {
            assert_eq!(text.split_once('.').unwrap().1.len(), 6, "{text}");
            json!(text.parse::<f64>().unwrap())
        }
        "addr" => json!(text.parse::<std::net::IpAddr>().unwrap().to_string()),
        "string" | "enum" if text == "(empty)" => json!(""),
        "string" | "enum" => json!(unescaped(text)),
        _ => panic!("type {kind}"),
    })
}

/// Reads a log in TSV as its header specifies.
fn read_tsv(text: &str) -> Vec<Map<String, Value>> {
    let header = |name: &str| -> Vec<&str> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split('\t').skip(1).collect()
    };
    assert!(
        text.starts_with(
            "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\t"
        )
    );
    assert!(text.lines().last().unwrap().starts_with("#close\t"), "{text}");
    let (fields, types) = (header("#fields"), header("#types"));
    assert_eq!(fields.len(), types.len());
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let values: Vec<_> = line.split('\t').collect();
        assert_eq!(values.len(), fields.len(), "{line}");
        let columns = fields.iter().zip(&types).zip(values);
        columns.filter_map(|((name, kind), text)| Some(((*name).to_owned(), value(text, kind)?))).collect()
    })
    .collect()
}

/// Returns the files of a folder by name.
fn files(folder: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

#[test]
fn tsv_and_json_have_the_same_values() {
    let mut row_count = 0;
    let mut names = Vec::new();
    for capture in CAPTURES {
        let folder = Folder::new();
        let (tsv, json) = (folder.path("tsv"), folder.path("json"));
        let (tsv_target, json_target) = (format!("zeek={tsv}"), format!("zeek-json={json}"));
        let run =
            run(&["sessions", capture, "--write", &tsv_target, "--write", &json_target, "--hashes", "-q"]);
        assert_eq!((run.status, run.out.as_str(), run.err.as_str()), (0, "", ""), "{capture}");
        let (tsv, json) = (files(&tsv), files(&json));
        assert_eq!(tsv.keys().collect::<Vec<_>>(), json.keys().collect::<Vec<_>>());
        for (name, text) in &tsv {
            let rows = read_tsv(text);
            let lines: Vec<Map<String, Value>> =
                json[name].lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(rows.len(), lines.len(), "{capture} {name}");
            for (row, line) in rows.iter().zip(&lines) {
                assert_eq!(row.keys().collect::<Vec<_>>(), line.keys().collect::<Vec<_>>(), "{name}");
                for (column, value) in row {
                    match (value.as_f64(), line[column].as_f64()) {
                        // Times have six decimals in TSV.
                        (Some(own), Some(other)) => assert!((own - other).abs() < 1e-6, "{name} {column}"),
                        _ => assert_eq!(value, &line[column], "{name} {column}"),
                    }
                }
            }
            row_count += rows.len();
            names.push(name.clone());
        }
    }
    names.sort();
    names.dedup();
    assert!(row_count > 200 && names.len() >= 9, "{row_count} rows of {names:?}");
}

#[test]
fn identifiers_join_the_logs_and_are_the_same_in_each_run() {
    let folder = Folder::new();
    let logs: Vec<_> = ["one", "two"]
        .iter()
        .map(|name| {
            let path = folder.path(name);
            let run = run(&["sessions", "web.pcap", "--format", "zeek", "--out", &path, "-q"]);
            assert_eq!((run.status, run.err.as_str()), (0, ""));
            files(&path)
        })
        .collect();
    assert_eq!(logs[0], logs[1]);
    let column = |log: &str, name: &str| -> Vec<Value> {
        read_tsv(&logs[0][log]).iter().filter_map(|row| row.get(name).cloned()).collect()
    };
    let connections = column("conn.log", "uid");
    for log in ["http.log", "ssl.log", "files.log"] {
        assert!(column(log, "uid").iter().all(|uid| connections.contains(uid)), "{log}");
    }
    let bodies = column("files.log", "fuid");
    let named: Vec<_> =
        column("http.log", "resp_fuids").iter().flat_map(|all| all.as_array().unwrap().clone()).collect();
    assert!(named.len() > 10 && named.iter().all(|fuid| bodies.contains(fuid)));
    let certificates = column("x509.log", "fingerprint");
    let chains: Vec<_> =
        column("ssl.log", "cert_chain_fps").iter().flat_map(|all| all.as_array().unwrap().clone()).collect();
    assert!(!chains.is_empty() && chains.iter().all(|name| certificates.contains(name)));
}

#[test]
fn several_outputs_equal_those_of_runs_of_their_own() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    let target = |kind: &str, name: &str| format!("{kind}={}", folder.path(name));
    let (ndjson, csv, zeek) = (target("ndjson", "a.ndjson"), target("csv", "a.csv"), target("zeek", "zeek"));
    let all =
        run(&["flows", "web.pcap", "--write", &ndjson, "-w", &csv, "-w", &zeek, "--format", "csv", "-q"]);
    assert_eq!((all.status, all.err.as_str()), (0, ""));
    for (format, text) in [
        ("ndjson", fs::read_to_string(path("a.ndjson")).unwrap()),
        ("csv", fs::read_to_string(path("a.csv")).unwrap()),
        ("csv", all.out),
    ] {
        let alone = run(&["flows", "web.pcap", "--format", format, "-q"]);
        assert!(alone.out == text && !text.is_empty(), "{format}");
    }
    let logs = files(&path("zeek"));
    let sessions = run(&["sessions", "web.pcap", "--format", "zeek", "--out", &path("other"), "-q"]);
    assert_eq!((sessions.status, logs), (0, files(&path("other"))));

    let ndjson = target("ndjson", "messages.ndjson");
    let both = run(&["sessions", "mail.pcap", "--write", &ndjson, "--write", &target("zeek", "mail"), "-q"]);
    assert_eq!((both.status, both.out.as_str(), both.err.as_str()), (0, "", ""));
    let alone = run(&["sessions", "mail.pcap", "-q"]);
    assert_eq!(fs::read_to_string(path("messages.ndjson")).unwrap(), alone.out);
    // Standard output has the connections only.
    let connections = run(&["flows", "web.pcap", "--format", "zeek", "-q"]);
    assert_eq!(read_tsv(&connections.out), read_tsv(&files(&path("zeek"))["conn.log"]));
}

#[test]
fn rotated_files_have_the_same_rows_together() {
    let folder = Folder::new();
    let zeek = format!("zeek={}", folder.path("whole"));
    let ndjson = format!("ndjson={}", folder.path("whole.ndjson"));
    assert_eq!(run(&["flows", "web.pcap", "-w", &zeek, "-w", &ndjson, "-q"]).status, 0);
    let rows = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    for rotation in ["1s", "1kB"] {
        let path = folder.path(rotation);
        let (zeek, ndjson) = (format!("zeek={path}"), format!("ndjson={path}/flows.ndjson"));
        let run = run(&["flows", "web.pcap", "-w", &zeek, "-w", &ndjson, "--rotate", rotation, "-q"]);
        assert_eq!((run.status, run.err.as_str()), (0, ""));
        let parts = files(&path);
        for (name, extension) in [("conn", "log"), ("http", "log"), ("flows", "ndjson")] {
            let whole = match name {
                "flows" => fs::read_to_string(folder.path("whole.ndjson")).unwrap(),
                name => files(&folder.path("whole"))[&format!("{name}.log")].clone(),
            };
            let mut of_name: Vec<_> =
                parts.iter().filter(|(file, _)| file.starts_with(&format!("{name}."))).collect();
            // Those of one second are numbered.
            of_name.sort_by_key(|(file, _)| {
                let mut words = file.split('.').skip(1);
                let date = words.next().unwrap().to_owned();
                (date, words.next().unwrap().parse::<u32>().unwrap_or(1))
            });
            assert!(of_name.len() > 1, "{rotation} {name}: {:?}", parts.keys());
            for (file, text) in &of_name {
                assert!(file.starts_with(&format!("{name}.2026-11-20-23-09-")), "{file}");
                assert!(file.ends_with(extension), "{file}");
                if extension == "log" {
                    read_tsv(text);
                }
            }
            let together: Vec<_> = of_name.iter().flat_map(|(_, text)| rows(text)).collect();
            assert_eq!(together, rows(&whole), "{rotation} {name}");
        }
    }
}

#[test]
fn local_networks_determine_local_and_direction() {
    let column = |args: &[&str], name: &str| -> Vec<Value> {
        let run = run(args);
        assert_eq!((run.status, run.err.as_str()), (0, ""));
        read_tsv(&run.out).iter().filter_map(|row| row.get(name).cloned()).collect()
    };
    let all = ["flows", "ssh.pcap", "--filter", "port 57544", "--format", "zeek", "-q"];
    assert_eq!(column(&all, "local_orig"), [true]);
    let args = [&all[..], &["--local-networks", "192.0.2.0/24,10.77.0.1"]].concat();
    assert_eq!(
        (column(&args, "local_orig"), column(&args, "local_resp")),
        (vec![json!(false)], vec![json!(true)])
    );
    let folder = Folder::new();
    let path = folder.path("logs");
    let args = ["sessions", "ssh.pcap", "-f", "zeek", "-o", &path, "-q", "--local-networks", "10.77.0.1"];
    assert_eq!(run(&args).status, 0);
    assert!(
        read_tsv(&files(&path)["ssh.log"]).iter().any(|row| row.get("direction") == Some(&json!("INBOUND")))
    );
}

#[test]
fn outputs_with_the_same_file_are_refused() {
    let folder = Folder::new();
    let path = folder.path("logs");
    let target = |kind: &str, end: &str| format!("{kind}={path}{end}");
    for (first, second, name) in [
        (target("zeek", ""), target("zeek-json", "/../logs"), ".log"),
        (target("eve", ""), target("ndjson", "/eve.json"), "eve.json"),
        (target("zeek", ""), target("ndjson", "/../logs/conn.log"), "conn.log"),
    ] {
        for command in ["flows", "sessions"] {
            for force in [&[][..], &["--force"]] {
                std::fs::create_dir_all(&path).unwrap();
                let args =
                    [&[command, "web.pcap", "-q", "--write", &first, "--write", &second][..], force].concat();
                let run = run(&args);
                assert_eq!(run.status, 1, "{args:?}");
                let message = format!("{name}: two outputs have the same path\n");
                assert!(run.err.ends_with(&message), "{args:?}: {}", run.err);
                std::fs::remove_dir_all(&path).unwrap();
            }
        }
    }
}

#[test]
fn contradictions_are_refused() {
    for (args, message) in [
        (&["flows", "web.pcap", "--out", "x"][..], "--out requires --format zeek, zeek-json or eve"),
        (&["flows", "web.pcap", "--rotate", "1h"], "--rotate requires --write or --out"),
        (
            &["flows", "web.pcap", "--local-networks", "10.0.0.0/8"],
            "--local-networks requires an output zeek",
        ),
        (
            &["flows", "web.pcap", "--write", "zeek=x", "--write", "ndjson=x"],
            "two outputs have the same path",
        ),
        (&["flows", "web.pcap", "--write", "x.ndjson"], "must be KIND=PATH"),
        (&["flows", "web.pcap", "--write", "xml=x"], "KIND is one of ndjson, csv, fixed"),
        (&["flows", "web.pcap", "--write", "zeek="], "must be KIND=PATH"),
        (&["flows", "web.pcap", "--write", "zeek=x", "--sort", "octets"], "cannot be combined with --sort"),
        (&["flows", "web.pcap", "--format", "zeek", "--shards", "2"], "cannot be combined with --sort"),
        (
            &["flows", "web.pcap", "--format", "zeek", "--features", "cic"],
            "--features requires --format ndjson",
        ),
        (
            &["flows", "web.pcap", "--write", "zeek=x", "--label", "r.csv", "-f", "csv"],
            "cannot be combined with --write",
        ),
        (&["flows", "web.pcap", "--format", "zeek", "--fields", "start"], "--fields cannot be combined"),
        (
            &["flows", "web.pcap", "--rotate", "10ms", "--write", "csv=x"],
            "must be a time of at least a second",
        ),
        (&["sessions", "web.pcap", "--write", "csv=x"], "the rows of messages have different columns"),
        (&["flows", "web.pcap", "--local-networks", "10.0.0.0/33", "-f", "zeek"], "a network is an address"),
    ] {
        let run = run(args);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.contains(message), "{args:?}: {}", run.err);
    }
}

#[test]
fn records_of_other_programs_are_connections_with_the_same_identifiers() {
    let folder = Folder::new();
    let path = folder.path("flows.ipfix");
    assert_eq!(run(&["flows", "web.pcap", "--format", "ipfix", "--to", &path, "-q"]).status, 0);
    let collected = run(&["collect", &path, "--format", "zeek", "-q"]);
    assert_eq!((collected.status, collected.err.as_str()), (0, ""));
    let own = run(&["flows", "web.pcap", "--format", "zeek", "-q"]);
    let (collected, own) = (read_tsv(&collected.out), read_tsv(&own.out));
    assert!(own.len() == collected.len() && own.len() > 20);
    for (row, other) in own.iter().zip(&collected) {
        for column in [
            "ts",
            "uid",
            "id.orig_h",
            "id.orig_p",
            "id.resp_h",
            "id.resp_p",
            "proto",
            "orig_pkts",
            "resp_ip_bytes",
        ] {
            assert_eq!(row.get(column), other.get(column), "{column}");
        }
    }
}

#[test]
fn collected_records_are_written_to_several_outputs() {
    let folder = Folder::new();
    let path = folder.path("flows.ipfix");
    assert_eq!(run(&["flows", "web.pcap", "--format", "ipfix", "--to", &path, "-q"]).status, 0);
    let target = |kind: &str, name: &str| format!("{kind}={}", folder.path(name));
    let (ndjson, zeek) = (target("ndjson", "a.ndjson"), target("zeek", "zeek"));
    let eve = target("eve", "eve");
    let all = run(&[
        "collect", &path, "--write", &ndjson, "-w", &zeek, "-w", &eve, "--rotate", "1h", "--format", "csv",
        "-q",
    ]);
    assert_eq!((all.status, all.err.as_str()), (0, ""));
    let alone = |format: &str| run(&["collect", &path, "--format", format, "-q"]).out;
    assert!(all.out.lines().count() > 20 && all.out == alone("csv"));
    let of_series = |name: &str| {
        let files = files(&folder.path(name));
        assert_eq!(files.len(), 1, "{files:?}");
        files.into_values().next().unwrap()
    };
    assert_eq!(read_tsv(&of_series("zeek")), read_tsv(&alone("zeek")));
    // At the end, there are statistics.
    let events = of_series("eve");
    let flows: Vec<_> = events.lines().filter(|line| line.contains("\"event_type\":\"flow\"")).collect();
    assert_eq!(flows, alone("eve").lines().collect::<Vec<_>>());
    let lines = fs::read_dir(folder.path("")).unwrap().map(|entry| entry.unwrap().path());
    let lines = lines.filter(|path| path.extension().is_some_and(|extension| extension == "ndjson"));
    let together: String = lines.map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(together, alone("ndjson"));

    let log = run(&["collect", &path, "--format", "zeek", "--out", &folder.path("logs"), "-q"]);
    assert_eq!((log.status, log.out.as_str()), (0, ""));
    assert_eq!(read_tsv(&files(&folder.path("logs"))["conn.log"]), read_tsv(&alone("zeek")));
    // The bound on the output does not depend on the number of outputs.
    let many = vec![&path[..]; 40];
    let count = |format: &str, name: &str| {
        let (one, two) = (target(format, &format!("{name}1")), target(format, &format!("{name}2")));
        let args =
            [&["collect"][..], &many, &["-f", "ndjson", "--nulls", "null", "-w", &one, "-w", &two]].concat();
        let run = run(&args);
        assert_eq!(run.status, 0, "{}", run.err);
        (run.out.lines().count(), run.err.contains("omitted"))
    };
    let alone = run(&[&["collect"][..], &many, &["-f", "ndjson", "--nulls", "null"]].concat());
    assert_eq!(count("csv", "x"), (alone.out.lines().count(), alone.err.contains("omitted")));
    // An input is never replaced.
    let replaced = run(&["collect", &path, "--write", &target("ndjson", "flows.ipfix"), "--force", "-q"]);
    assert_eq!((replaced.status, replaced.out.as_str()), (1, ""));
    assert!(replaced.err.contains("is an input"), "{}", replaced.err);
}
