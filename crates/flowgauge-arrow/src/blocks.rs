//! Random access to a Parquet file in a storage, in blocks.

use std::collections::VecDeque;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use flowgauge::source::{self, Storage};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Length of a block in octets. A page of a column is read twice, its header and its content, and the columns take turns.
const BLOCK_LEN: u64 = 256 << 10;

/// Number of blocks that are kept: 32 MiB, one or more for each column of a flow record.
const BLOCK_COUNT_MAX: usize = 128;

/// A file in a storage. Clones share their blocks.
#[derive(Clone, Debug)]
pub(crate) struct Blocks(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    len: u64,
    /// Indices and contents of blocks, the one used least recently first.
    recent: Mutex<VecDeque<(u64, Bytes)>>,
    /// The latest read that failed. Readers of Parquet report it as a text, in the same way as damage.
    failed: Mutex<Option<source::Error>>,
}

impl Blocks {
    /// Creates a reader of the file with this path and length.
    pub(crate) fn new(storage: Arc<dyn Storage>, path: PathBuf, len: u64) -> Self {
        Self(Arc::new(Shared { storage, path, len, recent: Mutex::default(), failed: Mutex::default() }))
    }

    /// Returns the latest read that failed.
    pub(crate) fn failure(&self) -> Option<source::Error> {
        self.0.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns a block, from memory if it was read before.
    fn block(&self, index: u64) -> io::Result<Bytes> {
        let Shared { storage, path, len, recent, failed } = &*self.0;
        let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.iter().position(|(known, _)| *known == index).and_then(|at| recent.remove(at));
        let block = match known {
            Some((_, block)) => block,
            None => {
                let range = index * BLOCK_LEN..((index + 1) * BLOCK_LEN).min(*len);
                let mut octets = vec![0; (range.end - range.start) as usize];
                let read = storage.open(path, range).and_then(|mut part| part.read_exact(&mut octets));
                read.map_err(|error| {
                    let error = source::Error::Io { path: path.clone(), error: error.into() };
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
                    io::Error::other(error)
                })?;
                octets.into()
            }
        };
        if recent.len() >= BLOCK_COUNT_MAX {
            recent.pop_front();
        }
        recent.push_back((index, block.clone()));
        Ok(block)
    }

    /// Returns the octets from an offset to the end of its block; none at the end of the file.
    fn rest(&self, at: u64) -> io::Result<Bytes> {
        if at >= self.0.len {
            return Ok(Bytes::new());
        }
        let block = self.block(at / BLOCK_LEN)?;
        Ok(block.slice((at % BLOCK_LEN) as usize..))
    }
}

impl Length for Blocks {
    fn len(&self) -> u64 {
        self.0.len
    }
}

impl ChunkReader for Blocks {
    type T = BlockReader;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BlockReader { blocks: self.clone(), range: start..self.0.len, rest: Cursor::default() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.0.len);
        let Some(end) = end else {
            let problem = format!("{length} octets at {start} are beyond the end of the file");
            return Err(ParquetError::EOF(problem));
        };
        let first = self.rest(start)?;
        if first.len() >= length {
            return Ok(first.slice(..length));
        }
        let mut octets = Vec::with_capacity(length);
        BlockReader { blocks: self.clone(), range: start..end, rest: Cursor::default() }
            .read_to_end(&mut octets)?;
        Ok(octets.into())
    }
}

/// Reads a range of a file.
#[derive(Debug)]
pub(crate) struct BlockReader {
    blocks: Blocks,
    /// What is not in `rest` yet.
    range: Range<u64>,
    /// The rest of a block.
    rest: Cursor<Bytes>,
}

impl Read for BlockReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = self.rest.read(buffer)?;
            if len > 0 || buffer.is_empty() || self.range.is_empty() {
                return Ok(len);
            }
            let mut rest = self.blocks.rest(self.range.start)?;
            let left = self.range.end - self.range.start;
            rest.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            self.range.start += rest.len() as u64;
            self.rest = Cursor::new(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use flowgauge::export::RecordWriter;
    use flowgauge::{FlowRecord, Timestamp};

    use super::*;
    use crate::{Options, ParquetRecords, ParquetWriter};

    /// Octets in memory, and the number of times that a range of them was opened.
    #[derive(Debug)]
    struct InMemory(Vec<u8>, AtomicUsize);

    impl Storage for InMemory {
        fn find(&self, _: &Path) -> Option<u64> {
            Some(self.0.len() as u64)
        }

        fn open(&self, _: &Path, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
            self.1.fetch_add(1, Relaxed);
            Ok(Box::new(Cursor::new(self.0[range.start as usize..range.end as usize].to_vec())))
        }
    }

    #[test]
    fn ranges_are_those_of_the_file_and_blocks_are_read_once() {
        let len = 3 * BLOCK_LEN + 17;
        let octets: Vec<u8> = (0..len).map(|at| (at * 31 % 251) as u8).collect();
        let storage = Arc::new(InMemory(octets.clone(), AtomicUsize::new(0)));
        let blocks = Blocks::new(storage.clone(), "x".into(), len);
        let ranges = [(0, 10), (len - 8, 8), (BLOCK_LEN - 3, 6), (5, len - 9), (len, 0), (0, len)];
        for (start, length) in ranges {
            let expected = &octets[start as usize..(start + length) as usize];
            assert_eq!(blocks.get_bytes(start, length as usize).unwrap(), expected);
            let mut read = vec![0; length as usize];
            blocks.get_read(start).unwrap().read_exact(&mut read).unwrap();
            assert_eq!(read, expected);
        }
        assert_eq!(storage.1.load(Relaxed), 4);
        assert!(blocks.get_bytes(len - 1, 2).is_err());
        assert!(blocks.get_bytes(u64::MAX, 2).is_err());
    }

    /// A file whose octets can be read up to the number of an opening.
    #[derive(Debug)]
    struct Failing(InMemory, usize);

    impl Storage for Failing {
        fn find(&self, path: &Path) -> Option<u64> {
            self.0.find(path)
        }

        fn open(&self, path: &Path, range: Range<u64>) -> io::Result<Box<dyn Read + Send>> {
            if self.0.1.load(Relaxed) == self.1 {
                return Err(io::Error::other("has changed"));
            }
            self.0.open(path, range)
        }
    }

    /// A failed read is no damage, which would be a warning.
    #[test]
    fn a_failed_read_of_records_is_an_error_of_the_source() {
        let source = flowgauge::FileSource::open("../../examples/data/web.pcap").unwrap();
        let mut record = flowgauge::records(source).next().unwrap().unwrap();
        let writer = ParquetWriter::new::<FlowRecord>(Vec::new(), Options::default()).unwrap();
        let mut writer = Box::new(writer);
        for number in 0..60_000_u64 {
            // Numbers that cannot be compressed, so that there are several blocks.
            let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            record.start = Timestamp::from_nanos(random >> 4);
            record.end = record.start;
            record.forward.counters.octet_count = random;
            RecordWriter::<FlowRecord>::write(&mut *writer, &record).unwrap();
        }
        let octets = writer.into_inner().unwrap();
        let len = octets.len() as u64;
        let read = |failing_at| {
            let storage = Arc::new(Failing(InMemory(octets.clone(), AtomicUsize::new(0)), failing_at));
            ParquetRecords::of_blocks(Blocks::new(storage, "day.parquet".into(), len))
        };
        assert_eq!(read(usize::MAX).unwrap().filter(Result::is_ok).count(), 60_000);
        let index = read(0).unwrap_err();
        let rows = read(2).unwrap().find_map(Result::err).unwrap();
        for error in [index, rows] {
            let text = error.to_string();
            assert!(text.contains("day.parquet") && text.contains("has changed"), "{text}");
            assert!(error.downcast::<source::Error>().is_ok(), "{text}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let len = (BLOCK_COUNT_MAX as u64 + 40) * BLOCK_LEN;
        let storage = Arc::new(InMemory(vec![7; len as usize], AtomicUsize::new(0)));
        let blocks = Blocks::new(storage, "x".into(), len);
        let mut octets = Vec::new();
        blocks.get_read(0).unwrap().read_to_end(&mut octets).unwrap();
        assert_eq!(octets.len() as u64, len);
        assert_eq!(blocks.0.recent.lock().unwrap().len(), BLOCK_COUNT_MAX);
    }
}
