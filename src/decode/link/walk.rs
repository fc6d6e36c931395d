//! The walk over the headers of a frame. Its state is a cursor, the end of the frame according to the outer
//! headers, and the innermost IP packet so far.

use super::encapsulation::{HeaderRecorder, Unrecorded};
use super::ip::{PlainIpv4, read_ip_header};
use super::outcome::NoPacket;
use super::{
    Decapsulated, Decapsulation, FrameEncapsulation, HeaderKind, IpHeader, IpPacket, LinkInfo, OtherPayload,
    TunnelPorts, Unsupported, Walked, ip_header,
};
use crate::base::{Encapsulation, EtherType, Frame, Layer, Limits, ParseError, ParseErrorKind};
use crate::wire::{ip, ipv4};

/// Finds the IP packet in a frame.
///
/// Reads all links and tunnels of `docs/design/link.md`, in any order, to a depth of
/// [`Limits::encapsulation_depth_max`]. A payload is accepted as a tunnel only if its headers lead to an IP
/// header that is consistent with itself and with them; otherwise the outer packet is the result. Each header
/// bounds its payload: a length field that exceeds the payload of the outer header is reduced to it, and the
/// packet is marked ([`IpHeader::is_over_long`], [`IpPacket::is_outer_len_bad`]). The function keeps no state
/// and does not allocate; the cost is linear in the number of headers.
#[must_use]
pub fn decapsulate(
    frame: &Frame<'_>,
    decapsulation: Decapsulation,
    tunnel_ports: &TunnelPorts,
    limits: &Limits,
) -> Decapsulated {
    let mut walked = Walked::new(Unrecorded);
    match walk(frame, None, &WalkSettings { decapsulation, tunnel_ports, limits }, &mut walked) {
        Ok(()) => Decapsulated::Packet(walked.packet),
        Err(NoPacket::Unsupported(unsupported)) => Decapsulated::Unsupported(unsupported),
        Err(NoPacket::Truncated(error)) => Decapsulated::Truncated(error),
        Err(NoPacket::Malformed(error)) => Decapsulated::Malformed(error),
    }
}

/// Returns the headers around the packet that [`decapsulate`] finds with the same arguments, outermost first; none if
/// it finds no packet. At most 16: if there are more, the innermost are omitted.
///
/// Walks the frame again, and allocates if there are headers. A [`Pipeline`](crate::pipeline::Pipeline) records
/// the encapsulation of flows in its only walk, on [request](crate::pipeline::Builder::encapsulation).
#[must_use]
pub fn encapsulation(
    frame: &Frame<'_>,
    decapsulation: Decapsulation,
    tunnel_ports: &TunnelPorts,
    limits: &Limits,
) -> Encapsulation {
    let mut walked = Walked::new(FrameEncapsulation::new(false));
    if walk(frame, None, &WalkSettings { decapsulation, tunnel_ports, limits }, &mut walked).is_err() {
        return Encapsulation::NONE;
    }
    let headers: Vec<_> = walked.encapsulation.headers().iter().map(|at| at.header(frame.data)).collect();
    Encapsulation::new(&headers)
}

/// Starting point of a walk that starts at an IP header instead of the link header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Octets from the start of the frame to the IP header.
    pub(crate) offset: usize,
    /// Hardware addresses, VLAN ids and VNI from the headers before the IP header.
    pub(crate) link: LinkInfo,
}

/// Settings of a walk: which of several nested packets is the result, the UDP ports of tunnels, and the
/// limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkSettings<'a> {
    pub(crate) decapsulation: Decapsulation,
    pub(crate) tunnel_ports: &'a TunnelPorts,
    pub(crate) limits: &'a Limits,
}

/// Finds the IP packet in a frame and writes it to `walked`, with the outer headers that the
/// [`HeaderRecorder`] records (none for `()`). With an entry, the walk starts at the IP header that the entry
/// describes, such as the header of a reassembled datagram. If no packet is found, `walked` contains only the other payload.
#[inline(always)]
pub(crate) fn find_packet<H: HeaderRecorder>(
    frame: &Frame<'_>,
    entry: Option<Entry>,
    settings: &WalkSettings<'_>,
    walked: &mut Walked<H>,
) -> Result<(), NoPacket> {
    walk(frame, entry, settings, walked)
}

#[inline(always)]
fn walk<H: HeaderRecorder>(
    frame: &Frame<'_>,
    entry: Option<Entry>,
    settings: &WalkSettings<'_>,
    walked: &mut Walked<H>,
) -> Result<(), NoPacket> {
    walked.encapsulation.begin();
    walked.other = None;
    let mut walk = Walk::new(frame, entry, settings, walked);
    let mut next = match entry {
        None => walk.link_layer(frame.link_type),
        Some(_) => Ok(Next::RawIp),
    };
    loop {
        next = match next {
            Ok(next) => walk.step(next),
            Err(stop) => return walk.outcome(stop),
        }
    }
}

/// Kind of the header at the cursor of a walk.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// Protocol that an EtherType identifies.
    Protocol(EtherType),
    /// IPv4 or IPv6, according to the version field of the IP header.
    RawIp,
    /// An Ethernet header.
    Ethernet,
    /// A logical link control header (IEEE 802.2).
    Llc,
    /// A PPP header.
    Ppp,
}

/// Reason that a walk ends. The type is small, so that a step returns it in a register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// The IP packet was found, and no further packet is to be read.
    Done,
    /// There is no IP packet behind the headers read so far.
    Unsupported(Unsupported),
    /// A header is truncated, or is inconsistent with itself or with the outer headers: [`Walk::error`] has
    /// the details.
    Error,
}

pub(super) type Step = Result<Next, Stop>;

#[derive(Debug)]
pub(super) struct Walk<'a, H> {
    pub(super) data: &'a [u8],
    /// Position of the cursor, in octets from the start of the frame.
    pub(super) at: usize,
    /// End of the frame on the wire, or of the payload according to the outer headers, in octets from the
    /// start of the frame.
    pub(super) end: usize,
    pub(super) limits: &'a Limits,
    pub(super) tunnel_ports: &'a TunnelPorts,
    /// True if the walk ends at the outermost IP packet.
    is_outermost: bool,
    pub(super) link: LinkInfo,
    depth: u32,
    /// Innermost IP packet so far; if `plain` is set, the IP header in this packet is not valid yet.
    pub(super) walked: &'a mut Walked<H>,
    /// Header of the innermost IP packet so far, if it is a typical IPv4 header. All its fields are read only
    /// at the end of the walk, because only the header of the last packet is needed.
    plain: Option<PlainIpv4<'a>>,
    is_found: bool,
    /// True if a length field exceeded the payload of its outer header.
    is_outer_len_bad: bool,
    error: Option<ParseError>,
}

impl<'a, H: HeaderRecorder> Walk<'a, H> {
    #[inline(always)]
    pub(super) fn new(
        frame: &Frame<'a>,
        entry: Option<Entry>,
        settings: &WalkSettings<'a>,
        walked: &'a mut Walked<H>,
    ) -> Self {
        Self {
            data: frame.data,
            at: entry.map_or(0, |entry| entry.offset),
            end: (frame.wire_len as usize).max(frame.data.len()),
            limits: settings.limits,
            tunnel_ports: settings.tunnel_ports,
            is_outermost: settings.decapsulation == Decapsulation::Outermost,
            link: entry.map(|entry| entry.link).unwrap_or_default(),
            depth: 0,
            walked,
            plain: None,
            is_found: false,
            is_outer_len_bad: false,
            error: None,
        }
    }

    fn step(&mut self, next: Next) -> Step {
        match next {
            Next::Protocol(EtherType::IPV4) => self.ip(EtherType::IPV4),
            Next::Protocol(EtherType::IPV6) => self.ip(EtherType::IPV6),
            Next::Protocol(ether_type) => self.protocol(ether_type),
            Next::RawIp => self.raw_ip(),
            Next::Ethernet => self.ethernet(),
            Next::Llc => self.llc(),
            Next::Ppp => self.ppp(),
        }
    }

    /// Returns the captured octets from the cursor to the end of the frame or of the outer payload.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..self.end.min(self.data.len())).unwrap_or_default()
    }

    /// Returns whether an IP packet was found, in which case the cursor is inside it.
    pub(super) const fn is_inside(&self) -> bool {
        self.is_found
    }

    /// Returns the number of octets on the wire from the cursor to the end of the frame or of the outer
    /// payload.
    #[inline]
    pub(super) fn wire_len(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// Returns the error for a header at the cursor that needs `need` octets, of which fewer were captured.
    #[cold]
    pub(super) fn truncated(&mut self, layer: Layer, need: usize) -> Stop {
        self.fail(ParseError::truncated(layer, self.at, need, self.rest().len()))
    }

    /// Returns the error for a length field of `need` octets at the cursor that exceeds the outer payload.
    #[cold]
    pub(super) fn bad_length(&mut self, layer: Layer, need: usize) -> Stop {
        self.fail(ParseError::new(layer, ParseErrorKind::BadLength, self.at, need, self.wire_len()))
    }

    #[cold]
    pub(super) fn too_deep(&mut self, layer: Layer, limit: u32) -> Stop {
        let (need, have) = (limit as usize + 1, limit as usize);
        self.fail(ParseError::new(layer, ParseErrorKind::TooDeep, self.at, need, have))
    }

    #[cold]
    fn fail(&mut self, error: ParseError) -> Stop {
        self.error = Some(error);
        Stop::Error
    }

    /// Sets the end of the outer payload to `len` octets after the cursor. If the payload already ends
    /// earlier, marks the length of an outer header as wrong.
    #[inline]
    pub(super) fn shorten(&mut self, len: usize) {
        if len > self.wire_len() {
            self.is_outer_len_bad = true;
        } else {
            self.end = self.at + len;
        }
    }

    /// Records an outer header of `len` octets at the cursor, moves the cursor behind it, and increments the
    /// depth of encapsulations.
    #[inline(always)]
    pub(super) fn enter(&mut self, kind: HeaderKind, id: u32, len: usize) -> Result<(), Stop> {
        self.deepen()?;
        self.pass(kind, id, len);
        Ok(())
    }

    /// Increments the depth of encapsulations; returns an error if it is already at its maximum.
    #[inline]
    pub(super) fn deepen(&mut self) -> Result<(), Stop> {
        if self.depth >= self.limits.encapsulation_depth_max {
            return Err(self.too_deep(Layer::Tunnel, self.limits.encapsulation_depth_max));
        }
        self.depth += 1;
        Ok(())
    }

    /// Records an outer header of `len` octets at the cursor, such as a VLAN tag or an MPLS label, and moves
    /// the cursor behind it, without incrementing the depth.
    #[inline]
    pub(super) fn pass(&mut self, kind: HeaderKind, id: u32, len: usize) {
        self.walked.encapsulation.push(kind, self.at, id);
        if kind.is_virtual_network() {
            self.link.vni = Some(id);
        }
        self.at += len;
    }

    /// Returns whether an IP header is likely at the offset `at` in the frame, where no other header
    /// indicates it: its lengths are consistent with the outer payload, or it is IPv4 with a valid checksum.
    pub(super) fn is_likely_ip(&self, at: usize, ether_type: EtherType) -> bool {
        let data = self.data.get(at..self.end.min(self.data.len())).unwrap_or_default();
        let wire_len = self.end.saturating_sub(at);
        let is_plain = ether_type == EtherType::IPV4 && PlainIpv4::read(data, wire_len).is_some();
        let is_summed = |ip: &IpHeader| !ip.is_ipv6 && ipv4::has_right_checksum(data);
        is_plain || self.inner_ip(at, ether_type).is_some_and(|ip| !ip.is_over_long || is_summed(&ip))
    }

    /// Returns the IP header at the offset `at` in the frame, inside another packet, if the octets there can
    /// be an IP header.
    fn inner_ip(&self, at: usize, ether_type: EtherType) -> Option<IpHeader> {
        let data = self.data.get(at..self.end.min(self.data.len()))?;
        let ip = ip_header(data, self.end - at, at, ether_type, self.limits).ok()?;
        // If segmentation offload left the outer packet without a length, this one has none either.
        let is_outer_without_len =
            self.is_found && self.plain.is_none() && self.walked.packet.ip.is_without_len();
        (!ip.is_without_len() || is_outer_without_len).then_some(ip)
    }

    fn raw_ip(&mut self) -> Step {
        let data = self.rest();
        match (ip::ether_type(data), ip::version(data)) {
            (Some(ether_type), _) => self.ip(ether_type),
            (None, Some(version)) => {
                let kind = ParseErrorKind::BadVersion;
                Err(self.fail(ParseError::new(Layer::RawIp, kind, self.at, version.into(), 0)))
            }
            (None, None) => Err(self.truncated(Layer::RawIp, 1)),
        }
    }

    /// Processes the IP packet at the cursor. It becomes the innermost packet so far if it is the first IP
    /// packet or its header can be inside another packet.
    #[inline(always)]
    fn ip(&mut self, ether_type: EtherType) -> Step {
        let plain = match ether_type {
            EtherType::IPV4 => PlainIpv4::read(self.rest(), self.wire_len()),
            _ => None,
        };
        let is_outer_len_bad = self.is_outer_len_bad;
        let (protocol, len, header_len, is_last) = match plain {
            Some(plain) => (plain.protocol(), plain.len(), PlainIpv4::HEADER_LEN, plain.is_fragment()),
            None => {
                self.other_ip(ether_type)?;
                let IpHeader { protocol, len, header_len, is_fragment, is_truncated, .. } =
                    self.walked.packet.ip;
                self.is_outer_len_bad |= self.walked.packet.ip.is_over_long;
                (protocol, len, header_len, is_fragment || is_truncated)
            }
        };
        self.plain = plain;
        self.is_found = true;
        self.walked.packet.depth = self.depth;
        self.walked.packet.is_outer_len_bad = is_outer_len_bad;
        self.walked.packet.offset = self.at;
        self.walked.packet.ether_type = ether_type;
        self.walked.packet.link = self.link;
        self.walked.encapsulation.settle();
        if self.walked.encapsulation.keeps_packets() {
            self.keep();
        }
        // A fragment holds only a part of its payload.
        if is_last || self.is_outermost {
            return Err(Stop::Done);
        }
        self.inside(protocol, len, header_len)
    }

    /// Reads the IP header at the cursor if it is not a typical IPv4 header: IPv6, or IPv4 with options or
    /// unusual lengths.
    #[inline(never)]
    fn other_ip(&mut self, ether_type: EtherType) -> Result<(), Stop> {
        if self.is_found {
            self.walked.packet.ip = self.inner_ip(self.at, ether_type).ok_or(Stop::Done)?;
            return Ok(());
        }
        let (data, wire_len) = (self.rest(), self.wire_len());
        let ip = &mut self.walked.packet.ip;
        read_ip_header(data, wire_len, self.at, ether_type, self.limits, ip).map_err(|error| self.fail(error))
    }

    /// Passes the IP packet that was just found to the recorder of outer headers.
    #[inline(never)]
    fn keep(&mut self) {
        let IpPacket { offset, ether_type, link, depth, is_outer_len_bad, .. } = self.walked.packet;
        let ip = self.plain.map_or(self.walked.packet.ip, PlainIpv4::header);
        let found = IpPacket { ip, offset, ether_type, link, depth, is_outer_len_bad, ..IpPacket::EMPTY };
        self.walked.encapsulation.keep(found);
    }

    fn outcome(mut self, stop: Stop) -> Result<(), NoPacket> {
        if self.is_found {
            if let Some(plain) = self.plain {
                self.walked.packet.ip = plain.header();
            }
            self.walked.encapsulation.finish();
            self.walked.packet.is_too_deep = false;
            if !matches!(stop, Stop::Done) {
                self.without_inner_packet(stop);
            }
            return Ok(());
        }
        self.note_other(stop);
        Err(match (stop, self.error.filter(|_| matches!(stop, Stop::Error))) {
            (Stop::Unsupported(unsupported), _) => NoPacket::Unsupported(unsupported),
            (_, Some(error)) if error.kind == ParseErrorKind::Truncated => NoPacket::Truncated(error),
            (_, Some(error)) => NoPacket::Malformed(error),
            (_, None) => NoPacket::Malformed(ParseError::truncated(Layer::RawIp, self.at, 0, 0)),
        })
    }

    /// Notes the payload at the cursor if it is of a protocol other than IP.
    #[cold]
    fn note_other(&mut self, stop: Stop) {
        if let Stop::Unsupported(what) = stop {
            let (offset, len) = (self.at, self.wire_len());
            self.walked.other = Some(OtherPayload { what, offset, len, link: self.link });
        }
    }

    /// Completes the packet that was found last if its payload is a tunnel without an IP packet. The packet is in the
    /// virtual network of the tunnel, unless flows are linked: the flow of the tunnel then contains the packets of all its
    /// networks.
    #[cold]
    #[inline(never)]
    fn without_inner_packet(&mut self, stop: Stop) {
        self.note_other(stop);
        let error = self.error.filter(|_| matches!(stop, Stop::Error));
        self.walked.packet.is_too_deep = error.is_some_and(|error| error.kind == ParseErrorKind::TooDeep);
        if !self.walked.encapsulation.keeps_packets() {
            self.walked.packet.link.vni = self.link.vni;
        }
    }
}
