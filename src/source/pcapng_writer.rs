//! Writer of pcapng files (draft-ietf-opsawg-pcapng), for example for a slice of a capture.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{Interface, TimeResolution};
use crate::base::{Frame, LinkType};

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const OPT_END: u16 = 0;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;

/// Writer of a pcapng file that consists of one little-endian section with nanosecond timestamps.
///
/// An interface is described before the first frame that was captured on it; an interface with frames of two
/// link types is written as two interfaces. Each frame causes three small writes, so use a `BufWriter` for a
/// file. Allocates per interface, not per frame.
///
/// ```
/// use flowgauge::base::{Frame, Timestamp};
/// use flowgauge::source::PcapngWriter;
///
/// let mut writer = PcapngWriter::new(Vec::new())?;
/// writer.write(&Frame::ethernet(Timestamp::from_parts(1, 0), &[0; 60]), &[])?;
/// let file = writer.finish()?;
/// assert_eq!(file.len() % 4, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    out: W,
    numbers: HashMap<(u32, LinkType), u32>,
    last: Option<((u32, LinkType), u32)>,
}

impl<W: Write> PcapngWriter<W> {
    /// Creates a writer and writes the section header of the pcapng file to `out`.
    ///
    /// # Errors
    ///
    /// Returns the errors of `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut body = Vec::new();
        body.extend(BYTE_ORDER_MAGIC.to_le_bytes());
        body.extend([1_u16, 0].into_iter().flat_map(u16::to_le_bytes));
        // The length of the section is unknown.
        body.extend(u64::MAX.to_le_bytes());
        option(&mut body, SHB_USERAPPL, concat!("flowgauge ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(&mut body, OPT_END, &[]);
        write_block(&mut out, SECTION, &body)?;
        Ok(Self { out, numbers: HashMap::new(), last: None })
    }

    /// Writes a frame. `interfaces` are the interfaces of the frame's [`Source`](super::Source), from which
    /// the name, the description and the snap length are written; if the frame's interface is not in the
    /// slice, an interface without these fields is written.
    ///
    /// # Errors
    ///
    /// Returns the errors of `out`, and [`io::ErrorKind::InvalidInput`] for a frame that does not fit in a
    /// block (4 GiB).
    pub fn write(&mut self, frame: &Frame<'_>, interfaces: &[Interface]) -> io::Result<()> {
        let interface = self.number_of(frame, interfaces)?;
        let captured_len = frame.data.len();
        let pad_len = captured_len.next_multiple_of(4) - captured_len;
        let block_len = u32::try_from(captured_len + pad_len + 32).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "the frame is too long for a pcapng block")
        })?;
        let nanos = frame.timestamp.as_nanos();
        let mut header = [0; 28];
        let words = [
            ENHANCED_PACKET,
            block_len,
            interface,
            (nanos >> 32) as u32,
            nanos as u32,
            captured_len as u32,
            frame.wire_len,
        ];
        for (position, word) in header.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *position = word.to_le_bytes();
        }
        self.out.write_all(&header)?;
        self.out.write_all(frame.data)?;
        let [a, b, c, d] = block_len.to_le_bytes();
        let trailer = [0, 0, 0, a, b, c, d];
        self.out.write_all(trailer.get(3 - pad_len..).unwrap_or_default())
    }

    /// Returns the output, for example to flush it. Octets that are written to it directly damage the file.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Flushes the output of the writer and returns the output.
    ///
    /// # Errors
    ///
    /// Returns the errors of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Returns the index of a frame's interface in the written file. If the interface is new, writes its
    /// description first.
    fn number_of(&mut self, frame: &Frame<'_>, interfaces: &[Interface]) -> io::Result<u32> {
        let key = (frame.interface, frame.link_type);
        if let Some((last, number)) = self.last
            && last == key
        {
            return Ok(number);
        }
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => {
                let unknown = Interface::new(frame.link_type);
                let interface = interfaces.get(frame.interface as usize).unwrap_or(&unknown);
                self.describe(frame.link_type, interface)?;
                let number = self.numbers.len() as u32;
                self.numbers.insert(key, number);
                number
            }
        };
        self.last = Some((key, number));
        Ok(number)
    }

    fn describe(&mut self, link_type: LinkType, interface: &Interface) -> io::Result<()> {
        let mut body = Vec::new();
        body.extend(u32::from(link_type.0).to_le_bytes());
        body.extend(interface.snap_len.unwrap_or(0).to_le_bytes());
        for (code, text) in [(IF_NAME, &interface.name), (IF_DESCRIPTION, &interface.description)] {
            if let Some(text) = text {
                option(&mut body, code, text.as_bytes());
            }
        }
        option(&mut body, IF_TSRESOL, &[TimeResolution::NANOSECONDS.to_octet()]);
        option(&mut body, OPT_END, &[]);
        write_block(&mut self.out, INTERFACE, &body)
    }
}

/// Appends a pcapng option with its code, length, value and padding to `body`; a value that exceeds the
/// maximum length of an option is truncated.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Writes a pcapng block with the given type and body, which is already padded to a multiple of four octets.
fn write_block(out: &mut impl Write, block_type: u32, body: &[u8]) -> io::Result<()> {
    let len = (body.len() as u32 + 12).to_le_bytes();
    out.write_all(&block_type.to_le_bytes())?;
    out.write_all(&len)?;
    out.write_all(body)?;
    out.write_all(&len)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::base::{FrameBatch, Timestamp};
    use crate::source::{FileSource, Next, Source};

    #[test]
    fn a_written_file_reads_back_unchanged() {
        let interfaces = [
            Interface {
                name: Some("eth0".to_owned()),
                description: Some("uplink".to_owned()),
                snap_len: Some(96),
                ..Interface::new(LinkType::ETHERNET)
            },
            Interface::new(LinkType::RAW),
        ];
        let octets: Vec<u8> = (0..96).collect();
        let frame = |number: usize| Frame {
            timestamp: Timestamp::from_nanos(1_700_000_000_123_456_789 + number as u64),
            link_type: if number.is_multiple_of(2) { LinkType::ETHERNET } else { LinkType::RAW },
            data: &octets[..number],
            wire_len: 200,
            interface: number as u32 % 2,
        };
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        for number in 0..96 {
            writer.write(&frame(number), &interfaces).unwrap();
        }
        let file = writer.finish().unwrap();
        let mut source = FileSource::from_reader(Cursor::new(file)).unwrap();
        let (mut batch, mut number) = (FrameBatch::new(), 0);
        while source.next_batch(&mut batch).unwrap() == Next::Frames {
            for read in batch.iter() {
                let expected = frame(number);
                assert_eq!((read.timestamp, read.link_type), (expected.timestamp, expected.link_type));
                assert_eq!((read.data, read.wire_len), (expected.data, 200));
                assert_eq!(read.interface, expected.interface);
                number += 1;
            }
        }
        assert_eq!(number, 96);
        assert!(source.warnings().is_empty());
        let [eth0, raw] = source.interfaces() else { panic!("{:?}", source.interfaces()) };
        assert_eq!((&eth0.name, &eth0.description), (&interfaces[0].name, &interfaces[0].description));
        assert_eq!((eth0.snap_len, eth0.resolution), (Some(96), TimeResolution::NANOSECONDS));
        assert_eq!((raw.link_type, raw.name.as_ref()), (LinkType::RAW, None));
    }

    #[test]
    fn one_interface_with_two_link_types_becomes_two() {
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        for link_type in [LinkType::ETHERNET, LinkType::RAW, LinkType::ETHERNET] {
            let frame = Frame { link_type, interface: 9, ..Frame::ethernet(Timestamp::ZERO, &[1]) };
            writer.write(&frame, &[]).unwrap();
        }
        let mut source = FileSource::from_reader(Cursor::new(writer.finish().unwrap())).unwrap();
        let mut batch = FrameBatch::new();
        assert_eq!(source.next_batch(&mut batch).unwrap(), Next::Frames);
        let found: Vec<_> = batch.iter().map(|frame| (frame.interface, frame.link_type)).collect();
        assert_eq!(found, [(0, LinkType::ETHERNET), (1, LinkType::RAW), (0, LinkType::ETHERNET)]);
    }
}
