//! Rows of `conn.log`.

use std::time::Duration;

use super::networks::LocalNetworks;
use crate::base::{History, IpProtocol, Side, TcpFlags};
use crate::export::Uid;
use crate::record::{FlowRecord, SideRecord};
use crate::row::{List, ListOf, Name};
use crate::tracker::FlowView;

/// A connection in `conn.log`, behind its [`Head`](super::Head).
#[derive(Clone, Debug)]
pub struct Conn<'a> {
    protocol: IpProtocol,
    services: &'a str,
    duration: Option<Duration>,
    conn_state: &'static str,
    is_local: (bool, bool),
    missed: u64,
    history: History,
    orig: End,
    resp: End,
    parents: Vec<Uid>,
}

/// Counts of one end.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    bytes: u64,
    packet_count: u64,
    ip_octet_count: u64,
    missed: u64,
}

impl End {
    fn of(view: &FlowView<'_>, side: Side) -> Self {
        let counters = view.counters(side);
        let payload = counters.payload_octet_count;
        let span = if view.key().protocol() == IpProtocol::TCP { span(view, side) } else { None };
        Self {
            bytes: span.unwrap_or(if view.key().protocol() == IpProtocol::TCP { 0 } else { payload }),
            packet_count: counters.packet_count,
            ip_octet_count: counters.ip_octet_count,
            missed: span.map_or(0, |span| span.saturating_sub(payload)),
        }
    }
}

/// Returns the number of octets between the first and the last sequence number of a side, without SYN and FIN.
fn span(view: &FlowView<'_>, side: Side) -> Option<u64> {
    let (initial, next) = view.sequence_numbers(side)?;
    let has_fin = view.tcp_flags(side).contains(TcpFlags::FIN);
    let span = next.distance_from(initial) - 1 - i32::from(has_fin);
    u64::try_from(span).ok()
}

impl<'a> Conn<'a> {
    /// Returns the row of a record from another program, which has no sequence numbers. `services` are the names of its
    /// application protocols.
    pub(super) fn of_record(record: &FlowRecord, services: &'a str, local: &LocalNetworks) -> Self {
        let end = |side: &SideRecord| End {
            bytes: side.counters.payload_octet_count,
            packet_count: side.counters.packet_count,
            ip_octet_count: side.counters.ip_octet_count,
            missed: 0,
        };
        let duration = record.open_duration();
        Self {
            protocol: record.protocol(),
            services,
            duration: (duration > Duration::ZERO).then_some(duration),
            conn_state: record.conn_state.name(),
            is_local: (local.contain(record.source_address()), local.contain(record.destination_address())),
            missed: 0,
            history: record.history,
            orig: end(&record.forward),
            resp: end(&record.reverse),
            parents: Vec::new(),
        }
    }

    /// Returns the row of a flow. `services` are the names of its application protocols, joined by commas.
    pub(super) fn new(
        view: &FlowView<'_>,
        services: &'a str,
        local: &LocalNetworks,
        parents: Vec<Uid>,
    ) -> Self {
        let source = view.initiator();
        let (orig, resp) = (End::of(view, source), End::of(view, source.other()));
        let duration = view.open_end().saturating_since(view.start());
        Self {
            protocol: view.key().protocol(),
            services,
            duration: (duration > Duration::ZERO).then_some(duration),
            conn_state: view.conn_state().name(),
            is_local: (local.contain(view.address(source)), local.contain(view.address(source.other()))),
            missed: orig.missed + resp.missed,
            history: view.history(),
            orig,
            resp,
            parents,
        }
    }

    const fn proto(&self) -> Name {
        Name(match self.protocol {
            IpProtocol::TCP => "tcp",
            IpProtocol::UDP => "udp",
            IpProtocol::ICMP | IpProtocol::ICMPV6 => "icmp",
            _ => "unknown_transport",
        })
    }
}

crate::table! {
    /// Connections: one row per flow, when it ends.
    impl['a] "zeek.conn" for Conn<'a> as row {
        /// `tcp`, `udp`, `icmp` for both versions, otherwise `unknown_transport`.
        "proto": Name = row.proto();
        /// Application protocols that the content proves, in the order in which they were recognized, under Zeek's names: `ssl`
        /// for TLS and DTLS; without those that Zeek does not analyze. For a flow that carries others, the kind of the tunnel.
        "service": Option<&'a str> = Some(row.services).filter(|services| !services.is_empty());
        /// From the first packet to the one after which both sides had closed a TCP connection, or else to the last; unset
        /// if that is zero.
        "duration": Option<Duration> = row.duration;
        /// Payload of the initiator; for TCP the difference of sequence numbers. Unset without a duration.
        "orig_bytes": Option<u64> = row.duration.map(|_| row.orig.bytes);
        /// Payload of the responder, as `orig_bytes`.
        "resp_bytes": Option<u64> = row.duration.map(|_| row.resp.bytes);
        /// `conn_state`; `OTH` for ICMP and other protocols without states.
        "conn_state": Name = Name(row.conn_state);
        /// True if the initiator is in a local network.
        "local_orig": bool = row.is_local.0;
        /// True if the responder is in a local network.
        "local_resp": bool = row.is_local.1;
        /// Octets by which the sequence numbers of both sides exceed the payload of their segments: those that were not
        /// captured; retransmissions may hide some.
        "missed_bytes": u64 = row.missed;
        /// `history`, at most 25 letters.
        "history": Option<History> = Some(row.history).filter(|history| !history.is_empty());
        /// Packets of the initiator; each fragment counts.
        "orig_pkts": u64 = row.orig.packet_count;
        /// Octets of the initiator's IP packets, by their headers.
        "orig_ip_bytes": u64 = row.orig.ip_octet_count;
        /// Packets of the responder.
        "resp_pkts": u64 = row.resp.packet_count;
        /// Octets of the responder's IP packets.
        "resp_ip_bytes": u64 = row.resp.ip_octet_count;
        /// Identifiers of the flows that carry this one in a tunnel, if the run tracks both.
        "tunnel_parents": Option<ListOf<Uid>> [set] => (!row.parents.is_empty()).then(|| List(row.parents.iter().copied()));
        /// Number of the IP protocol.
        "ip_proto": u64 = u64::from(row.protocol.0);
    }
}
