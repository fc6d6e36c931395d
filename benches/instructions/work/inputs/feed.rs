//! Packets for a driver with the parsers of the crate. Their messages are written as JSON, as by `flowgauge sessions`.

use flowgauge::base::{FlowKey, IpProtocol, Timestamp};
use flowgauge::export::{Style, write_message};
use flowgauge::protocols::{Message, Standard};
use flowgauge::reassembler::{Chunk, Gap, GapReason};
use flowgauge::session::{
    Driver, EndKind, FlowContext, MessageMeta, Payload, Receiver, Role, Session, SessionEvent,
};

/// Length of every input: payload and the packet headers for it.
pub(crate) const INPUT_LEN: usize = 64 << 10;

/// Payload length of a full segment.
pub(crate) const SEGMENT_LEN: usize = 1460;

/// Length of IPv4 and TCP headers.
const TCP_HEADERS_LEN: usize = 40;

/// Length of IPv4 and UDP headers.
const UDP_HEADERS_LEN: usize = 28;

/// A step of an input.
enum Step {
    /// A new flow begins.
    Flow,
    Octets(Role, Vec<u8>),
    /// A number of octets is missing.
    Gap(Role, u64),
}

/// Packets of flows to one port with [`INPUT_LEN`] octets in total. Further packets are dropped.
pub(crate) struct Input {
    is_stream: bool,
    server_port: u16,
    steps: Vec<Step>,
    len: usize,
}

impl Input {
    pub(crate) fn tcp(server_port: u16) -> Self {
        Self { is_stream: true, server_port, steps: Vec::new(), len: 0 }
    }

    pub(crate) fn udp(server_port: u16) -> Self {
        Self { is_stream: false, ..Self::tcp(server_port) }
    }

    const fn headers_len(&self) -> usize {
        if self.is_stream { TCP_HEADERS_LEN } else { UDP_HEADERS_LEN }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == INPUT_LEN
    }

    /// Begins a new flow.
    pub(crate) fn flow(&mut self) {
        self.steps.push(Step::Flow);
    }

    /// Sends octets in full segments, or in one datagram.
    pub(crate) fn send(&mut self, from: Role, octets: &[u8]) {
        self.send_in(if self.is_stream { SEGMENT_LEN } else { usize::MAX }, from, octets);
    }

    /// Sends octets in packets with a given payload length.
    pub(crate) fn send_in(&mut self, packet_len: usize, from: Role, octets: &[u8]) {
        for octets in octets.chunks(packet_len) {
            if self.is_full() {
                return;
            }
            let rest_len = INPUT_LEN - self.len - self.headers_len();
            let mut octets = octets.get(..rest_len).unwrap_or(octets).to_vec();
            // If the rest is too short for another packet, it pads this one.
            if rest_len - octets.len() <= self.headers_len() {
                octets.resize(rest_len, b'\n');
            }
            self.len += self.headers_len() + octets.len();
            self.steps.push(Step::Octets(from, octets));
        }
    }

    /// Adds a gap of octets that were not captured.
    pub(crate) fn add_gap(&mut self, from: Role, len: u64) {
        self.steps.push(Step::Gap(from, len));
    }
}

/// Expected results of an input.
#[derive(Clone, Copy)]
pub(crate) struct Expected {
    /// Minimum number of messages.
    pub(crate) message_count_min: u64,
    /// Reason for which parsers stop, if any.
    pub(crate) fault: Option<&'static str>,
    /// True if parsers may stop for any reason.
    pub(crate) has_faults: bool,
    /// Maximum number of octets of JSON per octet of input.
    pub(crate) output_ratio_max: u64,
}

impl Expected {
    /// Expects at least `message_count_min` messages and no fault.
    pub(crate) const fn messages(message_count_min: u64) -> Self {
        Self { message_count_min, fault: None, has_faults: false, output_ratio_max: 20 }
    }

    pub(crate) const fn fault(self, fault: &'static str) -> Self {
        Self { fault: Some(fault), ..self }
    }
}

/// An input with its expected results.
pub(crate) type Case = (Input, Expected);

/// Maximum length of a message as JSON.
const LINE_LEN_MAX: usize = 2 << 20;

/// Writes messages as JSON.
pub(crate) struct Writer {
    line: Vec<u8>,
    written_len: u64,
    message_count: u64,
    fault: Option<&'static str>,
}

impl Writer {
    /// Creates a writer whose buffer does not grow, so that its allocations are not counted.
    fn new() -> Self {
        Self { line: Vec::with_capacity(LINE_LEN_MAX), written_len: 0, message_count: 0, fault: None }
    }
}

impl Receiver<Standard> for Writer {
    fn message(&mut self, _: &MessageMeta, message: Message<'_>) {
        self.message_count += 1;
        if !message.is_content() {
            self.line.clear();
            write_message(&mut self.line, &message, Style::default());
            self.written_len += self.line.len() as u64;
        }
    }

    fn event(&mut self, event: &SessionEvent) {
        if let SessionEvent::Stopped { fault, .. } = event {
            self.fault = Some(fault.reason());
        }
    }
}

/// A driver, the input for it, and the receiver of its messages.
pub(crate) struct Feeding<R = Writer> {
    pub(crate) driver: Driver<Standard>,
    pub(crate) input: Input,
    pub(crate) expected: Expected,
    pub(crate) writer: R,
}

/// Prepares a driver that has processed the input once, so that one-time allocations are not counted.
pub(crate) fn prepared(make: fn() -> Case) -> Feeding {
    prepared_input(make())
}

pub(crate) fn prepared_input((input, expected): Case) -> Feeding {
    assert_eq!(input.len, INPUT_LEN, "the input does not have INPUT_LEN octets");
    let feeding = Feeding { driver: Driver::default(), input, expected, writer: Writer::new() }.feed();
    Feeding { writer: Writer::new(), ..feeding }
}

pub(crate) fn checked(feeding: Feeding) {
    let Feeding { driver, expected, writer, .. } = feeding;
    let reports = (writer.message_count, writer.fault);
    assert!(writer.message_count >= expected.message_count_min, "{reports:?}");
    assert!(expected.has_faults || writer.fault == expected.fault, "{reports:?}");
    let output_len_max = expected.output_ratio_max * INPUT_LEN as u64;
    assert!(writer.written_len <= output_len_max, "{} octets of output", writer.written_len);
    assert_eq!(driver.stats().held_bytes, 0);
}

impl<R: Receiver<Standard>> Feeding<R> {
    pub(crate) fn feed(mut self) -> Self {
        let Self { driver, input, writer, .. } = &mut self;
        let protocol = if input.is_stream { IpProtocol::TCP } else { IpProtocol::UDP };
        let mut client_port = 10_000;
        let key = |port| {
            let ends = (([10, 0, 0, 1].into(), port), ([10, 0, 0, 2].into(), input.server_port));
            FlowKey::new(protocol, ends.0, ends.1)
        };
        let (mut flow, mut client) = key(client_port);
        let mut session = Session::default();
        let (mut offsets, mut wants) = ([0_u64; 2], [true; 2]);
        let mut now = 0;
        for step in &input.steps {
            now += 1000;
            let timestamp = Timestamp::from_nanos(now);
            let side = |role: Role| if role == Role::Client { client } else { client.other() };
            match step {
                Step::Flow => {
                    end(driver, &mut session, &FlowContext::new(&flow, client, timestamp), writer);
                    client_port += 1;
                    (flow, client) = key(client_port);
                    (session, offsets, wants) = (Session::default(), [0; 2], [true; 2]);
                }
                Step::Octets(from, octets) => {
                    let (context, at) = (FlowContext::new(&flow, client, timestamp), from.index());
                    if !input.is_stream {
                        driver.datagram(
                            &mut session,
                            &context,
                            side(*from),
                            Payload { bytes: octets, len: octets.len() },
                            writer,
                        );
                    } else if wants[at] {
                        let chunk = Chunk::new(offsets[at], octets);
                        let flows = driver.chunk(&mut session, &context, side(*from), &chunk, writer);
                        wants[at] = flows.is_continue();
                    }
                    offsets[at] += octets.len() as u64;
                }
                Step::Gap(from, len) => {
                    let (context, at) = (FlowContext::new(&flow, client, timestamp), from.index());
                    if wants[at] {
                        let gap = Gap::new(offsets[at], *len, GapReason::Acknowledged);
                        wants[at] =
                            driver.gap(&mut session, &context, side(*from), &gap, writer).is_continue();
                    }
                    offsets[at] += len;
                }
            }
        }
        end(driver, &mut session, &FlowContext::new(&flow, client, Timestamp::from_nanos(now)), writer);
        self
    }
}

fn end(
    driver: &mut Driver<Standard>,
    session: &mut Session<Standard>,
    context: &FlowContext<'_>,
    writer: &mut impl Receiver<Standard>,
) {
    driver.finish(session, context, EndKind::Flow, writer);
}

/// Calls a closure that sends packets until the input is full.
pub(crate) fn filled(mut input: Input, mut send: impl FnMut(&mut Input, u32)) -> Input {
    let mut round = 0;
    while !input.is_full() {
        send(&mut input, round);
        round += 1;
    }
    input
}
