//! First step: from a link type to the data behind the link's own header.

use super::encapsulation::Way;
use super::walk::{Next, Step, Stop, Walk};
use super::{MacAddresses, Unsupported};
use crate::base::{EtherType, Layer, LinkType};
use crate::wire::{be16, frame_relay, ieee80211, nflog, radio, sll, token_ring};

const FAMILY_LEN: usize = 4;
const AF_INET: u32 = 2;

/// AF_INET6 of NetBSD, OpenBSD and Linux (in the order 24, 24, 10), FreeBSD, and Darwin.
const AF_INET6: [u32; 4] = [10, 24, 28, 30];

/// Octets of a Cisco HDLC header: address, control, protocol.
const HDLC_LEN: usize = 4;

/// Octets of the network header of RFC 2625: two addresses of eight octets, of which the last six are the MAC
/// address.
const FIBRE_CHANNEL_LEN: usize = 16;
const FIBRE_CHANNEL_SOURCE: u32 = 10;

/// Value of a Linux cooked header for LLC, which has no EtherType.
const COOKED_LLC: EtherType = EtherType(4);

/// IPv4 in a netfilter log.
const NFLOG_INET: u8 = 2;
const NFLOG_INET6: u8 = 10;

/// Octets of an 802.11 check sequence.
const CHECK_SEQUENCE_LEN: usize = 4;

/// Octets before LLC in a part of an aggregated 802.11 frame: two addresses and a length.
const AGGREGATE_LEN: usize = 14;

pub(super) fn link<W: Way>(walk: &mut Walk<'_, W>, link_type: LinkType) -> Step {
    match link_type {
        LinkType::ETHERNET => Ok(Next::Ethernet),
        LinkType::LINUX_SLL => cooked(walk, sll::v1(walk.rest()), 16),
        LinkType::LINUX_SLL2 => cooked(walk, sll::v2(walk.rest()), 20),
        LinkType::NULL => null(walk, false),
        LinkType::LOOP => null(walk, true),
        LinkType::RAW | LinkType::RAW_DLT_12 | LinkType::RAW_DLT_14 => Ok(Next::RawIp),
        LinkType::IPV4 => Ok(Next::Protocol(EtherType::IPV4)),
        LinkType::IPV6 => Ok(Next::Protocol(EtherType::IPV6)),
        LinkType::PPP | LinkType::PPP_HDLC => ppp(walk),
        // One octet in front contains the direction of the frame.
        LinkType::PPP_PPPD | LinkType::PPP_WITH_DIR => {
            walk.at += 1;
            ppp(walk)
        }
        LinkType::C_HDLC_WITH_DIR => {
            walk.at += 1;
            hdlc(walk)
        }
        LinkType::FRELAY_WITH_DIR => {
            walk.at += 1;
            frame_relay(walk)
        }
        LinkType::MPLS => Ok(Next::Protocol(EtherType::MPLS)),
        LinkType::PPP_ETHER => Ok(Next::Protocol(EtherType::PPPOE_SESSION)),
        LinkType::C_HDLC => hdlc(walk),
        LinkType::FRELAY => frame_relay(walk),
        LinkType::ATM_RFC1483 => Ok(Next::Llc),
        LinkType::FDDI => fddi(walk),
        LinkType::IEEE802_5 => token_ring(walk),
        LinkType::IP_OVER_FC => {
            walk.link.mac_addresses = MacAddresses::source_only(FIBRE_CHANNEL_SOURCE);
            behind(walk, FIBRE_CHANNEL_LEN, Next::Llc)
        }
        LinkType::NFLOG => nflog(walk),
        LinkType::IEEE802_11 => wlan(walk, false),
        LinkType::IEEE802_11_RADIOTAP => radio(walk, radio::radiotap(walk.rest())),
        LinkType::IEEE802_11_PRISM | LinkType::IEEE802_11_AVS => radio(walk, radio::prism(walk.rest())),
        LinkType::PPI => match radio::ppi(walk.rest()) {
            // A nested header of the same kind would allow unlimited nesting.
            Some((_, LinkType::PPI)) => Err(Stop::Unsupported(Unsupported::LinkType(LinkType::PPI))),
            Some((len, inner)) => {
                walk.at = header_end(walk, len)?;
                link(walk, inner)
            }
            None => Err(walk.truncated(Layer::RadioHeader, 8)),
        },
        other => Err(Stop::Unsupported(Unsupported::LinkType(other))),
    }
}

/// Skips a header without reading it.
fn behind<W: Way>(walk: &mut Walk<'_, W>, len: usize, next: Next) -> Step {
    walk.at += len;
    Ok(next)
}

fn header_end<W: Way>(walk: &mut Walk<'_, W>, len: usize) -> Result<usize, Stop> {
    if len > walk.wire_len() {
        return Err(walk.bad_length(Layer::RadioHeader, len));
    }
    Ok(walk.at + len)
}

fn cooked<W: Way>(walk: &mut Walk<'_, W>, header: Option<sll::SllHeader>, need: usize) -> Step {
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
    let next = if header.ether_type == COOKED_LLC { Next::Llc } else { Next::Protocol(header.ether_type) };
    behind(walk, header.len, next)
}

fn null<W: Way>(walk: &mut Walk<'_, W>, is_network_order: bool) -> Step {
    let bytes = walk.rest().first_chunk::<FAMILY_LEN>();
    let bytes = bytes.ok_or_else(|| walk.truncated(Layer::Null, FAMILY_LEN))?;
    // NULL uses the byte order of the capturing host, which the file does not indicate reliably. Address
    // families are small, so the order in which the value fits in 16 bits is the right one.
    let big = u32::from_be_bytes(*bytes);
    let family = if is_network_order || big <= 0xffff { big } else { u32::from_le_bytes(*bytes) };
    let ether_type = match family {
        AF_INET => EtherType::IPV4,
        family if AF_INET6.contains(&family) => EtherType::IPV6,
        other => return Err(Stop::Unsupported(Unsupported::AddressFamily(other))),
    };
    behind(walk, FAMILY_LEN, Next::Protocol(ether_type))
}

/// Steps into a serial line: PPP, or Cisco HDLC if the address is that of its unicasts or multicasts. Neither
/// address is a protocol number of PPP, and a driver may not know which of the two protocols the line uses
/// (RFC 1547 section 4.3.1).
fn ppp<W: Way>(walk: &mut Walk<'_, W>) -> Step {
    const UNICAST: u8 = 0x0f;
    const MULTICAST: u8 = 0x8f;
    match walk.rest() {
        [UNICAST | MULTICAST, ..] => hdlc(walk),
        _ => Ok(Next::Ppp),
    }
}

fn hdlc<W: Way>(walk: &mut Walk<'_, W>) -> Step {
    let data = walk.rest();
    if data.starts_with(&[0xff, 3]) {
        return Ok(Next::Ppp);
    }
    let protocol = be16(data, 2).ok_or_else(|| walk.truncated(Layer::Hdlc, HDLC_LEN))?;
    behind(walk, HDLC_LEN, Next::Protocol(EtherType(protocol)))
}

fn frame_relay<W: Way>(walk: &mut Walk<'_, W>) -> Step {
    use frame_relay::FrameRelay;
    match frame_relay::header(walk.rest()).ok_or_else(|| walk.truncated(Layer::FrameRelay, 4))? {
        FrameRelay::EtherType(ether_type, len) => behind(walk, len, Next::Protocol(ether_type)),
        FrameRelay::Ethernet(len) => behind(walk, len, Next::Ethernet),
        FrameRelay::Ppp(len) => behind(walk, len, Next::Ppp),
        FrameRelay::Nlpid(number) => Err(Stop::Unsupported(Unsupported::Nlpid(number))),
        FrameRelay::CiscoSnap(number) => Err(Stop::Unsupported(Unsupported::CiscoSnap(number))),
        FrameRelay::Other => Err(Stop::Unsupported(Unsupported::Ieee8023)),
    }
}

fn fddi<W: Way>(walk: &mut Walk<'_, W>) -> Step {
    match token_ring::fddi_is_llc(walk.rest()) {
        Some(true) => {
            walk.link.mac_addresses = MacAddresses::ethernet(walk.at as u32 + 1);
            behind(walk, token_ring::FDDI_LEN, Next::Llc)
        }
        Some(false) => Err(Stop::Unsupported(Unsupported::Ieee8023)),
        None => Err(walk.truncated(Layer::Fddi, token_ring::FDDI_LEN)),
    }
}

fn token_ring<W: Way>(walk: &mut Walk<'_, W>) -> Step {
    let header = token_ring::header(walk.rest()).ok_or_else(|| walk.truncated(Layer::TokenRing, 14))?;
    if !header.is_llc {
        return Err(Stop::Unsupported(Unsupported::Ieee8023));
    }
    if !header.is_routed {
        walk.link.mac_addresses = MacAddresses::ethernet(walk.at as u32 + 2);
    }
    behind(walk, header.len, Next::Llc)
}

fn nflog<W: Way>(walk: &mut Walk<'_, W>) -> Step {
    let data = walk.rest();
    let family = *data.first().ok_or_else(|| walk.truncated(Layer::Nflog, 4))?;
    let len = nflog::payload_offset(data).ok_or(Stop::Unsupported(Unsupported::Nflog))?;
    let next = match family {
        NFLOG_INET => Next::Protocol(EtherType::IPV4),
        NFLOG_INET6 => Next::Protocol(EtherType::IPV6),
        _ => Next::RawIp,
    };
    behind(walk, len, next)
}

fn radio<W: Way>(walk: &mut Walk<'_, W>, header: Option<radio::Radio>) -> Step {
    let header = header.ok_or_else(|| walk.truncated(Layer::RadioHeader, 8))?;
    walk.at = header_end(walk, header.len)?;
    if header.has_check_sequence && walk.wire_len() >= CHECK_SEQUENCE_LEN {
        walk.end -= CHECK_SEQUENCE_LEN;
    }
    wlan(walk, header.is_padded)
}

fn wlan<W: Way>(walk: &mut Walk<'_, W>, is_padded: bool) -> Step {
    use ieee80211::Wlan;
    let unsupported = match ieee80211::header(walk.rest()) {
        Some(Wlan::Data { len, source_offset, is_aggregate }) => {
            walk.link.mac_addresses = MacAddresses::source_only((walk.at + source_offset) as u32);
            let len = if is_padded { len.next_multiple_of(4) } else { len };
            // For an aggregate, the first part counts: a frame is one packet.
            return behind(walk, if is_aggregate { len + AGGREGATE_LEN } else { len }, Next::Llc);
        }
        Some(Wlan::Protected) => Unsupported::WlanEncrypted,
        Some(Wlan::LaterFragment) => Unsupported::WlanFragment,
        Some(Wlan::Other) => Unsupported::WlanManagement,
        None => return Err(walk.truncated(Layer::Ieee80211, 24)),
    };
    Err(Stop::Unsupported(unsupported))
}
