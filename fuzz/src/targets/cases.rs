//! The cases of the protocols of the kit, which its tests write: messages with their answers, in the order of the names of files.

use std::path::Path;
use std::sync::LazyLock;
use std::{fs, io};

use flowgauge::session::Role;

/// The dialogues of a protocol.
pub struct Cases {
    pub is_stream: bool,
    pub port: u16,
    /// Sender and octets of each turn, for each dialogue.
    pub dialogues: Vec<Vec<(Role, Vec<u8>)>>,
}

/// The cases of all protocols.
pub static CASES: LazyLock<Vec<Cases>> = LazyLock::new(|| read().expect("the files of tests/data/cases"));

/// Returns the cases whose port an input selects.
pub fn selected(choice: u8) -> &'static Cases {
    &CASES[usize::from(choice) % CASES.len()]
}

fn read() -> io::Result<Vec<Cases>> {
    // The targets are also modules of a test of the library, whose folder is the one above.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests/data/cases", "../tests/data/cases"].map(|folder| root.join(folder));
    let folder = folders.into_iter().find(|folder| folder.exists()).ok_or(io::ErrorKind::NotFound)?;
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let case = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path)?;
        let (port, dialogues) = text.split_once('\n').unwrap_or_default();
        let is_stream = path.to_string_lossy().ends_with("-tcp.txt");
        let dialogues =
            dialogues.split("\n\n").map(|lines| lines.lines().filter_map(turn).collect()).collect();
        Ok(Cases { is_stream, port: port.parse().map_err(io::Error::other)?, dialogues })
    };
    paths.iter().map(case).collect()
}

/// Reads a turn: `C` or `S`, and hexadecimal digits.
pub fn turn(line: &str) -> Option<(Role, Vec<u8>)> {
    let (sender, digits) = line.split_once(' ')?;
    let octet = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let octets = (0..digits.len()).step_by(2).map(octet).collect::<Option<_>>()?;
    Some((if sender == "C" { Role::Client } else { Role::Server }, octets))
}
