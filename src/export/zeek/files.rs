//! Rows of `files.log`.

use std::time::Duration;

use super::http::mime_type;
use crate::row::{List, ListOf};
use crate::transaction::File;

/// A file in `files.log`, behind its [`FileHead`](super::FileHead).
#[derive(Clone, Debug)]
pub struct Files<'a> {
    source: &'static str,
    depth: u64,
    mime_type: Option<&'a str>,
    name: Option<&'a str>,
    duration: Duration,
    is_local: bool,
    is_orig: bool,
    seen: u64,
    total: Option<u64>,
    missing: u64,
    md5: Option<&'a str>,
    sha1: Option<&'a str>,
    sha256: Option<&'a str>,
}

/// What the row of a file needs from its flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) is_orig: bool,
    pub(super) is_local: bool,
}

impl<'a> Files<'a> {
    /// Returns the row of a file of a protocol.
    pub(super) fn of_file(file: &'a File, source: &'static str, sender: Sender, duration: Duration) -> Self {
        Self {
            source,
            depth: file.entity.into(),
            mime_type: file.detected_type.map(mime_type),
            name: file.name.as_deref(),
            duration,
            is_local: sender.is_local,
            is_orig: sender.is_orig,
            seen: file.decoded_len.unwrap_or(file.seen_len),
            total: file.declared_len,
            missing: file.missing_len,
            md5: file.md5.as_deref(),
            sha1: file.sha1.as_deref(),
            sha256: file.sha256.as_deref(),
        }
    }

    fn analyzers(&self) -> List<impl Iterator<Item = &'static str> + Clone + use<>> {
        let used =
            [("MD5", self.md5.is_some()), ("SHA1", self.sha1.is_some()), ("SHA256", self.sha256.is_some())];
        List(used.into_iter().filter(|(_, is_used)| *is_used).map(|(name, _)| name))
    }
}

crate::table! {
    /// Bodies of HTTP, parts of mails, and files in data connections of FTP and over SMB.
    impl['a] "zeek.files" for Files<'a> as row {
        /// `HTTP`, `SMTP`, `FTP_DATA` or `SMB`.
        "source": Option<&'static str> = Some(row.source);
        /// For a part of a mail, its number among all entities of the mail, from 1; otherwise 0.
        "depth": u64 = row.depth;
        /// Digests that were computed.
        "analyzers": ListOf<&'static str> [set] => row.analyzers();
        /// `detected_type` under Zeek's name.
        "mime_type": Option<&'a str> = row.mime_type;
        /// `name`.
        "filename": Option<&'a str> = row.name;
        /// From the first octets to the last.
        "duration": Duration = row.duration;
        /// True if the sender is in a local network.
        "local_orig": Option<bool> = Some(row.is_local);
        /// True if the sender is the initiator.
        "is_orig": Option<bool> = Some(row.is_orig);
        /// `decoded_len`, or else `seen_len`.
        "seen_bytes": u64 = row.seen;
        /// `declared_len`.
        "total_bytes": Option<u64> = row.total;
        /// `missing_len`.
        "missing_bytes": u64 = row.missing;
        /// Always 0: octets are delivered in order.
        "overflow_bytes": u64 = 0;
        /// Always false.
        "timedout": bool = false;
        /// Always unset.
        "parent_fuid": Option<&'static str> = None;
        /// `md5`, on request.
        "md5": Option<&'a str> = row.md5;
        /// `sha1`, on request.
        "sha1": Option<&'a str> = row.sha1;
        /// `sha256`, on request.
        "sha256": Option<&'a str> = row.sha256;
        /// Always unset: files are not written.
        "extracted": Option<&'static str> = None;
        /// Always unset.
        "extracted_cutoff": Option<bool> = None;
        /// Always unset.
        "extracted_size": Option<u64> = None;
    }
}
