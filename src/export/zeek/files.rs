//! Rows of `files.log`.

use std::time::Duration;

use super::http::mime_type;
use crate::export::Uid;
use crate::row::{List, ListOf};
use crate::session::Role;
use crate::transaction::{File, X509};

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
    /// Returns the row of a body or of a part of a mail.
    pub(super) fn of_file(file: &'a File, sender: Sender, duration: Duration) -> Self {
        Self {
            source: if file.part.is_some() { "SMTP" } else { "HTTP" },
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

    /// Returns the row of a certificate.
    pub(super) fn of_certificate(x509: &'a X509, sender: Sender) -> Self {
        let mime_type =
            if x509.position == 0 { "application/x-x509-user-cert" } else { "application/x-x509-ca-cert" };
        Self {
            source: "SSL",
            depth: 0,
            mime_type: Some(mime_type),
            name: None,
            duration: Duration::ZERO,
            is_local: sender.is_local,
            is_orig: sender.is_orig,
            seen: x509.len,
            total: Some(x509.len),
            missing: 0,
            md5: None,
            sha1: Some(&x509.sha1),
            sha256: Some(&x509.sha256),
        }
    }

    fn analyzers(&self) -> List<impl Iterator<Item = &'static str> + Clone + use<>> {
        let used = [
            ("MD5", self.md5.is_some()),
            ("SHA1", self.sha1.is_some()),
            ("SHA256", self.sha256.is_some()),
            ("X509", self.source == "SSL"),
        ];
        List(used.into_iter().filter(|(_, is_used)| *is_used).map(|(name, _)| name))
    }
}

/// Returns the identifier of a certificate.
pub(super) fn certificate_fuid(uid: Uid, x509: &X509) -> Uid {
    let role = (x509.role == Role::Server) as u64;
    uid.of_file("SSL", u64::from(x509.position) << 1 | role)
}

crate::table! {
    /// Bodies of HTTP, parts of mails, and certificates.
    impl['a] "zeek.files" for Files<'a> as row {
        /// `HTTP`, `SMTP`, or `SSL` for certificates.
        "source": Option<&'static str> = Some(row.source);
        /// For a part of a mail, its number among all entities of the mail, from 1; otherwise 0.
        "depth": u64 = row.depth;
        /// Digests that were computed; `X509` for certificates.
        "analyzers": ListOf<&'static str> [set] => row.analyzers();
        /// `detected_type` under Zeek's name; for certificates `application/x-x509-user-cert` or `application/x-x509-ca-cert`.
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
        /// `sha1`, on request; always for certificates.
        "sha1": Option<&'a str> = row.sha1;
        /// `sha256`, on request; always for certificates.
        "sha256": Option<&'a str> = row.sha256;
        /// Always unset: files are not written.
        "extracted": Option<&'static str> = None;
        /// Always unset.
        "extracted_cutoff": Option<bool> = None;
        /// Always unset.
        "extracted_size": Option<u64> = None;
    }
}
