//! HTTP/1.x: dialogues from RFC 9110 and RFC 9112, and deviations that occur in practice.

#[cfg(feature = "serde")]
use crate::message_json::as_json;
use flowgauge::base::IpProtocol;
use flowgauge::protocols::http1::{
    self, HEAD_LEN_MAX, HEADER_COUNT_MAX, Headers, HttpParser, Message, PROTOCOL, WEBSOCKET,
};
use flowgauge::session::{Input, MessageMeta, Parser, Protocol, Role, Verdict};

use crate::harness::{
    Description, Dialogue, Observed, Turn, check_corruptions, check_truncations, observe,
    observe_in_any_split, observe_with_gap,
};

use Role::{Client, Server};

flowgauge::protocols! {
    /// Only HTTP/1.x.
    #[derive(Debug)]
    enum Set;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Http;
    parsers { Http: HttpParser = &PROTOCOL }
    recognized { &WEBSOCKET }
}

fn optional(name: &str, value: Option<impl std::fmt::Display>) -> String {
    value.map(|value| format!(" {name}={value}")).unwrap_or_default()
}

/// HTTP/1.x with a probe that accepts everything, for octets that the probe of HTTP rejects.
static ANY_CONTENT: Protocol = Protocol::new("http").over_streams(&[], Some(|_| Verdict::Match));

flowgauge::protocols! {
    /// HTTP/1.x with any content.
    #[derive(Debug)]
    enum AnyContent;
    /// Messages of this parser.
    #[derive(Debug)]
    enum AnyContentHttp;
    parsers { Http: HttpParser = &ANY_CONTENT }
}

fn observe_any_content(turns: &[(Role, &[u8])]) -> Observed {
    observe_in_any_split::<AnyContent>(80, turns, |meta, AnyContentHttp::Http(message)| {
        describe_message(meta, message)
    })
}

fn describe(meta: &MessageMeta, Http::Http(message): Http<'_>) -> Description {
    describe_message(meta, message)
}

fn describe_message(meta: &MessageMeta, message: Message<'_>) -> Description {
    match message {
        Message::Request(request) => Description::Whole(format!(
            "{} request {} {} {}{}{}{}",
            request.transaction,
            request.method,
            request.target,
            request.version,
            optional("host", request.host),
            optional("anomaly", request.anomaly.map(|anomaly| format!("{anomaly:?}"))),
            optional("credentials", request.credentials)
        )),
        Message::Response(response) => Description::Whole(format!(
            "{} response {} {}{}{}{}",
            response.transaction,
            response.status,
            response.reason,
            optional("type", response.content_type),
            optional("anomaly", response.anomaly.map(|anomaly| format!("{anomaly:?}"))),
            optional("credentials", response.credentials)
        )),
        Message::Body(body) => {
            Description::Part(format!("{} {} body", body.transaction, meta.from.name()), body.bytes.to_vec())
        }
        Message::Gap(gap) => {
            Description::Whole(format!("{} gap of {} at {}", gap.transaction, gap.len, gap.offset))
        }
        Message::End(end) => Description::Whole(format!(
            "{} {} end {}-{}{}{}",
            end.transaction,
            meta.from.name(),
            end.body_len,
            end.missing_len,
            if end.complete { "" } else { " incomplete" },
            optional("trailers", Some(names(end.trailers)).filter(|names| !names.is_empty())),
        )),
        _ => Description::Whole("?".to_owned()),
    }
}

fn names(headers: Headers<'_>) -> String {
    headers.iter().map(|header| format!("{}:{}", header.name, header.value)).collect::<Vec<_>>().join(",")
}

fn observed(turns: &[(Role, &[u8])]) -> Observed {
    observe_in_any_split::<Set>(80, turns, describe)
}

/// RFC 9110 section 3.9, and a second request on the same connection.
const EXAMPLE: [(Role, &[u8]); 4] = [
    (
        Client,
        b"GET /hello.txt HTTP/1.1\r\nUser-Agent: curl/7.64.1\r\nHost: www.example.com\r\nAccept-Language: en, mi\r\n\r\n",
    ),
    (
        Server,
        b"HTTP/1.1 200 OK\r\nDate: Mon, 27 Jul 2009 12:28:53 GMT\r\nServer: Apache\r\nContent-Length: 51\r\n\
          Vary: Accept-Encoding\r\nContent-Type: text/plain\r\n\r\nHello World! My content includes a trailing CRLF.\r\n",
    ),
    (Client, b"POST /a?b HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 3\r\n\r\nabc"),
    (Server, b"HTTP/1.1 204 No Content\r\nContent-Length: 99\r\n\r\n"),
];

#[test]
fn requests_and_responses_are_paired() {
    let observed = observed(&EXAMPLE);
    assert_eq!(observed.application, Some(("http", "content")));
    assert_eq!(
        observed.messages(),
        [
            "0 request GET /hello.txt 1.1 host=www.example.com",
            "0 client end 0-0",
            "0 response 200 OK type=text/plain",
            "0 server body: Hello World! My content includes a trailing CRLF.\\r\\n",
            "0 server end 51-0",
            "1 request POST /a?b 1.1 host=www.example.com",
            "1 client body: abc",
            "1 client end 3-0",
            "1 response 204 No Content",
            "1 server end 0-0",
        ]
    );
    check_truncations::<Set>(80, &EXAMPLE, describe);
    check_corruptions::<Set>(80, &EXAMPLE, describe);
}

/// Pipelined requests, one of them HEAD; interim responses; chunks with extensions and trailers (RFC 9112 section 7.1).
const PIPELINED: [(Role, &[u8]); 2] = [
    (
        Client,
        b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\nPUT /b HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\
          Transfer-Encoding: chunked\r\n\r\n4;name=value\r\nWiki\r\n6\r\npedia \r\n0\r\nExpires: never\r\nA: b\r\n\r\nGET /c HTTP/1.0\n\n",
    ),
    (
        Server,
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
          HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nE\r\nin \r\n\r\nchunks.\r\n0\r\n\r\nHTTP/1.0 200 \r\n\r\nto the end",
    ),
];

#[test]
fn pipelined_chunked_and_interim_messages_are_parsed() {
    let observed = observed(&PIPELINED);
    assert_eq!(
        observed.messages(),
        [
            "0 request HEAD / 1.1 host=a",
            "0 client end 0-0",
            "1 request PUT /b 1.1 host=a",
            "1 client body: Wikipedia ",
            "1 client end 10-0 trailers=Expires:never,A:b",
            "2 request GET /c 1.0",
            "2 client end 0-0",
            "0 response 200 OK",
            "0 server end 0-0",
            "1 response 100 Continue",
            "1 response 103 Early Hints",
            "1 response 201 Created",
            "1 server body: in \\r\\n\\r\\nchunks.",
            "1 server end 14-0",
            "2 response 200 ",
            "2 server body: to the end",
            "2 server end 10-0",
        ]
    );
    check_truncations::<Set>(80, &PIPELINED, describe);
    check_corruptions::<Set>(80, &PIPELINED, describe);
}

#[test]
fn gaps_in_bodies_of_known_length_do_not_affect_later_messages() {
    // A gap in the content of the first response.
    let start = EXAMPLE[1].1.len() - 40;
    let observed = observe_with_gap::<Set>(80, &EXAMPLE, describe, (1, start, 20));
    assert_eq!(
        observed.messages()[2..7],
        [
            "0 response 200 OK type=text/plain",
            "0 server body: Hello World",
            "0 gap of 20 at 11",
            "0 server body: s a trailing CRLF.\\r\\n",
            "0 server end 51-20 incomplete",
        ]
    );
    assert!(observed.messages().contains(&"1 response 204 No Content"));
    // A gap in a chunk.
    let position = PIPELINED[1].1.windows(7).position(|octets| octets == b"chunks.").unwrap();
    let observed = observe_with_gap::<Set>(80, &PIPELINED, describe, (1, position, 3));
    let reports = observed.messages();
    assert_eq!(
        reports[12..16],
        [
            "1 server body: in \\r\\n\\r\\n",
            "1 gap of 3 at 7",
            "1 server body: nks.",
            "1 server end 14-3 incomplete"
        ]
    );
    // A gap in a body that ends with the connection.
    let observed = observe_with_gap::<Set>(80, &PIPELINED, describe, (1, PIPELINED[1].1.len() - 5, 2));
    assert_eq!(observed.messages().last(), Some(&"2 server end 10-2 incomplete"));
}

#[test]
fn parsing_resumes_at_the_next_message_after_other_gaps() {
    let get = |number: u32| format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    let ok = |number: u32| {
        format!("HTTP/1.1 20{number} OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbody{number}\r\n0\r\n\r\n")
            .into_bytes()
    };
    let dialogue: Vec<_> = (0..4).flat_map(|number| [(Client, get(number)), (Server, ok(number))]).collect();
    let turns: Vec<_> = dialogue.iter().map(|(from, bytes)| (*from, bytes.as_slice())).collect();
    let pairs = |observed: &Observed| {
        let heads = observed.messages().into_iter().filter(|report| report.contains(" re"));
        heads.map(|report| report.split(" host").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let whole = pairs(&observed(&turns));
    assert_eq!(whole[..2], ["0 request GET /0 1.1", "0 response 200 OK"]);
    assert_eq!(whole[6..], ["3 request GET /3 1.1", "3 response 203 OK"]);
    // A request is missing: its response has the number that the request would have had.
    let observed = observe_with_gap::<Set>(80, &turns, describe, (2, 0, turns[2].1.len()));
    assert_eq!(pairs(&observed), [&whole[..2], &whole[3..]].concat());
    // A response is missing, and the next one answers the next request.
    let observed = observe_with_gap::<Set>(80, &turns, describe, (3, 0, turns[3].1.len()));
    assert_eq!(pairs(&observed), [&whole[..3], &whole[4..]].concat());
    // The gap ends the current response.
    let position = turns[3].1.len() - 12;
    let observed = observe_with_gap::<Set>(80, &turns, describe, (3, position, 12));
    assert_eq!(pairs(&observed), whole);
    assert!(observed.messages().contains(&"1 server end 5-5 incomplete"));
    // A gap within a head: its captured part is reported.
    let observed = observe_with_gap::<Set>(80, &turns, describe, (2, 25, 3));
    assert_eq!(pairs(&observed)[2], "1 request GET /1 1.1 anomaly=Truncated");
    assert_eq!(pairs(&observed)[3..], whole[3..]);
}

#[test]
fn a_single_direction_is_parsed() {
    let requests: Vec<_> = EXAMPLE.iter().copied().filter(|(from, _)| *from == Client).collect();
    let observed = observe_in_any_split::<Set>(80, &requests, describe);
    assert_eq!(observed.messages().len(), 5);
    // The side that sends first sends responses: the capture began in the middle.
    let responses: Vec<_> =
        EXAMPLE.iter().filter(|(from, _)| *from == Server).map(|(_, bytes)| (Client, *bytes)).collect();
    let observed = observe_in_any_split::<Set>(80, &responses, describe);
    assert_eq!(
        observed.messages(),
        [
            "0 response 200 OK type=text/plain",
            "0 server body: Hello World! My content includes a trailing CRLF.\\r\\n",
            "0 server end 51-0",
            "1 response 204 No Content",
            "1 server end 0-0",
        ]
    );
}

#[test]
fn transactions_are_paired_when_the_capture_begins_within_a_response() {
    let turns: [(Role, &[u8]); 4] = [
        (Client, b"GET /b HTTP/1.1\r\n\r\n"),
        (Server, b"rest of another body\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb"),
        (Client, b"GET /c HTTP/1.1\r\n\r\n"),
        (Server, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
    ];
    let observed = observed(&turns);
    let heads: Vec<_> = observed.messages().into_iter().filter(|report| report.contains(" re")).collect();
    assert_eq!(
        heads,
        ["0 request GET /b 1.1", "0 response 200 OK", "1 request GET /c 1.1", "1 response 404 No"]
    );
}

#[test]
fn tunnels_and_upgrades_hand_over() {
    let tunnel: [(Role, &[u8]); 4] = [
        (Client, b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\nProxy-Authorization: Basic eDp5\r\n\r\n"),
        (Server, b"HTTP/1.1 200 Connected\r\nContent-Length: 7\r\n\r\n"),
        (Client, b"GET /inside HTTP/1.1\r\n\r\n"),
        (Server, b"HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n"),
    ];
    assert_eq!(
        observed(&tunnel).reports,
        [
            "[http by content]",
            "0 request CONNECT example.org:443 1.1 host=example.org credentials=basic",
            "0 client end 0-0",
            "0 response 200 Connected",
            "[http by content]",
            "0 request GET /inside 1.1",
            "0 client end 0-0",
            "0 response 404 ",
            "0 server end 0-0",
        ]
    );
    let refused: [(Role, &[u8]); 4] = [
        (Client, b"CONNECT a:1 HTTP/1.1\r\n\r\n"),
        (Server, b"HTTP/1.1 407 Who\r\nContent-Length: 2\r\n\r\nno"),
        (Client, b"CONNECT a:1 HTTP/1.1\r\n\r\n"),
        (Server, b"HTTP/1.0 200 Yes\r\n\r\n\x00\x01\x02"),
    ];
    let reports = observed(&refused).reports;
    assert_eq!(reports[6..], ["1 request CONNECT a:1 1.1", "1 client end 0-0", "1 response 200 Yes"]);
    let websocket: [(Role, &[u8]); 3] = [
        (Client, b"GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"),
        (Server, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05Hello"),
        (Client, b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"),
    ];
    let observed = observed(&websocket);
    assert_eq!(observed.reports[3..], ["0 response 101 Switching Protocols", "[websocket by content]"]);
    assert_eq!(observed.application, Some(("http", "content")));
}

#[test]
fn a_rejected_upgrade_continues_as_http() {
    let turns: [(Role, &[u8]); 4] = [
        (Client, b"GET /1 HTTP/1.1\r\nUpgrade: h2c\r\n\r\nGET /2 HTTP/1.1\r\nUpgrade: h2c\r\n\r\n"),
        (Server, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (Client, b"GET /3 HTTP/1.1\r\n\r\n"),
        (Server, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ];
    assert_eq!(observed(&turns).messages().len(), 12);
}

#[test]
fn a_tunnel_with_one_captured_direction_is_probed() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 3128, describe);
    dialogue.send_octets(Client, b"CONNECT a:443 HTTP/1.1\r\n\r\n");
    dialogue.send_octets(Client, b"\x16\x03\x01\x08\x00\x01");
    assert!(dialogue.held_bytes() > 0);
    dialogue.send_octets(Client, &[7; 3000]);
    assert_eq!(dialogue.held_bytes(), 0);
    assert_eq!(dialogue.finish().messages().len(), 2);
}

#[test]
fn malformed_header_sections_are_parsed_with_anomalies() {
    let turns: [(Role, &[u8]); 6] = [
        (Client, b"GET /a b HTTP/1.1\r\nHost : a\r\nno field\r\nX: \x01\r\n\r\n"),
        (Server, b"HTTP/1.1 200 OK\nContent-Type: text/plain;\n charset=x\nContent-Length: 0\n\n\r\n"),
        (Client, b"\r\nGET http://user:secret@h/p HTTP/1.1\r\nX: a\r\n\t b\r\nCookie: a=b\r\n\r\n"),
        (Server, b"HTTP/1.1  302 See\r\nLocation: http://u:p@h/\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n"),
        (Client, b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        (Server, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabcdef"),
    ];
    assert_eq!(
        observed(&turns).messages(),
        [
            "0 request GET /a b 1.1 host=a anomaly=Malformed",
            "0 client end 0-0",
            "0 response 200 OK type=text/plain;  charset=x anomaly=Folded",
            "0 server end 0-0",
            "1 request GET http://h/p 1.1 anomaly=Folded credentials=userinfo",
            "1 client end 0-0",
            "1 response 302 See anomaly=RepeatedLength credentials=userinfo",
            "1 server end 0-0",
            "2 request POST / 1.1 anomaly=LengthAndCoding",
            "2 client end 0-0",
            "2 response 200 OK anomaly=LengthAndCoding",
            "2 server body: abcdef",
            "2 server end 6-0",
        ]
    );
}

#[test]
fn invalid_framing_ends_only_that_message() {
    // A server that interprets the length as zero parses the body as another request: a form of request smuggling.
    let next = "GET /next HTTP/1.1\r\n\r\n";
    for (fields, body, anomaly, len) in [
        ("Content-Length: 5\r\nContent-Length: 6", "", " anomaly=BadLength", 0),
        ("Content-Length: 5, 6", "", " anomaly=BadLength", 0),
        ("Content-Length: -1", "", " anomaly=BadLength", 0),
        ("Content-Length: 18446744073709551615", "", " anomaly=BadLength", 0),
        ("Content-Length: -1", "xyz\r\n", " anomaly=BadLength", 0),
        ("Transfer-Encoding: chunked, gzip", "", " anomaly=BadCoding", 0),
        ("Transfer-Encoding: chunked", "xyz\r\n", "", 0),
        ("Transfer-Encoding: chunked", "10000000000000000\r\n", "", 0),
        ("Transfer-Encoding: chunked", "1\r\naxyz\r\n", "", 1),
    ] {
        let post = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n{body}{next}").into_bytes();
        let turns: [(Role, &[u8]); 2] =
            [(Client, &post), (Server, b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")];
        let observed = observed(&turns);
        let messages: Vec<_> = observed.reports[1..]
            .iter()
            .filter(|report| !report.contains("body"))
            .map(String::as_str)
            .collect();
        assert_eq!(
            messages,
            [
                &format!("0 request POST / 1.1{anomaly}"),
                &format!("0 client end {len}-0 incomplete"),
                "1 request GET /next 1.1",
                "1 client end 0-0",
                "0 response 400 Bad Request",
                "0 server end 0-0"
            ],
            "{fields} {body}"
        );
    }
    let responses: [(Role, &[u8]); 4] = [
        (Client, b"GET /a HTTP/1.1\r\n\r\n"),
        (Server, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        (Client, b"GET /b HTTP/1.1\r\n\r\n"),
        (Server, b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nuntil the end"),
    ];
    assert_eq!(
        observed(&responses).messages()[2..],
        [
            "0 response 200 OK",
            "0 server end 0-0 incomplete",
            "1 request GET /b 1.1",
            "1 client end 0-0",
            "1 response 200 OK anomaly=BadLength",
            "1 server body: until the end",
            "1 server end 13-0",
        ]
    );
}

#[test]
fn a_response_to_an_invalid_request_is_parsed() {
    let refusal = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nno!".as_slice();
    let messages = ["0 response 400 Bad Request", "0 server body: no!", "0 server end 3-0"];
    let get = b"GET /next HTTP/1.1\r\n\r\n".as_slice();
    for request in [&b"OPTIONS\r\nHost: a\r\n\r\n"[..], b"HTTP/1.1\r\n\r\n", b"\x01\x02\x03\x04\r\n"] {
        let observed = observe_any_content(&[(Client, request), (Server, refusal), (Client, get)]);
        let next = ["1 request GET /next 1.1", "1 client end 0-0"];
        assert_eq!(observed.messages(), [&messages[..], &next].concat(), "{}", request.escape_ascii());
    }
    // A version without a preceding target, and a version that no space separates from the target.
    let observed =
        observe_any_content(&[(Client, b"OPTIONS HTTP/1.1\r\nHost: a\r\n\r\n"), (Server, refusal)]);
    assert_eq!(observed.messages()[0], "0 request OPTIONS  1.1 host=a anomaly=Malformed");
    let observed = observe_any_content(&[
        (Client, b"GET /HTTP/1.1\r\nHost: a\r\n\r\n"),
        (Server, refusal),
        (Client, get),
    ]);
    assert_eq!(
        observed.messages(),
        [
            &["0 request GET /HTTP/1.1 0.9", "0 client end 0-0"][..],
            &messages,
            &["1 request GET /next 1.1", "1 client end 0-0"]
        ]
        .concat()
    );
    // If neither direction contains a message, the flow is not HTTP.
    let observed = observe_any_content(&[(Client, b"\x01\x02\n"), (Server, b"\x03\x04\n")]);
    assert_eq!(observed.reports[1..], ["[http stopped: not_a_response]"]);
}

#[test]
fn a_simple_request_of_http_0_9_is_answered_by_a_body() {
    // HTTP/0.9 (RFC 1945 sections 4.1 and 5).
    let simple = ["0 request GET /bad.html 0.9", "0 client end 0-0"];
    let request = (Client, b"GET /bad.html\r\n".as_slice());
    let observed = observe_any_content(&[request, (Server, b"<html></html>\n")]);
    let body = ["0 server body: <html></html>\\n", "0 server end 14-0"];
    assert_eq!(observed.messages(), [simple, body].concat());
    // An empty line may follow the request line, in the same segment or in the next one.
    let with_end: [&[Turn<'_>]; 2] = [
        &[(Client, b"GET /bad.html\r\n\r\n"), (Server, b"<html></html>\n")],
        &[request, (Client, b"\r\n"), (Server, b"<html></html>\n")],
    ];
    for turns in with_end {
        assert_eq!(observe_any_content(turns).messages(), [simple, body].concat());
    }
    // A server of HTTP/1 sends a status line; `HTTP/1.` alone is not enough to recognize one.
    let observed = observe_any_content(&[request, (Server, b"HTTP/1.0 200 OK\r\n\r\nHTTP/1.")]);
    let body = ["0 response 200 OK", "0 server body: HTTP/1.", "0 server end 7-0"];
    assert_eq!(observed.messages(), [&simple[..], &body].concat());
    // The end of the line may be missing if the request was answered.
    let observed = observe_any_content(&[(Client, b"GET /"), (Server, b"<html>hi</html>")]);
    assert_eq!(observed.messages(), ["0 request GET / 0.9", "0 client end 0-0"]);
    assert!(observe_any_content(&[(Client, b"GET /")]).messages().is_empty(), "the target may be longer");
    // Not every word in front of a path is a method.
    for line in ["GETS /bad.html\r\n", "GET bad.html\r\n", "GET /bad html\r\n", "get /bad.html\r\n"] {
        assert!(observe_any_content(&[(Client, line.as_bytes())]).messages().is_empty(), "{line}");
    }
}

#[test]
fn a_protocol_name_in_lower_case_is_accepted() {
    let turns: [(Role, &[u8]); 2] = [
        (Client, b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET /b http/1.1\r\nhost: a\r\n\r\n"),
        (Server, b"http/1.1 200 ok\r\ncontent-length: 2\r\n\r\nhiHtTp/1.0 204 none\r\n\r\n"),
    ];
    assert_eq!(
        observed(&turns).messages(),
        [
            "0 request GET / 1.1 host=a",
            "0 client end 0-0",
            "1 request GET /b 1.1 host=a anomaly=Malformed",
            "1 client end 0-0",
            "0 response 200 ok anomaly=Malformed",
            "0 server body: hi",
            "0 server end 2-0",
            "1 response 204 none anomaly=Malformed",
            "1 server end 0-0",
        ]
    );
}

#[test]
fn header_sections_have_limits() {
    let long = format!("GET /{} HTTP/1.1\r\nA: b\r\n\r\n", "a".repeat(HEAD_LEN_MAX));
    let get = b"GET /next HTTP/1.1\r\n\r\n".as_slice();
    let reports = |text: &str| {
        [700, 1500, usize::MAX].map(|len| {
            observe::<Set>(80, &[(Client, text.as_bytes()), (Client, get)], describe, || len).reports[1..]
                .to_vec()
        })
    };
    // A head beyond the limit is skipped.
    let next = vec!["0 request GET /next 1.1".to_owned(), "0 client end 0-0".to_owned()];
    assert_eq!(reports(&long), [&next, &next, &next].map(Clone::clone));
    let many = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert_eq!(reports(&many(HEADER_COUNT_MAX + 1)), [&next, &next, &next].map(Clone::clone));
    for reports in reports(&many(HEADER_COUNT_MAX)) {
        assert_eq!(reports[..2], ["0 request GET / 1.1", "0 client end 0-0"]);
    }
}

#[test]
fn lines_of_a_rejected_header_section_are_not_requests() {
    let fields = "A: GET /within HTTP/1.1\r\n".repeat(500);
    let long = format!("GET /long HTTP/1.1\r\nA: {}\r\n{fields}\r\n", "a".repeat(48 * 1024));
    let many = format!("GET /many HTTP/1.1\r\n{fields}\r\n");
    let first = b"GET /first HTTP/1.1\r\n\r\n".as_slice();
    let last = b"GET /last HTTP/1.1\r\n\r\n".as_slice();
    let turns = [(Client, first), (Client, many.as_bytes()), (Client, last)];
    let targets = |turns: &[(Role, &[u8])], len| {
        let reports = observe::<Set>(80, turns, describe, || len).reports;
        reports.into_iter().filter(|report| report.contains("GET")).collect::<Vec<_>>()
    };
    let whole = targets(&turns, usize::MAX);
    assert_eq!(whole.len(), 2, "{whole:?}");
    assert!(whole[1].contains("/last"), "{whole:?}");
    assert_eq!(targets(&turns, 1000), whole);
    // The remainder of a longer head is not known to be part of it, but parsing resumes after it.
    let turns = [(Client, first), (Client, long.as_bytes()), (Client, last)];
    let whole = targets(&turns, usize::MAX);
    assert!(whole.last().is_some_and(|report| report.contains("/last")), "{whole:?}");
    assert_eq!(targets(&turns, 777), whole);
}

#[test]
fn other_protocols_are_not_recognized() {
    for (port, first) in [
        (554, "OPTIONS rtsp://a/b RTSP/1.0\r\nCSeq: 1\r\n\r\n"),
        (5060, "REGISTER sip:a SIP/2.0\r\n\r\n"),
        (6346, "GNUTELLA CONNECT/0.6\r\n\r\n"),
        (80, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (25, "EHLO a\r\n"),
    ] {
        let observed = observe_in_any_split::<Set>(port, &[(Client, first.as_bytes())], describe);
        assert_eq!(observed.application, None, "{first}");
    }
}

#[test]
fn fields_are_listed_and_credentials_are_not_serialized() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer secret\r\nX-Y: z\r\n\r\n";
    let input = Input::new(head, 0, Client, flowgauge::base::Timestamp::default());
    let mut reports = Vec::new();
    HttpParser::default()
        .bytes(&input, &mut |message| {
            if let Message::Request(request) = &message {
                assert_eq!(names(request.headers), "Host:a,Authorization:Bearer secret,X-Y:z");
                assert_eq!(request.headers.find("x-y").map(|value| value.to_string()).as_deref(), Some("z"));
            }
            #[cfg(feature = "serde")]
            reports.push(as_json(&message));
            reports.push(format!("{message:?}"));
        })
        .unwrap();
    assert!(!reports.concat().contains("secret"), "{reports:?}");
    #[cfg(feature = "serde")]
    assert_eq!(
        reports[0],
        r#"{"message":"request","transaction":0,"method":"GET","target":"/","version":"1.1","host":"a","credentials":"bearer"}"#
    );
    #[cfg(feature = "serde")]
    assert_eq!(
        reports[2],
        r#"{"message":"end","transaction":0,"body_len":0,"missing_len":0,"complete":true}"#
    );
}

#[test]
fn the_parser_state_is_small() {
    assert!(size_of::<http1::HttpParser>() <= 256, "{}", size_of::<http1::HttpParser>());
}

/// HTTP/1.x without a probe, because the input of a probe depends on the segmentation.
static BY_PORT: Protocol = Protocol::new("http").over_streams(&[80], None);

flowgauge::protocols! {
    /// HTTP/1.x without a probe.
    #[derive(Debug)]
    enum Unprobed;
    /// Messages of this parser.
    #[derive(Debug)]
    enum Report;
    parsers { Http: HttpParser = &BY_PORT }
}

/// Heads that `httparse` rejects are parsed line by line. An invalid head is rejected in the same way, whether it
/// arrives as a whole or octet by octet.
#[test]
fn invalid_header_sections_are_rejected_regardless_of_segmentation() {
    let long_method = format!("{} / HTTP/1.1\r\n\r\n", "M".repeat(33));
    let long_line = format!("GET {} x y\r\n\r\n", "a".repeat(HEAD_LEN_MAX));
    for request in [
        // Octets that are not allowed in a method, followed by the end of a request line.
        "\u{3}\u{8} x\0GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        // A folded first line.
        "GET /\r\n HTTP/1.1\r\n\r\n",
        "GET /\0\r\nHost: a\r\n\r\n",
        &long_method,
        &long_line,
    ] {
        let turns: [Turn<'_>; 1] = [(Client, request.as_bytes())];
        let describe_report =
            |meta: &MessageMeta, Report::Http(message): Report<'_>| describe(meta, Http::Http(message));
        let whole = observe::<Unprobed>(80, &turns, describe_report, || usize::MAX);
        for len in [1, 2, 7, 31, 1000] {
            assert_eq!(
                observe::<Unprobed>(80, &turns, describe_report, || len),
                whole,
                "{request:.40?} by {len}"
            );
        }
        // An invalid head is skipped, and a request that begins within it is reported.
        let expected: &[&str] = match request {
            "\u{3}\u{8} x\0GET / HTTP/1.1\r\nHost: a\r\n\r\n" => {
                &["0 request GET / 1.1 host=a", "0 client end 0-0"]
            }
            // The first part of a folded line is a request of HTTP/0.9, and the second part is invalid.
            "GET /\r\n HTTP/1.1\r\n\r\n" => &["0 request GET / 0.9", "0 client end 0-0"],
            _ => &[],
        };
        assert_eq!(whole.messages(), expected, "{request:.40?}");
    }
}

const PUT: &[u8] = b"PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
const CHUNKED: &[u8] =
    b"PUT /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-Continue\r\n\r\n";

/// After a refused expectation, a client may send the body or not (RFC 9110 section 10.1.1).
#[test]
fn a_refused_expectation_has_a_body_if_one_follows() {
    let refusal = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").into_bytes();
    let created = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
    let continuing = b"HTTP/1.1 100 Continue\r\n\r\n";
    for status in ["401 Unauthorized", "417 Expectation Failed", "307 Temporary Redirect"] {
        for first in [PUT, CHUNKED] {
            let refused = refusal(status);
            let again = [&b"\r\n"[..], PUT].concat();
            for second in [PUT, &again] {
                let turns = [
                    (Client, first),
                    (Server, &refused[..]),
                    (Client, second),
                    (Server, continuing),
                    (Client, b"some body"),
                    (Server, created),
                ];
                assert_eq!(
                    observed(&turns).messages(),
                    [
                        "0 request PUT /up 1.1 host=a",
                        &format!("0 response {status}"),
                        "0 server end 0-0",
                        "0 client end 0-0",
                        "1 request PUT /up 1.1 host=a",
                        "1 response 100 Continue",
                        "1 client body: some body",
                        "1 client end 9-0",
                        "1 response 201 Created",
                        "1 server end 0-0",
                    ]
                );
            }
        }
        // The body is sent nevertheless: octets that begin no request, or whose line does not end as one.
        for body in [&b"some body"[..], b"PUT /a b\n", b"GET /\x01abc", b"get / ab\n"] {
            let refused = refusal(status);
            let turns =
                [(Client, PUT), (Server, &refused[..]), (Client, body), (Client, b"GET /b HTTP/1.1\r\n\r\n")];
            let observed = observed(&turns);
            assert_eq!(
                observed.messages()[3..],
                [
                    &format!("0 client body: {}", body.escape_ascii()),
                    "0 client end 9-0",
                    "1 request GET /b 1.1",
                    "1 client end 0-0"
                ]
            );
        }
        // The connection ends, after no octets, or after some of which it is not known whether they begin a request.
        for (rest, expected) in [
            (&b""[..], &["0 client end 0-0"][..]),
            (b"GET /", &["0 client body: GET /", "0 client end 5-0 incomplete"]),
        ] {
            let refused = refusal(status);
            let turns = [(Client, PUT), (Server, &refused[..]), (Client, rest)];
            assert_eq!(observed(&turns).messages()[3..], *expected);
        }
    }
    let turns = [(Client, PUT), (Server, &refusal("401 No")[..]), (Client, PUT), (Client, b"some body")];
    check_truncations::<Set>(80, &turns, describe);
    check_corruptions::<Set>(80, &turns, describe);
}

/// Octets that look like a request are a body if the server accepted it, or if there was no expectation.
#[test]
fn a_body_that_looks_like_a_request_is_a_body_unless_it_was_refused() {
    let body = b"GET / HTTP/1.1\r\n\r\n";
    let fields = "Content-Length: 18\r\nExpect: 100-continue\r\n";
    for (fields, response) in [
        (fields, &b"HTTP/1.1 100 Continue\r\n\r\n"[..]),
        (fields, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        (fields, b""),
        ("Content-Length: 18\r\n", b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"),
    ] {
        let head = format!("PUT / HTTP/1.1\r\n{fields}\r\n");
        let turns = [(Client, head.as_bytes()), (Server, response), (Client, &body[..])];
        let observed = observed(&turns);
        assert!(observed.messages().contains(&"0 client end 18-0"), "{observed:?}");
        assert!(observed.messages().contains(&"0 client body: GET / HTTP/1.1\\r\\n\\r\\n"), "{observed:?}");
    }
}

/// A response to HEAD has the fields of one with a body. If the request was not captured, the next octets show which it is.
#[test]
fn a_response_to_an_unknown_request_has_no_body_if_another_response_follows() {
    for fields in ["Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", ""] {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let turns =
            [(Server, head.as_bytes()), (Server, b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno")];
        assert_eq!(
            observed(&turns).messages(),
            [
                "0 response 200 OK",
                "0 server end 0-0",
                "1 response 404 Not Found",
                "1 server body: no",
                "1 server end 2-0"
            ]
        );
    }
    for body in [&b"HTTP/"[..], b"HTTP/1.11", b"HTML"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let turns = [(Server, head.as_bytes()), (Server, body), (Server, b"HTTP/1.1 204 No\r\n\r\n")];
        assert_eq!(
            observed(&turns).messages()[1..3],
            [format!("0 server body: {}", body.escape_ascii()), format!("0 server end {}-0", body.len())]
        );
    }
    // The request is known.
    let turns = [
        (Client, &b"GET / HTTP/1.1\r\n\r\n"[..]),
        (Server, b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\nHTTP/1.1 200 OK\r\n"),
    ];
    assert!(observed(&turns).messages().contains(&"0 server end 17-0"));
}
