use crate::base::{ConnState, EndReason, FlowKey, IpProtocol, SeqNum, TcpFlags, Timestamp};
use crate::base::{Packet, Transport};
use crate::record::FlowRecord;
use crate::tracker::{FlowView, Observer, Tracker};

struct Ended(Vec<FlowRecord>);

impl Observer<()> for Ended {
    fn ended(&mut self, flow: &FlowView<'_>, reason: EndReason, (): ()) {
        self.0.push(flow.record(reason));
    }
}

/// A TCP segment: whether the client sent it, control bits, sequence number, acknowledgment number, payload length in
/// octets.
type Sketch = (bool, TcpFlags, u32, u32, u32);

/// Returns the flow records of segments with their capture times, and the number of SYNs counted on open flows.
fn records_at(segments: &[(u64, Sketch)]) -> (Vec<FlowRecord>, u64) {
    let [client, server] =
        [("10.0.0.1", 40_000), ("10.0.0.2", 80)].map(|(address, port)| (address.parse().unwrap(), port));
    let mut tracker = Tracker::<()>::default();
    let mut observer = Ended(Vec::new());
    for (time_ns, (is_client, flags, seq, ack, payload_len)) in segments {
        let (source, target) = if *is_client { (client, server) } else { (server, client) };
        let (key, side) = FlowKey::new(IpProtocol::TCP, source, target);
        let mut packet = Packet::new(key, side, Timestamp::from_nanos(*time_ns), &[]);
        packet.transport = Transport::Tcp;
        packet.payload_len = *payload_len;
        packet.tcp.flags = *flags;
        packet.tcp.seq = SeqNum(*seq);
        packet.tcp.ack = SeqNum(*ack);
        packet.tcp.window = 1000;
        tracker.track(&packet, &mut observer);
    }
    tracker.finish(&mut observer);
    let syn_on_open_flow_count = tracker.stats().syn_on_open_flow_count;
    (observer.0, syn_on_open_flow_count)
}

fn records(segments: &[Sketch]) -> (Vec<FlowRecord>, u64) {
    records_at(&(1..).zip(segments.iter().copied()).collect::<Vec<_>>())
}

const SYN: TcpFlags = TcpFlags::SYN;
const ACK: TcpFlags = TcpFlags::ACK;
const FIN: TcpFlags = TcpFlags::FIN;
const RST: TcpFlags = TcpFlags::RST;

#[test]
fn a_reordered_syn_belongs_to_its_connection() {
    let open = [
        (false, SYN | ACK, 500, 101, 0),
        (true, ACK, 101, 501, 0),
        (true, ACK, 101, 501, 10),
        (false, ACK, 501, 111, 0),
    ];
    let closing = [(true, FIN | ACK, 111, 501, 0), (false, FIN | ACK, 501, 112, 0)];
    let late_syn = [(true, SYN, 100, 0, 0)];
    for segments in [[&open[..], &late_syn].concat(), [&open[..], &closing, &late_syn].concat()] {
        let (found, syn_on_open_flow_count) = records(&segments);
        assert_eq!((found.len(), syn_on_open_flow_count), (1, 0));
        assert_eq!(found[0].forward.tcp.retransmitted_count, 0);
    }
    let new_syn = [(true, SYN, 9000, 0, 0)];
    assert_eq!(records(&[&open[..], &new_syn].concat()).1, 1);
    assert_eq!(records(&[&open[..], &closing, &new_syn].concat()).0.len(), 2);
}
#[test]
fn a_responder_that_refuses_and_then_accepts_begins_a_new_connection() {
    let refused = [(true, SYN, 100, 0, 0), (false, RST | ACK, 0, 101, 0), (true, SYN, 100, 0, 0)];
    let accepted = [
        (false, SYN | ACK, 500, 101, 0),
        (false, SYN | ACK, 500, 101, 0),
        (true, ACK, 101, 501, 0),
        (true, ACK, 101, 501, 10),
    ];
    let (found, _) = records(&[&refused[..], &accepted].concat());
    let states: Vec<_> = found.iter().map(|record| record.conn_state).collect();
    assert_eq!(states, [ConnState::Rej, ConnState::S1]);
    // A reply that comes after the client's reset belongs to the connection that the client aborted.
    let aborted = [(true, SYN, 100, 0, 0), (true, RST, 101, 0, 0), (false, SYN | ACK, 500, 101, 0)];
    assert_eq!(records(&aborted).0.len(), 1);
}

/// An acknowledgment that changes no number of an established connection still selects one of several SYNs.
#[test]
fn a_repeated_acknowledgment_selects_a_syn() {
    let segments = [
        (false, SYN | ACK, 1001, 5000, 0),
        (true, ACK, 5000, 1000, 0),
        (false, SYN, 1102, 0, 0),
        (true, ACK, 5000, 1000, 0),
        (true, SYN | ACK, 5000, 1002, 0),
    ];
    assert_eq!(records(&segments).0.len(), 2);
}

#[test]
fn a_handshake_is_timed_by_its_own_packets() {
    let rtt_of = |times_ns: [u64; 4], third: Sketch| {
        let (earlier, syn) = ((true, ACK, 7, 9, 0), (true, SYN, 100, 0, 0));
        let sketches = [earlier, syn, (false, SYN | ACK, 500, 101, 0), third];
        // The first packet sets the clock; its connection ends where the next one begins.
        let mut segments: Vec<_> = times_ns.into_iter().zip(sketches).collect();
        segments.insert(1, (times_ns[0], (false, RST, 9, 0, 0)));
        let (found, _) = records_at(&segments);
        found.last().and_then(|record| record.handshake_rtt).map(|rtt| rtt.as_nanos())
    };
    let ack = (true, ACK, 101, 501, 0);
    assert_eq!(rtt_of([10, 10, 13, 17], ack), Some(7));
    // The clock is ahead, because another interface of the capture is.
    assert_eq!(rtt_of([1000, 10, 13, 17], ack), Some(7));
    assert_eq!(rtt_of([5_000_000_000, 10, 13, 17], ack), Some(7));
    assert_eq!(rtt_of([5_000_000_000, 10, 13, 3_000_000_000], ack), Some(2_999_999_990));
    assert_eq!(rtt_of([10, 10, 13, 4], ack), None);
    // A FIN without ACK does not complete the handshake.
    assert_eq!(rtt_of([10, 10, 13, 17], (true, FIN, 101, 0, 0)), None);
}
