//! Header blocks of one connection, read by the parser of HTTP/2 and by `fluke-hpack`: both return the same fields, or
//! an error.

use std::borrow::Cow;
use std::panic::{self, AssertUnwindSafe};

use arbitrary::{Arbitrary, Result, Unstructured};
use flowgauge::base::Timestamp;
use flowgauge::protocols::http2::{
    Anomaly, FIELD_COUNT_MAX, Http2Parser, LIST_LEN_MAX, Message, TABLE_LEN_MAX,
};
use flowgauge::session::{Fault, Input, Parser, Role};
use fluke_hpack::Decoder;
use fluke_hpack::decoder::DecoderError;

use crate::targets::input::{Octets, items, structured};

const BLOCK_COUNT_MAX: usize = 40;

struct Blocks<'a>(Vec<Octets<'a>>);

impl<'a> Arbitrary<'a> for Blocks<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        items(u, BLOCK_COUNT_MAX).map(Self)
    }
}

type Field = (Vec<u8>, Vec<u8>);

/// Feeds octets of the client, and returns the fields of the resulting message and whether they are complete.
fn feed(parser: &mut Http2Parser, octets: &[u8]) -> std::result::Result<Option<(Vec<Field>, bool)>, Fault> {
    let mut reported = None;
    let mut take = |message: Message<'_>| {
        let (fields, anomaly) = match message {
            Message::Request(request) => (request.fields, request.anomaly),
            Message::Response(response) => (response.fields, response.anomaly),
            _ => return,
        };
        let fields = fields.iter().map(|field| (field.name.0.to_vec(), field.value.0.to_vec())).collect();
        reported = Some((fields, anomaly != Some(Anomaly::ListTooLong)));
    };
    parser.bytes(&Input::new(octets, 0, Role::Client, Timestamp::ZERO), &mut take)?;
    Ok(reported)
}

/// A HEADERS frame with END_HEADERS.
fn headers(stream: u32, block: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = (block.len() as u32).to_be_bytes();
    [&[high, middle, low, 1, 4][..], &stream.to_be_bytes(), block].concat()
}

pub fn run(data: &[u8]) {
    let Some(Blocks(blocks)) = structured::<Blocks<'_>>(data) else { return };
    let mut parser = Http2Parser::default();
    feed(&mut parser, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("the preface");
    feed(&mut parser, b"\0\0\0\x04\0\0\0\0\0").expect("empty settings");
    let mut decoder = Decoder::new();
    decoder.set_max_allowed_table_size(TABLE_LEN_MAX);
    for (stream, Octets(block)) in (1_u32..).step_by(2).zip(&blocks) {
        let mut expected: Vec<Field> = Vec::new();
        let mut take = |name: Cow<'_, [u8]>, value: Cow<'_, [u8]>| {
            expected.push((name.into_owned(), value.into_owned()))
        };
        let theirs = catch_panic(|| decoder.decode_with_cb(block, &mut take));
        // A bug in fluke-hpack: it panics if a block ends within the number of a table size update.
        let Some(theirs) = theirs else {
            assert!(feed(&mut parser, &headers(stream, block)).is_err());
            return;
        };
        match (feed(&mut parser, &headers(stream, block)), theirs) {
            (Ok(ours), Ok(())) => compare(ours, &expected),
            // By design: the parser accepts a table size update without a field after it.
            (Ok(ours), Err(DecoderError::SizeUpdateAtEnd)) => compare(ours, &expected),
            // By design: the parser requires a table size update at the start of a block (RFC 7541 section 4.2);
            // fluke-hpack does not.
            (Err(fault), Ok(()) | Err(DecoderError::SizeUpdateAtEnd))
                if fault.reason() == "hpack_late_resize" =>
            {
                return;
            }
            // By design: a list of too many fields or octets ends the connection.
            (Err(fault), Ok(())) if fault.reason() == "header_list_too_long" => {
                let len: usize = expected.iter().map(|(name, value)| name.len() + value.len()).sum();
                assert!(expected.len() > FIELD_COUNT_MAX || len > LIST_LEN_MAX, "{} fields", expected.len());
                return;
            }
            (Err(_), Err(_)) => return,
            (ours, theirs) => panic!("{ours:?}, fluke-hpack {theirs:?} with {expected:?} of {block:02x?}"),
        }
    }
}

/// Returns the result of a call, or `None` if it panics.
fn catch_panic<T>(call: impl FnOnce() -> T) -> Option<T> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    panic::set_hook(hook);
    outcome.ok()
}

fn compare(ours: Option<(Vec<Field>, bool)>, expected: &[Field]) {
    let (fields, is_complete) = ours.expect("the block was not reported");
    if is_complete {
        assert_eq!(fields, expected);
    } else {
        assert_eq!(fields, expected[..fields.len()]);
    }
}
