//! Samples of a run, and the verdict on its memory use.

use std::fmt::{self, Write as _};
use std::fs;
use std::time::Duration;

/// Growth that counts as noise of the allocator and of the page counts of the system: the larger of both values.
const GROWTH_PERCENT_MAX: u64 = 2;
const GROWTH_BYTES_MAX: u64 = 2 << 20;

const MIB: f64 = (1 << 20) as f64;

/// State of a run at one time. Counts are since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Time since the first frame.
    pub elapsed: Duration,
    /// Number of complete passes.
    pub pass_count: u64,
    pub frame_count: u64,
    /// Time inside the pipeline; the remaining time is spent on rewriting addresses.
    pub busy: Duration,
    pub resident_bytes: u64,
    pub budget_bytes: u64,
    pub open_flow_count: u64,
    pub record_count: u64,
    pub message_count: u64,
}

/// Returns the resident memory of this process, or zero if the system does not report it.
pub fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Packets per second through the pipeline between successive samples.
pub fn speeds(samples: &[Sample]) -> impl Iterator<Item = f64> {
    samples.windows(2).map(|pair| {
        let busy = pair[1].busy.saturating_sub(pair[0].busy).as_secs_f64();
        (pair[1].frame_count - pair[0].frame_count) as f64 / busy.max(1e-9)
    })
}

/// Returns CSV with one row per sample.
pub fn csv(samples: &[Sample]) -> String {
    let mut out = String::from(
        "seconds,passes,packets,packets_per_second,resident_bytes,budget_bytes,open_flows,records,messages\n",
    );
    for (sample, speed) in samples.iter().zip(std::iter::once(0.0).chain(speeds(samples))) {
        let Sample { elapsed, pass_count, frame_count, resident_bytes, budget_bytes, .. } = sample;
        let _ = writeln!(
            out,
            "{:.1},{pass_count},{frame_count},{speed:.0},{resident_bytes},{budget_bytes},{},{},{}",
            elapsed.as_secs_f64(),
            sample.open_flow_count,
            sample.record_count,
            sample.message_count
        );
    }
    out
}

/// Medians of the resident memory in the second and in the last third of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    second_bytes: u64,
    last_bytes: u64,
}

impl Verdict {
    /// Returns whether the last third exceeds the second third at most by noise.
    pub const fn is_flat(&self) -> bool {
        let percent = self.second_bytes / 100 * GROWTH_PERCENT_MAX;
        let allowed = if percent > GROWTH_BYTES_MAX { percent } else { GROWTH_BYTES_MAX };
        self.last_bytes <= self.second_bytes + allowed
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "resident memory is {}: median {:.1} MiB in the second third, {:.1} MiB in the last",
            if self.is_flat() { "flat" } else { "growing" },
            self.second_bytes as f64 / MIB,
            self.last_bytes as f64 / MIB
        )
    }
}

/// Returns the verdict on a run, or `None` with fewer than two samples per third.
pub fn verdict(samples: &[Sample]) -> Option<Verdict> {
    let third = samples.len() / 3;
    if third < 2 {
        return None;
    }
    let median = |samples: &[Sample]| {
        let mut values: Vec<_> = samples.iter().map(|sample| sample.resident_bytes).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    let last = samples.len() - third;
    Some(Verdict { second_bytes: median(&samples[third..last]), last_bytes: median(&samples[last..]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(resident_mib: impl Fn(u64) -> u64) -> Option<Verdict> {
        let samples: Vec<_> = (0..30)
            .map(|at| Sample { resident_bytes: resident_mib(at) << 20, ..Sample::default() })
            .collect();
        verdict(&samples)
    }

    #[test]
    fn growth_in_the_first_third_is_allowed_and_later_growth_is_not() {
        assert!(run(|at| 40 + 5 * at.min(9)).expect("enough samples").is_flat());
        assert!(run(|at| 40 + at % 3).expect("enough samples").is_flat());
        assert!(!run(|at| 40 + at / 2).expect("enough samples").is_flat());
        // Two percent of 2000 MiB is more than two MiB.
        assert!(run(|at| 2000 + at).expect("enough samples").is_flat());
        assert_eq!(verdict(&[Sample::default(); 5]), None);
    }

    #[test]
    fn resident_memory_is_reported() {
        let before = resident_bytes();
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(before > 0 && resident_bytes() >= before + (60 << 20), "{}", block.len());
    }
}
