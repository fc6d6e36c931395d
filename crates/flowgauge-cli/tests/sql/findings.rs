//! The table of findings has the rows that `flowgauge summary` writes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::folder::Folder;
use super::{captures, objects, run, sql, sql_from_stdin};

/// Number of captures of the corpus, and their maximum length in octets.
const CORPUS_COUNT: usize = 100;
const CORPUS_LEN_MAX: u64 = 1 << 20;

/// Returns the findings that the command writes; `None` if some of the input could not be read.
fn summary(args: &[&str]) -> Option<Vec<Value>> {
    let run = run(&[&["summary", "--format", "ndjson", "--quiet"], args].concat());
    (run.status == Some(0)).then(|| objects(&run.out))
}

/// Returns the captures in a folder of examples.
fn examples(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_capture = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| ["pcap", "pcapng", "zst"].iter().any(|known| extension == *known))
    };
    let mut paths: Vec<_> = entries.filter(is_capture).collect();
    paths.sort();
    paths
}

/// Returns the first captures of the corpus that can be read as a whole, if it is there.
fn corpus() -> Vec<PathBuf> {
    let Some(root) = std::env::var_os("FLOWGAUGE_CORPUS").map(PathBuf::from) else { return Vec::new() };
    let manifest = fs::read_to_string(root.join("MANIFEST.tsv")).unwrap();
    let paths = manifest.lines().filter_map(|line| Some(root.join(line.split('\t').next()?)));
    let is_small =
        |path: &PathBuf| path.is_file() && path.metadata().is_ok_and(|file| file.len() <= CORPUS_LEN_MAX);
    paths.filter(is_small).collect()
}

#[test]
fn rows_are_those_that_the_command_writes() {
    let mut own = examples(&captures());
    own.extend(examples(&captures().join("../findings")));
    let mut statements = String::new();
    let mut expected: Vec<(PathBuf, Vec<Value>)> = Vec::new();
    let (own_count, mut corpus_count) = (own.len(), 0);
    for (index, path) in own.into_iter().chain(corpus()).enumerate() {
        if index >= own_count && corpus_count == CORPUS_COUNT {
            break;
        }
        let name = path.to_str().unwrap();
        let Some(findings) = summary(&[name]) else {
            assert!(index >= own_count, "{name}");
            continue;
        };
        corpus_count += usize::from(index >= own_count);
        let name = name.replace('\'', "''");
        statements += &format!("SELECT {} AS capture, f.* FROM findings('{name}') AS f;\n", expected.len());
        expected.push((path, findings));
    }
    println!("{corpus_count} captures of the corpus");
    assert!(corpus_count == CORPUS_COUNT || std::env::var_os("FLOWGAUGE_CORPUS").is_none(), "{corpus_count}");
    let run = sql_from_stdin(&["--format", "ndjson"], &statements);
    assert_eq!((run.status, run.err.as_str()), (Some(0), ""));
    let mut found: Vec<Vec<Value>> = vec![Vec::new(); expected.len()];
    for mut row in objects(&run.out) {
        let capture = row.as_object_mut().unwrap().remove("capture").unwrap();
        found[capture.as_u64().unwrap() as usize].push(row);
    }
    let mut with_findings_count = 0;
    for ((path, expected), found) in expected.iter().zip(&found) {
        assert_eq!(found, expected, "{}", path.display());
        with_findings_count += usize::from(!expected.is_empty());
    }
    assert!(with_findings_count > 30, "{with_findings_count}");
}

#[test]
fn several_captures_are_one_pass() {
    let names =
        ["web.pcap", "../findings/scan-ports.pcap.zst", "../findings/beacon-jitter.pcap.zst", "web.pcap"];
    let expected = summary(&names).unwrap();
    // Those of each capture, and the duplicates of the one that is read twice.
    let has = |kind: &str| expected.iter().any(|finding| finding["finding"] == kind);
    assert!(["scan", "beacon", "certificate", "duplicates"].into_iter().all(has), "{expected:?}");
    let query = "SELECT * FROM findings(['web.pcap', '../findings/scan-ports.pcap.zst'],
                 '../findings/beacon-jitter.pcap.zst', 'web.pcap')";
    for threads in ["1", "4"] {
        let run = sql(query, &["--format", "ndjson", "--threads", threads]);
        assert_eq!(objects(&run.out), expected, "{threads}");
    }
    let names = ["../findings/scan-ports-filtered.pcap.zst", "../findings/scan-ports-udp.pcap.zst"];
    let query = "SELECT * FROM findings('../findings/scan-ports-[fu]*.pcap.zst')";
    assert_eq!(objects(&sql(query, &["--format", "ndjson"]).out), summary(&names).unwrap());
}

#[test]
fn options_conditions_and_columns() {
    let options = ["web.pcap", "mail.pcap", "--filter", "tcp port 443", "--idle-timeout", "90s"];
    let expected = summary(&options).unwrap();
    assert!(expected.iter().any(|finding| finding["command"].to_string().contains("--idle-timeout 1m30s")));
    let table = "findings('web.pcap', 'mail.pcap', filter => 'tcp port 443', idle_timeout => '90s')";
    assert_eq!(objects(&sql(&format!("SELECT * FROM {table}"), &["--format", "ndjson"]).out), expected);

    let scan = "findings('../findings/scan-ports.pcap.zst')";
    let all = objects(&sql(&format!("SELECT * FROM {scan}"), &["--format", "ndjson"]).out);
    let source = all.iter().find(|row| row["finding"] == "scan").unwrap()["source_address"].as_str().unwrap();
    let query = format!("SELECT evidence, count FROM {scan} WHERE source_address = '{source}' LIMIT 1");
    let rows = objects(&sql(&query, &["--format", "ndjson"]).out);
    let same = all.iter().find(|row| row["source_address"] == source).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((&rows[0]["evidence"], &rows[0]["count"]), (&same["evidence"], &same["count"]));
    assert_eq!(rows[0].as_object().unwrap().len(), 2);
}

#[test]
fn findings_before_damage_remain() {
    let folder = Folder::new();
    let octets = fs::read(captures().join("web.pcap")).unwrap();
    let damaged = folder.file("damaged.pcap", &octets[..octets.len() - 7]);
    let empty = folder.file("empty.pcap", &octets[..24]);
    let expected = run(&["summary", &damaged, "--format", "ndjson", "--quiet"]);
    assert_eq!(expected.status, Some(1));
    let query = format!("SELECT * FROM findings('{damaged}', '{empty}')");
    let found = run(&["sql", &query, "--format", "ndjson"]);
    assert_eq!((found.status, objects(&found.out)), (Some(1), objects(&expected.out)));
    assert!(!found.out.is_empty() && found.err.contains("damaged.pcap"), "{}", found.err);
    let query = format!("SELECT * FROM findings('{empty}')");
    assert_eq!(sql(&query, &["--format", "ndjson"]).out, "");
}
