//! Messages of a publisher, in a sequence: what is accepted agrees with its header, and the counters are those of a naive
//! model.

use std::collections::HashMap;

use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::Bytes;
use flowgauge_bus::{Encoding, Header, Tracking};

use crate::targets::input::{Octets, items, structured};

/// Length of a fixed record.
const RECORD_LEN: usize = 64;

#[derive(Arbitrary, Debug)]
struct Step<'a> {
    topic: Octets<'a>,
    /// Header as octets; otherwise one of the numbers below.
    header: Option<[u8; Header::LEN]>,
    is_text: bool,
    is_last: bool,
    record_count: u8,
    stream: u8,
    sequence: u64,
    position: u16,
    payload: Octets<'a>,
    /// The payload has as many records as the header states.
    is_complete: bool,
}

#[derive(Arbitrary, Debug)]
struct Input<'a>(#[arbitrary(with = steps)] Vec<Step<'a>>);

fn steps<'a>(u: &mut Unstructured<'a>) -> Result<Vec<Step<'a>>> {
    items(u, 100)
}

/// Counters of a publisher's messages as their documentation defines them, without limits.
#[derive(Default)]
struct Model {
    message_count: u128,
    record_count: u128,
    lost_count: u128,
    missed_count: u128,
    sequences: HashMap<u64, u128>,
    positions: HashMap<Vec<u8>, (u64, u128)>,
}

impl Model {
    fn message(&mut self, topic: &[u8], header: &Header) {
        let (count, sequence) = (u128::from(header.record_count), u128::from(header.sequence));
        self.message_count += u128::from(count > 0);
        self.record_count += count;
        let expected = self.sequences.insert(header.stream, sequence + count).unwrap_or(0);
        self.lost_count += sequence.saturating_sub(expected);
        if count == 0 {
            return;
        }
        let position = u128::from(header.position);
        let before = self.positions.insert(topic.to_vec(), (header.stream, position + count));
        if let Some((stream, next)) = before
            && stream != header.stream
            && stream >> 32 == header.stream >> 32
        {
            self.missed_count += position.saturating_sub(next).saturating_sub(sequence);
        }
    }
}

fn payload(step: &Step<'_>) -> Vec<u8> {
    if !step.is_complete {
        return step.payload.0.to_vec();
    }
    let count = usize::from(step.record_count);
    if step.is_text {
        let text = String::from_utf8_lossy(step.payload.0).replace('\n', " ");
        format!("{text}\n").repeat(count).into_bytes()
    } else {
        let mut octets = step.payload.0.to_vec();
        octets.resize(count * RECORD_LEN, 7);
        octets
    }
}

pub fn run(data: &[u8]) {
    let Some(Input(steps)) = structured::<Input<'_>>(data) else { return };
    let (mut tracking, mut model) = (Tracking::default(), Model::default());
    let mut malformed_count = 0;
    for step in &steps {
        let header = step.header.unwrap_or_else(|| {
            Header {
                encoding: if step.is_text { Encoding::Ndjson } else { Encoding::Records },
                is_last: step.is_last,
                record_count: step.record_count.into(),
                stream: u64::from(step.stream >> 4) << 32 | u64::from(step.stream & 0xf),
                sequence: step.sequence,
                position: step.position.into(),
            }
            .encode()
        });
        let octets = payload(step);
        let message =
            tracking.message(Bytes::copy_from_slice(step.topic.0), &header, Bytes::copy_from_slice(&octets));
        let Some(batch) = message else {
            malformed_count += 1;
            continue;
        };
        let decoded = Header::decode(&header).expect("accepted");
        assert_eq!(*batch.header(), decoded);
        assert!(batch.topic().len() <= 255 && batch.topic().as_bytes() == step.topic.0);
        let count = decoded.record_count as usize;
        match decoded.encoding {
            Encoding::Records => assert_eq!((batch.records().count(), batch.lines().count()), (count, 0)),
            Encoding::Ndjson => {
                assert_eq!((batch.records().count(), batch.payload().len()), (0, octets.len()));
                assert_eq!(octets.iter().filter(|octet| **octet == b'\n').count(), count);
            }
            _ => unreachable!("there are two encodings"),
        }
        model.message(step.topic.0, &decoded);
    }
    let stats = tracking.stats();
    let saturated = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
    assert_eq!(
        [
            stats.message_count,
            stats.record_count,
            stats.lost_count,
            stats.missed_count,
            stats.malformed_count
        ],
        [
            saturated(model.message_count),
            saturated(model.record_count),
            saturated(model.lost_count),
            saturated(model.missed_count),
            malformed_count
        ]
    );
    assert_eq!(stats.stream_count, model.sequences.len() as u64);
}
