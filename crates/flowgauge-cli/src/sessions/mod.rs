//! `flowgauge sessions`: writes the messages of application protocols.

mod args;
mod rows;

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::time::Instant;

use flowgauge::export::write_json;
use flowgauge::protocols::{http1, http2};
use flowgauge::record::CommunityId;
use flowgauge::row::{Receiver, Row, TableInfo, Union};
use flowgauge::session::MessageHead;
use flowgauge::tracker::FlowView;
use flowgauge::transaction::{Transaction, TransactionConfig, TransactionHead};
use flowgauge::{
    Flow, Interest, Message, MessageMeta, Protocol, ReassemblerConfig, SessionEvent, Sessions, Sink,
    Standard, TransactionSink, Transactions,
};

pub(crate) use args::SessionsArgs;
use rows::RowHead;

use crate::args::{Pages, check, parse_filter};
use crate::bound::Bound;
use crate::choice::Choice;
use crate::console::{Console, Failure};
use crate::formats::Out;
use crate::human::plural;
use crate::input::Input;
use crate::summary;

/// Runs the command `flowgauge sessions`.
pub(crate) fn run(args: &SessionsArgs, console: &mut Console) -> Result<(), Failure> {
    let started_at = Instant::now();
    args.check()?;
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let resources = args.shared.resources();
    let flows =
        args.shared.builder(&resources, filter.as_ref(), Pages::Huge).checksums(args.checksums.into());
    let mut streams = ReassemblerConfig::default();
    streams.ack_grace = args.grace.ack_grace;
    let builder = flows.clone().streams(streams);
    check::<Sessions<Standard>>(&builder)?;
    let choice = Choice::new(&args.community_id, filter.as_ref(), &args.files, (&flows, &resources))?;
    let Some(input) = Input::open(&args.files, &resources, console) else { return Ok(()) };
    // A progress bar would interfere with rows that are written to the same terminal.
    let mut input = input.with_progress(!args.shared.quiet && !io::stdout().is_terminal());
    let sink = MessageSink::new(choice, args, input.is_stream())?;
    let (mut stats, sink) = if args.transactions {
        let mut config = TransactionConfig::default();
        config.has_hashes = args.hashes;
        let mut pipeline = builder.build(Transactions::new(sink).config(config))?;
        (input.run(&mut pipeline, console)?, pipeline.into_sink().into_inner())
    } else {
        let mut pipeline = builder.build(sink)?;
        (input.run(&mut pipeline, console)?, pipeline.into_sink())
    };
    let (row_count, omitted_count) = sink.finish()?;
    stats.sessions.suppressed_message_count += omitted_count;
    if !args.shared.quiet {
        let rows = plural(row_count, if args.transactions { "transaction" } else { "message" });
        summary::write(&stats, &input.stats(), started_at.elapsed(), &rows);
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

/// Sink that writes the messages of sessions as they arrive.
struct MessageSink<'a> {
    args: &'a SessionsArgs,
    choice: Choice,
    started_count: u64,
    out: Out,
    format: Format,
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

/// The format of messages, and what it needs.
enum Format {
    Ndjson,
    Table(rows::Rows),
    #[cfg(feature = "arrow")]
    Columns(crate::columns::TableFiles),
}

impl Format {
    fn new(args: &SessionsArgs, out: &mut Out) -> Result<Self, Failure> {
        Ok(match args.format {
            args::Format::Table => Self::Table(rows::Rows::new(out)?),
            #[cfg(feature = "arrow")]
            args::Format::Parquet | args::Format::Arrow => Self::Columns(args.files()?),
            _ => Self::Ndjson,
        })
    }
}

impl<'a> MessageSink<'a> {
    fn new(choice: Choice, args: &'a SessionsArgs, is_stream: bool) -> Result<Self, Failure> {
        let mut out: Out = Box::new(BufWriter::with_capacity(1 << 16, io::stdout()));
        let format = Format::new(args, &mut out)?;
        Ok(Self {
            args,
            choice,
            started_count: 0,
            out,
            format,
            line: Vec::new(),
            is_stream,
            bound: Bound::new(),
            row_count: 0,
            omitted_count: 0,
            flushed_count: 0,
            outcome: Ok(()),
        })
    }

    /// Flushes all output. Returns the numbers of messages written and omitted.
    fn finish(mut self) -> Result<(u64, u64), Failure> {
        self.outcome?;
        self.out.flush()?;
        #[cfg(feature = "arrow")]
        if let Format::Columns(files) = self.format {
            files.finish()?;
        }
        Ok((self.row_count, self.omitted_count))
    }

    /// Returns whether rows of a protocol are written.
    fn wants(&self, protocol: &Protocol) -> bool {
        let wanted = &self.args.protocol;
        wanted.is_empty() || wanted.contains(&protocol.name())
    }

    fn take(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &impl Union) {
        if self.outcome.is_err() || self.args.transactions || !self.wants(meta.protocol) {
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
        let spent = &mut flow.state.spent;
        message.row(Line { sink: self, view: &flow.view, community_id, meta, spent })
    }

    /// Writes a row that a flow with this much input may have, unless it would exceed the bound on the output. `spent` is
    /// the output of the flow so far. Returns whether the row was written.
    fn write_row<H: Row, R: Row>(
        &mut self,
        table: &'static TableInfo,
        (head, content): (H, &R),
        row_head: &RowHead,
        (received_len, spent): (u64, &mut u64),
    ) -> Result<bool, Failure> {
        let Self { args, format, line, bound, .. } = self;
        line.clear();
        let row = (head, content);
        match format {
            Format::Table(rows) => rows.write(line, row_head, content, args.credentials),
            // Formats of columns omit the same rows as ndjson.
            _ => write_json(line, &row, args.style()),
        }
        line.push(b'\n');
        if !bound.permits(spent, received_len, line.len()) {
            return Ok(false);
        }
        self.row_count += 1;
        #[cfg(feature = "arrow")]
        if let Format::Columns(files) = format {
            files.write(table, &row)?;
            return Ok(true);
        }
        #[cfg(not(feature = "arrow"))]
        let _ = table;
        self.out.write_all(line)?;
        Ok(true)
    }
}

/// Writes a message to a sink.
struct Line<'l, 'a, 'f> {
    sink: &'l mut MessageSink<'a>,
    view: &'l FlowView<'f>,
    community_id: CommunityId,
    meta: &'l MessageMeta,
    /// Octets of output of the flow.
    spent: &'l mut u64,
}

impl Receiver for Line<'_, '_, '_> {
    type Output = Result<bool, Failure>;

    fn row<R: Row>(self, table: &'static TableInfo, message: &R) -> Result<bool, Failure> {
        let head = MessageHead::new(self.view, self.community_id, self.meta, table);
        let bound = (self.meta.received_len, self.spent);
        self.sink.write_row(table, (head, message), &RowHead::from(&head), bound)
    }
}

/// Writes a transaction to a sink.
struct TransactionLine<'l, 'a, 'f> {
    sink: &'l mut MessageSink<'a>,
    view: &'l FlowView<'f>,
    community_id: CommunityId,
    transaction: &'l Transaction,
    /// Octets of output of the flow.
    spent: &'l mut u64,
}

impl Receiver for TransactionLine<'_, '_, '_> {
    type Output = Result<bool, Failure>;

    fn row<R: Row>(self, table: &'static TableInfo, content: &R) -> Result<bool, Failure> {
        let head = TransactionHead::new(self.view, self.community_id, self.transaction, table);
        let bound = (self.transaction.received_len(), self.spent);
        self.sink.write_row(table, (head, content), &RowHead::from(&head), bound)
    }
}

impl TransactionSink for MessageSink<'_> {
    fn transaction(&mut self, flow: &FlowView<'_>, state: &mut State, transaction: &Transaction) {
        if self.outcome.is_err() || !self.wants(transaction.protocol()) {
            return;
        }
        let community_id = id(&mut state.community_id, flow);
        let spent = &mut state.spent;
        let line = TransactionLine { sink: self, view: flow, community_id, transaction, spent };
        let written = transaction.content.row(line);
        self.outcome = written.map(|is_written| self.omitted_count += u64::from(!is_written));
    }
}

/// Returns the Community ID of a flow, which is computed only once per flow and stored in `known`.
pub(crate) fn id(known: &mut Option<CommunityId>, view: &FlowView<'_>) -> CommunityId {
    *known.get_or_insert_with(|| view.community_id())
}

/// Returns whether a message of a parser only marks the end of an HTTP message without a body.
pub(crate) fn is_plain_end(message: &Message<'_>) -> bool {
    match message {
        Message::Http1(http1::Message::End(end)) => end.body_len == 0 && end.complete,
        Message::Http2(http2::Message::End(end)) => {
            end.body_len == 0 && end.complete && end.grpc_status.is_none()
        }
        _ => false,
    }
}

impl Sink for MessageSink<'_> {
    type State = State;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        let wanted = if matches!(self.choice, Choice::All) { Interest::RECORDS } else { Interest::STARTS };
        wanted | Interest::VARIES
    }

    fn started(&mut self, flow: &mut Flow<'_, State>) {
        self.started_count += 1;
        if !self.choice.selects(&flow.view, self.started_count) {
            flow.mute();
        }
    }

    fn message(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &Message<'_>) {
        if !message.is_content() && !is_plain_end(message) {
            self.take(flow, meta, message);
        }
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
            self.outcome = self.out.flush().map_err(Failure::from);
        }
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
