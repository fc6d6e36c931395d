//! ARP for IPv4 on Ethernet (RFC 826).

use std::net::Ipv4Addr;

use super::encode;
use crate::base::EtherType;
use crate::codec::Reader;

/// Length of an ARP packet for Ethernet and IPv4, in octets; octets after it are padding.
pub(crate) const PACKET_LEN: usize = 28;

/// ARP operation of a request for the hardware address of the target.
pub(crate) const REQUEST: u16 = 1;

/// ARP operation of a reply, which contains the hardware address of its sender.
pub(crate) const REPLY: u16 = 2;

const HARDWARE_ETHERNET: u16 = 1;
const HARDWARE_LEN: u8 = 6;
const PROTOCOL_LEN: u8 = 4;

/// ARP packet for Ethernet and IPv4, with the fields in the order of RFC 826.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArpPacket {
    /// ARP operation: [`REQUEST`], [`REPLY`], or another value.
    pub(crate) operation: u16,
    /// Hardware address of the sender.
    pub(crate) sender_hardware: [u8; 6],
    /// Protocol address of the sender; unspecified in a probe (RFC 5227 section 1.1).
    pub(crate) sender_protocol: Ipv4Addr,
    /// Hardware address of the target; meaningless in a request.
    pub(crate) target_hardware: [u8; 6],
    /// Protocol address of the target.
    pub(crate) target_protocol: Ipv4Addr,
}

impl ArpPacket {
    /// Reads an ARP packet from the octets behind the EtherType. Returns `None` if `data` is shorter than
    /// [`PACKET_LEN`] or if the packet is not for Ethernet hardware and the IPv4 protocol. Constant time, no
    /// allocation.
    #[must_use]
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(data);
        let is_ipv4_on_ethernet = reader.be::<u16>().ok()? == HARDWARE_ETHERNET
            && reader.be::<u16>().ok()? == EtherType::IPV4.0
            && reader.be::<u8>().ok()? == HARDWARE_LEN
            && reader.be::<u8>().ok()? == PROTOCOL_LEN;
        if !is_ipv4_on_ethernet {
            return None;
        }
        Some(Self {
            operation: reader.be::<u16>().ok()?,
            sender_hardware: reader.array().ok()?,
            sender_protocol: Ipv4Addr::from(reader.array::<4>().ok()?),
            target_hardware: reader.array().ok()?,
            target_protocol: Ipv4Addr::from(reader.array::<4>().ok()?),
        })
    }

    /// Returns the ARP packet as octets in wire format. Constant time, no allocation.
    #[must_use]
    pub(crate) fn to_octets(self) -> [u8; PACKET_LEN] {
        encode(|writer| {
            writer.be(HARDWARE_ETHERNET)?;
            writer.be(EtherType::IPV4.0)?;
            writer.be(HARDWARE_LEN)?;
            writer.be(PROTOCOL_LEN)?;
            writer.be(self.operation)?;
            writer.array(self.sender_hardware)?;
            writer.array(self.sender_protocol.octets())?;
            writer.array(self.target_hardware)?;
            writer.array(self.target_protocol.octets())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_the_layout_of_rfc_826() {
        let packet = ArpPacket {
            operation: REPLY,
            sender_hardware: [1, 2, 3, 4, 5, 6],
            sender_protocol: [10, 0, 0, 1].into(),
            target_hardware: [7, 8, 9, 10, 11, 12],
            target_protocol: [10, 0, 0, 2].into(),
        };
        let octets = packet.to_octets();
        let expected =
            [0, 1, 8, 0, 6, 4, 0, 2, 1, 2, 3, 4, 5, 6, 10, 0, 0, 1, 7, 8, 9, 10, 11, 12, 10, 0, 0, 2];
        assert_eq!(octets, expected);
        assert_eq!(ArpPacket::read(&[&octets[..], &[0; 18]].concat()), Some(packet));
        for len in 0..PACKET_LEN {
            assert_eq!(ArpPacket::read(&octets[..len]), None);
        }
        for position in 0..6 {
            let mut other = octets;
            other[position] ^= 1;
            assert_eq!(ArpPacket::read(&other), None, "octet {position} names another hardware or protocol");
        }
    }
}
