//! Inputs that are not files of the operating system.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// Inputs that are not files of the operating system, such as objects in object storage. A source opens them by their path,
/// which may be a URL, as it opens files: it reads an input again from its beginning, or from where it was closed.
///
/// ```
/// use std::io::{self, Cursor, Read};
/// use std::ops::Range;
/// use std::path::Path;
/// use std::sync::Arc;
/// use flowgauge::source::{FileSource, SourceConfig, Storage};
///
/// /// One capture in memory.
/// #[derive(Debug)]
/// struct InMemory(Vec<u8>);
///
/// impl Storage for InMemory {
///     fn find(&self, path: &Path) -> Option<u64> {
///         (path == Path::new("memory:web")).then_some(self.0.len() as u64)
///     }
///
///     fn open(&self, _: &Path, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
///         let octets = self.0.get(range.start as usize..range.end as usize).unwrap_or_default();
///         Ok(Box::new(Cursor::new(octets.to_vec())))
///     }
/// }
///
/// let capture = InMemory(std::fs::read("examples/data/web.pcap")?);
/// let config = SourceConfig::default().storage(Arc::new(capture) as Arc<dyn Storage>);
/// assert_eq!(flowgauge::records(FileSource::open_with("memory:web", config)?).count(), 27);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Storage: fmt::Debug + Send + Sync {
    /// Returns the length of an input in octets; `None` if the path is that of a file.
    fn find(&self, path: &Path) -> Option<u64>;

    /// Opens a range of octets of an input that [`find`](Self::find) has found. The reader ends at the end of the range, and
    /// early once the stop handle of the source is set.
    ///
    /// # Errors
    ///
    /// Returns an error if the input cannot be opened. The path need not be part of the message.
    fn open(&self, path: &Path, range: Range<u64>) -> io::Result<Box<dyn Read + Send>>;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::base::{FrameBatch, Limits};
    use crate::source::{Error, Files, Source, SourceConfig};

    /// Captures in memory, and the ranges of them that were opened.
    #[derive(Debug, Default)]
    struct Kept {
        captures: BTreeMap<PathBuf, Vec<u8>>,
        opened: Mutex<Vec<(PathBuf, Range<u64>)>>,
    }

    impl Storage for Kept {
        fn find(&self, path: &Path) -> Option<u64> {
            Some(self.captures.get(path)?.len() as u64)
        }

        fn open(&self, path: &Path, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
            if path == Path::new("kept:refused") {
                return Err(io::Error::other("refused by the store"));
            }
            let octets = self.captures[path][range.start as usize..range.end as usize].to_vec();
            self.opened.lock().unwrap().push((path.to_owned(), range));
            Ok(Box::new(io::Cursor::new(octets)))
        }
    }

    fn example(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data").join(name)
    }

    fn frames(mut source: impl Source) -> Vec<(u64, Vec<u8>)> {
        let (mut frames, mut batch) = (Vec::new(), FrameBatch::new());
        while !source.next_batch(&mut batch).unwrap().is_end() {
            frames.extend(batch.iter().map(|frame| (frame.timestamp.as_nanos(), frame.data.to_vec())));
        }
        assert!(source.warnings().is_empty());
        frames
    }

    #[test]
    fn captures_in_a_storage_are_merged_with_files_and_continued() {
        let names = ["dns.pcap", "mail.pcap", "ssh.pcap", "web.pcap"];
        let mut kept = Kept::default();
        for name in &names[1..] {
            kept.captures.insert(format!("kept:{name}").into(), std::fs::read(example(name)).unwrap());
        }
        let kept = Arc::new(kept);
        let mut limits = Limits::DEFAULT;
        // Captures are closed, and opened again where they were closed.
        (limits.open_file_count_max, limits.batch_len) = (1, 4096);
        let config = SourceConfig::from(limits).storage(kept.clone() as Arc<dyn Storage>);
        let paths = names.map(|name| match name {
            "dns.pcap" => example(name),
            name => format!("kept:{name}").into(),
        });
        // Frames overlap in time, because each capture is also a second one.
        let doubled = |paths: [PathBuf; 4]| [paths.clone(), paths].concat();
        let merged = Files::open_with(doubled(paths), config.clone()).unwrap();
        assert_eq!(merged.total_len(), Files::open(doubled(names.map(example))).unwrap().total_len());
        let expected = frames(Files::open(doubled(names.map(example))).unwrap());
        assert_eq!(frames(merged), expected);
        let opened = std::mem::take(&mut *kept.opened.lock().unwrap());
        assert!(opened.iter().any(|(_, range)| range.start > 0), "{opened:?}");

        let mut kept = Kept::default();
        kept.captures.insert("kept:refused".into(), vec![0; 100]);
        let config = SourceConfig::default().storage(Arc::new(kept) as Arc<dyn Storage>);
        let error = Files::open_with(["kept:refused"], config).unwrap_err();
        assert!(matches!(error, Error::Io { .. }));
        assert_eq!(error.to_string(), "kept:refused: refused by the store");
    }
}
