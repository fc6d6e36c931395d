//! Transfer encodings of the parts of a mail (RFC 2045 section 6), decoded as the octets arrive.

use crate::checkpoint::state;

/// Maximum number of spaces at the end of a line in quoted-printable that are held; more are part of the line. Lines
/// have at most 998 octets (RFC 5322 section 2.1.1).
const BLANKS_LEN_MAX: usize = 998;

/// Number of decoded octets that are passed on together.
const CHUNK_LEN: usize = 1024;

/// Decoder of the transfer encoding of a part.
#[derive(Debug)]
pub(super) enum Decoder {
    /// 7bit, 8bit or binary, or an unknown encoding: the octets as sent.
    Identity,
    Base64(Base64),
    QuotedPrintable(QuotedPrintable),
}

state! { enum Decoder { 0 = Identity, 1 = Base64(decoder), 2 = QuotedPrintable(decoder) } }

/// Receiver of decoded octets.
pub(super) type Out<'o> = &'o mut dyn FnMut(&[u8]);

impl Decoder {
    /// Returns the decoder for the value of a Content-Transfer-Encoding field.
    pub(super) fn of(encoding: Option<&[u8]>) -> Self {
        let name = encoding.unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"base64") {
            Self::Base64(Base64::default())
        } else if name.eq_ignore_ascii_case(b"quoted-printable") {
            Self::QuotedPrintable(QuotedPrintable::default())
        } else {
            Self::Identity
        }
    }

    pub(super) fn decode(&mut self, octets: &[u8], out: Out<'_>) {
        match self {
            Self::Identity if octets.is_empty() => {}
            Self::Identity => out(octets),
            Self::Base64(decoder) => decoder.decode(octets, &mut Chunk::new(out)),
            Self::QuotedPrintable(decoder) => decoder.decode(octets, &mut Chunk::new(out)),
        }
    }

    /// Notes that octets are missing before the next ones. Base64 is decoded again from the next line on, because lines
    /// begin with the first octet of a group.
    pub(super) fn gap(&mut self, out: Out<'_>) {
        match self {
            Self::Identity => {}
            Self::Base64(decoder) => {
                decoder.end(&mut Chunk::new(out));
                *decoder = Base64 { is_behind_gap: true, ..Base64::default() };
            }
            Self::QuotedPrintable(decoder) => decoder.release(&mut Chunk::new(out)),
        }
    }

    /// Passes on the octets that no other octets complete.
    pub(super) fn end(&mut self, out: Out<'_>) {
        match self {
            Self::Identity => {}
            Self::Base64(decoder) => decoder.end(&mut Chunk::new(out)),
            Self::QuotedPrintable(decoder) => decoder.end(&mut Chunk::new(out)),
        }
    }
}

/// Collects decoded octets, and passes them on together.
struct Chunk<'o> {
    octets: [u8; CHUNK_LEN],
    len: usize,
    out: Out<'o>,
}

impl<'o> Chunk<'o> {
    const fn new(out: Out<'o>) -> Self {
        Self { octets: [0; CHUNK_LEN], len: 0, out }
    }

    fn push(&mut self, octet: u8) {
        if self.len == CHUNK_LEN {
            self.pass();
        }
        if let Some(next) = self.octets.get_mut(self.len) {
            *next = octet;
            self.len += 1;
        }
    }

    fn pass(&mut self) {
        if let Some(octets) = self.octets.get(..self.len).filter(|octets| !octets.is_empty()) {
            (self.out)(octets);
        }
        self.len = 0;
    }
}

impl Drop for Chunk<'_> {
    fn drop(&mut self) {
        self.pass();
    }
}

/// Decoder of base64 (RFC 2045 section 6.8): octets outside of the alphabet are ignored, and padding ends the data.
#[derive(Debug, Default)]
pub(super) struct Base64 {
    bits: u32,
    /// Number of digits in `bits`, at most three.
    digit_count: u8,
    has_ended: bool,
    /// Octets are ignored up to the end of the line.
    is_behind_gap: bool,
}

state! {
    struct Base64 { bits, digit_count, has_ended, is_behind_gap }
    if |decoder| decoder.digit_count < 4
}

impl Base64 {
    fn decode(&mut self, octets: &[u8], out: &mut Chunk<'_>) {
        for octet in octets {
            if self.has_ended {
                return;
            }
            if self.is_behind_gap {
                self.is_behind_gap = *octet != b'\n';
                continue;
            }
            let digit = match octet {
                b'A'..=b'Z' => octet - b'A',
                b'a'..=b'z' => octet - b'a' + 26,
                b'0'..=b'9' => octet - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' => {
                    self.end(out);
                    self.has_ended = true;
                    return;
                }
                _ => continue,
            };
            self.bits = self.bits << 6 | u32::from(digit);
            self.digit_count += 1;
            if self.digit_count == 4 {
                for shift in [16, 8, 0] {
                    out.push((self.bits >> shift) as u8);
                }
                (self.bits, self.digit_count) = (0, 0);
            }
        }
    }

    /// Passes on the octets of an incomplete group.
    fn end(&mut self, out: &mut Chunk<'_>) {
        match self.digit_count {
            2 => out.push((self.bits >> 4) as u8),
            3 => {
                out.push((self.bits >> 10) as u8);
                out.push((self.bits >> 2) as u8);
            }
            _ => {}
        }
        (self.bits, self.digit_count) = (0, 0);
    }
}

/// Decoder of quoted-printable (RFC 2045 section 6.7): an equals sign that begins neither an octet nor a soft line
/// break is passed on as sent, and spaces at the end of a line are removed.
#[derive(Debug, Default)]
pub(super) struct QuotedPrintable {
    after: After,
    /// Octets since the state `after` began.
    held: Vec<u8>,
}

state! {
    struct QuotedPrintable { after, held }
    // An equals sign, spaces, and CR.
    if |decoder| decoder.held.len() <= BLANKS_LEN_MAX + 2
}

/// What precedes the next octet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum After {
    /// Text.
    #[default]
    Text,
    /// Spaces.
    Blanks,
    /// Spaces and CR.
    BlanksCr,
    /// An equals sign.
    Equals,
    /// An equals sign and a hexadecimal digit.
    Digit(u8),
    /// An equals sign and spaces.
    EqualsBlanks,
    /// An equals sign, and CR.
    EqualsCr,
}

state! { enum After {
    0 = Text,
    1 = Blanks,
    2 = BlanksCr,
    3 = Equals,
    4 = Digit(first),
    5 = EqualsBlanks,
    6 = EqualsCr,
} }

impl QuotedPrintable {
    fn decode(&mut self, octets: &[u8], out: &mut Chunk<'_>) {
        octets.iter().for_each(|octet| self.octet(*octet, out));
    }

    fn octet(&mut self, octet: u8, out: &mut Chunk<'_>) {
        let is_blank = matches!(octet, b' ' | b'\t');
        let next = match (self.after, octet) {
            (After::Text, b'=') => After::Equals,
            (After::Text, _) if is_blank => After::Blanks,
            (After::Text, _) => return out.push(octet),
            (After::Blanks, b'\r') => After::BlanksCr,
            (After::Equals | After::EqualsBlanks, b'\r') => After::EqualsCr,
            (After::Blanks, _) if is_blank && self.held.len() < BLANKS_LEN_MAX => After::Blanks,
            (After::Equals | After::EqualsBlanks, _) if is_blank && self.held.len() < BLANKS_LEN_MAX => {
                After::EqualsBlanks
            }
            (After::Blanks, b'\n') => {
                self.clear();
                return out.push(octet);
            }
            (After::BlanksCr, b'\n') => {
                self.clear();
                out.push(b'\r');
                return out.push(octet);
            }
            (After::Equals | After::EqualsBlanks | After::EqualsCr, b'\n') => return self.clear(),
            (After::Equals, _) if octet.is_ascii_hexdigit() => After::Digit(digit(octet)),
            (After::Digit(first), _) if octet.is_ascii_hexdigit() => {
                self.clear();
                return out.push(first << 4 | digit(octet));
            }
            _ => {
                self.release(out);
                return self.octet(octet, out);
            }
        };
        self.held.push(octet);
        self.after = next;
    }

    fn clear(&mut self) {
        self.held.clear();
        self.after = After::Text;
    }

    /// Passes on what is held, as sent.
    fn release(&mut self, out: &mut Chunk<'_>) {
        self.held.iter().for_each(|octet| out.push(*octet));
        self.clear();
    }

    /// Ends the data, which ends its last line.
    fn end(&mut self, out: &mut Chunk<'_>) {
        match self.after {
            After::Blanks | After::Equals | After::EqualsBlanks => self.clear(),
            _ => self.release(out),
        }
    }
}

/// Returns the value of a hexadecimal digit; lower case, which is not valid, is accepted too.
const fn digit(octet: u8) -> u8 {
    match octet {
        b'a'..=b'f' => octet - b'a' + 10,
        b'A'..=b'F' => octet - b'A' + 10,
        _ => octet.wrapping_sub(b'0'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoding: &str, text: &str, piece_len: usize) -> String {
        let mut decoder = Decoder::of(Some(encoding.as_bytes()));
        let mut all = Vec::new();
        for piece in text.as_bytes().chunks(piece_len) {
            decoder.decode(piece, &mut |octets| all.extend(octets));
        }
        decoder.end(&mut |octets| all.extend(octets));
        String::from_utf8(all).expect("text")
    }

    #[test]
    fn transfer_encodings_are_decoded_in_any_pieces() {
        let cases = [
            // RFC 4648 section 10, with line ends, other octets, and data behind the padding.
            ("base64", "", ""),
            ("BASE64", "Zg==", "f"),
            ("base64", "Zm9vYmE=", "fooba"),
            ("base64", "Zm9v\r\nYmFy", "foobar"),
            ("base64 ", " Zm*9v\r\nYg==Zm9v", "foob"),
            ("base64", "Zm9vYmE", "fooba"),
            ("base64", "Zm9vY", "foo"),
            // RFC 2045 section 6.7.
            (
                "quoted-printable",
                "Now's the time =\r\nfor all folk to come=\r\n to the aid of their country.",
                "Now's the time for all folk to come to the aid of their country.",
            ),
            ("Quoted-Printable", "a=3Db=c3=A4 \t\r\n=20\t\nend ", "a=b\u{e4}\r\n \nend"),
            ("quoted-printable", "a= \t\r\nb=\nc=", "abc"),
            ("quoted-printable", "=x=4=4g=\r=  x \r \ty=4", "=x=4=4g=\r=  x \r \ty=4"),
            ("8bit", "a=3D \r\n", "a=3D \r\n"),
        ];
        for (encoding, text, expected) in cases {
            for piece_len in 1..=text.len().max(1) {
                assert_eq!(decoded(encoding, text, piece_len), expected, "{text:?} by {piece_len}");
            }
        }
    }

    #[test]
    fn spaces_are_held_up_to_a_limit() {
        let many = " ".repeat(BLANKS_LEN_MAX + 1);
        assert_eq!(decoded("quoted-printable", &format!("a{many}\n"), 7), format!("a{}\n", &many[1..]));
        assert_eq!(decoded("quoted-printable", &format!("a{}\n", &many[1..]), 7), "a\n");
    }

    #[test]
    fn base64_continues_with_the_line_behind_a_gap() {
        let mut decoder = Decoder::of(Some(b"base64"));
        let mut all: Vec<u8> = Vec::new();
        decoder.decode(b"Zm9vYm", &mut |octets| all.extend(octets));
        decoder.gap(&mut |octets| all.extend(octets));
        decoder.decode(b"Fy\r\nZm9v", &mut |octets| all.extend(octets));
        assert_eq!(all, b"foobfoo");
    }
}
