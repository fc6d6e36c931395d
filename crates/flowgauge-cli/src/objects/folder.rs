//! The output folder of objects, and its limits.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use flowgauge::transaction::coding::{Coding, Part};
use flowgauge::transaction::{Decoding, SNIFFED_LEN, detected_type};
use sha2::{Digest as _, Sha256};

use super::decode::decode;
use crate::console::Failure;
use crate::files::Files;
use crate::output::Outputs;

/// Memory in bytes of an entry in the set of open files, whose nodes are at least half full.
pub(super) const OPEN_LEN: usize = 32;

/// Number of octets that are copied or compared at once.
const BUFFER_LEN: usize = 16 << 10;

/// Limits of a folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) count_max: u64,
    pub(super) len_max: u64,
    pub(super) total_len_max: u64,
}

/// Content of a file that is not complete.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// Number of the file among all that were begun.
    number: u64,
    pub(super) len: u64,
    /// Octets that were omitted because of a limit.
    pub(super) omitted_len: u64,
    sha256: Sha256,
    first: Vec<u8>,
}

impl Content {
    fn new(number: u64) -> Self {
        Self { number, len: 0, omitted_len: 0, sha256: Sha256::new(), first: Vec::new() }
    }

    /// Returns the content of a file that was written before.
    pub(super) fn of(octets: &[u8]) -> Self {
        let mut content = Self::new(u64::MAX);
        content.add(octets);
        content
    }

    /// Returns the name of the file until it is complete.
    fn name(&self) -> String {
        format!("object-{}", self.number)
    }

    fn add(&mut self, octets: &[u8]) {
        self.len += octets.len() as u64;
        self.sha256.update(octets);
        let sniffed_len = SNIFFED_LEN.saturating_sub(self.first.len()).min(octets.len());
        if self.first.len() + sniffed_len > self.first.capacity() {
            let len = (self.first.len() + sniffed_len).max(2 * self.first.capacity()).min(SNIFFED_LEN);
            self.first.reserve_exact(len - self.first.len());
        }
        self.first.extend_from_slice(octets.get(..sniffed_len).unwrap_or_default());
    }

    /// Returns the memory in bytes that the content and its folder have allocated.
    pub(super) const fn heap_len(&self) -> usize {
        self.first.capacity() + OPEN_LEN
    }

    /// Returns the SHA-256 digest in hexadecimal digits.
    pub(super) fn sha256(&self) -> String {
        self.sha256.clone().finalize().iter().map(|octet| format!("{octet:02x}")).collect()
    }

    /// Returns the type by the first octets.
    pub(super) fn detected_type(&self) -> Option<&'static str> {
        detected_type(&self.first)
    }
}

/// The output folder of objects.
pub(super) struct Folder {
    files: Files,
    limits: Limits,
    /// Numbers of files that are not complete.
    open: BTreeSet<u64>,
    begun_count: u64,
    /// Number of files that are complete.
    pub(super) count: u64,
    /// Octets of all files.
    pub(super) len: u64,
    /// Number of objects that were omitted because of a limit.
    pub(super) omitted_count: u64,
    /// Number of objects with octets that were omitted because of a limit.
    pub(super) truncated_count: u64,
}

impl Folder {
    /// Creates the folder at `path` if it does not exist, for the objects of `inputs`.
    pub(super) fn new((path, inputs): (&Path, &[PathBuf]), limits: Limits) -> Result<Self, Failure> {
        Ok(Self {
            files: Files::new(path, Outputs::only_new(inputs))?,
            limits,
            open: BTreeSet::new(),
            begun_count: 0,
            count: 0,
            len: 0,
            omitted_count: 0,
            truncated_count: 0,
        })
    }

    /// Begins a file; `None` at a limit.
    pub(super) fn begin(&mut self) -> Option<Content> {
        let is_full = self.count + self.open.len() as u64 >= self.limits.count_max
            || self.len >= self.limits.total_len_max;
        if is_full {
            self.omitted_count += 1;
            return None;
        }
        Some(self.begin_another())
    }

    pub(super) fn begin_another(&mut self) -> Content {
        let number = self.begun_count;
        self.begun_count += 1;
        self.open.insert(number);
        Content::new(number)
    }

    /// Appends octets to a file, as far as the limits permit.
    pub(super) fn write(&mut self, content: &mut Content, octets: &[u8]) -> Result<(), Failure> {
        let Limits { len_max, total_len_max, .. } = self.limits;
        let free_len = len_max.saturating_sub(content.len).min(total_len_max.saturating_sub(self.len));
        // What follows omitted octets is omitted too.
        let kept_len = if content.omitted_len == 0 { free_len.min(octets.len() as u64) } else { 0 };
        let (kept, omitted) = octets.split_at_checked(kept_len as usize).unwrap_or((octets, b""));
        if !omitted.is_empty() {
            self.truncated_count += u64::from(content.omitted_len == 0);
            content.omitted_len += omitted.len() as u64;
        }
        if kept.is_empty() { Ok(()) } else { self.append(content, kept) }
    }

    fn append(&mut self, content: &mut Content, octets: &[u8]) -> Result<(), Failure> {
        self.files.write(&content.name(), content.len == 0, content.len, octets)?;
        content.add(octets);
        self.len += octets.len() as u64;
        Ok(())
    }

    /// Returns whether an object may become longer by `len` octets.
    pub(super) fn has_room(&self, object_len: u64, len: u64) -> bool {
        let Limits { len_max, total_len_max, .. } = self.limits;
        object_len.saturating_add(len) <= len_max && self.len.saturating_add(len) <= total_len_max
    }

    /// Opens a file that is not complete, to read it from a position.
    pub(super) fn read(&mut self, content: &Content, position: u64) -> Result<File, Failure> {
        let mut file = self.files.read(&content.name())?;
        file.seek(SeekFrom::Start(position))?;
        Ok(file)
    }

    /// Appends octets of one file to another.
    pub(super) fn append_from(
        &mut self,
        content: &mut Content,
        (from, position): (&Content, u64),
        len: u64,
    ) -> Result<(), Failure> {
        let mut file = self.read(from, position)?.take(len);
        let mut buffer = vec![0; BUFFER_LEN];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                len => self.append(content, buffer.get(..len).unwrap_or_default())?,
            }
        }
    }

    /// Joins files in this order; `None` if there are none.
    pub(super) fn join(
        &mut self,
        mut pieces: impl Iterator<Item = Content>,
    ) -> Result<Option<Content>, Failure> {
        let Some(mut joined) = pieces.next() else { return Ok(None) };
        for piece in pieces {
            self.append_from(&mut joined, (&piece, 0), piece.len)?;
            self.discard(&piece);
        }
        Ok(Some(joined))
    }

    /// Divides a file into parts of these positions and lengths; `None` stands for one that a limit omits. The file is
    /// removed.
    pub(super) fn divide(
        &mut self,
        whole: &Content,
        places: impl Iterator<Item = (u64, u64)>,
    ) -> Result<Vec<Option<Content>>, Failure> {
        // Its parts take its place within the limits.
        self.open.remove(&whole.number);
        self.len -= whole.len;
        let parts = places.map(|(position, len)| {
            let Some(mut part) = self.begin() else { return Ok(None) };
            self.append_from(&mut part, (whole, position), len)?;
            Ok(Some(part))
        });
        let parts = parts.collect();
        self.files.discard(&whole.name());
        parts
    }

    /// Returns whether two files have the same octets at these positions.
    pub(super) fn is_same(
        &mut self,
        (first, first_position): (&Content, u64),
        (second, second_position): (&Content, u64),
        len: u64,
    ) -> Result<bool, Failure> {
        let mut files = [self.read(first, first_position)?, self.read(second, second_position)?];
        let (mut buffers, mut left) = ([vec![0; BUFFER_LEN], vec![0; BUFFER_LEN]], len);
        while left > 0 {
            let len = left.min(BUFFER_LEN as u64) as usize;
            for (file, buffer) in files.iter_mut().zip(&mut buffers) {
                file.read_exact(buffer.get_mut(..len).unwrap_or_default())?;
            }
            let [first, second] = &buffers;
            if first.get(..len) != second.get(..len) {
                return Ok(false);
            }
            left -= len as u64;
        }
        Ok(true)
    }

    /// Decodes a file, and replaces it by the decoded one if that succeeds. The window of the decoder is limited. `pays` accepts
    /// the work of each part, in octets.
    pub(super) fn decode(
        &mut self,
        content: &mut Content,
        (coding, window_max): (Coding, u64),
        pays: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Decoding, Failure> {
        let mut file = self.files.read(&content.name())?;
        let mut decoded = self.begin_another();
        // The file as sent is removed.
        let free_len = self.limits.total_len_max.saturating_sub(self.len.saturating_sub(content.len));
        let mut left = self.limits.len_max.min(free_len);
        let mut permits = |part: &Part<'_>| {
            let len = if let Part::Octets(octets) = part { octets.len() as u64 } else { 0 };
            let is_permitted = len <= left && pays(part.cost(true));
            left = left.saturating_sub(len);
            is_permitted
        };
        let result = decode((coding, window_max), &mut file, &mut permits, &mut |octets| {
            self.append(&mut decoded, octets)
        });
        let result = match result {
            // An empty file has not been created.
            Ok(result) if result.is_decoded() && decoded.len == 0 => {
                self.append(&mut decoded, b"").map(|()| result)
            }
            result => result,
        };
        if result.as_ref().is_ok_and(|result| result.is_decoded()) {
            std::mem::swap(content, &mut decoded);
        }
        self.discard(&decoded);
        result
    }

    /// Completes a file, which gets its final name.
    pub(super) fn complete(&mut self, content: &Content, name: &str) -> Result<(), Failure> {
        self.open.remove(&content.number);
        self.files.close_as(&content.name(), name)?;
        self.count += 1;
        Ok(())
    }

    /// Writes another form of an object, which does not count as an object.
    pub(super) fn add(&mut self, name: &str, octets: &[u8]) -> Result<(), Failure> {
        self.files.write_whole(name, octets)
    }

    /// Removes a file that is not complete.
    pub(super) fn discard(&mut self, content: &Content) {
        if self.open.remove(&content.number) {
            self.files.discard(&content.name());
            self.len -= content.len;
        }
    }
}

/// Removes files that are not complete, after an error.
impl Drop for Folder {
    fn drop(&mut self) {
        for number in std::mem::take(&mut self.open) {
            self.files.discard(&Content::new(number).name());
        }
    }
}
