//! Messages: topic, header and payload.

use bytes::Bytes;
use flowgauge::codec::Reader;
use flowgauge::export::{FixedRecord, FixedRecordError};

use crate::error::BusError;

/// Encoding of the payload of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Encoding {
    /// [Fixed records](FixedRecord) of 64 octets, one after the other.
    Records,
    /// A JSON object per line.
    Ndjson,
}

impl Encoding {
    const fn number(self) -> u8 {
        match self {
            Self::Records => 1,
            Self::Ndjson => 2,
        }
    }
}

/// Header of a message, the second of its three frames: topic, header, payload.
///
/// Its 32 octets have this layout, with numbers in network order:
///
/// | octets | content |
/// |---|---|
/// | 0 | version, 1 |
/// | 1 | encoding of the payload: 1 fixed records, 2 ndjson |
/// | 2 | flags: 1 the publisher ends, and this is its last message |
/// | 3 | 0 |
/// | 4 to 7 | number of records in the payload |
/// | 8 to 15 | stream: publisher in the upper 32 bits, connection in the lower ones |
/// | 16 to 23 | sequence: number of records for this subscriber before this message, dropped ones included |
/// | 24 to 31 | position: number of records that were published on the topic before this message |
///
/// A message without records reports only its sequence, so that a subscriber also learns of records that were dropped
/// after the last message that it received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Encoding of the payload.
    pub encoding: Encoding,
    /// True if the publisher ends, and this is its last message.
    pub is_last: bool,
    /// Number of records in the payload.
    pub record_count: u32,
    /// Identifier of the connection, which is different after each restart of the publisher and each new connection.
    pub stream: u64,
    /// Number of records for this subscriber before this message, dropped ones included.
    pub sequence: u64,
    /// Number of records that were published on the topic before this message.
    pub position: u64,
}

impl Header {
    /// Length of an encoded header in octets.
    pub const LEN: usize = 32;

    const VERSION: u8 = 1;
    const IS_LAST: u8 = 1;

    /// Encodes the header.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::LEN] {
        let flags = if self.is_last { Self::IS_LAST } else { 0 };
        let mut out = [0; Self::LEN];
        let first = u64::from(u32::from_be_bytes([Self::VERSION, self.encoding.number(), flags, 0])) << 32
            | u64::from(self.record_count);
        let words = [first, self.stream, self.sequence, self.position];
        for (target, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *target = word.to_be_bytes();
        }
        out
    }

    /// Decodes a header.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Malformed`] for another length, version or encoding, and for a sequence or position that
    /// cannot be followed by the records of the message.
    pub fn decode(octets: &[u8]) -> Result<Self, BusError> {
        let mut reader = Reader::new(octets);
        let truncated = |_| BusError::Malformed("the header is truncated");
        let [version, encoding, flags, _] = reader.array().map_err(truncated)?;
        if version != Self::VERSION {
            return Err(BusError::Malformed("the version of the header is unknown"));
        }
        let encoding = match encoding {
            1 => Encoding::Records,
            2 => Encoding::Ndjson,
            _ => return Err(BusError::Malformed("the encoding of the payload is unknown")),
        };
        let header = Self {
            encoding,
            is_last: flags & Self::IS_LAST != 0,
            record_count: reader.be().map_err(truncated)?,
            stream: reader.be().map_err(truncated)?,
            sequence: reader.be().map_err(truncated)?,
            position: reader.be().map_err(truncated)?,
        };
        let Self { record_count, sequence, position, .. } = header;
        if sequence.max(position).checked_add(u64::from(record_count)).is_none() {
            return Err(BusError::Malformed("the sequence or position of the header is out of range"));
        }
        Ok(header)
    }
}

/// A message with its records.
///
/// A clone shares the payload.
#[derive(Clone, Debug)]
pub struct Batch {
    pub(crate) topic: Bytes,
    pub(crate) header: Header,
    pub(crate) payload: Bytes,
}

impl Batch {
    /// Maximum length of a received topic in octets. Topics of this library are shorter:
    /// [`Topic::LEN_MAX`](crate::Topic::LEN_MAX).
    pub const TOPIC_LEN_MAX: usize = 255;

    /// Decodes the three frames of a message.
    ///
    /// # Errors
    ///
    /// Returns [`BusError::Malformed`] for a header that cannot be decoded, for fixed records of another length or lines
    /// of another number than the header states, for text that is not UTF-8, and for a topic that is not UTF-8 or
    /// longer than [`Batch::TOPIC_LEN_MAX`].
    pub fn decode(topic: Bytes, header: &[u8], payload: Bytes) -> Result<Self, BusError> {
        let header = Header::decode(header)?;
        let record_count = header.record_count as usize;
        let is_complete = match header.encoding {
            Encoding::Records => payload.len() == record_count * FixedRecord::LEN,
            Encoding::Ndjson => {
                // Counted without branches, so that the loop uses vectors.
                let line_count: usize = payload.iter().map(|octet| usize::from(*octet == b'\n')).sum();
                line_count == record_count && payload.last().is_none_or(|octet| *octet == b'\n')
            }
        };
        if !is_complete {
            return Err(BusError::Malformed("the payload does not have the number of records of the header"));
        }
        if header.encoding == Encoding::Ndjson && std::str::from_utf8(&payload).is_err() {
            return Err(BusError::Malformed("the payload is not UTF-8"));
        }
        if topic.len() > Self::TOPIC_LEN_MAX {
            return Err(BusError::Malformed("the topic is longer than 255 octets"));
        }
        if std::str::from_utf8(&topic).is_err() {
            return Err(BusError::Malformed("the topic is not UTF-8"));
        }
        Ok(Self { topic, header, payload })
    }

    /// Returns the topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        std::str::from_utf8(&self.topic).unwrap_or_default()
    }

    /// Returns the header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the number of records.
    #[must_use]
    pub const fn record_count(&self) -> u32 {
        self.header.record_count
    }

    /// Returns the encoded records.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Iterates over the records without copying them; over none if the encoding is [`Encoding::Ndjson`].
    pub fn records(&self) -> impl Iterator<Item = Result<FixedRecord<'_>, FixedRecordError>> {
        FixedRecord::all(if self.header.encoding == Encoding::Records { &self.payload } else { &[] })
    }

    /// Iterates over the lines; over none if the encoding is [`Encoding::Records`].
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        let is_text = self.header.encoding == Encoding::Ndjson;
        std::str::from_utf8(if is_text { &self.payload } else { &[] }).unwrap_or_default().lines()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_decoded_as_it_was_encoded() {
        let header = Header {
            encoding: Encoding::Ndjson,
            is_last: true,
            record_count: 0x0102_0304,
            stream: u64::MAX - 1,
            sequence: 1 << 40,
            position: 7,
        };
        let octets = header.encode();
        assert_eq!(octets[..8], [1, 2, 1, 0, 1, 2, 3, 4]);
        assert_eq!(Header::decode(&octets).unwrap(), header);
        assert!(Header::decode(&octets[..31]).is_err());
        for (index, value) in [(0, 2), (1, 0), (1, 3)] {
            let mut other = octets;
            other[index] = value;
            assert!(Header::decode(&other).is_err());
        }
    }

    /// Decodes a message with two records.
    fn decode(encoding: Encoding, topic: &[u8], payload: &[u8]) -> Result<Batch, BusError> {
        let header =
            Header { encoding, is_last: false, record_count: 2, stream: 0, sequence: 0, position: 0 };
        Batch::decode(Bytes::copy_from_slice(topic), &header.encode(), Bytes::copy_from_slice(payload))
    }

    #[test]
    fn a_payload_with_another_number_of_records_is_malformed() {
        let records = |payload: &[u8]| decode(Encoding::Records, b"flow.end", payload);
        assert!(records(&[0; 127]).is_err() && records(&[0; 64]).is_err());
        assert_eq!(records(&[0; 128]).unwrap().records().count(), 2);
        let lines = |payload: &[u8]| decode(Encoding::Ndjson, b"flow.end", payload);
        assert!(lines(b"").is_err() && lines(b"{}\n").is_err() && lines(b"{}\n{}").is_err());
        assert!(lines(b"{}\n{}\n{}\n").is_err() && lines(b"{}\n{}\n{}").is_err());
        assert!(lines(b"{}\n\xff\n").is_err());
        assert_eq!(lines(b"{}\n{}\n").unwrap().lines().count(), 2);
    }

    #[test]
    fn a_topic_is_text_of_at_most_255_octets() {
        let topic = |topic: &[u8]| decode(Encoding::Records, topic, &[0; 128]);
        assert_eq!(topic(&[b'a'; 255]).unwrap().topic().len(), 255);
        assert!(topic(&[b'a'; 256]).is_err() && topic(b"\xff").is_err());
        assert!(topic(b"").is_ok());
    }

    #[test]
    fn numbers_that_overflow_are_malformed() {
        let header = |sequence, position| {
            let encoding = Encoding::Records;
            Header { encoding, is_last: false, record_count: 2, stream: u64::MAX, sequence, position }
        };
        for (sequence, position) in [(u64::MAX - 1, 0), (0, u64::MAX - 1)] {
            assert!(Header::decode(&header(sequence, position).encode()).is_err());
            assert!(
                Header::decode(&header(sequence.saturating_sub(1), position.saturating_sub(1)).encode())
                    .is_ok()
            );
        }
    }
}
