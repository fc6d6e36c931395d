//! Rows as lines of Zeek's TSV, and the header before them.

use std::net::IpAddr;

use crate::base::Timestamp;
use crate::export::text;
use crate::row::{Column, Members, Row, Type, Visitor};

const UNSET: &[u8] = b"-";
const EMPTY: &[u8] = b"(empty)";

/// Where the next value is, as the separator behind it.
type Place = u8;

/// In a column of the line.
const COLUMN: Place = b'\t';
/// In a set or vector, as an item.
const ITEM: Place = b',';

/// Appends the header of a log: its separators, path, time of opening, and names and types of the columns.
pub(super) fn write_header(out: &mut Vec<u8>, path: &str, time: Timestamp, columns: &[&'static Column]) {
    out.extend_from_slice(b"#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n");
    out.extend_from_slice(b"#path\t");
    out.extend_from_slice(path.as_bytes());
    out.extend_from_slice(b"\n#open\t");
    date(out, time);
    out.extend_from_slice(b"\n#fields");
    for column in columns {
        out.push(b'\t');
        out.extend_from_slice(column.name.as_bytes());
    }
    out.extend_from_slice(b"\n#types");
    for column in columns {
        out.push(b'\t');
        out.extend_from_slice(type_of(column).as_bytes());
    }
    out.push(b'\n');
}

/// Appends the last line of a log.
pub(super) fn write_footer(out: &mut Vec<u8>, time: Timestamp) {
    out.extend_from_slice(b"#close\t");
    date(out, time);
    out.push(b'\n');
}

/// Appends a time as `2026-11-20-23-41-15`, in UTC.
fn date(out: &mut Vec<u8>, time: Timestamp) {
    let whole = time.date_and_time();
    let seconds = whole.iter().take(19).map(|letter| match letter {
        b'T' | b':' => b'-',
        digit => *digit,
    });
    out.extend(seconds);
}

/// Returns the type of Zeek for a column. Integers of 16 bits are ports.
pub(super) fn type_of(column: &Column) -> String {
    match column.column_type {
        Type::Bool => "bool".into(),
        Type::Unsigned(16) => "port".into(),
        Type::Unsigned(_) => "count".into(),
        Type::Signed(_) => "int".into(),
        Type::Float => "double".into(),
        Type::Timestamp => "time".into(),
        Type::Duration => "interval".into(),
        Type::Address => "addr".into(),
        Type::Name => "enum".into(),
        Type::List(item) => {
            let kind = if column.is_set { "set" } else { "vector" };
            format!("{kind}[{}]", type_of(item))
        }
        _ => "string".into(),
    }
}

/// Appends a row as a line.
#[inline]
pub(super) fn write_row(out: &mut Vec<u8>, row: &(impl Row + ?Sized)) {
    let start = out.len();
    row.visit(&mut Line { out, place: COLUMN });
    // The separator after the last column.
    if out.len() > start {
        out.pop();
    }
    out.push(b'\n');
}

/// Visitor that appends each value to a line, followed by a separator.
struct Line<'o> {
    out: &'o mut Vec<u8>,
    place: Place,
}

impl Line<'_> {
    #[inline]
    fn value(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self.out);
        self.out.push(self.place);
    }
}

impl Visitor for Line<'_> {
    #[inline]
    fn null(&mut self, _: &'static Column) {
        self.value(|out| out.extend_from_slice(UNSET));
    }

    #[inline]
    fn unsigned(&mut self, _: &'static Column, value: u64) {
        self.value(|out| text::number(out, value));
    }

    fn float(&mut self, _: &'static Column, value: f64) {
        self.value(|out| text::float(out, value));
    }

    #[inline]
    fn text(&mut self, _: &'static Column, value: &str) {
        let place = self.place;
        self.value(|out| write_text(out, value, place));
    }

    fn list(&mut self, _: &'static Column, items: Members<'_>) {
        let start = self.out.len();
        let outer = std::mem::replace(&mut self.place, ITEM);
        items(self);
        self.place = outer;
        if self.out.len() == start {
            self.out.extend_from_slice(EMPTY);
        } else {
            // The separator after the last item.
            self.out.pop();
        }
        self.out.push(outer);
    }

    /// Rows of this format have no groups; the members would be columns.
    fn group(&mut self, _: &'static Column, members: Members<'_>) {
        members(self);
    }

    #[inline]
    fn bool(&mut self, _: &'static Column, value: bool) {
        self.value(|out| out.push(if value { b'T' } else { b'F' }));
    }

    fn signed(&mut self, _: &'static Column, value: i64) {
        self.value(|out| text::signed(out, value));
    }

    #[inline]
    fn timestamp(&mut self, _: &'static Column, value: Timestamp) {
        self.value(|out| text::micros(out, value.as_nanos()));
    }

    #[inline]
    fn duration(&mut self, _: &'static Column, nanoseconds: u64) {
        self.value(|out| text::micros(out, nanoseconds));
    }

    #[inline]
    fn address(&mut self, _: &'static Column, value: IpAddr) {
        self.value(|out| text::address(out, value));
    }

    #[inline]
    fn name(&mut self, _: &'static Column, value: &'static str) {
        self.value(|out| out.extend_from_slice(value.as_bytes()));
    }
}

/// Returns whether a text is written unchanged: printable ASCII without the characters that the format gives a meaning.
#[inline]
fn is_plain(text: &str) -> bool {
    text.as_bytes().iter().fold(true, |is_plain, octet| {
        is_plain & (0x20..0x7f).contains(octet) & (*octet != b'\\') & (*octet != b',')
    })
}

/// Appends a text. Controls, backslashes and, in a set or vector, commas are escaped, and so is the first octet of a text
/// that looks like an absent or empty one.
fn write_text(out: &mut Vec<u8>, value: &str, place: Place) {
    match value.as_bytes() {
        [] => return out.extend_from_slice(EMPTY),
        UNSET | EMPTY => {
            let (first, rest) = value.as_bytes().split_at(1);
            first.iter().for_each(|octet| escape(out, *octet));
            return out.extend_from_slice(rest);
        }
        octets if is_plain(value) => return out.extend_from_slice(octets),
        _ => {}
    }
    let mut buffer = [0; 4];
    for letter in value.chars() {
        let octets = letter.encode_utf8(&mut buffer).as_bytes();
        match letter {
            '\\' => out.extend_from_slice(b"\\\\"),
            ',' if place == ITEM => escape(out, b','),
            letter if text::is_control(letter) => octets.iter().for_each(|octet| escape(out, *octet)),
            _ => out.extend_from_slice(octets),
        }
    }
}

/// Appends an octet as `\xHH`.
fn escape(out: &mut Vec<u8>, octet: u8) {
    out.extend_from_slice(b"\\x");
    text::octets(out, &[octet]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{List, ListOf, Name, RowType as _};

    struct Sample<'a> {
        text: &'a str,
        items: &'a [&'a str],
        absent: Option<u64>,
        time: Timestamp,
    }

    crate::table! {
        /// Values of all kinds.
        impl['a] "zeek.sample" for Sample<'a> as sample {
            /// A text.
            "text": &'a str = sample.text;
            /// Texts.
            "items": List<&'a [&'a str]> [set] = List(sample.items);
            /// Absent.
            "absent": Option<u64> = sample.absent;
            /// A time.
            "time": Timestamp = sample.time;
            /// A port.
            "port": u16 = 80;
            /// Names.
            "names": ListOf<Name> => List([Name("a"), Name("b")]);
            /// A flag.
            "flag": bool = true;
        }
    }

    fn line(text: &str, items: &[&str]) -> String {
        let mut out = Vec::new();
        let time = Timestamp::from_nanos(1_700_000_000_123_456_500);
        write_row(&mut out, &Sample { text, items, absent: None, time });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_written_as_the_format_specifies() {
        let rest = "\t-\t1700000000.123457\t80\ta,b\tT\n";
        for (text, written) in [
            ("a b", "a b"),
            ("", "(empty)"),
            ("-", "\\x2d"),
            ("(empty)", "\\x28empty)"),
            ("a\tb\\\n", "a\\x09b\\\\\\x0a"),
            ("a,b", "a,b"),
            ("é", "é"),
            ("\u{202e}", "\\xe2\\x80\\xae"),
        ] {
            assert_eq!(line(text, &[]), format!("{written}\t(empty){rest}"));
        }
        assert_eq!(line("x", &["a,b", "", "-"]), format!("x\ta\\x2cb,(empty),\\x2d{rest}"));
    }

    /// Returns the text that a value stands for.
    fn unescaped(value: &str) -> String {
        let (mut octets, mut rest) = (Vec::new(), value);
        while let Some(first) = rest.chars().next() {
            if let Some(digits) = rest.strip_prefix("\\x").and_then(|rest| rest.get(..2)) {
                octets.push(u8::from_str_radix(digits, 16).unwrap());
                rest = &rest[4..];
            } else {
                let len = if first == '\\' { 2 } else { first.len_utf8() };
                octets.extend(rest[..len].bytes().skip(usize::from(first == '\\')));
                rest = &rest[len..];
            }
        }
        String::from_utf8(octets).unwrap()
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_one_column_and_can_be_read(text in ".*", items in proptest::collection::vec(".*", 0..4)) {
            let texts: Vec<&str> = items.iter().map(String::as_str).collect();
            let line = line(&text, &texts);
            let columns: Vec<&str> = line.strip_suffix('\n').unwrap().split('\t').collect();
            proptest::prop_assert_eq!(columns.len(), 7);
            proptest::prop_assert!(!line.trim_end_matches('\n').chars().any(|letter| letter != '\t' && letter.is_control()));
            if !text.is_empty() {
                proptest::prop_assert_ne!(columns[0], "-");
                proptest::prop_assert_eq!(unescaped(columns[0]), text);
            }
            if items.iter().all(|item| !item.is_empty()) && !items.is_empty() {
                let read: Vec<_> = columns[1].split(',').map(unescaped).collect();
                proptest::prop_assert_eq!(read, items);
            }
        }
    }

    #[test]
    fn the_header_names_columns_and_types() {
        let mut out = Vec::new();
        write_header(&mut out, "sample", Timestamp::from_parts(1_700_000_000, 0), &Sample::columns());
        let expected = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tsample\n\
            #open\t2023-11-14-22-13-20\n#fields\ttext\titems\tabsent\ttime\tport\tnames\tflag\n\
            #types\tstring\tset[string]\tcount\ttime\tport\tvector[enum]\tbool\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
