//! The trait that a parser of an application protocol implements, and its inputs.

use std::fmt;

use super::content::Piece;
use super::expectation::Expectation;
use super::protocol::{Protocol, Role};
use crate::base::Timestamp;
use crate::checkpoint::{Invalid, StateWriter};
use crate::codec::Reader;
use crate::reassembler::GapReason;

/// The next octets of a stream in order, beginning with the first one that the parser has not consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Input<'a> {
    /// The octets to be parsed, at least one.
    pub bytes: &'a [u8],
    /// Number of octets of the stream before `bytes`, including missing ones.
    pub offset: u64,
    /// Role of the sender of the octets.
    pub from: Role,
    /// Capture time of the packet that made the last octet of `bytes` available in order.
    pub timestamp: Timestamp,
    /// Number of octets at the start of `bytes` that an earlier input contained, and of which the parser consumed none. A
    /// parser that searched them without success continues its search after them, so that octets that arrive one by one
    /// are searched once and not again with each call. Zero if all octets are new.
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
    /// Creates an input for a parser that is used without the driver.
    #[must_use]
    pub const fn new(bytes: &'a [u8], offset: u64, from: Role, timestamp: Timestamp) -> Self {
        Self { bytes, offset, from, timestamp, seen_len: 0 }
    }

    /// Sets the number of octets at the start of `bytes` that the parser has seen before.
    #[must_use]
    pub(crate) const fn with_seen_len(self, seen_len: usize) -> Self {
        Self { seen_len, ..self }
    }
}

/// The payload of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Datagram<'a> {
    /// The captured octets of the payload.
    pub bytes: &'a [u8],
    /// Length of the payload on the wire in octets, which exceeds that of `bytes` if the snap length truncated the
    /// datagram.
    pub len: usize,
    /// Role of the sender of the datagram.
    pub from: Role,
    /// Capture time of the datagram.
    pub timestamp: Timestamp,
    /// True for the first datagram of a flow after another flow [announced](Parser::expectation) it, also if it was
    /// announced again.
    pub is_announced: bool,
}

impl<'a> Datagram<'a> {
    /// Creates a datagram that was captured completely.
    #[must_use]
    pub const fn new(bytes: &'a [u8], from: Role, timestamp: Timestamp) -> Self {
        Self { bytes, len: bytes.len(), from, timestamp, is_announced: false }
    }

    /// Returns whether the snap length truncated the datagram.
    #[must_use]
    pub const fn is_truncated(&self) -> bool {
        self.bytes.len() < self.len
    }
}

/// Progress of a parser in one direction of a stream.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress {
    /// The parser consumed this many octets. It is called again with the rest: at once if it consumed at least one octet,
    /// so that it may take one message per call, otherwise when further octets follow; meanwhile the rest is buffered.
    Took(usize),
    /// The parser consumed `taken` octets, and is called again when at least `need` octets are available after them: at once
    /// if it consumed at least one octet, and so many are available.
    Needs {
        /// Number of octets consumed by the parser.
        taken: usize,
        /// Total number of octets after the consumed ones that the parser needs.
        need: usize,
    },
    /// The parser needs no more octets of this direction. When both directions are done, the memory of the parser is
    /// released.
    Done,
    /// The parser consumed `taken` octets, and another protocol follows in both directions.
    Handover {
        /// Number of octets consumed by the parser.
        taken: usize,
        /// The protocol that follows; `None` if the probes must identify it.
        next: Option<&'static Protocol>,
    },
    /// The parser cannot read this datagram before one of the other side, which may be captured later. The driver keeps the
    /// first [`PROBE_DATAGRAM_COUNT_MAX`](super::PROBE_DATAGRAM_COUNT_MAX) of them, and passes them again, with their times,
    /// after each datagram of the other side within [`AWAITED_TIME`](super::AWAITED_TIME). Has the effect of `Took(0)` in a
    /// stream.
    Early,
}

impl Progress {
    /// Returns the progress of a parser that consumed `taken` of `available_len` octets, and needs at least one octet more
    /// after the rest. It is not called again before.
    #[must_use]
    pub const fn incomplete(taken: usize, available_len: usize) -> Self {
        Self::Needs { taken, need: available_len.saturating_sub(taken) + 1 }
    }
}

/// Reason for which a parser stops. The parser is then dropped, and the flow stays tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault(&'static str);

impl Fault {
    /// Fault: more octets would have to be buffered than [`Limits::session_side_bytes_max`](crate::base::Limits) and
    /// [`Protocol::with_message_len_max`] allow.
    pub const TOO_LONG: Self = Self("too_long");
    /// Fault: memory was refused by [`Limits::session_bytes_max`](crate::base::Limits), or the budget.
    pub const NO_MEMORY: Self = Self("no_memory");
    /// Fault: memory for sessions was short, and this session was charged longest ago.
    pub const EVICTED: Self = Self("evicted");
    /// Fault: octets are missing, and the parser cannot continue after them.
    pub const GAP: Self = Self("gap");
    /// Fault: the parser does not support this transport.
    pub const UNSUPPORTED_TRANSPORT: Self = Self("unsupported_transport");
    /// Fault: the connection requested more handovers than [`HANDOVER_COUNT_MAX`](super::HANDOVER_COUNT_MAX).
    pub const TOO_MANY_HANDOVERS: Self = Self("too_many_handovers");

    /// Creates a fault from a reason: one or a few words in lower case, with underscores.
    #[must_use]
    pub const fn new(reason: &'static str) -> Self {
        Self(reason)
    }

    /// Returns the reason of the fault, such as `gap`.
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

/// A gap: octets of a stream that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing<'a> {
    /// Buffered octets before the gap that the parser did not consume. They are dropped after this call.
    pub rest: &'a [u8],
    /// Stream offset at which the gap begins: number of octets before it.
    pub offset: u64,
    /// Number of missing octets: at least one, unless the reason is [`GapReason::Checkpoint`] and the state of the parser was
    /// not [saved](Parser::save). The parser is then a new one, and the octets before the gap were passed to another one.
    pub len: u64,
    /// Role of the sender of the missing octets.
    pub from: Role,
    /// Reason why the octets are missing.
    pub reason: GapReason,
    /// Time at which the wait for the missing octets ended.
    pub timestamp: Timestamp,
}

/// Decision of a parser after a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterGap {
    /// The parser can continue with the octets after the gap.
    Resume,
    /// The parser cannot continue after the gap.
    Stop,
}

/// Cause of the end of a direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndKind {
    /// A FIN ended the direction: the stream is complete.
    Fin,
    /// A RST ended the direction.
    Reset,
    /// The flow ended for another reason: a timeout, or the end of the capture.
    Flow,
}

/// The end of a direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct End<'a> {
    /// Buffered octets that the parser did not consume.
    pub rest: &'a [u8],
    /// Number of octets of the stream before `rest`.
    pub offset: u64,
    /// Role of the sender of the direction that ended.
    pub from: Role,
    /// Cause of the end of the direction.
    pub kind: EndKind,
    /// Capture time of the last packet.
    pub timestamp: Timestamp,
}

/// What the parser of a conversation of datagrams leaves when it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Number of conversations so far, by which the parser bounds them.
    pub count: u8,
    /// What identifies the conversation, so that its late and repeated datagrams do not begin another one.
    pub mark: u64,
}

/// Callback that receives the messages of a parser.
pub type Out<'o, P> = &'o mut dyn for<'m> FnMut(<P as Parser>::Message<'m>);

/// Parser of octets into messages.
///
/// The driver passes the octets of each direction in order, and buffers those that the parser does not consume. Both
/// directions of a connection are passed to one parser, whose state should be small: there is one per recognized flow.
///
/// A parser of streams implements [`bytes`](Self::bytes), one of datagrams implements [`datagram`](Self::datagram); a
/// parser of a protocol that uses both kinds of transport implements both.
pub trait Parser: Sized + 'static {
    /// Type of the messages. A message may borrow the octets of the input.
    type Message<'m>;

    /// Processes octets of a stream, beginning with the first that was not consumed. Either at least one octet is new, or the
    /// parser has consumed octets in the call before: the driver calls it until it consumes nothing, so that it may take one
    /// message or all of them per call. [`Input::seen_len`] is the number of octets in which the parser has already found
    /// nothing to consume. A parser that takes all messages, and returns [`Progress::Needs`] for one that is incomplete, is
    /// called once per segment.
    ///
    /// A flow may report one message for each [`MESSAGE_OCTET_COUNT`](super::MESSAGE_OCTET_COUNT) octets, 16, besides some for
    /// each packet. Further ones are suppressed, and reported as
    /// [`SessionEvent::Suppressed`](super::SessionEvent::Suppressed) and in
    /// [`DriverStats::suppressed_message_count`](super::DriverStats::suppressed_message_count). A protocol whose messages may be
    /// shorter says so with [`Protocol::with_message_len_min`].
    ///
    /// # Errors
    ///
    /// The reason for which the parser stops. The driver then drops it.
    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let _ = (input, out);
        Err(Fault::UNSUPPORTED_TRANSPORT)
    }

    /// Processes a datagram. [`Progress::Done`] ends both directions, and [`Progress::Early`] keeps the datagram; any other
    /// progress has no effect.
    ///
    /// # Errors
    ///
    /// The reason for which the parser stops. The driver then drops it. A parser should ignore a datagram that is
    /// merely malformed.
    fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let _ = (datagram, out);
        Err(Fault::UNSUPPORTED_TRANSPORT)
    }

    /// Processes a gap in a stream. Returns whether the parser can continue after it.
    fn gap(&mut self, missing: &Missing<'_>, out: Out<'_, Self>) -> AfterGap {
        let _ = (missing, out);
        AfterGap::Stop
    }

    /// Processes the end of a direction. Each direction of a stream ends once; both directions of a flow of datagrams
    /// end with the flow.
    fn end(&mut self, end: &End<'_>, out: Out<'_, Self>) {
        let _ = (end, out);
    }

    /// Reports what the parser keeps: it is dropped before the ends of both directions because of a fault, such as a gap after
    /// which it cannot continue, or eviction.
    fn finish(&mut self, out: Out<'_, Self>) {
        let _ = out;
    }

    /// Processes the passing of time. Called before octets are passed to the parser if at least one second of the
    /// flow's time has elapsed since the last call.
    fn tick(&mut self, now: Timestamp, out: Out<'_, Self>) {
        let _ = (now, out);
    }

    /// Returns the piece of a file that a message transfers.
    #[must_use]
    fn piece<'m>(message: &'m Self::Message<'_>) -> Option<Piece<'m>> {
        let _ = message;
        None
    }

    /// Returns whether a message is a piece of transported content, such as a body, and no longer than the octets from
    /// which it was made; by default, that of [octets or a gap](Self::piece) of a file. All other messages are counted, and
    /// suppressed if a flow reports more of them than its packets justify ([`MESSAGE_CREDIT`](super::MESSAGE_CREDIT),
    /// [`Protocol::with_message_len_min`]).
    #[inline]
    #[must_use]
    fn is_content(message: &Self::Message<'_>) -> bool {
        Self::piece(message).is_some_and(|piece| piece.is_content())
    }

    /// Returns the flow that a message announces, such as a data connection of FTP. Its octets are then passed to a parser of
    /// the announced protocol: those of a stream whichever protocol the probes find, datagrams unless content or port names
    /// another one. Both flows need the same driver; the application in the record of a flow does not depend on
    /// announcements, and so not on the number of shards.
    #[must_use]
    fn expectation(message: &Self::Message<'_>) -> Option<Expectation> {
        let _ = message;
        None
    }

    /// Returns what a parser that is done with datagrams, or stops, leaves for the parser of a later conversation between the
    /// same ports; `None`, the default, if the rest of the flow is ignored. It is called for protocols with
    /// [`Protocol::repeated_by`](super::Protocol::repeated_by).
    #[must_use]
    fn remains(&self) -> Option<Remains> {
        None
    }

    /// Prepares a new parser for a later conversation of a flow.
    fn succeed(&mut self, remains: Remains) {
        let _ = remains;
    }

    /// Returns the number of octets that the parser has allocated in addition to its own struct. They are charged to
    /// the memory budget.
    fn heap_len(&self) -> usize {
        0
    }

    /// Writes the state of the parser to a checkpoint. Returns false if it is not saved, which is the default: a new parser
    /// then continues in each direction of a stream as after a gap with the reason [`GapReason::Checkpoint`].
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the state cannot be saved.
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<bool, Invalid> {
        let _ = writer;
        Ok(false)
    }

    /// Reads the state of the parser, which may contain anything, into a new one.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the octets are not a state that [`save`](Self::save) writes.
    fn load(&mut self, reader: &mut Reader<'_>) -> Result<(), Invalid> {
        let _ = reader;
        Err(Invalid::new("the state of a parser that has none"))
    }
}

/// Implements [`Parser::save`] and [`Parser::load`] for a parser that is [`Saved`](crate::checkpoint::Saved).
#[cfg(feature = "protocols")]
macro_rules! saved {
    () => {
        fn save(
            &self,
            writer: &mut $crate::checkpoint::StateWriter<'_>,
        ) -> Result<bool, $crate::checkpoint::Invalid> {
            $crate::checkpoint::Saved::save(self, writer).map(|()| true)
        }

        fn load(
            &mut self,
            reader: &mut $crate::codec::Reader<'_>,
        ) -> Result<(), $crate::checkpoint::Invalid> {
            *self = $crate::checkpoint::Saved::load(reader)?;
            Ok(())
        }
    };
}
#[cfg(feature = "protocols")]
pub(crate) use saved;
