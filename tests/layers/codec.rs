//! The codec, compared with the encodings of specifications, with another library, and with a naive model.

use bytes::BufMut;
use flowgauge::codec::{Buffer, Prefix, ReadError, ReadProblem, Reader, WriteError, WriteProblem, Writer};
use proptest::prelude::*;

const PREFIXES: [Prefix; 4] = [Prefix::U8, Prefix::U16, Prefix::U32, Prefix::Ipfix];

/// A value of each kind that the codec encodes.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
    Varint(u64),
    Bool(bool),
    Bytes(Vec<u8>),
    Prefixed(Prefix, Vec<u8>),
    Text(Prefix, String),
    Padded(usize, String),
    Section(Prefix, Vec<Value>),
}

fn prefix() -> impl Strategy<Value = Prefix> {
    proptest::sample::select(PREFIXES.to_vec())
}

fn value() -> impl Strategy<Value = Value> {
    let octets = || proptest::collection::vec(any::<u8>(), 0..300);
    // A padded text does not end with a NUL.
    let text = || "[a-z\u{e9}\u{4e2d}]{0,20}";
    let leaf = prop_oneof![
        any::<u8>().prop_map(Value::U8),
        any::<u16>().prop_map(Value::U16),
        any::<u32>().prop_map(Value::U32),
        any::<u64>().prop_map(Value::U64),
        any::<i8>().prop_map(Value::I8),
        any::<i16>().prop_map(Value::I16),
        any::<i32>().prop_map(Value::I32),
        any::<i64>().prop_map(Value::I64),
        any::<f32>().prop_map(Value::F32),
        any::<f64>().prop_map(Value::F64),
        (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| Value::Varint(number >> shift)),
        any::<bool>().prop_map(Value::Bool),
        octets().prop_map(Value::Bytes),
        (prefix(), octets()).prop_map(|(prefix, octets)| {
            let len = octets.len().min(prefix.len_max());
            Value::Prefixed(prefix, octets[..len].to_vec())
        }),
        (prefix(), text()).prop_map(|(prefix, text)| Value::Text(prefix, text)),
        (text(), 0..9_usize).prop_map(|(text, more)| Value::Padded(text.len() + more, text)),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let prefix = proptest::sample::select(vec![Prefix::U16, Prefix::U32, Prefix::Ipfix]);
        (prefix, proptest::collection::vec(inner, 0..5))
            .prop_map(|(prefix, values)| Value::Section(prefix, values))
    })
}

fn write<B: Buffer>(writer: &mut Writer<B>, value: &Value, is_be: bool) -> Result<(), WriteError> {
    macro_rules! number {
        ($number:expr) => {
            if is_be { writer.be(*$number) } else { writer.le(*$number) }
        };
    }
    match value {
        Value::U8(number) => number!(number),
        Value::U16(number) => number!(number),
        Value::U32(number) => number!(number),
        Value::U64(number) => number!(number),
        Value::I8(number) => number!(number),
        Value::I16(number) => number!(number),
        Value::I32(number) => number!(number),
        Value::I64(number) => number!(number),
        Value::F32(number) => number!(number),
        Value::F64(number) => number!(number),
        Value::Varint(number) => writer.varint(*number),
        Value::Bool(value) => writer.bool(*value),
        Value::Bytes(octets) => writer.bytes(octets),
        Value::Prefixed(prefix, octets) => writer.prefixed(*prefix, octets),
        Value::Text(prefix, text) => writer.prefixed(*prefix, text),
        Value::Padded(len, text) => writer.padded(*len, text),
        Value::Section(prefix, values) => {
            writer.section(*prefix, |writer| values.iter().try_for_each(|value| write(writer, value, is_be)))
        }
    }
}

/// Reads the value that `expected` describes.
fn read(reader: &mut Reader<'_>, expected: &Value, is_be: bool) -> Result<Value, ReadError> {
    macro_rules! number {
        ($kind:expr) => {
            $kind(if is_be { reader.be()? } else { reader.le()? })
        };
    }
    Ok(match expected {
        Value::U8(_) => number!(Value::U8),
        Value::U16(_) => number!(Value::U16),
        Value::U32(_) => number!(Value::U32),
        Value::U64(_) => number!(Value::U64),
        Value::I8(_) => number!(Value::I8),
        Value::I16(_) => number!(Value::I16),
        Value::I32(_) => number!(Value::I32),
        Value::I64(_) => number!(Value::I64),
        Value::F32(_) => number!(Value::F32),
        Value::F64(_) => number!(Value::F64),
        Value::Varint(_) => Value::Varint(reader.varint()?),
        Value::Bool(_) => Value::Bool(reader.bool()?),
        Value::Bytes(octets) => Value::Bytes(reader.bytes(octets.len())?.to_vec()),
        Value::Prefixed(prefix, _) => Value::Prefixed(*prefix, reader.prefixed(*prefix)?.to_vec()),
        Value::Text(prefix, _) => Value::Text(*prefix, reader.prefixed_str(*prefix)?.to_owned()),
        Value::Padded(len, _) => Value::Padded(*len, reader.padded_str(*len)?.to_owned()),
        Value::Section(prefix, values) => {
            let mut section = reader.section(*prefix)?;
            let values =
                values.iter().map(|value| read(&mut section, value, is_be)).collect::<Result<_, _>>()?;
            assert!(section.is_empty());
            Value::Section(*prefix, values)
        }
    })
}

fn octets_of(values: &[Value], is_be: bool) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut writer = Writer::growing(&mut octets);
    values.iter().for_each(|value| write(&mut writer, value, is_be).unwrap());
    octets
}

/// Whether two values are equal; NaN equals itself.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::F32(one), Value::F32(other)) => one.to_bits() == other.to_bits(),
        (Value::F64(one), Value::F64(other)) => one.to_bits() == other.to_bits(),
        (Value::Section(_, one), Value::Section(_, other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        _ => one == other,
    }
}

proptest! {
    #[test]
    fn values_are_read_as_they_were_written(
        values in proptest::collection::vec(value(), 0..12),
        is_be: bool,
    ) {
        let octets = octets_of(&values, is_be);
        let mut buffer = vec![0xee; octets.len()];
        let mut writer = Writer::new(&mut buffer);
        values.iter().for_each(|value| write(&mut writer, value, is_be).unwrap());
        prop_assert_eq!(writer.written(), &octets[..]);
        prop_assert_eq!(writer.len(), octets.len());

        let mut reader = Reader::new(&octets);
        for value in &values {
            let found = read(&mut reader, value, is_be).unwrap();
            prop_assert!(is_same(&found, value), "{found:?} is not {value:?}");
        }
        prop_assert!(reader.is_empty());
    }

    /// At every length at which the input or the buffer may end, the failed operation changes nothing.
    #[test]
    fn a_failed_operation_changes_nothing(value in value(), is_be: bool) {
        let octets = octets_of(std::slice::from_ref(&value), is_be);
        for len in 0..octets.len() {
            let mut reader = Reader::new(&octets[..len]);
            if !matches!(value, Value::Section(..)) {
                let error = read(&mut reader, &value, is_be).unwrap_err();
                prop_assert_eq!((error.offset, error.available), (0, len));
                prop_assert!(error.required > len);
                prop_assert_eq!(error.problem, ReadProblem::Truncated);
            } else if let Value::Section(prefix, _) = value {
                prop_assert!(reader.section(prefix).is_err());
            }
            prop_assert_eq!((reader.offset(), reader.remaining_len()), (0, len));

            let mut buffer = vec![0; len + 2];
            let mut writer = Writer::new(&mut buffer);
            writer.be(0xabcd_u16).unwrap();
            let error = write(&mut writer, &value, is_be).unwrap_err();
            prop_assert_eq!(error.problem, WriteProblem::Full);
            prop_assert!(error.required > error.available);
            prop_assert_eq!(writer.written(), &[0xab, 0xcd][..]);
        }
    }

    #[test]
    fn numbers_are_encoded_as_by_another_library(a: u16, b: u32, c: u64, d: i16, e: i32, f: i64, g: f32, h: f64) {
        let mut expected = Vec::new();
        expected.put_u16(a);
        expected.put_u32_le(b);
        expected.put_u64(c);
        expected.put_i16_le(d);
        expected.put_i32(e);
        expected.put_i64_le(f);
        expected.put_f32(g);
        expected.put_f64_le(h);
        let mut found = Vec::new();
        let mut writer = Writer::growing(&mut found);
        writer.be(a).unwrap();
        writer.le(b).unwrap();
        writer.be(c).unwrap();
        writer.le(d).unwrap();
        writer.be(e).unwrap();
        writer.le(f).unwrap();
        writer.be(g).unwrap();
        writer.le(h).unwrap();
        prop_assert_eq!(found, expected);
    }
}

/// The two forms of RFC 7011 section 7 (figures R and S), and the longest value of each form.
#[test]
fn variable_length_elements_have_the_forms_of_the_specification() {
    for (len, prefix) in
        [(0, &[0][..]), (5, &[5]), (254, &[254]), (255, &[255, 0, 255]), (1000, &[255, 0x03, 0xe8])]
    {
        let content = vec![7; len];
        let mut octets = Vec::new();
        Writer::growing(&mut octets).prefixed(Prefix::Ipfix, &content).unwrap();
        assert_eq!(octets, [prefix, &content[..]].concat());
        assert_eq!(Reader::new(&octets).prefixed(Prefix::Ipfix).unwrap(), content);
    }
    // The long form is valid for short values too.
    assert_eq!(Reader::new(&[255, 0, 2, 8, 9]).prefixed(Prefix::Ipfix).unwrap(), [8, 9]);
    assert_eq!(octets_of(&[Value::Section(Prefix::Ipfix, vec![Value::U8(3)])], true), [255, 0, 1, 3]);
}

#[test]
fn a_value_that_its_prefix_cannot_express_is_refused() {
    let octets = vec![0; 70_000];
    for (prefix, len_max) in [(Prefix::U8, 255), (Prefix::U16, 65_535), (Prefix::Ipfix, 65_535)] {
        let mut out = vec![1, 2, 3];
        let mut writer = Writer::growing(&mut out);
        let error = writer.prefixed(prefix, &octets[..=len_max]).unwrap_err();
        assert_eq!(error.problem, WriteProblem::TooLong);
        assert_eq!((error.offset, error.required, error.available), (0, len_max + 1, len_max));
        let error = writer.section(prefix, |writer| writer.bytes(&octets[..=len_max])).unwrap_err();
        assert_eq!((error.problem, error.required), (WriteProblem::TooLong, len_max + 1));
        assert!(writer.is_empty());
        writer.section(prefix, |writer| writer.bytes(&octets[..len_max])).unwrap();
        writer.prefixed(prefix, &octets[..len_max]).unwrap();
        assert_eq!(out[..3], [1, 2, 3]);
    }
    let mut out = Vec::new();
    let error = Writer::growing(&mut out).padded(3, "four").unwrap_err();
    assert_eq!(error.to_string(), "value too long at offset 0: 4 octets required, 3 available");
}

#[test]
fn a_reserved_number_is_filled_in_later() {
    let mut buffer = [9; 8];
    let mut writer = Writer::new(&mut buffer);
    let version = writer.reserve::<u16>().unwrap();
    let len = writer.reserve::<u32>().unwrap();
    writer.be(5_u8).unwrap();
    let total = writer.len() as u32;
    writer.fill(len, total);
    writer.fill(version, 10);
    assert_eq!(writer.written(), [0, 10, 0, 0, 0, 7, 5]);
    // A section that fails takes its reserved numbers with it.
    let mut inside = None;
    let failed = writer.section(Prefix::U8, |writer| {
        inside = Some(writer.reserve::<u16>()?);
        Ok(())
    });
    assert!(failed.is_err() && inside.is_none());
    assert_eq!(buffer, [0, 10, 0, 0, 0, 7, 5, 0]);
}

#[test]
fn malformed_values_are_errors_that_state_their_offset() {
    let mut reader = Reader::new(&[1, 2, 3, 0xff, 0xfe, 0xfd, 0]);
    assert!(reader.bool().unwrap());
    assert_eq!(
        reader.bool().unwrap_err().to_string(),
        "a boolean that is neither 0 nor 1 at offset 1: 1 octets required, 6 available"
    );
    reader.skip(1).unwrap();
    let error = reader.prefixed_str(Prefix::U8).unwrap_err();
    assert_eq!((error.offset, error.problem), (2, ReadProblem::InvalidUtf8));
    assert_eq!(reader.str(2).unwrap_err().problem, ReadProblem::InvalidUtf8);
    assert_eq!(reader.offset(), 2);
    // Offsets in a section count from the beginning of the input.
    let mut section = reader.section(Prefix::U8).unwrap();
    section.skip(2).unwrap();
    let error = section.be::<u64>().unwrap_err();
    assert_eq!((error.offset, error.required, error.available), (5, 8, 1));
    assert_eq!((reader.offset(), reader.rest()), (6, &[0][..]));
    // A length that is itself truncated.
    let mut reader = Reader::new(&[9, 255, 1]);
    reader.skip(1).unwrap();
    let error = reader.prefixed(Prefix::Ipfix).unwrap_err();
    assert_eq!((error.offset, error.required, error.available), (1, 3, 2));
    // A length that cannot be satisfied.
    let error = Reader::new(&[0xff; 8]).prefixed(Prefix::U32).unwrap_err();
    assert_eq!((error.offset, error.required, error.available), (0, 0xffff_ffff + 4, 8));
}

#[test]
fn padding_consists_of_nuls() {
    let mut out = Vec::new();
    let mut writer = Writer::growing(&mut out);
    writer.padded(6, "eth0").unwrap();
    writer.padded(4, "full").unwrap();
    writer.padded(2, [0, 1]).unwrap();
    assert_eq!(out, b"eth0\0\0full\0\x01");
    let mut reader = Reader::new(&out);
    assert_eq!([reader.padded_str(6).unwrap(), reader.padded_str(4).unwrap()], ["eth0", "full"]);
    assert_eq!(reader.padded_str(2).unwrap(), "\0\x01");
}

/// The examples of LEB128 in DWARF 5, section 7.6, and the limits of 64 bits.
#[test]
fn numbers_of_variable_length_have_the_encoding_of_dwarf() {
    let longest: &[u8] = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let examples: [(u64, &[u8]); 6] = [
        (2, &[2]),
        (127, &[127]),
        (128, &[0x80, 1]),
        (129, &[0x81, 1]),
        (12_857, &[0xb9, 0x64]),
        (u64::MAX, longest),
    ];
    for (number, encoded) in examples {
        let mut buffer = [0; 10];
        let mut writer = Writer::new(&mut buffer);
        writer.varint(number).unwrap();
        assert_eq!(writer.written(), encoded);
        assert_eq!(Reader::new(encoded).varint(), Ok(number));
        let truncated = Reader::new(&encoded[..encoded.len() - 1]).varint().unwrap_err();
        assert_eq!(truncated.problem, ReadProblem::Truncated);
    }
    for too_large in [[0xff; 11].as_slice(), &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]] {
        let mut reader = Reader::new(too_large);
        assert_eq!(reader.varint().unwrap_err().problem, ReadProblem::TooLarge);
        assert_eq!(reader.offset(), 0);
    }
}
