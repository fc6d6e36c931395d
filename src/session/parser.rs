//! The trait that a parser implements, and what it is told.

use std::fmt;

use super::protocol::{Protocol, Role};
use crate::base::Timestamp;
use crate::reassembler::GapReason;

/// Octets of a stream, next in order, from the first one that the parser has not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Input<'a> {
    /// The octets, never none.
    pub bytes: &'a [u8],
    /// Octets of the stream before them, gaps included.
    pub offset: u64,
    /// Who sent them.
    pub from: Role,
    /// When the last of them was captured, or came in order.
    pub timestamp: Timestamp,
    /// Number of octets at the front of `bytes` that were in the input before and that the parser left. Whatever it searched them
    /// for in vain is not there, so that the search goes on behind them: octets that come one by one are then looked at once and
    /// not each time that one more comes. Zero of octets that are all new.
    ///
    /// ```
    /// use flowgauge::session::Input;
    ///
    /// /// Octets up to the end of the first line; all that were seen before are in it.
    /// fn line_len(input: &Input<'_>) -> Option<usize> {
    ///     let new = input.bytes.get(input.seen_len..)?;
    ///     let end = new.iter().position(|octet| *octet == b'\n')?;
    ///     Some(input.seen_len + end + 1)
    /// }
    /// ```
    pub seen_len: usize,
}

impl<'a> Input<'a> {
    /// Octets for a parser that is used without the driver.
    #[must_use]
    pub const fn new(bytes: &'a [u8], offset: u64, from: Role, timestamp: Timestamp) -> Self {
        Self { bytes, offset, from, timestamp, seen_len: 0 }
    }

    /// The same, of which the parser has seen the first octets before.
    #[must_use]
    pub const fn with_seen_len(self, seen_len: usize) -> Self {
        Self { seen_len, ..self }
    }
}

/// The payload of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Datagram<'a> {
    /// The octets, as far as captured.
    pub bytes: &'a [u8],
    /// Octets on the wire; more than there are if a snap length cut it.
    pub len: usize,
    /// Who sent it.
    pub from: Role,
    /// When it was captured.
    pub timestamp: Timestamp,
}

impl<'a> Datagram<'a> {
    /// A whole datagram.
    #[must_use]
    pub const fn new(bytes: &'a [u8], from: Role, timestamp: Timestamp) -> Self {
        Self { bytes, len: bytes.len(), from, timestamp }
    }

    /// Whether a snap length cut it.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.bytes.len() < self.len
    }
}

/// How far a parser got with a direction.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// It took so many octets. What is left over is kept, and offered again in front of what comes next.
    Took(usize),
    /// It took `taken`, and the rest is of use once there are `need` of them: it is not called before.
    Needs {
        /// Octets that it took.
        taken: usize,
        /// Octets from there on that it waits for, more than are there.
        need: usize,
    },
    /// It wants no more of this direction. When both directions are done, its memory is freed.
    Done,
    /// It took `taken`, and from there on, in both directions, something else is spoken.
    Handover {
        /// Octets that it took.
        taken: usize,
        /// What; unknown if the probes are to tell.
        next: Option<&'static Protocol>,
    },
}

/// Why a parser gives up: it is dropped, and the flow goes on without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault(&'static str);

impl Fault {
    /// More octets would have to be kept than [`Limits::session_side_bytes_max`](crate::base::Limits) allows.
    pub const TOO_LONG: Self = Self("too_long");
    /// No memory: [`Limits::session_bytes_max`](crate::base::Limits), or the budget.
    pub const NO_MEMORY: Self = Self("no_memory");
    /// Octets are missing, and it cannot go on behind them.
    pub const GAP: Self = Self("gap");
    /// The parser is not made for what it was offered.
    pub const NOT_SPOKEN: Self = Self("not_spoken");
    /// More handovers than [`HANDOVER_COUNT_MAX`](super::HANDOVER_COUNT_MAX).
    pub const TOO_MANY_HANDOVERS: Self = Self("too_many_handovers");

    /// A reason in a word or a few, lower case with underscores.
    #[must_use]
    pub const fn new(reason: &'static str) -> Self {
        Self(reason)
    }

    /// The reason.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Fault {}

/// Octets of a stream that will not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing<'a> {
    /// What was kept of the octets before, which the parser did not take. It is dropped now.
    pub rest: &'a [u8],
    /// Where the gap begins.
    pub offset: u64,
    /// How many octets are missing, at least one.
    pub len: u64,
    /// Who sent them.
    pub from: Role,
    /// Why.
    pub reason: GapReason,
    /// When that was decided.
    pub timestamp: Timestamp,
}

/// What a parser does after a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterGap {
    /// It goes on with what follows.
    Resume,
    /// It cannot.
    Stop,
}

/// How a direction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum EndKind {
    /// By a FIN: all was said.
    Fin,
    /// By a RST.
    Reset,
    /// The flow ended otherwise: by a timeout, or with the capture.
    Flow,
}

/// The end of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct End<'a> {
    /// What was kept, and the parser did not take.
    pub rest: &'a [u8],
    /// Octets of the stream before `rest`.
    pub offset: u64,
    /// Whose.
    pub from: Role,
    /// How.
    pub kind: EndKind,
    /// The time of the last packet.
    pub timestamp: Timestamp,
}

/// Where a parser puts its messages.
pub type Out<'o, P> = &'o mut dyn for<'m> FnMut(<P as Parser>::Message<'m>);

/// Turns octets into messages.
///
/// The driver calls it with what each direction says, in order, and keeps what the parser leaves. Both directions of a
/// connection go to one parser, whose state should be small: there is one per recognised flow.
///
/// A parser of streams has [`bytes`](Self::bytes), one of datagrams [`datagram`](Self::datagram); a protocol that is spoken over
/// both has both.
pub trait Parser: Sized + 'static {
    /// What it says. It may borrow the octets.
    type Message<'m>;

    /// Takes octets of a stream. Called with what was left and at least one octet more; [`Input::seen_len`] says how much of it
    /// was there before.
    ///
    /// # Errors
    ///
    /// Why it gives up: it is dropped.
    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let _ = (input, out);
        Err(Fault::NOT_SPOKEN)
    }

    /// Takes a datagram. [`Progress::Done`] means: no more of either direction; other progress means nothing.
    ///
    /// # Errors
    ///
    /// Why it gives up: it is dropped. A datagram that is merely bad should be left alone instead.
    fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let _ = (datagram, out);
        Err(Fault::NOT_SPOKEN)
    }

    /// Octets are missing.
    fn gap(&mut self, missing: &Missing<'_>, out: Out<'_, Self>) -> AfterGap {
        let _ = (missing, out);
        AfterGap::Stop
    }

    /// A direction ended. Of a stream, each direction ends once; of datagrams, both end with the flow.
    fn end(&mut self, end: &End<'_>, out: Out<'_, Self>) {
        let _ = (end, out);
    }

    /// A second or more of the flow's time is over since it was last called; comes before the octets of that time.
    fn tick(&mut self, now: Timestamp, out: Out<'_, Self>) {
        let _ = (now, out);
    }

    /// Whether a message is a piece of what is carried, such as a body, and no longer than the octets that it was made of. All
    /// others are counted, and left out where a flow reports more of them than its packets account for
    /// ([`MESSAGE_CREDIT`](super::MESSAGE_CREDIT)).
    #[must_use]
    fn is_content(message: &Self::Message<'_>) -> bool {
        let _ = message;
        false
    }

    /// Octets that it has allocated beside itself, which are charged to the budget.
    fn heap_len(&self) -> usize {
        0
    }
}
