//! Steps of a walk from an IP packet to the packet that it carries in a tunnel.
//!
//! Each step returns [`Stop::Done`] if there is no tunnel, so that the outer packet is the result of the
//! walk.

use super::encapsulation::HeaderRecorder;
use super::walk::{Next, Step, Stop, Walk};
use super::{HeaderKind, UdpTunnel};
use crate::base::{EtherType, IpProtocol, LinkType};
use crate::wire::udp::Udp;
use crate::wire::{erspan, ether_ip, geneve, gre, gtpu, ipv4, l2tp, teredo, udp, vxlan};

impl<H: HeaderRecorder> Walk<'_, H> {
    /// Enters the tunnel that the payload of the IP packet at the cursor contains, if there is one. `len` and
    /// `header_len` are the lengths of the packet and of its header, in octets.
    #[inline(always)]
    pub(super) fn inside(&mut self, protocol: IpProtocol, len: usize, header_len: usize) -> Step {
        match protocol {
            IpProtocol::IPV4 => self.ip_in_ip(EtherType::IPV4, len, header_len),
            IpProtocol::IPV6 => self.ip_in_ip(EtherType::IPV6, len, header_len),
            IpProtocol::UDP => self.udp(len, header_len),
            IpProtocol::GRE => self.gre(len, header_len),
            IpProtocol::MPLS | IpProtocol::L2TP | ether_ip::PROTOCOL => self.rare(protocol, len, header_len),
            _ => Err(Stop::Done),
        }
    }

    /// Records the IP header at the cursor as an outer header and moves the cursor behind it. The walk then
    /// ends at the end of this IP packet.
    #[inline(always)]
    fn enter_ip(&mut self, len: usize, header_len: usize) {
        self.end = self.at + len;
        self.pass(HeaderKind::Ip, 0, header_len);
    }

    /// Enters a tunnel of IP directly in IP: IP in IP, 6in4, 4in6 or 6rd.
    #[inline(always)]
    fn ip_in_ip(&mut self, ether_type: EtherType, len: usize, header_len: usize) -> Step {
        self.enter_ip(len, header_len);
        self.deepen()?;
        Ok(Next::Protocol(ether_type))
    }

    #[inline(never)]
    fn rare(&mut self, protocol: IpProtocol, len: usize, header_len: usize) -> Step {
        self.enter_ip(len, header_len);
        match protocol {
            IpProtocol::MPLS => self.mpls(),
            IpProtocol::L2TP => self.l2tp(l2tp::in_ip(self.rest())),
            _ => self.ether_ip(),
        }
    }

    /// Enters the tunnel that the UDP ports of the IP packet at the cursor identify.
    fn udp(&mut self, len: usize, header_len: usize) -> Step {
        let rest = self.rest();
        let payload = rest.get(header_len..len.min(rest.len()));
        let header = payload.and_then(Udp::read).ok_or(Stop::Done)?;
        let tunnel = self.tunnel_ports.tunnel(header.source_port(), header.destination_port());
        let tunnel = tunnel.ok_or(Stop::Done)?;
        self.enter_ip(len, header_len);
        let udp_len = header.len();
        if udp_len < udp::HEADER_LEN {
            return Err(Stop::Done);
        }
        self.shorten(udp_len);
        self.at += udp::HEADER_LEN;
        match tunnel {
            UdpTunnel::Vxlan => self.vxlan(),
            UdpTunnel::VxlanGpe => self.vxlan_gpe(),
            UdpTunnel::Geneve => self.geneve(),
            UdpTunnel::GtpU => self.gtpu(),
            UdpTunnel::Teredo => self.teredo(),
            UdpTunnel::Mpls => self.mpls(),
            UdpTunnel::L2tp => self.l2tp(l2tp::in_udp(self.rest())),
            UdpTunnel::Gre => self.gre_header(),
            other => self.other_udp(other),
        }
    }

    #[inline(always)]
    fn vxlan(&mut self) -> Step {
        let vni = vxlan::vni(self.rest()).ok_or(Stop::Done)?;
        self.enter(HeaderKind::Vxlan, vni, vxlan::HEADER_LEN)?;
        self.ethernet()
    }

    fn vxlan_gpe(&mut self) -> Step {
        let (vni, next) = vxlan::gpe(self.rest()).ok_or(Stop::Done)?;
        self.enter(HeaderKind::VxlanGpe, vni, vxlan::HEADER_LEN)?;
        self.announced(next)
    }

    fn geneve(&mut self) -> Step {
        let Some(header) = geneve::header(self.rest()) else { return Err(Stop::Done) };
        self.enter(HeaderKind::Geneve, header.vni, header.len)?;
        self.announced(header.protocol)
    }

    fn gtpu(&mut self) -> Step {
        let Some(header) = gtpu::header(self.rest()) else { return Err(Stop::Done) };
        self.shorten(header.message_len);
        self.enter(HeaderKind::GtpU, header.teid, header.len)?;
        // The most common case; the other function returns the same result.
        if self.rest().first() == Some(&ipv4::VERSION_AND_PLAIN_LEN) {
            Ok(Next::RawIp)
        } else {
            self.user_data()
        }
    }

    fn teredo(&mut self) -> Step {
        let len = teredo::indications_len(self.rest()).ok_or(Stop::Done)?;
        self.enter(HeaderKind::Teredo, 0, len)?;
        // The port and the version are weak evidence, so a wrong length requires more.
        if !self.is_likely_ip(self.at, EtherType::IPV6) && !teredo::has_address(self.rest()) {
            return Err(Stop::Done);
        }
        Ok(Next::Protocol(EtherType::IPV6))
    }

    #[inline(never)]
    fn gre(&mut self, len: usize, header_len: usize) -> Step {
        self.enter_ip(len, header_len);
        self.gre_header()
    }

    fn gre_header(&mut self) -> Step {
        let Some(header) = gre::header(self.rest()) else { return self.vendor_gre() };
        if header.version == 1 {
            return self.pptp(&header);
        }
        let (kind, id) = match header.virtual_subnet() {
            Some(subnet) => (HeaderKind::Nvgre, subnet),
            None => (HeaderKind::Gre, header.key.unwrap_or(0)),
        };
        self.enter(kind, id, header.len)?;
        match header.protocol {
            gre::PPP => self.ppp(),
            // Type I has neither a sequence number nor a header.
            gre::ERSPAN_II if !header.has_sequence => {
                self.pass(HeaderKind::Erspan, 0, 0);
                self.ethernet()
            }
            gre::ERSPAN_II => self.erspan(erspan::type_2(self.rest())),
            gre::ERSPAN_III => self.erspan(erspan::type_3(self.rest())),
            gre::WCCP => self.wccp(),
            other if gre::is_aruba(other) => self.carried(LinkType::IEEE802_11),
            other => self.announced(other),
        }
    }

    fn pptp(&mut self, header: &gre::GreHeader) -> Step {
        let (payload_len, call_id) = header.pptp_call().ok_or(Stop::Done)?;
        self.shorten(header.len + payload_len);
        self.enter(HeaderKind::Pptp, call_id, header.len)?;
        self.ppp()
    }

    fn wccp(&mut self) -> Step {
        self.at += gre::wccp_header_len(self.rest());
        Ok(Next::Protocol(EtherType::IPV4))
    }

    fn erspan(&mut self, header: Option<erspan::ErspanHeader>) -> Step {
        let header = header.ok_or(Stop::Done)?;
        self.pass(HeaderKind::Erspan, header.session_id.into(), header.len);
        if header.is_ip { Ok(Next::RawIp) } else { self.ethernet() }
    }

    fn l2tp(&mut self, header: Option<l2tp::L2tp>) -> Step {
        match header.ok_or(Stop::Done)? {
            l2tp::L2tp::V2 { len, message_len, ids } => {
                if let Some(message_len) = message_len {
                    self.shorten(message_len);
                }
                self.enter(HeaderKind::L2tp, ids, len)?;
                self.ppp()
            }
            l2tp::L2tp::V3 { len, session_id } => {
                self.enter(HeaderKind::L2tp, session_id, len)?;
                let fits = |cookie_len: &&usize| self.looks_like_ethernet(self.at + **cookie_len);
                self.at += l2tp::COOKIE_LENS.iter().find(fits).ok_or(Stop::Done)?;
                self.ethernet()
            }
        }
    }

    fn ether_ip(&mut self) -> Step {
        if !ether_ip::is_header(self.rest()) {
            return Err(Stop::Done);
        }
        self.enter(HeaderKind::EtherIp, 0, ether_ip::HEADER_LEN)?;
        self.ethernet()
    }
}
