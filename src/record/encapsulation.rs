//! Outer headers of a flow, and the packets that it carries as a tunnel.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::community_id::{CommunityId, community_id};
use crate::base::{EncapsulationStack, FlowKey, IpProtocol, Side};

/// Outer headers of a flow, and the packets that it carries. Recorded on request only (see
/// [`Builder::encapsulation`](crate::pipeline::Builder::encapsulation) and
/// [`Decapsulation::Both`](crate::decode::link::Decapsulation::Both)), for flows that have either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowEncapsulation {
    /// Outer headers of the packets of the initiator.
    pub forward: SideEncapsulation,
    /// Outer headers of the packets of the responder.
    pub reverse: SideEncapsulation,
    /// Packets that the flow carried, if it is a tunnel.
    pub carried: Carried,
}

impl FlowEncapsulation {
    /// Starts the counts of a new record.
    pub(crate) fn restart_counters(&mut self) {
        self.forward.changed_count = 0;
        self.reverse.changed_count = 0;
        self.carried = Carried::default();
    }

    /// Returns the same with the sides exchanged.
    pub(crate) fn turned(self) -> Self {
        Self { forward: self.reverse, reverse: self.forward, carried: self.carried }
    }
}

/// Outer headers of the packets of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SideEncapsulation {
    /// Outer headers of the first packet that had more than VLAN tags around it.
    pub stack: EncapsulationStack,
    /// Number of later packets with other outer headers, or in another outer flow, for example because of load
    /// balancing or a tunnel that moved. Packets without outer headers are not counted. Restarts with each record.
    pub changed_count: u32,
    /// Flow that carried that first packet; with several levels of tunnels, the innermost of them.
    pub outer: Option<OuterFlow>,
}

/// Packets that a flow carried as a tunnel. All counts restart with each record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Carried {
    /// Number of flows whose first packet this flow carried. A flow counts once, even if it carried both of its sides.
    pub inner_flow_count: u32,
    /// Number of its packets that carried a packet or a part of one, which is counted again in its own flow.
    pub packet_count: u64,
    /// Octets of these packets on the wire.
    pub octet_count: u64,
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
