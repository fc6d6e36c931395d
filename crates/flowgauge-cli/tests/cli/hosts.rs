//! Hosts, and messages between neighbors on a link.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use super::{Folder, objects, repository, run};

/// Returns the path of a capture with known findings.
fn capture(name: &str) -> String {
    repository().join(format!("examples/findings/{name}.pcap.zst")).display().to_string()
}

/// Returns the rows of `flowgauge hosts` by address.
fn hosts(capture: &str) -> BTreeMap<String, Value> {
    let run = run(&["hosts", capture, "--format", "ndjson", "-q"]);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    objects(&run.out).into_iter().map(|row| (row["address"].as_str().unwrap().to_owned(), row)).collect()
}

#[test]
fn hosts_are_known_from_what_they_and_others_state() {
    let link = hosts(&capture("ordinary-link"));
    let leased = link.values().find(|row| row["name"] == "desk-7").expect("the lease");
    assert_eq!((&leased["name_source"], &leased["mac"]), (&"dhcp".into(), &"02:00:00:78:00:02".into()));
    let server = &link["10.78.0.1"];
    assert_eq!((&server["name"], &server["name_source"]), (&"lab.example".into(), &"lldp".into()));
    assert_eq!((&server["system"], &server["device_port"]), (&"Laboratory server".into(), &"eth0".into()));
    let ports: Vec<_> =
        server["services"].as_array().unwrap().iter().map(|service| &service["port"]).collect();
    assert!(ports.contains(&&80.into()) && ports.contains(&&67.into()), "{ports:?}");
    // A host that answered a request of ARP, and nothing else.
    assert_eq!(link["10.78.0.9"]["mac"], "02:00:00:78:00:09");
    let files = hosts(&capture("ordinary-files"));
    let client = &files["10.78.0.2"];
    assert_eq!((&client["name"], &client["name_source"]), (&"DESK-7".into(), &"ntlm".into()));
    let users: Vec<_> = client["users"].as_array().unwrap().iter().map(|user| &user["name"]).collect();
    assert_eq!(users, [r"EXAMPLE\alice", "alice@LAB.EXAMPLE"]);
    // A user of NTLM over HTTP, whom the server accepted.
    let intranet = hosts(&capture("login-intranet"));
    let client = &intranet["10.78.0.2"];
    let users: Vec<_> = client["users"].as_array().unwrap().iter().map(|user| &user["name"]).collect();
    assert_eq!(client["name"], "WORKSTATION");
    assert_eq!(users, [r"EXAMPLE\alice", "alice@LAB.EXAMPLE"]);
    let web = hosts("web.pcap");
    let services = web["10.77.0.1"]["services"].as_array().unwrap();
    assert!(services.iter().any(|service| service["port"] == 80 && service["software"] == "nginx/1.22.1"));
    assert_eq!(web["10.77.0.2"]["system"], "Linux");
    assert_eq!(web["10.77.0.2"]["systems"][0]["source"], "tcp");
}

#[test]
fn hosts_are_shown_as_a_table_and_with_chosen_fields() {
    let table = run(&["hosts", "web.pcap", "-q"]);
    assert!(table.out.starts_with("ADDRESS") && table.out.contains("web.example"), "{}", table.out);
    let csv =
        run(&["hosts", "web.pcap", "-q", "--format", "csv", "--fields", "address,name,mac", "--top", "2"]);
    assert_eq!(csv.out.lines().count(), 3, "{}", csv.out);
    assert!(
        csv.out.starts_with("address,name,mac\n")
            && csv.out.contains("10.77.0.1,web.example,02:00:00:77:00:01")
    );
    let refused = run(&["hosts", "web.pcap", "--fields", "address"]);
    assert!(refused.status == 2 && refused.err.contains("--format ndjson or csv"), "{}", refused.err);
    let filtered =
        run(&["hosts", "web.pcap", "-q", "--filter", "arp", "--format", "csv", "--fields", "address"]);
    assert_eq!(filtered.out, "address\n10.77.0.1\n10.77.0.2\n");
    // Names are shown where hosts are.
    let summary = run(&["summary", "web.pcap", "-q", "--section", "conversations"]);
    assert!(summary.out.contains("web6.example"), "{}", summary.out);
}

#[test]
fn messages_of_neighbors_are_written_if_they_are_named() {
    let count = |arguments: &[&str]| {
        let run = run(&[&["sessions", "web.pcap", "-q"], arguments].concat());
        assert_eq!((run.status, run.err.as_str()), (0, ""));
        let mut counts = BTreeMap::new();
        for row in objects(&run.out) {
            *counts.entry(row["protocol"].as_str().unwrap().to_owned()).or_insert(0) += 1;
        }
        counts
    };
    let all: BTreeMap<_, _> =
        [("arp", 2), ("mld", 6), ("ndp", 8)].map(|(name, count)| (name.to_owned(), count)).into();
    assert_eq!(count(&["-p", "neighbor"]), all);
    assert_eq!(count(&["-p", "NDP"]), [("ndp".to_owned(), 8)].into());
    // A filter adds messages without an IP packet, if it selects them by their protocol.
    for filter in ["arp", "arp or tcp port 9", "arp and host 10.77.0.1", "not not arp", "arp or icmp6"] {
        assert_eq!(count(&["-F", filter]), [("arp".to_owned(), 2)].into(), "{filter}");
    }
    assert_eq!(count(&["-p", "ndp", "-F", "arp or icmp6"]), [("ndp".to_owned(), 8)].into());
    for filter in ["not arp", "not stp", "not (udp or tcp)"] {
        assert_eq!(count(&["-F", filter]).get("arp"), None, "{filter}");
    }
    assert_eq!(
        count(&["-p", "arp", "--where", "sender_address = '10.77.0.1'"]),
        [("arp".to_owned(), 1)].into()
    );
    assert_eq!(count(&["-p", "arp", "-t"]), [("arp".to_owned(), 2)].into());
    assert!(!count(&[]).contains_key("arp"));
    let table = run(&["sessions", "web.pcap", "-q", "-p", "arp", "-f", "table"]);
    assert!(table.out.contains("10.77.0.2             -> 10.77.0.1"), "{}", table.out);
    let lldp = run(&["sessions", &capture("ordinary-link"), "-q", "-p", "lldp", "-f", "table"]);
    assert!(lldp.out.contains("02:00:00:78:00:01     -> 01:80:c2:00:00:0e"), "{}", lldp.out);
    let id = "1:LQU9qZlK+B5F3KDmev6m5PMibrg=";
    let contrary = run(&["sessions", "web.pcap", "-p", "arp", "--community-id", id]);
    assert!(
        contrary.status == 2 && contrary.err.contains("--community-id selects flows"),
        "{}",
        contrary.err
    );
    let zeek = run(&["sessions", "web.pcap", "-p", "arp", "-f", "zeek"]);
    assert!(zeek.status == 2 && zeek.err.contains("Zeek has no logs"), "{}", zeek.err);
    let unknown = run(&["sessions", "web.pcap", "-p", "arpp"]);
    assert!(unknown.status == 2 && unknown.err.contains("hsrp, neighbor"), "{}", unknown.err);
}

#[test]
fn a_slice_has_the_frames_that_a_filter_of_the_link_selects() {
    let folder = Folder::new();
    let out = folder.path("arp.pcapng");
    let slice = |filter: &str| {
        let written = run(&["slice", "web.pcap", "-q", "--force", "--filter", filter, "-w", &out]);
        assert_eq!(written.status, 0, "{}", written.err);
        let counted = Command::new("tshark")
            .args(["-n", "-T", "fields", "-e", "frame.protocols", "-r"])
            .arg(&out)
            .output();
        counted.ok().map(|output| {
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
        })
    };
    let Some(frames) = slice("arp") else { return println!("skipped: no tshark") };
    assert_eq!(frames, ["eth:ethertype:arp"; 2]);
    let frames = slice("not tcp").unwrap();
    assert_eq!(frames.iter().filter(|frame| frame.ends_with(":arp")).count(), 2);
    assert!(frames.len() > 2 && frames.iter().all(|frame| !frame.contains("tcp")), "{frames:?}");
    assert_eq!(slice("tcp").unwrap().iter().filter(|frame| frame.ends_with(":arp")).count(), 0);
}

#[test]
fn flows_have_the_names_of_their_hosts() {
    let rows = |arguments: &[&str]| {
        let run = run(&[&["flows", "-q", "--format", "ndjson", "--names"], arguments].concat());
        assert_eq!((run.status, run.err.as_str()), (0, ""));
        objects(&run.out)
    };
    let link = rows(&[&capture("ordinary-link")]);
    let page = link.iter().find(|row| row["destination_port"] == 80).expect("a page");
    assert_eq!(page["destination_name"], "lab.example");
    let web = rows(&["web.pcap", "--where", "destination_port = 443 and source_address ILIKE '%:%'"]);
    assert!(!web.is_empty() && web.iter().all(|row| row["destination_name"] == "web6.example"), "{web:?}");
    // Names that are known later are not those of earlier flows.
    let files = rows(&[&capture("ordinary-files")]);
    assert!(files.iter().any(|row| row["source_name"] == "DESK-7"), "{files:?}");
    let table = run(&["flows", "web.pcap", "-q", "--names", "--top", "1"]);
    assert!(table.out.contains("10.77.0.2:60260") && table.out.contains("web.example:443"), "{}", table.out);
    let chosen = run(&["flows", "web.pcap", "--names", "--fields", "start"]);
    assert!(chosen.status == 2 && chosen.err.contains("--names requires --format ndjson"), "{}", chosen.err);
    let refused = run(&["flows", "web.pcap", "--format", "ndjson", "--names", "--shards", "3"]);
    assert!(refused.status == 2 && refused.err.contains("--names cannot be combined"), "{}", refused.err);
}
