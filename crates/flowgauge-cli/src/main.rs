//! The command line: converts packets of capture files and interfaces to flow records, streams, messages, or smaller
//! capture files.

mod args;
mod bar;
mod bound;
mod checkpoint;
mod choice;
mod collect;
mod columns;
mod console;
mod creation;
#[cfg(feature = "bus")]
mod curve;
mod endpoint;
mod escape;
mod files;
mod flows;
mod formats;
mod groups;
#[cfg(test)]
mod heap;
mod human;
mod input;
mod interfaces;
mod interrupt;
mod ipfix;
mod joined;
mod live;
mod log_format;
mod manual;
mod merge;
mod names;
mod objects;
mod order;
mod output;
mod overview;
mod packets;
#[cfg(feature = "bus")]
mod publish;
mod records;
mod rows;
mod selection;
mod sessions;
mod several;
mod slice;
#[cfg(feature = "sql")]
mod sql;
mod standard;
mod streams;
#[cfg(feature = "bus")]
mod subscribe;
mod summary;
#[cfg(all(feature = "tun", target_os = "linux"))]
mod tun;
mod values;
mod write;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use checkpoint::CheckpointCommand;
use collect::CollectArgs;
use console::{Console, Failure};
use flows::FlowsArgs;
use interfaces::InterfacesArgs;
use live::LiveArgs;
use manual::{CompletionsArgs, ManArgs};
use merge::MergeArgs;
use objects::ObjectsArgs;
use overview::SummaryArgs;
use overview::hosts::{self, HostsArgs};
use overview::report::{self, ReportArgs};
use packets::PacketsArgs;
use sessions::SessionsArgs;
use slice::SliceArgs;
use streams::StreamsArgs;

/// Converts packets to flow records, TCP streams and messages of application protocols.
#[derive(Debug, Parser)]
#[command(name = "flowgauge", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Examples:
  flowgauge capture.pcap                           what happened: `flowgauge summary capture.pcap`
  flowgauge report capture.pcap -o report.html     the same with plots, in a file for a browser
  flowgauge flows capture.pcap                     one line per flow
  flowgauge flows capture.pcap --top 10            the ten flows with the most octets
  flowgauge live -i eth0                           the flows of an interface as they end
  flowgauge slice capture.pcap --filter 'tcp port 443' -w https.pcapng
  flowgauge streams capture.pcap --out streams     a file per direction of each TCP connection
  flowgauge sessions capture.pcap --protocol dns   a line per message
  flowgauge export-objects capture.pcap --out DIR  bodies, mails, files and certificates

`flowgauge COMMAND -h` lists the options of a command, and `flowgauge COMMAND --help` describes them.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Summary(SummaryArgs),
    Hosts(HostsArgs),
    Report(ReportArgs),
    Flows(FlowsArgs),
    Live(LiveArgs),
    Slice(SliceArgs),
    Streams(StreamsArgs),
    Sessions(SessionsArgs),
    ExportObjects(ObjectsArgs),
    Packets(PacketsArgs),
    #[cfg(feature = "sql")]
    Sql(sql::SqlArgs),
    Collect(CollectArgs),
    Checkpoint(CheckpointCommand),
    Merge(MergeArgs),
    #[cfg(feature = "bus")]
    Publish(publish::PublishArgs),
    #[cfg(feature = "bus")]
    Subscribe(subscribe::SubscribeArgs),
    #[cfg(all(feature = "tun", target_os = "linux"))]
    Tun(tun::TunArgs),
    Interfaces(InterfacesArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Returns the arguments, with the command `summary` if they begin with a capture, or with an option and name a capture but no
/// command.
fn arguments(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let command = Cli::command();
    let is_command = |word: &OsString| {
        word == "help" || command.get_subcommands().any(|command| word.to_str() == Some(command.get_name()))
    };
    // A word with a dot or slash is a path, not a command that is misspelled.
    let is_path = |word: &OsString| word.to_string_lossy().contains(['.', '/']);
    let is_input = |word: &OsString| {
        word == "-" || is_path(word) || Path::new(word).exists() && !Path::new(word).is_dir()
    };
    let is_option = |word: &OsString| {
        let word = word.to_string_lossy();
        word.len() > 1 && word.starts_with('-') && !["-h", "--help", "-V", "--version"].contains(&&*word)
    };
    let is_summary = arguments.get(1).is_some_and(|first| {
        let has_input = || arguments.iter().skip(2).any(|word| Path::new(word).is_file());
        // The value of an option may be the name of a command, as in `--section hosts`.
        let is_value = |option: &OsString| {
            let is_it = |argument: &&clap::Arg| {
                let long = argument.get_long().map(|long| format!("--{long}"));
                long.is_some_and(|long| option.to_str() == Some(&long))
                    && argument.get_action().takes_values()
            };
            let summary = command.find_subcommand("summary");
            summary.is_some_and(|summary| summary.get_arguments().any(|argument| is_it(&argument)))
        };
        let has_command = || arguments.windows(2).any(|pair| is_command(&pair[1]) && !is_value(&pair[0]));
        if is_option(first) { has_input() && !has_command() } else { is_input(first) && !is_command(first) }
    });
    if is_summary {
        arguments.insert(1, "summary".into());
    }
    arguments
}

fn main() -> ExitCode {
    let mut console = Console::default();
    let words: Vec<_> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let outcome = match names::help(&words) {
        Some(list) => manual::print(list.as_bytes()),
        None => match Cli::try_parse_from(arguments(std::env::args_os().collect())) {
            Ok(cli) => run(cli.command, &mut console),
            // Help and the version are not errors, and are printed to standard output.
            Err(text) if !text.use_stderr() && standard::is_missing() => {
                manual::print(text.to_string().as_bytes())
            }
            Err(error) => error.exit(),
        },
    };
    match outcome {
        Ok(()) => {}
        // The reader of the pipe closed it, as `head` does.
        Err(Failure::ClosedPipe) => return ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            console.usage(&message);
            return ExitCode::from(2);
        }
        Err(Failure::Other(message)) => console.problem(message),
    }
    if let Some(status) = interrupt::status() {
        return status;
    }
    if console.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a command.
fn run(command: Command, console: &mut Console) -> Result<(), Failure> {
    if let Err(error) = interrupt::install() {
        console.problem(format!("cannot handle signals: {error}"));
    }
    match command {
        Command::Summary(args) => overview::run(&args, console),
        Command::Hosts(args) => hosts::run(&args, console),
        Command::Report(args) => report::run(&args, console),
        Command::Flows(args) => flows::run(&args, console),
        Command::Live(args) => live::run(&args, console),
        Command::Slice(args) => slice::run(&args, console),
        Command::Streams(args) => streams::run(&args, console),
        Command::Sessions(args) => sessions::run(&args, console),
        Command::ExportObjects(args) => objects::run(&args, console),
        Command::Packets(args) => packets::run(&args, console),
        #[cfg(feature = "sql")]
        Command::Sql(args) => sql::run(&args, console),
        Command::Collect(args) => collect::run(&args, console),
        Command::Checkpoint(args) => checkpoint::run_command(&args),
        Command::Merge(args) => merge::run(&args, console),
        #[cfg(feature = "bus")]
        Command::Publish(args) => publish::run(&args, console),
        #[cfg(feature = "bus")]
        Command::Subscribe(args) => subscribe::run(&args, console),
        #[cfg(all(feature = "tun", target_os = "linux"))]
        Command::Tun(args) => tun::run(&args),
        Command::Interfaces(args) => interfaces::run(&args),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Man(args) => manual::man(&args, Cli::command()),
    }
}
