//! `flowgauge collect`: receives flow records of other exporters.

mod args;
mod capture;
mod framing;
mod guess;
mod listener;
mod packets;

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use flowgauge::export::human::duration;
use flowgauge::ipfix::MessageReader;
use flowgauge::ipfix::collector::{
    Collected, Collector, CollectorConfig, CollectorStats, TransportSession, UniflowJoiner,
};
use flowgauge::{FlowRecord, Limits, Resources, Timestamp};

use crate::args::Timeout;
use crate::bound::Bound;
use crate::console::{Console, Failure, write_line};
use crate::human::plural;
use crate::input::is_stdin;
use crate::interrupt;
use crate::ipfix::now;
use crate::rows::{Rows, Written};

pub(crate) use args::CollectArgs;
use capture::Received;
use listener::Event;
use packets::SampledFlows;

/// Number of uniflows that wait for the other direction.
const JOIN_COUNT_MAX: usize = 65_536;

/// Interval of the records of open flows of sampled packets, while messages are received.
const ACTIVE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Number of refused connections that are reported one by one.
const REPORTED_COUNT_MAX: u64 = 16;

/// Time for which records wait in a buffer at most.
const FLUSH_INTERVAL: Duration = Duration::from_millis(200);

/// Runs the command `flowgauge collect`.
pub(crate) fn run(args: &CollectArgs, console: &mut Console) -> Result<(), Failure> {
    let format = args.output.format().logs();
    args.written.check(format, (false, false))?;
    args.output.check_groups(args.series.is_used(), args.written.is_wanted(format))?;
    args.output.check_order()?;
    args.output.check()?;
    let started_at = Instant::now();
    let stop = interrupt::stop();
    let events = match args.listen.as_slice() {
        [] => None,
        endpoints => Some(listener::listen(endpoints, &stop).map_err(Failure::Other)?),
    };
    let rows = args.written.rows(&args.output, &args.series, (&args.files, events.is_some()))?;
    let mut limits = Limits::DEFAULT;
    limits.total_bytes_max = args.memory.unwrap_or(limits.total_bytes_max);
    let resources = Resources::new(limits);
    let joiner =
        args.join.map(|timeout| UniflowJoiner::new(JOIN_COUNT_MAX, timeout, &resources)).transpose()?;
    let active_timeout = match args.active_timeout {
        Some(Timeout(timeout)) => timeout,
        None => events.is_some().then_some(ACTIVE_TIMEOUT),
    };
    let mut collection = Collection {
        collector: Collector::new(CollectorConfig::default())?,
        sampled: SampledFlows::new(&resources, active_timeout)?,
        output: Output::new(rows, joiner, args.scale),
        resources,
        notes: Vec::new(),
    };
    let (mut drop_count, mut refused_count) = (0, 0);
    match events {
        None => {
            for path in &args.files {
                if let Err(error) = collection.read(path, args) {
                    console.problem(format!("{}: {error}", path.display()));
                }
            }
        }
        Some(events) => {
            let end = args.duration.map(|duration| started_at + duration);
            let mut next_flush = started_at + FLUSH_INTERVAL;
            loop {
                let wait = next_flush.saturating_duration_since(Instant::now());
                match events.recv_timeout(wait) {
                    Ok(Event::Message(session, message)) => collection.message(session, &message, now()),
                    Ok(Event::Closed(session)) => collection.collector.end_session(session),
                    Ok(Event::Refused(exporter)) => {
                        refused_count += 1;
                        if refused_count <= REPORTED_COUNT_MAX {
                            console.problem(format!(
                                "{exporter}: connection closed, because there are too many"
                            ));
                        }
                    }
                    Ok(Event::Dropped(count)) => drop_count += count,
                    Ok(Event::Problem(problem)) => console.problem(problem),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                let time = Instant::now();
                if time >= next_flush {
                    next_flush = time + FLUSH_INTERVAL;
                    if collection.flush(now()).is_break() {
                        stop.stop();
                    }
                }
                if end.is_some_and(|end| time >= end) {
                    stop.stop();
                }
            }
        }
    }
    let notes = std::mem::take(&mut collection.notes);
    let event_count = collection.output.event_count;
    let (stats, written, omitted_count) = collection.finish()?;
    if !args.quiet {
        notes.iter().for_each(|note| write_line(note));
    }
    if !args.quiet && args.summary.is_json() {
        let own = [
            ("written_record_count", written.row_count),
            ("omitted_record_count", omitted_count),
            ("event_record_count", event_count),
            ("dropped_message_count", drop_count),
            ("refused_connection_count", refused_count),
            ("processing_time", u64::try_from(started_at.elapsed().as_nanos()).unwrap_or(u64::MAX)),
        ];
        let mut object = serde_json::to_value(stats).unwrap_or_default();
        for (name, count) in own {
            object[name] = count.into();
        }
        write_line(&object.to_string());
    } else if !args.quiet {
        let mut lines = lines(&stats, &written, started_at.elapsed());
        if event_count > 0 {
            lines.push(format!("{} of events, which are not flows", plural(event_count, "record")));
        }
        if omitted_count > 0 {
            lines.push(format!(
                "{} omitted, because the output would be out of proportion to the input",
                plural(omitted_count, "record")
            ));
        }
        if drop_count > 0 {
            lines.push(format!("{} dropped by the kernel", plural(drop_count, "message")));
        }
        if refused_count > 0 {
            lines
                .push(format!("{} closed, because there were too many", plural(refused_count, "connection")));
        }
        lines.iter().for_each(|line| write_line(line));
    }
    Ok(())
}

/// A collector and the output of its records.
struct Collection {
    collector: Collector,
    sampled: SampledFlows,
    output: Output,
    resources: Resources,
    /// Lines about messages that were not read.
    notes: Vec<String>,
}

/// Output of records, which may be joined before.
struct Output {
    rows: Rows,
    joiner: Option<UniflowJoiner>,
    /// Whether counts are multiplied by the sampling interval.
    is_scaled: bool,
    bound: Bound,
    /// Octets of messages with sampled packets, and the octets of output that they have caused.
    sampled: Proportion,
    omitted_count: u64,
    /// Records of events, which are not flows.
    event_count: u64,
}

/// Octets of input, and of the output that it has caused.
#[derive(Clone, Copy, Debug, Default)]
struct Proportion {
    received_len: u64,
    spent: u64,
}

impl Output {
    const fn new(rows: Rows, joiner: Option<UniflowJoiner>, is_scaled: bool) -> Self {
        let sampled = Proportion { received_len: 0, spent: 0 };
        Self { rows, joiner, is_scaled, bound: Bound::new(), sampled, omitted_count: 0, event_count: 0 }
    }

    /// Writes a record, or joins it with that of the other direction, unless it is out of proportion to `input`.
    fn record(&mut self, record: &FlowRecord, input: &mut Proportion, now: Timestamp) {
        self.event_count += u64::from(record.is_event());
        let Self { rows, joiner, is_scaled, bound, omitted_count, .. } = self;
        let mut permits = |len| {
            let is_permitted = bound.permits(&mut input.spent, input.received_len, len);
            *omitted_count += u64::from(!is_permitted);
            is_permitted
        };
        let mut scaled = None;
        if *is_scaled && record.sampling_interval.is_some() {
            scaled.insert(record.clone()).scale();
        }
        let record = scaled.as_ref().unwrap_or(record);
        match joiner {
            None => rows.write_if(record, permits),
            Some(joiner) => {
                if permits(rows.len_of(record)) {
                    joiner.push(record, now, |record| rows.write(record));
                }
            }
        }
    }

    /// Writes a record of sampled packets, which describes both directions already.
    fn biflow(&mut self, mut record: FlowRecord) {
        let Self { rows, is_scaled, bound, sampled, omitted_count, .. } = self;
        if *is_scaled {
            record.scale();
        }
        rows.write_if(&record, |len| {
            let is_permitted = bound.permits(&mut sampled.spent, sampled.received_len, len);
            *omitted_count += u64::from(!is_permitted);
            is_permitted
        });
    }

    /// Flushes the rows, and the uniflows whose time has passed. Returns [`ControlFlow::Break`] after a failed write.
    fn flush(&mut self, now: Timestamp) -> ControlFlow<()> {
        let Self { rows, joiner, .. } = self;
        if let Some(joiner) = joiner {
            joiner.expire(now, |record| rows.write(record));
        }
        rows.flush_stream()
    }
}

impl Collection {
    /// Decodes a message that arrived at the time `now`.
    fn message(&mut self, session: TransportSession, message: &[u8], now: Timestamp) {
        let Self { collector, sampled, output, .. } = self;
        let mut input = Proportion { received_len: message.len() as u64, spent: 0 };
        let mut has_packets = false;
        collector.session_message(session, message, now, |collected| match collected {
            Collected::Record(record) => output.record(record, &mut input, now),
            Collected::Packet(packet) => {
                has_packets = true;
                sampled.packet(&packet, now);
            }
        });
        if has_packets {
            output.sampled.received_len += input.received_len;
            output.sampled.spent += input.spent;
        }
        sampled.records().for_each(|record| output.biflow(record));
    }

    /// Flushes the rows, and those of flows that are due. Returns [`ControlFlow::Break`] after a failed write.
    fn flush(&mut self, now: Timestamp) -> ControlFlow<()> {
        let Self { sampled, output, .. } = self;
        sampled.advance(now);
        sampled.records().for_each(|record| output.biflow(record));
        output.flush(now)
    }

    /// Reads a file of IPFIX messages, or a capture of messages.
    fn read(&mut self, path: &Path, args: &CollectArgs) -> io::Result<()> {
        /// Version of IPFIX, with which a file of messages begins. No format of captures begins with these octets.
        const MAGIC: [u8; 2] = [0, 10];
        let mut input: Box<dyn Read + Send> =
            if is_stdin(path) { Box::new(io::stdin()) } else { Box::new(File::open(path)?) };
        let mut start = [0; MAGIC.len()];
        input.read_exact(&mut start).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other("the file is empty"),
            _ => error,
        })?;
        let input = io::Cursor::new(start).chain(input);
        if start != MAGIC {
            let resources = self.resources.clone();
            let notes = capture::read(input, &args.port, &resources, |session, received| match received {
                Received::Message(message, time) => self.message(session, message, time),
                Received::End => self.collector.end_session(session),
            })?;
            self.notes.extend(notes.into_iter().map(|note| format!("{}: {note}", path.display())));
            return Ok(());
        }
        // The messages of each file have their own templates.
        let exporter = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let mut messages = MessageReader::new(io::BufReader::with_capacity(1 << 16, input));
        let mut outcome = Ok(());
        while !interrupt::stop().is_stopped() {
            match messages.next() {
                Ok(Some(message)) => self.message(exporter.into(), message, Timestamp::ZERO),
                Ok(None) => break,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        self.collector.disconnect(exporter);
        outcome
    }

    /// Completes the output. Returns the counters, what was written, and the number of records omitted.
    fn finish(mut self) -> Result<(CollectorStats, Written, u64), Failure> {
        let Self { sampled, output, .. } = &mut self;
        sampled.finish();
        sampled.records().for_each(|record| output.biflow(record));
        let Output { mut rows, joiner, omitted_count, .. } = self.output;
        if let Some(mut joiner) = joiner {
            joiner.finish(|record| rows.write(record));
        }
        Ok((self.collector.stats(), rows.finish()?, omitted_count))
    }
}

/// Returns the lines of the summary.
fn lines(stats: &CollectorStats, written: &Written, elapsed: Duration) -> Vec<String> {
    let mut received = plural(stats.record_count, "record");
    if stats.packet_count > 0 {
        received = format!("{received}, {}", plural(stats.packet_count, "sampled packet"));
    }
    let written = if written.row_count == stats.record_count {
        String::new()
    } else {
        format!(", {} written{}", plural(written.row_count, "record"), written.note())
    };
    let mut lines = vec![format!(
        "{} ({} octets): {received}{written}; processed in {}",
        plural(stats.message_count, "message"),
        stats.octet_count,
        duration(elapsed)
    )];
    let mut note = |count: u64, one: &str, what: &str| {
        if count > 0 {
            lines.push(format!("{} {what}", plural(count, one)));
        }
    };
    note(stats.malformed_message_count, "message", "malformed or of an unknown version");
    note(stats.unknown_template_set_count, "data set", "skipped because the template is not known");
    note(stats.refused_template_count, "template", "refused (malformed or too large)");
    note(stats.unkeyed_record_count, "record", "without addresses skipped");
    note(stats.unsupported_packet_count, "sampled packet", "of an unsupported link layer skipped");
    note(stats.counter_sample_count, "sample", "of interface counters skipped");
    note(stats.discarded_packet_count, "notification", "of a discarded packet skipped");
    note(stats.skipped_sample_count, "sample", "of an unknown format skipped");
    note(stats.invalid_value_count, "value", "invalid, and absent in its record");
    note(
        stats.lost_count,
        "record",
        "lost according to the sequence numbers (messages for NetFlow version 9)",
    );
    note(stats.reordered_message_count, "message", "received after a later one");
    note(stats.restart_count, "exporter", "restarted according to the sequence numbers");
    note(stats.evicted_domain_count, "observation domain", "evicted with its templates (too many exporters)");
    lines
}
