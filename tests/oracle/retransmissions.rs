//! Comparison of the classes of repeated and late TCP segments with tshark, per direction.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use flowgauge::base::{FlowKey, IpProtocol, Side};

use super::corpus;

/// Captures with such segments, the number of directions that differ, and the reason.
const CAPTURES: [(&str, usize, &str); 13] = [
    ("arkime/wireshark-retrans.pcap", 1, "tshark: out of order although captured before"),
    (
        "merged/iot-public.pcap",
        39,
        "38: a FIN overtook an octet by some microseconds: tshark: a retransmission",
    ),
    (
        "nDPI/KakaoTalk_talk.pcap",
        1,
        "segments that begin with octets that were captured, and end with new ones",
    ),
    ("nDPI/ftp.pcap", 0, ""),
    ("nDPI/smtp.pcap", 0, ""),
    ("nDPI/tor.pcap", 1, "tshark: out of order and a retransmission for one segment"),
    ("nDPI/whatsapp_login_chat.pcap", 1, "tshark: out of order although captured before"),
    ("skydive/eth-ipv4-tcp-http-ooo.pcap", 1, "the capture has later acknowledgments before the octets"),
    (
        "tcpflow/test1-out-of-order.pcap",
        1,
        "an earlier segment with an earlier time: tshark: a retransmission",
    ),
    ("tcptrace/hardware_dups.dmp", 1, "tshark: out of order although captured before"),
    ("tcptrace/urgent.dmp", 1, "tshark: out of order although captured before"),
    ("zeek/smtp.pcap", 1, "tshark: out of order although captured before"),
    (
        "zeek/tcp/reassembly.pcap",
        1,
        "segments that begin with octets that were captured, and end with new ones",
    ),
];

/// Retransmitted and out-of-order segments by key and side.
type Counts = BTreeMap<(FlowKey, Side), [u64; 2]>;

fn ours(path: &Path) -> Counts {
    let mut counts = Counts::new();
    for record in corpus::flows_of(path).records {
        let sides = [(record.initiator, &record.forward), (record.initiator.other(), &record.reverse)];
        for (side, of_side) in sides {
            let sums = counts.entry((record.key, side)).or_default();
            sums[0] += u64::from(of_side.tcp.retransmitted_count);
            sums[1] += u64::from(of_side.tcp.out_of_order_count);
        }
    }
    counts.retain(|_, sums| sums.iter().any(|sum| *sum > 0));
    counts
}

/// Returns the counts of tshark, or `None` if it is not installed.
fn theirs(path: &Path) -> Option<Counts> {
    let kinds = ["retransmission", "out_of_order", "spurious_retransmission", "fast_retransmission"];
    let filter = kinds.map(|kind| format!("tcp.analysis.{kind}")).join(" or ");
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-E", "occurrence=l", "-Y", &filter, "-r"]).arg(path);
    for field in [
        "ip.src",
        "ipv6.src",
        "tcp.srcport",
        "ip.dst",
        "ipv6.dst",
        "tcp.dstport",
        "tcp.analysis.out_of_order",
    ] {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    let mut counts = Counts::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let end = |at: usize| {
            let address = if fields[at].is_empty() { fields[at + 1] } else { fields[at] };
            (address, fields[at + 2].parse().expect("a port"))
        };
        let (key, side) = corpus::key(IpProtocol::TCP.0, end(0), end(3));
        let is_late = !fields[6].is_empty();
        counts.entry((key, side)).or_default()[usize::from(is_late)] += 1;
    }
    Some(counts)
}

#[test]
fn repeated_and_late_segments_have_the_classes_of_tshark() {
    let Some(root) = corpus::root() else { return };
    let mut wrong = Vec::new();
    let mut same_count = 0;
    for (name, expected_count, why) in CAPTURES {
        let path = root.join("captures").join(name);
        let own = ours(&path);
        let Some(other) = theirs(&path) else {
            println!("skipped: tshark is not installed");
            return;
        };
        let keys: std::collections::BTreeSet<_> = own.keys().chain(other.keys()).collect();
        let differing: Vec<_> = keys.iter().filter(|key| own.get(**key) != other.get(**key)).collect();
        same_count += keys.len() - differing.len();
        if differing.len() != expected_count {
            wrong.push(format!("{name}: {} instead of {expected_count} ({why})", differing.len()));
            let of = |counts: &Counts, key| counts.get(key).copied().unwrap_or_default();
            wrong.extend(differing.iter().map(|key| {
                format!("  {} {:?}: {:?}, tshark {:?}", key.0, key.1, of(&own, **key), of(&other, **key))
            }));
        }
    }
    println!("{same_count} directions have the same classes");
    assert!(same_count > 100);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
