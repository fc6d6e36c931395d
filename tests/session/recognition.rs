//! Content and ports: recognition by port needs content that does not contradict it, and octets in front of a protocol
//! do not prevent its recognition.

use etherparse::PacketBuilder;
use flowgauge::base::{EndReason, Frame, IpProtocol, TcpFlags, Timestamp};
use flowgauge::pipeline::{Pipeline, Sessions, Sink};
use flowgauge::protocols::{Message, Standard, dns, ftp, http1, smtp, ssh};
use flowgauge::session::{MessageMeta, PROBE_LEN_MAX, Role};
use flowgauge::tracker::Flow;

use crate::harness::{
    Description, Dialogue, Observed, observe, observe_in_any_split, observe_in_any_split_after,
};

use Role::{Client, Server};

/// Describes a message by its protocol, its sender and a distinguishing value.
pub(crate) fn describe(meta: &MessageMeta, message: Message<'_>) -> Description {
    let text = match &message {
        Message::Http1(http1::Message::Body(body)) => {
            return Description::Part("http body".to_owned(), body.bytes.to_vec());
        }
        Message::Http1(http1::Message::Request(request)) => request.target.to_string(),
        Message::Http1(http1::Message::Response(response)) => response.status.to_string(),
        Message::Http1(http1::Message::End(_)) => "end".to_owned(),
        Message::Dns(dns::Message::Query(query)) => format!("query {}", query.header.id),
        Message::Dns(dns::Message::Response(response)) => format!("response {}", response.header.id),
        Message::Smtp(smtp::Message::Command(command)) => format!("{:?}", command.verb),
        Message::Ftp(ftp::Message::Command(_)) => "command".to_owned(),
        Message::Ssh(ssh::Message::Identification(_)) => "identification".to_owned(),
        other => {
            let text = format!("{other:?}");
            text.split(|letter: char| !letter.is_alphanumeric()).nth(1).unwrap_or_default().to_owned()
        }
    };
    Description::Whole(format!("{} {}: {text}", meta.protocol, meta.from.name()))
}

/// Encodes a DNS query for `example.com`.
pub(crate) fn query(id: u16, flags: u16, record_type: u16) -> Vec<u8> {
    let words = [id, flags, 1, 0, 0, 0].map(u16::to_be_bytes).concat();
    let question = [b"\x07example\x03com\0".as_slice(), &record_type.to_be_bytes(), b"\0\x01"].concat();
    [words, question].concat()
}

/// Encodes a client hello of TLS with one suite and no extensions.
pub(crate) fn client_hello() -> Vec<u8> {
    let body = [b"\x03\x03".as_slice(), &[0x5A; 32], b"\0\0\x02\x13\x01\x01\0\0\0"].concat();
    let len = body.len() as u8;
    [b"\x16\x03\x01\0".as_slice(), &[len + 4], b"\x01\0\0", &[len], &body].concat()
}

const PROXY_1: &[u8] = b"PROXY TCP4 192.0.2.1 192.0.2.2 40000 443\r\n";
const PROXY_2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0C\xC0\0\x02\x01\xC0\0\x02\x02\x9C\x40\x01\xBB";

#[test]
fn a_proxy_header_is_skipped_before_recognition() {
    for header in [PROXY_1, PROXY_2] {
        let tls = [header, &client_hello()].concat();
        let observed = observe_in_any_split::<Standard>(443, &[(Client, &tls)], describe);
        assert_eq!(observed.application, Some(("tls", "content")));
        assert_eq!(observed.reports, ["[tls by content]", "tls client: ClientHello"]);

        let http = [header, b"GET / HTTP/1.0\r\n\r\n"].concat();
        let turns: [(Role, &[u8]); 2] = [(Client, &http), (Server, b"HTTP/1.0 204 No Content\r\n\r\n")];
        let observed = observe_in_any_split::<Standard>(9, &turns, describe);
        assert_eq!(observed.reports[0], "[http by content]");
        assert_eq!(
            observed.messages(),
            ["http client: /", "http client: end", "http server: 204", "http server: end"]
        );
    }
}

#[test]
fn content_after_a_proxy_header_can_contradict_the_port() {
    let stream = [PROXY_1, b"nothing that a probe knows"].concat();
    assert_eq!(observe::<Standard>(443, &[(Client, &stream)], describe, || 1000).application, None);
    // A server sends no such header.
    assert_eq!(observe::<Standard>(443, &[(Server, PROXY_1)], describe, || 1000).application, None);
    // An incomplete header is not buffered longer than other octets.
    let mut dialogue = Dialogue::<Standard>::new(IpProtocol::TCP, 9, describe);
    dialogue.send_octets(Client, &PROXY_2[..14]);
    dialogue.send_octets(Client, b"\x07\0");
    assert!(dialogue.held_bytes() > 0);
    dialogue.send_octets(Client, &[0; PROBE_LEN_MAX]);
    assert_eq!(dialogue.held_bytes(), 0);
}

/// Application names of the flow records.
#[derive(Default)]
struct Names(Vec<Option<(String, &'static str)>>);

impl Sink for Names {
    type State = ();
    type Stage = Sessions<Standard>;

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        let application = flow.view.record(reason).application;
        self.0
            .push(application.map(|application| (application.name.to_string(), application.evidence.name())));
    }
}

/// Two TCP endpoints; each segment is passed to a pipeline as a frame.
struct Endpoints {
    pipeline: Pipeline<Names>,
    server_port: u16,
    clock: u64,
}

impl Endpoints {
    fn new(server_port: u16) -> Self {
        let pipeline = Pipeline::builder().build(Names::default()).unwrap();
        Self { pipeline, server_port, clock: 0 }
    }

    fn segment(&mut self, from: Role, (flags, seq, ack): (TcpFlags, u32, u32), payload: &[u8]) {
        let (client, server) = (([192, 0, 2, 1], 40_000), ([192, 0, 2, 2], self.server_port));
        let (source, target) = if from == Client { (client, server) } else { (server, client) };
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(source.0, target.0, 64);
        let mut builder = builder.tcp(source.1, target.1, seq, 8192);
        if flags.contains(TcpFlags::SYN) {
            builder = builder.syn();
        }
        if flags.contains(TcpFlags::ACK) {
            builder = builder.ack(ack);
        }
        let mut bytes = Vec::new();
        builder.write(&mut bytes, payload).unwrap();
        self.clock += 1_000_000;
        let frame = Frame::ethernet(Timestamp::from_nanos(self.clock), &bytes);
        self.pipeline.frame(&frame);
    }

    fn application(mut self) -> Option<(String, &'static str)> {
        self.pipeline.finish();
        let records = self.pipeline.into_sink().0;
        assert_eq!(records.len(), 1);
        records[0].clone()
    }
}

const SYN_ACK: TcpFlags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
const BINARY: &[u8] = b"\0\0\0\x10\x91\xFE\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A";

#[test]
fn a_syn_ack_marks_the_beginning_of_both_directions() {
    for from in [Client, Server] {
        let (seq, ack) = if from == Client { (1000, 5001) } else { (5001, 1000) };
        let mut endpoints = Endpoints::new(5222);
        endpoints.segment(Server, (SYN_ACK, 5000, 1000), b"");
        endpoints.segment(from, (TcpFlags::ACK, seq, ack), BINARY);
        assert_eq!(endpoints.application(), None, "binary octets are not XMPP");
        // Without the SYN-ACK, the octets may be from the middle of the stream, after STARTTLS.
        let mut endpoints = Endpoints::new(5222);
        endpoints.segment(from, (TcpFlags::ACK, seq, ack), BINARY);
        assert_eq!(endpoints.application(), Some(("xmpp".to_owned(), "port")));
    }
}

#[test]
fn a_dns_query_on_the_quic_port_is_not_quic() {
    let application = |bytes: &[u8]| {
        let mut dialogue = Dialogue::<Standard>::new(IpProtocol::UDP, 443, describe);
        dialogue.send_datagram(Client, bytes);
        dialogue.finish().application
    };
    assert_eq!(application(&query(0x4142, 0x0100, 0)), None);
    assert_eq!(application(&query(0x4142, 0x0100, 1)), Some(("dns", "content")));
    // Octets that may be encrypted are recognized by port.
    let encrypted: Vec<u8> = (0..60).map(|position: u8| 0x45 ^ position.wrapping_mul(151)).collect();
    assert_eq!(application(&encrypted), Some(("quic", "port")));
}

#[test]
fn an_unassigned_dns_opcode_is_accepted_only_in_a_fully_parsed_message() {
    let observe = |port, turns: &[(Role, Vec<u8>)]| -> Observed {
        let mut dialogue = Dialogue::<Standard>::new(IpProtocol::UDP, port, describe);
        turns.iter().for_each(|(from, bytes)| dialogue.send_datagram(*from, bytes));
        dialogue.finish()
    };
    let turns = [(Client, query(7, 0x3900, 1)), (Server, query(7, 0xB984, 1))];
    let observed = observe(53, &turns);
    assert_eq!(observed.reports, ["[dns by content]", "dns client: query 7", "dns server: response 7"]);
    assert_eq!(observe(5300, &turns).application, None);
    // An additional octet, or a record that is missing.
    let longer = [query(7, 0x3900, 1), vec![0]].concat();
    assert_eq!(observe(53, &[(Client, longer)]).application, None);
    let mut missing_record = query(7, 0x3900, 1);
    missing_record[7] = 1;
    assert_eq!(observe(53, &[(Client, missing_record)]).application, None);

    let message = query(7, 0x3900, 1);
    let stream = [&[0, message.len() as u8], message.as_slice()].concat();
    let turns = [(Client, &stream[..20]), (Client, &stream[20..])];
    let observed = observe_in_any_split_after::<Standard>(53, 1, &turns, describe);
    assert_eq!(observed.messages()[0], "dns client: query 7");
}

#[test]
fn a_request_without_a_version_is_recognized_on_http_ports() {
    let turns: [(Role, &[u8]); 2] = [(Client, b"GET /bad.html\r\n"), (Server, b"<html></html>\n")];
    let observed = observe_in_any_split::<Standard>(80, &turns, describe);
    assert_eq!(observed.reports.first().map(String::as_str), Some("[http by content]"));
    let body = "http body: <html></html>\\n";
    assert_eq!(observed.messages(), ["http client: /bad.html", "http client: end", body, "http server: end"]);
    assert_eq!(observe::<Standard>(70, &turns, describe, || 100).application, None);
}
