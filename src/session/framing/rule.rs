//! The description of a framing, and where a PDU ends by it.

use crate::session::parser::Fault;
use crate::session::protocol::{Role, StreamSearch};

/// Number of octets of a PDU that are kept if [`Framing::keep`] states no other.
const KEEP_DEFAULT: usize = 2048;

/// Width and octet order of a length field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    len: usize,
    is_little: bool,
}

macro_rules! widths {
    ($($name:ident: $len:literal, $is_little:literal, $doc:literal;)+) => {
        impl Width {$(
            #[doc = concat!("A length field of ", $doc, ".")]
            pub const $name: Self = Self { len: $len, is_little: $is_little };
        )+}
    };
}

widths! {
    U8: 1, false, "one octet";
    U16: 2, false, "two octets in network order";
    U24: 3, false, "three octets in network order";
    U32: 4, false, "four octets in network order";
    U16_LE: 2, true, "two octets, least significant first";
    U24_LE: 3, true, "three octets, least significant first";
    U32_LE: 4, true, "four octets, least significant first";
}

impl Width {
    fn read(self, field: &[u8]) -> u64 {
        let shift = |value: u64, octet: &u8| value << 8 | u64::from(*octet);
        if self.is_little { field.iter().rev().fold(0, shift) } else { field.iter().fold(0, shift) }
    }
}

/// Result of the search for the end of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Nothing is known until this many octets of the PDU are available.
    Need(usize),
    /// The PDU has this many octets.
    Pdu(u64),
    /// The octets are not a PDU.
    Bad(Fault),
}

impl Cut {
    /// Changes the length of a PDU.
    #[must_use]
    pub fn map(self, change: impl FnOnce(u64) -> u64) -> Self {
        if let Self::Pdu(len) = self { Self::Pdu(change(len)) } else { self }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    Length { at: usize, width: Width, plus: i64 },
    Varint { at: usize },
    Ber,
    Lines { are_counted: bool },
    Head { body_len: fn(&[u8]) -> u64 },
    By(fn(Role, &[u8]) -> Cut),
}

/// How PDUs follow each other in a stream: a constant of each protocol.
///
/// ```
/// use flowgauge::session::framing::{Cut, Framing, Width};
///
/// const DNS_TCP: Framing = Framing::prefix(Width::U16).keep(65_535);
/// const TPKT: Framing = Framing::length(2, Width::U16);
/// const SMB: Framing = Framing::length(1, Width::U24).plus(4);
/// const MYSQL: Framing = Framing::length(0, Width::U24_LE).plus(4);
/// const BGP: Framing = Framing::length(16, Width::U16).len_max(4096);
/// const LDAP: Framing = Framing::BER;
/// const MQTT: Framing = Framing::varint(1);
/// // The first PDU of a client has no tag; its length is less than 2^24.
/// const POSTGRESQL: Framing = Framing::by(|_, octets| match octets {
///     [0, ..] => Framing::length(0, Width::U32).measure(octets),
///     _ => Framing::length(1, Width::U32).plus(1).measure(octets),
/// });
/// // The length leaves out the first five octets, and the checksum of each block of 16 octets.
/// const DNP3: Framing = Framing::by(|_, octets| {
///     let blocks = |len: u64| len.saturating_sub(10).div_ceil(16);
///     Framing::length(2, Width::U8).plus(5).measure(octets).map(|len| len + 2 * blocks(len))
/// });
///
/// assert_eq!(DNS_TCP.measure(&[0, 7]), Cut::Pdu(9));
/// assert_eq!(TPKT.measure(&[3, 0, 0]), Cut::Need(4));
/// assert_eq!(SMB.measure(&[0, 0, 0, 64]), Cut::Pdu(68));
/// assert_eq!(MYSQL.measure(&[1, 0, 0, 0, 0x0e]), Cut::Pdu(5));
/// assert_eq!(BGP.measure(&[[0xff; 16].as_slice(), &[0, 19]].concat()), Cut::Pdu(19));
/// assert_eq!(LDAP.measure(&[0x30, 0x82, 1, 0]), Cut::Pdu(260));
/// assert_eq!(MQTT.measure(&[0x30, 0x80, 0x01]), Cut::Pdu(131));
/// assert_eq!(POSTGRESQL.measure(&[b'Z', 0, 0, 0, 5]), Cut::Pdu(6));
/// assert_eq!(POSTGRESQL.measure(&[0, 0, 0, 8]), Cut::Pdu(8));
/// assert_eq!(DNP3.measure(&[5, 0x64, 5 + 17]), Cut::Pdu(10 + 17 + 4));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    pub(super) rule: Rule,
    /// Length of the field that is removed in front of a PDU; 0 if none is.
    pub(super) prefix_len: usize,
    pub(super) keep: usize,
    len_max: u64,
    pub(super) resync: Option<StreamSearch>,
    /// True if octets that are not kept are passed on.
    pub(super) has_rest: bool,
}

impl Framing {
    /// A definite length of BER (X.690 section 8.1.3) after one octet of tag.
    pub const BER: Self = Self::of(Rule::Ber);
    /// Lines that end with LF. A line that is longer than [`keep`](Self::keep) is truncated. After a gap, the rest of
    /// a line is skipped.
    pub const LINES: Self = Self::of(Rule::Lines { are_counted: false });
    /// As [`LINES`](Self::LINES), but a line may follow its length in decimal digits and a space (RFC 6587 section 3.4.1), which are
    /// part of the PDU. It may then contain LF.
    pub const COUNTED_LINES: Self = Self::of(Rule::Lines { are_counted: true });

    /// Fault: a PDU is longer than the protocol allows.
    pub const TOO_LONG: Fault = Fault::new("length_too_great");
    /// Fault: a length field states fewer octets than are before its end.
    pub const TOO_SHORT: Fault = Fault::new("length_too_small");
    /// Fault: a length is not one of its encoding.
    pub const MALFORMED: Fault = Fault::new("malformed_length");

    const fn of(rule: Rule) -> Self {
        Self {
            rule,
            prefix_len: 0,
            keep: KEEP_DEFAULT,
            len_max: u32::MAX as u64,
            resync: None,
            has_rest: false,
        }
    }

    /// A length field at an offset from the first octet of the PDU, which counts all octets of the PDU.
    #[must_use]
    pub const fn length(at: usize, width: Width) -> Self {
        Self::of(Rule::Length { at, width, plus: 0 })
    }

    /// A length field in front of each PDU, which counts the octets after it. The field is not part of the PDU.
    #[must_use]
    pub const fn prefix(width: Width) -> Self {
        Self { prefix_len: width.len, ..Self::length(0, width).plus(width.len as i64) }
    }

    /// A length of at most four octets with seven bits each, least significant first, at an offset, which counts the octets
    /// after it (MQTT).
    #[must_use]
    pub const fn varint(at: usize) -> Self {
        Self::of(Rule::Varint { at })
    }

    /// A head of lines up to an empty one, then a body, whose length in octets `body_len` reads from the head (SIP, RTSP). An
    /// empty line in front of a head is a PDU.
    #[must_use]
    pub const fn head(body_len: fn(&[u8]) -> u64) -> Self {
        Self::of(Rule::Head { body_len })
    }

    /// A function that finds the end of a PDU. It is called with at least one octet, once per input, and should take
    /// constant time.
    #[must_use]
    pub const fn by(cut: fn(Role, &[u8]) -> Cut) -> Self {
        Self::of(Rule::By(cut))
    }

    /// Adds octets that the length field does not count; a negative number for octets that it counts too much.
    #[must_use]
    pub const fn plus(self, octets: i64) -> Self {
        match self.rule {
            Rule::Length { at, width, plus } => {
                Self { rule: Rule::Length { at, width, plus: plus + octets }, ..self }
            }
            _ => self,
        }
    }

    /// Buffers only the first octets of a PDU. The others are counted and skipped. At most
    /// [`Limits::session_side_bytes_max`](crate::base::Limits) can be buffered.
    #[must_use]
    pub const fn keep(self, octets: usize) -> Self {
        Self { keep: octets, ..self }
    }

    /// Passes on the octets of a PDU that are not kept as they arrive, each time as a [`Pdu`](super::Pdu) with `is_rest`.
    #[must_use]
    pub const fn with_rest(self) -> Self {
        Self { has_rest: true, ..self }
    }

    /// Refuses PDUs that are longer, with [`TOO_LONG`](Self::TOO_LONG).
    #[must_use]
    pub const fn len_max(self, octets: u64) -> Self {
        Self { len_max: octets, ..self }
    }

    /// Searches the next PDU after a gap that does not end inside of a PDU. Without it, the parser stops.
    #[must_use]
    pub const fn resync(self, search: StreamSearch) -> Self {
        Self { resync: Some(search), ..self }
    }

    /// Returns the end of the PDU of a client that begins with these octets, at least one. The length includes that of the
    /// field of [`prefix`](Self::prefix).
    #[must_use]
    pub fn measure(&self, octets: &[u8]) -> Cut {
        self.find(Role::Client, octets, 0)
    }

    /// Returns the end of a line. Apart from the other rules, which take a few instructions.
    #[inline(never)]
    fn find_line(&self, are_counted: bool, octets: &[u8], seen_len: usize) -> Cut {
        if are_counted && let Some((len, head_len)) = counted(octets) {
            return Cut::Pdu(head_len as u64 + len);
        }
        let new = octets.get(seen_len..).unwrap_or_default();
        match memchr::memchr(b'\n', new) {
            // The length is the same whether the end of a long line was available or not.
            Some(end) => Cut::Pdu((seen_len + end + 1).min(self.keep + 1) as u64),
            None if octets.len() > self.keep => Cut::Pdu((self.keep + 1) as u64),
            None => Cut::Need(octets.len() + 1),
        }
    }

    /// Returns the end of a head and its body.
    #[inline(never)]
    fn find_head(&self, body_len: fn(&[u8]) -> u64, octets: &[u8], seen_len: usize) -> Cut {
        if let [b'\n', ..] | [b'\r', b'\n', ..] = octets {
            return Cut::Pdu(if octets.starts_with(b"\n") { 1 } else { 2 });
        }
        // The empty line may begin with octets that were there before.
        let from = seen_len.saturating_sub(3);
        for end in memchr::memchr_iter(b'\n', octets.get(from..).unwrap_or_default()) {
            let end = from + end + 1;
            let empty_len = match octets.get(end..) {
                Some([b'\n', ..]) => 1,
                Some([b'\r', b'\n', ..]) => 2,
                _ => continue,
            };
            let head_len = end + empty_len;
            let body_len = body_len(octets.get(..head_len).unwrap_or_default());
            return Cut::Pdu((head_len as u64).saturating_add(body_len));
        }
        if octets.len() >= self.keep { Cut::Bad(Self::TOO_LONG) } else { Cut::Need(octets.len() + 1) }
    }

    /// Returns whether the next PDU is found after the end of a line.
    pub(super) const fn has_lines(&self) -> bool {
        matches!(self.rule, Rule::Lines { .. })
    }

    /// Returns whether the length of a PDU is found by a search, which is not repeated.
    pub(super) const fn has_heads(&self) -> bool {
        matches!(self.rule, Rule::Head { .. })
    }

    /// Returns whether a PDU that begins with these octets is a line, whose end is searched for.
    #[inline(never)]
    pub(super) fn is_line(&self, octets: &[u8]) -> bool {
        match self.rule {
            Rule::Lines { are_counted } => !are_counted || counted(octets).is_none(),
            _ => false,
        }
    }

    pub(super) fn find(&self, from: Role, octets: &[u8], seen_len: usize) -> Cut {
        let cut = match self.rule {
            Rule::Length { at, width, plus } => match octets.get(at..at + width.len) {
                None => Cut::Need(at + width.len),
                Some(field) => match width.read(field).checked_add_signed(plus) {
                    Some(len) if len >= (at + width.len) as u64 => Cut::Pdu(len),
                    _ => Cut::Bad(Self::TOO_SHORT),
                },
            },
            Rule::Varint { at } => read_varint(at, octets),
            Rule::Ber => read_ber(octets),
            Rule::Lines { are_counted } => self.find_line(are_counted, octets, seen_len),
            Rule::Head { body_len } => self.find_head(body_len, octets, seen_len),
            Rule::By(cut) => cut(from, octets),
        };
        match cut {
            Cut::Pdu(len) if len > self.len_max => Cut::Bad(Self::TOO_LONG),
            Cut::Pdu(0) => Cut::Bad(Self::TOO_SHORT),
            Cut::Need(need) if need > self.keep.max(16) + 1 => Cut::Bad(Self::TOO_LONG),
            cut => cut,
        }
    }
}

/// Returns the length of a message that follows its length in at most six digits and a space (RFC 6587 section 3.4.1), and the
/// length of both.
pub(crate) fn counted(octets: &[u8]) -> Option<(u64, usize)> {
    let digits = octets.iter().take(6).take_while(|octet| octet.is_ascii_digit()).count();
    let is_counted = digits > 0 && octets.first() != Some(&b'0') && octets.get(digits) == Some(&b' ');
    let digits = octets.get(..digits).filter(|_| is_counted)?;
    let len = digits.iter().fold(0, |len, digit| len * 10 + u64::from(digit - b'0'));
    Some((len, digits.len() + 1))
}

/// Reads the length of MQTT (version 5.0, section 1.5.5) at an offset.
fn read_varint(at: usize, octets: &[u8]) -> Cut {
    const LEN_MAX: usize = 4;
    let mut value = 0;
    for place in 0..LEN_MAX {
        let Some(octet) = octets.get(at + place) else { return Cut::Need(at + place + 1) };
        value |= u64::from(octet & 0x7f) << (7 * place);
        if octet & 0x80 == 0 {
            return Cut::Pdu((at + place + 1) as u64 + value);
        }
    }
    Cut::Bad(Framing::MALFORMED)
}

/// Reads a tag of one octet and a definite length of at most four octets.
fn read_ber(octets: &[u8]) -> Cut {
    match octets {
        [tag, ..] if tag & 0x1f == 0x1f => Cut::Bad(Framing::MALFORMED),
        [_, len @ 0..0x80, ..] => Cut::Pdu(2 + u64::from(*len)),
        [_, 0x80 | 0x85.., ..] => Cut::Bad(Framing::MALFORMED),
        [_, count, rest @ ..] => {
            let width = Width { len: usize::from(count & 0x7f), is_little: false };
            match rest.get(..width.len) {
                Some(field) => Cut::Pdu(2 + width.len as u64 + width.read(field)),
                None => Cut::Need(2 + width.len),
            }
        }
        _ => Cut::Need(2),
    }
}
