//! What a packet came through.

use std::fmt;

use crate::base::HeaderKind;

/// A header that encloses the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncapsulationHeader {
    /// What it is.
    pub kind: HeaderKind,
    /// Octets from the start of the frame to it.
    pub offset: u32,
    /// A number that it carries, as its kind says.
    pub id: u32,
}

/// The headers that enclose a packet, outermost first, without the link's own. `Copy`, 12 octets a header.
///
/// Holds [`Encapsulation::LEN_MAX`] headers; of more than these, the innermost are left out.
#[derive(Clone, Copy)]
pub struct Encapsulation {
    headers: [EncapsulationHeader; Self::LEN_MAX],
    len: u8,
    /// IP headers among all of them, those that were left out too.
    level: u8,
}

impl Encapsulation {
    /// Headers that are kept.
    pub const LEN_MAX: usize = 16;

    /// No header.
    pub const NONE: Self = Self {
        headers: [EncapsulationHeader { kind: HeaderKind::Ethernet, offset: 0, id: 0 }; Self::LEN_MAX],
        len: 0,
        level: 0,
    };

    /// The headers, outermost first.
    #[must_use]
    pub fn headers(&self) -> &[EncapsulationHeader] {
        self.headers.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// IP packets around the packet.
    pub(crate) const fn level(&self) -> u32 {
        self.level as u32
    }
}

/// What a walk notes of its way: the headers, or nothing, which spares their writing and copying.
pub(super) trait Way: Copy {
    /// Nothing noted.
    const START: Self;

    fn push(&mut self, kind: HeaderKind, offset: usize, id: u32);

    /// IP packets around the place; zero if nothing is noted.
    fn level(&self) -> u32;
}

impl Way for Encapsulation {
    const START: Self = Self::NONE;

    fn push(&mut self, kind: HeaderKind, offset: usize, id: u32) {
        if let Some(place) = self.headers.get_mut(usize::from(self.len)) {
            *place = EncapsulationHeader { kind, offset: offset as u32, id };
            self.len += 1;
        }
        self.level = self.level.saturating_add(u8::from(kind == HeaderKind::Ip));
    }

    fn level(&self) -> u32 {
        self.level.into()
    }
}

impl Way for () {
    const START: Self = ();

    fn push(&mut self, _kind: HeaderKind, _offset: usize, _id: u32) {}

    fn level(&self) -> u32 {
        0
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
