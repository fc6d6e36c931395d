//! The reader of mails, with examples of the RFCs, and against an implementation that reads all octets at once.

#[path = "../../../tests/support/mail.rs"]
mod naive;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::header::Header;
use super::reader::{Event, Reader};
use naive::{NaiveMail, NaivePart};

/// What the reader reports, with the octets of each part joined.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    header: Option<Header>,
    parts: Vec<Read>,
    is_limited: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    content_type: String,
    name: Option<String>,
    is_attachment: bool,
    octets: Vec<u8>,
    missing_len: u64,
    is_complete: Option<bool>,
}

impl Report {
    fn add(&mut self, event: Event<'_>) {
        let text = |octets: &[u8]| octets.iter().map(|octet| char::from(*octet)).collect::<String>();
        let is_open = self.parts.last().is_some_and(|part| part.is_complete.is_none());
        match event {
            Event::Header(header) => {
                assert!(self.header.is_none() && self.parts.is_empty());
                // A copy, because the reader keeps nothing.
                let mut copy = Header { is_truncated: header.is_truncated, ..Header::default() };
                copy.subject.clone_from(&header.subject);
                copy.from.clone_from(&header.from);
                copy.to.clone_from(&header.to);
                copy.received.clone_from(&header.received);
                self.header = Some(copy);
            }
            Event::Part(part) => {
                assert!(!is_open && usize::try_from(part.number) == Ok(self.parts.len()));
                self.parts.push(Read {
                    content_type: text(part.content_type),
                    name: part.name.map(text),
                    is_attachment: part.is_attachment,
                    ..Read::default()
                });
            }
            Event::Limit => self.is_limited = true,
            other => {
                assert!(is_open);
                let part = self.parts.last_mut().expect("a part");
                match other {
                    Event::Octets(octets) => part.octets.extend(octets),
                    Event::Missing(len) => part.missing_len += len,
                    Event::End(is_complete) => part.is_complete = Some(is_complete),
                    _ => unreachable!("handled above"),
                }
            }
        }
    }
}

/// Reads a mail in pieces that end at these offsets, with a gap of five octets at one of them.
fn read(content: &[u8], ends: &[usize], gap: Option<usize>) -> Report {
    let (mut reader, mut report) = (Reader::default(), Report::default());
    let mut ends: Vec<_> = ends.iter().copied().chain(gap).chain([content.len()]).collect();
    ends.sort_unstable();
    let mut start = 0;
    let mut gap = gap;
    for end in ends {
        if gap == Some(start) {
            reader.gap(5, &mut |event| report.add(event));
            gap = None;
        }
        reader.read(&content[start..end], &mut |event| report.add(event));
        start = end;
    }
    reader.end(gap.is_none(), &mut |event| report.add(event));
    report
}

fn whole(content: &str) -> Report {
    let report = read(content.as_bytes(), &[], None);
    let all: Vec<_> = (0..content.len()).collect();
    assert_eq!(read(content.as_bytes(), &all, None), report, "octet by octet");
    report
}

fn summary(report: &Report) -> Vec<(&str, &str)> {
    let text = |part: &'_ Read| std::str::from_utf8(&part.octets).expect("text").to_owned();
    let parts = report.parts.iter();
    parts.map(|part| (part.content_type.as_str(), &*text(part).leak())).collect()
}

#[test]
fn the_example_of_rfc_2046_has_two_parts() {
    // Section 5.1.1.
    let report = whole(
        "From: Nathaniel Borenstein <nsb@bellcore.com>\r\n\
         To: Nathaniel Borenstein <nsb@bellcore.com>\r\n\
         Date: Sun, 21 Mar 1993 23:56:48 -0800 (PST)\r\n\
         Subject: Sample message\r\n\
         MIME-Version: 1.0\r\n\
         Content-type: multipart/mixed; boundary=\"simple boundary\"\r\n\
         \r\n\
         This is the preamble.  It is to be ignored, though it\r\n\
         is a handy place for composition agents to include an\r\n\
         explanatory note to non-MIME conformant readers.\r\n\
         \r\n\
         --simple boundary\r\n\
         \r\n\
         This is implicitly typed plain US-ASCII text.\r\n\
         It does NOT end with a linebreak.\r\n\
         --simple boundary\r\n\
         Content-type: text/plain; charset=us-ascii\r\n\
         \r\n\
         This is explicitly typed plain US-ASCII text.\r\n\
         It DOES end with a linebreak.\r\n\
         \r\n\
         --simple boundary--\r\n\
         \r\n\
         This is the epilogue.  It is also to be ignored.\r\n",
    );
    assert_eq!(
        summary(&report),
        [
            (
                "text/plain",
                "This is implicitly typed plain US-ASCII text.\r\nIt does NOT end with a linebreak."
            ),
            (
                "text/plain; charset=us-ascii",
                "This is explicitly typed plain US-ASCII text.\r\nIt DOES end with a linebreak.\r\n"
            ),
        ]
    );
    assert!(report.parts.iter().all(|part| part.is_complete == Some(true) && !part.is_attachment));
    let header = report.header.expect("a header");
    assert_eq!(header.subject.as_deref(), Some(&b"Sample message"[..]));
    assert_eq!(header.to.as_deref(), Some(&b"Nathaniel Borenstein <nsb@bellcore.com>"[..]));
}

#[test]
fn nested_multiparts_and_digests_are_read() {
    // RFC 2049 appendix A and RFC 2046 section 5.1.5, shortened.
    let report = whole(
        "Subject: A multipart\r\n example\r\nContent-Type: multipart/mixed;\r\n boundary=unique-boundary-1\r\n\r\n\
         --unique-boundary-1\r\n\r\n ... Some text appears here ...\r\n\
         --unique-boundary-1\r\nContent-Type: multipart/parallel; boundary=unique-boundary-2\r\n\r\n\
         --unique-boundary-2\r\nContent-Type: audio/basic\r\nContent-Transfer-Encoding: base64\r\n\r\nAQID\r\n\r\n\
         --unique-boundary-2\r\nContent-Type: image/jpeg; name=a.jpg\r\nContent-Transfer-Encoding: base64\r\n\
         Content-Disposition: attachment; filename=\"b.jpg\"\r\n\r\n/9j/\r\n\
         --unique-boundary-2--\r\n\r\n\
         --unique-boundary-1\r\nContent-Type: multipart/digest; boundary=\"--\"\r\n\r\n\
         ----\r\n\r\nFrom: a\r\n\r\nfirst\r\n----\r\nContent-Type: text/x\r\n\r\nsecond\r\n\
         --unique-boundary-1--\r\n",
    );
    let parts = report.parts.iter().map(|part| {
        (
            part.content_type.as_str(),
            part.name.as_deref(),
            part.is_attachment,
            part.octets.as_slice(),
            part.is_complete,
        )
    });
    type Expected<'e> = (&'e str, Option<&'e str>, bool, &'e [u8], Option<bool>);
    let expected: [Expected<'_>; 5] = [
        ("text/plain", None, false, b" ... Some text appears here ...", Some(true)),
        ("audio/basic", None, false, b"\x01\x02\x03", Some(true)),
        ("image/jpeg; name=a.jpg", Some("b.jpg"), true, b"\xff\xd8\xff", Some(true)),
        ("message/rfc822", None, false, b"From: a\r\n\r\nfirst", Some(true)),
        ("text/x", None, false, b"second", Some(true)),
    ];
    assert_eq!(parts.collect::<Vec<_>>(), expected);
    assert_eq!(report.header.expect("a header").subject.as_deref(), Some(&b"A multipart example"[..]));
}

#[test]
fn mails_without_mime_are_one_part() {
    for (content, body, subject) in [
        ("Subject : x \r\n\r\nbody\r\n", Some("body\r\n"), Some("x")),
        ("Subject:\r\n\tx\r\n \r\n\r\n", Some(""), Some("x")),
        ("Subject: a\n\nb\nc", Some("b\nc"), Some("a")),
        // Without a header, or without the empty line behind it.
        ("Blah blah blah...\r\n.\r\netc.\r\n", Some("Blah blah blah...\r\n.\r\netc.\r\n"), None),
        ("Subject: a\r\nnot a field\r\n\r\nb", Some("not a field\r\n\r\nb"), Some("a")),
        (" a: b\r\n", Some(" a: b\r\n"), None),
        (": b\r\n", Some(": b\r\n"), None),
        ("\r\n--\r\n", Some("--\r\n"), None),
        ("Subject: a\r\nSubject: b\r\n", None, Some("a")),
        ("", None, None),
    ] {
        let report = whole(content);
        let found = report.parts.first().map(|part| std::str::from_utf8(&part.octets).expect("text"));
        assert_eq!((found, report.parts.len()), (body, usize::from(body.is_some())), "{content:?}");
        assert!(
            report
                .parts
                .iter()
                .all(|part| part.content_type == "text/plain" && part.is_complete == Some(true))
        );
        let header = report.header.expect("a header");
        assert_eq!(header.subject.as_deref(), subject.map(str::as_bytes), "{content:?}");
    }
}

#[test]
fn a_part_that_no_delimiter_ends_is_incomplete() {
    let head = "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n";
    let ends = |body: &str| {
        whole(&format!("{head}{body}")).parts.iter().map(|part| part.is_complete).collect::<Vec<_>>()
    };
    assert_eq!(ends("a\r\n--b--"), [Some(true)]);
    assert_eq!(ends("a\r\n--b"), [Some(true)]);
    assert_eq!(ends("a\r\n-"), [Some(false)]);
    assert_eq!(ends("a\r\n--b\r\nContent-Type: text/html\r\n--b--"), [Some(true), Some(true)]);
}

#[test]
fn octets_behind_a_gap_in_a_header_are_not_attributed() {
    let content = b"From: a\r\nSubject: b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
        --b\r\n\r\none\r\n--b\r\nA: b\r\n\r\ntwo\r\n--b\r\n\r\nthree\r\n--b--\r\n";
    let at =
        |text: &str| content.windows(text.len()).position(|part| part == text.as_bytes()).expect("a text");
    let report = read(content, &[], Some(at("ject:")));
    let header = report.header.expect("a header");
    assert_eq!((header.from.as_deref(), header.subject), (Some(&b"a"[..]), None));
    assert!(report.parts.is_empty());
    let parts = |gap: usize| {
        let report = read(content, &[], Some(gap));
        let parts = report.parts.into_iter();
        let text = |octets: Vec<u8>| String::from_utf8(octets).expect("text");
        parts.map(|part| (text(part.octets), part.missing_len)).collect::<Vec<_>>()
    };
    assert_eq!(parts(at("b\r\n\r\ntwo")), [("one".to_owned(), 0), ("three".to_owned(), 0)]);
    assert_eq!(parts(at("ne")), [("one".to_owned(), 5), ("two".to_owned(), 0), ("three".to_owned(), 0)]);
    // The delimiter is not at the start of a line that was captured.
    assert_eq!(
        parts(at("--b\r\nA")),
        [("one\r\n--b\r\nA: b\r\n\r\ntwo".to_owned(), 5), ("three".to_owned(), 0)]
    );
}

#[test]
fn long_fields_many_parts_and_deep_multiparts_are_limited() {
    let long = "x".repeat(5000);
    let header = whole(&format!("Subject: {long}\r\n\r\n")).header.expect("a header");
    assert_eq!((header.subject.map(|text| text.len()), header.is_truncated), (Some(4096), true));
    let many = "--b\r\n\r\n".repeat(300);
    let report =
        read(format!("Content-Type: multipart/mixed; boundary=b\r\n\r\n{many}").as_bytes(), &[], None);
    assert_eq!((report.parts.len(), report.is_limited), (256, true));
    let level =
        |number: usize| format!("Content-Type: multipart/mixed; boundary=b{number}x\r\n\r\n--b{number}x\r\n");
    let deep: String = (0..20).map(level).collect();
    let report = read(deep.as_bytes(), &[], None);
    assert_eq!(report.parts.len(), 1);
    assert_eq!(report.parts[0].content_type, "multipart/mixed; boundary=b16x");
    // A boundary that is too long, and none.
    for parameter in [format!("boundary={}", "b".repeat(71)), "boundary=".to_owned(), String::new()] {
        let report =
            read(format!("Content-Type: multipart/mixed; {parameter}\r\n\r\n--b\r\n").as_bytes(), &[], None);
        assert_eq!(report.parts[0].octets, b"--b\r\n", "{parameter}");
    }
}

/// Pieces of which mails are made.
const WORDS: [&[u8]; 41] = [
    b"\r\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b"-",
    b"--",
    b"=",
    b"=3D",
    b"=4",
    b"= \r\n",
    b"Zm9v",
    b"YmE=",
    b"\xff\0",
    b"text",
    b"Subject: a\r\n",
    b"Subject:",
    b"From : b, c\r\n",
    b"To: d\r\n folded\r\n",
    b"Received: one\r\n",
    b"Received: two\r\n",
    b"Content-Type: multipart/mixed; boundary=b\r\n",
    b"Content-Type: multipart/digest;\r\n boundary=\"b c\"\r\n",
    b"Content-type: Multipart/alternative; x=\"a\\\"\\b;\"; Boundary = bcd \r\n",
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n\r\n--b\r\n",
    b"Content-Type: text/html; name=\"a/b\"\r\n",
    b"Content-Type: message/rfc822\r\n",
    b"Content-Disposition: attachment; filename=\"x;y\"\r\n",
    b"Content-Disposition: Attachment\r\n",
    b"Content-Transfer-Encoding: base64\r\n",
    b"Content-Transfer-Encoding: quoted-printable\r\n",
    b"Content-Transfer-Encoding: base64\r\n\r\nZm9v\r\nYmFy",
    b"Content-Transfer-Encoding: Quoted-Printable\r\n\r\na =\r\n=c3=A4 \t\r\n",
    b"\r\n--b\r\n",
    b"\r\n--b\r\n\r\n",
    b"\n--b c\n",
    b"\r\n--bcd\r\n",
    b"\r\n--b--\r\n",
    b"\r\n--b c--",
];

fn contents() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![12 => select(&WORDS[..]).prop_map(<[u8]>::to_vec), 1 => vec(any::<u8>(), 1..4)];
    vec(word, 0..30).prop_map(|words| words.concat())
}

fn of_naive(part: NaivePart) -> (String, Option<String>, bool, Vec<u8>, Option<bool>) {
    let text = |octets: Vec<u8>| octets.into_iter().map(char::from).collect::<String>();
    (text(part.content_type), part.name.map(text), part.is_attachment, part.octets, Some(part.is_complete))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mails_are_read_alike_in_any_pieces_and_at_once(content in contents(), ends in vec(any::<Index>(), 0..20)) {
        let ends: Vec<_> = ends.iter().map(|end| end.index(content.len() + 1)).collect();
        let report = read(&content, &ends, None);
        let naive = NaiveMail::read(&content);
        let header = report.header.as_ref().expect("a header");
        for (name, field) in [("subject", &header.subject), ("from", &header.from), ("to", &header.to)] {
            let expected = naive.fields.iter().find(|(other, _)| other == name).map(|(_, value)| value);
            prop_assert_eq!(field.as_ref(), expected);
        }
        let received = naive.fields.iter().filter(|(name, _)| name == "received").take(2);
        prop_assert_eq!(&header.received, &received.map(|(_, value)| value.clone()).collect::<Vec<_>>());
        let parts = report.parts.into_iter().map(|part| {
            (part.content_type, part.name, part.is_attachment, part.octets, part.is_complete)
        });
        prop_assert_eq!(parts.collect::<Vec<_>>(), naive.parts.into_iter().map(of_naive).collect::<Vec<_>>());
    }

    #[test]
    fn mails_with_a_gap_are_read_alike_in_any_pieces(
        content in contents(),
        ends in vec(any::<Index>(), 0..20),
        gap in any::<Index>(),
    ) {
        let at = |index: &Index| index.index(content.len() + 1);
        let (ends, gap) = (ends.iter().map(at).collect::<Vec<_>>(), Some(at(&gap)));
        prop_assert_eq!(read(&content, &ends, gap), read(&content, &[], gap));
    }

    #[test]
    fn any_octets_are_read_alike_in_any_pieces(content in vec(any::<u8>(), 0..300), end in any::<Index>()) {
        let end = end.index(content.len() + 1);
        prop_assert_eq!(read(&content, &[end], None), read(&content, &[], None));
    }
}
