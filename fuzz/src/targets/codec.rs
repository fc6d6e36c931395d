//! Reads of a random script agree with a naive reader, and a read that fails consumes nothing.

use arbitrary::Arbitrary;
use flowgauge::codec::{Prefix, ReadError, ReadProblem, Reader};

use super::input::{items, structured};

const SECTION_DEPTH_MAX: usize = 8;

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Length {
    U8,
    U16,
    U32,
    Ipfix,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Step {
    Be16,
    Be64,
    Le32,
    Bool,
    Bytes(u8),
    Text(u8),
    Padded(u8),
    Prefixed(Length),
    PrefixedText(Length),
    Section(Length),
    EndOfSection,
}

/// A script of reads, and the octets that they read.
struct Input<'a> {
    steps: Vec<Step>,
    octets: &'a [u8],
}

impl<'a> Arbitrary<'a> for Input<'a> {
    fn arbitrary(u: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let script_len = usize::from(u8::arbitrary(u)?).min(u.len());
        let mut script = arbitrary::Unstructured::new(u.bytes(script_len)?);
        Ok(Self { steps: items(&mut script, 128)?, octets: u.bytes(u.len())? })
    }
}

/// The octets of a reader that are left, and the offset of the first one.
struct Naive<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Naive<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let taken = self.rest.get(..len)?;
        self.rest = &self.rest[len..];
        self.offset += len;
        Some(taken)
    }

    fn number(&mut self, len: usize, is_be: bool) -> Option<u64> {
        let mut octets = self.take(len)?.to_vec();
        if !is_be {
            octets.reverse();
        }
        Some(octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet)))
    }

    /// Reads a length and that number of octets, or nothing.
    fn prefixed(&mut self, length: Length) -> Option<&'a [u8]> {
        let before = (self.rest, self.offset);
        let len = match length {
            Length::U8 => self.number(1, true),
            Length::U16 => self.number(2, true),
            Length::U32 => self.number(4, true),
            Length::Ipfix => match self.number(1, true) {
                Some(255) => self.number(2, true),
                len => len,
            },
        };
        let octets = len.and_then(|len| self.take(len as usize));
        if octets.is_none() {
            (self.rest, self.offset) = before;
        }
        octets
    }
}

const fn prefix(length: Length) -> Prefix {
    match length {
        Length::U8 => Prefix::U8,
        Length::U16 => Prefix::U16,
        Length::U32 => Prefix::U32,
        Length::Ipfix => Prefix::Ipfix,
    }
}

/// Compares the result of a read with that of the naive reader, which consumed octets even of an invalid text.
fn compare<T: PartialEq + std::fmt::Debug>(
    reader: &mut Reader<'_>,
    naive: &mut Naive<'_>,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, ReadError>,
    expected: impl FnOnce(&mut Naive<'_>) -> Option<Result<T, ReadProblem>>,
) {
    let before = (naive.rest, naive.offset);
    let expected = expected(naive).unwrap_or(Err(ReadProblem::Truncated));
    let found = read(reader);
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected),
        (Err(error), Err(problem)) => {
            (naive.rest, naive.offset) = before;
            assert_eq!(error.problem, problem);
            assert_eq!((error.offset, error.available), (naive.offset, naive.rest.len()));
            assert_eq!(error.required > error.available, problem == ReadProblem::Truncated);
        }
        (found, expected) => panic!("{found:?}, but expected {expected:?}"),
    }
    assert_eq!((reader.offset(), reader.rest()), (naive.offset, naive.rest));
    assert_eq!(reader.remaining_len(), naive.rest.len());
}

fn text(octets: &[u8]) -> Result<String, ReadProblem> {
    String::from_utf8(octets.to_vec()).map_err(|_| ReadProblem::InvalidUtf8)
}

pub fn run(data: &[u8]) {
    let Some(Input { steps, octets }) = structured(data) else { return };
    let mut readers = vec![(Reader::new(octets), Naive { rest: octets, offset: 0 })];
    for step in steps {
        let depth = readers.len();
        let Some((reader, naive)) = readers.last_mut() else { return };
        match step {
            Step::Be16 => compare(
                reader,
                naive,
                |reader| reader.be::<u16>().map(u64::from),
                |naive| naive.number(2, true).map(Ok),
            ),
            Step::Be64 => {
                compare(reader, naive, |reader| reader.be::<u64>(), |naive| naive.number(8, true).map(Ok))
            }
            Step::Le32 => compare(
                reader,
                naive,
                |reader| reader.le::<u32>().map(u64::from),
                |naive| naive.number(4, false).map(Ok),
            ),
            Step::Bool => compare(
                reader,
                naive,
                |reader| reader.bool(),
                |naive| {
                    naive.number(1, true).map(|value| match value {
                        0 | 1 => Ok(value == 1),
                        _ => Err(ReadProblem::InvalidBool),
                    })
                },
            ),
            Step::Bytes(len) => compare(
                reader,
                naive,
                |reader| reader.bytes(len.into()).map(<[u8]>::to_vec),
                |naive| naive.take(len.into()).map(|octets| Ok(octets.to_vec())),
            ),
            Step::Text(len) => compare(
                reader,
                naive,
                |reader| reader.str(len.into()).map(str::to_owned),
                |naive| naive.take(len.into()).map(text),
            ),
            Step::Padded(len) => compare(
                reader,
                naive,
                |reader| reader.padded_str(len.into()).map(str::to_owned),
                |naive| {
                    let octets = naive.take(len.into())?;
                    Some(text(octets).map(|text| text.trim_end_matches('\0').to_owned()))
                },
            ),
            Step::Prefixed(length) => compare(
                reader,
                naive,
                |reader| reader.prefixed(prefix(length)).map(<[u8]>::to_vec),
                |naive| naive.prefixed(length).map(|octets| Ok(octets.to_vec())),
            ),
            Step::PrefixedText(length) => compare(
                reader,
                naive,
                |reader| reader.prefixed_str(prefix(length)).map(str::to_owned),
                |naive| naive.prefixed(length).map(text),
            ),
            Step::Section(length) => {
                let mut ahead = *reader;
                let inner = ahead.section(prefix(length)).ok();
                compare(
                    reader,
                    naive,
                    |reader| reader.section(prefix(length)).map(|section| section.rest().to_vec()),
                    |naive| naive.prefixed(length).map(|octets| Ok(octets.to_vec())),
                );
                if let Some(section) = inner.filter(|_| depth < SECTION_DEPTH_MAX) {
                    let naive = Naive { rest: section.rest(), offset: naive.offset - section.rest().len() };
                    readers.push((section, naive));
                }
            }
            Step::EndOfSection => {
                readers.pop();
            }
        }
    }
}
