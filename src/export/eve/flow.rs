//! Events of type `flow`.

use super::tcp::Connection;
use super::time::{Time, age};
use crate::base::{Counters, EndReason, TcpState, Timestamp};
use crate::record::FlowRecord;
use crate::row::{Group, Name};

/// A flow in an event, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    summary: Summary,
    tcp: Option<Connection>,
}

/// The object `flow`.
#[derive(Clone, Copy, Debug)]
struct Summary {
    to_server: Counters,
    to_client: Counters,
    start: Timestamp,
    end: Timestamp,
    state: &'static str,
    reason: &'static str,
}

impl Flow {
    pub(super) fn new(record: &FlowRecord) -> Self {
        let [to_server, to_client] = [record.forward.counters, record.reverse.counters];
        let is_answered = to_server.packet_count > 0 && to_client.packet_count > 0;
        let state = match record.tcp_state {
            TcpState::LastAck | TcpState::TimeWait | TcpState::Closed => "closed",
            _ if is_answered => "established",
            _ => "new",
        };
        let reason = match record.flow_end_reason {
            EndReason::ForcedEnd => "shutdown",
            EndReason::LackOfResources => "forced",
            _ => "timeout",
        };
        Self {
            summary: Summary { to_server, to_client, start: record.start, end: record.end, state, reason },
            tcp: Connection::of(record),
        }
    }
}

crate::table! {
    /// Flows: one event when a flow ends, and one at each active timeout.
    impl "eve.flow" for Flow as row {
        /// Counters, times and end of the flow.
        "flow": Group<Summary> = Group(row.summary);
        /// Flags and state of the connection.
        "tcp": Option<Group<Connection>> = row.tcp.map(Group);
    }
}

crate::table! {
    /// Counters, times and end of a flow.
    impl "eve.flow.flow" for Summary as flow {
        /// Packets of the initiator; each fragment counts.
        "pkts_toserver": u64 = flow.to_server.packet_count;
        /// Packets of the responder.
        "pkts_toclient": u64 = flow.to_client.packet_count;
        /// Octets of the initiator's frames on the wire.
        "bytes_toserver": u64 = flow.to_server.octet_count;
        /// Octets of the responder's frames on the wire.
        "bytes_toclient": u64 = flow.to_client.octet_count;
        /// Time of the first packet.
        "start": Time = Time(flow.start);
        /// Time of the last packet.
        "end": Time = Time(flow.end);
        /// Seconds of the end minus seconds of the start, without their decimals.
        "age": u64 = age(flow.start, flow.end);
        /// `closed` if both sides closed a TCP connection, or one aborted it; otherwise `established` if both sides sent packets,
        /// and `new` if only one did.
        "state": Name = Name(flow.state);
        /// `shutdown` if the input ended, `forced` if the flow was evicted, otherwise `timeout`: after the idle or active timeout,
        /// or the end of a TCP connection.
        "reason": Name = Name(flow.reason);
        /// Always false: flowgauge has no detection rules.
        "alerted": bool = false;
    }
}
