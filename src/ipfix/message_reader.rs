//! Reader of the messages in a stream.

use std::io::{self, Read};

use super::{HEADER_LEN, VERSION};

/// Reader of IPFIX messages from a stream: a TCP connection, or a file (RFC 5655).
///
/// Keeps one message, at most 65,535 octets.
///
/// ```
/// use flowgauge::ipfix::MessageReader;
///
/// let message = [0, 10, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// let mut reader = MessageReader::new(&message[..]);
/// assert_eq!(reader.next()?, Some(&message[..]));
/// assert_eq!(reader.next()?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct MessageReader<R> {
    input: R,
    message: Vec<u8>,
    /// Number of octets of the current message that were read.
    filled_len: usize,
    /// Offset of the current message in the stream.
    offset: u64,
}

impl<R: Read> MessageReader<R> {
    /// Creates a reader at the start of a message.
    pub const fn new(input: R) -> Self {
        Self { input, message: Vec::new(), filled_len: 0, offset: 0 }
    }

    /// Returns the stream.
    pub(crate) const fn get_ref(&self) -> &R {
        &self.input
    }

    /// Reads the next message, including its header; `None` at the end of the stream. Linear in the length of the
    /// message; allocates only if it is longer than all messages before it.
    ///
    /// After an error of the kind [`WouldBlock`](io::ErrorKind::WouldBlock) or
    /// [`TimedOut`](io::ErrorKind::TimedOut), the next call continues with the same message.
    ///
    /// # Errors
    ///
    /// Returns an error of the stream, [`InvalidData`](io::ErrorKind::InvalidData) if the next octets are not the header
    /// of an IPFIX message, and [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the stream ends within a message.
    #[expect(clippy::should_implement_trait, reason = "the message is borrowed from the reader")]
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.filled_len == self.message.len() {
            self.offset += self.filled_len as u64;
            self.filled_len = 0;
            self.message.clear();
        }
        if !self.fill(HEADER_LEN)? {
            return Ok(None);
        }
        let header = self.message.first_chunk::<4>().copied().unwrap_or_default();
        let [version, len] = [[header[0], header[1]], [header[2], header[3]]].map(u16::from_be_bytes);
        if version != VERSION || usize::from(len) < HEADER_LEN {
            let problem = format!("no IPFIX message at offset {}", self.offset);
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        self.fill(len.into())?;
        Ok(Some(&self.message))
    }

    /// Reads until the message has `len` octets; `false` if the stream ends before the first one.
    fn fill(&mut self, len: usize) -> io::Result<bool> {
        if self.message.len() < len {
            self.message.resize(len, 0);
        }
        while let Some(rest) = self.message.get_mut(self.filled_len..len).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest) {
                Ok(0) if self.filled_len == 0 => return Ok(false),
                Ok(0) => {
                    let problem = format!("the stream ends within the message at offset {}", self.offset);
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, problem));
                }
                Ok(read_len) => self.filled_len += read_len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
