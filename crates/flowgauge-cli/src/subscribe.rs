//! `flowgauge subscribe`: prints the events of a publisher.

use std::io::Write as _;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use flowgauge::FlowRecord;
use flowgauge::export::{Format, Lines, RecordWriter as _};
use flowgauge_bus::{
    Batch, ClientSecurity, Encoding, PublicKey, SecretKey, Subscriber, SubscriberConfig, SubscriptionStats,
};

use crate::args::{parse_count, parse_duration};
use crate::console::{Console, Failure, Out, stdout, write_line};
use crate::curve::secret_key;
use crate::escape;
use crate::formats::{OutputArgs, OutputFormat};
use crate::human::plural;
use crate::interrupt;
use crate::rows::Rows;

/// Print the flow records, messages and anomalies of a publisher (ZeroMQ).
///
/// Connects to `flowgauge publish` or to a program with the library flowgauge-bus, and connects again when the
/// connection ends, until Ctrl-C. Records that were lost on the way are counted.
#[derive(Debug, Args)]
#[command(
    after_help = "Topics: flow.start, flow.update, flow.end, session.PROTOCOL, anomaly.NAME. A topic selects all
topics that begin with it."
)]
#[command(after_long_help = "Examples:
  flowgauge subscribe --connect tcp://127.0.0.1:5556 --topic flow.end
  flowgauge subscribe --connect ipc:///run/flows --topic session.dns --format ndjson
  flowgauge subscribe --connect tcp://127.0.0.1:5556 --until-end > flows.txt

Exit status:
  0  Everything that was requested was received.
  1  The output could not be written.
  2  The command line is invalid.
  129, 130, 143  SIGHUP, Ctrl-C or SIGTERM ended the command, and everything that was received was written.")]
pub(crate) struct SubscribeArgs {
    /// Endpoint of the publisher: tcp://HOST:PORT or ipc://PATH
    #[arg(long, value_name = "ENDPOINT")]
    connect: String,

    /// Public key of the publisher, if it encrypts (CURVE)
    // A key may begin with a hyphen.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true)]
    curve_server: Option<PublicKey>,

    /// Own secret key, in a file that is created if it does not exist; default: a new key
    ///
    /// For publishers that accept certain subscribers. The public key of the file is printed.
    #[arg(long, value_name = "FILE", requires = "curve_server")]
    curve_key: Option<PathBuf>,

    /// Prefix of the topics to receive; may be repeated; default: all topics
    #[arg(long, value_name = "PREFIX")]
    topic: Vec<String>,

    #[command(flatten)]
    output: OutputArgs,

    /// End after N records or messages
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU64>)]
    count: Option<NonZeroU64>,

    /// End when the publisher ends, instead of waiting for the next one
    #[arg(long)]
    until_end: bool,

    /// End after TIME, such as 10s or 1h; default: until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,

    /// Suppress the summary; problems are still reported
    #[arg(long, short = 'q')]
    quiet: bool,
}

/// Maximum time between two tests for an interrupt.
const POLL: Duration = Duration::from_millis(100);

/// Time in which messages that were already sent arrive after Ctrl-C.
const DRAIN: Duration = Duration::from_millis(200);

/// Runs the command `flowgauge subscribe`.
pub(crate) fn run(args: &SubscribeArgs, console: &mut Console) -> Result<(), Failure> {
    args.output.check_order()?;
    args.output.check_groups(false, false)?;
    args.output.check()?;
    let started_at = Instant::now();
    let failure = |error: flowgauge_bus::BusError| match error {
        flowgauge_bus::BusError::Endpoint { .. } => Failure::Usage(format!("--connect: {error}")),
        error => Failure::Other(error.to_string()),
    };
    let mut config = SubscriberConfig::default();
    if let Some(server) = args.curve_server {
        config.security = ClientSecurity::Curve { secret_key: own_key(args)?, server };
    }
    let mut subscriber = Subscriber::connect_with(&args.connect, &config).map_err(failure)?;
    let all = [String::new()];
    for prefix in if args.topic.is_empty() { &all[..] } else { &args.topic } {
        subscriber = subscriber.subscribe(prefix).map_err(failure)?;
    }
    let mut output = Output::new(args)?;
    let stop = interrupt::stop();
    let end = args.duration.map(|duration| started_at + duration);
    let mut drain_until = None;
    while !output.is_complete() {
        let now = Instant::now();
        if stop.is_stopped() && drain_until.is_none() {
            drain_until = Some(now + DRAIN);
        }
        let end = drain_until.or(end);
        let wait = end.map_or(POLL, |end| end.saturating_duration_since(now).min(POLL));
        match subscriber.recv(wait).map_err(failure)? {
            Some(batch) => output.write(&batch)?,
            None if end.is_some_and(|end| Instant::now() >= end) => break,
            None if args.until_end && subscriber.has_ended() => break,
            None => output.flush()?,
        }
        if drain_until.is_some_and(|end| Instant::now() >= end) {
            break;
        }
    }
    let Output { skipped_count, invalid_count, .. } = output;
    output.finish()?;
    let stats = subscriber.stats();
    if !args.quiet {
        lines(&stats, skipped_count).iter().for_each(|line| write_line(line));
    }
    if stats.malformed_count > 0 {
        console.problem(format!("{} could not be decoded", plural(stats.malformed_count, "message")));
    }
    if invalid_count > 0 {
        console
            .problem(format!("{} of the publisher that are no JSON object", plural(invalid_count, "line")));
    }
    Ok(())
}

/// Returns the secret key of the subscriber, and prints the public one if it was read from a file.
fn own_key(args: &SubscribeArgs) -> Result<SecretKey, Failure> {
    let Some(path) = &args.curve_key else { return Ok(SecretKey::generate()) };
    let key = secret_key(path)?;
    if !args.quiet {
        write_line(&format!("flowgauge: public key {}", key.public_key()));
    }
    Ok(key)
}

/// Output of records as rows; as ndjson, of lines too.
struct Output {
    /// `None` for ndjson, in which lines are written as they were received, with control characters escaped.
    rows: Option<Rows>,
    /// Whether fields were chosen, which a line that is no record does not have.
    has_fields: bool,
    /// Standard output for ndjson.
    out: Lines<Out>,
    written_count: u64,
    /// Number of lines that the format cannot express.
    skipped_count: u64,
    /// Number of lines that are no JSON object.
    invalid_count: u64,
    /// Number of records and lines after which the command ends.
    limit: u64,
}

impl Output {
    fn new(args: &SubscribeArgs) -> Result<Self, Failure> {
        let OutputArgs { fields, style, .. } = &args.output;
        let rows = match args.output.format() {
            OutputFormat::Library(Format::Ndjson) if !args.output.selects_records() => None,
            _ => Some(args.output.rows(&[], true)?),
        };
        Ok(Self {
            rows,
            has_fields: fields.is_some(),
            out: Lines::ndjson(stdout(), fields.clone(), style.style()),
            written_count: 0,
            skipped_count: 0,
            invalid_count: 0,
            limit: args.count.map_or(u64::MAX, NonZeroU64::get),
        })
    }

    const fn is_complete(&self) -> bool {
        self.written_count >= self.limit
    }

    fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        match batch.header().encoding {
            Encoding::Records => {
                for record in batch.records() {
                    // Of another version of the publisher.
                    let Ok(record) = record else {
                        self.skipped_count += 1;
                        continue;
                    };
                    self.record(&record.to_record())?;
                }
            }
            _ => {
                for line in batch.lines() {
                    self.line(line, batch.topic())?;
                }
            }
        }
        Ok(())
    }

    fn record(&mut self, record: &FlowRecord) -> Result<(), Failure> {
        if self.is_complete() {
            return Ok(());
        }
        self.written_count += 1;
        match &mut self.rows {
            Some(rows) => rows.write(record),
            None => self.out.write(record)?,
        }
        Ok(())
    }

    fn line(&mut self, line: &str, topic: &str) -> Result<(), Failure> {
        if self.rows.is_some() || self.has_fields {
            if topic.starts_with("flow.")
                && let Ok(record) = serde_json::from_str::<FlowRecord>(line)
            {
                return self.record(&record);
            }
            self.skipped_count += 1;
            return Ok(());
        }
        if self.is_complete() {
            return Ok(());
        }
        let Some(line) = escape::json_object(line) else {
            self.invalid_count += 1;
            return Ok(());
        };
        self.written_count += 1;
        let out = self.out.get_mut();
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")?;
        Ok(())
    }

    /// Writes what the buffers contain.
    fn flush(&mut self) -> Result<(), Failure> {
        if let Some(rows) = &mut self.rows
            && rows.flush_stream().is_break()
        {
            // The failure is returned by `finish`.
            self.limit = 0;
        }
        Ok(self.out.get_mut().flush()?)
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.out.get_mut().flush()?;
        self.rows.map(Rows::finish).transpose().map(drop)
    }
}

/// Returns the lines of the summary.
fn lines(stats: &SubscriptionStats, skipped_count: u64) -> Vec<String> {
    let records = plural(stats.record_count, "record");
    let mut lines = vec![format!("{records} in {}", plural(stats.message_count, "message"))];
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            lines.push(format!("{} {what}", plural(count, "record")));
        }
    };
    note(stats.lost_count, "lost because they were received too slowly");
    note(stats.missed_count, "missed while not connected");
    note(skipped_count, "without a representation in the output format");
    lines
}
