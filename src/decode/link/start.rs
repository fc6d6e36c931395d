//! First step of a walk: reads the header of the link layer according to the link type.

use super::aggregate::first_part;
use super::encapsulation::HeaderRecorder;
use super::walk::{Next, Step, Stop, Walk};
use super::{HeaderKind, MacAddresses, Unsupported};
use crate::base::{EtherType, Layer, LinkType};
use crate::wire::ieee80211::Wlan;
use crate::wire::{fibre_channel, frame_relay, hdlc, ieee80211, nflog, null, ppp, radio, sll, token_ring};

impl<H: HeaderRecorder> Walk<'_, H> {
    /// Reads the header of the link layer at the cursor.
    pub(super) fn link_layer(&mut self, link_type: LinkType) -> Step {
        match link_type {
            LinkType::ETHERNET | LinkType::SUPER_PACKET_ETHERNET => Ok(Next::Ethernet),
            LinkType::LINUX_SLL => cooked(self, sll::v1(self.rest()), sll::V1_LEN),
            LinkType::LINUX_SLL2 => cooked(self, sll::v2(self.rest()), sll::V2_LEN),
            LinkType::NULL => null(self, false),
            LinkType::LOOP => null(self, true),
            LinkType::RAW | LinkType::RAW_DLT_12 | LinkType::RAW_DLT_14 | LinkType::SUPER_PACKET_IP => {
                Ok(Next::RawIp)
            }
            LinkType::IPV4 => Ok(Next::Protocol(EtherType::IPV4)),
            LinkType::IPV6 => Ok(Next::Protocol(EtherType::IPV6)),
            LinkType::PPP | LinkType::PPP_HDLC => ppp(self),
            LinkType::PPP_PPPD | LinkType::PPP_WITH_DIR => {
                self.at += hdlc::DIRECTION_LEN;
                ppp(self)
            }
            LinkType::C_HDLC_WITH_DIR => {
                self.at += hdlc::DIRECTION_LEN;
                hdlc(self)
            }
            LinkType::FRELAY_WITH_DIR => {
                self.at += hdlc::DIRECTION_LEN;
                frame_relay(self)
            }
            LinkType::MPLS => Ok(Next::Protocol(EtherType::MPLS)),
            LinkType::PPP_ETHER => Ok(Next::Protocol(EtherType::PPPOE_SESSION)),
            LinkType::C_HDLC => hdlc(self),
            LinkType::FRELAY => frame_relay(self),
            LinkType::ATM_RFC1483 => Ok(Next::Llc),
            LinkType::FDDI => fddi(self),
            LinkType::IEEE802_5 => token_ring(self),
            LinkType::IP_OVER_FC => {
                self.link.mac_addresses = MacAddresses::source_only(fibre_channel::SOURCE_OFFSET as u32);
                behind(self, fibre_channel::HEADER_LEN, Next::Llc)
            }
            LinkType::NFLOG => nflog(self),
            LinkType::IEEE802_11 => wlan(self, false),
            LinkType::IEEE802_11_RADIOTAP => radio(self, radio::radiotap(self.rest())),
            LinkType::IEEE802_11_PRISM | LinkType::IEEE802_11_AVS => radio(self, radio::prism(self.rest())),
            LinkType::PPI => match radio::ppi(self.rest()) {
                // A nested header of the same kind would allow unlimited nesting.
                Some((_, LinkType::PPI)) => Err(Stop::Unsupported(Unsupported::LinkType(LinkType::PPI))),
                Some((len, inner)) => {
                    self.at = header_end(self, len)?;
                    self.link_layer(inner)
                }
                None => Err(self.truncated(Layer::RadioHeader, radio::HEADER_LEN_MIN)),
            },
            other => Err(Stop::Unsupported(Unsupported::LinkType(other))),
        }
    }

    /// Reads an 802.11 frame in a tunnel, with a radio header if its link type has one.
    pub(super) fn wireless(&mut self, link_type: LinkType) -> Step {
        self.walked.encapsulation.push(HeaderKind::Wlan, self.at, 0);
        match link_type {
            LinkType::IEEE802_11 => wlan(self, false),
            _ => radio(self, radio::prism(self.rest())),
        }
    }

    /// Reads an 802.11 frame in CAPWAP.
    pub(super) fn wireless_in_capwap(&mut self) -> Step {
        self.walked.encapsulation.push(HeaderKind::Wlan, self.at, 0);
        let header = ieee80211::header_in_capwap(self.rest());
        wlan_data(self, header, false)
    }
}

/// Moves the cursor behind a header of `len` octets and returns `next` as the header that follows.
fn behind<H: HeaderRecorder>(walk: &mut Walk<'_, H>, len: usize, next: Next) -> Step {
    walk.at += len;
    Ok(next)
}

fn header_end<H: HeaderRecorder>(walk: &mut Walk<'_, H>, len: usize) -> Result<usize, Stop> {
    if len > walk.wire_len() {
        return Err(walk.bad_length(Layer::RadioHeader, len));
    }
    Ok(walk.at + len)
}

fn cooked<H: HeaderRecorder>(walk: &mut Walk<'_, H>, header: Option<sll::SllHeader>, need: usize) -> Step {
    let header = header.ok_or_else(|| walk.truncated(Layer::LinuxSll, need))?;
    // For some devices the payload has a header of its own, and the protocol field is meaningless or has
    // another meaning.
    match header.hardware_type {
        sll::RADIOTAP => {
            walk.at += header.len;
            return radio(walk, radio::radiotap(walk.rest()));
        }
        sll::FRAME_RELAY => {
            walk.at += header.len;
            return frame_relay(walk);
        }
        sll::NETLINK => return Err(Stop::Unsupported(Unsupported::LinkType(LinkType::NETLINK))),
        _ => {}
    }
    if let Some(offset) = header.source_offset {
        walk.link.mac_addresses = MacAddresses::source_only((walk.at + offset) as u32);
    }
    let next = if header.ether_type == sll::LLC { Next::Llc } else { Next::Protocol(header.ether_type) };
    behind(walk, header.len, next)
}

fn null<H: HeaderRecorder>(walk: &mut Walk<'_, H>, is_network_order: bool) -> Step {
    let family = null::family(walk.rest(), is_network_order);
    let family = family.ok_or_else(|| walk.truncated(Layer::Null, null::HEADER_LEN))?;
    let unsupported = Stop::Unsupported(Unsupported::AddressFamily(family));
    let ether_type = null::ether_type(family).ok_or(unsupported)?;
    behind(walk, null::HEADER_LEN, Next::Protocol(ether_type))
}

/// Reads the link header of a serial line: Cisco HDLC if the first octet is a Cisco HDLC unicast or multicast
/// address, otherwise PPP. A capture driver may not know which of the two protocols the line uses (RFC 1547
/// section 4.3.1).
fn ppp<H: HeaderRecorder>(walk: &mut Walk<'_, H>) -> Step {
    if hdlc::has_address(walk.rest()) { hdlc(walk) } else { Ok(Next::Ppp) }
}

fn hdlc<H: HeaderRecorder>(walk: &mut Walk<'_, H>) -> Step {
    let data = walk.rest();
    if ppp::has_framing(data) {
        return Ok(Next::Ppp);
    }
    let protocol = hdlc::protocol(data).ok_or_else(|| walk.truncated(Layer::Hdlc, hdlc::HEADER_LEN))?;
    behind(walk, hdlc::HEADER_LEN, Next::Protocol(protocol))
}

fn frame_relay<H: HeaderRecorder>(walk: &mut Walk<'_, H>) -> Step {
    use frame_relay::FrameRelay;
    let header = frame_relay::header(walk.rest());
    match header.ok_or_else(|| walk.truncated(Layer::FrameRelay, frame_relay::HEADER_LEN_MIN))? {
        FrameRelay::EtherType(ether_type, len) => behind(walk, len, Next::Protocol(ether_type)),
        FrameRelay::Ethernet(len) => behind(walk, len, Next::Ethernet),
        FrameRelay::Ppp(len) => behind(walk, len, Next::Ppp),
        FrameRelay::Nlpid(number) => Err(Stop::Unsupported(Unsupported::Nlpid(number))),
        FrameRelay::CiscoSnap(number) => Err(Stop::Unsupported(Unsupported::CiscoSnap(number))),
        FrameRelay::Other => Err(Stop::Unsupported(Unsupported::Ieee8023)),
    }
}

fn fddi<H: HeaderRecorder>(walk: &mut Walk<'_, H>) -> Step {
    match token_ring::fddi_is_llc(walk.rest()) {
        Some(true) => {
            walk.link.mac_addresses =
                MacAddresses::ethernet((walk.at + token_ring::FDDI_ADDRESSES_OFFSET) as u32);
            behind(walk, token_ring::FDDI_LEN, Next::Llc)
        }
        Some(false) => Err(Stop::Unsupported(Unsupported::Ieee8023)),
        None => Err(walk.truncated(Layer::Fddi, token_ring::FDDI_LEN)),
    }
}

fn token_ring<H: HeaderRecorder>(walk: &mut Walk<'_, H>) -> Step {
    let header = token_ring::header(walk.rest());
    let header = header.ok_or_else(|| walk.truncated(Layer::TokenRing, token_ring::TOKEN_RING_LEN))?;
    if !header.is_llc {
        return Err(Stop::Unsupported(Unsupported::Ieee8023));
    }
    if !header.is_routed {
        walk.link.mac_addresses =
            MacAddresses::ethernet((walk.at + token_ring::TOKEN_RING_ADDRESSES_OFFSET) as u32);
    }
    behind(walk, header.len, Next::Llc)
}

fn nflog<H: HeaderRecorder>(walk: &mut Walk<'_, H>) -> Step {
    let data = walk.rest();
    let family = nflog::family(data).ok_or_else(|| walk.truncated(Layer::Nflog, nflog::HEADER_LEN))?;
    let len = nflog::payload_offset(data).ok_or(Stop::Unsupported(Unsupported::Nflog))?;
    behind(walk, len, nflog::ether_type(family).map_or(Next::RawIp, Next::Protocol))
}

fn radio<H: HeaderRecorder>(walk: &mut Walk<'_, H>, header: Option<radio::Radio>) -> Step {
    let header = header.ok_or_else(|| walk.truncated(Layer::RadioHeader, radio::HEADER_LEN_MIN))?;
    walk.at = header_end(walk, header.len)?;
    if header.has_check_sequence && walk.wire_len() >= ieee80211::CHECK_SEQUENCE_LEN {
        walk.end -= ieee80211::CHECK_SEQUENCE_LEN;
    }
    wlan(walk, header.is_padded)
}

fn wlan<H: HeaderRecorder>(walk: &mut Walk<'_, H>, is_padded: bool) -> Step {
    let header = ieee80211::header(walk.rest());
    wlan_data(walk, header, is_padded)
}

fn wlan_data<H: HeaderRecorder>(walk: &mut Walk<'_, H>, header: Option<Wlan>, is_padded: bool) -> Step {
    let unsupported = match header {
        Some(Wlan::Data { len, source_offset, is_aggregate }) => {
            let len = if is_padded { len.next_multiple_of(4) } else { len };
            if is_aggregate {
                walk.at += len;
                return aggregate(walk);
            }
            walk.link.mac_addresses = MacAddresses::source_only((walk.at + source_offset) as u32);
            return behind(walk, len, Next::Llc);
        }
        Some(Wlan::Protected) => Unsupported::WlanEncrypted,
        Some(Wlan::LaterFragment) => Unsupported::WlanFragment,
        Some(Wlan::Other) => Unsupported::WlanManagement,
        None => return Err(walk.truncated(Layer::Ieee80211, ieee80211::HEADER_LEN_MIN)),
    };
    Err(Stop::Unsupported(unsupported))
}

/// Reads the header of the only part of an aggregate, or of the first one in a tunnel. Several parts are several frames,
/// which [`aggregated`](super::aggregated) returns.
fn aggregate<H: HeaderRecorder>(walk: &mut Walk<'_, H>) -> Step {
    let (data, wire_len) = (walk.rest(), walk.wire_len());
    let Some((part_len, padded_len)) = first_part(data, wire_len) else {
        return Err(walk.truncated(Layer::Ieee80211, ieee80211::AGGREGATE_LEN));
    };
    let is_followed = wire_len.saturating_sub(padded_len) >= ieee80211::AGGREGATE_LEN;
    if is_followed && !walk.is_inside() {
        return Err(Stop::Unsupported(Unsupported::WlanAggregate));
    }
    walk.shorten(part_len);
    walk.link.mac_addresses = MacAddresses::ethernet(walk.at as u32);
    behind(walk, ieee80211::AGGREGATE_LEN, Next::Llc)
}
