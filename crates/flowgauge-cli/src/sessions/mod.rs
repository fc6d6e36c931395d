//! `flowgauge sessions`: writes the messages of application protocols.

mod args;
mod rows;
mod target;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use flowgauge::checkpoint::{self as library, Invalid, StateWriter, Writer};
use flowgauge::codec::Reader;
use flowgauge::export::write_json;
use flowgauge::neighbor::Neighbor;
use flowgauge::pipeline::boxed;
use flowgauge::record::CommunityId;
use flowgauge::row::{Row, TableRow, Union};
use flowgauge::session::MessageHead;
use flowgauge::tracker::FlowView;
use flowgauge::transaction::{Transaction, TransactionConfig, TransactionHead};
use flowgauge::{
    Builder, Flow, Interest, KeyPolicy, Message, MessageMeta, PipelineStats, ReassemblerConfig, Resources,
    SessionEvent, Sessions, Sink, Standard, TransactionSink, Transactions,
};

use args::Neighbors;
pub(crate) use args::SessionsArgs;
use rows::RowHead;
use target::Target;

use crate::args::{Pages, Tunnels, check, parse_filter};
use crate::bound::Bound;
use crate::checkpoint::{self, Flush};
use crate::choice::Choice;
use crate::console::{Console, Failure};
use crate::human::plural;
use crate::input::Input;
use crate::output::Outputs;
use crate::rows::Written;
use crate::write::Logged;
use flowgauge_condition::RowFilter;

/// Runs the command `flowgauge sessions`.
pub(crate) fn run(args: &SessionsArgs, console: &mut Console) -> Result<(), Failure> {
    let started_at = Instant::now();
    args.check()?;
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let resources = args.shared.resources();
    // Messages are those of the innermost flows; Zeek also has the connections that carry tunnels.
    let tunnels = if args.has_only_folders() { Tunnels::Both } else { Tunnels::Innermost };
    let mut key_policy = KeyPolicy::DEFAULT;
    key_policy.decapsulation = tunnels.into();
    let flows =
        args.shared.builder(&resources, filter.as_ref(), Pages::Huge).checksums(args.checksums.into());
    let flows = flows.key_policy(key_policy).encapsulation(tunnels == Tunnels::Both);
    let mut streams = ReassemblerConfig::default();
    streams.ack_grace = args.grace.ack_grace;
    let builder = flows.clone().streams(streams);
    check::<Sessions<Standard>>(&builder)?;
    args.grace.shift.exclude("--checkpoint", args.checkpoint.is_used())?;
    if args.checkpoint.is_used() {
        if filter.as_ref().is_some_and(|filter| !filter.is_final()) {
            let usage =
                "--checkpoint requires a filter without src, dst and vlan, which apply to whole flows";
            return Err(Failure::Usage(usage.to_owned()));
        }
        return continue_sessions(args, (&builder, &resources), started_at, console);
    }
    let choice = Choice::new(
        &args.community_id,
        filter.as_ref(),
        (&args.files, Some(&args.grace.shift)),
        (&flows, &resources),
    )?;
    let Some(input) = Input::open(&args.files, &resources, console) else { return Ok(()) };
    // A progress bar would interfere with rows that are written to the same terminal.
    let input = input.shifted(&args.grace.shift);
    let mut input = input.with_progress(!args.shared.quiet && !io::stdout().is_terminal());
    let outputs = Arc::new(Outputs::new(&args.files, args.force));
    let mut sink = MessageSink::new(choice, (args, &outputs), input.is_stream())?;
    let logs = args.written.open_logs(args.logs(), &outputs, (tunnels, false))?;
    let (has_logs, has_rows) = (!logs.is_empty(), !sink.targets.is_empty());
    let protocols = args.protocols();
    let (run, sink, logged) = if args.joins() {
        let mut config = TransactionConfig::default();
        config.has_hashes = args.hashes;
        config.decodes = has_logs;
        let logged = Logged::new(sink, logs, (None, &protocols), input.is_stream())
            .of_flows_only(!args.community_id.is_empty());
        let mut joined = Transactions::new(logged).config(config);
        let run = input.run(builder.build(boxed(&mut joined))?, console);
        let (sink, logged) = joined.into_inner().finish();
        (run, sink, Some(logged))
    } else {
        let run = input.run(builder.build(boxed(&mut sink))?, console);
        (run, sink, None)
    };
    // All outputs are completed, even if one of them failed.
    let finished = sink.finish();
    let mut stats = run?;
    let logged = logged.transpose()?;
    let Finished { written: Written { mut row_count, unmatched }, omitted_count } = finished?;
    stats.sessions.suppressed_message_count += omitted_count;
    if let Some(outcome) = logged.filter(|_| has_logs) {
        stats.sessions.suppressed_message_count += outcome.omitted_count;
        if !has_rows {
            row_count = outcome.row_count;
        }
    }
    if !args.shared.quiet {
        let rows = match (has_rows, args.transactions) {
            (false, _) => plural(row_count, "row"),
            (true, true) => plural(row_count, "transaction"),
            (true, false) => plural(row_count, "message"),
        };
        let rows = rows + &Written { row_count, unmatched }.note();
        args.summary.write(&stats, &input.stats(), started_at.elapsed(), &rows);
    }
    Ok(())
}

/// Continues the sessions of a checkpoint.
fn continue_sessions(
    args: &SessionsArgs,
    (builder, resources): (&Builder, &Resources),
    started_at: Instant,
    console: &mut Console,
) -> Result<(), Failure> {
    let outputs = Arc::new(Outputs::new(&args.files, args.force));
    let mut sink = MessageSink::new(Choice::All, (args, &outputs), false)?;
    let has_bar = !args.shared.quiet && !io::stdout().is_terminal();
    let origin = checkpoint::Origin::Files(&args.files, resources, has_bar);
    let run = |command| checkpoint::Run { command, args: &args.checkpoint, builder };
    let (outcome, sink, rows) = if args.transactions {
        let mut config = TransactionConfig::default();
        config.has_hashes = args.hashes;
        let mut joined = Transactions::new(sink).config(config);
        let outcome = run("sessions --transactions").run(&mut joined, origin, console);
        (outcome, joined.into_inner(), "transaction")
    } else {
        (run("sessions").run(&mut sink, origin, console), sink, "message")
    };
    // The failure of the output is the first one.
    let Finished { written, omitted_count } = sink.finish()?;
    let mut outcome = outcome?;
    let rows = outcome.describe(plural(written.row_count, rows) + &written.note());
    let (stats, source) = (&mut outcome.stats, &outcome.source);
    stats.sessions.suppressed_message_count += omitted_count;
    if !args.shared.quiet {
        args.summary.write(stats, source, started_at.elapsed(), &rows);
    }
    Ok(())
}

/// State of a flow that the sink keeps between its messages.
#[derive(Debug, Default)]
struct State {
    community_id: Option<CommunityId>,
    /// Octets of output of this flow.
    spent: u64,
    has_suppressed: bool,
}

/// The Community ID is computed again.
impl library::State for State {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        writer.varint(self.spent)?;
        Ok(writer.bool(self.has_suppressed)?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(Self { community_id: None, spent: reader.varint()?, has_suppressed: reader.bool()? })
    }
}

impl Flush for &mut MessageSink<'_> {
    fn flush(&mut self) -> bool {
        if self.outcome.is_ok() {
            self.outcome = self.targets.iter_mut().try_for_each(Target::flush);
        }
        self.outcome.is_ok()
    }
}

impl Flush for &mut Transactions<MessageSink<'_>> {
    fn flush(&mut self) -> bool {
        self.inner_mut().flush()
    }

    fn attach(&self, _: &PipelineStats, writer: &mut Writer<File>) -> io::Result<()> {
        Transactions::attach(self, writer)
    }

    fn restore(&mut self, reader: &library::Reader<File>) -> Result<(), Invalid> {
        Transactions::restore(self, reader)
    }
}

/// Sink that writes the messages of sessions as they arrive.
struct MessageSink<'a> {
    args: &'a SessionsArgs,
    /// Protocols whose rows are written; all if there are none.
    protocols: Vec<&'static str>,
    /// Messages between neighbors that are wanted, whose rows have no flow.
    neighbors: Neighbors,
    /// Numbers of rows of other protocols, until one is written.
    others: BTreeMap<&'static str, u64>,
    choice: Choice,
    started_count: u64,
    targets: Vec<Target>,
    rows: RowFilter,
    /// Buffer for the current line, so that its parts are joined without a write for each.
    line: Vec<u8>,
    /// True if frames arrive in real time, so that rows must not wait in a buffer.
    is_stream: bool,
    bound: Bound,
    row_count: u64,
    omitted_count: u64,
    flushed_count: u64,
    outcome: Result<(), Failure>,
}

/// What a sink wrote.
struct Finished {
    written: Written,
    /// Rows that exceeded the bound on the output.
    omitted_count: u64,
}

impl<'a> MessageSink<'a> {
    fn new(
        choice: Choice,
        (args, outputs): (&'a SessionsArgs, &Arc<Outputs>),
        is_stream: bool,
    ) -> Result<Self, Failure> {
        Ok(Self {
            args,
            protocols: args.protocols(),
            neighbors: args.neighbors(),
            others: BTreeMap::new(),
            rows: args.rows()?,
            choice,
            started_count: 0,
            targets: Target::open(args, outputs)?,
            line: Vec::new(),
            is_stream,
            bound: Bound::new(),
            row_count: 0,
            omitted_count: 0,
            flushed_count: 0,
            outcome: Ok(()),
        })
    }

    /// Returns why there are no rows: those of other protocols, or the condition.
    fn unmatched(&self) -> Option<String> {
        if self.row_count > 0 {
            return None;
        }
        let others: Vec<_> = self.others.iter().map(|(name, count)| format!("{name}: {count}")).collect();
        let others = (!others.is_empty()).then(|| format!("rows of other protocols: {}", others.join(", ")));
        self.rows.unmatched().or(others)
    }

    /// Completes all output, even after a failed write.
    fn finish(self) -> Result<Finished, Failure> {
        let written = Written { row_count: self.row_count, unmatched: self.unmatched() };
        let mut outcome = self.outcome;
        for target in self.targets {
            let finished = target.finish();
            outcome = outcome.and(finished);
        }
        outcome.map(|()| Finished { written, omitted_count: self.omitted_count })
    }

    /// Returns whether rows of a protocol are written.
    fn wants(&mut self, protocol: &'static str) -> bool {
        let wanted = &self.protocols;
        let is_wanted = wanted.is_empty() || wanted.contains(&protocol);
        if !is_wanted && self.row_count == 0 {
            *self.others.entry(protocol).or_default() += 1;
        }
        is_wanted
    }

    fn take(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &impl Union) {
        let is_unwanted =
            self.args.transactions || self.targets.is_empty() || !self.wants(meta.protocol.name());
        if self.outcome.is_err() || is_unwanted {
            return;
        }
        let community_id = id(&mut flow.state.community_id, &flow.view);
        self.outcome = match self.write(flow, community_id, meta, message) {
            Ok(false) => {
                self.omitted_count += 1;
                if std::mem::replace(&mut flow.state.has_suppressed, true) {
                    Ok(())
                } else {
                    let suppressed = SessionEvent::Suppressed { meta: *meta };
                    self.write(flow, community_id, meta, &suppressed).map(drop)
                }
            }
            outcome => outcome.map(drop),
        };
    }

    /// Writes a message, unless it would exceed the bound on the output. Returns whether it was written.
    fn write(
        &mut self,
        flow: &mut Flow<'_, State>,
        community_id: CommunityId,
        meta: &MessageMeta,
        message: &impl Union,
    ) -> Result<bool, Failure> {
        let row = message.row();
        let head = MessageHead::new(&flow.view, community_id, meta, row.table);
        self.write_row((head, row), &RowHead::from(&head), (meta.received_len, &mut flow.state.spent))
    }

    /// Writes a row that a flow with this much input may have, unless it would exceed the bound on the output. `spent` is
    /// the output of the flow so far. Returns whether the row was written.
    fn write_row<H: Row>(
        &mut self,
        row: (H, TableRow<'_>),
        row_head: &RowHead,
        (received_len, spent): (u64, &mut u64),
    ) -> Result<bool, Failure> {
        if !self.rows.matches(&row) {
            return Ok(true);
        }
        let Self { args, targets, line, bound, .. } = self;
        let mut is_written = true;
        for target in targets {
            line.clear();
            match target {
                Target::Table(rows, _) => rows.write(line, row_head, row.1, args.credentials),
                // Formats of columns omit the same rows as ndjson.
                _ => write_json(line, &row, args.style()),
            }
            line.push(b'\n');
            if !bound.permits(spent, received_len, line.len()) {
                is_written = false;
                continue;
            }
            match target {
                Target::Ndjson(out) | Target::Table(_, out) => out.write_all(line)?,
                Target::Files(files) => files.write(row_head.timestamp(), line)?,
                #[cfg(feature = "arrow")]
                Target::Columns(files) => files.write(row.1.table, &row)?,
            }
        }
        self.row_count += u64::from(is_written);
        Ok(is_written)
    }
}

impl TransactionSink for MessageSink<'_> {
    fn transaction(&mut self, flow: &FlowView<'_>, state: &mut State, transaction: &Transaction) {
        let is_unwanted = !self.args.transactions || self.targets.is_empty();
        if self.outcome.is_err() || is_unwanted || !self.wants(transaction.protocol().name()) {
            return;
        }
        let community_id = id(&mut state.community_id, flow);
        let row = transaction.content.row();
        let head = TransactionHead::new(flow, community_id, transaction, row.table);
        let bound = (transaction.received_len(), &mut state.spent);
        let written = self.write_row((head, row), &RowHead::from(&head), bound);
        self.outcome = written.map(|is_written| self.omitted_count += u64::from(!is_written));
    }
}

/// Returns the Community ID of a flow, which is computed only once per flow and stored in `known`.
pub(crate) fn id(known: &mut Option<CommunityId>, view: &FlowView<'_>) -> CommunityId {
    *known.get_or_insert_with(|| view.community_id())
}

impl Sink for MessageSink<'_> {
    type State = State;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        let wanted = if matches!(self.choice, Choice::All) { Interest::RECORDS } else { Interest::STARTS };
        let has_neighbors = self.neighbors != Neighbors::None;
        let neighbors = if has_neighbors { Interest::NEIGHBORS } else { Interest::RECORDS };
        wanted | neighbors | Interest::VARIES
    }

    fn started(&mut self, flow: &mut Flow<'_, State>) {
        self.started_count += 1;
        if !self.choice.selects(&flow.view, self.started_count) {
            flow.mute();
        }
    }

    fn message(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &Message<'_>) {
        if !message.is_content() && !message.is_plain_end() {
            self.take(flow, meta, message);
        }
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        let is_wanted = match self.neighbors {
            Neighbors::None => false,
            Neighbors::Named => true,
            Neighbors::WithoutFlow => !neighbor.head.is_in_flow(),
        };
        if !is_wanted
            || self.outcome.is_err()
            || self.targets.is_empty()
            || !self.wants(neighbor.head.protocol)
        {
            return;
        }
        let row = (neighbor.head, neighbor.message.row());
        let bound = (neighbor.head.frame_len.into(), &mut 0);
        let written = self.write_row(row, &RowHead::from(&neighbor.head), bound);
        self.outcome = written.map(|is_written| self.omitted_count += u64::from(!is_written));
    }

    fn session(&mut self, flow: &mut Flow<'_, State>, event: &SessionEvent) {
        match event {
            SessionEvent::Stopped { meta, .. } => self.take(flow, meta, event),
            SessionEvent::Suppressed { meta } if !std::mem::replace(&mut flow.state.has_suppressed, true) => {
                self.take(flow, meta, event);
            }
            _ => {}
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.outcome.is_ok() && self.is_stream && self.row_count > self.flushed_count {
            self.flushed_count = self.row_count;
            self.outcome = self.targets.iter_mut().try_for_each(Target::flush);
        }
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
