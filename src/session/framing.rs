//! Framing: where the protocol data units (PDUs) of a stream begin and end.
//!
//! A parser declares a [`Framing`] as a constant, keeps a [`Lane`] for each direction, and receives one PDU at a time:
//!
//! ```
//! use flowgauge::session::framing::{AfterPdu, Framing, Lane, Width};
//! use flowgauge::session::{Fault, Input, Out, Parser, Progress, Role};
//!
//! /// DNS over TCP (RFC 7766 section 8): two octets of length, then the message.
//! #[derive(Debug, Default)]
//! struct DnsOverTcp {
//!     lanes: [Lane; 2],
//! }
//!
//! const FRAMING: Framing = Framing::prefix(Width::U16).keep(65_535);
//!
//! impl Parser for DnsOverTcp {
//!     type Message<'m> = &'m [u8];
//!
//!     fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
//!         input.from.of_mut(&mut self.lanes).cut(&FRAMING, input, &mut |pdu| {
//!             out(pdu.bytes);
//!             Ok(AfterPdu::More)
//!         })
//!     }
//! }
//!
//! use flowgauge::Timestamp;
//! let (mut parser, mut seen) = (DnsOverTcp::default(), Vec::new());
//! let input = Input::new(b"\0\x03one\0\x05tw", 0, Role::Client, Timestamp::ZERO);
//! let progress = parser.bytes(&input, &mut |message| seen.push(message.to_vec()))?;
//! assert_eq!(seen, [b"one"]);
//! assert!(matches!(progress, Progress::Needs { taken: 7, need: 5 }));
//! # Ok::<(), Fault>(())
//! ```

use super::parser::{AfterGap, End, Fault, Input, Missing, Progress};
use super::protocol::{Protocol, Role, Search, StreamSearch};
use crate::base::Timestamp;
use crate::checkpoint::state;

/// Number of octets of a PDU that are kept if [`Framing::keep`] states no other.
const KEEP_DEFAULT: usize = 2048;

/// Width and octet order of a length field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    len: usize,
    is_little: bool,
}

macro_rules! widths {
    ($($name:ident: $len:literal, $is_little:literal, $doc:literal;)+) => {
        impl Width {$(
            #[doc = concat!("A length field of ", $doc, ".")]
            pub const $name: Self = Self { len: $len, is_little: $is_little };
        )+}
    };
}

widths! {
    U8: 1, false, "one octet";
    U16: 2, false, "two octets in network order";
    U24: 3, false, "three octets in network order";
    U32: 4, false, "four octets in network order";
    U16_LE: 2, true, "two octets, least significant first";
    U24_LE: 3, true, "three octets, least significant first";
    U32_LE: 4, true, "four octets, least significant first";
}

impl Width {
    fn read(self, field: &[u8]) -> u64 {
        let shift = |value: u64, octet: &u8| value << 8 | u64::from(*octet);
        if self.is_little { field.iter().rev().fold(0, shift) } else { field.iter().fold(0, shift) }
    }
}

/// Result of the search for the end of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nothing is known until this many octets of the PDU are available.
    Need(usize),
    /// The PDU has this many octets.
    Pdu(u64),
    /// The octets are not a PDU.
    Bad(Fault),
}

impl Cut {
    /// Changes the length of a PDU.
    #[must_use]
    pub fn map(self, change: impl FnOnce(u64) -> u64) -> Self {
        if let Self::Pdu(len) = self { Self::Pdu(change(len)) } else { self }
    }
}

/// What a parser expects after a PDU.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AfterPdu {
    /// Another PDU.
    More,
    /// Nothing more in this direction.
    Done,
    /// Another protocol in both directions; `None` if the probes must identify it.
    Handover(Option<&'static Protocol>),
}

/// Callback that receives PDUs.
pub type Each<'e> = dyn FnMut(&Pdu<'_>) -> Result<AfterPdu, Fault> + 'e;

#[derive(Clone, Copy, Debug)]
enum Rule {
    Length { at: usize, width: Width, plus: i64 },
    Varint { at: usize },
    Ber,
    Lines,
    By(fn(Role, &[u8]) -> Cut),
}

/// How PDUs follow each other in a stream: a constant of each protocol.
///
/// ```
/// use flowgauge::session::framing::{Cut, Framing, Width};
///
/// const DNS_TCP: Framing = Framing::prefix(Width::U16).keep(65_535);
/// const TPKT: Framing = Framing::length(2, Width::U16);
/// const SMB: Framing = Framing::length(1, Width::U24).plus(4);
/// const MYSQL: Framing = Framing::length(0, Width::U24_LE).plus(4);
/// const BGP: Framing = Framing::length(16, Width::U16).len_max(4096);
/// const LDAP: Framing = Framing::BER;
/// const MQTT: Framing = Framing::varint(1);
/// // The first PDU of a client has no tag; its length is less than 2^24.
/// const POSTGRESQL: Framing = Framing::by(|_, octets| match octets {
///     [0, ..] => Framing::length(0, Width::U32).measure(octets),
///     _ => Framing::length(1, Width::U32).plus(1).measure(octets),
/// });
/// // The length leaves out the first five octets, and the checksum of each block of 16 octets.
/// const DNP3: Framing = Framing::by(|_, octets| {
///     let blocks = |len: u64| len.saturating_sub(10).div_ceil(16);
///     Framing::length(2, Width::U8).plus(5).measure(octets).map(|len| len + 2 * blocks(len))
/// });
///
/// assert_eq!(DNS_TCP.measure(&[0, 7]), Cut::Pdu(9));
/// assert_eq!(TPKT.measure(&[3, 0, 0]), Cut::Need(4));
/// assert_eq!(SMB.measure(&[0, 0, 0, 64]), Cut::Pdu(68));
/// assert_eq!(MYSQL.measure(&[1, 0, 0, 0, 0x0e]), Cut::Pdu(5));
/// assert_eq!(BGP.measure(&[[0xff; 16].as_slice(), &[0, 19]].concat()), Cut::Pdu(19));
/// assert_eq!(LDAP.measure(&[0x30, 0x82, 1, 0]), Cut::Pdu(260));
/// assert_eq!(MQTT.measure(&[0x30, 0x80, 0x01]), Cut::Pdu(131));
/// assert_eq!(POSTGRESQL.measure(&[b'Z', 0, 0, 0, 5]), Cut::Pdu(6));
/// assert_eq!(POSTGRESQL.measure(&[0, 0, 0, 8]), Cut::Pdu(8));
/// assert_eq!(DNP3.measure(&[5, 0x64, 5 + 17]), Cut::Pdu(10 + 17 + 4));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    rule: Rule,
    /// Length of the field that is removed in front of a PDU; 0 if none is.
    prefix_len: usize,
    keep: usize,
    len_max: u64,
    resync: Option<StreamSearch>,
}

impl Framing {
    /// A definite length of BER (X.690 section 8.1.3) after one octet of tag.
    pub const BER: Self = Self::of(Rule::Ber);
    /// Lines that end with LF. A line that is longer than [`keep`](Self::keep) is truncated. After a gap, the rest of
    /// a line is skipped.
    pub const LINES: Self = Self::of(Rule::Lines);

    /// Fault: a PDU is longer than the protocol allows.
    pub const TOO_LONG: Fault = Fault::new("length_too_great");
    /// Fault: a length field states fewer octets than are before its end.
    pub const TOO_SHORT: Fault = Fault::new("length_too_small");
    /// Fault: a length is not one of its encoding.
    pub const MALFORMED: Fault = Fault::new("malformed_length");

    const fn of(rule: Rule) -> Self {
        Self { rule, prefix_len: 0, keep: KEEP_DEFAULT, len_max: u32::MAX as u64, resync: None }
    }

    /// A length field at an offset from the first octet of the PDU, which counts all octets of the PDU.
    #[must_use]
    pub const fn length(at: usize, width: Width) -> Self {
        Self::of(Rule::Length { at, width, plus: 0 })
    }

    /// A length field in front of each PDU, which counts the octets after it. The field is not part of the PDU.
    #[must_use]
    pub const fn prefix(width: Width) -> Self {
        Self { prefix_len: width.len, ..Self::length(0, width).plus(width.len as i64) }
    }

    /// A length of at most four octets with seven bits each, least significant first, at an offset, which counts the octets
    /// after it (MQTT).
    #[must_use]
    pub const fn varint(at: usize) -> Self {
        Self::of(Rule::Varint { at })
    }

    /// A function that finds the end of a PDU. It is called with at least one octet, once per input, and should take
    /// constant time.
    #[must_use]
    pub const fn by(cut: fn(Role, &[u8]) -> Cut) -> Self {
        Self::of(Rule::By(cut))
    }

    /// Adds octets that the length field does not count; a negative number for octets that it counts too much.
    #[must_use]
    pub const fn plus(self, octets: i64) -> Self {
        match self.rule {
            Rule::Length { at, width, plus } => {
                Self { rule: Rule::Length { at, width, plus: plus + octets }, ..self }
            }
            _ => self,
        }
    }

    /// Buffers only the first octets of a PDU. The others are counted and skipped. At most
    /// [`Limits::session_side_bytes_max`](crate::base::Limits) can be buffered.
    #[must_use]
    pub const fn keep(self, octets: usize) -> Self {
        Self { keep: octets, ..self }
    }

    /// Refuses PDUs that are longer, with [`TOO_LONG`](Self::TOO_LONG).
    #[must_use]
    pub const fn len_max(self, octets: u64) -> Self {
        Self { len_max: octets, ..self }
    }

    /// Searches the next PDU after a gap that does not end inside of a PDU. Without it, the parser stops.
    #[must_use]
    pub const fn resync(self, search: StreamSearch) -> Self {
        Self { resync: Some(search), ..self }
    }

    /// Returns the end of the PDU of a client that begins with these octets, at least one. The length includes that of the
    /// field of [`prefix`](Self::prefix).
    #[must_use]
    pub fn measure(&self, octets: &[u8]) -> Cut {
        self.find(Role::Client, octets, 0)
    }

    fn find(&self, from: Role, octets: &[u8], seen_len: usize) -> Cut {
        let cut = match self.rule {
            Rule::Length { at, width, plus } => match octets.get(at..at + width.len) {
                None => Cut::Need(at + width.len),
                Some(field) => match width.read(field).checked_add_signed(plus) {
                    Some(len) if len >= (at + width.len) as u64 => Cut::Pdu(len),
                    _ => Cut::Bad(Self::TOO_SHORT),
                },
            },
            Rule::Varint { at } => read_varint(at, octets),
            Rule::Ber => read_ber(octets),
            Rule::Lines => {
                let new = octets.get(seen_len..).unwrap_or_default();
                match memchr::memchr(b'\n', new) {
                    // The length is the same whether the end of a long line was available or not.
                    Some(end) => Cut::Pdu((seen_len + end + 1).min(self.keep + 1) as u64),
                    None if octets.len() > self.keep => Cut::Pdu((self.keep + 1) as u64),
                    None => Cut::Need(octets.len() + 1),
                }
            }
            Rule::By(cut) => cut(from, octets),
        };
        match cut {
            Cut::Pdu(len) if len > self.len_max => Cut::Bad(Self::TOO_LONG),
            Cut::Pdu(0) => Cut::Bad(Self::TOO_SHORT),
            Cut::Need(need) if need > self.keep.max(16) + 1 => Cut::Bad(Self::TOO_LONG),
            cut => cut,
        }
    }
}

/// Reads the length of MQTT (version 5.0, section 1.5.5) at an offset.
fn read_varint(at: usize, octets: &[u8]) -> Cut {
    const LEN_MAX: usize = 4;
    let mut value = 0;
    for place in 0..LEN_MAX {
        let Some(octet) = octets.get(at + place) else { return Cut::Need(at + place + 1) };
        value |= u64::from(octet & 0x7f) << (7 * place);
        if octet & 0x80 == 0 {
            return Cut::Pdu((at + place + 1) as u64 + value);
        }
    }
    Cut::Bad(Framing::MALFORMED)
}

/// Reads a tag of one octet and a definite length of at most four octets.
fn read_ber(octets: &[u8]) -> Cut {
    match octets {
        [tag, ..] if tag & 0x1f == 0x1f => Cut::Bad(Framing::MALFORMED),
        [_, len @ 0..0x80, ..] => Cut::Pdu(2 + u64::from(*len)),
        [_, 0x80 | 0x85.., ..] => Cut::Bad(Framing::MALFORMED),
        [_, count, rest @ ..] => {
            let width = Width { len: usize::from(count & 0x7f), is_little: false };
            match rest.get(..width.len) {
                Some(field) => Cut::Pdu(2 + width.len as u64 + width.read(field)),
                None => Cut::Need(2 + width.len),
            }
        }
        _ => Cut::Need(2),
    }
}

/// A protocol data unit: one message of the protocol, or its first octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pdu<'a> {
    /// The first octets: all, unless it is longer than [`Framing::keep`], or was not captured completely.
    pub bytes: &'a [u8],
    /// Length on the wire in octets. That of a line that was truncated is one octet more than was kept.
    pub len: u64,
    /// Role of the sender.
    pub from: Role,
    /// Capture time of the last one of `bytes`, or time at which the wait for the missing ones ended.
    pub timestamp: Timestamp,
}

impl Pdu<'_> {
    /// Returns whether the PDU has octets after `bytes`.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        (self.bytes.len() as u64) < self.len
    }
}

/// Where the next octet of a direction belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// It is the first one of a PDU, or of the field in front of it.
    #[default]
    Start,
    /// It is the first one of a PDU of this length, whose field was removed.
    Body(u64),
    /// The beginning of a PDU is searched for.
    Adrift,
    /// The rest of a line is skipped.
    InLine,
}

/// State of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    /// Number of octets that are skipped first: the rest of a PDU.
    skip: u64,
    place: Place,
}

state! { enum Place { 0 = Start, 1 = Body(len), 2 = Adrift, 3 = InLine } }
state! { struct Lane { skip, place } }

impl Lane {
    /// Calls `each` for each PDU at the start of the input, and skips what is not kept of it. Takes time linear in the
    /// octets, and copies none.
    ///
    /// # Errors
    ///
    /// The faults of the framing, and those that `each` returns.
    pub fn cut(
        &mut self,
        framing: &Framing,
        input: &Input<'_>,
        each: &mut Each<'_>,
    ) -> Result<Progress, Fault> {
        let Input { bytes, from, timestamp, mut seen_len, .. } = *input;
        let mut rest = bytes;
        let taken = |rest: &[u8]| bytes.len() - rest.len();
        loop {
            let before_len = rest.len();
            rest = self.skipped(rest);
            if rest.len() < before_len {
                seen_len = 0;
            }
            let len = match self.place {
                Place::Body(len) => len,
                _ if rest.is_empty() => return Ok(Progress::Took(bytes.len())),
                Place::Adrift => {
                    match framing.resync.map_or(Search::From(rest.len()), |search| search(from, rest)) {
                        Search::Found(index) => (self.place, self.skip) = (Place::Start, index as u64),
                        Search::From(index) => {
                            let kept_from = index.max(rest.len().saturating_sub(framing.keep));
                            return Ok(Progress::Took(taken(rest) + kept_from.min(rest.len())));
                        }
                    }
                    continue;
                }
                _ => match framing.find(from, rest, seen_len) {
                    Cut::Pdu(len) => len,
                    Cut::Need(need) => {
                        return Ok(Progress::Needs { taken: taken(rest), need: need.max(rest.len() + 1) });
                    }
                    Cut::Bad(fault) => return Err(fault),
                },
            };
            if framing.prefix_len > 0 && self.place == Place::Start {
                // The field is consumed at once, so that a PDU of the greatest length fits the buffer of a direction.
                self.place = Place::Body(len.saturating_sub(framing.prefix_len as u64));
                self.skip = framing.prefix_len as u64;
                continue;
            }
            let kept_len = usize::try_from(len).unwrap_or(usize::MAX).min(framing.keep);
            let Some(kept) = rest.get(..kept_len) else {
                return Ok(Progress::Needs { taken: taken(rest), need: kept_len });
            };
            let next = each(&Pdu { bytes: kept, len, from, timestamp })?;
            (self.place, self.skip) = if matches!(framing.rule, Rule::Lines) && len > framing.keep as u64 {
                (Place::InLine, framing.keep as u64)
            } else {
                (Place::Start, len)
            };
            match next {
                AfterPdu::More => {}
                AfterPdu::Done => return Ok(Progress::Done),
                AfterPdu::Handover(next) => {
                    rest = self.skipped(rest);
                    return Ok(Progress::Handover { taken: taken(rest), next });
                }
            }
        }
    }

    /// Returns what remains after the octets that are skipped.
    fn skipped<'a>(&mut self, octets: &'a [u8]) -> &'a [u8] {
        let len = octets.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        self.skip -= len as u64;
        let rest = octets.get(len..).unwrap_or_default();
        if self.place != Place::InLine || rest.is_empty() {
            return rest;
        }
        match memchr::memchr(b'\n', rest) {
            Some(end) => {
                self.place = Place::Start;
                rest.get(end + 1..).unwrap_or_default()
            }
            None => &[],
        }
    }

    /// Processes a gap. If the length of the PDU that it interrupts is known, `each` receives what was captured of the PDU,
    /// and the rest is skipped. Returns whether the direction continues.
    pub fn gap(&mut self, framing: &Framing, missing: &Missing<'_>, each: &mut Each<'_>) -> AfterGap {
        let Missing { rest, len: missing_len, from, timestamp, .. } = *missing;
        if matches!(framing.rule, Rule::Lines) {
            (self.place, self.skip) = (Place::InLine, 0);
            return AfterGap::Resume;
        }
        let left = if self.skip > 0 {
            self.skip.checked_sub(missing_len)
        } else {
            let len = self.torn_len(framing, from, rest);
            let is_over = len.is_some_and(|len| {
                let pdu = Pdu { bytes: self.torn(framing, rest), len, from, timestamp };
                !matches!(each(&pdu), Ok(AfterPdu::More))
            });
            if is_over {
                return AfterGap::Stop;
            }
            let prefix_len = self.open_prefix_len(framing);
            len.and_then(|len| (len + prefix_len).checked_sub(missing_len.saturating_add(rest.len() as u64)))
        };
        match left {
            Some(left) => {
                (self.place, self.skip) = (Place::Start, left);
                AfterGap::Resume
            }
            None => {
                (self.place, self.skip) = (Place::Adrift, 0);
                if framing.resync.is_some() { AfterGap::Resume } else { AfterGap::Stop }
            }
        }
    }

    /// Processes the end of the direction: `each` receives what was captured of the last PDU, if its length is known.
    pub fn end(&mut self, framing: &Framing, end: &End<'_>, each: &mut Each<'_>) {
        let End { rest, from, timestamp, .. } = *end;
        if self.skip == 0
            && let Some(len) = self.torn_len(framing, from, rest)
        {
            // Nothing follows, whatever it expects.
            let _ = each(&Pdu { bytes: self.torn(framing, rest), len, from, timestamp });
        }
    }

    /// Returns the length of the PDU that begins with octets after which others are missing, if it is known.
    fn torn_len(&self, framing: &Framing, from: Role, rest: &[u8]) -> Option<u64> {
        match self.place {
            Place::Body(len) => Some(len),
            Place::Start if !rest.is_empty() => match framing.find(from, rest, 0) {
                Cut::Pdu(len) => Some(len.saturating_sub(framing.prefix_len as u64)),
                Cut::Need(_) | Cut::Bad(_) => None,
            },
            _ => None,
        }
    }

    /// Returns the number of octets in front of the PDU that were not consumed.
    fn open_prefix_len(&self, framing: &Framing) -> u64 {
        if self.place == Place::Start { framing.prefix_len as u64 } else { 0 }
    }

    fn torn<'a>(&self, framing: &Framing, rest: &'a [u8]) -> &'a [u8] {
        rest.get(self.open_prefix_len(framing) as usize..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reassembler::GapReason;
    use crate::session::EndKind;

    const KEEP: usize = 24;
    const FRAMINGS: [Framing; 8] = [
        Framing::prefix(Width::U16),
        Framing::prefix(Width::U24_LE),
        Framing::length(1, Width::U8).plus(2),
        Framing::length(2, Width::U32_LE),
        Framing::varint(1),
        Framing::BER,
        Framing::LINES,
        Framing::by(|_, octets| Cut::Pdu(1 + u64::from(octets[0]))),
    ];

    /// Returns a PDU with content of a length, and how many octets of it are not part of the PDU.
    fn encoded(index: usize, content: &[u8]) -> (Vec<u8>, usize) {
        let len = content.len();
        let (head, tail, prefix_len) = match index {
            0 => ((len as u16).to_be_bytes().to_vec(), &b""[..], 2),
            1 => ((len as u32).to_le_bytes()[..3].to_vec(), &b""[..], 3),
            2 => (vec![0x7e, len as u8], &b""[..], 0),
            3 => ([&b"ab"[..], &(len as u32 + 6).to_le_bytes()].concat(), &b""[..], 0),
            4 if len < 128 => (vec![0x30, len as u8], &b""[..], 0),
            4 => (vec![0x30, len as u8 | 0x80, (len >> 7) as u8], &b""[..], 0),
            5 if len < 128 => (vec![0x30, len as u8], &b""[..], 0),
            5 => (vec![0x30, 0x81, len as u8], &b""[..], 0),
            6 => (Vec::new(), &b"\n"[..], 0),
            _ => (vec![len as u8], &b""[..], 0),
        };
        ([&head, content, tail].concat(), prefix_len)
    }

    /// What a PDU is after it was cut: its octets, and its length.
    type Seen = (Vec<u8>, u64);

    /// Passes octets as the driver does, with what was not consumed in front of the next ones.
    #[derive(Default)]
    struct Stream {
        lane: Lane,
        buffered: Vec<u8>,
        seen: Vec<Seen>,
        need: usize,
    }

    impl Stream {
        fn push(&mut self, framing: &Framing, bytes: &[u8]) -> Result<(), Fault> {
            let mut seen_len = self.buffered.len();
            self.buffered.extend_from_slice(bytes);
            while self.buffered.len() > seen_len && self.buffered.len() >= self.need {
                let input =
                    Input::new(&self.buffered, 0, Role::Client, Timestamp::ZERO).with_seen_len(seen_len);
                let seen = &mut self.seen;
                let progress = self.lane.cut(framing, &input, &mut |pdu| {
                    seen.push((pdu.bytes.to_vec(), pdu.len));
                    Ok(AfterPdu::More)
                })?;
                let (taken, need) = match progress {
                    Progress::Took(taken) => (taken, 0),
                    Progress::Needs { taken, need } => (taken, need),
                    other => panic!("{other:?}"),
                };
                self.need = need;
                self.buffered.drain(..taken);
                seen_len = self.buffered.len();
            }
            assert!(self.buffered.len() <= framing.keep.max(16) + 1, "no more octets are kept than declared");
            Ok(())
        }

        fn gap(&mut self, framing: &Framing, len: u64) -> AfterGap {
            let rest = std::mem::take(&mut self.buffered);
            let missing = Missing {
                rest: &rest,
                offset: 0,
                len,
                from: Role::Client,
                reason: GapReason::Acknowledged,
                timestamp: Timestamp::ZERO,
            };
            let seen = &mut self.seen;
            self.need = 0;
            self.lane.gap(framing, &missing, &mut |pdu| {
                seen.push((pdu.bytes.to_vec(), pdu.len));
                Ok(AfterPdu::More)
            })
        }
    }

    /// Returns what is seen of a PDU that was captured completely.
    fn whole(index: usize, pdu: &[u8], prefix_len: usize) -> Seen {
        let body = &pdu[prefix_len..];
        let len = if index == 6 { body.len().min(KEEP + 1) } else { body.len() };
        (body[..body.len().min(KEEP)].to_vec(), len as u64)
    }

    fn contents() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let octet =
            prop_oneof![Just(b'x'), any::<u8>()].prop_map(|octet| if octet == b'\n' { 0 } else { octet });
        prop::collection::vec(prop::collection::vec(octet, 0..100), 1..6)
    }

    proptest! {
        #[test]
        fn pdus_do_not_depend_on_segments(
            index in 0..FRAMINGS.len(),
            contents in contents(),
            cuts in prop::collection::vec(1_usize..40, 1..30),
        ) {
            let framing = FRAMINGS[index].keep(KEEP);
            let pdus: Vec<_> = contents.iter().map(|content| encoded(index, content)).collect();
            let expected: Vec<_> = pdus.iter().map(|(pdu, prefix_len)| whole(index, pdu, *prefix_len)).collect();
            let octets: Vec<u8> = pdus.iter().flat_map(|(pdu, _)| pdu).copied().collect();
            let (mut stream, mut rest) = (Stream::default(), &octets[..]);
            for len in cuts.iter().cycle() {
                let (segment, after) = rest.split_at((*len).min(rest.len()));
                stream.push(&framing, segment).unwrap();
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(stream.seen, expected);
            prop_assert!(stream.buffered.is_empty());
        }

        #[test]
        fn a_gap_inside_of_a_pdu_loses_no_other(
            index in prop_oneof![0_usize..6, Just(7)],
            contents in contents(),
            torn in 0_usize..6,
            from in 0.0_f64..1.0,
            to in 0.0_f64..1.0,
        ) {
            let framing = FRAMINGS[index].keep(KEEP);
            let pdus: Vec<_> = contents.iter().map(|content| encoded(index, content)).collect();
            let torn = torn % pdus.len();
            let (pdu, prefix_len) = &pdus[torn];
            let head_len = pdu.len() - contents[torn].len();
            prop_assume!(pdu.len() > head_len);
            // The gap begins after the length, and ends in the PDU or with it.
            let start = head_len + (from * (pdu.len() - head_len) as f64) as usize;
            let end = start + 1 + (to * (pdu.len() - start - 1) as f64) as usize;
            let mut stream = Stream::default();
            for (before, _) in &pdus[..torn] {
                stream.push(&framing, before).unwrap();
            }
            stream.push(&framing, &pdu[..start]).unwrap();
            prop_assert_eq!(stream.gap(&framing, (end - start) as u64), AfterGap::Resume);
            stream.push(&framing, &pdu[end..]).unwrap();
            for (after, _) in &pdus[torn + 1..] {
                stream.push(&framing, after).unwrap();
            }
            let mut expected: Vec<_> =
                pdus.iter().map(|(pdu, prefix_len)| whole(index, pdu, *prefix_len)).collect();
            let captured_len = (start - prefix_len).min(KEEP);
            expected[torn].0.truncate(captured_len);
            prop_assert_eq!(stream.seen, expected);
        }
    }

    #[test]
    fn the_beginning_of_a_pdu_is_searched_for_after_other_gaps() {
        fn search(_: Role, octets: &[u8]) -> Search {
            match octets.windows(2).position(|pair| pair == b"\x7e\x02") {
                Some(at) => Search::Found(at),
                None => Search::From(octets.len().saturating_sub(1)),
            }
        }
        let framing = Framing::length(1, Width::U8).plus(2).keep(KEEP);
        for framing in [framing, framing.resync(search)] {
            let mut stream = Stream::default();
            stream.push(&framing, b"\x7e\x02ab").unwrap();
            let after = stream.gap(&framing, 7);
            if framing.resync.is_none() {
                assert_eq!(after, AfterGap::Stop);
                continue;
            }
            assert_eq!(after, AfterGap::Resume);
            stream.push(&framing, b"of another one\x7e").unwrap();
            stream.push(&framing, b"\x02cd\x7e\x02ef").unwrap();
            let texts: Vec<_> = stream.seen.iter().map(|(octets, _)| &octets[2..]).collect();
            assert_eq!(texts, [b"ab", b"cd", b"ef"]);
        }
    }

    #[test]
    fn invalid_lengths_are_faults() {
        let push = |framing: &Framing, octets: &[u8]| Stream::default().push(framing, octets);
        assert_eq!(push(&Framing::length(0, Width::U16), b"\0\x01"), Err(Framing::TOO_SHORT));
        assert_eq!(push(&Framing::length(0, Width::U8).plus(-5), b"\x04"), Err(Framing::TOO_SHORT));
        assert_eq!(push(&Framing::length(0, Width::U16).len_max(9), b"\0\x0a"), Err(Framing::TOO_LONG));
        assert_eq!(push(&Framing::varint(0), &[0xff; 5]), Err(Framing::MALFORMED));
        for head in [&b"\x3f\x01"[..], b"\x30\x80", b"\x30\x85"] {
            assert_eq!(push(&Framing::BER, head), Err(Framing::MALFORMED), "{head:?}");
        }
        assert_eq!(push(&Framing::by(|_, _| Cut::Need(1 << 20)), b"x"), Err(Framing::TOO_LONG));
        assert_eq!(push(&Framing::by(|_, _| Cut::Pdu(0)), b"x"), Err(Framing::TOO_SHORT));
    }

    #[test]
    fn the_last_pdu_may_be_incomplete() {
        for (framing, octets, expected) in [
            (Framing::prefix(Width::U16), &b"\0\x04ab"[..], Some((b"ab".to_vec(), 4))),
            (Framing::length(1, Width::U8).plus(2), b"\x7e\x04ab", Some((b"\x7e\x04ab".to_vec(), 6))),
            (Framing::length(1, Width::U8).plus(2), b"\x7e", None),
            (Framing::prefix(Width::U16), b"\0", None),
        ] {
            let mut stream = Stream::default();
            stream.push(&framing, octets).unwrap();
            let mut seen = None;
            let end = End {
                rest: &stream.buffered,
                offset: 0,
                from: Role::Client,
                kind: EndKind::Flow,
                timestamp: Timestamp::ZERO,
            };
            stream.lane.end(&framing, &end, &mut |pdu| {
                assert!(pdu.is_truncated());
                seen = Some((pdu.bytes.to_vec(), pdu.len));
                Ok(AfterPdu::More)
            });
            assert_eq!(seen, expected, "{octets:?}");
        }
    }
}
