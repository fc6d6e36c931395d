//! The file of a checkpoint: it is replaced when the new one is complete and on the disk, and locked during a run.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use flowgauge::checkpoint::{Error, Reader, Writer};

use crate::console::Failure;
use crate::creation::{self, Access, InputFiles};

/// A checkpoint that no other process uses.
pub(super) struct CheckpointFile {
    path: PathBuf,
    /// The files that the command reads.
    inputs: InputFiles,
    /// Held until the end of the process, in any way that it ends.
    _lock: File,
}

impl CheckpointFile {
    /// Locks the checkpoint at a path, which need not exist, for a command that reads `inputs`.
    pub(super) fn lock(path: &Path, inputs: &[PathBuf]) -> Result<Self, Failure> {
        // A file of another kind has no lock beside it.
        open(path)?;
        let lock_path = hidden(path, "lock");
        let inputs = InputFiles::new(inputs);
        let lock = creation::open_lock(&lock_path, &inputs);
        let lock =
            lock.map_err(|error| failure(path, format_args!("its lock {}: {error}", lock_path.display())))?;
        #[cfg(unix)]
        if let Err(error) = rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            return Err(if error == rustix::io::Errno::WOULDBLOCK {
                Failure::Other(format!("{}: another process uses this checkpoint", path.display()))
            } else {
                Failure::writing(lock_path.display(), &error.into())
            });
        }
        Ok(Self { path: path.to_owned(), inputs, _lock: lock })
    }

    /// Returns a failure with the path.
    pub(super) fn failure(&self, problem: impl Display) -> Failure {
        failure(&self.path, problem)
    }

    /// Opens the checkpoint; `None` if there is none.
    pub(super) fn open(&self) -> Result<Option<Reader<File>>, Failure> {
        open(&self.path)
    }

    /// Replaces the checkpoint with what `write` writes, when that is complete and on the disk.
    pub(super) fn replace(
        &self,
        write: impl FnOnce(&mut Writer<File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let temporary = hidden(&self.path, "part");
        let replace = || -> io::Result<()> {
            // It contains octets of streams.
            let file = creation::create_temporary(&temporary, &self.inputs, &Access::Private)?;
            let written = Writer::new(file).and_then(|mut writer| {
                write(&mut writer)?;
                writer.finish()?.sync_all()?;
                fs::rename(&temporary, &self.path)
            });
            if written.is_err() {
                // Its own file: what cannot be replaced remains.
                let _ = fs::remove_file(&temporary);
            }
            written.and_then(|()| self.sync_folder())
        };
        replace().map_err(|error| Failure::writing(self.path.display(), &error))
    }

    /// Removes the checkpoint.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        match fs::remove_file(&self.path) {
            Ok(()) => self.sync_folder().map_err(|error| self.failure(error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Writes the name of the file to the disk, which a rename changes in memory only.
    fn sync_folder(&self) -> io::Result<()> {
        #[cfg(unix)]
        {
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(())
    }
}

fn failure(path: &Path, problem: impl Display) -> Failure {
    Failure::Other(format!("{}: {problem}", path.display()))
}

/// Opens a checkpoint; `None` if there is none.
pub(super) fn open(path: &Path) -> Result<Option<Reader<File>>, Failure> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failure(path, error)),
        // The open of a pipe would wait for its writer.
        Ok(metadata) if !metadata.is_file() => {
            return Err(failure(path, "not a regular file; give another name for the checkpoint"));
        }
        Ok(_) => {}
    }
    match File::open(path).map_err(Error::Io).and_then(Reader::new) {
        Ok(reader) => Ok(Some(reader)),
        Err(error @ Error::NoCheckpoint) => {
            Err(failure(path, format_args!("{error}; remove the file, or give another name")))
        }
        Err(error) => Err(failure(path, error)),
    }
}

/// Returns the name of a file that belongs to a checkpoint: a hidden name in the same folder.
fn hidden(path: &Path, kind: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{kind}"));
    path.with_file_name(name)
}
