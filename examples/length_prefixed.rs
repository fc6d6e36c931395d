//! Defines a custom parser for messages with a length prefix of two octets, as in DNS over TCP (RFC 7766 section 8).
//!
//! cargo run --example length_prefixed -- examples/data/dns.pcap

use flowgauge::{
    AfterPdu, Fault, FileSource, Framing, Input, Lane, Out, Parser, Pipeline, Progress, Protocol, RunOptions,
    StreamOpening, Verdict, Width, on_message,
};

/// Two octets of length, then the message, of which all octets are kept.
const FRAMING: Framing = Framing::prefix(Width::U16).keep(65_535);

/// Parser whose only state is the framing: the driver keeps an incomplete message until the rest arrives.
#[derive(Debug, Default)]
struct LengthPrefixed {
    lanes: [Lane; 2],
}

impl Parser for LengthPrefixed {
    type Message<'m> = &'m [u8];

    fn bytes(&mut self, input: &Input<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        input.from.of_mut(&mut self.lanes).cut(&FRAMING, input, &mut |message| {
            if message.len < 12 {
                return Err(Fault::new("shorter_than_a_header"));
            }
            out(message.bytes);
            Ok(AfterPdu::More)
        })
    }
}

static DNS_OVER_TCP: Protocol = Protocol::new("dns_over_tcp").over_streams(&[53], Some(probe));

/// Recognizes a length of at least a header, followed by a header with one question.
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
    /// The set of parsers of this program, which has one parser.
    enum Parsers;
    /// Messages of the parsers.
    enum Message;
    parsers { LengthPrefixed: LengthPrefixed = &DNS_OVER_TCP }
}

fn main() -> Result<(), flowgauge::Error> {
    let path = std::env::args().nth(1).expect("usage: length_prefixed FILE");
    let sink = on_message::<Parsers>(|flow, meta, Message::LengthPrefixed(bytes)| {
        println!("{} {} {}: {} octets", meta.timestamp, flow.key(), meta.from.name(), bytes.len());
    });
    let mut pipeline = Pipeline::builder().build(sink)?;
    let summary = pipeline.run(&mut FileSource::open(path)?, &RunOptions::default())?;
    println!("{} flows were recognized", summary.stats.sessions.recognized_count);
    Ok(())
}
