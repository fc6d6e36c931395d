//! A parser of one's own: messages with two octets of length in front, as DNS has them over TCP (RFC 7766 section 8).
//!
//! cargo run --example length_prefixed -- examples/data/dns.pcap

use std::env;
use std::error::Error;

use flowgauge::pipeline::{Pipeline, SessionSink};
use flowgauge::reassembler::ReassemblerConfig;
use flowgauge::session::{
    About, DriverConfig, Fault, Input, Out, Parser, Progress, Protocol, SessionEvent, StreamOpening, Verdict,
};
use flowgauge::source::FileSource;
use flowgauge::tracker::{Flow, FlowSink, Interest, TrackerConfig};

/// The parser. It keeps nothing: what of a message is not there yet, the driver keeps.
#[derive(Debug, Default)]
struct LengthPrefixed;

impl Parser for LengthPrefixed {
    type Message<'m> = &'m [u8];

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let mut rest = input.bytes;
        while let Some((len, after)) = rest.split_first_chunk() {
            let len = usize::from(u16::from_be_bytes(*len));
            let Some((message, next)) = after.split_at_checked(len) else {
                return Ok(Progress::Needs { taken: input.bytes.len() - rest.len(), need: 2 + len });
            };
            if len < 12 {
                return Err(Fault::new("shorter_than_a_header"));
            }
            out(message);
            rest = next;
        }
        Ok(Progress::Took(input.bytes.len() - rest.len()))
    }
}

static DNS_OVER_TCP: Protocol = Protocol::new("dns_over_tcp").over_streams(&[53], Some(probe));

/// A length of at least a header, then a header that asks one question.
fn probe(opening: &StreamOpening<'_>) -> Verdict {
    match opening.client {
        [high, low, _, _, _, _, 0, 1, ..] => {
            Verdict::of(opening.has_port(53) && u16::from_be_bytes([*high, *low]) >= 12)
        }
        short if short.len() < 8 => Verdict::More,
        _ => Verdict::No,
    }
}

flowgauge::protocols! {
    /// What this program parses: one protocol.
    #[derive(Debug)]
    enum Mine;
    /// What it hears.
    #[derive(Debug)]
    enum Heard;
    parsers { LengthPrefixed: LengthPrefixed = &DNS_OVER_TCP }
    recognised {}
}

struct Print;

impl FlowSink<()> for Print {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }
}

impl SessionSink<Mine, ()> for Print {
    fn message(&mut self, flow: &mut Flow<'_, ()>, about: &About, Heard::LengthPrefixed(bytes): Heard<'_>) {
        println!("{} {} {}: {} octets", about.timestamp, flow.view.key(), about.from.name(), bytes.len());
    }

    fn session(&mut self, flow: &mut Flow<'_, ()>, event: &SessionEvent) {
        if let SessionEvent::Stopped { fault, .. } = event {
            println!("{} {fault}", flow.view.key());
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: length_prefixed FILE")?;
    let config = TrackerConfig::default();
    let (mut streams, mut sessions) = (ReassemblerConfig::default(), DriverConfig::default());
    (streams.budget, sessions.budget) = (config.budget.clone(), config.budget.clone());
    let mut pipeline = Pipeline::new(config)?.with_streams(streams)?.with_sessions(&sessions);
    pipeline.run(&mut FileSource::open(path)?, &mut Print)?;
    println!("{} flows were named", pipeline.session_stats().recognised_count);
    Ok(())
}
