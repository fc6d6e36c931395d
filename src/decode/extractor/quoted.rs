//! Flow key of the packet that an ICMP error message quotes.

use super::{KeyPolicy, Packet, general};
use crate::base::{EtherType, FlowKey, Limits, Side};
use crate::wire::icmp;

/// Returns the key of the flow to which an ICMP error refers, and the side that sent the quoted packet.
///
/// Returns `None` if the packet is not an ICMP error, or if it quotes too little to identify the flow, which
/// requires at least the IP header and, for TCP, UDP and SCTP, the ports. The key is built with the given
/// policy, and has the scope, VLAN ids and VNI of the error message's key.
#[must_use]
pub fn quoted_key(packet: &Packet<'_>, policy: &KeyPolicy) -> Option<(FlowKey, Side)> {
    let is_ipv6 = packet.key.is_ipv6();
    let (kind, _) = packet.icmp()?;
    if !icmp::quotes_packet(is_ipv6, kind) {
        return None;
    }
    let data = icmp::quoted(packet.transport_bytes())?;
    let ether_type = if is_ipv6 { EtherType::IPV6 } else { EtherType::IPV4 };
    let (key, side) = general::key_of(data, data.len(), ether_type, policy, &Limits::DEFAULT)?;
    let key = key.with_scope(packet.key.scope()).with_vlan_ids(packet.key.vlan_ids());
    Some((packet.key.vni().map_or(key, |vni| key.with_vni(vni)), side))
}
