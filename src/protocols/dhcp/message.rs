//! Messages of DHCP and BOOTP.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::checkpoint::state;
use crate::codec::Reader;
use crate::codec::ber::Value;
use crate::protocols::recognizers::octets::{datagram_in_role, u32_at};
use crate::row::{List, Name};
use crate::session::framing::{AfterPdu, Pdu};
use crate::session::kit::{
    Kept, KeptItem, KeptList, Malformed, PduParser, Rows, Wire, exchange, names, open, wire,
};
use crate::session::{DatagramOpening, OctetSet, Protocol, Role, Text, Verdict};

/// Protocol `dhcp`: recognized by the magic cookie; on port 67 or 68 also BOOTP without a cookie.
pub static PROTOCOL: Protocol = Protocol::new("dhcp")
    .in_zeek("dhcp")
    .in_eve("dhcp")
    .over_datagrams(&[67, 68], Some(probe))
    .datagrams_begin_with(OctetSet::range(1..=2))
    .with_kinds(&["dhcp", "dhcp_exchange"])
    .with_limits("options of 255 octets, 16 addresses of routers and of DNS servers")
    .with_standards("RFC 951, 2131, 2132, 4702");

/// First octets of options (RFC 2131 section 3).
const COOKIE: u32 = 0x6382_5363;

fn probe(opening: &DatagramOpening<'_>) -> Verdict {
    let [operation @ (1 | 2), _, 0..=16, ..] = opening.bytes else { return Verdict::No };
    let is_on_port = opening.has_port(67) || opening.has_port(68);
    let is_match = match u32_at(opening.bytes, 236) {
        Some(cookie) => cookie == COOKIE || (is_on_port && opening.len >= 300),
        // The snap length truncated it before the cookie.
        None => is_on_port && opening.len >= 240 && opening.bytes.len() >= 28,
    };
    datagram_in_role(opening, is_match, Some(*operation == 2))
}

names! {
    /// Kind of a message (RFC 2132 section 9.6, and those of later standards).
    pub struct Kind: u8 {
        1 => "discover", 2 => "offer", 3 => "request", 4 => "decline", 5 => "ack", 6 => "nak", 7 => "release",
        8 => "inform", 9 => "force_renew", 10 => "lease_query", 11 => "lease_unassigned", 12 => "lease_unknown",
        13 => "lease_active",
    }
}

exchange! {
    /// A message of a client or of a server.
    "dhcp" pub struct Entry {
        /// Kind of the message; null in BOOTP.
        pub message_type: Option<Kind>,
        /// Number that a client chooses for all messages of an exchange.
        pub identifier: u32,
        /// Hardware address of the client, in Ethernet a MAC address.
        pub client_hardware_address: Option<Kept<48>>,
        /// Identifier of the client, as hexadecimal digits (option 61).
        pub client_id: Option<Kept<510>>,
        /// Name that the client states, or gets (option 12).
        pub host_name: Option<Kept<255>>,
        /// Full name of the client (option 81).
        pub full_name: Option<Kept<255>>,
        /// Software of the client (option 60).
        pub vendor_class: Option<Kept<255>>,
        /// Address that the client has.
        pub client_address: Option<IpAddr>,
        /// Address that the client requests (option 50).
        pub requested_address: Option<IpAddr>,
        /// Address that the server assigns.
        pub assigned_address: Option<IpAddr>,
        /// Address of the server (option 54).
        pub server_address: Option<IpAddr>,
        /// Address of the next server, from which the client loads a file.
        pub next_server_address: Option<IpAddr>,
        /// Address of the relay.
        pub relay_address: Option<IpAddr>,
        /// Domain of the client (option 15).
        pub domain: Option<Kept<255>>,
        /// Mask of the subnet (option 1).
        pub subnet_mask: Option<IpAddr>,
        /// Addresses of routers, at most 16 (option 3).
        pub routers: KeptList<96> [sparse],
        /// Addresses of DNS servers, at most 16 (option 6).
        pub dns_servers: KeptList<96> [sparse],
        /// Length of the lease (option 51).
        pub lease_time: Option<Duration>,
        /// Time after which the client asks its server for a longer lease (option 58).
        pub renewal_time: Option<Duration>,
        /// Time after which the client asks any server (option 59).
        pub rebinding_time: Option<Duration>,
        /// Reason of a refusal (option 56).
        pub text: Option<Kept<255>>,
        ..
        /// Numbers of the options that the client requests (option 55).
        parameters: Kept<255>,
    }
    /// Messages of DHCP.
    eve "dhcp" ['a] as row {
        /// `request` of a client, or `reply`.
        "type": Name = Name(if row.exchange.from == Role::Client { "request" } else { "reply" });
        /// `identifier`.
        "id": u32 = row.identifier;
        /// `client_hardware_address`.
        "client_mac": Option<Text<'a>> = row.client_hardware_address.as_ref().map(Kept::text);
        /// `assigned_address`, or 0.0.0.0.
        "assigned_ip": IpAddr = row.assigned_address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        /// `client_address`, of requests.
        "client_ip": Option<IpAddr> = row.client_address.filter(|_| row.exchange.from == Role::Client);
        /// `relay_address`, of replies.
        "relay_ip": Option<IpAddr> = row.relay_address.filter(|_| row.exchange.from == Role::Server);
        /// `next_server_address`, of replies.
        "next_server_ip": Option<IpAddr> = row.next_server_address.filter(|_| row.exchange.from == Role::Server);
        /// `message_type`.
        "dhcp_type": Option<Kind> = row.message_type;
        /// `client_id`.
        "client_id": Option<Text<'a>> = row.client_id.as_ref().map(Kept::text);
        /// `host_name`.
        "hostname": Option<Text<'a>> = row.host_name.as_ref().map(Kept::text);
        /// `requested_address`.
        "requested_ip": Option<IpAddr> = row.requested_address;
        /// Names of the options that the client requests: `subnet_mask`, `router`, `dns_server`, `domain`, `arp_timeout`,
        /// `ntp_server`, `tftp_server_name`, `tftp_server_ip`.
        "params": Option<List<Vec<Name>>> = row.known_parameters();
        /// `vendor_class`.
        "vendor_class_identifier": Option<Text<'a>> = row.vendor_class.as_ref().map(Kept::text);
        /// `lease_time` in seconds.
        "lease_time": Option<u64> = row.lease_time.map(|time| time.as_secs());
        /// `renewal_time` in seconds.
        "renewal_time": Option<u64> = row.renewal_time.map(|time| time.as_secs());
        /// `rebinding_time` in seconds.
        "rebinding_time": Option<u64> = row.rebinding_time.map(|time| time.as_secs());
        /// `subnet_mask`.
        "subnet_mask": Option<IpAddr> = row.subnet_mask;
        /// `routers`.
        "routers": Option<List<Vec<KeptItem<'a>>>> = listed(&row.routers);
        /// `dns_servers`.
        "dns_servers": Option<List<Vec<KeptItem<'a>>>> = listed(&row.dns_servers);
    }
}

fn listed(list: &KeptList<96>) -> Option<List<Vec<KeptItem<'_>>>> {
    (!list.is_empty()).then(|| List(list.iter().collect()))
}

open! {
    /// Rows of DHCP.
    pub(crate) enum Row { 0 = Entry }
}

wire! {
    /// RFC 2131 section 2, without the fields that may have options.
    struct Head {
        operation: u8, hardware: u8, hardware_len: u8, hops: u8, identifier: u32, seconds: u16, flags: u16, client: [u8; 4],
        assigned: [u8; 4], next_server: [u8; 4], relay: [u8; 4], hardware_address: [u8; 16],
    }
}

/// Returns an address, unless it is 0.0.0.0.
fn address(octets: [u8; 4]) -> Option<IpAddr> {
    (octets != [0; 4]).then(|| octets.into())
}

/// Returns an option with the type of an address.
fn address_of(value: &[u8]) -> Option<IpAddr> {
    value.first_chunk().copied().and_then(address)
}

/// Returns an option with a length of time in seconds.
fn time_of(value: &[u8]) -> Option<Duration> {
    value.first_chunk().map(|octets| Duration::from_secs(u32::from_be_bytes(*octets).into()))
}

/// Returns a text without the zeros that some clients append, unless it is empty.
pub(in crate::protocols) fn text<const N: usize>(value: &[u8]) -> Option<Kept<N>> {
    let len = value.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
    value.get(..len).filter(|text| !text.is_empty()).map(Kept::new)
}

/// Returns octets as hexadecimal digits.
pub(in crate::protocols) fn digits<const N: usize>(octets: &[u8], separator: &str) -> Kept<N> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or_default();
    let mut text = Vec::with_capacity(octets.len() * (2 + separator.len()));
    for octet in octets {
        if !text.is_empty() {
            text.extend_from_slice(separator.as_bytes());
        }
        text.extend([digit(octet >> 4), digit(octet & 15)]);
    }
    Kept::new(&text)
}

/// Returns numbers and values of options, up to the end or to one that is truncated.
fn options(octets: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut reader = Reader::new(octets);
    std::iter::from_fn(move || {
        loop {
            match reader.be().ok()? {
                0_u8 => {}
                255 => return None,
                number => {
                    let len: u8 = reader.be().ok()?;
                    return Some((number, reader.bytes(len.into()).ok()?));
                }
            }
        }
    })
}

impl Entry {
    /// Adds options. Returns the fields of the head that have further ones (option 52).
    fn add(&mut self, octets: &[u8]) -> u8 {
        let mut overloaded = 0;
        for (number, value) in options(octets) {
            match number {
                1 => self.subnet_mask = self.subnet_mask.or_else(|| address_of(value)),
                3 if self.routers.is_empty() => self.routers = addresses(value),
                6 if self.dns_servers.is_empty() => self.dns_servers = addresses(value),
                12 => set(&mut self.host_name, value),
                15 => set(&mut self.domain, value),
                50 => self.requested_address = self.requested_address.or_else(|| address_of(value)),
                51 => self.lease_time = self.lease_time.or_else(|| time_of(value)),
                52 => overloaded = value.first().copied().unwrap_or_default(),
                53 => self.message_type = self.message_type.or_else(|| value.first().map(|kind| Kind(*kind))),
                54 => self.server_address = self.server_address.or_else(|| address_of(value)),
                55 if self.parameters.text().is_empty() => self.parameters = Kept::new(value),
                56 => set(&mut self.text, value),
                58 => self.renewal_time = self.renewal_time.or_else(|| time_of(value)),
                59 => self.rebinding_time = self.rebinding_time.or_else(|| time_of(value)),
                60 => set(&mut self.vendor_class, value),
                61 => {
                    self.client_id.get_or_insert_with(|| digits(value, ""));
                }
                81 => {
                    self.full_name = self.full_name.take().or_else(|| full_name(value));
                }
                _ => {}
            }
        }
        overloaded
    }

    fn known_parameters(&self) -> Option<List<Vec<Name>>> {
        let names = self.parameters.text().0.iter().filter_map(|number| {
            Some(Name(match number {
                1 => "subnet_mask",
                3 => "router",
                6 => "dns_server",
                15 => "domain",
                35 => "arp_timeout",
                42 => "ntp_server",
                66 => "tftp_server_name",
                150 => "tftp_server_ip",
                _ => return None,
            }))
        });
        let names: Vec<_> = names.collect();
        (!names.is_empty()).then_some(List(names))
    }
}

/// Returns the full name of a client (RFC 4702 section 2): flags and two results precede it, and a flag says that it has the
/// format of DNS.
fn full_name(value: &[u8]) -> Option<Kept<255>> {
    let (flags, name) = (*value.first()?, value.get(3..)?);
    if flags & 4 == 0 { text(name) } else { dns_name(name) }
}

/// Returns a name in the format of DNS without compression (RFC 1035 section 3.1), also without its last label.
pub(in crate::protocols) fn dns_name(mut name: &[u8]) -> Option<Kept<255>> {
    let mut labels = Vec::new();
    while let Some((len @ 1..=63, rest)) = name.split_first() {
        let (label, rest) = rest.split_at_checked(usize::from(*len))?;
        labels.push(label);
        name = rest;
    }
    text(&labels.join(&b'.'))
}

fn set<const N: usize>(place: &mut Option<Kept<N>>, value: &[u8]) {
    if place.is_none() {
        *place = text(value);
    }
}

/// Returns a list of addresses.
fn addresses(value: &[u8]) -> KeptList<96> {
    KeptList::of(value.chunks_exact(4).map(|content| Value { tag: KeptItem::ADDRESS, content }))
}

/// Parser of DHCP.
#[derive(Debug, Default)]
pub(crate) struct Dhcp;

state! { struct Dhcp {} }

impl PduParser for Dhcp {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    type Row = Row;

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        let mut reader = Reader::new(pdu.bytes);
        let head = Head::read(&mut reader)?;
        rows.acts_as(match head.operation {
            1 => Role::Client,
            2 => Role::Server,
            _ => return Err(Malformed),
        });
        let hardware_address =
            head.hardware_address.get(..usize::from(head.hardware_len)).ok_or(Malformed)?;
        let mut row = Entry {
            identifier: head.identifier,
            client_hardware_address: (!hardware_address.is_empty()).then(|| digits(hardware_address, ":")),
            client_address: address(head.client),
            assigned_address: address(head.assigned),
            next_server_address: address(head.next_server),
            relay_address: address(head.relay),
            ..Entry::default()
        };
        // The names of a server and of a file, then the options.
        if let (Ok(server_name), Ok(file)) = (reader.bytes(64), reader.bytes(128))
            && reader.be() == Ok(COOKIE)
        {
            let overloaded = row.add(reader.rest());
            if overloaded & 1 != 0 {
                row.add(file);
            }
            if overloaded & 2 != 0 {
                row.add(server_name);
            }
        }
        rows.single(row);
        Ok(AfterPdu::More)
    }
}

#[cfg(test)]
pub(in crate::protocols) mod samples {
    use super::PROTOCOL;
    use crate::protocols::recognizers::samples::{Sample, datagram};

    const BOOTREQUEST: &[u8; 244] = &{
        let mut bytes = [0; 244];
        (bytes[0], bytes[1], bytes[2], bytes[4]) = (1, 1, 6, 0x39);
        (bytes[236], bytes[237], bytes[238], bytes[239]) = (0x63, 0x82, 0x53, 0x63);
        (bytes[240], bytes[241], bytes[242], bytes[243]) = (53, 1, 1, 255);
        bytes
    };

    const NO_COOKIE: &[u8; 244] = &{
        let mut bytes = *BOOTREQUEST;
        bytes[236] = 0;
        bytes
    };

    pub(in crate::protocols) const SAMPLES: &[Sample] =
        &[datagram(&PROTOCOL, 67, BOOTREQUEST), datagram(&PROTOCOL, 6767, BOOTREQUEST)];

    pub(in crate::protocols) const LOOK_ALIKES: &[Sample] = &[datagram(&PROTOCOL, 67, NO_COOKIE)];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check};

    fn message(operation: u8, assigned: [u8; 4], server_name: &[u8], options: &[&[u8]]) -> Vec<u8> {
        let mut octets = vec![operation, 1, 6, 0, 0, 0, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0];
        octets.extend(assigned);
        octets.extend([0; 8]);
        octets.extend([0, 0x0c, 0x29, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        octets.extend_from_slice(server_name);
        octets.resize(octets.len() + 64 - server_name.len() + 128, 0);
        octets.extend(COOKIE.to_be_bytes());
        octets.extend(options.concat());
        octets.push(255);
        octets
    }

    #[test]
    fn cases_of_messages() {
        let request = message(
            1,
            [0; 4],
            b"",
            &[
                &[53, 1, 3, 0, 12, 2],
                b"pc",
                &[50, 4, 192, 0, 2, 7, 55, 3, 1, 15, 99, 60, 4],
                b"MSFT",
                &[61, 3, 1, 2, 3, 81, 9, 5, 0, 0, 2],
                b"pc\x02de",
            ],
        );
        // Its DNS servers are in the field for the name of the server.
        let ack = message(
            2,
            [192, 0, 2, 7],
            &[6, 8, 192, 0, 2, 1, 192, 0, 2, 2, 255],
            &[&[53, 1, 5, 52, 1, 2, 54, 4, 192, 0, 2, 1, 51, 4, 0, 0, 14, 16, 1, 4, 255, 255, 255, 0]],
        );
        let discover = message(1, [0; 4], b"", &[&[53, 1, 1]]);
        let without_cookie = |number: u8| {
            let mut octets = message(1, [0; 4], b"", &[&[0; 40], &[53, 1, 3, 12, 1, b'x']]);
            octets[7] = number;
            octets[236..240].fill(0);
            octets
        };
        let cases = [
            Case {
                name: "options without their cookie between two messages",
                turns: vec![
                    (Role::Client, discover.clone()),
                    (Role::Client, without_cookie(1)),
                    (Role::Client, without_cookie(2)),
                    (Role::Client, discover),
                ],
                rows: &[
                    "dhcp message_type=discover identifier=4660 client_hardware_address=00:0c:29:01:02:03",
                    "dhcp identifier=4609 client_hardware_address=00:0c:29:01:02:03",
                    "dhcp identifier=4610 client_hardware_address=00:0c:29:01:02:03",
                    "dhcp message_type=discover identifier=4660 client_hardware_address=00:0c:29:01:02:03",
                ],
            },
            Case {
                name: "a request and its acknowledgment",
                turns: vec![(Role::Client, request), (Role::Server, ack)],
                rows: &[
                    "dhcp message_type=request identifier=4660 client_hardware_address=00:0c:29:01:02:03 client_id=010203 \
                host_name=pc full_name=pc.de vendor_class=MSFT requested_address=Address(192.0.2.7)",
                    "dhcp message_type=ack identifier=4660 client_hardware_address=00:0c:29:01:02:03 \
                assigned_address=Address(192.0.2.7) server_address=Address(192.0.2.1) \
                subnet_mask=Address(255.255.255.0) dns_servers=List([Text(\"192.0.2.1\"), Text(\"192.0.2.2\")]) \
                lease_time=3600s",
                ],
            },
        ];
        check(&KitEntry::of::<Dhcp>(), &cases);
    }
}
