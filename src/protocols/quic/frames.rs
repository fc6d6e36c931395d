//! Frames of QUIC Initial packets: RFC 9000 sections 12.4 and 19.

use super::packet::varint;
use crate::codec::Reader;

/// A frame of an Initial packet that is examined; all other permitted frames are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A CRYPTO frame: octets of the TLS handshake, and the offset of the first one in the handshake stream.
    Crypto { offset: u64, bytes: &'a [u8] },
    /// A CONNECTION_CLOSE frame.
    Close { error_code: u64, frame_type: u64, reason: &'a [u8] },
}

/// Iterator over the CRYPTO and CONNECTION_CLOSE frames of a decrypted packet. Ends at a frame that is not permitted in
/// Initial packets, or is truncated.
#[derive(Clone, Debug)]
pub(super) struct Frames<'a>(Reader<'a>);

impl<'a> Frames<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(Reader::new(bytes))
    }

    fn read(&mut self) -> Option<Frame<'a>> {
        let reader = &mut self.0;
        loop {
            reader.skip(padding_len(reader.rest())).ok()?;
            match varint(reader)? {
                // PING
                0x01 => {}
                kind @ (0x02 | 0x03) => skip_ack(reader, kind == 0x03)?,
                0x06 => {
                    let offset = varint(reader)?;
                    let len = usize::try_from(varint(reader)?).ok()?;
                    return Some(Frame::Crypto { offset, bytes: reader.bytes(len).ok()? });
                }
                // The second type is for applications and not permitted here, but some implementations send it.
                kind @ (0x1c | 0x1d) => {
                    let error_code = varint(reader)?;
                    let frame_type = if kind == 0x1c { varint(reader)? } else { 0 };
                    let len = usize::try_from(varint(reader)?).ok()?;
                    return Some(Frame::Close { error_code, frame_type, reason: reader.bytes(len).ok()? });
                }
                _ => return None,
            }
        }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let frame = self.read();
        if frame.is_none() {
            self.0 = Reader::new(&[]);
        }
        frame
    }
}

/// Returns the number of PADDING frames, of one octet each, at the start of `bytes`. They make up most of a client's
/// first packet, so they are compared 32 at a time.
fn padding_len(bytes: &[u8]) -> usize {
    let (pieces, _) = bytes.as_chunks::<32>();
    let len = 32 * pieces.iter().take_while(|piece| **piece == [0; 32]).count();
    let rest = bytes.get(len..).unwrap_or_default();
    len + rest.iter().take_while(|octet| **octet == 0).count()
}

fn skip_ack(reader: &mut Reader<'_>, has_ecn_counts: bool) -> Option<()> {
    let _largest = varint(reader)?;
    let _delay = varint(reader)?;
    let range_count = varint(reader)?;
    let _first_range = varint(reader)?;
    for _ in 0..range_count {
        let _gap = varint(reader)?;
        let _range = varint(reader)?;
    }
    for _ in 0..if has_ecn_counts { 3 } else { 0 } {
        varint(reader)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_without_relevant_content_are_skipped() {
        let bytes = [
            &[0, 0, 0, 1][..],
            &[0x02, 9, 0x40, 0x10, 2, 1, 0, 1, 0, 1],
            &[0x06, 0x40, 0x05, 3, b'a', b'b', b'c'],
            &[0x03, 9, 0, 0, 1, 5, 6, 7],
            &[0x1c, 0x41, 0x78, 0x06, 2, b'n', b'o', 0],
        ]
        .concat();
        let expected = [
            Frame::Crypto { offset: 5, bytes: b"abc" },
            Frame::Close { error_code: 0x178, frame_type: 6, reason: b"no" },
        ];
        assert_eq!(Frames::new(&bytes).collect::<Vec<_>>(), expected);
        for end in 0..bytes.len() {
            let frames: Vec<_> = Frames::new(&bytes[..end]).collect();
            assert!(expected.starts_with(&frames), "truncated to {end}: {frames:?}");
        }
    }

    #[test]
    fn padding_of_any_length_is_skipped() {
        for len in 0..100 {
            let bytes = [&vec![0; len][..], &[0x06, 7, 1, b'x'], &vec![0; len]].concat();
            let mut frames = Frames::new(&bytes);
            assert_eq!(frames.next(), Some(Frame::Crypto { offset: 7, bytes: b"x" }), "{len}");
            assert_eq!(frames.next(), None);
        }
    }

    #[test]
    fn frames_not_permitted_in_an_initial_end_the_packet() {
        // STREAM, then a CRYPTO frame that is not examined.
        assert_eq!(Frames::new(&[0x08, 0, 0x06, 0, 0]).next(), None);
        // An ACK with more ranges than remaining octets.
        let ack = [0x02, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0];
        assert_eq!(Frames::new(&ack).next(), None);
    }
}
