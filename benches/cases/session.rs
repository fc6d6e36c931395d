//! Established connections with segments in order, and a parser without state.

use std::hint::black_box;

use flowgauge::base::{Frame, Resources, Timestamp};
use flowgauge::session::{Fault, Input, MessageMeta, Out, Parser, Progress, Protocol};
use flowgauge::tracker::{Flow, Interest};
use flowgauge::{Pipeline, Sessions, Sink};

use super::{CLIENT, SERVER, TCP_FLAGS, TCP_SEQ, set_seq, tcp};

/// Payload length of a segment.
pub(crate) const LEN: u32 = 1400;

/// Sequence number of the SYN.
pub(crate) const ISN: u32 = 1000;

/// Offset of the client's address in frames from the client: Ethernet and IPv4 without options.
const SOURCE_ADDRESS: usize = 14 + 12;

/// Consumes all input and emits it as a message, like a parser of a body.
#[derive(Debug, Default)]
pub(crate) struct Passthrough;

impl Parser for Passthrough {
    type Message<'m> = &'m [u8];

    #[inline]
    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        out(input.bytes);
        Ok(Progress::Took(input.bytes.len()))
    }
}

static PASSTHROUGH: Protocol = Protocol::new("passthrough").over_streams(&[80], None);

flowgauge::protocols! {
    /// Set with one protocol.
    #[derive(Debug)]
    pub(crate) enum Set;
    /// Message of the protocol.
    #[derive(Debug)]
    pub(crate) enum Message;
    parsers { Passthrough: Passthrough = &PASSTHROUGH }
}

/// Counts octets.
#[derive(Debug, Default)]
pub(crate) struct Count(u64);

impl Count {
    pub(crate) const fn octet_count(&self) -> u64 {
        self.0
    }
}

impl Sink for Count {
    type State = ();
    type Stage = Sessions<Set>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    #[inline]
    fn message(&mut self, _: &mut Flow<'_, ()>, _: &MessageMeta, message: &Message<'_>) {
        let Message::Passthrough(bytes) = message;
        self.0 += black_box(bytes).len() as u64;
    }
}

/// Established connections, and the next segment of each in turn.
#[derive(Debug)]
pub(crate) struct Connections {
    pipeline: Pipeline<Count>,
    segment: Vec<u8>,
    seq: u32,
    number: u32,
    /// Number of connections.
    pub(crate) count: u32,
}

impl Connections {
    /// Establishes `count` connections, with seeds for reproducible runs.
    pub(crate) fn new(count: u32, seeds: Option<[u64; 4]>) -> Self {
        let mut resources = Resources::default();
        resources.seeds = seeds;
        let builder = Pipeline::builder().resources(resources);
        let mut pipeline = builder.build(Count::default()).expect("a valid configuration");
        for number in 0..count {
            for mut frame in handshake() {
                let is_client = frame[SOURCE_ADDRESS..SOURCE_ADDRESS + 4] == CLIENT.octets();
                set_client(&mut frame, is_client, number);
                pipeline.frame(&Frame::ethernet(Timestamp::ZERO, &frame));
            }
        }
        let mut segment = tcp((CLIENT, 40_000), (SERVER, 80), &[b'A'; LEN as usize]);
        segment[TCP_SEQ + 4..TCP_SEQ + 8].copy_from_slice(&5001_u32.to_be_bytes());
        Self { pipeline, segment, seq: ISN + 1, number: 0, count }
    }

    /// Sends the next segment of the next connection.
    #[inline]
    pub(crate) fn step(&mut self) {
        set_seq(&mut self.segment, self.seq);
        set_client(&mut self.segment, true, self.number);
        self.pipeline.frame(&Frame::ethernet(Timestamp::ZERO, black_box(&self.segment)));
        self.number += 1;
        if self.number == self.count {
            (self.number, self.seq) = (0, self.seq.wrapping_add(LEN));
        }
    }

    /// Checks that all octets of `step_count` steps were delivered exactly once.
    pub(crate) fn check(&self, step_count: u64) {
        assert_eq!(self.pipeline.sink().0, step_count * u64::from(LEN));
        assert_eq!(self.pipeline.flow_count(), self.count as usize);
        assert_eq!(self.pipeline.stats().sessions.stopped_count, 0);
    }
}

/// Frames with SYN, SYN+ACK and ACK.
pub(crate) fn handshake() -> [Vec<u8>; 3] {
    let (client, server) = ((CLIENT, 40_000), (SERVER, 80));
    [(true, 0x02, ISN, 0), (false, 0x12, 5000, ISN + 1), (true, 0x10, ISN + 1, 5001)].map(
        |(is_client, flags, seq, ack)| {
            let (source, destination) = if is_client { (client, server) } else { (server, client) };
            let mut frame = tcp(source, destination, &[]);
            set_seq(&mut frame, seq);
            frame[TCP_SEQ + 4..TCP_SEQ + 8].copy_from_slice(&u32::to_be_bytes(ack));
            frame[TCP_FLAGS] = flags;
            frame
        },
    )
}

/// Sets the address of the client to the one of connection `number`.
#[inline]
fn set_client(frame: &mut [u8], is_client: bool, number: u32) {
    let position = if is_client { SOURCE_ADDRESS } else { SOURCE_ADDRESS + 4 };
    frame[position..position + 4].copy_from_slice(&(0x0A01_0000 + number).to_be_bytes());
}
