//! Completions and man pages.

use std::fs;
use std::io::{self, Write as _};

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::console::Failure;

/// Prints a completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "flowgauge", &mut script);
    print(&script)
}

/// Prints a man page, or writes all of them to a folder.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    if let Some(folder) = &args.out {
        let write = || {
            fs::create_dir_all(folder)?;
            clap_mangen::generate_to(command, folder)
        };
        return write().map_err(|error| Failure::writing(folder.display(), &error));
    }
    command.build();
    let page = match &args.page {
        None => command,
        Some(name) => command
            .get_subcommands()
            .find(|subcommand| subcommand.get_name() == name)
            .cloned()
            .ok_or_else(|| Failure::Usage(format!("{name}: no such command")))?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    print(&text)
}

fn print(octets: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(octets)?;
    Ok(out.flush()?)
}
