//! The sink that collects facts.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use flowgauge::base::DirectionEvidence;
use flowgauge::checkpoint::{self, Invalid, StateWriter};
use flowgauge::codec::{Prefix, Reader};
use flowgauge::neighbor::Neighbor;
use flowgauge::pipeline::TransactionSink;
use flowgauge::protocols::{dns, ftp, http1, http2};
use flowgauge::reassembler::CaptureSide;
use flowgauge::session::MessageMeta;
use flowgauge::transaction::{Content, Dns, Transaction};
use flowgauge::{
    EndReason, Flow, FlowView, Interest, IpProtocol, Message, Packet, Protocol, Protocols as _, Sessions,
    Side, Sink, Standard, TcpFlags, TcpState, Timestamp,
};

use crate::facts::{Conversation, Facts, PortFacts};
use crate::incident::IncidentKind;
use crate::login::ConnectionLogins;
use crate::ports::is_assigned;

/// Collects facts from packets, records and transactions. The pipeline must record outer headers
/// ([`Builder::encapsulation`](flowgauge::Builder::encapsulation)), so that tunnels are known.
#[derive(Debug, Default)]
pub struct Collector {
    /// The facts of all flows that have ended.
    pub facts: Facts,
    held_bytes: Arc<AtomicU64>,
    /// Number of open flows with logins before there was evidence of a connection.
    unproven_count: u64,
    batch_count: u64,
    /// Number of records and transactions after which the memory of the facts is measured.
    until_measured: u64,
    /// Index of the interface of the latest packet.
    interface: u32,
    /// True if transactions of all protocols are read for what they state about hosts.
    is_thorough: bool,
}

/// Least number of records and transactions between two measurements of the memory of the facts.
const ADDED_MIN: u64 = 1024;

/// Memory in bytes of logins of a flow before there was evidence of a connection.
const UNPROVEN_LEN: u64 = size_of::<Unproven>() as u64 + 16;

/// Part of the memory that the facts may have.
const MEMORY_PART: u64 = 4;

/// Number of batches of frames after which the memory of the facts is measured.
const MEASURE_INTERVAL: u64 = 64;

impl Collector {
    /// Returns the collector that reads the transactions of all protocols, for what they state about [hosts](Facts::known):
    /// the software of servers, and systems that user agents name. Otherwise hosts are known from messages.
    #[must_use]
    pub fn thorough(self) -> Self {
        Self { is_thorough: true, ..self }
    }

    /// Measures the memory of the facts. If it is more than a part of that which is left, the half of all entries with the
    /// least weights is removed.
    #[cold]
    fn measure(&mut self, left: u64) {
        let mut bytes = self.facts.held_bytes();
        if bytes > bytes.saturating_add(left) / MEMORY_PART {
            self.facts.shrink();
            bytes = self.facts.held_bytes();
        }
        self.held_bytes.store(bytes, Relaxed);
        // Measuring reads entries, each of which takes some memory.
        self.until_measured = ADDED_MIN.max(bytes / 8192);
    }

    /// Returns the memory of the facts in bytes, which another thread may read. It is measured after each of the first batches
    /// of frames whose numbers are powers of two, and every 64 batches.
    #[must_use]
    pub fn held_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.held_bytes)
    }
}

/// State of an open flow. A checkpoint can save it.
#[derive(Debug, Default)]
pub struct CollectorState {
    /// For each side of the key, the time at which it closed its window; zero while it is open.
    closed_ns: [u64; 2],
    /// The user of FTP is one whose password is no secret.
    is_anonymous: bool,
    /// True for a connection that another one announced, for the data of a file.
    is_for_data: bool,
    /// Protocol, kind and number of logins before there was evidence of a connection.
    unproven: Option<Box<Unproven>>,
    logins: ConnectionLogins,
}

type Unproven = (Cow<'static, str>, Cow<'static, str>, u64);

impl checkpoint::State for CollectorState {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.closed_ns.iter().try_for_each(|since_ns| writer.varint(*since_ns))?;
        writer.bool(self.is_anonymous)?;
        writer.bool(self.is_for_data)?;
        writer.varint(self.logins.to_bits())?;
        writer.bool(self.unproven.is_some())?;
        if let Some((protocol, kind, count)) = self.unproven.as_deref() {
            writer.prefixed(Prefix::U8, protocol.as_bytes())?;
            writer.prefixed(Prefix::U8, kind.as_bytes())?;
            writer.varint(*count)?;
        }
        Ok(())
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let closed_ns = [reader.varint()?, reader.varint()?];
        let (is_anonymous, is_for_data) = (reader.bool()?, reader.bool()?);
        let logins = ConnectionLogins::from_bits(reader.varint()?);
        let unproven = if reader.bool()? {
            let mut text = || reader.prefixed_str(Prefix::U8).map(|text| Cow::Owned(text.to_owned()));
            let (protocol, kind) = (text()?, text()?);
            Some(Box::new((protocol, kind, reader.varint()?)))
        } else {
            None
        };
        Ok(Self { closed_ns, is_anonymous, is_for_data, unproven, logins })
    }
}

impl CollectorState {
    /// Adds a login to those without evidence of a connection. A second kind of login replaces the first.
    fn hold_login(&mut self, protocol: &'static str, kind: &'static str) {
        let held = self.unproven.get_or_insert_with(|| Box::new((protocol.into(), kind.into(), 0)));
        if (&*held.0, &*held.1) != (protocol, kind) {
            **held = (protocol.into(), kind.into(), 0);
        }
        held.2 += 1;
    }

    /// Notes the window of a segment. Returns the time for which it was closed, if the segment opens it.
    fn window(&mut self, packet: &Packet<'_>) -> Option<Duration> {
        let flags = packet.tcp.flags;
        let closed_ns = self.closed_ns.get_mut(packet.side.index())?;
        // A reset has no window.
        if packet.key.protocol() != IpProtocol::TCP || flags.contains(TcpFlags::RST) {
            return None;
        }
        let now_ns = packet.timestamp.as_nanos();
        if packet.tcp.window == 0 {
            if *closed_ns == 0 {
                *closed_ns = now_ns;
            }
            return None;
        }
        let since_ns = std::mem::take(closed_ns);
        (since_ns > 0).then(|| Duration::from_nanos(now_ns.saturating_sub(since_ns)))
    }
}

/// Returns whether a command of FTP names a user without a secret password; `None` if it names no user.
fn is_anonymous(message: &Message<'_>) -> Option<bool> {
    let Message::Ftp(ftp::Message::Command(command)) = message else { return None };
    let is_user = command.verb.0.eq_ignore_ascii_case(b"USER");
    is_user.then(|| command.argument.is_some_and(|user| ftp::is_anonymous(user.0)))
}

/// Returns whether a flow shows that both sides agreed on a connection: a handshake, or octets of both. A single segment
/// may be forged.
fn is_connection(view: &FlowView<'_>) -> bool {
    let has_octets = |side| view.counters(side).payload_octet_count > 0;
    let has_handshake =
        view.tcp_state() >= TcpState::Established && view.tcp_flags(view.initiator()).contains(TcpFlags::SYN);
    has_handshake || (has_octets(Side::A) && has_octets(Side::B))
}

/// Ports of multicast DNS and LLMNR, whose queries only the owner of the name answers.
const LINK_NAME_PORTS: [u16; 2] = [5353, 5355];

/// Applications whose ports are negotiated or configured for each installation.
const ANY_PORT: [&str; 5] = ["bittorrent", "dcerpc", "rtcp", "rtp", "stun"];

/// Returns whether the responder's port is one of the application, or no evidence of anything.
fn is_known_port(view: &FlowView<'_>) -> bool {
    let responder = view.initiator().other();
    let Some((application, port)) = view.application().zip(view.key().port(responder)) else { return true };
    let name = application.name.as_str();
    // Without the begin of a flow, the port may be that of the client.
    let is_sure = !matches!(view.direction_evidence(), DirectionEvidence::FirstSeen);
    if ANY_PORT.contains(&name) || is_assigned(name, port) || !is_sure {
        return true;
    }
    // A protocol without ports of its own is on any, and so are data connections.
    let ports = own_ports(view);
    ports.is_empty() || has_own_port(view, Side::A) || has_own_port(view, Side::B)
}

/// Returns the ports of the flow's application.
fn own_ports(view: &FlowView<'_>) -> &'static [u16] {
    let own = view.application().and_then(|application| Standard::of_name(application.name.as_str()));
    own.map_or(&[], |own| match view.key().protocol() {
        IpProtocol::TCP => own.stream_ports(),
        _ => own.datagram_ports(),
    })
}

/// Returns whether the port of a side is one of the flow's application.
fn has_own_port(view: &FlowView<'_>, side: Side) -> bool {
    view.key().port(side).is_some_and(|port| own_ports(view).contains(&port))
}

fn conversation(view: &FlowView<'_>) -> Conversation {
    let (key, side) = (view.key(), view.initiator());
    (key.address(side), key.address(side.other()), key.protocol().0, key.port(side.other()))
}

/// Returns the time in nanoseconds from a response of DNS over UDP to its query, which was captured later.
fn late_ns(view: &FlowView<'_>, transaction: &Transaction, dns: &Dns) -> Option<u64> {
    let is_late = view.key().protocol() == IpProtocol::UDP
        // Corrected times are out of order.
        && dns.response_time.is_none()
        && dns.query_flags.is_some()
        && dns.response_flags.is_some();
    is_late.then(|| transaction.end().as_nanos().saturating_sub(transaction.start().as_nanos()))
}

impl Sink for Collector {
    type State = CollectorState;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::PACKETS | Interest::NEIGHBORS
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        self.until_measured = self.until_measured.saturating_sub(1);
        self.facts.known.neighbor(neighbor);
        self.facts.attacks.neighbor(neighbor);
    }

    fn packet(&mut self, flow: &mut Flow<'_, CollectorState>, packet: &Packet<'_>) {
        self.facts.packet(packet);
        self.facts.known.packet(packet);
        self.interface = packet.interface;
        if let Some(time) = flow.state.window(packet) {
            self.facts.tcp.closed(time);
        }
    }

    fn message(&mut self, flow: &mut Flow<'_, CollectorState>, meta: &MessageMeta, message: &Message<'_>) {
        let request = match message {
            Message::Http1(http1::Message::Request(request)) => request.transaction,
            Message::Http2(http2::Message::Request(request)) => request.transaction,
            _ => 0,
        };
        // Further requests of a connection; its first one began with the flow.
        if request > 0 {
            self.until_measured = self.until_measured.saturating_sub(1);
            self.facts.begun(conversation(&flow.view), meta.timestamp);
        }
        if let Message::Tls(message) | Message::Dtls(message) = message {
            self.until_measured = self.until_measured.saturating_sub(1);
            self.facts.tls_message(meta, message);
        }
        flow.state.is_for_data |= matches!(message, Message::FtpData(_));
        if let Message::Kit(message) = message {
            self.facts.attacks.message(message, meta.timestamp);
        }
        if let Message::Kit(message) = message
            && let Some((kind, what)) = IncidentKind::of(message)
        {
            self.until_measured = self.until_measured.saturating_sub(1);
            let (key, client) = (flow.view.key(), flow.view.initiator());
            let ends = (key.address(client), key.address(client.other()));
            let incident = (kind, meta.protocol.name().into(), ends.0, ends.1, what);
            self.facts.incidents.entry(incident).0 += 1;
        }
        self.facts.known.message(&flow.view, meta.from, message);
        if let Some(is_anonymous) = is_anonymous(message) {
            flow.state.is_anonymous = is_anonymous;
        }
        if let Some(kind) = flow.state.logins.login(message).filter(|_| !flow.state.is_anonymous) {
            if is_connection(&flow.view) {
                let server = flow.view.key().address(flow.view.initiator().other());
                self.facts.logins.entry((server, meta.protocol.name().into(), kind.into())).0 += 1;
            } else {
                self.unproven_count += u64::from(flow.state.unproven.is_none());
                flow.state.hold_login(meta.protocol.name(), kind);
            }
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.batch_count += 1;
        if self.batch_count.is_power_of_two() || self.batch_count.is_multiple_of(MEASURE_INTERVAL) {
            self.held_bytes.store(self.facts.held_bytes(), Relaxed);
        }
        ControlFlow::Continue(())
    }

    fn held_bytes(&mut self, left: u64) -> u64 {
        self.until_measured = self.until_measured.saturating_sub(self.facts.known.take_noted_count());
        if self.until_measured == 0 {
            self.measure(left);
        }
        self.held_bytes.load(Relaxed) + self.unproven_count * UNPROVEN_LEN
    }

    fn restored(&mut self, state: &mut CollectorState) {
        self.unproven_count += u64::from(state.unproven.is_some());
    }

    fn ended(&mut self, _: &FlowView<'_>, _: EndReason, state: CollectorState) {
        self.unproven_count -= u64::from(state.unproven.is_some());
    }

    fn record(&mut self, flow: &mut Flow<'_, CollectorState>, reason: EndReason) {
        self.until_measured = self.until_measured.saturating_sub(1);
        let is_known_port = is_known_port(&flow.view);
        // Without the begin of a flow, its initiator may be the server, unless the port says otherwise.
        let is_sure = flow.view.direction_evidence() != DirectionEvidence::FirstSeen;
        let is_service =
            !flow.state.is_for_data && (is_sure || has_own_port(&flow.view, flow.view.initiator().other()));
        if let Some(login) = flow.state.unproven.take_if(|_| is_connection(&flow.view)) {
            self.unproven_count -= 1;
            let server = flow.view.key().address(flow.view.initiator().other());
            let (protocol, kind, count) = *login;
            self.facts.logins.entry((server, protocol, kind)).0 += count;
        }
        for since_ns in std::mem::take(&mut flow.state.closed_ns).into_iter().filter(|since_ns| *since_ns > 0)
        {
            self.facts.tcp.closed(flow.view.end().saturating_since(Timestamp::from_nanos(since_ns)));
        }
        self.facts.record(&flow.view.record(reason), PortFacts { is_known_port, is_service });
    }
}

impl TransactionSink for Collector {
    fn transaction(&mut self, view: &FlowView<'_>, _: &mut CollectorState, transaction: &Transaction) {
        self.until_measured = self.until_measured.saturating_sub(1);
        self.facts.known.transaction(view, transaction);
        let Content::Dns(dns) = &transaction.content else { return };
        let server_port = view.key().port(view.initiator().other());
        if server_port.is_some_and(|port| LINK_NAME_PORTS.contains(&port)) {
            return;
        }
        if let Some(late_ns) = late_ns(view, transaction, dns).filter(|late_ns| *late_ns > 0) {
            // The latest packet has the query.
            let client = transaction.client();
            let side = match view.mac(client) {
                _ if self.interface != view.interface() => CaptureSide::Interface(self.interface),
                Some(mac) => CaptureSide::Mac(mac),
                None => CaptureSide::Initiator(client == view.initiator()),
            };
            self.facts.skew.note(side, late_ns);
        }
        self.facts.names.add(dns);
    }

    /// What is needed of other protocols is in their messages, unless hosts are to be known as well as possible.
    #[inline]
    fn wants(&self, protocol: &'static Protocol) -> bool {
        self.is_thorough || std::ptr::eq(protocol, &dns::PROTOCOL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The memory of logins that are held is charged, and that of flows that have ended is not.
    #[test]
    fn logins_without_a_connection_are_counted() {
        let mut collector = Collector::default();
        let before = Sink::held_bytes(&mut collector, 1 << 20);
        let mut states: Vec<_> = (0..10).map(|_| CollectorState::default()).collect();
        for state in &mut states {
            state.hold_login("http", "basic");
            collector.restored(state);
        }
        let held = Sink::held_bytes(&mut collector, 1 << 20) - before;
        assert_eq!(held, 10 * UNPROVEN_LEN);
        collector.restored(&mut CollectorState::default());
        assert_eq!(Sink::held_bytes(&mut collector, 1 << 20) - before, held);
    }
}
