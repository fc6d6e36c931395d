//! Events of type `fileinfo`.

use super::http::Exchange;
use super::smtp::{Envelope, Header, Smtp};
use crate::row::{Group, Name};
use crate::transaction::{self, File};

/// A file in an event, behind its [`Head`](super::Head).
#[derive(Clone, Copy, Debug)]
pub struct Fileinfo<'a> {
    content: Content<'a>,
    http: Option<Exchange<'a>>,
    mail: Option<Smtp<'a>>,
}

/// The object `fileinfo`.
#[derive(Clone, Copy, Debug)]
struct Content<'a> {
    file: &'a File,
    tx_id: Option<u64>,
    /// Target of the request.
    target: Option<&'a str>,
}

impl<'a> Fileinfo<'a> {
    /// Returns the event of a file, with the number of its transaction, and the exchange or mail to which it belongs.
    pub(super) fn new(file: &'a File, tx_id: Option<u64>, of: Option<&'a transaction::Content>) -> Self {
        let mut content = Content { file, tx_id, target: None };
        let (mut http, mut mail) = (None, None);
        match of {
            Some(transaction::Content::Http(exchange)) => {
                content.target = exchange.target.as_deref();
                http = Some(Exchange::new(exchange));
            }
            Some(transaction::Content::Mail(transaction)) => mail = Some(Smtp::new(transaction)),
            _ => {}
        }
        Self { content, http, mail }
    }
}

impl<'a> Content<'a> {
    fn filename(&self) -> Option<&'a str> {
        let path = || self.target?.split(['?', '#']).next();
        self.file.name.as_deref().or_else(path)
    }

    fn end(&self) -> Option<u64> {
        self.file.range_start?.checked_add(self.file.range_len?)?.checked_sub(1)
    }
}

crate::table! {
    /// Bodies of HTTP, parts of mails with a name, and files of FTP and SMB.
    impl['a] "eve.fileinfo" for Fileinfo<'a> as row {
        /// Request and response of a body, as in `http`.
        "http": Option<Group<Exchange<'a>>> = row.http.map(Group);
        /// Envelope of the mail of a part, as in `smtp`.
        "smtp": Option<Group<Envelope<'a>>> = row.mail.map(|mail| Group(mail.envelope()));
        /// Header of the mail, as in `smtp`.
        "email": Option<Group<Header<'a>>> [sparse] = row.mail.map(|mail| Group(mail.header()));
        /// The file.
        "fileinfo": Group<Content<'a>> = Group(row.content);
    }
}

crate::table! {
    /// A file.
    impl['a] "eve.fileinfo.fileinfo" for Content<'a> as row {
        /// `name`, or else the target of the request without its query.
        "filename": Option<&'a str> => row.filename();
        /// True if octets are missing.
        "gaps": bool = row.file.missing_len > 0;
        /// `CLOSED` if the file is complete, otherwise `TRUNCATED`.
        "state": Name = Name(if row.file.is_complete { "CLOSED" } else { "TRUNCATED" });
        /// `md5`, on request.
        "md5": Option<&'a str> => row.file.md5.as_deref();
        /// `sha1`, on request.
        "sha1": Option<&'a str> => row.file.sha1.as_deref();
        /// `sha256`, on request.
        "sha256": Option<&'a str> => row.file.sha256.as_deref();
        /// Always false: files are not written.
        "stored": bool = false;
        /// `decoded_len`, or else `seen_len`.
        "size": u64 = row.file.decoded_len.unwrap_or(row.file.seen_len);
        /// `range_start`.
        "start": Option<u64> = row.file.range_start;
        /// Position of the last octet of the range in the Content-Range field.
        "end": Option<u64> = row.end();
        /// As `tx_id` of the event.
        "tx_id": Option<u64> = row.tx_id;
    }
}
