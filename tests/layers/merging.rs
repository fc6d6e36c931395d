//! Merging of several files: the frames have the order that mergecap gives them, also if time steps back within a file.

use std::path::PathBuf;
use std::process::Command;

use flowgauge::base::{Frame, FrameBatch, Limits, Timestamp};
use flowgauge::source::{FileSource, Files, Next, PcapngWriter, Source};

/// A frame as its time in microseconds and the octet that it repeats.
type Mark = (u64, u8);

/// A small pseudorandom generator.
struct Random(u64);

impl Random {
    fn below(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }
}

/// Returns times that increase, and sometimes step back. No two files have equal times: for equal times mergecap takes
/// the file that was named last, and this crate the one that was named first.
fn times(random: &mut Random, file_number: u64, is_monotonic: bool) -> Vec<u64> {
    let mut now = 1000 + random.below(100);
    let mut step = || {
        let back = if !is_monotonic && random.below(6) == 0 { random.below(60) } else { 0 };
        now = (now + random.below(12)).saturating_sub(back).max(1);
        now * 10 + file_number
    };
    (0..200).map(|_| step()).collect()
}

fn read(source: &mut impl Source) -> Vec<Mark> {
    let (mut batch, mut marks) = (FrameBatch::new(), Vec::new());
    while source.next_batch(&mut batch).expect("a readable file") == Next::Frames {
        marks.extend(batch.iter().map(|frame| (frame.timestamp.as_nanos() / 1000, frame.data[0])));
    }
    marks
}

/// Merges naively: the next frame is the earliest of the first remaining frames of all files, and the first file wins.
fn merged(files: &[Vec<Mark>]) -> Vec<Mark> {
    let mut positions = vec![0; files.len()];
    let mut all = Vec::new();
    loop {
        let heads = files.iter().zip(&positions).enumerate();
        let next =
            heads.filter_map(|(number, (file, position))| Some((file.get(*position)?.0, number))).min();
        let Some((_, number)) = next else { return all };
        all.push(files[number][positions[number]]);
        positions[number] += 1;
    }
}

#[test]
fn files_are_merged_in_the_order_of_mergecap() {
    let folder = std::env::temp_dir().join(format!("flowgauge-merging-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut has_mergecap = true;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut files = Vec::new();
        for number in 0..2 + random.below(4) {
            let times = times(&mut random, number, seed % 4 == 0);
            files.push(times.iter().map(|time| (*time, number as u8)).collect::<Vec<_>>());
        }
        let paths: Vec<PathBuf> = files
            .iter()
            .enumerate()
            .map(|(number, file)| {
                let path = folder.join(format!("{number}.pcapng"));
                let mut writer =
                    PcapngWriter::new(std::fs::File::create(&path).expect("a file")).expect("a header");
                for (micros, mark) in file {
                    let data = [*mark; 60];
                    let frame = Frame::ethernet(Timestamp::from_nanos(micros * 1000), &data);
                    writer.write(&frame, &[]).expect("a frame");
                }
                writer.finish().expect("a file");
                path
            })
            .collect();
        // With batches of a few frames, and with batches that hold all frames.
        for batch_len in [1000, 256 << 10] {
            let mut limits = Limits::DEFAULT;
            limits.batch_len = batch_len;
            assert_eq!(
                read(&mut Files::open_with(&paths, limits).expect("captures")),
                merged(&files),
                "{seed}"
            );
        }
        let out = folder.join("merged.pcapng");
        if has_mergecap {
            let status = Command::new("mergecap").arg("-w").arg(&out).args(&paths).status();
            has_mergecap = status.is_ok_and(|status| status.success());
        }
        if has_mergecap {
            assert_eq!(read(&mut FileSource::open(&out).expect("a capture")), merged(&files), "{seed}");
        } else {
            assert!(std::env::var_os("CI").is_none(), "mergecap is not installed");
            println!("skipped: mergecap is not installed");
        }
    }
    std::fs::remove_dir_all(&folder).expect("the folder exists");
}
