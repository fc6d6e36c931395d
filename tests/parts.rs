//! A capture that is tracked in parts has the records of one pass.
//!
//! With `FLOWGAUGE_CORPUS`, the captures of the corpus are used too.
#![cfg(feature = "protocols")]

#[path = "support/captures.rs"]
mod captures;

use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flowgauge::session::DriverConfig;
use flowgauge::source::{self, FileParts};
use flowgauge::tracker::Timeouts;
use flowgauge::{
    Builder, Decapsulation, Error, FileSource, FlowRecord, Flows, KeyPolicy, Pipeline, PipelineStats,
    Records, RunOptions, Sessions, SourceConfig, Stage, Standard, StopHandle, TrackerConfig,
};

/// Maximum length of a capture that is used, in octets.
const LEN_MAX: u64 = 16 << 20;

/// Number of mutants of each capture.
const MUTANT_COUNT: usize = 8;

/// Numbers of parts that follow another part, and of parts that were tracked alone.
#[derive(Debug, Default)]
struct Counts {
    part_count: u64,
    alone_count: u64,
    capture_count: u64,
}

/// Returns records in an order that does not depend on that of their ends.
fn sorted(mut records: Vec<FlowRecord>) -> Vec<FlowRecord> {
    records.sort_by_cached_key(|record| (record.start, record.key, record.end, format!("{record:?}")));
    records
}

fn in_one_pass<G: Stage>(builder: &Builder, path: &Path) -> Option<(Vec<FlowRecord>, PipelineStats)> {
    let mut records = Vec::new();
    let sink = Records::new(|record| records.push(record)).with_stage::<G>();
    let mut source = FileSource::open(path).ok()?;
    let summary = builder.build(sink).unwrap().run(&mut source, &RunOptions::default()).ok()?;
    Some((sorted(records), summary.stats))
}

fn in_parts<G: Stage>(
    builder: &Builder,
    job_count: usize,
    parts: &mut FileParts,
) -> Result<(Vec<FlowRecord>, PipelineStats), Error> {
    let (mut records, options) = (Vec::new(), RunOptions::default());
    let summary =
        builder.run_parts::<G>(job_count, parts, &options, |_| true, |record| records.push(record))?;
    Ok((sorted(records), summary.stats))
}

/// Compares the records of each capture in parts of several lengths with those of one pass.
fn compare_captures<G: Stage>(builder: &Builder) -> Counts {
    let mut counts = Counts::default();
    for path in captures::captures() {
        let len = fs::metadata(&path).unwrap().len();
        if len > LEN_MAX {
            continue;
        }
        let Ok(mut parts) = FileParts::open(&path) else { continue };
        let Some((records, stats)) = in_one_pass::<G>(builder, &path) else { continue };
        counts.capture_count += 1;
        for (job_count, part_count) in [(2, 2), (3, 3), (2, 7), (4, 50)] {
            parts = parts.part_len(len / part_count + 1);
            let name = format!("{} in {part_count} parts on {job_count} threads", path.display());
            let (own, own_stats) = in_parts::<G>(builder, job_count, &mut parts)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            if let Some((one, own)) = records.iter().zip(&own).find(|(one, own)| one != own) {
                panic!("{name}:\n{one:#?}\n{own:#?}");
            }
            assert_eq!(own.len(), records.len(), "{name}");
            let of = |stats: &PipelineStats| {
                let tracker = &stats.tracker;
                let frames = (stats.frame_count, stats.octet_count, stats.times, stats.skipped.clone());
                let packets = (tracker.packet_count, tracker.octet_count, tracker.late_packet_count);
                (frames, packets, tracker.started_count, tracker.ended_count(), stats.filtered_count)
            };
            assert_eq!(of(&own_stats), of(&stats), "{name}");
            assert_eq!(parts.stats().frame_count, stats.frame_count, "{name}");
            let (carried_count, alone_count) = parts.part_counts();
            counts.part_count += carried_count + alone_count;
            counts.alone_count += alone_count;
        }
    }
    println!("{counts:?}");
    counts
}

#[test]
fn parts_have_the_records_of_one_pass() {
    let counts = compare_captures::<Flows>(&Pipeline::builder());
    // A wave of two parts has one that follows another.
    assert!(counts.alone_count * 4 > counts.part_count, "{counts:?}");
}

#[test]
fn parts_have_the_applications_of_one_pass() {
    let mut sessions = DriverConfig::default();
    sessions.is_naming_only = true;
    let counts = compare_captures::<Sessions<Standard>>(&Pipeline::builder().sessions(sessions));
    assert!(counts.alone_count * 4 > counts.part_count, "{counts:?}");
}

#[test]
fn active_timeouts_tunnels_and_filters_apply_to_parts() {
    let timeouts = Timeouts::default().linger(Duration::ZERO);
    let tracker = TrackerConfig::default().timeouts(timeouts).active_timeout(Duration::from_millis(100));
    let builder = Pipeline::builder().tracker(tracker).encapsulation(true);
    compare_captures::<Flows>(&builder.filter("ip6 or not port 53".parse().unwrap()));
}

/// A capture in memory.
#[derive(Debug)]
struct InMemory(Vec<u8>);

impl source::Storage for InMemory {
    fn find(&self, path: &Path) -> Option<u64> {
        (path == Path::new("memory:")).then_some(self.0.len() as u64)
    }

    fn open(&self, _: &Path, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::Cursor::new(self.0[range.start as usize..range.end as usize].to_vec())))
    }
}

#[test]
fn a_capture_in_a_storage_is_read_in_parts() {
    let path = Path::new("examples/data/web.pcap");
    let storage: Arc<dyn source::Storage> = Arc::new(InMemory(fs::read(path).unwrap()));
    let config = SourceConfig::default().storage(storage);
    let mut parts = FileParts::open_with("memory:", config).unwrap().part_len(100_000);
    let builder = Pipeline::builder();
    let (records, _) = in_parts::<Flows>(&builder, 2, &mut parts).unwrap();
    assert_eq!(records, in_one_pass::<Flows>(&builder, path).unwrap().0);
    assert_ne!(parts.part_counts(), (0, 0));
}

#[test]
fn settings_and_files_that_cannot_be_divided_are_refused() {
    let mut parts = FileParts::open("examples/data/web.pcap").unwrap();
    let policy = KeyPolicy::default().decapsulation(Decapsulation::Both);
    let builder = Pipeline::builder();
    for (builder, word) in [
        (builder.clone().key_policy(policy), "Decapsulation::Both"),
        (builder.clone().dedup(flowgauge::DedupConfig::default()), "dedup"),
        (builder.clone().checksums(flowgauge::ChecksumHandling::Drop), "checksums"),
    ] {
        let message = in_parts::<Flows>(&builder, 2, &mut parts).unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    }
    assert!(in_parts::<Sessions<Standard>>(&builder, 2, &mut parts).is_err());
    assert!(in_parts::<Flows>(&builder, 0, &mut parts).is_err());
    #[cfg(feature = "compression")]
    {
        let compressed = captures::own_captures().into_iter().find(|path| path.ends_with("web.pcap.gz"));
        let opened = compressed.map(FileParts::open);
        assert!(opened.is_none_or(|opened| matches!(opened, Err(source::Error::Indivisible { .. }))));
    }
}

#[test]
fn a_limit_that_is_reached_ends_the_run_with_an_error_or_the_records_of_one_pass() {
    let path = Path::new("examples/data/web.pcap");
    let few = |flow_count| move || Pipeline::builder().limit(|limits| limits.flow_count_max = flow_count);
    let small = |bytes| move || Pipeline::builder().memory(bytes);
    let builders: [&dyn Fn() -> Builder; 5] =
        [&few(2), &few(8), &small(600_000), &small(1 << 20), &small(8 << 20)];
    let (mut equal_count, mut error_count) = (0, 0);
    for builder in builders {
        let (records, _) = in_one_pass::<Flows>(&builder(), path).unwrap();
        for part_len in [20_000, 100_000, 400_000] {
            let mut parts = FileParts::open(path).unwrap().part_len(part_len);
            match in_parts::<Flows>(&builder(), 3, &mut parts) {
                Ok((own, _)) => {
                    assert_eq!(own, records);
                    equal_count += 1;
                }
                Err(error) => {
                    assert!(matches!(error, Error::Parts), "{error}");
                    error_count += 1;
                }
            }
        }
    }
    assert!(equal_count > 0 && error_count > 0, "{equal_count} equal, {error_count} errors");
}

/// A frame that contains a capture, as of a transfer of one, is not divided.
#[test]
fn octets_that_imitate_records_do_not_divide_a_frame() {
    let inner = fs::read("examples/data/dns.pcap").unwrap();
    let header = inner.first_chunk::<24>().unwrap();
    let mut outer = header.to_vec();
    for second in 1_u32..60 {
        // The whole capture in a frame that is no packet.
        let len = inner.len() as u32;
        for word in [second, 0, len, len] {
            outer.extend(word.to_le_bytes());
        }
        outer.extend(&inner);
    }
    let path = std::env::temp_dir().join(format!("flowgauge-imitated-{}.pcap", std::process::id()));
    fs::write(&path, &outer).unwrap();
    let (records, stats) = in_one_pass::<Flows>(&Pipeline::builder(), &path).unwrap();
    assert_eq!((records.len(), stats.frame_count), (0, 59));
    for part_len in [30_000, 77_777, 500_000] {
        let mut parts = FileParts::open(&path).unwrap().part_len(part_len);
        let (own, own_stats) = in_parts::<Flows>(&Pipeline::builder(), 3, &mut parts).unwrap();
        assert_eq!((own, own_stats.frame_count), (Vec::new(), 59));
    }
    fs::remove_file(&path).unwrap();
}

/// Changes octets of captures at random: lengths, times, addresses, flags, fragments.
#[test]
fn parts_of_mutants_have_the_records_of_one_pass() {
    let path = std::env::temp_dir().join(format!("flowgauge-mutant-{}.pcap", std::process::id()));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |end: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize % end.max(1)
    };
    let mut alone_count = 0;
    for original in captures::captures() {
        let octets = fs::read(&original).unwrap();
        if octets.len() > 200_000 || FileParts::open(&original).is_err() {
            continue;
        }
        for _ in 0..MUTANT_COUNT {
            let mut mutant = octets.clone();
            for _ in 0..=next(12) {
                let (at, value) = (24 + next(mutant.len().saturating_sub(24)), next(256) as u8);
                if let Some(octet) = mutant.get_mut(at) {
                    *octet = value;
                }
            }
            fs::write(&path, &mutant).unwrap();
            let (Ok(parts), Some((records, _))) =
                (FileParts::open(&path), in_one_pass::<Flows>(&Pipeline::builder(), &path))
            else {
                continue;
            };
            let mut parts = parts.part_len(1 + next(mutant.len()) as u64);
            let (own, _) = in_parts::<Flows>(&Pipeline::builder(), 1 + next(4), &mut parts).unwrap();
            if own != records {
                let kept = path.with_extension("failed");
                fs::copy(&path, &kept).unwrap();
                panic!("a mutant of {}, kept as {}", original.display(), kept.display());
            }
            alone_count += parts.part_counts().1;
        }
    }
    fs::remove_file(&path).unwrap();
    assert!(alone_count > 20, "{alone_count}");
    println!("{alone_count} parts of mutants were tracked alone");
}

#[test]
fn damage_and_stops_end_a_run_as_in_one_pass() {
    let octets = fs::read("examples/data/web.pcap").unwrap();
    let path = std::env::temp_dir().join(format!("flowgauge-parts-{}.pcap", std::process::id()));
    for damaged_at in [30_000, 400_000, 900_000, octets.len() - 3] {
        let mut damaged = octets.clone();
        damaged.truncate(damaged.len() - usize::from(damaged_at > 1_000_000));
        // A run of ones is a record that is too long.
        damaged.iter_mut().skip(damaged_at).take(64).for_each(|octet| *octet = 0xff);
        fs::write(&path, &damaged).unwrap();
        let mut source = FileSource::open(&path).unwrap();
        let mut records = Vec::new();
        let mut pipeline = Pipeline::builder().build(Records::new(|record| records.push(record))).unwrap();
        pipeline.run(&mut source, &RunOptions::default()).unwrap();
        drop(pipeline);
        let mut parts = FileParts::open(&path).unwrap().part_len(100_000);
        let (own, _) = in_parts::<Flows>(&Pipeline::builder(), 3, &mut parts).unwrap();
        assert_eq!(own, sorted(records), "{damaged_at}");
        let warnings =
            |warnings: &[source::Warning]| warnings.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(warnings(parts.warnings()), warnings(source::Source::warnings(&source)));
    }
    fs::remove_file(&path).unwrap();
    let (stop, mut parts) = (StopHandle::new(), FileParts::open("examples/data/web.pcap").unwrap());
    stop.stop();
    let options = RunOptions::default().stop(stop);
    let summary = Pipeline::builder()
        .run_parts::<Flows>(2, &mut parts, &options, |_| true, |_| panic!("a record"))
        .unwrap();
    assert_eq!((summary.end, summary.stats.frame_count), (flowgauge::pipeline::RunEnd::Stopped, 0));
}
