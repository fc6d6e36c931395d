//! Processing of received frames by a neighbor table.

use std::net::IpAddr;

use super::frame::NeighborFrame;
use super::{ALL_NODES, Neighbor, NeighborTable, is_host};
use crate::base::{EtherType, Limits, Timestamp, VlanIds};
use crate::tap::ethernet_to_ip;
use crate::wire::arp::{self, ArpPacket};
use crate::wire::ethernet::{self, Ethernet, group_v6, is_station};
use crate::wire::ndp::{self, NeighborMessage, NeighborMessageKind};

/// Result of [`NeighborTable::process`] for a frame. Only `Learned` changed the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NeighborEvent {
    /// The frame is neither ARP nor an IPv6 neighbor message: the caller has to process it.
    Other,
    /// A request for a local address was received: the caller sends this frame as the reply.
    Request(NeighborFrame),
    /// A reply to an outstanding request was received, and the neighbor was added to the table or updated.
    Learned {
        /// Protocol address of the neighbor.
        address: IpAddr,
        /// Hardware address of the neighbor.
        hardware_address: [u8; 6],
    },
    /// An announcement without a request was received.
    Gratuitous,
    /// A reply answers no outstanding request, or contains a hardware address that differs from the source of its
    /// frame.
    Spoofed,
    /// Another host uses one of the local addresses.
    Conflict,
    /// A message for another host was received, or an own frame was received again.
    NotForUs,
    /// An ARP or NDP message is truncated or violates the rules of the protocol.
    Malformed,
    /// A frame was received on a VLAN other than the VLAN of the local interface.
    OtherVlan,
}

/// An ARP reply or a neighbor advertisement that answers a request.
struct Reply {
    /// Protocol address of the neighbor, to which the hardware address in the reply belongs.
    address: IpAddr,
    hardware_address: [u8; 6],
    /// Protocol address to which the reply was sent.
    to: IpAddr,
    /// True if the reply replaces a different known hardware address (RFC 4861 section 7.2.5).
    is_override: bool,
}

impl NeighborTable {
    /// Processes an Ethernet frame: answers requests for the local addresses, learns from replies to
    /// outstanding requests, and counts all other ARP and NDP messages. Constant time except for the options
    /// of a neighbor message, which are linear in its length; allocates only if a new neighbor is learned.
    ///
    /// Router solicitations, router advertisements and redirects are `Other`. Replies are sent to the sender
    /// hardware address of the request, and only if it is the source of the frame.
    pub fn process(&mut self, frame: &[u8], now: Timestamp) -> NeighborEvent {
        self.step(now);
        let Some(link) = Link::read(frame) else { return NeighborEvent::Other };
        let read = match link.ether_type {
            EtherType::ARP => Read::Arp(ArpPacket::read(link.payload)),
            EtherType::IPV6 => match ethernet_to_ip(frame) {
                Ok(packet) if ndp::is_neighbor_message(packet) => Read::Ndp(NeighborMessage::read(packet)),
                _ => return NeighborEvent::Other,
            },
            _ => return NeighborEvent::Other,
        };
        let event = if link.vlan_ids != Some(self.config.vlan_ids) {
            NeighborEvent::OtherVlan
        } else if link.source == self.config.hardware_address {
            NeighborEvent::NotForUs
        } else {
            match read {
                Read::Arp(None) | Read::Ndp(None) => NeighborEvent::Malformed,
                Read::Arp(Some(packet)) => self.process_arp(&link, &packet),
                Read::Ndp(Some(message)) => self.process_ndp(&link, &message),
            }
        };
        self.count(&event);
        event
    }

    fn count(&mut self, event: &NeighborEvent) {
        let stats = &mut self.stats;
        let count = match event {
            NeighborEvent::Other => return,
            NeighborEvent::Request(_) => &mut stats.answered_count,
            NeighborEvent::Learned { .. } => &mut stats.learned_count,
            NeighborEvent::Gratuitous => &mut stats.gratuitous_count,
            NeighborEvent::Spoofed => &mut stats.spoofed_count,
            NeighborEvent::Conflict => &mut stats.conflict_count,
            NeighborEvent::NotForUs => &mut stats.not_for_us_count,
            NeighborEvent::Malformed => &mut stats.malformed_count,
            NeighborEvent::OtherVlan => &mut stats.other_vlan_count,
        };
        *count += 1;
    }

    fn process_arp(&mut self, link: &Link<'_>, packet: &ArpPacket) -> NeighborEvent {
        let sender = IpAddr::from(packet.sender_protocol);
        let target = IpAddr::from(packet.target_protocol);
        let is_probe = packet.operation == arp::REQUEST && sender.is_unspecified();
        if !matches!(packet.operation, arp::REQUEST | arp::REPLY) || !is_probe && !is_host(sender) {
            return NeighborEvent::Malformed;
        }
        if packet.sender_hardware != link.source || !is_station(link.source) {
            return NeighborEvent::Spoofed;
        }
        if self.is_local(sender) {
            return NeighborEvent::Conflict;
        }
        if sender == target {
            return NeighborEvent::Gratuitous;
        }
        let own = self.config.hardware_address;
        if packet.operation == arp::REPLY {
            if link.destination != own || packet.target_hardware != own {
                return if self.is_local(target) { NeighborEvent::Spoofed } else { NeighborEvent::NotForUs };
            }
            let hardware_address = packet.sender_hardware;
            return self.reply(&Reply { address: sender, hardware_address, to: target, is_override: true });
        }
        if !self.is_local(target) {
            return NeighborEvent::NotForUs;
        }
        let answer = ArpPacket {
            operation: arp::REPLY,
            sender_hardware: own,
            sender_protocol: packet.target_protocol,
            target_hardware: packet.sender_hardware,
            target_protocol: packet.sender_protocol,
        };
        NeighborEvent::Request(NeighborFrame::arp(&self.header_to(link.source), &answer))
    }

    fn process_ndp(&mut self, link: &Link<'_>, message: &NeighborMessage) -> NeighborEvent {
        if !is_station(link.source) || message.link_layer.is_some_and(|address| address != link.source) {
            return NeighborEvent::Spoofed;
        }
        if self.is_local(message.source.into()) {
            return NeighborEvent::Conflict;
        }
        let target = IpAddr::from(message.target);
        match message.kind {
            NeighborMessageKind::Solicitation => {
                if !self.is_local(target) {
                    return NeighborEvent::NotForUs;
                }
                NeighborEvent::Request(self.advertisement(link, message))
            }
            NeighborMessageKind::Advertisement { .. } if self.is_local(target) => NeighborEvent::Conflict,
            NeighborMessageKind::Advertisement { is_solicited: false, .. } => NeighborEvent::Gratuitous,
            NeighborMessageKind::Advertisement { is_override, .. } => {
                let to = IpAddr::from(message.destination);
                if link.destination != self.config.hardware_address {
                    return if self.is_local(to) { NeighborEvent::Spoofed } else { NeighborEvent::NotForUs };
                }
                match message.link_layer {
                    // Section 4.4: a reply to a multicast solicitation carries the option, and all
                    // solicitations of the table are multicast.
                    None => NeighborEvent::Malformed,
                    Some(hardware_address) => {
                        self.reply(&Reply { address: target, hardware_address, to, is_override })
                    }
                }
            }
        }
    }

    /// Returns the frame of an advertisement that answers a solicitation (RFC 4861 section 7.2.4). The advertisement
    /// is sent to all nodes if the sender of the solicitation has no address yet.
    fn advertisement(&self, link: &Link<'_>, requested: &NeighborMessage) -> NeighborFrame {
        let own = self.config.hardware_address;
        let is_solicited = !requested.source.is_unspecified();
        let (destination, to) =
            if is_solicited { (requested.source, link.source) } else { (ALL_NODES, group_v6(ALL_NODES)) };
        let is_router = self.config.is_router;
        let kind = NeighborMessageKind::Advertisement { is_router, is_solicited, is_override: true };
        let source = requested.target;
        let message =
            NeighborMessage { kind, source, destination, target: requested.target, link_layer: Some(own) };
        NeighborFrame::ndp(&self.header_to(to), &message, own)
    }

    fn reply(&mut self, reply: &Reply) -> NeighborEvent {
        let Reply { address, hardware_address, to, is_override } = *reply;
        let (now, interval) = (self.now, self.config.request_interval);
        let outstanding = self.requests.peek(&address).copied();
        let outstanding = outstanding.filter(|request| request.requested.saturating_add(interval) > now);
        let Some(request) = outstanding.filter(|request| request.source == to && self.is_local(to)) else {
            return NeighborEvent::Spoofed;
        };
        self.drop_expired(address);
        let known = self.neighbors.peek(&address).map(|neighbor| neighbor.hardware_address);
        let is_change = known.is_some_and(|known| known != hardware_address);
        if is_change && !is_override {
            return NeighborEvent::Spoofed;
        }
        self.requests.pop(&address);
        let cap = self.config.limits.neighbor_count_max as usize;
        if known.is_none() && self.neighbors.len() >= cap {
            let evicted = self.neighbors.pop_lru();
            let is_alive = evicted.is_some_and(|(_, neighbor)| neighbor.expires > now);
            self.stats.evicted_count += u64::from(is_alive);
            self.stats.expired_count += u64::from(!is_alive);
        }
        // At least the interval, so that the time of the request, which is stored with the neighbor, is kept
        // that long.
        let expires = now.saturating_add(self.config.lifetime.max(interval));
        self.neighbors.put(address, Neighbor { hardware_address, expires, requested: request.requested });
        self.stats.changed_count += u64::from(is_change);
        NeighborEvent::Learned { address, hardware_address }
    }
}

enum Read {
    Arp(Option<ArpPacket>),
    Ndp(Option<NeighborMessage>),
}

/// Ethernet header of a received frame.
struct Link<'a> {
    destination: [u8; 6],
    source: [u8; 6],
    /// VLAN ids of the frame; `None` if there are more tags than [`VlanIds`] can represent.
    vlan_ids: Option<VlanIds>,
    ether_type: EtherType,
    payload: &'a [u8],
}

impl<'a> Link<'a> {
    fn read(frame: &'a [u8]) -> Option<Self> {
        let header = Ethernet::read(frame)?;
        let mut payload = frame.get(ethernet::HEADER_LEN..)?;
        let (destination, source, mut ether_type) =
            (header.destination(), header.source(), header.ether_type());
        let (mut vlan_ids, mut id_count, mut tag_count) = (VlanIds::NONE, 0, 0);
        while ethernet::is_vlan(ether_type) {
            tag_count += 1;
            if tag_count > Limits::DEFAULT.vlan_tag_count_max {
                return None;
            }
            let tag = ethernet::vlan_tag(payload)?;
            id_count += u32::from(tag.id != 0);
            vlan_ids = vlan_ids.push(tag.id);
            ether_type = tag.ether_type;
            payload = payload.get(ethernet::VLAN_TAG_LEN..)?;
        }
        Some(Self { destination, source, vlan_ids: (id_count <= 2).then_some(vlan_ids), ether_type, payload })
    }
}
