//! Every command block of the README, of `docs/cli.md` and of `docs/formats.md` is run, and its output compared.
//!
//! A block of kind `text` whose first line begins with `$ ` is a session: commands, each with its output, or without one
//! if the block shows only commands. A block of kind `sh` has one command per line; a `text` block right behind it is
//! the output. `UPDATE_DOCS=1` writes the outputs again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use super::folder::Folder;
use super::repository;

/// Commands that are not run: they install programs, or build and test this repository.
const BUILDS: [&str; 4] = ["cargo install", "cargo add", "cargo test", "sudo "];

/// A zstd frame with a window of 128 MiB, and an empty block (RFC 8878 section 3.1.1).
const LONG_WINDOW: [u8; 9] = [0x28, 0xb5, 0x2f, 0xfd, 0, 17 << 3, 1, 0, 0];

/// A command of a document, and the lines of its output there.
struct Step {
    command: String,
    output: Vec<String>,
    /// Numbers of the first line of the output and the line after the last one.
    lines: (usize, usize),
}

/// The commands of one block or of two adjacent ones, which share a folder.
struct Session {
    steps: Vec<Step>,
    has_output: bool,
}

/// Returns the kinds and the line ranges of all fenced blocks.
fn blocks<'t>(lines: &[&'t str]) -> Vec<(&'t str, usize, usize)> {
    let mut blocks = Vec::new();
    let mut open = None;
    for (number, line) in lines.iter().enumerate() {
        match (open, line.strip_prefix("```")) {
            (None, Some(kind)) => open = Some((kind, number + 1)),
            (Some((kind, start)), Some(_)) => {
                blocks.push((kind, start, number));
                open = None;
            }
            _ => {}
        }
    }
    blocks
}

fn sessions(lines: &[&str]) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut last_sh_end = None;
    for (kind, start, end) in blocks(lines) {
        let block = &lines[start..end];
        match kind {
            "sh" => {
                let steps = block.iter().map(|line| Step {
                    command: (*line).to_owned(),
                    output: Vec::new(),
                    lines: (end, end),
                });
                sessions.push(Session { steps: steps.collect(), has_output: false });
                last_sh_end = Some(end);
            }
            "text" if block[0].starts_with("$ ") => {
                let mut steps: Vec<Step> = Vec::new();
                for (number, line) in (start..).zip(block) {
                    match line.strip_prefix("$ ") {
                        Some(command) => steps.push(Step {
                            command: command.to_owned(),
                            output: Vec::new(),
                            lines: (number + 1, number + 1),
                        }),
                        None => {
                            let step = steps.last_mut().expect("a command");
                            step.output.push((*line).to_owned());
                            step.lines.1 = number + 1;
                        }
                    }
                }
                let has_output = steps.iter().any(|step| !step.output.is_empty());
                sessions.push(Session { steps, has_output });
            }
            "text" if last_sh_end.is_some_and(|sh_end| sh_end + 2 == start - 1) => {
                let session = sessions.last_mut().expect("the commands");
                let step = session.steps.last_mut().expect("a command");
                step.output = block.iter().map(|line| (*line).to_owned()).collect();
                step.lines = (start, end);
                session.has_output = true;
            }
            _ => {}
        }
    }
    sessions
}

/// Returns a folder with the files that the commands name, and the program as `flowgauge` in `bin`.
fn workplace() -> Folder {
    let folder = Folder::new();
    let root = Path::new(&folder.path("")).to_owned();
    let examples = repository().canonicalize().unwrap().join("examples");
    symlink(&examples, root.join("examples")).unwrap();
    fs::create_dir(root.join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_flowgauge"), root.join("bin/flowgauge")).unwrap();
    fs::copy(examples.join("data/web.pcap"), root.join("capture.pcap")).unwrap();
    // The content determines the format, not the name.
    fs::copy(examples.join("data/web.pcap"), root.join("day.pcapng.zst")).unwrap();
    fs::write(root.join("long.pcap.zst"), LONG_WINDOW).unwrap();
    folder
}

/// Returns the command as it is run: on loopback, for a short time, with this build of the program.
fn runnable(command: &str) -> Option<String> {
    if BUILDS.iter().any(|prefix| command.starts_with(prefix)) {
        return None;
    }
    let command = command.replace("cargo run --release -- ", "flowgauge ");
    let command = command.replace("192.0.2.1:", "127.0.0.1:").replace("192.0.2.7:", "127.0.0.1:");
    // The recipes for other programs end with them.
    let command = command.split(" | jq").next().unwrap_or_default().to_owned();
    let endless = ["flowgauge live", "flowgauge collect"];
    let is_endless = command.contains(" --listen") || command.contains(" --connect");
    Some(match endless.into_iter().find(|start| is_endless && command.starts_with(start)) {
        Some(start) => command.replacen(start, &format!("{start} --duration 1s"), 1),
        None => command,
    })
}

/// Returns whether a command needs a feature that this build does not have, or a network.
fn is_unavailable(command: &str) -> bool {
    let is_of_bus = command.contains("flowgauge publish") || command.contains("flowgauge subscribe");
    let is_of_sql = command.contains("flowgauge sql");
    let needs_root = command.contains("flowgauge live") && command.contains(" -i ");
    is_of_bus && !cfg!(feature = "bus") || is_of_sql && !cfg!(feature = "sql") || needs_root
}

/// Returns the lines of the output, and whether the command line is valid. Standard error is where a terminal shows it;
/// behind the output of another program if that reads the output.
fn run(folder: &Folder, command: &str) -> (Vec<String>, bool) {
    let root = folder.path("");
    let path = format!("{root}/bin:{}", std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args([
            "-c",
            &if command.contains(" | ") { command.to_owned() } else { format!("exec 2>&1\n{command}") },
        ])
        .current_dir(&root)
        .env("PATH", path)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (text.lines().map(str::to_owned).collect(), output.status.code() != Some(2))
}

/// Returns a line without the time and the rate of a run.
fn masked(line: &str) -> &str {
    line.split_once("; processed in ").map_or(line, |(before, _)| before)
}

fn same(documented: &[String], found: &[String]) -> bool {
    documented.len() == found.len()
        && documented.iter().zip(found).all(|(one, other)| masked(one) == masked(other))
}

/// Runs all commands of a document. Returns the number of commands that were run, and the differences.
fn check(path: &Path, failures: &mut Vec<String>) -> usize {
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let borrowed: Vec<&str> = text.lines().collect();
    let mut run_count = 0;
    let mut changes = Vec::new();
    for session in sessions(&borrowed) {
        let folder = workplace();
        // Commands in the background belong to those that follow.
        let script: Vec<_> = session.steps.iter().filter_map(|step| runnable(&step.command)).collect();
        if !session.has_output && script.iter().any(|command| command.ends_with('&')) {
            if !script.iter().any(|command| is_unavailable(command)) {
                let (output, is_valid) = run(&folder, &[&script.join("\n"), "\nwait"].concat());
                run_count += script.len();
                if !is_valid || output.is_empty() {
                    failures.push(format!("{}: {script:#?}: {output:#?}", path.display()));
                }
            }
            continue;
        }
        for step in &session.steps {
            let Some(command) = runnable(&step.command).filter(|command| !is_unavailable(command)) else {
                continue;
            };
            let (found, is_valid) = run(&folder, &command);
            run_count += 1;
            let is_right = if session.has_output { same(&step.output, &found) } else { is_valid };
            if !is_right {
                failures.push(format!("{}: `{command}` prints\n{}", path.display(), found.join("\n")));
                if session.has_output {
                    changes.push((step.lines, found));
                }
            }
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        for ((start, end), found) in changes.into_iter().rev() {
            lines.splice(start..end, found);
        }
        fs::write(path, lines.join("\n") + "\n").unwrap();
    }
    run_count
}

#[test]
fn every_command_block_shows_what_the_program_prints() {
    let mut failures = Vec::new();
    let root = repository();
    let counts =
        ["README.md", "docs/cli.md", "docs/formats.md"].map(|name| check(&root.join(name), &mut failures));
    assert!(failures.is_empty(), "{}\n(UPDATE_DOCS=1 writes the outputs)", failures.join("\n\n"));
    assert!(counts[0] >= 8 && counts[1] >= 15, "{counts:?} commands were found");
}

#[test]
fn the_reasons_for_the_end_of_a_flow_are_those_that_the_program_prints() {
    let text = fs::read_to_string(repository().join("docs/cli.md")).unwrap();
    let (_, table) = text.split_once("| `ENDED` |").expect("a table");
    let documented: Vec<_> =
        table.lines().skip(2).map_while(|row| row.strip_prefix("| `")?.split('`').next()).collect();
    let mut found = std::collections::BTreeSet::new();
    for options in
        [&[][..], &["--max-flows", "2"], &["--active-timeout", "500ms"], &["--idle-timeout", "100ms"]]
    {
        let run = super::run(&[&["flows", "web.pcap", "dns.pcap", "--quiet"], options].concat());
        found.extend(run.out.lines().skip(1).filter_map(|row| row.split(' ').next_back()).map(str::to_owned));
    }
    assert!(documented.iter().all(|name| found.contains(*name)), "{found:?} are printed");
    assert_eq!(documented.len(), found.len(), "{found:?} are printed");
}
