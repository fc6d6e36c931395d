//! Files of TFTP in flows that a request announces.

use std::net::IpAddr;

use flowgauge::base::{FlowKey, IpProtocol, Side, Timestamp};
use flowgauge::protocols::tftp::Message as Tftp;
use flowgauge::protocols::{Message, Standard};
use flowgauge::session::{
    AWAITED_COUNT_MAX, AWAITED_LEN_MAX, Driver, EndKind, FlowContext, MessageMeta, Payload, Receiver, Role,
    Session, SessionEvent,
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

/// Returns the files of a flow that a request announces, of which the datagrams are captured at these times in
/// milliseconds; the request is the one from the client to the port of requests.
fn with_late_request(datagrams: &[(u64, End, &[u8])]) -> Vec<File> {
    let mut network = Network::default();
    let Network { driver, joins } = &mut network;
    let end = |(address, port)| (IpAddr::from(address), port);
    let (mut sessions, mut opens) = ([Session::default(), Session::default()], [None, None]);
    let (mut files, mut initiators) = (Vec::new(), [None, None]);
    let mut call = |index: usize, millis: u64, sent: Option<(End, &[u8])>| {
        let (key, of_client) = FlowKey::new(IpProtocol::UDP, end(CLIENT), end([REQUESTS, DATA][index]));
        let side = sent.map(|(sender, _)| if sender == CLIENT { of_client } else { of_client.other() });
        let initiator = *initiators[index].get_or_insert(side.unwrap_or(of_client));
        let context = FlowContext::new(&key, initiator, Timestamp::from_nanos(millis * 1_000_000));
        let open = opens[index].take().unwrap_or_default();
        let mut reports = Reports { joins, key, open, messages: Vec::new(), files: Vec::new() };
        match sent.zip(side) {
            Some(((_, bytes), side)) => {
                let payload = Payload { bytes, len: bytes.len() };
                driver.datagram(&mut sessions[index], &context, side, payload, &mut reports);
            }
            None => driver.finish(&mut sessions[index], &context, EndKind::Flow, &mut reports),
        }
        files.append(&mut reports.files);
        opens[index] = Some(reports.open);
    };
    for (millis, sender, bytes) in datagrams {
        let is_request = matches!(bytes, [0, 1 | 2, ..]);
        call(usize::from(!is_request), *millis, Some((*sender, bytes)));
    }
    // The flows end much later.
    [0, 1].into_iter().for_each(|index| call(index, 60_000, None));
    assert_eq!(driver.stats().held_bytes, 0);
    files
}

#[test]
fn a_request_may_be_captured_after_the_first_blocks() {
    let first = [&b"\0\x03\0\x01"[..], &[b'x'; 512]].concat();
    let second = b"\0\x03\0\x02end";
    for (datagrams, expected) in [
        // The client is late.
        (
            vec![(0, DATA, &first[..]), (1, DATA, second), (20, CLIENT, READ), (21, CLIENT, b"\0\x04\0\x01")],
            Some(515),
        ),
        // Nothing follows the request, and the file is one block.
        (vec![(0, DATA, BLOCK), (50, CLIENT, READ)], Some(6)),
        // The server is late: acknowledgments precede what they acknowledge.
        (vec![(0, CLIENT, READ), (1, CLIENT, b"\0\x04\0\x01"), (20, DATA, BLOCK)], Some(6)),
        (vec![(0, DATA, BLOCK), (51, CLIENT, READ), (52, CLIENT, b"\0\x04\0\x01")], None),
        (vec![(0, DATA, b"\0\x03\0\x07octets"), (1, CLIENT, READ), (2, CLIENT, b"\0\x04\0\x07")], None),
    ] {
        let files = with_late_request(&datagrams);
        let found: Vec<_> =
            files.iter().map(|file| (file.name.as_deref(), file.seen_len, file.is_complete)).collect();
        let expected: Vec<_> = expected.into_iter().map(|len| (Some("a.txt"), len, true)).collect();
        assert_eq!(found, expected, "{datagrams:?}");
    }
}

/// Octets are kept for a bounded time and up to a bounded length.
#[test]
fn what_is_kept_for_a_late_request_is_bounded() {
    let blocks: Vec<Vec<u8>> =
        (1..=200_u16).map(|number| [&[0, 3], &number.to_be_bytes()[..], &[b'x'; 512]].concat()).collect();
    for (count, is_found) in
        [(AWAITED_COUNT_MAX - 1, true), (AWAITED_COUNT_MAX, true), (AWAITED_COUNT_MAX + 1, false)]
    {
        let datagrams = blocks.iter().take(count).map(|block| (0, DATA, &block[..]));
        let datagrams: Vec<_> = datagrams.chain([(1, CLIENT, READ)]).collect();
        let files = with_late_request(&datagrams);
        let is_short = count * 516 <= AWAITED_LEN_MAX;
        assert_eq!(files.len(), usize::from(is_found && is_short), "{count}");
    }
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
