//! Every capture of the corpus yields as many frames as independent programs count in it.

use std::path::{Path, PathBuf};

use flowgauge::base::{FrameBatch, Limits};
use flowgauge::source::{FileSource, Files, Next, Source};

/// Returns the folder of the corpus, or prints a note and returns `None` if the variable is not set.
fn corpus() -> Option<PathBuf> {
    let path = std::env::var_os("FLOWGAUGE_CORPUS").filter(|name| !name.is_empty()).map(PathBuf::from);
    if path.is_none() {
        println!("skipped: FLOWGAUGE_CORPUS is not set");
    }
    path
}

/// Returns the files of the corpus and their numbers of packets, from its manifest.
fn captures(corpus: &Path) -> Vec<(PathBuf, u64)> {
    let manifest = std::fs::read_to_string(corpus.join("MANIFEST.tsv")).expect("a manifest in the corpus");
    let rows = manifest.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let mut columns = row.split('\t');
        let path = corpus.join(columns.next().expect("a file"));
        let packets = columns.nth(1).and_then(|packets| packets.parse().ok()).expect("a number of packets");
        (path, packets)
    })
    .collect()
}

#[test]
fn every_capture_yields_the_frame_count_of_the_manifest() {
    let Some(corpus) = corpus() else { return };
    let mut batch = FrameBatch::new();
    let (mut files, mut differing) = (0, Vec::new());
    for (path, packets) in captures(&corpus) {
        let mut source = match FileSource::open(&path) {
            Ok(source) => source,
            Err(error) => {
                differing.push(error.to_string());
                continue;
            }
        };
        let (mut frames, mut octets) = (0, 0);
        while source.next_batch(&mut batch).expect("a readable file") == Next::Frames {
            frames += batch.len() as u64;
            octets += batch.iter().map(|frame| frame.data.len() as u64).sum::<u64>();
            let interfaces = source.interfaces().len();
            assert!(batch.iter().all(|frame| (frame.interface as usize) < interfaces));
        }
        for warning in source.warnings() {
            println!("{warning}");
        }
        if frames != packets {
            differing.push(format!("{}: {frames} frames, the manifest has {packets}", path.display()));
        }
        assert_eq!((source.stats().frame_count, source.stats().captured_octet_count), (frames, octets));
        if source.warnings().is_empty() {
            assert_eq!(Some(source.progress()), source.total_len(), "{}", path.display());
        }
        files += 1;
    }
    println!("{files} captures");
    assert!(files > 0 && differing.is_empty(), "{differing:#?}");
}

#[test]
fn all_captures_of_the_corpus_can_be_merged() {
    let Some(corpus) = corpus() else { return };
    let captures = captures(&corpus);
    let total: u64 = captures.iter().map(|(_, packets)| packets).sum();
    let mut limits = Limits::DEFAULT;
    for open_file_count_max in [1, limits.open_file_count_max] {
        limits.open_file_count_max = open_file_count_max;
        let mut files = Files::open_with(captures.iter().map(|(path, _)| path), limits).expect("captures");
        let (mut batch, mut frames) = (FrameBatch::new(), 0);
        while files.next_batch(&mut batch).expect("readable files") == Next::Frames {
            frames += batch.len() as u64;
            let interfaces = files.interfaces();
            for frame in batch.iter() {
                let interface = interfaces.get(frame.interface as usize).expect("a described interface");
                assert_eq!(interface.link_type, frame.link_type);
            }
        }
        assert_eq!((frames, files.stats().frame_count), (total, total));
    }
}
