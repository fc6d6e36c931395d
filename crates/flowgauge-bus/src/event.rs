//! Events: what a message contains.

use flowgauge::FlowRecord;
use flowgauge::export::{FixedRecord, Style, write_json};

use crate::message::Encoding;

/// An event that can be published: a flow record, or a line of text.
pub trait Event {
    /// Returns the encoding of the event if a publisher uses `preferred`.
    fn encoding(&self, preferred: Encoding) -> Encoding;

    /// Appends the event to the payload of a message, in the encoding that [`encoding`](Self::encoding) returned.
    fn encode(&self, encoding: Encoding, payload: &mut Vec<u8>);
}

impl Event for FlowRecord {
    #[inline]
    fn encoding(&self, preferred: Encoding) -> Encoding {
        preferred
    }

    #[inline]
    fn encode(&self, encoding: Encoding, payload: &mut Vec<u8>) {
        match encoding {
            Encoding::Records => FixedRecord::append(self, payload),
            Encoding::Ndjson => {
                write_json(payload, self, Style::default());
                payload.push(b'\n');
            }
        }
    }
}

/// A JSON object, for messages of application protocols and for anomalies. It is published as one line: line breaks,
/// which may occur between the tokens of JSON, become spaces.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a>(pub &'a [u8]);

impl Event for Line<'_> {
    fn encoding(&self, _: Encoding) -> Encoding {
        Encoding::Ndjson
    }

    fn encode(&self, _: Encoding, payload: &mut Vec<u8>) {
        payload.extend(self.0.iter().map(|octet| if *octet == b'\n' { b' ' } else { *octet }));
        payload.push(b'\n');
    }
}
