//! The object `tcp`.

use std::fmt;

use crate::base::{IpProtocol, TcpFlags, TcpState};
use crate::record::{FlowRecord, SideRecord, field_index};
use crate::row::Name;

/// Flags in hexadecimal digits.
#[derive(Clone, Copy, Debug)]
struct Digits(TcpFlags);

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}", self.0.0 & 0xff)
    }
}

crate::row::cells! { displayed Digits; }

/// Returns whether a record has flags: it may be that of another program.
fn has_flags(record: &FlowRecord) -> bool {
    const FLAGS: usize = field_index("tcp_flags");
    record.protocol() == IpProtocol::TCP && record.known.contains(FLAGS)
}

/// TCP flags of both sides, and the state of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    to_server: TcpFlags,
    to_client: TcpFlags,
    state: TcpState,
}

impl Connection {
    /// Returns flags and state of a record; `None` if it has no flags.
    pub(super) fn of(record: &FlowRecord) -> Option<Self> {
        has_flags(record).then_some(Self {
            to_server: record.forward.tcp_flags,
            to_client: record.reverse.tcp_flags,
            state: record.tcp_state,
        })
    }

    fn has(self, flag: TcpFlags) -> bool {
        self.both().contains(flag)
    }

    const fn both(self) -> TcpFlags {
        TcpFlags(self.to_server.0 | self.to_client.0)
    }

    const fn state(self) -> Option<Name> {
        Some(Name(match self.state {
            TcpState::SynSent => "syn_sent",
            TcpState::SynReceived => "syn_recv",
            TcpState::Established => "established",
            TcpState::FinWait1 => "fin_wait1",
            TcpState::FinWait2 => "fin_wait2",
            TcpState::Closing => "closing",
            TcpState::LastAck => "last_ack",
            // Suricata leaves TIME-WAIT with the last ACK.
            TcpState::TimeWait | TcpState::Closed => "closed",
            TcpState::None => return None,
        }))
    }
}

crate::table! {
    /// Flags and state of a TCP connection.
    impl "eve.flow.tcp" for Connection as tcp {
        /// Flags of both sides combined, two hexadecimal digits.
        "tcp_flags": Digits = Digits(tcp.both());
        /// Flags of the client.
        "tcp_flags_ts": Digits = Digits(tcp.to_server);
        /// Flags of the server.
        "tcp_flags_tc": Digits = Digits(tcp.to_client);
        /// SYN of either side.
        "syn": bool [sparse] = tcp.has(TcpFlags::SYN);
        /// FIN of either side.
        "fin": bool [sparse] = tcp.has(TcpFlags::FIN);
        /// RST of either side.
        "rst": bool [sparse] = tcp.has(TcpFlags::RST);
        /// PSH of either side.
        "psh": bool [sparse] = tcp.has(TcpFlags::PSH);
        /// ACK of either side.
        "ack": bool [sparse] = tcp.has(TcpFlags::ACK);
        /// URG of either side.
        "urg": bool [sparse] = tcp.has(TcpFlags::URG);
        /// ECE of either side.
        "ecn": bool [sparse] = tcp.has(TcpFlags::ECE);
        /// CWR of either side.
        "cwr": bool [sparse] = tcp.has(TcpFlags::CWR);
        /// `tcp_state` under Suricata's name, such as `fin_wait1`; `closed` if both FINs are acknowledged.
        "state": Option<Name> = tcp.state();
    }
}

/// TCP flags of one side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags(TcpFlags);

impl Flags {
    pub(super) fn of(record: &FlowRecord, direction: &SideRecord) -> Option<Self> {
        has_flags(record).then_some(Self(direction.tcp_flags))
    }
}

crate::table! {
    /// Flags of one side of a TCP connection.
    impl "eve.netflow.tcp" for Flags as tcp {
        /// Flags of the side, two hexadecimal digits.
        "tcp_flags": Digits = Digits(tcp.0);
        /// SYN.
        "syn": bool [sparse] = tcp.0.contains(TcpFlags::SYN);
        /// FIN.
        "fin": bool [sparse] = tcp.0.contains(TcpFlags::FIN);
        /// RST.
        "rst": bool [sparse] = tcp.0.contains(TcpFlags::RST);
        /// PSH.
        "psh": bool [sparse] = tcp.0.contains(TcpFlags::PSH);
        /// ACK.
        "ack": bool [sparse] = tcp.0.contains(TcpFlags::ACK);
        /// URG.
        "urg": bool [sparse] = tcp.0.contains(TcpFlags::URG);
        /// ECE.
        "ecn": bool [sparse] = tcp.0.contains(TcpFlags::ECE);
        /// CWR.
        "cwr": bool [sparse] = tcp.0.contains(TcpFlags::CWR);
    }
}
