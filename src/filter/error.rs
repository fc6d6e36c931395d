//! Errors in a filter expression, with their position.

use std::error::Error;
use std::fmt;

/// Reason why a text is not a valid filter expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterErrorKind {
    /// The filter expression ends in the middle of a term.
    UnexpectedEnd,
    /// A word or sign is not allowed at its position in the filter expression.
    Unexpected,
    /// A word is not part of the filter language.
    UnknownWord,
    /// A word of pcap-filter(7) refers to a property that a flow does not have.
    Unsupported,
    /// The expression reads octets of the packet or computes with them (`tcp[13] & 2`), which requires the packet.
    PacketBytes,
    /// A parenthesis in the filter expression is not closed.
    UnclosedParenthesis,
    /// A value, such as an address or a port, has no qualifier before it.
    BareValue,
    /// A protocol qualifier is not allowed before the type that follows it (`tcp host ...`, `ip port ...`).
    Modifier,
    /// `src` or `dst` is written before `proto`.
    DirectedProtocol,
    /// A host name is used as an address; names are not resolved.
    HostName,
    /// The text is not an IPv4 or IPv6 address.
    Address,
    /// The text has only the first octets of an IPv4 address where a complete address is required.
    PartialAddress,
    /// The IP version of the address is not the version that the qualifiers require.
    AddressFamily,
    /// A mask or prefix length follows a term other than `net`.
    MaskWithoutNet,
    /// The text is not a network mask, or the prefix length exceeds the length of the address.
    Mask,
    /// A network address has bits set beyond its mask.
    HostBits,
    /// The text is neither a port number nor the name of a service that this crate knows.
    Port,
    /// The text is not a range of two ports separated by a hyphen.
    PortRange,
    /// The text is neither a protocol number nor the name of a protocol that this crate knows.
    Protocol,
    /// A protocol name that is also a keyword requires a backslash at its position.
    UnescapedProtocol,
    /// The text is not a VLAN id from 1 to 4095.
    VlanId,
    /// Parentheses are nested deeper than [`DEPTH_MAX`](super::DEPTH_MAX).
    TooDeep,
    /// The filter expression has more than [`TERM_COUNT_MAX`](super::TERM_COUNT_MAX) terms.
    TooLong,
}

/// An invalid filter expression: the reason and the column.
///
/// `Display` writes one line. [`render`](Self::render) shows the expression with carets below the error:
///
/// ```
/// use flowgauge::filter::Filter;
///
/// let expression = "udp or tcp[13] & 2 != 0";
/// let error = Filter::parse(expression).unwrap_err();
/// assert_eq!(
///     error.render(expression),
///     "udp or tcp[13] & 2 != 0\n       ^^^^\ncolumn 8: `tcp[`: not supported: a flow has no packet octets to read or compute with",
/// );
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FilterError {
    kind: FilterErrorKind,
    column: u32,
    width: u32,
    excerpt: Excerpt,
}

/// The first octets of the text at which an error occurred, stored inline so that the error needs no heap.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Excerpt {
    bytes: [u8; Self::MAX],
    len: u8,
}

impl Excerpt {
    const MAX: usize = 39;

    fn new(text: &str) -> Self {
        let mut len = text.len().min(Self::MAX);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let mut bytes = [0; Self::MAX];
        for (to, from) in bytes.iter_mut().zip(text.bytes().take(len)) {
            *to = from;
        }
        Self { bytes, len: len as u8 }
    }

    fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl FilterError {
    /// Creates an error for the text from octet `start` to octet `end` of the filter expression.
    pub(super) fn new(kind: FilterErrorKind, expression: &str, start: usize, end: usize) -> Self {
        let before = expression.get(..start).unwrap_or(expression);
        let text = expression.get(start..end).unwrap_or_default();
        let count = |part: &str| u32::try_from(part.chars().count()).unwrap_or(u32::MAX);
        Self {
            kind,
            column: count(before).saturating_add(1),
            width: count(text).max(1),
            excerpt: Excerpt::new(text),
        }
    }

    /// Returns the kind of the filter error.
    #[must_use]
    pub const fn kind(&self) -> FilterErrorKind {
        self.kind
    }

    /// Returns the position of the error in the expression, in characters counted from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column as usize
    }

    /// Returns the first 39 octets of the text at which the error occurred; empty at the end of the expression.
    #[must_use]
    pub(crate) fn excerpt(&self) -> &str {
        self.excerpt.as_str()
    }

    /// Returns three lines of text: `expression`, which must be the expression that was parsed, carets below the
    /// error, and the error message.
    ///
    /// Line breaks and other control characters are shown as spaces. A long expression is shortened to the part
    /// around the error.
    #[must_use]
    pub fn render(&self, expression: &str) -> String {
        const BEFORE: usize = 60;
        const SHOWN: usize = 100;
        let place = self.column() - 1;
        let skipped = place.saturating_sub(BEFORE);
        let mut lines = String::new();
        if skipped > 0 {
            lines.push('…');
        }
        let mut rest = expression.chars().skip(skipped);
        lines.extend(rest.by_ref().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }));
        if rest.next().is_some() {
            lines.push('…');
        }
        lines.push('\n');
        let indent = place - skipped + usize::from(skipped > 0);
        lines.extend(std::iter::repeat_n(' ', indent));
        let width = (self.width as usize).min((SHOWN + skipped).saturating_sub(place)).max(1);
        lines.extend(std::iter::repeat_n('^', width));
        lines.push('\n');
        lines.push_str(&self.to_string());
        lines
    }

    const fn message(&self) -> &'static str {
        use FilterErrorKind as Kind;
        match self.kind {
            Kind::UnexpectedEnd => "the expression is incomplete",
            Kind::Unexpected => "not allowed here; join terms by `and` or `or`",
            Kind::UnknownWord => "unknown word; keywords are written in lower case",
            Kind::Unsupported => "not supported: a flow does not have this property",
            Kind::PacketBytes => "not supported: a flow has no packet octets to read or compute with",
            Kind::UnclosedParenthesis => "this parenthesis is not closed",
            Kind::BareValue => "write `host`, `net`, `port`, `portrange` or `proto` before this value",
            Kind::Modifier => "cannot qualify the next word; write it as a separate term, joined by `and`",
            Kind::DirectedProtocol => "a protocol has no direction; remove `src` or `dst`",
            Kind::HostName => "not an address; host names are not resolved",
            Kind::Address => "not an IPv4 or IPv6 address",
            Kind::PartialAddress => "not a complete address; use `net` for a part of an address",
            Kind::AddressFamily => "the IP version of this address does not match the qualifier",
            Kind::MaskWithoutNet => "a mask is allowed only after `net`",
            Kind::Mask => "not a valid mask or prefix length for this address",
            Kind::HostBits => "the address has bits set beyond its mask",
            Kind::Port => "neither a port number nor a known service name",
            Kind::PortRange => "not a range of ports, such as 6000-6063",
            Kind::Protocol => "neither a protocol number nor a known protocol name",
            Kind::UnescapedProtocol => "this protocol name is also a keyword; write a backslash before it",
            Kind::VlanId => "not a VLAN id from 1 to 4095",
            Kind::TooDeep => "parentheses are nested too deeply",
            Kind::TooLong => "the expression has too many terms",
        }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (column, message) = (self.column, self.message());
        match self.excerpt() {
            "" => write!(f, "column {column}: {message}"),
            text => write!(f, "column {column}: `{}`: {message}", text.escape_debug()),
        }
    }
}

impl fmt::Debug for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilterError({:?}, {self})", self.kind)
    }
}

impl Error for FilterError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "tcp and ÄÖ";
        let start = text.find('Ö').unwrap();
        let error = FilterError::new(FilterErrorKind::Unexpected, text, start, text.len());
        assert_eq!((error.column(), error.excerpt()), (10, "Ö"));
        assert!(error.render(text).contains("\n         ^\n"));
    }

    #[test]
    fn a_long_expression_is_shortened_around_the_error() {
        let text = format!("{}\nnonsense{}", "tcp or ".repeat(100), " or tcp".repeat(100));
        let start = text.find("nonsense").unwrap();
        let error = FilterError::new(FilterErrorKind::UnknownWord, &text, start, start + 8);
        let shown = error.render(&text);
        let [line, carets, message] = shown.split('\n').collect::<Vec<_>>()[..] else { panic!("{shown}") };
        assert!(line.starts_with('…') && line.ends_with('…') && line.chars().count() == 102);
        let at = carets.find('^').unwrap();
        assert_eq!(line.chars().skip(at).take(carets.len() - at).collect::<String>(), "nonsense");
        assert!(message.starts_with("column 702: `nonsense`: "));
    }

    #[test]
    fn a_long_word_is_shortened_at_a_character_boundary() {
        let word = format!("{}ß", "x".repeat(38));
        let error = FilterError::new(FilterErrorKind::UnknownWord, &word, 0, word.len());
        assert_eq!(error.excerpt(), "x".repeat(38));
        assert!(size_of::<FilterError>() <= 56);
    }
}
