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
        if source.is_ipv6() != destination.is_ipv6() {
            return None;
        }
        let (key, sender) = match ports {
            Some((source_port, destination_port)) => {
                FlowKey::new(protocol, (source, source_port), (destination, destination_port))
            }
            None => FlowKey::pair(protocol, source, destination),
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
