//! Captures that are read together use at most their part of the budget, for batches of overlapping files, windows of
//! decompressors, and names of interfaces.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use flowgauge::base::{Budget, FrameBatch, Resources, Timestamp};
use flowgauge::source::{Error, Files, Next, Source, SourceConfig};

use super::heap::{held_now, peak_since};
use super::run_alone;

/// Upper bound for other memory: the caller's batch and its frames, paths, the lists of files, buffers of the system.
const OTHER_BYTES: usize = 3 << 20;

/// A temporary directory that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("flowgauge-budget-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, octets: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, octets).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns a pcap file with one frame of 60 octets per second.
fn pcap(seconds: u32) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut file = words(&[0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 1]);
    for second in 0..seconds {
        file.extend(words(&[second, 0, 60, 60]));
        file.extend([second as u8; 60]);
    }
    file
}

fn block(kind: u32, body: &[u8], file: &mut Vec<u8>) {
    let len = (12 + body.len().next_multiple_of(4)) as u32;
    file.extend(kind.to_le_bytes().into_iter().chain(len.to_le_bytes()));
    file.extend(body);
    file.resize(file.len().next_multiple_of(4), 0);
    file.extend(len.to_le_bytes());
}

fn section(file: &mut Vec<u8>) {
    let body = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    block(0x0a0d_0d0a, &body, file);
}

fn interface(name: &str, file: &mut Vec<u8>) {
    let mut body = vec![1, 0, 0, 0, 0, 0, 1, 0, 2, 0];
    body.extend((name.len() as u16).to_le_bytes());
    body.extend(name.as_bytes());
    block(1, &body, file);
}

fn packet(interface: u32, file: &mut Vec<u8>) {
    let words = [interface, 0, 1_000_000, 4, 4].into_iter().flat_map(u32::to_le_bytes);
    block(6, &words.chain([1, 2, 3, 4]).collect::<Vec<_>>(), file);
}

/// The result of reading captures.
struct Outcome {
    frame_count: u64,
    interface_count: usize,
    unnamed_count: u64,
    errors: Vec<Error>,
    /// Peak of allocated memory.
    peak: usize,
    budget: Budget,
}

fn read(paths: &[PathBuf], limit: u64) -> Outcome {
    let budget = Budget::new(limit);
    let config = SourceConfig::from(Resources::default().with_budget(budget.clone()));
    let before = held_now();
    let mut errors = Vec::new();
    let mut files = Files::open_readable(paths, config, |error| errors.push(error));
    let (mut batch, mut latest) = (FrameBatch::new(), Timestamp::ZERO);
    loop {
        let next = files.next_batch(&mut batch);
        for frame in batch.iter() {
            assert!(frame.timestamp >= latest, "frames are in the order of time");
            latest = frame.timestamp;
            assert!((frame.interface as usize) < files.interfaces().len());
        }
        match next {
            Ok(Next::End(_)) => break,
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    assert_eq!(files.warnings(), []);
    let peak = peak_since(before);
    let stats = files.stats();
    let interface_count = files.interfaces().len();
    drop((files, batch));
    assert_eq!(budget.held(), 0);
    assert!(budget.peak() <= limit / 4, "{} of {limit}", budget.peak());
    assert!(peak <= limit as usize / 4 + OTHER_BYTES, "{peak} allocated of {limit}");
    let (frame_count, unnamed_count) = (stats.frame_count, stats.unnamed_interface_count);
    Outcome { frame_count, interface_count, unnamed_count, errors, peak, budget }
}

#[test]
fn overlapping_files_share_one_limit() {
    let _guard = run_alone();
    let folder = Folder::new();
    let file = pcap(800);
    let paths: Vec<_> = (0..300).map(|number| folder.file(&format!("{number}.pcap"), &file)).collect();
    // With memory for full batches, and with memory for the smallest batches.
    for limit in [1 << 30, 32 << 20] {
        let outcome = read(&paths, limit);
        assert_eq!((outcome.frame_count, outcome.errors.len(), outcome.interface_count), (300 * 800, 0, 1));
        println!("{} allocated, {} charged of {limit}", outcome.peak, outcome.budget.peak());
    }
    // With memory for a few files only: these are read, and the errors name the others.
    let outcome = read(&paths, 1 << 20);
    assert!(!outcome.errors.is_empty() && outcome.frame_count >= 10 * 800, "{}", outcome.frame_count);
    assert!(outcome.errors.iter().all(|error| matches!(error, Error::Memory { max_bytes: 262_144, .. })));
}

#[test]
fn interface_names_are_held_once_and_within_the_limit() {
    const COUNT: u32 = 20_000;
    let _guard = run_alone();
    let folder = Folder::new();
    let described = |file_number: u32| {
        let mut file = Vec::new();
        section(&mut file);
        (0..COUNT).for_each(|number| interface(&format!("{file_number}-{number:0250}"), &mut file));
        (0..100).for_each(|number| packet(COUNT - 1 - number, &mut file));
        file
    };
    let equal_names: Vec<_> =
        (0..4).map(|number| folder.file(&format!("equal_names-{number}"), &described(0))).collect();
    let outcome = read(&equal_names, 1 << 30);
    assert_eq!((outcome.frame_count, outcome.errors.len()), (400, 0));
    assert_eq!((outcome.interface_count, outcome.unnamed_count), (COUNT as usize, 0));
    // The names and their table once, and the memory that one file at a time needs to read its frames.
    assert!(outcome.peak <= COUNT as usize * 800 + OTHER_BYTES, "{}", outcome.peak);

    let different_names: Vec<_> =
        (0..4).map(|number| folder.file(&format!("different_names-{number}"), &described(number))).collect();
    let outcome = read(&different_names, 1 << 30);
    assert_eq!((outcome.frame_count, outcome.errors.len()), (400, 0));
    assert_eq!((outcome.interface_count, outcome.unnamed_count), (65_536, 4 * u64::from(COUNT) - 65_535));
    // With less memory, fewer interfaces have names, and every frame is read.
    let outcome = read(&different_names, 32 << 20);
    assert_eq!((outcome.frame_count, outcome.errors.len()), (400, 0));
    assert!(outcome.unnamed_count > 50_000 && outcome.interface_count > 1000, "{}", outcome.interface_count);
}

#[test]
fn a_file_with_many_sections_is_read_completely() {
    const COUNT: u32 = 70_000;
    let _guard = run_alone();
    let folder = Folder::new();
    for (has_distinct_names, interface_count) in [(false, 1), (true, 65_536)] {
        let mut file = Vec::new();
        for number in 0..COUNT {
            section(&mut file);
            interface(
                if has_distinct_names { number.to_string() } else { "eth0".to_owned() }.as_str(),
                &mut file,
            );
            packet(0, &mut file);
        }
        let path = folder.file("long.pcapng", &file);
        drop(file);
        let outcome = read(&[path], 1 << 30);
        assert_eq!((outcome.frame_count, outcome.errors.len()), (COUNT.into(), 0));
        assert_eq!(outcome.interface_count, interface_count);
    }
}

/// The decompressor allocates windows outside of this binary's allocator, so that the test checks the charged memory.
#[cfg(feature = "compression")]
#[test]
fn windows_of_decompressors_are_charged() {
    const WINDOW: u64 = 8 << 20;
    let _guard = run_alone();
    let folder = Folder::new();
    // Raw blocks under a window of 8 MiB (RFC 8878 section 3.1.1).
    let mut packed = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x68];
    let content = pcap(800);
    let mut chunks = content.chunks(1000).peekable();
    while let Some(chunk) = chunks.next() {
        let header = (chunk.len() as u32) << 3 | u32::from(chunks.peek().is_none());
        packed.extend(&header.to_le_bytes()[..3]);
        packed.extend(chunk);
    }
    let paths: Vec<_> = (0..20).map(|number| folder.file(&format!("{number}.zst"), &packed)).collect();
    let outcome = read(&paths, 1 << 30);
    assert_eq!((outcome.frame_count, outcome.errors.len()), (20 * 800, 0));
    assert!(outcome.budget.peak() >= 20 * WINDOW, "{}", outcome.budget.peak());
    // With memory for two windows, the errors name the other files.
    let outcome = read(&paths, 80 << 20);
    assert_eq!((outcome.frame_count, outcome.errors.len()), (2 * 800, 18));
    assert!(outcome.errors.iter().all(|error| matches!(error, Error::Memory { .. })), "{:?}", outcome.errors);
    // Layers that use all remaining memory leave the memory that is reserved for the first files.
    let budget = Budget::new(1 << 30);
    let mut files = Files::open_with(&paths, Resources::default().with_budget(budget.clone())).unwrap();
    assert!(budget.held_by(flowgauge::base::Account::Sources) >= 16 * WINDOW);
    assert!(budget.charge(flowgauge::base::Account::Flows, budget.limit() - budget.held()));
    let (mut batch, mut frame_count, mut error_count) = (FrameBatch::new(), 0, 0);
    loop {
        let next = files.next_batch(&mut batch);
        frame_count += batch.len();
        match next {
            Ok(Next::End(_)) => break,
            next => error_count += u32::from(next.is_err()),
        }
    }
    assert_eq!((frame_count, error_count), (16 * 800, 4));
}
