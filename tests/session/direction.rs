//! Direction by content: a capture that begins with an answer has the same client in all outputs.

use std::marker::PhantomData;

use etherparse::PacketBuilder;
use flowgauge::base::{DirectionEvidence, EndReason, Frame, IpProtocol, Side, TcpFlags, Timestamp};
use flowgauge::pipeline::{Flows, Pipeline, Sessions, Sink, Stage, Streams};
use flowgauge::protocols::{Message, Standard};
use flowgauge::session::MessageMeta;
use flowgauge::tracker::{Flow, FlowEvent, Interest};

use crate::recognition::{client_hello, query};

/// What a flow reported: initiator, evidence, history and application of each record, the clients of its messages, and the
/// initiator that the flow had at each message.
#[derive(Default)]
struct Seen {
    records: Vec<(Side, DirectionEvidence, String, Option<String>)>,
    clients: Vec<Side>,
    initiators: Vec<Side>,
    changes: Vec<(Side, DirectionEvidence)>,
}

impl Sink for Seen {
    type State = ();
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::EVENTS
    }

    fn event(&mut self, _: &mut Flow<'_, ()>, event: &FlowEvent) {
        if let FlowEvent::DirectionChanged { initiator, evidence } = event {
            self.changes.push((*initiator, *evidence));
        }
    }

    fn message(&mut self, flow: &mut Flow<'_, ()>, meta: &MessageMeta, _: &Message<'_>) {
        let is_client = meta.from == flowgauge::session::Role::Client;
        self.clients.push(if is_client { meta.side } else { meta.side.other() });
        self.initiators.push(flow.view.initiator());
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        let record = flow.view.record(reason);
        let application = record.application.map(|application| application.name.to_string());
        self.records.push((
            record.initiator,
            record.direction_evidence,
            record.history.to_string(),
            application,
        ));
    }
}

/// The initiator and its evidence in the records of a stage without sessions.
struct Initiators<G>(Vec<(Side, DirectionEvidence)>, PhantomData<G>);

impl<G: Stage> Sink for Initiators<G> {
    type State = ();
    type Stage = G;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        let record = flow.view.record(reason);
        self.0.push((record.initiator, record.direction_evidence));
    }
}

/// One packet: whether end A sends it, the control bits of TCP, and the payload.
type Step<'a> = (bool, TcpFlags, &'a [u8]);

/// Processes packets between `192.0.2.1` (end A) and `192.0.2.2`, a millisecond apart.
fn observe(protocol: IpProtocol, ports: (u16, u16), steps: &[Step<'_>]) -> Seen {
    observe_with(Seen::default(), protocol, ports, steps)
}

fn observe_with<K: Sink>(sink: K, protocol: IpProtocol, ports: (u16, u16), steps: &[Step<'_>]) -> K {
    let mut pipeline = Pipeline::builder().build(sink).unwrap();
    let mut next = [1000_u32, 5000];
    for (number, (is_a, flags, payload)) in steps.iter().enumerate() {
        let (a, b) = (([192, 0, 2, 1], ports.0), ([192, 0, 2, 2], ports.1));
        let (source, target) = if *is_a { (a, b) } else { (b, a) };
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(source.0, target.0, 64);
        let mut bytes = Vec::new();
        if protocol == IpProtocol::UDP {
            builder.udp(source.1, target.1).write(&mut bytes, payload).unwrap();
        } else {
            let (own, other) = (usize::from(!is_a), usize::from(*is_a));
            let mut builder = builder.tcp(source.1, target.1, next[own], 8192);
            if flags.contains(TcpFlags::SYN) {
                builder = builder.syn();
            }
            if flags.contains(TcpFlags::ACK) {
                builder = builder.ack(next[other]);
            }
            next[own] += payload.len() as u32 + u32::from(flags.contains(TcpFlags::SYN));
            builder.write(&mut bytes, payload).unwrap();
        }
        let frame = Frame::ethernet(Timestamp::from_nanos(1_000_000 * (number as u64 + 1)), &bytes);
        pipeline.frame(&frame);
    }
    pipeline.finish();
    pipeline.into_sink()
}

const ACK: TcpFlags = TcpFlags::ACK;

fn ntp(mode: u8) -> Vec<u8> {
    [vec![4 << 3 | mode, 1], vec![7; 46]].concat()
}

fn with_len(head: &[u8], len: usize) -> Vec<u8> {
    [head, &vec![0; len - head.len()]].concat()
}

fn stun(kind: u16) -> Vec<u8> {
    [&kind.to_be_bytes()[..], b"\0\0\x21\x12\xA4\x42abcdefghijkl"].concat()
}

fn ike(flags: u8) -> Vec<u8> {
    [b"initiator-cookie".as_slice(), &[33, 0x20, 34, flags], &[0, 0, 0, 0], &[0, 0, 0, 28]].concat()
}

fn radius(code: u8) -> Vec<u8> {
    with_len(&[code, 1, 0, 20], 20)
}

fn snmp(pdu: u8) -> Vec<u8> {
    [b"\x30\x0D\x02\x01\x01\x04\x06public".as_slice(), &[pdu, 0]].concat()
}

fn smb(flags: u8) -> Vec<u8> {
    [b"\0\0\0\x40\xFESMB".as_slice(), &[64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[flags], &[0; 47]].concat()
}

/// A name, a protocol, two ports of equal rank, a request and an answer.
type Exchange = (&'static str, IpProtocol, (u16, u16), Vec<u8>, Vec<u8>);

/// Returns a request and an answer of each protocol, as its specification defines them.
fn exchanges() -> Vec<Exchange> {
    let (tcp, udp) = (IpProtocol::TCP, IpProtocol::UDP);
    let hello = client_hello();
    let server_hello =
        [b"\x16\x03\x03\0\x2E\x02\0\0\x2A\x03\x03".as_slice(), &[0x5A; 32], b"\0\x13\x01\0\0\x02\0\0"]
            .concat();
    vec![
        ("dns", udp, (53, 53), query(7, 0x0100, 1), query(7, 0x8180, 1)),
        ("ntp", udp, (123, 123), ntp(3), ntp(4)),
        ("ntp", udp, (123, 123), with_len(&[0x26, 1], 12), with_len(&[0x26, 0x81], 12)),
        (
            "sip",
            udp,
            (5060, 5060),
            b"OPTIONS sip:carol@chicago.example SIP/2.0\r\nVia: x\r\n\r\n".to_vec(),
            b"SIP/2.0 200 OK\r\nVia: x\r\n\r\n".to_vec(),
        ),
        ("stun", udp, (40_000, 40_001), stun(1), stun(0x0101)),
        ("ipsec", udp, (500, 500), ike(0x08), ike(0x20)),
        ("radius", udp, (1812, 1812), radius(1), radius(2)),
        ("snmp", udp, (161, 161), snmp(0xA0), snmp(0xA2)),
        ("http", tcp, (40_000, 40_001), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), {
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()
        }),
        ("tls", tcp, (40_000, 40_001), hello, server_hello),
        ("smb", tcp, (40_000, 40_001), smb(0), smb(1)),
        ("sip", tcp, (40_000, 40_001), b"OPTIONS sip:carol@chicago.example SIP/2.0\r\n\r\n".to_vec(), {
            b"SIP/2.0 200 OK\r\n\r\n".to_vec()
        }),
        ("rtsp", tcp, (40_000, 40_001), b"OPTIONS rtsp://camera.example/1 RTSP/1.0\r\n\r\n".to_vec(), {
            b"RTSP/1.0 200 OK\r\n\r\n".to_vec()
        }),
    ]
}

#[test]
fn an_answer_in_front_changes_no_direction() {
    for (name, protocol, ports, request, answer) in exchanges() {
        let (ask, reply): (Step<'_>, Step<'_>) = ((true, ACK, &request), (false, ACK, &answer));
        let plain = observe(protocol, ports, &[ask, reply]);
        let late = observe(protocol, ports, &[reply, ask, reply]);
        for seen in [&plain, &late] {
            let [(initiator, _, _, application)] = &seen.records[..] else { panic!("{name}: one record") };
            assert_eq!((*initiator, application.as_deref()), (Side::A, Some(name)), "{name}");
            assert!(seen.clients.iter().chain(&seen.initiators).all(|side| *side == Side::A), "{name}");
        }
        let (_, evidence, history, _) = &late.records[0];
        assert_eq!(*evidence, DirectionEvidence::Content, "{name}");
        // First octets in a stream without evidence of the direction wait for the other side.
        let expected = if protocol == IpProtocol::TCP { "dD^" } else { "d^" };
        assert!(history.starts_with(expected), "{name}: {history}");
        assert_eq!(late.changes, [(Side::A, DirectionEvidence::Content)], "{name}");
        assert!(plain.changes.is_empty(), "{name}");
    }
}

#[test]
fn records_without_sessions_have_the_same_direction() {
    for (name, protocol, ports, request, answer) in exchanges() {
        let (ask, reply): (Step<'_>, Step<'_>) = ((true, ACK, &request), (false, ACK, &answer));
        for (steps, evidence) in [
            (&[ask, reply][..], DirectionEvidence::FirstSeen),
            (&[reply, ask, reply][..], DirectionEvidence::Content),
        ] {
            let flows = observe_with(Initiators::<Flows>(Vec::new(), PhantomData), protocol, ports, steps);
            assert_eq!(flows.0, [(Side::A, evidence)], "{name}");
            let streams =
                observe_with(Initiators::<Streams>(Vec::new(), PhantomData), protocol, ports, steps);
            assert_eq!(streams.0, [(Side::A, evidence)], "{name}");
        }
    }
    // A handshake and the ports are asked before the content.
    let syn_ack = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let steps = [(false, syn_ack, &b""[..]), (true, ACK, response)];
    let flows =
        observe_with(Initiators::<Flows>(Vec::new(), PhantomData), IpProtocol::TCP, (40_000, 40_001), &steps);
    assert_eq!(flows.0, [(Side::A, DirectionEvidence::SynAck)]);
}

#[test]
fn a_handshake_is_stronger_than_content() {
    let syn_ack = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for (steps, evidence) in [
        (&[(true, TcpFlags::SYN, &b""[..]), (true, ACK, response)][..], DirectionEvidence::Syn),
        (&[(false, syn_ack, &b""[..]), (true, ACK, response)][..], DirectionEvidence::SynAck),
    ] {
        let seen = observe(IpProtocol::TCP, (40_000, 40_001), steps);
        assert_eq!((seen.records[0].0, seen.records[0].1), (Side::A, evidence));
        assert!(seen.changes.is_empty());
    }
}

#[test]
fn only_the_responders_port_names_an_application_after_a_syn() {
    let name = |ports, flags| observe(IpProtocol::TCP, ports, &[(true, flags, b"")]).records[0].3.clone();
    for port in [443, 80, 6881, 22, 53] {
        assert_eq!(name((port, 40_000), TcpFlags::SYN), None, "the client chose port {port}");
        assert!(name((40_000, port), TcpFlags::SYN).is_some(), "the server listens on port {port}");
        // Without a SYN, the port indicates the server.
        assert!(name((port, 40_000), ACK).is_some());
    }
    // Octets of any kind in the middle of a stream do not change it.
    let steps = [(true, TcpFlags::SYN, &b""[..]), (true, ACK, b"\x01\x02\x03\x04")];
    assert_eq!(observe(IpProtocol::TCP, (6881, 40_000), &steps).records[0].3, None);
}

#[test]
fn an_echo_reply_in_front_is_of_the_responder() {
    let mut pipeline = Pipeline::builder().build(Seen::default()).unwrap();
    for (number, is_reply) in [true, false].into_iter().enumerate() {
        let (source, target) =
            if is_reply { ([192, 0, 2, 2], [192, 0, 2, 1]) } else { ([192, 0, 2, 1], [192, 0, 2, 2]) };
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(source, target, 64);
        let mut bytes = Vec::new();
        let builder =
            if is_reply { builder.icmpv4_echo_reply(7, 1) } else { builder.icmpv4_echo_request(7, 1) };
        builder.write(&mut bytes, b"octets").unwrap();
        pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(1_000 * (number as u64 + 1)), &bytes));
    }
    pipeline.finish();
    let records = pipeline.into_sink().records;
    let [(initiator, evidence, ..)] = &records[..] else { panic!("one record") };
    assert_eq!((*initiator, *evidence), (Side::A, DirectionEvidence::Content));
}
