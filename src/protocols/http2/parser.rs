//! Parser of the HTTP/2 frames of each direction. The directions share only the table of streams.

use super::fields::{Block, Fields};
use super::frame::{self, Frame, HEADER_LEN};
use super::hpack::{Decoder, HpackError, Limits};
use super::known::Known;
use super::message::{
    Anomaly, Body, BodyGap, End, ErrorCode, GoAway, Message, Request, Reset, Response, Undecodable,
    UndecodablePart,
};
use super::settings::{self, TableLimit};
use super::streams::{Half, Phase, Streams};
use super::{
    BLOCK_LEN_MAX, CONTINUATION_COUNT_MAX, EXPANSION_CREDIT, EXPANSION_FACTOR, LIST_LEN_MAX, TEXT_CREDIT,
    TEXT_FACTOR, probe,
};
use crate::protocols::http1::credentials::{foremost, without_userinfo};
use crate::session::credit::Credit;
use crate::session::{self, AfterGap, Fault, Input, Missing, Out, Parser, Piece, Progress, Role, Text};

/// Maximum length in octets of a SETTINGS payload: 128 settings, although only about a dozen are defined.
const SETTINGS_LEN_MAX: usize = 6 * 128;

/// Maximum capacity in octets of the buffer for header blocks that stays allocated for the next block.
const SPARE_LEN: usize = 4096;

const BAD_FRAME: Fault = Fault::new("bad_frame");
const BAD_PADDING: Fault = Fault::new("bad_padding");
const TOO_LONG: Fault = Fault::new("header_block_too_long");
const LIST_TOO_LONG: Fault = Fault::new("header_list_too_long");
const EXPANSION: Fault = Fault::new("header_expansion");

/// A parser of HTTP/2 connections. See [the module](super) for its input and messages.
#[derive(Debug, Default)]
pub struct Http2Parser {
    // Boxed, because most flows are of other protocols and the state of any parser takes as much memory as the largest
    // one.
    connection: Box<Connection>,
}

#[derive(Debug)]
struct Connection {
    lanes: [Lane; 2],
    streams: Streams,
    fields: Block,
    /// Remaining total number of octets to which header blocks of the connection may decode.
    expansion: Credit,
    /// Remaining total number of octets of text that messages of the connection may have.
    text: Credit,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            lanes: Default::default(),
            streams: Streams::default(),
            fields: Block::default(),
            expansion: Credit::new(EXPANSION_CREDIT),
            text: Credit::new(TEXT_CREDIT),
        }
    }
}

/// Parsing state of one direction of an HTTP/2 connection.
#[derive(Debug, Default)]
struct Lane {
    state: State,
    decoder: Decoder,
    /// Received octets of a header block that continues in another frame.
    block: Vec<u8>,
    /// Properties of the header block that continues in another frame; `None` if there is none.
    continued: Option<Continued>,
    headers_undecodable: bool,
    /// Maximum size of the HPACK dynamic table that this side allows the other side to use.
    table_limit: TableLimit,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    /// Before a frame's header, or inside a frame that is buffered until it is complete.
    Frame,
    /// Inside the body octets of a DATA frame.
    Data(Data),
    /// Inside octets to be skipped, of which `left` remain.
    Skip { left: usize },
    /// The boundaries of frames are unknown, so that the rest of the direction is ignored.
    Undecodable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Data {
    stream: u32,
    left: usize,
    pad_len: usize,
    ends: bool,
}

/// Properties of a header block that are known before it is decoded.
#[derive(Clone, Copy, Debug)]
struct Continued {
    /// Identifier of the stream on which the frames of the block are sent.
    on: u32,
    /// Identifier of the stream of the decoded message: another stream than that of the frames if the message is a
    /// promised request.
    stream: u32,
    ends: bool,
    count: u8,
}

enum Step {
    Took(usize),
    /// Parsing needs this many octets in total, more than are available.
    Needs(usize),
    Done,
}

impl Parser for Http2Parser {
    type Message<'m> = Message<'m>;

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let mut taken = 0;
        while let Some(rest) = input.bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            match self.connection.step(input.from, rest, out)? {
                Step::Took(len) => taken += len,
                Step::Needs(need) => return Ok(Progress::Needs { taken, need }),
                Step::Done => return Ok(Progress::Done),
            }
        }
        Ok(Progress::Took(taken))
    }

    fn gap(&mut self, missing: &Missing<'_>, out: Out<'_, Self>) -> AfterGap {
        let len = usize::try_from(missing.len).unwrap_or(usize::MAX);
        self.connection.gap(missing.from, missing.rest, len, out);
        AfterGap::Resume
    }

    fn end(&mut self, end: &session::End<'_>, out: Out<'_, Self>) {
        break_off(&mut self.connection.streams, end.from, out);
    }

    #[inline]
    fn piece<'m>(message: &'m Message<'_>) -> Option<Piece<'m>> {
        message.piece()
    }

    fn heap_len(&self) -> usize {
        let connection = &*self.connection;
        let lanes: usize =
            connection.lanes.iter().map(|lane| lane.decoder.heap_len() + lane.block.capacity()).sum();
        size_of::<Connection>() + lanes + connection.streams.heap_len() + connection.fields.heap_len()
    }
}

impl Connection {
    /// Processes the next octets of a direction, at least one. Returns the progress.
    #[inline]
    fn step(&mut self, from: Role, bytes: &[u8], out: Out<'_, Http2Parser>) -> Result<Step, Fault> {
        let lane = from.of_mut(&mut self.lanes);
        match lane.state {
            State::Start => lane.start(from, bytes, out),
            State::Frame => self.frame(from, bytes, out),
            State::Data(mut data) => {
                let len = bytes.len().min(data.left);
                let half = from.of_mut(&mut self.streams.of(data.stream).halves);
                let (transaction, offset) = (data.stream.into(), half.body_len);
                let bytes = bytes.get(..len).unwrap_or_default();
                out(Message::Body(Body { transaction, offset, bytes }));
                half.body_len += len as u64;
                data.left -= len;
                self.go_on(from, data, out);
                Ok(Step::Took(len))
            }
            State::Skip { left } => {
                let len = bytes.len().min(left);
                lane.state = if len == left { State::Frame } else { State::Skip { left: left - len } };
                Ok(Step::Took(len))
            }
            State::Undecodable => Ok(Step::Done),
        }
    }

    /// Updates the state of a direction after a part of a DATA frame, or the frame's header, was consumed.
    fn go_on(&mut self, from: Role, data: Data, out: Out<'_, Http2Parser>) {
        let lane = from.of_mut(&mut self.lanes);
        if data.left > 0 {
            lane.state = State::Data(data);
            return;
        }
        lane.state = if data.pad_len > 0 { State::Skip { left: data.pad_len } } else { State::Frame };
        if data.ends {
            end(&mut self.streams, (from, data.stream), Default::default(), out);
        }
    }

    /// Processes the header of a frame, and the payload if it is needed for a message, except that of a DATA frame,
    /// which is processed in pieces.
    fn frame(&mut self, from: Role, bytes: &[u8], out: Out<'_, Http2Parser>) -> Result<Step, Fault> {
        let Some(frame) = Frame::read(bytes) else { return Ok(Step::Needs(HEADER_LEN)) };
        let lane = from.of_mut(&mut self.lanes);
        if !frame.is_sound() {
            return Err(BAD_FRAME);
        }
        // No other frame may occur between the frames of a header block (RFC 9113 section 6.10).
        let is_continued = lane.continued.map(|continued| continued.on);
        if is_continued.is_some_and(|stream| frame.kind != frame::CONTINUATION || frame.stream != stream) {
            return Err(Fault::new("interrupted_header_block"));
        }
        let is_headers = matches!(frame.kind, frame::HEADERS | frame::PUSH_PROMISE | frame::CONTINUATION);
        if frame.kind == frame::DATA {
            return self.data(from, frame, bytes, out);
        }
        if is_headers && lane.headers_undecodable {
            lane.state = State::Skip { left: frame.len };
            if frame.kind == frame::HEADERS {
                from.of_mut(&mut self.streams.of(frame.stream).halves).phase = Phase::Open;
                if frame.has(frame::END_STREAM) {
                    end(&mut self.streams, (from, frame.stream), Default::default(), out);
                }
            }
            return Ok(self.skipping(from));
        }
        let wanted = match frame.kind {
            _ if is_headers => frame.len,
            frame::SETTINGS if frame.len > SETTINGS_LEN_MAX => return Err(BAD_FRAME),
            frame::SETTINGS | frame::RST_STREAM => frame.len,
            frame::GOAWAY => 8,
            _ => 0,
        };
        if wanted > BLOCK_LEN_MAX {
            return Err(TOO_LONG);
        }
        let Some(payload) = bytes.get(HEADER_LEN..HEADER_LEN + wanted) else {
            return Ok(Step::Needs(HEADER_LEN + wanted));
        };
        match frame.kind {
            _ if is_headers => self.headers(from, frame, payload, out)?,
            frame::SETTINGS if !frame.has(frame::ACK) => {
                lane.table_limit.announce(payload);
                out(Message::Settings(settings::read(payload)));
            }
            frame::RST_STREAM => {
                let error = ErrorCode(frame::number(payload).unwrap_or_default());
                self.streams.close(frame.stream);
                out(Message::Reset(Reset { transaction: frame.stream.into(), error }));
            }
            frame::GOAWAY => {
                let last = frame::number(payload).unwrap_or_default() & 0x7FFF_FFFF;
                let error = payload.get(4..).and_then(frame::number).unwrap_or_default();
                out(Message::GoAway(GoAway { last_transaction: last.into(), error: ErrorCode(error) }));
            }
            _ => {}
        }
        from.of_mut(&mut self.lanes).state = State::Skip { left: frame.len - wanted };
        match self.skipping(from) {
            Step::Took(len) => Ok(Step::Took(len + wanted)),
            other => Ok(other),
        }
    }

    /// Ends the frame whose header was consumed if no octets of it remain to be skipped. Returns the consumed length of
    /// the header.
    fn skipping(&mut self, from: Role) -> Step {
        let lane = from.of_mut(&mut self.lanes);
        if lane.state == (State::Skip { left: 0 }) {
            lane.state = State::Frame;
        }
        Step::Took(HEADER_LEN)
    }

    fn data(
        &mut self,
        from: Role,
        frame: Frame,
        bytes: &[u8],
        out: Out<'_, Http2Parser>,
    ) -> Result<Step, Fault> {
        let mut data =
            Data { stream: frame.stream, left: frame.len, pad_len: 0, ends: frame.has(frame::END_STREAM) };
        let mut taken = HEADER_LEN;
        if frame.is_padded() {
            let left = frame.len.checked_sub(1).ok_or(BAD_PADDING)?;
            let Some(pad_len) = bytes.get(HEADER_LEN) else { return Ok(Step::Needs(HEADER_LEN + 1)) };
            data.pad_len = usize::from(*pad_len);
            data.left = left.checked_sub(data.pad_len).ok_or(BAD_PADDING)?;
            taken += 1;
        }
        let half = from.of_mut(&mut self.streams.of(frame.stream).halves);
        half.phase = Phase::Open;
        self.go_on(from, data, out);
        Ok(Step::Took(taken))
    }

    /// Processes a HEADERS, PUSH_PROMISE or CONTINUATION frame, which contains a part of a header block.
    fn headers(
        &mut self,
        from: Role,
        frame: Frame,
        payload: &[u8],
        out: Out<'_, Http2Parser>,
    ) -> Result<(), Fault> {
        let lane = from.of_mut(&mut self.lanes);
        let mut content = frame.content(payload).ok_or(BAD_PADDING)?;
        let continued = match (frame.kind, lane.continued.take()) {
            (frame::CONTINUATION, Some(continued)) => Continued { count: continued.count + 1, ..continued },
            (frame::CONTINUATION, None) => return Err(BAD_FRAME),
            (frame::PUSH_PROMISE, _) => {
                let stream = frame::number(content).ok_or(BAD_FRAME)? & 0x7FFF_FFFF;
                content = content.get(4..).unwrap_or_default();
                Continued { on: frame.stream, stream, ends: false, count: 0 }
            }
            _ => Continued {
                on: frame.stream,
                stream: frame.stream,
                ends: frame.has(frame::END_STREAM),
                count: 0,
            },
        };
        if lane.block.len() + content.len() > BLOCK_LEN_MAX || continued.count > CONTINUATION_COUNT_MAX {
            return Err(TOO_LONG);
        }
        if !frame.has(frame::END_HEADERS) {
            lane.block.extend_from_slice(content);
            lane.continued = Some(continued);
            return Ok(());
        }
        let mut block = std::mem::take(&mut lane.block);
        let decoded = if block.is_empty() {
            self.block(from, continued, content, out)
        } else {
            block.extend_from_slice(content);
            self.block(from, continued, &block, out)
        };
        if block.capacity() <= SPARE_LEN {
            block.clear();
            from.of_mut(&mut self.lanes).block = block;
        }
        decoded
    }

    /// Decodes a complete header block, and reports it as a request, a response or trailers.
    fn block(
        &mut self,
        from: Role,
        meta: Continued,
        block: &[u8],
        out: Out<'_, Http2Parser>,
    ) -> Result<(), Fault> {
        let wire_len = (block.len() + HEADER_LEN * (1 + usize::from(meta.count))) as u64;
        let stop = self.decode(from, wire_len, block)?;
        let Self { streams, fields, text, .. } = self;
        let all = fields.fields();
        let known = Known::read(all);
        text.earn(TEXT_FACTOR * wire_len);
        let is_reported = text.spend(known.text_len() as u64);
        let known = if is_reported { known } else { known.without_texts() };
        let anomaly = match fields.is_truncated {
            true => Some(Anomaly::ListTooLong),
            false => (!is_reported).then_some(Anomaly::Truncated),
        };
        let is_promised = meta.on != meta.stream;
        let half = from.of_mut(&mut streams.of(meta.stream).halves);
        let transaction = u64::from(meta.stream);
        let (grpc_status, grpc_message) = (known.grpc_status, known.grpc_message);
        let is_request = known.method.is_some() || from == Role::Client && half.phase == Phase::Idle;
        let mut trailers = Fields::default();
        if let Some(status) = known.status {
            if status >= 200 {
                half.phase = Phase::Open;
            }
            emit_response(transaction, status, known, anomaly, all, out);
        } else if is_request || is_promised {
            // The request of a pushed stream has no body, and its number is that of the later response.
            half.phase = if is_promised { Phase::Idle } else { Phase::Open };
            emit_request(transaction, known, anomaly, is_promised, all, out);
        } else {
            trailers = all;
            half.phase = Phase::Open;
        }
        if meta.ends {
            end(streams, (from, meta.stream), (grpc_status, grpc_message, trailers), out);
        }
        stop.map_or(Ok(()), Err)
    }

    /// Decodes a header block, which was received in frames of `wire_len` octets. Returns the fault that ends the
    /// connection if a limit is exceeded; the fields within the limit are then available.
    fn decode(&mut self, from: Role, wire_len: u64, block: &[u8]) -> Result<Option<Fault>, Fault> {
        let Self { lanes, fields, expansion, .. } = self;
        fields.clear();
        expansion.earn(EXPANSION_FACTOR * wire_len);
        let list_len_max = usize::try_from(expansion.left()).unwrap_or(usize::MAX).min(LIST_LEN_MAX);
        let limits = Limits { list_len_max, table_len_max: from.other().of(lanes).table_limit.len_max() };
        let decoded = from.of_mut(lanes).decoder.decode(block, fields, limits);
        // A field at which decoding stops may be longer, and ends the connection as well.
        let is_spent = expansion.spend(fields.len().min(list_len_max) as u64);
        debug_assert!(is_spent, "a list is no longer than it may be");
        match decoded {
            Ok(()) => Ok(None),
            Err(HpackError::ListTooLong) if list_len_max < LIST_LEN_MAX => Ok(Some(EXPANSION)),
            Err(HpackError::ListTooLong) => Ok(Some(LIST_TOO_LONG)),
            Err(error) => Err(fault(error)),
        }
    }

    fn gap(&mut self, from: Role, rest: &[u8], len: usize, out: Out<'_, Http2Parser>) {
        let lane = from.of_mut(&mut self.lanes);
        match lane.state {
            State::Data(mut data) if len <= data.left + data.pad_len => {
                let missing = len.min(data.left);
                let half = from.of_mut(&mut self.streams.of(data.stream).halves);
                let (transaction, offset) = (data.stream.into(), half.body_len);
                out(Message::Gap(BodyGap { transaction, offset, len: missing as u64 }));
                half.body_len += missing as u64;
                half.missing_len += missing as u64;
                data.left -= missing;
                data.pad_len -= len - missing;
                self.go_on(from, data, out);
            }
            State::Skip { left } if len <= left => {
                lane.state = if len == left { State::Frame } else { State::Skip { left: left - len } };
            }
            State::Frame => match Frame::read(rest) {
                // Inside a frame whose header was received; DATA is not buffered, except for the length of its padding.
                Some(frame)
                    if frame.kind != frame::DATA
                        && frame.is_sound()
                        && len <= (HEADER_LEN + frame.len).saturating_sub(rest.len()) =>
                {
                    let left = HEADER_LEN + frame.len - rest.len() - len;
                    lane.state = if left == 0 { State::Frame } else { State::Skip { left } };
                    match frame.kind {
                        frame::HEADERS | frame::PUSH_PROMISE | frame::CONTINUATION => lane.lose_headers(out),
                        frame::SETTINGS => lane.table_limit = TableLimit::Unknown,
                        _ => {}
                    }
                }
                _ => self.lose_frames(from, out),
            },
            State::Undecodable => {}
            _ => self.lose_frames(from, out),
        }
    }
}

impl Connection {
    fn lose_frames(&mut self, from: Role, out: Out<'_, Http2Parser>) {
        let table_limit = TableLimit::Unknown;
        *from.of_mut(&mut self.lanes) =
            Lane { state: State::Undecodable, headers_undecodable: true, table_limit, ..Lane::default() };
        out(Message::Undecodable(Undecodable { part: UndecodablePart::Frames }));
        break_off(&mut self.streams, from, out);
    }
}

impl Lane {
    /// Processes the first octets of a direction: the preface of a client, or the first frame.
    fn start(&mut self, from: Role, bytes: &[u8], out: Out<'_, Http2Parser>) -> Result<Step, Fault> {
        if from == Role::Client {
            match probe::preface(bytes) {
                Some(true) => {
                    self.state = State::Frame;
                    return Ok(Step::Took(frame::PREFACE.len()));
                }
                // One more octet may show that it is not the preface.
                None => return Ok(Step::Needs(bytes.len() + 1)),
                Some(false) => {}
            }
        }
        let Some(frame) = Frame::read(bytes) else { return Ok(Step::Needs(HEADER_LEN)) };
        if !frame.is_sound() || frame.kind > frame::CONTINUATION {
            return Err(Fault::new("not_http2"));
        }
        if frame.kind != frame::SETTINGS || frame.has(frame::ACK) {
            self.lose_headers(out);
            self.table_limit = TableLimit::Unknown;
        }
        self.state = State::Frame;
        Ok(Step::Took(0))
    }

    fn lose_headers(&mut self, out: Out<'_, Http2Parser>) {
        if !self.headers_undecodable {
            out(Message::Undecodable(Undecodable { part: UndecodablePart::Headers }));
        }
        let (state, table_limit) = (self.state, self.table_limit);
        *self = Self { state, headers_undecodable: true, table_limit, ..Self::default() };
    }
}

/// Reports the incomplete end of all open streams in a direction in which no further octets follow.
fn break_off(streams: &mut Streams, from: Role, out: Out<'_, Http2Parser>) {
    for stream in streams.iter_mut() {
        let half = from.of_mut(&mut stream.halves);
        if half.phase == Phase::Open {
            half.phase = Phase::Closed;
            emit_end(stream.id, *half, false, EndFields::default(), out);
        }
    }
}

/// The gRPC status, the gRPC message and the trailers at the end of a stream's direction.
type EndFields<'m> = (Option<u32>, Option<Text<'m>>, Fields<'m>);

fn emit_end(
    id: u32,
    half: Half,
    complete: bool,
    (grpc_status, grpc_message, trailers): EndFields<'_>,
    out: Out<'_, Http2Parser>,
) {
    let Half { body_len, missing_len, .. } = half;
    let transaction = id.into();
    out(Message::End(End {
        transaction,
        body_len,
        missing_len,
        complete,
        grpc_status,
        grpc_message,
        trailers,
    }));
}

/// Reports the end of one direction of a stream, and removes the stream if both directions have ended.
fn end(streams: &mut Streams, (from, id): (Role, u32), fields: EndFields<'_>, out: Out<'_, Http2Parser>) {
    let stream = streams.of(id);
    let half = from.of_mut(&mut stream.halves);
    half.phase = Phase::Closed;
    emit_end(id, *half, half.missing_len == 0, fields, out);
    let [client, server] = stream.halves.map(|half| half.phase == Phase::Closed);
    // The client sends nothing on a stream that the server opens, which has an even number (RFC 9113 section 5.1.1).
    if server && (client || id.is_multiple_of(2)) {
        streams.close(id);
    }
}

fn fault(error: HpackError) -> Fault {
    Fault::new(match error {
        HpackError::Truncated => "hpack_truncated",
        HpackError::Integer => "hpack_integer",
        HpackError::Huffman => "hpack_huffman",
        HpackError::Index => "hpack_index",
        HpackError::LateResize => "hpack_late_resize",
        HpackError::TableTooLong => "hpack_table_too_long",
        HpackError::ListTooLong => LIST_TOO_LONG.reason(),
    })
}

fn emit_request(
    transaction: u64,
    known: Known<'_>,
    anomaly: Option<Anomaly>,
    pushed: bool,
    fields: Fields<'_>,
    out: Out<'_, Http2Parser>,
) {
    let grpc = known.grpc();
    let bare_authority = known.authority.and_then(|authority| without_userinfo(authority, true));
    let bare_referer = known.referer.and_then(|uri| without_userinfo(uri, false));
    let bare_host = known.host.and_then(|host| without_userinfo(host.0, true));
    let bare_path = known.path.and_then(|path| without_userinfo(path.0, false));
    let has_userinfo =
        [&bare_authority, &bare_referer, &bare_host, &bare_path].iter().any(|bare| bare.is_some());
    let userinfo = has_userinfo.then_some("userinfo");
    let method = known.method.unwrap_or_default();
    let is_sound = !method.is_empty() && (known.path.is_some() || method.0 == b"CONNECT");
    out(Message::Request(Request {
        transaction,
        method,
        target: bare_path.as_deref().map(Text).or(known.path).unwrap_or_default(),
        scheme: known.scheme,
        host: bare_authority.as_deref().or(known.authority).or(bare_host.as_deref()).map(Text).or(known.host),
        connect_protocol: known.protocol,
        user_agent: known.user_agent,
        referer: bare_referer.as_deref().or(known.referer).map(Text),
        content_type: known.content_type,
        content_encoding: known.content_encoding,
        content_length: known.content_length,
        grpc_service: grpc.map(|(service, _)| service),
        grpc_method: grpc.map(|(_, method)| method),
        pushed,
        anomaly: anomaly.or((!is_sound).then_some(Anomaly::Malformed)),
        credentials: foremost(known.credentials, userinfo),
        fields,
    }));
}

fn emit_response(
    transaction: u64,
    status: u16,
    known: Known<'_>,
    anomaly: Option<Anomaly>,
    fields: Fields<'_>,
    out: Out<'_, Http2Parser>,
) {
    let bare_location = known.location.and_then(|uri| without_userinfo(uri, false));
    let userinfo = bare_location.is_some().then_some("userinfo");
    out(Message::Response(Response {
        transaction,
        status,
        server: known.server,
        location: bare_location.as_deref().or(known.location).map(Text),
        content_type: known.content_type,
        content_encoding: known.content_encoding,
        content_length: known.content_length,
        range_start: known.content_range.start,
        complete_len: known.content_range.complete_len,
        range_len: known.content_range.len,
        anomaly,
        credentials: foremost(known.credentials, userinfo),
        fields,
    }));
}
