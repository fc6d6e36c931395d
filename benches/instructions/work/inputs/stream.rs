//! Captures that arrive over a TCP connection.

use std::io::Write as _;
use std::net::TcpStream;

use flowgauge::base::FrameBatch;
use flowgauge::source::{Source as _, StreamConfig, StreamSource};

use super::feed::INPUT_LEN;

/// A source with a connection, and what arrives on it.
pub(crate) struct Receiving {
    source: StreamSource,
    connection: TcpStream,
    octets: Vec<u8>,
    segment_len: usize,
    batch: FrameBatch,
}

pub(crate) fn receiving((make, segment_len): (fn() -> Vec<u8>, usize)) -> Receiving {
    let octets = make();
    assert_eq!(octets.len(), INPUT_LEN, "the input does not have INPUT_LEN octets");
    let mut source = StreamSource::listen("127.0.0.1:0", StreamConfig::default()).expect("a listener");
    let connection = TcpStream::connect(source.local_addr().expect("an address")).expect("a connection");
    connection.set_nodelay(true).expect("an option");
    let mut batch = FrameBatch::new();
    while source.connection_count() == 0 {
        let _ = source.next_batch(&mut batch).expect("a source");
    }
    Receiving { source, connection, octets, segment_len, batch }
}

impl Receiving {
    /// Each segment is read before the next one is sent, so that the number of reads is the same in each run.
    pub(crate) fn receive(mut self) -> Self {
        for segment in self.octets.chunks(self.segment_len) {
            self.connection.write_all(segment).expect("a connection");
            let _ = self.source.next_batch(&mut self.batch).expect("a source");
        }
        while self.source.progress() < INPUT_LEN as u64 {
            let _ = self.source.next_batch(&mut self.batch).expect("a source");
        }
        self
    }

    pub(crate) fn all_received(self) {
        let stats = self.source.stats();
        assert!(stats.frame_count > 0 && stats.failed_connection_count == 0, "{stats:?}");
    }
}
