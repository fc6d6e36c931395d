//! Conversion between a TAP and a TUN device.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::route::Route;
use crate::base::{EtherType, Frame, Timestamp};
use crate::source::tun::ip_offset;
use crate::tap::{NeighborEvent, NeighborTable, Resolution, ethernet_to_ip, ip_to_ethernet};
use crate::wire::virtio_net::{self, HEADER_LEN};
use crate::wire::{ethernet, ip, ipv4, ipv6};

/// Neighbor tables of the TAP devices of a forwarder, by side.
#[derive(Debug, Default)]
pub(super) struct Translation {
    pub(super) tables: [Option<NeighborTable>; 2],
}

/// Result of converting a packet for the other device.
pub(super) enum Translated {
    /// Positions of the packet, behind its virtio-net header.
    Packet(Range<usize>),
    /// The hardware address of the destination is not known.
    Unresolved,
    /// The frame has no IP packet, or is for another host.
    NotIp,
}

impl Translation {
    /// Processes a frame from a TAP device with a neighbor table. Returns whether it was an ARP or a neighbor message; a
    /// reply is sent.
    pub(super) fn is_neighbor_message(&mut self, frame: &Frame<'_>, route: Route<'_>) -> bool {
        let table = self.tables.get_mut(route.side.index()).and_then(Option::as_mut);
        let Some(table) = table.filter(|_| route.from.is_ethernet()) else { return false };
        match table.process(frame.data, frame.timestamp) {
            NeighborEvent::Other => false,
            NeighborEvent::Request(reply) => {
                // A reply that the device does not accept is as good as lost; the host repeats its request.
                let _ = route.from.send(&reply);
                true
            }
            _ => true,
        }
    }

    /// Converts the packet at `range` of `block`, which follows its virtio-net header, in place.
    pub(super) fn translate(
        &mut self,
        block: &mut [u8],
        range: Range<usize>,
        route: Route<'_>,
        now: Timestamp,
    ) -> Translated {
        let converted = match (route.from.is_ethernet(), route.to.is_ethernet()) {
            (true, false) => self.without_ethernet(block, range, route),
            (false, true) => return self.with_ethernet(block, range, route, now),
            _ => Some(range),
        };
        converted.map_or(Translated::NotIp, Translated::Packet)
    }

    fn without_ethernet(
        &self,
        block: &mut [u8],
        range: Range<usize>,
        route: Route<'_>,
    ) -> Option<Range<usize>> {
        let frame = block.get(range.clone())?;
        let table = self.tables.get(route.side.index())?.as_ref()?;
        if ethernet::destination(frame)? != table.hardware_address() {
            return None;
        }
        let packet_len = ethernet_to_ip(frame).ok()?.len();
        let offset = ip_offset(frame)?;
        let start = range.start + offset;
        block.copy_within(range.start - HEADER_LEN..range.start, start - HEADER_LEN);
        virtio_net::shift(block.get_mut(start - HEADER_LEN..)?, -(offset as isize));
        Some(start..start + packet_len)
    }

    fn with_ethernet(
        &mut self,
        block: &mut [u8],
        range: Range<usize>,
        route: Route<'_>,
        now: Timestamp,
    ) -> Translated {
        let table = self.tables.get_mut(1 - route.side.index()).and_then(Option::as_mut);
        let Some((table, address)) = table.zip(block.get(range.clone()).and_then(destination)) else {
            return Translated::NotIp;
        };
        let hardware_address = match table.resolve(address, now) {
            Resolution::Known { hardware_address, refresh } => {
                refresh.iter().for_each(|request| drop(route.to.send(request)));
                hardware_address
            }
            Resolution::Request(request) => {
                let _ = route.to.send(&request);
                return Translated::Unresolved;
            }
            Resolution::Waiting => return Translated::Unresolved,
            _ => return Translated::NotIp,
        };
        let header = table.header_to(hardware_address);
        let Some(start) = range.start.checked_sub(header.len() + HEADER_LEN) else {
            return Translated::NotIp;
        };
        block.copy_within(range.start - HEADER_LEN..range.start, start);
        let Some(body) = block.get_mut(start..range.end) else { return Translated::NotIp };
        virtio_net::shift(body, header.len() as isize);
        let Some(frame) = body.get_mut(HEADER_LEN..) else { return Translated::NotIp };
        match ip_to_ethernet(frame, header.len(), &header) {
            Ok(frame) => Translated::Packet(start + HEADER_LEN..start + HEADER_LEN + frame.len()),
            Err(_) => Translated::NotIp,
        }
    }
}

/// Returns the destination of an IP packet.
fn destination(packet: &[u8]) -> Option<IpAddr> {
    match ip::ether_type(packet)? {
        EtherType::IPV4 => {
            ipv4::Ipv4::read(packet).map(|header| Ipv4Addr::from_bits(header.destination()).into())
        }
        _ => ipv6::Ipv6::read(packet).map(|header| Ipv6Addr::from_bits(header.destination()).into()),
    }
}
