//! Rows of `conn.log`.

use std::time::Duration;

use super::networks::LocalNetworks;
use crate::base::{History, IpProtocol, SeqNum, Side, TcpFlags};
use crate::export::Uid;
use crate::export::flow_log::RecordEnd;
use crate::record::{FlowRecord, SideRecord, field_index};
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

/// Zeek's name of protocols that it does not analyze.
const UNKNOWN: &str = "unknown_transport";

/// Counts of one end.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    /// `None` if the exporter of a record did not send it.
    bytes: Option<u64>,
    packet_count: u64,
    ip_octet_count: u64,
    missed: u64,
}

impl End {
    fn of(view: &FlowView<'_>, previous: RecordEnd, side: Side) -> Self {
        let counters = view.counters(side);
        let payload = counters.payload_octet_count;
        let is_tcp = view.key().protocol() == IpProtocol::TCP;
        let span = if is_tcp { span(view, previous.sequence_number(side), side) } else { None };
        Self {
            bytes: Some(span.unwrap_or(if is_tcp { 0 } else { payload })),
            packet_count: counters.packet_count,
            ip_octet_count: counters.ip_octet_count,
            missed: span.map_or(0, |span| span.saturating_sub(payload)),
        }
    }
}

/// Returns the number of octets between the first and the last sequence number of a side in a record, without SYN and FIN.
/// `previous` is the last sequence number of the record before.
fn span(view: &FlowView<'_>, previous: Option<SeqNum>, side: Side) -> Option<u64> {
    let (initial, next) = view.sequence_numbers(side)?;
    let has_fin = view.tcp_flags(side).contains(TcpFlags::FIN);
    let first = previous.unwrap_or_else(|| initial.add(1));
    Some(span_len(
        first,
        next.add(u32::from(has_fin).wrapping_neg()),
        view.counters(side).payload_octet_count,
    ))
}

/// Returns the number of octets from sequence number `first` to `end`, which is the one next to the number of octets in
/// segments: sequence numbers count to 4 GiB. 0 if there is none.
fn span_len(first: SeqNum, end: SeqNum, payload: u64) -> u64 {
    let excess = end.distance_from(first.add(payload as u32));
    payload.saturating_add_signed(excess.into())
}

impl<'a> Conn<'a> {
    /// Returns the row of a record from another program, which has no sequence numbers. `services` are the names of its
    /// application protocols.
    pub(super) fn of_record(record: &FlowRecord, services: &'a str, local: &LocalNetworks) -> Self {
        let end = |side: &SideRecord, payload: usize| End {
            bytes: record.known.contains(payload).then_some(side.counters.payload_octet_count),
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
            orig: end(&record.forward, const { field_index("payload_octet_count") }),
            resp: end(&record.reverse, const { field_index("reverse_payload_octet_count") }),
            parents: Vec::new(),
        }
    }

    /// Returns the row of a flow. `services` are the names of its application protocols, joined by commas.
    pub(super) fn new(
        (view, previous): (&FlowView<'_>, RecordEnd),
        services: &'a str,
        local: &LocalNetworks,
        parents: Vec<Uid>,
    ) -> Self {
        let source = view.initiator();
        let (orig, resp) = (End::of(view, previous, source), End::of(view, previous, source.other()));
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

    /// Returns the payload of an end.
    fn bytes(&self, end: &End) -> Option<u64> {
        let is_known = self.proto().0 != UNKNOWN;
        self.duration.and(if is_known { end.bytes } else { Some(0) })
    }

    const fn proto(&self) -> Name {
        Name(match self.protocol {
            IpProtocol::TCP => "tcp",
            IpProtocol::UDP => "udp",
            IpProtocol::ICMP | IpProtocol::ICMPV6 => "icmp",
            _ => UNKNOWN,
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
        /// Payload of the initiator; for TCP the difference of sequence numbers within the record, and 0 for
        /// `unknown_transport`. Unset without a duration.
        "orig_bytes": Option<u64> = row.bytes(&row.orig);
        /// Payload of the responder, as `orig_bytes`.
        "resp_bytes": Option<u64> = row.bytes(&row.resp);
        /// `conn_state`; `OTH` for ICMP and other protocols without states.
        "conn_state": &'static str = row.conn_state;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_the_one_next_to_the_payload() {
        const GIB: u64 = 1 << 30;
        let of = |first: u32, end: u32, payload| span_len(SeqNum(first), SeqNum(end), payload);
        assert_eq!(of(101, 101, 0), 0);
        assert_eq!(of(101, 201, 100), 100);
        assert_eq!(of(u32::MAX, 99, 100), 100, "sequence numbers wrap");
        assert_eq!(of(0, 300, 100), 300, "200 octets are missing");
        assert_eq!(of(0, 100, 300), 100, "200 octets were sent again");
        for gib in [2, 3, 4, 5, 9] {
            assert_eq!(of(7, (7 + gib * GIB) as u32, gib * GIB), gib * GIB);
            assert_eq!(of(7, (7 + gib * GIB) as u32, gib * GIB - 500), gib * GIB);
        }
        assert_eq!(of(5, 5 + (1 << 31), 0), 0, "a jump by half of the numbers is none");
        assert_eq!(of(5, 4, 0), 0);
    }
}
