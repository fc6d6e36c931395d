//! ARP and RARP (RFC 826, RFC 903; probes and announcements: RFC 5227).

use std::net::IpAddr;

use super::reading::{Reading, v4, whole};
use crate::codec::Reader;
use crate::session::kit::names;

names! {
    /// Operation of a message of ARP (IANA "ARP Operation Codes").
    pub struct ArpOperation: u16 {
        1 => "request", 2 => "reply", 3 => "reverse_request", 4 => "reverse_reply", 8 => "inverse_request",
        9 => "inverse_reply",
    }
}

/// Number of Ethernet, and that of IEEE 802 networks, whose addresses are the same (IANA "ARP Hardware Types").
const ETHERNET: [u16; 2] = [1, 6];
/// EtherType of IPv4, which is the protocol type.
const IPV4: u16 = 0x0800;

crate::message! {
    /// A message of ARP: who has an address, or that somebody has it.
    #[derive(Clone, Copy, Debug)]
    "neighbor.arp" pub struct Arp {
        /// Operation, such as `request` or `reply`.
        pub arp_operation: ArpOperation,
        /// Number of the kind of hardware; 1 is Ethernet.
        pub hardware_type: u16,
        /// EtherType of the protocol; 2048 is IPv4.
        pub protocol_type: u16,
        /// MAC address of the sender in the message.
        pub sender_mac: Option<[u8; 6]>,
        /// IPv4 address of the sender.
        pub sender_address: Option<IpAddr>,
        /// MAC address of the target in the message.
        pub target_mac: Option<[u8; 6]>,
        /// IPv4 address of the target.
        pub target_address: Option<IpAddr>,
        /// True if the sender asks whether its address is free.
        pub is_probe: bool [sparse],
        /// True if the sender announces its own address.
        pub is_announcement: bool [sparse],
    }
}

impl Arp {
    /// Addresses of other kinds than MAC addresses and IPv4 are not read.
    pub(super) fn read(octets: &[u8]) -> Reading<Self> {
        let mut reader = Reader::new(octets);
        whole(|| {
            let (hardware_type, protocol_type) = (reader.be::<u16>()?, reader.be::<u16>()?);
            let [hardware_len, protocol_len] = reader.array()?;
            let arp_operation = ArpOperation(reader.be()?);
            let is_mac = ETHERNET.contains(&hardware_type) && hardware_len == 6;
            let is_v4 = protocol_type == IPV4 && protocol_len == 4;
            let mut address = |len: u8| reader.bytes(len.into());
            let ends =
                [address(hardware_len), address(protocol_len), address(hardware_len), address(protocol_len)];
            let is_whole = ends.iter().all(Result::is_ok);
            let [sender_mac, sender_address, target_mac, target_address] =
                ends.map(Result::unwrap_or_default);
            let mac = |octets: &[u8]| octets.first_chunk().copied().filter(|_| is_mac);
            let v4 = |octets: &[u8]| octets.first_chunk().copied().filter(|_| is_v4).map(v4);
            let (sender_address, target_address) = (v4(sender_address), v4(target_address));
            let is_announcement = sender_address.is_some() && sender_address == target_address;
            let is_unspecified = sender_address.is_some_and(|address| address.is_unspecified());
            let arp = Self {
                arp_operation,
                hardware_type,
                protocol_type,
                sender_mac: mac(sender_mac),
                sender_address,
                target_mac: mac(target_mac),
                target_address,
                is_probe: is_unspecified && arp_operation.0 == 1 && !is_announcement,
                is_announcement: is_announcement && !is_unspecified,
            };
            Ok((arp, is_whole))
        })
    }
}
