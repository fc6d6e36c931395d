//! Rows of `dns.log`.

use std::borrow::Cow;
use std::time::Duration;

use crate::base::IpProtocol;
use crate::export::presentation::character_strings;
use crate::protocols::dns::{Class, Flags, Opcode, Rcode, RecordType};
use crate::row::{Displayed, List, ListOf, Name};
use crate::transaction;

/// A query of DNS with its response in `dns.log`, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Dns<'a> {
    dns: &'a transaction::Dns,
    protocol: IpProtocol,
}

impl<'a> Dns<'a> {
    pub(super) const fn new(dns: &'a transaction::Dns, protocol: IpProtocol) -> Self {
        Self { dns, protocol }
    }

    /// Returns whether the answer section has records that Zeek logs.
    fn has_answers(&self) -> bool {
        self.dns.answer_types.iter().any(|kind| is_logged(*kind))
    }

    /// Returns a flag that Zeek reads with the records of the answer section.
    fn with_answers(&self, flag: Option<bool>) -> bool {
        flag == Some(true) && self.has_answers()
    }

    fn answers(&self) -> Option<List<impl Iterator<Item = Displayed<Cow<'a, str>>> + Clone + use<'a>>> {
        let dns = self.dns;
        let query = dns.query.as_deref().unwrap_or_default();
        let all = dns.answer_types.iter().zip(&dns.answers).filter(|(kind, _)| is_logged(**kind));
        self.has_answers()
            .then(|| List(all.map(move |(kind, data)| Displayed(summary(*kind, (query, data))))))
    }

    fn ttls(&self) -> Option<List<impl Iterator<Item = Duration> + Clone + use<'a>>> {
        let dns = self.dns;
        let all = dns.answer_types.iter().zip(&dns.ttls).filter(|(kind, _)| is_logged(**kind));
        self.has_answers().then(|| List(all.map(|(_, ttl)| Duration::from_secs((*ttl).into()))))
    }
}

/// Returns the name of a class.
fn class_name(class: Class) -> Cow<'static, str> {
    match class.0 {
        1 => "C_INTERNET".into(),
        2 => "C_CSNET".into(),
        3 => "C_CHAOS".into(),
        4 => "C_HESIOD".into(),
        254 => "C_NONE".into(),
        255 => "C_ANY".into(),
        number => format!("qclass-{number}").into(),
    }
}

/// Returns the name of a type of records.
fn type_name(kind: RecordType) -> Cow<'static, str> {
    match (kind.0, kind.name()) {
        (255, _) => "*".into(),
        (_, Some(name)) => name.into(),
        (number, None) => format!("query-{number}").into(),
    }
}

/// Returns the name of a response code.
fn rcode_name(rcode: Rcode) -> Cow<'static, str> {
    match (rcode.0, rcode.name()) {
        (8, _) => "NXRRSet".into(),
        (number @ 11..16, _) => format!("unassigned-{number}").into(),
        (_, Some(name)) => name.to_ascii_uppercase().into(),
        (number, None) => format!("rcode-{number}").into(),
    }
}

/// Returns the name of an operation code.
fn opcode_name(opcode: Opcode) -> Cow<'static, str> {
    match opcode.0 {
        0 => "query".into(),
        1 => "iquery".into(),
        2 => "server-status".into(),
        4 => "notify".into(),
        5 => "dynamic-update".into(),
        6 => "dso".into(),
        number => format!("opcode-{number}").into(),
    }
}

/// Returns whether Zeek logs the records of a type; of some, it only has an event for scripts.
const fn is_logged(kind: RecordType) -> bool {
    const WKS: u16 = 11;
    const HINFO: u16 = 13;
    const NAPTR: u16 = 35;
    const SVCB: u16 = 64;
    const HTTPS: u16 = 65;
    const TKEY: u16 = 249;
    const TSIG: u16 = 250;
    const CAA: u16 = 257;
    !matches!(kind.0, WKS | HINFO | NAPTR | SVCB | HTTPS | TKEY | TSIG | CAA) && kind.0 != RecordType::OPT.0
}

/// Returns the number of a type of records by its name.
fn number_of(name: &str) -> Option<u16> {
    let mut named = (0..=300).chain([32_768, 32_769, BINDS]);
    named
        .find(|number| RecordType(*number).name() == Some(name))
        .or_else(|| name.strip_prefix("TYPE")?.parse().ok())
}

/// Private type by which BIND signals the progress of signing.
const BINDS: u16 = 65_534;

/// Returns a length of a LOC record as it is encoded: a digit and a power of ten, in centimeters (RFC 1876 section 2).
fn precision(length: &str) -> u32 {
    let digits: String = length.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_start_matches('0');
    let first = digits.chars().next().and_then(|digit| digit.to_digit(10)).unwrap_or_default();
    first << 4 | digits.len().saturating_sub(1) as u32
}

/// Returns Zeek's summary of the data of a record, from its presentation format. `query` is the name of the question.
fn summary<'d>(kind: RecordType, (query, data): (&str, &'d str)) -> Cow<'d, str> {
    const NS: u16 = 2;
    const CNAME: u16 = 5;
    const SOA: u16 = 6;
    const PTR: u16 = 12;
    const MX: u16 = 15;
    const TXT: u16 = 16;
    const LOC: u16 = 29;
    const SRV: u16 = 33;
    const DS: u16 = 43;
    const SSHFP: u16 = 44;
    const RRSIG: u16 = 46;
    const NSEC: u16 = 47;
    const DNSKEY: u16 = 48;
    const NSEC3: u16 = 50;
    const NSEC3PARAM: u16 = 51;
    const SPF: u16 = 99;
    let word = |index| data.split(' ').nth(index).unwrap_or(data);
    let name = |text: &str| text.to_ascii_lowercase();
    match kind.0 {
        NS | CNAME | PTR => name(data).into(),
        SOA => name(word(0)).into(),
        MX => name(word(1)).into(),
        SRV => name(word(3)).into(),
        TXT => strings("TXT", data).into(),
        SPF => strings("SPF", data).into(),
        DS => format!("DS {} {}", word(1), word(2)).into(),
        SSHFP => format!("SSHFP: {}", word(2)).into(),
        RRSIG => {
            let signer = if word(7) == "." { "<Root>".to_owned() } else { name(word(7)) };
            format!("RRSIG {} {signer}", number_of(word(0)).unwrap_or_default()).into()
        }
        NSEC => format!("NSEC {} {}", name(query), name(word(0))).into(),
        DNSKEY => format!("DNSKEY {}", word(2)).into(),
        NSEC3 => "NSEC3".into(),
        NSEC3PARAM => "NSEC3PARAM".into(),
        BINDS => "BIND9 signing signal".into(),
        LOC => {
            let mut lengths = data.rsplit(' ').map(precision);
            let [vertical, horizontal, size] = [(); 3].map(|()| lengths.next().unwrap_or_default());
            format!("LOC:  {size} {horizontal} {vertical}").into()
        }
        _ if kind == RecordType::A || kind == RecordType::AAAA => data.into(),
        _ => format!("<unknown type={}>", kind.0).into(),
    }
}

/// Returns character strings, each with its length before it, from their presentation format.
fn strings(name: &str, data: &str) -> String {
    let texts = character_strings(data);
    let texts: Vec<_> = texts.iter().map(|text| format!("{name} {} {text}", text.chars().count())).collect();
    texts.join(" ")
}

crate::table! {
    /// Queries of DNS and LLMNR with their responses.
    impl['a] "zeek.dns" for Dns<'a> as row {
        /// `udp` or `tcp`.
        "proto": Name = Name(if row.protocol == IpProtocol::TCP { "tcp" } else { "udp" });
        /// `id`.
        "trans_id": Option<u64> = Some(row.dns.id.into());
        /// `response_time`, if the response has answers that are logged.
        "rtt": Option<Duration> = row.dns.response_time.filter(|time| !time.is_zero() && row.has_answers());
        /// `query` in lower case.
        "query": Option<String> = row.dns.query.as_ref().map(|name| name.to_lowercase());
        /// Number of `query_class`.
        "qclass": Option<u64> = row.dns.query_class.map(|class| class.0.into());
        /// Zeek's name of the class, such as `C_INTERNET`, or `qclass-` and the number.
        "qclass_name": Option<Displayed<Cow<'static, str>>> = row.dns.query_class.map(|class| Displayed(class_name(class)));
        /// Number of `query_type`.
        "qtype": Option<u64> = row.dns.query_type.map(|kind| kind.0.into());
        /// `query_type`; `*` for ANY, `query-` and the number for types without a name.
        "qtype_name": Option<Displayed<Cow<'static, str>>> = row.dns.query_type.map(|kind| Displayed(type_name(kind)));
        /// Number of `rcode`.
        "rcode": Option<u64> = row.dns.rcode.map(|rcode| rcode.0.into());
        /// `rcode` in upper case, or `rcode-` and the number.
        "rcode_name": Option<Displayed<Cow<'static, str>>> = row.dns.rcode.map(|rcode| Displayed(rcode_name(rcode)));
        /// `authoritative`, if the response has answers.
        "AA": bool = row.with_answers(row.dns.authoritative);
        /// True if the query is truncated, which is unusual; Zeek does not show truncated responses.
        "TC": bool = row.dns.query_flags.is_some_and(Flags::is_truncated);
        /// True if the query desires recursion.
        "RD": bool = row.dns.query_flags.is_some_and(Flags::is_recursion_desired);
        /// `recursion_available`, if the response has answers.
        "RA": bool = row.with_answers(row.dns.recursion_available);
        /// Three bits of the query behind RA: zero, AD and CD.
        "Z": u64 = row.dns.query_flags.map_or(0, |flags| u64::from(flags.0 >> 4 & 7));
        /// Summaries of `answers`: address, or the name in the data in lower case; `TXT`, length and text of each string; the first
        /// facts of DNSSEC, LOC and SSHFP; `<unknown type=N>` for other types. Those of which Zeek logs nothing, such as HTTPS, are
        /// left out. Unset without answers.
        "answers": Option<ListOf<Displayed<Cow<'a, str>>>> => row.answers();
        /// `ttls`. Unset without answers.
        "TTLs": Option<ListOf<Duration>> => row.ttls();
        /// True if no section of the response has a record.
        "rejected": bool = row.dns.rcode.is_some() && !row.dns.has_records;
        /// Number of `opcode`.
        "opcode": Option<u64> = row.dns.opcode.map(|opcode| opcode.0.into());
        /// Zeek's name of the operation code, such as `query`, or `opcode-` and the number.
        "opcode_name": Option<Displayed<Cow<'static, str>>> = row.dns.opcode.map(|opcode| Displayed(opcode_name(opcode)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_summarized_as_zeek_does() {
        for (kind, data, expected) in [
            (1, "192.0.2.1", "192.0.2.1"),
            (5, "WWW.Example.com", "www.example.com"),
            (6, "ns.example.com admin.example.com 1 2 3 4 5", "ns.example.com"),
            (15, "10 mail.example.com", "mail.example.com"),
            (33, "0 5 5060 sip.example.com", "sip.example.com"),
            (16, "\"v=spf1 -all\" \"a\\\"b\\032\"", "TXT 11 v=spf1 -all TXT 4 a\"b "),
            (43, "1 8 2 ab", "DS 8 2"),
            (44, "4 2 00ff", "SSHFP: 00ff"),
            (46, "A 5 4 30 20180828073129 20180729063352 50475 UPENN.edu azq9", "RRSIG 1 upenn.edu"),
            (46, "TYPE999 5 0 30 20180828073129 20180729063352 50475 . azq9", "RRSIG 999 <Root>"),
            (47, "Host.example.com A MX", "NSEC example.com host.example.com"),
            (48, "256 3 5 AwEA", "DNSKEY 5"),
            (50, "1 1 12 aabb 2t7b A", "NSEC3"),
            (51, "1 0 20 7b1a", "NSEC3PARAM"),
            (29, "37 22 26.000 N 121 59 28.000 W 0.00m 1.00m 1000.00m 10.00m", "LOC:  18 21 19"),
            (65_534, "\\# 5 0500000000", "BIND9 signing signal"),
            (65_000, "\\# 1 00", "<unknown type=65000>"),
        ] {
            assert_eq!(summary(RecordType(kind), ("Example.com", data)), expected);
        }
        assert!([1, 43, 65_000].into_iter().all(|kind| is_logged(RecordType(kind))));
        assert!(![41, 65, 249].into_iter().any(|kind| is_logged(RecordType(kind))));
    }

    #[test]
    fn names_are_those_of_zeek() {
        assert_eq!(class_name(Class(1)), "C_INTERNET");
        assert_eq!(class_name(Class(7)), "qclass-7");
        assert_eq!([type_name(RecordType(255)), type_name(RecordType(65))], ["*", "HTTPS"]);
        assert_eq!(
            [rcode_name(Rcode(7)), rcode_name(Rcode(8)), rcode_name(Rcode(9))],
            ["YXRRSET", "NXRRSet", "NOTAUTH"]
        );
        assert_eq!([rcode_name(Rcode(12)), rcode_name(Rcode(4000))], ["unassigned-12", "rcode-4000"]);
        assert_eq!(opcode_name(Opcode(5)), "dynamic-update");
    }
}
