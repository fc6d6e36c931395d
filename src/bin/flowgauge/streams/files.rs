//! The folder that streams are written to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use lru::LruCache;

use crate::console::Failure;

/// Files that are open at once. The others are opened again when there is more for them.
const OPEN_COUNT_MAX: NonZeroUsize = NonZeroUsize::new(128).expect("not zero");

/// What is written at once to a file.
const BUFFER_LEN: usize = 16 << 10;

/// A folder of files, of which a bounded number is open.
pub(super) struct Files {
    folder: PathBuf,
    may_overwrite: bool,
    inputs: Vec<PathBuf>,
    open: LruCache<String, OpenFile>,
}

struct OpenFile {
    writer: BufWriter<File>,
    /// Where the next octet goes.
    position: u64,
}

impl Files {
    /// Makes the folder if it is not there.
    pub(super) fn new(folder: &Path, may_overwrite: bool, inputs: &[PathBuf]) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(|error| Failure::writing(folder.display(), &error))?;
        // As they are known to the system, to be told from what may be overwritten.
        let inputs = inputs.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
        Ok(Self { folder: folder.to_owned(), may_overwrite, inputs, open: LruCache::new(OPEN_COUNT_MAX) })
    }

    /// A new file in the folder: an empty one, that was not there before.
    pub(super) fn create(&self, name: &str) -> Result<File, Failure> {
        let path = self.folder.join(name);
        let real = fs::canonicalize(&path);
        if self.may_overwrite && real.is_ok_and(|real| self.inputs.contains(&real)) {
            return Err(Failure::Other(format!(
                "{}: is an input, and cannot be an output too",
                path.display()
            )));
        }
        let created = || {
            if self.may_overwrite {
                // Not the file that a link leads to, which may be anywhere.
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            OpenOptions::new().write(true).create_new(true).open(&path)
        };
        created().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                Failure::Other(format!("{}: exists; --force overwrites it", path.display()))
            }
            _ => self.failure(name, &error),
        })
    }

    fn failure(&self, name: &str, error: &io::Error) -> Failure {
        Failure::writing(self.folder.join(name).display(), error)
    }

    /// Writes octets at a position, which makes the file if it is the first time.
    pub(super) fn write(
        &mut self,
        name: &str,
        is_first: bool,
        position: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        self.try_open(name, is_first)?;
        let Some(open) = self.open.get_mut(name) else { return Ok(()) };
        let write = |open: &mut OpenFile| {
            if open.position != position {
                open.writer.seek(SeekFrom::Start(position))?;
            }
            open.writer.write_all(bytes)?;
            open.position = position + bytes.len() as u64;
            Ok(())
        };
        write(open).map_err(|error| self.failure(name, &error))
    }

    /// Ends a file, which is as long as `len` says.
    pub(super) fn close(&mut self, name: &str, len: u64) -> Result<(), Failure> {
        self.try_open(name, false)?;
        let Some(open) = self.open.pop(name) else { return Ok(()) };
        let file = flush(open.writer).and_then(|file| file.set_len(len));
        file.map_err(|error| self.failure(name, &error))
    }

    fn try_open(&mut self, name: &str, is_first: bool) -> Result<(), Failure> {
        if self.open.contains(name) {
            return Ok(());
        }
        let file = if is_first {
            self.create(name)?
        } else {
            let path = self.folder.join(name);
            OpenOptions::new().write(true).open(path).map_err(|error| self.failure(name, &error))?
        };
        let open = OpenFile { writer: BufWriter::with_capacity(BUFFER_LEN, file), position: 0 };
        match self.open.push(name.to_owned(), open) {
            Some((name, evicted)) => {
                flush(evicted.writer).map(drop).map_err(|error| self.failure(&name, &error))
            }
            None => Ok(()),
        }
    }
}

/// What is held back is written, and errors are not lost.
fn flush(writer: BufWriter<File>) -> io::Result<File> {
    writer.into_inner().map_err(io::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three times as many files as can be open, in turn, with a hole in each.
    #[test]
    fn more_files_than_can_be_open() {
        let folder = std::env::temp_dir().join(format!("flowgauge-files-{}", std::process::id()));
        let mut files = Files::new(&folder, false, &[]).unwrap();
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
        assert!(matches!(files.create("7"), Err(Failure::Other(text)) if text.contains("--force")));
        fs::remove_dir_all(&folder).unwrap();
    }
}
