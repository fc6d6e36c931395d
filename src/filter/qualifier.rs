//! The qualifiers before a value of a filter expression, which determine the meaning of the value.

use crate::base::IpProtocol;

use super::names::Family;
use super::names::{PROTOCOL_WORDS, ProtocolWord};
use super::term::{Direction, Term};

/// Type of a value in a filter expression, as its keyword states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Host,
    Net,
    Port,
    PortRange,
    Proto,
}

impl Type {
    /// Returns the value type that a keyword denotes; `None` for other words.
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

/// A protocol keyword of a filter expression, before a value or by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// The keyword `ip` or `ip6`.
    Ip(Family),
    /// The keyword of a protocol over IP, such as `tcp`.
    Carried(ProtocolWord),
}

impl Protocol {
    /// Returns the protocol that a keyword denotes; `None` for other words.
    pub(super) fn of(word: &str) -> Option<Self> {
        match word {
            "ip" => Some(Self::Ip(Family::V4)),
            "ip6" => Some(Self::Ip(Family::V6)),
            _ => PROTOCOL_WORDS.iter().find(|known| known.0 == word).copied().map(Self::Carried),
        }
    }

    /// Returns the term that consists of the protocol keyword by itself.
    pub(super) const fn term(self) -> Term {
        match self {
            Self::Ip(family) => Term::Family(family),
            Self::Carried((_, protocol, family)) => Term::Protocol { protocol, family },
        }
    }
}

/// Protocol, direction and type, which determine how a value is parsed. They also apply to later values without
/// qualifiers of their own: in `tcp port 80 or 443`, `tcp port` applies to 443 too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Qualifier {
    pub(super) protocol: Option<Protocol>,
    pub(super) direction: Direction,
    pub(super) kind: Type,
}

impl Qualifier {
    /// Combines protocol, direction and type; `None` if the combination is not valid: addresses require `ip` or
    /// `ip6`, or no protocol; ports require a transport protocol, or none.
    pub(super) const fn new(protocol: Option<Protocol>, direction: Direction, kind: Type) -> Option<Self> {
        let fits = match (protocol, kind) {
            (None, _) => true,
            (Some(Protocol::Ip(_)), Type::Host | Type::Net | Type::Proto) => true,
            (Some(Protocol::Carried((_, protocol, _))), Type::Port | Type::PortRange) => protocol.has_ports(),
            _ => false,
        };
        if fits { Some(Self { protocol, direction, kind }) } else { None }
    }

    /// Returns the IP version that the protocol keyword `ip` or `ip6` requires; `None` if neither is present.
    pub(super) const fn family(&self) -> Option<Family> {
        match self.protocol {
            Some(Protocol::Ip(family)) => Some(family),
            _ => None,
        }
    }

    /// Returns a term for the ports from `first` to `last` with these qualifiers.
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
