//! Session parsing with a parser without state: tracker, reassembly and session driver together.
//!
//! Segments of 1400 octets of one established connection, in order. The frame is built in advance and its sequence
//! number is set in place.

use std::hint::black_box;

use flowscope::driver::{Driver, Event, SlotHandle, SlotMessage};
use flowscope::extract::{FiveTuple, FiveTupleKey};
use flowscope::{PacketView, SessionParser};

use super::{FLOWGAUGE, FLOWSCOPE, MakeRow};
use crate::cases::session::{Connections, ISN, LEN, handshake};
use crate::cases::{CLIENT, SERVER, TCP_SEQ, set_seq, tcp};
use crate::gopacket::Gopacket;
use crate::interleave::{Contender, Row};

pub(super) fn rows() -> Vec<MakeRow> {
    let make = |_: Option<&Gopacket>| Row::new(vec![ours(), flowscope_contender()]);
    vec![("session_driver/passthrough".to_owned(), Box::new(make))]
}

/// A frame with data, and its sequence number.
struct Data {
    frame: Vec<u8>,
    seq: u32,
}

impl Data {
    fn new() -> Self {
        let mut frame = tcp((CLIENT, 40_000), (SERVER, 80), &[b'A'; LEN as usize]);
        frame[TCP_SEQ + 4..TCP_SEQ + 8].copy_from_slice(&5001_u32.to_be_bytes());
        Self { frame, seq: ISN + 1 }
    }

    #[inline]
    fn next(&mut self) -> &[u8] {
        set_seq(&mut self.frame, self.seq);
        self.seq = self.seq.wrapping_add(LEN);
        black_box(&self.frame)
    }
}

fn ours() -> Contender {
    Contender::new(FLOWGAUGE, Connections::new(1, None), Connections::step, |connections, done| {
        connections.check(done);
    })
}

/// Counts octets in a shared counter that outlives the parser.
#[derive(Clone, Default)]
struct Counting(std::sync::Arc<std::sync::atomic::AtomicU64>);

impl SessionParser for Counting {
    type Message = ();

    fn feed_initiator(&mut self, bytes: &[u8], _: flowscope::Timestamp, _: &mut Vec<()>) {
        self.0.fetch_add(black_box(bytes).len() as u64, std::sync::atomic::Ordering::Relaxed);
    }

    fn feed_responder(&mut self, _: &[u8], _: flowscope::Timestamp, _: &mut Vec<()>) {}
}

struct Theirs {
    data: Data,
    driver: Driver<FiveTuple>,
    slot: SlotHandle<(), FiveTupleKey>,
    events: Vec<Event<FiveTupleKey>>,
    messages: Vec<SlotMessage<(), FiveTupleKey>>,
    parser: Counting,
}

fn flowscope_contender() -> Contender {
    let parser = Counting::default();
    let mut builder = Driver::builder(FiveTuple::bidirectional());
    let slot = builder.session_on_ports(parser.clone(), [80]);
    let driver = builder.build();
    let mut theirs =
        Theirs { data: Data::new(), driver, slot, events: Vec::new(), messages: Vec::new(), parser };
    for frame in &handshake() {
        theirs.driver.track_into(PacketView::new(frame, flowscope::Timestamp::default()), &mut theirs.events);
    }
    let step = |theirs: &mut Theirs| {
        theirs.events.clear();
        let view = PacketView::new(theirs.data.next(), flowscope::Timestamp::default());
        theirs.driver.track_into(view, &mut theirs.events);
        theirs.slot.drain(&mut theirs.messages);
        black_box((&theirs.events, &theirs.messages));
        theirs.messages.clear();
    };
    Contender::new(FLOWSCOPE, theirs, step, |theirs, done| {
        let octet_count = theirs.parser.0.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(octet_count, done * u64::from(LEN));
    })
}
