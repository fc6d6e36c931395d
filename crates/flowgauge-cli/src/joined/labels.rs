//! Labels of flows, from a file of rules.

use std::collections::HashMap;
use std::fs::File;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::Path;

use csv::{ReaderBuilder, StringRecord, Trim};
use flowgauge::{FlowRecord, IpProtocol, Timestamp};

use crate::console::Failure;

/// Names of the columns of a file.
const COLUMNS: [&str; 10] = [
    "label",
    "source",
    "destination",
    "address",
    "source_port",
    "destination_port",
    "port",
    "protocol",
    "start",
    "end",
];

/// The rules of a file. A flow has the label of the first rule that it matches.
#[derive(Debug, Default)]
pub(super) struct Labels {
    rules: Vec<Rule>,
    /// Numbers of the rules in ascending order, by the address that their flows must have at some end.
    by_address: HashMap<IpAddr, Vec<u32>>,
    /// Numbers of the rules without such an address.
    others: Vec<u32>,
}

/// Conditions, all of which a flow must meet, and the label.
#[derive(Debug, Default)]
struct Rule {
    label: String,
    source: End,
    destination: End,
    /// Of either end.
    either: End,
    protocol: Option<u8>,
    /// Time that the flow must overlap.
    from: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// Conditions of an end.
#[derive(Debug, Default)]
struct End {
    addresses: Option<RangeInclusive<IpAddr>>,
    ports: Option<RangeInclusive<u16>>,
}

impl End {
    fn matches(&self, address: IpAddr, port: Option<u16>) -> bool {
        let is_in = |range: &RangeInclusive<IpAddr>| {
            range.start().is_ipv4() == address.is_ipv4() && range.contains(&address)
        };
        self.addresses.as_ref().is_none_or(is_in)
            && self.ports.as_ref().is_none_or(|ports| port.is_some_and(|port| ports.contains(&port)))
    }

    /// Returns the only address that matches.
    fn host(&self) -> Option<IpAddr> {
        self.addresses.as_ref().filter(|range| range.start() == range.end()).map(|range| *range.start())
    }
}

impl Rule {
    fn matches(&self, record: &FlowRecord) -> bool {
        let source = (record.source_address(), record.source_port());
        let destination = (record.destination_address(), record.destination_port());
        self.protocol.is_none_or(|protocol| record.protocol().0 == protocol)
            && self.from.is_none_or(|from| record.end >= from)
            && self.until.is_none_or(|until| record.start <= until)
            && self.source.matches(source.0, source.1)
            && self.destination.matches(destination.0, destination.1)
            && (self.either.matches(source.0, source.1) || self.either.matches(destination.0, destination.1))
    }
}

impl Labels {
    /// Reads a file of rules.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let failure = |message: String| Failure::Other(format!("{}: {message}", path.display()));
        let file = File::open(path).map_err(|error| failure(error.to_string()))?;
        let mut reader = ReaderBuilder::new().trim(Trim::All).comment(Some(b'#')).from_reader(file);
        let header = reader.headers().map_err(|error| failure(error.to_string()))?.clone();
        if !header.iter().any(|name| name == "label") {
            return Err(failure("the first line must name the columns, one of which is `label`".to_owned()));
        }
        for (index, name) in header.iter().enumerate() {
            if !COLUMNS.contains(&name) {
                let columns = COLUMNS.join(", ");
                return Err(failure(format!("`{name}` is no column; the columns are {columns}")));
            }
            if header.iter().take(index).any(|other| other == name) {
                return Err(failure(format!("the column `{name}` is listed twice")));
            }
        }
        let mut labels = Self::default();
        for record in reader.records() {
            let record = record.map_err(|error| failure(error.to_string()))?;
            let line = record.position().map_or(0, csv::Position::line);
            let rule =
                parse(&header, &record).map_err(|message| failure(format!("line {line}: {message}")))?;
            labels.push(rule);
        }
        Ok(labels)
    }

    fn push(&mut self, rule: Rule) {
        let number = self.rules.len() as u32;
        let hosts = [&rule.source, &rule.destination, &rule.either].map(End::host);
        match hosts.into_iter().flatten().next() {
            Some(host) => self.by_address.entry(host).or_default().push(number),
            None => self.others.push(number),
        }
        self.rules.push(rule);
    }

    /// Returns the label of a flow.
    pub(super) fn of(&self, record: &FlowRecord) -> Option<&str> {
        let of_address =
            |address| self.by_address.get(&address).map(Vec::as_slice).unwrap_or_default().iter();
        let numbers = [
            of_address(record.source_address()),
            of_address(record.destination_address()),
            self.others.iter(),
        ];
        let matches =
            |number: &u32| self.rules.get(*number as usize).is_some_and(|rule| rule.matches(record));
        let first = numbers.into_iter().filter_map(|numbers| numbers.copied().find(matches)).min()?;
        self.rules.get(first as usize).map(|rule| rule.label.as_str())
    }
}

/// Parses a rule. An empty field is no condition.
fn parse(header: &StringRecord, record: &StringRecord) -> Result<Rule, String> {
    let mut rule = Rule::default();
    for (name, text) in header.iter().zip(record) {
        if text.is_empty() {
            continue;
        }
        match name {
            "label" => text.clone_into(&mut rule.label),
            "source" => rule.source.addresses = Some(addresses(text)?),
            "destination" => rule.destination.addresses = Some(addresses(text)?),
            "address" => rule.either.addresses = Some(addresses(text)?),
            "source_port" => rule.source.ports = Some(ports(text)?),
            "destination_port" => rule.destination.ports = Some(ports(text)?),
            "port" => rule.either.ports = Some(ports(text)?),
            "protocol" => rule.protocol = Some(protocol(text)?),
            "start" => rule.from = Some(time(text)?),
            "end" => rule.until = Some(time(text)?),
            // The header has no other columns.
            _ => {}
        }
    }
    if rule.label.is_empty() {
        return Err("the label is empty".to_owned());
    }
    Ok(rule)
}

/// Parses an address, a network in CIDR notation, or a first and a last address.
fn addresses(text: &str) -> Result<RangeInclusive<IpAddr>, String> {
    let unknown = || format!("`{text}` is no address, network (192.0.2.0/24) or range (192.0.2.1-192.0.2.9)");
    let address = |text: &str| text.trim().parse::<IpAddr>().map_err(|_| unknown());
    if let Some((first, last)) = text.split_once('-') {
        let (first, last) = (address(first)?, address(last)?);
        let is_range = first.is_ipv4() == last.is_ipv4() && first <= last;
        return if is_range { Ok(first..=last) } else { Err(unknown()) };
    }
    let Some((network, len)) = text.split_once('/') else {
        let address = address(text)?;
        return Ok(address..=address);
    };
    let len: u32 = len.parse().map_err(|_| unknown())?;
    match address(network)? {
        IpAddr::V4(network) if len <= 32 => {
            let hosts = u32::MAX.checked_shr(len).unwrap_or(0);
            let first = network.to_bits() & !hosts;
            Ok(IpAddr::V4(first.into())..=IpAddr::V4((first | hosts).into()))
        }
        IpAddr::V6(network) if len <= 128 => {
            let hosts = u128::MAX.checked_shr(len).unwrap_or(0);
            let first = network.to_bits() & !hosts;
            Ok(IpAddr::V6(first.into())..=IpAddr::V6((first | hosts).into()))
        }
        _ => Err(unknown()),
    }
}

/// Parses a port, or a first and a last port.
fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let unknown = || format!("`{text}` is no port or range of ports (6000-6063)");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let [first, last] = [first, last].map(|port| port.trim().parse::<u16>().map_err(|_| unknown()));
    let (first, last) = (first?, last?);
    if first <= last { Ok(first..=last) } else { Err(unknown()) }
}

/// Parses the name or number of an IP protocol.
fn protocol(text: &str) -> Result<u8, String> {
    let numbered = || text.parse::<u8>().ok();
    let named = || (0..=u8::MAX).find(|number| IpProtocol(*number).to_string().eq_ignore_ascii_case(text));
    numbered().or_else(named).ok_or_else(|| format!("`{text}` is no IP protocol"))
}

/// Parses seconds since 1970, or a date and time.
fn time(text: &str) -> Result<Timestamp, String> {
    let since_1970 = match text.parse::<f64>() {
        Ok(seconds) => std::time::Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => humantime::parse_rfc3339_weak(text)
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()),
    };
    let nanoseconds = since_1970.and_then(|time| u64::try_from(time.as_nanos()).ok());
    nanoseconds.map(Timestamp::from_nanos).ok_or_else(|| {
        format!("`{text}` is no time: seconds since 1970, or as 2017-07-07T13:56:00Z, which is UTC")
    })
}
