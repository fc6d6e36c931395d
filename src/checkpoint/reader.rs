//! Reader of checkpoints.

use std::io::{self, Read};

use super::block::{BLOCK_HEADER_LEN, BLOCK_LEN_MAX, HEADER_LEN, Kind, MAGIC, VERSION, checksum};
use super::error::{Error, Invalid};
use crate::codec;

/// Maximum length of all attachments together in octets.
const ATTACHED_LEN_MAX: usize = 256 << 20;

/// Reads a checkpoint block by block. Reads whole blocks, so that a buffered reader is not needed; memory grows with the
/// octets that are there, not with the lengths that they state.
#[derive(Debug)]
pub struct Reader<R> {
    inner: R,
    /// Number of octets that were read.
    offset: u64,
    /// Offset of the current block.
    block_offset: u64,
    kind: Kind,
    block: Vec<u8>,
    attachments: Vec<(String, Vec<u8>)>,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning of a checkpoint, and its attachments.
    ///
    /// # Errors
    ///
    /// [`Error::NoCheckpoint`], [`Error::NewerVersion`], and the errors of its first blocks.
    pub fn new(inner: R) -> Result<Self, Error> {
        let mut reader = Self {
            inner,
            offset: 0,
            block_offset: 0,
            kind: Kind::End,
            block: Vec::new(),
            attachments: Vec::new(),
        };
        let header = match reader.header::<HEADER_LEN>() {
            Err(Error::Truncated { .. }) => return Err(Error::NoCheckpoint),
            header => header?,
        };
        let mut fields = codec::Reader::new(&header);
        let (magic, version) = (fields.array().unwrap_or_default(), fields.be::<u16>().unwrap_or_default());
        if magic != MAGIC {
            return Err(Error::NoCheckpoint);
        }
        if version > VERSION {
            return Err(Error::NewerVersion(version));
        }
        if version == 0 || fields.rest() != [0, 0] {
            return Err(Error::Damaged { offset: 0 });
        }
        reader.advance()?;
        reader.read_attachments()?;
        Ok(reader)
    }

    /// Returns the octets that were [attached](super::Writer::attach) with a name.
    #[must_use]
    pub fn attachment(&self, name: &str) -> Option<&[u8]> {
        self.attachments.iter().find(|(own, _)| own == name).map(|(_, octets)| octets.as_slice())
    }

    /// Returns the number of octets that were read so far: after all flows were restored, the length of the checkpoint.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    fn read_attachments(&mut self) -> Result<(), Error> {
        let mut len = 0;
        while self.kind == Kind::Attachment {
            let mut fields = codec::Reader::new(&self.block);
            let name = fields.prefixed_str(codec::Prefix::U8).map_err(|error| self.invalid(error.into()))?;
            len += name.len() + fields.remaining_len();
            if len > ATTACHED_LEN_MAX {
                return Err(self.invalid(Invalid::new("attachments of more than 256 MiB")));
            }
            match self.attachments.last_mut() {
                Some((last, octets)) if *last == name => octets.extend_from_slice(fields.rest()),
                _ => self.attachments.push((name.to_owned(), fields.rest().to_vec())),
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Returns the kind and the content of the current block.
    pub(crate) fn current(&self) -> (Kind, &[u8]) {
        (self.kind, &self.block)
    }

    /// Returns an error about the content of the current block.
    pub(crate) const fn invalid(&self, invalid: Invalid) -> Error {
        Error::Invalid { offset: self.block_offset, invalid }
    }

    /// Reads the next block. At the end of the checkpoint, checks that nothing follows.
    pub(crate) fn advance(&mut self) -> Result<(), Error> {
        self.block_offset = self.offset;
        let header = self.header::<BLOCK_HEADER_LEN>()?;
        let mut fields = codec::Reader::new(&header);
        let damaged = Error::Damaged { offset: self.block_offset };
        let (Ok(kind), Ok(len), Ok(sum)) = (fields.be::<u8>(), fields.be::<u32>(), fields.be::<u32>()) else {
            return Err(damaged);
        };
        let len = len as usize;
        if len > BLOCK_LEN_MAX {
            return Err(damaged);
        }
        self.block.clear();
        let read_len = (&mut self.inner).take(len as u64).read_to_end(&mut self.block).map_err(Error::Io)?;
        self.offset += read_len as u64;
        if read_len < len {
            return Err(Error::Truncated { offset: self.offset });
        }
        if checksum(self.block_offset, kind, &self.block) != sum {
            return Err(damaged);
        }
        let Some(kind) = Kind::from_octet(kind) else {
            return Err(self.invalid(Invalid::new("a kind of block that is not known")));
        };
        self.kind = kind;
        let mut rest = [0_u8; 1];
        if kind == Kind::End && self.inner.read(&mut rest).map_err(Error::Io)? != 0 {
            return Err(self.invalid(Invalid::new("octets after the end")));
        }
        Ok(())
    }

    fn header<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut header = [0; N];
        let mut len = 0;
        while let Some(space) = header.get_mut(len..).filter(|space| !space.is_empty()) {
            match self.inner.read(space) {
                Ok(0) => return Err(Error::Truncated { offset: self.offset }),
                Ok(read_len) => len += read_len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::Io(error)),
            }
            self.offset = self.offset.max(self.block_offset + len as u64);
        }
        Ok(header)
    }
}
