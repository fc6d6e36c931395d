//! The flow that carries another one in a tunnel.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use super::code_point::IpProtocol;
use super::key::{FlowKey, Side};

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
    /// the text has another form, or addresses of both families.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (protocol, ends) = text.split_once(' ')?;
        let protocol = IpProtocol::from_name(protocol)?;
        let (sender, receiver) = ends.split_once('>')?;
        let (source, destination, ports) =
            match (sender.parse::<SocketAddr>(), receiver.parse::<SocketAddr>()) {
                (Ok(sender), Ok(receiver)) => {
                    (sender.ip(), receiver.ip(), Some((sender.port(), receiver.port())))
                }
                _ => (sender.parse().ok()?, receiver.parse().ok()?, None),
            };
        let (source_port, destination_port) = ports.unzip();
        Self::of_ends(protocol, (source, source_port), (destination, destination_port))
    }

    /// Returns the flow from one end to another; `None` if these are of different families, or only one has a port.
    fn of_ends(
        protocol: IpProtocol,
        source: (IpAddr, Option<u16>),
        destination: (IpAddr, Option<u16>),
    ) -> Option<Self> {
        if source.0.is_ipv6() != destination.0.is_ipv6() {
            return None;
        }
        let (key, sender) = match (source.1, destination.1) {
            (Some(source_port), Some(destination_port)) => {
                FlowKey::new(protocol, (source.0, source_port), (destination.0, destination_port))
            }
            (None, None) => FlowKey::pair(protocol, source.0, destination.0),
            _ => return None,
        };
        Some(Self { key, sender })
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

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for OuterFlow {
    /// Reads an object with `protocol`, `source_address`, `destination_address`, and the ports if the key has them.
    /// Addresses of both families, and one port alone, are an error.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        #[derive(serde::Deserialize)]
        struct Object {
            protocol: IpProtocol,
            source_address: IpAddr,
            source_port: Option<u16>,
            destination_address: IpAddr,
            destination_port: Option<u16>,
        }
        let Object { protocol, source_address, source_port, destination_address, destination_port } =
            Object::deserialize(deserializer)?;
        Self::of_ends(protocol, (source_address, source_port), (destination_address, destination_port))
            .ok_or_else(|| {
                D::Error::custom("an outer flow has two addresses of one family, and two ports or none")
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn addresses_of_both_families_are_refused() {
        for text in ["udp 192.0.2.1:1>[2001:db8::2]:2", "gre 192.0.2.1>2001:db8::2"] {
            assert_eq!(OuterFlow::parse(text), None, "{text}");
        }
    }

    proptest::proptest! {
    #[test]
    fn formatted_outer_flows_parse_to_equal_outer_flows(octets in proptest::prelude::any::<[u8; 8]>(), ports in proptest::prelude::any::<(u16, u16)>(), protocol in proptest::prelude::any::<u8>()) {
        let [a, b, c, d, e, f, g, h] = octets;
        let ends = ([a, b, c, d].into(), [e, f, g, h].into());
        let protocol = IpProtocol(protocol);
        let (key, sender) = if protocol.has_ports() {
            FlowKey::new(protocol, (ends.0, ports.0), (ends.1, ports.1))
        } else {
            FlowKey::pair(protocol, ends.0, ends.1)
        };
        let outer = OuterFlow::new(key, sender);
        proptest::prop_assert_eq!(OuterFlow::parse(&outer.to_string()), Some(outer));
    }
    }
}
