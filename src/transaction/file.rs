//! Bodies of HTTP, parts of mails, and files in data connections of FTP, over TFTP and over SMB.

#[cfg(feature = "compression")]
use super::coding::{Coding, Decoder};
use super::config::TransactionConfig;
use super::decoding::{Decoding, DecodingCredit};
use super::digests::{Description, Digests, media_type};
use super::mail::file_name;
use super::open::{Copier, HeapLen, Open, Pending, allocated};
use super::span::Span;
use super::transfer::Transfer;
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::protocols::http1::content_range::ContentRange;
use crate::session::{Lack, MessageMeta, Piece, PieceContent, Role, Text};

crate::message! {
    /// The body of a request or response of HTTP, a part of a mail that is no multipart, a file or listing in a data
    /// connection of FTP, or a file over TFTP or SMB. The octets of a body are as sent: a coding such as gzip is not decoded. Those of a part are decoded
    /// from base64 or quoted-printable. A mail that is not MIME is one part of type `text/plain`.
    #[derive(Clone, Debug, Default, PartialEq)]
    "transaction.file" pub struct File {
        /// Number of the transaction with the body, of the mail with the part, of the command of FTP in its control
        /// connection, or of the request of TFTP; 0 if the control connection or the request was not captured. Of SMB, the number of the file in its connection.
        pub number: u64,
        /// Number of the part in its mail, starting at 0.
        pub part: Option<u32>,
        /// Role of the sender.
        pub role: Option<Role>,
        /// Name of the file in the Content-Disposition field, without folders; of a part without one, the name in the
        /// Content-Type field; the last part of the path that the command of FTP or the request of TFTP or SMB names.
        pub name: Option<Box<str>>,
        /// Value of the Content-Type field; of a part without one, the default, `text/plain` or `message/rfc822`.
        pub content_type: Option<Box<str>>,
        /// Value of the Content-Encoding field.
        pub content_encoding: Option<Box<str>>,
        /// Type by the first octets, such as `image/png`; `application/json` and `text/plain` for other text; absent if they are
        /// not those of a known type.
        pub detected_type: Option<&'static str>,
        /// Octets that were captured; of a part, after decoding.
        pub seen_len: u64 [octets],
        /// Length of a body after decoding of gzip or deflate, on request. Type and digests are those of the decoded body
        /// then.
        pub decoded_len: Option<u64> [octets],
        /// Result of decoding, on request: `decoded`; `trailing` or `cut` if octets follow the end of the coded content, or its
        /// end is missing, and those before it were decoded; `incomplete`, `invalid`, `limit` or `unsupported` if it was not
        /// decoded.
        pub decoding: Option<Decoding>,
        /// Octets that are known to be missing; of a part, before decoding.
        pub missing_len: u64 [octets],
        /// Length of the body in the Content-Length field; of a file that was read over SMB, its length.
        pub declared_len: Option<u64> [octets],
        /// Position of the body in the complete file: the start of the range in the Content-Range field.
        pub range_start: Option<u64> [octets],
        /// Length of the complete file in the Content-Range field.
        pub complete_len: Option<u64> [octets],
        /// True if the file ended as its framing specifies, in a data connection of FTP with a FIN, over TFTP with its last block, over SMB when it is closed,
        /// and no octets are missing.
        pub is_complete: bool,
        /// MD5 digest of a complete file, on request.
        pub md5: Option<Box<str>>,
        /// SHA-1 digest of a complete file, on request.
        pub sha1: Option<Box<str>>,
        /// SHA-256 digest of a complete file, on request.
        pub sha256: Option<Box<str>>,
        ..
        /// Number of the part among all entities of the mail, multiparts included, from 1; 0 for a body.
        pub entity: u32,
        /// Length of the range in the Content-Range field.
        pub range_len: Option<u64>,
        /// The command of FTP that transferred the file.
        pub(crate) transfer: Option<Box<Transfer>>,
    }
}

state! { struct File {
    number, part, role, name, content_type, content_encoding, detected_type as media_type, seen_len, decoded_len,
    decoding, missing_len, declared_len, range_start, complete_len, is_complete, md5, sha1, sha256, entity, range_len,
    transfer,
} }

/// Name and type of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BodyKind {
    /// Name of the file.
    pub name: Option<Box<str>>,
    /// Type by the first octets.
    pub detected_type: Option<&'static str>,
    /// Length after decoding of the content coding, on request.
    pub decoded_len: Option<u64>,
}

state! { struct BodyKind { name, detected_type as media_type, decoded_len } }

impl File {
    fn describe(&mut self, digests: Digests) {
        let Description { detected_type, md5, sha1, sha256 } = digests.finish(self.is_complete);
        self.detected_type = detected_type;
        (self.md5, self.sha1, self.sha256) = (md5, sha1, sha256);
    }

    /// Returns the command of FTP that transferred the file, such as `RETR`, if its control connection was captured.
    #[must_use]
    pub fn ftp_command(&self) -> Option<&str> {
        self.transfer.as_ref().map(|transfer| &*transfer.command)
    }

    /// Returns the memory in bytes that was allocated.
    pub(super) fn heap_len(&self) -> usize {
        let Self { name, content_type, content_encoding, md5, sha1, sha256, transfer, .. } = self;
        let texts = [name, content_type, content_encoding, md5, sha1, sha256];
        let texts: usize = texts.into_iter().flatten().map(|text| allocated(text.len())).sum();
        texts + transfer.as_ref().map_or(0, |transfer| transfer.heap_len())
    }

    /// Returns name and type.
    pub(super) fn kind(&self) -> BodyKind {
        BodyKind { name: self.name.clone(), detected_type: self.detected_type, decoded_len: self.decoded_len }
    }
}

/// What a head states about the body behind it.
#[derive(Debug, Default)]
pub(super) struct BodyHead {
    pub(super) name: Option<Box<str>>,
    pub(super) content_type: Option<Box<str>>,
    pub(super) content_encoding: Option<Box<str>>,
    pub(super) declared_len: Option<u64>,
    pub(super) range: Option<Box<ContentRange>>,
}

state! { struct BodyHead { name, content_type, content_encoding, declared_len, range } }

/// A file that has not ended.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: File,
    digests: Digests,
    /// Decoder of the content coding, on request.
    #[cfg(feature = "compression")]
    decoder: Option<Box<Decoder>>,
}

/// A decoder is not saved: the file is described as it was sent.
impl Saved for OpenFile {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.file.save(writer)?;
        self.digests.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let (file, digests) = (Saved::load(reader)?, Saved::load(reader)?);
        Ok(Self {
            file,
            digests,
            #[cfg(feature = "compression")]
            decoder: None,
        })
    }
}

/// The bodies of a connection.
#[derive(Debug, Default)]
pub(super) struct FilesOpen {
    open: Open<OpenFile>,
    credit: DecodingCredit,
}

state! { struct FilesOpen { open, credit } }

/// Returns the number of a file of both directions: that among those of its sender, and the sender.
const fn number_of(file: u64, role: Role) -> u64 {
    file << 1 | role.index() as u64
}

impl HeapLen for OpenFile {
    fn heap_len(&self) -> usize {
        #[cfg(feature = "compression")]
        let decoder_len = self.decoder.as_ref().map_or(0, |_| Decoder::HEAP_LEN);
        #[cfg(not(feature = "compression"))]
        let decoder_len = 0;
        self.digests.heap_len() + decoder_len
    }
}

impl FilesOpen {
    pub(super) fn heap_len(&self) -> usize {
        self.open.heap_len()
    }

    /// Adds a piece of a file. `head` returns what its head states, and is called for the first piece. Returns whether the
    /// memory of the files, or of their heads, may have changed, which it does not for most octets of a long file.
    pub(super) fn add(
        &mut self,
        meta: &MessageMeta,
        (piece, config): (Piece<'_>, TransactionConfig),
        head: impl FnOnce() -> BodyHead,
        out: &mut dyn FnMut(Pending<File>),
    ) -> bool {
        match piece.content {
            PieceContent::Octets(octets) => {
                self.octets(meta, (piece.file, piece.offset, octets, config), head, out)
            }
            PieceContent::Gap(len) => {
                self.gap(meta, (piece.file, len), head, out);
                true
            }
            PieceContent::End { is_complete } => {
                self.end(meta, piece.file, is_complete, out);
                true
            }
        }
    }

    /// Adds octets of a file at an offset, as [`add`](Self::add) does.
    pub(super) fn octets(
        &mut self,
        meta: &MessageMeta,
        (file, offset, octets, config): (u64, u64, &[u8], TransactionConfig),
        head: impl FnOnce() -> BodyHead,
        out: &mut dyn FnMut(Pending<File>),
    ) -> bool {
        let is_new = self.open(meta, (file, config), head, out);
        let Self { open, credit } = self;
        let Some(pending) = open.get(number_of(file, meta.from)) else { return is_new };
        pending.span.extend(meta);
        if is_new && offset > 0 {
            // Its beginning was evicted.
            pending.add_missing(offset);
        }
        let before = pending.content.heap_len();
        pending.add_octets(octets);
        pending.content.decode(octets, (credit, meta.received_len));
        is_new || pending.content.heap_len() != before
    }

    /// Adds octets of a file that were not captured.
    pub(super) fn gap(
        &mut self,
        meta: &MessageMeta,
        (file, len): (u64, u64),
        head: impl FnOnce() -> BodyHead,
        out: &mut dyn FnMut(Pending<File>),
    ) {
        self.open(meta, (file, TransactionConfig::DEFAULT), head, out);
        let Some(pending) = self.open.get(number_of(file, meta.from)) else { return };
        pending.span.extend(meta);
        pending.add_missing(len);
    }

    /// Ends a file.
    pub(super) fn end(
        &mut self,
        meta: &MessageMeta,
        file: u64,
        is_complete: bool,
        out: &mut dyn FnMut(Pending<File>),
    ) {
        if let Some(mut pending) = self.open.take(number_of(file, meta.from)) {
            pending.span.extend(meta);
            out(ended(pending, is_complete));
        }
    }

    /// Opens a file unless it is open. Returns whether it was not.
    fn open(
        &mut self,
        meta: &MessageMeta,
        (file, config): (u64, TransactionConfig),
        head: impl FnOnce() -> BodyHead,
        out: &mut dyn FnMut(Pending<File>),
    ) -> bool {
        let number = number_of(file, meta.from);
        let is_new = self.open.get(number).is_none();
        if is_new {
            let BodyHead { name, content_type, content_encoding, declared_len, range } = head();
            let range = range.map(|range| *range).unwrap_or_default();
            let role = Some(meta.from);
            let mut copier = Copier::default();
            for text in [&name, &content_type, &content_encoding] {
                copier.count(text.as_deref());
            }
            let file = File {
                number: file,
                role,
                name,
                content_type,
                content_encoding,
                declared_len,
                range_start: range.start,
                complete_len: range.complete_len,
                range_len: range.len,
                ..File::default()
            };
            #[cfg_attr(not(feature = "compression"), allow(unused_mut, reason = "nothing is decoded"))]
            let mut open = OpenFile::new(file, config.has_hashes);
            #[cfg(feature = "compression")]
            if config.decodes {
                open.begin_decoding(config.has_hashes);
            }
            let pending = Pending::new(number, Span::of(meta), open, &copier);
            self.open.push(pending, &mut |evicted| out(ended(evicted, false)));
        }
        is_new
    }

    /// Ends a file with its last octets, if it is open: no more follow.
    pub(super) fn close(
        &mut self,
        (file, role): (u64, Role),
        is_complete: bool,
        out: &mut dyn FnMut(Pending<File>),
    ) {
        if let Some(pending) = self.open.take(number_of(file, role)) {
            out(ended(pending, is_complete));
        }
    }

    pub(super) fn finish(&mut self, out: &mut dyn FnMut(Pending<File>)) {
        self.open.take_all().into_iter().for_each(|pending| out(ended(pending, false)));
    }
}

impl OpenFile {
    pub(super) fn new(file: File, has_hashes: bool) -> Self {
        let digests = Digests::new(has_hashes);
        Self {
            file,
            digests,
            #[cfg(feature = "compression")]
            decoder: None,
        }
    }

    /// Decodes the content coding of the file as its octets arrive.
    #[cfg(feature = "compression")]
    fn begin_decoding(&mut self, has_hashes: bool) {
        let coding = self.file.content_encoding.as_deref().and_then(Coding::of_field);
        match coding.map(|coding| Decoder::new(coding, Digests::new(has_hashes))) {
            Some(Ok(decoder)) => self.decoder = Some(Box::new(decoder)),
            Some(Err(reason)) => self.file.decoding = Some(reason),
            None => {}
        }
    }

    /// Decodes octets of the file, for which the connection pays.
    #[cfg_attr(
        not(feature = "compression"),
        allow(unused_variables, clippy::unused_self, reason = "no codings")
    )]
    fn decode(&mut self, octets: &[u8], credit: (&mut DecodingCredit, u64)) {
        #[cfg(feature = "compression")]
        if let Some(decoder) = &mut self.decoder {
            decoder.add(octets, credit);
        }
    }
}

impl Pending<OpenFile> {
    /// Adds octets of a file.
    pub(super) fn add_octets(&mut self, octets: &[u8]) {
        let open = &mut self.content;
        open.file.seen_len = open.file.seen_len.saturating_add(octets.len() as u64);
        open.digests.add(octets);
    }

    /// Adds octets of a file that were not captured.
    pub(super) fn add_missing(&mut self, len: u64) {
        let missing_len = &mut self.content.file.missing_len;
        *missing_len = missing_len.saturating_add(len);
        self.content.digests.forget();
        #[cfg(feature = "compression")]
        if self.content.decoder.take().is_some() {
            self.content.file.decoding = Some(Decoding::Incomplete);
        }
        self.lack(Lack::Body);
    }
}

/// Returns a file that ended.
pub(super) fn ended(pending: Pending<OpenFile>, is_complete: bool) -> Pending<File> {
    let mut pending = pending;
    if !is_complete {
        pending.lack(Lack::End);
    }
    pending.map(|open| {
        let OpenFile { mut file, digests, .. } = open;
        file.is_complete = is_complete && file.missing_len == 0;
        #[cfg(feature = "compression")]
        if let Some(decoder) = open.decoder {
            let (result, content) = decoder.finish();
            file.decoding = Some(result);
            if let Some((len, digests)) = content {
                file.decoded_len = Some(len);
                file.describe(digests);
                return file;
            }
        }
        file.describe(digests);
        file
    })
}

/// Returns the name in a Content-Disposition field (RFC 6266), without folders: the parameter `filename*`, or else `filename`.
pub(super) fn name_of(field: Text<'_>, copier: &mut Copier) -> Option<Box<str>> {
    file_name(Some(field.0), None).map(|name| copier.text(Text(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_parameter_without_folders() {
        // From RFC 6266 section 5, and with folders.
        let name = |field: &'static str| name_of(Text(field.as_bytes()), &mut Copier::default());
        assert_eq!(name("Attachment; filename=example.html").as_deref(), Some("example.html"));
        assert_eq!(name("INLINE; FILENAME= \"an example.html\"").as_deref(), Some("an example.html"));
        assert_eq!(name("attachment; filename=\"../../etc/passwd\"; size=5").as_deref(), Some("passwd"));
        assert_eq!(name("attachment; filename=C:\\temp\\a.exe").as_deref(), Some("a.exe"));
        assert_eq!(
            name("attachment; filename=\"EURO rates\"; filename*=utf-8''%e2%82%ac%20rates").as_deref(),
            Some("\u{20ac} rates")
        );
        assert_eq!(name("attachment; filename=\"a; b.pdf\"").as_deref(), Some("a; b.pdf"));
        assert_eq!(name("attachment; x=\"; filename=a.exe; \"; filename=b.txt").as_deref(), Some("b.txt"));
        assert_eq!(name("filename=first.txt"), None);
    }

    /// A parser goes on with a file that was evicted: what follows is not the whole file.
    #[test]
    fn a_file_without_its_evicted_beginning_has_no_digest() {
        use crate::base::{Side, Timestamp};
        use crate::protocols::ftp_data::PROTOCOL;

        let (from, side, timestamp) = (Role::Server, Side::A, Timestamp::ZERO);
        let meta = MessageMeta { protocol: &PROTOCOL, from, side, timestamp, received_len: 0 };
        let config = TransactionConfig { has_hashes: true, ..TransactionConfig::DEFAULT };
        for offset in [0, 5] {
            let (mut files, mut ended) = (FilesOpen::default(), Vec::new());
            let mut add = |piece| {
                files.add(&meta, (piece, config), BodyHead::default, &mut |file| ended.push(file.content));
            };
            add(Piece::octets(1, offset, b"world"));
            add(Piece::end(1, offset + 5, true));
            let [file] = ended.as_slice() else { panic!("{ended:?}") };
            assert_eq!((file.seen_len, file.missing_len), (5, offset));
            assert_eq!((file.is_complete, file.sha256.is_some()), (offset == 0, offset == 0));
        }
    }
}
