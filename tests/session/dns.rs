//! DNS, mDNS and LLMNR: dialogues based on the examples of RFC 1035, RFC 6762, RFC 6891, RFC 2136 and RFC 5936.

#[cfg(feature = "serde")]
use crate::message_json::as_json;
use flowgauge::base::{FlowKey, IpProtocol, Side, Timestamp};
use flowgauge::protocols::dns::{
    DnsMessage, DnsParser, EXCHANGE_COUNT_MAX, Item, LLMNR, LlmnrParser, MDNS, MdnsParser, Message, PROTOCOL,
};
use flowgauge::session::{
    DatagramOpening, Driver, FlowContext, MessageMeta, Payload, Receiver, Role, Session, StreamOpening,
    Verdict,
};

use crate::harness::{
    Description, Dialogue, check_corruptions, check_truncations, observe, observe_in_any_split,
    observe_with_gap,
};

use Role::{Client, Server};

flowgauge::protocols! {
    /// DNS, mDNS and LLMNR.
    #[derive(Debug)]
    enum Set;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Observed;
    parsers {
        Dns: DnsParser = &PROTOCOL,
        Mdns: MdnsParser = &MDNS,
        Llmnr: LlmnrParser = &LLMNR,
    }
}

fn describe(meta: &MessageMeta, message: Observed<'_>) -> Description {
    let (Observed::Dns(message) | Observed::Mdns(message) | Observed::Llmnr(message)) = message;
    Description::Whole(format!("{} {}", meta.from.name(), text(&message)))
}

/// Returns a message as one line, without times, because they depend on the segmentation of a stream.
fn text(message: &Message<'_>) -> String {
    match message {
        Message::Query(message) => format!("query {}", describe_message(message)),
        Message::Response(message) => format!("response {}", describe_message(message)),
        Message::Unanswered(query) => {
            format!(
                "unanswered {} #{} x{} {:?}",
                query.id, query.transaction, query.retransmission_count, query.reason
            )
        }
        Message::Unreadable(message) => format!("unreadable {} {}", message.len, message.reason.name()),
        _ => unreachable!("all kinds are known"),
    }
}

fn describe_message(message: &DnsMessage<'_>) -> String {
    let mut words = vec![message.header.id.to_string()];
    words.extend(message.transaction.map(|number| format!("#{number}")));
    if message.retransmission_count + message.earlier_response_count > 0 {
        words.push(format!("x{}", message.retransmission_count + message.earlier_response_count));
    }
    let mut walk = message.items();
    for item in walk.by_ref() {
        words.push(match item {
            Item::Question(question) => {
                let unicast = if question.unicast_response { " QU" } else { "" };
                format!("{}? {} {}{unicast}", question.name, question.class, question.record_type)
            }
            Item::Record(section, record) => {
                let flush = if record.is_cache_flush { " flush" } else { "" };
                let (class, kind) = (record.class, record.record_type);
                format!("{section:?} {} {class} {kind}{flush} {} {}", record.name, record.ttl, record.data)
            }
        });
    }
    words.extend(walk.parse_error().map(|stop| format!("({})", stop.name())));
    words.join(" | ")
}

/// Encodes a name without compression.
fn name(text: &str) -> Vec<u8> {
    let labels = text.split('.').filter(|label| !label.is_empty());
    let mut octets: Vec<_> =
        labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    octets.push(0);
    octets
}

/// Encodes a header with the counts of the four sections.
fn header(id: u16, flags: u16, counts: [u16; 4]) -> Vec<u8> {
    [id, flags].into_iter().chain(counts).flat_map(u16::to_be_bytes).collect()
}

fn question(of: &str, record_type: u16, class: u16) -> Vec<u8> {
    [name(of), record_type.to_be_bytes().into(), class.to_be_bytes().into()].concat()
}

/// Encodes a record with an encoded name.
fn record(of: &[u8], record_type: u16, class: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let fixed = [record_type.to_be_bytes(), class.to_be_bytes()].concat();
    let len = (data.len() as u16).to_be_bytes();
    [of, &fixed, &ttl.to_be_bytes(), &len, data].concat()
}

fn query(id: u16, of: &str, record_type: u16) -> Vec<u8> {
    [header(id, 0x0100, [1, 0, 0, 0]), question(of, record_type, 1)].concat()
}

/// Compression pointer to the name of the question.
const QUESTION_NAME: &[u8] = b"\xC0\x0C";

fn response(id: u16, of: &str, record_type: u16, data: &[u8]) -> Vec<u8> {
    let answer = record(QUESTION_NAME, record_type, 1, 300, data);
    [header(id, 0x8180, [1, 1, 0, 0]), question(of, record_type, 1), answer].concat()
}

/// Prefixes a message with its length, as over TCP.
fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

#[test]
fn responses_have_the_transaction_number_of_their_query() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 53, describe);
    dialogue.send_datagram(Client, &query(1, "example.com", 1));
    dialogue.send_datagram(Client, &query(2, "example.com", 28));
    dialogue.send_datagram(Client, &query(1, "example.com", 1));
    dialogue.send_datagram(Server, &response(2, "EXAMPLE.com", 28, &[0x20; 16]));
    dialogue.send_datagram(Server, &response(1, "example.com", 1, &[192, 0, 2, 1]));
    dialogue.send_datagram(Server, &header(2, 0x8181, [0; 4]));
    dialogue.send_datagram(Server, &response(1, "example.com", 1, &[192, 0, 2, 2]));
    dialogue.send_datagram(Server, &response(1, "example.org", 1, &[192, 0, 2, 3]));
    dialogue.send_datagram(Client, &query(1, "example.com", 1));
    dialogue.send_datagram(Client, b"\0\x01\0");
    assert_eq!(
        dialogue.finish().reports,
        [
            "[dns by content]",
            "client query 1 | #0 | example.com? IN A",
            "client query 2 | #1 | example.com? IN AAAA",
            "client query 1 | #0 | x1 | example.com? IN A",
            "server response 2 | #1 | EXAMPLE.com? IN AAAA | Answer EXAMPLE.com IN AAAA 300 2020:2020:2020:2020:2020:2020:2020:2020",
            "server response 1 | #0 | example.com? IN A | Answer example.com IN A 300 192.0.2.1",
            "server response 2 | #1 | x1",
            "server response 1 | #0 | x1 | example.com? IN A | Answer example.com IN A 300 192.0.2.2",
            "server response 1 | #2 | example.org? IN A | Answer example.org IN A 300 192.0.2.3",
            "client query 1 | #0 | x2 | example.com? IN A",
            "client unreadable 3 short",
        ]
    );
}

/// Collects the times of responses and of unanswered queries.
#[derive(Default)]
struct Times(Vec<String>);

impl Receiver<Set> for Times {
    fn message(&mut self, _: &MessageMeta, message: Observed<'_>) {
        let Observed::Dns(message) = message else { return };
        self.0.push(match message {
            Message::Response(response) => {
                format!("{:?}", response.response_time.map(|time| time.as_nanos()))
            }
            Message::Unanswered(query) => format!("{} after {}", query.id, query.waited.as_nanos()),
            _ => return,
        });
    }
}

#[test]
fn response_times_are_measured_from_the_query() {
    let end = |last| (std::net::IpAddr::from([10, 0, 0, last]), if last == 1 { 40_000 } else { 53 });
    let (key, side) = FlowKey::new(IpProtocol::UDP, end(1), end(2));
    let (mut driver, mut session) = (Driver::<Set>::default(), Session::default());
    let mut times = Times::default();
    let mut send_datagram = |nanoseconds, from: Role, message: &[u8]| {
        let context = FlowContext::new(&key, side, Timestamp::from_nanos(nanoseconds));
        let side: Side = if from == Client { side } else { side.other() };
        driver.datagram(
            &mut session,
            &context,
            side,
            Payload { bytes: message, len: message.len() },
            &mut times,
        );
    };
    send_datagram(1_000, Client, &query(1, "a", 1));
    send_datagram(1_500, Client, &query(2, "b", 1));
    send_datagram(3_000, Server, &response(1, "a", 1, &[1; 4]));
    send_datagram(2_000_000_000, Client, &query(2, "b", 1));
    send_datagram(12_000_000_001, Client, &query(3, "c", 1));
    assert_eq!(times.0, ["Some(2000)", "2 after 11999998501"]);
}

#[test]
fn memory_for_pending_queries_is_bounded() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 53, describe);
    for id in 0..3_000 {
        dialogue.send_datagram(Client, &query(id, "example.com", 1));
        assert!(dialogue.held_bytes() < 64 * EXCHANGE_COUNT_MAX as u64 + 4_096);
    }
    let observed = dialogue.finish();
    assert_eq!(observed.messages().iter().filter(|report| report.contains("unanswered")).count(), 3_000);
}

fn transfer() -> [Vec<u8>; 3] {
    let soa = [name("ns"), name("who"), [0_u8, 0, 0, 7].repeat(5)].concat();
    let first = [
        header(9, 0x8400, [1, 2, 0, 0]),
        question("zone", 252, 1),
        record(QUESTION_NAME, 6, 1, 60, &soa),
        record(b"\x01a\xC0\x0C", 1, 1, 60, &[192, 0, 2, 1]),
    ];
    let second = [header(9, 0x8400, [0, 1, 0, 0]), record(&name("zone"), 6, 1, 60, &soa)];
    [query(9, "zone", 252), first.concat(), second.concat()].map(|message| framed(&message))
}

#[test]
fn pipelined_queries_are_paired_out_of_order_in_any_segmentation() {
    let [axfr, first, second] = transfer();
    let requested = [framed(&query(1, "one", 16)), framed(&query(2, "two", 15)), axfr].concat();
    let txt = framed(&response(1, "one", 16, b"\x05hello\x00"));
    let mx = framed(&response(2, "two", 15, b"\x00\x0A\x04mail\xC0\x0C"));
    let turns: [(Role, &[u8]); 5] =
        [(Client, &requested), (Server, &mx), (Server, &first), (Server, &txt), (Server, &second)];
    let observed = observe_in_any_split::<Set>(53, &turns, describe);
    let soa = "ns who 7 7 7 7 7";
    assert_eq!(
        observed.reports,
        [
            "[dns by content]".to_owned(),
            "client query 1 | #0 | one? IN TXT".to_owned(),
            "client query 2 | #1 | two? IN MX".to_owned(),
            "client query 9 | #2 | zone? IN AXFR".to_owned(),
            "server response 2 | #1 | two? IN MX | Answer two IN MX 300 10 mail.two".to_owned(),
            format!(
                "server response 9 | #2 | zone? IN AXFR | Answer zone IN SOA 60 {soa} | Answer a.zone IN A 60 192.0.2.1"
            ),
            "server response 1 | #0 | one? IN TXT | Answer one IN TXT 300 \"hello\" \"\"".to_owned(),
            format!("server response 9 | #2 | x1 | Answer zone IN SOA 60 {soa}"),
        ]
    );
    check_truncations::<Set>(53, &turns, describe);
    check_corruptions::<Set>(53, &turns, describe);
}

#[test]
fn a_stream_message_of_maximum_length_is_parsed() {
    let mut long = response(1, "a", 16, &[0; 65_535 - 12 - 7 - 12]);
    assert_eq!(long.len(), 65_535);
    long[1] = 2;
    let stream = [framed(&query(2, "a", 16)), framed(&long)];
    let observed = observe::<Set>(53, &[(Client, &stream[0]), (Server, &stream[1])], describe, || 1_400);
    assert!(
        observed.messages()[1]
            .starts_with("server response 2 | #0 | a? IN TXT | Answer a IN TXT 300 \"\" \"\"")
    );
}

#[test]
fn a_gap_within_a_message_affects_only_that_message() {
    let one = framed(&query(1, "first.example", 1));
    let requested = [one.clone(), framed(&query(2, "second.example", 1))].concat();
    // After the header and "first".
    let observed = observe_with_gap::<Set>(53, &[(Client, &requested)], describe, (0, 20, one.len() - 20));
    assert_eq!(
        observed.reports,
        [
            "[dns by content]",
            "client query 1 | (truncated)",
            "client query 2 | #0 | second.example? IN A",
            "server unanswered 2 #0 x0 EndOfFlow"
        ]
    );
    let observed = observe_with_gap::<Set>(53, &[(Client, &requested)], describe, (0, 20, one.len() - 18));
    assert_eq!(observed.reports, ["[dns by content]", "client query 1 | (truncated)", "[dns stopped: gap]"]);
    let observed = observe_with_gap::<Set>(53, &[(Client, &requested)], describe, (0, 20, 2));
    assert_eq!(observed.messages()[1], "client query 2 | #0 | second.example? IN A");
}

#[test]
fn stream_content_that_is_not_dns_stops_the_parser() {
    let turns: [&[u8]; 2] = [b"\x00\x0Bhello world", &framed(&header(1, 0, [0, 0, 9, 0]))];
    for turn in turns {
        let first = framed(&query(1, "a", 1));
        let observed = observe_in_any_split::<Set>(53, &[(Client, &first), (Client, turn)], describe);
        assert!(
            observed.reports.iter().any(|report| report.starts_with("[dns stopped")),
            "{:?}",
            observed.reports
        );
    }
}

#[test]
fn a_message_with_bad_compression_pointers_is_reported_and_parsing_continues() {
    let mut bomb = response(1, "a", 5, b"\xC0\x1F");
    bomb[7] = 2;
    bomb.extend(record(b"\xC0\x2D", 1, 1, 1, &[1; 4]));
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 53, describe);
    dialogue.send_datagram(Server, &bomb);
    dialogue.send_datagram(Server, &response(1, "a", 1, &[1; 4]));
    assert_eq!(
        dialogue.finish().reports,
        [
            "[dns by content]",
            "server response 1 | #0 | a? IN CNAME | Answer a IN CNAME 300 \\# 2 c01f | (bad_pointer)",
            "server response 1 | #1 | a? IN A | Answer a IN A 300 1.1.1.1"
        ]
    );
}

#[test]
fn a_message_truncated_by_the_snap_length_is_parsed_partially() {
    let whole = response(1, "example.com", 1, &[192, 0, 2, 1]);
    for len in 12..=whole.len() {
        let message = DnsMessage::read(&whole[..len], whole.len(), flowgauge::protocols::dns::Variant::Dns);
        let message = message.expect("a header");
        let stop = message.parse_error().map(|stop| stop.name());
        assert_eq!(stop, (len < whole.len()).then_some("truncated"), "{len}");
        assert_eq!(message.questions().count(), usize::from(len >= 29), "{len}");
        assert_eq!(message.answers().count(), usize::from(len == whole.len()));
    }
}

#[test]
fn dynamic_updates_may_have_records_without_data() {
    let update = [
        header(7, 0x2800, [1, 1, 2, 0]),
        question("zone", 6, 1),
        record(b"\x01a\xC0\x0C", 255, 254, 0, b""),
        record(b"\x01b\xC0\x0C", 1, 255, 0, b""),
        record(b"\x01b\xC0\x0C", 1, 1, 60, &[192, 0, 2, 9]),
    ];
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 53, describe);
    dialogue.send_datagram(Client, &update.concat());
    dialogue.send_datagram(Server, &header(7, 0xA800, [0; 4]));
    assert_eq!(
        dialogue.finish().reports,
        [
            "[dns by content]",
            "client query 7 | #0 | zone? IN SOA | Answer a.zone NONE ANY 0 \\# 0 | Authority b.zone ANY A 0 \\# 0 | \
             Authority b.zone IN A 60 192.0.2.9",
            "server response 7 | #0",
        ]
    );
}

#[test]
fn multicast_dns_uses_the_top_class_bit_and_has_no_transactions() {
    let requested = [
        header(0, 0, [2, 1, 0, 0]),
        question("_ipp._tcp.local", 12, 0x8001),
        question("host.local", 28, 1),
        record(QUESTION_NAME, 12, 1, 4_500, b"\x07Printer\xC0\x0C"),
    ];
    let reports =
        [header(0, 0x8400, [0, 1, 0, 0]), record(&name("host.local"), 1, 0x8001, 120, &[10, 0, 0, 1])];
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 5353, describe);
    dialogue.send_datagram(Client, &reports.concat());
    dialogue.send_datagram(Client, &requested.concat());
    assert_eq!(
        dialogue.finish().reports,
        [
            "[mdns by content]",
            "client response 0 | Answer host.local IN A flush 120 10.0.0.1",
            "client query 0 | _ipp._tcp.local? IN PTR QU | host.local? IN AAAA | \
             Answer _ipp._tcp.local IN PTR 4500 Printer._ipp._tcp.local",
        ]
    );
}

#[test]
fn unanswered_llmnr_queries_are_not_reported() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 5355, describe);
    let requested = [header(5, 0, [1, 0, 0, 0]), question("wpad", 1, 1)].concat();
    dialogue.send_datagram(Client, &requested);
    dialogue.send_datagram(Client, &requested);
    assert_eq!(
        dialogue.finish().reports,
        ["[llmnr by content]", "client query 5 | #0 | wpad? IN A", "client query 5 | #0 | x1 | wpad? IN A"]
    );
}

#[test]
fn datagram_probes_distinguish_dns_from_similar_protocols() {
    let verdict =
        |port, message: &[u8]| PROTOCOL.probe_datagram(&DatagramOpening::first(message, 40_000, port));
    let requested = query(1, "example.com", 1);
    assert_eq!(verdict(53, &requested), Verdict::Match);
    assert_eq!(verdict(40_053, &requested), Verdict::Match);
    assert_eq!(verdict(137, &requested), Verdict::No, "the NetBIOS name service has the same header format");
    assert_eq!(verdict(5353, &requested), Verdict::No, "that is mDNS");
    let answered = response(1, "example.com", 1, &[1; 4]);
    assert_eq!(verdict(53, &answered), Verdict::MatchReversed);
    assert_eq!(verdict(9, &answered), Verdict::MatchReversed);
    let mut opening = DatagramOpening::first(&answered, 9, 40_000);
    opening.from = Server;
    assert_eq!(PROTOCOL.probe_datagram(&opening), Verdict::Match);
    // On other ports, only well-formed messages match.
    for len in 0..requested.len() {
        assert_eq!(verdict(9, &requested[..len]), Verdict::No, "{len}");
    }
    assert_eq!(verdict(9, &[&requested[..], b"x"].concat()), Verdict::No);
    assert_eq!(verdict(53, &[&requested[..], b"x"].concat()), Verdict::Match);
    assert_eq!(verdict(9, &query(1, "exam ple", 1)), Verdict::No);
    assert_eq!(verdict(9, &query(1, "example", 54)), Verdict::No, "a type that nobody registered");
    assert_eq!(verdict(53, &query(1, "example", 65_399)), Verdict::Match);
    assert_eq!(verdict(9, &query(1, "CKAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 33)), Verdict::No, "NBSTAT");
    // A STUN binding request, an NTP request, a DTLS record.
    assert_eq!(verdict(53, b"\0\x01\0\0\x21\x12\xA4\x42abcdefghijkl"), Verdict::No);
    assert_eq!(verdict(53, &[&[0xE3][..], &[0; 47]].concat()), Verdict::No);
    assert_eq!(verdict(53, b"\x16\xFE\xFF\0\0\0\0\0\0\0\0\0\x20\x01\0\0\x14"), Verdict::No);
}

#[test]
fn stream_probes_need_a_whole_message_on_other_ports() {
    let verdict = |port, client: &[u8], server: &[u8]| {
        PROTOCOL.probe_stream(&StreamOpening::new(client, server, 40_000, port))
    };
    let requested = framed(&query(1, "example.com", 1));
    let answered = framed(&response(1, "example.com", 1, &[1; 4]));
    for len in 0..requested.len() {
        assert_eq!(verdict(9, &requested[..len], b""), Verdict::More, "{len}");
    }
    assert_eq!(verdict(9, &requested, b""), Verdict::Match);
    assert_eq!(verdict(9, &[&requested[..], &requested].concat(), b""), Verdict::Match);
    assert_eq!(verdict(9, b"", &answered), Verdict::Match);
    assert_eq!(verdict(9, &answered, b""), Verdict::MatchReversed);
    assert_eq!(verdict(53, b"", &requested), Verdict::MatchReversed);
    for other in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], b"SSH-2.0-x\r\n", b"\x16\x03\x01\x02\0\x01", b"\0\0\0\x85\xFFSMB"]
    {
        assert_eq!(verdict(9, other, b""), Verdict::No);
    }
    assert_eq!(verdict(5355, &requested, b""), Verdict::No);
    let llmnr = |requested: &[u8]| LLMNR.probe_stream(&StreamOpening::new(requested, b"", 40_000, 5355));
    assert_eq!(llmnr(&requested), Verdict::Match);
    let reserved = [header(1, 0x0010, [1, 0, 0, 0]), question("a", 1, 1)].concat();
    assert_eq!(llmnr(&framed(&reserved)), Verdict::No);
}

#[cfg(feature = "serde")]
#[test]
fn the_serialized_length_of_a_message_is_bounded() {
    // A record with a long name, and others that point to it; their data points to it twice.
    let labels = [[b'n'; 63], [1; 63], [b'n'; 63]].map(|label| [&[63][..], &label].concat());
    let long = [&labels.concat()[..], &[0]].concat();
    let question = question("a.example", 1, 1);
    let position = (0xC000 | (12 + question.len()) as u16).to_be_bytes();
    let first = record(&long, 1, 1, 300, &[192, 0, 2, 1]);
    let answer = |count: usize| {
        let answers = record(&position, 14, 1, 300, &[position, position].concat()).repeat(count);
        let counts = [1, 1 + count as u16, 0, 0];
        [header(7, 0x8180, counts), question.clone(), first.clone(), answers].concat()
    };
    let written = |bytes: &[u8]| -> serde_json::Value {
        let message =
            DnsMessage::read(bytes, bytes.len(), flowgauge::protocols::dns::Variant::Dns).expect("a header");
        let text = as_json(&flowgauge::protocols::dns::Message::Response(message));
        // The limit for texts is 1 KiB plus eight times the length of the message; in addition, backslashes are
        // doubled, and each record has its keys.
        assert!(text.len() < 10 * (1024 + 8 * bytes.len()) / 8 + 70 * (bytes.len() / 16), "{}", text.len());
        serde_json::from_str(&text).expect("an object")
    };
    let whole = written(&answer(1));
    assert_eq!(whole["answers"].as_array().map(Vec::len), Some(2));
    assert!(whole.get("truncated").is_none() && whole.get("left_out_count").is_none());
    let bytes = answer(90);
    let truncated = written(&bytes);
    let listed = truncated["answers"].as_array().map_or(0, Vec::len);
    assert_eq!(
        (&truncated["truncated"], &truncated["left_out_count"]),
        (&true.into(), &(91 - listed).into())
    );
    assert!((8..30).contains(&listed), "{listed}");
    // The parsed message itself contains all records.
    let message =
        DnsMessage::read(&bytes, bytes.len(), flowgauge::protocols::dns::Variant::Dns).expect("a header");
    assert_eq!((message.records().count(), message.parse_error()), (91, None));
    // A single record with many types is truncated as well.
    let windows: Vec<u8> = (0..200).flat_map(|window| [&[window, 32][..], &[0xFF; 32]].concat()).collect();
    let types = record(&[0xC0, 12], 47, 1, 300, &[&[0][..], &windows].concat());
    let truncated = written(&[header(7, 0x8180, [1, 1, 0, 0]), question.clone(), types].concat());
    assert_eq!((&truncated["truncated"], &truncated["left_out_count"]), (&true.into(), &0.into()));
}

#[cfg(feature = "serde")]
#[test]
fn a_message_serializes_as_one_object() {
    let options =
        [&b"\0\x0A\0\x08"[..], &[0xAB; 8], b"\0\x08\0\x07\0\x01\x18\0\xC0\0\x02", b"\0\x0F\0\x04\0\x12no"];
    let opt = record(b"\0", 41, 1232, 0x0100_8000, &options.concat());
    let answer = record(QUESTION_NAME, 65, 1, 300, b"\0\x01\0\0\x01\0\x06\x02h3\x02h2");
    let bytes = [header(0x1234, 0x81B0, [1, 1, 0, 1]), question("a.example", 65, 1), answer, opt].concat();
    fn object(_: &MessageMeta, message: Observed<'_>) -> Description {
        let Observed::Dns(message) = message else { unreachable!("only DNS") };
        Description::Whole(as_json(&message))
    }
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 53, object);
    dialogue.send_datagram(Client, &query(0x1234, "a.example", 65));
    dialogue.send_datagram(Server, &bytes);
    dialogue.send_datagram(Client, &query(2, "a.example", 65));
    assert_eq!(
        dialogue.finish().messages(),
        [
            r#"{"message":"query","id":4660,"opcode":"Query","flags":["rd"],"questions":[{"name":"a.example","type":"HTTPS","class":"IN"}],"transaction":0,"len":27}"#,
            r#"{"message":"response","id":4660,"opcode":"Query","flags":["rd","ra","ad","cd"],"rcode":"BADVERS","questions":[{"name":"a.example","type":"HTTPS","class":"IN"}],"answers":[{"name":"a.example","type":"HTTPS","class":"IN","ttl":300,"data":"1 . alpn=\"h3,h2\""}],"edns":{"version":0,"udp_payload_len":1232,"dnssec_ok":true,"options":[{"name":"COOKIE","data":"abababababababab"},{"name":"edns-client-subnet","data":"192.0.2.0/24/0"},{"name":"Extended DNS Error","data":"18 \"no\""}]},"transaction":0,"response_time":1000000,"len":94}"#,
            r#"{"message":"query","id":2,"opcode":"Query","flags":["rd"],"questions":[{"name":"a.example","type":"HTTPS","class":"IN"}],"transaction":1,"len":27}"#,
            r#"{"message":"unanswered","transaction":1,"id":2,"querier":"client","waited":1000000,"reason":"end_of_flow"}"#,
        ]
    );
}
