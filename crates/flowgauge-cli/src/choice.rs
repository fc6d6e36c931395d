//! Selection of flows by Community ID or filter.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use flowgauge::{Builder, EndReason, Filter, Flow, FlowView, Flows, Interest, Resources, Sink};

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
    Numbers(HashSet<u64>),
}

impl Choice {
    /// Creates the selection of flows. Reads all input once with the settings of the builder if the filter needs
    /// complete flows. That pass releases its part of the budget before the next pass begins.
    pub(crate) fn new(
        community_ids: &[String],
        filter: Option<&Filter>,
        files: &[PathBuf],
        (builder, resources): (&Builder, &Resources),
    ) -> Result<Self, Failure> {
        Ok(match filter {
            None if community_ids.is_empty() => Self::All,
            None => Self::CommunityIds(community_ids.iter().cloned().collect()),
            Some(filter) if filter.is_final() => Self::All,
            Some(filter) => Self::Numbers(read(filter, files, (builder, resources))?),
        })
    }

    /// Returns whether a new flow with the given number is selected.
    pub(crate) fn selects(&self, view: &FlowView<'_>, number: u64) -> bool {
        match self {
            Self::All => true,
            Self::CommunityIds(ids) => ids.contains(view.community_id().as_str()),
            Self::Numbers(numbers) => numbers.contains(&number),
        }
    }
}

/// Reads all input once to find the flows that match a filter.
fn read(
    filter: &Filter,
    files: &[PathBuf],
    (builder, resources): (&Builder, &Resources),
) -> Result<HashSet<u64>, Failure> {
    if let Some(path) = files.iter().find(|path| is_read_once(path)) {
        return Err(Failure::Usage(format!(
            "{}: can be read only once, but a filter with `src`, `dst` or `vlan` reads the input twice; save the capture \
             to a file first, or remove these words from the filter",
            path.display()
        )));
    }
    let chooser = Chooser { filter, started_count: 0, numbers: HashSet::new() };
    let mut pipeline = builder.build(chooser)?;
    // The second pass reports the problems of the input.
    let mut silent = Console::silent();
    if let Some(mut input) = Input::open(files, resources, &mut silent) {
        input.run(&mut pipeline, &mut silent)?;
    }
    Ok(pipeline.into_sink().numbers)
}

fn is_read_once(path: &Path) -> bool {
    is_stdin(path) || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Number of a flow among all flows in the order of first packets, starting at one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Number(u64);

/// Sink that evaluates a filter at the end of each flow.
struct Chooser<'a> {
    filter: &'a Filter,
    started_count: u64,
    numbers: HashSet<u64>,
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
}
