//! Frames that belong to no flow: unsupported, truncated or malformed, with a count for each.

use std::collections::BTreeMap;
use std::fmt;

use crate::base::{ParseError, ParseErrorKind};
use crate::decode::link::Unsupported;

/// Reason that a frame belongs to no flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Skip {
    /// The frame holds no IP packet, or its link type is not supported.
    Unsupported(Unsupported),
    /// The frame ends before the end of the IP addresses, as captured or as sent.
    Truncated(ParseError),
    /// A header is inconsistent, or more headers are nested than [`Limits`](crate::base::Limits) allows.
    Malformed(ParseError),
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(unsupported) => write!(f, "unsupported: {unsupported}"),
            Self::Truncated(error) => write!(f, "truncated: {error}"),
            Self::Malformed(error) => write!(f, "malformed: {error}"),
        }
    }
}

impl std::error::Error for Skip {}

/// Number of skipped frames by reason. The number of different reasons is bounded by the number of link
/// types, EtherTypes and PPP protocols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct SkipStats {
    /// Number of frames without an IP packet, by what they contain instead.
    pub unsupported: BTreeMap<Unsupported, u64>,
    /// Number of frames truncated before the end of the IP addresses.
    pub truncated_count: u64,
    /// Number of frames with inconsistent headers.
    pub malformed_count: u64,
    /// Number of frames with more headers, chained or nested, than [`Limits`](crate::base::Limits) allows,
    /// before any IP packet.
    pub too_deep_count: u64,
}

impl SkipStats {
    /// Counts a skipped frame. Allocates memory only for the first frame with its reason.
    pub fn count(&mut self, skip: &Skip) {
        match skip {
            Skip::Unsupported(unsupported) => {
                *self.unsupported.entry(self.bounded(*unsupported)).or_default() += 1
            }
            Skip::Truncated(_) => self.truncated_count += 1,
            Skip::Malformed(error) if error.kind == ParseErrorKind::TooDeep => self.too_deep_count += 1,
            Skip::Malformed(_) => self.malformed_count += 1,
        }
    }

    /// Returns the reason with a 32-bit address family reduced to at most 65,535, so that a hostile capture
    /// cannot fill the map with address families.
    fn bounded(&self, unsupported: Unsupported) -> Unsupported {
        match unsupported {
            Unsupported::AddressFamily(family) => Unsupported::AddressFamily(family.min(u32::from(u16::MAX))),
            other => other,
        }
    }

    /// Returns the number of all skipped frames, regardless of the reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.unsupported.values().sum::<u64>()
            + self.truncated_count
            + self.malformed_count
            + self.too_deep_count
    }

    /// Returns the reasons as text with their numbers of frames, the most frequent reason first.
    #[must_use]
    pub fn reasons(&self) -> Vec<(String, u64)> {
        let mut reasons: Vec<_> =
            self.unsupported.iter().map(|(what, count)| (what.to_string(), *count)).collect();
        reasons.extend([
            ("truncated".to_owned(), self.truncated_count),
            ("malformed".to_owned(), self.malformed_count),
            ("nested too deep".to_owned(), self.too_deep_count),
        ]);
        reasons.retain(|(_, count)| *count > 0);
        reasons.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
        reasons
    }

    /// Adds the counts of another part of the input.
    #[doc(hidden)]
    pub fn merge(&mut self, other: &Self) {
        for (unsupported, count) in &other.unsupported {
            *self.unsupported.entry(*unsupported).or_default() += count;
        }
        self.truncated_count += other.truncated_count;
        self.malformed_count += other.malformed_count;
        self.too_deep_count += other.too_deep_count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{EtherType, Layer};

    #[test]
    fn reasons_are_sorted_by_count() {
        let mut stats = SkipStats::default();
        let arp = Skip::Unsupported(Unsupported::EtherType(EtherType::ARP));
        let truncated_frame = Skip::Truncated(ParseError::truncated(Layer::Ipv4, 14, 20, 3));
        let deep = ParseError::new(Layer::Ethernet, ParseErrorKind::TooDeep, 14, 9, 8);
        for skip in [arp, arp, truncated_frame, Skip::Malformed(deep), arp, truncated_frame] {
            stats.count(&skip);
        }
        let reasons = [("ARP", 3), ("truncated", 2), ("nested too deep", 1)];
        assert_eq!(stats.reasons(), reasons.map(|(reason, count)| (reason.to_owned(), count)));
        let mut twice = stats.clone();
        twice.merge(&stats);
        assert_eq!(twice.total(), 12);
    }
}
