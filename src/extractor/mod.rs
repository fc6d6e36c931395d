//! From an IP packet to the flow that it belongs to.
//!
//! [`Extractor::extract`] reads a frame's headers and gives a [`Packet`]: the Flow Key, the side that sent it, its
//! lengths, and what the tracker needs of its transport header. Common frames (Ethernet with up to two VLAN tags,
//! IPv4 without options or IPv6 without extension headers, TCP or UDP) take a path that reads the fields in place;
//! all others take the general path. Both give the same answer for the same bytes, which a property test and a
//! fuzz target hold. Keeps nothing, allocates nothing.

mod fast;
mod general;
mod packet;
mod policy;
mod quoted;
mod skip;

pub use packet::{Packet, PacketMarks, Transport};
pub use policy::{Direction, KeyPolicy, Scope};
pub use quoted::quoted_key;
pub use skip::{Skip, SkipStats};

pub use crate::link::{Decapsulation, TunnelPorts};

use crate::base::{Frame, Limits};
use crate::link::{Entry, IpPacket, PortSet, decapsulate_at};

/// Turns frames into packets under one [`KeyPolicy`]. Stateless; `Copy`.
#[derive(Clone, Copy, Debug)]
pub struct Extractor {
    policy: KeyPolicy,
    limits: Limits,
    /// The scope of all keys, if the policy asks for nothing else than a five-tuple with it.
    plain_scope: Option<u32>,
    /// UDP ports behind which the general path looks for a tunnel.
    tunnel_ports: PortSet,
}

impl Default for Extractor {
    fn default() -> Self {
        Self::new(KeyPolicy::DEFAULT)
    }
}

impl Extractor {
    /// An extractor with a policy of its own and default limits.
    #[must_use]
    pub const fn new(policy: KeyPolicy) -> Self {
        let tunnel_ports = policy.tunnel_ports.all(policy.decapsulation);
        Self { policy, limits: Limits::DEFAULT, plain_scope: policy.plain_scope(), tunnel_ports }
    }

    /// The same with limits of the caller's.
    #[must_use]
    pub const fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The policy in use.
    #[must_use]
    pub const fn policy(&self) -> &KeyPolicy {
        &self.policy
    }

    /// The packet in a frame.
    ///
    /// Costs a few nanoseconds for a common frame, and time linear in the number of headers for others.
    ///
    /// # Errors
    ///
    /// A [`Skip`] for a frame that holds no IP packet, or whose IP header is cut or contradicts itself. A frame that
    /// is cut behind the addresses is a packet all the same, tracked from what is there.
    #[inline]
    pub fn extract<'a>(&self, frame: &Frame<'a>) -> Result<Packet<'a>, Skip> {
        let mut packet = Packet::EMPTY;
        self.extract_into(frame, &mut packet)?;
        Ok(packet)
    }

    /// The same, written over a packet that the caller keeps: spares the copy that returning one costs.
    ///
    /// # Errors
    ///
    /// As [`Extractor::extract`]; what `packet` holds is then of no use.
    #[inline(always)]
    pub fn extract_into<'a>(&self, frame: &Frame<'a>, packet: &mut Packet<'a>) -> Result<(), Skip> {
        // Where fewer tags are allowed than the fast path walks, the general path counts them.
        if self.limits.vlan_tag_count_max >= fast::VLAN_TAGS as u32
            && fast::read(frame, &self.policy, self.plain_scope, &self.tunnel_ports, packet)
        {
            return Ok(());
        }
        *packet = general::packet(frame, &self.policy, &self.limits)?;
        Ok(())
    }

    /// The innermost packet of a frame with all that encloses it, or of an IP packet at an offset in it; slower.
    pub(crate) fn find(&self, frame: &Frame<'_>, entry: Option<Entry>) -> Option<IpPacket> {
        self.find_at(frame, entry, self.policy.decapsulation.level_max())
    }

    /// The same, of the packets that no more than `level_max` others enclose.
    pub(crate) fn find_at(
        &self,
        frame: &Frame<'_>,
        entry: Option<Entry>,
        level_max: u32,
    ) -> Option<IpPacket> {
        decapsulate_at(frame, entry, level_max, &self.policy.tunnel_ports, &self.limits)
    }

    /// The packet that [`find`](Self::find) found.
    pub(crate) fn packet<'a>(&self, frame: &Frame<'a>, found: &IpPacket) -> Packet<'a> {
        general::with_transport(frame, &self.policy, found)
    }

    /// The limits in use.
    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The same by the general path alone: for tests that compare the two.
    ///
    /// # Errors
    ///
    /// As [`Extractor::extract`].
    #[doc(hidden)]
    pub fn extract_general<'a>(&self, frame: &Frame<'a>) -> Result<Packet<'a>, Skip> {
        general::packet(frame, &self.policy, &self.limits)
    }
}
