//! Arbitrary flows with all protocols: the parsers that the probes select by content and port keep their invariants,
//! and each message can be serialized.

use std::cell::RefCell;

use flowgauge::protocols::{Message, Standard};
use flowgauge::session::MessageMeta;
use flowgauge::transaction::{FlowTransactions, Joins, TEXT_LEN_MAX, Transaction, TransactionConfig};
use flowgauge::{FlowKey, Timestamp};

use super::cases::selected;
use super::dialogue::{Expectations, Input, Line, json, play};
use super::input::structured;
use super::phrases::PHRASES;

thread_local! {
    /// Joins the messages of the current flow.
    static OPEN: RefCell<(Joins, FlowTransactions)> = RefCell::default();
}

/// Checks a transaction that ended.
fn check(transaction: &Transaction) {
    let json = json(&transaction.content);
    // Lists have at most 256 texts; each octet takes at most six in JSON.
    assert!(json.len() < 64 * TEXT_LEN_MAX * 6 + 256 * TEXT_LEN_MAX * 6);
}

fn describe(meta: &MessageMeta, message: Message<'_>) -> Line {
    let key = FlowKey::tcp(([10, 0, 0, 1], 40_000).into(), ([10, 0, 0, 2], 21).into()).0;
    OPEN.with_borrow_mut(|(joins, open)| {
        open.message(joins, (&key, Timestamp::ZERO), meta, &message, |transaction| check(&transaction));
    });
    let json = json(&message);
    let _ = (message.is_content(), meta.from.name());
    Line::Whole(json)
}

/// Maximum number of octets that one parser may hold, the largest value of the targets of parsers.
const HELD_MAX: u64 = 2 << 20;

/// Ports of servers, selected by the input: those of protocols, and one without a protocol.
pub const PORTS: [u16; 32] = [
    80, 443, 53, 25, 22, 21, 5353, 5355, 8080, 587, 853, 4433, 123, 161, 389, 445, 502, 1883, 3306, 3389,
    3478, 5060, 547, 5672, 6379, 6881, 1812, 514, 179, 67, 51_820, 40_001,
];

/// Bit in the choice of an input: its octets are datagrams.
pub const DATAGRAMS: u8 = 0x20;

/// Bit in the choice of an input: the port is that of a protocol of the kit.
pub const OF_KIT: u8 = 0x80;

pub fn run(data: &[u8]) {
    let Some(input) = structured::<Input<'_>>(data) else { return };
    let mut config = TransactionConfig::default();
    config.has_hashes = true;
    OPEN.set((Joins::new(config), FlowTransactions::default()));
    let terms = || {
        let choice = input.choice & 31;
        let port =
            if input.choice & OF_KIT == 0 { PORTS[usize::from(choice)] } else { selected(choice).port };
        let terms = Expectations::<Standard>::tcp(port, &PHRASES, describe, HELD_MAX);
        if input.choice & DATAGRAMS == 0 { terms } else { terms.udp() }
    };
    play(&terms(), &input.steps, usize::MAX);
    if input.choice & DATAGRAMS == 0 {
        play(&terms(), &input.steps, usize::from(input.piece_len) + 1);
    }
    play(&terms().with_limits(input.choice >> 2 | input.piece_len & 7), &input.steps, usize::MAX);
    OPEN.with_borrow_mut(|(joins, open)| open.end(joins, |transaction| check(&transaction)));
}
