//! NetBIOS name service: names of hosts and groups, with their owners.
//!
//! A row is reported with the response ([`Exchange`]). Queries and registrations are mostly sent to all hosts, and answered by one of
//! them, or by none: the answer is then a row of another flow, which lacks its request.
//!
//! Standards: RFC 1001, 1002 section 4.2.

use std::time::Duration;

use super::dhcp::digits;
use super::recognizers::octets::datagram_in_role;
use crate::base::fnv1a;
use crate::checkpoint::state;
use crate::codec::ber::Value;
use crate::codec::{ReadError, Reader};
use crate::session::framing::{AfterPdu, Pdu};
use crate::session::kit::{
    Kept, KeptItem, KeptList, Malformed, PduParser, Reply, Rows, Wire, exchange, names, open, wire,
};
use crate::session::{DatagramOpening, Protocol, Role, Verdict};

/// Protocol `nbns`, recognized by a DNS message whose first name has NetBIOS encoding.
pub static PROTOCOL: Protocol = Protocol::new("nbns")
    .in_zeek("dns")
    .over_datagrams(&[137], Some(probe))
    .with_kinds(&["nbns"])
    .with_limits("16 open exchanges, lists of 512 octets")
    .with_standards("RFC 1001, 1002 section 4.2");

fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let (Some(counts), Some([0x20, name @ ..])) = (opening.bytes.get(4..12), opening.bytes.get(12..)) else {
        return Verdict::No;
    };
    let is_small = matches!(counts, [0, 0..=1, 0, _, 0, _, 0, 0..=1]);
    let name = name.get(..32).unwrap_or(name);
    let is_encoded = !name.is_empty() && name.iter().all(|octet| matches!(octet, b'A'..=b'P'));
    // On its port, one of the two is enough.
    let is_on_port = opening.has_port(137);
    let is_match = (is_small && is_encoded) || (is_on_port && (is_small || is_encoded));
    datagram_in_role(opening, is_match, opening.bytes.get(2).map(|flags| flags & 0x80 != 0))
}

names! {
    /// Operation of a message.
    pub struct Operation: u8 {
        0 => "query", 5 => "registration", 6 => "release", 7 => "wait", 8 => "refresh", 9 => "refresh",
        15 => "multihomed_registration",
    }
}

names! {
    /// What a name stands for, by its last octet.
    pub struct NameKind: u8 {
        0x00 => "workstation", 0x01 => "master_browser_list", 0x03 => "messenger", 0x06 => "ras_server",
        0x1b => "domain_master_browser", 0x1c => "domain_controllers", 0x1d => "master_browser",
        0x1e => "browser_elections", 0x1f => "net_dde", 0x20 => "file_server", 0x21 => "ras_client",
    }
}

names! {
    /// What is asked for.
    pub struct RecordType: u16 { 32 => "nb", 33 => "nbstat" }
}

names! {
    /// Result of a request.
    pub struct ResultCode: u8 {
        0 => "success", 1 => "format_error", 2 => "server_failure", 3 => "name_error", 4 => "unsupported",
        5 => "refused", 6 => "name_active", 7 => "name_conflict",
    }
}

exchange! {
    /// A request with its response.
    "nbns" pub struct Exchange {
        /// Operation.
        pub operation: Option<Operation>,
        /// Number by which the response is matched.
        pub identifier: u16,
        /// Name that is asked for, or registered, without the spaces that fill it.
        pub queried_name: Option<Kept<16>>,
        /// What the name stands for.
        pub name_kind: Option<NameKind>,
        /// What is asked for: an address or the names of a host.
        pub record_type: Option<RecordType>,
        /// True if the request is sent to all hosts.
        pub is_broadcast: bool [sparse],
        /// Result that the response states.
        pub result: Option<ResultCode>,
        /// True if the name is that of a group.
        pub is_group: Option<bool>,
        /// Addresses of the name: of the response, or those that a request registers.
        pub owners: KeptList<512> [sparse],
        /// Time for which the name is valid; zero without a limit.
        pub validity: Option<Duration>,
        /// Names of a host with the numbers of their kinds, such as `HOST<20>`, in a response to a query for them.
        pub host_names: KeptList<512> [sparse],
        /// Hardware address of the host.
        pub hardware_address: Option<Kept<17>>,
    }
}

open! {
    /// Rows of the name service.
    pub(crate) enum Row { 0 = Exchange }
}

wire! {
    /// RFC 1002 section 4.2.1.1.
    struct Head { identifier: u16, flags: u16, question_count: u16, answer_count: u16, authority_count: u16, additional_count: u16 }
}

/// Parser of the name service.
#[derive(Debug, Default)]
pub(crate) struct Nbns;

state! { struct Nbns {} }

impl PduParser for Nbns {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let mut reader = Reader::new(pdu.bytes);
        let head = Head::read(&mut reader)?;
        let operation = (head.flags >> 11 & 0xf) as u8;
        let key = u64::from(head.identifier);
        let message = Message::read(&mut reader, &head)?;
        let common = |row: &mut Exchange| {
            row.identifier = head.identifier;
            let is_answer = head.flags & 0x8000 != 0;
            if is_answer {
                row.result = Some(ResultCode((head.flags & 0xf) as u8));
            }
            // A wait is an answer to another operation.
            if !is_answer || row.operation.is_none() {
                row.operation = Some(Operation(operation));
            }
            message.add_to(row);
        };
        if head.flags & 0x8000 == 0 {
            rows.acts_as(Role::Client);
            rows.request_of(key, fnv1a(pdu.bytes) as u32, |row: &mut Exchange| {
                row.is_broadcast = head.flags & 0x10 != 0;
                common(row);
            });
        } else {
            rows.acts_as(Role::Server);
            rows.response(key, |row: &mut Exchange| {
                common(row);
                if operation == 7 { Reply::More } else { Reply::Last }
            });
        }
        Ok(AfterPdu::More)
    }
}

/// What a message states about a name.
struct Message<'p> {
    name: Option<([u8; 15], u8)>,
    record_type: Option<u16>,
    record: Option<(Duration, &'p [u8])>,
}

impl<'p> Message<'p> {
    fn read(reader: &mut Reader<'p>, head: &Head) -> Result<Self, ReadError> {
        let mut message = Self { name: None, record_type: None, record: None };
        if head.question_count > 0 {
            message.name = name(reader)?;
            message.record_type = Some(reader.be()?);
            reader.skip(2)?;
        }
        if head.answer_count > 0 || head.additional_count > 0 {
            let name = name(reader)?;
            message.name = message.name.or(name);
            let record_type: u16 = reader.be()?;
            message.record_type.get_or_insert(record_type);
            reader.skip(2)?;
            let (seconds, len): (u32, u16) = (reader.be()?, reader.be()?);
            let len = usize::from(len).min(reader.remaining_len());
            message.record = Some((Duration::from_secs(seconds.into()), reader.bytes(len)?));
        }
        Ok(message)
    }

    fn add_to(&self, row: &mut Exchange) {
        if let Some((name, kind)) = self.name.filter(|_| row.queried_name.is_none()) {
            row.queried_name = Some(Kept::new(name.trim_ascii_end()));
            row.name_kind = Some(NameKind(kind));
        }
        row.record_type = self.record_type.map(RecordType).or(row.record_type);
        let Some((validity, data)) = self.record else { return };
        row.validity = Some(validity);
        if self.record_type == Some(33) {
            row.host(data);
            return;
        }
        // Flags, and an address, for each owner.
        let (owners, _) = data.as_chunks::<6>();
        row.is_group = owners.first().map(|[flags, ..]| flags & 0x80 != 0);
        row.owners = KeptList::of(
            owners.iter().map(|[_, _, address @ ..]| Value { tag: KeptItem::ADDRESS, content: address }),
        );
    }
}

impl Exchange {
    /// Reads the names of a host and its hardware address (section 4.2.18).
    fn host(&mut self, data: &[u8]) {
        let mut reader = Reader::new(data);
        let Ok([count]) = reader.array() else { return };
        for _ in 0..count {
            let Ok(entry) = reader.array::<18>() else { return };
            let [name @ .., kind, _, _] = entry;
            let name = String::from_utf8_lossy(name.trim_ascii_end());
            self.host_names.push(&format!("{name}<{kind:02x}>"));
        }
        self.hardware_address = reader.bytes(6).ok().map(|address| digits(address, ":"));
    }
}

/// Reads a name: a pointer, or a label of 32 letters with four bits each (RFC 1001 section 14.1), and the labels of a scope. Returns the
/// name and its kind; `None` for a pointer.
pub(super) fn name(reader: &mut Reader<'_>) -> Result<Option<([u8; 15], u8)>, ReadError> {
    let [len] = reader.array()?;
    if len >= 0xC0 {
        reader.skip(1)?;
        return Ok(None);
    }
    let label = reader.bytes(len.into())?;
    loop {
        match reader.array()? {
            [0] => break,
            [0xC0..=0xFF] => {
                reader.skip(1)?;
                break;
            }
            [len] => reader.skip(len.into())?,
        }
    }
    let (pairs, _) = label.as_chunks();
    let mut octets = [b' '; 16];
    for (octet, [high, low]) in octets.iter_mut().zip(pairs) {
        *octet = high.wrapping_sub(b'A') << 4 | low.wrapping_sub(b'A') & 0xf;
    }
    let [name @ .., kind] = octets;
    Ok(Some((name, kind)))
}

/// Encodes a name for tests.
#[cfg(test)]
pub(super) fn encoded(name: &str, kind: u8) -> Vec<u8> {
    let mut octets = format!("{name:15}").into_bytes();
    octets.push(kind);
    let letters = octets.iter().flat_map(|octet| [b'A' + (octet >> 4), b'A' + (octet & 0xf)]);
    [vec![32], letters.collect(), vec![0]].concat()
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, datagram};
    use super::PROTOCOL;

    const NAME_QUERY: &[u8] = b"\x12\x34\x01\x10\x00\x01\x00\x00\x00\x00\x00\x00\
        \x20FHEPFCELEHFCEPFFFACACACACACACABL\x00\x00\x20\x00\x01";

    pub(in super::super) const SAMPLES: &[Sample] = &[datagram(&PROTOCOL, 137, NAME_QUERY)];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[datagram(
        &PROTOCOL,
        53,
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03com\x00\x00\x01\x00\x01",
    )];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    fn head(identifier: u8, flags: u16, counts: [u8; 2]) -> Vec<u8> {
        let [high, low] = flags.to_be_bytes();
        vec![0, identifier, high, low, 0, counts[0], 0, counts[1], 0, 0, 0, 0]
    }

    fn query(identifier: u8, flags: u16, name: &str, kind: u8, record_type: u8) -> Vec<u8> {
        [head(identifier, flags, [1, 0]), encoded(name, kind), vec![0, record_type, 0, 1]].concat()
    }

    fn record(name: &[u8], record_type: u8, data: &[u8]) -> Vec<u8> {
        [name, &[0, record_type, 0, 1, 0, 4, 0x93, 0xE0, 0, data.len() as u8], data].concat()
    }

    #[test]
    fn cases_of_names() {
        let answer = |identifier, flags, name: &[u8], data: &[u8]| {
            [head(identifier, flags, [0, 1]), record(name, 32, data)].concat()
        };
        let (files, desk) = (encoded("FILES", 0x20), encoded("DESK-7", 0));
        let mut registration = query(3, 0x2910, "DESK-7", 0, 32);
        registration[11] = 1;
        registration.extend(record(&[0xC0, 12], 32, &[0x80, 0, 192, 0, 2, 7]));
        let names = [
            &[2][..],
            b"FILES          \x20\x04\0",
            b"CORP           \0\x84\0",
            &[2, 0, 0, 0, 0, 9],
            &[0; 40],
        ]
        .concat();
        let status = [head(4, 0x8400, [0, 1]), record(&encoded("*", 0), 33, &names)].concat();
        let cases = [
            Case {
                name: "the addresses of a server, and a name that nobody has",
                turns: vec![
                    (CLIENT, query(1, 0x0100, "FILES", 0x20, 32)),
                    (SERVER, answer(1, 0x8580, &files, &[0, 0, 192, 0, 2, 9, 0, 0, 198, 51, 100, 9])),
                    (CLIENT, query(2, 0x0110, "NOBODY", 0x1C, 32)),
                    (CLIENT, query(2, 0x0110, "NOBODY", 0x1C, 32)),
                ],
                rows: &[
                    "nbns operation=query identifier=1 queried_name=FILES name_kind=file_server record_type=nb result=success \
                    owners=List([Text(\"192.0.2.9\"), Text(\"198.51.100.9\")]) validity=300000s response_time=10ms",
                    "nbns operation=query identifier=2 queried_name=NOBODY name_kind=domain_controllers record_type=nb \
                    is_broadcast=Bool(true) retransmission_count=1 lacks=response",
                ],
            },
            Case {
                name: "a registration that is refused after a wait",
                turns: vec![
                    (CLIENT, registration),
                    (SERVER, answer(3, 0xBC00, &desk, &[0x29, 0x10])),
                    (SERVER, answer(3, 0xAD86, &desk, &[0, 0, 192, 0, 2, 9])),
                ],
                rows: &[
                    "nbns operation=registration identifier=3 queried_name=DESK-7 name_kind=workstation record_type=nb \
                    is_broadcast=Bool(true) result=name_active owners=List([Text(\"192.0.2.9\")]) validity=300000s \
                    response_time=10ms",
                ],
            },
            Case {
                name: "the names of a host",
                turns: vec![(CLIENT, query(4, 0, "*", 0, 33)), (SERVER, status)],
                rows: &[
                    "nbns operation=query identifier=4 queried_name=* name_kind=workstation record_type=nbstat result=success \
                    validity=300000s host_names=List([Text(\"FILES<20>\"), Text(\"CORP<00>\")]) \
                    hardware_address=02:00:00:00:00:09 response_time=10ms",
                ],
            },
        ];
        check(&KitEntry::of::<Nbns>(), &cases);
    }
}
