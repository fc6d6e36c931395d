//! Standard output as a file to which rows are appended.

use std::fs::File;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

/// A file and its length: where the rows before a checkpoint end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    device: u64,
    inode: u64,
    len: u64,
}

impl Position {
    /// Writes the rows of standard output to the disk. Returns where they end; `None` if standard output is no file.
    #[cfg(unix)]
    pub(super) fn sync() -> io::Result<Option<Self>> {
        io::stdout().flush()?;
        let Some((file, position)) = Self::of_standard_output()? else { return Ok(None) };
        file.sync_data()?;
        Ok(Some(position))
    }

    #[cfg(unix)]
    fn of_standard_output() -> io::Result<Option<(File, Self)>> {
        use std::os::fd::AsFd as _;
        use std::os::unix::fs::MetadataExt as _;
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let metadata = file.metadata()?;
        let position = Self { device: metadata.dev(), inode: metadata.ino(), len: metadata.len() };
        Ok(metadata.is_file().then_some((file, position)))
    }

    /// Removes what follows this position, if standard output is the same file. Returns the number of octets that were
    /// removed.
    #[cfg(unix)]
    pub(super) fn truncate(self) -> io::Result<u64> {
        use std::io::{Seek as _, SeekFrom};
        let Some((mut file, current)) = Self::of_standard_output()? else { return Ok(0) };
        if (current.device, current.inode) != (self.device, self.inode) || current.len <= self.len {
            return Ok(0);
        }
        file.set_len(self.len)?;
        file.seek(SeekFrom::Start(self.len))?;
        Ok(current.len - self.len)
    }

    #[cfg(not(unix))]
    pub(super) fn sync() -> io::Result<Option<Self>> {
        io::stdout().flush()?;
        Ok(None)
    }

    #[cfg(not(unix))]
    pub(super) fn truncate(self) -> io::Result<u64> {
        Ok(0)
    }
}
