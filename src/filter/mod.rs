//! Filters for packets and flows, in the commonly used part of pcap-filter(7).
//!
//! A program can parse an expression that its user enters, and match it against keys:
//!
//! ```
//! use flowgauge::base::{FlowKey, IpProtocol};
//! use flowgauge::filter::{Filter, Subject};
//!
//! let filter: Filter = "tcp port 80 or 443 and not net 10.0.0.0/8".parse()?;
//! let client = ("192.0.2.7".parse()?, 40_000);
//! let server = ("198.51.100.1".parse()?, 443);
//! let (key, source) = FlowKey::new(IpProtocol::TCP, client, server);
//! assert!(filter.matches(&Subject::new(&key, source)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The language
//!
//! | expression | condition |
//! |---|---|
//! | `host A` | an end has the address A, of IPv4 or IPv6; names are not resolved |
//! | `net A/LEN`, `net A mask M`, `net 10.1` | an end is in the network; omitted octets are not compared |
//! | `port P`, `portrange P-Q` | an end has the TCP, UDP or SCTP port, a number or a registered name |
//! | `src`, `dst`, `src or dst`, `src and dst` | before these: the end that the term applies to; alone with an address: `host` |
//! | `ip`, `ip6` | the IP version, also before `host`, `net`, `proto` |
//! | `tcp`, `udp`, `sctp` | the protocol, also before `port`, `portrange` with or without a direction |
//! | `icmp`, `icmp6`, `igmp`, `esp`, `ah`, `gre`, `pim`, `vrrp`, `proto N` | the protocol, by name or number |
//! | `arp`, `rarp`, `stp` | frames without an IP packet; `host` and `net` apply to addresses in ARP too. No flow matches |
//! | `vlan`, `vlan ID` | the packets carry a VLAN tag, or this one, anywhere in the stack |
//! | `not`, `!`, `and`, `&&`, `or`, `\|\|`, `( )` | `not` has the highest precedence; `and` and `or` have the same, from left to right |
//!
//! A value without qualifiers has the qualifiers of the term before it: `tcp port 80 or 443`. An expression of white
//! space only is a filter that matches everything.
//!
//! In libpcap, `vlan` also moves the offsets for the rest of the expression. Here it is a condition like any other:
//! `host 192.0.2.1` matches with and without tags, and `vlan` does not affect the terms after it.
//! `docs/design/filter.md` lists the other differences.
//!
//! # Packets and flows
//!
//! `src` and `dst` depend on the end that is the source, which the caller sets in the [`Subject`]: the sender for a
//! packet, the initiator for a flow. The initiator, and the VLANs of the replies, may be known only when the flow
//! ends. Filter in two steps, so that no direction of a flow is lost:
//!
//! 1. drop a packet early if its key [cannot match](Filter::may_match), regardless of the initiator;
//! 2. call [`Filter::matches`] for the record, unless the first result was [final](Filter::is_final).

mod error;
mod expr;
mod lexer;
mod names;
mod parser;
mod program;
mod qualifier;
mod subject;
mod term;
mod value;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::base::{FlowKey, Side};

pub use error::{FilterError, FilterErrorKind};
pub use expr::{DEPTH_MAX, TERM_COUNT_MAX};
#[cfg(feature = "protocols")]
pub(crate) use subject::LinkSubject;
pub use subject::Subject;

use expr::Chain;
use program::Program;

/// A condition on packets and flows, parsed once and evaluated often.
///
/// Evaluation takes a few nanoseconds, does not allocate, and takes time proportional to the number of terms
/// evaluated: `and` and `or` stop as soon as the result is known. Filters that are written differently but have the
/// same terms in the same order under the same parentheses are equal. The default matches everything.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Filter {
    chain: Option<Chain>,
    program: Program,
}

impl Filter {
    /// Parses a filter expression.
    ///
    /// # Errors
    ///
    /// Returns an error if the expression is not in the [language](self#the-language), has more than
    /// [`TERM_COUNT_MAX`] terms, or nests parentheses deeper than [`DEPTH_MAX`]. The error has the reason and the
    /// position; a word of pcap-filter(7) that has no meaning for flows is reported as such.
    pub fn parse(expression: &str) -> Result<Self, FilterError> {
        Ok(parser::parse(expression)?.map(Self::from_chain).unwrap_or_default())
    }

    fn from_chain(chain: Chain) -> Self {
        Self { program: Program::new(&chain), chain: Some(chain) }
    }

    /// Returns whether a packet or flow matches the filter.
    #[must_use]
    #[inline]
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        self.program.run(subject)
    }

    /// Returns whether a frame without an IP packet matches the filter, such as a message of ARP.
    #[cfg(feature = "protocols")]
    pub(crate) fn matches_link(&self, subject: &LinkSubject) -> bool {
        self.program.run_link(subject)
    }

    /// Returns whether a flow with this key could match the filter, for either initiator and any VLAN ids.
    ///
    /// If the result is false, a packet can be dropped before its flow is looked up: [`matches`](Self::matches) is
    /// false for every subject with the key. VLAN ids that are part of the key are known.
    #[doc(hidden)]
    #[must_use]
    pub fn may_match(&self, key: &FlowKey) -> bool {
        let needs_vlan = self.program.has_vlan() && key.vlan_ids().is_empty();
        let accepts = |source| {
            let subject = Subject::new(key, source);
            if needs_vlan { self.program.may_accept(&subject) } else { self.program.run(&subject) }
        };
        accepts(Side::A) || self.program.is_directional() && accepts(Side::B)
    }

    /// Returns whether a term of the filter contains `src` or `dst`, so that the result may depend on the source.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub const fn is_directional(&self) -> bool {
        self.program.is_directional()
    }

    /// Returns whether a term of the filter tests VLAN ids, which may differ between the directions of a flow.
    #[must_use]
    #[inline]
    pub(crate) const fn has_vlan(&self) -> bool {
        self.program.has_vlan()
    }

    /// Returns whether the flow key alone determines the result of the filter. If so, [`may_match`](Self::may_match)
    /// is the result for every packet of a flow and for its record.
    #[must_use]
    #[inline]
    pub const fn is_final(&self) -> bool {
        !self.is_directional() && !self.has_vlan()
    }

    /// Returns whether the filter selects frames without an IP packet by their protocol, such as `arp`; `not arp` does not.
    #[doc(hidden)]
    #[must_use]
    pub fn selects_link(&self) -> bool {
        self.program.selects_link()
    }

    /// Returns the number of terms in the filter.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub const fn term_count(&self) -> usize {
        self.program.term_count()
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(expression: &str) -> Result<Self, Self::Err> {
        Self::parse(expression)
    }
}

impl fmt::Display for Filter {
    /// Writes the filter with all qualifiers, with numbers instead of names, and without redundant parentheses. The
    /// text parses back to an equal filter, and libpcap accepts it too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chain.as_ref().map_or(Ok(()), |chain| chain.fmt(f))
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({self})")
    }
}
