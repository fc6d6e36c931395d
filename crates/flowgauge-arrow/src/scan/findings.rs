//! The findings of captures, with commands that read the same packets.

use std::time::Duration;

use flowgauge::{Decapsulation, PipelineStats};
use flowgauge_summary::{Facts, Finding, Frames, Totals};

use super::config::ScanConfig;

/// Returns the findings of a pass over captures.
pub(super) fn findings(
    facts: &Facts,
    frames: &Frames,
    stats: &PipelineStats,
    config: &ScanConfig,
) -> Vec<Finding> {
    let mut totals = Totals::default();
    totals.add(stats);
    let filter = config.filter.as_ref().map(ToString::to_string);
    let mut all = facts.findings(frames, &totals);
    for command in all.iter_mut().filter_map(|finding| finding.command.as_mut()) {
        command.add(filter.as_deref(), &options(config, command.name()));
    }
    all
}

/// Returns the options of a command with which packets are tracked as in a scan.
fn options(config: &ScanConfig, command: &str) -> String {
    let time = |time: Duration| humantime::format_duration(time).to_string().replace(' ', "");
    let timeout = config.idle_timeout.map(|timeout| format!("--idle-timeout {}", time(timeout)));
    let tunnels = match config.tunnels {
        Decapsulation::Outermost => Some("--tunnels outermost"),
        Decapsulation::Both => Some("--tunnels both"),
        _ => None,
    };
    // Transactions are those of the innermost flows.
    let tunnels = tunnels.filter(|_| command == "flows").map(str::to_owned);
    timeout.into_iter().chain(tunnels).collect::<Vec<_>>().join(" ")
}
