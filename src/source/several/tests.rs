use std::fs;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::super::PcapngWriter;
use super::super::pcap::tests::{header, record};
use super::*;
use crate::base::{Frame, LinkType};

/// Temporary directory, which is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("flowgauge-files-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Creates a pcap file with one frame at each of the given seconds. The first octet of each frame is
    /// `mark`, and the frames are long enough to fill batches.
    fn pcap(&self, mark: u8, seconds: impl IntoIterator<Item = u32>) -> PathBuf {
        let mut file = header(0xa1b2_c3d4, false, (2, 4), 1);
        for second in seconds {
            record(&mut file, false, [second, 0, 90, 90], 0, &[mark; 90]);
        }
        let path = self.0.join(format!("{mark}.pcap"));
        fs::write(&path, file).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn small() -> Limits {
    Limits { batch_len: 1000, ..Limits::DEFAULT }
}

/// Reads all files to their end. Returns the frames, each as (seconds of the timestamp, mark).
fn read_all(files: &mut Files) -> Vec<(u64, u8)> {
    let (mut batch, mut frames) = (FrameBatch::new(), Vec::new());
    while files.next_batch(&mut batch).unwrap() == Next::Frames {
        frames.extend(batch.iter().map(|frame| (frame.timestamp.as_nanos() / 1_000_000_000, frame.data[0])));
    }
    assert_eq!(files.next_batch(&mut batch).unwrap(), Next::End(End::Complete));
    assert_eq!(files.stats().frame_count, frames.len() as u64);
    assert_eq!(Some(files.progress()), files.total_len());
    frames
}

#[test]
fn overlapping_files_merge_in_time_order_and_ties_keep_the_order_given() {
    let folder = Folder::new();
    let paths = [
        folder.pcap(1, (0..300).map(|n| n * 2)),
        folder.pcap(2, (0..300).map(|n| 100 + n * 3)),
        folder.pcap(3, [100, 100, 2000]),
        folder.pcap(4, []),
    ];
    for limits in [small(), Limits::DEFAULT, Limits { open_file_count_max: 1, ..small() }] {
        let frames = read_all(&mut Files::open_with(&paths, limits).unwrap());
        assert_eq!(frames.len(), 603);
        assert!(frames.is_sorted_by_key(|(second, mark)| (*second, *mark)));
    }
    let backwards: Vec<_> = paths.iter().rev().collect();
    let frames = read_all(&mut Files::open_with(backwards, small()).unwrap());
    assert!(frames.is_sorted_by_key(|(second, mark)| (*second, std::cmp::Reverse(*mark))));
}

#[test]
fn consecutive_files_are_never_open_together() {
    let folder = Folder::new();
    let paths: Vec<_> =
        (0..9).rev().map(|n| folder.pcap(n, u32::from(n) * 100..u32::from(n) * 100 + 50)).collect();
    let mut files = Files::open_with(&paths, small()).unwrap();
    let (mut batch, mut count) = (FrameBatch::new(), 0);
    while files.next_batch(&mut batch).unwrap() == Next::Frames {
        assert!(files.started.len() <= 1);
        count += batch.len();
    }
    assert_eq!(count, 450);
    assert_eq!(files.interfaces().len(), 1);
}

#[test]
fn the_frames_of_a_file_keep_their_order() {
    let folder = Folder::new();
    let paths = [folder.pcap(1, [10, 5, 20, 30]), folder.pcap(2, [9, 15, 25])];
    let mut files = Files::open_with(&paths, small()).unwrap();
    assert_eq!(read_all(&mut files), [(9, 2), (10, 1), (5, 1), (15, 2), (20, 1), (25, 2), (30, 1)]);
    assert_eq!(files.stats().time_step_back_count, 1);
}

#[test]
fn interfaces_are_numbered_across_files() {
    let folder = Folder::new();
    let interface = |name: &str| Interface {
        name: Some(name.to_owned()),
        resolution: super::super::TimeResolution::NANOSECONDS,
        ..Interface::new(LinkType::ETHERNET)
    };
    let written = |file: &str, names: &[&str], second| {
        let interfaces: Vec<_> = names.iter().map(|name| interface(name)).collect();
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        for number in 0..names.len() as u32 {
            let timestamp = Timestamp::from_parts(second + u64::from(number), 0);
            let frame = Frame { interface: number, ..Frame::ethernet(timestamp, &[0]) };
            writer.write(&frame, &interfaces).unwrap();
        }
        let path = folder.0.join(file);
        fs::write(&path, writer.finish().unwrap()).unwrap();
        path
    };
    let paths = [written("a", &["eth0", "eth1", "eth1"], 0), written("b", &["eth2", "eth1", "eth0"], 1)];
    let mut files = Files::open(&paths).unwrap();
    let (mut batch, mut found) = (FrameBatch::new(), Vec::new());
    while files.next_batch(&mut batch).unwrap() == Next::Frames {
        let name = |frame: Frame<'_>| files.interfaces()[frame.interface as usize].name.clone().unwrap();
        found.extend(batch.iter().map(|frame| (frame.interface, name(frame))));
    }
    found.sort();
    let names: Vec<_> = found.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["eth0", "eth0", "eth1", "eth1", "eth1", "eth2"]);
    assert_eq!(files.interfaces().len(), 4);
}

#[test]
fn unreadable_files_are_reported_before_any_file_is_read() {
    let folder = Folder::new();
    let good = folder.pcap(1, [1]);
    let text = folder.0.join("notes");
    fs::write(&text, "some notes").unwrap();
    assert!(matches!(Files::open([&good, &text]), Err(Error::NotACapture { .. })));
    assert!(matches!(Files::open([&good, &folder.0]), Err(Error::Directory { .. })));
    assert!(matches!(Files::open::<PathBuf>([]), Err(Error::NoFiles)));
}

#[test]
fn a_truncated_file_does_not_end_the_others() {
    let folder = Folder::new();
    let (first, second) = (folder.pcap(1, 0..100), folder.pcap(2, 50..150));
    let octets = fs::read(&first).unwrap();
    fs::write(&first, &octets[..octets.len() - 10]).unwrap();
    let mut files = Files::open_with([&first, &second], small()).unwrap();
    assert_eq!(read_all(&mut files).len(), 199);
    let [warning] = files.warnings() else { panic!("{:?}", files.warnings()) };
    assert_eq!((&warning.path, warning.frame_number), (&first, 100));
}

#[test]
fn readable_files_are_read_regardless_of_unreadable_ones() {
    let folder = Folder::new();
    let text = folder.0.join("notes.txt");
    fs::write(&text, "no capture, but a text").unwrap();
    let paths = [text.clone(), folder.pcap(1, [1, 3]), folder.0.join("missing"), folder.pcap(2, [2])];
    let mut refused = Vec::new();
    let mut files = Files::open_readable(paths, small(), |error| refused.push(error.to_string()));
    assert_eq!(read_all(&mut files), [(1, 1), (2, 2), (3, 1)]);
    assert_eq!(refused.len(), 2);
    assert!(
        refused[0].contains("notes.txt: is not a pcap") && refused[1].contains("missing: "),
        "{refused:?}"
    );

    let mut files = Files::open_readable([text], small(), |error| refused.push(error.to_string()));
    assert_eq!((read_all(&mut files), refused.len()), (vec![], 3));
}
