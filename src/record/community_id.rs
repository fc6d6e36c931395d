//! Community ID version 1: one name for a flow in all tools that know it.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::base::{FlowKey, Ports, Side};

/// The Community ID of a flow, version 1, as text: `1:` and 28 letters.
///
/// The specification (corelight/community-id-spec) hashes seed, addresses, protocol and ports in canonical order with
/// SHA-1; a key holds them in that order already, ICMP types included. Scope, VLAN ids and VNI do not enter. Keys
/// without ports give the identifier of the address pair. Allocates the text; takes some hundred nanoseconds.
#[must_use]
pub fn community_id(key: &FlowKey, seed: u16) -> String {
    let ends = [Side::A, Side::B].map(|side| key.address(side));
    let ports = match key.ports() {
        Ports::Transport(a, b) => Some([a, b]),
        Ports::Icmp { kind, counterpart, .. } => Some([kind.into(), counterpart.into()]),
        Ports::None => None,
    };
    let mut order = [0, 1];
    // Only a uniflow's key is out of order.
    let places = order.map(|place| (ends[place], ports.map(|ports| ports[place])));
    if !key.is_one_way_icmp() && places[0] > places[1] {
        order = [1, 0];
    }
    let mut hash = Sha1::new();
    hash.update(seed.to_be_bytes());
    for place in order {
        match ends[place] {
            IpAddr::V4(v4) => hash.update(v4.octets()),
            IpAddr::V6(v6) => hash.update(v6.octets()),
        }
    }
    hash.update([key.protocol().0, 0]);
    for place in order {
        if let Some(ports) = ports {
            hash.update(ports[place].to_be_bytes());
        }
    }
    format!("1:{}", STANDARD.encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::IpProtocol;

    fn key(protocol: IpProtocol, source: (&str, u16), target: (&str, u16)) -> FlowKey {
        let end = |(address, port): (&str, u16)| (address.parse().unwrap(), port);
        FlowKey::new(protocol, end(source), end(target)).0
    }

    #[test]
    fn examples_of_the_specification() {
        let tcp = key(IpProtocol::TCP, ("128.232.110.120", 34855), ("66.35.250.204", 80));
        assert_eq!(community_id(&tcp, 0), "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
        assert_eq!(community_id(&tcp, 1), "1:3V71V58M3Ksw/yuFALMcW0LAHvc=");
    }

    #[test]
    fn both_directions_have_one_name() {
        let there = key(IpProtocol::UDP, ("192.168.1.52", 54585), ("8.8.8.8", 53));
        let back = key(IpProtocol::UDP, ("8.8.8.8", 53), ("192.168.1.52", 54585));
        assert_eq!(community_id(&there, 0), community_id(&back, 0));
        assert_eq!(community_id(&there, 0), "1:d/FP5EW3wiY1vCndhwleRRKHowQ=");
    }
}
