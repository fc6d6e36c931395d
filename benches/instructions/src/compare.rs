//! Comparison of a run with the reference.

use crate::figures::{Figures, Run};

/// Maximum growth of the instructions of a bench, in percent.
pub const PERCENT_MAX: u64 = 1;

/// Result of the comparison of one bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Within the tolerance.
    Same,
    /// Fewer instructions, beyond the tolerance, or fewer allocations: the reference is outdated.
    Less,
    /// More instructions, beyond the tolerance.
    MoreInstructions,
    /// At least one more allocation.
    MoreAllocations,
    /// The reference does not contain the bench.
    New,
    /// The run does not contain the bench.
    Missing,
}

/// Comparison of all benches of a run and of its reference.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Id, figures of the reference, figures of the run, and result, sorted by id.
    pub rows: Vec<(String, Option<Figures>, Option<Figures>, Change)>,
    /// Differences of the environment: name, value in the reference, value in the run.
    pub environment_changes: Vec<(String, String, String)>,
}

impl Comparison {
    /// Compares a run with a reference.
    #[must_use]
    pub fn new(reference: &Run, run: &Run) -> Self {
        let mut ids: Vec<_> = reference.benches.keys().chain(run.benches.keys()).cloned().collect();
        ids.sort();
        ids.dedup();
        let rows = ids.into_iter().map(|id| {
            let (before, after) = (reference.benches.get(&id).copied(), run.benches.get(&id).copied());
            (id, before, after, change(before, after))
        });
        let mut names: Vec<_> = reference.environment.keys().chain(run.environment.keys()).collect();
        names.sort();
        names.dedup();
        let environment_changes = names.into_iter().filter_map(|name| {
            let [before, after] =
                [reference, run].map(|it| it.environment.get(name).cloned().unwrap_or_default());
            (before != after).then(|| (name.clone(), before, after))
        });
        Self { rows: rows.collect(), environment_changes: environment_changes.collect() }
    }

    /// Returns whether a row fails the run. Instructions count only if both runs had the same environment, because
    /// another compiler may change them by more than the tolerance. Allocations and missing benches always count.
    #[must_use]
    pub fn is_failure(&self, change: Change) -> bool {
        match change {
            Change::Same | Change::Less => false,
            Change::MoreInstructions => self.environment_changes.is_empty(),
            Change::MoreAllocations | Change::New | Change::Missing => true,
        }
    }
}

fn change(before: Option<Figures>, after: Option<Figures>) -> Change {
    let (Some(before), Some(after)) = (before, after) else {
        return if before.is_none() { Change::New } else { Change::Missing };
    };
    let is_above =
        |large: u64, small: u64| u128::from(large) * 100 > u128::from(small) * u128::from(100 + PERCENT_MAX);
    if after.allocations > before.allocations {
        Change::MoreAllocations
    } else if is_above(after.instructions, before.instructions) {
        Change::MoreInstructions
    } else if after.allocations < before.allocations || is_above(before.instructions, after.instructions) {
        Change::Less
    } else {
        Change::Same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rustc: &str, benches: &[(&str, u64, u64)]) -> Run {
        let mut run = Run::default();
        run.environment.insert("rustc".into(), rustc.into());
        for (id, instructions, allocations) in benches {
            let figures = Figures { instructions: *instructions, allocations: *allocations };
            run.benches.insert((*id).into(), figures);
        }
        run
    }

    fn changes(comparison: &Comparison) -> Vec<Change> {
        comparison.rows.iter().map(|(.., change)| *change).collect()
    }

    fn failure_count(comparison: &Comparison) -> usize {
        comparison.rows.iter().filter(|(.., change)| comparison.is_failure(*change)).count()
    }

    #[test]
    fn one_percent_more_instructions_passes_and_one_instruction_beyond_fails() {
        let reference = run("1", &[("a", 10_000, 0), ("b", 10_000, 0), ("c", 10_000, 0), ("d", 10_000, 0)]);
        let after = run("1", &[("a", 10_100, 0), ("b", 10_101, 0), ("c", 9901, 0), ("d", 9900, 0)]);
        let comparison = Comparison::new(&reference, &after);
        use Change::{Less, MoreInstructions, Same};
        assert_eq!(changes(&comparison), [Same, MoreInstructions, Same, Less]);
        assert_eq!(failure_count(&comparison), 1);
    }

    #[test]
    fn one_more_allocation_fails_regardless_of_the_instructions() {
        let reference = run("1", &[("a", 10_000, 0), ("b", 10_000, 3)]);
        let comparison = Comparison::new(&reference, &run("1", &[("a", 5000, 1), ("b", 10_000, 2)]));
        assert_eq!(changes(&comparison), [Change::MoreAllocations, Change::Less]);
        assert_eq!(failure_count(&comparison), 1);
    }

    #[test]
    fn a_new_or_missing_bench_fails() {
        let comparison = Comparison::new(&run("1", &[("a", 1, 0)]), &run("1", &[("b", 1, 0)]));
        assert_eq!(changes(&comparison), [Change::Missing, Change::New]);
        assert_eq!(failure_count(&comparison), 2);
    }

    #[test]
    fn another_compiler_excuses_only_instructions() {
        let reference = run("1", &[("a", 10_000, 0), ("b", 10_000, 0), ("c", 1, 0)]);
        let comparison = Comparison::new(&reference, &run("2", &[("a", 20_000, 0), ("b", 10_000, 1)]));
        assert_eq!(comparison.environment_changes, [("rustc".into(), "1".into(), "2".into())]);
        let failures = comparison.rows.iter().filter(|(.., change)| comparison.is_failure(*change));
        assert_eq!(failures.map(|(id, ..)| id.as_str()).collect::<Vec<_>>(), ["b", "c"]);
    }
}
