//! Extraction: finds the flow to which an IP packet belongs.
//!
//! [`Extractor::extract`] reads the headers of a frame and returns a [`Packet`]: the Flow Key, the side that
//! sent it, its lengths, and the fields of its transport header that the tracker needs. Common frames
//! (Ethernet with up to two VLAN tags, IPv4 without options or IPv6 without extension headers, TCP or UDP)
//! take the fast path, which reads the fields in place; all other frames take the general path. Both return
//! the same result for the same bytes, which a property test and a fuzz target check. The extractor keeps no
//! state and does not allocate.
//!
//! A program that needs the key of each packet, but no flow table, can use the extractor alone. In this capture, two
//! pairs of hosts use the same addresses and ports in different VLANs, so the [`KeyPolicy`] determines the number of
//! flows:
//!
//! ```
//! use flowgauge::base::{FrameBatch, IpProtocol};
//! use flowgauge::decode::extractor::{Extractor, KeyPolicy};
//! use flowgauge::source::{FileSource, Source};
//! use std::collections::HashSet;
//!
//! let mut policy = KeyPolicy::default();
//! policy.vlan_ids = true;
//! let extractors = [Extractor::default(), Extractor::new(policy)];
//! let mut keys = [HashSet::new(), HashSet::new()];
//! let mut source = FileSource::open("examples/data/vlan.pcapng")?;
//! let mut batch = FrameBatch::new();
//! while !source.next_batch(&mut batch)?.is_end() {
//!     for frame in batch.iter().filter(|frame| frame.interface == 0) {
//!         for (extractor, keys) in extractors.iter().zip(&mut keys) {
//!             keys.extend(extractor.extract(&frame).ok().map(|packet| packet.key));
//!         }
//!     }
//! }
//! let counts = keys.map(|keys| keys.iter().filter(|key| key.protocol() == IpProtocol::TCP).count());
//! assert_eq!(counts, [2, 4]);
//! # Ok::<(), flowgauge::source::Error>(())
//! ```
//!
//! A program that parses packets itself creates them with [`Packet::builder`].

mod builder;
mod fast;
mod general;
mod packet;
mod policy;
mod quoted;
mod skip;

pub use builder::{PacketBuilder, PacketError};
pub use policy::{Direction, KeyPolicy, Scope};
#[doc(hidden)]
pub use quoted::quoted_key;
pub use skip::{Skip, SkipStats};

pub use crate::base::{Packet, PacketMarks, TcpSegment, Transport};
pub use crate::decode::link::{Decapsulation, TunnelPorts};

use crate::base::{Frame, Limits};
use crate::decode::link::{Entry, HeaderRecorder, IpPacket, NoPacket, PortSet, Walked, find_packet};
use crate::decode::neighbor::HSRP_PORTS;

/// Converts frames to packets under one [`KeyPolicy`]. Stateless; `Copy`.
#[derive(Clone, Copy, Debug)]
pub struct Extractor {
    policy: KeyPolicy,
    limits: Limits,
    /// Scope of all flow keys, if the policy requests only five-tuple biflows with a fixed scope.
    plain_scope: Option<u32>,
    /// UDP ports that may identify a tunnel; the general path processes packets with such a port.
    tunnel_ports: PortSet,
}

impl Default for Extractor {
    fn default() -> Self {
        Self::new(KeyPolicy::DEFAULT)
    }
}

impl Extractor {
    /// Creates an extractor with the given policy and default limits.
    #[must_use]
    pub const fn new(policy: KeyPolicy) -> Self {
        let tunnel_ports = policy.tunnel_ports.all(policy.decapsulation, HSRP_PORTS);
        Self { policy, limits: Limits::DEFAULT, plain_scope: policy.plain_scope(), tunnel_ports }
    }

    /// Returns the extractor with the given limits.
    #[must_use]
    pub const fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the key policy in use.
    #[must_use]
    pub const fn policy(&self) -> &KeyPolicy {
        &self.policy
    }

    /// Returns the IP packet in a frame.
    ///
    /// Costs a few nanoseconds for a common frame, and time linear in the number of headers for others.
    ///
    /// # Errors
    ///
    /// Returns a [`Skip`] for a frame that holds no IP packet, or whose IP header is truncated or
    /// inconsistent. A frame that is truncated behind the addresses still yields a packet, with the fields
    /// that are present.
    #[inline]
    pub fn extract<'a>(&self, frame: &Frame<'a>) -> Result<Packet<'a>, Skip> {
        let mut packet = Packet::EMPTY;
        self.extract_into(frame, &mut packet)?;
        Ok(packet)
    }

    /// Replaces the caller's packet with the packet in a frame, which avoids the copy of returning a packet.
    ///
    /// # Errors
    ///
    /// Same as [`Extractor::extract`]; the content of `packet` is then unspecified.
    #[inline(always)]
    pub fn extract_into<'a>(&self, frame: &Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
        if self.read_in_place(frame, packet) {
            return Ok(());
        }
        *packet = general::packet(frame, &self.policy, &self.limits)?;
        packet.note_link_type(frame.link_type);
        Ok(())
    }

    /// Reads a common frame on the fast path and writes its packet to `packet`. Returns false if the frame is
    /// not a common one, so that a walk has to find the packet.
    #[inline(always)]
    pub(in crate::decode) fn read_in_place<'a>(&self, frame: &Frame<'a>, packet: &mut Packet<'a>) -> bool {
        // If fewer tags are allowed than the fast path walks, the general path counts them.
        self.limits.vlan_tag_count_max >= fast::VLAN_TAGS as u32
            && fast::read(frame, &self.policy, self.plain_scope, &self.tunnel_ports, packet)
    }

    /// Walks the headers of a frame to find its innermost IP packet. The walk starts at the IP header that
    /// `entry` describes, or at the start of the frame if `entry` is `None`.
    #[inline(never)]
    pub(in crate::decode) fn walk<H: HeaderRecorder>(
        &self,
        frame: &Frame<'_>,
        entry: Option<Entry>,
        walked: &mut Walked<H>,
    ) -> Result<(), NoPacket> {
        find_packet(frame, entry, &self.policy.walk_settings(&self.limits), walked)
    }

    /// Returns the packet whose IP header a walk found in a frame; reads the transport header.
    pub(in crate::decode) fn packet<'a>(&self, frame: &Frame<'a>, found: &IpPacket) -> Packet<'a> {
        general::with_transport(frame, &self.policy, found)
    }

    /// Returns the limits in use.
    pub(in crate::decode) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the packet in a frame by the general path alone, for tests that compare the two paths.
    ///
    /// # Errors
    ///
    /// Same as [`Extractor::extract`].
    #[doc(hidden)]
    pub fn extract_general<'a>(&self, frame: &Frame<'a>) -> Result<Packet<'a>, Skip> {
        let mut packet = general::packet(frame, &self.policy, &self.limits)?;
        packet.note_link_type(frame.link_type);
        Ok(packet)
    }
}
