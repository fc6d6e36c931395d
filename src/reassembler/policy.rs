//! Policies for overlapping segments and for memory limits.

use std::fmt;
use std::str::FromStr;

/// Policy that selects the bytes to keep where a segment overlaps a held one. Delivered bytes never change.
///
/// The rules are those that J. Novak and S. Sturges measured on hosts (Target-Based TCP Stream Reassembly, 2007),
/// expressed in terms of where the held segment and the new one begin and end. [`Linux`](Self::Linux) is checked
/// against the running kernel.
///
/// The default is [`Linux`](Self::Linux), because most servers today run it. Select another policy if the operating
/// system of the receiving host is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OverlapPolicy {
    /// The bytes received first are kept: HP-UX 11 (2007), and the behavior that RFC 9293 section 3.10.7.4 suggests.
    First,
    /// The bytes received last are kept: Cisco IOS (2007).
    Last,
    /// A new segment replaces a held one that begins after the start of the new one: 4.4BSD and its derivatives,
    /// FreeBSD, OpenBSD, macOS, AIX, IRIX (2007).
    Bsd,
    /// A new segment replaces a held one that begins later, or that begins at the same octet and ends no later: Linux
    /// up to 2.2 (1999).
    OldLinux,
    /// A new segment replaces a held one that begins later, or that begins at the same octet and ends earlier; adjacent
    /// held segments count as one: Linux since 2.4 (2001).
    #[default]
    Linux,
    /// A new segment replaces a held one that begins later, as in [`Bsd`](Self::Bsd): Windows 95 to Server 2003 (2003).
    Windows,
    /// The bytes received first are kept: Windows Vista (2007) and its successors.
    Vista,
    /// A new segment replaces a held one that ends earlier, or that ends at the same octet and begins no earlier:
    /// Solaris 8 to 10 (2005).
    Solaris,
}

impl OverlapPolicy {
    /// All overlap policies.
    pub const ALL: [Self; 8] = [
        Self::First,
        Self::Last,
        Self::Bsd,
        Self::OldLinux,
        Self::Linux,
        Self::Windows,
        Self::Vista,
        Self::Solaris,
    ];

    /// Returns the name of the policy in text: `first`, `last`, `bsd`, `old_linux`, `linux`, `windows`, `vista` or
    /// `solaris`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
            Self::Bsd => "bsd",
            Self::OldLinux => "old_linux",
            Self::Linux => "linux",
            Self::Windows => "windows",
            Self::Vista => "vista",
            Self::Solaris => "solaris",
        }
    }

    /// Returns whether the bytes of a new segment replace those of a held segment that it overlaps. Each argument is a
    /// range of stream offsets: of the segment's first octet, and after its last octet.
    #[must_use]
    #[doc(hidden)]
    pub const fn new_wins(self, held: (u64, u64), new: (u64, u64)) -> bool {
        let begins_before = new.0 < held.0;
        let begins_with = new.0 == held.0;
        match self {
            Self::First | Self::Vista => false,
            Self::Last => true,
            Self::Bsd | Self::Windows => begins_before,
            Self::OldLinux => begins_before || (begins_with && new.1 >= held.1),
            Self::Linux => begins_before || (begins_with && new.1 > held.1),
            Self::Solaris => new.1 > held.1 || (new.1 == held.1 && new.0 <= held.0),
        }
    }
}

impl fmt::Display for OverlapPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error for a text that is not the name of an [`OverlapPolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown overlap policy for TCP; the policies are ")?;
        f.write_str(&OverlapPolicy::ALL.map(OverlapPolicy::name).join(", "))
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for OverlapPolicy {
    type Err = UnknownPolicy;

    /// Parses the name of a policy; hyphens and underscores are equivalent.
    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let text = text.replace('-', "_");
        Self::ALL.into_iter().find(|policy| policy.name() == text).ok_or(UnknownPolicy)
    }
}

/// Behavior of the reassembler when a segment must be held and a memory limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OverflowPolicy {
    /// Skips the first hole of the stream, reports it as a [`Gap`](super::Gap), and delivers the octets held after it,
    /// until the limits allow the segment to be held.
    #[default]
    Slide,
    /// Stops the direction of the connection at once and releases its memory. Each later segment costs only the test of
    /// a flag.
    Poison,
    /// Drops and counts the segment. Its octets are reported as a gap after an acknowledgment, at the deadline or at
    /// the end of the stream.
    DropNewest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_to_their_policy() {
        for policy in OverlapPolicy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        assert_eq!("old-linux".parse(), Ok(OverlapPolicy::OldLinux));
        assert_eq!("beos".parse::<OverlapPolicy>(), Err(UnknownPolicy));
    }

    #[test]
    fn each_policy_decides_by_position() {
        // Positions of the new segment relative to a buffered one from 2 to 4: begins before it and ends within it, with
        // it, after it; begins with it and ends within, with, after; begins in it and ends within (2 to 5 is buffered
        // then), with, after.
        let positions = [(1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5), (3, 4), (3, 5)];
        let row = |policy: OverlapPolicy| positions.map(|new| u8::from(policy.new_wins((2, 4), new)));
        assert_eq!(row(OverlapPolicy::First), [0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(row(OverlapPolicy::Last), [1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(row(OverlapPolicy::Bsd), [1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(row(OverlapPolicy::OldLinux), [1, 1, 1, 0, 1, 1, 0, 0]);
        assert_eq!(row(OverlapPolicy::Linux), [1, 1, 1, 0, 0, 1, 0, 0]);
        assert_eq!(row(OverlapPolicy::Windows), row(OverlapPolicy::Bsd));
        assert_eq!(row(OverlapPolicy::Vista), row(OverlapPolicy::First));
        assert_eq!(row(OverlapPolicy::Solaris), [0, 1, 1, 0, 1, 1, 0, 1]);
    }
}
