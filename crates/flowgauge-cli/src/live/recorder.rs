//! Files to which the captured frames are written, with rotation.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use flowgauge::base::FrameBatch;
use flowgauge::source::{Interface, PcapngWriter};

use super::args::LiveArgs;
use crate::console::Failure;
use crate::output::Outputs;

/// Writes frames to a pcapng file, or to one file after another.
pub(super) struct Recorder {
    path: PathBuf,
    rotation: Rotation,
    outputs: Outputs,
    /// Names of the files so far, the current one last; at most one more than are kept.
    files: VecDeque<PathBuf>,
    file_count: u64,
    writer: PcapngWriter<Counted>,
    begun_at: Instant,
}

struct Rotation {
    size: Option<u64>,
    interval: Option<Duration>,
    kept_count: Option<usize>,
}

impl Rotation {
    const fn is_enabled(&self) -> bool {
        self.size.is_some() || self.interval.is_some()
    }
}

impl Recorder {
    /// Creates the first file, if the options request one.
    pub(super) fn open(args: &LiveArgs) -> Result<Option<Self>, Failure> {
        let Some(path) = args.records.written.frames() else { return Ok(None) };
        let rotation = Rotation {
            size: args.rotate_size,
            interval: args.rotate_interval,
            kept_count: args.keep.map(std::num::NonZero::get),
        };
        if rotation.kept_count.is_some() && !rotation.is_enabled() {
            return Err(Failure::Usage("--keep requires --rotate-size or --rotate-interval".to_owned()));
        }
        let outputs = Outputs::new(&[], args.records.output.export.force);
        let name = if rotation.is_enabled() { numbered(path, 1) } else { path.to_owned() };
        let writer = PcapngWriter::new(create(&name, &outputs)?)
            .map_err(|error| Failure::Other(format!("{}: {error}", name.display())))?;
        Ok(Some(Self {
            path: path.to_owned(),
            rotation,
            outputs,
            files: VecDeque::from([name]),
            file_count: 1,
            writer,
            begun_at: Instant::now(),
        }))
    }

    /// Returns the name of the current file.
    pub(super) fn current(&self) -> &Path {
        self.files.back().map_or(&self.path, PathBuf::as_path)
    }

    /// Writes the frames of a batch; an empty batch means that the input pauses, and flushes the file.
    pub(super) fn write(&mut self, batch: &FrameBatch, interfaces: &[Interface]) -> io::Result<()> {
        if batch.is_empty() {
            self.writer.get_mut().flush()?;
        }
        for frame in batch.iter() {
            if self.is_complete() {
                self.rotate()?;
            }
            self.writer.write(&frame, interfaces)?;
        }
        Ok(())
    }

    fn is_complete(&mut self) -> bool {
        let octet_count = self.writer.get_mut().octet_count;
        self.rotation.size.is_some_and(|size| octet_count >= size)
            || self.rotation.interval.is_some_and(|interval| self.begun_at.elapsed() >= interval)
    }

    fn rotate(&mut self) -> io::Result<()> {
        self.writer.get_mut().flush()?;
        self.file_count += 1;
        let name = numbered(&self.path, self.file_count);
        self.writer = PcapngWriter::new(create(&name, &self.outputs).map_err(refused)?)?;
        self.begun_at = Instant::now();
        self.files.push_back(name);
        let kept_count = self.rotation.kept_count.unwrap_or(usize::MAX);
        // Names are needed only to remove the files.
        if self.rotation.kept_count.is_none() {
            self.files.pop_front();
        }
        while self.files.len() > kept_count {
            if let Some(oldest) = self.files.pop_front() {
                match fs::remove_file(oldest) {
                    // The user removed or moved it.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    result => result?,
                }
            }
        }
        Ok(())
    }

    /// Writes what is still in the buffer.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let flushed = self.writer.get_mut().flush();
        flushed.map_err(|error| Failure::Other(format!("{}: {error}", self.current().display())))
    }
}

/// Returns the name of a file of a rotation: its number and the time (UTC) precede the extension.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let time = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let time: String = time.chars().filter(char::is_ascii_alphanumeric).collect();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension =
        path.extension().map_or_else(String::new, |extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}_{number:05}_{}{extension}", time.trim_end_matches('Z')))
}

fn create(path: &Path, outputs: &Outputs) -> Result<Counted, Failure> {
    let file = outputs.location(path)?.create_visible()?;
    Ok(Counted { file: BufWriter::with_capacity(1 << 18, file), octet_count: 0 })
}

/// Returns an error of the recording, for which there is no new file.
fn refused(failure: Failure) -> io::Error {
    match failure {
        Failure::ClosedPipe => io::ErrorKind::BrokenPipe.into(),
        Failure::Usage(text) | Failure::Other(text) => io::Error::other(text),
    }
}

/// A file and the number of octets that were written to it.
struct Counted {
    file: BufWriter<File>,
    octet_count: u64,
}

impl Write for Counted {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let len = self.file.write(octets)?;
        self.octet_count += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_and_the_time_precede_the_extension() {
        for (path, start, end) in [("a/day.pcapng", "a/day_00007_2", ".pcapng"), ("day", "day_00007_2", "")] {
            let name = numbered(Path::new(path), 7).to_string_lossy().into_owned();
            assert!(name.starts_with(start) && name.ends_with(end), "{name}");
            assert_eq!(name.len(), start.len() + end.len() + 14, "{name}");
        }
    }
}
