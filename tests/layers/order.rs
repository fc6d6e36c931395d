//! Requests and responses belong together although the directions of a connection were captured with different delays,
//! adjacent frames were swapped, or segments were lost: the acknowledgment numbers state what was sent before.

use etherparse::PacketBuilder;
use flowgauge::base::{Frame, Timestamp};
use flowgauge::pipeline::{Pipeline, PipelineStats, on_transaction};
use flowgauge::transaction::Content;

/// A frame of a connection: its time in microseconds, and whether the server sent it.
#[derive(Clone, Debug)]
struct Sent {
    micros: u64,
    is_reply: bool,
    frame: Vec<u8>,
}

/// A TCP connection that is captured in order.
struct Connection {
    /// Ports of the client and of the server.
    ports: [u16; 2],
    micros: u64,
    /// Next sequence numbers of the client and of the server.
    next: [u32; 2],
    sent: Vec<Sent>,
}

impl Connection {
    /// Creates a connection to a port of the server, with its handshake.
    fn new(port: u16) -> Self {
        Self::between([40_000, port])
    }

    fn between(ports: [u16; 2]) -> Self {
        let mut connection = Self { ports, micros: 1_000_000, next: [u32::MAX - 20, 5000], sent: Vec::new() };
        connection.segment(false, "S", "").segment(true, "SA", "").segment(false, "A", "");
        connection
    }

    /// Adds a segment 300 microseconds after the previous one.
    fn segment(&mut self, is_reply: bool, flags: &str, text: &str) -> &mut Self {
        let (client, server) = (([10, 0, 0, 1], self.ports[0]), ([10, 0, 0, 2], self.ports[1]));
        let (from, to) = if is_reply { (server, client) } else { (client, server) };
        let [seq, ack] = if is_reply { [self.next[1], self.next[0]] } else { self.next };
        let mut builder =
            PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from.0, to.0, 64).tcp(from.1, to.1, seq, 1000);
        for flag in flags.chars() {
            builder = match flag {
                'S' => builder.syn(),
                'F' => builder.fin(),
                'P' => builder.psh(),
                _ => builder.ack(ack),
            };
        }
        let mut frame = Vec::new();
        builder.write(&mut frame, text.as_bytes()).unwrap();
        let len = text.len() as u32 + u32::from(flags.contains(['S', 'F']));
        let next = &mut self.next[usize::from(is_reply)];
        *next = next.wrapping_add(len);
        self.micros += 300;
        self.sent.push(Sent { micros: self.micros, is_reply, frame });
        self
    }

    fn request(&mut self, text: &str) -> &mut Self {
        self.segment(false, "PA", text)
    }

    fn reply(&mut self, text: &str) -> &mut Self {
        self.segment(true, "PA", text)
    }

    fn pause(&mut self, micros: u64) -> &mut Self {
        self.micros += micros;
        self
    }

    fn closed(&mut self) -> Vec<Sent> {
        self.segment(false, "FA", "").segment(true, "FA", "").segment(false, "A", "");
        std::mem::take(&mut self.sent)
    }
}

/// Returns five requests with their responses, each in segments of its own, with a pause between them.
fn http(pause: u64) -> Vec<Sent> {
    http_between([40_000, 80], pause)
}

fn http_between(ports: [u16; 2], pause: u64) -> Vec<Sent> {
    let mut connection = Connection::between(ports);
    for number in 1..=5 {
        let request = format!("GET /{number} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let response = format!("HTTP/1.1 21{number} OK\r\nContent-Length: 3\r\n\r\n");
        connection.request(&request).reply(&response).reply("abc").pause(pause);
    }
    connection.closed()
}

/// Returns a login and an action that fails.
fn ftp(pause: u64) -> Vec<Sent> {
    let mut connection = Connection::new(21);
    connection.reply("220 ready\r\n");
    for (command, reply) in [
        ("USER a\r\n", "331 password\r\n"),
        ("PASS b\r\n", "230 logged in\r\n"),
        ("CWD /none\r\n", "550 no such folder\r\n"),
        ("QUIT\r\n", "221 bye\r\n"),
    ] {
        connection.pause(pause).request(command).reply(reply);
    }
    connection.closed()
}

/// Returns a mail of which the first of two recipients is refused.
fn smtp(pause: u64) -> Vec<Sent> {
    let mut connection = Connection::new(25);
    connection.reply("220 mail.example\r\n");
    for (command, reply) in [
        ("EHLO a.example\r\n", "250 mail.example\r\n"),
        ("MAIL FROM:<a@a.example>\r\n", "250 sender\r\n"),
        ("RCPT TO:<no@b.example>\r\n", "550 unknown\r\n"),
        ("RCPT TO:<b@b.example>\r\n", "250 recipient\r\n"),
        ("DATA\r\n", "354 go on\r\n"),
        ("Subject: x\r\n\r\ntext\r\n.\r\n", "250 queued\r\n"),
        ("QUIT\r\n", "221 bye\r\n"),
    ] {
        connection.pause(pause).request(command).reply(reply);
    }
    connection.closed()
}

/// Returns the transactions of frames in the order of their times, and the counters of the pipeline.
fn transactions(sent: &[Sent]) -> (Vec<String>, PipelineStats) {
    let mut frames: Vec<_> = sent.iter().collect();
    frames.sort_by_key(|sent| sent.micros);
    in_this_order(frames)
}

fn in_this_order<'s>(frames: impl IntoIterator<Item = &'s Sent>) -> (Vec<String>, PipelineStats) {
    let mut found = Vec::new();
    let sink = on_transaction(|_, transaction| match &transaction.content {
        Content::Http(http) => found.push(format!("{} {:?}", text(&http.target), http.status)),
        Content::Ftp(ftp) => found.push(format!("{} {:?}", ftp.command, ftp.code)),
        Content::Dns(dns) => {
            found.push(format!(
                "{:?} {} {:?}",
                dns.number,
                text(&dns.query),
                dns.rcode.map(|rcode| rcode.to_string())
            ));
        }
        Content::Mail(mail) => found.push(format!("{mail:?}")),
        _ => {}
    });
    let mut pipeline = Pipeline::builder().build(sink).unwrap();
    for sent in frames {
        pipeline.frame(&Frame::ethernet(Timestamp::from_nanos(sent.micros * 1000), &sent.frame));
        pipeline.check_invariants();
    }
    pipeline.finish();
    let stats = pipeline.stats();
    drop(pipeline);
    (found, stats)
}

fn text(text: &Option<Box<str>>) -> &str {
    text.as_deref().unwrap_or("-")
}

/// Delays one direction.
fn skewed(mut sent: Vec<Sent>, is_reply: bool, micros: u64) -> Vec<Sent> {
    sent.iter_mut().filter(|sent| sent.is_reply == is_reply).for_each(|sent| sent.micros += micros);
    sent
}

#[test]
fn a_late_direction_changes_no_pair() {
    let http_pairs = (1..=5).map(|number| format!("/{number} Some(21{number})")).collect();
    let ftp_pairs = ["USER Some(331)", "PASS Some(230)", "CWD Some(550)", "QUIT Some(221)"].map(String::from);
    let dialogues = [
        ("http", http as fn(u64) -> Vec<Sent>, http_pairs),
        ("ftp", ftp, ftp_pairs.into()),
        ("smtp", smtp, transactions(&smtp(0)).0),
    ];
    for (name, dialogue, expected) in &dialogues {
        assert!(!expected.is_empty());
        for pause in [0, 1_000, 30_000, 200_000] {
            assert_eq!(transactions(&dialogue(pause)).0, *expected);
            for (is_reply, micros) in [false, true]
                .map(|side| [3, 1_000, 3_000, 20_000, 45_000].map(|micros| (side, micros)))
                .concat()
            {
                let (found, stats) = transactions(&skewed(dialogue(pause), is_reply, micros));
                let late = if is_reply { "server" } else { "client" };
                let case = format!("{name}, the {late} {micros} us late, with pauses of {pause} us");
                // Nothing waits for a direction before its first segment, here the SYN-ACK.
                let greets_late = is_reply && *name != "http" && micros > pause;
                if !greets_late {
                    assert_eq!(found, *expected, "{case}");
                }
                assert_eq!(stats.streams.gap_octet_count, 0, "{case}");
            }
        }
    }
}

/// Returns the frames of a dialogue from its first request on.
fn picked_up(sent: Vec<Sent>) -> Vec<Sent> {
    sent.into_iter().skip(3).skip_while(|sent| sent.is_reply).collect()
}

#[test]
fn a_late_direction_changes_no_pair_of_a_connection_without_its_syn() {
    for (name, dialogue) in [("http", http as fn(u64) -> Vec<Sent>), ("ftp", ftp), ("smtp", smtp)] {
        for pause in [0, 1_000, 30_000, 200_000] {
            let sent = picked_up(dialogue(pause));
            let (expected, _) = transactions(&sent);
            assert!(!expected.is_empty(), "{name}");
            for micros in [3, 1_000, 3_000, 20_000, 45_000] {
                for is_reply in [false, true] {
                    let (found, stats) = transactions(&skewed(sent.clone(), is_reply, micros));
                    let late = if is_reply { "server" } else { "client" };
                    let case = format!("{name}, the {late} {micros} us late, with pauses of {pause} us");
                    assert_eq!((found, stats.streams.gap_octet_count), (expected.clone(), 0), "{case}");
                }
            }
        }
    }
}

#[test]
fn a_late_direction_changes_no_pair_if_ports_do_not_show_the_server() {
    let expected: Vec<_> = (1..=5).map(|number| format!("/{number} Some(21{number})")).collect();
    for ports in [[50_000, 50_080], [50_080, 50_000], [50_000, 50_000]] {
        for pause in [0, 30_000, 200_000] {
            let sent = picked_up(http_between(ports, pause));
            for (is_reply, micros) in
                [(false, 0), (false, 3), (false, 3_000), (false, 45_000), (true, 3_000), (true, 45_000)]
            {
                let (found, stats) = transactions(&skewed(sent.clone(), is_reply, micros));
                let late = if is_reply { "server" } else { "client" };
                let case = format!("ports {ports:?}, the {late} {micros} us late, with pauses of {pause} us");
                assert_eq!((&found, stats.streams.gap_octet_count), (&expected, 0), "{case}");
            }
        }
    }
}

#[test]
fn first_octets_of_a_server_wait_once_for_a_client_that_was_not_captured() {
    let mut sent = picked_up(http(100_000));
    sent.retain(|sent| sent.is_reply);
    let (found, stats) = transactions(&sent);
    assert_eq!(found, [211, 212, 213, 214, 215].map(|status| format!("- Some({status})")));
    // Both segments of the first response.
    assert_eq!(stats.streams.held_segment_count, 2);
}

#[test]
fn swapped_frames_of_different_directions_change_no_pair() {
    for dialogue in [http as fn(u64) -> Vec<Sent>, ftp, smtp] {
        let sent = dialogue(0);
        let (expected, _) = transactions(&sent);
        for index in 2..sent.len() - 1 {
            let mut frames: Vec<_> = sent.iter().collect();
            frames.swap(index, index + 1);
            let (found, stats) = in_this_order(frames);
            assert_eq!((found, stats.streams.gap_octet_count), (expected.clone(), 0), "frame {index}");
        }
    }
}

#[test]
fn a_lost_request_leaves_the_other_pairs_as_they_are() {
    for pause in [0, 1_000, 200_000] {
        let mut sent = http(pause);
        let requests: Vec<_> =
            (0..sent.len()).filter(|index| !sent[*index].is_reply).skip(2).take(5).collect();
        for (number, index) in requests.into_iter().enumerate() {
            let lost = sent.remove(index);
            let mut expected: Vec<_> = (1..=5).map(|number| format!("/{number} Some(21{number})")).collect();
            expected[number] = format!("- Some(21{})", number + 1);
            assert_eq!(transactions(&sent).0, expected, "pauses of {pause} us");
            sent.insert(index, lost);
        }
    }
}

#[test]
fn nothing_waits_for_a_direction_that_was_not_captured() {
    for is_reply in [false, true] {
        let mut sent = http(0);
        sent.retain(|sent| sent.is_reply == is_reply);
        let (_, stats) = transactions(&sent);
        // The SYN-ACK begins the stream of the client.
        if !is_reply {
            assert_eq!(stats.streams.held_segment_count, 0);
        }
    }
    let (_, stats) = transactions(&http(0));
    assert_eq!((stats.streams.held_segment_count, stats.streams.held_bytes_max), (0, 0), "all is in order");
}

#[test]
fn a_query_that_is_captured_after_its_response_belongs_to_it() {
    let message = |is_reply: bool| {
        let mut message = vec![0, 7, if is_reply { 0x81 } else { 1 }, if is_reply { 0x80 } else { 0 }];
        message.extend(b"\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x01\0\x01");
        message
    };
    let sent = |is_reply: bool, micros: u64| {
        let (client, server) = (([10, 0, 0, 1], 40_000), ([10, 0, 0, 2], 53));
        let (from, to) = if is_reply { (server, client) } else { (client, server) };
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(from.0, to.0, 64).udp(from.1, to.1);
        let mut frame = Vec::new();
        builder.write(&mut frame, &message(is_reply)).unwrap();
        Sent { micros, is_reply, frame }
    };
    let found = |sent: &[Sent]| transactions(sent).0;
    assert_eq!(found(&[sent(true, 0), sent(false, 3)]), ["Some(0) a.example Some(\"NoError\")"]);
    assert_eq!(found(&[sent(true, 0), sent(false, 50_000)]), ["Some(0) a.example Some(\"NoError\")"]);
    assert_eq!(
        found(&[sent(true, 0), sent(false, 50_001)]),
        ["Some(0) a.example Some(\"NoError\")", "Some(1) a.example None"]
    );
    // Each order of two transmissions and their responses is one exchange.
    for late in [0, 3, 10_000, 45_000] {
        let repeated = [(false, late), (false, late + 1_000), (true, 900), (true, 1_900)];
        let mut repeated = repeated.map(|(is_reply, micros)| sent(is_reply, micros));
        assert_eq!(found(&repeated), ["Some(0) a.example Some(\"NoError\")"], "{late} us late");
        repeated.sort_by_key(|sent| sent.micros);
        assert_eq!(found(&repeated[..3]).len(), 1, "{late} us late");
    }
    assert_eq!(found(&[sent(true, 0)]), ["Some(0) a.example Some(\"NoError\")"]);
    // The next exchange with the same identifier is another one, unless its query may be a retransmission that was
    // captured after the response.
    let next = |micros| [sent(true, 0), sent(false, 3), sent(false, micros), sent(true, micros + 50)];
    assert_eq!(found(&next(900)), ["Some(0) a.example Some(\"NoError\")"]);
    assert_eq!(found(&next(50_003)), ["Some(0) a.example Some(\"NoError\")"]);
    assert_eq!(
        found(&next(50_004)),
        ["Some(0) a.example Some(\"NoError\")", "Some(1) a.example Some(\"NoError\")"]
    );
}
