//! Which features are computed.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The features that are computed. What is not chosen costs nothing.
///
/// ```
/// use flowgauge::features::{FeatureSet, Length};
///
/// let set: FeatureSet = "cic,nfstream=payload,splt=20".parse()?;
/// assert_eq!((set.nfstream, set.splt, set.histogram), (Some(Length::Payload), Some(20), false));
/// assert!("cic,unknown".parse::<FeatureSet>().is_err());
/// # Ok::<(), flowgauge::features::UnknownFeature>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeatureSet {
    /// The vector of CICFlowMeter, corrected but for `cic_errors`.
    pub cic: bool,
    /// Errors that the vector of CICFlowMeter has nevertheless, for models that were trained on them.
    pub cic_errors: CicErrors,
    /// The columns of NFStream, with this length of packets.
    pub nfstream: Option<Length>,
    /// Direction, length and time of the first packets, at most this many.
    pub splt: Option<u16>,
    /// Logarithmic histograms of lengths and times.
    pub histogram: bool,
    /// Entropy and distribution of the first octets of payload of each side, of at most this many.
    pub entropy: Option<u16>,
    /// The first octets of payload of each side, at most this many.
    pub payload: Option<u16>,
    /// Round-trip times, retransmissions by kind, windows and options of TCP.
    pub tcp: bool,
}

/// Errors of CICFlowMeter that its vector has on request; `docs/features.md` describes each by its number. A vector with an
/// error has zero where nothing is defined, as the published program does, but for rates without a duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CicErrors {
    /// Bulks are runs of packets of both sides, and those of the responder.
    pub e3: bool,
    /// PSH and URG of a side are those of the first packet of the flow.
    pub e4: bool,
    /// The first packet counts twice in the lengths of both sides.
    pub e5: bool,
    /// Ratios and means per subflow and per bulk are integers.
    pub e6: bool,
    /// The number of subflows is the number of gaps.
    pub e7: bool,
    /// The initial window of the responder is its last one.
    pub e8: bool,
    /// The first packet of the flow is no packet with payload.
    pub e9: bool,
    /// Padding of short Ethernet frames is payload.
    pub e12: bool,
    /// The initiator is the sender of the first packet.
    pub e14: bool,
    /// Protocols other than TCP and UDP are zero.
    pub e15: bool,
    /// The last active period is missing.
    pub e18: bool,
}

impl CicErrors {
    /// All errors.
    pub const ALL: Self = Self {
        e3: true,
        e4: true,
        e5: true,
        e6: true,
        e7: true,
        e8: true,
        e9: true,
        e12: true,
        e14: true,
        e15: true,
        e18: true,
    };

    /// Returns the name of each error, and whether the vector has it.
    const fn names(self) -> [(&'static str, bool); 11] {
        [
            ("e3", self.e3),
            ("e4", self.e4),
            ("e5", self.e5),
            ("e6", self.e6),
            ("e7", self.e7),
            ("e8", self.e8),
            ("e9", self.e9),
            ("e12", self.e12),
            ("e14", self.e14),
            ("e15", self.e15),
            ("e18", self.e18),
        ]
    }

    /// Parses numbers that are joined by plus signs; `None` if one is none of these errors.
    fn parse(text: &str) -> Option<Self> {
        let mut errors = Self::default();
        for name in text.split('+') {
            let error = match name {
                "e3" => &mut errors.e3,
                "e4" => &mut errors.e4,
                "e5" => &mut errors.e5,
                "e6" => &mut errors.e6,
                "e7" => &mut errors.e7,
                "e8" => &mut errors.e8,
                "e9" => &mut errors.e9,
                "e12" => &mut errors.e12,
                "e14" => &mut errors.e14,
                "e15" => &mut errors.e15,
                "e18" => &mut errors.e18,
                _ => return None,
            };
            *error = true;
        }
        Some(errors)
    }
}

/// When a flow is decided early: with the features of the flow up to there.
///
/// ```
/// use std::time::Duration;
///
/// use flowgauge::features::Moment;
///
/// assert_eq!("packets=10".parse(), Ok(Moment::Packets(10)));
/// assert_eq!("octets=2000".parse(), Ok(Moment::Octets(2000)));
/// assert_eq!("ms=500".parse(), Ok(Moment::Time(Duration::from_millis(500))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Behind this number of packets.
    Packets(u64),
    /// Behind the packet with this octet of payload, counted over both sides.
    Octets(u64),
    /// This time after the first packet: before the first packet that is later.
    Time(Duration),
}

/// The text that is not a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMoment(String);

impl fmt::Display for UnknownMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is none of packets=N, octets=N and ms=N, with a number of at least one", self.0)
    }
}

impl std::error::Error for UnknownMoment {}

impl FromStr for Moment {
    type Err = UnknownMoment;

    fn from_str(text: &str) -> Result<Self, UnknownMoment> {
        let unknown = || UnknownMoment(text.to_owned());
        let (name, count) = text.split_once('=').ok_or_else(unknown)?;
        let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(unknown)?;
        match name {
            "packets" => Ok(Self::Packets(count)),
            "octets" => Ok(Self::Octets(count)),
            "ms" => Ok(Self::Time(Duration::from_millis(count))),
            _ => Err(unknown()),
        }
    }
}

/// The length of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Length {
    /// The frame on the wire.
    #[default]
    Wire,
    /// The IP packet, with its header.
    Ip,
    /// The transport header and its payload.
    Transport,
    /// The transport payload.
    Payload,
}

/// The text that is not the name of a feature, or not a value of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFeature(String);

impl fmt::Display for UnknownFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "`{text}` is no feature; the features are cic, cic_compat (or cic_compat=e3+e4 and so on), nfstream (or nfstream=wire, ip, transport, payload), splt=N with \
             at most {SPLT_MAX} packets, histogram, entropy or entropy=N, payload=N, with at most \
             {OCTET_MAX} octets, and tcp"
        )
    }
}

impl std::error::Error for UnknownFeature {}

/// Maximum number of packets of `splt`.
const SPLT_MAX: u16 = 1024;
/// Maximum number of octets of `entropy` and `payload`.
const OCTET_MAX: u16 = 16_384;
/// Number of octets of `entropy` without a number.
const ENTROPY_LEN: u16 = 1024;

/// Returns a number from one to a maximum.
fn count_of(text: &str, max: u16) -> Option<u16> {
    text.parse().ok().filter(|count| (1..=max).contains(count))
}

impl fmt::Display for FeatureSet {
    /// Writes the names that parse to this set, separated by commas; nothing for the default, which has no features.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = Vec::new();
        if self.cic {
            let errors: Vec<_> = self.cic_errors.names().into_iter().filter(|(_, has)| *has).collect();
            let names = errors.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("+");
            items.push(if names.is_empty() { "cic".to_owned() } else { format!("cic_compat={names}") });
        }
        items.extend(self.nfstream.map(|length| {
            let length = match length {
                Length::Wire => "wire",
                Length::Ip => "ip",
                Length::Transport => "transport",
                Length::Payload => "payload",
            };
            format!("nfstream={length}")
        }));
        items.extend(self.splt.map(|count| format!("splt={count}")));
        items.extend(self.histogram.then(|| "histogram".to_owned()));
        items.extend(self.entropy.map(|count| format!("entropy={count}")));
        items.extend(self.payload.map(|count| format!("payload={count}")));
        items.extend(self.tcp.then(|| "tcp".to_owned()));
        f.write_str(&items.join(","))
    }
}

impl FromStr for FeatureSet {
    type Err = UnknownFeature;

    /// Parses names that are separated by commas.
    fn from_str(text: &str) -> Result<Self, UnknownFeature> {
        let mut set = Self::default();
        for item in text.split(',').map(str::trim) {
            let (name, value) =
                item.split_once('=').map_or((item, None), |(name, value)| (name, Some(value)));
            let unknown = || UnknownFeature(item.to_owned());
            match (name, value) {
                ("cic", None) => set.cic = true,
                ("cic_compat", errors) => {
                    set.cic = true;
                    set.cic_errors = match errors {
                        None => CicErrors::ALL,
                        Some(errors) => CicErrors::parse(errors).ok_or_else(unknown)?,
                    };
                }
                ("histogram", None) => set.histogram = true,
                ("tcp", None) => set.tcp = true,
                ("nfstream", value) => {
                    set.nfstream = Some(match value {
                        None | Some("wire") => Length::Wire,
                        Some("ip") => Length::Ip,
                        Some("transport") => Length::Transport,
                        Some("payload") => Length::Payload,
                        Some(_) => return Err(unknown()),
                    });
                }
                ("splt", Some(count)) => set.splt = Some(count_of(count, SPLT_MAX).ok_or_else(unknown)?),
                ("entropy", None) => set.entropy = Some(ENTROPY_LEN),
                ("entropy", Some(count)) => {
                    set.entropy = Some(count_of(count, OCTET_MAX).ok_or_else(unknown)?)
                }
                ("payload", Some(count)) => {
                    set.payload = Some(count_of(count, OCTET_MAX).ok_or_else(unknown)?)
                }
                _ => return Err(unknown()),
            }
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_written_as_names_that_parse_to_it() {
        for text in [
            "cic",
            "cic_compat=e3+e18",
            "nfstream=wire",
            "nfstream=ip",
            "nfstream=transport",
            "nfstream=payload",
            "splt=20",
            "histogram",
            "entropy=1024",
            "payload=16384",
            "tcp",
            "cic_compat=e4,nfstream=ip,splt=1,histogram,entropy=3,payload=4,tcp",
        ] {
            assert_eq!(text.parse::<FeatureSet>().map(|set| set.to_string()).as_deref(), Ok(text));
        }
        let all: FeatureSet = "cic_compat".parse().unwrap();
        assert_eq!(all.to_string().parse(), Ok(all));
        assert_eq!(FeatureSet::default().to_string(), "");
    }
}
