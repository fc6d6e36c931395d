//! Composition of one large trace from many small captures.
//!
//! Each capture begins at a random time within a span, and may be repeated, each time between other hosts. Therefore
//! the trace has as many concurrent flows as a busy link, and packets of real programs.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flowgauge::base::{FrameBatch, LinkType, NANOS_PER_SECOND};
use flowgauge::source::{FileSource, Next, Source};

use crate::cases::Random;
use crate::pcap;
use crate::readdress::readdress;

/// Start time of the trace.
const EPOCH_SECONDS: u64 = 1_750_000_000;

/// Options for a trace. The result depends only on them and on the captures.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of copies of each capture.
    pub copy_count: u16,
    /// Seed of the random start times of captures.
    pub seed: u64,
    /// Maximum duration of the trace. Later packets of a capture are omitted.
    pub span: Duration,
    /// Maximum number of packets in the trace.
    pub packet_count_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { copy_count: 1, seed: 1, span: Duration::from_secs(120), packet_count_max: usize::MAX }
    }
}

/// A packet of a capture.
#[derive(Clone, Debug)]
struct Captured {
    /// Time since the first packet of the capture.
    offset_ns: u64,
    octets: Range<usize>,
    wire_len: u32,
}

/// Packets of a set of captures.
#[derive(Clone, Debug, Default)]
pub struct Captures {
    seen: HashSet<(usize, u64)>,
    octets: Vec<u8>,
    /// One list per capture.
    captures: Vec<Vec<Captured>>,
    /// Skipped files with the reason.
    pub skipped: Vec<(PathBuf, String)>,
}

impl Captures {
    /// Reads a capture, or all files in a folder and its subfolders, in the order of their names. Copies of earlier
    /// files, files that are not captures, and captures without Ethernet frames are skipped.
    ///
    /// # Errors
    ///
    /// If a file or folder cannot be read.
    pub fn add(&mut self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            let mut entries =
                fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
            entries.sort();
            return entries.iter().try_for_each(|entry| self.add(entry));
        }
        let file = fs::read(path)?;
        let mut hasher = DefaultHasher::new();
        file.hash(&mut hasher);
        let reason = if self.seen.insert((file.len(), hasher.finish())) {
            match self.read(path) {
                Ok(0) => "no Ethernet frames".to_owned(),
                Ok(_) => return Ok(()),
                Err(error) => error.to_string(),
            }
        } else {
            "identical to another file".to_owned()
        };
        self.skipped.push((path.to_owned(), reason));
        Ok(())
    }

    fn read(&mut self, path: &Path) -> Result<usize, flowgauge::source::Error> {
        let mut source = FileSource::open(path)?;
        let mut batch = FrameBatch::new();
        let mut packets = Vec::new();
        let mut first = None;
        while source.next_batch(&mut batch)? == Next::Frames {
            for frame in batch.iter().filter(|frame| frame.link_type == LinkType::ETHERNET) {
                let first_ns = *first.get_or_insert(frame.timestamp.as_nanos());
                // Skips packets with a timestamp before the first one.
                let Some(offset_ns) = frame.timestamp.as_nanos().checked_sub(first_ns) else { continue };
                let start = self.octets.len();
                self.octets.extend_from_slice(frame.data);
                packets.push(Captured {
                    offset_ns,
                    octets: start..self.octets.len(),
                    wire_len: frame.wire_len,
                });
            }
        }
        let count = packets.len();
        if count > 0 {
            self.captures.push(packets);
        }
        Ok(count)
    }

    /// Number of captures.
    #[must_use]
    pub fn len(&self) -> usize {
        self.captures.len()
    }

    /// Returns whether there are no captures.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.captures.is_empty()
    }

    /// Writes a trace as classic pcap with microseconds, which all programs read, and returns the numbers of its
    /// packets and octets.
    ///
    /// # Errors
    ///
    /// If the writer fails.
    pub fn write(&self, options: &Options, out: &mut impl Write) -> io::Result<(usize, u64)> {
        let span_ns = options.span.as_nanos() as u64;
        let mut random = Random(options.seed);
        let mut trace: Vec<(u64, u16, &Captured)> = Vec::new();
        for capture in &self.captures {
            for copy in 0..options.copy_count {
                let start_ns = random.next() % span_ns.max(1);
                let placed = capture.iter().map(|packet| (start_ns + packet.offset_ns, copy, packet));
                trace.extend(placed.filter(|(at, ..)| *at < span_ns));
            }
        }
        // A stable sort keeps the order of packets with the same timestamp.
        trace.sort_by_key(|(at, ..)| *at);
        trace.truncate(options.packet_count_max);
        pcap::write_header(out)?;
        let mut frame = Vec::new();
        let mut octet_count = 0;
        for (at, copy, packet) in &trace {
            frame.clear();
            frame.extend_from_slice(&self.octets[packet.octets.clone()]);
            readdress(&mut frame, LinkType::ETHERNET, *copy);
            octet_count += frame.len() as u64;
            pcap::write_packet(out, EPOCH_SECONDS * NANOS_PER_SECOND + at, packet.wire_len, &frame)?;
        }
        Ok((trace.len(), octet_count))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn captures() -> Captures {
        let mut captures = Captures::default();
        captures.add(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data")).expect("readable");
        captures
    }

    fn trace(options: &Options) -> (usize, Vec<u8>) {
        let mut out = Vec::new();
        let (count, _) = captures().write(options, &mut out).expect("writing to a vector succeeds");
        (count, out)
    }

    /// Returns the timestamps of a trace, read with flowgauge.
    fn times(trace: Vec<u8>) -> Vec<u64> {
        let mut source = FileSource::from_reader(Cursor::new(trace)).expect("a capture");
        let (mut batch, mut times) = (FrameBatch::new(), Vec::new());
        while source.next_batch(&mut batch).expect("readable") == Next::Frames {
            times.extend(batch.iter().map(|frame| frame.timestamp.as_nanos()));
        }
        assert!(source.warnings().is_empty());
        times
    }

    #[test]
    fn a_trace_is_in_time_order_within_its_span_and_reproducible() {
        let span = Duration::from_secs(20);
        let options = Options { copy_count: 3, span, ..Options::default() };
        let (count, file) = trace(&options);
        assert_eq!(file, trace(&options).1);
        assert_ne!(file, trace(&Options { seed: 2, ..options }).1);
        let times = times(file);
        assert_eq!(times.len(), count);
        assert!(times.is_sorted());
        assert!(times[count - 1] - EPOCH_SECONDS * NANOS_PER_SECOND < span.as_nanos() as u64);
        assert_eq!(trace(&Options { packet_count_max: 10, ..options }).0, 10);
    }

    #[test]
    fn copies_do_not_share_flows() {
        use flowgauge::{Pipeline, RunOptions};
        // The span is long enough for all packets of each copy.
        let flow_count = |copy_count| {
            let (count, file) =
                trace(&Options { copy_count, span: Duration::from_secs(100_000), ..Options::default() });
            let mut pipeline = Pipeline::builder().build(()).expect("a valid configuration");
            let mut source = FileSource::from_reader(Cursor::new(file)).expect("a capture");
            pipeline.run(&mut source, &RunOptions::default()).expect("readable");
            (count, pipeline.stats().tracker.started_count)
        };
        let (one, three) = (flow_count(1), flow_count(3));
        assert!(one.1 > 10);
        assert_eq!(three, (3 * one.0, 3 * one.1));
    }

    #[test]
    fn a_duplicate_file_is_skipped() {
        let mut captures = captures();
        let (len, skipped_count) = (captures.len(), captures.skipped.len());
        captures
            .add(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/web.pcap"))
            .expect("readable");
        assert_eq!((captures.len(), captures.skipped.len()), (len, skipped_count + 1));
    }
}
