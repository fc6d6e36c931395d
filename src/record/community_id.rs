//! Community ID version 1: a flow identifier that many tools compute in the same way.

use std::fmt;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::base::{FlowKey, OuterFlow, Ports, Side};
use crate::row::{Cell, Column, Type, Visitor};

/// Community ID as text: the version, a colon and 28 letters of base64. 30 octets, `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommunityId([u8; CommunityId::LEN]);

impl CommunityId {
    const LEN: usize = 30;

    /// Returns the Community ID as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Base64 is ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for CommunityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for CommunityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommunityId({self})")
    }
}

impl AsRef<str> for CommunityId {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<str> for CommunityId {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for CommunityId {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Cell for CommunityId {
    const TYPE: Type = Type::Text;

    #[inline]
    fn visit(&self, column: &'static Column, visitor: &mut (impl Visitor + ?Sized)) {
        visitor.text(column, self.as_str());
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for CommunityId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl FlowKey {
    /// Returns the [Community ID](CommunityId) of the flow, version 1. Programs that compare identifiers need the same
    /// seed; 0 is usual.
    ///
    /// The specification (corelight/community-id-spec) hashes the seed, addresses, protocol and ports in
    /// canonical order with SHA-1. The addresses and ports in a flow key already have that order, including ICMP
    /// types. Scope, VLAN ids and VNI are not part of the hash. For keys without ports, the identifier is that of
    /// the address pair. Takes some hundred nanoseconds.
    #[must_use]
    pub fn community_id(&self, seed: u16) -> CommunityId {
        let ends = [Side::A, Side::B].map(|side| self.address(side));
        let ports = match self.ports() {
            Ports::Transport(a, b) => Some([a, b]),
            Ports::Icmp { kind, counterpart, .. } => Some([kind.into(), counterpart.into()]),
            Ports::None => None,
        };
        let mut order = [0, 1];
        // Only the key of a uniflow is not in canonical order.
        let places = order.map(|place| (ends[place], ports.map(|ports| ports[place])));
        if !self.is_one_way_icmp() && places[0] > places[1] {
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
        hash.update([self.protocol().0, 0]);
        for place in order {
            if let Some(ports) = ports {
                hash.update(ports[place].to_be_bytes());
            }
        }
        let mut id = [0; CommunityId::LEN];
        let (version, letters) = id.split_at_mut(2);
        version.copy_from_slice(b"1:");
        let len = STANDARD.encode_slice(hash.finalize(), letters);
        debug_assert_eq!(len, Ok(letters.len()), "20 octets are 28 letters");
        CommunityId(id)
    }
}

impl OuterFlow {
    /// Returns the Community ID of the outer flow, version 1, seed 0.
    #[must_use]
    pub fn community_id(&self) -> CommunityId {
        self.key.community_id(0)
    }
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
    fn the_examples_of_the_specification_match() {
        let tcp = key(IpProtocol::TCP, ("128.232.110.120", 34855), ("66.35.250.204", 80));
        assert_eq!(tcp.community_id(0), "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
        assert_eq!(tcp.community_id(1), "1:3V71V58M3Ksw/yuFALMcW0LAHvc=");
    }

    #[test]
    fn both_directions_have_the_same_id() {
        let there = key(IpProtocol::UDP, ("192.168.1.52", 54585), ("8.8.8.8", 53));
        let back = key(IpProtocol::UDP, ("8.8.8.8", 53), ("192.168.1.52", 54585));
        assert_eq!(there.community_id(0), back.community_id(0));
        assert_eq!(there.community_id(0), "1:d/FP5EW3wiY1vCndhwleRRKHowQ=");
    }
}
