//! `flowgauge hosts`: what is known of each host.

use std::io::{self, IsTerminal as _, Write as _};
use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use flowgauge::IpProtocol;
use flowgauge::export::{Lines, RecordWriter, Selection, Style, human};
use flowgauge::row::Value;
use flowgauge_summary::{Collector, HostRow, vendor};

use super::pass::{Pass, PassArgs};
use crate::args::parse_count;
use crate::console::{Console, Failure, stdout, write_line};
use crate::escape;
use crate::formats::{StyleArgs, line_width};
use crate::selection::parse_columns;

/// Show the hosts of captures: addresses, names, systems, services, users
///
/// A row for each address that sent something. Names come from DHCP, LLDP, CDP, NTLM, SMB, Kerberos, RDP, NetBIOS, multicast DNS,
/// LLMNR, DNS, certificates, TLS, HTTP and SMTP, in this order of reliability; `names` has all of them with their source. A
/// system is what a protocol states, or what a handshake indicates, with its weight. The vendor is that of the MAC address in
/// the registry of IEEE.
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:
  flowgauge hosts capture.pcap
  flowgauge hosts capture.pcap --filter 'net 192.0.2.0/24' --format csv --fields address,mac,name,system
  flowgauge hosts capture.pcap --format ndjson | jq -r '.address as $a | .services[] | [$a, .port, .software] | @tsv'

Exit status:
  0  All input was read.
  1  Some input could not be read.
  2  The command line is invalid.")]
pub(crate) struct HostsArgs {
    #[command(flatten)]
    pass: PassArgs,

    /// Output format
    #[arg(long, short = 'f', value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    format: Format,

    /// Write only these fields of each host, separated by commas
    #[arg(long, value_name = "LIST", value_parser = parse_columns::<HostRow<'static>>)]
    fields: Option<Selection>,

    /// Write only the N hosts with the most octets
    #[arg(long, short = 'n', value_name = "N", value_parser = parse_count::<NonZeroUsize>)]
    top: Option<NonZeroUsize>,

    #[command(flatten)]
    style: StyleArgs,
}

/// Output format of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A row per host, truncated to the width of the terminal
    Table,
    /// One JSON object per line
    Ndjson,
    /// A header line and one line per host
    Csv,
}

/// Runs the command `flowgauge hosts`.
pub(crate) fn run(args: &HostsArgs, console: &mut Console) -> Result<(), Failure> {
    let style = args.style.style();
    if args.format == Format::Table && (args.fields.is_some() || style != Style::default()) {
        return Err(Failure::Usage("--fields, --time and --nulls require --format ndjson or csv".to_owned()));
    }
    let collector = Collector::default().thorough();
    let pass = args.pass.read(collector, !io::stdout().is_terminal(), console)?;
    let Some(Pass { sink, .. }) = pass else { return Ok(()) };
    let mut rows = sink.facts.host_rows();
    if let Some(top) = args.top {
        rows.sort_by_key(|row| std::cmp::Reverse(row.traffic().octet_count()));
        rows.truncate(top.get());
    }
    match args.format {
        Format::Table => table(&rows)?,
        Format::Ndjson => lines(Lines::ndjson(stdout(), args.fields.clone(), style), &rows)?,
        Format::Csv => lines(Lines::csv(stdout(), args.fields.clone(), style), &rows)?,
    }
    let removed_count = sink.facts.known.removed_count();
    if removed_count > 0 && !args.pass.is_quiet() {
        write_line(&format!(
            "{removed_count} addresses of which little is known are not shown, because of their number"
        ));
    }
    Ok(())
}

fn lines<'h>(mut lines: impl RecordWriter<HostRow<'h>>, rows: &[HostRow<'h>]) -> io::Result<()> {
    rows.iter().try_for_each(|row| lines.write(row))?;
    Box::new(lines).finish().map(drop)
}

/// Writes a line for each host, with a column as wide as its values.
fn table(rows: &[HostRow<'_>]) -> io::Result<()> {
    const TITLES: [&str; 8] = ["ADDRESS", "NAME", "MAC", "VENDOR", "SYSTEM", "OCTETS", "SERVICES", "USERS"];
    let cells: Vec<[String; 8]> = rows.iter().map(cells).collect();
    let mut widths = TITLES.map(str::len);
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    // Names and vendors of some hosts are much longer than those of others.
    for (width, max) in widths.iter_mut().zip([39, 32, 17, 24, 28, 9, 40, 40]) {
        *width = (*width).min(max);
    }
    let mut out = stdout();
    let line_width = line_width();
    for row in std::iter::once(&TITLES.map(str::to_owned)).chain(&cells) {
        let parts = row.iter().zip(widths).map(|(cell, width)| {
            let fitted: String = cell.chars().take(width).collect();
            format!("{fitted:<width$}")
        });
        let line = parts.collect::<Vec<_>>().join("  ");
        let line = line.trim_end();
        let line: String =
            line_width.map_or_else(|| line.to_owned(), |width| line.chars().take(width).collect());
        writeln!(out, "{line}")?;
    }
    out.flush()
}

fn cells(row: &HostRow<'_>) -> [String; 8] {
    let host = row.host();
    let mac = row.mac();
    let hex = |mac: [u8; 6]| Value::Mac(mac).to_string();
    let services = host.services().iter().map(|service| {
        let name = if service.application.is_empty() { "?" } else { &service.application };
        format!("{name}/{}{}", service.port, if service.protocol == IpProtocol::TCP.0 { "" } else { "u" })
    });
    let users = host.users().iter().map(|user| escape::text(&user.name));
    [
        row.address().to_string(),
        host.name().map(|name| escape::text(&name.name).into_owned()).unwrap_or_default(),
        mac.map(hex).unwrap_or_default(),
        mac.and_then(vendor).unwrap_or_default().to_owned(),
        host.system().map(|system| escape::text(&system.system).into_owned()).unwrap_or_default(),
        human::octets(row.traffic().octet_count()),
        services.collect::<Vec<_>>().join(" "),
        users.collect::<Vec<_>>().join(", "),
    ]
}
