//! Numbers and identifiers in the octet order of a PDU.

use super::rows::Uuid;
use crate::codec::{Number, ReadError, Reader};

/// Reads numbers in the order that the head states.
pub(super) struct Fields<'p> {
    pub(super) reader: Reader<'p>,
    pub(super) is_little: bool,
}

impl<'p> Fields<'p> {
    pub(super) fn number<N: Number>(&mut self) -> Result<N, ReadError> {
        if self.is_little { self.reader.le() } else { self.reader.be() }
    }

    /// Reads an identifier, of which the first three fields are numbers.
    pub(super) fn uuid(&mut self) -> Result<Uuid, ReadError> {
        let octets = self.reader.array()?;
        Ok(if self.is_little { Uuid::of_little(octets) } else { Uuid { octets } })
    }
}
