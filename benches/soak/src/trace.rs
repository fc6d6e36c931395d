//! Frames of all captures in time order, in memory.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use flowgauge::base::{Frame, FrameBatch, LinkType, Timestamp};
use flowgauge::source::{FileSource, Next, Source};

use crate::readdress::readdress;

/// Capture time of the first pass.
const EPOCH: Timestamp = Timestamp::from_parts(1_750_000_000, 0);

/// Number of octets in a batch, as in a file source.
const BATCH_LEN: usize = 256 << 10;

struct Captured {
    offset_ns: u64,
    octets: Range<usize>,
    wire_len: u32,
    link_type: LinkType,
    interface: u32,
}

/// Frames of one pass.
pub struct Trace {
    span_ns: u64,
    octets: Vec<u8>,
    frames: Vec<Captured>,
    /// Number of captures with at least one frame.
    pub capture_count: u32,
    /// Number of files that are not captures or hold no frames.
    pub skipped_count: u32,
}

impl Trace {
    /// Creates an empty trace with a duration of `span` per pass.
    pub fn new(span: Duration) -> Self {
        let span_ns = span.as_nanos() as u64;
        Self { span_ns, octets: Vec::new(), frames: Vec::new(), capture_count: 0, skipped_count: 0 }
    }

    /// Reads a capture, or all files in a folder and its subfolders. A damaged capture contributes the frames before
    /// the damage.
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
        // Opened first, so that only unreadable files are errors.
        let file = fs::File::open(path)?;
        let frame_count = FileSource::from_reader(file).map_or(0, |source| self.read(source));
        if frame_count > 0 {
            self.capture_count += 1;
        } else {
            self.skipped_count += 1;
        }
        Ok(())
    }

    fn read(&mut self, mut source: FileSource) -> usize {
        let mut batch = FrameBatch::new();
        let first = self.frames.len();
        let mut base_ns = None;
        let mut latest_ns = 0;
        loop {
            let next = source.next_batch(&mut batch);
            for frame in batch.iter() {
                let base_ns = *base_ns.get_or_insert(frame.timestamp.as_nanos());
                // Frames keep their order where the timestamps of a capture decrease.
                latest_ns = frame.timestamp.as_nanos().saturating_sub(base_ns).max(latest_ns);
                let start = self.octets.len();
                self.octets.extend_from_slice(frame.data);
                self.frames.push(Captured {
                    offset_ns: latest_ns,
                    octets: start..self.octets.len(),
                    wire_len: frame.wire_len,
                    link_type: frame.link_type,
                    interface: frame.interface,
                });
            }
            if !matches!(next, Ok(Next::Frames)) {
                break;
            }
        }
        let read = self.frames.get_mut(first..).unwrap_or_default();
        // Each capture begins at another time within the first half of a pass and is compressed if it is too long.
        let start_ns =
            u64::from(self.capture_count).wrapping_mul(0x9e37_79b9_7f4a_7c15) % (self.span_ns / 2).max(1);
        let rest_ns = self.span_ns - start_ns;
        for frame in read.iter_mut() {
            if latest_ns >= rest_ns {
                let scaled = u128::from(frame.offset_ns) * u128::from(rest_ns - 1) / u128::from(latest_ns);
                frame.offset_ns = scaled as u64;
            }
            frame.offset_ns += start_ns;
        }
        read.len()
    }

    /// Sorts the frames by time. Frames with equal timestamps keep the order of their captures.
    pub fn sorted(mut self) -> Self {
        self.frames.sort_by_key(|frame| frame.offset_ns);
        self
    }

    /// Number of frames in a pass.
    pub const fn len(&self) -> usize {
        self.frames.len()
    }

    /// Captured octets in a pass.
    pub const fn octet_count(&self) -> usize {
        self.octets.len()
    }

    /// Passes the frames in batches to `take` until it returns `false`. Returns whether the pass is complete.
    pub fn pass(
        &self,
        number: u64,
        batch: &mut FrameBatch,
        mut take: impl FnMut(&FrameBatch) -> bool,
    ) -> bool {
        let start = EPOCH.saturating_add(Duration::from_nanos(self.span_ns.saturating_mul(number)));
        let mut data = Vec::with_capacity(1 << 16);
        let mut len = 0;
        batch.clear();
        for frame in &self.frames {
            data.clear();
            data.extend_from_slice(&self.octets[frame.octets.clone()]);
            readdress(&mut data, frame.link_type, number as u16);
            len += data.len();
            batch.push(&Frame {
                timestamp: start.saturating_add(Duration::from_nanos(frame.offset_ns)),
                link_type: frame.link_type,
                data: &data,
                wire_len: frame.wire_len,
                interface: frame.interface,
            });
            if len >= BATCH_LEN {
                if !take(batch) {
                    return false;
                }
                batch.clear();
                len = 0;
            }
        }
        batch.is_empty() || take(batch)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use flowgauge::decode::extractor::{Extractor, KeyPolicy};

    use super::*;

    /// Timestamps and keys of a pass.
    fn pass(trace: &Trace, number: u64) -> (Vec<Timestamp>, HashSet<flowgauge::base::FlowKey>) {
        let extractor = Extractor::new(KeyPolicy::DEFAULT);
        let (mut times, mut keys) = (Vec::new(), HashSet::new());
        let is_complete = trace.pass(number, &mut FrameBatch::new(), |batch| {
            for frame in batch.iter() {
                times.push(frame.timestamp);
                if let Ok(packet) = extractor.extract(&frame) {
                    keys.insert(packet.key);
                }
            }
            true
        });
        assert!(is_complete);
        (times, keys)
    }

    #[test]
    fn each_pass_is_later_and_between_other_addresses() {
        let mut trace = Trace::new(Duration::from_secs(5));
        trace.add(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data")).expect("readable");
        let trace = trace.sorted();
        assert!(trace.capture_count >= 8);
        let passes: Vec<_> = [0, 1, 2, 300].map(|number| pass(&trace, number)).into();
        for ((times, keys), (later_times, later_keys)) in passes.iter().zip(&passes[1..]) {
            assert!(times.is_sorted() && times.len() == trace.len());
            assert!(times.last() < later_times.first());
            assert!(keys.len() > 10 && keys.len() == later_keys.len());
            assert!(keys.is_disjoint(later_keys));
        }
    }
}
