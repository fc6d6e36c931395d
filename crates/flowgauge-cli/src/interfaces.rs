//! `flowgauge interfaces`: lists the interfaces on which packets can be captured.

use clap::{Args, ValueEnum};

use crate::console::Failure;

/// List the network interfaces on which packets can be captured.
///
/// Each line has the name of an interface, its state (up, down, or no carrier) and its addresses.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowgauge interfaces
  flowgauge interfaces --format ndjson")]
pub(crate) struct InterfacesArgs {
    /// Output format
    #[arg(long, short = 'f', value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Output format of interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned columns
    Table,
    /// One JSON object per line
    Ndjson,
}

/// Runs the command `flowgauge interfaces`.
#[cfg(not(feature = "live"))]
pub(crate) fn run(_: &InterfacesArgs) -> Result<(), Failure> {
    Err(no_support())
}

/// Returns the failure of a command that needs the feature `live`.
#[cfg(not(feature = "live"))]
pub(crate) fn no_support() -> Failure {
    let message = "this build does not capture on interfaces; install libpcap, and build with the feature `live`: \
                   cargo install --path crates/flowgauge-cli --features live";
    Failure::Other(message.to_owned())
}

/// Runs the command `flowgauge interfaces`.
#[cfg(feature = "live")]
pub(crate) fn run(args: &InterfacesArgs) -> Result<(), Failure> {
    use std::io::{self, Write as _};

    use flowgauge::LiveSource;

    use crate::escape;
    use crate::standard::StandardOutput;

    let devices = LiveSource::devices().map_err(|error| Failure::Other(error.to_string()))?;
    let name_len = devices.iter().map(|device| device.name.chars().count()).max().unwrap_or(0);
    let mut out = StandardOutput;
    for device in devices {
        if args.format == Format::Ndjson {
            writeln!(out, "{}", serde_json::to_string(&device).map_err(io::Error::other)?)?;
            continue;
        }
        let state = match (device.is_up, device.is_running) {
            (false, _) => "down",
            (true, false) => "no carrier",
            (true, true) => "up",
        };
        let addresses: Vec<_> = device.addresses.iter().map(ToString::to_string).collect();
        let mut details = addresses.join(" ");
        if let Some(description) = device.description.filter(|_| details.is_empty()) {
            details = description;
        }
        let line = format!("{:<name_len$}  {state:<10}  {details}", device.name);
        writeln!(out, "{}", escape::text(line.trim_end()))?;
    }
    Ok(())
}
