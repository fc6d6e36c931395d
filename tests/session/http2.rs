//! HTTP/2: generated frames, with header blocks from RFC 7541 appendix C and plain literals.

#[cfg(feature = "serde")]
use crate::message_json::as_json;
use flowgauge::base::IpProtocol;
use flowgauge::protocols::http1::{self, HttpParser};
use flowgauge::protocols::http2::{
    BLOCK_LEN_MAX, CONTINUATION_COUNT_MAX, EXPANSION_CREDIT, EXPANSION_FACTOR, Fields, Http2Parser,
    LIST_LEN_MAX, Message, PROTOCOL, STREAM_COUNT_MAX, TEXT_CREDIT, TEXT_FACTOR,
};
use flowgauge::session::{MessageMeta, Role};

use crate::harness::{
    Description, Dialogue, Observed, check_corruptions, check_truncations, observe_in_any_split,
    observe_with_gap,
};

use Role::{Client, Server};

flowgauge::protocols! {
    /// HTTP/1.x and HTTP/2.
    #[derive(Debug)]
    enum Set;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Http;
    parsers { One: HttpParser = &http1::PROTOCOL, Two: Http2Parser = &PROTOCOL }
}

fn optional(name: &str, value: Option<impl std::fmt::Display>) -> String {
    value.map(|value| format!(" {name}={value}")).unwrap_or_default()
}

fn names(fields: Fields<'_>) -> Option<String> {
    let all: Vec<_> = fields.iter().map(|field| format!("{}:{}", field.name, field.value)).collect();
    (!all.is_empty()).then(|| all.join(","))
}

fn describe(meta: &MessageMeta, message: Http<'_>) -> Description {
    let from = meta.from.name();
    Description::Whole(match message {
        Http::One(message) => format!("http1 {from} {}", format!("{message:?}").split('(').next().unwrap()),
        Http::Two(Message::Request(request)) => format!(
            "{} request {} {}{}{}{}{}{}",
            request.transaction,
            request.method,
            request.target,
            optional("host", request.host),
            optional("grpc", request.grpc_service.zip(request.grpc_method).map(|(a, b)| format!("{a}.{b}"))),
            if request.pushed { " pushed" } else { "" },
            optional("anomaly", request.anomaly.map(|anomaly| format!("{anomaly:?}"))),
            optional("credentials", request.credentials),
        ),
        Http::Two(Message::Response(response)) => format!(
            "{} response {}{}",
            response.transaction,
            response.status,
            optional("credentials", response.credentials)
        ),
        Http::Two(Message::Body(body)) => {
            return Description::Part(format!("{} {from} body", body.transaction), body.bytes.to_vec());
        }
        Http::Two(Message::Gap(gap)) => format!("{} gap of {} at {}", gap.transaction, gap.len, gap.offset),
        Http::Two(Message::End(end)) => format!(
            "{} {from} end {}-{}{}{}{}",
            end.transaction,
            end.body_len,
            end.missing_len,
            if end.complete { "" } else { " incomplete" },
            optional("grpc", end.grpc_status),
            optional("trailers", names(end.trailers)),
        ),
        Http::Two(Message::Reset(reset)) => format!("{} reset {}", reset.transaction, reset.error),
        Http::Two(Message::Settings(settings)) => {
            format!("{from} settings{}", optional("streams", settings.max_concurrent_streams))
        }
        Http::Two(Message::GoAway(goaway)) => format!("goaway {} {}", goaway.last_transaction, goaway.error),
        Http::Two(Message::Undecodable(part)) => format!("{from} undecodable {:?}", part.part),
        Http::Two(_) => "?".to_owned(),
    })
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Encodes fields as literals without indexing.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let string = |text: &str| {
        let len = text.len();
        let mut octets = if len < 127 {
            vec![len as u8]
        } else {
            vec![127, (len - 127) as u8 | 0x80, ((len - 127) >> 7) as u8]
        };
        octets.extend(text.as_bytes());
        octets
    };
    fields.iter().flat_map(|(name, value)| [vec![0], string(name), string(value)].concat()).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|octet| !octet.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

fn settings() -> Vec<u8> {
    frame(4, 0, 0, &[0, 3, 0, 0, 0, 100, 0, 4, 0, 1, 0, 0])
}

/// Returns requests of RFC 7541 appendix C.4 on streams 1, 3 and 5, of which the second one is split over frames with
/// padding and priority. The responses are out of order: one has trailers, one is pushed, and one is interim.
fn dialogue() -> Vec<(Role, Vec<u8>)> {
    let c4 = [
        unhex("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"),
        unhex("8286 84be 5886 a8eb 1064 9cbf"),
        unhex("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"),
    ];
    let padded = [&[3, 0, 0, 0, 0, 7][..], &c4[1][..2], &[0; 3]].concat();
    vec![
        (Client, [PREFACE, &settings(), &frame(8, 0, 0, &[0, 0, 255, 0])].concat()),
        (Server, [settings(), frame(4, 1, 0, &[])].concat()),
        (
            Client,
            [
                frame(4, 1, 0, &[]),
                frame(HEADERS, END_STREAM | END_HEADERS, 1, &c4[0]),
                frame(HEADERS, PADDED | PRIORITY, 3, &padded),
                frame(CONTINUATION, 0, 3, &[]),
                frame(CONTINUATION, END_HEADERS, 3, &c4[1][2..]),
                frame(DATA, PADDED, 3, b"\x05some \0\0\0\0\0"),
                frame(HEADERS, END_HEADERS | END_STREAM, 5, &c4[2]),
                frame(DATA, END_STREAM, 3, b"body"),
            ]
            .concat(),
        ),
        (
            Server,
            [
                frame(HEADERS, END_HEADERS, 3, &block(&[(":status", "100")])),
                frame(
                    5,
                    END_HEADERS,
                    1,
                    &[&[0, 0, 0, 2][..], &block(&[(":method", "GET"), (":path", "/p")])].concat(),
                ),
                frame(HEADERS, END_HEADERS, 3, &block(&[(":status", "200"), ("set-cookie", "a=b")])),
                frame(HEADERS, END_HEADERS, 1, &[0x88]),
                frame(DATA, 0, 1, b"one "),
                frame(DATA, END_STREAM, 3, b"three"),
                frame(DATA, 0, 1, b"two"),
                frame(DATA, PADDED | END_STREAM, 2, b"\x01pushed\0"),
                frame(0x20, 0xFF, 7, b"of an extension"),
                frame(DATA, 0, 1, b""),
                frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&[("a", "b")])),
                frame(3, 0, 5, &[0, 0, 0, 8]),
                frame(6, 0, 0, &[0; 8]),
                frame(7, 0, 0, b"\0\0\0\x05\0\0\0\0bye"),
            ]
            .concat(),
        ),
        (
            Client,
            frame(
                HEADERS,
                END_HEADERS,
                7,
                &block(&[(":method", "PUT"), (":path", "/"), ("authorization", "Basic x")]),
            ),
        ),
    ]
}

fn turns(dialogue: &[(Role, Vec<u8>)]) -> Vec<(Role, &[u8])> {
    dialogue.iter().map(|(from, bytes)| (*from, bytes.as_slice())).collect()
}

const EXPECTED: [&str; 25] = [
    "client settings streams=100",
    "server settings streams=100",
    "1 request GET / host=www.example.com",
    "1 client end 0-0",
    "3 request GET / host=www.example.com",
    "3 client body: some ",
    "5 request GET /index.html host=www.example.com",
    "5 client end 0-0",
    "3 client body: body",
    "3 client end 9-0",
    "3 response 100",
    "2 request GET /p pushed",
    "3 response 200 credentials=set_cookie",
    "1 response 200",
    "1 server body: one ",
    "3 server body: three",
    "3 server end 5-0",
    "1 server body: two",
    "2 server body: pushed",
    "2 server end 6-0",
    "1 server end 7-0 trailers=a:b",
    "5 reset cancel",
    "goaway 5 no_error",
    "7 request PUT / credentials=basic",
    "7 client end 0-0 incomplete",
];

#[test]
fn streams_are_separated_and_paired() {
    let dialogue = dialogue();
    let observed = observe_in_any_split::<Set>(80, &turns(&dialogue), describe);
    assert_eq!(observed.application, Some(("http2", "content")));
    assert_eq!(observed.messages(), EXPECTED);
    check_truncations::<Set>(80, &turns(&dialogue), describe);
    check_corruptions::<Set>(80, &turns(&dialogue), describe);
}

#[test]
fn a_single_direction_is_parsed() {
    let dialogue = dialogue();
    for from in [Client, Server] {
        let turns: Vec<_> = turns(&dialogue).into_iter().filter(|turn| turn.0 == from).collect();
        let observed = observe_in_any_split::<Set>(80, &turns, describe);
        assert_eq!(observed.application, Some(("http2", "content")));
        let other = if from == Client { "server" } else { "client" };
        assert!(
            observed.messages().len() >= 10
                && !observed.messages().iter().any(|report| report.contains(other))
        );
    }
}

#[test]
fn grpc_calls_have_methods_and_statuses() {
    let request = block(&[
        (":method", "POST"),
        (":path", "/greet.v1.Greeter/SayHello"),
        ("content-type", "application/grpc+proto"),
        ("te", "trailers"),
    ]);
    let turns = [
        (
            Client,
            [
                PREFACE,
                &settings(),
                &frame(HEADERS, END_HEADERS, 1, &request),
                &frame(DATA, END_STREAM, 1, b"\0\0\0\0\0"),
            ]
            .concat(),
        ),
        (
            Server,
            [
                settings(),
                frame(
                    HEADERS,
                    END_HEADERS,
                    1,
                    &block(&[(":status", "200"), ("content-type", "application/grpc")]),
                ),
                frame(DATA, 0, 1, b"\0\0\0\0\0"),
                frame(
                    HEADERS,
                    END_HEADERS | END_STREAM,
                    1,
                    &block(&[("grpc-status", "0"), ("grpc-message", "")]),
                ),
            ]
            .concat(),
        ),
        (Client, frame(HEADERS, END_HEADERS | END_STREAM, 3, &request)),
        (
            Server,
            frame(HEADERS, END_HEADERS | END_STREAM, 3, &block(&[(":status", "200"), ("grpc-status", "12")])),
        ),
    ];
    let observed = observe_in_any_split::<Set>(80, &self::turns(&turns), describe);
    let reports = observed.messages();
    assert_eq!(reports[1], "1 request POST /greet.v1.Greeter/SayHello grpc=greet.v1.Greeter.SayHello");
    assert_eq!(reports[7], "1 server end 5-0 grpc=0 trailers=grpc-status:0,grpc-message:");
    assert_eq!(reports.last(), Some(&"3 server end 0-0 grpc=12"));
}

#[test]
fn an_upgrade_from_http_1_is_parsed_as_http_2() {
    let turns = [
        (
            Client,
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
                .to_vec(),
        ),
        (
            Server,
            [
                &b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"[..],
                &settings(),
                &frame(HEADERS, END_HEADERS, 1, &[0x88]),
            ]
            .concat(),
        ),
        (Client, [PREFACE, &settings()].concat()),
        (Server, frame(DATA, END_STREAM, 1, b"hello")),
    ];
    let observed = observe_in_any_split::<Set>(80, &self::turns(&turns), describe);
    assert_eq!(
        observed.reports,
        [
            "[http by content]",
            "http1 client Request",
            "http1 client End",
            "http1 server Response",
            "[http2 by content]",
            "server settings streams=100",
            "1 response 200",
            "client settings streams=100",
            "1 server body: hello",
            "1 server end 5-0",
        ]
    );
}

/// Returns the position of a part of a turn.
fn position(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|octets| octets == part).unwrap()
}

fn with_gap(turn: usize, start: usize, len: usize) -> Observed {
    observe_with_gap::<Set>(80, &turns(&dialogue()), describe, (turn, start, len))
}

#[test]
fn gaps_within_frames_do_not_affect_later_frames() {
    let server = &dialogue()[3].1;
    // A gap in a DATA frame.
    let observed = with_gap(3, position(server, b"three"), 3);
    let reports = observed.messages();
    assert_eq!(reports[15..18], ["3 gap of 3 at 0", "3 server body: ee", "3 server end 5-3 incomplete"]);
    assert_eq!(reports[18..], EXPECTED[17..], "all other messages are the same as without the gap");
    // A gap in a frame that produces no message.
    assert_eq!(with_gap(3, position(server, b"extension"), 4).messages(), EXPECTED);
}

#[test]
fn a_missing_header_block_disables_only_header_decoding() {
    let server = &dialogue()[3].1;
    let observed = with_gap(3, position(server, b"set-cookie"), 4);
    let reports = observed.messages();
    assert_eq!(reports[..12], EXPECTED[..12]);
    assert_eq!(
        reports[12..],
        [
            "server undecodable Headers",
            "1 server body: one ",
            "3 server body: three",
            "3 server end 5-0",
            "1 server body: two",
            "2 server body: pushed",
            "2 server end 6-0",
            "1 server end 7-0",
            "5 reset cancel",
            "goaway 5 no_error",
            "7 request PUT / credentials=basic",
            "7 client end 0-0 incomplete",
        ]
    );
}

#[test]
fn a_direction_without_known_frame_boundaries_ends() {
    let server = &dialogue()[3].1;
    let start = position(server, b"one ");
    let observed = with_gap(3, start, position(server, b"three") - start);
    let reports = observed.messages();
    assert_eq!(reports[..14], EXPECTED[..14]);
    assert_eq!(
        reports[14..],
        [
            "server undecodable Frames",
            "1 server end 0-0 incomplete",
            "3 server end 0-0 incomplete",
            "7 request PUT / credentials=basic",
            "7 client end 0-0 incomplete",
        ]
    );
}

#[test]
fn invalid_frames_stop_the_parser() {
    let stop = |frames: &[u8]| {
        let bytes = [PREFACE, &settings(), frames].concat();
        observe_in_any_split::<Set>(80, &[(Client, &bytes)], describe).reports.last().cloned().unwrap()
    };
    let open = frame(HEADERS, 0, 1, &block(&[(":method", "GET")]));
    for (frames, fault) in [
        (frame(4, 0, 0, &[0; 5]), "bad_frame"),
        (frame(DATA, 0, 0, b"x"), "bad_frame"),
        (frame(CONTINUATION, 0, 1, b"x"), "bad_frame"),
        (frame(DATA, PADDED, 1, &[9, 1]), "bad_padding"),
        (frame(HEADERS, PADDED | END_HEADERS, 1, &[9, 1]), "bad_padding"),
        (frame(HEADERS, END_HEADERS, 1, &[0x80]), "hpack_index"),
        (frame(HEADERS, END_HEADERS, 1, &[0x40, 0x81, 0]), "hpack_huffman"),
        ([open.clone(), frame(DATA, 0, 1, b"x")].concat(), "interrupted_header_block"),
        ([open.clone(), frame(CONTINUATION, 0, 3, b"")].concat(), "interrupted_header_block"),
        (
            [open.clone(), frame(CONTINUATION, 0, 1, b"").repeat(usize::from(CONTINUATION_COUNT_MAX) + 1)]
                .concat(),
            "header_block_too_long",
        ),
        ([open, frame(CONTINUATION, 0, 1, &[0; BLOCK_LEN_MAX])].concat(), "header_block_too_long"),
        (frame(HEADERS, END_HEADERS, 1, &[0; BLOCK_LEN_MAX + 1])[..100].to_vec(), "header_block_too_long"),
    ] {
        assert_eq!(
            stop(&frames),
            format!("[http2 stopped: {fault}]"),
            "{:?}",
            &frames[..20.min(frames.len())]
        );
    }
}

#[test]
fn a_header_list_beyond_the_limit_is_truncated_and_stops_the_parser() {
    // One field of 4000 octets is added to the table, and is then referenced many times, with one octet each time.
    let value = "x".repeat(4000);
    let mut bomb = block(&[(":method", "GET"), (":path", "/"), ("bomb", &value)]);
    let literal = bomb.len() - block(&[("bomb", &value)]).len();
    bomb[literal] = 0x40;
    bomb.extend([0xBE; 10_000]);
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 80, describe);
    dialogue.send_octets(Client, PREFACE);
    dialogue.send_octets(Client, &settings());
    for stream in 0..4 {
        dialogue.send_octets(Client, &frame(HEADERS, END_HEADERS, 2 * stream + 1, &bomb));
        assert!(dialogue.held_bytes() < 4 * LIST_LEN_MAX as u64, "{}", dialogue.held_bytes());
    }
    let observed = dialogue.finish();
    assert_eq!(
        observed.reports[1..],
        [
            "client settings streams=100",
            "1 request GET / anomaly=ListTooLong",
            "[http2 stopped: header_list_too_long]"
        ]
    );
}

/// Creates a dialogue in which the first request of the client adds a field to the dynamic table; later blocks can
/// reference this field with one octet. The other fields of the request are in the static table.
fn dialogue_with_field(name: &str, value: &str) -> Dialogue<Set> {
    let mut first = vec![0x82, 0x86, 0x84];
    let mut literal = block(&[(name, value)]);
    literal[0] = 0x40;
    first.extend(literal);
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 80, describe);
    dialogue.send_octets(Client, PREFACE);
    dialogue.send_octets(Client, &settings());
    dialogue.send_octets(Client, &frame(HEADERS, END_HEADERS | END_STREAM, 1, &first));
    dialogue
}

#[test]
fn requests_that_repeat_a_long_cookie_are_parsed() {
    // Each request has 40 octets, including the frame header; the cookie fills the table.
    let mut dialogue = dialogue_with_field("cookie", &"c".repeat(4096 - 32 - 6));
    let block = [&[0x82, 0x86, 0x84, 0xBE][..], &block(&[("x", "01234567890123456789012")])].concat();
    assert_eq!(9 + block.len(), 40);
    const COUNT: u32 = 5000;
    for number in 1..=COUNT {
        dialogue.send_octets(Client, &frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &block));
    }
    let observed = dialogue.finish();
    let last = format!("{} request GET / credentials=cookie", 2 * COUNT + 1);
    assert_eq!(observed.messages()[observed.messages().len() - 2], last);
    assert!(!observed.reports.iter().any(|report| report.contains("stopped") || report.contains("anomaly")));
}

#[test]
fn header_lists_below_the_limit_exhaust_the_expansion_limit_of_a_connection() {
    let value = "x".repeat(4000);
    let mut dialogue = dialogue_with_field("bomb", &value);
    let block = [0xBE; 16];
    let list_len = 16 * (4 + value.len());
    assert!(list_len <= LIST_LEN_MAX);
    for number in 1..100 {
        dialogue.send_octets(Client, &frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &block));
    }
    let observed = dialogue.finish();
    assert_eq!(observed.reports.last().map(String::as_str), Some("[http2 stopped: header_expansion]"));
    let requests = observed.messages().iter().filter(|report| report.contains("request")).count() - 1;
    // Each frame earns credit in proportion to its length, and each list consumes its expanded length.
    let earned_each = EXPANSION_FACTOR as usize * (9 + block.len());
    let first_earned = EXPANSION_FACTOR as usize * (9 + 3 + 5 + 4 + value.len()) - value.len();
    let whole_count =
        (1..).find(|count| count * list_len > EXPANSION_CREDIT as usize + first_earned + count * earned_each);
    let whole_count = whole_count.expect("a number") - 1;
    assert!((whole_count..=whole_count + 2).contains(&requests), "{requests} of {whole_count}");
}

#[test]
fn repeated_texts_are_omitted_when_they_greatly_exceed_their_encoded_length() {
    let path = format!("/{}", "p".repeat(3999));
    let mut dialogue = dialogue_with_field(":path", &path);
    let block = [0x82, 0xBE, 0x86, 0x86, 0x86, 0x86, 0x86, 0x86, 0x86, 0x86];
    const COUNT: u32 = 300;
    for number in 1..=COUNT {
        dialogue.send_octets(Client, &frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &block));
    }
    let observed = dialogue.finish();
    let reports = observed.messages();
    let (whole, truncated) = reports
        .iter()
        .filter(|report| report.contains("request"))
        .partition::<Vec<&&str>, _>(|report| !report.contains("Truncated"));
    assert_eq!(
        (whole.len() + truncated.len(), observed.reports.len()),
        (COUNT as usize + 1, reports.len() + 1)
    );
    let text_len = whole.len() * path.len();
    let wire_len = 4000 + 20 + COUNT as usize * (9 + block.len());
    assert!(text_len <= (TEXT_CREDIT + TEXT_FACTOR * wire_len as u64) as usize, "{text_len}");
    assert!(whole.len() > 60 && truncated.len() > 100, "{} {}", whole.len(), truncated.len());
    assert!(truncated[0].ends_with(" request GET  anomaly=Truncated"), "{}", truncated[0]);
}

#[test]
fn the_dynamic_table_size_is_limited_by_the_settings_of_the_peer() {
    // A size of 8192 is encoded as the prefix 31 and the remainder 8161.
    let larger = [&[0x3F, 0xE1, 0x3F, 0x82, 0x86, 0x84][..]].concat();
    let sized = |size: u32| frame(4, 0, 0, &[&[0, 1][..], &size.to_be_bytes()].concat());
    let plain = frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]);
    for (server, is_rejected) in [
        // The SETTINGS are not captured: any size is accepted.
        (vec![], false),
        (sized(4096), true),
        (plain.clone(), true),
        (sized(8192), false),
        // The client may not have received the smaller size yet.
        ([sized(8192), sized(0)].concat(), false),
        ([plain, sized(8192)].concat(), false),
    ] {
        let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 80, describe);
        dialogue.send_octets(Client, &[PREFACE, &settings()].concat());
        dialogue.send_octets(Server, &server);
        dialogue.send_octets(Client, &frame(HEADERS, END_HEADERS | END_STREAM, 1, &larger));
        let observed = dialogue.finish();
        let is_stopped =
            observed.reports.iter().any(|report| report == "[http2 stopped: hpack_table_too_long]");
        assert_eq!(is_stopped, is_rejected, "{server:?}: {:?}", observed.reports);
    }
    // SETTINGS with a missing part may contain any size.
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 80, describe);
    dialogue.send_octets(Client, &[PREFACE, &settings()].concat());
    dialogue.send_octets(Server, &sized(4096));
    dialogue.send_octets(Server, &sized(8192)[..12]);
    dialogue.send_gap(Server, 3);
    dialogue.send_octets(Client, &frame(HEADERS, END_HEADERS | END_STREAM, 1, &larger));
    assert!(dialogue.finish().messages().contains(&"1 request GET /"));
}

#[test]
fn streams_may_be_opened_in_any_order() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 80, describe);
    dialogue.send_octets(Client, &[PREFACE, &settings()].concat());
    let numbers = [9, 3, 7, 1, 5, 2, 11];
    for number in numbers {
        dialogue.send_octets(Client, &frame(DATA, 0, number, b"a"));
    }
    for number in numbers {
        dialogue.send_octets(Client, &frame(DATA, END_STREAM, number, b"bc"));
        dialogue.send_octets(Server, &frame(3, 0, number, &[0; 4]));
    }
    let observed = dialogue.finish();
    let ends: Vec<_> = observed.messages().into_iter().filter(|report| report.contains("end")).collect();
    assert_eq!(ends, numbers.map(|number| format!("{number} client end 3-0")));
}

#[test]
fn the_number_of_open_streams_is_bounded() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 80, describe);
    dialogue.send_octets(Client, PREFACE);
    dialogue.send_octets(Client, &settings());
    for stream in 0..4 * STREAM_COUNT_MAX as u32 {
        dialogue.send_octets(Client, &frame(HEADERS, END_HEADERS, 2 * stream + 1, &[0x82, 0x84]));
        assert!(dialogue.held_bytes() < 40_000, "{}", dialogue.held_bytes());
    }
    let observed = dialogue.finish();
    let ends = observed.messages().iter().filter(|report| report.contains("end")).count();
    assert_eq!(ends, STREAM_COUNT_MAX);
}

#[test]
fn header_blocks_are_not_decoded_when_the_beginning_is_missing() {
    let turns = [
        (Client, [PREFACE, &settings()].concat()),
        (Server, [frame(HEADERS, END_HEADERS, 7, &[0x88]), frame(DATA, END_STREAM, 7, b"x")].concat()),
    ];
    let observed = observe_in_any_split::<Set>(80, &self::turns(&turns), describe);
    assert_eq!(
        observed.messages()[1..],
        ["server undecodable Headers", "7 server body: x", "7 server end 1-0"]
    );
}

#[cfg(feature = "serde")]
#[test]
fn messages_are_serialized_without_credentials() {
    use flowgauge::session::{Input, Parser};
    let bytes = [
        PREFACE,
        &settings(),
        &frame(
            HEADERS,
            END_HEADERS,
            1,
            &block(&[
                (":method", "GET"),
                (":path", "/a"),
                (":authority", "u:secret@h"),
                ("cookie", "secret"),
            ]),
        ),
        &frame(3, 0, 1, &[0, 0, 0, 8]),
        &frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 1, 0]),
    ]
    .concat();
    let input = Input::new(&bytes, 0, Client, flowgauge::base::Timestamp::default());
    let mut reports = Vec::new();
    Http2Parser::default()
        .bytes(&input, &mut |message| {
            assert!(!format!("{message:?}").contains("cookie\": \"secret"));
            reports.push(as_json(&message));
        })
        .unwrap();
    assert_eq!(
        reports,
        [
            r#"{"message":"settings","max_concurrent_streams":100,"initial_window_size":65536}"#,
            r#"{"message":"request","transaction":1,"method":"GET","target":"/a","host":"h","credentials":"userinfo"}"#,
            r#"{"message":"reset","transaction":1,"error":"cancel"}"#,
            r#"{"message":"go_away","last_transaction":1,"error":"256"}"#,
        ]
    );
}
