//! The single conditions that a filter expression combines.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::base::{IpProtocol, NeighborProtocol, Ports, Side};

use super::names::{Family, GRE, PROTOCOL_WORDS};
#[cfg(feature = "protocols")]
use super::subject::LinkSubject;
use super::subject::Subject;

/// The end or ends of a flow that a condition of a filter applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// One of the two ends, whichever satisfies the condition: `src or dst`, which is also the default.
    Either,
    /// The source: `src`.
    Source,
    /// The destination: `dst`.
    Destination,
    /// Both ends: `src and dst`.
    Both,
}

impl Direction {
    /// Returns whether the ends that this direction selects satisfy a condition, which `test` checks for one end.
    /// `source` is the end that is the source.
    #[inline]
    fn holds(self, source: Side, test: impl Fn(Side) -> bool) -> bool {
        match self {
            Self::Either => test(Side::A) || test(Side::B),
            Self::Source => test(source),
            Self::Destination => test(source.other()),
            Self::Both => test(Side::A) && test(Side::B),
        }
    }

    /// Returns whether the addresses of a frame without an IP packet satisfy a condition.
    #[cfg(feature = "protocols")]
    fn holds_for(self, ends: (Option<IpAddr>, Option<IpAddr>), test: impl Fn(IpAddr) -> bool) -> bool {
        let (source, destination) = (ends.0.is_some_and(&test), ends.1.is_some_and(&test));
        match self {
            Self::Either => source || destination,
            Self::Source => source,
            Self::Destination => destination,
            Self::Both => source && destination,
        }
    }

    /// Returns the words for this direction that are written before `host`, `net` or `port`.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Either => "",
            Self::Source => "src ",
            Self::Destination => "dst ",
            Self::Both => "src and dst ",
        }
    }
}

/// One condition of a filter expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Term {
    /// The IP version of the packet or flow.
    Family(Family),
    /// The IP protocol, over IP version `family` or over both.
    Protocol { protocol: IpProtocol, family: Option<Family> },
    /// IPv4 addresses that equal `address` after `mask` is applied.
    Net4 { direction: Direction, address: u32, mask: u32 },
    /// IPv6 addresses that equal `address` after `mask`, which is a prefix, is applied.
    Net6 { direction: Direction, address: u128, mask: u128 },
    /// Ports from `first` to `last`, inclusive, of one transport protocol or, if `protocol` is `None`, of all
    /// protocols with ports.
    Ports { direction: Direction, protocol: Option<IpProtocol>, first: u16, last: u16 },
    /// A VLAN id anywhere in the tag stack; any VLAN id if `None`.
    Vlan(Option<u16>),
    /// A protocol of frames without an IP packet.
    Link(NeighborProtocol),
}

impl Term {
    /// Returns the mask of an IPv4 prefix; `prefix_len` is 0 to 32 bits.
    pub(super) const fn mask4(prefix_len: u32) -> u32 {
        match u32::MAX.checked_shr(prefix_len) {
            Some(host_bits) => !host_bits,
            None => u32::MAX,
        }
    }

    /// Returns the mask of an IPv6 prefix; `prefix_len` is 0 to 128 bits.
    pub(super) const fn mask6(prefix_len: u32) -> u128 {
        match u128::MAX.checked_shr(prefix_len) {
            Some(host_bits) => !host_bits,
            None => u128::MAX,
        }
    }

    /// Returns whether a packet or flow satisfies the condition.
    #[inline]
    pub(super) fn holds(&self, subject: &Subject<'_>) -> bool {
        let key = subject.key;
        match *self {
            Self::Family(family) => key.is_ipv6() == (family == Family::V6),
            Self::Protocol { protocol, family } => {
                key.protocol() == protocol
                    && family.is_none_or(|family| key.is_ipv6() == (family == Family::V6))
            }
            Self::Net4 { direction, address, mask } => {
                direction.holds(subject.source, |side| match key.address(side) {
                    IpAddr::V4(own) => own.to_bits() & mask == address,
                    IpAddr::V6(_) => false,
                })
            }
            Self::Net6 { direction, address, mask } => {
                direction.holds(subject.source, |side| match key.address(side) {
                    IpAddr::V4(_) => false,
                    IpAddr::V6(own) => own.to_bits() & mask == address,
                })
            }
            Self::Ports { direction, protocol, first, last } => {
                let own = key.protocol();
                // A key with numbers of another kind, or without numbers, has no port 0 either.
                let Ports::Transport(a, b) = key.ports() else { return false };
                let counts = protocol.map_or(own.has_ports(), |protocol| protocol == own);
                counts
                    && direction.holds(subject.source, |side| {
                        let port = if side == Side::A { a } else { b };
                        first <= port && port <= last
                    })
            }
            Self::Vlan(None) => subject.vlan_ids.iter().any(|ids| !ids.is_empty()),
            Self::Vlan(Some(id)) => subject.vlan_ids.iter().any(|ids| ids.contains(id)),
            Self::Link(_) => false,
        }
    }

    /// Returns whether a frame without an IP packet satisfies the condition. As in libpcap, an address is that of the sender
    /// or the target of ARP too.
    #[cfg(feature = "protocols")]
    pub(super) fn holds_for(&self, subject: &LinkSubject) -> bool {
        match *self {
            Self::Link(protocol) => subject.protocol == protocol,
            Self::Family(_) | Self::Protocol { .. } | Self::Ports { .. } => false,
            Self::Net4 { direction, address, mask } => {
                direction.holds_for(subject.addresses, |own| match own {
                    IpAddr::V4(own) => own.to_bits() & mask == address,
                    IpAddr::V6(_) => false,
                })
            }
            Self::Net6 { direction, address, mask } => {
                direction.holds_for(subject.addresses, |own| match own {
                    IpAddr::V4(_) => false,
                    IpAddr::V6(own) => own.to_bits() & mask == address,
                })
            }
            Self::Vlan(None) => !subject.vlan_ids.is_empty(),
            Self::Vlan(Some(id)) => subject.vlan_ids.contains(id),
        }
    }

    /// Returns whether the result of the condition may change when source and destination are exchanged.
    pub(super) const fn is_directional(&self) -> bool {
        match self {
            Self::Net4 { direction, .. } | Self::Net6 { direction, .. } | Self::Ports { direction, .. } => {
                matches!(direction, Direction::Source | Direction::Destination)
            }
            Self::Family(_) | Self::Protocol { .. } | Self::Vlan(_) | Self::Link(_) => false,
        }
    }
}

impl fmt::Display for Term {
    /// Writes the condition with all words that pcap-filter(7) allows one to omit; libpcap knows these words too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Family(family) => f.write_str(family_word(family)),
            Self::Protocol { protocol, family } => {
                let meant = |word: &&(&str, IpProtocol, Option<Family>)| {
                    (word.1, word.2) == (protocol, family) && word.0 != GRE
                };
                match (PROTOCOL_WORDS.iter().find(meant), family) {
                    (Some((word, ..)), _) => f.write_str(word),
                    (None, None) => write!(f, "proto {}", protocol.0),
                    (None, Some(family)) => write!(f, "{} proto {}", family_word(family), protocol.0),
                }
            }
            Self::Net4 { direction, address, mask } => {
                let (prefix, address) = (direction.prefix(), Ipv4Addr::from_bits(address));
                match mask.leading_ones() {
                    32 => write!(f, "{prefix}host {address}"),
                    len if mask == Self::mask4(len) => write!(f, "{prefix}net {address}/{len}"),
                    _ => write!(f, "{prefix}net {address} mask {}", Ipv4Addr::from_bits(mask)),
                }
            }
            Self::Net6 { direction, address, mask } => {
                let (prefix, address) = (direction.prefix(), Ipv6Addr::from_bits(address));
                match mask.leading_ones() {
                    128 => write!(f, "{prefix}host {address}"),
                    len => write!(f, "{prefix}net {address}/{len}"),
                }
            }
            Self::Ports { direction, protocol, first, last } => {
                if let Some(protocol) = protocol {
                    write!(f, "{protocol} ")?;
                }
                f.write_str(direction.prefix())?;
                if first == last { write!(f, "port {first}") } else { write!(f, "portrange {first}-{last}") }
            }
            Self::Link(protocol) => f.write_str(protocol.name()),
            Self::Vlan(None) => f.write_str("vlan"),
            Self::Vlan(Some(id)) => write!(f, "vlan {id}"),
        }
    }
}

const fn family_word(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{FlowKey, VlanIds};

    #[test]
    fn masks_of_all_lengths_match() {
        assert_eq!([0, 8, 31, 32].map(Term::mask4), [0, 0xff00_0000, 0xffff_fffe, u32::MAX]);
        assert_eq!(Term::mask6(0), 0);
        assert_eq!(Term::mask6(10), 0xffc0 << 112);
        assert_eq!(Term::mask6(128), u128::MAX);
    }

    #[test]
    fn numbers_that_are_not_ports_do_not_match_as_ports() {
        let ends = ("10.0.0.1".parse().unwrap(), 8);
        let port = |number| Term::Ports {
            direction: Direction::Either,
            protocol: None,
            first: number,
            last: number,
        };
        let (esp, source) = FlowKey::new(IpProtocol::ESP, ends, ends);
        assert!(!port(8).holds(&Subject::new(&esp, source)));
        let (icmp, source) = FlowKey::ordered(IpProtocol::ICMP, false, (1, 8), (2, 0), true);
        assert!(!port(8).holds(&Subject::new(&icmp.with_icmp(false, None), source)));
        let (fragment, source) = FlowKey::ordered(IpProtocol::TCP, false, (1, 0), (2, 0), false);
        assert!(!port(0).holds(&Subject::new(&fragment, source)));
    }

    #[test]
    fn vlan_ids_of_both_directions_match() {
        let end = ("10.0.0.1".parse().unwrap(), 8);
        let (key, source) = FlowKey::new(IpProtocol::UDP, end, end);
        let there = VlanIds::NONE.push(100).push(7);
        let back = VlanIds::NONE.push(200);
        let subject = Subject::new(&key, source).with_vlan_ids(there).with_reverse_vlan_ids(back);
        assert!([100, 7, 200].iter().all(|id| Term::Vlan(Some(*id)).holds(&subject)));
        assert!(!Term::Vlan(Some(70)).holds(&subject));
        assert!(Term::Vlan(None).holds(&subject));
        assert!(!Term::Vlan(None).holds(&Subject::new(&key, source)));
    }
}
