//! Names of fields on the command line: other names, groups, lists and completion; and presets of collectors.

use serde_json::Value;

use super::folder::Folder;
use super::{objects, run};

fn output(args: &[&str]) -> String {
    let run = run(args);
    assert_eq!((run.status, run.err.as_str()), (0, ""), "{args:?}");
    run.out
}

#[test]
fn other_names_stand_for_fields_in_all_options() {
    let flows = |args: &[&str]| output(&[&["flows", "web.pcap", "-q", "--format", "csv"], args].concat());
    let cases: [(&[&str], &[&str]); 6] = [
        (
            &["--fields", "src_ip,id.resp_p,orig_ip_bytes"],
            &["--fields", "source_address,destination_port,ip_octet_count"],
        ),
        (
            &["--where", "id.resp_p = 80 and orig_ip_bytes > 500"],
            &["--where", "destination_port = 80 and ip_octet_count > 500"],
        ),
        (
            &["--group-by", "dst_port", "--sum", "orig_ip_bytes"],
            &["--group-by", "destination_port", "--sum", "ip_octet_count"],
        ),
        (
            &["--group-by", "service", "--aggregate", "max(orig_bytes)"],
            &["--group-by", "application", "--aggregate", "max(payload_octet_count)"],
        ),
        (&["--sort", "orig_pkts"], &["--sort", "packet_count"]),
        (&["--time-series", "1s", "--by", "proto"], &["--time-series", "1s", "--by", "protocol"]),
    ];
    for (short, long) in cases {
        let expected = flows(long);
        assert!(expected.lines().count() > 1, "{long:?}");
        assert_eq!(flows(short), expected, "{short:?}");
    }
}

#[test]
fn groups_of_fields_are_lists_of_fields() {
    let all = objects(&output(&["flows", "web.pcap", "-q", "--format", "ndjson"]));
    for group in ["basic", "tcp", "link", "tunnel", "exporter"] {
        let rows = objects(&output(&["flows", "web.pcap", "-q", "--format", "ndjson", "--fields", group]));
        assert_eq!(rows.len(), all.len());
        for (row, whole) in rows.iter().zip(&all) {
            let row = row.as_object().unwrap();
            assert!(
                row.iter().all(|(name, value)| whole.get(name).unwrap_or(&Value::Null) == value),
                "{group}"
            );
        }
    }
    // A field that is listed and in a group has one column.
    let header = |fields: &str| {
        let csv = output(&["flows", "web.pcap", "-q", "--format", "csv", "--fields", fields]);
        csv.lines().next().unwrap().to_owned()
    };
    assert_eq!(header("basic,source_address"), header("basic"));
    let both = header("history,tcp,community_id");
    assert!(
        both.starts_with("history,tcp_state,conn_state,handshake_rtt") && both.ends_with(",community_id"),
        "{both}"
    );
    assert_eq!(both.matches("history").count(), 1);
}

#[test]
fn help_lists_the_fields() {
    let list = output(&["flows", "--fields", "help"]);
    assert!(
        list.contains("handshake_rtt") && list.contains("id.orig_h") && list.contains("tunnel"),
        "{list}"
    );
    for args in [
        &["live", "--where=help"][..],
        &["flows", "web.pcap", "--group-by", "help"],
        &["collect", "--sort", "help"],
    ] {
        assert_eq!(output(args), list, "{args:?}");
    }
    assert!(output(&["sessions", "--where", "help"]).contains("Fields of http.request"));
    assert!(output(&["sessions", "-t", "--where", "help"]).contains("Fields of transaction.http"));
    let packets = output(&["packets", "--fields", "help"]);
    assert!(packets.contains("wire_len") && !packets.contains("handshake_rtt"), "{packets}");
}

#[test]
fn unknown_names_have_a_suggestion() {
    for (args, message) in [
        (&["--fields", "octet_conut"][..], "`octet_conut` is not a field; did you mean `octet_count`?"),
        (&["--fields", "src_ip,source_address"], "`source_address` is listed twice"),
        (&["--where", "src_prt = 1"], "`src_prt` is not a column"),
        (&["--fields", "bytes"], "`bytes` is not a field; did you mean `octet_count`?"),
        (&["--where", "octets > 1"], "did you mean `octet_count`?"),
        (&["--top", "-1"], "must be a whole number greater than zero"),
        (&["--max-flows", "-5"], "must be a whole number greater than zero"),
        (&["--memory", "1PiB"], "must be a size greater than zero, such as 256MiB"),
        (
            &["--format", "ipfix", "--to", "localhost:99"],
            "such as udp://localhost:99; a file of this name is ./localhost:99",
        ),
    ] {
        let refused = run(&[&["flows", "web.pcap"], args].concat());
        assert_eq!(refused.status, 2, "{args:?}: {}", refused.err);
        assert!(refused.err.contains(message), "{args:?}: {}", refused.err);
    }
    let large = run(&["flows", "web.pcap", "--memory", "1TiB", "-q", "--format", "csv"]);
    assert_eq!((large.status, large.err.as_str()), (0, ""));
}

#[test]
fn shells_complete_fields_and_protocols() {
    for shell in ["bash", "zsh", "fish"] {
        let script = output(&["completions", shell]);
        for name in ["handshake_rtt", "retransmitted_count", "ftp_data", "tunnel"] {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
}

/// A preset writes the messages of the options that it stands for, apart from the time of export.
#[test]
fn presets_of_collectors_are_options() {
    let folder = Folder::new();
    let export = |name: &str, options: &[&str]| {
        let path = folder.path(name);
        output(&[&["flows", "web.pcap", "-q", "--format", "ipfix", "--to", &path], options].concat());
        let rows = objects(&output(&["collect", &path, "-q", "--format", "ndjson"]));
        (rows.len(), rows)
    };
    let cases: [(&str, &[&str]); 4] = [
        ("nfcapd", &["--milliseconds"]),
        ("nfacctd", &["--milliseconds", "--uniflow"]),
        ("goflow2", &["--uniflow"]),
        ("splunk", &["--milliseconds", "--uniflow"]),
    ];
    let plain = export("plain", &[]);
    for (name, options) in cases {
        let preset = export(&format!("{name}.preset"), &["--for", name]);
        assert_eq!(preset, export(&format!("{name}.options"), options), "{name}");
        assert_ne!(preset, plain, "{name}");
    }
    let refused = run(&["flows", "web.pcap", "--for", "nfcapd"]);
    assert_eq!(refused.status, 2, "{}", refused.err);
    assert!(refused.err.contains("--for requires --format ipfix"), "{}", refused.err);
}

#[test]
fn man_pages_have_a_header() {
    for (page, name) in
        [(None, "flowgauge"), (Some("flows"), "flowgauge-flows"), (Some("report"), "flowgauge-report")]
    {
        let text = output(&["man"].into_iter().chain(page).collect::<Vec<_>>());
        let header = text.lines().find(|line| line.starts_with(".TH")).unwrap();
        assert_eq!(
            header,
            format!(".TH {name} 1  \"flowgauge {}\" \"User Commands\"", env!("CARGO_PKG_VERSION"))
        );
    }
}
