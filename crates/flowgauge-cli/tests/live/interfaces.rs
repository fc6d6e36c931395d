//! Interfaces in network namespaces.

#[cfg(feature = "bus")]
use std::fs::{self, File};
#[cfg(feature = "bus")]
use std::process::Command;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::network::Network;
use super::{Folder, Live, Process, capture, comparable, flows, wait_for};

const FLOWGAUGE: &str = env!("CARGO_BIN_EXE_flowgauge");

/// Replays a capture on an interface, faster than it was recorded.
fn replay(network: &Network, interface: &str, name: &str) {
    network.run(&["tcpreplay", "-q", "-i", interface, "--pps", "3000", &capture(name)]);
}

#[test]
fn a_replayed_capture_gives_the_records_of_the_file() {
    let Some(network) = Network::new(&["tcpreplay"]) else { return };
    network.pair("near", "far", &network);
    let folder = Folder::new();
    for name in ["web.pcap", "dns.pcap", "ssh.pcap", "mail.pcap", "vlan.pcapng"] {
        let path = folder.path(name);
        let live = Live::start(network.command(FLOWGAUGE), &["-i", "far", "--write", &path]);
        replay(&network, "near", name);
        thread::sleep(Duration::from_millis(300));
        let outcome = live.interrupt();
        assert_eq!(outcome.status, Some(130), "{}", outcome.messages);
        let expected = comparable(&flows(&capture(name), &[]));
        assert_eq!(comparable(&outcome.records), expected, "{name}: {}", outcome.messages);
        assert_eq!(comparable(&flows(&path, &[])), expected, "{name}");
    }
}

#[test]
#[cfg(feature = "bus")]
fn records_of_an_interface_are_published() {
    let Some(network) = Network::new(&["tcpreplay"]) else { return };
    network.pair("near", "far", &network);
    let folder = Folder::new();
    let endpoint = format!("ipc://{}", folder.path("flows"));
    let start = |name: &str, command: &mut Command| {
        let create = |kind: &str| File::create(folder.path(&format!("{name}.{kind}"))).unwrap();
        Process::start(command.stdin(Stdio::null()).stdout(create("out")).stderr(create("err")))
    };
    let read = |name: &str| fs::read_to_string(folder.path(name)).unwrap();
    let mut command = network.command(FLOWGAUGE);
    command.args(["publish", "-i", "far", "--bind", &endpoint, "--format", "ndjson"]);
    let mut publisher = start("publisher", command.args(["--wait-for-subscribers", "1"]));
    let mut command = super::flowgauge();
    command.args(["subscribe", "--connect", &endpoint, "--topic", "flow.end", "--format", "ndjson"]);
    let mut subscriber = start("subscriber", command.arg("--until-end"));
    wait_for("the subscriber", || read("publisher.err").contains("1 subscriber"));
    thread::sleep(Duration::from_millis(300));
    replay(&network, "near", "web.pcap");
    thread::sleep(Duration::from_millis(500));
    publisher.signal("INT");
    assert_eq!(publisher.end(), Some(130), "{}", read("publisher.err"));
    assert_eq!(subscriber.end(), Some(0), "{}", read("subscriber.err"));
    let records: Vec<_> =
        read("subscriber.out").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected = comparable(&flows(&capture("web.pcap"), &[]));
    assert_eq!(comparable(&records), expected, "{}", read("publisher.err"));
}

#[test]
fn the_kernel_discards_what_the_capture_filter_excludes() {
    let Some(network) = Network::new(&["tcpreplay"]) else { return };
    network.pair("near", "far", &network);
    let options = ["-i", "far", "--capture-filter", "udp", "--immediate", "--no-promiscuous"];
    let live = Live::start(network.command(FLOWGAUGE), &options);
    replay(&network, "near", "dns.pcap");
    thread::sleep(Duration::from_millis(300));
    let outcome = live.interrupt();
    let expected = flows(&capture("dns.pcap"), &["--filter", "udp"]);
    assert!(!expected.is_empty());
    assert_eq!(comparable(&outcome.records), comparable(&expected), "{}", outcome.messages);
}

#[test]
fn a_mirror_of_the_kernel_gives_the_records_of_the_original() {
    let (Some(switch), Some(collector)) = (Network::new(&["tcpreplay"]), Network::new(&[])) else { return };
    switch.pair("uplink", "downlink", &collector);
    switch.run(&["ip", "address", "add", "192.0.2.1/24", "dev", "uplink"]);
    collector.run(&["ip", "address", "add", "192.0.2.2/24", "dev", "downlink"]);
    switch.pair("near", "far", &switch);
    // A bridge that learns no addresses sends each frame to all its ports.
    switch.run(&["ip", "link", "add", "bridge", "type", "bridge", "mcast_snooping", "0"]);
    let mirror = "link add mirror type vxlan id 77 local 192.0.2.1 remote 192.0.2.2 dstport 4789 dev uplink";
    switch.run(&[&["ip"], &*mirror.split(' ').collect::<Vec<_>>()].concat());
    for port in ["far", "mirror"] {
        switch.run(&["ip", "link", "set", port, "master", "bridge", "up"]);
        switch.run(&["ip", "link", "set", port, "type", "bridge_slave", "learning", "off"]);
    }
    switch.run(&["ip", "link", "set", "bridge", "up"]);
    let options = ["--listen", "udp://192.0.2.2:4789/vxlan"];
    let live = Live::start(collector.command(FLOWGAUGE), &options);
    // A port of a bridge forwards once it is up.
    thread::sleep(Duration::from_millis(500));
    replay(&switch, "near", "web.pcap");
    thread::sleep(Duration::from_millis(300));
    let outcome = live.interrupt();
    assert_eq!(
        comparable(&outcome.records),
        comparable(&flows(&capture("web.pcap"), &[])),
        "{}",
        outcome.messages
    );
}

#[test]
fn an_interface_that_vanishes_is_an_error_and_its_flows_are_written() {
    let Some(network) = Network::new(&["tcpreplay"]) else { return };
    network.pair("near", "far", &network);
    let live = Live::start(network.command(FLOWGAUGE), &["-i", "far"]);
    replay(&network, "near", "ssh.pcap");
    thread::sleep(Duration::from_millis(300));
    network.run(&["ip", "link", "set", "far", "down"]);
    wait_for("the warning", || live.messages().contains("far: the interface is down"));
    // The capture continues when the interface is up again.
    network.run(&["ip", "link", "set", "far", "up"]);
    replay(&network, "near", "mail.pcap");
    thread::sleep(Duration::from_millis(300));
    network.run(&["ip", "link", "delete", "far"]);
    let outcome = live.end();
    assert_eq!(outcome.status, Some(1), "{}", outcome.messages);
    assert!(outcome.messages.contains("flowgauge: far: "), "{}", outcome.messages);
    let expected = [flows(&capture("ssh.pcap"), &[]), flows(&capture("mail.pcap"), &[])].concat();
    assert_eq!(comparable(&outcome.records), comparable(&expected), "{}", outcome.messages);
    let outcome = Live::start(network.command(FLOWGAUGE), &["-i", "far"]).end();
    assert_eq!(outcome.status, Some(1));
    assert!(outcome.messages.contains("far: No such device"), "{}", outcome.messages);
}

#[test]
fn a_missing_permission_is_named() {
    let Some(network) = Network::new(&["setpriv"]) else { return };
    let mut command = network.command("setpriv");
    command.args(["--bounding-set", "-all", FLOWGAUGE]);
    let outcome = Live::start(command, &["-i", "lo"]).end();
    assert_eq!(outcome.status, Some(1));
    assert!(
        outcome
            .messages
            .contains("lo: no permission to capture: the process needs the capability CAP_NET_RAW"),
        "{}",
        outcome.messages
    );
}

/// libpcap reads some kinds of interfaces from a socket that has no data for most of the time.
#[test]
fn packets_of_a_firewall_rule_group_are_captured_until_an_interrupt() {
    let Some(network) = Network::new(&[]) else { return };
    let live = Live::start(network.command(FLOWGAUGE), &["-i", "nflog:5"]);
    thread::sleep(Duration::from_secs(1));
    let outcome = live.interrupt();
    // The capture fails at once in a kernel without NFLOG.
    let is_supported = !outcome.messages.contains("Protocol not supported");
    assert!(outcome.status == Some(130) || !is_supported, "{}", outcome.messages);
}

/// All packets of a transfer at full speed are captured or counted as dropped. The transfer takes three seconds, or
/// `FLOWGAUGE_TRANSFER_SECONDS`.
#[test]
fn no_packet_is_lost_without_being_counted() {
    let (Some(client), Some(server)) = (Network::new(&["iperf3"]), Network::new(&[])) else { return };
    client.pair("near", "far", &server);
    client.run(&["ip", "address", "add", "192.0.2.1/24", "dev", "near"]);
    server.run(&["ip", "address", "add", "192.0.2.2/24", "dev", "far"]);
    let mut iperf = server.command("iperf3");
    let _server = Process::start(iperf.args(["--server", "--one-off"]).stdout(Stdio::null()));
    let is_listening = || server.run(&["cat", "/proc/net/tcp6", "/proc/net/tcp"]).contains(":1451 ");
    wait_for("iperf3", is_listening);
    let count = |network: &Network, interface: &str| {
        network.counter(interface, "rx_packets") + network.counter(interface, "tx_packets")
    };
    let live = Live::start(
        server.command(FLOWGAUGE),
        &["-i", "far", "--fields", "packet_count,reverse_packet_count"],
    );
    let before = count(&server, "far");
    let seconds = std::env::var("FLOWGAUGE_TRANSFER_SECONDS").unwrap_or_else(|_| "3".to_owned());
    client.run(&["iperf3", "--client", "192.0.2.2", "--time", &seconds]);
    thread::sleep(Duration::from_millis(500));
    let sent = count(&server, "far") - before;
    let outcome = live.interrupt();
    let number = |text: &str| text.split(' ').next().unwrap().parse::<u64>().unwrap();
    let captured = number(outcome.messages.lines().rfind(|line| line.contains("; processed in ")).unwrap());
    let dropped = outcome
        .messages
        .lines()
        .rfind(|line| line.ends_with("dropped by the kernel") && !line.starts_with("flowgauge"));
    let dropped = dropped.map_or(0, number);
    assert!(
        captured + dropped >= sent,
        "{captured} captured, {dropped} dropped, {sent} sent: {}",
        outcome.messages
    );
    println!("{seconds} s: {sent} packets sent, {captured} captured, {dropped} dropped by the kernel");
    // The kernel merges segments before they pass a veth pair.
    assert!(outcome.messages.contains("segments merged by GRO or TSO"), "{}", outcome.messages);
    // The connection was tracked, although some of its segments may have been dropped.
    let packets: u64 = outcome.records.iter().map(|record| record["packet_count"].as_u64().unwrap()).sum();
    assert!(packets > 1000, "{}", outcome.messages);
}
