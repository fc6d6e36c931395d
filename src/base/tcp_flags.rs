//! The control bits of a TCP segment.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// Control bits of one TCP segment, or the union of the control bits of many segments: the twelve bits after the data
/// offset, including the reserved ones (RFC 9293 section 3.1, RFC 9565 section 3; AE is RFC 9768).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// FIN flag: no more data from the sender.
    pub const FIN: Self = Self(1);
    /// SYN flag: synchronize sequence numbers.
    pub const SYN: Self = Self(1 << 1);
    /// RST flag: reset the connection.
    pub const RST: Self = Self(1 << 2);
    /// PSH flag: push data to the receiving application.
    pub const PSH: Self = Self(1 << 3);
    /// ACK flag: the acknowledgment number is significant.
    pub const ACK: Self = Self(1 << 4);
    /// URG flag: the urgent pointer is significant.
    pub const URG: Self = Self(1 << 5);
    /// ECE flag: ECN echo.
    pub const ECE: Self = Self(1 << 6);
    /// CWR flag: congestion window reduced.
    pub const CWR: Self = Self(1 << 7);
    /// AE flag: accurate ECN; formerly the nonce sum.
    pub const AE: Self = Self(1 << 8);

    /// The three bits that are reserved for future use.
    pub const RESERVED: Self = Self(7 << 9);

    const LETTERS: [(Self, char); 9] = [
        (Self::AE, 'N'),
        (Self::CWR, 'C'),
        (Self::ECE, 'E'),
        (Self::URG, 'U'),
        (Self::ACK, 'A'),
        (Self::PSH, 'P'),
        (Self::RST, 'R'),
        (Self::SYN, 'S'),
        (Self::FIN, 'F'),
    ];

    /// Returns whether all control bits of `other` are set.
    #[must_use]
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether any control bit of `other` is set.
    #[must_use]
    #[inline]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for TcpFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for TcpFlags {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Display for TcpFlags {
    /// Writes one letter per set control bit, from the highest to the lowest: `AS`, `AP`, or `-` for none. An `x` stands
    /// for all reserved bits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 & 0xfff == 0 {
            return f.write_str("-");
        }
        if self.intersects(Self::RESERVED) {
            f.write_str("x")?;
        }
        Self::LETTERS
            .iter()
            .filter(|(bit, _)| self.contains(*bit))
            .try_for_each(|(_, letter)| write!(f, "{letter}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_begin_with_the_highest_bit() {
        assert_eq!((TcpFlags::SYN | TcpFlags::ACK).to_string(), "AS");
        assert_eq!(TcpFlags(0x1ff).to_string(), "NCEUAPRSF");
        assert_eq!(
            (TcpFlags(0x210).to_string(), TcpFlags(0xe00).to_string()),
            ("xA".to_owned(), "x".to_owned())
        );
        assert_eq!(TcpFlags::default().to_string(), "-");
    }
}
