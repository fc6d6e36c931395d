//! Headers around a packet.

use std::fmt;

use super::IpPacket;
use crate::base::HeaderKind;

/// Outer header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncapsulationHeader {
    /// Kind of header.
    pub kind: HeaderKind,
    /// Octets from the start of the frame to the header.
    pub offset: u32,
    /// Identifier in the header, whose meaning depends on the kind.
    pub id: u32,
}

/// Outer headers of a packet, outermost first, without the link's own. `Copy`, 12 octets per header.
///
/// Holds [`Encapsulation::LEN_MAX`] headers; if there are more, the innermost are omitted.
#[derive(Clone, Copy)]
pub struct Encapsulation {
    headers: [EncapsulationHeader; Self::LEN_MAX],
    len: u8,
    /// Number of IP headers, including those that were omitted.
    level: u8,
    /// Length up to the last packet that a walk found.
    settled_len: u8,
    settled_level: u8,
}

impl Encapsulation {
    /// Maximum number of headers that are kept.
    pub const LEN_MAX: usize = 16;

    /// No header.
    pub const NONE: Self = Self {
        headers: [EncapsulationHeader { kind: HeaderKind::Ethernet, offset: 0, id: 0 }; Self::LEN_MAX],
        len: 0,
        level: 0,
        settled_len: 0,
        settled_level: 0,
    };

    /// Returns the headers, outermost first.
    #[must_use]
    pub fn headers(&self) -> &[EncapsulationHeader] {
        self.headers.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// Record of the headers that a walk passes: all of them, or none, which avoids writing them.
///
/// A walk may pass headers that lead to no packet: only those before a packet that was found count.
pub(crate) trait Way {
    /// Clears the record of an earlier walk.
    fn begin(&mut self);

    fn push(&mut self, kind: HeaderKind, offset: usize, id: u32);

    /// Returns the number of IP headers so far; zero if nothing is recorded.
    fn level(&self) -> u32;

    /// Records that a packet was found behind the headers so far.
    fn settle(&mut self);

    /// Returns whether [`keep`](Self::keep) is to be called for each packet.
    fn keeps_packets(&self) -> bool {
        false
    }

    /// Keeps the packet that was just found.
    fn keep(&mut self, _packet: IpPacket<()>) {}

    /// Drops the headers behind the last packet.
    fn finish(&mut self);
}

impl Way for Encapsulation {
    fn begin(&mut self) {
        (self.len, self.level, self.settled_len, self.settled_level) = (0, 0, 0, 0);
    }

    fn push(&mut self, kind: HeaderKind, offset: usize, id: u32) {
        if let Some(header) = self.headers.get_mut(usize::from(self.len)) {
            *header = EncapsulationHeader { kind, offset: offset as u32, id };
            self.len += 1;
        }
        self.level = self.level.saturating_add(u8::from(kind == HeaderKind::Ip));
    }

    fn level(&self) -> u32 {
        self.level.into()
    }

    fn settle(&mut self) {
        (self.settled_len, self.settled_level) = (self.len, self.level);
    }

    fn finish(&mut self) {
        (self.len, self.level) = (self.settled_len, self.settled_level);
    }
}

impl Way for () {
    fn begin(&mut self) {}

    fn push(&mut self, _kind: HeaderKind, _offset: usize, _id: u32) {}

    fn level(&self) -> u32 {
        0
    }

    fn settle(&mut self) {}

    fn finish(&mut self) {}
}

/// Headers around the innermost packet of a frame, and the packets around it. Reused from walk to walk, so it
/// allocates only when a frame is deeper than all before.
#[derive(Debug)]
pub(crate) struct Trail {
    headers: Encapsulation,
    is_all_kept: bool,
    packets: Vec<(IpPacket<()>, u8)>,
}

impl Trail {
    /// Creates a trail of headers, and of all packets if `is_all_kept`.
    pub(crate) const fn new(is_all_kept: bool) -> Self {
        Self { headers: Encapsulation::NONE, is_all_kept, packets: Vec::new() }
    }

    /// Returns the headers around the innermost packet, outermost first.
    pub(crate) fn headers(&self) -> &[EncapsulationHeader] {
        self.headers.headers()
    }

    /// Returns the packets around the innermost one, outermost first, each with the headers around it; none
    /// unless all are kept.
    pub(crate) fn outer_packets(&self) -> impl Iterator<Item = (&IpPacket<()>, &[EncapsulationHeader])> {
        let (_, outer) = self.packets.split_last().unwrap_or((&EMPTY, &[]));
        outer.iter().map(|(packet, header_count)| {
            (packet, self.headers().get(..usize::from(*header_count)).unwrap_or_default())
        })
    }
}

const EMPTY: (IpPacket<()>, u8) = (IpPacket::empty(()), 0);

impl Way for Trail {
    fn begin(&mut self) {
        self.headers.begin();
        self.packets.clear();
    }

    fn push(&mut self, kind: HeaderKind, offset: usize, id: u32) {
        self.headers.push(kind, offset, id);
    }

    fn level(&self) -> u32 {
        self.headers.level()
    }

    fn settle(&mut self) {
        self.headers.settle();
    }

    fn keeps_packets(&self) -> bool {
        self.is_all_kept
    }

    fn keep(&mut self, packet: IpPacket<()>) {
        self.packets.push((packet, self.headers.len));
    }

    fn finish(&mut self) {
        self.headers.finish();
    }
}

impl PartialEq for Encapsulation {
    fn eq(&self, other: &Self) -> bool {
        self.headers() == other.headers()
    }
}

impl Eq for Encapsulation {}

impl Default for Encapsulation {
    fn default() -> Self {
        Self::NONE
    }
}

impl fmt::Debug for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.headers()).finish()
    }
}
