//! Selection of flows by Community ID or filter.

use std::collections::HashSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use flowgauge::pipeline::boxed;
use flowgauge::{Builder, EndReason, Filter, Flow, FlowView, Flows, Interest, Resources, Sink};

use crate::args::ShiftArgs;
use crate::console::{Console, Failure};
use crate::input::{Input, is_stdin};

/// Selected flows of a command, in a form that can be checked at the first packet of a flow.
#[derive(Debug, Default)]
pub(crate) enum Choice {
    /// All flows that pass the filter of the pipeline are selected.
    #[default]
    All,
    CommunityIds(HashSet<String>),
    /// Flows that were selected in an earlier pass over the input. They are identified by their numbers among all flows
    /// in the order of first packets, which is the same in every pass.
    Numbers(Numbers),
}

impl Choice {
    /// Creates the selection of flows. Reads all input once with the settings of the builder if the filter needs
    /// complete flows, with the shifted times of the later pass. That pass releases its part of the budget before the next pass begins.
    pub(crate) fn new(
        community_ids: &[String],
        filter: Option<&Filter>,
        (files, shift): (&[PathBuf], Option<&ShiftArgs>),
        (builder, resources): (&Builder, &Resources),
    ) -> Result<Self, Failure> {
        Ok(match filter {
            None if community_ids.is_empty() => Self::All,
            None => Self::CommunityIds(community_ids.iter().cloned().collect()),
            Some(filter) if filter.is_final() => Self::All,
            Some(filter) => Self::Numbers(read(filter, (files, shift), (builder, resources))?),
        })
    }

    /// Returns whether a new flow with the given number is selected.
    pub(crate) fn selects(&self, view: &FlowView<'_>, number: u64) -> bool {
        match self {
            Self::All => true,
            Self::CommunityIds(ids) => ids.contains(view.community_id().as_str()),
            Self::Numbers(numbers) => numbers.contains(number),
        }
    }
}

/// Reads all input once to find the flows that match a filter.
fn read(
    filter: &Filter,
    (files, shift): (&[PathBuf], Option<&ShiftArgs>),
    (builder, resources): (&Builder, &Resources),
) -> Result<Numbers, Failure> {
    if let Some(path) = files.iter().find(|path| is_read_once(path)) {
        return Err(Failure::Usage(format!(
            "{}: can be read only once, but a filter with `src`, `dst` or `vlan` reads the input twice; save the capture \
             to a file first, or remove these words from the filter",
            path.display()
        )));
    }
    let len_max = usize::try_from(resources.limits.total_bytes_max).unwrap_or(usize::MAX) / MEMORY_PART;
    let mut chooser = Chooser { filter, started_count: 0, numbers: Numbers::new(len_max) };
    // The second pass reports the problems of the input.
    let mut silent = Console::silent();
    if let Some(input) = Input::open(files, resources, &mut silent) {
        // Shifted times change the order of packets, and so the numbers of flows.
        let mut input = match shift {
            Some(shift) => input.shifted(shift),
            None => input,
        };
        input.run(builder.build(boxed(&mut chooser))?, &mut silent)?;
    }
    let numbers = chooser.numbers;
    if numbers.is_full {
        let problem = "the input has too many flows for a filter with `src`, `dst` or `vlan`; raise --memory";
        return Err(Failure::Other(problem.to_owned()));
    }
    Ok(numbers)
}

fn is_read_once(path: &Path) -> bool {
    is_stdin(path) || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// A set of numbers of flows, one bit for each flow of the input.
#[derive(Debug)]
pub(crate) struct Numbers {
    words: Vec<u64>,
    /// Maximum memory of the bits in bytes.
    len_max: usize,
    /// A number was not added, because the set would have exceeded its limit.
    is_full: bool,
}

/// Part of the memory limit that the numbers of selected flows may take. It is not charged.
const MEMORY_PART: usize = 16;

impl Numbers {
    const fn new(len_max: usize) -> Self {
        Self { words: Vec::new(), len_max, is_full: false }
    }

    fn insert(&mut self, number: u64) {
        let (index, bit) = ((number / 64) as usize, number % 64);
        if index >= self.len_max / size_of::<u64>() {
            self.is_full = true;
            return;
        }
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        if let Some(word) = self.words.get_mut(index) {
            *word |= 1 << bit;
        }
    }

    fn contains(&self, number: u64) -> bool {
        let word = self.words.get((number / 64) as usize);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

/// Number of a flow among all flows in the order of first packets, starting at one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Number(u64);

/// Sink that evaluates a filter at the end of each flow.
struct Chooser<'a> {
    filter: &'a Filter,
    started_count: u64,
    numbers: Numbers,
}

impl Sink for Chooser<'_> {
    type State = Number;
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::STARTS
    }

    fn started(&mut self, flow: &mut Flow<'_, Number>) {
        self.started_count += 1;
        *flow.state = Number(self.started_count);
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, number: Number) {
        if self.filter.matches_flow(view) {
            self.numbers.insert(number.0);
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.numbers.is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_were_added() {
        let added: HashSet<u64> =
            (0..1000).map(|number: u64| number.wrapping_mul(2_654_435_761) % 50_000).collect();
        let mut numbers = Numbers::new(usize::MAX);
        added.iter().for_each(|number| numbers.insert(*number));
        assert!((0..60_000).all(|number| numbers.contains(number) == added.contains(&number)));
        assert!(!numbers.contains(u64::MAX));
    }

    /// Every flow is selected, of more than the limit permits.
    #[test]
    fn allocated_memory_is_within_the_limit() {
        const LIMIT: usize = 1 << 20;
        let (peak, numbers) = crate::heap::peak_of(|| {
            let mut numbers = Numbers::new(LIMIT);
            (0..10_000_000).for_each(|number| numbers.insert(number));
            numbers
        });
        println!("{peak} bytes");
        assert!(peak <= 3 * LIMIT && numbers.is_full, "{peak} bytes");
        assert!(numbers.contains(8 * LIMIT as u64 - 1) && !numbers.contains(8 * LIMIT as u64));
    }
}
