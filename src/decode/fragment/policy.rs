//! Resolution of overlapping fragments: the rules of operating systems, by name and date.

use std::fmt;
use std::str::FromStr;

/// Reassembly of overlapping IPv4 fragments.
///
/// RFC 791 lets the newer bytes win, but implementations differ. The rules from [`First`](Self::First) to
/// [`Solaris`](Self::Solaris) are those that V. Paxson and U. Shankar (2003) named and J. Novak measured on
/// hosts in 2005. They are defined per held piece and new fragment, in terms of where the two begin and end.
/// A held fragment that lost bytes counts from then on as the pieces that remain of it, as in the lists of
/// those hosts.
///
/// For IPv6, an overlap always causes the datagram to be discarded (RFC 5722, RFC 8200 section 4.5),
/// regardless of this setting.
///
/// The default is [`Discard`](Self::Discard). No legitimate sender overlaps fragments, so an overlap is an
/// attempt to show an observer other bytes than the host receives; if the host is not known, any choice of
/// bytes is a guess that the attacker can make wrong. Current Linux does the same. A caller that knows the
/// hosts selects their rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OverlapPolicy {
    /// The behavior that RFC 5722 requires for IPv6: the datagram is discarded, and its further fragments do
    /// not start a new one.
    #[default]
    Discard,
    /// Linux from 4.19 (2018, and the stable kernels of that autumn): the datagram is discarded; a fragment
    /// that lies within a run of bytes that arrived in order is a duplicate, regardless of its bytes;
    /// fragments that arrive after the discard start a new datagram.
    Linux,
    /// The bytes that arrived first are kept: HP-UX 11, classic Mac OS (2005).
    First,
    /// The bytes that arrived last are kept: Cisco IOS (2005).
    Last,
    /// A held piece that begins no later than the new fragment is kept: 4.4BSD and its derivatives, AIX,
    /// FreeBSD, HP-UX 10, IRIX, OpenBSD, VMS (2005).
    Bsd,
    /// A held piece that begins no later than the new fragment is overwritten, the opposite of
    /// [`Bsd`](Self::Bsd): HP JetDirect (2005).
    BsdRight,
    /// A held piece that begins before the new fragment is kept: Linux 2.0 (1996) to 4.18 (2018).
    Linux2,
    /// A held piece is kept unless the new fragment begins before it and ends after it: Windows 95 to Server
    /// 2003 (2005).
    Windows,
    /// A held piece is kept unless the new fragment begins before it and ends no earlier: Solaris 8 to 10
    /// (2005).
    Solaris,
}

impl OverlapPolicy {
    /// All overlap policies.
    pub const ALL: [Self; 9] = [
        Self::Discard,
        Self::Linux,
        Self::First,
        Self::Last,
        Self::Bsd,
        Self::BsdRight,
        Self::Linux2,
        Self::Windows,
        Self::Solaris,
    ];

    /// Returns whether a fragment that is not the last one, and whose length is not a multiple of eight
    /// octets, is accepted without the octets after the last multiple of eight, as in Linux. 4.4BSD and its
    /// derivatives drop such a fragment.
    pub(super) const fn rounds_down(self) -> bool {
        matches!(self, Self::Discard | Self::Linux | Self::Linux2)
    }

    /// Returns the name of the policy as text: `discard`, `linux`, `first`, `last`, `bsd`, `bsd_right`,
    /// `linux2`, `windows`, `solaris`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discard => "discard",
            Self::Linux => "linux",
            Self::First => "first",
            Self::Last => "last",
            Self::Bsd => "bsd",
            Self::BsdRight => "bsd_right",
            Self::Linux2 => "linux2",
            Self::Windows => "windows",
            Self::Solaris => "solaris",
        }
    }

    /// Returns whether a datagram with an overlap is discarded, instead of the overlap being resolved.
    #[doc(hidden)]
    #[must_use]
    pub const fn discards(self) -> bool {
        matches!(self, Self::Discard | Self::Linux)
    }

    /// Returns whether the new fragment's bytes replace those of a held piece that it overlaps. Each argument
    /// is the start and the end (exclusive) of a range, in the same unit for both.
    #[must_use]
    #[doc(hidden)]
    pub const fn new_wins(self, held: (u32, u32), new: (u32, u32)) -> bool {
        match self {
            Self::Discard | Self::Linux | Self::First => false,
            Self::Last => true,
            Self::Bsd => new.0 < held.0,
            Self::BsdRight => new.0 >= held.0,
            Self::Linux2 => new.0 <= held.0,
            Self::Windows => new.0 < held.0 && new.1 > held.1,
            Self::Solaris => new.0 < held.0 && new.1 >= held.1,
        }
    }
}

impl fmt::Display for OverlapPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error for text that is not the name of an [`OverlapPolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown overlap policy; the policies are ")?;
        f.write_str(&OverlapPolicy::ALL.map(OverlapPolicy::name).join(", "))
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for OverlapPolicy {
    type Err = UnknownPolicy;

    /// Parses the name of an overlap policy; hyphens and underscores are equivalent.
    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let text = text.replace('-', "_");
        Self::ALL.into_iter().find(|policy| policy.name() == text).ok_or(UnknownPolicy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_to_their_policy() {
        for policy in OverlapPolicy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        assert_eq!("bsd-right".parse(), Ok(OverlapPolicy::BsdRight));
        assert_eq!("beos".parse::<OverlapPolicy>(), Err(UnknownPolicy));
    }

    #[test]
    fn each_policy_decides_by_position() {
        // Position of the new fragment relative to a buffered one from 2 to 4: left of, around, at the same start
        // and longer, equal, around with the same end, within, right of.
        let positions = [(1, 3), (1, 5), (2, 5), (2, 4), (1, 4), (3, 4), (3, 5)];
        let row = |policy: OverlapPolicy| positions.map(|new| u8::from(policy.new_wins((2, 4), new)));
        assert_eq!(row(OverlapPolicy::First), [0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(row(OverlapPolicy::Last), [1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(row(OverlapPolicy::Bsd), [1, 1, 0, 0, 1, 0, 0]);
        assert_eq!(row(OverlapPolicy::BsdRight), [0, 0, 1, 1, 0, 1, 1]);
        assert_eq!(row(OverlapPolicy::Linux2), [1, 1, 1, 1, 1, 0, 0]);
        assert_eq!(row(OverlapPolicy::Windows), [0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(row(OverlapPolicy::Solaris), [0, 1, 0, 0, 1, 0, 0]);
    }
}
