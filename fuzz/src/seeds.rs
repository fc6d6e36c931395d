//! Seeds of all targets from captures, recorded dialogues and generators.
//!
//! A seed has the format of its target. All targets read their input from the front, so that a seed is a configuration
//! followed by steps. Random parts come from a generator with a fixed seed, so that the seeds are the same every time.

mod dialogues;
mod generated;
mod messages;
mod scripts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use flowgauge::base::{Frame, FrameBatch};
use flowgauge::source::{FileSource, Next, Source};

/// Seeds by the name of their target.
#[derive(Debug, Default)]
pub struct Seeds(BTreeMap<&'static str, Vec<Vec<u8>>>);

impl Seeds {
    fn add(&mut self, target: &'static str, seed: Vec<u8>) {
        self.0.entry(target).or_default().push(seed);
    }

    fn add_all(&mut self, targets: &[&'static str], seed: &[u8]) {
        for target in targets {
            self.add(target, seed.to_vec());
        }
    }

    /// Returns the seeds of a target.
    pub fn of(&self, target: &str) -> impl Iterator<Item = &[u8]> {
        self.0.get(target).into_iter().flatten().map(Vec::as_slice)
    }

    /// Returns each target with the number of its seeds.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.0.iter().map(|(target, seeds)| (*target, seeds.len()))
    }

    /// Writes each seed to a separate file in the folder of its target.
    ///
    /// # Errors
    ///
    /// If a folder or file cannot be written.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        for (target, seeds) in &self.0 {
            let folder = root.join(target);
            fs::create_dir_all(&folder)?;
            for (number, seed) in seeds.iter().enumerate() {
                fs::write(folder.join(format!("seed-{number:04}")), seed)?;
            }
        }
        Ok(())
    }
}

/// Returns the paths of the captures of the repository.
pub fn captures() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = [
        "any.pcap",
        "dns.pcap",
        "lossy.pcap",
        "mail.pcap",
        "raw-tun.pcap",
        "ssh.pcap",
        "vlan.pcapng",
        "web.pcap",
    ];
    let mut captures: Vec<_> = names.iter().map(|name| root.join("examples/data").join(name)).collect();
    captures.push(root.join("tests/data/quic.pcap"));
    captures
}

/// Creates the seeds of all targets, including those from captures.
///
/// # Errors
///
/// If a capture cannot be read.
pub fn make(captures: &[PathBuf]) -> io::Result<Seeds> {
    let mut seeds = Seeds::default();
    generated::add(&mut seeds);
    messages::add_netflow(&mut seeds);
    messages::add_attacks(&mut seeds);
    messages::add_subscriber(&mut seeds);
    messages::add_router(&mut seeds);
    dialogues::add_recorded(&mut seeds)?;
    for path in captures {
        generated::add_file(&mut seeds, &fs::read(path)?);
        messages::add_capture(&mut seeds, path);
        let frames = frames(path)?;
        messages::add_mirrored(&mut seeds, &frames);
        scripts::add(&mut seeds, &frames);
        dialogues::add(&mut seeds, &frames);
    }
    Ok(seeds)
}

/// Reads all frames of a capture.
fn frames(path: &Path) -> io::Result<FrameBatch> {
    let (mut frames, mut batch) = (FrameBatch::new(), FrameBatch::new());
    let mut source = FileSource::open(path).map_err(io::Error::other)?;
    while source.next_batch(&mut batch).map_err(io::Error::other)? != Next::End {
        batch.iter().for_each(|frame: Frame<'_>| frames.push(&frame));
    }
    Ok(frames)
}

/// Pseudorandom numbers that are the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn octets(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}
