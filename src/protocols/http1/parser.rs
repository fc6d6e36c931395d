//! The HTTP/1.x parser: alternating heads and bodies of each direction. The directions share only the kinds of pending
//! requests.

use memchr::memchr;

use super::framing::{Framing, Known};
use super::head::{self, First, Head};
use super::headers::Headers;
use super::message::{Anomaly, Body, BodyGap, End, Message, Request, Response, Version};
use super::pending::{Kind, Pending};
use super::resync;
use super::{WEBSOCKET, chunked, credentials, probe};
use crate::checkpoint::state;
use crate::protocols::http2;
use crate::session::{
    self, AfterGap, EndKind, Fault, Input, Missing, Out, Parser, Piece, Progress, Protocol, Role, Search,
    Text,
};

/// Number of octets after a request for a tunnel or another protocol that are buffered until the response arrives. If
/// more octets follow, the response is assumed not to be captured.
const WAIT_LEN_MAX: usize = 2048;

/// Maximum number of octets that are searched for a message after HTTP was seen in the flow: after a body that is
/// longer than declared, or if the capture begins in the middle of a body.
const STRAY_LEN_MAX: u64 = 1 << 20;

/// Maximum number of octets that are searched for a message before any message was seen in the flow. The other
/// direction may have one, because servers also answer invalid requests.
const FIRST_STRAY_LEN_MAX: u64 = 16 << 10;

/// Parser of HTTP/1.x connections. See [the module](super) for its input and messages.
#[derive(Debug, Default)]
pub struct HttpParser {
    lanes: [Lane; 2],
    pending: Pending,
    /// True after a message of either direction was parsed: invalid octets then mean that the parser is not
    /// synchronized, not that the protocol is another one.
    has_message: bool,
}

/// Parsing state of one direction of an HTTP/1.x connection.
#[derive(Debug, Default)]
struct Lane {
    state: State,
    /// Number of the request to which the current message belongs.
    transaction: u64,
    body_len: u64,
    missing_len: u64,
    kind: Kind,
    /// True if the first line of the current head was found to be valid.
    has_line: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Before or inside a message head.
    #[default]
    Head,
    /// In a body of known length, of which `left` octets remain.
    Fixed { left: u64 },
    /// Before the line that precedes a chunk.
    ChunkLine,
    /// In a chunk of a body, of which `left` octets remain.
    Chunk { left: u64 },
    /// After the octets of a chunk, before the line end that follows them.
    ChunkEnd,
    /// After the last chunk of a body, before the end of the trailer section.
    Trailers,
    /// In a body that ends with the connection.
    UntilClose,
    /// After a head whose body may be omitted, which the next octets show: of a request with `Expect: 100-continue`, or of
    /// the response to an unknown request, which may be HEAD.
    Optional(Framing),
    /// After a client's request for a protocol other than HTTP: the response determines the protocol of the octets that
    /// follow.
    Waiting,
    /// Searching for the beginning of a message, within the next `left` octets.
    Astray { left: u64 },
    /// After the last octet that can be parsed.
    Ended,
}

state! { struct HttpParser { lanes, pending, has_message } }
state! { struct Lane { state, transaction, body_len, missing_len, kind, has_line } }
state! { enum State {
    0 = Head,
    1 = Fixed { left },
    2 = ChunkLine,
    3 = Chunk { left },
    4 = ChunkEnd,
    5 = Trailers,
    6 = UntilClose,
    7 = Waiting,
    8 = Astray { left },
    9 = Ended,
    10 = Optional(framing),
} }

/// Result of a parsing step in one direction.
enum Step {
    Took(usize),
    /// The step consumed this many octets, searched the others completely, and needs more octets.
    Wait(usize),
    /// The remaining octets of the direction cannot be parsed.
    Done,
    Handover(usize, Option<&'static Protocol>),
}

/// Properties of the octets that follow an HTTP/1.x head.
struct Follows {
    transaction: u64,
    kind: Kind,
    framing: Framing,
    /// True if the next octets show whether there is a body.
    is_optional: bool,
    then: Then,
}

enum Then {
    Body,
    /// Another response to the same request follows the head.
    Response,
    Handover(Option<&'static Protocol>),
}

impl Parser for HttpParser {
    type Message<'m> = Message<'m>;

    crate::session::saved!();

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        // Octets that the last step of the previous call searched without success. Every other step finds octets that
        // it has not seen.
        let (mut taken, mut seen_len) = (0, input.seen_len);
        while let Some(rest) = input.bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            match self.step(input.from, rest, seen_len, out)? {
                Step::Took(len) => taken += len,
                Step::Wait(len) => return Ok(Progress::incomplete(taken + len, input.bytes.len())),
                Step::Done => return Ok(Progress::Done),
                Step::Handover(len, next) => return Ok(Progress::Handover { taken: taken + len, next }),
            }
            seen_len = 0;
        }
        Ok(Progress::Took(taken))
    }

    fn gap(&mut self, missing: &Missing<'_>, out: Out<'_, Self>) -> AfterGap {
        let from = missing.from;
        if self.lane(from).state == State::Head {
            self.truncated_head(from, missing.rest, out);
        }
        self.begin_body(&Input::new(missing.rest, missing.offset, from, missing.timestamp), out);
        let lane = from.of_mut(&mut self.lanes);
        match &mut lane.state {
            State::Fixed { left } | State::Chunk { left } => {
                let len = missing.len.min(*left);
                *left -= len;
                let is_over = *left == 0;
                // A gap that extends beyond the end of the message also covers the start of the next one.
                let is_within = missing.len == len;
                if len > 0 {
                    lane.miss(len, out);
                }
                match (lane.state, is_within, is_over) {
                    (_, true, false) => return AfterGap::Resume,
                    (State::Fixed { .. }, _, true) => {
                        lane.end(Headers::default(), out);
                        lane.go_on(from);
                        if is_within {
                            return AfterGap::Resume;
                        }
                    }
                    (State::Chunk { .. }, true, true) => {
                        lane.state = State::ChunkEnd;
                        return AfterGap::Resume;
                    }
                    _ => lane.break_off(out),
                }
            }
            State::UntilClose => {
                lane.miss(missing.len, out);
                return AfterGap::Resume;
            }
            State::ChunkLine | State::ChunkEnd | State::Trailers | State::Optional(_) => lane.break_off(out),
            State::Waiting | State::Ended => return AfterGap::Resume,
            State::Head | State::Astray { .. } => {}
        }
        lane.has_line = false;
        lane.state = State::Astray { left: u64::MAX };
        if from == Role::Server {
            self.pending.lost_responses();
        }
        AfterGap::Resume
    }

    fn end(&mut self, end: &session::End<'_>, out: Out<'_, Self>) {
        if self.lane(end.from).state == State::Head {
            // An incomplete line that was answered, though not by a response, was a request to the server.
            let is_answered = matches!(self.lane(end.from.other()).state, State::Astray { .. });
            let line = head::simple_line(end.rest).filter(|_| end.from == Role::Client && is_answered);
            match line {
                Some(head) => self.simple_request(&head, out),
                None => self.truncated_head(end.from, end.rest, out),
            }
        }
        self.begin_body(&Input::new(end.rest, end.offset, end.from, end.timestamp), out);
        let lane = end.from.of_mut(&mut self.lanes);
        match lane.state {
            State::Astray { .. } => return,
            State::Head | State::Waiting => {}
            // The client does not send the body of a refused request.
            State::Optional(_) => lane.end(Headers::default(), out),
            State::UntilClose if end.kind == EndKind::Fin => lane.end(Headers::default(), out),
            _ => lane.break_off(out),
        }
        lane.state = State::Ended;
    }

    #[inline]
    fn piece<'m>(message: &'m Message<'_>) -> Option<Piece<'m>> {
        message.piece()
    }
}

impl HttpParser {
    fn lane(&self, from: Role) -> &Lane {
        from.of(&self.lanes)
    }

    /// Performs one parsing step on the next octets of a direction, at least one. The first `seen_len` octets were
    /// searched in the same state before.
    #[inline]
    fn step(&mut self, from: Role, bytes: &[u8], seen_len: usize, out: Out<'_, Self>) -> Result<Step, Fault> {
        let lane = from.of_mut(&mut self.lanes);
        match lane.state {
            State::Head => self.head(from, bytes, seen_len, out),
            State::Fixed { left } => {
                let len = lane.piece(bytes, left, out);
                match left - len as u64 {
                    0 => {
                        lane.end(Headers::default(), out);
                        lane.go_on(from);
                    }
                    left => lane.state = State::Fixed { left },
                }
                Ok(Step::Took(len))
            }
            State::ChunkLine => {
                let Ok(line) = chunked::size_line(bytes, seen_len) else {
                    return Ok(self.break_off(from, out));
                };
                let Some((len, size)) = line else { return Ok(Step::Wait(0)) };
                lane.state = if size == 0 { State::Trailers } else { State::Chunk { left: size } };
                Ok(Step::Took(len))
            }
            State::Chunk { left } => {
                let len = lane.piece(bytes, left, out);
                let left = left - len as u64;
                lane.state = if left == 0 { State::ChunkEnd } else { State::Chunk { left } };
                Ok(Step::Took(len))
            }
            State::ChunkEnd => {
                let Ok(line_end) = chunked::line_end(bytes) else { return Ok(self.break_off(from, out)) };
                let Some(len) = line_end else { return Ok(Step::Wait(0)) };
                lane.state = State::ChunkLine;
                Ok(Step::Took(len))
            }
            State::Trailers => {
                let end = |fields: &[httparse::Header<'_>]| lane.end(Headers::new(fields), out);
                let Ok(read) = head::read_trailers(bytes, seen_len, end) else {
                    return Ok(self.break_off(from, out));
                };
                let Some((len, ())) = read else { return Ok(Step::Wait(0)) };
                lane.go_on(from);
                Ok(Step::Took(len))
            }
            State::UntilClose => Ok(Step::Took(lane.piece(bytes, u64::MAX, out))),
            State::Waiting => Ok(self.wait(from, bytes, seen_len)),
            State::Optional(framing) => Ok(self.optional_body(from, (bytes, seen_len), framing, out)),
            State::Ended => Ok(Step::Done),
            State::Astray { left } => match resync::search(from, bytes, seen_len) {
                Search::Found(place) | Search::From(place) if place as u64 > left => {
                    if self.has_message {
                        Ok(Step::Done)
                    } else {
                        Err(unexpected_start(from))
                    }
                }
                Search::Found(place) => {
                    lane.state = State::Head;
                    Ok(Step::Took(place))
                }
                Search::From(place) => {
                    lane.state = State::Astray { left: left - place as u64 };
                    Ok(Step::Wait(place))
                }
            },
        }
    }

    /// Processes octets of the client after a request for a protocol other than HTTP, while the response determines
    /// their protocol.
    fn wait(&mut self, from: Role, bytes: &[u8], seen_len: usize) -> Step {
        let lane = from.of_mut(&mut self.lanes);
        let (seen, new) = bytes.split_at_checked(seen_len).unwrap_or((&[], bytes));
        // The first octets determine whether this is a request, or else the end of its line does.
        let is_decidable = seen.len() < probe::BEGINNING_LEN
            || memchr(b'\n', new).is_some() && memchr(b'\n', seen).is_none();
        // Many clients send an upgrade header without waiting for the response.
        let goes_on = is_decidable && lane.kind == Kind::Upgrade && probe::is_request(bytes);
        if goes_on || !self.pending.is_waiting(lane.transaction) {
            lane.state = State::Head;
            Step::Took(0)
        } else if bytes.len() > WAIT_LEN_MAX {
            Step::Handover(0, None)
        } else {
            Step::Wait(0)
        }
    }

    /// Processes the first octets after a head whose body may be omitted. There is none if they begin a message.
    #[cold]
    fn optional_body(
        &mut self,
        from: Role,
        (bytes, seen_len): (&[u8], usize),
        framing: Framing,
        out: Out<'_, Self>,
    ) -> Step {
        let lane = from.of_mut(&mut self.lanes);
        let is_message = match from {
            Role::Client if !self.pending.is_refused(lane.transaction) => Some(false),
            Role::Client => probe::begins_request(bytes, seen_len, WAIT_LEN_MAX),
            Role::Server => probe::is_status_line(bytes),
        };
        match is_message {
            None => return Step::Wait(0),
            Some(true) => {
                lane.end(Headers::default(), out);
                lane.go_on(from);
            }
            Some(false) => lane.state = State::of_body(framing),
        }
        Step::Took(0)
    }

    /// Begins a body of which it is not known whether it is omitted, unless its request was refused and no octets of it
    /// were received.
    fn begin_body(&mut self, input: &Input<'_>, out: Out<'_, Self>) {
        let from = input.from;
        let lane = from.of_mut(&mut self.lanes);
        let State::Optional(framing) = lane.state else { return };
        if from == Role::Client && input.bytes.is_empty() && self.pending.is_refused(lane.transaction) {
            return;
        }
        lane.state = State::of_body(framing);
        // By the function for other octets: a second caller of `step` would keep it from being inlined there. Neither a gap
        // nor the end of a stream reports a fault.
        let _ = self.bytes(input, out);
    }

    fn head(&mut self, from: Role, bytes: &[u8], seen_len: usize, out: Out<'_, Self>) -> Result<Step, Fault> {
        if from == Role::Server && self.pending.next_kind() == Kind::Simple {
            match head::begins_status_line(bytes) {
                None => return Ok(Step::Wait(0)),
                Some(true) => {}
                Some(false) => {
                    let (transaction, kind) = self.pending.response(false);
                    let lane = from.of_mut(&mut self.lanes);
                    *lane = Lane { state: State::UntilClose, transaction, kind, ..Lane::default() };
                    return Ok(Step::Took(0));
                }
            }
        }
        // Empty lines before a request are ignored (RFC 9112 section 2.2); some servers send them too.
        let is_line_end = |octet: &u8| matches!(octet, b'\r' | b'\n');
        if bytes.first().is_some_and(is_line_end) {
            return Ok(Step::Took(bytes.iter().take_while(|octet| is_line_end(octet)).count()));
        }
        let lane = from.of_mut(&mut self.lanes);
        let pending = &mut self.pending;
        let read = head::read(from, bytes, seen_len, &mut lane.has_line, |head| emit(pending, head, out));
        let (len, follows) = match read {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(Step::Wait(0)),
            Err(fault) => return self.without_head(from, bytes, fault, out),
        };
        let kind = follows.kind;
        self.has_message = true;
        *lane = Lane { transaction: follows.transaction, kind, ..Lane::default() };
        match (follows.then, follows.framing) {
            (Then::Handover(next), _) => return Ok(Step::Handover(len, next)),
            (Then::Response, _) => {}
            (Then::Body, Framing::Empty) => {
                lane.end(Headers::default(), out);
                lane.go_on(from);
            }
            (Then::Body, Framing::Unknown) => {
                self.break_off(from, out);
            }
            (Then::Body, framing) if follows.is_optional => lane.state = State::Optional(framing),
            (Then::Body, framing) => lane.state = State::of_body(framing),
        }
        Ok(Step::Took(len))
    }

    /// Reports a request of HTTP/0.9, and its end.
    #[cold]
    fn simple_request(&mut self, head: &Head<'_>, out: Out<'_, Self>) {
        self.has_message = true;
        let Follows { transaction, kind, .. } = emit(&mut self.pending, head, out);
        let lane = Role::Client.of_mut(&mut self.lanes);
        // Nothing has to follow; the next octets may be header fields.
        *lane = Lane { state: State::Astray { left: STRAY_LEN_MAX }, transaction, kind, ..Lane::default() };
        lane.end(Headers::default(), out);
    }

    /// Processes invalid octets where a head must begin, and starts the search for a message.
    #[cold]
    fn without_head(
        &mut self,
        from: Role,
        bytes: &[u8],
        fault: Fault,
        out: Out<'_, Self>,
    ) -> Result<Step, Fault> {
        let lane = from.of_mut(&mut self.lanes);
        if from == Role::Client
            && let Some((len, head)) = head::simple_request(bytes)
        {
            self.simple_request(&head, out);
            return Ok(Step::Took(len));
        }
        lane.has_line = false;
        let left = if self.has_message { STRAY_LEN_MAX } else { FIRST_STRAY_LEN_MAX };
        lane.state = State::Astray { left };
        if !self.has_message && matches!(self.lane(from.other()).state, State::Astray { .. }) {
            return Err(fault);
        }
        // The head must not be found again, and its lines must not be taken for further heads of that length.
        Ok(Step::Took(head::refused_len(bytes, fault)))
    }

    /// Ends the current message because its framing is invalid, and searches for the next message.
    #[cold]
    fn break_off(&mut self, from: Role, out: Out<'_, Self>) -> Step {
        let lane = from.of_mut(&mut self.lanes);
        lane.break_off(out);
        lane.has_line = false;
        lane.state = State::Astray { left: STRAY_LEN_MAX };
        if from == Role::Server {
            self.pending.lost_responses();
        }
        Step::Took(0)
    }

    /// Reports a head of which only the start was captured.
    fn truncated_head(&mut self, from: Role, rest: &[u8], out: Out<'_, Self>) {
        let start = rest.iter().take_while(|octet| matches!(octet, b'\r' | b'\n')).count();
        let pending = &mut self.pending;
        let rest = rest.get(start..).unwrap_or_default();
        if let Some(follows) = head::read_truncated(from, rest, |head| emit(pending, head, out)) {
            let lane = from.of_mut(&mut self.lanes);
            *lane = Lane { transaction: follows.transaction, ..Lane::default() };
            if !matches!(follows.then, Then::Response) {
                lane.break_off(out);
            }
        }
    }
}

impl State {
    /// Returns the state before the first octet of a body.
    const fn of_body(framing: Framing) -> Self {
        match framing {
            Framing::Fixed(left) => Self::Fixed { left },
            Framing::Chunked => Self::ChunkLine,
            Framing::UntilClose => Self::UntilClose,
            Framing::Empty | Framing::Unknown => Self::Head,
        }
    }
}

impl Lane {
    /// Reports octets at the start of `bytes`, at most `left`, as a piece of a body. Returns the length of the piece.
    #[inline]
    fn piece(&mut self, bytes: &[u8], left: u64, out: Out<'_, HttpParser>) -> usize {
        let len = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let bytes = bytes.get(..len).unwrap_or_default();
        out(Message::Body(Body { transaction: self.transaction, offset: self.body_len, bytes }));
        self.body_len = self.body_len.saturating_add(len as u64);
        len
    }

    fn miss(&mut self, len: u64, out: Out<'_, HttpParser>) {
        out(Message::Gap(BodyGap { transaction: self.transaction, offset: self.body_len, len }));
        self.body_len = self.body_len.saturating_add(len);
        self.missing_len = self.missing_len.saturating_add(len);
    }

    /// Reports that the current message ended as its framing specifies.
    fn end(&mut self, trailers: Headers<'_>, out: Out<'_, HttpParser>) {
        self.emit_end(self.missing_len == 0, trailers, out);
    }

    /// Reports that the rest of the current message is missing.
    fn break_off(&mut self, out: Out<'_, HttpParser>) {
        self.emit_end(false, Headers::default(), out);
        self.state = State::Head;
    }

    fn emit_end(&mut self, complete: bool, trailers: Headers<'_>, out: Out<'_, HttpParser>) {
        let Self { transaction, body_len, missing_len, .. } = *self;
        out(Message::End(End { transaction, body_len, missing_len, complete, trailers }));
    }

    /// Prepares for the octets after the current message: the next message, or the protocol that the client requested.
    fn go_on(&mut self, from: Role) {
        let is_requested = from == Role::Client && matches!(self.kind, Kind::Connect | Kind::Upgrade);
        self.state = if is_requested { State::Waiting } else { State::Head };
    }
}

fn unexpected_start(from: Role) -> Fault {
    Fault::new(if from == Role::Client { "not_a_request" } else { "not_a_response" })
}

/// Reports a request or response head. Returns the properties of the octets that follow it.
fn emit(pending: &mut Pending, head: &Head<'_>, out: Out<'_, HttpParser>) -> Follows {
    let known = Known::read(head.fields);
    let from = match head.first {
        First::Request { .. } => Role::Client,
        First::Status { .. } => Role::Server,
    };
    let anomaly = if head.anomaly == Some(Anomaly::Truncated) {
        head.anomaly
    } else {
        known.anomaly(from).or(head.anomaly)
    };
    match head.first {
        First::Request { method, target } => {
            emit_request(pending, head, (method, target), known, anomaly, out)
        }
        First::Status { code, reason } => emit_response(pending, head, (code, reason), known, anomaly, out),
    }
}

fn emit_request(
    pending: &mut Pending,
    head: &Head<'_>,
    (method, target): (&[u8], &[u8]),
    known: Known<'_>,
    anomaly: Option<Anomaly>,
    out: Out<'_, HttpParser>,
) -> Follows {
    let kind = match method {
        _ if head.version == Version::Http09 => Kind::Simple,
        b"HEAD" => Kind::Head,
        b"CONNECT" => Kind::Connect,
        _ if known.upgrade.is_some() => Kind::Upgrade,
        _ => Kind::Plain,
    };
    let transaction = pending.request(kind);
    let bare_target = credentials::without_userinfo(target, kind == Kind::Connect);
    let bare_referer = known.referer.and_then(|uri| credentials::without_userinfo(uri, false));
    let bare_host = known.host.and_then(|host| credentials::without_userinfo(host.0, true));
    let has_userinfo = [&bare_target, &bare_referer, &bare_host].iter().any(|bare| bare.is_some());
    let userinfo = has_userinfo.then_some("userinfo");
    out(Message::Request(Request {
        transaction,
        method: Text(method),
        target: Text(bare_target.as_deref().unwrap_or(target)),
        version: head.version,
        host: bare_host.as_deref().map(Text).or(known.host),
        user_agent: known.user_agent,
        referer: bare_referer.as_deref().or(known.referer).map(Text),
        content_type: known.content_type,
        content_encoding: known.content_encoding,
        content_length: known.content_length(),
        transfer_encoding: known.transfer_encoding,
        upgrade: known.upgrade,
        anomaly,
        credentials: credentials::foremost(known.credentials, userinfo),
        headers: Headers::new(head.fields),
    }));
    let is_optional = known.expects_continue;
    Follows { transaction, kind, framing: known.of_request(), is_optional, then: Then::Body }
}

fn emit_response(
    pending: &mut Pending,
    head: &Head<'_>,
    (status, reason): (u16, &[u8]),
    known: Known<'_>,
    anomaly: Option<Anomaly>,
    out: Out<'_, HttpParser>,
) -> Follows {
    let is_interim = status < 200 && status != 101;
    let (transaction, kind) = pending.response(is_interim);
    let bare_location = known.location.and_then(|uri| credentials::without_userinfo(uri, false));
    let userinfo = bare_location.is_some().then_some("userinfo");
    out(Message::Response(Response {
        transaction,
        status,
        reason: Text(reason),
        version: head.version,
        server: known.server,
        location: bare_location.as_deref().or(known.location).map(Text),
        content_type: known.content_type,
        content_encoding: known.content_encoding,
        content_length: known.content_length(),
        range_start: known.content_range.start,
        complete_len: known.content_range.complete_len,
        range_len: known.content_range.len,
        transfer_encoding: known.transfer_encoding,
        upgrade: known.upgrade,
        anomaly,
        credentials: credentials::foremost(known.credentials, userinfo),
        headers: Headers::new(head.fields),
    }));
    if status >= 300 {
        pending.refuse(transaction);
    }
    let framing = known.of_response(kind, status);
    let is_optional = kind == Kind::Unknown;
    if status == 101 {
        let then = Then::Handover(known.upgrade.and_then(upgrade));
        return Follows { transaction, kind, framing: Framing::Empty, is_optional, then };
    }
    // For a granted CONNECT, length fields are ignored (RFC 9112 section 6.3).
    if kind == Kind::Connect && (200..300).contains(&status) {
        let then = Then::Handover(None);
        return Follows { transaction, kind, framing: Framing::Empty, is_optional, then };
    }
    let then = if is_interim { Then::Response } else { Then::Body };
    Follows { transaction, kind, framing, is_optional, then }
}

/// Returns the protocol that the Upgrade field of a response 101 names. For an unknown name, returns `None`, so that
/// the probes identify the protocol.
fn upgrade(name: Text<'_>) -> Option<&'static Protocol> {
    let name = name.0.trim_ascii();
    if name.eq_ignore_ascii_case(b"websocket") {
        Some(&WEBSOCKET)
    } else if name.eq_ignore_ascii_case(b"h2c") {
        Some(&http2::PROTOCOL)
    } else {
        None
    }
}
