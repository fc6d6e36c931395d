//! Completion scripts and man pages.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use clap::{Command, CommandFactory as _};

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::console::Failure;
use crate::output::{Outputs, write_whole};

/// Prints the completion script for a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "flowgauge", &mut script);
    print(&script)
}

/// Prints one man page, or writes all man pages to a folder.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
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
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    print(&text)
}

/// Writes the man pages of a command and its subcommands to a folder.
fn write_pages(command: &Command, folder: &Path, outputs: &Outputs) -> Result<(), Failure> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(subcommand, folder, outputs)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    write_whole(outputs.location(&folder.join(page.get_filename()))?, &text)
}

fn print(octets: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(octets)?;
    Ok(out.flush()?)
}
