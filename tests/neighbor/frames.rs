//! ARP and NDP frames that are written octet by octet, independently of the crate's own code.

use std::net::{IpAddr, Ipv6Addr};

/// A message of a host on the link, in terms that both protocols share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeighborMessage {
    pub(crate) is_reply: bool,
    /// ARP: sender. NDP: source, and, for an advertisement, also the target.
    pub(crate) sender: IpAddr,
    /// ARP: target. NDP: target of a solicitation, destination of an advertisement. It has the sender's address family.
    pub(crate) target: IpAddr,
    pub(crate) frame_source: [u8; 6],
    pub(crate) frame_destination: [u8; 6],
    /// ARP: sender hardware address. NDP: address in the link-layer address option.
    pub(crate) link_address: Option<[u8; 6]>,
    /// ARP: target hardware address.
    pub(crate) target_link_address: [u8; 6],
    /// NDP: flags of an advertisement.
    pub(crate) is_solicited: bool,
    pub(crate) is_override: bool,
}

impl NeighborMessage {
    pub(crate) fn frame(&self) -> Vec<u8> {
        let (ether_type, payload) = match (self.sender, self.target) {
            (IpAddr::V4(sender), IpAddr::V4(target)) => {
                let mut arp = vec![0, 1, 8, 0, 6, 4, 0, if self.is_reply { 2 } else { 1 }];
                arp.extend(self.link_address.unwrap_or_default());
                arp.extend(sender.octets());
                arp.extend(self.target_link_address);
                arp.extend(target.octets());
                ([8, 6], arp)
            }
            (IpAddr::V6(sender), IpAddr::V6(target)) => ([0x86, 0xdd], self.ndp(sender, target)),
            _ => panic!("sender and target have different address families"),
        };
        [&self.frame_destination[..], &self.frame_source, &ether_type, &payload].concat()
    }

    fn ndp(&self, sender: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
        let (kind, meta) = if self.is_reply { (136, sender) } else { (135, target) };
        let flags = u8::from(self.is_solicited) << 6 | u8::from(self.is_override) << 5;
        let mut message = vec![kind, 0, 0, 0, if self.is_reply { flags } else { 0 }, 0, 0, 0];
        message.extend(meta.octets());
        if let Some(link_address) = self.link_address {
            message.extend([if self.is_reply { 2 } else { 1 }, 1]);
            message.extend(link_address);
        }
        packet_v6(sender, target, &message)
    }
}

/// Returns an IPv6 packet with an ICMPv6 message and its checksum.
pub(crate) fn packet_v6(source: Ipv6Addr, destination: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let mut pseudo =
        [&source.octets()[..], &destination.octets(), &[0, 0, 0, message.len() as u8, 0, 0, 0, 58]].concat();
    pseudo.extend(message);
    let mut sum: u32 = pseudo
        .chunks(2)
        .map(|pair| u32::from(pair[0]) * 256 + pair.get(1).map_or(0, |low| u32::from(*low)))
        .sum();
    while sum >> 16 != 0 {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    let mut packet = vec![0x60, 0, 0, 0, 0, message.len() as u8, 58, 255];
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(message);
    packet[42..44].copy_from_slice(&(!sum as u16).to_be_bytes());
    packet
}
