//! Data of a fragment that is kept until its flow is known.

use super::link::{IpPacket, LinkInfo, MacAddresses};
use crate::base::{Frame, IpProtocol, Timestamp, VlanIds};
use crate::wire::ethernet::{self, ADDRESSES_LEN};

/// Data of a fragment's frame that is kept until its flow is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tag {
    pub(super) timestamp: Timestamp,
    pub(super) wire_len: u32,
    pub(super) ip_len: u32,
    pub(super) interface: u32,
    pub(super) vlan_ids: VlanIds,
    pub(super) vni: Option<u32>,
    pub(super) destination_mac: Option<[u8; 6]>,
    pub(super) source_mac: Option<[u8; 6]>,
    /// Protocol of the payload according to the fragment itself.
    pub(super) protocol: IpProtocol,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
}

impl Tag {
    pub(super) fn new(frame: &Frame<'_>, found: &IpPacket) -> Self {
        let macs = found.link.mac_addresses;
        Self {
            timestamp: frame.timestamp,
            wire_len: frame.wire_len,
            ip_len: u32::try_from(found.ip.len).unwrap_or(u32::MAX),
            interface: frame.interface,
            vlan_ids: found.link.vlan_ids,
            vni: found.link.vni,
            destination_mac: macs.destination(frame.data),
            source_mac: macs.source(frame.data),
            protocol: found.ip.protocol,
            hop_limit: found.ip.hop_limit,
            traffic_class: found.ip.traffic_class,
        }
    }

    /// Replaces the fields of the tag with those of a packet that the reassembled datagram carried in a
    /// tunnel. Only the tag of the last frame contains the length of the packet, so that the packet counts
    /// once.
    pub(super) fn carry(&mut self, frame: &Frame<'_>, found: &IpPacket, is_last: bool) {
        let inner = Self::new(frame, found);
        let ip_len = if is_last { inner.ip_len } else { 0 };
        let Self { timestamp, wire_len, interface, .. } = *self;
        *self = Self { timestamp, wire_len, interface, ip_len, ..inner };
    }

    /// Returns the link information of the fragment's frame (hardware addresses, VLAN ids, VNI), and writes
    /// the hardware addresses to `addresses`.
    pub(super) fn link(&self, addresses: &mut [u8; ADDRESSES_LEN]) -> LinkInfo {
        let mac_addresses = write_addresses(addresses, self.destination_mac, self.source_mac);
        LinkInfo { mac_addresses, vlan_ids: self.vlan_ids, vni: self.vni }
    }

    /// Returns the capture time and the capture interface of the fragment's frame.
    pub(super) const fn captured(&self) -> (Timestamp, u32) {
        (self.timestamp, self.interface)
    }

    /// Returns the type of service or traffic class, and the time to live or hop limit.
    pub(super) const fn service(&self) -> (u8, u8) {
        (self.traffic_class, self.hop_limit)
    }
}

/// Writes the destination and then the source address to `addresses`, as in an Ethernet header, with zeros
/// for an unknown address. Returns the position of the known addresses.
fn write_addresses(
    addresses: &mut [u8; ADDRESSES_LEN],
    destination: Option<[u8; 6]>,
    source: Option<[u8; 6]>,
) -> MacAddresses {
    ethernet::write_addresses(addresses, destination.unwrap_or_default(), source.unwrap_or_default());
    match (destination, source) {
        (Some(_), Some(_)) => MacAddresses::ethernet(0),
        (None, Some(_)) => MacAddresses::source_only(ethernet::SOURCE_OFFSET as u32),
        _ => MacAddresses::NONE,
    }
}
