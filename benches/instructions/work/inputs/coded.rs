//! Bodies in gzip, decoded as for logs, with digests and without: pages, and bodies that expand far more, or whose decoders
//! are initialized often.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use flowgauge::base::{FlowKey, IpProtocol, Timestamp};
use flowgauge::protocols::{Message, Standard};
use flowgauge::session::Role::{Client, Server};
use flowgauge::session::{Driver, MessageMeta, Receiver, SessionEvent};
use flowgauge::transaction::{Content, FlowTransactions, Joins, Transaction, TransactionConfig};

use super::feed::{Expected, Feeding, INPUT_LEN, Input, filled};

/// An input, and the minimum number of its bodies.
pub(crate) type Case = (Input, u64);

/// Joins messages to transactions, and decodes bodies.
pub(crate) struct Joining {
    joins: Joins,
    transactions: FlowTransactions,
    flow: FlowKey,
    file_count: u64,
    decoded_len: u64,
    /// Octets that the flow had received with the last message.
    received_len: u64,
}

impl Joining {
    fn new(has_hashes: bool) -> Self {
        let mut config = TransactionConfig::default();
        (config.has_hashes, config.decodes) = (has_hashes, true);
        let end = |last, port| ([10, 0, 0, last].into(), port);
        let (flow, _) = FlowKey::new(IpProtocol::TCP, end(1, 10_000), end(2, 80));
        let joins = Joins::new(config);
        let transactions = FlowTransactions::default();
        Self { joins, transactions, flow, file_count: 0, decoded_len: 0, received_len: 0 }
    }
}

impl Receiver<Standard> for Joining {
    fn message(&mut self, meta: &MessageMeta, message: Message<'_>) {
        let Self { joins, transactions, flow, file_count, decoded_len, received_len } = self;
        // The octets of the previous flow do not pay for those of a new one.
        if meta.received_len < std::mem::replace(received_len, meta.received_len) {
            transactions.end(joins, |_| {});
        }
        transactions.message(joins, (flow, Timestamp::ZERO), meta, &message, |ended: Transaction| {
            if let Content::File(file) = ended.content {
                *file_count += 1;
                *decoded_len += file.decoded_len.unwrap_or_default();
            }
        });
    }

    fn event(&mut self, _: &SessionEvent) {}
}

pub(crate) fn digested(make: fn() -> Case) -> Feeding<Joining> {
    prepared(make, true)
}

/// Without digests, as logs are written by default.
pub(crate) fn undigested(make: fn() -> Case) -> Feeding<Joining> {
    prepared(make, false)
}

fn prepared(make: fn() -> Case, has_hashes: bool) -> Feeding<Joining> {
    let (input, file_count_min) = make();
    assert_eq!(input.len(), INPUT_LEN, "the input does not have INPUT_LEN octets");
    let expected = Expected::messages(file_count_min);
    let writer = Joining::new(has_hashes);
    let feeding = Feeding { driver: Driver::default(), input, expected, writer }.feed();
    Feeding { writer: Joining::new(has_hashes), ..feeding }
}

pub(crate) fn checked(feeding: Feeding<Joining>) {
    let Feeding { expected, writer, .. } = feeding;
    let Joining { file_count, decoded_len, .. } = writer;
    assert!(file_count >= expected.message_count_min, "{file_count} bodies, {decoded_len} octets decoded");
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(octets).expect("a vector");
    encoder.finish().expect("a vector")
}

fn exchange(input: &mut Input, body: &[u8]) {
    input.send(Client, b"GET /x HTTP/1.1\r\nHost: www.example.org\r\n\r\n");
    let len = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len}\r\n\r\n");
    input.send(Server, &[head.as_bytes(), body].concat());
}

fn exchanges(body: &[u8]) -> Input {
    filled(Input::tcp(80), |input, _| exchange(input, body))
}

/// Each exchange in a flow of its own.
fn flows(body: &[u8]) -> Input {
    filled(Input::tcp(80), |input, _| {
        input.flow();
        exchange(input, body);
    })
}

/// Text that is compressed to less than half, as that of pages without repetitions.
fn text() -> Vec<u8> {
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        b"abcdefgh <>/\n"[(state >> 16) as usize % 13]
    };
    (0..20_000).map(|_| letter()).collect()
}

pub(crate) fn benign() -> Case {
    (exchanges(&gzip(&text())), 5)
}

/// Bodies of 1 KiB that decode to 1 MiB.
pub(crate) fn bombs() -> Case {
    (exchanges(&gzip(&vec![0; 1 << 20])), 20)
}

/// The same, each in a connection of its own.
pub(crate) fn bombs_of_flows() -> Case {
    (flows(&gzip(&vec![0; 1 << 20])), 20)
}

/// Members without content.
pub(crate) fn members() -> Case {
    (exchanges(&gzip(b"").repeat(60)), 20)
}

/// Bodies of one octet.
pub(crate) fn tiny_bodies() -> Case {
    (exchanges(&gzip(b"x")), 100)
}

/// The same, each in a connection of its own.
pub(crate) fn tiny_bodies_of_flows() -> Case {
    (flows(&gzip(b"x")), 100)
}
