//! Captures whose frames are cut at random places and have random octets changed: no panic, memory bounded, and all of it given
//! back.
//!
//! A binary of its own: its allocator counts the octets that are held.

#![cfg(feature = "protocols")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use flowgauge::base::{Budget, Frame, FrameBatch};
use flowgauge::pipeline::{Pipeline, SessionPipeline, SessionSink};
use flowgauge::reassembler::ReassemblerConfig;
use flowgauge::session::{About, DriverConfig, Message, SessionEvent, Standard};
use flowgauge::source::{FileSource, Source};
use flowgauge::tracker::{Flow, FlowSink, Interest, TrackerConfig};

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

struct Weighing;

// SAFETY: every call goes to `System` with the arguments that it was given, so that its guarantees are those of
// `System`. The counts are atomic integers, which neither allocate nor unwind.
#[allow(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Weighing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps the promises of `GlobalAlloc::alloc`, which are those of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above; `block` came from `System`, since all allocations do.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Weighing = Weighing;

const LIMIT: usize = 16 << 20;

/// What may be held besides: hot cache, the first table of the index, what the frame and the message at hand need.
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

impl FlowSink<()> for Count {
    fn interest(&self) -> Interest {
        Interest::ENDS
    }
}

impl SessionSink<Standard, ()> for Count {
    fn message(&mut self, _: &mut Flow<'_, ()>, _: &About, message: Message<'_>) {
        // What is said of it is a part of what may panic.
        std::hint::black_box(format!("{message:?}"));
        #[cfg(feature = "serde")]
        serde_json::to_value(&message).expect("every message is an object");
        self.message_count += 1;
    }

    fn session(&mut self, _: &mut Flow<'_, ()>, event: &SessionEvent) {
        self.stopped_count += u64::from(matches!(event, SessionEvent::Stopped { .. }));
    }
}

fn pipeline() -> SessionPipeline<Standard, ()> {
    let mut config = TrackerConfig::default();
    let budget = Budget::new(LIMIT as u64);
    config.budget = budget.clone();
    let (mut streams, mut sessions) = (ReassemblerConfig::default(), DriverConfig::default());
    (streams.budget, sessions.budget) = (budget.clone(), budget);
    let pipeline = Pipeline::new(config).expect("a sound configuration");
    pipeline.with_streams(streams).expect("a sound configuration").with_sessions(&sessions)
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 11
}

/// Changes up to three octets behind the first headers, and cuts one frame in eight.
fn mangle(data: &mut Vec<u8>, seed: &mut u64) {
    const HEADERS_LEN: u64 = 54;
    for _ in 0..random(seed) % 4 {
        let room = (data.len() as u64).saturating_sub(HEADERS_LEN);
        if room > 0 {
            // Mostly near the start, where parsers decide.
            let place =
                HEADERS_LEN + random(seed) % if random(seed).is_multiple_of(2) { room.min(64) } else { room };
            data[place as usize] = random(seed) as u8;
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
            let mut sink = Count::default();
            let before = HELD.load(Relaxed);
            PEAK.store(before, Relaxed);
            let mut pipeline = pipeline();
            let mut data = Vec::new();
            while source.next_batch(&mut batch).is_ok_and(|is_more| is_more) {
                for frame in batch.iter() {
                    data.clear();
                    data.extend_from_slice(frame.data);
                    mangle(&mut data, &mut seed);
                    pipeline.frame(&Frame { data: &data, ..frame }, &mut sink);
                }
            }
            pipeline.finish(&mut sink);
            assert_eq!(pipeline.session_stats().held_bytes, 0, "{}", path.display());
            let peak = PEAK.load(Relaxed) - before;
            assert!(peak < LIMIT + FIXED, "{}: {peak} octets were held", path.display());
            total.message_count += sink.message_count;
            total.stopped_count += sink.stopped_count;
        }
    }
    println!("{} messages, {} parsers gave up", total.message_count, total.stopped_count);
    assert!(total.message_count > 500 || captures().len() < 10);
}
