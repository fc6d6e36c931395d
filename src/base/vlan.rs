//! The VLAN ids of a frame, packed into three octets.

use std::fmt;

/// Up to two VLAN ids, outermost first, as 802.1Q and 802.1ad stacks have in practice.
///
/// For a deeper stack, the outermost and the innermost id are kept. An id of zero (a priority tag) means that the
/// frame belongs to no VLAN (IEEE 802.1Q, 9.6) and is omitted; 4095 is kept although it is reserved.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VlanIds(u32);

impl VlanIds {
    /// The stack without VLAN ids.
    pub const NONE: Self = Self(0);

    const ID: u32 = 0xfff;

    /// Creates VLAN ids from the lower 24 bits: outer id, then inner id, 12 bits each.
    #[inline]
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits & 0xff_ffff)
    }

    #[inline]
    pub(crate) const fn to_bits(self) -> u32 {
        self.0
    }

    /// Returns the stack with one more VLAN id inside. Only the low 12 bits of `id` are used.
    #[must_use]
    #[inline]
    pub const fn push(self, id: u16) -> Self {
        let id = id as u32 & Self::ID;
        if id == 0 {
            self
        } else if self.0 == 0 {
            Self(id << 12)
        } else {
            Self(self.0 & !Self::ID | id)
        }
    }

    /// Returns whether there are no VLAN ids.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Iterates over the VLAN ids, outermost first.
    pub fn iter(self) -> impl Iterator<Item = u16> {
        [self.0 >> 12, self.0 & Self::ID].into_iter().filter(|id| *id != 0).map(|id| id as u16)
    }

    /// Returns whether a VLAN id is in the stack.
    #[must_use]
    pub fn contains(self, id: u16) -> bool {
        self.iter().any(|own| own == id)
    }
}

impl fmt::Debug for VlanIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Display for VlanIds {
    /// Writes the VLAN ids separated by dots, outermost first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, id) in self.iter().enumerate() {
            if place > 0 {
                f.write_str(".")?;
            }
            write!(f, "{id}")?;
        }
        Ok(())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for VlanIds {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for VlanIds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<u16>::deserialize(deserializer).map(|ids| ids.into_iter().fold(Self::NONE, Self::push))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deep_stack_keeps_its_outermost_and_innermost_tags() {
        let stack = VlanIds::NONE.push(10).push(20).push(30);
        assert_eq!(stack.iter().collect::<Vec<_>>(), [10, 30]);
        assert!(stack.contains(30) && !stack.contains(20));
    }

    #[test]
    fn priority_tags_are_not_vlans() {
        assert!(VlanIds::NONE.push(0).is_empty());
        assert_eq!(VlanIds::NONE.push(0).push(7).to_string(), "7");
    }
}
