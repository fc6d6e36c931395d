//! Decoding and encoding of data records of IPFIX and NetFlow.
//!
//! The messages have 1000 records, and all contenders read the same values of each of them. In the row `encode`,
//! flowgauge converts flow records to messages, and assigns them to templates and sets; netflow_parser serializes
//! messages whose sets and values are complete.

use std::hint::black_box;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use flowgauge::base::{Application, ApplicationName, Evidence};
use flowgauge::ipfix::collector::{Collector, CollectorConfig};
use flowgauge::ipfix::{Exporter, ExporterConfig, Transport};
use flowgauge::{FlowRecord, Timestamp};
use netflow_parser::{NetflowPacket, NetflowParser};

use super::{FLOWGAUGE, MakeRow, NETFLOW_PARSER};
use crate::cases::flow_records::{self, RECORD_COUNT};
use crate::gopacket::Gopacket;
use crate::interleave::{Contender, Row};
use crate::messages::{NetflowHeader, exported, set};
use crate::values::{Values, of_packet};

pub(super) fn rows() -> Vec<MakeRow> {
    let decode = |id: &str, messages: fn() -> Vec<Vec<u8>>| -> MakeRow {
        let make = move |_: Option<&Gopacket>| decoding(messages());
        (format!("codec/{id}/decode"), Box::new(make))
    };
    vec![
        ("codec/ipfix/encode".to_owned(), Box::new(|_| encoding())),
        decode("ipfix", || exported(&flow_records(), ExporterConfig::default())),
        decode("netflow9", netflow9),
        decode("netflow5", netflow5),
    ]
}

/// Returns biflows of TCP between IPv4 addresses with all fields that a tracker knows.
fn flow_records() -> Vec<FlowRecord> {
    // Without it, the name would be empty, and netflow_parser does not read empty texts.
    let name = ApplicationName::new("https").expect("a valid name");
    let application = Some(Application { name, evidence: Evidence::Port });
    let mut records = flow_records::flow_records();
    records.iter_mut().for_each(|record| record.application = application);
    records
}

fn header(record_count: u16) -> NetflowHeader {
    NetflowHeader { record_count, uptime_ms: 3_600_000, unix_seconds: 1_700_000_000, sequence_number: 0 }
}

/// Number of records in a message of NetFlow: the maximum of version 5.
const NETFLOW_MESSAGE_RECORD_COUNT: usize = 30;

fn netflow5() -> Vec<Vec<u8>> {
    let record = |index: u16| {
        let source = Ipv4Addr::from(0x0a00_0000 + u32::from(index)).octets();
        let interfaces = [0, 3, 0, 4];
        let numbers = [10, 6860, 90_000 + u32::from(index), 99_000].map(u32::to_be_bytes).concat();
        let ports = [1024 + index, 443].map(u16::to_be_bytes).concat();
        let next_hop = [0; 4];
        [&source[..], &[192, 0, 2, 1], &next_hop, &interfaces, &numbers, &ports, &[0, 0x1b, 6, 0], &[0; 8]]
            .concat()
    };
    let records: Vec<_> = (0..RECORD_COUNT).map(record).collect();
    let messages = records.chunks(NETFLOW_MESSAGE_RECORD_COUNT);
    messages.map(|records| header(records.len() as u16).netflow5(&records.concat())).collect()
}

/// The fields of version 5 that describe the flow; the template is in the first message.
fn netflow9() -> Vec<Vec<u8>> {
    const TEMPLATE_ID: u16 = 256;
    let fields =
        [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (6, 1), (5, 1), (10, 2), (2, 4), (1, 4), (22, 4), (21, 4)];
    let mut template = [TEMPLATE_ID, fields.len() as u16].map(u16::to_be_bytes).concat();
    template.extend(fields.into_iter().flat_map(|(id, len)| [id, len].map(u16::to_be_bytes).concat()));
    let record = |index: u16| {
        let source = Ipv4Addr::from(0x0a00_0000 + u32::from(index)).octets();
        let ports = [1024 + index, 443].map(u16::to_be_bytes).concat();
        let numbers = [10, 6860, 90_000 + u32::from(index), 99_000].map(u32::to_be_bytes).concat();
        [&source[..], &[192, 0, 2, 1], &ports, &[6, 0x1b, 0], &[0, 3], &numbers].concat()
    };
    let records: Vec<_> = (0..RECORD_COUNT).map(record).collect();
    let mut sets = set(0, &template);
    let mut messages = Vec::new();
    for records in records.chunks(NETFLOW_MESSAGE_RECORD_COUNT) {
        sets.extend(set(TEMPLATE_ID, &records.concat()));
        let record_count = records.len() + usize::from(messages.is_empty());
        messages.push(header(record_count as u16).netflow9(&sets));
        sets.clear();
    }
    messages
}

/// A library that decodes messages.
trait Decoder {
    /// Passes the values of each record in the messages to `each`.
    fn decode(&mut self, messages: &[Vec<u8>], each: impl FnMut(Values));
}

impl Decoder for Collector {
    #[inline]
    fn decode(&mut self, messages: &[Vec<u8>], mut each: impl FnMut(Values)) {
        let exporter = SocketAddr::from(([192, 0, 2, 2], 4739));
        for message in messages {
            self.message(exporter, black_box(message), Timestamp::ZERO, |one| {
                if let Some(record) = one.record() {
                    each(Values::of_record(record));
                }
            });
        }
    }
}

impl Decoder for NetflowParser {
    #[inline]
    fn decode(&mut self, messages: &[Vec<u8>], mut each: impl FnMut(Values)) {
        for message in messages {
            let result = self.parse_bytes(black_box(message));
            result.packets.iter().for_each(|packet| of_packet(packet, &mut each));
        }
    }
}

/// Messages, and the number and the sum of the values that a decoder read from them.
struct Decoding<D> {
    messages: Vec<Vec<u8>>,
    decoder: D,
    record_count: u64,
    sum: u64,
}

impl<D: Decoder> Decoding<D> {
    fn new(messages: Vec<Vec<u8>>, decoder: D) -> Self {
        Self { messages, decoder, record_count: 0, sum: 0 }
    }

    /// Returns the values of all records.
    fn values(&mut self) -> Vec<Values> {
        let mut found = Vec::new();
        self.decoder.decode(&self.messages, |values| found.push(values));
        found
    }

    fn step(&mut self) {
        let (mut record_count, mut sum) = (0, 0_u64);
        self.decoder.decode(&self.messages, |values| {
            record_count += 1;
            sum = sum.wrapping_add(values.sum());
        });
        self.record_count += record_count;
        self.sum = self.sum.wrapping_add(sum);
    }

    /// Checks that the decoder read `expected` in each step.
    fn check(&self, expected: &[Values], done: u64) {
        let sum = expected.iter().fold(0, |sum: u64, values| sum.wrapping_add(values.sum()));
        assert_eq!(self.record_count, done * expected.len() as u64);
        assert_eq!(self.sum, sum.wrapping_mul(done));
    }
}

fn decoding(messages: Vec<Vec<u8>>) -> Row {
    let collector = Collector::new(CollectorConfig::default()).expect("a valid configuration");
    let mut ours = Decoding::new(messages.clone(), collector);
    let mut theirs = Decoding::new(messages, NetflowParser::default());
    let (expected, found) = (ours.values(), theirs.values());
    assert_eq!(expected.len(), usize::from(RECORD_COUNT));
    assert_eq!(expected, found);
    let ours = Contender::new(FLOWGAUGE, ours, Decoding::step, move |ours, done| ours.check(&expected, done));
    let theirs = Contender::new(NETFLOW_PARSER, theirs, Decoding::step, move |theirs, done| {
        theirs.check(&found, done)
    });
    Row { per_step_count: RECORD_COUNT.into(), contenders: vec![ours, theirs] }
}

/// Transport that counts the octets of the messages.
struct Counting(u64);

impl Transport for Counting {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0 += black_box(message).len() as u64;
        Ok(())
    }
}

fn encoding() -> Row {
    let records = flow_records();
    let mut config = ExporterConfig::default();
    let messages = exported(&records, config);
    // netflow_parser serializes the template in each step.
    config.template_refresh_message_count = messages.len() as u32;
    let octet_count: usize = messages.iter().map(Vec::len).sum();
    let mut parser = NetflowParser::default();
    let packets: Vec<_> = messages.iter().flat_map(|message| parser.parse_bytes(message).packets).collect();
    let serialized: Vec<_> = packets.iter().map(serialize).collect();
    assert_eq!(messages, serialized);

    let exporter = Exporter::new(config, Counting(0)).expect("a valid configuration");
    let step = |(exporter, records): &mut (Exporter<Counting>, Vec<FlowRecord>)| {
        for record in records {
            exporter.export(black_box(record), record.end).expect("a transport without errors");
        }
        exporter.flush().expect("a transport without errors");
    };
    let ours = Contender::new(FLOWGAUGE, (exporter, records), step, move |(exporter, _), done| {
        assert_eq!(exporter.transport().0, done * octet_count as u64);
    });
    let step = |(packets, octet_count): &mut (Vec<NetflowPacket>, u64)| {
        for packet in packets {
            *octet_count += black_box(serialize(black_box(packet))).len() as u64;
        }
    };
    let theirs = Contender::new(NETFLOW_PARSER, (packets, 0), step, move |(_, found), done| {
        assert_eq!(*found, done * octet_count as u64);
    });
    Row { per_step_count: RECORD_COUNT.into(), contenders: vec![ours, theirs] }
}

fn serialize(packet: &NetflowPacket) -> Vec<u8> {
    let NetflowPacket::IPFix(message) = packet else { panic!("a message of IPFIX") };
    message.to_be_bytes().expect("a message that was parsed")
}
