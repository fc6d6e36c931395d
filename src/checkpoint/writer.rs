//! Writer of checkpoints.

use std::io::{self, Write};

use super::block::{BLOCK_HEADER_LEN, BLOCK_LEN, BLOCK_LEN_MAX, HEADER_LEN, Kind, MAGIC, VERSION, checksum};
use crate::codec;

/// Writes a checkpoint: first the attachments of the caller, then one pipeline, then its end.
///
/// Writes whole blocks of some 256 KiB; a buffered writer is not needed. A checkpoint without its end is refused when it is
/// read, so that a file that replaces another one must be complete first: write it beside the old one, synchronize it
/// with the disk, and rename it.
#[derive(Debug)]
pub struct Writer<W> {
    inner: W,
    offset: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a checkpoint.
    ///
    /// # Errors
    ///
    /// The error of the inner writer.
    pub fn new(mut inner: W) -> io::Result<Self> {
        let mut header = [0; HEADER_LEN];
        let mut writer = codec::Writer::new(&mut header);
        writer.array(MAGIC).and_then(|()| writer.be(VERSION)).map_err(io::Error::other)?;
        inner.write_all(&header)?;
        Ok(Self { inner, offset: HEADER_LEN as u64 })
    }

    /// Attaches octets of the caller, which [`Reader::attachment`](super::Reader::attachment) returns by their name:
    /// a position in the input, counters, the state of a sink. Must be called before the pipeline is written.
    ///
    /// # Errors
    ///
    /// The error of the inner writer. A name of more than 255 octets is an error of the kind
    /// [`InvalidInput`](io::ErrorKind::InvalidInput).
    pub fn attach(&mut self, name: &str, octets: &[u8]) -> io::Result<()> {
        let mut block = Vec::with_capacity(octets.len().min(BLOCK_LEN) + 256);
        let parts = octets.chunks(BLOCK_LEN).chain(octets.is_empty().then_some(octets));
        for part in parts {
            block.clear();
            let mut writer = codec::Writer::growing(&mut block);
            writer
                .prefixed(codec::Prefix::U8, name)
                .and_then(|()| writer.bytes(part))
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            self.block(Kind::Attachment, &block)?;
        }
        Ok(())
    }

    /// Writes a block.
    pub(crate) fn block(&mut self, kind: Kind, octets: &[u8]) -> io::Result<()> {
        if octets.len() > BLOCK_LEN_MAX {
            let message = "the state of a flow exceeds 16 MiB, and cannot be in a checkpoint";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let mut header = [0; BLOCK_HEADER_LEN];
        let mut writer = codec::Writer::new(&mut header);
        writer
            .be(kind as u8)
            .and_then(|()| writer.be(octets.len() as u32))
            .and_then(|()| writer.be(checksum(self.offset, kind as u8, octets)))
            .map_err(io::Error::other)?;
        self.inner.write_all(&header)?;
        self.inner.write_all(octets)?;
        self.offset += (BLOCK_HEADER_LEN + octets.len()) as u64;
        Ok(())
    }

    /// Writes the end of the checkpoint, flushes the inner writer, and returns it.
    ///
    /// # Errors
    ///
    /// The error of the inner writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.block(Kind::End, &[])?;
        self.inner.flush()?;
        Ok(self.inner)
    }
}
