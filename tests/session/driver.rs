//! Contract of the driver, tested with simple parsers.

use flowgauge::base::{FlowKey, IpProtocol, Limits, Resources, Timestamp};
use flowgauge::reassembler::Chunk;
use flowgauge::session::{
    AfterGap, Datagram, DatagramOpening, Driver, DriverConfig, End, Entry, Fault, FlowContext, Input,
    MessageMeta, Missing, Out, PROBE_LEN_MAX, Parser, Progress, Protocol, Protocols as _,
    RESUME_DATAGRAM_COUNT_MAX, Receiver, Role, Session, SessionEvent, StreamOpening, Verdict,
};

use crate::harness::{Description, Dialogue, observe, observe_in_any_split, observe_with_gap};

use Role::{Client, Server};

/// Parser of messages with a length prefix of two octets. The message `!` is a fault, `T` switches to lines, `?`
/// switches to any protocol that the probes recognize, `.` ends the direction, and `M` allocates memory.
#[derive(Debug, Default)]
struct LengthPrefixed {
    memory: Vec<u8>,
}

impl Parser for LengthPrefixed {
    type Message<'m> = &'m [u8];

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let mut taken = 0;
        while let Some((len, rest)) = input.bytes[taken..].split_first_chunk() {
            let len = usize::from(u16::from_be_bytes(*len));
            let Some(message) = rest.get(..len) else { return Ok(Progress::Needs { taken, need: len + 2 }) };
            taken += len + 2;
            out(message);
            match message {
                b"!" => return Err(Fault::new("refused")),
                b"T" => return Ok(Progress::Handover { taken, next: Some(&LINES) }),
                b"?" => return Ok(Progress::Handover { taken, next: None }),
                b"." => return Ok(Progress::Done),
                b"M" => self.memory = Vec::with_capacity(1000),
                _ => {}
            }
        }
        Ok(Progress::Took(taken))
    }

    fn gap(&mut self, missing: &Missing<'_>, out: Out<'_, Self>) -> AfterGap {
        out(format!("gap of {} at {}, rest {}", missing.len, missing.offset, missing.rest.len()).as_bytes());
        if missing.len == 4 { AfterGap::Resume } else { AfterGap::Stop }
    }

    fn end(&mut self, end: &End<'_>, out: Out<'_, Self>) {
        out(format!("end of {} at {}, rest {}", end.from.name(), end.offset, end.rest.len()).as_bytes());
    }

    fn heap_len(&self) -> usize {
        self.memory.capacity()
    }
}

#[derive(Debug, Default)]
struct Lines;

impl Parser for Lines {
    type Message<'m> = &'m [u8];

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let mut taken = 0;
        for line in input.bytes.split_inclusive(|octet| *octet == b'\n').filter(|line| line.ends_with(b"\n"))
        {
            taken += line.len();
            out(line.trim_ascii_end());
        }
        Ok(Progress::Took(taken))
    }

    fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        out(datagram.bytes);
        Ok(Progress::Took(0))
    }
}

static LENGTH_PREFIXED: Protocol =
    Protocol::new("length_prefixed").over_streams(&[7000], Some(probe_length_prefixed));
static LINES: Protocol =
    Protocol::new("lines").over_streams(&[7001], Some(probe_lines)).over_datagrams(&[7001], Some(probe_pair));
static NAMED: Protocol = Protocol::new("named")
    .over_streams(&[7002], Some(probe_named))
    .over_datagrams(&[], Some(|opening| Verdict::of(opening.bytes == b"#N")));
static PORT_ONLY: Protocol = Protocol::new("port_only").over_streams(&[7003], None);

/// Matches if the first message is `lp`.
fn probe_length_prefixed(opening: &StreamOpening<'_>) -> Verdict {
    begins(opening.client, b"\x00\x02lp")
}

/// Matches if the server greets and the client answers; one greeting alone is not enough.
fn probe_lines(opening: &StreamOpening<'_>) -> Verdict {
    match (begins(opening.server, b"hello"), begins(opening.client, b"hello")) {
        (Verdict::Match, Verdict::Match) => Verdict::Match,
        (Verdict::No, _) | (_, Verdict::No) => Verdict::No,
        _ => Verdict::More,
    }
}

fn probe_named(opening: &StreamOpening<'_>) -> Verdict {
    match (begins(opening.client, b"NAMED"), begins(opening.server, b"NAMED")) {
        (Verdict::Match, _) => Verdict::Match,
        (_, Verdict::Match) => Verdict::MatchReversed,
        (Verdict::No, Verdict::More) | (Verdict::More, Verdict::No) | (Verdict::No, Verdict::No) => {
            Verdict::No
        }
        _ => Verdict::More,
    }
}

/// Matches two datagrams of one side if the number in the second one is the next.
fn probe_pair(opening: &DatagramOpening<'_>) -> Verdict {
    match (opening.previous, opening.bytes) {
        ([], [b'#', _]) => Verdict::More,
        ([b'#', first], [b'#', second]) => Verdict::of(*second == first + 1),
        _ => Verdict::No,
    }
}

fn begins(bytes: &[u8], with: &[u8]) -> Verdict {
    let len = bytes.len().min(with.len());
    match bytes[..len] == with[..len] {
        false => Verdict::No,
        true if len == with.len() => Verdict::Match,
        true => Verdict::More,
    }
}

flowgauge::protocols! {
    /// The parsers above.
    #[derive(Debug)]
    enum Set;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Message;
    parsers {
        LengthPrefixed: LengthPrefixed = &LENGTH_PREFIXED,
        Lines: Lines = &LINES,
    }
    recognized { &NAMED, &PORT_ONLY }
}

fn describe(meta: &MessageMeta, message: Message<'_>) -> Description {
    let (Message::LengthPrefixed(bytes) | Message::Lines(bytes)) = message;
    Description::Whole(format!("{} {}: {}", meta.protocol, meta.from.name(), bytes.escape_ascii()))
}

const DIALOGUE: [(Role, &[u8]); 4] = [
    (Client, b"\x00\x02lp\x00\x05hello\x00\x00"),
    (Server, b"\x00\x06 there"),
    (Client, b"\x00\x01x"),
    (Server, b"\x00\x09unfin"),
];

#[test]
fn messages_do_not_depend_on_segmentation() {
    let observed = observe_in_any_split::<Set>(7000, &DIALOGUE, describe);
    assert_eq!(observed.application, Some(("length_prefixed", "content")));
    assert_eq!(
        observed.reports,
        [
            "[length_prefixed by content]",
            "length_prefixed client: lp",
            "length_prefixed client: hello",
            "length_prefixed client: ",
            "length_prefixed server:  there",
            "length_prefixed client: x",
            "length_prefixed client: end of client at 16, rest 0",
            "length_prefixed server: end of server at 8, rest 7",
        ]
    );
}

#[test]
fn a_greeting_is_buffered_until_the_answer_identifies_the_protocol() {
    let turns: [(Role, &[u8]); 3] =
        [(Server, b"hello you\n"), (Client, b"hello too\nand"), (Client, b" more\n")];
    let observed = observe_in_any_split::<Set>(9, &turns, describe);
    assert_eq!(
        observed.reports,
        [
            "[lines by content]",
            "lines server: hello you",
            "lines client: hello too",
            "lines client: and more",
        ]
    );
}

fn describe_with_time(meta: &MessageMeta, message: Message<'_>) -> Description {
    let Description::Whole(text) = describe(meta, message) else {
        panic!("each message is described as a whole")
    };
    Description::Whole(format!("{text} @{}", meta.timestamp.as_nanos() / 1_000_000))
}

/// Each turn is one millisecond later than the previous one; the first one is at 1 ms.
#[test]
fn buffered_octets_are_parsed_in_order_with_their_timestamps() {
    let reported = |port: u16, turns: &[(Role, &[u8])]| {
        let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, port, describe_with_time);
        turns.iter().for_each(|(from, bytes)| dialogue.send_octets(*from, bytes));
        dialogue.finish().reports
    };
    // The probes buffer octets until both sides have greeted.
    assert_eq!(
        reported(9, &[(Client, b"he"), (Server, b"hello a\nb"), (Server, b"c\n"), (Client, b"llo d\n")]),
        ["[lines by content]", "lines server: hello a @2", "lines server: bc @3", "lines client: hello d @4"]
    );
    // A parser may switch the protocol when it processes the octets of the other direction.
    let turns: [(Role, &[u8]); 4] =
        [(Client, b"\x00\x02lp"), (Server, b"early\nand "), (Client, b"\x00\x01T"), (Server, b"late\n")];
    assert_eq!(
        reported(7000, &turns),
        [
            "[length_prefixed by content]",
            "length_prefixed client: lp @1",
            "length_prefixed client: T @3",
            "[lines by content]",
            "lines server: early @2",
            "lines server: and late @4",
        ]
    );
}

#[test]
fn a_protocol_without_a_parser_is_named_and_uses_no_memory() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 9, describe);
    dialogue.send_octets(Client, b"NAMED and more");
    assert_eq!(dialogue.held_bytes(), 0);
    let observed = dialogue.finish();
    assert_eq!(
        (observed.reports, observed.application),
        (vec!["[named by content]".to_owned()], Some(("named", "content")))
    );
}

#[test]
fn the_port_decides_when_the_content_does_not() {
    // No octets were sent.
    let observed = observe::<Set>(7000, &[], describe, || 1);
    assert_eq!(observed.application, Some(("length_prefixed", "port")));
    // The content contradicts the protocol of the port.
    let observed = observe::<Set>(7000, &[(Client, b"GET /")], describe, || 100);
    assert_eq!((observed.application, observed.reports.len()), (None, 0));
    // The protocol has no probe.
    let observed = observe::<Set>(7003, &[(Client, b"GET /")], describe, || 100);
    assert_eq!(observed.application, Some(("port_only", "port")));
    // The content is too short to decide: the parser of the port receives it.
    let observed = observe::<Set>(7000, &[(Client, b"\x00\x02l")], describe, || 1);
    assert_eq!(
        observed.reports,
        [
            "[length_prefixed by port]",
            "length_prefixed client: end of client at 0, rest 3",
            "length_prefixed server: end of server at 0, rest 0"
        ]
    );
}

#[test]
fn the_recognition_window_is_limited() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 9, describe);
    dialogue.send_octets(Server, b"hello");
    for _ in 0..PROBE_LEN_MAX / 500 {
        dialogue.send_octets(Server, &[b'a'; 500]);
    }
    assert!(dialogue.held_bytes() > 0, "the greeting is buffered until its answer");
    dialogue.send_octets(Server, &[b'a'; 500]);
    assert_eq!(dialogue.held_bytes(), 0);
    dialogue.send_octets(Client, b"hello\n");
    assert_eq!(dialogue.finish().application, None);
}

#[test]
fn roles_are_exchanged_when_the_content_shows_it() {
    let observed = observe::<Set>(9, &[(Server, b"NAMED")], describe, || 2);
    assert_eq!(observed.application, Some(("named", "content")));
}

#[test]
fn a_parser_that_returns_a_fault_is_dropped_once() {
    let turns: [(Role, &[u8]); 3] =
        [(Client, b"\x00\x02lp"), (Server, b"\x00\x01!\x00\x01x"), (Client, b"\x00\x01y")];
    let observed = observe_in_any_split::<Set>(7000, &turns, describe);
    assert_eq!(
        observed.reports,
        [
            "[length_prefixed by content]",
            "length_prefixed client: lp",
            "length_prefixed server: !",
            "[length_prefixed stopped: refused]"
        ]
    );
}

#[test]
fn a_message_beyond_the_limit_is_rejected_before_it_is_buffered() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 7000, describe);
    dialogue.send_octets(Client, b"\x00\x02lp");
    dialogue.send_octets(Client, b"\xFF\xFFand so on");
    assert_eq!(dialogue.held_bytes(), 0);
    assert!(dialogue.finish().reports.contains(&"[length_prefixed stopped: too_long]".to_owned()));
}

/// Set with a protocol of messages that are longer than the limit of all protocols.
mod with_long_messages {
    use super::*;

    static PATIENT: Protocol = Protocol::new("patient")
        .over_streams(&[7000], Some(probe_length_prefixed))
        .with_message_len_max(3 << 10);

    flowgauge::protocols! {
        #[derive(Debug)]
        pub(super) enum Patient;
        #[derive(Debug)]
        pub(super) enum Received;
        parsers { LengthPrefixed: LengthPrefixed = &PATIENT }
    }

    #[test]
    fn a_protocol_may_have_longer_messages_than_the_limit() {
        let mut resources = Resources::default();
        resources.limits.session_side_bytes_max = 1 << 10;
        let key = FlowKey::tcp(([10, 0, 0, 1], 4000).into(), ([10, 0, 0, 2], 7000).into());
        for (len, fault) in [(1000, None), (3070, None), (3071, Some("too_long")), (9000, Some("too_long"))] {
            let mut driver = Driver::<Patient>::new(DriverConfig::default(), &resources);
            let (mut session, mut received) = (Session::default(), Lengths::default());
            let context = FlowContext::new(&key.0, key.1, Timestamp::ZERO);
            let stream = [b"\x00\x02lp", &(len as u16).to_be_bytes()[..], &vec![b'x'; len]].concat();
            for (number, octets) in stream.chunks(100).enumerate() {
                let chunk = Chunk::new(number as u64 * 100, octets);
                if driver.chunk(&mut session, &context, key.1, &chunk, &mut received).is_break() {
                    break;
                }
            }
            let expected = if fault.is_none() { vec![2, len] } else { vec![2] };
            assert_eq!((received.0, received.1), (expected, fault), "{len}");
            let stats = driver.stats();
            let faults: Vec<_> = stats.faults.iter().collect();
            assert_eq!(faults, fault.map(|fault| ("patient", fault, 1)).into_iter().collect::<Vec<_>>());
            assert_eq!(stats.stopped_count, faults.len() as u64);
        }
    }

    /// Lengths of messages, and the fault.
    #[derive(Default)]
    struct Lengths(Vec<usize>, Option<&'static str>);

    impl Receiver<Patient> for Lengths {
        fn message(&mut self, _: &MessageMeta, Received::LengthPrefixed(octets): Received<'_>) {
            self.0.push(octets.len());
        }

        fn event(&mut self, event: &SessionEvent) {
            if let SessionEvent::Stopped { fault, .. } = event {
                self.1 = Some(fault.reason());
            }
        }
    }
}

/// Set that extends the one above, with a parser of its own for one protocol of it.
mod extended {
    use super::*;

    #[derive(Debug, Default)]
    struct Named;

    impl Parser for Named {
        type Message<'m> = usize;

        fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
            out(input.bytes.len());
            Ok(Progress::Took(input.bytes.len()))
        }

        fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
            out(datagram.bytes.len());
            Ok(Progress::Took(0))
        }

        fn is_content(len: &usize) -> bool {
            *len > 5
        }
    }

    flowgauge::protocols! {
        #[derive(Debug)]
        enum Extended;
        #[derive(Debug)]
        enum Received;
        extends Set;
        parsers { Named: Named = &NAMED }
    }

    fn describe_received(meta: &MessageMeta, message: Received<'_>) -> Description {
        match message {
            Received::Set(message) => describe(meta, message),
            Received::Named(len) => Description::Whole(format!("{len}")),
        }
    }

    #[test]
    fn the_table_contains_that_of_the_other_set() {
        let names = |table: &[Entry]| table.iter().map(|entry| entry.protocol.name()).collect::<Vec<_>>();
        assert_eq!(names(Extended::TABLE)[..1], ["named"]);
        assert_eq!(names(&Extended::TABLE[1..]), names(Set::TABLE));
        for (entry, in_set) in Extended::TABLE[1..].iter().zip(Set::TABLE) {
            assert_eq!(entry.has_parser, in_set.has_parser);
        }
        assert!(matches!(Extended::start(0), Extended::Named(_)));
        assert!(matches!(Extended::start(1), Extended::Set(Set::LengthPrefixed(_))));
        assert!(matches!(Extended::start(2), Extended::Set(Set::Lines(_))));
    }

    #[test]
    fn parsers_of_the_other_set_report_the_same() {
        for (port, turns) in [
            (7000, DIALOGUE.to_vec()),
            (7000, vec![(Client, &b"\x00\x02lp\x00\x02aa"[..]), (Server, b"\x00\x01Tfrom here\nlines")]),
            (7001, vec![(Server, b"hello\n"), (Client, b"hello\n")]),
        ] {
            let own = observe_in_any_split::<Set>(port, &turns, describe);
            let extended = observe_in_any_split::<Extended>(port, &turns, describe_received);
            assert!(own.messages().len() > 1);
            assert_eq!(extended.reports, own.reports);
            assert_eq!(extended.application, own.application);
        }
    }

    #[test]
    fn an_own_parser_takes_the_place_of_a_protocol_of_the_other_set() {
        let observed =
            observe::<Extended>(7002, &[(Client, b"NAMED and more")], describe_received, || usize::MAX);
        assert_eq!(observed.messages(), ["14"]);
        let messages = [Received::Named(5), Received::Named(6), Received::Set(Message::Lines(b"line"))];
        assert_eq!(messages.each_ref().map(|message| message.is_content()), [false, true, false]);
        assert_eq!(messages.each_ref().map(|message| message.extended().is_some()), [false, false, true]);
    }
}

#[test]
fn the_parser_decides_whether_it_continues_after_a_gap() {
    let turns: [(Role, &[u8]); 2] = [(Client, b"\x00\x02lp\x00\x02ab\x00\x01c"), (Server, b"\x00\x01d")];
    let observed = observe_with_gap::<Set>(7000, &turns, describe, (0, 4, 4));
    assert_eq!(
        observed.messages(),
        [
            "length_prefixed client: lp",
            "length_prefixed client: gap of 4 at 4, rest 0",
            "length_prefixed client: c",
            "length_prefixed server: d",
            "length_prefixed client: end of client at 11, rest 0",
            "length_prefixed server: end of server at 3, rest 0"
        ]
    );
    let observed = observe_with_gap::<Set>(7000, &turns, describe, (0, 5, 3));
    assert_eq!(
        observed.reports,
        [
            "[length_prefixed by content]",
            "length_prefixed client: lp",
            "length_prefixed client: gap of 3 at 5, rest 1",
            "[length_prefixed stopped: gap]"
        ]
    );
}

#[test]
fn a_handover_passes_the_unconsumed_octets_of_both_directions() {
    let turns: [(Role, &[u8]); 4] = [
        (Client, b"\x00\x02lp\x00\x02aa"),
        (Server, b"\x00\x01Tfrom here\nlines"),
        (Client, b"of both\n"),
        (Server, b" too\n"),
    ];
    let observed = observe_in_any_split::<Set>(7000, &turns, describe);
    assert_eq!(
        observed.reports,
        [
            "[length_prefixed by content]",
            "length_prefixed client: lp",
            "length_prefixed client: aa",
            "length_prefixed server: T",
            "[lines by content]",
            "lines server: from here",
            "lines client: of both",
            "lines server: lines too"
        ]
    );
    assert_eq!(
        observed.application,
        Some(("length_prefixed", "content")),
        "the first protocol names the flow"
    );
}

#[test]
fn handovers_to_an_unknown_protocol_are_probed_and_limited() {
    let again: &[u8] = b"\x00\x02lp\x00\x01?";
    let turns = [(Client, again); 6];
    let observed = observe_in_any_split::<Set>(7000, &turns, describe);
    assert_eq!(observed.messages().len(), 10);
    assert_eq!(
        observed.reports.last().map(String::as_str),
        Some("[length_prefixed stopped: too_many_handovers]")
    );
}

#[test]
fn parser_memory_is_charged_and_released_when_both_directions_are_done() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 7000, describe);
    dialogue.send_octets(Client, b"\x00\x02lp");
    let before = dialogue.held_bytes();
    dialogue.send_octets(Client, b"\x00\x01M");
    assert_eq!(dialogue.held_bytes(), before + 1000);
    dialogue.send_octets(Client, b"\x00\x01.");
    dialogue.send_octets(Client, b"\x00\x01x");
    assert!(dialogue.held_bytes() > 0);
    dialogue.send_octets(Server, b"\x00\x01.");
    assert_eq!(dialogue.held_bytes(), 0);
    assert_eq!(dialogue.finish().messages().len(), 4);
}

#[test]
fn datagrams_are_probed_together_with_the_previous_one() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 9, describe);
    dialogue.send_datagram(Client, b"#1");
    dialogue.send_datagram(Client, b"#2");
    dialogue.send_datagram(Server, b"yes");
    let observed = dialogue.finish();
    assert_eq!(observed.reports, ["[lines by content]", "lines client: #2", "lines server: yes"]);

    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 9, describe);
    dialogue.send_datagram(Client, b"#1");
    dialogue.send_datagram(Client, b"#1");
    assert_eq!(dialogue.held_bytes(), 0);
    assert_eq!(dialogue.finish().application, None);
}

#[test]
fn a_malformed_datagram_prevents_recognition_by_port_but_not_by_later_content() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 7001, describe);
    dialogue.send_datagram(Client, b"?");
    dialogue.send_datagram(Client, b"#1");
    dialogue.send_datagram(Client, b"#2");
    assert_eq!(dialogue.finish().reports, ["[lines by content]", "lines client: #2"]);

    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 7001, describe);
    for _ in 0..RESUME_DATAGRAM_COUNT_MAX {
        assert!(dialogue.held_bytes() < 500);
        dialogue.send_datagram(Client, b"?");
    }
    assert_eq!(dialogue.held_bytes(), 0, "the window has ended");
    dialogue.send_datagram(Client, b"#1");
    dialogue.send_datagram(Client, b"#2");
    assert_eq!(dialogue.finish().application, None);
}

#[test]
fn a_match_without_a_parser_does_not_exclude_a_pending_protocol_with_a_parser() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 9, describe);
    dialogue.send_datagram(Client, b"#N");
    dialogue.send_datagram(Client, b"#O");
    let observed = dialogue.finish();
    assert_eq!(observed.reports, ["[named by content]", "[lines by content]", "lines client: #O"]);
    assert_eq!(observed.application, Some(("named", "content")), "the first name is kept");

    let mut dialogue = Dialogue::<Set>::new(IpProtocol::UDP, 7001, describe);
    dialogue.send_datagram(Client, b"#N");
    dialogue.send_datagram(Client, b"else");
    assert_eq!(dialogue.finish().reports, ["[named by content]"], "the port adds no other name");
}

#[test]
fn mid_stream_content_does_not_prevent_recognition_by_port() {
    let observe = |port, is_picked_up| {
        let dialogue = Dialogue::<Set>::new(IpProtocol::TCP, port, describe);
        let mut dialogue = if is_picked_up { dialogue.picked_up() } else { dialogue };
        dialogue.send_octets(Client, b"nothing that a probe knows");
        dialogue.send_octets(Server, b"neither");
        assert_eq!(dialogue.held_bytes(), 0, "no parser is created");
        dialogue.finish()
    };
    assert_eq!(observe(7001, true).application, Some(("lines", "port")));
    assert_eq!(observe(7001, true).reports, ["[lines by port]"]);
    assert_eq!(observe(7001, false).application, None);
    assert_eq!(observe(9, true).application, None);

    // Octets after a gap at the beginning are mid-stream as well.
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 7001, describe);
    dialogue.send_gap(Client, 100);
    dialogue.send_octets(Client, b"nothing that a probe knows");
    assert_eq!(dialogue.finish().application, Some(("lines", "port")));
}

#[test]
fn a_refused_charge_in_the_recognition_window_releases_its_memory() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 9, describe).with_bytes_max(1000);
    dialogue.send_octets(Server, b"hello");
    assert!(dialogue.held_bytes() > 0);
    dialogue.send_octets(Server, &[b'a'; 1500]);
    assert_eq!(dialogue.held_bytes(), 0);
    assert_eq!(dialogue.finish().reports.len(), 0);
}

#[test]
fn a_direction_done_within_the_window_receives_no_gap() {
    let mut dialogue = Dialogue::<Set>::new(IpProtocol::TCP, 7000, describe);
    dialogue.send_octets(Client, b"\x00\x02l");
    dialogue.send_octets(Client, b"p\x00\x01.");
    dialogue.send_gap(Client, 3);
    dialogue.send_octets(Server, b"\x00\x01s");
    dialogue.fin(Server);
    assert_eq!(dialogue.held_bytes(), 0, "one direction is done, and the other has ended");
    assert_eq!(
        dialogue.finish().messages(),
        [
            "length_prefixed client: lp",
            "length_prefixed client: .",
            "length_prefixed server: s",
            "length_prefixed server: end of server at 3, rest 0"
        ]
    );
}

#[test]
fn a_handover_within_the_window_keeps_the_octets_of_the_other_direction() {
    let turns: [(Role, &[u8]); 2] = [(Server, b"\x00\x01?"), (Client, b"\x00\x02lp\x00\x01x")];
    let observed = observe::<Set>(9, &turns, describe, || 100);
    assert_eq!(
        observed.messages().get(..3),
        Some(
            ["length_prefixed server: ?", "length_prefixed client: lp", "length_prefixed client: x"]
                .as_slice()
        )
    );
}

#[test]
fn the_port_does_not_name_the_protocol_after_a_handover() {
    let observed = observe::<Set>(7000, &[(Client, b"\x00\x02lp\x00\x01?")], describe, || 100);
    assert_eq!(
        observed.reports,
        ["[length_prefixed by content]", "length_prefixed client: lp", "length_prefixed client: ?"]
    );
}

#[test]
fn the_end_offset_includes_a_final_gap() {
    let turns: [(Role, &[u8]); 1] = [(Client, b"\x00\x02lpgone")];
    let observed = observe_with_gap::<Set>(7000, &turns, describe, (0, 4, 4));
    assert!(
        observed.messages().contains(&"length_prefixed client: end of client at 8, rest 0"),
        "{observed:?}"
    );
}

#[derive(Default)]
struct Stops(Vec<&'static str>);

impl Receiver<Set> for Stops {
    fn message(&mut self, _: &MessageMeta, _: Message<'_>) {}

    fn event(&mut self, event: &SessionEvent) {
        if let SessionEvent::Stopped { fault, .. } = event {
            self.0.push(fault.reason());
        }
    }
}

#[test]
fn incomplete_long_messages_do_not_block_short_ones() {
    let mut limits = Limits::DEFAULT;
    limits.session_bytes_max = 1 << 20;
    let mut driver = Driver::<Set>::new(DriverConfig::default(), &Resources::new(limits));
    let mut stops = Stops::default();
    let client = ([10, 0, 0, 1].into(), 40_000);
    let (key, side) = FlowKey::new(IpProtocol::TCP, client, ([10, 0, 0, 2].into(), 7000));
    let context = FlowContext::new(&key, side, Timestamp::ZERO);
    let mut send_octets = |session: &mut Session<Set>, driver: &mut Driver<Set>, len: u16| {
        let message = [b"\x00\x02lp".as_slice(), &len.to_be_bytes(), &vec![0; usize::from(len) / 2]].concat();
        let _ = driver.chunk(session, &context, side, &Chunk::new(0, &message), &mut stops);
        driver.stats().held_bytes
    };
    let mut sessions: Vec<Session<Set>> = (0..200).map(|_| Session::default()).collect();
    let (long_sessions, short_sessions) = sessions.split_at_mut(100);
    for session in long_sessions {
        assert!(send_octets(session, &mut driver, 50_000) < 1 << 20);
    }
    let before = driver.stats();
    assert!(before.stopped_count > 50 && before.held_bytes > 7 << 17, "{before:?}");
    for session in short_sessions {
        send_octets(session, &mut driver, 100);
    }
    assert_eq!(driver.stats().stopped_count, before.stopped_count);
    sessions.iter_mut().for_each(|session| driver.close(session));
    assert_eq!(driver.stats().held_bytes, 0);
    assert!(stops.0.iter().all(|fault| *fault == "no_memory"));
}
