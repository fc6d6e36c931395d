//! Standard output as a file to which rows are appended.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use serde::{Deserialize, Serialize};

use super::inputs::hash;

/// Number of octets before a position by which the file is recognized.
const TAIL_LEN: u64 = 4096;

/// A file and its length: where the rows before a checkpoint end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    device: u64,
    inode: u64,
    len: u64,
    /// Hash of the last octets; `None` if they cannot be read.
    tail: Option<String>,
}

impl Position {
    /// Writes the rows of standard output to the disk. Returns where they end; `None` if standard output is no file.
    #[cfg(unix)]
    pub(super) fn sync() -> io::Result<Option<Self>> {
        io::stdout().flush()?;
        let Some((file, device, inode, len)) = standard_output()? else { return Ok(None) };
        file.sync_data()?;
        Ok(Some(Self { device, inode, len, tail: tail(len).ok() }))
    }

    /// Removes the rows that follow this position, if standard output is the same file. Returns the number of octets that
    /// were removed.
    #[cfg(unix)]
    pub(super) fn truncate(&self) -> io::Result<u64> {
        let Some((mut file, device, inode, len)) = standard_output()? else { return Ok(0) };
        let is_same = (device, inode) == (self.device, self.inode) && len > self.len;
        // The system gives the inode of a removed file to another one.
        if !is_same || self.tail.is_none() || tail(self.len).ok() != self.tail || !is_row_at(self.len)? {
            return Ok(0);
        }
        file.set_len(self.len)?;
        file.seek(SeekFrom::Start(self.len))?;
        Ok(len - self.len)
    }

    #[cfg(not(unix))]
    pub(super) fn sync() -> io::Result<Option<Self>> {
        io::stdout().flush()?;
        Ok(None)
    }

    #[cfg(not(unix))]
    pub(super) fn truncate(&self) -> io::Result<u64> {
        Ok(0)
    }
}

/// Returns standard output with its device, inode and length; `None` if it is no file.
#[cfg(unix)]
fn standard_output() -> io::Result<Option<(File, u64, u64, u64)>> {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::MetadataExt as _;
    let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let metadata = file.metadata()?;
    Ok(metadata.is_file().then_some((file, metadata.dev(), metadata.ino(), metadata.len())))
}

/// Opens the file of standard output for reading, for which it usually is not opened.
fn readable(position: u64) -> io::Result<File> {
    let mut file = File::open("/dev/stdout")?;
    file.seek(SeekFrom::Start(position))?;
    Ok(file)
}

/// Returns the hash of the octets before a position of standard output.
fn tail(position: u64) -> io::Result<String> {
    let start = position.saturating_sub(TAIL_LEN);
    let mut octets = Vec::new();
    readable(start)?.take(position - start).read_to_end(&mut octets)?;
    Ok(hash(&octets))
}

/// Returns whether a row of ndjson begins at a position of standard output.
fn is_row_at(position: u64) -> io::Result<bool> {
    let mut octets = Vec::new();
    readable(position)?.take(1).read_to_end(&mut octets)?;
    Ok(octets == b"{")
}
