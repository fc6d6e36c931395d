//! Exchanges of DHCP and DHCPv6 across flows.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use flowgauge::base::{FlowKey, IpProtocol, Side, Timestamp};
use flowgauge::protocols::{Message, Standard, dhcp, dhcpv6};
use flowgauge::row::Union as _;
use flowgauge::session::{
    Driver, EndKind, FlowContext, Lack, MessageMeta, Payload, Receiver, Session, SessionEvent,
};
use flowgauge::transaction::{Content, FlowTransactions, Joins, Transaction};

type End = (IpAddr, u16);

const fn end(address: [u8; 4], port: u16) -> End {
    let [a, b, c, d] = address;
    (IpAddr::V4(Ipv4Addr::new(a, b, c, d)), port)
}

const NONE: End = end([0; 4], 68);
const SERVER: End = end([192, 0, 2, 1], 67);
const TO_SERVERS: End = end([255; 4], 67);
const TO_CLIENTS: End = end([255; 4], 68);

/// A flow from one end to another.
struct Flow {
    key: FlowKey,
    side: Side,
    session: Session<Standard>,
    open: FlowTransactions,
}

impl Flow {
    fn new([from, to]: [End; 2]) -> Self {
        let (key, side) = FlowKey::new(IpProtocol::UDP, from, to);
        Self { key, side, session: Session::default(), open: FlowTransactions::default() }
    }
}

/// What the flows have in common, and the exchanges that are over.
#[derive(Default)]
struct Network {
    driver: Driver<Standard>,
    joins: Joins,
    exchanges: Vec<Transaction>,
}

struct Reports<'r> {
    joins: &'r mut Joins,
    key: FlowKey,
    open: &'r mut FlowTransactions,
    exchanges: &'r mut Vec<Transaction>,
}

impl Receiver<Standard> for Reports<'_> {
    fn message(&mut self, meta: &MessageMeta, message: Message<'_>) {
        let Self { joins, key, open, exchanges } = self;
        open.message(joins, (key, Timestamp::ZERO), meta, &message, |transaction| {
            exchanges.extend(is_exchange(&transaction).then_some(transaction));
        });
    }

    fn event(&mut self, _: &SessionEvent) {}
}

fn is_exchange(transaction: &Transaction) -> bool {
    matches!(transaction.content.row().table.kind(), "dhcp_exchange" | "dhcpv6_exchange")
}

fn exchange(transaction: &Transaction) -> Option<&dhcp::Exchange> {
    if let Content::Kit(row) = &transaction.content { row.message().get() } else { None }
}

impl Network {
    /// Processes a datagram of the initiator of a flow at a time in milliseconds. Returns how many exchanges it ended.
    fn send(&mut self, flow: &mut Flow, millis: u64, bytes: &[u8]) -> usize {
        let side = flow.side;
        self.datagram(flow, side, millis, bytes)
    }

    /// Processes a datagram of the responder.
    fn answer(&mut self, flow: &mut Flow, millis: u64, bytes: &[u8]) -> usize {
        let side = flow.side.other();
        self.datagram(flow, side, millis, bytes)
    }

    fn datagram(&mut self, flow: &mut Flow, from: Side, millis: u64, bytes: &[u8]) -> usize {
        let Self { driver, joins, exchanges } = self;
        let before = exchanges.len();
        let Flow { key, side, session, open } = flow;
        let context = FlowContext::new(key, *side, Timestamp::from_nanos(millis * 1_000_000));
        let payload = Payload { bytes, len: bytes.len() };
        driver.datagram(session, &context, from, payload, &mut Reports { joins, key: *key, open, exchanges });
        exchanges.len() - before
    }

    /// Ends a flow. Returns how many exchanges ended with it.
    fn end(&mut self, mut flow: Flow) -> usize {
        let Self { driver, joins, exchanges } = self;
        let before = exchanges.len();
        let Flow { key, side, session, open } = &mut flow;
        let context = FlowContext::new(key, *side, Timestamp::ZERO);
        let mut reports = Reports { joins, key: *key, open, exchanges };
        driver.finish(session, &context, EndKind::Flow, &mut reports);
        flow.open.end(joins, |transaction| {
            exchanges.extend(is_exchange(&transaction).then_some(transaction));
        });
        exchanges.len() - before
    }
}

fn message(operation: u8, identifier: u32, assigned: [u8; 4], options: &[&[u8]]) -> Vec<u8> {
    let mut octets = vec![operation, 1, 6, 0];
    octets.extend(identifier.to_be_bytes());
    octets.extend([0; 8]);
    octets.extend(assigned);
    octets.extend([0; 8]);
    octets.extend([2, 0, 0, 0, 0, 1]);
    octets.resize(236, 0);
    octets.extend([0x63, 0x82, 0x53, 0x63]);
    octets.extend(options.concat());
    octets.push(255);
    octets
}

const ADDRESS: [u8; 4] = [192, 0, 2, 7];

fn of_client(identifier: u32, kind: u8) -> Vec<u8> {
    message(1, identifier, [0; 4], &[&[53, 1, kind, 12, 2], b"pc", &[50, 4, 192, 0, 2, 7]])
}

fn of_server(identifier: u32, kind: u8, assigned: [u8; 4]) -> Vec<u8> {
    let lease: &[u8] = if kind == 6 { &[] } else { &[51, 4, 0, 0, 14, 16] };
    message(2, identifier, assigned, &[&[53, 1, kind, 54, 4, 192, 0, 2, 1], lease])
}

#[test]
fn messages_in_both_directions_of_a_broadcast_are_one_exchange() {
    let mut network = Network::default();
    let (mut requests, mut replies) = (Flow::new([NONE, TO_SERVERS]), Flow::new([SERVER, TO_CLIENTS]));
    for (millis, is_reply, kind) in [(0, false, 1), (10, true, 2), (20, false, 3), (35, true, 5)] {
        let ended_count = if is_reply {
            network.send(&mut replies, millis, &of_server(7, kind, ADDRESS))
        } else {
            network.send(&mut requests, millis, &of_client(7, kind))
        };
        assert_eq!(ended_count, 0);
    }
    assert!(network.joins.heap_len() > 0);
    assert_eq!((network.end(replies), network.end(requests)), (0, 1));
    assert_eq!(network.joins.heap_len(), 0, "all memory is released");
    let [transaction] = &network.exchanges[..] else { panic!("{:?}", network.exchanges) };
    assert_eq!(transaction.lacks(), None);
    assert_eq!(transaction.end().saturating_since(transaction.start()), Duration::from_millis(35));
    let row = exchange(transaction).unwrap();
    let kinds: Vec<_> = row.message_types.iter().map(|kind| kind.to_string()).collect();
    assert_eq!(kinds, ["discover", "offer", "request", "ack"]);
    assert_eq!(row.assigned_address, Some(ADDRESS.into()));
    assert_eq!(row.server_address, Some(SERVER.0));
    assert_eq!((row.client_address, row.requested_address), (Some(ADDRESS.into()), Some(ADDRESS.into())));
    assert_eq!(row.host_name.as_ref().unwrap().text().0, b"pc");
    assert_eq!(row.lease_time, Some(Duration::from_secs(3600)));
    assert_eq!(row.exchange.response_time, Some(Duration::from_millis(10)));
}

#[test]
fn an_exchange_ends_after_five_seconds_of_silence() {
    let mut network = Network::default();
    let mut requests = Flow::new([NONE, TO_SERVERS]);
    assert_eq!(network.send(&mut requests, 0, &of_client(7, 1)), 0);
    assert_eq!(network.send(&mut requests, 5_000, &of_client(7, 1)), 0);
    // With the next message of its flow, whichever exchange that belongs to.
    assert_eq!(network.send(&mut requests, 10_001, &of_client(8, 1)), 1);
    assert_eq!(network.exchanges[0].lacks(), Some(Lack::Response));
    assert_eq!(network.end(requests), 1);
    // Nor has its next message an answer, after an offer.
    let [mut asking, mut offers] = [[NONE, TO_SERVERS], [SERVER, TO_CLIENTS]].map(Flow::new);
    network.send(&mut asking, 15_000, &of_client(6, 1));
    network.send(&mut offers, 15_001, &of_server(6, 2, ADDRESS));
    network.send(&mut asking, 15_002, &of_client(6, 3));
    assert_eq!((network.end(offers), network.end(asking)), (0, 1));
    assert_eq!(network.exchanges.pop().unwrap().lacks(), Some(Lack::Response));
    // A client that releases its address waits for nothing.
    let mut release = Flow::new([end(ADDRESS, 68), SERVER]);
    network.send(&mut release, 20_000, &of_client(9, 7));
    network.end(release);
    assert_eq!(network.exchanges[2].lacks(), None);
    // Of a server, the request was not captured.
    let mut replies = Flow::new([SERVER, TO_CLIENTS]);
    network.send(&mut replies, 30_000, &of_server(10, 5, ADDRESS));
    network.end(replies);
    assert_eq!(network.exchanges[3].lacks(), Some(Lack::Request));
}

#[test]
fn no_exchange_is_lost_at_the_limit() {
    let mut network = Network::default();
    let mut flows = Vec::new();
    for number in 0..300_u32 {
        let [_, _, high, low] = number.to_be_bytes();
        let mut flow = Flow::new([end([10, 0, high, low], 68), SERVER]);
        let ended_count = network.send(&mut flow, 0, &of_client(number, 3));
        assert_eq!(ended_count, usize::from(number >= 256), "{number}");
        flows.push(flow);
    }
    // A flow with open ones ends its oldest.
    assert_eq!(network.send(&mut flows[0], 1, &of_client(1000, 3)), 1);
    let limited = network.exchanges.iter().filter(|ended| ended.lacks() == Some(Lack::Limit));
    assert_eq!(limited.count(), 45);
    let ended_count: usize = flows.into_iter().map(|flow| network.end(flow)).sum();
    assert_eq!(ended_count, 256);
    let mut identifiers: Vec<_> =
        network.exchanges.iter().map(|ended| exchange(ended).unwrap().identifier).collect();
    identifiers.sort_unstable();
    assert!(identifiers.into_iter().eq((0..300).chain([1000])));
    assert_eq!(network.joins.heap_len(), 0);
}

#[test]
fn a_reply_to_a_multicast_request_of_dhcpv6_is_of_its_exchange() {
    let mut network = Network::default();
    let client: End = ("fe80::1".parse().unwrap(), 546);
    let server: End = ("fe80::2".parse().unwrap(), 547);
    let mut requests = Flow::new([client, ("ff02::1:2".parse().unwrap(), 547)]);
    let mut replies = Flow::new([server, client]);
    let duid = [0, 1, 0, 10, 0, 3, 0, 1, 2, 0, 0, 0, 0, 1];
    let solicit = [&[1, 0, 0, 7][..], &duid].concat();
    // No prefixes are available.
    let advertise = [&[2, 0, 0, 7][..], &duid, &[0, 13, 0, 6, 0, 6], b"none"].concat();
    network.send(&mut requests, 0, &solicit);
    network.send(&mut replies, 5, &advertise);
    // The next request has another number.
    network.send(&mut requests, 9, &[&[3, 0, 0, 8][..], &duid].concat());
    assert_eq!((network.end(replies), network.end(requests)), (0, 2));
    let lacks: Vec<_> = network.exchanges.iter().map(Transaction::lacks).collect();
    assert_eq!(lacks, [None, Some(Lack::Response)]);
    let Content::Kit(row) = &network.exchanges[0].content else { panic!("an exchange") };
    let row: &dhcpv6::Exchange = row.message().get().unwrap();
    let kinds: Vec<_> = row.message_types.iter().map(|kind| kind.to_string()).collect();
    assert_eq!(kinds, ["solicit", "advertise"]);
    assert_eq!((row.client_address, row.server_address), (Some(client.0), Some(server.0)));
    assert_eq!(row.client_hardware_address.as_ref().unwrap().text().0, b"02:00:00:00:00:01");
    assert_eq!(row.lease_status, Some(dhcpv6::Status(6)));
    assert_eq!(row.server_text.as_ref().unwrap().text().0, b"none");
}

/// Clients that renew their leases have a flow each.
#[test]
fn leases_that_are_renewed_are_complete_at_any_rate() {
    let mut network = Network::default();
    let mut flows = Vec::new();
    for number in 0..600_u32 {
        let [_, _, high, low] = number.to_be_bytes();
        let client = end([10, 0, high, low], 68);
        let mut flow = Flow::new([client, SERVER]);
        network.send(&mut flow, 0, &of_client(number, 3));
        network.answer(&mut flow, 1, &of_server(number, 5, [10, 0, high, low]));
        flows.push(flow);
    }
    let ended_count: usize = flows.into_iter().map(|flow| network.end(flow)).sum();
    assert!(ended_count <= 129, "{ended_count}");
    assert_eq!(network.exchanges.len(), 600);
    for ended in &network.exchanges {
        let row = exchange(ended).unwrap();
        assert_eq!((ended.lacks(), row.client_address), (None, row.assigned_address));
    }
    assert_eq!(network.joins.heap_len(), 0);
}

#[test]
fn the_server_that_decides_is_that_of_the_exchange() {
    let other: End = end([192, 0, 2, 2], 67);
    let mut network = Network::default();
    let mut requests = Flow::new([NONE, TO_SERVERS]);
    let [mut replies, mut others] = [SERVER, other].map(|server| Flow::new([server, TO_CLIENTS]));
    // The client repeats its first message, and gets two offers.
    network.send(&mut requests, 0, &of_client(7, 1));
    network.send(&mut requests, 1, &of_client(7, 1));
    network.send(&mut replies, 2, &of_server(7, 2, ADDRESS));
    network.send(&mut others, 3, &of_server(7, 2, [192, 0, 2, 8]));
    network.send(&mut requests, 4, &of_client(7, 3));
    network.send(&mut others, 5, &of_server(7, 5, [192, 0, 2, 8]));
    // Another client is refused.
    network.send(&mut requests, 6, &of_client(8, 1));
    network.send(&mut replies, 7, &of_server(8, 2, ADDRESS));
    network.send(&mut requests, 8, &of_client(8, 3));
    network.send(&mut others, 9, &of_server(8, 6, [0; 4]));
    assert_eq!((network.end(replies), network.end(others), network.end(requests)), (0, 0, 2));
    let [given, refused] = [0, 1].map(|place| exchange(&network.exchanges[place]).unwrap());
    let address = Some(IpAddr::from([192, 0, 2, 8]));
    assert_eq!(
        (given.assigned_address, given.client_address, given.server_address),
        (address, address, Some(other.0))
    );
    assert_eq!((given.exchange.retransmission_count, given.exchange.lacks), (1, None));
    assert_eq!((refused.assigned_address, refused.client_address, refused.lease_time), (None, None, None));
    assert_eq!(refused.server_address, Some(other.0));
}
