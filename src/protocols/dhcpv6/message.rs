//! Messages of DHCPv6.

use std::net::IpAddr;
use std::time::Duration;

use crate::checkpoint::state;
use crate::codec::Reader;
use crate::codec::ber::Value;
use crate::protocols::dhcp::{digits, dns_name, text};
use crate::protocols::recognizers::octets::{datagram_in_role, u16_at};
use crate::session::framing::{AfterPdu, Pdu};
use crate::session::kit::{
    Kept, KeptItem, KeptList, Malformed, PduParser, Rows, Wire, exchange, names, open, wire,
};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, Verdict};

/// Protocol `dhcpv6`: recognized by port 546 or 547, and options that fill the message.
pub static PROTOCOL: Protocol = Protocol::new("dhcpv6")
    .over_datagrams(&[546, 547], Some(probe))
    .datagrams_begin_with(OctetSet::range(1..=36))
    .with_kinds(&["dhcpv6", "dhcpv6_exchange"])
    .with_limits("texts of 255 octets; 16 addresses, prefixes and DNS servers; messages in 8 relays")
    .with_standards("RFC 8415, 3646, 4704, 5007, 6939");

fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let [kind @ 1..=36, ..] = opening.bytes else { return Verdict::No };
    if !opening.has_port(546) && !opening.has_port(547) {
        return Verdict::No;
    }
    let mut at = if Kind(*kind).is_relayed() { 34 } else { 4 };
    while at < opening.bytes.len() {
        let Some(len) = u16_at(opening.bytes, at + 2) else { break };
        at += 4 + usize::from(len);
    }
    let is_filled = at == opening.len || (opening.bytes.len() < opening.len && at <= opening.len);
    // A server may begin with a Reconfigure message.
    let is_answer = Some(Kind(*kind).is_of_server()).filter(|_| *kind != 10);
    datagram_in_role(opening, is_filled, is_answer)
}

names! {
    /// Kind of a message (RFC 8415 section 7.3, and those of later standards).
    pub struct Kind: u8 {
        1 => "solicit", 2 => "advertise", 3 => "request", 4 => "confirm", 5 => "renew", 6 => "rebind", 7 => "reply",
        8 => "release", 9 => "decline", 10 => "reconfigure", 11 => "information_request", 12 => "relay_forward",
        13 => "relay_reply", 14 => "lease_query", 15 => "lease_query_reply", 16 => "lease_query_done",
        17 => "lease_query_data", 18 => "reconfigure_request", 19 => "reconfigure_reply", 20 => "dhcpv4_query",
        21 => "dhcpv4_response",
    }
}

impl Kind {
    /// Returns whether a message contains another one: a hop count and two addresses precede its options, instead of a
    /// transaction id.
    const fn is_relayed(self) -> bool {
        matches!(self.0, 12 | 13)
    }

    /// Returns whether a message has a transaction id: not one that contains another one, also of DHCP for IPv4 (RFC 7341), which
    /// has flags in its place.
    const fn has_identifier(self) -> bool {
        !matches!(self.0, 12 | 13 | 20 | 21)
    }

    const fn is_of_server(self) -> bool {
        matches!(self.0, 2 | 7 | 10 | 13 | 15..=17 | 19 | 21)
    }
}

names! {
    /// Result of a request (RFC 8415 section 21.13, RFC 5007 section 4.1.3).
    pub struct Status: u16 {
        0 => "success", 1 => "failed", 2 => "no_addresses", 3 => "no_binding", 4 => "not_on_link", 5 => "use_multicast",
        6 => "no_prefixes", 7 => "unknown_query", 8 => "malformed_query", 9 => "not_configured", 10 => "not_allowed",
    }
}

exchange! {
    /// A message of a client or of a server.
    "dhcpv6" pub struct Entry {
        /// Kind of the message; of one that relays forward, that of the message in it.
        pub message_type: Kind,
        /// Number that a client chooses for a request and its reply; zero in messages without one.
        pub identifier: u32,
        /// Unique identifier of the client, as hexadecimal digits (option 1).
        pub client_duid: Option<Kept<260>>,
        /// Unique identifier of the server, as hexadecimal digits (option 2).
        pub server_duid: Option<Kept<260>>,
        /// MAC address of the client, as its relay or its identifier states it.
        pub client_hardware_address: Option<Kept<48>>,
        /// Full name of the client (option 39).
        pub full_name: Option<Kept<255>>,
        /// Software of the client (option 16).
        pub vendor_class: Option<Kept<255>>,
        /// Addresses that the client has, requests or gets, at most 16 (options 3 and 4).
        pub client_addresses: KeptList<288> [sparse],
        /// Prefixes that the client has, requests or gets, at most 16 (option 25).
        pub client_prefixes: KeptList<304> [sparse],
        /// Longest time for which an address or a prefix is valid.
        pub lease_time: Option<Duration>,
        /// Time after which the client asks its server for a longer lease.
        pub renewal_time: Option<Duration>,
        /// Time after which the client asks any server.
        pub rebinding_time: Option<Duration>,
        /// Addresses of DNS servers, at most 16 (option 23).
        pub dns_servers: KeptList<288> [sparse],
        /// Domain in which the client searches names first (option 24).
        pub domain: Option<Kept<255>>,
        /// Result: the first one that is not a success, of the message or of an address (option 13).
        pub lease_status: Option<Status>,
        /// Why a request failed.
        pub text: Option<Kept<255>>,
        /// Time since the client sent its first message without a reply (option 8).
        pub elapsed_time: Option<Duration>,
        /// Address of the relay that is nearest to the client, in the network of the client.
        pub relay_address: Option<IpAddr>,
    }
}

open! {
    /// Rows of DHCPv6.
    pub(crate) enum Row { 0 = Entry }
}

wire! {
    /// RFC 8415 section 9, behind the kind of the message.
    struct Relay { hops: u8, link: [u8; 16], peer: [u8; 16] }
}

wire! {
    /// RFC 8415 sections 21.4 and 21.21.
    struct Association { id: u32, renewal: u32, rebinding: u32 }
}

wire! {
    /// RFC 8415 section 21.6.
    struct Address { address: [u8; 16], preferred: u32, valid: u32 }
}

wire! {
    /// RFC 8415 section 21.22.
    struct Prefix { preferred: u32, valid: u32, len_and_prefix: [u8; 17] }
}

/// Maximum number of relays between a client and its server (RFC 8415 section 7.6).
const HOPS_MAX: usize = 8;

/// Maximum number of addresses, and of prefixes, that are read of a message.
const ADDRESSES_MAX: usize = 16;

/// Number of the option with a relayed message.
const RELAYED: u16 = 9;

/// Returns numbers and values of options, up to one that is truncated; of a relayed message, what was captured.
fn options(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let ([a, b, c, d], tail) = rest.split_first_chunk()?;
        let [number, len] = [[*a, *b], [*c, *d]].map(u16::from_be_bytes);
        let (value, next) = match tail.split_at_checked(len.into()) {
            Some(parts) => parts,
            None if number == RELAYED => (tail, &[][..]),
            None => return None,
        };
        rest = next;
        Some((number, value))
    })
}

/// Returns the hardware address in an identifier (RFC 8415 sections 11.2 and 11.4), if it is one of Ethernet.
fn hardware_address(duid: &[u8]) -> Option<Kept<48>> {
    match duid {
        [0, 1, 0, 1, _, _, _, _, address @ ..] | [0, 3, 0, 1, address @ ..] => Some(digits(address, ":")),
        _ => None,
    }
}

/// Returns a time in seconds, unless it is zero: left to the other side.
fn time(seconds: u32) -> Option<Duration> {
    (seconds != 0).then(|| Duration::from_secs(seconds.into()))
}

/// Lists of addresses while options are read.
#[derive(Default)]
struct Found<'p> {
    addresses: Vec<&'p [u8]>,
    prefixes: Vec<&'p [u8]>,
}

fn list<const N: usize>(values: &[&[u8]]) -> KeptList<N> {
    KeptList::of(values.iter().map(|content| Value { tag: KeptItem::ADDRESS, content }))
}

impl Entry {
    /// Returns whether the message states the number of its exchange.
    pub(super) const fn has_identifier(&self) -> bool {
        self.message_type.has_identifier()
    }

    /// Adds an option of a message.
    fn add<'p>(&mut self, number: u16, value: &'p [u8], found: &mut Found<'p>) {
        match number {
            1 if self.client_duid.is_none() => {
                self.client_duid = Some(digits(value, ""));
                self.client_hardware_address =
                    self.client_hardware_address.take().or_else(|| hardware_address(value));
            }
            2 if self.server_duid.is_none() => self.server_duid = Some(digits(value, "")),
            3 | 25 => {
                let mut reader = Reader::new(value);
                if let Ok(association) = Association::read(&mut reader) {
                    self.renewal_time = self.renewal_time.or_else(|| time(association.renewal));
                    self.rebinding_time = self.rebinding_time.or_else(|| time(association.rebinding));
                    self.add_association(reader.rest(), found);
                }
            }
            4 => self.add_association(value.get(4..).unwrap_or_default(), found),
            8 => {
                let hundredths = value.first_chunk().map(|octets| u16::from_be_bytes(*octets));
                self.elapsed_time = self
                    .elapsed_time
                    .or(hundredths.map(|count| Duration::from_millis(u64::from(count) * 10)));
            }
            13 => self.add_status(value),
            16 if self.vendor_class.is_none() => {
                // The number of the enterprise and the length of the first text precede it.
                let text_of = |value: &'p [u8]| {
                    let len = u16_at(value, 4)?;
                    value.get(6..6 + usize::from(len))
                };
                self.vendor_class = text_of(value).and_then(text);
            }
            23 if self.dns_servers.is_empty() => {
                let addresses: Vec<_> = value.chunks_exact(16).take(ADDRESSES_MAX).collect();
                self.dns_servers = list(&addresses);
            }
            24 => self.domain = self.domain.take().or_else(|| dns_name(value)),
            39 => {
                let name = value.get(1..).unwrap_or_default();
                self.full_name = self.full_name.take().or_else(|| dns_name(name));
            }
            _ => {}
        }
    }

    /// Adds the options of addresses and prefixes that belong together.
    fn add_association<'p>(&mut self, octets: &'p [u8], found: &mut Found<'p>) {
        for (number, value) in options(octets) {
            let mut reader = Reader::new(value);
            match number {
                5 if found.addresses.len() < ADDRESSES_MAX => {
                    let Ok(address) = Address::read(&mut reader) else { continue };
                    self.lease_time = self.lease_time.max(time(address.valid));
                    found.addresses.extend(value.get(..16));
                }
                26 if found.prefixes.len() < ADDRESSES_MAX => {
                    let Ok(prefix) = Prefix::read(&mut reader) else { continue };
                    self.lease_time = self.lease_time.max(time(prefix.valid));
                    found.prefixes.extend(value.get(8..25));
                }
                13 => {
                    self.add_status(value);
                    continue;
                }
                _ => continue,
            }
            let results = options(reader.rest()).filter(|(number, _)| *number == 13);
            results.for_each(|(_, value)| self.add_status(value));
        }
    }

    fn add_status(&mut self, value: &[u8]) {
        let Some((code, reason)) = value.split_first_chunk() else { return };
        let status = Status(u16::from_be_bytes(*code));
        if self.lease_status.is_none_or(|known| known.0 == 0)
            && (self.lease_status.is_none() || status.0 != 0)
        {
            self.lease_status = Some(status);
            self.text = text(reason);
        }
    }
}

/// Parser of DHCPv6.
#[derive(Debug, Default)]
pub(crate) struct Dhcpv6;

state! { struct Dhcpv6 {} }

impl PduParser for Dhcpv6 {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let mut row = Entry::default();
        let mut message = pdu.bytes;
        for _ in 0..=HOPS_MAX {
            let mut reader = Reader::new(message);
            row.message_type = Kind(reader.be()?);
            if !row.message_type.is_relayed() {
                let [high, middle, low]: [u8; 3] = reader.array()?;
                if row.message_type.has_identifier() {
                    row.identifier = u32::from_be_bytes([0, high, middle, low]);
                }
                let mut found = Found::default();
                options(reader.rest()).for_each(|(number, value)| row.add(number, value, &mut found));
                row.client_addresses = list(&found.addresses);
                row.client_prefixes = list(&found.prefixes);
                break;
            }
            let relay = Relay::read(&mut reader)?;
            let link = IpAddr::from(relay.link);
            row.relay_address = (!link.is_unspecified()).then_some(link).or(row.relay_address);
            message = &[];
            for (number, value) in options(reader.rest()) {
                match number {
                    RELAYED => message = value,
                    // Of Ethernet.
                    79 if value.starts_with(&[0, 1]) => {
                        row.client_hardware_address = value.get(2..).map(|address| digits(address, ":"));
                    }
                    _ => {}
                }
            }
            if message.is_empty() {
                break;
            }
        }
        rows.acts_as(if row.message_type.is_of_server() { Role::Server } else { Role::Client });
        rows.single(row);
        Ok(AfterPdu::More)
    }
}

#[cfg(test)]
pub(in crate::protocols) mod samples {
    use super::PROTOCOL;
    use crate::protocols::recognizers::samples::{Sample, datagram};

    pub(in crate::protocols) const SAMPLES: &[Sample] =
        &[datagram(&PROTOCOL, 547, b"\x01\x10\x08\x74\x00\x08\x00\x02\x00\x00\x00\x06\x00\x02\x00\x17")];

    pub(in crate::protocols) const LOOK_ALIKES: &[Sample] = &[
        datagram(&PROTOCOL, 547, b"\x01\x10\x08\x74\x00\x08\x00\x03\x00\x00\x00\x06\x00\x02\x00\x17"),
        datagram(&PROTOCOL, 53, b"\x01\x10\x08\x74\x00\x08\x00\x02\x00\x00"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check};

    fn option(number: u16, parts: &[&[u8]]) -> Vec<u8> {
        let value = parts.concat();
        [&number.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), &value].concat()
    }

    fn message(kind: u8, options: &[Vec<u8>]) -> Vec<u8> {
        [&[kind, 0, 0x12, 0x34][..], &options.concat()].concat()
    }

    fn address(last: u8) -> [u8; 16] {
        let mut address = [0; 16];
        address[..4].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
        address[15] = last;
        address
    }

    const TIMES: &[u8] = &[0, 0, 0, 9, 0, 0, 7, 8, 0, 0, 11, 184];
    const LIFETIMES: &[u8] = &[0, 0, 14, 16, 0, 0, 28, 32];

    #[test]
    fn cases_of_messages() {
        let duid = option(1, &[&[0, 3, 0, 1, 2, 0, 0, 0, 0, 1]]);
        let solicit = message(
            1,
            &[
                duid.clone(),
                option(3, &[&[0; 12]]),
                option(8, &[&[0, 25]]),
                option(16, &[&[0, 0, 0, 9, 0, 4], b"dhcp"]),
                option(39, &[&[0, 2], b"pc", &[2], b"de", &[0]]),
            ],
        );
        let server = option(2, &[&[0, 2, 0, 0, 0, 9, 1]]);
        let reply = message(
            7,
            &[
                duid,
                server.clone(),
                option(3, &[TIMES, &option(5, &[&address(1), LIFETIMES, &option(13, &[&[0, 0]])])]),
                option(25, &[TIMES, &option(26, &[LIFETIMES, &[56], &address(0)])]),
                option(23, &[&address(2), &address(3)]),
                option(24, &[&[2], b"de", &[0]]),
            ],
        );
        // Two relays, the nearest of which adds the address of the client; and a server without addresses.
        let relayed = |outer: u8, message: &[u8]| {
            let inner = [
                &[outer, 0][..],
                &address(9),
                &address(10),
                &option(79, &[&[0, 1, 2, 0, 0, 0, 0, 7]]),
                &option(9, &[message]),
            ];
            [&[outer, 1][..], &[0; 16], &address(11), &option(9, &[&inner.concat()])].concat()
        };
        let none = message(7, &[server, option(3, &[TIMES, &option(13, &[&[0, 2], b"none left"])])]);
        let cases = [
            Case {
                name: "a client and its server",
                turns: vec![(Role::Client, solicit.clone()), (Role::Server, reply)],
                rows: &[
                    "dhcpv6 message_type=solicit identifier=4660 client_duid=00030001020000000001 \
                    client_hardware_address=02:00:00:00:00:01 full_name=pc.de vendor_class=dhcp elapsed_time=250ms",
                    "dhcpv6 message_type=reply identifier=4660 client_duid=00030001020000000001 server_duid=00020000000901 \
                    client_hardware_address=02:00:00:00:00:01 client_addresses=List([Text(\"2001:db8::1\")]) \
                    client_prefixes=List([Text(\"2001:db8::/56\")]) lease_time=7200s renewal_time=1800s rebinding_time=3000s \
                    dns_servers=List([Text(\"2001:db8::2\"), Text(\"2001:db8::3\")]) domain=de lease_status=success",
                ],
            },
            Case {
                name: "through two relays",
                turns: vec![(Role::Client, relayed(12, &solicit)), (Role::Server, relayed(13, &none))],
                rows: &[
                    "dhcpv6 message_type=solicit identifier=4660 client_duid=00030001020000000001 \
                    client_hardware_address=02:00:00:00:00:07 full_name=pc.de vendor_class=dhcp elapsed_time=250ms \
                    relay_address=Address(2001:db8::9)",
                    "dhcpv6 message_type=reply identifier=4660 server_duid=00020000000901 \
                    client_hardware_address=02:00:00:00:00:07 renewal_time=1800s rebinding_time=3000s lease_status=no_addresses \
                    text=none left relay_address=Address(2001:db8::9)",
                ],
            },
        ];
        check(&KitEntry::of::<Dhcpv6>(), &cases);
    }
}
