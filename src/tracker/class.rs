//! Timeout classes of flows, which determine the idle timeout and the order in which flows are evicted.

use std::time::Duration;

use crate::base::{IpProtocol, TcpState};
use crate::record::FlowRecord;

/// Maximum number of timeout classes that the caller may define.
pub const USER_CLASS_COUNT_MAX: usize = 16;

/// Timeout class of a flow, which determines its idle timeout. Every flow is in one class at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Class of TCP flows with a SYN and without a packet from the other side.
    Unanswered,
    /// Class of TCP flows with a handshake in progress.
    HalfOpen,
    /// Class of TCP flows that are established, were first seen in the middle of the connection, or are closed by one
    /// side only.
    Established,
    /// Class of TCP flows that are closed by both sides or reset. They are kept for late segments.
    Closing,
    /// Class of UDP flows.
    Udp,
    /// Class of ICMP and ICMPv6 flows.
    Icmp,
    /// Class of flows of all other protocols.
    Other,
    /// Class that the caller defined with [`TrackerConfig::add_class`](super::TrackerConfig::add_class).
    User(UserClass),
}

/// Timeout class that the caller defined; see [`TrackerConfig::add_class`](super::TrackerConfig::add_class).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserClass(pub(super) u8);

/// Maximum number of timeout classes, built-in and defined by the caller.
pub(super) const CLASSES: usize = FIXED + USER_CLASS_COUNT_MAX;

/// Number of recency lists: at most two for each timeout class, for flows without a reply and for all others. A power of
/// two, so that a list number can be masked.
pub(super) const LISTS: usize = (CLASSES * 2).next_power_of_two();

/// Number of the recency list of TCP handshakes.
const HANDSHAKES: u8 = 0;

/// List number of a flow that is in no recency list yet.
pub(super) const UNLISTED: u8 = LISTS as u8 - 1;

const _: () = assert!(CLASSES * 2 < LISTS, "no class has the number for flows without a list");

const FIXED: usize = 7;

impl Class {
    /// The built-in timeout classes, in the order of their numbers.
    pub(super) const BUILT_IN: [Self; FIXED] = [
        Self::Unanswered,
        Self::HalfOpen,
        Self::Closing,
        Self::Established,
        Self::Udp,
        Self::Icmp,
        Self::Other,
    ];

    pub(super) const fn number(self) -> usize {
        match self {
            Self::Unanswered => 0,
            Self::HalfOpen => 1,
            Self::Closing => 2,
            Self::Established => 3,
            Self::Udp => 4,
            Self::Icmp => 5,
            Self::Other => 6,
            Self::User(class) => FIXED + class.0 as usize,
        }
    }

    /// Returns the number of the recency list for flows of the class, with or without a reply. All handshakes are in
    /// one list, because they have one timeout and are evicted together.
    pub(super) const fn list(self, is_answered: bool) -> u8 {
        match self {
            Self::Unanswered | Self::HalfOpen => HANDSHAKES,
            _ => (self.number() * 2) as u8 + is_answered as u8,
        }
    }

    /// Returns the built-in timeout class of a flow, for flows that the caller's classifier does not assign to a class.
    pub(super) const fn natural(protocol: IpProtocol, state: TcpState, is_answered: bool) -> Self {
        match protocol {
            IpProtocol::TCP => match state {
                TcpState::SynSent if !is_answered => Self::Unanswered,
                TcpState::SynSent | TcpState::SynReceived => Self::HalfOpen,
                state if state.is_closed() => Self::Closing,
                _ => Self::Established,
            },
            IpProtocol::UDP => Self::Udp,
            IpProtocol::ICMP | IpProtocol::ICMPV6 => Self::Icmp,
            _ => Self::Other,
        }
    }
}

/// Returns whether the flows of the recency list number `list` are in a TCP handshake, where only a SYN restarts the
/// timeout.
#[inline(always)]
pub(super) const fn is_handshake(list: u8) -> bool {
    list == HANDSHAKES
}

crate::base::configuration! {
    /// Idle timeouts of the built-in classes. Flows with the timeout `None` never expire.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Timeouts {
        /// Idle timeout of TCP handshakes without a reply or not completed, since the last SYN. Default 65 s.
        pub half_open: Option<Duration>,
        /// Idle timeout of TCP connections. Default 300 s.
        pub established: Option<Duration>,
        /// Idle timeout of closed TCP connections, which are kept for late segments, since the last packet. Default 15 s: a
        /// FIN whose acknowledgment was lost is retransmitted after 1 s, another 2 s, 4 s and 8 s (RFC 6298), and belongs
        /// to the connection.
        ///
        /// With zero, the record is delivered at the close, which is a reset or the acknowledgment of the second FIN. The
        /// connection is kept for 15 s nevertheless; late segments are in a further record of the same flow.
        pub linger: Option<Duration>,
        /// Idle timeout of UDP flows. Default 60 s.
        pub udp: Option<Duration>,
        /// Idle timeout of ICMP and ICMPv6 flows. Default 30 s.
        pub icmp: Option<Duration>,
        /// Idle timeout of flows of other protocols. Default 30 s.
        pub other: Option<Duration>,
    }
}

impl Timeouts {
    /// The default timeouts, which are stated at each field.
    pub const DEFAULT: Self = Self {
        half_open: Some(Duration::from_secs(65)),
        established: Some(Duration::from_secs(300)),
        linger: Some(Duration::from_secs(15)),
        udp: Some(Duration::from_secs(60)),
        icmp: Some(Duration::from_secs(30)),
        other: Some(Duration::from_secs(30)),
    };

    /// Returns timeouts with the same value for all classes, including closed TCP connections; `None` for flows that
    /// end only with the input.
    #[must_use]
    pub const fn all(timeout: Option<Duration>) -> Self {
        Self {
            half_open: timeout,
            established: timeout,
            linger: timeout,
            udp: timeout,
            icmp: timeout,
            other: timeout,
        }
    }

    /// Returns whether the record of a connection is delivered when it closes.
    pub(super) const fn records_close(&self) -> bool {
        matches!(self.linger, Some(Duration::ZERO))
    }

    /// Returns the idle timeout of a flow in its state at the end of a record, by its built-in class.
    #[must_use]
    pub fn of_record(&self, record: &FlowRecord) -> Option<Duration> {
        let is_answered = [&record.forward, &record.reverse].iter().all(|side| !side.counters.is_empty());
        self.of(Class::natural(record.protocol(), record.tcp_state, is_answered))
    }

    pub(super) const fn of(&self, class: Class) -> Option<Duration> {
        match class {
            Class::Unanswered | Class::HalfOpen => self.half_open,
            Class::Established => self.established,
            Class::Closing if self.records_close() => Self::DEFAULT.linger,
            Class::Closing => self.linger,
            Class::Udp => self.udp,
            Class::Icmp => self.icmp,
            Class::Other | Class::User(_) => self.other,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_numbers_are_contiguous_and_distinct() {
        let user = (0..USER_CLASS_COUNT_MAX as u8).map(|number| Class::User(UserClass(number)));
        let numbers: Vec<_> = Class::BUILT_IN.into_iter().chain(user).map(Class::number).collect();
        assert_eq!(numbers, (0..CLASSES).collect::<Vec<_>>());
    }

    #[test]
    fn incomplete_handshakes_are_identified_by_their_list() {
        for class in Class::BUILT_IN {
            for is_answered in [false, true] {
                let list = class.list(is_answered);
                assert_eq!(is_handshake(list), matches!(class, Class::Unanswered | Class::HalfOpen));
            }
        }
    }
}
