//! `flowgauge tun`: forwards packets between two TUN or TAP devices and tracks their flows.

use std::net::IpAddr;
use std::num::NonZeroU16;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use clap::Args;
use flowgauge::pipeline::{DeviceSide, Forwarder};
use flowgauge::source::{TunConfig, TunDevice, TunLayer};
use flowgauge::tap::{NeighborConfig, NeighborTable};
use flowgauge::{EndReason, Flow, Flows, Interest, Pipeline, Sink};

use crate::args::{parse_count, parse_duration};
use crate::console::{Failure, write_line};
use crate::formats::OutputArgs;
use crate::human::plural;
use crate::interrupt;
use crate::rows::Rows;
use crate::summary;

/// Forward packets between two TUN or TAP devices, and print one record per flow.
///
/// Creates the interfaces if they do not exist, without addresses; they can be moved to network namespaces while the
/// command runs. Flows are tracked on the way. With offload, the kernel passes super-packets of up to 64 KiB, which are
/// forwarded as they are and count as their segments. Needs root or the capability CAP_NET_ADMIN.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  flowgauge tun left0 right0
  flowgauge tun left0 right0 --format ndjson --duration 1m > flows.ndjson
  flowgauge tun left0 right0 --tap 192.0.2.1 --tap 2001:db8::1

Exit status:
  0  Packets were forwarded until the end.
  1  A device could not be opened or was removed, or the output could not be written.
  2  The command line is invalid.")]
pub(crate) struct TunArgs {
    /// First interface
    #[arg(value_name = "LEFT")]
    left: String,

    /// Second interface
    #[arg(value_name = "RIGHT")]
    right: String,

    /// Exchange single packets with the kernel instead of super-packets
    #[arg(long)]
    no_offload: bool,

    /// Write packets on threads of their own, behind a channel for N batches in each direction
    #[arg(long, value_name = "N", value_parser = parse_count::<NonZeroU16>)]
    channel: Option<NonZeroU16>,

    /// Run on an asynchronous runtime instead of on threads
    #[arg(long = "async")]
    is_asynchronous: bool,

    /// Number of queues of each interface; flows are distributed over them
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_count::<NonZeroU16>)]
    queues: NonZeroU16,

    /// Make RIGHT a TAP device, and answer ARP and neighbor solicitations for ADDRESS; may be repeated
    ///
    /// The command is a router with these addresses for the hosts behind RIGHT, and resolves their hardware addresses.
    #[arg(long, value_name = "ADDRESS")]
    tap: Vec<IpAddr>,

    /// Fail if an interface does not exist, instead of creating it
    #[arg(long)]
    existing: bool,

    /// Duration of the run, such as 10s or 1h; without it, until Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,

    #[command(flatten)]
    output: OutputArgs,

    /// Suppress the summary; problems are still reported
    #[arg(long, short = 'q')]
    quiet: bool,
}

/// Runs the command `flowgauge tun`.
pub(crate) fn run(args: &TunArgs) -> Result<(), Failure> {
    args.output.check_order()?;
    args.output.check_groups(false, false)?;
    args.output.check()?;
    let failure = |error: flowgauge::source::Error| Failure::Other(error.to_string());
    let mut config = TunConfig::default();
    config.offload = !args.no_offload;
    config.queue_count = args.queues.get();
    config.create = !args.existing;
    let left = TunDevice::open(&args.left, config).map_err(failure)?;
    if !args.tap.is_empty() {
        config.layer = TunLayer::Ethernet;
    }
    let right = TunDevice::open(&args.right, config).map_err(failure)?;
    let table = neighbors(&args.tap, &right)?;
    let rows = args.output.rows(&[], true)?;
    let pipeline = Pipeline::builder().build(RowSink { rows: Some(rows) })?;
    let mut forwarder = Forwarder::new(pipeline, (), left, right)
        .map_err(failure)?
        .channel(args.channel.map(|count| count.get().into()));
    if let Some(table) = table {
        forwarder = forwarder.neighbors(DeviceSide::Right, table);
    }
    let (stop, started_at) = (interrupt::stop(), Instant::now());
    if let Some(duration) = args.duration {
        interrupt::stop_after(duration);
    }
    let outcome = if args.is_asynchronous {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(forwarder.run_async(&stop))
    } else {
        forwarder.run(&stop)
    };
    let (stats, rows) =
        forwarder.with_pipeline(|pipeline| (pipeline.stats(), pipeline.sink_mut().rows.take()));
    let written = rows.map(Rows::finish).transpose()?.unwrap_or_default();
    if !args.quiet {
        let sides = [DeviceSide::Left, DeviceSide::Right].map(|side| forwarder.stats(side));
        let [mut source, right] = sides.map(|side| side.received);
        source += right;
        let result = format!(
            "{}, {} written{}",
            plural(stats.tracker.started_count, "flow"),
            plural(written.row_count, "record"),
            written.note()
        );
        summary::write(&stats, &source, started_at.elapsed(), &result);
        for (name, side) in [&args.left, &args.right].into_iter().zip(sides) {
            let received = plural(side.received.frame_count, "packet");
            let lost = side.overflow_count + side.rejected_count + side.unresolved_count;
            write_line(&format!(
                "{name}: {received} received, {} sent, {lost} dropped, {} oversized",
                side.sent_count, side.received.oversized_frame_count
            ));
        }
    }
    outcome.map_err(failure)
}

/// Returns the neighbor table of a TAP device for the local addresses, if there are any.
fn neighbors(addresses: &[IpAddr], device: &TunDevice) -> Result<Option<NeighborTable>, Failure> {
    let Some(mut hardware_address) = device.hardware_address().filter(|_| !addresses.is_empty()) else {
        return Ok(None);
    };
    // Another address than that of the host, which is the other side of the link.
    let [first, .., last] = &mut hardware_address;
    *first |= 2;
    *last ^= 1;
    let usage = |error: flowgauge::tap::NeighborError| Failure::Usage(format!("--tap: {error}"));
    let mut table = NeighborTable::new(NeighborConfig::new(hardware_address)).map_err(usage)?;
    for address in addresses {
        table.add_local(*address).map_err(usage)?;
    }
    Ok(Some(table))
}

/// Writes a row for each flow record.
struct RowSink {
    /// `None` after the end.
    rows: Option<Rows>,
}

impl Sink for RowSink {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::RECORDS
    }

    fn record(&mut self, flow: &mut Flow<'_, ()>, reason: EndReason) {
        if let Some(rows) = &mut self.rows {
            rows.write(&flow.view.record(reason));
        }
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        self.rows.as_mut().map_or(ControlFlow::Continue(()), Rows::flush_stream)
    }
}
