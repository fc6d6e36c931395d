//! Encapsulation of a flow, its outer flows, and the packets that it carries as a tunnel.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::community_id::{CommunityId, community_id};
use crate::base::{Encapsulation, FlowKey, IpProtocol, Side};

/// Encapsulation and outer flow of each direction of a flow, and the packets that it carried as a tunnel. Recorded on
/// request only (see [`Builder::encapsulation`](crate::pipeline::Builder::encapsulation) and
/// [`Decapsulation::Both`](crate::decode::link::Decapsulation::Both)), for flows that have any of these. The fields are
/// those of the [schema](crate::record::FlowRecord::SCHEMA). All counts restart with each record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncapsulationRecord {
    /// Encapsulation of the initiator's first packet that had more than VLAN tags around it.
    pub encapsulation: Encapsulation,
    /// Number of the initiator's later packets with another encapsulation or outer flow, for example because of load
    /// balancing or a tunnel that moved. Packets without outer headers are not counted.
    pub encapsulation_changed_count: u32,
    /// Flow that carried that first packet; with several levels of tunnels, the innermost of them.
    pub outer_flow: Option<OuterFlow>,
    /// Encapsulation of the responder's first packet that had more than VLAN tags around it.
    pub reverse_encapsulation: Encapsulation,
    /// Number of the responder's later packets with another encapsulation or outer flow.
    pub reverse_encapsulation_changed_count: u32,
    /// Flow that carried that first packet.
    pub reverse_outer_flow: Option<OuterFlow>,
    /// Number of flows whose first packet this flow carried. A flow counts once, even if it carried both of its sides.
    pub inner_flow_count: u32,
    /// Number of its packets that carried a packet or a part of one, which is counted again in its own flow.
    pub carried_packet_count: u64,
    /// Octets of these packets on the wire.
    pub carried_octet_count: u64,
}

impl EncapsulationRecord {
    /// Starts the counts of a new record.
    pub(crate) fn restart_counters(&mut self) {
        self.encapsulation_changed_count = 0;
        self.reverse_encapsulation_changed_count = 0;
        self.inner_flow_count = 0;
        self.carried_packet_count = 0;
        self.carried_octet_count = 0;
    }

    /// Returns the same with the directions exchanged.
    pub(crate) fn turned(self) -> Self {
        Self {
            encapsulation: self.reverse_encapsulation,
            encapsulation_changed_count: self.reverse_encapsulation_changed_count,
            outer_flow: self.reverse_outer_flow,
            reverse_encapsulation: self.encapsulation,
            reverse_encapsulation_changed_count: self.encapsulation_changed_count,
            reverse_outer_flow: self.outer_flow,
            ..self
        }
    }
}

/// A flow that carries another one, and its sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OuterFlow {
    /// Flow Key.
    pub key: FlowKey,
    /// Sending side.
    pub sender: Side,
}

impl OuterFlow {
    /// Creates an outer flow from its key and the sending side.
    #[must_use]
    pub const fn new(key: FlowKey, sender: Side) -> Self {
        Self { key, sender }
    }

    /// Parses the text of [`Display`](fmt::Display).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (protocol, ends) = text.split_once(' ')?;
        let protocol = IpProtocol::from_name(protocol)?;
        let (sender, receiver) = ends.split_once('>')?;
        let (key, sender) = match (sender.parse::<SocketAddr>(), receiver.parse::<SocketAddr>()) {
            (Ok(sender), Ok(receiver)) => {
                FlowKey::new(protocol, (sender.ip(), sender.port()), (receiver.ip(), receiver.port()))
            }
            _ => FlowKey::pair(protocol, sender.parse().ok()?, receiver.parse().ok()?),
        };
        Some(Self { key, sender })
    }

    /// Returns its Community ID, version 1, seed 0.
    #[must_use]
    pub fn community_id(&self) -> CommunityId {
        community_id(&self.key, 0)
    }
}

impl fmt::Display for OuterFlow {
    /// Writes `udp 192.0.2.1:40000>192.0.2.2:4789`; without ports if the key has none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut signs = [" ", ">"].into_iter();
        self.key.protocol().fmt(f)?;
        for side in [self.sender, self.sender.other()] {
            f.write_str(signs.next().unwrap_or_default())?;
            match (self.key.address(side), self.key.port(side)) {
                (address, None) => address.fmt(f)?,
                (IpAddr::V4(v4), Some(port)) => write!(f, "{v4}:{port}")?,
                (IpAddr::V6(v6), Some(port)) => write!(f, "[{v6}]:{port}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::IpProtocol;

    fn text(protocol: IpProtocol, source: (&str, u16), destination: (&str, u16)) -> String {
        let end = |(address, port): (&str, u16)| (address.parse().unwrap(), port);
        let (key, side) = FlowKey::new(protocol, end(source), end(destination));
        OuterFlow::new(key, side).to_string()
    }

    #[test]
    fn the_sender_is_written_first() {
        let (a, b) = (("192.0.2.1", 40_000), ("192.0.2.2", 4789));
        assert_eq!(text(IpProtocol::UDP, a, b), "udp 192.0.2.1:40000>192.0.2.2:4789");
        assert_eq!(text(IpProtocol::UDP, b, a), "udp 192.0.2.2:4789>192.0.2.1:40000");
        assert_eq!(
            text(IpProtocol::UDP, ("2001:db8::1", 1), ("2001:db8::2", 2)),
            "udp [2001:db8::1]:1>[2001:db8::2]:2"
        );
    }
}
