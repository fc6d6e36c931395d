//! DNS, mDNS and LLMNR over streams and datagrams: the reports do not depend on the pieces of the input, and the
//! printed form of each message has a bounded length.

use flowgauge::protocols::dns::{DnsParser, Item, LlmnrParser, MdnsParser, Message, NAME_LEN_MAX};
use flowgauge::session::{MessageMeta, Protocol};

use super::dialogue::{Expectations, Input, Line, json, play, run_all_variants};
use super::input::structured;

static DNS: Protocol = Protocol::new("dns").over_streams(&[53], None).over_datagrams(&[53], None);
static MDNS: Protocol = Protocol::new("mdns").over_datagrams(&[5353], None);
static LLMNR: Protocol = Protocol::new("llmnr").over_streams(&[5355], None).over_datagrams(&[5355], None);

flowgauge::protocols! {
    /// The three protocols.
    #[derive(Debug)]
    enum Set;
    /// Messages of the protocols.
    #[derive(Debug)]
    enum Report;
    parsers { Dns: DnsParser = &DNS, Mdns: MdnsParser = &MDNS, Llmnr: LlmnrParser = &LLMNR }
}

fn describe(meta: &MessageMeta, report: Report<'_>) -> Line {
    let (Report::Dns(report) | Report::Mdns(report) | Report::Llmnr(report)) = report;
    let json = json(&report);
    let mut text = format!("{} {json}", meta.from.name());
    let (Message::Query(message) | Message::Response(message)) = report else { return Line::Whole(text) };
    for item in message.items() {
        if let Item::Record(_, record) = &item {
            assert!(record.name.wire_len() <= NAME_LEN_MAX);
            let printed = record.data.to_string();
            assert!(printed.len() <= 64 * record.data.octets().len() + 8 * NAME_LEN_MAX);
            let copy = record.data;
            assert_eq!(copy, record.data);
        }
        text.push_str(&format!("{item:?}"));
    }
    if let Some(edns) = message.edns() {
        text.extend(edns.options().map(|option| option.to_string()));
    }
    text.push_str(&format!("{:?} {}", message.parse_error(), message.rcode()));
    Line::Whole(text)
}

const WORDS: &[&[u8]] = &[
    // For streams: a query and its response.
    b"\0\x1b\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01",
    b"\0\x2b\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\x01a\x07example\0\0\x01\0\x01\xc0\x0c\
      \0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\0\x01",
    // For datagrams: the same.
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01",
    b"\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0\x01a\x07example\0\0\x01\0\x01\xc0\x0c\
      \0\x01\0\x01\0\0\0\x3c\0\x04\x0a\0\0\x01",
    // Headers of messages, and names.
    b"\x12\x34\x81\x80\0\0\0\x01\0\0\0\0",
    b"\0\x1b",
    b"\xc0\x0c",
    b"\x01a\0",
    b"\0\0\x29\x10\0\0\0\x80\0\0\0",
    b"\0",
    b"\xff",
];

/// Maximum number of held octets: unanswered questions, and incomplete messages with spare capacity.
const HELD_MAX: u64 = 1 << 20;

pub fn run(data: &[u8]) {
    let Some(input) = structured::<Input<'_>>(data) else { return };
    let port = [53, 5353, 5355, 53][usize::from(input.choice >> 6)];
    let terms = || Expectations::<Set>::tcp(port, WORDS, describe, HELD_MAX);
    if input.choice & 0x20 == 0 {
        run_all_variants(data, terms);
    } else {
        play(&terms().udp(), &input.steps, usize::MAX);
        play(&terms().udp().with_limits(input.choice), &input.steps, usize::MAX);
    }
}
