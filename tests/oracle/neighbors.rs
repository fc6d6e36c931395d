//! Comparison of messages between neighbors with tshark's fields.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flowgauge::base::Timestamp;
use flowgauge::neighbor::{Arp, Membership, Ndp, Neighbor, NeighborMessage, Redundancy, Stp};
use flowgauge::{FileSource, Flows, Interest, Pipeline, RunOptions, Sink};

use super::corpus;
use super::parallel;

/// Fields of tshark, in the order in which rows are compared.
const FIELDS: [&str; 35] = [
    "arp.opcode",
    "arp.src.hw_mac",
    "arp.src.proto_ipv4",
    "arp.dst.hw_mac",
    "arp.dst.proto_ipv4",
    "icmpv6.nd.ra.router_lifetime",
    "icmpv6.nd.ns.target_address",
    "icmpv6.nd.na.target_address",
    "icmpv6.nd.rd.target_address",
    "icmpv6.opt.linkaddr",
    "icmpv6.opt.prefix",
    "icmpv6.opt.mtu",
    "icmpv6.mld.multicast_address",
    "icmpv6.mldr.mar.record_type",
    "icmpv6.mldr.mar.multicast_address",
    "igmp.type",
    "igmp.maddr",
    "igmp.record_type",
    "igmp.saddr",
    "lldp.time_to_live",
    "lldp.tlv.system.name",
    "lldp.tlv.system.desc",
    "lldp.port.desc",
    "cdp.ttl",
    "cdp.deviceid",
    "cdp.portid",
    "cdp.platform",
    "cdp.native_vlan",
    "stp.root.hw",
    "stp.root.cost",
    "stp.bridge.hw",
    "stp.port",
    "vrrp.virt_rtr_id",
    "vrrp.prio",
    "vrrp.ip_addr",
];

/// Protocols in tshark.
const FILTER: &str = "arp or rgmp or lldp or cdp or stp or igmp or vrrp or (icmpv6.type >= 130 and icmpv6.type <= 137) or \
                      icmpv6.type == 143";

/// Values by field, for each frame time.
type Rows = BTreeMap<u64, Vec<BTreeMap<&'static str, String>>>;

struct Collect(Rows);

impl Sink for Collect {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::NEIGHBORS
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        let time = neighbor.head.timestamp.as_nanos();
        self.0.entry(time).or_default().push(fields(neighbor));
    }
}

fn mac(mac: [u8; 6]) -> String {
    mac.iter().enumerate().fold(String::new(), |mut text, (index, octet)| {
        let _ = write!(text, "{}{octet:02x}", if index > 0 { ":" } else { "" });
        text
    })
}

fn join<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}

/// Returns the values of a message under tshark's names.
fn fields(neighbor: &Neighbor<'_>) -> BTreeMap<&'static str, String> {
    let mut row = BTreeMap::new();
    let mut add = |name, value: Option<String>| {
        value.filter(|value| !value.is_empty()).into_iter().for_each(|value| drop(row.insert(name, value)));
    };
    match &neighbor.message {
        NeighborMessage::Arp(Arp {
            arp_operation,
            sender_mac,
            sender_address,
            target_mac,
            target_address,
            ..
        }) => {
            add("arp.opcode", Some(arp_operation.0.to_string()));
            add("arp.src.hw_mac", sender_mac.map(mac));
            add("arp.src.proto_ipv4", sender_address.map(|address| address.to_string()));
            add("arp.dst.hw_mac", target_mac.map(mac));
            add("arp.dst.proto_ipv4", target_address.map(|address| address.to_string()));
        }
        NeighborMessage::Ndp(ndp) => {
            let Ndp { ndp_type, target_address, sender_mac, target_mac, link_mtu, prefixes, .. } = ndp;
            let target = target_address.map(|address| address.to_string());
            add("icmpv6.nd.ra.router_lifetime", ndp.router_time.map(|time| time.as_secs().to_string()));
            match ndp_type.0 {
                135 => add("icmpv6.nd.ns.target_address", target),
                136 => add("icmpv6.nd.na.target_address", target),
                _ => add("icmpv6.nd.rd.target_address", target),
            }
            add(
                "icmpv6.opt.linkaddr",
                Some(join([sender_mac, target_mac].into_iter().flatten().map(|own| mac(*own)))),
            );
            add("icmpv6.opt.prefix", Some(join(prefixes.iter().map(|prefix| prefix.0.address))));
            add("icmpv6.opt.mtu", link_mtu.map(|mtu| mtu.to_string()));
        }
        NeighborMessage::Membership(membership) => {
            let Membership { membership_type, group_address, group_sources, group_records, .. } = membership;
            let group = group_address.map(|address| address.to_string());
            let kinds = join(group_records.iter().map(|record| record.0.kind.0));
            let groups = join(group_records.iter().map(|record| record.0.address));
            if neighbor.head.protocol == "mld" {
                add("icmpv6.mld.multicast_address", group.filter(|_| membership_type.0 != 143));
                add("icmpv6.mldr.mar.record_type", Some(kinds));
                add("icmpv6.mldr.mar.multicast_address", Some(groups));
            } else {
                // RGMP is a protocol of its own there.
                add(
                    "igmp.type",
                    Some(format!("0x{:02x}", membership_type.0)).filter(|_| membership_type.0 < 0xfc),
                );
                add("igmp.maddr", group.or(Some(groups)));
                add("igmp.record_type", Some(kinds));
                let sources = group_records.iter().flat_map(|record| &record.0.sources).chain(group_sources);
                add("igmp.saddr", Some(join(sources)));
            }
        }
        NeighborMessage::Lldp(lldp) => {
            add("lldp.time_to_live", lldp.hold_time.map(|time| time.as_secs().to_string()));
            add("lldp.tlv.system.name", lldp.system_name.map(|name| name.to_string()));
            add("lldp.tlv.system.desc", lldp.system_description.map(|name| name.to_string()));
            add("lldp.port.desc", lldp.port_description.map(|name| name.to_string()));
        }
        NeighborMessage::Cdp(cdp) => {
            add("cdp.ttl", Some(cdp.hold_time.as_secs().to_string()));
            add("cdp.deviceid", cdp.device_id.map(|name| name.to_string()));
            add("cdp.portid", cdp.port_id.map(|name| name.to_string()));
            add("cdp.platform", cdp.platform.map(|name| name.to_string()));
            add("cdp.native_vlan", cdp.port_vlan_id.map(|id| id.to_string()));
        }
        NeighborMessage::Stp(Stp { root_mac, root_path_cost, bridge_mac, bridge_port, .. }) => {
            add("stp.root.hw", root_mac.map(mac));
            add("stp.root.cost", root_path_cost.map(|cost| cost.to_string()));
            add("stp.bridge.hw", bridge_mac.map(mac));
            add("stp.port", bridge_port.map(|port| format!("0x{port:04x}")));
        }
        NeighborMessage::Redundancy(message) => {
            let Redundancy { router_group, router_priority, virtual_addresses, .. } = message;
            add("vrrp.virt_rtr_id", router_group.map(|group| group.to_string()));
            add("vrrp.prio", router_priority.map(|priority| priority.to_string()));
            add("vrrp.ip_addr", Some(join(virtual_addresses)));
        }
        _ => {}
    }
    row
}

fn ours(path: &Path) -> Rows {
    let mut source = FileSource::open(path).expect("a readable capture");
    let mut pipeline = Pipeline::builder().build(Collect(Rows::new())).expect("a valid configuration");
    let _ = pipeline.run(&mut source, &RunOptions::default());
    pipeline.into_sink().0
}

fn theirs(path: &Path) -> Option<Rows> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-n", "-Y", FILTER, "-T", "fields", "-E", "separator=|"]);
    command.args(["-E", "occurrence=a", "-E", "aggregator=,", "-e", "frame.time_epoch"]);
    FIELDS.iter().for_each(|field| _ = command.args(["-e", field]));
    let output = command.output().ok()?;
    let mut rows = Rows::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut values = line.split('|');
        let time = values.next()?;
        let (seconds, nanos) = time.split_once('.')?;
        let time = Timestamp::from_parts(seconds.parse().ok()?, nanos.parse().ok()?).as_nanos();
        // A query about all groups has none.
        let is_absent = |value: &str| value.is_empty() || value == "0.0.0.0" || value == "::";
        let row = FIELDS
            .iter()
            .zip(values)
            .filter(|(field, value)| !is_absent(value) || field.starts_with("arp") && !value.is_empty());
        rows.entry(time).or_default().push(row.map(|(field, value)| (*field, value.to_owned())).collect());
    }
    Some(rows)
}

/// Captures with rows that differ, with their number and the reason.
const LISTED: [(&str, usize, &str); 8] = [
    (
        "arkime/tests/pcap/wireshark-lldp.pcap",
        1,
        "an announcement with two times, of which tshark shows both",
    ),
    (
        "tcpdump/tests/arp-oobr.pcap",
        64,
        "damaged messages: tshark shows no addresses of those that are not whole",
    ),
    ("tcpdump/tests/icmpv6-length-zero.pcapng", 1, "a damaged frame, which tshark does not read"),
    ("tcpdump/tests/icmpv6_opt24.pcap", 2, "tshark shows the prefix of a route as one of the link"),
    ("tcpdump/tests/stp-heapoverflow-3.pcap", 1, "a damaged message, which is reported as such"),
    ("nDPI/fuzz-2006-06-26-2594.pcap", 2, "as arp-oobr.pcap"),
    ("tcpdump/vxlan_port_8472.pcap", 2, "tshark knows only one port of VXLAN"),
    ("zeek/tunnels/Teredo.pcap", 1, "an address of 14 octets, which is no MAC address"),
];

#[test]
fn messages_of_neighbors_are_those_of_tshark() {
    let Some(captures) = corpus::captures() else { return };
    let mut paths: Vec<PathBuf> = captures.iter().map(corpus::Capture::path).collect();
    let others = corpus::root().map(|root| root.join("../protocol-captures")).filter(|root| root.is_dir());
    let mut folders: Vec<_> = others.into_iter().collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            let is_capture = path.extension().is_some_and(|kind| kind == "pcap" || kind == "pcapng");
            match path.is_dir() {
                true => folders.push(path),
                false if is_capture => paths.push(path),
                false => {}
            }
        }
    }
    paths.sort();
    let compared = parallel::map(&paths, |path| {
        let ours = ours(path);
        if ours.is_empty() {
            return (0, Vec::new());
        }
        let Some(theirs) = theirs(path) else { return (0, vec!["tshark failed".to_owned()]) };
        let (mut count, mut differences) = (0, Vec::new());
        let times: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
        for time in times {
            let (one, other) = (ours.get(time), theirs.get(time));
            count += one.map_or(0, Vec::len);
            if one != other {
                differences.push(format!("{time}: {one:?}\n    tshark {other:?}"));
            }
        }
        (count, differences)
    });
    let (mut count, mut failures) = (0, Vec::new());
    for (path, (compared, differences)) in paths.iter().zip(compared) {
        count += compared;
        let name = path.display().to_string();
        let listed =
            LISTED.iter().find(|(listed, ..)| name.ends_with(listed)).map_or(0, |(_, count, _)| *count);
        if differences.len() == listed {
            continue;
        }
        failures.extend(differences.iter().map(|difference| format!("{name} {difference}")));
    }
    println!("{count} messages compared");
    assert!(failures.is_empty(), "{} of {count} differ:\n{}", failures.len(), failures.join("\n"));
    assert!(count > 1000);
}
