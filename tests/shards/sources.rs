//! Captures as sources with batches of any size.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flowgauge::base::{Frame, FrameBatch, Timestamp};
use flowgauge::source::{End, Error, FileSource, Next, Source};

/// A source with the frames of a file, with changed times and batches of a fixed size.
pub(crate) struct Rebatched {
    pub(crate) frames: FrameBatch,
    pub(crate) at: usize,
    pub(crate) size: usize,
}

impl Rebatched {
    /// Reads a file. `jitter` delays each frame by up to that many nanoseconds, so that many are out of order.
    pub(crate) fn new(path: &Path, size: usize, jitter: u64) -> Option<Self> {
        let mut source = FileSource::open(path).ok()?;
        let (mut frames, mut batch) = (FrameBatch::new(), FrameBatch::new());
        let mut random = 88_172_645_463_325_252_u64;
        while !source.next_batch(&mut batch).ok()?.is_end() {
            for frame in batch.iter() {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let nanos =
                    frame.timestamp.as_nanos().saturating_add(if jitter == 0 { 0 } else { random % jitter });
                frames.push(&Frame { timestamp: Timestamp::from_nanos(nanos), ..frame });
            }
        }
        Some(Self { frames, at: 0, size })
    }
}

impl Rebatched {
    /// Moves every `every`th frame ten years ahead.
    pub(crate) fn with_spikes(self, every: usize) -> Self {
        const TEN_YEARS: Duration = Duration::from_secs(10 * 365 * 86_400);
        let mut frames = FrameBatch::new();
        for (position, frame) in self.frames.iter().enumerate() {
            let is_spike = position % every == every - 1;
            let timestamp =
                if is_spike { frame.timestamp.saturating_add(TEN_YEARS) } else { frame.timestamp };
            frames.push(&Frame { timestamp, ..frame });
        }
        Self { frames, ..self }
    }

    /// Removes every `every`th frame that is long enough to have octets of a stream.
    #[cfg(feature = "protocols")]
    pub(crate) fn without(self, every: usize) -> Self {
        const HEADERS_LEN: usize = 100;
        let (mut frames, mut long_count) = (FrameBatch::new(), 0);
        for frame in self.frames.iter() {
            long_count += usize::from(frame.data.len() > HEADERS_LEN);
            if frame.data.len() <= HEADERS_LEN || long_count % every != 0 {
                frames.push(&frame);
            }
        }
        Self { frames, ..self }
    }
}

impl Source for Rebatched {
    fn next_batch(&mut self, batch: &mut FrameBatch) -> Result<Next, Error> {
        batch.clear();
        let end = (self.at + self.size).min(self.frames.len());
        (self.at..end).filter_map(|position| self.frames.get(position)).for_each(|frame| batch.push(&frame));
        self.at = end;
        Ok(if batch.is_empty() { Next::End(End::Complete) } else { Next::Frames })
    }
}

pub(crate) fn captures() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data");
    let mut all: Vec<_> = ["web", "transfer", "dns", "ssh", "mail", "lossy", "any", "raw-tun"]
        .map(|name| data.join(format!("{name}.pcap")))
        .into();
    all.push(data.join("vlan.pcapng"));
    match std::env::var_os("FLOWGAUGE_CORPUS").filter(|root| !root.is_empty()).map(PathBuf::from) {
        None => println!("FLOWGAUGE_CORPUS is not set: this test uses only the captures of this crate"),
        Some(root) => {
            let manifest = std::fs::read_to_string(root.join("MANIFEST.tsv")).expect("a manifest");
            let names = manifest.lines().filter(|line| !line.starts_with('#'));
            all.extend(names.map(|line| root.join(line.split('\t').next().expect("a name"))));
        }
    }
    all
}
