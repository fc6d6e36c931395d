//! Comparison of duplicate frames with `editcap -w`, frame by frame.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use flowgauge::base::{Frame, FrameBatch, Limits, NANOS_PER_SECOND, Resources, Timestamp};
use flowgauge::dedup::{DedupConfig, Verdict, Window};
use flowgauge::source::{FileSource, Source as _};

use super::corpus;

/// Number of frames that editcap compares with at most.
const EDITCAP_FRAME_COUNT_MAX: u32 = 1_000_000;

/// Windows, and their option values for editcap.
const WINDOWS: [(&str, Duration); 3] = [
    ("0.000050", Duration::from_micros(50)),
    ("0.001", Duration::from_millis(1)),
    ("1", Duration::from_secs(1)),
];

/// Frames that are duplicates for flowgauge but not for editcap, by capture and window. The opposite never occurs. All
/// are after a capture time that steps back, in which case editcap may miss duplicates, according to its manual. It
/// identifies no frame as a duplicate of one with a later time (`nanosecs.pcap`), and it stops at the first frame that
/// is too old, although earlier frames of the file may have later times (all others).
const LISTED: &[(&str, &str, &[usize])] = &[
    ("suricata-verify/transform-base64-7296/input.pcap", "0.000050", &[53, 54, 55, 56, 57, 58, 59]),
    ("suricata-verify/transform-base64-7296/input.pcap", "0.001", &[53, 54, 55, 56, 57, 58, 59]),
    ("suricata-verify/transform-base64-7296/input.pcap", "1", &[53, 54, 55, 56, 57, 58, 59]),
    ("PcapPlusPlus/nanosecs.pcap", "0.000050", &[2]),
    ("PcapPlusPlus/nanosecs.pcap", "0.001", &[2]),
    ("PcapPlusPlus/nanosecs.pcap", "1", &[2]),
    ("tcpdump/l2tp-avp-overflow.pcap", "0.000050", &[8, 10, 12, 14, 15, 16, 18]),
    ("tcpdump/l2tp-avp-overflow.pcap", "0.001", &[8, 10, 12, 14, 15, 16, 18]),
    ("tcpdump/l2tp-avp-overflow.pcap", "1", &[8, 10, 12, 14, 15, 16, 18]),
    ("merged/iot-public.pcap", "0.000050", &[14736, 60544]),
];

/// Captures for which editcap reports fewer frames than there are, with both numbers. It cannot write the first
/// capture, and it ignores Simple Packet Blocks, which have no time. Captures with custom blocks, which it also
/// numbers, are not compared.
const SKIPPED: &[(&str, usize, usize)] = &[
    ("ja4/chrome-cloudflare-quic-with-secrets.pcapng", 83, 0),
    ("pcapng-test-generator/output_be/advanced/test100.pcapng", 5, 3),
    ("pcapng-test-generator/output_be/basic/test016.pcapng", 4, 2),
    ("pcapng-test-generator/output_be/difficult/test201.pcapng", 4, 3),
    ("pcapng-test-generator/output_le/advanced/test101.pcapng", 4, 3),
    ("pcapng-test-generator/output_le/basic/test011.pcapng", 4, 2),
    ("pcapng-test-generator/output_le/difficult/test202.pcapng", 8, 6),
];

fn window(time: Duration, frame_count_max: u32) -> Window {
    let mut config = DedupConfig::default();
    config.window = time;
    let mut limits = Limits::DEFAULT;
    limits.dedup_frame_count_max = frame_count_max;
    Window::new(config, &Resources::new(limits)).expect("a valid configuration")
}

/// Returns all frames of a file in one batch.
fn frames(path: &Path) -> FrameBatch {
    let mut source = FileSource::open(path).expect("a readable capture");
    let (mut batch, mut all) = (FrameBatch::new(), FrameBatch::new());
    while source.next_batch(&mut batch).is_ok_and(|next| !next.is_end()) {
        batch.iter().for_each(|frame| all.push(&frame));
    }
    batch.iter().for_each(|frame| all.push(&frame));
    all
}

/// Returns for each frame whether flowgauge identifies it as a duplicate.
fn ours(frames: &FrameBatch, mut window: Window) -> Vec<bool> {
    let verdicts = frames.iter().map(|frame| window.check(&frame) == Verdict::Duplicate).collect();
    window.check_invariants();
    verdicts
}

/// Returns editcap's results for the frames of a file: numbers that begin with 1, and whether the frame is a duplicate.
fn editcap_results(path: &Path, option: [&str; 2]) -> Vec<(usize, bool)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("flowgauge-dedup-{}-{}.pcapng", std::process::id(), NEXT.fetch_add(1, Relaxed));
    let out = std::env::temp_dir().join(name);
    let output = Command::new("editcap").arg("-V").args(option).arg(path).arg(&out).output();
    let output = output.expect("editcap runs");
    let _ = fs::remove_file(out);
    let text = String::from_utf8_lossy(&output.stderr);
    let line = |line: &str| {
        let (word, rest) = line.split_once(": ")?;
        let number = rest.split_once(',')?.0.parse().ok()?;
        matches!(word, "Packet" | "Skipped").then_some((number, word == "Skipped"))
    };
    text.lines().filter_map(line).collect()
}

fn is_installed() -> bool {
    let is_installed = Command::new("editcap").arg("--version").output().is_ok();
    if !is_installed {
        assert!(std::env::var_os("CI").is_none(), "editcap is not installed");
        println!("skipped: editcap is not installed");
    }
    is_installed
}

#[test]
fn duplicates_match_editcap() {
    let Some(captures) = corpus::captures() else { return };
    if !is_installed() {
        return;
    }
    let (mut found, mut skipped) = (Vec::new(), Vec::new());
    let (mut frame_count, mut duplicate_count) = (0, 0);
    for capture in &captures {
        let frames = frames(&capture.path());
        for (text, time) in WINDOWS {
            // The default number of frames suffices for the default window.
            let is_default = time <= Duration::from_millis(1);
            let count_max =
                if is_default { Limits::DEFAULT.dedup_frame_count_max } else { EDITCAP_FRAME_COUNT_MAX };
            let own = ours(&frames, window(time, count_max));
            let theirs = editcap_results(&capture.path(), ["-w", text]);
            if own.len() != theirs.len() && text == "1" {
                skipped.push((capture.name.clone(), own.len(), theirs.len()));
            }
            // If editcap also counts custom blocks, its numbers differ from ours.
            if theirs.last().is_some_and(|(number, _)| *number > own.len()) {
                continue;
            }
            let mut differing = Vec::new();
            for (number, is_skipped) in theirs {
                frame_count += 1;
                duplicate_count += usize::from(is_skipped);
                if own[number - 1] != is_skipped {
                    assert!(!is_skipped, "{} {text}: flowgauge keeps frame {number}", capture.name);
                    assert!(
                        is_after_a_step_back(&frames, number - 1, time),
                        "{} {text}: {number}",
                        capture.name
                    );
                    differing.push(number);
                }
            }
            if !differing.is_empty() {
                found.push((capture.name.clone(), text, differing));
            }
        }
    }
    println!("{frame_count} frames in {} windows, {duplicate_count} duplicates", WINDOWS.len());
    let found: Vec<_> =
        found.iter().map(|(name, text, numbers)| (name.as_str(), *text, &numbers[..])).collect();
    assert_eq!(found, LISTED);
    let skipped: Vec<_> = skipped.iter().map(|(name, own, theirs)| (name.as_str(), *own, *theirs)).collect();
    assert_eq!(skipped, SKIPPED);
    assert!(duplicate_count > 1000, "the corpus has duplicates");
}

/// Returns whether a frame follows an equal one within the window and the capture time steps back between the two.
fn is_after_a_step_back(frames: &FrameBatch, position: usize, window: Duration) -> bool {
    let frame = |position| frames.get(position).expect("a frame");
    let last = frame(position);
    let equal = (0..position).rev().find(|position| frame(*position).data == last.data);
    equal.is_some_and(|equal| {
        let (early, late) = (frame(equal).timestamp, last.timestamp);
        early.max(late).saturating_since(early.min(late)) <= window
            && (equal..position).any(|position| frame(position + 1).timestamp < frame(position).timestamp)
    })
}

/// Returns a capture with nanosecond times, and its frames: frames of the corpus in order of time. Some are repeated,
/// with delays close to the windows.
fn repeated(captures: &[corpus::Capture]) -> (Vec<u8>, FrameBatch) {
    const DELAYS_NS: [u64; 7] = [0, 1, 49_999, 50_001, 1_000_000, 1_000_001, 3_000_000];
    let mut all = Vec::new();
    for capture in captures {
        for frame in frames(&capture.path()).iter().take(100) {
            let number = all.len();
            let time = 1_700_000_000 * NANOS_PER_SECOND + number as u64 * 1500;
            let copy_count = if number % 3 == 0 { number % 4 } else { 0 };
            let delays = (0..copy_count).map(|copy| DELAYS_NS[(number / 3 + 3 * copy) % DELAYS_NS.len()]);
            all.extend([0].into_iter().chain(delays).map(|delay| (time + delay, frame.data.to_vec())));
        }
    }
    all.sort_by_key(|(time, _)| *time);
    // Magic of nanoseconds, version 2.4, snap length, Ethernet.
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    let mut batch = FrameBatch::new();
    for (time, data) in &all {
        let (seconds, nanos) = (time / NANOS_PER_SECOND, time % NANOS_PER_SECOND);
        for word in [seconds as u32, nanos as u32, data.len() as u32, data.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(data);
        batch.push(&Frame::ethernet(Timestamp::from_nanos(*time), data));
    }
    (file, batch)
}

#[test]
fn inserted_duplicates_match_editcap() {
    let Some(captures) = corpus::captures() else { return };
    if !is_installed() {
        return;
    }
    let (file, frames) = repeated(&captures);
    let path = std::env::temp_dir().join(format!("flowgauge-repeated-{}.pcap", std::process::id()));
    fs::write(&path, file).expect("a writable folder");
    let agrees = |option: [&str; 2], window: Window| {
        let own: Vec<_> = (1..).zip(ours(&frames, window)).collect();
        let theirs = editcap_results(&path, option);
        assert_eq!(own.len(), theirs.len());
        let differing: Vec<_> = own.iter().zip(&theirs).filter(|(own, theirs)| own != theirs).collect();
        assert!(differing.is_empty(), "{option:?}: {differing:?}");
        let count = theirs.iter().filter(|(_, is_skipped)| *is_skipped).count();
        println!("{option:?}: {count} duplicates of {} frames", own.len());
        count
    };
    let counts: Vec<_> = WINDOWS
        .iter()
        .map(|(text, time)| agrees(["-w", text], window(*time, EDITCAP_FRAME_COUNT_MAX)))
        .collect();
    assert!(counts[0] > 1000 && counts.is_sorted() && counts[0] < counts[1] && counts[1] < counts[2]);
    // A limit of frames without a limit of time. The number of editcap includes the frame itself.
    for (text, count_max) in [("2", 1), ("101", 100), ("1001", 1000)] {
        assert!(agrees(["-D", text], window(Duration::MAX, count_max)) > 100);
    }
    fs::remove_file(path).expect("the capture can be removed");
}
