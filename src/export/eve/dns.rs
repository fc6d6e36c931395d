//! Events of type `dns`.

use std::borrow::Cow;

use super::address::Address;
use crate::export::presentation::character_strings;
use crate::protocols::dns::{Flags, Rcode, RecordType};
use crate::row::{Displayed, Group, List, ListOf, Name};
use crate::transaction;

/// A query of DNS or its response in an event, behind its [`Head`](super::Head).
#[derive(Clone, Debug)]
pub struct Dns<'a> {
    message: Message<'a>,
}

/// The object `dns`.
#[derive(Clone, Debug)]
struct Message<'a> {
    dns: &'a transaction::Dns,
    flags: Option<Flags>,
    is_response: bool,
    answers: Vec<Record<'a>>,
    authorities: Vec<Record<'a>>,
}

/// The question.
#[derive(Clone, Copy, Debug)]
struct Query<'a> {
    name: &'a str,
    kind: Option<RecordType>,
}

/// A record; of TXT, each character string is one.
#[derive(Clone, Debug)]
struct Record<'a> {
    name: &'a str,
    kind: RecordType,
    ttl: u32,
    data: Data<'a>,
}

/// A record of the authority section, which has fewer keys.
#[derive(Clone, Copy, Debug)]
struct Authority<'a>(&'a Record<'a>);

/// Data of a record.
#[derive(Clone, Debug)]
enum Data<'a> {
    Text(Cow<'a, str>),
    Soa(Soa<'a>),
    Sshfp(Sshfp<'a>),
    Srv(Srv<'a>),
    /// Of a type without a key.
    Other,
}

/// Data of a record SOA, as words of the presentation format.
#[derive(Clone, Copy, Debug)]
struct Soa<'a> {
    mname: &'a str,
    rname: &'a str,
    serial: Option<u32>,
    refresh: Option<u32>,
    retry: Option<u32>,
    expire: Option<u32>,
    minimum: Option<u32>,
}

/// Data of a record SSHFP.
#[derive(Clone, Copy, Debug)]
struct Sshfp<'a> {
    algorithm: Option<u8>,
    kind: Option<u8>,
    digits: &'a str,
}

/// Data of a record SRV.
#[derive(Clone, Copy, Debug)]
struct Srv<'a> {
    priority: Option<u16>,
    weight: Option<u16>,
    port: Option<u16>,
    name: &'a str,
}

/// Data of the answers by type.
#[derive(Clone, Copy, Debug)]
struct Grouped<'a>(&'a [Record<'a>]);

mod types {
    //! Numbers of types of records.

    pub(super) const NS: u16 = 2;
    pub(super) const CNAME: u16 = 5;
    pub(super) const SOA: u16 = 6;
    pub(super) const PTR: u16 = 12;
    pub(super) const MX: u16 = 15;
    pub(super) const TXT: u16 = 16;
    pub(super) const SRV: u16 = 33;
    pub(super) const SSHFP: u16 = 44;
}

impl<'a> Dns<'a> {
    /// Returns the event of a query.
    pub(super) fn request(dns: &'a transaction::Dns) -> Self {
        let flags = dns.query_flags;
        let (answers, authorities) = (Vec::new(), Vec::new());
        Self { message: Message { dns, flags, is_response: false, answers, authorities } }
    }

    /// Returns the event of a response.
    pub(super) fn response(dns: &'a transaction::Dns) -> Self {
        let (mut answers, mut authorities) = (Vec::new(), Vec::new());
        let of_answers =
            dns.answer_names.iter().zip(&dns.answer_types).zip(dns.ttls.iter().zip(&dns.answers));
        for ((name, kind), (ttl, data)) in of_answers {
            add(&mut answers, (name, *kind, *ttl), data);
        }
        for record in &dns.authorities {
            add(&mut authorities, (&record.name, record.record_type, record.ttl), &record.data);
        }
        Self { message: Message { dns, flags: dns.response_flags, is_response: true, answers, authorities } }
    }
}

/// Adds a record, or several of a record TXT. `data` is in presentation format.
fn add<'a>(out: &mut Vec<Record<'a>>, (name, kind, ttl): (&'a str, RecordType, u32), data: &'a str) {
    let mut words = data.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let parsed = match kind.0 {
        _ if data.starts_with("\\#") => Data::Other,
        types::TXT => {
            let texts = character_strings(data).into_iter();
            return out.extend(texts.map(|text| Record { name, kind, ttl, data: Data::Text(text.into()) }));
        }
        types::MX => Data::Text(data.split_once(' ').map_or(data, |(_, name)| name).into()),
        types::SOA => Data::Soa(Soa {
            mname: word(),
            rname: word(),
            serial: word().parse().ok(),
            refresh: word().parse().ok(),
            retry: word().parse().ok(),
            expire: word().parse().ok(),
            minimum: word().parse().ok(),
        }),
        types::SSHFP => {
            Data::Sshfp(Sshfp { algorithm: word().parse().ok(), kind: word().parse().ok(), digits: word() })
        }
        types::SRV => Data::Srv(Srv {
            priority: word().parse().ok(),
            weight: word().parse().ok(),
            port: word().parse().ok(),
            name: word(),
        }),
        types::NS | types::CNAME | types::PTR => Data::Text(data.into()),
        _ if kind == RecordType::A => Data::Text(data.into()),
        _ if kind == RecordType::AAAA => {
            Data::Text(data.parse().map_or(Cow::from(data), |address| Address(address).to_string().into()))
        }
        _ => Data::Other,
    };
    out.push(Record { name, kind, ttl, data: parsed });
}

/// Returns EVE's name of a type of records.
fn type_name(kind: RecordType) -> Cow<'static, str> {
    kind.name().map_or_else(|| kind.0.to_string().into(), Into::into)
}

/// Returns EVE's name of a response code.
fn rcode_name(rcode: Rcode) -> String {
    rcode.name().map_or_else(|| rcode.0.to_string(), str::to_ascii_uppercase)
}

impl<'a> Message<'a> {
    fn has(&self, flag: u16) -> bool {
        self.flags.is_some_and(|flags| flags.0 & flag != 0)
    }

    fn queries(&self) -> List<impl Iterator<Item = Group<Query<'a>>> + Clone + use<'a>> {
        let dns = self.dns;
        List(dns.query.iter().map(|name| Group(Query { name, kind: dns.query_type })))
    }
}

impl<'a> Record<'a> {
    const fn text(&self) -> Option<&Cow<'a, str>> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    const fn soa(&self) -> Option<Group<Soa<'a>>> {
        match &self.data {
            Data::Soa(soa) => Some(Group(*soa)),
            _ => None,
        }
    }

    const fn sshfp(&self) -> Option<Group<Sshfp<'a>>> {
        match &self.data {
            Data::Sshfp(sshfp) => Some(Group(*sshfp)),
            _ => None,
        }
    }

    const fn srv(&self) -> Option<Group<Srv<'a>>> {
        match &self.data {
            Data::Srv(srv) => Some(Group(*srv)),
            _ => None,
        }
    }
}

impl Sshfp<'_> {
    /// Returns the digits in pairs with colons.
    fn fingerprint(&self) -> String {
        let mut out = String::new();
        for (index, digit) in self.digits.chars().enumerate() {
            if index > 0 && index % 2 == 0 {
                out.push(':');
            }
            out.push(digit.to_ascii_lowercase());
        }
        out
    }
}

impl<'a> Grouped<'a> {
    /// Returns the texts of the answers of one type.
    fn texts(self, kind: u16) -> List<impl Iterator<Item = Displayed<&'a Cow<'a, str>>> + Clone + use<'a>> {
        let of_kind = self.0.iter().filter(move |record| record.kind.0 == kind);
        List(of_kind.filter_map(|record| record.text().map(Displayed)))
    }
}

/// Returns the records of a section as groups.
fn groups<'r>(
    records: &'r [Record<'r>],
) -> List<impl Iterator<Item = Group<&'r Record<'r>>> + Clone + use<'r>> {
    List(records.iter().map(Group))
}

crate::table! {
    /// Messages of DNS, version 3: an event for a query, and one for its response. LLMNR and multicast DNS have none.
    impl['a] "eve.dns" for Dns<'a> as row {
        /// The message.
        "dns": Group<Message<'a>> => Group(&row.message);
    }
}

crate::table! {
    /// A message of DNS.
    impl['a] "eve.dns.dns" for Message<'a> as row {
        /// Always 3.
        "version": u8 = 3;
        /// `request` or `response`.
        "type": Name = Name(if row.is_response { "response" } else { "request" });
        /// `number`: a response has that of its query.
        "tx_id": Option<u64> = row.dns.number;
        /// `id`.
        "id": u16 = row.dns.id;
        /// 16 bits of the header in hexadecimal digits, without leading zeros.
        "flags": Option<String> = row.flags.map(|flags| format!("{:x}", flags.0));
        /// True for a response.
        "qr": bool [sparse] = row.has(0x8000);
        /// Authoritative answer.
        "aa": bool [sparse] = row.has(0x0400);
        /// Truncated.
        "tc": bool [sparse] = row.has(0x0200);
        /// Recursion desired.
        "rd": bool [sparse] = row.has(0x0100);
        /// Recursion available.
        "ra": bool [sparse] = row.has(0x0080);
        /// The reserved bit.
        "z": bool [sparse] = row.has(0x0040);
        /// Number of `opcode`.
        "opcode": Option<u8> = row.flags.map(|flags| flags.opcode().0);
        /// Response code in the header, in upper case; the number as text if it has no name.
        "rcode": Option<String> = row.flags.map(|flags| rcode_name(flags.rcode()));
        /// The first question.
        "queries": ListOf<Group<Query<'a>>> [sparse] => row.queries();
        /// The answer section, at most 256 records.
        "answers": ListOf<Group<Record<'a>>> [sparse] => groups(&row.answers);
        /// Data of the answers by type.
        "grouped": Group<Grouped<'a>> [sparse] => Group(Grouped(&row.answers));
        /// The authority section, at most 32 records. The additional section is not written.
        "authorities": ListOf<Group<Authority<'a>>> [sparse] => List(row.authorities.iter().map(|record| Group(Authority(record))));
    }
}

crate::table! {
    /// A question.
    impl['a] "eve.dns.dns.queries" for Query<'a> as row {
        /// Name of the question.
        "rrname": &'a str = row.name;
        /// Type of the question; the number as text if it has no name.
        "rrtype": Option<Displayed<Cow<'static, str>>> = row.kind.map(|kind| Displayed(type_name(kind)));
    }
}

crate::table! {
    /// A record.
    impl['a] "eve.dns.dns.answers" for Record<'a> as row {
        /// Name to which the record belongs.
        "rrname": &'a str = row.name;
        /// Type; the number as text if it has no name.
        "rrtype": Displayed<Cow<'static, str>> = Displayed(type_name(row.kind));
        /// Time to live in seconds.
        "ttl": u32 = row.ttl;
        /// Data of A, AAAA (not abbreviated), CNAME, NS and PTR; of MX the name; of TXT the text: each character string is a record.
        "rdata": Option<Displayed<Cow<'a, str>>> => row.text().map(Displayed);
        /// Data of SOA.
        "soa": Option<Group<Soa<'a>>> = row.soa();
        /// Data of SSHFP.
        "sshfp": Option<Group<Sshfp<'a>>> = row.sshfp();
        /// Data of SRV.
        "srv": Option<Group<Srv<'a>>> = row.srv();
    }
}

crate::table! {
    /// A record of the authority section.
    impl['a] "eve.dns.dns.authorities" for Authority<'a> as row {
        /// Name to which the record belongs.
        "rrname": &'a str = row.0.name;
        /// Type; the number as text if it has no name.
        "rrtype": Displayed<Cow<'static, str>> = Displayed(type_name(row.0.kind));
        /// Time to live in seconds.
        "ttl": u32 = row.0.ttl;
        /// As in `answers`.
        "rdata": Option<Displayed<Cow<'a, str>>> => row.0.text().map(Displayed);
        /// Data of SOA.
        "soa": Option<Group<Soa<'a>>> = row.0.soa();
    }
}

crate::table! {
    /// Data of a record SOA.
    impl['a] "eve.dns.dns.answers.soa" for Soa<'a> as row {
        /// Name of the primary server.
        "mname": &'a str = row.mname;
        /// Mail address of the administrator, as a name.
        "rname": &'a str = row.rname;
        /// Serial number of the zone.
        "serial": Option<u32> = row.serial;
        /// Refresh interval in seconds.
        "refresh": Option<u32> = row.refresh;
        /// Retry interval in seconds.
        "retry": Option<u32> = row.retry;
        /// Expiry in seconds.
        "expire": Option<u32> = row.expire;
        /// Time to live of negative answers in seconds.
        "minimum": Option<u32> = row.minimum;
    }
}

crate::table! {
    /// Data of a record SSHFP.
    impl['a] "eve.dns.dns.answers.sshfp" for Sshfp<'a> as row {
        /// Fingerprint: pairs of hexadecimal digits with colons.
        "fingerprint": String = row.fingerprint();
        /// Number of the algorithm of the key.
        "algo": Option<u8> = row.algorithm;
        /// Number of the type of the fingerprint.
        "type": Option<u8> = row.kind;
    }
}

crate::table! {
    /// Data of a record SRV.
    impl['a] "eve.dns.dns.answers.srv" for Srv<'a> as row {
        /// Priority.
        "priority": Option<u16> = row.priority;
        /// Weight.
        "weight": Option<u16> = row.weight;
        /// Port.
        "port": Option<u16> = row.port;
        /// Name of the host.
        "name": &'a str = row.name;
    }
}

crate::table! {
    /// Data of the answers by type.
    impl['a] "eve.dns.dns.grouped" for Grouped<'a> as row {
        /// Addresses.
        "A": ListOf<Displayed<&'a Cow<'a, str>>> [sparse] => row.texts(RecordType::A.0);
        /// IPv6 addresses.
        "AAAA": ListOf<Displayed<&'a Cow<'a, str>>> [sparse] => row.texts(RecordType::AAAA.0);
        /// Canonical names.
        "CNAME": ListOf<Displayed<&'a Cow<'a, str>>> [sparse] => row.texts(types::CNAME);
        /// Names of mail servers.
        "MX": ListOf<Displayed<&'a Cow<'a, str>>> [sparse] => row.texts(types::MX);
        /// Names of name servers.
        "NS": ListOf<Displayed<&'a Cow<'a, str>>> [sparse] => row.texts(types::NS);
        /// Names.
        "PTR": ListOf<Displayed<&'a Cow<'a, str>>> [sparse] => row.texts(types::PTR);
        /// Texts.
        "TXT": ListOf<Displayed<&'a Cow<'a, str>>> [sparse] => row.texts(types::TXT);
        /// Data of SOA.
        "SOA": ListOf<Group<Soa<'a>>> [sparse] => List(row.0.iter().filter_map(Record::soa));
        /// Data of SSHFP.
        "SSHFP": ListOf<Group<Sshfp<'a>>> [sparse] => List(row.0.iter().filter_map(Record::sshfp));
        /// Data of SRV.
        "SRV": ListOf<Group<Srv<'a>>> [sparse] => List(row.0.iter().filter_map(Record::srv));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the records as JSON.
    fn json(kind: u16, data: &str) -> String {
        let mut records = Vec::new();
        add(&mut records, ("example.com", RecordType(kind), 60), data);
        let mut out = Vec::new();
        for record in &records {
            crate::export::write_json(&mut out, record, crate::export::Style::default());
        }
        let text = String::from_utf8(out).unwrap();
        text.replace("\"rrname\":\"example.com\",\"rrtype\":", "").replace("\"ttl\":60", "60")
    }

    #[test]
    fn data_has_keys_by_type() {
        for (kind, data, expected) in [
            (1, "192.0.2.1", r#"{"A",60,"rdata":"192.0.2.1"}"#),
            (28, "2001:db8::1", r#"{"AAAA",60,"rdata":"2001:0db8:0000:0000:0000:0000:0000:0001"}"#),
            (15, "10 mail.example.com", r#"{"MX",60,"rdata":"mail.example.com"}"#),
            (16, r#""a b" "c\"d\009""#, r#"{"TXT",60,"rdata":"a b"}{"TXT",60,"rdata":"c\"d\t"}"#),
            (
                6,
                "ns.example.com admin.example.com 1 2 3 4 5",
                r#"{"SOA",60,"soa":{"mname":"ns.example.com","rname":"admin.example.com","serial":1,"refresh":2,"retry":3,"expire":4,"minimum":5}}"#,
            ),
            (
                33,
                "0 5 5060 sip.example.com",
                r#"{"SRV",60,"srv":{"priority":0,"weight":5,"port":5060,"name":"sip.example.com"}}"#,
            ),
            (44, "2 1 1234AB", r#"{"SSHFP",60,"sshfp":{"fingerprint":"12:34:ab","algo":2,"type":1}}"#),
            (1, r"\# 1 00", r#"{"A",60}"#),
            (65_000, r"\# 1 00", r#"{"65000",60}"#),
        ] {
            assert_eq!(json(kind, data), expected);
        }
    }

    #[test]
    fn response_codes_have_names_or_numbers() {
        assert_eq!([0, 3, 12].map(|code| rcode_name(Rcode(code))), ["NOERROR", "NXDOMAIN", "12"]);
    }
}
