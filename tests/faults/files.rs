//! Merged files: a file that disappears, shrinks, or gets no memory does not affect the frames of the others.

use std::fs;

use flowgauge::base::{Budget, Limits, Resources};
use flowgauge::source::{Files, SourceConfig};

use super::Folder;
use super::budget::each_refusal;
use super::captures::{self, drain};

const COUNT: u32 = 300;
const FILE_COUNT: usize = 5;

/// Writes files that overlap in time, in each format.
fn write_files(folder: &Folder) -> Vec<String> {
    #[cfg(feature = "compression")]
    let [two, three] = [captures::gzip(&captures::pcap(2, COUNT)), captures::zstd(&captures::pcap(3, COUNT))];
    #[cfg(not(feature = "compression"))]
    let [two, three] = [2, 3].map(|file| captures::pcap(file, COUNT));
    write_with(folder, two, three)
}

/// Writes uncompressed files that overlap in time. They request memory at other times than those of [`write_files`].
fn write_uncompressed_files(folder: &Folder) -> Vec<String> {
    let [two, three] = [2, 3].map(|file| captures::pcap(file, COUNT));
    write_with(folder, two, three)
}

/// Writes the files 2 and 3 with these contents, and the others uncompressed.
fn write_with(folder: &Folder, two: Vec<u8>, three: Vec<u8>) -> Vec<String> {
    let contents =
        [captures::pcap(0, COUNT), captures::pcapng(1, COUNT), two, three, captures::pcapng(4, COUNT)];
    contents.iter().enumerate().map(|(number, octets)| folder.file(&number.to_string(), octets)).collect()
}

fn config(budget: &Budget) -> SourceConfig {
    let mut limits = Limits::DEFAULT;
    // Small batches, so that there are many requests for memory.
    limits.batch_len = 1000;
    Resources::new(limits).with_budget(budget.clone()).into()
}

#[test]
fn a_file_without_memory_is_reported_and_the_others_are_complete() {
    for (what, write) in
        [("files", write_files as fn(&Folder) -> _), ("uncompressed files", write_uncompressed_files)]
    {
        let folder = Folder::new();
        let paths = write(&folder);
        for open_file_count_max in [Limits::DEFAULT.open_file_count_max, 4] {
            merge_with_each_refusal(what, &paths, open_file_count_max);
        }
    }
}

fn merge_with_each_refusal(what: &str, paths: &[String], open_file_count_max: u32) {
    each_refusal(&format!("{what}, {open_file_count_max} open"), 10, |budget, is_lasting| {
        let mut errors = Vec::new();
        let mut config = config(budget);
        config.resources.limits.open_file_count_max = open_file_count_max;
        let mut files = Files::open_readable(paths, config, |error| errors.push(error));
        let delivered = drain(&mut files, FILE_COUNT, || {});
        errors.extend(delivered.errors);
        let truncated_count = delivered.counts.iter().filter(|count| **count < COUNT).count();
        assert!(truncated_count <= errors.len(), "{:?}: {errors:?}", delivered.counts);
        assert!(is_lasting || truncated_count <= 1, "{:?}: {errors:?}", delivered.counts);
        assert_eq!(delivered.warning_count, 0);
    });
}

#[test]
fn a_single_file_is_read_until_memory_is_refused() {
    let folder = Folder::new();
    for (file, path) in write_files(&folder).iter().enumerate() {
        // An uncompressed file may need only the memory of the caller.
        each_refusal(&format!("file {file}"), 0, |budget, _| {
            let mut errors = Vec::new();
            let mut files = Files::open_readable([path], config(budget), |error| errors.push(error));
            let delivered = drain(&mut files, FILE_COUNT, || {});
            errors.extend(delivered.errors);
            assert!(delivered.counts[file] == COUNT || !errors.is_empty());
        });
    }
}

/// Each file in turn is removed, emptied, or halved after the files were opened, or while they are merged.
#[test]
fn a_file_that_changes_while_it_is_read_does_not_affect_the_others() {
    for step in [0, 1, 5, 40] {
        for changed in 0..FILE_COUNT {
            for change in ["removed", "emptied", "halved"] {
                let folder = Folder::new();
                let paths = write_files(&folder);
                let mut files = Files::open_with(&paths, config(&Budget::default())).unwrap();
                let path = paths[changed].clone();
                let change_file = move || match change {
                    "removed" => fs::remove_file(&path).unwrap(),
                    "emptied" => fs::write(&path, []).unwrap(),
                    _ => {
                        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
                    }
                };
                if step == 0 {
                    change_file();
                }
                let mut steps = 0;
                let delivered = drain(&mut files, FILE_COUNT, || {
                    steps += 1;
                    if steps == step {
                        change_file();
                    }
                });
                let what = format!("file {changed} {change} after {step}: {delivered:?}");
                for (file, count) in delivered.counts.iter().enumerate() {
                    assert!(*count == COUNT || file == changed, "{what}");
                }
                let report_count = delivered.errors.len() + delivered.warning_count;
                // An emptied or shortened file may end at the end of a record.
                let is_complete = delivered.counts[changed] == COUNT;
                assert!(is_complete || report_count > 0 || change == "emptied", "{what}");
                assert!(step > 0 || !is_complete, "{what}");
            }
        }
    }
}
