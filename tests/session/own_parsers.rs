//! Parsers as a program may write them: one message per call, in each way to say so, and very short messages.

use flowgauge::base::{FlowKey, IpProtocol, Timestamp};
use flowgauge::reassembler::Chunk;
use flowgauge::session::{
    Driver, Fault, FlowContext, Input, MESSAGE_CREDIT, MESSAGES_PER_PACKET, MessageMeta, Out, Parser,
    Progress, Protocol, Receiver, Role, Session, SessionEvent,
};

use crate::harness::{Description, observe_in_any_split};

/// Parser of messages with a length prefix of one octet, which takes one message per call.
#[derive(Debug, Default)]
struct OneTaken;

/// The same, which states that it needs the next prefix.
#[derive(Debug, Default)]
struct OneNeeding;

/// Parser of lines that takes one per call, and searches each octet once.
#[derive(Debug, Default)]
struct OneLine;

/// Parser of messages of four octets that takes all of them.
#[derive(Debug, Default)]
struct Words;

/// Parser that consumes nothing, and reports each call.
#[derive(Debug, Default)]
struct Idle;

/// Returns the first message.
fn prefixed<'a>(input: &Input<'a>) -> Option<&'a [u8]> {
    let (len, rest) = input.bytes.split_first()?;
    rest.get(..usize::from(*len))
}

impl Parser for OneTaken {
    type Message<'m> = &'m [u8];

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let Some(message) = prefixed(input) else { return Ok(Progress::Took(0)) };
        out(message);
        Ok(if message == b"end" { Progress::Done } else { Progress::Took(message.len() + 1) })
    }
}

impl Parser for OneNeeding {
    type Message<'m> = &'m [u8];

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        match prefixed(input) {
            None => Ok(Progress::Needs { taken: 0, need: usize::from(input.bytes[0]) + 1 }),
            Some(message) => {
                out(message);
                Ok(Progress::Needs { taken: message.len() + 1, need: 1 })
            }
        }
    }
}

impl Parser for OneLine {
    type Message<'m> = &'m [u8];

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let new = &input.bytes[input.seen_len..];
        let Some(end) = new.iter().position(|octet| *octet == b'\n') else { return Ok(Progress::Took(0)) };
        let len = input.seen_len + end;
        out(&input.bytes[..len]);
        Ok(Progress::Took(len + 1))
    }
}

impl Parser for Words {
    type Message<'m> = &'m [u8];

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let (words, rest) = input.bytes.as_chunks::<4>();
        words.iter().for_each(|word| out(word));
        Ok(Progress::Took(input.bytes.len() - rest.len()))
    }
}

impl Parser for Idle {
    type Message<'m> = &'m [u8];

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        out(input.bytes);
        Ok(Progress::Took(0))
    }
}

static ONE_TAKEN: Protocol = Protocol::new("one_taken").over_streams(&[7000], None);
static ONE_NEEDING: Protocol = Protocol::new("one_needing").over_streams(&[7001], None);
static ONE_LINE: Protocol = Protocol::new("one_line").over_streams(&[7002], None);
static WORDS: Protocol = Protocol::new("words").over_streams(&[7003], None);
static STATED_WORDS: Protocol =
    Protocol::new("stated_words").over_streams(&[7004], None).with_message_len_min(4);
static IDLE: Protocol = Protocol::new("idle").over_streams(&[7005], None);

flowgauge::protocols! {
    /// The parsers above.
    #[derive(Debug)]
    enum Own;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Message;
    parsers {
        OneTaken: OneTaken = &ONE_TAKEN,
        OneNeeding: OneNeeding = &ONE_NEEDING,
        OneLine: OneLine = &ONE_LINE,
        Words: Words = &WORDS,
        StatedWords: Words = &STATED_WORDS,
        Idle: Idle = &IDLE,
    }
    recognized {}
}

fn bytes<'m>(message: &Message<'m>) -> &'m [u8] {
    let (Message::OneTaken(bytes)
    | Message::OneNeeding(bytes)
    | Message::OneLine(bytes)
    | Message::Words(bytes)
    | Message::StatedWords(bytes)
    | Message::Idle(bytes)) = message;
    bytes
}

fn describe(meta: &MessageMeta, message: Message<'_>) -> Description {
    Description::Whole(format!("{} {}", meta.from.name(), bytes(&message).escape_ascii()))
}

#[test]
fn a_parser_may_take_one_message_per_call() {
    let prefixed: [(Role, &[u8]); 3] = [
        (Role::Client, b"\x03one\x03two\x00\x05three\x0aunfi"),
        (Role::Server, b"\x01a\x01b\x01c"),
        (Role::Client, b"nished\x01x\x01y\x09"),
    ];
    let expected = "client one|client two|client |client three|server a|server b|server c|client unfinished|client x|client y";
    for port in [7000, 7001] {
        let observed = observe_in_any_split::<Own>(port, &prefixed, describe);
        assert_eq!(observed.messages().join("|"), expected, "port {port}");
    }
    let lines: [(Role, &[u8]); 2] =
        [(Role::Client, b"one\ntwo\n\nthree\nunfi"), (Role::Client, b"nished\nlast\n")];
    let observed = observe_in_any_split::<Own>(7002, &lines, describe);
    let expected = "client one|client two|client |client three|client unfinished|client last";
    assert_eq!(observed.messages().join("|"), expected);
    // Nothing follows the end of a direction.
    let ended: [(Role, &[u8]); 1] = [(Role::Client, b"\x03one\x03end\x03two")];
    let observed = observe_in_any_split::<Own>(7000, &ended, describe);
    assert_eq!(observed.messages().join("|"), "client one|client end");
}

#[derive(Default)]
struct Counts {
    messages: Vec<Vec<u8>>,
    suppressed_count: u32,
}

impl Receiver<Own> for Counts {
    fn message(&mut self, _: &MessageMeta, message: Message<'_>) {
        self.messages.push(bytes(&message).to_vec());
    }

    fn event(&mut self, event: &SessionEvent) {
        self.suppressed_count += u32::from(matches!(event, SessionEvent::Suppressed { .. }));
    }
}

/// Passes segments to the parser on a port. Returns what was received, and the number of suppressed messages.
fn received(port: u16, segments: &[&[u8]]) -> (Counts, u64) {
    let (mut driver, mut session) = (Driver::<Own>::default(), Session::default());
    let mut counts = Counts::default();
    let client = ([10, 0, 0, 1].into(), 40_000);
    let (key, side) = FlowKey::new(IpProtocol::TCP, client, ([10, 0, 0, 2].into(), port));
    let context = FlowContext::new(&key, side, Timestamp::ZERO);
    let mut offset = 0;
    for segment in segments {
        let chunk = Chunk::new(offset, segment);
        assert!(driver.chunk(&mut session, &context, side, &chunk, &mut counts).is_continue());
        offset += segment.len() as u64;
    }
    let suppressed_count = driver.stats().suppressed_message_count;
    driver.close(&mut session);
    assert_eq!(driver.stats().held_bytes, 0);
    (counts, suppressed_count)
}

#[test]
fn a_parser_that_consumes_nothing_is_called_once_per_segment() {
    let (counts, _) = received(7005, &[b"ab", b"c", b"d"]);
    assert_eq!(counts.messages, [b"ab".to_vec(), b"abc".to_vec(), b"abcd".to_vec()]);
}

#[test]
fn a_protocol_states_how_short_its_messages_are() {
    let words: Vec<u8> = (0..20_000_u32).flat_map(u32::to_be_bytes).collect();
    let segments: Vec<&[u8]> = words.chunks(1460).collect();
    // By default, one message for each 16 octets besides the credit: the others are reported as suppressed.
    let (counts, suppressed_count) = received(7003, &segments);
    let permitted = MESSAGE_CREDIT + MESSAGES_PER_PACKET * segments.len() as u64 + words.len() as u64 / 16;
    assert_eq!(counts.messages.len() as u64, permitted);
    assert_eq!((suppressed_count, counts.suppressed_count), (20_000 - permitted, 1));
    let (counts, suppressed_count) = received(7004, &segments);
    assert_eq!((counts.messages.concat(), counts.suppressed_count, suppressed_count), (words, 0, 0));
}
