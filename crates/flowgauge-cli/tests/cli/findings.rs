//! The findings of `flowgauge summary` in captures with known answers: those of `examples/findings`, which state what was
//! done, and a table of precision and recall on the page of that folder. `UPDATE_DOCS=1` writes the table.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::collect::{capture, tcp, udp};
use super::{Folder, objects, repository, run};

/// The heading of the section that the test writes.
const HEADING: &str = "## Precision and recall\n";

/// A finding that a capture must have. A value of `-` is not compared.
struct Expected {
    kind: String,
    source: String,
    destination: String,
    port: String,
    /// A part of the evidence.
    evidence: String,
    note: String,
}

impl Expected {
    /// Returns whether a finding is of this kind and nothing in it contradicts.
    fn is_met_by(&self, finding: &Value) -> bool {
        let agrees = |field: &str, value: &str| match &finding[field] {
            Value::Null => true,
            Value::String(text) => value == "-" || text == value,
            other => value == "-" || value.parse().is_ok_and(|number: u64| *other == number),
        };
        finding["finding"] == self.kind.as_str()
            && agrees("source_address", &self.source)
            && agrees("destination_address", &self.destination)
            && agrees("destination_port", &self.port)
            && (self.evidence == "-" || text(finding, "evidence").contains(&self.evidence))
    }
}

/// Findings of a kind: right ones, wrong ones, and those that are missing.
#[derive(Default)]
struct Counts {
    right: usize,
    wrong: usize,
    missing: usize,
}

fn folder() -> PathBuf {
    repository().join("examples/findings")
}

fn text<'a>(finding: &'a Value, field: &str) -> &'a str {
    finding[field].as_str().unwrap()
}

/// Returns the expected findings of each capture, of which some have none.
fn expected() -> BTreeMap<String, Vec<Expected>> {
    let table = fs::read_to_string(folder().join("expected.tsv")).unwrap();
    let mut captures: BTreeMap<String, Vec<Expected>> = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<_> = line.split('\t').map(str::to_owned).collect();
        let [capture, kind, source, destination, port, evidence, note] =
            cells.try_into().unwrap_or_else(|_| panic!("seven columns: {line}"));
        let findings = captures.entry(capture).or_default();
        if kind != "none" {
            findings.push(Expected { kind, source, destination, port, evidence, note });
        }
    }
    captures
}

/// Returns the kinds of findings in the order of the table in `docs/cli.md`.
fn kinds() -> Vec<String> {
    let page = fs::read_to_string(repository().join("docs/cli.md")).unwrap();
    let (_, table) = page.split_once("| finding | what was seen |\n").expect("a table");
    let rows = table.lines().skip(1).map_while(|row| row.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

/// Returns a part of a whole in percent.
fn percent(part: usize, whole: usize) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.0} %", 100.0 * part as f64 / whole as f64) }
}

/// Returns the section of the page: a row of each kind, their sum, and each wrong or missing finding.
fn section(counts: &BTreeMap<String, Counts>, differences: &str) -> String {
    let mut section = format!(
        "{HEADING}\n\
         This section is generated: `UPDATE_DOCS=1 cargo test -p flowgauge-cli --test cli findings` writes it. Precision is the\n\
         part of the findings that is right, recall the part of the expected findings that was found.\n\n\
         | finding | right | wrong | missing | precision | recall |\n\
         |---|--:|--:|--:|--:|--:|\n"
    );
    let mut row = |name: &str, Counts { right, wrong, missing }: &Counts| {
        let (precision, recall) = (percent(*right, right + wrong), percent(*right, right + missing));
        writeln!(section, "| {name} | {right} | {wrong} | {missing} | {precision} | {recall} |").unwrap();
    };
    let mut all = Counts::default();
    for kind in kinds() {
        let of_kind = &counts[&kind];
        row(&format!("`{kind}`"), of_kind);
        all.right += of_kind.right;
        all.wrong += of_kind.wrong;
        all.missing += of_kind.missing;
    }
    row("all", &all);
    write!(section, "\n| capture | wrong or missing | evidence |\n|---|---|---|\n{differences}\n").unwrap();
    section
}

#[test]
fn precision_and_recall_are_those_of_the_page() {
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    let mut differences = String::new();
    for (capture, mut missing) in expected() {
        let file = folder().join(format!("{capture}.pcap.zst"));
        let run = run(&["summary", file.to_str().unwrap(), "--format", "ndjson", "-q"]);
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{capture}");
        for finding in objects(&run.out) {
            let of_kind = counts.entry(text(&finding, "finding").to_owned()).or_default();
            if let Some(met) = missing.iter().position(|expected| expected.is_met_by(&finding)) {
                missing.remove(met);
                of_kind.right += 1;
            } else {
                of_kind.wrong += 1;
                let (kind, evidence) = (text(&finding, "finding"), text(&finding, "evidence"));
                writeln!(differences, "| `{capture}` | wrong: `{kind}` | {evidence} |").unwrap();
            }
        }
        for Expected { kind, note, .. } in missing {
            writeln!(differences, "| `{capture}` | missing: `{kind}` | {note} |").unwrap();
            counts.entry(kind).or_default().missing += 1;
        }
    }
    let documented: BTreeSet<_> = kinds().into_iter().collect();
    assert_eq!(counts.keys().cloned().collect::<BTreeSet<_>>(), documented, "a kind without a capture");

    let path = folder().join("README.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(HEADING).expect("a section");
    let after = rest.split_once("\n## ").map(|(_, after)| format!("## {after}")).unwrap_or_default();
    let current = [before, &section(&counts, &differences), &after].concat();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, current).unwrap();
    } else {
        assert!(current == page, "{}: run with UPDATE_DOCS=1:\n{current}", path.display());
    }
}

#[test]
fn every_capture_has_an_answer_and_some_have_no_finding() {
    let captures: BTreeSet<_> = fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".pcap.zst")?.to_owned()))
        .collect();
    let expected = expected();
    assert_eq!(captures, expected.keys().cloned().collect(), "files and rows");
    assert!(captures.len() >= 30, "{captures:?}");
    assert!(expected.values().filter(|findings| findings.is_empty()).count() >= 8);
}

#[test]
fn passwords_of_brokers_and_communities_are_clear_text_logins() {
    // One packet without an answer is no login.
    let exchanged = |mut packet: Vec<u8>| {
        packet[12..20].rotate_left(4);
        packet[20..24].rotate_left(2);
        packet
    };
    let connect = |flags: u8, credentials: &[u8]| {
        let body = [b"\0\x04MQTT\x04", &[flags, 0, 60, 0, 1, b'n'][..], credentials].concat();
        let packet = [&[0x10, body.len() as u8], &body[..]].concat();
        vec![tcp(1883, 0, 2, &[]), exchanged(tcp(1883, 0, 0x12, &[])), tcp(1883, 1, 0x18, &packet)]
    };
    let community = |community: &[u8]| {
        let request = b"\xa0\x19\x02\x01\x01\x02\x01\0\x02\x01\0\x30\x0e\x30\x0c\x06\x08\x2b\x06\x01\x02\x01\x01\x01\0\x05\0";
        let rest = [&[2, 1, 1, 4, community.len() as u8], community, &request[..]].concat();
        let packet = udp(161, &[&[0x30, rest.len() as u8], &rest[..]].concat());
        vec![packet.clone(), exchanged(packet)]
    };
    for (packets, expected) in [
        (connect(0xC2, b"\0\x05alice\0\x06secret"), Some("1 login over mqtt without encryption (password)")),
        (connect(2, b""), None),
        (community(b"public"), Some("1 login over snmp without encryption (default community)")),
        (community(b"k7Ux"), Some("1 login over snmp without encryption (community)")),
    ] {
        let folder = Folder::new();
        let path = folder.file("capture.pcap", &capture(&packets));
        let findings = objects(&run(&["summary", &path, "-q", "--format", "ndjson"]).out);
        let logins: Vec<_> =
            findings.iter().filter(|finding| finding["finding"] == "clear_text_login").collect();
        assert_eq!(logins.len(), usize::from(expected.is_some()), "{logins:?}");
        for (login, expected) in logins.iter().zip(expected) {
            let evidence = text(login, "evidence");
            assert!(evidence.ends_with(expected) && !evidence.contains("k7Ux"), "{evidence}");
        }
    }
}
