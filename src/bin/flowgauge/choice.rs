//! Which flows a command is about, by their Community IDs or a filter.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use flowgauge::base::EndReason;
use flowgauge::filter::{Filter, Subject};
use flowgauge::pipeline::Pipeline;
use flowgauge::record::community_id;
use flowgauge::tracker::{Flow, FlowSink, FlowView, Interest, TrackerConfig};

use crate::console::{Console, Failure};
use crate::input::{Input, is_stdin};

/// Which flows are wanted, as can be told at their first packets.
#[derive(Debug, Default)]
pub(crate) enum Choice {
    /// Whatever the pipeline's own filter lets pass.
    #[default]
    All,
    CommunityIds(HashSet<String>),
    /// Those of an earlier reading, by their numbers among all flows in the order of their first packets, which is the same
    /// in every reading.
    Numbers(HashSet<u64>),
}

impl Choice {
    /// Reads all input once if the filter needs whole flows; `pipeline` makes one for that, on the account of `config`.
    pub(crate) fn new(
        community_ids: &[String],
        filter: Option<&Filter>,
        (files, config): (&[PathBuf], TrackerConfig),
        pipeline: impl FnOnce(&TrackerConfig) -> Result<Pipeline<Number>, Failure>,
    ) -> Result<Self, Failure> {
        Ok(match filter {
            None if community_ids.is_empty() => Self::All,
            None => Self::CommunityIds(community_ids.iter().cloned().collect()),
            Some(filter) if filter.is_final() => Self::All,
            Some(filter) => Self::Numbers(read(filter, files, &config, pipeline)?),
        })
    }

    /// Whether a flow that begins is wanted.
    pub(crate) fn takes(&self, view: &FlowView<'_>, number: u64) -> bool {
        match self {
            Self::All => true,
            Self::CommunityIds(ids) => ids.contains(&community_id(view.key(), 0)),
            Self::Numbers(numbers) => numbers.contains(&number),
        }
    }
}

/// Reads all input to learn which flows a filter wants.
fn read(
    filter: &Filter,
    files: &[PathBuf],
    config: &TrackerConfig,
    pipeline: impl FnOnce(&TrackerConfig) -> Result<Pipeline<Number>, Failure>,
) -> Result<HashSet<u64>, Failure> {
    if let Some(path) = files.iter().find(|path| is_read_once(path)) {
        return Err(Failure::Usage(format!(
            "{}: can be read only once, but `src`, `dst` and `vlan` need the whole flow before its first packet can be \
             written: save the capture to a file first, or leave these words out",
            path.display()
        )));
    }
    let mut pipeline = pipeline(config)?;
    let mut chooser = Chooser { filter, started_count: 0, numbers: HashSet::new() };
    // What is wrong with the input is told in the second reading.
    if let Some(mut input) = Input::open(files, config, &mut Console::silent()) {
        input.each_batch(&mut Console::silent(), |batch, _| {
            pipeline.batch(batch, &mut chooser);
            Ok(())
        })?;
    }
    pipeline.finish(&mut chooser);
    Ok(chooser.numbers)
}

fn is_read_once(path: &Path) -> bool {
    is_stdin(path) || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Asks a filter of a flow, whose source is the side that began.
pub(crate) fn is_wanted(filter: &Filter, view: &FlowView<'_>) -> bool {
    let source = view.initiator();
    let subject = Subject::new(view.key(), source)
        .with_vlan_ids(view.vlan_ids(source))
        .with_reverse_vlan_ids(view.vlan_ids(source.other()));
    filter.matches(&subject)
}

/// A flow's number among all, from one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Number(u64);

/// Asks a filter when flows end.
struct Chooser<'a> {
    filter: &'a Filter,
    started_count: u64,
    numbers: HashSet<u64>,
}

impl FlowSink<Number> for Chooser<'_> {
    fn interest(&self) -> Interest {
        Interest::STARTS
    }

    fn started(&mut self, flow: &mut Flow<'_, Number>) {
        self.started_count += 1;
        *flow.state = Number(self.started_count);
    }

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, number: Number) {
        if is_wanted(self.filter, view) {
            self.numbers.insert(number.0);
        }
    }
}
