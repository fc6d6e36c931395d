//! Generated traces for comparisons of whole programs: only short flows, or only long ones.

use std::io::{self, Write};

use flowgauge::base::FrameBatch;

use crate::cases::traffic::{long_flows, short_flows};
use crate::pcap;

/// Number of flows that are open at a time in a trace of short flows.
const SHORT_OPEN_COUNT: usize = 30_000;
/// Number of flows of each size that make up about a million packets.
const SHORT_FLOW_COUNT: usize = 160_000;
const LONG_FLOW_COUNT: usize = 1000;
/// Number of packets of a long flow.
const LONG_LEN: usize = 1000;

/// The flows of a generated trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 160,000 connections and requests of 4 to 10 packets, of which 30,000 are open at a time.
    Short,
    /// 1000 downloads of 1000 packets, all open at the same time.
    Long,
}

impl Kind {
    /// Writes about a million packets, of which 160 octets are captured. Returns the number of packets.
    ///
    /// # Errors
    ///
    /// If the writer fails.
    pub fn write(self, out: &mut impl Write) -> io::Result<usize> {
        let frames = match self {
            Self::Short => short_flows(SHORT_FLOW_COUNT, SHORT_OPEN_COUNT),
            Self::Long => long_flows(LONG_FLOW_COUNT, LONG_FLOW_COUNT, LONG_LEN),
        };
        write(&frames, out)?;
        Ok(frames.len())
    }
}

fn write(frames: &FrameBatch, out: &mut impl Write) -> io::Result<()> {
    pcap::write_header(out)?;
    frames
        .iter()
        .try_for_each(|frame| pcap::write_packet(out, frame.timestamp.as_nanos(), frame.wire_len, frame.data))
}

#[cfg(test)]
mod tests {
    use flowgauge::base::TcpCounters;
    use flowgauge::{FileSource, FlowRecord, records};

    use super::*;

    fn records_of(frames: &FrameBatch) -> Vec<FlowRecord> {
        let mut file = Vec::new();
        write(frames, &mut file).expect("writing to a vector succeeds");
        let source = FileSource::from_reader(io::Cursor::new(file)).expect("a capture");
        records(source).map(|record| record.expect("readable")).collect()
    }

    #[test]
    fn long_flows_are_complete_connections_without_gaps_and_retransmissions() {
        for len in [9, 10, 11, 100] {
            let records = records_of(&long_flows(20, 5, len));
            assert_eq!(records.len(), 20);
            for record in records {
                let result = (record.packet_count(), record.conn_state.to_string());
                assert_eq!(result, (len as u64, "SF".to_owned()), "{record}");
                assert_eq!([record.forward.tcp, record.reverse.tcp], [TcpCounters::default(); 2], "{record}");
            }
        }
    }

    #[test]
    fn short_flows_are_as_many_as_requested() {
        assert_eq!(records_of(&short_flows(400, 30)).len(), 400);
    }
}
