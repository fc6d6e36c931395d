//! Direction of a flow: the evidence in a packet for which side is the initiator.

use std::cmp::Ordering;
use std::net::IpAddr;

use super::services;
use crate::base::{DirectionEvidence, Side, TcpFlags};
use crate::base::{Packet, Transport};
use crate::wire::icmp;

/// Returns the initiator of a flow according to its first packet, and the evidence for it.
pub(super) fn of_first(packet: &Packet<'_>) -> (Side, DirectionEvidence) {
    let (sender, receiver) = (packet.side, packet.side.other());
    if let Some(found) = of_handshake(packet) {
        return found;
    }
    if is_group(packet.key.address(receiver)) {
        return (sender, DirectionEvidence::Multicast);
    }
    if is_group(packet.key.address(sender)) {
        return (receiver, DirectionEvidence::Multicast);
    }
    if packet.icmp().is_some_and(|(kind, _)| icmp::is_reply(packet.key.is_ipv6(), kind)) {
        return (receiver, DirectionEvidence::Content);
    }
    let rank = |side| services::rank(packet.key.protocol(), packet.key.raw_port(side));
    match rank(sender).cmp(&rank(receiver)) {
        Ordering::Greater => (receiver, DirectionEvidence::ServicePort),
        Ordering::Less => (sender, DirectionEvidence::ServicePort),
        Ordering::Equal => (sender, DirectionEvidence::FirstSeen),
    }
}

/// Returns the initiator of a flow according to a SYN or SYN-ACK, and the evidence for it; `None` for any other packet.
#[inline]
pub(super) fn of_handshake(packet: &Packet<'_>) -> Option<(Side, DirectionEvidence)> {
    if packet.transport != Transport::Tcp || !packet.tcp.flags.contains(TcpFlags::SYN) {
        return None;
    }
    if packet.tcp.flags.contains(TcpFlags::ACK) {
        Some((packet.side.other(), DirectionEvidence::SynAck))
    } else {
        Some((packet.side, DirectionEvidence::Syn))
    }
}

/// Returns whether an address can only be a destination: a multicast address, or the limited broadcast address.
fn is_group(address: IpAddr) -> bool {
    address.is_multicast() || matches!(address, IpAddr::V4(v4) if v4.is_broadcast())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{FlowKey, IpProtocol, Timestamp};

    fn first(
        protocol: IpProtocol,
        source: &str,
        source_port: u16,
        target: &str,
        port: u16,
    ) -> (bool, DirectionEvidence) {
        let ends = ((source.parse().unwrap(), source_port), (target.parse().unwrap(), port));
        let (key, side) = FlowKey::new(protocol, ends.0, ends.1);
        let (initiator, evidence) = of_first(&Packet::new(key, side, Timestamp::ZERO, &[]));
        (initiator == side, evidence)
    }

    #[test]
    fn evidence_is_evaluated_in_order() {
        use DirectionEvidence::{FirstSeen, Multicast, ServicePort};
        let (tcp, udp) = (IpProtocol::TCP, IpProtocol::UDP);
        assert_eq!(first(tcp, "10.0.0.1", 80, "10.0.0.2", 40_000), (false, ServicePort));
        assert_eq!(first(tcp, "10.0.0.1", 40_000, "10.0.0.2", 80), (true, ServicePort));
        assert_eq!(first(tcp, "10.0.0.1", 40_000, "10.0.0.2", 40_001), (true, FirstSeen));
        assert_eq!(first(udp, "10.0.0.1", 53, "10.0.0.2", 53), (true, FirstSeen));
        assert_eq!(first(udp, "10.0.0.1", 67, "255.255.255.255", 40_000), (true, Multicast));
        assert_eq!(first(udp, "fe80::1", 5353, "ff02::fb", 5353), (true, Multicast));
        // The first packet is a reply of the server: DHCP and DHCPv6 by both ports, a system port before a registered
        // one.
        assert_eq!(first(udp, "10.0.0.1", 67, "10.0.0.2", 68), (false, ServicePort));
        assert_eq!(first(udp, "10.0.0.2", 68, "10.0.0.1", 67), (true, ServicePort));
        assert_eq!(first(udp, "fe80::1", 547, "fe80::2", 546), (false, ServicePort));
        assert_eq!(first(udp, "10.0.0.1", 67, "10.0.0.2", 67), (true, FirstSeen));
        assert_eq!(first(udp, "10.0.0.1", 53, "10.0.0.2", 3000), (false, ServicePort));
        assert_eq!(first(udp, "10.0.0.1", 3000, "10.0.0.2", 3001), (false, ServicePort));
    }
}
