//! Completion scripts and man pages.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::console::Failure;
use crate::output::{Outputs, write_whole};
use crate::standard::StandardOutput;

/// Print a completion script for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowgauge completions bash > ~/.local/share/bash-completion/completions/flowgauge")]
pub(crate) struct CompletionsArgs {
    /// Shell that runs the script
    #[arg(value_enum)]
    shell: Shell,
}

/// Print a man page, or write all man pages to a folder.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowgauge man flows | man -l -
  flowgauge man --out ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Command of the page; without it, the page of flowgauge itself is printed
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    page: Option<String>,

    /// Write all pages, flowgauge.1, flowgauge-flows.1 and so on, to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the completion script of a command for a shell.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "flowgauge", &mut script);
    print(&script)
}

/// Prints one man page of a command, or writes all of them to a folder.
pub(crate) fn man(args: &ManArgs, command: Command) -> Result<(), Failure> {
    let mut command = command.disable_help_subcommand(true);
    if let Some(folder) = &args.out {
        fs::create_dir_all(folder).map_err(|error| Failure::writing(folder.display(), &error))?;
        command.build();
        return write_pages(&command, folder, &Outputs::new(&[], true));
    }
    command.build();
    let page = match &args.page {
        None => command,
        Some(name) => {
            command.get_subcommands().find(|subcommand| subcommand.get_name() == name).cloned().ok_or_else(
                || Failure::Usage(format!("unknown command `{name}`; `flowgauge --help` lists the commands")),
            )?
        }
    };
    print(&page_of(page)?)
}

/// Writes the man pages of a command and its subcommands to a folder.
fn write_pages(command: &Command, folder: &Path, outputs: &Outputs) -> Result<(), Failure> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, folder, outputs)?;
    }
    let name = clap_mangen::Man::new(command.clone()).get_filename();
    write_whole(outputs.location(&folder.join(name))?, &page_of(command.clone())?)
}

/// Returns the man page of a command. The page of each command names the version of the program.
fn page_of(command: Command) -> Result<Vec<u8>, Failure> {
    let page = clap_mangen::Man::new(command)
        .source(concat!("flowgauge ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok(text)
}

/// Writes a text to standard output.
pub(crate) fn print(octets: &[u8]) -> Result<(), Failure> {
    let mut out = StandardOutput;
    out.write_all(octets)?;
    Ok(out.flush()?)
}
