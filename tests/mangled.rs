//! Captures with frames that are truncated at random and have random octets changed: no panic, bounded memory, and all
//! memory released.
//!
//! This is a separate binary, because its allocator counts the memory that is held.

#![cfg(feature = "protocols")]

#[path = "support/heap.rs"]
mod heap;
#[cfg(feature = "serde")]
#[path = "support/message_json.rs"]
mod message_json;

use std::path::{Path, PathBuf};

use flowgauge::base::{Frame, FrameBatch};
use flowgauge::pipeline::{Pipeline, Sessions, Sink};
use flowgauge::protocols::{Message, Standard};
use flowgauge::session::{MessageMeta, SessionEvent};
use flowgauge::source::{FileSource, Next, Source};
use flowgauge::tracker::{Flow, Interest};
#[cfg(feature = "serde")]
use message_json::as_json;

use heap::{held_now, peak_since};

const LIMIT: usize = 16 << 20;

/// Upper bound for other memory: cache, the first table of the index, and memory for the current frame and message.
const FIXED: usize = 4 << 20;

fn captures() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
    let mut all: Vec<_> =
        ["web", "dns", "ssh", "mail", "any"].map(|name| data.join(format!("{name}.pcap"))).into();
    match std::env::var_os("FLOWGAUGE_CORPUS").filter(|root| !root.is_empty()).map(PathBuf::from) {
        None => println!("FLOWGAUGE_CORPUS is not set: only the captures of this crate"),
        Some(root) => {
            let manifest = std::fs::read_to_string(root.join("MANIFEST.tsv")).expect("a manifest");
            let names = manifest.lines().filter(|line| !line.starts_with('#'));
            all.extend(names.map(|line| root.join(line.split('\t').next().expect("a name"))));
        }
    }
    all
}

#[derive(Default)]
struct Count {
    message_count: u64,
    stopped_count: u64,
}

impl Sink for Count {
    type State = ();
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn message(&mut self, _: &mut Flow<'_, ()>, _: &MessageMeta, message: &Message<'_>) {
        // Formatting is checked for panics as well.
        std::hint::black_box(format!("{message:?}"));
        #[cfg(feature = "serde")]
        {
            let value: serde_json::Value =
                serde_json::from_str(&as_json(message)).expect("every message is an object");
            assert!(value["message"].is_string());
        }
        self.message_count += 1;
    }

    fn session(&mut self, _: &mut Flow<'_, ()>, event: &SessionEvent) {
        self.stopped_count += u64::from(matches!(event, SessionEvent::Stopped { .. }));
    }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 11
}

/// Changes up to three octets behind the first headers, and truncates one frame in eight.
fn mangle(data: &mut Vec<u8>, seed: &mut u64) {
    const HEADERS_LEN: u64 = 54;
    for _ in 0..random(seed) % 4 {
        let len = (data.len() as u64).saturating_sub(HEADERS_LEN);
        if len > 0 {
            // Mostly near the start, where parsers recognize protocols.
            let position =
                HEADERS_LEN + random(seed) % if random(seed).is_multiple_of(2) { len.min(64) } else { len };
            data[position as usize] = random(seed) as u8;
        }
    }
    if random(seed).is_multiple_of(8) {
        data.truncate(random(seed) as usize % (data.len() + 1));
    }
}

#[test]
fn mangled_captures_do_no_harm() {
    let mut total = Count::default();
    for path in captures() {
        for round in 1..=3_u64 {
            let Ok(mut source) = FileSource::open(&path) else { continue };
            let mut batch = FrameBatch::new();
            let mut seed = round.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let before = held_now();
            let builder = Pipeline::builder().memory(LIMIT as u64);
            let mut pipeline = builder.build(Count::default()).expect("a valid configuration");
            let mut data = Vec::new();
            while source.next_batch(&mut batch).is_ok_and(|next| next == Next::Frames) {
                for frame in batch.iter() {
                    data.clear();
                    data.extend_from_slice(frame.data);
                    mangle(&mut data, &mut seed);
                    pipeline.frame(&Frame { data: &data, ..frame });
                }
            }
            pipeline.finish();
            assert_eq!(pipeline.stats().sessions.held_bytes, 0, "{}", path.display());
            let peak = peak_since(before);
            assert!(peak < LIMIT + FIXED, "{}: {peak} bytes were held", path.display());
            total.message_count += pipeline.sink().message_count;
            total.stopped_count += pipeline.sink().stopped_count;
        }
    }
    println!("{} messages, {} parsers stopped", total.message_count, total.stopped_count);
    assert!(total.message_count > 500 || captures().len() < 10);
}
