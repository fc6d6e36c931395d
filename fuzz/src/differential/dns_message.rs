//! DNS messages read by the parser and by `hickory-proto`: messages that hickory accepts have the same header,
//! questions and records.

use flowgauge::protocols::dns::{
    DnsMessage, Item, Name, ParseError, RecordData, RecordType, Section, Value, Variant,
};
use hickory_proto::op::{Message, MessageType};
use hickory_proto::rr::{Name as TheirName, RData, Record};

const TSIG: u16 = 250;

/// Compared fields of a record.
#[derive(Debug, PartialEq)]
struct Facts {
    name: Vec<Vec<u8>>,
    record_type: u16,
    class: u16,
    ttl: u32,
    data: Option<Vec<Part>>,
}

/// Parts of the data of the compared types: SOA, MX, SRV, TXT, addresses, and types with a single name.
#[derive(Debug, PartialEq)]
enum Part {
    Name(Vec<Vec<u8>>),
    Number(u64),
    Octets(Vec<u8>),
}

fn labels(name: &Name<'_>) -> Vec<Vec<u8>> {
    name.labels().map(<[u8]>::to_vec).collect()
}

fn their_labels(name: &TheirName) -> Vec<Vec<u8>> {
    name.iter().map(<[u8]>::to_vec).collect()
}

fn is_compared(record_type: u16) -> bool {
    matches!(record_type, 1 | 2 | 5 | 6 | 12 | 15 | 16 | 28 | 33)
}

fn our_data(record_type: u16, data: &RecordData<'_>) -> Option<Vec<Part>> {
    if !is_compared(record_type) || data.is_empty() {
        return None;
    }
    let values = data.values()?;
    let part = |value: Value<'_>| match value {
        Value::Name(name) => Part::Name(labels(&name)),
        Value::Number(number) => Part::Number(number),
        Value::Text(text) => Part::Octets(text.to_vec()),
        Value::Address(std::net::IpAddr::V4(address)) => Part::Octets(address.octets().to_vec()),
        Value::Address(std::net::IpAddr::V6(address)) => Part::Octets(address.octets().to_vec()),
        other => panic!("unexpected {other:?} in record type {record_type}"),
    };
    Some(values.map(part).collect())
}

fn their_data(data: &RData) -> Option<Vec<Part>> {
    let name = |name: &TheirName| Part::Name(their_labels(name));
    Some(match data {
        RData::A(address) => vec![Part::Octets(address.0.octets().to_vec())],
        RData::AAAA(address) => vec![Part::Octets(address.0.octets().to_vec())],
        RData::NS(it) => vec![name(&it.0)],
        RData::CNAME(it) => vec![name(&it.0)],
        RData::PTR(it) => vec![name(&it.0)],
        RData::MX(it) => vec![Part::Number(it.preference.into()), name(&it.exchange)],
        RData::SRV(it) => {
            let numbers = [it.priority, it.weight, it.port].map(|number| Part::Number(number.into()));
            numbers.into_iter().chain([name(&it.target)]).collect()
        }
        RData::SOA(it) => {
            let signed = [it.refresh, it.retry, it.expire].map(|number| Part::Number((number as u32).into()));
            let names = [name(&it.mname), name(&it.rname), Part::Number(it.serial.into())];
            names.into_iter().chain(signed).chain([Part::Number(it.minimum.into())]).collect()
        }
        RData::TXT(it) => it.txt_data.iter().map(|text| Part::Octets(text.to_vec())).collect(),
        _ => return None,
    })
}

fn their_facts(record: &Record) -> Facts {
    let record_type = u16::from(record.record_type());
    let data = their_data(&record.data).filter(|_| is_compared(record_type));
    let (class, ttl) = (u16::from(record.dns_class), record.ttl);
    Facts { name: their_labels(&record.name), record_type, class, ttl, data }
}

/// Length of the header of a message in octets.
const HEADER_LEN: u8 = 12;

pub fn run(data: &[u8]) {
    let Ok(theirs) = Message::from_vec(data) else { return };
    let ours = DnsMessage::read(data, data.len(), Variant::Dns).expect("a header, because hickory found one");
    // By design: a pointer refers to labels, which begin after the header.
    if matches!(ours.parse_error(), Some(ParseError::BadPointer | ParseError::TooManyPointers)) {
        return;
    }
    assert_eq!(ours.parse_error(), None, "hickory found no error: {theirs:?}");
    let flags = ours.header.flags;
    let metadata = &theirs.metadata;
    assert_eq!(
        (ours.header.id, flags.is_response(), flags.opcode().0, flags.is_authoritative()),
        (
            metadata.id,
            metadata.message_type == MessageType::Response,
            u8::from(metadata.op_code),
            metadata.authoritative,
        )
    );
    assert_eq!(
        (flags.is_truncated(), flags.is_recursion_desired(), flags.is_recursion_available()),
        (metadata.truncation, metadata.recursion_desired, metadata.recursion_available)
    );
    let questions: Vec<_> = ours
        .questions()
        .map(|question| (labels(&question.name), question.record_type.0, question.class.0))
        .collect();
    let expected: Vec<_> = theirs
        .queries
        .iter()
        .map(|query| (their_labels(&query.name), u16::from(query.query_type), u16::from(query.query_class)))
        .collect();
    assert_eq!(questions, expected);

    let mut records = Vec::new();
    for item in ours.items() {
        if let Item::Record(section, record) = item {
            let record_type = record.record_type.0;
            // hickory stores OPT separately, and sometimes TSIG too.
            let is_opt = section == Section::Additional && record.record_type == RecordType::OPT;
            if !is_opt && record_type != TSIG {
                let data = our_data(record_type, &record.data);
                let (name, class) = (labels(&record.name), record.class.0);
                records.push(Facts { name, record_type, class, ttl: record.ttl, data });
            }
        }
    }
    let all = theirs.answers.iter().chain(&theirs.authorities).chain(&theirs.additionals);
    let mut expected: Vec<_> = all.map(their_facts).filter(|record| record.record_type != TSIG).collect();
    // The same design applies to names in the data of a record.
    if data.windows(2).any(|octets| octets[0] == 0xc0 && octets[1] < HEADER_LEN) {
        let pairs = expected.iter_mut().zip(&records);
        pairs.filter(|(_, record)| record.data.is_none()).for_each(|(expected, _)| expected.data = None);
    }
    assert_eq!(records, expected);
}
