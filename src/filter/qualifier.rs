//! The qualifiers before a value, which determine its meaning.

use crate::base::IpProtocol;

use super::names::Family;
use super::names::{PROTOCOL_WORDS, ProtocolWord};
use super::term::{Direction, Term};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Host,
    Net,
    Port,
    PortRange,
    Proto,
}

impl Type {
    /// Returns the type of a keyword.
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "host" => Self::Host,
            "net" => Self::Net,
            "port" => Self::Port,
            "portrange" => Self::PortRange,
            "proto" => Self::Proto,
            _ => return None,
        })
    }
}

/// A protocol before a value, or by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// `ip`, `ip6`.
    Ip(Family),
    /// A protocol over IP.
    Carried(ProtocolWord),
}

impl Protocol {
    /// Returns the protocol of a keyword.
    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            "ip" => Some(Self::Ip(Family::V4)),
            "ip6" => Some(Self::Ip(Family::V6)),
            _ => PROTOCOL_WORDS.iter().find(|known| known.0 == word).copied().map(Self::Carried),
        }
    }

    /// Returns the protocol as a term by itself.
    pub(super) const fn term(self) -> Term {
        match self {
            Self::Ip(family) => Term::Family(family),
            Self::Carried((_, protocol, family)) => Term::Protocol { protocol, family },
        }
    }
}

/// Protocol, direction and type, which determine how a value is parsed. Values after `and` and `or` take them over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Qualifier {
    pub(super) protocol: Option<Protocol>,
    pub(super) direction: Direction,
    pub(super) kind: Type,
}

impl Qualifier {
    /// Combines the three, if the combination is valid: addresses belong to `ip` or `ip6`, ports to a transport
    /// protocol.
    pub(super) const fn new(protocol: Option<Protocol>, direction: Direction, kind: Type) -> Option<Self> {
        let fits = match (protocol, kind) {
            (None, _) => true,
            (Some(Protocol::Ip(_)), Type::Host | Type::Net | Type::Proto) => true,
            (Some(Protocol::Carried((_, protocol, _))), Type::Port | Type::PortRange) => protocol.has_ports(),
            _ => false,
        };
        if fits { Some(Self { protocol, direction, kind }) } else { None }
    }

    /// Returns the IP version that `ip` or `ip6` requires.
    pub(super) const fn family(&self) -> Option<Family> {
        match self.protocol {
            Some(Protocol::Ip(family)) => Some(family),
            _ => None,
        }
    }

    /// Returns a term for a range of ports with these qualifiers.
    pub(super) const fn ports(&self, first: u16, last: u16) -> Term {
        Term::Ports { direction: self.direction, protocol: self.transport(), first, last }
    }

    const fn transport(&self) -> Option<IpProtocol> {
        match self.protocol {
            Some(Protocol::Carried((_, protocol, _))) => Some(protocol),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_combinations_are_accepted() {
        let fits = |protocol: &str, kind: &str| {
            let protocol = Some(Protocol::of(protocol).unwrap());
            Qualifier::new(protocol, Direction::Either, Type::of(kind).unwrap()).is_some()
        };
        for (protocol, kind) in
            [("ip", "host"), ("ip6", "net"), ("ip", "proto"), ("tcp", "port"), ("sctp", "portrange")]
        {
            assert!(fits(protocol, kind), "{protocol} {kind}");
        }
        for (protocol, kind) in
            [("ip", "port"), ("tcp", "host"), ("icmp", "port"), ("udp", "proto"), ("gre", "net")]
        {
            assert!(!fits(protocol, kind), "{protocol} {kind}");
        }
    }
}
