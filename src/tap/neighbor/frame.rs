//! Ethernet frames that a neighbor table creates for sending.

use std::fmt;
use std::ops::Deref;

use crate::base::EtherType;
use crate::tap::EthernetHeader;
use crate::wire::arp::{self, ArpPacket};
use crate::wire::ndp::{self, NeighborMessage};

const LEN_MAX: usize = EthernetHeader::LEN_MAX + ndp::PACKET_LEN;

/// An Ethernet frame with an ARP or NDP message: at most 94 octets, stored inline, not padded to 60.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NeighborFrame {
    octets: [u8; LEN_MAX],
    len: u8,
}

impl NeighborFrame {
    pub(super) fn arp(header: &EthernetHeader, packet: &ArpPacket) -> Self {
        Self::new(header, EtherType::ARP, &packet.to_octets())
    }

    pub(super) fn ndp(header: &EthernetHeader, message: &NeighborMessage, link_layer: [u8; 6]) -> Self {
        Self::new(header, EtherType::IPV6, &message.to_octets(link_layer))
    }

    fn new(header: &EthernetHeader, ether_type: EtherType, payload: &[u8]) -> Self {
        let mut octets = [0; LEN_MAX];
        let header_len = header.len();
        let target = octets.get_mut(header_len..header_len + payload.len());
        debug_assert!(target.is_some(), "the longest message fits behind the longest header");
        target.into_iter().for_each(|target| target.copy_from_slice(payload));
        let written = header.write(&mut octets, ether_type);
        debug_assert!(written.is_some());
        Self { octets, len: (header_len + payload.len()) as u8 }
    }
}

impl Deref for NeighborFrame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.octets.get(..self.len.into()).unwrap_or_default()
    }
}

impl fmt::Debug for NeighborFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NeighborFrame({:02x?})", &**self)
    }
}

const _: () = assert!(arp::PACKET_LEN <= ndp::PACKET_LEN && LEN_MAX <= u8::MAX as usize);
