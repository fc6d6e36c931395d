//! The summary of a capture: short connections, and packets whose source is another one each.

use std::net::Ipv4Addr;

use flowgauge::base::{Frame, Resources, Timestamp};
use flowgauge::pipeline::{Pipeline, Transactions};
use flowgauge_summary::Collector;

use super::frames::{ACK, Frames, SYN, segment};
use crate::SEEDS;
use crate::cases::{SERVER, udp};

/// A pipeline that collects the facts of frames.
pub(crate) struct Summarizing {
    pipeline: Pipeline<Transactions<Collector>>,
    frames: Vec<&'static [u8]>,
}

pub(crate) fn summarizing(make: fn() -> Frames) -> Summarizing {
    let builder = Pipeline::builder().resources(Resources::default().with_seeds(SEEDS)).encapsulation(true);
    let pipeline = builder.build(Transactions::new(Collector::default())).expect("a valid configuration");
    Summarizing { pipeline, frames: make().leaked() }
}

pub(crate) fn summarized(summarizing: Summarizing) {
    let facts = &summarizing.pipeline.sink().inner().facts;
    assert!(
        facts.packet_count[0] as usize == summarizing.frames.len() && facts.conversations.iter().count() > 0
    );
}

impl Summarizing {
    pub(crate) fn summarize(mut self) -> Self {
        for (frame, number) in self.frames.iter().zip(1..) {
            let time = Timestamp::from_nanos(1_000_000_000 + 1000 * number);
            self.pipeline.frame(&Frame::ethernet(time, frame));
        }
        self.pipeline.finish();
        self
    }
}

fn peer(number: u32) -> (Ipv4Addr, u16) {
    (Ipv4Addr::from(0x0a20_0000 + number), 40_000)
}

/// Connections of eight segments with a request and its response, four connections at a time.
pub(crate) fn benign() -> Frames {
    const REQUEST: &[u8] =
        b"GET /index.html HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: a browser\r\nAccept: */*\r\n\r\n";
    const RESPONSE: &[u8] =
        b"HTTP/1.1 200 OK\r\nServer: a server\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
    let (request_end, response_end) = (1 + REQUEST.len() as u32, 1 + RESPONSE.len() as u32);
    let steps: [(bool, u8, &[u8], u32, u32); 8] = [
        (true, SYN, &[], 0, 0),
        (false, SYN | ACK, &[], 0, 1),
        (true, ACK, &[], 1, 1),
        (true, ACK, REQUEST, 1, 1),
        (false, ACK, RESPONSE, 1, request_end),
        (true, ACK | 1, &[], request_end, response_end),
        (false, ACK | 1, &[], response_end, request_end + 1),
        (true, ACK, &[], request_end + 1, response_end + 1),
    ];
    Frames::filled(|number| {
        let flow = number / 32 * 4 + number % 4;
        let (is_client, flags, payload, seq, ack) = steps[(number / 4 % 8) as usize];
        let ends = (peer(flow), (SERVER, 80));
        let ends = if is_client { ends } else { (ends.1, ends.0) };
        segment(ends, flags, (seq, ack), payload)
    })
}

/// Handshakes of different hosts.
pub(crate) fn spoofed_handshakes() -> Frames {
    Frames::filled(|number| segment((peer(number), (SERVER, 443)), SYN, (number, 0), &[]))
}

/// Short datagrams between different hosts.
pub(crate) fn spoofed_datagrams() -> Frames {
    Frames::filled(|number| udp(peer(number), (Ipv4Addr::from(0x0a40_0000 + number), 9), &[0; 4]))
}

/// Queries of different hosts for different names.
pub(crate) fn spoofed_queries() -> Frames {
    Frames::filled(|number| {
        let mut query = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 6];
        query.extend(format!("{number:06}").bytes());
        query.extend([0, 0, 1, 0, 1]);
        udp(peer(number), (SERVER, 53), &query)
    })
}
