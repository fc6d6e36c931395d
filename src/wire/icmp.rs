//! ICMP types: pairs of requests and replies, and errors that quote a packet.

use std::net::IpAddr;

use super::{array, be16};
use crate::base::{FlowKey, IpProtocol, Side, address_bits};

impl FlowKey {
    /// Returns the key of an ICMP or ICMPv6 conversation in which `source` sends messages of type `kind` and
    /// code `code`, and the side of the key to which `source` belongs. Types that answer each other, such as
    /// echo request and reply, have the same key.
    #[must_use]
    pub fn icmp(source: IpAddr, destination: IpAddr, kind: u8, code: u8) -> (Self, Side) {
        let is_ipv6 = source.is_ipv6() || destination.is_ipv6();
        let protocol = if is_ipv6 { IpProtocol::ICMPV6 } else { IpProtocol::ICMP };
        let pairing = if is_ipv6 { pairing_v6(kind) } else { pairing_v4(kind) };
        let (source, destination) = (address_bits(source), address_bits(destination));
        match pairing {
            Pairing::TwoWay { counterpart } => {
                let ends = ((source, kind.into()), (destination, counterpart.into()));
                let (key, side) = Self::ordered(protocol, is_ipv6, ends.0, ends.1, true);
                (key.with_icmp(false, None), side)
            }
            Pairing::OneWay => {
                let ends = ((source, kind.into()), (destination, code.into()));
                (Self::directed(protocol, is_ipv6, ends.0, ends.1, true).with_icmp(true, None), Side::A)
            }
        }
    }
}

/// Pairing of an ICMP type according to Community ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// A request and its reply: both belong to one conversation.
    TwoWay {
        /// ICMP type that the other side of the conversation sends.
        counterpart: u8,
    },
    /// A type without a reply: the key contains type and code in place of the ports, and the sender is side A.
    OneWay,
}

/// Returns the pairing of an ICMP type (RFC 792, 950, 1256) according to the Community ID specification 1.0.
#[must_use]
pub(crate) const fn pairing_v4(kind: u8) -> Pairing {
    let counterpart = match kind {
        0 => 8,
        8 => 0,
        9 => 10,
        10 => 9,
        13 => 14,
        14 => 13,
        15 => 16,
        16 => 15,
        17 => 18,
        18 => 17,
        _ => return Pairing::OneWay,
    };
    Pairing::TwoWay { counterpart }
}

/// Returns the pairing of an ICMPv6 type (RFC 4443, 4861, 2710, 4620, 6275) according to the Community ID
/// specification.
#[must_use]
pub(crate) const fn pairing_v6(kind: u8) -> Pairing {
    let counterpart = match kind {
        128 => 129,
        129 => 128,
        130 => 131,
        131 => 130,
        133 => 134,
        134 => 133,
        135 => 136,
        136 => 135,
        139 => 140,
        140 => 139,
        144 => 145,
        145 => 144,
        _ => return Pairing::OneWay,
    };
    Pairing::TwoWay { counterpart }
}

/// Returns whether an ICMP type only answers a request of another type: the sender did not begin the flow. Advertisements
/// and reports are also sent unasked.
#[must_use]
pub(crate) const fn is_reply(is_ipv6: bool, kind: u8) -> bool {
    if is_ipv6 { matches!(kind, 129 | 140 | 145) } else { matches!(kind, 0 | 14 | 16 | 18) }
}

/// Length of the ICMP header, in octets: of a message with an identifier, and of an error message before the
/// packet that it quotes.
pub(crate) const HEADER_LEN: usize = 8;

/// Length of the ICMP type and code fields together, in octets.
pub(crate) const KIND_AND_CODE_LEN: usize = 2;

mod field {
    /// Offset of the ICMP type; the code follows directly.
    pub(super) const KIND: usize = 0;
    pub(super) const ID: usize = 4;
}

/// Returns the type and the code of the ICMP message at the start of `data`.
#[must_use]
pub(crate) fn kind_and_code(data: &[u8]) -> Option<(u8, u8)> {
    array(data, field::KIND).map(|[kind, code]| (*kind, *code))
}

/// Returns the identifier of the ICMP echo message at the start of `data`.
#[must_use]
pub(crate) fn echo_id(data: &[u8]) -> Option<u16> {
    be16(data, field::ID)
}

/// Returns the captured part of the packet that the ICMP error message at the start of `data` quotes.
#[must_use]
pub(crate) fn quoted(data: &[u8]) -> Option<&[u8]> {
    data.get(HEADER_LEN..)
}

/// Returns whether messages of an ICMP type report an error and quote the packet that caused it (RFC 792; RFC
/// 4443 section 2.1: all types below 128).
#[must_use]
pub(crate) const fn quotes_packet(is_ipv6: bool, kind: u8) -> bool {
    if is_ipv6 { kind < 128 } else { matches!(kind, 3 | 4 | 5 | 11 | 12) }
}

/// Returns whether an ICMP type is an echo request or reply; the header of these messages contains an
/// identifier.
#[must_use]
pub(crate) const fn is_echo(is_ipv6: bool, kind: u8) -> bool {
    if is_ipv6 { matches!(kind, 128 | 129) } else { matches!(kind, 0 | 8) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairing_is_mutual() {
        for pairing in [pairing_v4, pairing_v6] {
            for kind in 0..=u8::MAX {
                if let Pairing::TwoWay { counterpart } = pairing(kind) {
                    assert_eq!(pairing(counterpart), Pairing::TwoWay { counterpart: kind });
                }
            }
        }
    }
}
