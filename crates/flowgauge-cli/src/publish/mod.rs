//! `flowgauge publish`: sends the events of captures and interfaces to subscribers.

mod args;
mod sink;

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use flowgauge::{
    Builder, DriverConfig, ErrorPolicy, Flows, Resources, Sessions, Sink, Source, Stage, Standard,
};
use flowgauge_bus::{
    Overflow, PublishSink, Publisher, PublisherConfig, PublisherStats, SecretKey, ServerConfig,
    ServerSecurity,
};

use crate::args::{Pages, Timeout, check, parse_filter};
use crate::console::{Console, Failure, write_line};
use crate::curve::secret_key;
use crate::human::plural;
use crate::input::Input;
use crate::interrupt;
use crate::live::Monitor;
use args::BusFormat;
pub(crate) use args::PublishArgs;
use sink::{Selected, WithMessages};

/// Default of `--active-timeout` for interfaces.
const ACTIVE_TIMEOUT: Duration = Duration::from_secs(1800);

/// Default of `--stall` for files.
const STALL: Duration = Duration::from_secs(5);

/// Time that subscribers have at the end to receive what the queues contain.
const DRAIN: Duration = Duration::from_secs(30);

/// Time between two tests for an interrupt while the command waits for subscribers.
const POLL: Duration = Duration::from_millis(100);

/// Runs the command `flowgauge publish`.
pub(crate) fn run(args: &PublishArgs, console: &mut Console) -> Result<(), Failure> {
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let resources = args.shared.resources();
    let pages = if args.interface.is_some() { Pages::Ordinary } else { Pages::Huge };
    let mut builder = args.shared.builder(&resources, filter.as_ref(), pages);
    let default = args.interface.as_ref().map(|_| ACTIVE_TIMEOUT);
    if let Timeout(Some(timeout)) = args.active_timeout.unwrap_or(Timeout(default)) {
        builder = builder.active_timeout(timeout);
    }
    // The part of the expression that applies to complete flows.
    let filter = filter.as_ref().filter(|filter| !filter.is_final());
    let run = Run { args, resources: &resources, omitted_count: Cell::new(0) };
    if args.sessions {
        check::<Sessions<Standard>>(&builder)?;
        run.run(
            &builder,
            |sink| WithMessages::new(Selected::new(sink.with_stage(), filter), &run.omitted_count),
            console,
        )
    } else if args.format == BusFormat::Ndjson {
        let mut naming = DriverConfig::default();
        naming.is_naming_only = true;
        let builder = builder.sessions(naming);
        check::<Sessions<Standard>>(&builder)?;
        run.run(&builder, |sink| Selected::new(sink.with_stage::<Sessions<Standard>>(), filter), console)
    } else {
        check::<Flows>(&builder)?;
        run.run(&builder, |sink| Selected::new(sink.with_stage::<Flows>(), filter), console)
    }
}

struct Run<'a> {
    args: &'a PublishArgs,
    resources: &'a Resources,
    /// Number of messages omitted because the output of their flows was out of proportion.
    omitted_count: Cell<u64>,
}

impl Run<'_> {
    fn run<K: Sink<Stage = G>, G: Stage>(
        &self,
        builder: &Builder,
        sink: impl FnOnce(PublishSink) -> K,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let args = self.args;
        let is_quiet = args.shared.quiet;
        let started_at = Instant::now();
        let secret_key = args.curve_key.as_deref().map(secret_key).transpose()?;
        let Some(mut input) = self.open(console)? else { return Ok(()) };
        let publisher = self.publisher(secret_key.clone())?;
        if !is_quiet {
            write_line(&format!("flowgauge: publishing at {}", publisher.endpoints().join(", ")));
            if let Some(secret_key) = secret_key {
                write_line(&format!("flowgauge: public key {}", secret_key.public_key()));
            }
        }
        if let Some(count) = args.wait_for_subscribers {
            let count = wait_for_subscribers(&publisher, count)?;
            if !is_quiet {
                write_line(&format!("flowgauge: {}", plural(count as u64, "subscriber")));
            }
        }
        if let Some(duration) = args.duration {
            interrupt::stop_after(duration);
        }
        let pipeline = builder.build(sink(PublishSink::new(publisher.clone()).with_keys(args.keys)))?;
        let mut stats = input.run(pipeline, console)?;
        stats.sessions.suppressed_message_count += self.omitted_count.get();
        let published = publisher.close(DRAIN);
        if !is_quiet {
            let records = plural(published.published_count, "record");
            let result =
                format!("{records} and messages, {} without a subscriber", published.unsubscribed_count);
            args.summary.write(&stats, &input.stats(), started_at.elapsed(), &result);
            lines(&published).iter().for_each(|line| write_line(line));
        }
        Ok(())
    }

    /// Opens the files or the interface.
    fn open(&self, console: &mut Console) -> Result<Option<Input>, Failure> {
        match &self.args.interface {
            Some(name) => {
                let source = Monitor::without_recorder(open_interface(name)?, self.args.shared.quiet);
                Ok(Some(Input::new(Box::new(source), ErrorPolicy::End)))
            }
            None => Ok(Input::open(&self.args.files, self.resources, console)),
        }
    }

    /// Binds all endpoints.
    fn publisher(&self, secret_key: Option<SecretKey>) -> Result<Publisher, Failure> {
        let args = self.args;
        let stall = args.stall.unwrap_or(if args.interface.is_some() { Duration::ZERO } else { STALL });
        let security = secret_key.map_or(ServerSecurity::None, |secret_key| ServerSecurity::Curve {
            secret_key,
            peers: args.curve_client.clone(),
        });
        let server = ServerConfig::default()
            .high_water_mark(args.queue.get())
            .permits_remote(args.allow_remote)
            .security(security);
        let config = PublisherConfig::default()
            .encoding(args.format.into())
            .overflow(if stall.is_zero() { Overflow::Drop } else { Overflow::Wait(stall) })
            .stop(interrupt::signaled())
            .server(server);
        let failure = |error: flowgauge_bus::BusError| match error {
            flowgauge_bus::BusError::Endpoint { .. } => Failure::Usage(format!("--bind: {error}")),
            flowgauge_bus::BusError::NotLoopback { .. } => {
                Failure::Usage(format!("--bind: {error} (--allow-remote permits them)"))
            }
            error => Failure::Other(error.to_string()),
        };
        let publisher = Publisher::new(config).map_err(failure)?;
        for endpoint in &args.bind {
            publisher.listen(endpoint).map_err(failure)?;
        }
        Ok(publisher)
    }
}

/// Waits until `count` subscribers have subscribed, or for an interrupt. Returns their number.
fn wait_for_subscribers(publisher: &Publisher, count: NonZeroUsize) -> Result<usize, Failure> {
    while !interrupt::stop().is_stopped() {
        match publisher.wait_for_subscribers(count.get(), POLL) {
            Ok(count) => return Ok(count),
            Err(flowgauge_bus::BusError::Timeout) => {}
            Err(error) => return Err(Failure::Other(error.to_string())),
        }
    }
    Ok(0)
}

/// Returns the lines of the summary about the subscribers.
fn lines(stats: &PublisherStats) -> Vec<String> {
    let mut lines: Vec<_> = stats
        .subscribers
        .iter()
        .map(|subscriber| {
            let dropped = match subscriber.dropped_count {
                0 => String::new(),
                count => format!(", {count} dropped because it received too slowly"),
            };
            format!("{}: {}{dropped}", subscriber.name, plural(subscriber.record_count, "record"))
        })
        .collect();
    let server = &stats.server;
    let mut note = |count: u64, what: &str| {
        if count > 0 {
            lines.push(format!("{} {what}", plural(count, "connection")));
        }
    };
    note(server.failed_handshake_count, "without a complete ZMTP handshake");
    note(server.violation_count, "closed because of malformed or excessive input");
    note(server.refused_count, "refused (too many peers)");
    lines
}

#[cfg(feature = "live")]
fn open_interface(name: &str) -> Result<Box<dyn Source>, Failure> {
    use flowgauge::{LiveConfig, LiveSource};
    let mut config = LiveConfig::default();
    config.stop = Some(interrupt::stop());
    let source = LiveSource::open(name, config).map_err(|error| Failure::Other(error.to_string()))?;
    Ok(Box::new(source))
}

#[cfg(not(feature = "live"))]
fn open_interface(_: &str) -> Result<Box<dyn Source>, Failure> {
    Err(crate::interfaces::no_support())
}
