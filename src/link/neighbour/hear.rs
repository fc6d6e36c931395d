//! What a frame says to a neighbour table.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

use std::net::IpAddr;

use super::frame::{NeighbourFrame, group_v6};
use super::{ALL_NODES, Neighbour, NeighbourTable, is_host, is_station};
use crate::base::{EtherType, Limits, Timestamp, VlanIds};
use crate::link::ethernet_to_ip;
use crate::wire::arp::{self, ArpPacket};
use crate::wire::ethernet::{self, HEADER_LEN};
use crate::wire::ndp::{self, NeighbourMessage, NeighbourMessageKind};

/// What [`NeighbourTable::hear`] made of a frame. Only `Learned` changed the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heard {
    /// Neither ARP nor a neighbour message of IPv6: the frame is the caller's.
    Other,
    /// Somebody asks for a local address: send this.
    Request(NeighbourFrame),
    /// A reply to an outstanding request.
    Learned {
        /// Whose.
        address: IpAddr,
        /// Where frames to it go.
        hardware_address: [u8; 6],
    },
    /// An announcement that nobody asked for.
    Gratuitous,
    /// A reply that answers no outstanding request, or contradicts its own frame.
    Spoofed,
    /// Somebody else speaks as one of the local addresses.
    Conflict,
    /// For another host, or our own frame that came back.
    NotForUs,
    /// Cut, or against the rules of the protocol.
    Malformed,
    /// On another VLAN than ours.
    OtherVlan,
}

/// A reply of either protocol.
struct Reply {
    /// Whose hardware address it tells.
    address: IpAddr,
    hardware_address: [u8; 6],
    /// To whom.
    to: IpAddr,
    /// Whether it replaces another address that is known (RFC 4861 section 7.2.5).
    is_override: bool,
}

impl NeighbourTable {
    /// Reads an Ethernet frame: answers requests for the local addresses, learns from replies to outstanding requests,
    /// and counts all else that is ARP or NDP. Constant time but for the options of a neighbour message, which are linear
    /// in its length; nothing is allocated unless something new is learned.
    ///
    /// Router solicitations, router advertisements and redirects are `Other`. Answers go to the hardware address that
    /// asked, and only if it is the source of the frame.
    pub fn hear(&mut self, frame: &[u8], now: Timestamp) -> Heard {
        self.step(now);
        let Some(link) = Link::read(frame) else { return Heard::Other };
        let read = match link.ether_type {
            EtherType::ARP => Read::Arp(ArpPacket::read(link.payload)),
            EtherType::IPV6 => match ethernet_to_ip(frame) {
                Ok(packet) if ndp::is_neighbour_message(packet) => Read::Ndp(NeighbourMessage::read(packet)),
                _ => return Heard::Other,
            },
            _ => return Heard::Other,
        };
        let heard = if link.vlan_ids != Some(self.config.vlan_ids) {
            Heard::OtherVlan
        } else if link.source == self.config.hardware_address {
            Heard::NotForUs
        } else {
            match read {
                Read::Arp(None) | Read::Ndp(None) => Heard::Malformed,
                Read::Arp(Some(packet)) => self.hear_arp(&link, &packet),
                Read::Ndp(Some(message)) => self.hear_ndp(&link, &message),
            }
        };
        self.count(&heard);
        heard
    }

    fn count(&mut self, heard: &Heard) {
        let stats = &mut self.stats;
        let count = match heard {
            Heard::Other => return,
            Heard::Request(_) => &mut stats.answered_count,
            Heard::Learned { .. } => &mut stats.learned_count,
            Heard::Gratuitous => &mut stats.gratuitous_count,
            Heard::Spoofed => &mut stats.spoofed_count,
            Heard::Conflict => &mut stats.conflict_count,
            Heard::NotForUs => &mut stats.not_for_us_count,
            Heard::Malformed => &mut stats.malformed_count,
            Heard::OtherVlan => &mut stats.other_vlan_count,
        };
        *count += 1;
    }

    fn hear_arp(&mut self, link: &Link<'_>, packet: &ArpPacket) -> Heard {
        let sender = IpAddr::from(packet.sender_protocol);
        let target = IpAddr::from(packet.target_protocol);
        let is_probe = packet.operation == arp::REQUEST && sender.is_unspecified();
        if !matches!(packet.operation, arp::REQUEST | arp::REPLY) || !is_probe && !is_host(sender) {
            return Heard::Malformed;
        }
        if packet.sender_hardware != link.source || !is_station(link.source) {
            return Heard::Spoofed;
        }
        if self.is_local(sender) {
            return Heard::Conflict;
        }
        if sender == target {
            return Heard::Gratuitous;
        }
        let own = self.config.hardware_address;
        if packet.operation == arp::REPLY {
            if link.destination != own || packet.target_hardware != own {
                return if self.is_local(target) { Heard::Spoofed } else { Heard::NotForUs };
            }
            let hardware_address = packet.sender_hardware;
            return self.reply(&Reply { address: sender, hardware_address, to: target, is_override: true });
        }
        if !self.is_local(target) {
            return Heard::NotForUs;
        }
        let answer = ArpPacket {
            operation: arp::REPLY,
            sender_hardware: own,
            sender_protocol: packet.target_protocol,
            target_hardware: packet.sender_hardware,
            target_protocol: packet.sender_protocol,
        };
        Heard::Request(NeighbourFrame::arp(&self.header_to(link.source), &answer))
    }

    fn hear_ndp(&mut self, link: &Link<'_>, message: &NeighbourMessage) -> Heard {
        if !is_station(link.source) || message.link_layer.is_some_and(|address| address != link.source) {
            return Heard::Spoofed;
        }
        if self.is_local(message.source.into()) {
            return Heard::Conflict;
        }
        let target = IpAddr::from(message.target);
        match message.kind {
            NeighbourMessageKind::Solicitation => {
                if !self.is_local(target) {
                    return Heard::NotForUs;
                }
                Heard::Request(self.advertisement(link, message))
            }
            NeighbourMessageKind::Advertisement { .. } if self.is_local(target) => Heard::Conflict,
            NeighbourMessageKind::Advertisement { is_solicited: false, .. } => Heard::Gratuitous,
            NeighbourMessageKind::Advertisement { is_override, .. } => {
                let to = IpAddr::from(message.destination);
                if link.destination != self.config.hardware_address {
                    return if self.is_local(to) { Heard::Spoofed } else { Heard::NotForUs };
                }
                match message.link_layer {
                    // Section 4.4: an answer to a multicast solicitation, which all of ours are, carries the option.
                    None => Heard::Malformed,
                    Some(hardware_address) => {
                        self.reply(&Reply { address: target, hardware_address, to, is_override })
                    }
                }
            }
        }
    }

    /// RFC 4861 section 7.2.4; to all nodes if the solicitation came from one that has no address yet.
    fn advertisement(&self, link: &Link<'_>, asked: &NeighbourMessage) -> NeighbourFrame {
        let own = self.config.hardware_address;
        let is_solicited = !asked.source.is_unspecified();
        let (destination, to) =
            if is_solicited { (asked.source, link.source) } else { (ALL_NODES, group_v6(ALL_NODES)) };
        let is_router = self.config.is_router;
        let kind = NeighbourMessageKind::Advertisement { is_router, is_solicited, is_override: true };
        let source = asked.target;
        let message =
            NeighbourMessage { kind, source, destination, target: asked.target, link_layer: Some(own) };
        NeighbourFrame::ndp(&self.header_to(to), &message, own)
    }

    fn reply(&mut self, reply: &Reply) -> Heard {
        let Reply { address, hardware_address, to, is_override } = *reply;
        let (now, interval) = (self.now, self.config.request_interval);
        let outstanding = self.requests.peek(&address).copied();
        let outstanding = outstanding.filter(|request| request.asked.saturating_add(interval) > now);
        let Some(request) = outstanding.filter(|request| request.source == to && self.is_local(to)) else {
            return Heard::Spoofed;
        };
        self.drop_expired(address);
        let known = self.neighbours.peek(&address).map(|neighbour| neighbour.hardware_address);
        let is_change = known.is_some_and(|known| known != hardware_address);
        if is_change && !is_override {
            return Heard::Spoofed;
        }
        self.requests.pop(&address);
        let cap = self.config.limits.neighbour_count_max as usize;
        if known.is_none() && self.neighbours.len() >= cap {
            let evicted = self.neighbours.pop_lru();
            let is_alive = evicted.is_some_and(|(_, neighbour)| neighbour.expires > now);
            self.stats.evicted_count += u64::from(is_alive);
            self.stats.expired_count += u64::from(!is_alive);
        }
        // Not shorter than the interval, which a request kept with the neighbour has to outlive.
        let expires = now.saturating_add(self.config.lifetime.max(interval));
        self.neighbours.put(address, Neighbour { hardware_address, expires, asked: request.asked });
        self.stats.changed_count += u64::from(is_change);
        Heard::Learned { address, hardware_address }
    }
}

enum Read {
    Arp(Option<ArpPacket>),
    Ndp(Option<NeighbourMessage>),
}

/// The Ethernet header of a frame.
struct Link<'a> {
    destination: [u8; 6],
    source: [u8; 6],
    /// `None` if there are more than [`VlanIds`] can tell apart.
    vlan_ids: Option<VlanIds>,
    ether_type: EtherType,
    payload: &'a [u8],
}

impl<'a> Link<'a> {
    fn read(frame: &'a [u8]) -> Option<Self> {
        let (header, mut payload) = frame.split_first_chunk::<HEADER_LEN>()?;
        let [destination @ .., _, _, _, _, _, _, _, _] = *header;
        let [_, _, _, _, _, _, source @ .., high, low] = *header;
        let mut ether_type = EtherType(u16::from_be_bytes([high, low]));
        let (mut vlan_ids, mut id_count, mut tag_count) = (VlanIds::NONE, 0, 0);
        while ethernet::is_vlan(ether_type) {
            tag_count += 1;
            if tag_count > Limits::DEFAULT.vlan_tag_count_max {
                return None;
            }
            let ([control_high, control_low, high, low], behind) = payload.split_first_chunk()?;
            let id = u16::from_be_bytes([*control_high, *control_low]) & 0xfff;
            id_count += u32::from(id != 0);
            vlan_ids = vlan_ids.push(id);
            ether_type = EtherType(u16::from_be_bytes([*high, *low]));
            payload = behind;
        }
        Some(Self { destination, source, vlan_ids: (id_count <= 2).then_some(vlan_ids), ether_type, payload })
    }
}
