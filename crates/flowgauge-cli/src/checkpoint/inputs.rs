//! The files that were read, recognized by their first octets, so that a file of a rotation may be renamed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::input::is_stdin;

/// Maximum number of files that are recognized. The file that was read first is forgotten.
const FILE_COUNT_MAX: usize = 65_536;

/// Number of octets of the beginning of a file by which it is recognized.
const HEAD_LEN_MAX: u64 = 64 << 10;

/// The files that were read, in the order in which they were.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Inputs {
    files: Vec<ReadFile>,
}

/// A file that was read.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReadFile {
    /// Number of octets of the beginning, and their hash.
    head_len: u64,
    head_hash: String,
    /// Number of frames that were processed.
    pub(super) frame_count: u64,
    /// Length of the file in octets if its end was reached.
    pub(super) len: Option<u64>,
}

impl Inputs {
    /// Returns the index of a file, which is added if it is new; `None` for standard input and pipes, which are not
    /// recognized.
    pub(super) fn index_of(&mut self, path: &Path) -> Option<usize> {
        let head = Head::read(path).ok()??;
        let known = self.files.iter().position(|file| head.is_of(file));
        Some(known.unwrap_or_else(|| {
            if self.files.len() >= FILE_COUNT_MAX {
                self.files.remove(0);
            }
            let head_len = head.octets.len() as u64;
            self.files.push(ReadFile { head_len, head_hash: hash(&head.octets), frame_count: 0, len: None });
            self.files.len() - 1
        }))
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
    hashes: std::cell::RefCell<BTreeMap<u64, String>>,
}

impl Head {
    /// Reads the beginning of a file; `None` if it is not a regular file.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        if is_stdin(path) || !std::fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let mut octets = Vec::new();
        File::open(path)?.take(HEAD_LEN_MAX).read_to_end(&mut octets)?;
        Ok(Some(Self { octets, hashes: Default::default() }))
    }

    /// Returns whether a file that was read begins with these octets, and may have grown since.
    fn is_of(&self, file: &ReadFile) -> bool {
        let Some(head) = self.octets.get(..file.head_len as usize) else { return false };
        let mut hashes = self.hashes.borrow_mut();
        *hashes.entry(file.head_len).or_insert_with(|| hash(head)) == file.head_hash
    }
}

fn hash(octets: &[u8]) -> String {
    Sha256::digest(octets).iter().map(|octet| format!("{octet:02x}")).collect()
}
