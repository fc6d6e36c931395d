//! Steps into rare tunnels and mirror sessions, apart from those of `tunnels`, so that these stay small.
//!
//! Most of their headers are weak evidence: the port and a few octets. They are tunnels only if a consistent packet or
//! Ethernet header follows.

use super::encapsulation::HeaderRecorder;
use super::walk::{Next, Step, Stop, Walk};
use super::{HeaderKind, UdpTunnel};
use crate::base::{EtherType, LinkType};
use crate::wire::{ayiya, capwap, gre, hp_erm, ip, lisp, tzsp};

impl<H: HeaderRecorder> Walk<'_, H> {
    /// Enters a tunnel in UDP, whose header is at the cursor.
    #[inline(never)]
    pub(super) fn other_udp(&mut self, tunnel: UdpTunnel) -> Step {
        match tunnel {
            UdpTunnel::Tzsp => {
                let header = tzsp::header(self.rest()).ok_or(Stop::Done)?;
                self.enter(HeaderKind::Tzsp, 0, header.len)?;
                self.carried(header.link_type)
            }
            UdpTunnel::Lisp => {
                let (instance, next) = lisp::header(self.rest()).ok_or(Stop::Done)?;
                self.enter(HeaderKind::Lisp, instance, lisp::HEADER_LEN)?;
                self.weakly_announced(next)
            }
            UdpTunnel::HpErm => {
                self.enter(HeaderKind::HpErm, 0, hp_erm::HEADER_LEN)?;
                self.weakly_announced(EtherType::ETHERNET_BRIDGING)
            }
            UdpTunnel::Ayiya => {
                let (len, next) = ayiya::header(self.rest()).ok_or(Stop::Done)?;
                self.enter(HeaderKind::Ayiya, 0, len)?;
                self.weakly_announced(next)
            }
            UdpTunnel::Capwap => {
                let (len, link_type) = capwap::header(self.rest()).ok_or(Stop::Done)?;
                self.enter(HeaderKind::Capwap, 0, len)?;
                match link_type {
                    LinkType::ETHERNET => self.weakly_announced(EtherType::ETHERNET_BRIDGING),
                    _ => self.wireless_in_capwap(),
                }
            }
            _ => Err(Stop::Done),
        }
    }

    /// Enters the tunnel behind a GRE header that no specification of GRE defines.
    #[inline(never)]
    pub(super) fn vendor_gre(&mut self) -> Step {
        let header = gre::eoip(self.rest()).ok_or(Stop::Done)?;
        self.shorten(gre::EOIP_LEN + header.payload_len);
        self.enter(HeaderKind::Eoip, header.tunnel_id.into(), gre::EOIP_LEN)?;
        Ok(Next::Ethernet)
    }

    /// Continues the walk with the protocol that a header announces which is weak evidence.
    fn weakly_announced(&mut self, ether_type: EtherType) -> Step {
        let is_likely = match ether_type {
            EtherType::ETHERNET_BRIDGING => self.looks_like_ethernet(self.at),
            EtherType::IPV4 | EtherType::IPV6 => self.is_likely_ip(self.at, ether_type),
            _ => true,
        };
        if is_likely { self.announced(ether_type) } else { Err(Stop::Done) }
    }

    /// Continues the walk with a frame of one of the link types that tunnels carry.
    pub(super) fn carried(&mut self, link_type: LinkType) -> Step {
        if link_type == LinkType::ETHERNET { Ok(Next::Ethernet) } else { self.wireless(link_type) }
    }

    /// Continues the walk behind a GTP-U header. There is no field for the protocol of the payload: an IP packet, or an
    /// Ethernet frame in a session of that type (3GPP TS 29.281 section 5.2.2.7, TS 23.501 section 5.6.10.2).
    #[inline(never)]
    pub(super) fn user_data(&mut self) -> Step {
        let is_ip = |ether_type| self.is_likely_ip(self.at, ether_type);
        if self.looks_like_ethernet(self.at) && !ip::ether_type(self.rest()).is_some_and(is_ip) {
            return Ok(Next::Ethernet);
        }
        Ok(Next::RawIp)
    }
}
