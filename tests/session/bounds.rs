//! Work and output of parsers are bounded by the number of octets and packets.

use std::cell::RefCell;

use flowgauge::base::{FlowKey, IpProtocol, Timestamp};
use flowgauge::reassembler::{Chunk, Gap, GapReason};
use flowgauge::session::{
    Driver, Fault, FlowContext, Input, MESSAGE_CREDIT, MESSAGE_OCTET_COUNT, MESSAGES_PER_PACKET, MessageMeta,
    Out, Parser, Progress, Protocol, Receiver, Role, Session, SessionEvent,
};

use crate::harness::random;

/// Consumes as many octets as their values request, and checks what the driver reports about the octets that it did not
/// consume.
#[derive(Debug, Default)]
struct Partial {
    /// Octets of each direction in which the parser found nothing to consume.
    remaining: [Vec<u8>; 2],
}

thread_local! {
    /// Calls of [`Partial`]: the number of octets that were seen before, and of all octets.
    static CALLS: RefCell<Vec<(usize, usize)>> = const { RefCell::new(Vec::new()) };
}

impl Parser for Partial {
    type Message<'m> = ();

    fn bytes(&mut self, input: &Input<'_>, _: Out<'_, Self>) -> Result<Progress, Fault> {
        CALLS.with_borrow_mut(|calls| calls.push((input.seen_len, input.bytes.len())));
        let remaining = input.from.of_mut(&mut self.remaining);
        assert_eq!(
            input.bytes.get(..input.seen_len),
            Some(remaining.as_slice()),
            "the octets seen before are those of which nothing was consumed"
        );
        assert!(input.seen_len < input.bytes.len(), "each call has new octets");
        let taken = match input.bytes[0] {
            // As many as the first octet states, or all that are available.
            count @ 1..100 => usize::from(count).min(input.bytes.len()),
            _ => 0,
        };
        *remaining = input.bytes[taken..].to_vec();
        // Sometimes the parser requests not to be called for each octet.
        let need = if remaining.len() % 7 == 3 { remaining.len() + 5 } else { 0 };
        if taken > 0 && need == 0 {
            // The next call follows at once, and the rest is new for it.
            remaining.clear();
        }
        Ok(if need > 0 { Progress::Needs { taken, need } } else { Progress::Took(taken) })
    }

    fn gap(
        &mut self,
        missing: &flowgauge::session::Missing<'_>,
        _: Out<'_, Self>,
    ) -> flowgauge::session::AfterGap {
        assert!(missing.rest.starts_with(missing.from.of(&self.remaining).as_slice()));
        missing.from.of_mut(&mut self.remaining).clear();
        flowgauge::session::AfterGap::Resume
    }
}

/// Reports each octet as a message, which counts as transported content if the octet is `c`.
#[derive(Debug, Default)]
struct Reporter;

impl Parser for Reporter {
    type Message<'m> = u8;

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        input.bytes.iter().for_each(|octet| out(*octet));
        Ok(Progress::Took(input.bytes.len()))
    }

    fn is_content(message: &u8) -> bool {
        *message == b'c'
    }
}

static PARTIAL: Protocol = Protocol::new("partial").over_streams(&[7100], None);
static REPORTER: Protocol = Protocol::new("reporter").over_streams(&[7101], None);

flowgauge::protocols! {
    /// The parsers above.
    #[derive(Debug)]
    enum Set;
    /// Messages of these parsers.
    #[derive(Debug)]
    enum Message;
    parsers { Partial: Partial = &PARTIAL, Reporter: Reporter = &REPORTER }
}

#[derive(Default)]
struct Counts {
    reported: u64,
    content: u64,
    suppressed_events: u64,
}

impl Receiver<Set> for Counts {
    fn message(&mut self, _: &MessageMeta, message: Message<'_>) {
        match message {
            Message::Reporter(b'c') => self.content += 1,
            _ => self.reported += 1,
        }
    }

    fn event(&mut self, event: &SessionEvent) {
        self.suppressed_events += u64::from(matches!(event, SessionEvent::Suppressed { .. }));
    }
}

fn key(port: u16) -> (FlowKey, flowgauge::base::Side) {
    FlowKey::new(IpProtocol::TCP, ([10, 0, 0, 1].into(), 40_000), ([10, 0, 0, 2].into(), port))
}

#[test]
fn the_driver_reports_how_many_octets_the_parser_has_already_seen() {
    for seed in 1..200 {
        let mut random = random(seed);
        let (key, client) = key(7100);
        let (mut driver, mut session) = (Driver::<Set>::default(), Session::default());
        let mut offsets = [0_u64; 2];
        CALLS.with_borrow_mut(Vec::clear);
        for _ in 0..300 {
            let from = if random().is_multiple_of(4) { Role::Server } else { Role::Client };
            let side = if from == Role::Client { client } else { client.other() };
            let context = FlowContext::new(&key, client, Timestamp::ZERO);
            let offset = &mut offsets[from.index()];
            if random().is_multiple_of(50) {
                let gap = Gap::new(*offset, 10, GapReason::Deadline);
                assert!(driver.gap(&mut session, &context, side, &gap, &mut Counts::default()).is_continue());
                *offset += 10;
            } else {
                // Few octets request that others are consumed, so that many octets remain.
                let octet = |random: &mut dyn FnMut() -> u64| {
                    if random().is_multiple_of(3) { random() as u8 % 100 } else { 200 }
                };
                let octets: Vec<u8> = (0..=random() % 40).map(|_| octet(&mut random)).collect();
                let chunk = Chunk::new(*offset, &octets);
                assert!(
                    driver.chunk(&mut session, &context, side, &chunk, &mut Counts::default()).is_continue()
                );
                *offset += octets.len() as u64;
            }
        }
        let context = FlowContext::new(&key, client, Timestamp::ZERO);
        driver.finish(&mut session, &context, flowgauge::session::EndKind::Flow, &mut Counts::default());
        assert_eq!(driver.stats().held_bytes, 0);
        let has_seen = CALLS.with_borrow(|calls| calls.iter().any(|(seen_len, _)| *seen_len > 0));
        assert!(has_seen, "seed {seed}");
    }
}

/// Returns the counts of messages reported for chunks that repeat one octet, and the number of suppressed messages.
fn reported(octet: u8, chunk_len: usize, chunk_count: u64) -> (Counts, u64) {
    let (key, client) = key(7101);
    let (mut driver, mut session, mut counts) =
        (Driver::<Set>::default(), Session::default(), Counts::default());
    let context = FlowContext::new(&key, client, Timestamp::ZERO);
    let octets = vec![octet; chunk_len];
    for number in 0..chunk_count {
        let chunk = Chunk::new(number * chunk_len as u64, &octets);
        let flow = driver.chunk(&mut session, &context, client, &chunk, &mut counts);
        assert!(flow.is_continue());
    }
    let suppressed_count = driver.stats().suppressed_message_count;
    (counts, suppressed_count)
}

#[test]
fn messages_per_flow_are_bounded_by_its_packets_and_octets() {
    let (counts, suppressed_count) = reported(b'x', 1000, 100);
    let allowed = MESSAGE_CREDIT + 100 * (MESSAGES_PER_PACKET + 1000 / MESSAGE_OCTET_COUNT);
    // Eight octets of each thousand are below a whole message and accumulate.
    assert_eq!(counts.reported, allowed + 100 * 8 / MESSAGE_OCTET_COUNT);
    assert_eq!(suppressed_count, 100_000 - counts.reported);
    assert_eq!(counts.suppressed_events, 1, "one event reports the suppression");
    // A few messages in each packet are not limited, however many packets there are; neither is transported content.
    let (counts, suppressed_count) = reported(b'x', 8, 10_000);
    assert_eq!((counts.reported, suppressed_count, counts.suppressed_events), (80_000, 0, 0));
    let (counts, suppressed_count) = reported(b'c', 1000, 100);
    assert_eq!((counts.content, counts.reported, suppressed_count), (100_000, 0, 0));
}
