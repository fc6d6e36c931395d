//! What attacks on a link and floods look like: who claims an address, who asks for many, and who is sent what nobody
//! asked for.

use std::net::IpAddr;
use std::time::Duration;

use flowgauge::base::VlanIds;
use flowgauge::neighbor::{Neighbor, NeighborMessage};
use flowgauge::protocols::dhcp;
use flowgauge::session::kit::KitMessage;
use flowgauge::{FlowRecord, IpProtocol, TcpFlags, Timestamp};
use serde::{Deserialize, Serialize};

use crate::bounded::{Bounded, Weight};
use crate::counts::Attempts;
use crate::few::Few;

/// Time within which an address that moves to another MAC address is claimed by two hosts.
const CLAIM_TIME: Duration = Duration::from_secs(300);

/// First octets of the MAC addresses that routers share: VRRP, HSRP and GLBP. Their owners change by design.
const SHARED_MACS: [&[u8]; 6] = [
    &[0x00, 0x00, 0x5e, 0x00, 0x01],
    &[0x00, 0x00, 0x5e, 0x00, 0x02],
    &[0x00, 0x00, 0x0c, 0x07, 0xac],
    &[0x00, 0x00, 0x0c, 0x9f],
    &[0x00, 0x05, 0x73, 0xa0],
    &[0x00, 0x07, 0xb4],
];

/// UDP ports of services whose answers may be much longer than the requests: chargen, quotes, DNS, portmapper, NTP, NetBIOS,
/// SNMP, CLDAP, RIP, SSDP, WS-Discovery, memcached.
const AMPLIFIERS: [u16; 12] = [17, 19, 53, 111, 123, 137, 161, 389, 520, 1900, 3702, 11_211];

/// ICMP types of echo requests.
const ECHO_REQUEST: u8 = 8;
const ECHO_REQUEST_V6: u8 = 128;

/// Least number of connections with data in one direction that say something about a capture.
const ONE_WAY_MIN: u64 = 16;

/// Number of minutes in which connections to a service are counted.
const MINUTE_COUNT: usize = 8;

/// Port of SNMP, whose clients ask for long answers in regular operation.
pub(crate) const SNMP: u16 = 161;

/// MAC addresses that were stated for an address.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) macs: Few<[u8; 6]>,
    latest: Option<([u8; 6], Timestamp)>,
    /// Number of times at which another MAC address was stated soon after.
    pub(crate) change_count: u64,
}

impl Weight for Claims {
    fn weight(&self) -> u64 {
        self.change_count
    }

    fn heap_bytes(&self) -> usize {
        self.macs.heap_bytes()
    }
}

/// Connections to a service, and those that nobody completed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct HalfOpen {
    pub(crate) handshakes: Handshakes,
    pub(crate) sources: Few<IpAddr>,
    minutes: [Minute; MINUTE_COUNT],
}

/// Numbers of connections that nobody completed, and of others.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Handshakes {
    pub(crate) open: u64,
    pub(crate) completed: u64,
}

impl Handshakes {
    fn add(&mut self, is_complete: bool) {
        *(if is_complete { &mut self.completed } else { &mut self.open }) += 1;
    }
}

/// The connections that began in a minute, counted from 1970.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Minute {
    number: u64,
    handshakes: Handshakes,
}

impl HalfOpen {
    /// Counts a connection. Of the minutes, those remain in which most connections were not completed.
    fn add(&mut self, start: Timestamp, is_complete: bool) {
        self.handshakes.add(is_complete);
        let number = start.as_nanos() / 60_000_000_000;
        let known = self.minutes.iter().position(|minute| minute.number == number);
        let least = || {
            let count = |(_, minute): &(usize, &Minute)| (minute.handshakes.open, minute.number);
            self.minutes.iter().enumerate().min_by_key(count).map(|(index, _)| index)
        };
        let Some(minute) = known.or_else(least).and_then(|index| self.minutes.get_mut(index)) else { return };
        if minute.number != number {
            *minute = Minute { number, ..Minute::default() };
        }
        minute.handshakes.add(is_complete);
    }

    /// Returns the connections of the two successive minutes in which most were not completed.
    pub(crate) fn fastest(&self) -> Handshakes {
        let of = |number| {
            let minute = self.minutes.iter().find(|minute| minute.number == number);
            minute.map(|minute| minute.handshakes).unwrap_or_default()
        };
        let both = self.minutes.iter().map(|minute| {
            let next = of(minute.number + 1);
            let Handshakes { open, completed } = minute.handshakes;
            Handshakes { open: open + next.open, completed: completed + next.completed }
        });
        both.max_by_key(|handshakes| handshakes.open).unwrap_or_default()
    }
}

impl Weight for HalfOpen {
    fn weight(&self) -> u64 {
        self.handshakes.open
    }

    fn heap_bytes(&self) -> usize {
        self.sources.heap_bytes()
    }
}

/// Answers that a host received.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answers {
    pub(crate) flow_count: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) senders: Few<IpAddr>,
    /// True if the host asked a group, whose members all answer.
    pub(crate) has_asked_group: bool,
}

impl Weight for Answers {
    fn weight(&self) -> u64 {
        self.received
    }

    fn heap_bytes(&self) -> usize {
        self.senders.heap_bytes()
    }
}

/// Offers of DHCP to a client: server, address, and what the routers and DNS servers are.
pub(crate) type Offer = (IpAddr, IpAddr, String);

/// Offers of DHCP to a client, of which each follows soon after the one before.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Offers {
    pub(crate) all: Few<Offer>,
    latest: Timestamp,
}

impl Offers {
    /// Adds an offer. A client that asks again much later may be in another network.
    fn insert(&mut self, offer: Offer, time: Timestamp) {
        if time.saturating_since(self.latest) > CLAIM_TIME && !self.contradict() {
            self.all = Few::default();
        }
        self.latest = time;
        self.all.insert(offer);
    }

    /// Returns whether two servers offered something different.
    pub(crate) fn contradict(&self) -> bool {
        self.all.iter().any(|(server, address, options)| {
            self.all.iter().any(|(other, other_address, other_options)| {
                server != other && (address != other_address || options != other_options)
            })
        })
    }
}

/// Requests for the addresses of a link, of which the hosts are those that did not answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Requests {
    pub(crate) attempts: Attempts,
    /// Addresses whose owners answered.
    pub(crate) answered: Few<IpAddr>,
}

impl Weight for Requests {
    fn weight(&self) -> u64 {
        self.attempts.weight()
    }

    fn heap_bytes(&self) -> usize {
        self.attempts.heap_bytes() + self.answered.heap_bytes()
    }
}

impl Weight for Offers {
    fn weight(&self) -> u64 {
        self.all.len() as u64
    }

    fn heap_bytes(&self) -> usize {
        // Texts of routers and servers are short.
        self.all.heap_bytes() + self.all.len() * 64
    }
}

/// What attacks look like. Each map is bounded.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Attacks {
    /// MAC addresses by address; those of each VLAN are others.
    pub(crate) claims: Bounded<(VlanIds, IpAddr), Claims, 16_384>,
    /// Requests of ARP and neighbor solicitations by sender.
    pub(crate) requests: Bounded<(VlanIds, IpAddr), Requests, 4096>,
    /// Echo requests without an answer by sender.
    pub(crate) pings: Bounded<IpAddr, Attempts, 4096>,
    /// Connections that the client did not complete, by service.
    pub(crate) half_open: Bounded<(IpAddr, Option<u16>), HalfOpen, 4096>,
    /// Hosts that received answers to connections which they did not begin.
    pub(crate) reflected: Bounded<IpAddr, Answers, 4096>,
    /// Hosts that received answers of UDP services, and the port of the service.
    pub(crate) amplified: Bounded<(IpAddr, u16), Answers, 4096>,
    /// Offers of DHCP by MAC address of the client.
    pub(crate) offers: Bounded<String, Offers, 4096>,
    /// Numbers of TCP connections with data of which one direction was captured, and of those with both.
    one_way_count: u64,
    two_way_count: u64,
}

impl Attacks {
    pub(crate) fn held_bytes(&self) -> usize {
        self.claims.held_bytes(|_| 0)
            + self.requests.held_bytes(|_| 0)
            + self.pings.held_bytes(|_| 0)
            + self.half_open.held_bytes(|_| 0)
            + self.reflected.held_bytes(|_| 0)
            + self.amplified.held_bytes(|_| 0)
            + self.offers.held_bytes(String::capacity)
    }

    pub(crate) fn halve(&mut self) {
        self.claims.halve();
        self.requests.halve();
        self.pings.halve();
        self.half_open.halve();
        self.reflected.halve();
        self.amplified.halve();
        self.offers.halve();
    }

    /// Notes who claims an address, and who asks for one.
    pub(crate) fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        let head = &neighbor.head;
        let (claim, request, answer) = match &neighbor.message {
            NeighborMessage::Arp(arp) => {
                let ends = arp.sender_address.zip(arp.target_address);
                let request = ends.filter(|_| arp.arp_operation.0 == 1 && !arp.is_announcement);
                let answer = ends.filter(|_| arp.arp_operation.0 == 2);
                (arp.sender_address.zip(arp.sender_mac), request, answer)
            }
            // Others may have been forwarded, which no router does.
            NeighborMessage::Ndp(ndp) if head.hop_limit == Some(255) => match ndp.ndp_type.0 {
                135 => (None, head.source_address.zip(ndp.target_address), None),
                136 => {
                    let answer = ndp.target_address.zip(head.destination_address);
                    (ndp.target_address.zip(ndp.target_mac), None, answer)
                }
                _ => (None, None, None),
            },
            _ => (None, None, None),
        };
        let link = head.vlan_ids;
        let is_address = |address: &IpAddr| !address.is_unspecified();
        if let Some((address, mac)) = claim.filter(|(address, _)| is_address(address)) {
            self.claim((link, address), mac, head.timestamp);
        }
        if let Some((source, target)) = request.filter(|(source, _)| is_address(source)) {
            let Requests { attempts, answered } = self.requests.entry((link, source));
            attempts.flow_count += 1;
            if !answered.contains(&target) {
                attempts.hosts.insert(target);
            }
        }
        if let Some((owner, source)) = answer.filter(|(_, source)| is_address(source))
            && let Some(requests) = self.requests.get_mut(&(link, source))
        {
            requests.attempts.hosts.remove(&owner);
            requests.answered.insert(owner);
        }
    }

    fn claim(&mut self, address: (VlanIds, IpAddr), mac: [u8; 6], time: Timestamp) {
        if SHARED_MACS.iter().any(|shared| mac.starts_with(shared)) {
            return;
        }
        let claims = self.claims.entry(address);
        claims.macs.insert(mac);
        if let Some((known, since)) = claims.latest
            && known != mac
            && time.saturating_since(since) <= CLAIM_TIME
        {
            claims.change_count += 1;
        }
        claims.latest = Some((mac, time));
    }

    /// Notes an offer of DHCP.
    pub(crate) fn message(&mut self, message: &KitMessage<'_>, time: Timestamp) {
        let Some(entry) = message.get::<dhcp::Entry>() else { return };
        // Offer and acknowledgment (RFC 2132 section 9.6).
        let is_offer = matches!(entry.message_type, Some(dhcp::Kind(2 | 5)));
        let client =
            entry.client_hardware_address.as_ref().map(|address| address.text().to_str_lossy().into_owned());
        if let (true, Some(client), Some(server), Some(address)) =
            (is_offer, client, entry.server_address, entry.assigned_address)
        {
            let texts = entry.routers.iter().chain(entry.dns_servers.iter()).map(|item| item.to_string());
            let options = texts.collect::<Vec<_>>().join(" ");
            self.offers.entry(client).insert((server, address, options.chars().take(64).collect()), time);
        }
    }

    /// Notes what the record of a flow shows.
    pub(crate) fn record(&mut self, record: &FlowRecord) {
        let (source, destination) = (record.source_address(), record.destination_address());
        match record.protocol() {
            IpProtocol::ICMP | IpProtocol::ICMPV6 => {
                let is_unanswered = record.reverse.counters.packet_count == 0;
                if is_unanswered && matches!(record.icmp, Some((ECHO_REQUEST | ECHO_REQUEST_V6, _))) {
                    let pings = self.pings.entry(source);
                    pings.flow_count += 1;
                    pings.hosts.insert(destination);
                }
            }
            IpProtocol::TCP => self.tcp(record),
            IpProtocol::UDP => {
                let to_service = record.destination_port().filter(|port| AMPLIFIERS.contains(port));
                let from_service = record.source_port().filter(|port| AMPLIFIERS.contains(port));
                let octets = [&record.forward, &record.reverse].map(|side| side.counters.payload_octet_count);
                let [forward, reverse] = octets;
                match (to_service, from_service) {
                    (Some(port), None) => self.answered((source, port), destination, (forward, reverse)),
                    // Answers without a request.
                    (None, Some(port)) => self.answered((destination, port), source, (reverse, forward)),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn answered(&mut self, to: (IpAddr, u16), from: IpAddr, (sent, received): (u64, u64)) {
        if crate::counts::is_group(&to.0) {
            return;
        }
        // Requests without an answer count too.
        let answers = self.amplified.entry(to);
        answers.sent += sent;
        answers.has_asked_group |= crate::counts::is_group(&from);
        if received > 0 {
            answers.flow_count += 1;
            answers.received += received;
            answers.senders.insert(from);
        }
    }

    /// Returns whether connections with data were mostly captured in one direction only. What a host receives without having
    /// asked for it is not known then.
    pub(crate) const fn is_one_way(&self) -> bool {
        self.one_way_count >= ONE_WAY_MIN && self.one_way_count > self.two_way_count
    }

    fn tcp(&mut self, record: &FlowRecord) {
        let [there, back] = [&record.forward, &record.reverse].map(|side| side.tcp_flags);
        let has = |flags: TcpFlags, flag: TcpFlags| flags.contains(flag);
        let (source, destination) = (record.source_address(), record.destination_address());
        let payload = [&record.forward, &record.reverse].map(|side| side.counters.payload_octet_count);
        match [&record.forward, &record.reverse].map(|side| side.counters.packet_count) {
            _ if payload == [0, 0] => {}
            [0, _] | [_, 0] => self.one_way_count += 1,
            _ => self.two_way_count += 1,
        }
        if has(there, TcpFlags::SYN) {
            let service = self.half_open.entry((destination, record.destination_port()));
            // A second one with the acknowledgment would complete it.
            let is_complete =
                has(there, TcpFlags::ACK) || has(there, TcpFlags::RST) || has(back, TcpFlags::RST);
            service.add(record.start, is_complete);
            if !is_complete {
                service.sources.insert(source);
            }
        }
        // Either side may be taken for the initiator of a connection without its first segment.
        let is_answer = |one: TcpFlags, other: TcpFlags| {
            has(one, TcpFlags::SYN)
                && has(one, TcpFlags::ACK)
                && !has(other, TcpFlags::SYN)
                && !has(other, TcpFlags::ACK)
                && !has(one, TcpFlags::FIN)
                && payload == [0, 0]
        };
        let to = if is_answer(back, there) {
            Some((source, destination, record.reverse.counters.octet_count))
        } else if is_answer(there, back) {
            Some((destination, source, record.forward.counters.octet_count))
        } else {
            None
        };
        if let Some((victim, sender, octet_count)) = to {
            let answers = self.reflected.entry(victim);
            answers.flow_count += 1;
            answers.received += octet_count;
            answers.senders.insert(sender);
        }
    }
}
