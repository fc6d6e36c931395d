//! Paths and URLs of captures.

use std::io;
use std::path::Path;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use flowgauge::source;
use flowgauge_arrow::scan::ScanError;

/// Characters of patterns.
pub(crate) const WILDCARDS: [char; 3] = ['*', '?', '['];

/// What a path, URL or pattern refers to.
#[derive(Debug)]
pub(crate) enum Location<'t> {
    /// Files of the operating system.
    File(String),
    /// Objects in object storage.
    Object(ObjectUrl<'t>),
}

/// URL or pattern of objects, without credentials.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "object-store"), expect(dead_code, reason = "read only for stores"))]
pub(crate) struct ObjectUrl<'t> {
    text: &'t str,
    /// Such as `s3`, in lower case.
    pub(crate) scheme: &'t str,
    /// Bucket, or host with port.
    pub(crate) authority: &'t str,
    /// What follows the first slash behind the authority.
    pub(crate) key: &'t str,
}

impl<'t> Location<'t> {
    /// Returns what a text refers to.
    ///
    /// # Errors
    ///
    /// Returns an error for a URL with credentials, whose message does not contain them, and for an invalid one.
    pub(crate) fn of(text: &'t str) -> Result<Self> {
        let Some((scheme, rest)) = text.split_once("://") else { return Ok(Self::File(text.to_owned())) };
        let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
        if let Some((_, host)) = authority.rsplit_once('@') {
            return Err(DataFusionError::Execution(format!(
                "{scheme}://{host}/{key}: a URL must not contain credentials, because plans and messages contain it"
            )));
        }
        let url = ObjectUrl { text, scheme, authority, key };
        if scheme.is_empty() || scheme.contains(|letter: char| !is_of_scheme(letter)) {
            return Err(url.failure("the scheme of a URL has only lower-case letters, digits, +, - and ."));
        }
        if scheme != "file" {
            return if authority.is_empty() {
                Err(url.failure("a URL must contain a bucket or a host"))
            } else {
                Ok(Self::Object(url))
            };
        }
        if !matches!(authority, "" | "localhost") {
            return Err(url.failure("a file is on this machine: file:///PATH"));
        }
        match decoded(key) {
            Some(path) => Ok(Self::File(format!("/{path}"))),
            None => Err(url.failure("%, two hexadecimal digits each, must encode UTF-8")),
        }
    }
}

impl ObjectUrl<'_> {
    /// Returns an error about the URL.
    pub(crate) fn failure(&self, problem: impl std::fmt::Display) -> DataFusionError {
        DataFusionError::Execution(format!("{}: {problem}", self.text))
    }

    /// Returns the error of a request for the object, as a scan has it.
    #[cfg(feature = "object-store")]
    pub(crate) fn unreadable(&self, error: io::Error) -> DataFusionError {
        unreadable(Path::new(self.text), error)
    }

    /// Returns the URL as it was written.
    #[cfg(feature = "object-store")]
    pub(crate) const fn as_str(&self) -> &str {
        self.text
    }
}

/// Returns the error of a file or object, with its path, as a scan has it.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> DataFusionError {
    let (path, error) = (path.to_owned(), Arc::new(error));
    DataFusionError::External(Box::new(ScanError::from(source::Error::Io { path, error })))
}

fn is_of_scheme(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, '+' | '-' | '.')
}

/// Returns a text whose percent-encoded octets are decoded; `None` if they are not UTF-8, or a percent sign is followed by
/// other characters than two hexadecimal digits.
fn decoded(text: &str) -> Option<String> {
    let mut octets = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    octets.extend(parts.next()?.bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        octets.push(u8::from_str_radix(digits, 16).ok()?);
        octets.extend(rest.bytes());
    }
    String::from_utf8(octets).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        match Location::of(text) {
            Ok(Location::File(path)) => format!("file {path}"),
            Ok(Location::Object(url)) => format!("{} {} {}", url.scheme, url.authority, url.key),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn urls_are_files_or_objects() {
        assert_eq!(of("a/b.pcap"), "file a/b.pcap");
        assert_eq!(of("file:///a%20b/%C3%A9.pcap"), "file /a b/\u{e9}.pcap");
        assert_eq!(of("file://localhost/a"), "file /a");
        assert_eq!(of("s3://bucket/day/*.pcap"), "s3 bucket day/*.pcap");
        assert_eq!(of("http://[::1]:80/a%20b"), "http [::1]:80 a%20b");
        assert_eq!(of("s3://bucket"), "s3 bucket ");
        for url in ["file://host/a", "file:///%zz", "file:///%ff", "file:///%4", "s3:///a", "://a", "a b://c"]
        {
            let problem = of(url);
            assert!(problem.contains(&format!("{url}: ")), "{problem}");
        }
    }

    #[test]
    fn credentials_are_errors_that_do_not_contain_them() {
        for url in ["https://user:secret@host/a.pcap", "s3://secret@bucket/a", "http://a@secret@host"] {
            let problem = of(url);
            assert!(
                problem.contains("must not contain credentials") && !problem.contains("secret"),
                "{problem}"
            );
        }
    }
}
