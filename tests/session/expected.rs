//! Flows that messages of other flows announce: the data connections of FTP, and the endpoints of DCE/RPC.

use std::net::IpAddr;
use std::time::Duration;

use flowgauge::base::{Evidence, FlowKey, IpProtocol, Side, Timestamp};
use flowgauge::protocols::{Message, Standard, ftp_data};
use flowgauge::reassembler::{Chunk, Gap, GapReason};
use flowgauge::session::{
    AWAITED_TIME, Driver, EXPECTED_MAX, EXPECTED_TIME, EndKind, FlowContext, MessageMeta, Receiver, Role,
    Session, SessionEvent,
};
use flowgauge::transaction::{Content, FlowTransactions, Joins};

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

/// What a driver reports: messages of data connections, and the protocols that it recognizes.
#[derive(Default)]
struct Reports(Vec<String>);

impl Receiver<Standard> for Reports {
    fn message(&mut self, meta: &MessageMeta, message: Message<'_>) {
        if let Message::FtpData(message) = message {
            let message = match message {
                ftp_data::Message::Octets(octets) => {
                    format!("{}+{}", octets.offset, octets.bytes.escape_ascii())
                }
                ftp_data::Message::Gap(gap) => format!("{}+{} missing", gap.offset, gap.len),
                ftp_data::Message::End(end) => {
                    format!("end of {} with {} missing, {}", end.len, end.missing_len, end.is_complete)
                }
                _ => "?".to_owned(),
            };
            self.0.push(format!("{} {message}", meta.from.name()));
        }
    }

    fn event(&mut self, event: &SessionEvent) {
        if let SessionEvent::Recognized { protocol, .. } = event {
            self.0.push(protocol.to_string());
        }
    }
}

/// Ends of a flow; the first one is the initiator.
type Ends = [([u8; 4], u16); 2];

fn key([source, destination]: Ends) -> (FlowKey, Side) {
    let end = |(address, port)| (IpAddr::from(address), port);
    FlowKey::new(IpProtocol::TCP, end(source), end(destination))
}

fn seconds(time: u64) -> Timestamp {
    Timestamp::from_nanos(time * 1_000_000_000)
}

/// A driver that has received the control connections of the test so far.
#[derive(Default)]
struct Server {
    driver: Driver<Standard>,
}

impl Server {
    /// Processes a control connection from a port of the client, with these lines.
    fn control(&mut self, client: ([u8; 4], u16), time: u64, lines: &[(Role, &str)]) {
        let (key, initiator) = key([client, (SERVER, 21)]);
        let context = FlowContext::new(&key, initiator, seconds(time));
        let (mut session, mut offsets) = (Session::default(), [0; 2]);
        let opening = [(Role::Server, "220 ready"), (Role::Client, "USER a"), (Role::Server, "230 OK")];
        for (role, line) in [&opening, lines].concat() {
            let side = if role == Role::Client { initiator } else { initiator.other() };
            let line = format!("{line}\r\n");
            let offset = &mut offsets[side.index()];
            let chunk = Chunk::new(*offset, line.as_bytes());
            let _ = self.driver.chunk(&mut session, &context, side, &chunk, &mut Reports::default());
            *offset += line.len() as u64;
        }
    }

    /// Announces a port in passive mode. The address is the one in the reply.
    fn passive(&mut self, address: [u8; 4], port: u16, time: u64) {
        let [a, b, c, d] = address;
        let reply = format!("227 Entering Passive Mode ({a},{b},{c},{d},{},{})", port >> 8, port & 0xFF);
        self.control((CLIENT, 40_000), time, &[(Role::Client, "PASV"), (Role::Server, &reply)]);
    }

    /// Returns what a flow reports, in which one end sends octets. Its application is that of a driver that expects
    /// nothing.
    fn data(&mut self, ends: Ends, time: u64, sender: ([u8; 4], u16), octets: &str) -> Vec<String> {
        let (reports, application) = send(&mut self.driver, ends, time, sender, &[octets]);
        let (_, expected) = send(&mut Driver::default(), ends, time, sender, &[octets]);
        assert_eq!(application, expected);
        reports
    }
}

/// Passes a flow to a driver, in which one end sends pieces of octets. Returns what is reported, and the application.
fn send(
    driver: &mut Driver<Standard>,
    ends: Ends,
    time: u64,
    sender: ([u8; 4], u16),
    pieces: &[&str],
) -> (Vec<String>, Option<(String, Evidence)>) {
    let (key, initiator) = key(ends);
    let context = FlowContext::new(&key, initiator, seconds(time));
    let side = if sender == ends[0] { initiator } else { initiator.other() };
    let (mut session, mut reports, mut offset) = (Session::default(), Reports::default(), 0);
    for piece in pieces {
        let chunk = Chunk::new(offset, piece.as_bytes());
        let _ = driver.chunk(&mut session, &context, side, &chunk, &mut reports);
        offset += piece.len() as u64;
    }
    driver.fin(&mut session, &context, side, &mut reports);
    driver.finish(&mut session, &context, EndKind::Flow, &mut reports);
    let application = session.application();
    (reports.0, application.map(|(protocol, evidence)| (protocol.to_string(), evidence)))
}

/// What is reported of the file `GET / HTTP/1.1`, whose octets are those of another protocol.
const HTTP: &str = "GET / HTTP/1.1\r\n\r\n";

fn file(from: &str) -> [String; 3] {
    let octets = format!("{from} 0+{}", HTTP.escape_debug());
    ["ftp_data".to_owned(), octets, format!("{from} end of 18 with 0 missing, true")]
}

#[test]
fn an_announced_flow_is_parsed_as_announced_and_keeps_the_roles() {
    let (client, server) = ((CLIENT, 50_001), (SERVER, 50_000));
    let mut driver = Server::default();
    driver.passive(SERVER, 50_000, 0);
    assert_eq!(driver.data([client, server], 1, server, HTTP), file("server"));
    // Only one flow was announced.
    assert_eq!(driver.data([client, server], 1, server, HTTP)[..1], ["http"]);
    // In active mode, the server opens the flow, and is the server of the file.
    let port = [(Role::Client, "PORT 10,0,0,1,195,80"), (Role::Server, "200 OK")];
    driver.control((CLIENT, 40_000), 3, &port);
    let (opener, listener) = ((SERVER, 20_000), (CLIENT, 50_000));
    assert_eq!(driver.data([opener, listener], 3, opener, HTTP), file("server"));
    let extended = [(Role::Client, "EPRT |1|10.0.0.1|50000|"), (Role::Server, "200 OK")];
    driver.control((CLIENT, 40_000), 4, &extended);
    assert_eq!(driver.data([opener, listener], 4, listener, HTTP), file("client"));
    let extended = [(Role::Client, "EPSV"), (Role::Server, "229 Entering (|||50000|)")];
    driver.control((CLIENT, 40_000), 5, &extended);
    assert_eq!(driver.data([client, server], 5, server, HTTP), file("server"));
}

/// A PDU of DCE/RPC with this type and body.
fn rpc(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u8::try_from(16 + body.len()).expect("a short PDU");
    [&[5, 0, kind, 3, 0x10, 0, 0, 0, len, 0, 0, 0, 1, 0, 0, 0], body].concat()
}

/// The identifier of an interface as it is sent.
fn interface(number: u128) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = number.to_be_bytes();
    let [i, j, k, l, m, n, o, p] = rest;
    [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]
}

/// Returns a driver to which the endpoint mapper of the server gave an endpoint on TCP port 49157.
fn mapped() -> Driver<Standard> {
    let mapper = interface(0xe1af8308_5d1f_11c9_91a4_08002b14a0fa);
    let bind = [&[0; 8][..], &[1, 0, 0, 0, 0, 0, 1, 0], &mapper, &[3, 0, 0, 0], &[0; 20]].concat();
    let answer = [&[0; 8][..], &[4, 0], b"135\0", &[0, 0], &[1, 0, 0, 0], &[0; 24]].concat();
    let call = [&[8, 0, 0, 0, 0, 0, 3, 0][..], &[0; 8]].concat();
    // A tower with the interface, TCP port 49157, and no address.
    let own = [&[0x0D][..], &interface(0x367abb81_9844_35f1_ad32_98f038001003), &[2, 0]].concat();
    let tower =
        [&[3, 0, 19, 0][..], &own, &[2, 0, 0, 0, 1, 0, 7, 2, 0, 0xC0, 0x05, 1, 0, 9, 4, 0, 0, 0, 0, 0]];
    let tower = tower.concat();
    let len = u8::try_from(tower.len()).unwrap();
    let numbers = [1, 4, 0, 1, 3, len, len].map(|number: u8| [number, 0, 0, 0]).concat();
    let mapped = [&[0; 8][..], &[0; 20], &numbers, &tower, &[0; 4]].concat();
    let pdus = [(0, rpc(11, &bind)), (1, rpc(12, &answer)), (0, rpc(0, &call)), (1, rpc(2, &mapped))];

    let mut driver = Driver::<Standard>::default();
    let (mapping, initiator) = key([(CLIENT, 40_000), (SERVER, 135)]);
    let context = FlowContext::new(&mapping, initiator, seconds(0));
    let (mut session, mut offsets) = (Session::default(), [0; 2]);
    for (from, pdu) in pdus {
        let side = if from == 0 { initiator } else { initiator.other() };
        let chunk = Chunk::new(offsets[from], &pdu);
        let _ = driver.chunk(&mut session, &context, side, &chunk, &mut Reports::default());
        offsets[from] += pdu.len() as u64;
    }
    driver
}

#[test]
fn an_endpoint_of_dce_rpc_is_expected() {
    let mut driver = mapped();
    // A bind of a big-endian client, which is not recognized elsewhere.
    let begin = "\x05\0\x0b\x03\0\0\0\0\0\x48\0\0\0\0\0\x01";
    let mut reports = |port| {
        let ends = [(CLIENT, 50_000), (SERVER, port)];
        send(&mut driver, ends, 1, ends[0], &[begin]).0
    };
    assert_eq!(reports(49_158), [""; 0]);
    assert_eq!(reports(49_157), ["dcerpc"]);
}

#[test]
fn content_of_another_protocol_proves_that_an_endpoint_was_given_to_it() {
    let mut driver = mapped();
    let ends = [(CLIENT, 50_000), (SERVER, 49_157)];
    assert_eq!(send(&mut driver, ends, 1, ends[0], &[HTTP]).0[..1], ["http"]);
}

#[test]
fn other_flows_are_not_expected() {
    let (client, server) = ((CLIENT, 50_001), (SERVER, 50_000));
    let other = [10, 0, 0, 3];
    let mut driver = Server::default();
    driver.passive(SERVER, 50_000, 0);
    for ends in [
        [(other, 50_001), server],
        [client, (other, 50_000)],
        [client, (SERVER, 50_001)],
        [server, client].map(|(address, port)| (address, port + 1)),
    ] {
        assert_eq!(driver.data(ends, 1, ends[1], HTTP)[..1], ["http"], "{ends:?}");
    }
    // A refused command announces nothing.
    let refused = [(Role::Client, "PORT 10,0,0,1,195,81"), (Role::Server, "500 no")];
    driver.control((CLIENT, 40_001), 1, &refused);
    assert_eq!(driver.data([(SERVER, 20_000), (CLIENT, 50_001)], 1, (CLIENT, 50_001), HTTP)[..1], ["http"]);
    assert_eq!(driver.data([client, server], 1, server, HTTP), file("server"));
}

#[test]
fn an_address_behind_a_translator_is_also_that_of_the_control_connection() {
    let (client, server) = ((CLIENT, 50_001), (SERVER, 50_000));
    let private = [192, 168, 0, 2];
    for listener in [SERVER, private] {
        let mut driver = Server::default();
        driver.passive(private, 50_000, 0);
        let ends = [client, (listener, 50_000)];
        assert_eq!(driver.data(ends, 1, ends[1], "text")[..2], ["ftp_data", "server 0+text"]);
    }
    let mut driver = Server::default();
    driver.passive(private, 50_000, 0);
    assert_eq!(driver.data([client, server], 1, server, HTTP), file("server"));
}

#[test]
fn expected_flows_are_bounded_in_time_and_number() {
    let mut driver = Server::default();
    let limit = EXPECTED_TIME.as_secs();
    for (time, expected) in [(limit, "ftp_data"), (limit + 1, "http")] {
        driver.passive(SERVER, 50_000, 0);
        let reports = driver.data([(CLIENT, 50_001), (SERVER, 50_000)], time, (SERVER, 50_000), HTTP);
        assert_eq!(reports[..1], [expected], "{time}");
    }
    assert_eq!(EXPECTED_TIME, Duration::from_secs(300));
    let port = |number: usize| 50_000 + u16::try_from(number).expect("a port");
    for number in 0..=EXPECTED_MAX {
        driver.passive(SERVER, port(number), 1000);
        // A repeated announcement replaces the first one.
        driver.passive(SERVER, port(number), 1000);
    }
    for (number, expected) in [(0, "http"), (1, "ftp_data"), (EXPECTED_MAX, "ftp_data")] {
        let server = (SERVER, port(number));
        let reports = driver.data([(CLIENT, 1025), server], 1000, server, HTTP);
        assert_eq!(reports[..1], [expected], "{number}");
    }
}

#[test]
fn octets_that_leave_probes_undecided_are_parsed_in_order() {
    let (client, server) = ((CLIENT, 50_001), (SERVER, 50_000));
    for text in
        ["PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n", "220 x\r\n\n"]
    {
        for (sender, from) in [(client, "client"), (server, "server")] {
            let mut driver = Server::default();
            driver.passive(SERVER, 50_000, 0);
            let pieces: Vec<_> = text.split_inclusive(|_: char| true).collect();
            let (reports, application) = send(&mut driver.driver, [client, server], 1, sender, &pieces);
            let (_, unexpected) = send(&mut Driver::default(), [client, server], 1, sender, &pieces);
            assert_eq!(application, unexpected, "{text}");
            // A PROXY protocol header, which the probes skip, is one piece.
            let mut octets = String::new();
            for report in &reports[1..reports.len() - 1] {
                let (offset, piece) =
                    report.strip_prefix(from).unwrap().trim_start().split_once('+').unwrap();
                assert_eq!(offset.parse::<usize>().unwrap(), unescaped_len(&octets));
                octets.push_str(piece);
            }
            assert_eq!(octets, text.escape_default().to_string());
            let expected = format!("{from} end of {} with 0 missing, true", text.len());
            assert_eq!((&reports[0], reports.last()), (&"ftp_data".to_owned(), Some(&expected)));
        }
    }
}

/// Returns the number of octets that an escaped text stands for.
fn unescaped_len(text: &str) -> usize {
    text.len() - text.matches('\\').count()
}

#[test]
fn gaps_are_parts_of_the_file() {
    let (client, server) = ((CLIENT, 50_001), (SERVER, 50_000));
    let (key, initiator) = key([client, server]);
    let context = FlowContext::new(&key, initiator, seconds(1));
    let side = initiator.other();
    // A gap in front of the first octets, and one between others.
    for first in [0, 100] {
        let mut driver = Server::default();
        driver.passive(SERVER, 50_000, 0);
        let (mut session, mut reports) = (Session::default(), Reports::default());
        let driver = &mut driver.driver;
        let gap = |offset, len| Gap::new(offset, len, GapReason::Deadline);
        if first > 0 {
            let _ = driver.gap(&mut session, &context, side, &gap(0, first), &mut reports);
        }
        let _ = driver.chunk(&mut session, &context, side, &Chunk::new(first, b"abc"), &mut reports);
        let _ = driver.gap(&mut session, &context, side, &gap(first + 3, 7), &mut reports);
        let _ = driver.chunk(&mut session, &context, side, &Chunk::new(first + 10, b"def"), &mut reports);
        driver.fin(&mut session, &context, side, &mut reports);
        let mut expected = vec!["ftp_data".to_owned()];
        expected.extend((first > 0).then(|| format!("server 0+{first} missing")));
        expected.extend([
            format!("server {first}+abc"),
            format!("server {}+7 missing", first + 3),
            format!("server {}+def", first + 10),
            format!("server end of {} with {} missing, false", first + 13, first + 7),
        ]);
        assert_eq!(reports.0, expected);
    }
}

#[test]
fn encrypted_data_connections_are_tls() {
    let (client, server) = ((CLIENT, 50_001), (SERVER, 50_000));
    let mut driver = Server::default();
    driver.passive(SERVER, 50_000, 0);
    let reports = driver.data([client, server], 1, client, "\u{16}\u{3}\u{1}\0\u{5}\u{1}\0\0\u{1}\0");
    assert_eq!(reports, ["ftp_data", "tls"]);
    // These are files, and name no flow.
    for (octets, shown) in [
        ("\u{16}", "client 0+\\x16"),
        ("\u{16}\u{3}\u{1}\0\u{5}", "client 0+\\x16\\x03\\x01\\x00\\x05"),
        ("\u{16}\u{3}\u{1}\0\u{5}\u{2}abcdef", "client 0+\\x16\\x03\\x01\\x00\\x05\\x02abcdef"),
        ("\u{16}\u{3}\u{7f}\u{7f}\u{7f}\u{1}", "client 0+\\x16\\x03\\x7f\\x7f\\x7f\\x01"),
    ] {
        driver.passive(SERVER, 50_000, 0);
        let reports = driver.data([client, server], 1, client, octets);
        let end = format!("client end of {} with 0 missing, true", octets.len());
        assert_eq!(reports, ["ftp_data", shown, &end]);
    }
}

#[test]
fn a_server_does_not_hide_messages_to_other_hosts() {
    let (client, other) = ((CLIENT, 50_001), ([10, 0, 0, 9], 50_000));
    let mut driver = Server::default();
    driver.passive(other.0, 50_000, 0);
    assert_eq!(driver.data([client, other], 1, client, HTTP)[..1], ["http"]);
    driver.passive(other.0, 50_000, 0);
    assert_eq!(driver.data([client, other], 1, client, "some text")[..1], ["ftp_data"]);
    // Messages are searched for on these ports.
    driver.passive(SERVER, 8080, 0);
    assert_eq!(driver.data([client, (SERVER, 8080)], 1, client, HTTP)[..1], ["http"]);
    // An unrequested reply.
    let unrequested = [(Role::Client, "NOOP"), (Role::Server, "227 Entering (10,0,0,2,195,80)")];
    driver.control((CLIENT, 40_000), 2, &unrequested);
    assert_eq!(driver.data([client, (SERVER, 50_000)], 3, client, HTTP)[..1], ["http"]);
}

#[test]
fn the_initiator_decides_if_it_is_known() {
    let (client, server) = ((CLIENT, 50_001), (SERVER, 50_000));
    let mut driver = Server::default();
    driver.passive(SERVER, 50_000, 0);
    let (key, initiator) = key([server, client]);
    for (is_picked_up, expected) in [(false, "http"), (true, "ftp_data")] {
        let context = FlowContext::new(&key, initiator, seconds(1)).picked_up(is_picked_up);
        let (mut session, mut reports) = (Session::default(), Reports::default());
        let chunk = Chunk::new(0, HTTP.as_bytes());
        let _ = driver.driver.chunk(&mut session, &context, initiator, &chunk, &mut reports);
        assert_eq!(reports.0[..1], [expected]);
    }
}

#[test]
fn a_flow_of_port_20_is_a_data_connection() {
    let mut driver = Server::default();
    let (opener, listener) = ((SERVER, 20), (CLIENT, 50_000));
    assert_eq!(
        driver.data([opener, listener], 0, opener, "some text")[..2],
        ["ftp_data", "server 0+some text"]
    );
}

/// A flow whose messages are joined to transactions.
struct Joined {
    key: FlowKey,
    initiator: Side,
    session: Session<Standard>,
    open: FlowTransactions,
    offsets: [u64; 2],
}

/// Several flows with one driver, and their transactions.
#[derive(Default)]
struct Lab {
    driver: Driver<Standard>,
    joins: Joins,
    rows: Vec<String>,
    /// Time of what arrives next.
    millis: u64,
}

/// Receives the messages of a flow.
struct Joining<'j> {
    joins: &'j mut Joins,
    rows: &'j mut Vec<String>,
    open: &'j mut FlowTransactions,
    key: FlowKey,
}

/// Describes a file, or a command that transferred something.
fn describe(content: &Content) -> Option<String> {
    match content {
        Content::File(file) => {
            let name = file.name.as_deref().unwrap_or("-");
            Some(format!("file {} {name} {} {}", file.number, file.seen_len, file.is_complete))
        }
        Content::Ftp(ftp) if ["RETR", "STOR"].contains(&&*ftp.command) => Some(format!(
            "{} {} {:?} {:?}",
            ftp.command,
            ftp.argument.as_deref().unwrap_or("-"),
            ftp.code,
            ftp.seen_len
        )),
        _ => None,
    }
}

impl Receiver<Standard> for Joining<'_> {
    fn message(&mut self, meta: &MessageMeta, message: Message<'_>) {
        let Self { joins, rows, open, key } = self;
        open.message(joins, (key, seconds(0)), meta, &message, |ended| rows.extend(describe(&ended.content)));
    }
}

impl Lab {
    fn flow(ends: Ends) -> Joined {
        let (key, initiator) = key(ends);
        Joined {
            key,
            initiator,
            session: Session::default(),
            open: FlowTransactions::default(),
            offsets: [0; 2],
        }
    }

    fn send(&mut self, flow: &mut Joined, from_initiator: bool, octets: &str) {
        let Joined { key, initiator, session, open, offsets } = flow;
        let side = if from_initiator { *initiator } else { initiator.other() };
        let Self { driver, joins, rows, millis } = self;
        let mut receiver = Joining { joins, rows, open, key: *key };
        let chunk = Chunk::new(offsets[side.index()], octets.as_bytes());
        let context = FlowContext::new(key, *initiator, Timestamp::from_nanos(*millis * 1_000_000));
        let _ = driver.chunk(session, &context, side, &chunk, &mut receiver);
        offsets[side.index()] += octets.len() as u64;
    }

    fn fin(&mut self, flow: &mut Joined, from_initiator: bool) {
        let Joined { key, initiator, session, open, .. } = flow;
        let side = if from_initiator { *initiator } else { initiator.other() };
        let Self { driver, joins, rows, millis } = self;
        let context = FlowContext::new(key, *initiator, Timestamp::from_nanos(*millis * 1_000_000));
        driver.fin(session, &context, side, &mut Joining { joins, rows, open, key: *key });
    }

    fn end(&mut self, flow: &mut Joined, kind: EndKind) {
        if kind == EndKind::Fin {
            self.fin(flow, flow.initiator == Side::A);
            self.fin(flow, flow.initiator == Side::B);
        }
        let Joined { key, initiator, session, open, .. } = flow;
        let Self { driver, joins, rows, millis } = self;
        let context = FlowContext::new(key, *initiator, Timestamp::from_nanos(*millis * 1_000_000));
        let mut receiver = Joining { joins, rows, open, key: *key };
        driver.finish(session, &context, EndKind::Flow, &mut receiver);
        open.end(joins, |ended| rows.extend(describe(&ended.content)));
    }

    /// Transfers octets from the server in a data connection that the server opens to a port of the client.
    fn download(&mut self, port: u16, octets: &str) {
        let mut data = Self::flow([(SERVER, 20_000), (CLIENT, port)]);
        self.send(&mut data, true, octets);
        self.end(&mut data, EndKind::Fin);
    }
}

/// Octets that belong to the command named first, however many commands wait.
#[test]
fn files_belong_to_the_oldest_command_without_a_reply() {
    let mut lab = Lab::default();
    let mut control = Lab::flow([(CLIENT, 40_000), (SERVER, 21)]);
    lab.send(&mut control, false, "220 ready\r\n");
    lab.send(&mut control, true, "USER a\r\n");
    lab.send(&mut control, false, "230 OK\r\n");
    // All commands precede the replies.
    lab.send(&mut control, true, "PORT 10,0,0,1,195,80\r\nRETR a.txt\r\nRETR dir/b.txt\r\nRETR c.txt\r\n");
    lab.send(&mut control, false, "200 OK\r\n150 here\r\n");
    lab.download(50_000, "first file");
    lab.send(&mut control, false, "226 done\r\n550 no\r\n150 here\r\n");
    lab.send(&mut control, true, "PORT 10,0,0,1,195,81\r\n");
    lab.send(&mut control, false, "226 done\r\n200 OK\r\n");
    // Octets behind the last reply of their command.
    lab.download(50_001, "third");
    lab.send(&mut control, true, "PORT 10,0,0,1,195,82\r\n");
    lab.send(&mut control, false, "200 OK\r\n");
    lab.send(&mut control, true, "STOR up.txt\r\n");
    lab.send(&mut control, false, "150 here\r\n");
    // An octet of the other direction is no part of the file.
    let mut data = Lab::flow([(SERVER, 20_000), (CLIENT, 50_002)]);
    lab.send(&mut data, false, "sent");
    lab.send(&mut data, true, "x");
    lab.end(&mut data, EndKind::Fin);
    lab.send(&mut control, false, "226 done\r\n");
    lab.end(&mut control, EndKind::Flow);
    assert_eq!(
        lab.rows,
        [
            "file 2 a.txt 10 true",
            "RETR a.txt Some(226) Some(10)",
            "RETR dir/b.txt Some(550) None",
            "RETR c.txt Some(226) None",
            "file 4 c.txt 5 true",
            "file 7 up.txt 4 true",
            "file 7 up.txt 1 true",
            "STOR up.txt Some(226) Some(4)",
        ]
    );
}

#[test]
fn a_command_without_a_reply_has_its_file() {
    let mut lab = Lab::default();
    let mut control = Lab::flow([(CLIENT, 40_000), (SERVER, 21)]);
    lab.send(&mut control, false, "220 ready\r\n");
    lab.send(&mut control, true, "USER a\r\n");
    lab.send(&mut control, false, "230 OK\r\n");
    lab.send(&mut control, true, "PORT 10,0,0,1,195,80\r\n");
    lab.send(&mut control, false, "200 OK\r\n");
    lab.send(&mut control, true, "RETR a.txt\r\n");
    lab.send(&mut control, false, "150 here\r\n");
    lab.download(50_000, "all octets");
    lab.end(&mut control, EndKind::Flow);
    assert_eq!(lab.rows, ["file 2 a.txt 10 true", "RETR a.txt Some(150) Some(10)"]);
}

/// One side of the connections of a transfer in the order in which it is captured, each step with its time in milliseconds.
enum Step {
    /// A line of the client, or of the server, in the control connection.
    Command(&'static str),
    Reply(&'static str),
    /// Octets of the file, and its FIN.
    File(&'static str),
    /// The FIN of the other end of the data connection.
    Fin,
}

/// Returns the rows of a transfer. The data connection is opened by the end that comes first in `ends`, and the one that is the
/// sender has `is_from_opener`.
fn transfer(ends: Ends, is_from_opener: bool, steps: &[(u64, Step)]) -> Vec<String> {
    let mut lab = Lab::default();
    let mut control = Lab::flow([(CLIENT, 40_000), (SERVER, 21)]);
    lab.send(&mut control, false, "220 ready\r\n");
    lab.send(&mut control, true, "USER a\r\n");
    lab.send(&mut control, false, "230 OK\r\n");
    let mut data = Lab::flow(ends);
    for (millis, step) in steps {
        lab.millis = *millis;
        match step {
            Step::Command(line) => lab.send(&mut control, true, &format!("{line}\r\n")),
            Step::Reply(line) => lab.send(&mut control, false, &format!("{line}\r\n")),
            Step::File(octets) => {
                lab.send(&mut data, is_from_opener, octets);
                lab.fin(&mut data, is_from_opener);
            }
            Step::Fin => lab.fin(&mut data, !is_from_opener),
        }
    }
    lab.millis = 60_000;
    lab.end(&mut data, EndKind::Flow);
    lab.end(&mut control, EndKind::Flow);
    assert_eq!(lab.driver.stats().held_bytes, 0);
    lab.rows
}

#[test]
fn a_file_may_be_captured_before_its_command_and_its_announcement() {
    use Step::{Command, File, Fin, Reply};
    let (client, server, opener) = ((CLIENT, 50_001), (SERVER, 50_000), (SERVER, 20_000));
    let passive = "227 Entering Passive Mode (10,0,0,2,195,80)";
    let down = ["RETR a.txt Some(226) Some(7)", "file 2 a.txt 7 true"];
    let up = ["STOR b.txt Some(226) Some(7)", "file 2 b.txt 7 true"];
    let cases = [
        // The client is late: the command follows the file.
        (
            [client, server],
            false,
            vec![
                (0, Command("PASV")),
                (0, Reply(passive)),
                (1, File("content")),
                (20, Command("RETR a.txt")),
                (20, Reply("150 here")),
                (20, Reply("226 done")),
                (21, Fin),
            ],
            down,
        ),
        // Both the announcement and the command do.
        (
            [opener, (CLIENT, 50_000)],
            true,
            vec![
                (1, File("content")),
                (20, Command("PORT 10,0,0,1,195,80")),
                (20, Reply("200 OK")),
                (21, Command("RETR a.txt")),
                (21, Reply("150 here")),
                (22, Fin),
                (22, Reply("226 done")),
            ],
            down,
        ),
        // The port of data connections.
        (
            [(SERVER, 20), (CLIENT, 50_000)],
            true,
            vec![
                (1, File("content")),
                (20, Command("PORT 10,0,0,1,195,80")),
                (20, Reply("200 OK")),
                (21, Command("RETR a.txt")),
                (21, Reply("150 here")),
                (22, Fin),
                (22, Reply("226 done")),
            ],
            down,
        ),
        // The server is late: its announcement follows the file of the client.
        (
            [client, server],
            true,
            vec![
                (0, Command("PASV")),
                (1, Command("STOR b.txt")),
                (1, File("content")),
                (20, Reply(passive)),
                (21, Reply("150 here")),
                (21, Fin),
                (22, Reply("226 done")),
            ],
            up,
        ),
        // Octets for which the probes are undecided.
        (
            [client, server],
            true,
            vec![
                (0, Command("PASV")),
                (1, Command("STOR b.txt")),
                (1, File("220 ab\n")),
                (20, Reply(passive)),
                (21, Reply("150 here")),
                (21, Fin),
                (22, Reply("226 done")),
            ],
            up,
        ),
    ];
    for (index, (ends, is_from_opener, steps, expected)) in cases.iter().enumerate() {
        let mut rows = transfer(*ends, *is_from_opener, steps);
        rows.sort();
        assert_eq!(rows, expected, "case {index}");
    }
}

/// What is too late, or was not between the hosts of a control connection, is not joined.
#[test]
fn the_time_within_which_a_command_or_an_announcement_may_follow_is_bounded() {
    use Step::{Command, File, Fin, Reply};
    let (client, server) = ((CLIENT, 50_001), (SERVER, 50_000));
    let passive = "227 Entering Passive Mode (10,0,0,2,195,80)";
    let late = AWAITED_TIME.as_millis() as u64 + 1;
    for (millis, expected) in [(late, 1), (late + 1, 0)] {
        // The announcement.
        let rows = transfer(
            [client, server],
            true,
            &[
                (0, Command("PASV")),
                (1, File("content")),
                (millis, Reply(passive)),
                (millis, Command("STOR b.txt")),
                (millis, Reply("150 here")),
                (millis, Fin),
                (millis, Reply("226 done")),
            ],
        );
        let has_file = |row: &&String| row.starts_with("file");
        assert_eq!(rows.iter().filter(has_file).count(), expected, "{rows:?}");
        // The command.
        let rows = transfer(
            [client, server],
            false,
            &[
                (0, Command("PASV")),
                (0, Reply(passive)),
                (1, File("content")),
                (millis, Command("RETR a.txt")),
                (millis, Reply("150 here")),
                (millis, Reply("226 done")),
                (millis, Fin),
            ],
        );
        let named = rows.iter().filter(|row| *row == "file 2 a.txt 7 true").count();
        assert_eq!((rows.iter().filter(has_file).count(), named), (1, expected), "{rows:?}");
    }
    // Other hosts.
    let mut lab = Lab::default();
    let mut data = Lab::flow([client, server]);
    lab.send(&mut data, true, "content");
    lab.fin(&mut data, true);
    assert_eq!(data.session.held_bytes(), 0);
}
