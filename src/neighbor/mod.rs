//! Messages by which neighbors on a link find each other (feature `protocols`): who has which address, which switch and
//! port, which router.
//!
//! These messages belong to no conversation between two hosts, so that they do not pass through the flow tracker. The
//! decoder recognizes their frames, and a pipeline passes each as a row to
//! [`Sink::neighbor`](crate::pipeline::Sink::neighbor): a [`NeighborHead`], which all have in common, and a
//! [`NeighborMessage`].
//!
//! | protocol | frames | message |
//! |---|---|---|
//! | `arp`, `rarp` | EtherTypes 0x0806 and 0x8035 | [`Arp`] (RFC 826, RFC 903, RFC 5227) |
//! | `ndp` | ICMPv6 types 133 to 137 | [`Ndp`] (RFC 4861, RFC 8106) |
//! | `igmp`, `mld` | IP protocol 2; ICMPv6 types 130 to 132 and 143 | [`Membership`] (RFC 2236, RFC 3376, RFC 3810) |
//! | `lldp` | EtherType 0x88cc | [`Lldp`] (IEEE 802.1AB, ANSI/TIA-1057) |
//! | `cdp` | SNAP protocol 0x2000 of Cisco | [`Cdp`] (as the vendor publishes it) |
//! | `stp` | LLC service access point 0x42; SNAP protocol 0x010b of Cisco | [`Stp`] (IEEE 802.1D, IEEE 802.1Q clause 14) |
//! | `vrrp`, `hsrp` | IP protocol 112; UDP ports 1985 and 2029 | [`Redundancy`] (RFC 3768, RFC 9568, RFC 2281) |
//!
//! Packets of ICMPv6, IGMP, VRRP and HSRP are counted on flows as well. Frames inside of tunnels are reported
//! too. A message is read in time linear in its length, and what it lists is bounded ([`ITEM_COUNT_MAX`]).

mod arp;
mod cdp;
mod lldp;
mod membership;
mod ndp;
mod reading;
mod redundancy;
mod stp;
#[cfg(test)]
mod tests;

pub use arp::{Arp, ArpOperation};
pub use cdp::Cdp;
pub use lldp::{Lldp, LldpId, LldpIdKind};
pub use membership::{GroupRecord, Membership, MembershipKind, RecordKind};
pub use ndp::{Ndp, NdpKind, Prefix};
pub use reading::ITEM_COUNT_MAX;
pub use redundancy::{Redundancy, RedundancyState};
pub use stp::{PortRole, Stp, StpVersion};

use std::net::IpAddr;

use reading::Reading;

use crate::base::{NeighborProtocol, Packet, Timestamp, VlanIds};
use crate::row::{Name, TableInfo};

/// Returns the names of the protocols, as in [`NeighborHead::protocol`].
pub fn protocol_names() -> impl Iterator<Item = &'static str> {
    NeighborProtocol::ALL.into_iter().map(NeighborProtocol::name)
}

/// A message of a neighbor, and the frame that carried it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Neighbor<'m> {
    /// Time, protocol and addresses of the frame.
    pub head: NeighborHead,
    /// The message.
    pub message: NeighborMessage<'m>,
}

crate::messages! {
    /// A message of a neighbor.
    #[derive(Debug)]
    pub enum NeighborMessage<'m> {
        /// A message of ARP or RARP.
        Arp(Arp),
        /// A message of neighbor discovery of IPv6.
        Ndp(Ndp),
        /// A message about members of multicast groups: IGMP or MLD.
        Membership(Membership),
        /// An announcement of LLDP.
        Lldp(Lldp<'m>),
        /// An announcement of CDP.
        Cdp(Cdp<'m>),
        /// A message of the spanning tree.
        Stp(Stp<'m>),
        /// A message among routers that share an address: VRRP or HSRP.
        Redundancy(Redundancy),
        /// A message whose fixed part is not complete or not valid.
        Malformed(Malformed),
    }
}

crate::message! {
    /// A message whose fixed part is not complete or not valid.
    #[derive(Clone, Copy, Debug)]
    "neighbor.malformed" pub struct Malformed {
        /// Number of octets of the message that were captured.
        pub captured_len: u64 [octets],
    }
}

/// Time, protocol and addresses of a message. With the message as the second part, it is one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NeighborHead {
    /// Capture time of the frame.
    pub timestamp: Timestamp,
    /// Index of the interface on which the frame was captured.
    pub interface: u32,
    /// Length of the frame on the wire in octets.
    pub frame_len: u32,
    /// VLAN ids, outermost first.
    pub vlan_ids: VlanIds,
    /// Name of the protocol.
    pub protocol: &'static str,
    /// MAC address of the sender of the frame.
    pub source_mac: Option<[u8; 6]>,
    /// MAC address of the receiver of the frame.
    pub destination_mac: Option<[u8; 6]>,
    /// Address of the sender: of the IP header, or in the message of ARP.
    pub source_address: Option<IpAddr>,
    /// Address of the receiver: of the IP header, or in the message of ARP.
    pub destination_address: Option<IpAddr>,
    /// TTL or hop limit of the IP header.
    pub hop_limit: Option<u8>,
    /// True if a part of the message is not valid; what precedes it was read.
    pub is_malformed: bool,
    /// Kind of the message: the part of the table's name after the dot.
    pub kind: &'static str,
}

impl NeighborHead {
    /// Returns whether the message is in an IP packet, which belongs to a flow.
    #[must_use]
    pub const fn is_in_flow(&self) -> bool {
        self.hop_limit.is_some()
    }
}

crate::table! {
    /// Time, protocol and addresses of a message of a neighbor.
    impl "neighbor.head" for NeighborHead as head {
        /// Capture time of the frame.
        "timestamp": Timestamp = head.timestamp;
        /// Interface on which the frame was captured, counted from zero.
        "interface": u32 = head.interface;
        /// Length of the frame on the wire.
        "frame_len": u32 [octets] = head.frame_len;
        /// VLAN ids, outermost first.
        "vlan_ids": VlanIds [sparse] = head.vlan_ids;
        /// Name of the protocol.
        "protocol": Name = Name(head.protocol);
        /// MAC address of the sender of the frame.
        "source_mac": Option<[u8; 6]> = head.source_mac;
        /// MAC address of the receiver of the frame.
        "destination_mac": Option<[u8; 6]> = head.destination_mac;
        /// Address of the sender: of the IP header, or in the message of ARP.
        "source_address": Option<IpAddr> = head.source_address;
        /// Address of the receiver: of the IP header, or in the message of ARP.
        "destination_address": Option<IpAddr> = head.destination_address;
        /// TTL or hop limit of the IP header.
        "hop_limit": Option<u8> = head.hop_limit;
        /// True if a part of the message is not valid; what precedes it was read.
        "is_malformed": bool [sparse] = head.is_malformed;
        /// Kind of the message.
        "kind": Name = Name(head.kind);
    }
}

impl<'m> Neighbor<'m> {
    /// Reads the message in a packet of one of the protocols. If the frame contains no IP packet, the transport header is the
    /// message.
    #[must_use]
    pub(crate) fn read(protocol: NeighborProtocol, packet: &Packet<'m>) -> Self {
        let octets = packet.transport_bytes();
        let message = match protocol {
            NeighborProtocol::Arp | NeighborProtocol::Rarp => of(Arp::read(octets), NeighborMessage::Arp),
            NeighborProtocol::Ndp => of(Ndp::read(octets), NeighborMessage::Ndp),
            NeighborProtocol::Igmp => of(Membership::read_igmp(octets), NeighborMessage::Membership),
            NeighborProtocol::Mld => of(Membership::read_mld(octets), NeighborMessage::Membership),
            NeighborProtocol::Lldp => of(Lldp::read(octets), NeighborMessage::Lldp),
            NeighborProtocol::Cdp => of(Cdp::read(octets), NeighborMessage::Cdp),
            NeighborProtocol::Stp => of(Stp::read(octets), NeighborMessage::Stp),
            NeighborProtocol::Vrrp => {
                of(Redundancy::read_vrrp(octets, packet.key.is_ipv6()), NeighborMessage::Redundancy)
            }
            NeighborProtocol::Hsrp => {
                of(Redundancy::read_hsrp(packet.payload()), NeighborMessage::Redundancy)
            }
        };
        let malformed = || NeighborMessage::Malformed(Malformed { captured_len: octets.len() as u64 });
        let (message, is_valid) = message.unwrap_or_else(|| (malformed(), false));
        let (source_address, destination_address) = match &message {
            NeighborMessage::Arp(arp) => (arp.sender_address, arp.target_address),
            _ if protocol.is_in_ip() => {
                let address = |side| Some(packet.key.address(side));
                (address(packet.side), address(packet.side.other()))
            }
            _ => (None, None),
        };
        Self {
            head: NeighborHead {
                timestamp: packet.timestamp,
                interface: packet.interface,
                frame_len: packet.wire_len,
                vlan_ids: packet.vlan_ids,
                protocol: protocol.name(),
                source_mac: packet.mac_addresses.source(packet.frame),
                destination_mac: packet.mac_addresses.destination(packet.frame),
                source_address,
                destination_address,
                hop_limit: protocol.is_in_ip().then_some(packet.hop_limit),
                is_malformed: !is_valid,
                kind: message.table().kind(),
            },
            message,
        }
    }
}

impl NeighborMessage<'_> {
    /// Returns the table of the message.
    #[must_use]
    pub fn table(&self) -> &'static TableInfo {
        crate::row::Union::row(self).table
    }
}

fn of<'m, T>(reading: Reading<T>, variant: fn(T) -> NeighborMessage<'m>) -> Reading<NeighborMessage<'m>> {
    reading.map(|(message, is_valid)| (variant(message), is_valid))
}
