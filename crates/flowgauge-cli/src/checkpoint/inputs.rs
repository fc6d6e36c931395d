//! The files that were read, recognized by their content, so that a file of a rotation may be renamed.
//!
//! A file is the same one if it begins with the same octets, and its last frame that was processed is in its place.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use flowgauge::base::Frame;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::input::is_stdin;

/// Maximum number of files that are recognized. The file that was read first is forgotten.
const FILE_COUNT_MAX: usize = 65_536;

/// Number of octets of the beginning of a file by which it is recognized.
const HEAD_LEN_MAX: u64 = 64 << 10;

/// The files that were read, in the order in which they were.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Inputs {
    files: Vec<ReadFile>,
    /// Number of files of this run without new frames.
    #[serde(skip)]
    pub(super) skipped_count: u64,
}

/// A file that was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ReadFile {
    /// Number of octets of the beginning, and their hash.
    head_len: u64,
    head_hash: String,
    /// Number of frames that were processed, and the hash of the last one.
    pub(super) frame_count: u64,
    last_frame: String,
    /// Length of the file in octets if its end was reached.
    pub(super) len: Option<u64>,
}

impl ReadFile {
    /// Notes further frames.
    pub(super) fn add(&mut self, frame_count: usize, last: &Frame<'_>) {
        self.frame_count += frame_count as u64;
        self.last_frame = hash_frame(last);
    }

    /// Returns whether a frame is the last one that was processed.
    pub(super) fn ends_with(&self, frame: &Frame<'_>) -> bool {
        self.last_frame == hash_frame(frame)
    }

    /// Notes the end of the file, which had `len` octets, and more of its beginning.
    pub(super) fn end(&mut self, path: &Path, len: Option<u64>) {
        self.len = len;
        if self.head_len < HEAD_LEN_MAX
            && let Ok(Some(head)) = Head::read(path)
        {
            (self.head_len, self.head_hash) = (head.octets.len() as u64, hash(&head.octets));
        }
    }
}

impl Inputs {
    /// Returns the index of a file of which frames were read.
    pub(super) fn find(&self, path: &Path) -> Option<usize> {
        let head = Head::read(path).ok()??;
        let known =
            self.files.iter().enumerate().filter(|(_, file)| file.frame_count > 0 && head.is_of(file));
        // The one whose beginning is known best is the most likely one.
        known.max_by_key(|(_, file)| file.head_len).map(|(index, _)| index)
    }

    /// Adds a file; `None` for standard input and pipes, which are not recognized.
    pub(super) fn add(&mut self, path: &Path) -> Option<usize> {
        let head = Head::read(path).ok()??;
        if self.files.len() >= FILE_COUNT_MAX {
            self.files.remove(0);
        }
        let head_len = head.octets.len() as u64;
        self.files.push(ReadFile { head_len, head_hash: hash(&head.octets), ..ReadFile::default() });
        Some(self.files.len() - 1)
    }

    /// Returns the files of which frames were read, for a checkpoint.
    pub(super) fn saved(&self) -> Self {
        let mut saved = self.clone();
        saved.files.retain(|file| file.frame_count > 0);
        saved
    }

    pub(super) fn get(&self, index: usize) -> Option<&ReadFile> {
        self.files.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut ReadFile> {
        self.files.get_mut(index)
    }

    /// Returns the number of files, and of their frames.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.files.len() as u64, self.files.iter().map(|file| file.frame_count).sum())
    }
}

/// The beginning of a file.
struct Head {
    octets: Vec<u8>,
    /// Hashes by length.
    hashes: RefCell<BTreeMap<u64, String>>,
}

impl Head {
    /// Reads the beginning of a file; `None` if it is not a regular file.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        if is_stdin(path) || !std::fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let mut octets = Vec::new();
        File::open(path)?.take(HEAD_LEN_MAX).read_to_end(&mut octets)?;
        Ok(Some(Self { octets, hashes: RefCell::default() }))
    }

    /// Returns whether a file that was read begins with these octets, and may have grown since.
    fn is_of(&self, file: &ReadFile) -> bool {
        let Some(head) = self.octets.get(..file.head_len as usize) else { return false };
        let mut hashes = self.hashes.borrow_mut();
        *hashes.entry(file.head_len).or_insert_with(|| hash(head)) == file.head_hash
    }
}

fn hash_frame(frame: &Frame<'_>) -> String {
    let mut octets = frame.timestamp.as_nanos().to_be_bytes().to_vec();
    octets.extend(frame.wire_len.to_be_bytes());
    octets.extend(frame.data);
    hash(&octets)
}

/// Returns a hash of octets as text.
pub(super) fn hash(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().take(16).map(|octet| format!("{octet:02x}")).collect()
}
