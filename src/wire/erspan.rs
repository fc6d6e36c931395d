//! ERSPAN types II and III (draft-foschiano-erspan-03 section 4).

use super::be16;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErspanHeader {
    /// Octets of the header.
    pub len: usize,
    /// The mirror session, ten bits.
    pub session_id: u16,
    /// An IP packet follows instead of an Ethernet frame.
    pub is_ip: bool,
}

/// Reads a header of type II; `None` if it is cut or of another version.
#[must_use]
pub fn type_2(data: &[u8]) -> Option<ErspanHeader> {
    let header = data.first_chunk::<8>()?;
    (header[0] >> 4 == 1).then_some(ErspanHeader {
        len: 8,
        session_id: be16(header, 2)? & 0x3ff,
        is_ip: false,
    })
}

/// Reads a header of type III and counts its platform-specific part; `None` if it is cut or of another version.
#[must_use]
pub fn type_3(data: &[u8]) -> Option<ErspanHeader> {
    let header = data.first_chunk::<12>()?;
    let len = if header[11] & 1 != 0 { 20 } else { 12 };
    let is_ip = header[10] >> 2 & 0x1f == 2;
    (header[0] >> 4 == 2).then_some(ErspanHeader { len, session_id: be16(header, 2)? & 0x3ff, is_ip })
}
