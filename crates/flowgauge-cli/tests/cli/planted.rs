//! Links, hard links and pipes that others planted under the names of outputs, of their temporary files and of locks.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{Folder, data, run};

/// Commands with each option that writes a file, in a folder with the input `in.pcap`.
const COMMANDS: [&[&str]; 11] = [
    &["slice", "in.pcap", "--filter", "tcp", "-w", "out", "--force"],
    &[
        "flows", "in.pcap", "-w", "ndjson=a", "-w", "csv=b", "-w", "fixed=c", "--format", "eve", "--out",
        ".", "--force",
    ],
    &["flows", "in.pcap", "--format", "ipfix", "--to", "./out", "--force"],
    &["sessions", "in.pcap", "-w", "ndjson=a", "--format", "zeek-json", "--out", ".", "--force"],
    &["streams", "in.pcap", "--out", ".", "--force"],
    &["export-objects", "in.pcap", "--out", "."],
    &["report", "in.pcap", "-o", "out", "--force"],
    &["man", "--out", "."],
    &["flows", "in.pcap", "--format", "ndjson", "--checkpoint", "state"],
    &["sessions", "in.pcap", "--format", "ndjson", "--checkpoint", "state"],
    &["summary", "in.pcap", "--checkpoint", "state"],
];

/// Placeholders of options whose values name files or folders, in the help.
const FILE_VALUES: [&str; 5] = ["DIR", "FILE", "HTML", "KIND=PATH", "OUT"];

/// Placeholders of the other options.
const OTHER_VALUES: [&str; 32] = [
    "ACTION",
    "ADDRESS",
    "COLLECTOR",
    "CONDITION",
    "ENDPOINT",
    "EXPR",
    "FIELD",
    "FLOW",
    "FORMAT",
    "FROM",
    "ID",
    "KEY",
    "LEFT",
    "LIST",
    "MODE",
    "N",
    "NAME",
    "PATTERN",
    "POLICY",
    "PREFIX",
    "RIGHT",
    "SIDE",
    "SIDE=TIME",
    "SIZE",
    "SQL",
    "TIME",
    "TYPE",
    "URL",
    "WHEN",
    "WHICH",
    "HELP",
    "VERSION",
];

/// Commands that write records with the code of `flows`: their options with the same names and descriptions.
const LIKE_FLOWS: [&str; 4] = ["live", "collect", "merge", "subscribe"];

/// Options that name inputs.
const INPUTS: [(&str, &str); 5] =
    [("flows", "--label"), ("flows", "--geoip"), ("live", "--label"), ("live", "--geoip"), ("sql", "--file")];

/// Options of commands that other features add, and the tests that write their files: `tests/sql` the results, which are
/// created like those of `slice`, and `tests/bus` keys, for which no file is replaced.
const TESTED_ELSEWHERE: [(&str, &str); 3] =
    [("sql", "--out"), ("publish", "--curve-key"), ("subscribe", "--curve-key")];

/// Time after which a command that should end receives a signal.
const PATIENCE: Duration = Duration::from_secs(100);

/// Name of the lock of a checkpoint.
const LOCK: &str = ".state.lock";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Plant {
    Link,
    DanglingLink,
    HardLink,
    LinkToInput,
    Pipe,
}

const PLANTS: [Plant; 5] =
    [Plant::Link, Plant::DanglingLink, Plant::HardLink, Plant::LinkToInput, Plant::Pipe];

impl Plant {
    fn at(self, folder: &Folder, name: &str) {
        let path = folder.path(name);
        match self {
            Self::Link => symlink("victim", path).unwrap(),
            Self::DanglingLink => symlink("created", path).unwrap(),
            Self::HardLink => fs::hard_link(folder.path("victim"), path).unwrap(),
            Self::LinkToInput => fs::hard_link(folder.path("in.pcap"), path).unwrap(),
            Self::Pipe => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        }
    }
}

/// A folder with an input, and with a file that no command may change.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.file("in.pcap", &data("mail.pcap"));
    folder.file("victim", b"precious");
    folder
}

/// Starts a command in a folder, whose process has the number that `prepare` receives before the command begins.
fn start(folder: &Folder, args: &[&str], prepare: impl FnOnce(u32)) -> Child {
    let mut child = Command::new("sh")
        .args(["-c", "read -r line; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_flowgauge")])
        .args(args)
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.path("problems")).unwrap())
        .spawn()
        .unwrap();
    prepare(child.id());
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    child
}

/// Waits for the end of a command. Returns its status; `None` if it was ended by the signal that it receives after a while.
fn end(mut child: Child, patience: Duration) -> Option<i32> {
    let start = Instant::now();
    let mut is_signaled = false;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().filter(|_| !is_signaled);
        }
        if !is_signaled && start.elapsed() > patience {
            is_signaled = true;
            let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
            assert!(killed.success());
        }
        if start.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            panic!("the command does not end");
        }
        sleep(Duration::from_millis(5));
    }
}

/// Names of the files that a command writes, without those of locks.
fn outputs(args: &[&str]) -> Vec<String> {
    let folder = folder();
    let status = end(start(&folder, args, |_| ()), PATIENCE);
    assert_eq!(status, Some(0), "{args:?}: {}", fs::read_to_string(folder.path("problems")).unwrap());
    let known = BTreeSet::from(["in.pcap", "victim", "problems"].map(str::to_owned));
    let is_output = |name: &String| !known.contains(name) && *name != LOCK;
    let names: Vec<_> = folder.names().into_iter().filter(is_output).collect();
    assert!(!names.is_empty(), "{args:?} writes no file");
    names
}

fn check_others(folder: &Folder, case: &str) {
    assert_eq!(fs::read(folder.path("victim")).unwrap(), b"precious", "{case}");
    assert!(fs::read(folder.path("in.pcap")).unwrap() == data("mail.pcap"), "{case}: the input has changed");
    assert!(!Path::new(&folder.path("created")).exists(), "{case}: a link was followed");
}

fn problems(folder: &Folder) -> String {
    fs::read_to_string(folder.path("problems")).unwrap()
}

#[test]
fn nothing_planted_at_the_name_of_an_output_or_its_temporary_file_is_followed_or_waited_for() {
    for args in COMMANDS {
        let names = outputs(args);
        let is_checkpoint = args.contains(&"--checkpoint");
        for plant in PLANTS {
            let is_input = plant == Plant::LinkToInput && args.contains(&"in.pcap");
            planted_at_temporary_names(args, &names, plant);

            let case = format!("{args:?}: {plant:?} at {names:?}");
            let folder = folder();
            names.iter().for_each(|name| plant.at(&folder, name));
            // Only a pipe that the user named is written, when it has a reader.
            let waits = plant == Plant::Pipe && !is_checkpoint;
            let patience = if waits { Duration::from_millis(300) } else { PATIENCE };
            let status = end(start(&folder, args, |_| ()), patience);
            check_others(&folder, &case);
            assert!(!is_input || status == Some(1), "{case}: {}", problems(&folder));
            assert!(!folder.names().iter().any(|name| name.ends_with(".part")), "{case}");

            if is_checkpoint {
                let case = format!("{args:?}: {plant:?} at the lock");
                let folder = self::folder();
                plant.at(&folder, LOCK);
                let status = end(start(&folder, args, |_| ()), PATIENCE);
                check_others(&folder, &case);
                assert_eq!(status, Some(1), "{case}");
                assert!(problems(&folder).contains(LOCK), "{case}: {}", problems(&folder));
            }
        }
    }
}

fn planted_at_temporary_names(args: &[&str], names: &[String], plant: Plant) {
    let case = format!("{args:?}: {plant:?} at the temporary names of {names:?}");
    let folder = folder();
    let mut temporary = Vec::new();
    let child = start(&folder, args, |number| {
        let process = if args.contains(&"--checkpoint") { String::new() } else { format!(".{number}") };
        temporary = names.iter().map(|name| format!(".{name}{process}.part")).collect();
        temporary.iter().for_each(|name| plant.at(&folder, name));
    });
    let status = end(child, PATIENCE);
    check_others(&folder, &case);
    if plant == Plant::LinkToInput && args.contains(&"in.pcap") {
        assert_eq!(status, Some(1), "{case}");
        assert!(problems(&folder).contains("is an input"), "{case}: {}", problems(&folder));
        assert!(temporary.iter().all(|name| Path::new(&folder.path(name)).exists()), "{case}");
        return;
    }
    assert_eq!(status, Some(0), "{case}: {}", problems(&folder));
    for name in names {
        let output = fs::symlink_metadata(folder.path(name)).unwrap();
        assert!(output.is_file() && output.nlink() == 1, "{case}: {name}");
    }
    assert!(!folder.names().iter().any(|name| name.ends_with(".part")), "{case}");
}

/// An option in the help of a command.
struct Listed {
    /// The names, such as `-o, --out`.
    names: Vec<String>,
    value: String,
    description: String,
}

/// Options with values in the help of a command.
fn listed(command: &str) -> Vec<Listed> {
    let help = run(&[command, "--help"]).out;
    let mut all: Vec<Listed> = Vec::new();
    for line in help.lines() {
        let text = line.trim_start();
        // Options, sections and further descriptions begin at different columns.
        let is_option = text.starts_with('-') && line.len() - text.len() < 8;
        let with_value = text.split_once(" <").and_then(|(names, rest)| Some((names, rest.split_once('>')?)));
        match with_value.filter(|_| is_option) {
            Some((names, (value, description))) => all.push(Listed {
                names: names.split(", ").map(str::to_owned).collect(),
                value: value.to_owned(),
                description: description.to_owned(),
            }),
            None if is_option || line.len() == text.len() && !text.is_empty() => {
                all.push(Listed { names: Vec::new(), value: "HELP".to_owned(), description: String::new() })
            }
            None => all.iter_mut().last().into_iter().for_each(|option| option.description.push_str(text)),
        }
    }
    all
}

#[test]
fn every_option_that_writes_files_has_a_case() {
    let help = run(&["--help"]).out;
    let list =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    let commands: Vec<_> = names.filter_map(|line| line.split_whitespace().next()).collect();
    let has_case = |command: &str, names: &[String]| {
        COMMANDS
            .iter()
            .any(|args| args[0] == command && args.iter().any(|arg| names.iter().any(|name| name == arg)))
    };
    let (mut missing, mut with_case) = (Vec::new(), Vec::new());
    let options = || {
        commands.iter().flat_map(|command| listed(command).into_iter().map(move |option| (*command, option)))
    };
    for (command, option) in options() {
        let value = option.value.as_str();
        assert!(FILE_VALUES.contains(&value) || OTHER_VALUES.contains(&value), "{command}: {value}");
        if has_case(command, &option.names) && FILE_VALUES.contains(&value) {
            with_case.push((command, option));
        }
    }
    for (command, option) in options().filter(|(_, option)| FILE_VALUES.contains(&option.value.as_str())) {
        let name = option.names.last().unwrap().as_str();
        let is_same = |(other_command, other): &(&str, Listed)| {
            let is_shared = LIKE_FLOWS.contains(&command) && *other_command == "flows";
            is_shared && other.names == option.names && other.description == option.description
        };
        let is_known = INPUTS.contains(&(command, name)) || TESTED_ELSEWHERE.contains(&(command, name));
        if !is_known && !has_case(command, &option.names) && !with_case.iter().any(is_same) {
            missing.push(format!("{command} {name}"));
        }
    }
    assert!(missing.is_empty(), "options that may write files, without a case: {missing:?}");
    assert!(with_case.len() >= 13 && commands.len() > 10, "{} options of {commands:?}", with_case.len());
}

#[test]
fn a_file_that_others_must_not_read_is_not_readable_while_it_is_replaced() {
    // The pipe of the input keeps the command running while its output has content.
    let folder = folder();
    fs::write(folder.path("out"), b"").unwrap();
    fs::set_permissions(folder.path("out"), fs::Permissions::from_mode(0o600)).unwrap();
    let pipe = folder.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let args = ["slice", "pipe", "--filter", "tcp", "-w", "out", "--force", "-q"];
    let child = start(&folder, &args, |_| ());
    let temporary = folder.path(&format!(".out.{}.part", child.id()));
    let mut input = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    input.write_all(&data("mail.pcap")).unwrap();
    let began = Instant::now();
    while !Path::new(&temporary).exists() {
        assert!(began.elapsed() < PATIENCE, "{}", problems(&folder));
        sleep(Duration::from_millis(5));
    }
    assert_eq!(fs::metadata(&temporary).unwrap().permissions().mode() & 0o777, 0o600);
    drop(input);
    assert_eq!(end(child, PATIENCE), Some(0), "{}", problems(&folder));
    assert_eq!(fs::metadata(folder.path("out")).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::metadata(folder.path("out")).unwrap().len() > 0);
}

/// All files of the command are created in one place, which the tests above concern.
#[test]
fn files_are_created_in_one_module() {
    let mut folders = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") || path.ends_with("src/creation.rs")
            {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for call in ["File::create", "OpenOptions", "File::options", "fs::write(", "fs::copy("] {
                let mut before = code.match_indices(call).map(|(at, _)| code[..at].chars().next_back());
                assert!(
                    before.all(|last| last.is_some_and(char::is_alphanumeric)),
                    "{}: {call}",
                    path.display()
                );
            }
            count += 1;
        }
    }
    assert!(count > 50);
}
