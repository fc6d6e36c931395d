//! `flowgauge sessions`: what is said in flows.

mod args;
mod line;
mod rows;

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::time::Instant;

use flowgauge::pipeline::SessionSink;
use flowgauge::session::{About, Message, SessionEvent, Standard, http1, http2};
use flowgauge::tracker::{Flow, FlowSink, Interest};
use serde::Serialize;
use serde_json::{Map, Value};

use args::Format;
pub(crate) use args::SessionsArgs;
pub(crate) use args::layers;
use line::{Line, Stopped, Suppressed};

use crate::args::parse_filter;
use crate::choice::Choice;
use crate::console::{Console, Failure};
use crate::escape;
use crate::formats::Out;
use crate::human::plural;
use crate::input::Input;
use crate::summary;

/// Runs the command.
pub(crate) fn run(args: &SessionsArgs, console: &mut Console) -> Result<(), Failure> {
    let begun = Instant::now();
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let config = args.tracking.config();
    let usage = |error: flowgauge::pipeline::ConfigError| Failure::Usage(error.to_string());
    let choice = Choice::new(
        &args.community_id,
        filter.as_ref(),
        (&args.files[..], args.tracking.config()),
        |config| {
            // Done before the other begins, with an account of its own.
            let pipeline = args.pipeline(config).map_err(usage)?;
            Ok(match &filter {
                Some(filter) => pipeline.with_filter(filter.clone()),
                None => pipeline,
            })
        },
    )?;
    let mut pipeline = args.pipeline(&config).map_err(usage)?;
    if let Some(filter) = filter {
        pipeline = pipeline.with_filter(filter);
    }
    let (mut streams, sessions) = layers(&config);
    streams.ack_grace = args.grace.ack_grace;
    let mut pipeline = pipeline.with_streams(streams).map_err(usage)?.with_sessions(&sessions);
    let Some(input) = Input::open(&args.files, &config, console) else { return Ok(()) };
    // Rows that are written meanwhile to the same terminal would get in the way of a bar.
    let mut input = input.with_progress(!args.quiet && !io::stdout().is_terminal());
    let is_stream = input.is_stream();
    let mut sink = MessageSink::new(choice, args)?;
    input.each_batch(console, |batch, _| {
        pipeline.batch(batch, &mut sink);
        sink.check(is_stream)
    })?;
    pipeline.finish(&mut sink);
    sink.check(true)?;
    if !args.quiet {
        let result = plural(sink.message_count, "message");
        summary::write(&pipeline.stats(), &input.stats(), begun.elapsed(), &result);
    }
    Ok(())
}

/// What is known of a flow.
#[derive(Debug, Default)]
struct State {
    community_id: Option<Box<str>>,
}

/// Writes messages as they come.
struct MessageSink<'a> {
    args: &'a SessionsArgs,
    choice: Choice,
    started_count: u64,
    out: Out,
    rows: Option<rows::Rows>,
    /// With room for a line, so that its parts are put together without a call for each.
    line: Vec<u8>,
    message_count: u64,
    flushed_count: u64,
    outcome: io::Result<()>,
}

impl<'a> MessageSink<'a> {
    fn new(choice: Choice, args: &'a SessionsArgs) -> Result<Self, Failure> {
        let mut out: Out = Box::new(BufWriter::with_capacity(1 << 16, io::stdout()));
        let rows = match args.format {
            Format::Ndjson => None,
            Format::Table => Some(rows::Rows::new(&mut out)?),
        };
        Ok(Self {
            args,
            choice,
            started_count: 0,
            out,
            rows,
            line: Vec::new(),
            message_count: 0,
            flushed_count: 0,
            outcome: Ok(()),
        })
    }

    /// Whether to go on after a batch. What came from a stream is not held back.
    fn check(&mut self, is_stream: bool) -> Result<(), Failure> {
        std::mem::replace(&mut self.outcome, Ok(()))?;
        if is_stream && self.message_count > self.flushed_count {
            self.flushed_count = self.message_count;
            self.out.flush()?;
        }
        Ok(())
    }

    fn take(&mut self, flow: &mut Flow<'_, State>, about: &About, message: impl Serialize) {
        let wanted = &self.args.protocol;
        if self.outcome.is_err() || !wanted.is_empty() && !wanted.contains(&about.protocol.name()) {
            return;
        }
        let id = line::id(&mut flow.state.community_id, &flow.view);
        let line = Line::new(&flow.view, id, about, message);
        self.outcome = self.write(&line);
        self.message_count += 1;
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.line.clear();
        if let Some(rows) = &self.rows {
            let Value::Object(mut fields) = serde_json::to_value(line)? else { return Ok(()) };
            self.strip(&mut fields);
            rows.write(&mut self.line, &fields)?;
        } else {
            escape::write_json(&mut self.line, line)?;
            if !self.args.credentials && has(&self.line, b"\"credentials\":") {
                let Value::Object(mut fields) = serde_json::from_slice(&self.line)? else { return Ok(()) };
                self.strip(&mut fields);
                self.line.clear();
                escape::write_json(&mut self.line, &fields)?;
            }
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)
    }

    /// Takes out what is shown only if asked for.
    fn strip(&self, fields: &mut Map<String, Value>) {
        if !self.args.credentials {
            fields.remove("credentials");
        }
    }
}

/// Whether it says nothing but that what was said is all: the end of a message without a body.
fn is_plain_end(message: &Message<'_>) -> bool {
    match message {
        Message::Http1(http1::Message::End(end)) => end.body_len == 0 && end.complete,
        Message::Http2(http2::Message::End(end)) => {
            end.body_len == 0 && end.complete && end.grpc_status.is_none()
        }
        _ => false,
    }
}

fn has(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

impl FlowSink<State> for MessageSink<'_> {
    fn interest(&self) -> Interest {
        if matches!(self.choice, Choice::All) { Interest::ENDS } else { Interest::STARTS }
    }

    fn started(&mut self, flow: &mut Flow<'_, State>) {
        self.started_count += 1;
        if !self.choice.takes(&flow.view, self.started_count) {
            flow.mute();
        }
    }
}

impl SessionSink<Standard, State> for MessageSink<'_> {
    fn message(&mut self, flow: &mut Flow<'_, State>, about: &About, message: Message<'_>) {
        if !message.is_content() && !is_plain_end(&message) {
            self.take(flow, about, message);
        }
    }

    fn session(&mut self, flow: &mut Flow<'_, State>, event: &SessionEvent) {
        match event {
            SessionEvent::Stopped { about, fault, offset } => {
                self.take(flow, about, Stopped::new(*fault, *offset));
            }
            SessionEvent::Suppressed { about } => self.take(flow, about, Suppressed {}),
            _ => {}
        }
    }
}
