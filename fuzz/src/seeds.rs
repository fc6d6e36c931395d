//! Seeds of all targets from captures, recorded dialogues and generators.
//!
//! A seed has the format of its target. All targets read their input from the front, so that a seed is a configuration
//! followed by steps. Random parts come from a generator with a fixed seed, so that the seeds are the same every time.

mod checkpoints;
mod dialogues;
mod generated;
mod messages;
mod random;
mod scripts;
mod store;

use std::path::{Path, PathBuf};
use std::{fs, io};

use flowgauge::base::{Frame, FrameBatch};
use flowgauge::source::{FileSource, Source};

pub use store::Seeds;

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
    dialogues::add_cases(&mut seeds);
    dialogues::add_recorded(&mut seeds)?;
    for path in captures {
        generated::add_file(&mut seeds, &fs::read(path)?);
        messages::add_capture(&mut seeds, path);
        let frames = frames(path)?;
        messages::add_mirrored(&mut seeds, &frames);
        scripts::add(&mut seeds, &frames);
        checkpoints::add(&mut seeds, &frames);
        dialogues::add(&mut seeds, &frames);
    }
    Ok(seeds)
}

/// Reads all frames of a capture.
fn frames(path: &Path) -> io::Result<FrameBatch> {
    let (mut frames, mut batch) = (FrameBatch::new(), FrameBatch::new());
    let mut source = FileSource::open(path).map_err(io::Error::other)?;
    while !source.next_batch(&mut batch).map_err(io::Error::other)?.is_end() {
        batch.iter().for_each(|frame: Frame<'_>| frames.push(&frame));
    }
    Ok(frames)
}
