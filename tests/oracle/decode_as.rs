//! A capture in which tshark finds the tunnel only if its port is configured.

use std::collections::BTreeMap;
use std::process::Command;

use super::corpus;

/// A capture of VXLAN on the port that Linux used before IANA assigned one.
const CAPTURE: &str = "tcpdump/vxlan_port_8472.pcap";
const SETTING: &str = "udp.port==8472,vxlan";

#[test]
fn tshark_agrees_if_the_port_of_the_tunnel_is_configured() {
    let Some(captures) = corpus::captures() else { return };
    let capture = captures.iter().find(|capture| capture.name == CAPTURE).expect("the capture");
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(capture.path()).args(["-d", SETTING, "-T", "fields"]);
    // The last addresses of a frame are those of the innermost packet.
    command.args(["-E", "occurrence=l", "-e", "ip.src", "-e", "ip.dst", "-e", "frame.len"]);
    let Ok(output) = command.output() else {
        assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
        println!("skipped: tshark is not installed");
        return;
    };
    let mut theirs = BTreeMap::<(String, String), (u64, u64)>::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let [source, destination, len] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("not three columns: {line}");
        };
        let sums = theirs.entry((source.to_owned(), destination.to_owned())).or_default();
        *sums = (sums.0 + 1, sums.1 + len.parse::<u64>().expect("octets"));
    }
    let mut ours = BTreeMap::<(String, String), (u64, u64)>::new();
    for record in &corpus::flows_of(&capture.path()).records {
        let ends = [record.source_address().to_string(), record.destination_address().to_string()];
        for (of_side, [source, destination]) in
            [(&record.forward, [0, 1].map(|end| &ends[end])), (&record.reverse, [1, 0].map(|end| &ends[end]))]
        {
            if of_side.counters.packet_count > 0 {
                let sums = ours.entry((source.clone(), destination.clone())).or_default();
                *sums = (sums.0 + of_side.counters.packet_count, sums.1 + of_side.counters.octet_count);
            }
        }
    }
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 4, "two directions inside the tunnel, and two without it");
}
