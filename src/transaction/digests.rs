//! First octets and digests of a file.

use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

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

    pub(super) fn add(&mut self, octets: &[u8]) {
        let wanted_len = SNIFFED_LEN.saturating_sub(self.first.len()).min(octets.len());
        self.first.extend_from_slice(octets.get(..wanted_len).unwrap_or_default());
        if let Some(hashes) = &mut self.hashes {
            hashes.md5.update(octets);
            hashes.sha1.update(octets);
            hashes.sha256.update(octets);
        }
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
