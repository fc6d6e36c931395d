//! Errors of parsing: which layer failed, why, at which offset, and how many octets were missing.

use std::fmt;

/// The layer or header that could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Layer {
    /// Ethernet II, including its VLAN tags.
    Ethernet,
    /// Linux cooked capture, version 1 or 2.
    LinuxSll,
    /// The four-octet header of BSD null and loop captures.
    Null,
    /// PPP, with or without HDLC framing.
    Ppp,
    /// Logical link control and SNAP.
    Llc,
    /// PPP over Ethernet.
    Pppoe,
    /// MPLS label stack.
    Mpls,
    /// Cisco HDLC.
    Hdlc,
    /// Frame Relay.
    FrameRelay,
    /// FDDI.
    Fddi,
    /// Token Ring.
    TokenRing,
    /// IEEE 802.11.
    Ieee80211,
    /// The header that a driver puts before an 802.11 frame: radiotap, PPI, Prism, AVS.
    RadioHeader,
    /// Linux netfilter log.
    Nflog,
    /// IP over Fibre Channel.
    IpOverFc,
    /// MACsec.
    Macsec,
    /// Network Service Header.
    Nsh,
    /// A header that encapsulates an IP packet in another one.
    Tunnel,
    /// A raw IP packet whose version does not match the link type.
    RawIp,
    /// IPv4.
    Ipv4,
    /// IPv6 and its extension headers.
    Ipv6,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
    /// ICMP or ICMPv6.
    Icmp,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ethernet => "Ethernet",
            Self::LinuxSll => "Linux SLL",
            Self::Null => "BSD null",
            Self::Ppp => "PPP",
            Self::Llc => "LLC",
            Self::Pppoe => "PPPoE",
            Self::Mpls => "MPLS",
            Self::Hdlc => "Cisco HDLC",
            Self::FrameRelay => "Frame Relay",
            Self::Fddi => "FDDI",
            Self::TokenRing => "Token Ring",
            Self::Ieee80211 => "802.11",
            Self::RadioHeader => "radio",
            Self::Nflog => "NFLOG",
            Self::IpOverFc => "IP over Fibre Channel",
            Self::Macsec => "MACsec",
            Self::Nsh => "NSH",
            Self::Tunnel => "tunnel",
            Self::RawIp => "raw IP",
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
            Self::Icmp => "ICMP",
        })
    }
}

/// Kind of a parse error in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The captured data ends before the header does: the frame was truncated to a snap length, or was sent too
    /// short.
    Truncated,
    /// A length field is smaller than the header that contains it, or larger than the data that contains the header.
    BadLength,
    /// A version field has a value other than the version of the protocol.
    BadVersion,
    /// More headers are chained or nested than [`Limits`](crate::base::Limits) allows.
    TooDeep,
}

/// A header that could not be parsed. Small, `Copy`, without heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// The header that could not be parsed.
    pub layer: Layer,
    /// Kind of the parse error.
    pub kind: ParseErrorKind,
    /// Number of octets from the start of the frame to the header that could not be parsed.
    pub offset: u32,
    /// Number of octets that the header, or its length field, requires. For [`ParseErrorKind::BadVersion`], the
    /// version found.
    pub need: u32,
    /// Number of octets that were available for the header.
    pub have: u32,
}

impl ParseError {
    pub(crate) fn truncated(layer: Layer, offset: usize, need: usize, have: usize) -> Self {
        Self::new(layer, ParseErrorKind::Truncated, offset, need, have)
    }

    pub(crate) fn new(layer: Layer, kind: ParseErrorKind, offset: usize, need: usize, have: usize) -> Self {
        let clamp = |octets: usize| u32::try_from(octets).unwrap_or(u32::MAX);
        Self { layer, kind, offset: clamp(offset), need: clamp(need), have: clamp(have) }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { layer, offset, need, have, .. } = self;
        match self.kind {
            ParseErrorKind::Truncated => {
                write!(
                    f,
                    "{layer} header at offset {offset} needs {need} octets, but only {have} were captured"
                )
            }
            ParseErrorKind::BadLength => {
                write!(
                    f,
                    "{layer} header at offset {offset} has an invalid length of {need} octets ({have} are available)"
                )
            }
            ParseErrorKind::BadVersion => {
                write!(f, "{layer} header at offset {offset} has the unexpected version {need}")
            }
            ParseErrorKind::TooDeep => write!(f, "{layer} header at offset {offset} is nested too deep"),
        }
    }
}

impl std::error::Error for ParseError {}
