//! Test that sessions make exactly the transitions in the table `TRANSITIONS`.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::transition::{SEEN, TRANSITIONS};
use super::{
    AWAITED_COUNT_MAX, AfterGap, Datagram, DatagramOpening, Driver, DriverConfig, EndKind, Expectation,
    Fault, FlowContext, Input, MessageMeta, Missing, Out, PROBE_CHUNK_COUNT_MAX, PROBE_DATAGRAM_COUNT_MAX,
    Parser, Payload, Progress, Protocol, Protocols, RESUME_CHUNK_COUNT_MAX, Receiver, Remains, Role, Search,
    Session, StreamOpening, Verdict,
};
use crate::base::{Account, Allowance, Budget, FlowKey, IpProtocol, Limits, Resources, Side, Timestamp};
use crate::reassembler::{Chunk, Gap, GapReason};

/// A test parser that interprets octets as commands: `P`, `N` and `?` switch to a protocol with a parser, to one
/// without, and to an unknown one; `.` ends a direction, `x` is a fault, and octets from `k` on are not consumed.
///
/// A session with this parser takes more memory than the window of datagrams and less than that of streams, so that
/// each of the two states may be refused memory after the other.
#[derive(Debug, Default)]
struct Commands {
    _state: [u64; 8],
}

impl Parser for Commands {
    type Message<'m> = ();

    fn bytes(&mut self, input: &Input<'_>, _: Out<'_, Self>) -> Result<Progress, Fault> {
        for (index, octet) in input.bytes.iter().enumerate() {
            let taken = index + 1;
            match octet {
                b'P' => return Ok(Progress::Handover { taken, next: Some(&OTHER) }),
                b'N' => return Ok(Progress::Handover { taken, next: Some(&NAMED) }),
                b'?' => return Ok(Progress::Handover { taken, next: None }),
                b'.' => return Ok(Progress::Done),
                b'x' => return Err(Fault::new("refused")),
                b'k' => return Ok(Progress::Took(index)),
                _ => {}
            }
        }
        Ok(Progress::Took(input.bytes.len()))
    }

    fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        if datagram.bytes == b"A" {
            out(());
        }
        Ok(match datagram.bytes {
            b"." => Progress::Done,
            b"?" => Progress::Handover { taken: 0, next: None },
            _ => Progress::Took(0),
        })
    }

    fn gap(&mut self, _: &Missing<'_>, _: Out<'_, Self>) -> AfterGap {
        AfterGap::Stop
    }

    fn expectation((): &()) -> Option<Expectation> {
        Some(Expectation { protocol: &OTHER, opened_by: Role::Client, address: None, port: Some(9) })
    }

    fn remains(&self) -> Option<Remains> {
        Some(Remains::default())
    }
}

static COMMANDS: Protocol = Protocol::new("commands")
    .over_streams(&[7000], Some(|opening| begins(opening, b"C!")))
    .over_datagrams(&[7000], Some(|opening| is(opening, b"C!")))
    .resumed_anywhere_by(search)
    .announcing_streams()
    .repeated_by((0xff, b'C'), |opening, _| opening.bytes == b"C!");
static OTHER: Protocol = Protocol::new("other")
    .over_streams(&[], Some(|opening| begins(opening, b"O!")))
    .over_datagrams(&[], Some(|opening| is(opening, b"O!")))
    .announced_late_by(|opening| opening.bytes == b"E!");
static NAMED: Protocol = Protocol::new("named")
    .over_streams(&[7002], Some(|opening| begins(opening, b"N!")))
    .over_datagrams(&[7002], Some(|opening| is(opening, b"N!")));

fn begins(opening: &StreamOpening<'_>, with: &[u8]) -> Verdict {
    let len = opening.client.len().min(with.len());
    match opening.client.get(..len) == with.get(..len) {
        true if len == with.len() => Verdict::Match,
        true => Verdict::More,
        false => Verdict::No,
    }
}

fn is(opening: &DatagramOpening<'_>, what: &[u8]) -> Verdict {
    if opening.bytes == b"O?" && what == b"O!" { Verdict::More } else { Verdict::of(opening.bytes == what) }
}

fn search(_: Role, bytes: &[u8]) -> Search {
    let found = bytes.windows(2).position(|window| window == b"C!");
    found.map_or(Search::From(bytes.len().saturating_sub(1)), Search::Found)
}

crate::protocols! {
    #[derive(Debug)]
    enum Set;
    #[derive(Debug)]
    enum Message;
    parsers { Commands: Commands = &COMMANDS, Other: Commands = &OTHER }
    recognized { &NAMED }
}

struct Ignored;

impl<P: Protocols> Receiver<P> for Ignored {
    fn message(&mut self, _: &MessageMeta, _: P::Message<'_>) {}
}

/// A step in the life of a flow, as part of a test script.
enum Step {
    Chunk(Vec<u8>),
    Datagram(&'static [u8]),
    Gap,
    Fin,
    Close,
}

/// Runs a script of steps on a flow to the server port `port`, and then ends or closes the flow. Checks that no memory
/// is held afterwards.
fn run(port: u16, script: &[Step], bytes_max: u64, is_naming_only: bool) {
    let mut limits = Limits::DEFAULT;
    limits.session_bytes_max = bytes_max;
    let mut driver = Driver::<Set>::new(DriverConfig { is_naming_only }, &Resources::new(limits));
    let (mut session, mut offset) = (Session::default(), 0);
    let is_stream = !script.iter().any(|step| matches!(step, Step::Datagram(_)));
    let protocol = if is_stream { IpProtocol::TCP } else { IpProtocol::UDP };
    let (key, side) = FlowKey::new(protocol, ([10, 0, 0, 1].into(), 40_000), ([10, 0, 0, 2].into(), port));
    assert_eq!(side, Side::A);
    let context = FlowContext::new(&key, side, Timestamp::ZERO);
    for step in script {
        match step {
            Step::Chunk(bytes) => {
                let chunk = Chunk::new(offset, bytes);
                let wants = driver.chunk(&mut session, &context, side, &chunk, &mut Ignored);
                assert!(!session.is_off() || wants == ControlFlow::Break(()));
                offset += bytes.len() as u64;
            }
            Step::Datagram(bytes) => {
                driver.datagram(
                    &mut session,
                    &context,
                    side,
                    Payload { bytes, len: bytes.len() },
                    &mut Ignored,
                );
            }
            Step::Gap => {
                let _ = driver.gap(
                    &mut session,
                    &context,
                    side,
                    &Gap::new(offset, 5, GapReason::Deadline),
                    &mut Ignored,
                );
                offset += 5;
            }
            Step::Fin => driver.fin(&mut session, &context, side, &mut Ignored),
            Step::Close => driver.close(&mut session),
        }
        assert_eq!(session.held_bytes(), driver.stats().held_bytes);
    }
    driver.finish(&mut session, &context, EndKind::Flow, &mut Ignored);
    assert!(session.is_off() && driver.stats().held_bytes == 0);
}

/// Announces a flow of datagrams after its first one, and begins a stream that another one may announce.
fn announce_late() {
    let key =
        |protocol, port, to| FlowKey::new(protocol, ([10, 0, 0, 1].into(), port), ([10, 0, 0, 2].into(), to));
    let mut driver = Driver::<Set>::default();
    let mut sessions: [Session<Set>; 4] = Default::default();
    for (index, port, bytes) in [(0, 9, b"E!".as_slice()), (1, 7000, b"C!"), (1, 7000, b"A"), (0, 9, b"x")] {
        let (key, side) = key(IpProtocol::UDP, 40_000, port);
        let context = FlowContext::new(&key, side, Timestamp::ZERO);
        let payload = Payload { bytes, len: bytes.len() };
        driver.datagram(&mut sessions[index], &context, side, payload, &mut Ignored);
    }
    for (index, port, offset, bytes) in [(2, 7000, 0, b"C!".as_slice()), (3, 9, 0, b"C"), (3, 9, 1, b"zz")] {
        let (key, side) = key(IpProtocol::TCP, 40_000, port);
        let context = FlowContext::new(&key, side, Timestamp::ZERO);
        let _ = driver.chunk(&mut sessions[index], &context, side, &Chunk::new(offset, bytes), &mut Ignored);
    }
    let held_bytes: u64 = sessions.iter().map(Session::held_bytes).sum();
    assert_eq!(held_bytes, driver.stats().held_bytes);
    sessions.iter_mut().for_each(|session| driver.close(session));
    assert_eq!(driver.stats().held_bytes, 0);
}

/// Refuses the memory for a later conversation, because another session has it.
fn refuse_a_later_conversation() {
    let (end, other) = (([10, 0, 0, 1].into(), 40_000), ([10, 0, 0, 2].into(), 7000));
    let (key, side) = FlowKey::new(IpProtocol::UDP, end, other);
    let context = FlowContext::new(&key, side, Timestamp::ZERO);
    let mut sessions = [Session::default(), Session::default()];
    let mut send = |driver: &mut Driver<Set>, index: usize, bytes: &[u8]| {
        let payload = Payload { bytes, len: bytes.len() };
        driver.datagram(&mut sessions[index], &context, side, payload, &mut Ignored);
        (sessions[index].held_bytes(), sessions[index].is_off())
    };
    let mut driver = Driver::<Set>::default();
    let (len, _) = send(&mut driver, 0, b"C!");
    driver.allowance = Allowance::new(Budget::new(u64::MAX), Account::Sessions, len);
    driver.allowance.take(len).unwrap();
    assert_eq!(send(&mut driver, 0, b"."), (0, false));
    assert_eq!(send(&mut driver, 1, b"C!"), (len, false));
    assert_eq!(send(&mut driver, 0, b"C!"), (0, true));
}

#[test]
fn sessions_make_exactly_the_transitions_of_the_table() {
    let chunks =
        |chunks: &[&[u8]]| -> Vec<Step> { chunks.iter().map(|bytes| Step::Chunk(bytes.to_vec())).collect() };
    let repeated = |bytes: &'static [u8], count: usize| chunks(&vec![bytes; count]);
    let datagrams = |datagrams: &[&'static [u8]]| -> Vec<Step> {
        datagrams.iter().map(|bytes| Step::Datagram(bytes)).collect()
    };
    let scripts = [
        vec![],
        vec![Step::Close],
        chunks(&[b"C!", b"ab", b"."]),
        chunks(&[b"C!", b"abk", b"lmn"]),
        chunks(&[b"C!x"]),
        chunks(&[b"C!P", b"ab"]),
        chunks(&[b"C!N", b"ab"]),
        chunks(&[b"C!?", b"O", b"!"]),
        chunks(&[b"C!?", b"N", b"!"]),
        chunks(&[b"C!?zz"]),
        chunks(&[b"C", b"!ab"]),
        chunks(&[b"N", b"!ab"]),
        chunks(&[b"N!"]),
        chunks(&[b"C", b"zz", b"C", b"!"]),
        chunks(&[b"zz", b"zzC!"]),
        repeated(b"zz", usize::from(RESUME_CHUNK_COUNT_MAX) + 1),
        vec![Step::Chunk(b"C".to_vec()), Step::Gap, Step::Chunk(b"C!".to_vec())],
        vec![Step::Chunk(b"C!".to_vec()), Step::Gap],
        vec![Step::Chunk(b"zz".to_vec()), Step::Gap, Step::Chunk(b"C!".to_vec()), Step::Fin],
        vec![Step::Gap, Step::Chunk(b"zz".to_vec())],
        vec![Step::Chunk(b"C".to_vec()), Step::Close],
        vec![Step::Chunk(b"zz".to_vec()), Step::Close],
        vec![Step::Chunk(b"C".to_vec()), Step::Fin],
        chunks(&[b"C!?", b"PROXY TCP4 "]),
        repeated(b"C", usize::from(PROBE_CHUNK_COUNT_MAX) + 1),
        datagrams(&[b"C!", b"ab", b"."]),
        datagrams(&[b"C!", b"?", b"O!"]),
        datagrams(&[b"C!", b".", b"C?", b"ab", b"C!", b"ab"]),
        datagrams(&[b"O!", b".", b"O!"]),
        datagrams(&[b"N!"]),
        datagrams(&[b"O?", b"O!"]),
        datagrams(&[b"O?", b"zz"]),
        datagrams(&[b"O?"]),
        datagrams(&[b"O!", b"C!"]),
        datagrams(&[b"zz", b"C!"]),
        datagrams(&vec![b"O?".as_slice(); usize::from(PROBE_DATAGRAM_COUNT_MAX) + 1]),
        vec![Step::Datagram(b"O?"), Step::Close],
        datagrams(&vec![b"E!".as_slice(); AWAITED_COUNT_MAX + 1]),
    ];
    SEEN.take();
    for script in &scripts {
        for port in [7000, 7002, 9] {
            for is_naming_only in [false, true] {
                // With each limit, memory is refused at another step.
                for bytes_max in (0..3000).step_by(8).chain([1 << 20]) {
                    run(port, script, bytes_max, is_naming_only);
                }
            }
        }
    }
    refuse_a_later_conversation();
    announce_late();
    assert_eq!(SEEN.take(), BTreeSet::from(TRANSITIONS));
}
