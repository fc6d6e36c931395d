//! Writers that fail at every octet, accept nothing, accept a part, or are interrupted.

use std::io::{self, Write};

use flowgauge::base::{Frame, LinkType, Timestamp};
use flowgauge::source::PcapngWriter;

/// Accepts a number of octets, at most `most` at once, and then does what `fault` says.
#[derive(Debug)]
struct Limited {
    taken: Vec<u8>,
    left_len: usize,
    most: usize,
    fault: io::ErrorKind,
    is_interrupted: bool,
}

impl Write for Limited {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.is_interrupted = !self.is_interrupted;
        if self.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.left_len == 0 && !octets.is_empty() {
            return if self.fault == io::ErrorKind::WriteZero { Ok(0) } else { Err(self.fault.into()) };
        }
        let len = octets.len().min(self.most).min(self.left_len);
        self.taken.extend_from_slice(&octets[..len]);
        self.left_len -= len;
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
        // Two interfaces, and two link types on one.
        let link_type = if number < 6 { LinkType::ETHERNET } else { LinkType::RAW };
        let timestamp = Timestamp::from_parts(number.into(), 0);
        let interface = number % 2;
        writer.write(&Frame { timestamp, link_type, data, wire_len: 60, interface }, &[])?;
    }
    writer.finish().map(drop)
}

/// Writes with a fault at every octet: the error is returned, and what was written is a prefix of the whole.
fn check(write: impl Fn(&mut Limited) -> io::Result<()>) {
    let limited =
        |left_len, most, fault| Limited { taken: Vec::new(), left_len, most, fault, is_interrupted: false };
    let mut out = limited(usize::MAX, usize::MAX, io::ErrorKind::Other);
    write(&mut out).expect("nothing fails");
    let whole = out.taken;
    assert!(whole.len() > 200);
    for most in [1, 7, usize::MAX] {
        for fault in [io::ErrorKind::StorageFull, io::ErrorKind::BrokenPipe, io::ErrorKind::WriteZero] {
            for position in 0..whole.len() {
                let mut out = limited(position, most, fault);
                let error = write(&mut out).expect_err("the writer failed");
                assert_eq!(error.kind(), fault, "at {position}");
                assert_eq!(out.taken, whole[..position], "at {position}");
            }
        }
        let mut out = limited(whole.len(), most, io::ErrorKind::Other);
        write(&mut out).expect("there was room for all of it");
        assert_eq!(out.taken, whole);
    }
}

#[test]
fn pcapng_returns_the_error_at_every_octet() {
    check(|out| write_capture(out));
}

/// With a buffer in front, the error may come as late as with the end, but it comes.
#[test]
fn pcapng_returns_the_error_through_a_buffer() {
    check(|out| write_capture(io::BufWriter::with_capacity(64, out)));
}

#[cfg(feature = "serde")]
#[test]
fn records_in_json_return_the_error_at_every_octet() {
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
