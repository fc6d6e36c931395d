//! A folder of output files, of which more are written at the same time than can be open.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use lru::LruCache;

use crate::console::Failure;
use crate::output::{Location, OutputFile, Outputs, write_whole};

/// Maximum number of open files. When it is reached, files are closed, and reopened when they receive more octets.
const OPEN_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(128).expect("not zero");

/// Size in octets of the write buffer of an open file.
const BUFFER_LEN: usize = 16 << 10;

/// An output folder, with a bounded number of open files.
pub(crate) struct Files {
    folder: PathBuf,
    outputs: Outputs,
    open: LruCache<String, OpenFile>,
    /// Names of files for which a write failed; these files are removed.
    failed: HashSet<String>,
}

struct OpenFile {
    writer: BufWriter<File>,
    /// Offset in the file at which the next octet is written.
    position: u64,
}

impl Files {
    /// Creates the output folder if it does not exist.
    pub(crate) fn new(folder: &Path, outputs: Outputs) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(|error| Failure::writing(folder.display(), &error))?;
        Ok(Self {
            folder: folder.to_owned(),
            outputs,
            open: LruCache::new(OPEN_COUNT_MAX),
            failed: HashSet::new(),
        })
    }

    /// Creates a file in the output folder that is written sequentially.
    pub(crate) fn create(&self, name: &str) -> Result<(OutputFile, File), Failure> {
        OutputFile::create(self.outputs.location(&self.folder.join(name))?)
    }

    /// Returns the location of a file in the output folder that was created before.
    fn checked_location(&self, name: &str) -> Location {
        self.outputs.checked_location(&self.folder.join(name))
    }

    fn failure(&self, name: &str, error: &io::Error) -> Failure {
        Failure::writing(self.folder.join(name).display(), error)
    }

    /// Writes octets to a file of the output folder at an offset. The first write creates the file.
    pub(crate) fn write(
        &mut self,
        name: &str,
        is_first: bool,
        position: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        if let Err(failure) = self.try_open(name, is_first) {
            // A file created in this call contains no octets and would not be closed otherwise.
            if is_first && self.open.pop(name).is_some() {
                self.checked_location(name).discard();
            }
            return Err(failure);
        }
        let Some(open) = self.open.get_mut(name) else { return Ok(()) };
        let write = |open: &mut OpenFile| {
            if open.position != position {
                open.writer.seek(SeekFrom::Start(position))?;
            }
            open.writer.write_all(bytes)?;
            open.position = position + bytes.len() as u64;
            Ok(())
        };
        write(open).map_err(|error| self.fail(name, &error))
    }

    /// Removes an output file for which a write failed.
    fn fail(&mut self, name: &str, error: &io::Error) -> Failure {
        self.open.pop(name);
        self.checked_location(name).discard();
        self.failed.insert(name.to_owned());
        self.failure(name, error)
    }

    /// Completes a file of length `len`, and renames it to its final name.
    ///
    /// # Errors
    ///
    /// Returns an error of writing; the file is then removed.
    pub(crate) fn close(&mut self, name: &str, len: u64) -> Result<(), Failure> {
        if self.failed.contains(name) {
            return Err(Failure::Other(format!(
                "{}: not written after an error",
                self.folder.join(name).display()
            )));
        }
        let location = self.checked_location(name);
        // It is not added to the open files, because that could close another one.
        let file = match self.open.pop(name) {
            Some(open) => flush(open.writer).map_err(|error| self.failure(name, &error)),
            None => location.reopen(),
        };
        let ended = file.and_then(|file| file.set_len(len).map_err(|error| self.failure(name, &error)));
        match ended {
            Ok(()) => location.commit(),
            Err(failure) => {
                location.discard();
                Err(failure)
            }
        }
    }

    /// Completes a file of consecutive octets under another name than that of its writes.
    ///
    /// # Errors
    ///
    /// As for [`close`](Self::close).
    pub(crate) fn close_as(&mut self, name: &str, final_name: &str) -> Result<(), Failure> {
        let closed = self.flush(name).and_then(|()| {
            let location = self.outputs.location(&self.folder.join(final_name))?;
            self.checked_location(name).become_that(&location)?;
            location.commit()
        });
        if closed.is_err() {
            self.discard(name);
        }
        closed
    }

    /// Opens a file that was written, to read it.
    pub(crate) fn read(&mut self, name: &str) -> Result<File, Failure> {
        self.flush(name)?;
        self.checked_location(name).open()
    }

    /// Removes a file that is not complete.
    pub(crate) fn discard(&mut self, name: &str) {
        self.open.pop(name);
        self.checked_location(name).discard();
    }

    /// Writes a file whose content is complete in memory.
    pub(crate) fn write_whole(&self, name: &str, octets: &[u8]) -> Result<(), Failure> {
        write_whole(self.outputs.location(&self.folder.join(name))?, octets)
    }

    /// Writes the buffered octets of a file, and closes it.
    fn flush(&mut self, name: &str) -> Result<(), Failure> {
        match self.open.pop(name) {
            Some(open) => flush(open.writer).map(drop).map_err(|error| self.failure(name, &error)),
            None => Ok(()),
        }
    }

    fn try_open(&mut self, name: &str, is_first: bool) -> Result<(), Failure> {
        if self.open.contains(name) {
            return Ok(());
        }
        let file = if is_first {
            self.outputs.location(&self.folder.join(name))?.create()?
        } else {
            self.checked_location(name).reopen()?
        };
        let open = OpenFile { writer: BufWriter::with_capacity(BUFFER_LEN, file), position: 0 };
        match self.open.push(name.to_owned(), open) {
            Some((name, evicted)) => {
                flush(evicted.writer).map(drop).map_err(|error| self.fail(&name, &error))
            }
            None => Ok(()),
        }
    }
}

/// Writes the buffered octets to the file, and returns errors of writing, which dropping the buffer would ignore.
fn flush(writer: BufWriter<File>) -> io::Result<File> {
    writer.into_inner().map_err(io::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes three times as many files as can be open, in turn, with a hole in each.
    #[test]
    fn more_files_than_can_be_open() {
        let folder = std::env::temp_dir().join(format!("flowgauge-files-{}", std::process::id()));
        let mut files = Files::new(&folder, Outputs::new(&[], false)).unwrap();
        let names: Vec<_> = (0..3 * OPEN_COUNT_MAX.get()).map(|number| number.to_string()).collect();
        for (is_first, position) in [(true, 0), (false, 5), (false, 10)] {
            for name in &names {
                files.write(name, is_first, position, name.as_bytes()).unwrap();
                assert!(files.open.len() <= OPEN_COUNT_MAX.get());
            }
        }
        for name in &names {
            files.close(name, 20).unwrap();
            let mut expected = vec![0; 20];
            for position in [0, 5, 10] {
                expected[position..position + name.len()].copy_from_slice(name.as_bytes());
            }
            assert_eq!(fs::read(folder.join(name)).unwrap(), expected);
        }
        // Buffered octets of the first file cannot be written when other files replace it among the open ones.
        let full = |files: &mut Files| {
            let file = File::options().write(true).open("/dev/full").unwrap();
            let open = files.open.get_mut("first").unwrap();
            open.writer = BufWriter::with_capacity(BUFFER_LEN, file);
            open.writer.write_all(b"lost").unwrap();
        };
        if cfg!(target_os = "linux") {
            files.write("first", true, 0, b"octets").unwrap();
            full(&mut files);
            let others: Vec<_> = (0..OPEN_COUNT_MAX.get()).map(|number| format!("other {number}")).collect();
            let outcomes = others.iter().map(|name| files.write(name, true, 0, b"octets"));
            let failures: Vec<_> = outcomes.filter_map(Result::err).collect();
            assert!(matches!(&failures[..], [Failure::Other(text)] if text.contains("first: ")));
            assert!(files.close("first", 10).is_err() && !folder.join("first").exists());
            let (last, written) = others.split_last().unwrap();
            assert!(files.close(last, 6).is_err());
            for name in written {
                files.close(name, 6).unwrap();
                fs::remove_file(folder.join(name)).unwrap();
            }
        }
        assert!(matches!(files.create("7"), Err(Failure::Other(text)) if text.contains("--force")));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), names.len(), "no temporary file is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
