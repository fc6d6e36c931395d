//! Output of flow records with IPFIX: to a file, to standard output, or to a collector over UDP or TCP.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use clap::{Args, ValueEnum};
use flowgauge::ipfix::{Exporter, ExporterConfig, TimePrecision, Transport};
use flowgauge::{FlowRecord, Timestamp};

use crate::args::parse_count;
use crate::console::Failure;
use crate::endpoint::Endpoint;
use crate::human::plural;
use crate::output::{OutputFile, Outputs};
use crate::standard::StandardOutput;

/// Rate of records to a UDP collector without `--rate`: a collector with the default socket buffer of Linux, which
/// holds about 90 messages, must not lose any.
const UDP_RATE: u32 = 50_000;

/// Time for which records may be sent at once.
const BURST: Duration = Duration::from_millis(2);

/// Pause after a datagram with a new template: a collector with several threads may otherwise decode the next datagram
/// before the template.
const TEMPLATE_PAUSE: Duration = Duration::from_millis(5);

/// Time after which a connection attempt is abandoned.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Options for output with `--format ipfix`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Collector or file for IPFIX: udp:// or tcp://HOST:PORT, or a path
    ///
    /// Without this option, IPFIX is written to standard output. The registered port is 4739.
    #[arg(long, value_name = "OUT")]
    pub(crate) to: Option<Target>,

    /// IPFIX records per second at most [default: 50000 over UDP]
    #[arg(long, hide_short_help = true, value_name = "N", allow_negative_numbers = true, value_parser = parse_count::<NonZeroU32>)]
    pub(crate) rate: Option<NonZeroU32>,

    /// Write IPFIX that a collector reads: nfcapd, nfacctd, goflow2 or splunk
    ///
    /// nfcapd: --milliseconds; goflow2: --uniflow; nfacctd and splunk: both.
    #[arg(
        long = "for",
        hide_short_help = true,
        value_enum,
        value_name = "COLLECTOR",
        hide_possible_values = true
    )]
    pub(crate) collector: Option<CollectorName>,

    /// Send two IPFIX uniflows per flow instead of a biflow
    ///
    /// For collectors that do not support biflows (RFC 5103).
    #[arg(long, hide_short_help = true)]
    pub(crate) uniflow: bool,

    /// Send IPFIX times in milliseconds instead of nanoseconds
    #[arg(long, hide_short_help = true)]
    pub(crate) milliseconds: bool,

    /// Enterprise number for fields without a registered IPFIX element
    ///
    /// Such fields are the Community ID, the connection state and the number of retransmissions. Without the option, they
    /// are not sent. Type records describe their elements (RFC 5610). IANA assigns enterprise numbers to organizations;
    /// 32473 is reserved for documentation.
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) enterprise_number: Option<u32>,

    /// Identifier of the IPFIX observation domain
    #[arg(long, hide_short_help = true, value_name = "ID", default_value_t = 1)]
    pub(crate) observation_domain: u32,

    /// Overwrite existing output files
    #[arg(long)]
    pub(crate) force: bool,
}

impl ExportArgs {
    /// Returns the options that only IPFIX has and that were given.
    pub(crate) fn used(&self) -> impl Iterator<Item = &'static str> {
        let used = [
            ("--to", self.to.is_some()),
            ("--rate", self.rate.is_some()),
            ("--for", self.collector.is_some()),
            ("--uniflow", self.uniflow),
            ("--milliseconds", self.milliseconds),
            ("--enterprise-number", self.enterprise_number.is_some()),
        ];
        used.into_iter().filter(|(_, is_used)| *is_used).map(|(option, _)| option)
    }

    fn config(&self) -> ExporterConfig {
        let mut config = ExporterConfig::default();
        config.observation_domain_id = self.observation_domain;
        config.enterprise_number = self.enterprise_number;
        let collector = self.collector;
        config.is_uniflow = self.uniflow || collector.is_some_and(CollectorName::needs_uniflows);
        if self.milliseconds || collector.is_some_and(CollectorName::needs_milliseconds) {
            config.time_precision = TimePrecision::Milliseconds;
        }
        config
    }
}

/// A collector of IPFIX that does not read everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CollectorName {
    Nfcapd,
    Nfacctd,
    Goflow2,
    Splunk,
}

impl CollectorName {
    /// Returns whether the collector reads no biflows.
    const fn needs_uniflows(self) -> bool {
        !matches!(self, Self::Nfcapd)
    }

    /// Returns whether the collector reads no times in nanoseconds, or may read none.
    const fn needs_milliseconds(self) -> bool {
        !matches!(self, Self::Goflow2)
    }
}

/// Destination of IPFIX messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Collector(Endpoint),
    File(PathBuf),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains("://") {
            return text.parse().map(Self::Collector);
        }
        let is_address = !text.contains(['/', '\\'])
            && text
                .rsplit_once(':')
                .is_some_and(|(host, port)| host.len() > 1 && port.parse::<u16>().is_ok());
        if is_address {
            return Err(format!(
                "must begin with udp:// or tcp://, such as udp://{text}; a file of this name is ./{text}"
            ));
        }
        Ok(Self::File(text.into()))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collector(endpoint) => endpoint.fmt(f),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Writer of flow records with IPFIX.
pub(crate) struct IpfixWriter {
    exporter: Exporter<Destination>,
    pacer: Option<Pacer>,
    /// Number of templates that were sent before the latest datagram.
    sent_template_count: u64,
}

impl IpfixWriter {
    /// Opens the destination. `inputs` are files that the output must not replace.
    pub(crate) fn open(args: &ExportArgs, inputs: &[PathBuf]) -> Result<Self, Failure> {
        let target = args.to.as_ref();
        let failure = |error| Failure::Other(format!("{}: {error}", target.expect("an address")));
        let channel = match target {
            None if io::stdout().is_terminal() => {
                return Err(Failure::Usage(
                    "IPFIX is a binary format and is not written to a terminal; use --to, or redirect the output".to_owned(),
                ));
            }
            None => Channel::Output(BufWriter::new(StandardOutput)),
            Some(Target::File(path)) => {
                let (output, file) = OutputFile::create(Outputs::new(inputs, args.force).location(path)?)?;
                Channel::File { out: BufWriter::new(file), output }
            }
            Some(Target::Collector(endpoint)) => connect(endpoint).map_err(failure)?,
        };
        let name = target.map_or_else(|| "standard output".to_owned(), Target::to_string);
        let default_rate = matches!(target, Some(Target::Collector(Endpoint::Udp(_)))).then_some(UDP_RATE);
        let rate = args.rate.map(NonZeroU32::get).or(default_rate);
        let exporter = Exporter::new(args.config(), Destination { name, channel })?;
        Ok(Self { exporter, pacer: rate.map(Pacer::new), sent_template_count: 0 })
    }

    pub(crate) fn write(&mut self, record: &FlowRecord) -> io::Result<()> {
        if let Some(pacer) = &mut self.pacer {
            pacer.wait();
        }
        let message_count = self.exporter.stats().message_count;
        self.exporter.export(record, now())?;
        let stats = self.exporter.stats();
        if stats.message_count > message_count && self.exporter.transport().is_datagram() {
            self.pause_after_template(stats.assigned_template_count);
        }
        Ok(())
    }

    fn pause_after_template(&mut self, template_count: u64) {
        if template_count > self.sent_template_count {
            self.sent_template_count = template_count;
            thread::sleep(TEMPLATE_PAUSE);
        }
    }

    /// Sends the records that wait for a complete message.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.exporter.flush()?;
        self.exporter.transport_mut().flush()
    }
}

/// Limits the rate of records.
struct Pacer {
    interval: Duration,
    /// Time at which the next record is due. Records may be early by [`BURST`].
    due: Instant,
}

impl Pacer {
    fn new(rate: u32) -> Self {
        Self { interval: Duration::from_secs(1) / rate, due: Instant::now() }
    }

    /// Waits until a record may be sent.
    fn wait(&mut self) {
        let now = Instant::now();
        let early = self.due.saturating_duration_since(now);
        if early > BURST {
            thread::sleep(early);
        }
        // Time in which no record was sent is not made up for.
        self.due = self.due.max(now) + self.interval;
    }
}

impl IpfixWriter {
    /// Sends all remaining records, and completes the output.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.flush().map_err(|error| self.failure(&error))?;
        self.exporter.into_transport().finish()
    }

    /// Returns the failure for an error of a write.
    pub(crate) fn failure(&self, error: &io::Error) -> Failure {
        self.exporter.transport().failure(error)
    }
}

/// Returns the current time.
pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::ZERO.saturating_add(since_epoch)
}

/// Connects to a collector, at the first of its addresses that accepts.
fn connect(endpoint: &Endpoint) -> io::Result<Channel> {
    let mut outcome = Err(io::Error::other("the host has no address"));
    for address in endpoint.resolve()? {
        outcome = match endpoint {
            Endpoint::Tcp(_) => TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map(Channel::Tcp),
            Endpoint::Udp(_) => Datagrams::connect(address).map(Channel::Udp),
        };
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// An open destination of messages.
struct Destination {
    name: String,
    channel: Channel,
}

enum Channel {
    Output(BufWriter<StandardOutput>),
    File { out: BufWriter<File>, output: OutputFile },
    Tcp(TcpStream),
    Udp(Datagrams),
}

/// Socket that is connected to a collector.
struct Datagrams {
    socket: UdpSocket,
    /// Messages that arrived at a host on which no program listens to the port.
    refused_count: u64,
}

impl Datagrams {
    fn connect(address: SocketAddr) -> io::Result<Self> {
        let local = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(local)?;
        socket.connect(address)?;
        Ok(Self { socket, refused_count: 0 })
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        loop {
            match self.socket.send(message) {
                Ok(_) => return Ok(()),
                // The error is that of an earlier message. A collector may be restarted while records are sent.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => self.refused_count += 1,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Datagrams {
    /// Returns the number of messages that were refused. The last message is included if its refusal has arrived.
    fn refused_count(&self) -> u64 {
        let error = self.socket.take_error().ok().flatten();
        let is_refused = error.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        self.refused_count + u64::from(is_refused)
    }
}

impl Transport for Destination {
    fn is_datagram(&self) -> bool {
        matches!(self.channel, Channel::Udp(_))
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match &mut self.channel {
            Channel::Output(out) => out.write_all(message),
            Channel::File { out, .. } => out.write_all(message),
            Channel::Tcp(stream) => stream.write_all(message),
            Channel::Udp(datagrams) => datagrams.send(message),
        }
    }
}

impl Destination {
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.channel {
            Channel::Output(out) => out.flush(),
            Channel::File { out, .. } => out.flush(),
            Channel::Tcp(_) | Channel::Udp(_) => Ok(()),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self.channel {
            Channel::File { output, .. } => output.commit(),
            Channel::Udp(datagrams) => match datagrams.refused_count() {
                0 => Ok(()),
                count => Err(Failure::Other(format!(
                    "{}: {} refused: no collector listens there",
                    self.name,
                    plural(count, "message")
                ))),
            },
            Channel::Output(_) | Channel::Tcp(_) => Ok(()),
        }
    }

    fn failure(&self, error: &io::Error) -> Failure {
        match &self.channel {
            Channel::Output(_) => Failure::writing(&self.name, error),
            Channel::File { output, .. } => output.failure(error),
            Channel::Tcp(_) | Channel::Udp(_) => Failure::Other(format!("{}: {error}", self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_distinguished_by_their_scheme() {
        let collector = |endpoint| Ok(Target::Collector(endpoint));
        assert_eq!("udp://[::1]:4739".parse(), collector(Endpoint::Udp("[::1]:4739".to_owned())));
        assert_eq!("tcp://localhost:4739".parse(), collector(Endpoint::Tcp("localhost:4739".to_owned())));
        assert_eq!("flows.ipfix".parse(), Ok(Target::File("flows.ipfix".into())));
        for invalid in ["sctp://localhost:4739", "udp://localhost", "udp://:4739", "udp://localhost:65536"] {
            assert!(invalid.parse::<Target>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn records_are_sent_at_the_rate() {
        let mut pacer = Pacer::new(10_000);
        let start = Instant::now();
        (0..200).for_each(|_| pacer.wait());
        assert!(start.elapsed() >= Duration::from_millis(17), "{:?}", start.elapsed());
    }
}
