//! Events of type `arp`.

use std::net::{IpAddr, Ipv4Addr};

use super::time::Time;
use crate::base::VlanIds;
use crate::neighbor::{Arp as Message, ArpOperation, Neighbor, NeighborMessage};
use crate::row::{Group, Name};

/// A message of ARP in an event, with its keys at the begin: it belongs to no flow.
#[derive(Clone, Copy, Debug)]
pub struct Arp {
    timestamp: crate::base::Timestamp,
    vlan: VlanIds,
    message: Addresses,
}

/// The object `arp`.
#[derive(Clone, Copy, Debug)]
struct Addresses(Message);

impl Arp {
    /// Returns the event of a whole message of ARP between MAC addresses and IPv4; none for others.
    pub(super) fn of(neighbor: &Neighbor<'_>) -> Option<Self> {
        let NeighborMessage::Arp(message) = &neighbor.message else { return None };
        if neighbor.head.is_malformed || neighbor.head.protocol != "arp" {
            return None;
        }
        message.sender_mac?;
        message.sender_address?;
        let (timestamp, vlan) = (neighbor.head.timestamp, neighbor.head.vlan_ids);
        Some(Self { timestamp, vlan, message: Addresses(*message) })
    }
}

crate::table! {
    /// Messages of ARP, without the keys of flows.
    impl "eve.arp" for Arp as row {
        /// Time of the frame.
        "timestamp": Time = Time(row.timestamp);
        /// Always `arp`.
        "event_type": Name = Name("arp");
        /// VLAN ids, outermost first.
        "vlan": VlanIds [sparse] = row.vlan;
        /// Operation and addresses.
        "arp": Group<Addresses> = Group(row.message);
    }
}

crate::table! {
    /// Operation and addresses.
    impl "eve.arp.arp" for Addresses as row {
        /// Always `ethernet`.
        "hw_type": Name = Name("ethernet");
        /// Always `ipv4`.
        "proto_type": Name = Name("ipv4");
        /// Operation: `request`, `reply`, `request_reverse`, `reply_reverse` or `unknown`.
        "opcode": Name = Name(opcode(row.0.arp_operation));
        /// MAC address of the sender.
        "src_mac": [u8; 6] = row.0.sender_mac.unwrap_or_default();
        /// Address of the sender.
        "src_ip": IpAddr = row.0.sender_address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        /// MAC address of the target.
        "dest_mac": [u8; 6] = row.0.target_mac.unwrap_or_default();
        /// Address of the target.
        "dest_ip": IpAddr = row.0.target_address.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    }
}

const fn opcode(operation: ArpOperation) -> &'static str {
    match operation.0 {
        1 => "request",
        2 => "reply",
        3 => "request_reverse",
        4 => "reply_reverse",
        _ => "unknown",
    }
}
