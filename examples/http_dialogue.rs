//! Prints both directions of each HTTP/1 connection as a dialogue: complete heads, the lengths of bodies, and gaps
//! where octets are missing.
//!
//! cargo run --example http_dialogue -- examples/data/web.pcap

use std::env;
use std::ops::ControlFlow;

use flowgauge::{FileSource, Flow, Interest, Pipeline, RunOptions, Side, Sink, StreamEvent, Streams};

/// Maximum length of a head.
const HEAD_LEN_MAX: usize = 16 << 10;

/// State of a direction: the current head, or the length of the body so far.
#[derive(Default)]
struct Direction {
    head: Vec<u8>,
    body_len: u64,
}

#[derive(Default)]
struct Dialogue([Direction; 2]);

struct Print;

impl Sink for Print {
    type State = Dialogue;
    type Stage = Streams;

    fn interest(&self) -> Interest {
        Interest::STARTS
    }

    fn started(&mut self, flow: &mut Flow<'_, Dialogue>) {
        let key = flow.view.key();
        if ![Side::A, Side::B].iter().any(|side| matches!(key.port(*side), Some(80 | 8080))) {
            flow.mute();
        }
    }

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
            StreamEvent::Fin { .. } => direction.print_body(|line| println!("{key} {arrow} {line}")),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Direction {
    fn take(&mut self, bytes: &[u8], mut print: impl FnMut(&str)) {
        let is_head = |bytes: &[u8]| {
            [&b"GET "[..], b"HEAD ", b"PUT ", b"POST ", b"HTTP/1."].iter().any(|at| bytes.starts_with(at))
        };
        if self.head.is_empty() && !is_head(bytes) {
            self.body_len += bytes.len() as u64;
            return;
        }
        self.print_body(&mut print);
        self.head.extend_from_slice(bytes);
        while let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") {
            String::from_utf8_lossy(&self.head[..end])
                .lines()
                .for_each(|line| print(&line.escape_debug().to_string()));
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

    fn print_body(&mut self, mut print: impl FnMut(&str)) {
        match std::mem::take(&mut self.body_len) {
            0 => {}
            len => print(&format!("({len} octets of body)")),
        }
    }
}

fn main() -> Result<(), flowgauge::Error> {
    let path = env::args().nth(1).expect("usage: http_dialogue FILE");
    Pipeline::builder().build(Print)?.run(&mut FileSource::open(path)?, &RunOptions::default())?;
    Ok(())
}
