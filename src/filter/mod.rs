//! Filters: which packets and flows are wanted, in the everyday part of pcap-filter(7).
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
//! | written | holds if |
//! |---|---|
//! | `host A` | an end has the address A, of IPv4 or IPv6; names are not looked up |
//! | `net A/LEN`, `net A mask M`, `net 10.1` | an end is in the network; left-out octets are not compared |
//! | `port P`, `portrange P-Q` | an end has the TCP, UDP or SCTP port, a number or a registered name |
//! | `src`, `dst`, `src or dst`, `src and dst` | in front of these: which end is meant; alone with an address: `host` |
//! | `ip`, `ip6` | the IP version, also in front of `host`, `net`, `proto` |
//! | `tcp`, `udp`, `sctp` | the protocol, also in front of `port`, `portrange` with or without a direction |
//! | `icmp`, `icmp6`, `igmp`, `esp`, `ah`, `gre`, `pim`, `vrrp`, `proto N` | the protocol, by name or number |
//! | `vlan`, `vlan ID` | the packets carry a VLAN tag, or this one, anywhere in the stack |
//! | `not`, `!`, `and`, `&&`, `or`, `\|\|`, `( )` | `not` binds tightest; `and` and `or` bind alike, from left to right |
//!
//! A value without qualifiers takes those of the term before it: `tcp port 80 or 443`. Nothing but white space
//! is a filter that matches everything.
//!
//! In libpcap, `vlan` also moves the offsets at which the rest of the expression reads. Here it is a condition
//! like any other: `host 192.0.2.1` holds with and without tags, and `vlan` changes nothing after it.
//! `docs/design/filter.md` lists the other differences.
//!
//! # Packets and flows
//!
//! `src` and `dst` depend on which end is called the source, and that is for the caller to say in the
//! [`Subject`]: the sender for a packet, the initiator for a flow. Who that is, and over which VLANs the answers
//! come, may be known only when the flow ends; so filter in two steps, and no half of a flow is lost:
//!
//! 1. drop a packet early if its key [cannot match](Filter::may_match), whoever began;
//! 2. ask [`Filter::matches`] for the record, unless the first answer was [final](Filter::is_final).

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
pub use subject::Subject;

use expr::Chain;
use program::Program;

/// The most terms in a filter: a condition each, however joined. A filter takes 64 octets per term to run and
/// about as many again to print.
pub const TERM_COUNT_MAX: usize = 1024;

/// The deepest nesting of parentheses in a filter.
pub const DEPTH_MAX: usize = 64;

/// A condition on packets and flows, parsed once and asked often.
///
/// Asking takes a few nanoseconds, allocates nothing and takes time in proportion to the terms that must be
/// looked at: `and` and `or` stop as soon as the answer is known. Filters that are written differently but have
/// the same terms in the same order under the same parentheses are equal. The default matches everything.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Filter {
    chain: Option<Chain>,
    program: Program,
}

impl Filter {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// If the expression is not in the [language](self#the-language), has more than [`TERM_COUNT_MAX`] terms,
    /// or nests parentheses deeper than [`DEPTH_MAX`]. The error says what and where; a word of pcap-filter(7)
    /// that has no meaning for flows is named as such.
    pub fn parse(expression: &str) -> Result<Self, FilterError> {
        Ok(parser::parse(expression)?.map(Self::from_chain).unwrap_or_default())
    }

    fn from_chain(chain: Chain) -> Self {
        Self { program: Program::new(&chain), chain: Some(chain) }
    }

    /// Whether a packet or flow is wanted.
    #[must_use]
    #[inline]
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        self.program.run(subject)
    }

    /// Whether a flow with this key could be wanted, whichever end began it and whatever VLAN ids it has.
    ///
    /// A packet for which this is false can be dropped before its flow is looked up: [`matches`](Self::matches)
    /// is false for every subject with the key. VLAN ids that are a part of the key count as known.
    #[must_use]
    pub fn may_match(&self, key: &FlowKey) -> bool {
        let asks_vlan = self.program.has_vlan() && key.vlan_ids().is_empty();
        let ask = |source| {
            let subject = Subject::new(key, source);
            if asks_vlan { self.program.may_accept(&subject) } else { self.program.run(&subject) }
        };
        ask(Side::A) || self.program.is_directional() && ask(Side::B)
    }

    /// Whether a term says `src` or `dst`, so that the answer may depend on which end is the source.
    #[must_use]
    #[inline]
    pub const fn is_directional(&self) -> bool {
        self.program.is_directional()
    }

    /// Whether a term is about VLAN ids, which may differ between the directions of a flow.
    #[must_use]
    #[inline]
    pub const fn has_vlan(&self) -> bool {
        self.program.has_vlan()
    }

    /// Whether the key alone decides: then [`may_match`](Self::may_match) is the answer for every packet of a
    /// flow and for its record.
    #[must_use]
    #[inline]
    pub const fn is_final(&self) -> bool {
        !self.is_directional() && !self.has_vlan()
    }

    /// How many terms there are.
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
    /// The filter with every qualifier written out, numbers for names and no needless parentheses. It parses
    /// back to an equal filter, and libpcap accepts it too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chain.as_ref().map_or(Ok(()), |chain| chain.fmt(f))
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filter({self})")
    }
}
