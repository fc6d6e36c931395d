//! Both directions of each HTTP/1 connection as a dialogue: heads in full, bodies by their length. What the capture lacks is
//! said where it is missing.
//!
//! cargo run --example http_dialogue -- examples/data/web.pcap

use std::env;
use std::error::Error;
use std::ops::ControlFlow;

use flowgauge::base::Side;
use flowgauge::pipeline::{Pipeline, StreamSink};
use flowgauge::reassembler::{ReassemblerConfig, StreamEvent};
use flowgauge::source::FileSource;
use flowgauge::tracker::{Flow, FlowSink, Interest, TrackerConfig};

/// Octets of a head at most.
const HEAD_LEN_MAX: usize = 16 << 10;

/// What is known of a direction: lines of the head at hand, or how much of something else went by.
#[derive(Default)]
struct Direction {
    head: Vec<u8>,
    body_len: u64,
}

#[derive(Default)]
struct Dialogue([Direction; 2]);

struct Print;

impl FlowSink<Dialogue> for Print {
    fn interest(&self) -> Interest {
        Interest::STARTS
    }

    fn started(&mut self, flow: &mut Flow<'_, Dialogue>) {
        let key = flow.view.key();
        if ![80, 8080].contains(&key.port(Side::A)) && ![80, 8080].contains(&key.port(Side::B)) {
            flow.mute();
        }
    }
}

impl StreamSink<Dialogue> for Print {
    fn stream(
        &mut self,
        flow: &mut Flow<'_, Dialogue>,
        side: Side,
        event: &StreamEvent<'_>,
    ) -> ControlFlow<()> {
        let arrow = if side == flow.view.initiator() { ">" } else { "<" };
        let key = *flow.view.key();
        let direction = &mut flow.state.0[side.index()];
        match event {
            StreamEvent::Chunk(chunk) => direction.take(chunk.bytes, |line| println!("{key} {arrow} {line}")),
            StreamEvent::Gap(gap) => println!("{key} {arrow} ({} octets are missing)", gap.len),
            StreamEvent::Fin { .. } => direction.tell_body(|line| println!("{key} {arrow} {line}")),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Direction {
    fn take(&mut self, bytes: &[u8], mut say: impl FnMut(&str)) {
        let is_head = |bytes: &[u8]| {
            [&b"GET "[..], b"HEAD ", b"PUT ", b"POST ", b"HTTP/1."].iter().any(|at| bytes.starts_with(at))
        };
        if self.head.is_empty() && !is_head(bytes) {
            self.body_len += bytes.len() as u64;
            return;
        }
        self.tell_body(&mut say);
        self.head.extend_from_slice(bytes);
        while let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") {
            String::from_utf8_lossy(&self.head[..end])
                .lines()
                .for_each(|line| say(&line.escape_debug().to_string()));
            self.head.drain(..end + 4);
            if !is_head(&self.head) {
                self.body_len = self.head.len() as u64;
                self.head.clear();
            }
        }
        if self.head.len() > HEAD_LEN_MAX {
            self.body_len += std::mem::take(&mut self.head).len() as u64;
        }
    }

    fn tell_body(&mut self, mut say: impl FnMut(&str)) {
        match std::mem::take(&mut self.body_len) {
            0 => {}
            len => say(&format!("({len} octets of body)")),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = env::args().nth(1).ok_or("usage: http_dialogue FILE")?;
    let pipeline: Pipeline<_> = Pipeline::new(TrackerConfig::default())?;
    let mut pipeline = pipeline.with_streams(ReassemblerConfig::default())?;
    pipeline.run(&mut FileSource::open(&path)?, &mut Print)?;
    Ok(())
}
