//! What a capture contains, collected in one pass and bounded memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use flowgauge::base::ApplicationName;
use flowgauge::protocols::tls::{self, Certificate, DistinguishedName};
use flowgauge::reassembler::SkewStats;
use flowgauge::session::MessageMeta;
use flowgauge::transaction::{Dns, TEXT_LEN_MAX};
use flowgauge::{ConnState, FlowRecord, IpProtocol, Packet, Timestamp};
use serde::{Deserialize, Serialize};

use crate::attacks::Attacks;
use crate::bounded::{Bounded, Weight};
use crate::counts::{Attempts, Traffic, is_group};
use crate::few::Few;
use crate::hosts::{HostRow, Hosts};
use crate::incident::IncidentKind;
use crate::timeline::Timeline;

/// A transport protocol, the application, and whether its content proves it.
pub type Service = (IpProtocol, Option<ApplicationName>, bool);

/// Both ends of flows: source, destination, number of the protocol, and the port of the destination.
pub type Conversation = (IpAddr, IpAddr, u8, Option<u16>);

/// The destination of clear-text logins, their protocol and kind.
pub(crate) type Login = (IpAddr, Cow<'static, str>, Cow<'static, str>);

/// What an incident is, the protocol, client and server, and whom or what it concerns.
pub(crate) type Incident = (IncidentKind, Cow<'static, str>, IpAddr, IpAddr, String);

/// Maximum number of times of a conversation.
const TIME_MAX: usize = 256;

/// The times at which flows or requests of a conversation began: the first ones, and how many there are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Times {
    pub(crate) starts: Vec<Timestamp>,
    pub(crate) count: u64,
}

impl Weight for Times {
    fn weight(&self) -> u64 {
        self.count
    }

    fn heap_bytes(&self) -> usize {
        self.starts.capacity() * size_of::<Timestamp>()
    }
}

/// A number of occurrences.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Count(pub u64);

impl Weight for Count {
    fn weight(&self) -> u64 {
        self.0
    }
}

/// The flows with the greatest values.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Top {
    pub(crate) flows: Vec<(u64, FlowRecord)>,
}

/// Maximum number of flows of a list.
const TOP_MAX: usize = 100;

impl Top {
    fn add(&mut self, value: u64, record: &FlowRecord) {
        let place = self.flows.partition_point(|(known, _)| *known >= value);
        if place < TOP_MAX {
            self.flows.insert(place, (value, record.clone()));
            self.flows.truncate(TOP_MAX);
        }
    }
}

/// Counts of TCP.
#[derive(Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tcp {
    /// Number of flow records.
    pub connection_count: u64,
    /// Number of packets.
    pub segment_count: u64,
    pub(crate) retransmitted_count: u64,
    /// Number of times at which a window was closed for at least [`CLOSED_MIN`], and the longest of them.
    pub(crate) closed_count: u64,
    pub(crate) closed: Duration,
    pub(crate) reset_count: u64,
    /// Round-trip times of handshakes by responder.
    pub(crate) rtts: Bounded<IpAddr, Rtts, 4096>,
}

/// Maximum number of round-trip times of a host.
const RTT_MAX: usize = 64;

/// Round-trip times of handshakes with a host: the first ones, and how many there are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rtts {
    pub(crate) first: Vec<Duration>,
    pub(crate) count: u64,
}

impl Weight for Rtts {
    fn weight(&self) -> u64 {
        self.count
    }

    fn heap_bytes(&self) -> usize {
        self.first.capacity() * size_of::<Duration>()
    }
}

/// Counts of DNS.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Names {
    pub(crate) query_count: u64,
    pub(crate) unanswered_count: u64,
    /// Codes of failed responses.
    pub(crate) failures: BTreeMap<String, u64>,
    pub(crate) failed: Bounded<String, Count, 16_384>,
    pub(crate) queried: Bounded<String, Count, 16_384>,
}

/// Times of packets that show that a clock was set.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Clock {
    /// Packets that are earlier than another one before them by at least [`LATE_MIN`].
    pub(crate) late_count: u64,
    /// The greatest of these differences.
    pub(crate) late: Duration,
    /// The longest time without a packet, and its start.
    pub(crate) pause: Duration,
    pub(crate) pause_start: Option<Timestamp>,
}

/// Time by which a packet is late that is not only reordered between interfaces or processors.
pub(crate) const LATE_MIN: Duration = Duration::from_secs(1);

/// What a capture contains. A [`Collector`](crate::Collector) collects it, and [`findings`](Self::findings) returns what
/// follows from it. `Serialize` and `Deserialize` save it, so that a later pass can continue.
#[derive(Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Facts {
    /// Time of the earliest packet.
    pub first: Option<Timestamp>,
    /// Time of the latest packet.
    pub last: Option<Timestamp>,
    pub(crate) clock: Clock,
    /// Octets of packets over time.
    pub timeline: Timeline,
    /// Numbers of packets of IPv4 and IPv6.
    pub packet_count: [u64; 2],
    /// Traffic by protocol and application.
    pub services: Bounded<Service, Traffic>,
    /// Traffic by host. That between a host and itself counts once.
    pub hosts: Bounded<IpAddr, Traffic>,
    /// Traffic by both ends.
    pub conversations: Bounded<Conversation, Traffic>,
    pub(crate) attempts: Bounded<IpAddr, Attempts, 4096>,
    /// Flows of UDP without an answer, by source and destination.
    pub(crate) datagrams: Bounded<(IpAddr, IpAddr), Attempts, 4096>,
    pub(crate) times: Bounded<Conversation, Times, 4096>,
    pub(crate) long: Top,
    pub(crate) uploads: Top,
    /// Counts of TCP.
    pub tcp: Tcp,
    pub(crate) names: Names,
    /// Connections by version of TLS.
    pub(crate) tls_versions: BTreeMap<String, u64>,
    pub(crate) expired: Bounded<String, Count, 16_384>,
    pub(crate) self_signed: Bounded<String, Count, 16_384>,
    /// Clear-text logins by destination and kind.
    pub(crate) logins: Bounded<Login, Count>,
    /// Incidents that messages show.
    #[serde(default)]
    pub(crate) incidents: Bounded<Incident, Count, 16_384>,
    /// Applications on ports that are not theirs.
    pub(crate) foreign_ports: Bounded<(ApplicationName, Option<u16>), Traffic>,
    /// What is known of each host.
    #[serde(default)]
    pub known: Hosts,
    #[serde(default)]
    pub(crate) attacks: Attacks,
    /// VLAN ids of initiators.
    pub vlan_ids: Few<u16>,
    /// Kinds of outer headers, such as `gre`.
    pub tunnels: Few<Cow<'static, str>>,
    /// Skew between the directions of the captures, by responses of DNS over UDP that precede their queries. That of TCP is
    /// [`Totals::skew`](crate::Totals::skew).
    #[serde(default)]
    pub skew: SkewStats,
}

/// Time for which a receiver closes its window that is not only the time to read a buffer.
pub(crate) const CLOSED_MIN: Duration = Duration::from_millis(100);

/// Payload that an upload has at least.
pub(crate) const UPLOAD_MIN: u64 = 1_000_000;

/// What is known of the responder's port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortFacts {
    /// True if it is one of the flow's application.
    pub(crate) is_known_port: bool,
    /// True if it is that of a service, and not one for the data of a file or that of a client.
    pub(crate) is_service: bool,
}

impl Facts {
    /// Returns the memory of the facts in bytes. Reads all entries of the smaller maps.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        let texts = |map: &Bounded<String, Count, 16_384>| map.held_bytes(String::capacity);
        let maps = [
            self.services.table_bytes(),
            self.hosts.table_bytes(),
            self.conversations.table_bytes(),
            self.logins.table_bytes(),
            self.foreign_ports.table_bytes(),
            self.attempts.held_bytes(|_| 0),
            self.datagrams.held_bytes(|_| 0),
            self.times.held_bytes(|_| 0),
            self.tcp.rtts.held_bytes(|_| 0),
            self.incidents.held_bytes(|(.., what)| what.capacity()),
            self.known.held_bytes(),
            self.attacks.held_bytes(),
            texts(&self.names.failed),
            texts(&self.names.queried),
            texts(&self.expired),
            texts(&self.self_signed),
        ];
        let flow_count = self.long.flows.capacity() + self.uploads.flows.capacity();
        (maps.iter().sum::<usize>() + flow_count * size_of::<(u64, FlowRecord)>()) as u64
    }

    /// Returns a row for each host that sent something, in the order of their addresses.
    #[must_use]
    pub fn host_rows(&self) -> Vec<HostRow<'_>> {
        self.known.rows(|address| self.hosts.get(address).copied())
    }

    /// Removes the half of the entries of each map with the least weights.
    #[cold]
    pub(crate) fn shrink(&mut self) {
        self.services.halve();
        self.hosts.halve();
        self.conversations.halve();
        self.logins.halve();
        self.incidents.halve();
        self.known.halve();
        self.attacks.halve();
        self.foreign_ports.halve();
        self.attempts.halve();
        self.datagrams.halve();
        self.times.halve();
        self.tcp.rtts.halve();
        self.names.failed.halve();
        self.names.queried.halve();
        self.expired.halve();
        self.self_signed.halve();
    }

    pub(crate) fn packet(&mut self, packet: &Packet<'_>) {
        let time = packet.timestamp;
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        if let Some(last) = self.last {
            self.clock.add(last, time);
        }
        self.last = Some(self.last.map_or(time, |last| last.max(time)));
        self.timeline.add(time.as_nanos(), 0, packet.wire_len.into());
        let [v4, v6] = &mut self.packet_count;
        *(if packet.key.is_ipv6() { v6 } else { v4 }) += 1;
    }

    /// Adds the record of a flow.
    pub(crate) fn record(&mut self, record: &FlowRecord, PortFacts { is_known_port, is_service }: PortFacts) {
        let (source, destination) = (record.source_address(), record.destination_address());
        let (protocol, port) = (record.protocol(), record.destination_port());
        let application = record.application;
        let is_proven = application
            .is_some_and(|application| application.evidence == flowgauge::session::Evidence::Content);
        let name = application.map(|application| application.name);
        self.known.record(record, is_service);
        self.attacks.record(record);
        self.services.entry((protocol, name, is_proven)).add(record);
        self.hosts.entry(source).add(record);
        if source != destination {
            self.hosts.entry(destination).add_reversed(record);
        }
        let conversation = (source, destination, protocol.0, port);
        self.conversations.entry(conversation).add(record);
        if is_unanswered(record) || is_probe(record) {
            self.attempts.entry(source).add(record);
        } else {
            if is_unanswered_datagram(record) {
                self.datagrams.entry((source, destination)).add(record);
            }
            self.begun(conversation, record.start);
        }
        if record.reverse.counters.packet_count > 0 {
            self.long.add(u64::try_from(record.duration().as_nanos()).unwrap_or(u64::MAX), record);
        }
        let payload = |side: &flowgauge::record::SideRecord| side.counters.payload_octet_count;
        if payload(&record.forward) >= UPLOAD_MIN && payload(&record.forward) > 4 * payload(&record.reverse) {
            self.uploads.add(payload(&record.forward), record);
        }
        if protocol == IpProtocol::TCP {
            self.tcp.add(record);
        }
        if let Some(name) = name.filter(|_| is_proven && !is_known_port) {
            self.foreign_ports.entry((name, port)).add(record);
        }
        record.forward.vlan_ids.iter().for_each(|id| self.vlan_ids.insert(id));
        if let Some(encapsulation) = &record.encapsulation {
            let headers = encapsulation.encapsulation.headers().iter();
            headers.for_each(|header| self.tunnels.insert(header.kind.name().into()));
        }
    }

    /// Notes that a flow or request of a conversation began.
    pub(crate) fn begun(&mut self, conversation: Conversation, start: Timestamp) {
        let times = self.times.entry(conversation);
        times.count += 1;
        if times.starts.len() < TIME_MAX {
            times.starts.push(start);
        }
    }

    /// Notes what the hello and the certificate of a side state.
    pub(crate) fn tls_message(&mut self, meta: &MessageMeta, message: &tls::Message<'_>) {
        match message {
            tls::Message::ServerHello(hello) if !hello.is_hello_retry_request() => {
                *self.tls_versions.entry(hello.version().to_string()).or_default() += 1;
            }
            tls::Message::CertificateChain(chain) => {
                chain.iter().take(1).for_each(|certificate| self.certificate(&certificate, meta.timestamp));
            }
            _ => {}
        }
    }

    fn certificate(&mut self, certificate: &Certificate<'_>, seen: Timestamp) {
        let seconds = i64::try_from(seen.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX);
        if certificate.not_after.is_some_and(|end| end.0 < seconds) {
            self.expired.entry(text(&certificate.subject)).0 += 1;
        }
        // The same text may have other types of strings.
        let (subject, issuer) = (&certificate.subject, &certificate.issuer);
        if subject == issuer || text(subject) == text(issuer) {
            self.self_signed.entry(text(&certificate.subject)).0 += 1;
        }
    }
}

/// Returns a name as it is kept.
fn text(name: &DistinguishedName<'_>) -> String {
    name.to_string().chars().take(TEXT_LEN_MAX).collect()
}

impl Attempts {
    fn add(&mut self, record: &FlowRecord) {
        self.flow_count += 1;
        self.refused_count += u64::from(record.conn_state == ConnState::Rej);
        self.probe_count += u64::from(is_probe(record));
        self.hosts.insert(record.destination_address());
        record.destination_port().into_iter().for_each(|port| self.ports.insert(port));
    }
}

impl Clock {
    /// Adds the time of a packet, and the latest one of those before it.
    fn add(&mut self, last: Timestamp, time: Timestamp) {
        let late = last.saturating_since(time);
        if late >= LATE_MIN && time > Timestamp::ZERO {
            self.late_count += 1;
            self.late = self.late.max(late);
        }
        let pause = time.saturating_since(last);
        if pause > self.pause && last > Timestamp::ZERO {
            (self.pause, self.pause_start) = (pause, Some(last));
        }
    }
}

/// Returns whether the initiator of a TCP connection reset it after the answer, and neither side sent data.
fn is_probe(record: &FlowRecord) -> bool {
    let has_payload = |side: &flowgauge::record::SideRecord| side.counters.payload_octet_count > 0;
    record.protocol() == IpProtocol::TCP
        && matches!(record.conn_state, ConnState::Rsto | ConnState::Rstos0)
        && record.forward.counters.packet_count <= 3
        && !has_payload(&record.forward)
        && !has_payload(&record.reverse)
}

/// Returns whether the initiator of a TCP connection had no answer, or a refusal.
fn is_unanswered(record: &FlowRecord) -> bool {
    record.protocol() == IpProtocol::TCP && matches!(record.conn_state, ConnState::S0 | ConnState::Rej)
}

/// Returns whether a host had no answer to its datagrams.
fn is_unanswered_datagram(record: &FlowRecord) -> bool {
    let is_udp = record.protocol() == IpProtocol::UDP;
    is_udp && record.conn_state == ConnState::S0 && !is_group(&record.destination_address())
}

/// Returns whether a side aborted an established connection.
fn is_reset(record: &FlowRecord) -> bool {
    matches!(record.conn_state, ConnState::Rsto | ConnState::Rstr) && !is_probe(record)
}

impl Tcp {
    /// Notes that a window was closed for some time.
    pub(crate) fn closed(&mut self, time: Duration) {
        if time >= CLOSED_MIN {
            self.closed_count += 1;
            self.closed = self.closed.max(time);
        }
    }

    fn add(&mut self, record: &FlowRecord) {
        self.connection_count += 1;
        self.segment_count += record.packet_count();
        // The handshake of a host that does not answer is repeated, which is no loss.
        if !is_unanswered(record) {
            for side in [&record.forward, &record.reverse] {
                self.retransmitted_count += u64::from(side.tcp.retransmitted_count);
            }
        }
        self.reset_count += u64::from(is_reset(record));
        if let Some(rtt) = record.handshake_rtt {
            let rtts = self.rtts.entry(record.destination_address());
            rtts.count += 1;
            if rtts.first.len() < RTT_MAX {
                rtts.first.push(rtt);
            }
        }
    }
}

impl Names {
    pub(crate) fn add(&mut self, dns: &Dns) {
        self.query_count += 1;
        let name = dns.query.as_deref().unwrap_or_default().to_ascii_lowercase();
        match dns.rcode {
            None => self.unanswered_count += 1,
            Some(rcode) if rcode.0 != 0 => {
                *self.failures.entry(rcode.to_string()).or_default() += 1;
                self.failed.entry(name.clone()).0 += 1;
            }
            Some(_) => {}
        }
        self.queried.entry(name).0 += 1;
    }
}
