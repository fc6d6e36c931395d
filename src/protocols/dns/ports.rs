//! Sets of ports in DNS WKS records.

use std::fmt;

/// A set of ports in a WKS record, one bit each starting at port 0 (RFC 1035 section 3.4.2). Displayed with spaces
/// between the ports.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PortSet<'m>(&'m [u8]);

impl<'m> PortSet<'m> {
    /// Creates a set of ports from its octets; `None` if there are more bits than ports.
    pub(super) fn read(octets: &'m [u8]) -> Option<Self> {
        (octets.len() <= 8192).then_some(Self(octets))
    }

    /// Returns whether the set contains no port.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ports().next().is_none()
    }

    /// Iterates over the ports in ascending order.
    pub fn ports(&self) -> impl Iterator<Item = u16> + use<'m> {
        let octets = self.0.iter().zip((0..=u16::MAX).step_by(8));
        octets.flat_map(|(octet, first)| {
            (0..8).filter(move |bit| octet & (0x80 >> bit) != 0).map(move |bit| first + bit)
        })
    }
}

impl fmt::Display for PortSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, port) in self.ports().enumerate() {
            write!(f, "{}{port}", if place > 0 { " " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for PortSet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}
