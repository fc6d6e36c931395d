//! Files of TFTP in flows that a request announces.

use std::net::IpAddr;

use flowgauge::base::{FlowKey, IpProtocol, Side, Timestamp};
use flowgauge::protocols::tftp::Message as Tftp;
use flowgauge::protocols::{Message, Standard};
use flowgauge::session::{
    Driver, EndKind, FlowContext, MessageMeta, Payload, Receiver, Role, Session, SessionEvent,
};
use flowgauge::transaction::{Content, File, FlowTransactions, Joins};

type End = ([u8; 4], u16);

const CLIENT: End = ([10, 0, 0, 1], 50_000);
const REQUESTS: End = ([10, 0, 0, 2], 69);
const DATA: End = ([10, 0, 0, 2], 40_000);
const READ: &[u8] = b"\0\x01folder/a.txt\0octet\0";
const WRITE: &[u8] = b"\0\x02b.txt\0octet\0";
const BLOCK: &[u8] = b"\0\x03\0\x01octets";
const ACKNOWLEDGMENT: &[u8] = b"\0\x04\0\0";

/// A driver with what the transactions of its flows have in common.
#[derive(Default)]
struct Network {
    driver: Driver<Standard>,
    joins: Joins,
}

/// What a flow reports: the kinds of messages with the roles of their senders, and files.
struct Reports<'r> {
    joins: &'r mut Joins,
    key: FlowKey,
    open: FlowTransactions,
    messages: Vec<String>,
    files: Vec<File>,
}

impl Receiver<Standard> for Reports<'_> {
    fn message(&mut self, meta: &MessageMeta, message: Message<'_>) {
        let Self { joins, key, open, messages, files } = self;
        if let Message::Tftp(message) = &message {
            let kind = match message {
                Tftp::Request(_) => "request",
                Tftp::Octets(_) => "octets",
                Tftp::End(_) => "end",
                _ => "other",
            };
            messages.push(format!("{} {kind}", meta.from.name()));
        }
        open.message(joins, (key, Timestamp::ZERO), meta, &message, |transaction| {
            if let Content::File(file) = transaction.content {
                files.push(file);
            }
        });
    }

    fn event(&mut self, _: &SessionEvent) {}
}

impl Network {
    /// Processes the datagrams of a flow, of which the first one is the initiator's. Returns messages and files, and whether the
    /// flow has an application.
    fn flow(&mut self, ends: [End; 2], datagrams: &[(End, &[u8])]) -> (Vec<String>, Vec<File>, bool) {
        let end = |(address, port)| (IpAddr::from(address), port);
        let (key, initiator) = FlowKey::new(IpProtocol::UDP, end(ends[0]), end(ends[1]));
        let Self { driver, joins } = self;
        let open = FlowTransactions::default();
        let mut reports = Reports { joins, key, open, messages: Vec::new(), files: Vec::new() };
        let context = FlowContext::new(&key, initiator, Timestamp::ZERO);
        let mut session = Session::default();
        for (sender, bytes) in datagrams {
            let side: Side = if *sender == ends[0] { initiator } else { initiator.other() };
            let payload = Payload { bytes, len: bytes.len() };
            driver.datagram(&mut session, &context, side, payload, &mut reports);
        }
        driver.finish(&mut session, &context, EndKind::Flow, &mut reports);
        (reports.messages, reports.files, session.application().is_some())
    }
}

/// The same four ports are used for two files, one after the other.
#[test]
fn a_later_file_has_the_name_in_the_later_request() {
    const OTHER: &[u8] = b"\0\x01other.txt\0octet\0";
    for second in [BLOCK, b"\0\x03\0\x01other"] {
        let mut network = Network::default();
        let Network { driver, joins } = &mut network;
        let end = |(address, port)| (IpAddr::from(address), port);
        let [requests, data] = [[CLIENT, REQUESTS], [DATA, CLIENT]]
            .map(|ends| FlowKey::new(IpProtocol::UDP, end(ends[0]), end(ends[1])));
        let mut sessions = [Session::default(), Session::default()];
        let mut opens = [FlowTransactions::default(), FlowTransactions::default()];
        let mut files = Vec::new();
        for (index, bytes) in [(0, READ), (1, BLOCK), (1, BLOCK), (0, OTHER), (1, second), (1, second)] {
            let (key, initiator) = [requests, data][index];
            let context = FlowContext::new(&key, initiator, Timestamp::ZERO);
            let open = std::mem::take(&mut opens[index]);
            let mut reports = Reports { joins, key, open, messages: Vec::new(), files: Vec::new() };
            let payload = Payload { bytes, len: bytes.len() };
            driver.datagram(&mut sessions[index], &context, initiator, payload, &mut reports);
            files.append(&mut reports.files);
            opens[index] = reports.open;
        }
        let found: Vec<_> =
            files.iter().map(|file| (file.number, file.name.as_deref(), file.is_complete)).collect();
        assert_eq!(
            found,
            [(0, Some("a.txt"), true), (1, Some("other.txt"), true)],
            "{}",
            second.escape_ascii()
        );
    }
}

#[test]
fn a_file_arrives_from_the_port_that_the_server_chose() {
    let mut network = Network::default();
    let (messages, ..) = network.flow([CLIENT, REQUESTS], &[(CLIENT, READ)]);
    assert_eq!(messages, ["client request"]);
    let (messages, files, has_application) = network.flow([DATA, CLIENT], &[(DATA, BLOCK)]);
    assert_eq!(messages, ["server octets", "server end"]);
    // The record of a flow does not depend on others.
    assert!(!has_application);
    let [file] = &files[..] else { panic!("{files:?}") };
    assert_eq!((file.name.as_deref(), file.role, file.seen_len), (Some("a.txt"), Some(Role::Server), 6));
    assert!(file.is_complete);
    // Only one flow was announced.
    assert!(network.flow([DATA, CLIENT], &[(DATA, BLOCK)]).0.is_empty());
}

#[test]
fn a_written_file_is_the_clients() {
    let mut network = Network::default();
    network.flow([CLIENT, REQUESTS], &[(CLIENT, WRITE)]);
    let (messages, files, _) = network.flow([DATA, CLIENT], &[(DATA, ACKNOWLEDGMENT), (CLIENT, BLOCK)]);
    assert_eq!(messages, ["client octets", "client end"]);
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].name.as_deref(), files[0].role), (Some("b.txt"), Some(Role::Client)));
}

#[test]
fn a_server_may_answer_from_the_port_of_requests() {
    let mut network = Network::default();
    let datagrams = [(CLIENT, READ), (REQUESTS, BLOCK), (CLIENT, WRITE), (CLIENT, BLOCK)];
    let (messages, files, has_application) = network.flow([CLIENT, REQUESTS], &datagrams);
    let expected =
        ["client request", "server octets", "server end", "client request", "client octets", "client end"];
    assert_eq!((messages.as_slice(), has_application), (&expected.map(str::to_owned)[..], true));
    let found = files.iter().map(|file| (file.number, file.name.as_deref()));
    assert_eq!(found.collect::<Vec<_>>(), [(0, Some("a.txt")), (1, Some("b.txt"))]);
}

#[test]
fn other_flows_are_not_expected() {
    let mut network = Network::default();
    network.flow([CLIENT, REQUESTS], &[(CLIENT, READ)]);
    let other = |(address, port): End| (address, port + 1);
    for ends in [[DATA, other(CLIENT)], [([10, 0, 0, 3], 40_000), CLIENT], [DATA, ([10, 0, 0, 3], 50_000)]] {
        assert!(network.flow(ends, &[(ends[0], BLOCK)]).0.is_empty(), "{ends:?}");
    }
    assert_eq!(network.flow([DATA, CLIENT], &[(DATA, BLOCK)]).0.len(), 2);
}

/// A request cannot hide the messages of other flows.
#[test]
fn a_flow_of_another_protocol_keeps_its_messages() {
    // A query for the root.
    const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\0\0\x02\0\x01";
    let mut network = Network::default();
    network.flow([CLIENT, REQUESTS], &[(CLIENT, READ)]);
    let (messages, _, has_application) = network.flow([DATA, CLIENT], &[(DATA, QUERY)]);
    assert!(messages.is_empty() && has_application);
    // The port of DNS.
    let dns = (DATA.0, 53);
    network.flow([CLIENT, REQUESTS], &[(CLIENT, READ)]);
    assert!(network.flow([dns, CLIENT], &[(dns, BLOCK)]).0.is_empty());
}

/// No first datagram of a transfer resembles that of another protocol.
#[test]
fn each_first_datagram_begins_a_transfer() {
    let block = |content: &[u8]| [b"\0\x03\0\x01", content].concat();
    for first in [
        b"\0\x06blksize\x001428\0tsize\x0012345\0".to_vec(),
        ACKNOWLEDGMENT.to_vec(),
        b"\0\x05\0\x01File not found\0".to_vec(),
        block(b""),
        block(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0"),
        block(&[0; 512]),
        block(&[0xff; 512]),
        block(&[0x80; 512]),
        block(&b"some text ".repeat(51)),
        block(&(0..=255).cycle().take(1428).collect::<Vec<u8>>()),
    ] {
        let mut network = Network::default();
        network.flow([CLIENT, REQUESTS], &[(CLIENT, READ)]);
        let second = b"\0\x03\0\x01octets";
        let (messages, ..) = network.flow([DATA, CLIENT], &[(DATA, &first), (DATA, second), (DATA, BLOCK)]);
        assert!(!messages.is_empty(), "{}", first.escape_ascii());
    }
}
