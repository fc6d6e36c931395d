//! One direction of a stream, cut into PDUs.

use super::rule::{Cut, Framing};
use crate::base::Timestamp;
use crate::checkpoint::state;
use crate::session::parser::{AfterGap, End, Fault, Input, Missing, Progress};
use crate::session::protocol::{Protocol, Role, Search};

/// What a parser expects after a PDU.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum AfterPdu {
    /// Another PDU.
    More,
    /// Another PDU, which is found in another way: the caller calls again with what follows.
    Reframe,
    /// Nothing more in this direction.
    Done,
    /// Another protocol in both directions; `None` if the probes must identify it.
    Handover(Option<&'static Protocol>),
}

/// Callback that receives PDUs.
pub type Each<'e> = dyn FnMut(&Pdu<'_>) -> Result<AfterPdu, Fault> + 'e;

/// A protocol data unit: one message of the protocol, or its first octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pdu<'a> {
    /// The first octets: all, unless it is longer than [`Framing::keep`], or was not captured completely.
    pub bytes: &'a [u8],
    /// Length on the wire in octets. That of a line that was truncated is one octet more than was kept.
    pub len: u64,
    /// Number of octets of the direction before `bytes`, including missing ones; 0 for a datagram.
    pub offset: u64,
    /// True if these are further octets of the PDU before ([`Framing::with_rest`]); `len` is the number of octets up to its end then.
    pub is_rest: bool,
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
    /// It is the first one of a PDU of this length, whose field was removed, or whose head was found.
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
        let Input { bytes, offset, from, timestamp, mut seen_len } = *input;
        let mut rest = bytes;
        let taken = |rest: &[u8]| bytes.len() - rest.len();
        if framing.has_rest && self.place == Place::Start {
            self.pass_rest(rest, (offset, from, timestamp), each)?;
        }
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
                        Search::Found(index) => {
                            self.place = Place::Start;
                            rest = rest.get(index..).unwrap_or_default();
                            seen_len = 0;
                        }
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
                if framing.has_heads() {
                    self.place = Place::Body(len);
                }
                return Ok(Progress::Needs { taken: taken(rest), need: kept_len });
            };
            let offset = offset + taken(rest) as u64;
            let next = each(&Pdu { bytes: kept, len, offset, is_rest: false, from, timestamp })?;
            (self.place, self.skip) = if len > framing.keep as u64 && framing.is_line(kept) {
                (Place::InLine, framing.keep as u64)
            } else {
                (Place::Start, len)
            };
            if framing.has_rest {
                rest = rest.get(kept_len..).unwrap_or_default();
                (self.skip, seen_len) = (len - kept_len as u64, 0);
                self.pass_rest(rest, (offset + kept_len as u64, from, timestamp), each)?;
            }
            match next {
                AfterPdu::More => {}
                AfterPdu::Reframe => {
                    rest = self.skipped(rest);
                    return Ok(Progress::Took(taken(rest)));
                }
                AfterPdu::Done => return Ok(Progress::Done),
                AfterPdu::Handover(next) => {
                    rest = self.skipped(rest);
                    return Ok(Progress::Handover { taken: taken(rest), next });
                }
            }
        }
    }

    /// Returns whether the next octet is the first one of a PDU, or of the field in front of it.
    #[cfg(feature = "protocols")]
    pub(crate) fn is_at_start(&self) -> bool {
        self.skip == 0 && self.place == Place::Start
    }

    /// Passes on the octets that are skipped: the rest of a PDU.
    fn pass_rest(
        &self,
        octets: &[u8],
        (offset, from, timestamp): (u64, Role, Timestamp),
        each: &mut Each<'_>,
    ) -> Result<(), Fault> {
        let len = octets.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        let bytes = octets.get(..len).unwrap_or_default();
        if !bytes.is_empty() {
            each(&Pdu { bytes, len: self.skip, offset, is_rest: true, from, timestamp })?;
        }
        Ok(())
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
        let Missing { rest, offset, len: missing_len, from, timestamp, .. } = *missing;
        if self.skip == 0 && framing.is_line(rest) && framing.resync.is_none() {
            (self.place, self.skip) = (Place::InLine, 0);
            return AfterGap::Resume;
        }
        let left = if self.skip > 0 {
            self.skip.checked_sub(missing_len)
        } else {
            let len = self.torn_len(framing, from, rest);
            let is_over = len.is_some_and(|len| {
                let bytes = self.torn(framing, rest);
                let offset = offset.saturating_sub(bytes.len() as u64);
                let pdu = Pdu { bytes, len, offset, is_rest: false, from, timestamp };
                !matches!(each(&pdu), Ok(AfterPdu::More | AfterPdu::Reframe))
            });
            if is_over {
                return AfterGap::Stop;
            }
            let prefix_len = self.open_prefix_len(framing);
            len.and_then(|len| {
                len.saturating_add(prefix_len).checked_sub(missing_len.saturating_add(rest.len() as u64))
            })
        };
        match left {
            Some(left) => {
                (self.place, self.skip) = (Place::Start, left);
                AfterGap::Resume
            }
            None if framing.has_lines() && framing.resync.is_none() => {
                (self.place, self.skip) = (Place::InLine, 0);
                AfterGap::Resume
            }
            None => {
                (self.place, self.skip) = (Place::Adrift, 0);
                if framing.resync.is_some() { AfterGap::Resume } else { AfterGap::Stop }
            }
        }
    }

    /// Processes the end of the direction: `each` receives what was captured of the last PDU, if its length is known, and a line
    /// without its end.
    #[inline]
    pub fn end(&mut self, framing: &Framing, end: &End<'_>, each: &mut Each<'_>) {
        // Most directions end with a PDU.
        if self.skip == 0 && (!end.rest.is_empty() || self.place != Place::Start) {
            self.end_within(framing, end, each);
        }
    }

    #[cold]
    fn end_within(&mut self, framing: &Framing, end: &End<'_>, each: &mut Each<'_>) {
        let End { rest, offset, from, timestamp, .. } = *end;
        let is_last_line = self.place == Place::Start && framing.is_line(rest);
        let len = self.torn_len(framing, from, rest).or_else(|| is_last_line.then_some(rest.len() as u64));
        if let Some(len) = len {
            let bytes = self.torn(framing, rest);
            let offset = offset + (rest.len() - bytes.len()) as u64;
            // Nothing follows, whatever it expects.
            let _ = each(&Pdu { bytes, len, offset, is_rest: false, from, timestamp });
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
