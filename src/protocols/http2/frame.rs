//! HTTP/2 frames (RFC 9113 section 4).

/// Connection preface: the first octets that an HTTP/2 client sends (RFC 9113 section 3.4).
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of the header of an HTTP/2 frame in octets.
pub(super) const HEADER_LEN: usize = 9;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH_PROMISE: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITIZED: u8 = 0x20;

/// The header of an HTTP/2 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) len: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Frame {
    /// Parses the frame header at the start of `bytes`; `None` if it is incomplete.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let [a, b, c, kind, flags, stream @ ..] = bytes.first_chunk::<HEADER_LEN>()?;
        let len = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        Some(Self { len, kind: *kind, flags: *flags, stream: u32::from_be_bytes(*stream) & 0x7FFF_FFFF })
    }

    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns whether type, length and stream identifier of the frame are consistent (RFC 9113 section 6).
    pub(super) const fn is_sound(&self) -> bool {
        let is_of_connection = self.stream == 0;
        match self.kind {
            DATA | HEADERS | CONTINUATION => !is_of_connection,
            PUSH_PROMISE => !is_of_connection && self.len >= 4,
            PRIORITY => !is_of_connection && self.len == 5,
            RST_STREAM => !is_of_connection && self.len == 4,
            SETTINGS => is_of_connection && self.len.is_multiple_of(6) && (!self.has(ACK) || self.len == 0),
            PING => is_of_connection && self.len == 8,
            GOAWAY => is_of_connection && self.len >= 8,
            WINDOW_UPDATE => self.len == 4,
            _ => true,
        }
    }

    pub(super) const fn is_padded(&self) -> bool {
        matches!(self.kind, DATA | HEADERS | PUSH_PROMISE) && self.has(PADDED)
    }

    /// Returns the part of the frame's complete payload that is neither padding nor priority; `None` if the padding
    /// length exceeds the payload.
    pub(super) fn content<'a>(&self, mut payload: &'a [u8]) -> Option<&'a [u8]> {
        if self.is_padded() {
            let (pad_len, rest) = payload.split_first()?;
            payload = rest.get(..rest.len().checked_sub(usize::from(*pad_len))?)?;
        }
        let priority_len = if self.kind == HEADERS && self.has(PRIORITIZED) { 5 } else { 0 };
        payload.get(priority_len..)
    }
}

/// Iterates over the settings in a SETTINGS payload as pairs of identifier and value.
pub(super) fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload.chunks_exact(6).filter_map(|setting| {
        let (id, value) = setting.split_first_chunk()?;
        Some((u16::from_be_bytes(*id), u32::from_be_bytes(*value.first_chunk()?)))
    })
}

/// Parses the number of four octets at the start of `bytes`; `None` if there are fewer.
pub(super) fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|octets| u32::from_be_bytes(*octets))
}
