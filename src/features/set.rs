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
    /// The vector of CICFlowMeter, corrected.
    pub cic: bool,
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
            "`{text}` is no feature; the features are cic, nfstream (or nfstream=wire, ip, transport, payload), splt=N with \
             at most {SPLT_MAX} packets, histogram, entropy or entropy=N, and payload=N, with at most {OCTET_MAX} octets"
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
                ("histogram", None) => set.histogram = true,
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
