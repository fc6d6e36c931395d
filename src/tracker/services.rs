//! Registered service ports, which identify the responder of a flow if the beginning of the flow was not seen.

use std::cmp::Ordering;

use crate::base::{FlowKey, IpProtocol, Side};

/// Upper bound (exclusive) of the system ports, which are assigned by IETF review and in practice used by servers (RFC
/// 6335 section 6).
const SYSTEM_PORTS_END: u16 = 1024;

/// User ports of the IANA service name registry on which servers commonly listen, sorted.
#[rustfmt::skip]
const REGISTERED: [u16; 93] = [
    1080, 1194, 1344, 1352, 1414, 1433, 1434, 1494, 1512, 1521, 1526, 1645, 1646, 1701, 1720, 1723, 1755, 1812,
    1813, 1883, 1900, 1935, 2000, 2049, 2082, 2083, 2123, 2152, 2181, 2222, 2375, 2376, 2379, 2380, 2404, 2427,
    2483, 2484, 2598, 2775, 3000, 3128, 3205, 3260, 3268, 3269, 3306, 3389, 3478, 3479, 3544, 3690, 3799, 3868,
    4369, 4500, 4739, 4789, 5004, 5005, 5050, 5060, 5061, 5190, 5222, 5223, 5269, 5351, 5353, 5355, 5432, 5671,
    5672, 5683, 5684, 5900, 5985, 5986, 6081, 6379, 6514, 6653, 8008, 8080, 8443, 8883, 9100, 9418, 10000,
    11211, 20000, 27017, 47808,
];

/// System ports that clients use: DHCP (RFC 2131 section 4.1) and DHCPv6 (RFC 8415 section 7.2).
const CLIENTS: [u16; 2] = [68, 546];

/// Likelihood that a server listens on a port of TCP, UDP or SCTP: registered ports are more likely than others, and
/// system ports are most likely, because operating systems choose client ports from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Other,
    Registered,
    System,
}

/// Returns the likelihood that a server listens on a port, as a rank.
pub(super) fn rank(protocol: IpProtocol, port: u16) -> Rank {
    match port {
        0 => Rank::Other,
        _ if !protocol.has_ports() => Rank::Other,
        port if protocol == IpProtocol::UDP && CLIENTS.contains(&port) => Rank::Other,
        port if port < SYSTEM_PORTS_END => Rank::System,
        port if REGISTERED.binary_search(&port).is_ok() => Rank::Registered,
        _ => Rank::Other,
    }
}

/// Returns the side of a flow on which a server listens more likely, by its port.
pub(crate) fn server_by_port(key: &FlowKey) -> Option<Side> {
    let rank = |side| rank(key.protocol(), key.raw_port(side));
    match rank(Side::A).cmp(&rank(Side::B)) {
        Ordering::Greater => Some(Side::A),
        Ordering::Less => Some(Side::B),
        Ordering::Equal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_begins_after_the_system_ports() {
        assert!(REGISTERED.is_sorted_by(|left, right| left < right));
        assert!(REGISTERED[0] >= SYSTEM_PORTS_END);
    }

    #[test]
    fn only_protocols_with_ports_have_services() {
        let (tcp, udp) = (IpProtocol::TCP, IpProtocol::UDP);
        assert_eq!((rank(tcp, 443), rank(udp, 5353)), (Rank::System, Rank::Registered));
        assert_eq!((rank(tcp, 50_000), rank(tcp, 0)), (Rank::Other, Rank::Other));
        assert_eq!((rank(udp, 67), rank(udp, 68), rank(tcp, 68)), (Rank::System, Rank::Other, Rank::System));
        assert_eq!(rank(IpProtocol::ICMP, 8), Rank::Other);
    }
}
