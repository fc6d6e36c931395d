//! A folder with a file for each log.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use flowgauge::Timestamp;
use flowgauge::export::LogFiles;

use super::part::{Lines, Part, Rotation, Series};
use crate::console::Failure;
use crate::output::Outputs;

/// A folder with a file for each log.
pub(super) struct Folder {
    path: PathBuf,
    outputs: Arc<Outputs>,
    rotation: Option<Rotation>,
    /// Extension of the names of files.
    extension: &'static str,
    series: Vec<(&'static str, Series)>,
}

impl Folder {
    /// Creates the folder if it does not exist. Names of files have an extension.
    pub(super) fn new(
        path: PathBuf,
        outputs: Arc<Outputs>,
        (rotation, extension): (Option<Rotation>, &'static str),
    ) -> Result<Self, Failure> {
        std::fs::create_dir_all(&path).map_err(|error| Failure::writing(path.display(), &error))?;
        Ok(Self { path, outputs, rotation, extension, series: Vec::new() })
    }
}

/// Returns an error with the text of a failure, which names the file.
pub(super) fn error(failure: &Failure) -> io::Error {
    match failure {
        Failure::ClosedPipe => io::ErrorKind::BrokenPipe.into(),
        Failure::Usage(text) | Failure::Other(text) => io::Error::other(text.clone()),
    }
}

/// The file of a log.
pub(super) struct LogFile {
    part: Part,
    lines: Lines,
}

impl Write for LogFile {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.lines.write(lines).map_err(|cause| error(&self.part.failure(&cause)))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lines.flush().map_err(|cause| error(&self.part.failure(&cause)))
    }
}

impl LogFiles for Folder {
    type Out = LogFile;

    fn open(&mut self, log: &'static str, time: Timestamp) -> io::Result<LogFile> {
        let index = match self.series.iter().position(|(name, _)| *name == log) {
            Some(index) => index,
            None => {
                let path = self.path.join(format!("{log}.{}", self.extension));
                self.series.push((log, Series::new(path, Arc::clone(&self.outputs), self.rotation)));
                self.series.len() - 1
            }
        };
        let Some((_, series)) = self.series.get_mut(index) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let (part, lines) = series.create(time).map_err(|failure| error(&failure))?;
        Ok(LogFile { part, lines })
    }

    fn close(&mut self, _: &'static str, mut out: LogFile) -> io::Result<()> {
        let written = out.lines.flush().map_err(|cause| out.part.failure(&cause));
        out.part.complete(written).map_err(|failure| error(&failure))
    }

    fn is_over(&self, out: &LogFile, time: Timestamp) -> bool {
        out.part.is_over(time)
    }
}
