//! Writers that fail at every octet, accept nothing, accept a part, or are interrupted.

use std::io::{self, Write};

use flowgauge::base::{Frame, LinkType, Timestamp};
use flowgauge::source::PcapngWriter;

/// A writer that accepts a number of octets, at most `len_max` per call, and then fails with `fault`.
#[derive(Debug)]
struct Limited {
    written: Vec<u8>,
    remaining_len: usize,
    len_max: usize,
    fault: io::ErrorKind,
    is_interrupted: bool,
}

impl Write for Limited {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.remaining_len == 0 && !octets.is_empty() {
            return if self.fault == io::ErrorKind::WriteZero { Ok(0) } else { Err(self.fault.into()) };
        }
        let len = octets.len().min(self.len_max).min(self.remaining_len);
        self.written.extend_from_slice(&octets[..len]);
        self.remaining_len -= len;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_capture(out: impl Write) -> io::Result<()> {
    let mut writer = PcapngWriter::new(out)?;
    for number in 0..12_u32 {
        let data = &super::captures::frame(0, number);
        // Two interfaces, each with two link types.
        let link_type = if number < 6 { LinkType::ETHERNET } else { LinkType::RAW };
        let timestamp = Timestamp::from_parts(number.into(), 0);
        let interface = number % 2;
        writer.write(&Frame { timestamp, link_type, data, wire_len: 60, interface }, &[])?;
    }
    writer.finish().map(drop)
}

/// Writes with a fault at every octet: the error is returned, and the written octets are a prefix of the complete
/// output.
fn check(write: impl Fn(&mut Limited) -> io::Result<()>) {
    let limited = |remaining_len, len_max, fault| Limited {
        written: Vec::new(),
        remaining_len,
        len_max,
        fault,
        is_interrupted: false,
    };
    let mut out = limited(usize::MAX, usize::MAX, io::ErrorKind::Other);
    write(&mut out).expect("nothing fails");
    let complete = out.written;
    assert!(complete.len() > 200);
    for len_max in [1, 7, usize::MAX] {
        for fault in [io::ErrorKind::StorageFull, io::ErrorKind::BrokenPipe, io::ErrorKind::WriteZero] {
            for position in 0..complete.len() {
                let mut out = limited(position, len_max, fault);
                let error = write(&mut out).expect_err("the writer failed");
                assert_eq!(error.kind(), fault, "at {position}");
                assert_eq!(out.written, complete[..position], "at {position}");
            }
        }
        let mut out = limited(complete.len(), len_max, io::ErrorKind::Other);
        write(&mut out).expect("the writer accepts all octets");
        assert_eq!(out.written, complete);
    }
}

#[test]
fn pcapng_returns_an_error_at_every_octet() {
    check(|out| write_capture(out));
}

/// With a buffered writer, the error may be returned only at the end, but it is returned.
#[test]
fn pcapng_returns_an_error_of_a_buffered_writer() {
    check(|out| write_capture(io::BufWriter::with_capacity(64, out)));
}

#[cfg(feature = "serde")]
#[test]
fn json_records_return_an_error_at_every_octet() {
    use flowgauge::pipeline::{Pipeline, Records};
    use flowgauge::record::FlowRecord;
    let mut records: Vec<FlowRecord> = Vec::new();
    let sink = Records::new(|record| records.push(record));
    let mut pipeline = Pipeline::builder().build(sink).unwrap();
    let packet = super::packets::ethernet(&super::packets::udp(true, 10));
    pipeline.frame(&super::packets::frame(&packet, 0));
    pipeline.finish();
    drop(pipeline);
    assert_eq!(records.len(), 1);
    check(|out| serde_json::to_writer(out, &records[0]).map_err(io::Error::from));
}
