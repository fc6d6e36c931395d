//! Named pipes: a stop handle ends a read that waits for data, and a capture in pieces reads like a file.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use flowgauge::source::{End, Error};
use flowgauge::{
    FileSource, Files, FrameBatch, Next, Pipeline, Records, RunEnd, RunOptions, Source, SourceConfig,
    StopHandle,
};

/// Named pipe in its own directory.
struct Fifo {
    folder: PathBuf,
}

impl Fifo {
    /// Creates a pipe; prints a message and returns `None` if the program `mkfifo` is missing.
    fn new() -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let folder = std::env::temp_dir().join(format!("flowgauge-pipes-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        let fifo = Self { folder };
        match Command::new("mkfifo").arg(fifo.path()).status() {
            Ok(status) if status.success() => Some(fifo),
            outcome => {
                println!("skipped: mkfifo: {outcome:?}");
                None
            }
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("capture")
    }

    /// Writes pieces, with a pause before each, then closes the pipe.
    fn written(&self, pieces: Vec<Vec<u8>>, pause: Duration) -> JoinHandle<()> {
        let path = self.path();
        spawn(move || {
            let mut pipe = File::options().write(true).open(path).expect("a reader");
            for piece in pieces {
                sleep(pause);
                pipe.write_all(&piece).expect("a reader");
            }
            sleep(pause);
        })
    }
}

impl Drop for Fifo {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name)).expect("a capture")
}

fn stoppable(stop: &StopHandle) -> SourceConfig {
    let mut config = SourceConfig::default();
    config.stop = Some(stop.clone());
    config
}

/// Runs a call on another thread, and sets the stop handle after a pause. Returns the result of the call, which must
/// end soon after that: a call that does not notice the handle waits for ever.
fn stopped_after<T: Send + 'static>(
    pause: Duration,
    call: impl FnOnce(StopHandle) -> T + Send + 'static,
) -> T {
    let stop = StopHandle::new();
    let handle = stop.clone();
    let thread = spawn(move || call(handle));
    sleep(pause);
    assert!(!thread.is_finished(), "the call ended before the handle was set");
    stop.stop();
    let start = Instant::now();
    while !thread.is_finished() && start.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(5));
    }
    assert!(thread.is_finished(), "the handle was not noticed");
    thread.join().expect("no panic")
}

const PAUSE: Duration = Duration::from_millis(250);

#[test]
fn a_stop_handle_ends_reading_of_a_pipe_without_a_writer() {
    let Some(fifo) = Fifo::new() else { return };
    // There is no capture: the source may return an error or the end, but no frames.
    let path = fifo.path();
    stopped_after(PAUSE, move |stop| {
        if let Ok(mut source) = FileSource::open_with(path, stoppable(&stop)) {
            assert_eq!(source.next_batch(&mut FrameBatch::new()).unwrap(), Next::End(End::Stopped));
        }
    });
    // The same with the pipe as one of several inputs.
    let path = fifo.path();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/dns.pcap");
    stopped_after(PAUSE, move |stop| {
        if let Ok(mut source) = Files::open_with([path, file], stoppable(&stop)) {
            assert_eq!(source.next_batch(&mut FrameBatch::new()).unwrap(), Next::End(End::Stopped));
        }
    });
}

#[test]
fn a_stop_handle_ends_an_idle_pipe_and_records_all_flows() {
    let whole = data("web.pcap");
    // Nothing, part of the magic number, only the header, and records of which the last one is incomplete.
    for len in [0, 3, 24, 20_000] {
        let Some(fifo) = Fifo::new() else { return };
        let pipe = File::options().read(true).write(true).open(fifo.path()).expect("a pipe");
        (&pipe).write_all(&whole[..len]).expect("space in the pipe");
        let path = fifo.path();
        let outcome = stopped_after(PAUSE, move |stop| {
            let mut source = FileSource::open_with(path, stoppable(&stop)).ok()?;
            let mut count = 0;
            let sink = Records::new(|_| count += 1);
            let mut pipeline = Pipeline::builder().build(sink).unwrap();
            let summary = pipeline.run(&mut source, &RunOptions::default().stop(stop)).unwrap();
            drop(pipeline);
            assert_eq!(source.warnings(), [], "a stop by the handle causes no warning");
            Some((summary.end, summary.stats.tracker.started_count, summary.stats.frame_count, count))
        });
        drop(pipe);
        let Some((end, started_count, frame_count, record_count)) = outcome else {
            assert!(len < 24, "a capture of {len} octets is not recognized");
            continue;
        };
        assert_eq!((end, record_count), (RunEnd::Stopped, started_count), "{len} octets");
        assert_eq!(frame_count > 10, len > 24, "{len} octets: {frame_count} frames");
    }
}

/// Copies the frames of a source, and counts batches without frames.
struct Tee<S> {
    source: S,
    frames: Vec<(u64, u32, Vec<u8>)>,
    empty_count: usize,
}

impl<S: Source> Source for Tee<S> {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        let next = self.source.next_batch(batch)?;
        self.empty_count += usize::from(next == Next::Frames && batch.is_empty());
        let kept =
            batch.iter().map(|frame| (frame.timestamp.as_nanos(), frame.wire_len, frame.data.to_vec()));
        self.frames.extend(kept);
        Ok(next)
    }

    flowgauge::forward_source!(source);
}

/// Results of reading a capture.
#[derive(Debug, PartialEq)]
struct Outcome {
    frames: Vec<(u64, u32, Vec<u8>)>,
    records: Vec<String>,
    frame_count: u64,
    warning_count: usize,
    interfaces: String,
}

/// Reads a capture, and returns the results and the number of empty batches.
fn read(source: impl Source) -> (Outcome, usize) {
    let mut tee = Tee { source, frames: Vec::new(), empty_count: 0 };
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(format!("{record:?}")));
    let mut pipeline = Pipeline::builder().build(sink).unwrap();
    let summary = pipeline.run(&mut tee, &RunOptions::default()).unwrap();
    drop(pipeline);
    assert_eq!(summary.end, RunEnd::EndOfInput);
    let (warning_count, interfaces) = (tee.warnings().len(), format!("{:?}", tee.interfaces()));
    let frame_count = summary.stats.frame_count;
    (Outcome { frames: tee.frames, records, frame_count, warning_count, interfaces }, tee.empty_count)
}

/// Splits octets at the given positions and at eighths of the length, rounded to odd positions.
fn pieces(octets: &[u8], mut splits: Vec<usize>) -> Vec<Vec<u8>> {
    splits.extend((1..8).map(|part| (octets.len() * part / 8) | 1));
    splits.retain(|split| (1..octets.len()).contains(split));
    splits.sort_unstable();
    splits.dedup();
    let starts = [0].into_iter().chain(splits.iter().copied());
    let ends = splits.iter().copied().chain([octets.len()]);
    starts.zip(ends).map(|(start, end)| octets[start..end].to_vec()).collect()
}

/// Compares the results of reading octets in pieces through a pipe with those of reading them from a file.
fn compare(name: &'static str, octets: Vec<u8>, splits: Vec<usize>) -> Option<JoinHandle<()>> {
    let fifo = Fifo::new()?;
    Some(spawn(move || {
        let file = fifo.folder.join("file");
        std::fs::write(&file, &octets).unwrap();
        let (whole, _) = read(FileSource::open(&file).unwrap());
        assert!(whole.frames.len() > 100 && whole.warning_count == 0, "{name}");
        let pieces = pieces(&octets, splits);
        let piece_count = pieces.len();
        let writer = fifo.written(pieces, Duration::from_millis(75));
        let (piped, empty_count) = read(FileSource::open(fifo.path()).unwrap());
        writer.join().unwrap();
        assert!(piped == whole, "{name}: {} of {} frames", piped.frames.len(), whole.frames.len());
        assert!(empty_count > 5, "{name}: {empty_count} empty batches with {piece_count} pieces");
    }))
}

#[test]
fn a_capture_in_pieces_with_pauses_reads_like_a_file() {
    let (pcap, pcapng) = (data("dns.pcap"), data("vlan.pcapng"));
    #[cfg_attr(not(feature = "compression"), expect(unused_mut, reason = "no input is compressed"))]
    let mut forms = vec![
        // Splits within the magic number, the file header, the header of a record, and its octets.
        ("pcap", pcap.clone(), vec![1, 3, 4, 11, 23, 24, 25, 39, 40, 41, 77, 1001]),
        ("pcapng", pcapng.clone(), vec![1, 4, 5, 11, 12, 27, 28, 29, 61, 333, 1001]),
    ];
    #[cfg(feature = "compression")]
    {
        let gzip = |octets: &[u8]| {
            let mut writer = flate2::GzBuilder::new()
                .filename("capture")
                .comment("in pieces")
                .write(Vec::new(), flate2::Compression::default());
            writer.write_all(octets).unwrap();
            writer.finish().unwrap()
        };
        let zstd = |octets: &[u8]| {
            let mut writer = zstd::Encoder::new(Vec::new(), 3).unwrap();
            writer.include_checksum(true).unwrap();
            writer.write_all(octets).unwrap();
            writer.finish().unwrap()
        };
        // Two members or frames, split within their headers, at their ends, and within their octets.
        type Compress<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
        let compressed: [(_, Compress<'_>); 2] = [("gzip", &gzip), ("zstd", &zstd)];
        for (name, compress) in compressed {
            let (head, tail) = pcap.split_at(pcap.len() / 2 + 5);
            let (head, tail) = (compress(head), compress(tail));
            let (boundary, end) = (head.len(), head.len() + tail.len());
            let mut splits = vec![1, 3, 4, 5, 7, 9, 11, 13, 16, 19, 23, 31, 1001];
            splits.extend([
                boundary - 9,
                boundary - 7,
                boundary - 3,
                boundary - 1,
                boundary,
                boundary + 1,
                boundary + 3,
                boundary + 5,
            ]);
            splits.extend([
                boundary + 9,
                boundary + 11,
                boundary + 15,
                boundary + 20,
                end - 9,
                end - 5,
                end - 3,
                end - 1,
            ]);
            forms.push((name, [head, tail].concat(), splits));
        }
    }
    let running: Vec<_> =
        forms.into_iter().filter_map(|(name, octets, splits)| compare(name, octets, splits)).collect();
    for thread in running {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}
