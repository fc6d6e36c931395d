//! Part of a flow record about tunnels: the encapsulation of the flow, its outer flows, and the packets that
//! it carries as a tunnel.

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
    /// Flow that carried the initiator's first packet with outer headers; with several levels of tunnels, the
    /// innermost outer flow.
    pub outer_flow: Option<OuterFlow>,
    /// Encapsulation of the responder's first packet that had more than VLAN tags around it.
    pub reverse_encapsulation: Encapsulation,
    /// Number of the responder's later packets with another encapsulation or outer flow.
    pub reverse_encapsulation_changed_count: u32,
    /// Flow that carried the responder's first packet with outer headers; with several levels of tunnels, the
    /// innermost outer flow.
    pub reverse_outer_flow: Option<OuterFlow>,
    /// Number of inner flows, whose first packet this flow carried. An inner flow counts once, even if this
    /// flow carried both of its directions.
    pub inner_flow_count: u32,
    /// Number of packets of this flow that carried an inner packet or a part of one. The inner packet is also
    /// counted in its own flow.
    pub carried_packet_count: u64,
    /// Number of octets on the wire of the packets of this flow that carried an inner packet.
    pub carried_octet_count: u64,
}

impl EncapsulationRecord {
    /// Sets all counts to zero, for the next record of the flow.
    pub(crate) fn restart_counters(&mut self) {
        self.encapsulation_changed_count = 0;
        self.reverse_encapsulation_changed_count = 0;
        self.inner_flow_count = 0;
        self.carried_packet_count = 0;
        self.carried_octet_count = 0;
    }

    /// Returns the record part with the initiator's and the responder's fields exchanged.
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

/// Flow that carries packets of another flow, and the side of the carrying flow that sent these packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OuterFlow {
    /// Flow Key of the outer flow.
    pub key: FlowKey,
    /// Side of the key that sent the packets.
    pub sender: Side,
}

impl OuterFlow {
    /// Creates an outer flow from its key and the side that sent the packets.
    #[must_use]
    pub const fn new(key: FlowKey, sender: Side) -> Self {
        Self { key, sender }
    }

    /// Parses an outer flow from the text that its [`Display`](fmt::Display) implementation writes; `None` if
    /// the text has another form.
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

    /// Returns the Community ID of the outer flow, version 1, seed 0.
    #[must_use]
    pub fn community_id(&self) -> CommunityId {
        community_id(&self.key, 0)
    }
}

impl fmt::Display for OuterFlow {
    /// Formats the protocol, the sender and the receiver, such as `udp 192.0.2.1:40000>192.0.2.2:4789`;
    /// without ports if the key has none.
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
