//! The same pairs of requests and responses although the directions of a capture are skewed, or neighboring frames are
//! swapped.
//!
//! A request and its response have the same pair: what both state in a row of a transaction, without times. The pairs of
//! a capture are compared with their numbers, so that a row more or less is a difference. Flows have no timeout: a flow
//! that ends during a pause of almost its timeout depends on milliseconds by definition.

use std::cell::OnceCell;
use std::fmt::{Display, Write as _};
use std::time::Duration;

use flowgauge::base::{FlowKey, Side, TcpFlags, Transport};
use flowgauge::decode::extractor::Packet;
use flowgauge::pipeline::on_transaction;
use flowgauge::session::Role;
use flowgauge::tracker::{Flow, FlowView, Interest, Timeouts, TrackerConfig};
use flowgauge::transaction::{Content, Transaction};
use flowgauge::{Builder, EndReason, Flows, Sink, Timestamp};

use super::capture::{Capture, Owned, builder};
use super::relations::{Outcome, RELATIONS};
use super::scoreboard::Score;

/// What is compared.
pub(crate) const EXPECTED: &str = "requests with their responses";

/// Time between two frames up to which they may be captured in the other order.
const SWAP_MAX: Duration = Duration::from_millis(20);

/// Differences of a capture that remain.
pub(crate) struct Known {
    pub(crate) capture: &'static str,
    /// Names of the relations.
    pub(crate) changes: &'static [&'static str],
    pub(crate) reason: &'static str,
}

/// Relations in which frames without a time get one.
const UNTIMED: &[&str] = &[
    "the first side of each flow 1 ms late",
    "the first side of each flow 3 ms late",
    "the first side of each flow 20 ms late",
];

/// Differences in the corpus.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        capture: "arkime/gre-erspan-vxlan.pcap",
        changes: &["the first side of each flow 20 ms late"],
        reason: "generated packets: the response acknowledges one octet of the request",
    },
    Known {
        capture: "arkime/tcp-reassembly-synthetic.pcap",
        changes: &["the second side of each flow 3 ms late", "the second side of each flow 20 ms late"],
        reason: "the next connection between the same ports begins 1 ms after the last FIN, and so before the late one",
    },
    Known {
        capture: "nDPI/modbus.pcap",
        changes: &["the first side of each flow 3 ms late", "the first side of each flow 20 ms late"],
        reason: "begins without a handshake, so that the first request is captured after its response",
    },
    Known {
        capture: "nDPI/fuzz-2006-06-26-2594.pcap",
        changes: &["the second side of each flow 20 ms late"],
        reason: "packets changed by a fuzzer",
    },
    Known {
        capture: "pcapng-test-generator/output_be/advanced/test100.pcapng",
        changes: UNTIMED,
        reason: "frames without a time, which get one, so that a request and its answer by another flow are at the same time",
    },
    Known {
        capture: "pcapng-test-generator/output_be/basic/test016.pcapng",
        changes: UNTIMED,
        reason: "frames without a time, which get one, so that a request and its answer by another flow are at the same time",
    },
    Known {
        capture: "pcapng-test-generator/output_le/basic/test011.pcapng",
        changes: UNTIMED,
        reason: "frames without a time, which get one, so that a request and its answer by another flow are at the same time",
    },
];

/// Pairs and packets of a capture as it is.
#[derive(Default)]
pub(crate) struct Unchanged(OnceCell<(Vec<String>, Vec<Option<Sent>>)>);

impl Unchanged {
    fn of(capture: &Capture) -> &(Vec<String>, Vec<Option<Sent>>) {
        capture.unchanged.0.get_or_init(|| (pairs(&capture.frames), sent(&capture.frames)))
    }
}

/// Returns the text of a value, or `-`.
fn text(value: Option<&impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}

/// Returns what a transaction pairs, without its times.
fn pair(transaction: &Transaction) -> String {
    let parts = match &transaction.content {
        Content::Http(http) => {
            vec![text(http.method.as_ref()), text(http.target.as_ref()), text(http.status.as_ref())]
        }
        Content::Dns(dns) => {
            let (kind, rcode) = (text(dns.query_type.as_ref()), text(dns.rcode.as_ref()));
            vec![dns.id.to_string(), text(dns.query.as_ref()), kind, rcode]
        }
        Content::Tls(tls) => {
            let certificates = Some(tls.certificates.join(",")).filter(|all| !all.is_empty());
            vec![text(tls.server_name.as_ref()), text(tls.cipher_suite.as_ref()), text(certificates.as_ref())]
        }
        Content::Quic(quic) => {
            vec![text(quic.packets.client_dcid.as_ref()), text(quic.packets.server_scid.as_ref())]
        }
        Content::Ssh(ssh) => vec![text(ssh.hassh.as_ref()), text(ssh.hassh_server.as_ref())],
        Content::Ftp(ftp) => {
            vec![ftp.command.to_string(), text(ftp.argument.as_ref()), text(ftp.code.as_ref())]
        }
        Content::Mail(mail) => vec![mail.sender.to_string(), mail.recipients.join(",")],
        Content::File(file) => {
            let kind = text(file.detected_type.as_ref());
            vec![text(file.name.as_ref()), kind, file.seen_len.to_string()]
        }
        Content::X509(x509) => {
            let role = if x509.role == Role::Client { "client" } else { "server" };
            vec![role.to_owned(), x509.sha256.to_string()]
        }
        _ => Vec::new(),
    };
    parts.join(" ")
}

/// Returns a configuration in which flows have no timeout.
pub(crate) fn without_timeouts() -> Builder {
    let mut config = TrackerConfig::default();
    config.timeouts = Timeouts::all(None);
    builder().tracker(config)
}

/// Returns the sorted pairs of all flows.
fn pairs(frames: &[Owned]) -> Vec<String> {
    let mut pairs = Vec::new();
    let sink = on_transaction(|flow: &FlowView<'_>, transaction| {
        pairs.push(format!("{} {} {}", flow.key(), transaction.protocol().name(), pair(transaction)));
    });
    let mut pipeline = without_timeouts().build(sink).expect("a valid configuration");
    frames.iter().for_each(|owned| {
        pipeline.frame(&owned.frame());
    });
    pipeline.finish();
    drop(pipeline);
    pairs.sort();
    pairs
}

/// A packet of TCP or UDP.
#[derive(Clone, Copy)]
struct Sent {
    key: FlowKey,
    side: Side,
    /// Sequence number after a segment with octets.
    end: Option<u32>,
    /// Acknowledgment number of a segment with octets.
    ack: Option<u32>,
    /// True for a SYN, and for the first two packets of a flow.
    is_first: bool,
}

impl Sent {
    /// Returns whether two packets of different directions, if their order changed, do not show which was sent first:
    /// the second one has octets too, and does not acknowledge those of the first one.
    fn is_order_unknown(&self, second: &Self) -> bool {
        let is_acknowledged = |(end, ack): (u32, u32)| ack.wrapping_sub(end) as i32 >= 0;
        self.end.zip(second.ack).is_some_and(|both| !is_acknowledged(both))
    }
}

/// Notes the latest packet.
#[derive(Default)]
struct Last(Option<Sent>);

impl Sink for Last {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, flow: &mut Flow<'_, ()>, packet: &Packet<'_>) {
        let Packet { key, side, tcp, payload_len, .. } = *packet;
        let has_octets = packet.transport == Transport::Tcp && payload_len > 0;
        self.0 = matches!(packet.transport, Transport::Tcp | Transport::Udp).then_some(Sent {
            key,
            side,
            end: has_octets.then(|| tcp.seq.0.wrapping_add(payload_len)),
            ack: (has_octets && tcp.flags.contains(TcpFlags::ACK)).then_some(tcp.ack.0),
            is_first: flow.view.packet_count() < 2 || tcp.flags.contains(TcpFlags::SYN),
        });
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, (): ()) {}
}

/// Returns the packet of each frame, if it has one.
fn sent(frames: &[Owned]) -> Vec<Option<Sent>> {
    let mut pipeline = without_timeouts().build(Last::default()).expect("a valid configuration");
    let of_frame = |owned: &Owned| {
        pipeline.frame(&owned.frame());
        pipeline.sink_mut().0.take()
    };
    frames.iter().map(of_frame).collect()
}

/// Returns the elements of one sorted list that another one has not, or less often.
pub(crate) fn others<T: Ord + Clone>(of: &[T], than: &[T]) -> Vec<T> {
    let mut than = than.iter().peekable();
    let is_other = |pair: &&T| {
        while than.next_if(|other| other < pair).is_some() {}
        than.next_if_eq(pair).is_none()
    };
    of.iter().filter(is_other).cloned().collect()
}

fn compare(capture: &Capture, changed: &[Owned]) -> Outcome {
    let (expected, _) = Unchanged::of(capture);
    if expected.is_empty() {
        return Outcome::NotApplicable;
    }
    let found = pairs(changed);
    let (missing, new) = (others(expected, &found), others(&found, expected));
    if missing.is_empty() && new.is_empty() {
        return Outcome::Equal;
    }
    // The digests of certificates make long rows.
    let first: String =
        missing.first().or(new.first()).into_iter().flat_map(|pair| pair.chars()).take(160).collect();
    Outcome::Different(format!("{} pairs less, {} others: {first}", missing.len(), new.len()))
}

/// Captures the packets of one side of each flow later by a number of milliseconds.
pub(crate) fn late(capture: &Capture, side: Side, millis: u64) -> Outcome {
    let delay_ns = millis * 1_000_000;
    // A clock without the steps backwards of the capture.
    let (mut elapsed_ns, mut previous) = (0, Timestamp::ZERO);
    let moved = capture.frames.iter().zip(&Unchanged::of(capture).1).map(|(frame, sent)| {
        elapsed_ns += frame.timestamp.as_nanos().saturating_sub(previous.as_nanos());
        previous = frame.timestamp;
        let delay_ns = if sent.is_some_and(|sent| sent.side == side) { delay_ns } else { 0 };
        let timestamp = Timestamp::from_nanos(frame.timestamp.as_nanos() + delay_ns);
        (elapsed_ns + delay_ns, Owned { timestamp, ..frame.clone() })
    });
    let mut moved: Vec<_> = moved.collect();
    moved.sort_by_key(|(time, _)| *time);
    let frames: Vec<_> = moved.into_iter().map(|(_, frame)| frame).collect();
    compare(capture, &frames)
}

/// Calls `swap` with the index of the second of each two neighboring frames of different directions of a flow, except its
/// first ones and SYNs, and with whether the order in which they were sent is unknown after they were swapped.
fn neighbors(capture: &Capture, mut swap: impl FnMut(usize, bool)) {
    let sent = &Unchanged::of(capture).1;
    let mut at = 1;
    while at < sent.len() {
        let time = |index: usize| capture.frames[index].timestamp.as_nanos();
        let is_near = time(at).abs_diff(time(at - 1)) <= SWAP_MAX.as_nanos() as u64;
        if let (Some(first), Some(second)) = (&sent[at - 1], &sent[at])
            && (first.key, first.side) == (second.key, second.side.other())
            && !first.is_first
            && !second.is_first
            && is_near
        {
            swap(at, first.is_order_unknown(second));
            at += 1;
        }
        at += 1;
    }
}

/// Swaps neighboring frames of different directions of a flow, except its first ones, SYNs, and segments that do not show
/// which was sent first: both have octets, and the second one does not acknowledge those of the first one. Its sender had not
/// received them, so that either order is one in which the hosts may have sent them.
pub(crate) fn swapped(capture: &Capture) -> Outcome {
    let mut frames = capture.frames.clone();
    neighbors(capture, |at, is_order_unknown| {
        if !is_order_unknown {
            let (first, second) = (frames[at - 1].timestamp, frames[at].timestamp);
            frames.swap(at - 1, at);
            (frames[at - 1].timestamp, frames[at].timestamp) = (first, second);
        }
    });
    compare(capture, &frames)
}

/// Numbers of neighboring frames that are swapped, and that are not because the order in which they were sent is unknown.
pub(crate) fn swapped_counts(capture: &Capture) -> [usize; 2] {
    let mut counts = [0; 2];
    neighbors(capture, |_, is_order_unknown| counts[usize::from(is_order_unknown)] += 1);
    counts
}

/// Checks that the differences in what is expected are the known ones. The name of a capture may be a path that ends with it.
pub(crate) fn check_known(known: &[Known], expected: &[&str], scores: &[Score]) {
    let relations =
        RELATIONS.iter().zip(scores).filter(|(relation, _)| expected.contains(&relation.expected));
    let mut found: Vec<_> = relations
        .flat_map(|(relation, score)| {
            score.different.iter().map(|(path, difference)| (path.as_str(), relation.name, difference))
        })
        .collect();
    let all = known.iter().flat_map(|known| known.changes.iter().map(|change| (known.capture, *change)));
    let missed: Vec<_> = all
        .filter(|(capture, change)| {
            let before = found.len();
            found.retain(|(path, name, _)| !(path.ends_with(capture) && name == change));
            found.len() == before
        })
        .collect();
    assert!(found.is_empty(), "other differences: {found:#?}");
    assert!(missed.is_empty(), "known differences that are none: {missed:#?}");
}

/// Appends the reasons of the differences that remain.
pub(crate) fn write(page: &mut String, [swapped, left_out]: [usize; 2]) {
    let _ = write!(
        page,
        "\n## Pairs of requests and responses\n\n\
         Of {} neighboring frames of both directions, {left_out} are not swapped: both have octets, and the second one does not\n\
         acknowledge those of the first one, so that either order is one in which the hosts may have sent them.\n",
        swapped + left_out,
    );
    write_known(page, KNOWN);
}

/// Appends a table of differences and their reasons.
pub(crate) fn write_known(page: &mut String, known: &[Known]) {
    page.push_str("\n| capture | changes | reason of the difference |\n|---|---|---|\n");
    for Known { capture, changes, reason } in known {
        let _ = writeln!(page, "| `{capture}` | {} | {reason} |", changes.join("; "));
    }
}
