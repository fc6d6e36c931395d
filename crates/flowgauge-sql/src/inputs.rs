//! The captures of a table: paths and patterns.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use flowgauge::source;

/// A capture, and its length in octets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capture {
    /// Path of the file.
    pub path: PathBuf,
    /// Length in octets, by which work is distributed.
    pub len: u64,
}

impl Capture {
    /// Creates a capture.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, len: u64) -> Self {
        Self { path: path.into(), len }
    }
}

/// The captures that one thread reads, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Captures {
    pub(crate) files: Vec<Capture>,
    pub(crate) len: u64,
}

impl From<Vec<Capture>> for Captures {
    fn from(files: Vec<Capture>) -> Self {
        let len = files.iter().fold(0, |len: u64, capture| len.saturating_add(capture.len));
        Self { files, len }
    }
}

/// Returns the captures of paths and patterns, in their order, those of a pattern in the order of their names.
pub(crate) fn expand(patterns: &[String]) -> Result<Vec<Capture>> {
    let mut captures = Vec::new();
    for pattern in patterns {
        let failure = |problem: String| DataFusionError::Execution(format!("{pattern}: {problem}"));
        if pattern == "-" {
            let problem = "standard input can be read only once, but a query may read a table twice; write it to a file";
            return Err(failure(problem.to_owned()));
        }
        if let Some((scheme, _)) = pattern.split_once("://") {
            return Err(failure(format!("captures are read from files, not from {scheme}")));
        }
        // A file whose name contains characters of patterns is that file.
        let exists = fs::exists(pattern).unwrap_or(false);
        let is_pattern = !exists && pattern.contains(['*', '?', '[']);
        if !is_pattern {
            captures.push(capture(pattern.into())?);
            continue;
        }
        let before = captures.len();
        for path in glob::glob(pattern).map_err(|error| failure(error.to_string()))? {
            let path = path.map_err(|error| failure(error.to_string()))?;
            if !path.is_dir() {
                captures.push(capture(path)?);
            }
        }
        if captures.len() == before {
            let problem = io::Error::new(io::ErrorKind::NotFound, "no file has a name of this pattern");
            return Err(unreadable(Path::new(pattern), problem));
        }
    }
    Ok(captures)
}

fn capture(path: PathBuf) -> Result<Capture> {
    let metadata = fs::metadata(&path).map_err(|error| unreadable(&path, error))?;
    if metadata.is_dir() {
        let problem = "is a folder; a pattern such as FOLDER/*.pcap reads its captures";
        return Err(unreadable(&path, io::Error::new(io::ErrorKind::IsADirectory, problem)));
    }
    let len = metadata.len();
    Ok(Capture { path, len })
}

/// Returns the error of a file, with its path, as a scan has it.
fn unreadable(path: &Path, error: io::Error) -> DataFusionError {
    let (path, error) = (path.to_owned(), Arc::new(error));
    DataFusionError::External(Box::new(source::Error::Io { path, error }))
}

/// Distributes captures to at most `count` threads, so that each reads about as many octets.
pub(crate) fn distribute(mut captures: Vec<Capture>, count: usize) -> Vec<Captures> {
    let mut groups = vec![Captures::default(); count.clamp(1, captures.len().max(1))];
    // The longest first, each to the thread that has the least so far.
    captures.sort_by_key(|capture| std::cmp::Reverse(capture.len));
    for capture in captures {
        if let Some(group) = groups.iter_mut().min_by_key(|group| (group.len, group.files.len())) {
            group.len += capture.len;
            group.files.push(capture);
        }
    }
    for group in &mut groups {
        group.files.sort_by(|first, second| first.path.cmp(&second.path));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_distributed_and_no_capture_is_lost() {
        let captures: Vec<_> =
            (0..100).map(|len| Capture { path: format!("{len}").into(), len: len * len }).collect();
        let groups = distribute(captures.clone(), 4);
        assert_eq!(groups.len(), 4);
        let (least, most) =
            (groups.iter().map(|group| group.len).min(), groups.iter().map(|group| group.len).max());
        assert!(most.unwrap() - least.unwrap() < 10_000, "{least:?} {most:?}");
        let mut all: Vec<_> = groups.into_iter().flat_map(|group| group.files).collect();
        all.sort_by_key(|capture| capture.len);
        assert_eq!(all, captures);
        assert_eq!(distribute(captures[..2].to_vec(), 16).len(), 2);
        // Captures without octets are distributed too.
        let empty = vec![Capture { path: "a".into(), len: 0 }; 10];
        assert!(distribute(empty, 2).iter().all(|group| group.files.len() == 5));
    }
}
