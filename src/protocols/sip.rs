//! SIP: a row for each response with its request, for requests without one, and for each call.
//!
//! Each provisional response has a row, too, so that `status >= 200` selects one row per request. A call has its row when it ends.
//! What both sides offer to send and receive is read from SDP. Retransmitted responses have no rows; passwords and digests are not kept.
//!
//! Standards: RFC 3261, 8866 (SDP).

use std::time::Duration;

use super::recognizers::octets::{begins_with, datagram_in_role, either_in_role, request_line};
use super::sdp::Sdp;
use crate::base::fnv1a;
use crate::checkpoint::state;
use crate::row::Group;
use crate::session::framing::{AfterPdu, Framing, Pdu};
use crate::session::kit::{Declared, Kept, KeptList, Malformed, PduParser, Reply, Rows, exchange, open};
use crate::session::{DatagramOpening, Lack, OctetSet, Protocol, Role, Search, StreamOpening, Text, Verdict};

/// Protocol `sip`, recognized by a request whose target is a SIP, telephone or service URI, or by a status line. Keep-alives on port
/// 5060 are tolerated.
pub static PROTOCOL: Protocol = Protocol::new("sip")
    .in_zeek("sip")
    .in_eve("sip")
    .over_streams(&[5060], Some(probe_stream))
    .over_datagrams(&[5060], Some(probe_datagram))
    .streams_begin_with(OctetSet::range(b'A'..=b'U'))
    .with_kinds(&["sip", "sip_call"])
    .with_message_len_min(16)
    .with_limits("32 open requests, 16 calls; 8 KiB of a message, texts of 256 octets, lists of 512")
    .with_standards("RFC 3261, 8866");

const METHODS: &[&[u8]] = &[
    b"ACK ",
    b"BYE ",
    b"CANCEL ",
    b"INFO ",
    b"INVITE ",
    b"MESSAGE ",
    b"NOTIFY ",
    b"OPTIONS ",
    b"PRACK ",
    b"PUBLISH ",
    b"REFER ",
    b"REGISTER ",
    b"SUBSCRIBE ",
    b"UPDATE ",
];

const TARGETS: &[&[u8]] = &[b"sip:", b"sips:", b"tel:", b"urn:service:"];

fn begin(bytes: &[u8]) -> Verdict {
    match begins_with(bytes, &[b"SIP/2.0 "]) {
        Verdict::No => request_line(bytes, METHODS, TARGETS),
        verdict => verdict,
    }
}

fn is_status(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SIP/")
}

fn probe_stream(opening: &StreamOpening<'_>) -> Verdict {
    either_in_role(opening, begin, |bytes| Some(is_status(bytes)))
}

fn probe_datagram(opening: &DatagramOpening<'_>) -> Verdict {
    let is_keep_alive = opening.len <= 4 && opening.has_port(5060);
    let is_letter = opening.bytes.first().is_some_and(u8::is_ascii_uppercase);
    if is_keep_alive {
        return Verdict::More;
    }
    let is_match = is_letter && begin(opening.bytes) == Verdict::Match;
    datagram_in_role(opening, is_match, Some(is_status(opening.bytes)))
}

exchange! {
    /// A request with one of its responses.
    "sip" pub struct Exchange {
        /// Method; null if the request was not captured.
        pub method: Option<Kept<32>>,
        /// Target of the request.
        pub uri: Option<Kept<256>>,
        /// Status code; null without a response.
        pub status: Option<u16>,
        /// Text of the status line.
        pub status_text: Option<Kept<256>>,
        /// Identifier of the call, or of other requests that belong together.
        pub call_identifier: Option<Kept<256>>,
        /// Number of the request within the call.
        pub sequence_number: Option<u32>,
        /// Who sends the request: the header From.
        pub from_header: Option<Kept<256>>,
        /// Whom it is for: the header To, of the response if there is one.
        pub to_header: Option<Kept<256>>,
        /// Where the sender can be reached.
        pub contact: Option<Kept<256>>,
        /// Name of the user who authenticates.
        pub user_name: Option<Kept<128>>,
        /// Program of the sender.
        pub user_agent: Option<Kept<256>>,
        /// Program that responds.
        pub server: Option<Kept<256>>,
        /// Subject.
        pub subject: Option<Kept<256>>,
        /// Hosts that the request has passed, the latest one first.
        pub via: KeptList<512> [sparse],
        /// Media that the request offers or accepts: kind, address and port that receive, transport, codecs.
        pub request_media: KeptList<512> [sparse],
        /// Media of the response.
        pub response_media: KeptList<512> [sparse],
        /// Number of octets of the body of the request.
        pub request_body_len: u64 [octets],
        /// Number of octets of the body of the response.
        pub response_body_len: u64 [octets],
        ..
        /// Number of responses so far.
        response_count: u32,
        /// Version in the first line.
        version: Option<Kept<16>>,
        /// Header CSeq.
        cseq: Option<Kept<64>>,
        /// Header Date of the request.
        date: Option<Kept<128>>,
        /// Header Reply-To.
        reply_to: Option<Kept<256>>,
        /// Header From of the request.
        request_from: Option<Kept<256>>,
        /// Header To of the request.
        request_to: Option<Kept<256>>,
        /// Header From of the response.
        response_from: Option<Kept<256>>,
        /// Header To of the response.
        response_to: Option<Kept<256>>,
        /// Header Warning.
        warning: Option<Kept<256>>,
        /// Type of the body of the response.
        content_type: Option<Kept<128>>,
        /// Header Content-Length of the request.
        request_len: Option<u64>,
        /// Header Content-Length of the response.
        response_len: Option<u64>,
        /// Headers Via of all transmissions of the request.
        request_path: KeptList<1024>,
        /// Headers Via of all responses.
        response_path: KeptList<1024>,
        /// Description of media in the request.
        request_sdp: Option<Kept<4096>>,
        /// Description of media in the response.
        response_sdp: Option<Kept<4096>>,
    }
    /// Requests with their responses; a provisional response has a row of its own.
    zeek "sip" ['a] as row {
        /// Always 0, as in Zeek.
        "trans_depth": u8 = 0;
        /// `method`.
        "method": Option<Text<'a>> = row.method.as_ref().map(Kept::text);
        /// `uri`.
        "uri": Option<Text<'a>> = row.uri.as_ref().map(Kept::text);
        /// Header Date of the request.
        "date": Option<Text<'a>> = row.date.as_ref().map(Kept::text);
        /// Header From of the request, without its tag.
        "request_from": Option<Text<'a>> = row.request_from.as_ref().map(without_tag);
        /// Header To of the request.
        "request_to": Option<Text<'a>> = row.request_to.as_ref().map(Kept::text);
        /// Header From of the response, without its tag.
        "response_from": Option<Text<'a>> = row.response_from.as_ref().map(without_tag);
        /// Header To of the response.
        "response_to": Option<Text<'a>> = row.response_to.as_ref().map(Kept::text);
        /// Header Reply-To.
        "reply_to": Option<Text<'a>> = row.reply_to.as_ref().map(Kept::text);
        /// `call_identifier`.
        "call_id": Option<Text<'a>> = row.call_identifier.as_ref().map(Kept::text).filter(|_| row.method.is_some());
        /// Header CSeq.
        "seq": Option<Text<'a>> = row.cseq.as_ref().map(Kept::text).filter(|_| row.method.is_some());
        /// `subject`.
        "subject": Option<Text<'a>> = row.subject.as_ref().map(Kept::text);
        /// Headers Via of all transmissions of the request, without their branches.
        "request_path": KeptList<1024> = row.request_path.clone();
        /// Headers Via of all responses so far, without their branches.
        "response_path": KeptList<1024> = row.response_path.clone();
        /// `user_agent`.
        "user_agent": Option<Text<'a>> = row.user_agent.as_ref().map(Kept::text);
        /// `status`.
        "status_code": Option<u16> = row.status;
        /// `status_text`.
        "status_msg": Option<Text<'a>> = row.status_text.as_ref().map(Kept::text);
        /// Header Warning.
        "warning": Option<Text<'a>> = row.warning.as_ref().map(Kept::text);
        /// Header Content-Length of the request.
        "request_body_len": Option<u64> = row.request_len;
        /// Header Content-Length of the response.
        "response_body_len": Option<u64> = row.response_len;
        /// Type of the body of the response.
        "content_type": Option<Text<'a>> = row.content_type.as_ref().map(Kept::text);
    }
    /// Requests and responses.
    eve "sip" ['a] as (row, from) if (row.is_message_of(from)) {
        /// `method`.
        "method": Option<Text<'a>> = row.method.as_ref().map(Kept::text).filter(|_| row.is_request(from));
        /// `uri`.
        "uri": Option<Text<'a>> = row.uri.as_ref().map(Kept::text).filter(|_| row.is_request(from));
        /// Version in the first line.
        "version": Option<Text<'a>> = row.version.as_ref().map(Kept::text);
        /// First line of a request.
        "request_line": Option<String> = row.request_line().filter(|_| row.is_request(from));
        /// `status`.
        "code": Option<String> = row.status.filter(|_| !row.is_request(from)).map(|status| status.to_string());
        /// `status_text`.
        "reason": Option<Text<'a>> = row.status_text.as_ref().map(Kept::text).filter(|_| !row.is_request(from));
        /// First line of a response.
        "response_line": Option<String> = row.status_line().filter(|_| !row.is_request(from));
        /// Description of media.
        "sdp": Option<Group<Sdp<'a>>> =
            if row.is_request(from) { &row.request_sdp } else { &row.response_sdp }.as_ref().map(|sdp| Group(Sdp(sdp.text().0)));
    }
}

exchange! {
    /// A call: from the first request to its end.
    "sip_call" pub struct Call {
        /// Identifier of the call.
        pub call_identifier: Option<Kept<256>>,
        /// Who calls: the header From.
        pub from_header: Option<Kept<256>>,
        /// Who is called: the header To.
        pub to_header: Option<Kept<256>>,
        /// Status code of the last response to the invitation: 200 if the call was accepted.
        pub status: Option<u16>,
        /// Time from the invitation until the other side rings.
        pub ringing_time: Option<Duration>,
        /// Time from the invitation until the call is accepted.
        pub setup_time: Option<Duration>,
        /// Time from then until one side ends the call; null if the end was not captured.
        pub talk_time: Option<Duration>,
        /// True if the caller ends the call or takes it back, false if the other side does; null if nobody does.
        pub is_ended_by_caller: Option<bool>,
        /// Program of the caller.
        pub user_agent: Option<Kept<256>>,
        /// Program that responds.
        pub server: Option<Kept<256>>,
        /// Media that the caller receives, as in `request_media` of the requests.
        pub request_media: KeptList<512> [sparse],
        /// Media that the other side receives.
        pub response_media: KeptList<512> [sparse],
    }
}

impl Exchange {
    fn is_request(&self, from: Role) -> bool {
        from == self.exchange.from
    }

    /// Returns whether the row has the message of a side, and no row before had it.
    fn is_message_of(&self, from: Role) -> bool {
        if self.is_request(from) {
            self.method.is_some() && self.response_count <= 1
        } else {
            self.status.is_some()
        }
    }

    fn request_line(&self) -> Option<String> {
        let (method, uri, version) = (self.method.as_ref()?, self.uri.as_ref()?, self.version.as_ref()?);
        let words = [method.text(), uri.text(), version.text()].map(|word| word.to_str_lossy().into_owned());
        Some(words.join(" "))
    }

    fn status_line(&self) -> Option<String> {
        let (version, status) = (self.version.as_ref()?, self.status?);
        let mut line = format!("{} {status}", version.text().to_str_lossy());
        if let Some(text) = &self.status_text {
            line.push(' ');
            line.push_str(&text.text().to_str_lossy());
        }
        Some(line)
    }

    fn add_request(&mut self, message: &Message<'_>, (method, uri): (&[u8], &[u8])) {
        (self.method, self.uri) = (Some(Kept::new(method)), Some(Kept::new(uri)));
        self.version = Some(Kept::new(message.version));
        self.add_call(message);
        self.from_header = message.kept(b"from");
        if self.status.is_none() {
            self.to_header = message.kept(b"to");
        }
        (self.request_from, self.request_to) = (message.kept(b"from"), message.kept(b"to"));
        (self.contact, self.user_agent) = (message.kept(b"contact"), message.kept(b"user-agent"));
        (self.subject, self.date) = (message.kept(b"subject"), message.kept(b"date"));
        self.reply_to = message.kept(b"reply-to");
        self.user_name = message.user_name();
        self.via = KeptList::default();
        for via in message.values(b"via") {
            self.via.push(&text(before(via, b"branch")));
            self.request_path.push(&text(before(via, b"branch")));
        }
        self.request_body_len = message.body_len;
        self.request_len = message.content_len();
        (self.request_media, self.request_sdp) = message.sdp();
    }

    fn add_response(&mut self, message: &Message<'_>, status: u16, reason: &[u8]) {
        self.response_count += 1;
        (self.status, self.status_text) =
            (Some(status), Some(Kept::new(reason)).filter(|_| !reason.is_empty()));
        self.version = Some(Kept::new(message.version));
        self.add_call(message);
        if self.from_header.is_none() {
            self.from_header = message.kept(b"from");
        }
        self.to_header = message.kept(b"to");
        (self.response_from, self.response_to) = (message.kept(b"from"), message.kept(b"to"));
        self.server = message.kept(b"server").or_else(|| message.kept(b"user-agent"));
        (self.warning, self.content_type) = (message.kept(b"warning"), message.kept(b"content-type"));
        for via in message.values(b"via") {
            self.response_path.push(&text(before(via, b"branch")));
        }
        self.response_body_len = message.body_len;
        self.response_len = message.content_len();
        (self.response_media, self.response_sdp) = message.sdp();
    }

    fn add_call(&mut self, message: &Message<'_>) {
        (self.call_identifier, self.cseq) = (message.kept(b"call-id"), message.kept(b"cseq"));
        let number = message.value(b"cseq").and_then(|cseq| cseq.split(u8::is_ascii_whitespace).next());
        self.sequence_number = number.and_then(|number| std::str::from_utf8(number).ok()?.parse().ok());
    }
}

fn without_tag<const N: usize>(header: &Kept<N>) -> Text<'_> {
    Text(before(header.text().0, b"tag="))
}

/// Returns what is before a parameter; a space may follow the semicolon.
fn before<'a>(value: &'a [u8], parameter: &[u8]) -> &'a [u8] {
    let is_at = |at: &usize| {
        let rest = value.get(at + 1..).unwrap_or_default();
        rest.strip_prefix(b" ").unwrap_or(rest).starts_with(parameter)
    };
    let end = memchr::memchr_iter(b';', value).find(is_at);
    value.get(..end.unwrap_or(value.len())).unwrap_or_default()
}

fn text(octets: &[u8]) -> String {
    Text(octets).to_str_lossy().into_owned()
}

open! {
    /// Rows of SIP.
    pub(crate) enum Row { 0 = Exchange in Box, 1 = Call in Box }
}

/// Full names of headers with a short form (RFC 3261 section 7.3.3), by that form.
const SHORT: [(u8, &[u8]); 8] = [
    (b'c', b"content-type"),
    (b'f', b"from"),
    (b'i', b"call-id"),
    (b'l', b"content-length"),
    (b'm', b"contact"),
    (b's', b"subject"),
    (b't', b"to"),
    (b'v', b"via"),
];

/// Returns the name of a header and its value, of a line.
fn header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|octet| *octet == b':')?;
    let (name, value) = (line.get(..colon)?.trim_ascii(), line.get(colon + 1..)?.trim_ascii());
    let full = match name {
        [short] => {
            SHORT.iter().find(|(letter, _)| *letter == short.to_ascii_lowercase()).map(|(_, full)| *full)
        }
        _ => None,
    };
    Some((full.unwrap_or(name), value))
}

/// Returns the length of the body that a head states.
fn body_len(head: &[u8]) -> u64 {
    let lines = head.split(|octet| *octet == b'\n');
    let is_len = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(b"content-length");
    let len = lines.skip(1).filter_map(header).find(is_len);
    len.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok()).unwrap_or_default()
}

/// A message: its headers, and its body.
struct Message<'a> {
    version: &'a [u8],
    /// Lines after the first one.
    head: &'a [u8],
    body: &'a [u8],
    body_len: u64,
}

impl<'a> Message<'a> {
    /// Returns the values of a header. A value that goes on in the next line ends with the first.
    fn values(&self, name: &[u8]) -> impl Iterator<Item = &'a [u8]> {
        let headers = self.head.split(|octet| *octet == b'\n').filter_map(header);
        headers.filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.values(name).next()
    }

    fn kept<const N: usize>(&self, name: &[u8]) -> Option<Kept<N>> {
        self.value(name).map(Kept::new)
    }

    fn content_len(&self) -> Option<u64> {
        std::str::from_utf8(self.value(b"content-length")?).ok()?.parse().ok()
    }

    /// Returns the name of the user in the credentials of the request (RFC 7616 section 3.4).
    fn user_name(&self) -> Option<Kept<128>> {
        let credentials = self.value(b"authorization").or_else(|| self.value(b"proxy-authorization"))?;
        let at = memchr::memmem::find(credentials, b"username=\"")? + b"username=\"".len();
        credentials.get(at..)?.split(|octet| *octet == b'"').next().map(Kept::new)
    }

    /// Returns the media of the body, and the body, if it is a description of them.
    fn sdp(&self) -> (KeptList<512>, Option<Kept<4096>>) {
        let is_sdp = self.value(b"content-type").is_some_and(|kind| {
            kind.get(..15).is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/sdp"))
        });
        if !is_sdp || self.body.is_empty() {
            return (KeptList::default(), None);
        }
        (Sdp(self.body).summary(), Some(Kept::new(self.body)))
    }

    /// Returns the key that a request and its responses have in common (RFC 3261 section 17.1.3).
    fn key(&self) -> u64 {
        let parts = [self.value(b"via"), self.value(b"call-id"), self.value(b"cseq")];
        let branch = parts[0].map(|via| {
            let at = memchr::memmem::find(via, b"branch=");
            let branch = at.and_then(|at| via.get(at..)).unwrap_or_default();
            branch.split(|octet| matches!(octet, b';' | b',')).next().unwrap_or_default()
        });
        let parts = [branch, parts[1], parts[2]].map(|part| fnv1a(part.unwrap_or_default()));
        parts.iter().fold(0, |key, part| key.rotate_left(21) ^ part)
    }
}

/// Number of calls of a flow that are open at a time.
const CALLS_MAX: usize = 16;

/// Parser of SIP.
#[derive(Debug, Default)]
pub(crate) struct Sip {
    /// Digests of the latest responses.
    responses: [u64; 4],
    calls: Vec<Call>,
}

state! { struct Sip { responses, calls } if |parser| parser.calls.len() <= CALLS_MAX }

/// Searches the beginning of a message after a gap.
fn search(_: Role, octets: &[u8]) -> Search {
    for end in memchr::memchr_iter(b'\n', octets) {
        match begin(octets.get(end + 1..).unwrap_or_default()) {
            Verdict::Match => return Search::Found(end + 1),
            Verdict::More => return Search::From(end),
            _ => {}
        }
    }
    Search::From(octets.len())
}

impl PduParser for Sip {
    const PROTOCOL: &'static Protocol = &PROTOCOL;
    const FRAMING: Option<Framing> = Some(Framing::head(body_len).keep(8 << 10).resync(search));
    const OPEN_MAX: usize = 32;
    // A call may ring for three minutes (RFC 3261 section 16.6).
    const ANSWER_WITHIN: Duration = Duration::from_secs(190);
    type Row = Row;

    fn heap_len(&self) -> usize {
        let texts: usize = self.calls.iter().map(Declared::heap_len).sum();
        self.calls.capacity() * size_of::<Call>() + texts
    }

    fn finish(&mut self, rows: &mut Rows<'_, Row>) {
        for mut call in self.calls.drain(..) {
            // Of a call that was refused, nothing is missing.
            let is_over = call.status.is_some_and(|status| status >= 300);
            call.exchange.lacks = (!is_over).then_some(Lack::End);
            rows.kept(&call);
        }
    }

    fn pdu(&mut self, pdu: &Pdu<'_>, rows: &mut Rows<'_, Row>) -> Result<AfterPdu, Malformed> {
        // Empty lines in front of a message are ignored (RFC 3261 section 7.5), and may be keep-alives.
        let octets = pdu.bytes.trim_ascii_start();
        if octets.is_empty() {
            return Ok(AfterPdu::More);
        }
        let line_end = memchr::memchr(b'\n', octets).ok_or(Malformed)?;
        // From the end of the first line on, so that a head without other lines ends with it.
        let (line, rest) = octets.split_at_checked(line_end).ok_or(Malformed)?;
        let ends = [b"\n\r\n".as_slice(), b"\n\n"]
            .map(|empty| memchr::memmem::find(rest, empty).map(|at| (at, at + empty.len())));
        let (head_len, body_at) = ends.into_iter().flatten().min().unwrap_or((rest.len(), rest.len()));
        let before_len = pdu.bytes.len() - rest.len() + body_at;
        let mut message = Message {
            version: b"",
            head: rest.get(..head_len).unwrap_or_default(),
            body: rest.get(body_at..).unwrap_or_default(),
            body_len: pdu.len.saturating_sub(before_len as u64),
        };
        let mut words = line.trim_ascii_end().splitn(3, |octet| *octet == b' ');
        let [first, second, third] = [(); 3].map(|()| words.next().unwrap_or_default());
        if first.starts_with(b"SIP/") {
            message.version = first;
            let status =
                std::str::from_utf8(second).ok().and_then(|status| status.parse().ok()).ok_or(Malformed)?;
            self.response(&message, status, third, rows);
        } else if third.starts_with(b"SIP/") && !first.is_empty() {
            message.version = third;
            self.request(&message, (first, second), rows);
        } else {
            return Err(Malformed);
        }
        Ok(AfterPdu::More)
    }
}

impl Sip {
    fn request(&mut self, message: &Message<'_>, line: (&[u8], &[u8]), rows: &mut Rows<'_, Row>) {
        match line.0 {
            b"INVITE" => self.invited(message, rows),
            b"BYE" | b"CANCEL" => self.ended(message, line.0 == b"BYE", rows),
            // It has no response.
            b"ACK" => {
                let mut row = Exchange::default();
                row.add_request(message, line);
                return rows.single(row);
            }
            _ => {}
        }
        rows.request(message.key(), |row: &mut Exchange| row.add_request(message, line));
    }

    fn call(&mut self, message: &Message<'_>) -> Option<(usize, &mut Call)> {
        let identifier = message.value(b"call-id")?;
        let is_it =
            |call: &Call| call.call_identifier.as_ref().is_some_and(|known| known.text().0 == identifier);
        let index = self.calls.iter().position(is_it)?;
        Some((index, self.calls.get_mut(index)?))
    }

    /// Opens the row of a call. An invitation within a call changes nothing, and one with credentials continues the first.
    fn invited(&mut self, message: &Message<'_>, rows: &mut Rows<'_, Row>) {
        if message.value(b"call-id").is_none() || self.call(message).is_some() {
            return;
        }
        if self.calls.len() == CALLS_MAX {
            let mut call = self.calls.remove(0);
            call.exchange.lacks = Some(Lack::Limit);
            rows.kept(&call);
        }
        self.calls.push(Call {
            call_identifier: message.kept(b"call-id"),
            from_header: message.kept(b"from"),
            to_header: message.kept(b"to"),
            user_agent: message.kept(b"user-agent"),
            request_media: message.sdp().0,
            exchange: rows.head(),
            ..Call::default()
        });
    }

    fn ended(&mut self, message: &Message<'_>, is_bye: bool, rows: &mut Rows<'_, Row>) {
        let (from, now) = (rows.from(), rows.now());
        let Some((index, call)) = self.call(message) else { return };
        call.is_ended_by_caller = Some(from == call.exchange.from);
        call.exchange.end = now;
        // One that is taken back is over with the response to the invitation.
        if is_bye {
            let since = now.saturating_since(call.exchange.start);
            call.talk_time = call.setup_time.map(|time| since.saturating_sub(time));
            rows.kept(&self.calls.remove(index));
        }
    }

    /// Adds a response to an invitation to its call.
    fn answered(&mut self, message: &Message<'_>, status: u16, rows: &mut Rows<'_, Row>) {
        let now = rows.now();
        let Some((index, call)) = self.call(message) else { return };
        let since = now.saturating_since(call.exchange.start);
        call.exchange.end = now;
        call.status = Some(status);
        match status {
            180..=189 => {
                call.ringing_time.get_or_insert(since);
            }
            200..=299 if call.setup_time.is_none() => {
                call.setup_time = Some(since);
                call.server = message.kept(b"server").or_else(|| message.kept(b"user-agent"));
            }
            // The caller repeats the request with credentials.
            401 | 407 => {}
            300.. => return rows.kept(&self.calls.remove(index)),
            _ => {}
        }
        if call.response_media.is_empty() {
            call.response_media = message.sdp().0;
        }
    }

    fn response(&mut self, message: &Message<'_>, status: u16, reason: &[u8], rows: &mut Rows<'_, Row>) {
        let key = message.key();
        let digest =
            key ^ fnv1a(message.value(b"to").unwrap_or_default()) ^ u64::from(status).rotate_left(48);
        if self.responses.contains(&digest) {
            return;
        }
        self.responses.rotate_right(1);
        self.responses[0] = digest;
        if message.value(b"cseq").is_some_and(|cseq| cseq.ends_with(b"INVITE")) {
            self.answered(message, status, rows);
        }
        rows.response(key, |row: &mut Exchange| {
            row.add_response(message, status, reason);
            if status < 200 { Reply::Each } else { Reply::Last }
        });
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::super::recognizers::samples::{Sample, client, datagram};
    use super::PROTOCOL;

    pub(in super::super) const SAMPLES: &[Sample] = &[
        datagram(&PROTOCOL, 5060, b"INVITE sip:bob@biloxi.example SIP/2.0\r\nVia: x\r\n\r\n"),
        datagram(&PROTOCOL, 40_000, b"SIP/2.0 180 Ringing\r\n\r\n"),
        client(&PROTOCOL, 5060, b"OPTIONS sip:carol@chicago.example SIP/2.0\r\n"),
    ];

    pub(in super::super) const LOOK_ALIKES: &[Sample] = &[
        datagram(&PROTOCOL, 5060, b"OPTIONS * HTTP/1.1\r\n\r\n"),
        client(&PROTOCOL, 5060, b"MESSAGE to you\r\n"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::kit::KitEntry;
    use crate::session::kit::suite::{Case, check, check_stream};

    const CLIENT: Role = Role::Client;
    const SERVER: Role = Role::Server;

    fn message(first: &str, cseq: &str, more: &str, body: &str) -> Vec<u8> {
        let len = body.len();
        let head =
            "Via: SIP/2.0/UDP h; branch=z9hG4bK1\r\nf: <sip:a@a>;tag=1\r\nTo: <sip:b@b>\r\nCall-ID: 7@a";
        let rest = format!("CSeq: {cseq}\r\n{more}Content-Length: {len}\r\n\r\n{body}");
        format!("{first}\r\n{head}\r\n{rest}").into_bytes()
    }

    const OFFER: &str =
        "v=0\r\no=- 1 1 IN IP4 10.0.0.1\r\ns=-\r\nc=IN IP4 10.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 8 0\r\n";

    fn cases() -> [Case; 4] {
        let digest = "Authorization: Digest username=\"alice\", response=\"6629\"\r\n";
        let sdp = "c: application/sdp\r\n";
        [
            Case {
                name: "a registration with credentials",
                turns: vec![
                    (CLIENT, message("REGISTER sip:b SIP/2.0", "1 REGISTER", "User-Agent: phone\r\n", "")),
                    (SERVER, message("SIP/2.0 401 Unauthorized", "1 REGISTER", "Server: pbx\r\n", "")),
                    (CLIENT, message("REGISTER sip:b SIP/2.0", "2 REGISTER", digest, "")),
                    (SERVER, message("SIP/2.0 200 OK", "2 REGISTER", "", "")),
                ],
                rows: &[
                    "sip method=REGISTER uri=sip:b status=401 status_text=Unauthorized call_identifier=7@a sequence_number=1 \
                    from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> user_agent=phone server=pbx via=List([Text(\"SIP/2.0/UDP h\")]) response_time=10ms",
                    "sip method=REGISTER uri=sip:b status=200 status_text=OK call_identifier=7@a sequence_number=2 \
                    from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> user_name=alice via=List([Text(\"SIP/2.0/UDP h\")]) response_time=10ms",
                ],
            },
            Case {
                name: "a call that rings, is accepted, acknowledged, and ended by the other side",
                turns: vec![
                    (CLIENT, message("OPTIONS sip:b SIP/2.0", "0 OPTIONS", "", "")),
                    (SERVER, message("SIP/2.0 200 OK", "0 OPTIONS", "", "")),
                    (CLIENT, message("INVITE sip:b@b SIP/2.0", "1 INVITE", sdp, OFFER)),
                    (SERVER, message("SIP/2.0 180 Ringing", "1 INVITE", "", "")),
                    (SERVER, message("SIP/2.0 200 OK", "1 INVITE", sdp, OFFER)),
                    (CLIENT, message("ACK sip:b@b SIP/2.0", "1 ACK", "", "")),
                    (SERVER, message("BYE sip:a@a SIP/2.0", "9 BYE", "", "")),
                    (CLIENT, message("SIP/2.0 200 OK", "9 BYE", "", "")),
                ],
                rows: &[
                    "sip method=OPTIONS uri=sip:b status=200 status_text=OK call_identifier=7@a from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> via=List([Text(\"SIP/2.0/UDP h\")]) response_time=10ms",
                    "sip method=INVITE uri=sip:b@b status=180 status_text=Ringing call_identifier=7@a sequence_number=1 \
                    from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> via=List([Text(\"SIP/2.0/UDP h\")]) request_media=List([Text(\"audio 10.0.0.1:4000 RTP/AVP PCMA,PCMU\")]) request_body_len=87 response_time=10ms",
                    "sip method=INVITE uri=sip:b@b status=200 status_text=OK call_identifier=7@a sequence_number=1 \
                    from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> via=List([Text(\"SIP/2.0/UDP h\")]) request_media=List([Text(\"audio 10.0.0.1:4000 RTP/AVP PCMA,PCMU\")]) response_media=List([Text(\"audio 10.0.0.1:4000 RTP/AVP PCMA,PCMU\")]) request_body_len=87 response_body_len=87 response_time=20ms",
                    "sip method=ACK uri=sip:b@b call_identifier=7@a sequence_number=1 from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> via=List([Text(\"SIP/2.0/UDP h\")])",
                    "sip_call call_identifier=7@a from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> status=200 ringing_time=10ms setup_time=20ms talk_time=20ms \
                    request_media=List([Text(\"audio 10.0.0.1:4000 RTP/AVP PCMA,PCMU\")]) response_media=List([Text(\"audio 10.0.0.1:4000 RTP/AVP PCMA,PCMU\")])",
                    "sip method=BYE uri=sip:a@a status=200 status_text=OK call_identifier=7@a sequence_number=9 from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> via=List([Text(\"SIP/2.0/UDP h\")]) response_time=10ms",
                ],
            },
            Case {
                name: "a call with credentials that is taken back",
                turns: vec![
                    (CLIENT, message("OPTIONS sip:b SIP/2.0", "0 OPTIONS", "", "")),
                    (SERVER, message("SIP/2.0 200 OK", "0 OPTIONS", "", "")),
                    (CLIENT, message("INVITE sip:b@b SIP/2.0", "1 INVITE", "", "")),
                    (SERVER, message("SIP/2.0 407 Authenticate", "1 INVITE", "", "")),
                    (CLIENT, message("INVITE sip:b@b SIP/2.0", "2 INVITE", digest, "")),
                    (CLIENT, message("CANCEL sip:b@b SIP/2.0", "2 CANCEL", "", "")),
                    (SERVER, message("SIP/2.0 487 Cancelled", "2 INVITE", "", "")),
                ],
                rows: &[
                    "sip method=OPTIONS uri=sip:b status=200 status_text=OK call_identifier=7@a from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> via=List([Text(\"SIP/2.0/UDP h\")]) response_time=10ms",
                    "sip method=INVITE uri=sip:b@b status=407 status_text=Authenticate call_identifier=7@a sequence_number=1 from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> via=List([Text(\"SIP/2.0/UDP h\")]) \
                    response_time=10ms",
                    "sip_call call_identifier=7@a from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> status=487 is_ended_by_caller=Bool(true)",
                    "sip method=INVITE uri=sip:b@b status=487 status_text=Cancelled call_identifier=7@a sequence_number=2 from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> \
                    user_name=alice via=List([Text(\"SIP/2.0/UDP h\")]) response_time=20ms",
                    "sip method=CANCEL uri=sip:b@b call_identifier=7@a sequence_number=2 from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> via=List([Text(\"SIP/2.0/UDP h\")]) lacks=response",
                ],
            },
            Case {
                name: "a request that is not answered finally, and keep-alives",
                turns: vec![
                    (
                        CLIENT,
                        [b"\r\n\r\n".to_vec(), message("OPTIONS sip:b SIP/2.0", "4 OPTIONS", "", "")]
                            .concat(),
                    ),
                    (SERVER, message("SIP/2.0 100 Trying", "4 OPTIONS", "", "")),
                    (CLIENT, message("INVITE sip:b SIP/2.0", "5 INVITE", "", "")),
                ],
                rows: &[
                    "sip method=OPTIONS uri=sip:b status=100 status_text=Trying call_identifier=7@a sequence_number=4 from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> via=List([Text(\"SIP/2.0/UDP h\")]) response_time=10ms",
                    "sip_call call_identifier=7@a from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> lacks=end",
                    "sip method=INVITE uri=sip:b call_identifier=7@a sequence_number=5 from_header=<sip:a@a>;tag=1 to_header=<sip:b@b> via=List([Text(\"SIP/2.0/UDP h\")]) lacks=response",
                ],
            },
        ]
    }

    #[test]
    fn cases_in_datagrams() {
        check(&KitEntry::of::<Sip>(), &cases());
    }

    #[test]
    fn cases_in_streams() {
        check_stream(&KitEntry::of::<Sip>(), &cases());
    }

    #[test]
    fn parameters_end_a_value() {
        assert_eq!(before(b"<sip:a@b>;tag=1", b"tag="), b"<sip:a@b>");
        assert_eq!(before(b"SIP/2.0/UDP h; branch=x", b"branch"), b"SIP/2.0/UDP h");
        assert_eq!(before(b"SIP/2.0/UDP h;rport", b"branch"), b"SIP/2.0/UDP h;rport");
    }
}
