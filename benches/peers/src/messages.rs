//! Messages of IPFIX and NetFlow.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use flowgauge::FlowRecord;
use flowgauge::ipfix::{Exporter, ExporterConfig, Transport};

/// Transport of datagrams that keeps them.
#[derive(Clone, Debug, Default)]
struct Datagrams(Rc<RefCell<Vec<Vec<u8>>>>);

impl Transport for Datagrams {
    fn is_datagram(&self) -> bool {
        true
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().push(message.to_vec());
        Ok(())
    }
}

/// Returns the messages with which flowgauge exports records.
pub(crate) fn exported(records: &[FlowRecord], config: ExporterConfig) -> Vec<Vec<u8>> {
    let datagrams = Datagrams::default();
    let mut exporter = Exporter::new(config, datagrams.clone()).expect("a valid configuration");
    for record in records {
        exporter.export(record, record.end).expect("a transport without errors");
    }
    exporter.flush().expect("a transport without errors");
    datagrams.0.take()
}

/// Header of a message of NetFlow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetflowHeader {
    /// Number of records in the message; in version 9 including templates.
    pub(crate) record_count: u16,
    pub(crate) uptime_ms: u32,
    pub(crate) unix_seconds: u32,
    pub(crate) sequence_number: u32,
}

impl NetflowHeader {
    /// Returns a message of version 5 with records of 48 octets.
    pub(crate) fn netflow5(self, records: &[u8]) -> Vec<u8> {
        let unix_nanos = 500_000_000_u32.to_be_bytes();
        let (before, after) = self.octets(5);
        [&before[..], &unix_nanos, &after, &[0; 4], records].concat()
    }

    /// Returns a message of version 9 with sets, from the source with identifier 7.
    pub(crate) fn netflow9(self, sets: &[u8]) -> Vec<u8> {
        let (before, after) = self.octets(9);
        [&before[..], &after, &7_u32.to_be_bytes(), sets].concat()
    }

    /// Returns the octets up to the seconds, and the sequence number.
    fn octets(self, version: u16) -> (Vec<u8>, [u8; 4]) {
        let numbers = [version, self.record_count].map(u16::to_be_bytes);
        let times = [self.uptime_ms, self.unix_seconds].map(u32::to_be_bytes);
        let before = [numbers.concat(), times.concat()].concat();
        (before, self.sequence_number.to_be_bytes())
    }
}

/// Returns a set with its header.
pub(crate) fn set(id: u16, body: &[u8]) -> Vec<u8> {
    let len = 4 + body.len() as u16;
    [&id.to_be_bytes()[..], &len.to_be_bytes(), body].concat()
}
