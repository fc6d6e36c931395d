//! The walk itself: a cursor, where the enclosing header says that the frame ends, and the innermost IP packet so far.

use super::encapsulation::Way;
use super::ip::{PlainIpv4, read_ip_header};
use super::outcome::NoPacket;
use super::start;
use super::{
    Decapsulated, Decapsulation, Encapsulation, HeaderKind, IpHeader, IpPacket, LinkInfo, TunnelPorts,
    Unsupported, ip_header,
};
use crate::base::{EtherType, Frame, Layer, Limits, ParseError, ParseErrorKind};
use crate::wire::checksum::{fold, sum};

/// Finds the IP packet in a frame.
///
/// Reads all links and tunnels of `docs/design/link.md`, in any order, as deep as
/// [`Limits::encapsulation_depth_max`]. A tunnel is one only if its headers lead to an IP header that contradicts neither
/// itself nor them; otherwise the enclosing packet is the answer. Each header bounds what it encloses: a length field that
/// exceeds what encloses its header is cut to that, and marked ([`IpHeader::is_over_long`],
/// [`IpPacket::is_outer_len_bad`]). Keeps nothing, allocates nothing; the cost is linear in the number of headers.
#[must_use]
pub fn decapsulate(
    frame: &Frame<'_>,
    decapsulation: Decapsulation,
    tunnel_ports: &TunnelPorts,
    limits: &Limits,
) -> Decapsulated {
    let mut packet = IpPacket::empty(Encapsulation::START);
    match walk(frame, None, decapsulation.level_max(), tunnel_ports, limits, &mut packet) {
        Ok(()) => Decapsulated::Packet(packet),
        Err(NoPacket::Unsupported(unsupported)) => Decapsulated::Unsupported(unsupported),
        Err(NoPacket::Truncated(error)) => Decapsulated::Truncated(error),
        Err(NoPacket::Malformed(error)) => Decapsulated::Malformed(error),
    }
}

/// Where a walk begins that does not begin with the link: at an IP header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// Octets from the start of the frame to the IP header.
    pub(crate) offset: usize,
    /// What the headers before it said.
    pub(crate) link: LinkInfo,
}

/// The innermost packet that no more than `level_max` others enclose; from an IP header on, such as that of a datagram
/// that was put together, if there is an entry.
pub(crate) fn decapsulate_at(
    frame: &Frame<'_>,
    entry: Option<Entry>,
    level_max: u32,
    tunnel_ports: &TunnelPorts,
    limits: &Limits,
) -> Option<IpPacket> {
    let mut packet = IpPacket::empty(Encapsulation::START);
    walk(frame, entry, level_max, tunnel_ports, limits, &mut packet).ok()?;
    Some(packet)
}

/// The same, written in place and without a list of what encloses the packet: for the extractor, which needs none.
#[inline]
pub(crate) fn find_packet(
    frame: &Frame<'_>,
    decapsulation: Decapsulation,
    tunnel_ports: &TunnelPorts,
    limits: &Limits,
    packet: &mut IpPacket<()>,
) -> Result<(), NoPacket> {
    walk(frame, None, decapsulation.level_max(), tunnel_ports, limits, packet)
}

#[inline]
fn walk<W: Way>(
    frame: &Frame<'_>,
    entry: Option<Entry>,
    level_max: u32,
    tunnel_ports: &TunnelPorts,
    limits: &Limits,
    packet: &mut IpPacket<W>,
) -> Result<(), NoPacket> {
    let mut walk = Walk {
        data: frame.data,
        at: entry.map_or(0, |entry| entry.offset),
        end: (frame.wire_len as usize).max(frame.data.len()),
        limits,
        tunnel_ports,
        level_max,
        link: entry.map(|entry| entry.link).unwrap_or_default(),
        way: W::START,
        depth: 0,
        packet,
        plain: None,
        is_found: false,
        is_outer_len_bad: false,
        error: None,
    };
    let mut next = match entry {
        None => start::link(&mut walk, frame.link_type),
        Some(_) => Ok(Next::RawIp),
    };
    loop {
        next = match next {
            Ok(next) => walk.step(next),
            Err(stop) => return walk.outcome(stop),
        }
    }
}

/// What stands at the cursor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// What an EtherType announced.
    Protocol(EtherType),
    /// IPv4 or IPv6, by its version.
    RawIp,
    /// An Ethernet header.
    Ethernet,
    /// Logical link control.
    Llc,
    /// PPP.
    Ppp,
}

/// Why the walk ends. Small, so that a step hands it on in a register.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// The innermost packet is found.
    Done,
    /// Here is none.
    Unsupported(Unsupported),
    /// A header is cut, or contradicts itself or what encloses it: [`Walk::error`] says how.
    Error,
}

pub(super) type Step = Result<Next, Stop>;

#[derive(Debug)]
pub(super) struct Walk<'a, W> {
    pub(super) data: &'a [u8],
    /// The cursor.
    pub(super) at: usize,
    /// Where the frame ended on the wire, or where the enclosing header says that its payload ends.
    pub(super) end: usize,
    pub(super) limits: &'a Limits,
    pub(super) tunnel_ports: &'a TunnelPorts,
    /// The walk ends at a packet that so many others enclose; zero or all if the way is not noted.
    level_max: u32,
    pub(super) link: LinkInfo,
    pub(super) way: W,
    depth: u32,
    /// The innermost IP packet so far; without its header if that is `plain`.
    packet: &'a mut IpPacket<W>,
    /// Its header, if it is a plain one: read again at the end, since of several headers only the last one counts.
    plain: Option<PlainIpv4<'a>>,
    is_found: bool,
    /// A length field was beyond what encloses its header.
    is_outer_len_bad: bool,
    error: Option<ParseError>,
}

impl<'a, W: Way> Walk<'a, W> {
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

    /// What was captured from the cursor to the end.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..self.end.min(self.data.len())).unwrap_or_default()
    }

    /// Whether an IP packet was found, so that the cursor is inside it.
    pub(super) const fn is_inside(&self) -> bool {
        self.is_found
    }

    /// Octets on the wire from the cursor to the end.
    #[inline]
    pub(super) fn wire_len(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// The header at the cursor needs so many octets and does not have them.
    #[cold]
    pub(super) fn truncated(&mut self, layer: Layer, need: usize) -> Stop {
        self.fail(ParseError::truncated(layer, self.at, need, self.rest().len()))
    }

    /// A length field asks for more than what encloses it.
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

    /// Sets the end to so many octets from the cursor, or leaves it where what encloses the cursor ends earlier.
    #[inline]
    pub(super) fn shorten(&mut self, len: usize) {
        if len > self.wire_len() {
            self.is_outer_len_bad = true;
        } else {
            self.end = self.at + len;
        }
    }

    /// Notes an enclosing header at the cursor and steps over it. Each costs one of the depth, save tags and labels.
    #[inline(always)]
    pub(super) fn enter(&mut self, kind: HeaderKind, id: u32, len: usize) -> Result<(), Stop> {
        self.deepen()?;
        self.pass(kind, id, len);
        Ok(())
    }

    /// Takes one of the depth.
    #[inline]
    pub(super) fn deepen(&mut self) -> Result<(), Stop> {
        if self.depth >= self.limits.encapsulation_depth_max {
            return Err(self.too_deep(Layer::Tunnel, self.limits.encapsulation_depth_max));
        }
        self.depth += 1;
        Ok(())
    }

    /// Notes a tag or a label at the cursor and steps over it.
    #[inline]
    pub(super) fn pass(&mut self, kind: HeaderKind, id: u32, len: usize) {
        self.way.push(kind, self.at, id);
        if kind.is_virtual_network() {
            self.link.vni = Some(id);
        }
        self.at += len;
    }

    /// Whether an IP header is likely to stand at an offset where no header announces one: its lengths agree with what
    /// encloses it, or it is IPv4 and its checksum is right.
    pub(super) fn is_likely_ip(&self, at: usize, ether_type: EtherType) -> bool {
        let data = self.data.get(at..self.end.min(self.data.len())).unwrap_or_default();
        let wire_len = self.end.saturating_sub(at);
        let is_plain = ether_type == EtherType::IPV4 && PlainIpv4::read(data, wire_len).is_some();
        let is_summed = |ip: &IpHeader| !ip.is_ipv6 && has_right_checksum(data);
        is_plain || self.inner_ip(at, ether_type).is_some_and(|ip| !ip.is_over_long || is_summed(&ip))
    }

    /// The header at an offset inside another packet, if it can be one there.
    fn inner_ip(&self, at: usize, ether_type: EtherType) -> Option<IpHeader> {
        let data = self.data.get(at..self.end.min(self.data.len()))?;
        let ip = ip_header(data, self.end - at, at, ether_type, self.limits).ok()?;
        // Where segmentation offload left the enclosing packet without a length, this one has none either.
        let is_outer_without_len = self.is_found && self.plain.is_none() && self.packet.ip.is_without_len();
        (!ip.is_without_len() || is_outer_without_len).then_some(ip)
    }

    /// Whether an address of the IPv6 header at the cursor is a Teredo address (RFC 4380 section 2.6).
    pub(super) fn has_teredo_address(&self) -> bool {
        const PREFIX: [u8; 4] = [0x20, 0x01, 0, 0];
        const ADDRESSES: [usize; 2] = [8, 24];
        ADDRESSES.iter().any(|at| self.rest().get(*at..).is_some_and(|address| address.starts_with(&PREFIX)))
    }

    fn raw_ip(&mut self) -> Step {
        match self.rest().first().map(|octet| octet >> 4) {
            Some(4) => self.ip(EtherType::IPV4),
            Some(6) => self.ip(EtherType::IPV6),
            Some(version) => {
                let kind = ParseErrorKind::BadVersion;
                Err(self.fail(ParseError::new(Layer::RawIp, kind, self.at, version.into(), 0)))
            }
            None => Err(self.truncated(Layer::RawIp, 1)),
        }
    }

    /// An IP packet: the innermost so far, if it is the first or can be one inside another.
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
                let IpHeader { protocol, len, header_len, is_fragment, is_cut, .. } = self.packet.ip;
                self.is_outer_len_bad |= self.packet.ip.is_over_long;
                (protocol, len, header_len, is_fragment || is_cut)
            }
        };
        self.plain = plain;
        self.is_found = true;
        self.packet.depth = self.depth;
        self.packet.is_outer_len_bad = is_outer_len_bad;
        self.packet.offset = self.at;
        self.packet.ether_type = ether_type;
        self.packet.link = self.link;
        self.packet.encapsulation = self.way;
        // A fragment holds a part of what it encloses.
        if is_last || self.way.level() >= self.level_max {
            return Err(Stop::Done);
        }
        self.inside(protocol, len, header_len)
    }

    /// Reads the header of a packet that is not a plain one.
    #[inline(never)]
    fn other_ip(&mut self, ether_type: EtherType) -> Result<(), Stop> {
        if self.is_found {
            self.packet.ip = self.inner_ip(self.at, ether_type).ok_or(Stop::Done)?;
            return Ok(());
        }
        let (data, wire_len) = (self.rest(), self.wire_len());
        let ip = &mut self.packet.ip;
        read_ip_header(data, wire_len, self.at, ether_type, self.limits, ip).map_err(|error| self.fail(error))
    }

    fn outcome(self, stop: Stop) -> Result<(), NoPacket> {
        let error = self.error.filter(|_| matches!(stop, Stop::Error));
        if self.is_found {
            if let Some(plain) = self.plain {
                self.packet.ip = plain.header();
            }
            self.packet.is_too_deep = error.is_some_and(|error| error.kind == ParseErrorKind::TooDeep);
            return Ok(());
        }
        Err(match (stop, error) {
            (Stop::Unsupported(unsupported), _) => NoPacket::Unsupported(unsupported),
            (_, Some(error)) if error.kind == ParseErrorKind::Truncated => NoPacket::Truncated(error),
            (_, Some(error)) => NoPacket::Malformed(error),
            (_, None) => NoPacket::Malformed(ParseError::truncated(Layer::RawIp, self.at, 0, 0)),
        })
    }
}

/// Whether the IPv4 header at the start of `data` is there with its options and agrees with its checksum.
fn has_right_checksum(data: &[u8]) -> bool {
    let header_len = usize::from(data.first().map_or(0, |octet| octet & 0xf)) * 4;
    data.get(..header_len).is_some_and(|header| fold(sum(header)) == 0xffff)
}
