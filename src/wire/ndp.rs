//! Neighbor solicitations and advertisements of IPv6 on Ethernet (RFC 4861 sections 4.3, 4.4 and 4.6.1).

use std::net::Ipv6Addr;

use super::checksum::{fold, pseudo_header_sum, sum};
use super::encode;
use super::ipv6::{self, Ipv6, Ipv6Header};
use crate::base::IpProtocol;
use crate::codec::Reader;

/// ICMPv6 type of a neighbor solicitation.
pub(crate) const SOLICITATION: u8 = 135;

/// ICMPv6 type of a neighbor advertisement.
pub(crate) const ADVERTISEMENT: u8 = 136;

/// Length of a neighbor message with a link-layer address option in octets, from the start of the IPv6 header
/// to the end of the option.
pub(crate) const PACKET_LEN: usize = ipv6::HEADER_LEN + MESSAGE_LEN_MIN + OPTION_LEN;

const MESSAGE_LEN_MIN: usize = 24;
const OPTION_LEN: usize = 8;
/// Length field of an option with a link-layer address, which counts units of eight octets.
const OPTION_UNITS: u8 = (OPTION_LEN / 8) as u8;
const OPTION_SOURCE: u8 = 1;
const OPTION_TARGET: u8 = 2;
const HOP_LIMIT: u8 = 255;
const CODE: u8 = 0;

const IS_ROUTER: u32 = 1 << 31;
const IS_SOLICITED: u32 = 1 << 30;
const IS_OVERRIDE: u32 = 1 << 29;

mod field {
    /// Offset of the kind in a neighbor message, from the end of the IPv6 header.
    pub(super) const KIND: usize = 0;
}

/// Kind of a neighbor message: a solicitation, or an advertisement with its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NeighborMessageKind {
    /// A neighbor solicitation, which requests the link-layer address of the target.
    Solicitation,
    /// A neighbor advertisement, which contains the link-layer address of the target.
    Advertisement {
        /// True if the sender is a router (R flag).
        is_router: bool,
        /// True if the advertisement answers a solicitation (S flag).
        is_solicited: bool,
        /// True if the advertisement replaces a known link-layer address (O flag).
        is_override: bool,
    },
}

/// A neighbor solicitation or advertisement with the IPv6 header around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeighborMessage {
    /// Kind of the message: solicitation or advertisement, with its flags.
    pub(crate) kind: NeighborMessageKind,
    /// IPv6 source address of the packet.
    pub(crate) source: Ipv6Addr,
    /// IPv6 destination address of the packet.
    pub(crate) destination: Ipv6Addr,
    /// Address whose link-layer address the message requests or contains.
    pub(crate) target: Ipv6Addr,
    /// Link-layer address in the first option that belongs to the kind of the message: the address of the
    /// source in a solicitation, of the target in an advertisement.
    pub(crate) link_layer: Option<[u8; 6]>,
}

/// Returns whether an IPv6 packet is a neighbor solicitation or advertisement, valid or not. ICMPv6 behind
/// extension headers does not count: no host sends these messages in that form, and RFC 6980 forbids that they
/// are fragmented.
#[must_use]
pub(crate) fn is_neighbor_message(packet: &[u8]) -> bool {
    let kind = packet.get(ipv6::HEADER_LEN + field::KIND).copied();
    ipv6::next_header(packet) == Some(IpProtocol::ICMPV6)
        && matches!(kind, Some(SOLICITATION | ADVERTISEMENT))
}

impl NeighborMessage {
    /// Reads a neighbor message from a whole IPv6 packet, without octets beyond its total length. Returns
    /// `None` if the packet is another message or fails a check of RFC 4861 sections 7.1.1 and 7.1.2: hop
    /// limit, checksum, code, length, target, options, and the restrictions on an unspecified source or a
    /// multicast destination. Linear in the packet; no allocation.
    #[must_use]
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        if !is_neighbor_message(packet) {
            return None;
        }
        let header = Ipv6::read(packet)?;
        let hop_limit = header.hop_limit();
        let [source, destination] = [header.source(), header.destination()].map(Ipv6Addr::from_bits);
        let message = packet.get(ipv6::HEADER_LEN..)?;
        let mut reader = Reader::new(message);
        let (kind, code) = (reader.be::<u8>().ok()?, reader.be::<u8>().ok()?);
        reader.skip(2).ok()?;
        let flags = reader.be::<u32>().ok()?;
        let target = Ipv6Addr::from(reader.array::<16>().ok()?);
        let is_sound = hop_limit == HOP_LIMIT
            && code == CODE
            && !target.is_multicast()
            && !source.is_multicast()
            && checksum(source, destination, message) == 0;
        if !is_sound {
            return None;
        }
        let kind = if kind == SOLICITATION {
            NeighborMessageKind::Solicitation
        } else {
            NeighborMessageKind::Advertisement {
                is_router: flags & IS_ROUTER != 0,
                is_solicited: flags & IS_SOLICITED != 0,
                is_override: flags & IS_OVERRIDE != 0,
            }
        };
        let link_layer = link_layer_option(reader.rest(), kind.option())?;
        let is_allowed = match kind {
            NeighborMessageKind::Solicitation => {
                !source.is_unspecified() || destination == solicited_node(target) && link_layer.is_none()
            }
            NeighborMessageKind::Advertisement { is_solicited, .. } => {
                !(source.is_unspecified() || is_solicited && destination.is_multicast())
            }
        };
        is_allowed.then_some(Self { kind, source, destination, target, link_layer })
    }

    /// Returns the IPv6 packet as octets in wire format, with `link_layer`, the link-layer address of its
    /// sender, as the option, and with a valid checksum. Constant time, no allocation.
    #[must_use]
    pub(crate) fn to_octets(self, link_layer: [u8; 6]) -> [u8; PACKET_LEN] {
        const MESSAGE_LEN: usize = PACKET_LEN - ipv6::HEADER_LEN;
        let (kind, flags) = match self.kind {
            NeighborMessageKind::Solicitation => (SOLICITATION, 0),
            NeighborMessageKind::Advertisement { is_router, is_solicited, is_override } => {
                let flag = |is_set, bit| if is_set { bit } else { 0 };
                let flags = flag(is_router, IS_ROUTER)
                    | flag(is_solicited, IS_SOLICITED)
                    | flag(is_override, IS_OVERRIDE);
                (ADVERTISEMENT, flags)
            }
        };
        let message: [u8; MESSAGE_LEN] = encode(|writer| {
            writer.be(kind)?;
            writer.be(CODE)?;
            let checksum_field = writer.reserve()?;
            writer.be(flags)?;
            writer.array(self.target.octets())?;
            writer.be(self.kind.option())?;
            writer.be(OPTION_UNITS)?;
            writer.array(link_layer)?;
            writer.fill(checksum_field, checksum(self.source, self.destination, writer.written()));
            Ok(())
        });
        let header = Ipv6Header {
            payload_len: MESSAGE_LEN as u16,
            next_header: IpProtocol::ICMPV6,
            hop_limit: HOP_LIMIT,
            source: self.source,
            destination: self.destination,
        };
        encode(|writer| {
            writer.array(header.to_octets())?;
            writer.array(message)
        })
    }
}

impl NeighborMessageKind {
    const fn option(self) -> u8 {
        match self {
            Self::Solicitation => OPTION_SOURCE,
            Self::Advertisement { .. } => OPTION_TARGET,
        }
    }
}

/// Returns the address in the first option of type `wanted`. The outer `None` means that an option has length
/// zero or exceeds the message; the inner `None`, that no such option is present.
#[expect(clippy::option_option, reason = "no option and a broken one are two answers")]
fn link_layer_option(mut options: &[u8], wanted: u8) -> Option<Option<[u8; 6]>> {
    let mut found = None;
    while let [kind, units, ..] = *options {
        let (option, rest) = options.split_at_checked(usize::from(units) * 8).filter(|_| units != 0)?;
        if kind == wanted && found.is_none() && option.len() == OPTION_LEN {
            found = option.last_chunk().copied();
        }
        options = rest;
    }
    options.is_empty().then_some(found)
}

/// Returns the solicited-node multicast address of `target` (RFC 4291 section 2.7.1). A host joins this group
/// for each of its addresses.
#[must_use]
pub(crate) fn solicited_node(target: Ipv6Addr) -> Ipv6Addr {
    const PREFIX: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;
    Ipv6Addr::from_bits(PREFIX | target.to_bits() & 0xff_ffff)
}

/// Computes the ICMPv6 checksum (RFC 4443 section 2.3) of a message with a checksum field of zero. Over a
/// received message, the result is zero if the message's checksum field is correct. Linear in the message.
#[must_use]
pub(crate) fn checksum(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> u16 {
    let pseudo_header = pseudo_header_sum(source.to_bits(), destination.to_bits(), IpProtocol::ICMPV6);
    !fold(pseudo_header + message.len() as u64 + sum(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const TARGET: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0x12ab, 0xcdef);

    fn solicitation() -> NeighborMessage {
        NeighborMessage {
            kind: NeighborMessageKind::Solicitation,
            source: SOURCE,
            destination: solicited_node(TARGET),
            target: TARGET,
            link_layer: Some([2, 0, 0, 0, 0, 9]),
        }
    }

    fn advertisement(is_solicited: bool) -> NeighborMessage {
        let kind = NeighborMessageKind::Advertisement { is_router: true, is_solicited, is_override: false };
        NeighborMessage { kind, source: TARGET, destination: SOURCE, ..solicitation() }
    }

    /// Writes the correct checksum into a neighbor message packet, so that only the field that a test changed
    /// is wrong.
    fn summed(mut packet: Vec<u8>) -> Vec<u8> {
        let address = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&packet[at..at + 16]).unwrap());
        let (source, destination) = (address(8), address(24));
        packet[42..44].fill(0);
        let sum = checksum(source, destination, &packet[40..]);
        packet[42..44].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    #[test]
    fn written_messages_are_read_back() {
        for message in [solicitation(), advertisement(true), advertisement(false)] {
            let octets = message.to_octets([2, 0, 0, 0, 0, 9]);
            assert_eq!(NeighborMessage::read(&octets), Some(message));
            assert_eq!(summed(octets.to_vec()), octets);
            for len in 0..octets.len() {
                assert_eq!(NeighborMessage::read(&octets[..len]), None, "{len} octets");
            }
            for bit in 0..octets.len() * 8 {
                let mut other = octets;
                other[bit / 8] ^= 1 << (bit % 8);
                // The IP layer checks version, class, label and payload length; the checksum covers the rest.
                let is_read = NeighborMessage::read(&other).is_some();
                assert!(bit / 8 < 6 || !is_read, "bit {bit} is not checked");
            }
        }
    }

    #[test]
    fn solicited_node_groups_match_rfc_4291() {
        assert_eq!(solicited_node(TARGET), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xffab, 0xcdef));
    }

    #[test]
    fn each_rule_of_sections_7_1_1_and_7_1_2_is_checked() {
        let solicited = solicitation().to_octets([2, 0, 0, 0, 0, 9]).to_vec();
        let advertised = advertisement(true).to_octets([2, 0, 0, 0, 0, 9]).to_vec();
        let changed = |packet: &[u8], at: usize, octets: &[u8]| {
            let mut packet = packet.to_vec();
            packet[at..at + octets.len()].copy_from_slice(octets);
            summed(packet)
        };
        let without_option = |packet: &[u8]| summed(packet[..64].to_vec());
        let unspecified_source = changed(&without_option(&solicited), 8, &[0; 16]);
        let cases: [(&str, Vec<u8>, bool); 14] = [
            ("a solicitation", changed(&solicited, 0, &[0x60]), true),
            ("hop limit 254: forwarded by a router", changed(&solicited, 7, &[254]), false),
            ("code", changed(&solicited, 41, &[1]), false),
            ("multicast target", changed(&solicited, 48, &[0xff]), false),
            ("multicast source", changed(&solicited, 8, &[0xff]), false),
            ("an option of length zero", changed(&solicited, 65, &[0]), false),
            ("an option beyond the end", changed(&solicited, 65, &[2]), false),
            ("an option of another kind is skipped", changed(&solicited, 64, &[14]), true),
            ("without option", without_option(&solicited), true),
            ("duplicate address detection", unspecified_source.clone(), true),
            ("the same to the target itself", changed(&unspecified_source, 24, &TARGET.octets()), false),
            ("the same with an option", changed(&solicited, 8, &[0; 16]), false),
            ("solicited, to a group", changed(&advertised, 24, &[0xff, 2]), false),
            ("advertised from the unspecified address", changed(&advertised, 8, &[0; 16]), false),
        ];
        for (description, packet, is_valid) in cases {
            assert_eq!(NeighborMessage::read(&packet).is_some(), is_valid, "{description}");
        }
        let mut longer = solicited.clone();
        longer.push(0);
        assert_eq!(NeighborMessage::read(&summed(longer)), None, "an octet after the options");
        assert!(!is_neighbor_message(&changed(&solicited, 40, &[133])) && is_neighbor_message(&solicited));
    }
}
