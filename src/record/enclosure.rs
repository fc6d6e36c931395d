//! What encloses a flow, and what it encloses.

use std::fmt;
use std::net::IpAddr;

use super::community_id;
use crate::base::{EncapsulationStack, FlowKey, Ports, Side};

/// What encloses a flow, and what it carries. There is one only where it was asked for (see
/// [`Pipeline::with_encapsulation`](crate::pipeline::Pipeline::with_encapsulation) and
/// [`Decapsulation::Both`](crate::link::Decapsulation::Both)), of flows of which there is something to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Enclosure {
    /// What encloses the packets of the initiator.
    pub forward: SideEnclosure,
    /// What encloses the packets of the responder.
    pub reverse: SideEnclosure,
    /// What the flow carried, if it is a tunnel.
    pub carried: Carried,
}

impl Enclosure {
    /// Starts the counts of a new record.
    pub(crate) fn restart_counters(&mut self) {
        self.forward.changed_count = 0;
        self.reverse.changed_count = 0;
        self.carried = Carried::default();
    }

    /// The same with the sides exchanged.
    pub(crate) fn turned(self) -> Self {
        Self { forward: self.reverse, reverse: self.forward, carried: self.carried }
    }
}

/// What encloses the packets of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SideEnclosure {
    /// The headers around the first of its packets that was enclosed by more than VLAN tags.
    pub stack: EncapsulationStack,
    /// Later packets around which other headers were, or which another flow carried: paths of a balanced load, a tunnel
    /// that moved. Packets that nothing enclosed are not among them. Of the record.
    pub changed_count: u32,
    /// The flow that carried that first packet: of several around it, the one that encloses it directly.
    pub outer: Option<OuterFlow>,
}

/// What a flow carried as a tunnel. Of the record, as all counts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Carried {
    /// Flows that came to name this one as the one that carried their first packet: each once, if both sides do.
    pub inner_flow_count: u32,
    /// Its packets that carried a packet, or a part of one. That one counts again for its own flow.
    pub packet_count: u64,
    /// Octets of these packets on the wire.
    pub octet_count: u64,
}

/// The flow that carries another, and which of its sides sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OuterFlow {
    /// Its key.
    pub key: FlowKey,
    /// The side that sent.
    pub sender: Side,
}

impl OuterFlow {
    /// A flow by its key, and the side that sent.
    #[must_use]
    pub const fn new(key: FlowKey, sender: Side) -> Self {
        Self { key, sender }
    }

    /// Its Community ID, version 1, seed 0.
    #[must_use]
    pub fn community_id(&self) -> String {
        community_id(&self.key, 0)
    }
}

impl fmt::Display for OuterFlow {
    /// `udp 192.0.2.1:40000>192.0.2.2:4789`; without ports if the key has none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_ports = matches!(self.key.ports(), Ports::Transport(..));
        let mut signs = [" ", ">"].into_iter();
        self.key.protocol().fmt(f)?;
        for side in [self.sender, self.sender.other()] {
            f.write_str(signs.next().unwrap_or_default())?;
            match (self.key.address(side), self.key.port(side)) {
                (address, _) if !has_ports => address.fmt(f)?,
                (IpAddr::V4(v4), port) => write!(f, "{v4}:{port}")?,
                (IpAddr::V6(v6), port) => write!(f, "[{v6}]:{port}")?,
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
    fn the_sender_comes_first() {
        let (a, b) = (("192.0.2.1", 40_000), ("192.0.2.2", 4789));
        assert_eq!(text(IpProtocol::UDP, a, b), "udp 192.0.2.1:40000>192.0.2.2:4789");
        assert_eq!(text(IpProtocol::UDP, b, a), "udp 192.0.2.2:4789>192.0.2.1:40000");
        assert_eq!(
            text(IpProtocol::UDP, ("2001:db8::1", 1), ("2001:db8::2", 2)),
            "udp [2001:db8::1]:1>[2001:db8::2]:2"
        );
    }
}
