//! Steps between links and IP: Ethernet, tags, LLC, PPP, label stacks, pseudowires.

use super::encapsulation::HeaderRecorder;
use super::walk::{Next, Step, Stop, Walk};
use super::{HeaderKind, MacAddresses, Unsupported};
use crate::base::{EtherType, Layer, VlanIds};
use crate::wire::macsec::SecTag;
use crate::wire::tag::Tagged;
use crate::wire::{
    ethernet, ip, llc, macsec, mpls, nsh, ppp, pppoe, provider_backbone, pseudowire, tag, vn_tag,
};

/// Likelihood that octets are an Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Likelihood {
    No,
    /// A length and an LLC header fit.
    Length,
    /// The EtherType is of a known protocol, whose lengths fit.
    Protocol,
}

impl<H: HeaderRecorder> Walk<'_, H> {
    /// Reads the Ethernet header at the cursor and moves the cursor behind it. Replaces the recorded hardware
    /// addresses and VLAN ids, which belong to an outer frame.
    #[inline(always)]
    pub(super) fn ethernet(&mut self) -> Step {
        let Some(ether_type) = ethernet::ether_type(self.rest()) else {
            return Err(self.truncated(Layer::Ethernet, ethernet::HEADER_LEN));
        };
        self.link.mac_addresses = MacAddresses::ethernet(self.at as u32);
        self.link.vlan_ids = VlanIds::NONE;
        if self.at > 0 {
            self.walked.encapsulation.push(HeaderKind::Ethernet, self.at, 0);
        }
        self.at += ethernet::HEADER_LEN;
        self.length_or_type(ether_type)
    }

    fn length_or_type(&mut self, value: EtherType) -> Step {
        if value.0 >= ethernet::ETHERTYPE_MIN {
            return Ok(Next::Protocol(value));
        }
        self.end = self.end.min(self.at + usize::from(value.0));
        Ok(Next::Llc)
    }

    /// Reads the header that follows an EtherType other than IPv4 and IPv6: VLAN tags, MPLS, PPPoE, a
    /// provider backbone tag, MACsec, a VN-Tag, NSH, bridged Ethernet, or a rare tag.
    pub(super) fn protocol(&mut self, mut ether_type: EtherType) -> Step {
        let mut tag_count = 0;
        while ethernet::is_vlan(ether_type) {
            tag_count += 1;
            if tag_count > self.limits.vlan_tag_count_max {
                return Err(self.too_deep(Layer::Ethernet, self.limits.vlan_tag_count_max));
            }
            let Some(tag) = ethernet::vlan_tag(self.rest()) else {
                return Err(self.truncated(Layer::Ethernet, ethernet::VLAN_TAG_LEN));
            };
            self.link.vlan_ids = self.link.vlan_ids.push(tag.id);
            self.pass(HeaderKind::Vlan, tag.id.into(), ethernet::VLAN_TAG_LEN);
            ether_type = tag.ether_type;
        }
        match ether_type {
            EtherType::IPV4 | EtherType::IPV6 => Ok(Next::Protocol(ether_type)),
            EtherType::MPLS | EtherType::MPLS_MULTICAST => self.mpls(),
            EtherType::PPPOE_SESSION => self.pppoe(),
            EtherType::PROVIDER_BACKBONE => self.provider_backbone(),
            EtherType::MACSEC => self.macsec(),
            EtherType::VN_TAG => self.vn_tag(),
            EtherType::NSH => self.nsh(),
            EtherType::ETHERNET_BRIDGING => {
                self.enter(HeaderKind::Ethernet, 0, 0)?;
                self.ethernet()
            }
            length if tag_count > 0 && length.0 < ethernet::ETHERTYPE_MIN => self.length_or_type(length),
            other => self.rare_tag(other),
        }
    }

    /// Reads a tag other than a VLAN tag, or the header before a whole frame, that an EtherType announces.
    #[cold]
    #[inline(never)]
    fn rare_tag(&mut self, ether_type: EtherType) -> Step {
        let (kind, id, len) = match (ether_type, tag::tag(ether_type, self.rest())) {
            (tag::FABRIC_PATH, _) => {
                let id = tag::fabric_path(self.rest());
                let truncated = || self.truncated(Layer::Ethernet, tag::FABRIC_PATH_LEN);
                (HeaderKind::FabricPath, id.ok_or_else(truncated)?, tag::FABRIC_PATH_LEN)
            }
            (tag::TRILL, _) => {
                let header = tag::trill(self.rest());
                let (id, len) = header.ok_or_else(|| self.truncated(Layer::Ethernet, tag::TRILL_LEN_MIN))?;
                (HeaderKind::Trill, id, len)
            }
            (_, Tagged::Tag(tag)) => {
                self.enter(tag.kind, tag.id, tag.len)?;
                return Ok(Next::Protocol(tag.ether_type));
            }
            (_, Tagged::Truncated) => return Err(self.truncated(Layer::Ethernet, tag::LEN_MIN)),
            (_, Tagged::Other) => return Err(Stop::Unsupported(Unsupported::EtherType(ether_type))),
        };
        self.enter(kind, id, len)?;
        Ok(Next::Ethernet)
    }

    pub(super) fn llc(&mut self) -> Step {
        match llc::header(self.rest()) {
            Some(llc::Llc::EtherType(ether_type, len)) => {
                self.at += len;
                // Counts towards the depth only if the payload is not plain IP.
                Ok(Next::Protocol(ether_type))
            }
            Some(llc::Llc::Ethernet(len)) => {
                self.enter(HeaderKind::Ethernet, 0, len)?;
                self.ethernet()
            }
            Some(llc::Llc::Nlpid(number)) => Err(Stop::Unsupported(Unsupported::Nlpid(number))),
            Some(llc::Llc::CiscoSnap(number)) => Err(Stop::Unsupported(Unsupported::CiscoSnap(number))),
            Some(llc::Llc::Dsap(dsap)) => Err(Stop::Unsupported(Unsupported::Llc(dsap))),
            Some(llc::Llc::Other) => Err(Stop::Unsupported(Unsupported::Ieee8023)),
            None => Err(self.truncated(Layer::Llc, llc::HEADER_LEN)),
        }
    }

    pub(super) fn ppp(&mut self) -> Step {
        let Some(header) = ppp::header(self.rest()) else {
            return Err(self.truncated(Layer::Ppp, ppp::HEADER_LEN_MIN));
        };
        self.at += header.len;
        match header.protocol {
            ppp::PROTOCOL_IPV4 => Ok(Next::Protocol(EtherType::IPV4)),
            ppp::PROTOCOL_IPV6 => Ok(Next::Protocol(EtherType::IPV6)),
            ppp::PROTOCOL_MPLS | ppp::PROTOCOL_MPLS_MULTICAST => self.mpls(),
            ppp::PROTOCOL_BRIDGING => self.bridged_ppp(),
            other => Err(Stop::Unsupported(Unsupported::Ppp(other))),
        }
    }

    /// Reads the header of bridging in PPP and the bridged Ethernet header after it, and moves the cursor
    /// behind both.
    fn bridged_ppp(&mut self) -> Step {
        let unsupported = Stop::Unsupported(Unsupported::Ppp(ppp::PROTOCOL_BRIDGING));
        let len = ppp::bridged_ethernet_offset(self.rest()).ok_or(unsupported)?;
        self.enter(HeaderKind::Ethernet, 0, len)?;
        self.ethernet()
    }

    fn pppoe(&mut self) -> Step {
        let Some(header) = pppoe::header(self.rest()) else {
            return Err(self.truncated(Layer::Pppoe, pppoe::HEADER_LEN));
        };
        if !header.is_session_data {
            return Err(Stop::Unsupported(Unsupported::EtherType(EtherType::PPPOE_SESSION)));
        }
        self.shorten(pppoe::HEADER_LEN + header.payload_len);
        self.enter(HeaderKind::Pppoe, header.session_id.into(), pppoe::HEADER_LEN)?;
        self.ppp()
    }

    fn provider_backbone(&mut self) -> Step {
        let Some(id) = provider_backbone::service_id(self.rest()) else {
            return Err(self.truncated(Layer::Ethernet, provider_backbone::TAG_LEN));
        };
        self.enter(HeaderKind::ProviderBackbone, id, provider_backbone::TAG_LEN)?;
        self.ethernet()
    }

    fn macsec(&mut self) -> Step {
        let Some(tag) = macsec::tag(self.rest()) else {
            return Err(self.truncated(Layer::Macsec, macsec::TAG_LEN_MIN));
        };
        if tag.is_encrypted {
            return Err(Stop::Unsupported(Unsupported::MacsecEncrypted));
        }
        let header_len = tag.len + SecTag::ETHER_TYPE_LEN;
        let Some(ether_type) = tag.ether_type(self.rest()) else {
            return Err(self.truncated(Layer::Macsec, header_len));
        };
        let user_len = tag
            .short_len
            .unwrap_or_else(|| self.wire_len().saturating_sub(tag.len + macsec::CHECK_VALUE_LEN));
        self.shorten(tag.len + user_len.max(SecTag::ETHER_TYPE_LEN));
        self.enter(HeaderKind::Macsec, 0, header_len)?;
        Ok(Next::Protocol(ether_type))
    }

    fn vn_tag(&mut self) -> Step {
        let Some(tag) = vn_tag::tag(self.rest()) else {
            return Err(self.truncated(Layer::Ethernet, vn_tag::TAG_LEN));
        };
        self.enter(HeaderKind::VnTag, tag.destination, vn_tag::TAG_LEN)?;
        Ok(Next::Protocol(tag.ether_type))
    }

    pub(super) fn nsh(&mut self) -> Step {
        let Some(header) = nsh::header(self.rest()) else {
            return Err(self.truncated(Layer::Nsh, nsh::HEADER_LEN_MIN));
        };
        if header.len > self.wire_len() {
            return Err(self.bad_length(Layer::Nsh, header.len));
        }
        let next = header.next.ok_or(Stop::Unsupported(Unsupported::NshPayload))?;
        self.enter(HeaderKind::Nsh, header.path_id, header.len)?;
        self.announced(next)
    }

    /// Continues the walk with the protocol that an EtherType in a tunnel header identifies. Bridged Ethernet
    /// does not count as another encapsulation.
    pub(super) fn announced(&mut self, ether_type: EtherType) -> Step {
        if ether_type == EtherType::ETHERNET_BRIDGING {
            self.ethernet()
        } else {
            Ok(Next::Protocol(ether_type))
        }
    }

    /// Reads the MPLS label stack at the cursor and moves the cursor behind it. The payload is IP if its
    /// lengths are consistent, otherwise Ethernet.
    pub(super) fn mpls(&mut self) -> Step {
        let mut count = 0;
        loop {
            let Some(entry) = mpls::entry(self.rest()) else {
                return Err(self.truncated(Layer::Mpls, mpls::ENTRY_LEN));
            };
            count += 1;
            if count > self.limits.mpls_label_count_max {
                return Err(self.too_deep(Layer::Mpls, self.limits.mpls_label_count_max));
            }
            if count == 1 {
                self.enter(HeaderKind::Mpls, entry.label, mpls::ENTRY_LEN)?;
            } else {
                self.pass(HeaderKind::Mpls, entry.label, mpls::ENTRY_LEN);
            }
            if entry.is_bottom {
                return self.unlabeled();
            }
        }
    }

    /// Reads what follows the labels. A function of its own, so that the walk over other frames stays small.
    #[inline(never)]
    fn unlabeled(&mut self) -> Step {
        let data = self.rest();
        let by_version = ip::ether_type(data);
        if let Some(ether_type) = by_version
            && self.is_likely_ip(self.at, ether_type)
        {
            return Ok(Next::Protocol(ether_type));
        }
        let control_word_end = self.at + pseudowire::CONTROL_WORD_LEN;
        let with_control_word = if pseudowire::may_be_control_word(data) {
            self.likelihood_of_ethernet(control_word_end)
        } else {
            Likelihood::No
        };
        let is_usual = pseudowire::is_reserved_zero(data);
        if with_control_word == Likelihood::Protocol && is_usual {
            self.at = control_word_end;
            return self.ethernet();
        }
        // Addresses may begin like a control word, and a VLAN tag hides that they do.
        let without = self.likelihood_of_ethernet(self.at);
        if with_control_word.max(without) > Likelihood::No {
            let has_control_word = with_control_word > without || with_control_word == without && is_usual;
            self.at = if has_control_word { control_word_end } else { self.at };
            return self.ethernet();
        }
        // Neither: at most IP with a wrong length. Inside a packet that is not enough evidence.
        let by_version = by_version.filter(|_| !self.is_inside());
        by_version.map(Next::Protocol).ok_or(Stop::Unsupported(Unsupported::MplsPayload))
    }

    /// Returns whether the octets at the offset `at` in the frame are likely an Ethernet header: its
    /// EtherType or LLC header is of a known protocol, and the lengths are consistent.
    pub(super) fn looks_like_ethernet(&self, at: usize) -> bool {
        self.likelihood_of_ethernet(at) > Likelihood::No
    }

    fn likelihood_of_ethernet(&self, at: usize) -> Likelihood {
        let Some(data) = self.data.get(at..self.end.min(self.data.len())) else { return Likelihood::No };
        let mut behind = ethernet::HEADER_LEN;
        let Some(mut ether_type) = ethernet::ether_type(data) else { return Likelihood::No };
        for _ in 0..self.limits.vlan_tag_count_max {
            if !ethernet::is_vlan(ether_type) {
                break;
            }
            let Some(tag) = data.get(behind..).and_then(ethernet::vlan_tag) else { return Likelihood::No };
            ether_type = tag.ether_type;
            behind += ethernet::VLAN_TAG_LEN;
        }
        let is_protocol = match ether_type {
            EtherType::IPV4 | EtherType::IPV6 => self.is_likely_ip(at + behind, ether_type),
            EtherType(ethernet::ETHERTYPE_MIN..) => {
                ether_type.name().is_some()
                    || tag::is_announced(ether_type, data.get(behind..).unwrap_or_default())
            }
            EtherType(len) => {
                let llc = data.get(behind..).and_then(llc::header);
                let is_llc =
                    usize::from(len) <= self.end - (at + behind) && llc.is_some_and(llc::Llc::is_packet);
                return if is_llc { Likelihood::Length } else { Likelihood::No };
            }
        };
        if is_protocol { Likelihood::Protocol } else { Likelihood::No }
    }
}
