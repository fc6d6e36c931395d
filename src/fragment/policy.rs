//! Who wins where fragments overlap: the rules of hosts, by name and date.

use std::fmt;
use std::str::FromStr;

/// How overlapping IPv4 fragments are reassembled.
///
/// RFC 791 lets the newer bytes win; hosts have done as they pleased. The rules from [`First`](Self::First) to
/// [`Solaris`](Self::Solaris) are those that V. Paxson and U. Shankar (2003) named and J. Novak measured on hosts in 2005;
/// they are stated per held piece and new fragment, in terms of where the two begin and end. A held fragment that lost
/// bytes counts from then on as the pieces that are left of it, as in the hosts' own lists.
///
/// IPv6 has no choice: an overlap discards the datagram (RFC 5722, RFC 8200 section 4.5), whatever is configured here.
///
/// The default is [`Discard`](Self::Discard). No sender overlaps fragments in earnest, so an overlap is an attempt to
/// show an observer other bytes than the host gets; without knowing the host, any choice of bytes is a guess that the
/// attacker can make wrong. Current Linux does the same. A caller who knows the hosts names their rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum OverlapPolicy {
    /// What RFC 5722 asks of IPv6: the datagram is discarded, and what still comes of it is not taken for a new one.
    #[default]
    Discard,
    /// Linux from 4.19 (2018, and the stable kernels of that autumn): the datagram is discarded; a fragment that lies
    /// within a run of bytes that came in order is a duplicate, whatever its bytes; fragments that come after the
    /// discard start a new datagram.
    Linux,
    /// The bytes that came first stay: HP-UX 11, classic Mac OS (2005).
    First,
    /// The bytes that came last win: Cisco IOS (2005).
    Last,
    /// A held piece that begins no later than the new fragment stays: 4.4BSD and its kin, AIX, FreeBSD, HP-UX 10, IRIX,
    /// OpenBSD, VMS (2005).
    Bsd,
    /// The other way round, a held piece that begins no later than the new fragment yields: HP JetDirect (2005).
    BsdRight,
    /// A held piece that begins before the new fragment stays: Linux 2.0 (1996) to 4.18 (2018).
    Linux2,
    /// A held piece stays unless the new fragment begins before it and ends after it: Windows 95 to Server 2003 (2005).
    Windows,
    /// A held piece stays unless the new fragment begins before it and ends no earlier: Solaris 8 to 10 (2005).
    Solaris,
}

impl OverlapPolicy {
    /// All of them.
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

    /// Whether a fragment that is not the last one, and whose length is not a multiple of eight octets, is taken without the
    /// octets behind the last multiple, as Linux does. 4.4BSD and its kin drop it.
    pub(super) const fn rounds_down(self) -> bool {
        matches!(self, Self::Discard | Self::Linux | Self::Linux2)
    }

    /// The name in text: `discard`, `linux`, `first`, `last`, `bsd`, `bsd_right`, `linux2`, `windows`, `solaris`.
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

    /// Whether an overlap ends the datagram instead of being resolved.
    #[must_use]
    pub const fn discards(self) -> bool {
        matches!(self, Self::Discard | Self::Linux)
    }

    /// Whether the new fragment's bytes replace those of a held piece that it overlaps. Both are given as where they
    /// begin and end, in the same unit.
    #[must_use]
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

/// A text that names no [`OverlapPolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPolicy;

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no overlap policy has that name; there are")?;
        OverlapPolicy::ALL.iter().try_for_each(|policy| write!(f, " {policy}"))
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for OverlapPolicy {
    type Err = UnknownPolicy;

    /// Reads a name; a hyphen is as good as an underscore.
    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        let text = text.replace('-', "_");
        Self::ALL.into_iter().find(|policy| policy.name() == text).ok_or(UnknownPolicy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for policy in OverlapPolicy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
        }
        assert_eq!("bsd-right".parse(), Ok(OverlapPolicy::BsdRight));
        assert_eq!("beos".parse::<OverlapPolicy>(), Err(UnknownPolicy));
    }

    #[test]
    fn each_rule_by_position() {
        // Where the new fragment lies, against a held one from 2 to 4: left of, around, at the same start and longer,
        // equal, around with the same end, within, right of.
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
