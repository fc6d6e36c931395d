//! The cases of the protocols of the kit, which its tests write into `tests/data/cases`: for fuzz targets and benches.

use std::path::{Path, PathBuf};
use std::{fs, io};

use flowgauge::session::Role;

/// The dialogues of a protocol.
pub struct Cases {
    pub is_stream: bool,
    pub port: u16,
    /// Sender and octets of each turn, for each dialogue.
    pub dialogues: Vec<Vec<(Role, Vec<u8>)>>,
}

/// Reads the cases of all protocols, in the order of the names of their files, with these names.
pub fn read_all() -> io::Result<Vec<(String, Cases)>> {
    // The root of the repository is the folder of the package that has this module, or one above.
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = above.map(|folder| folder.join("tests/data/cases"));
    let folder = folders.find(|folder| folder.exists()).ok_or(io::ErrorKind::NotFound)?;
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.iter().map(read).collect()
}

fn read(path: &PathBuf) -> io::Result<(String, Cases)> {
    let text = fs::read_to_string(path)?;
    let (port, dialogues) = text.split_once("\n\n").unwrap_or_default();
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let dialogues = dialogues.split("\n\n").map(|lines| lines.lines().filter_map(turn).collect()).collect();
    let port = port.parse().map_err(io::Error::other)?;
    Ok((name.clone(), Cases { is_stream: name.ends_with("-tcp"), port, dialogues }))
}

/// Reads a turn: `C` or `S`, and hexadecimal digits.
pub fn turn(line: &str) -> Option<(Role, Vec<u8>)> {
    let (sender, digits) = line.split_once(' ')?;
    let octet = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let octets = (0..digits.len()).step_by(2).map(octet).collect::<Option<_>>()?;
    Some((if sender == "C" { Role::Client } else { Role::Server }, octets))
}
