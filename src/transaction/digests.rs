//! First octets and digests of a file.

use md5::Md5;
use sha1::Sha1;
use sha2::digest::common::hazmat::{SerializableState, SerializedState};
use sha2::{Digest, Sha256};

use super::open::allocated;
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::protocols::tls::Hex;

/// Number of first octets by which [`detected_type`] recognizes the type of a file.
pub const SNIFFED_LEN: usize = 512;

/// First octets and digests of a file that has not ended.
#[derive(Debug)]
pub(super) struct Digests {
    first: Vec<u8>,
    hashes: Option<Box<Hashes>>,
}

#[derive(Debug, Default)]
struct Hashes {
    md5: Md5,
    sha1: Sha1,
    sha256: Sha256,
}

state! {
    struct Digests { first, hashes }
    if |digests| digests.first.len() <= SNIFFED_LEN
}

impl Saved for Hashes {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        writer.bytes(self.md5.serialize())?;
        writer.bytes(self.sha1.serialize())?;
        Ok(writer.bytes(self.sha256.serialize())?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(Self { md5: load_hash(reader)?, sha1: load_hash(reader)?, sha256: load_hash(reader)? })
    }
}

/// Reads the state of a hash: the words of the digest, the number of blocks as eight octets in little-endian order, and the
/// octets of an incomplete block.
fn load_hash<H: Digest + SerializableState>(reader: &mut Reader<'_>) -> Result<H, Invalid> {
    let mut state = SerializedState::<H>::default();
    let octets = reader.bytes(state.len())?;
    state.copy_from_slice(octets);
    let count_len = state.get(<H as Digest>::output_size() + 6..<H as Digest>::output_size() + 8);
    // The number of bits must have 64 bits.
    if count_len != Some(&[0, 0]) {
        return Err(Invalid::new("a hash of too many octets"));
    }
    H::deserialize(&state).map_err(|_| Invalid::new("an impossible state of a hash"))
}

/// The type of a file in a checkpoint.
pub(super) mod media_type {
    use std::sync::{Mutex, PoisonError};

    use crate::checkpoint::{Invalid, Saved as _, StateWriter};
    use crate::codec::Reader;

    /// Types that [`detected_type`](super::detected_type) adds to those of the crate `infer`.
    const TEXTS: [&str; 3] = ["text/html", "text/plain", "application/json"];

    /// Types that were read, each allocated once: not more than there are types.
    static READ: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

    pub(in super::super) fn save(
        kind: Option<&'static str>,
        writer: &mut StateWriter<'_>,
    ) -> Result<(), Invalid> {
        kind.map(Box::<str>::from).save(writer)
    }

    pub(in super::super) fn load(reader: &mut Reader<'_>) -> Result<Option<&'static str>, Invalid> {
        let Some(name) = Option::<Box<str>>::load(reader)? else { return Ok(None) };
        if let Some(known) = TEXTS.iter().find(|known| ***known == *name) {
            return Ok(Some(known));
        }
        if !infer::is_mime_supported(&name) {
            return Err(Invalid::new("an unknown type of a file"));
        }
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.iter().find(|known| ***known == *name) {
            return Ok(Some(known));
        }
        let kind: &'static str = Box::leak(name);
        read.push(kind);
        Ok(Some(kind))
    }
}

/// Type and digests of a file.
#[derive(Debug, Default)]
pub(super) struct Description {
    pub(super) detected_type: Option<&'static str>,
    pub(super) md5: Option<Box<str>>,
    pub(super) sha1: Option<Box<str>>,
    pub(super) sha256: Option<Box<str>>,
}

impl Digests {
    pub(super) fn new(has_hashes: bool) -> Self {
        Self { first: Vec::new(), hashes: has_hashes.then(Box::default) }
    }

    #[cfg(feature = "compression")]
    pub(super) const fn has_hashes(&self) -> bool {
        self.hashes.is_some()
    }

    pub(super) fn add(&mut self, octets: &[u8]) {
        let wanted_len = SNIFFED_LEN.saturating_sub(self.first.len()).min(octets.len());
        self.first.extend_from_slice(octets.get(..wanted_len).unwrap_or_default());
        if let Some(hashes) = &mut self.hashes {
            hashes.md5.update(octets);
            hashes.sha1.update(octets);
            hashes.sha256.update(octets);
        }
    }

    /// Returns the memory in bytes that was allocated.
    pub(super) fn heap_len(&self) -> usize {
        allocated(self.first.capacity()) + self.hashes.as_ref().map_or(0, |_| allocated(size_of::<Hashes>()))
    }

    /// Notes that octets are missing, so that there are no digests.
    pub(super) fn forget(&mut self) {
        self.hashes = None;
    }

    /// Returns the first octets.
    #[cfg(all(test, feature = "compression"))]
    pub(super) fn first(&self) -> &[u8] {
        &self.first
    }

    /// Returns the type of the file, and its digests if it is complete.
    pub(super) fn finish(self, is_complete: bool) -> Description {
        let Self { first, hashes } = self;
        let detected_type = detected_type(&first);
        let hex = |digest: &[u8]| Some(Hex(digest).to_string().into_boxed_str());
        let mut description = Description { detected_type, ..Description::default() };
        if let Some(hashes) = hashes.filter(|_| is_complete) {
            let Hashes { md5, sha1, sha256 } = *hashes;
            description.md5 = hex(&md5.finalize());
            description.sha1 = hex(&sha1.finalize());
            description.sha256 = hex(&sha256.finalize());
        }
        description
    }
}

/// Returns the type of a file by its first octets, such as `image/png`, of which [`SNIFFED_LEN`] suffice:
/// `application/json` and `text/plain` for other text, `None` if they are not those of a known type.
#[must_use]
pub fn detected_type(first: &[u8]) -> Option<&'static str> {
    let first = first.get(..SNIFFED_LEN).unwrap_or(first);
    match infer::get(first).map(|kind| kind.mime_type()) {
        Some("text/xml") if is_xhtml(first) => Some("text/html"),
        Some(kind) => Some(kind),
        None => text_type(first),
    }
}

/// Returns whether XML is a page: its document type or first element is that of HTML.
fn is_xhtml(octets: &[u8]) -> bool {
    let text = octets.to_ascii_lowercase();
    [&b"<!doctype html"[..], b"<html"].iter().any(|tag| text.windows(tag.len()).any(|part| part == *tag))
}

/// Returns the type of text: octets of UTF-8 without controls.
fn text_type(octets: &[u8]) -> Option<&'static str> {
    let is_control = |octet: &u8| octet.is_ascii_control() && !matches!(octet, b'\t' | b'\n' | b'\r' | 0x0c);
    // The last character may not be complete.
    let is_utf8 = std::str::from_utf8(octets).map_or_else(|error| error.error_len().is_none(), |_| true);
    if octets.is_empty() || !is_utf8 || octets.iter().any(is_control) {
        return None;
    }
    let first = octets.trim_ascii_start().first();
    Some(if matches!(first, Some(b'{' | b'[')) { "application/json" } else { "text/plain" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_continue_from_a_checkpoint() {
        let text = b"some text ".repeat(20);
        let mut whole = Digests::new(true);
        whole.add(&text);
        let whole = whole.finish(true);
        for len in 0..text.len() {
            let (first, second) = text.split_at(len);
            let mut digests = Digests::new(true);
            digests.add(first);
            let mut octets = Vec::new();
            digests.save(&mut StateWriter::growing(&mut octets)).expect("a vector");
            let mut digests = Digests::load(&mut Reader::new(&octets)).expect("digests");
            digests.add(second);
            let continued = digests.finish(true);
            assert_eq!((&continued.md5, &continued.sha1), (&whole.md5, &whole.sha1));
            assert_eq!((&continued.sha256, continued.detected_type), (&whole.sha256, whole.detected_type));
        }
    }

    #[test]
    fn the_number_of_blocks_of_a_hash_is_bounded() {
        let mut state = Sha256::default().serialize().to_vec();
        assert!(load_hash::<Sha256>(&mut Reader::new(&state)).is_ok());
        state[39] = 1;
        assert!(load_hash::<Sha256>(&mut Reader::new(&state)).is_err());
    }

    #[test]
    fn types_of_files_are_read_once() {
        let read = |kind: &str| {
            let mut octets = Vec::new();
            Some(Box::<str>::from(kind)).save(&mut StateWriter::growing(&mut octets)).expect("a vector");
            media_type::load(&mut Reader::new(&octets))
        };
        let (first, second) = (read("image/png").expect("a type"), read("image/png").expect("a type"));
        assert!(first == Some("image/png") && std::ptr::eq(first.expect("a type"), second.expect("a type")));
        assert_eq!(read("text/plain"), Ok(Some("text/plain")));
        assert!(read("image/unknown").is_err());
    }

    #[test]
    fn text_has_no_controls() {
        for (octets, kind) in [
            (&b"a=1&b=2"[..], Some("text/plain")),
            (b" {\"a\":1}", Some("application/json")),
            (b"\xc3\xa4\xc3", Some("text/plain")),
            (b"\xc3(", None),
            (b"a\0b", None),
            (b"", None),
        ] {
            assert_eq!(text_type(octets), kind, "{octets:?}");
        }
    }
}
