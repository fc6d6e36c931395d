//! ICMP types: which answers which, and which quote a packet.

/// How a Community ID pairs an ICMP type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// A question and its answer: both belong to one conversation.
    TwoWay {
        /// The type that the other side sends.
        counterpart: u8,
    },
    /// Nothing answers it: type and code stand in place of the ports, and the sender stands first.
    OneWay,
}

/// The pairing of an ICMP type (RFC 792, 950, 1256), as the Community ID specification 1.0 lists it.
#[must_use]
pub const fn pairing_v4(kind: u8) -> Pairing {
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

/// The pairing of an ICMPv6 type (RFC 4443, 4861, 2710, 4620, 6275), as the Community ID specification lists it.
#[must_use]
pub const fn pairing_v6(kind: u8) -> Pairing {
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

/// Octets before the quoted packet in an ICMP error.
pub const ERROR_HEADER_LEN: usize = 8;

/// Whether a type reports an error and quotes the packet that caused it (RFC 792; RFC 4443 section 2.1: all types
/// below 128).
#[must_use]
pub const fn quotes_packet(is_ipv6: bool, kind: u8) -> bool {
    if is_ipv6 { kind < 128 } else { matches!(kind, 3 | 4 | 5 | 11 | 12) }
}

/// Whether a type is an echo request or reply, so that an identifier follows.
#[must_use]
pub const fn is_echo(is_ipv6: bool, kind: u8) -> bool {
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
