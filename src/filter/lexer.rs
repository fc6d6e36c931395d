//! Division of a filter expression into tokens.

/// Kind of a token of a filter expression; the token's text contains the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword, name, number, address or port range.
    Word,
    /// A name after a backslash, which makes it a value even if it is a keyword.
    Escaped,
    /// The operator `and` or `&&`.
    And,
    /// The operator `or` or `||`.
    Or,
    /// The operator `not` or `!`.
    Not,
    /// An opening parenthesis, `(`.
    Open,
    /// A closing parenthesis, `)`.
    Close,
    /// A slash, `/`.
    Slash,
    /// A sign that pcap-filter(7) uses for arithmetic on packet octets, such as `[`.
    Arithmetic,
    /// A sign that is not part of the filter language.
    Other,
    /// The end of the expression, after the last token.
    End,
}

/// A token of a filter expression, with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'e> {
    pub(super) kind: TokenKind,
    pub(super) text: &'e str,
    /// Offset in the expression of the first octet of the token.
    pub(super) start: usize,
}

impl Token<'_> {
    /// Returns the offset in the expression of the octet after the token.
    pub(super) const fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Divides a filter expression into tokens, from its start to its end. A copy of the lexer can be used for lookahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'e> {
    expression: &'e str,
    at: usize,
}

impl<'e> Lexer<'e> {
    pub(super) const fn new(expression: &'e str) -> Self {
        Self { expression, at: 0 }
    }

    /// Returns the next token. After the last token, returns [`TokenKind::End`] every time.
    pub(super) fn next(&mut self) -> Token<'e> {
        let rest = self.expression.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let start = self.at + (rest.len() - trimmed.len());
        let (kind, len) = Self::split(trimmed);
        let text = trimmed.get(..len).unwrap_or_default();
        self.at = start + text.len();
        Token { kind, text, start }
    }

    /// Returns the kind of the token at the start of `text`, and its length in octets.
    fn split(text: &str) -> (TokenKind, usize) {
        let Some(first) = text.chars().next() else { return (TokenKind::End, 0) };
        let len = word_len(text);
        // A hyphen may be inside a word but not at its beginning: `-1` is arithmetic.
        if len > 0 && first != '-' {
            let kind = match text.get(..len) {
                Some("and") => TokenKind::And,
                Some("or") => TokenKind::Or,
                Some("not") => TokenKind::Not,
                _ => TokenKind::Word,
            };
            return (kind, len);
        }
        match first {
            '(' => (TokenKind::Open, 1),
            ')' => (TokenKind::Close, 1),
            '/' => (TokenKind::Slash, 1),
            '!' if text.starts_with("!=") => (TokenKind::Arithmetic, 2),
            '!' => (TokenKind::Not, 1),
            '&' if text.starts_with("&&") => (TokenKind::And, 2),
            '|' if text.starts_with("||") => (TokenKind::Or, 2),
            '\\' => match word_len(text.get(1..).unwrap_or_default()) {
                0 => (TokenKind::Other, 1),
                len => (TokenKind::Escaped, 1 + len),
            },
            '[' | ']' | '=' | '<' | '>' | '+' | '-' | '*' | '%' | '^' | '&' | '|' => {
                (TokenKind::Arithmetic, 1)
            }
            other => (TokenKind::Other, other.len_utf8()),
        }
    }
}

/// Returns the number of octets at the start of `text` that can be part of a word: names, numbers, IPv4 and IPv6
/// addresses.
fn word_len(text: &str) -> usize {
    text.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(TokenKind, &str)> {
        let mut lexer = Lexer::new(text);
        std::iter::repeat_with(|| lexer.next())
            .take_while(|token| token.kind != TokenKind::End)
            .map(|token| (token.kind, token.text))
            .collect()
    }

    #[test]
    fn words_and_operators_are_tokens() {
        use TokenKind::*;
        assert_eq!(
            tokens("!(src net fe80::/10&&portrange ftp-data-99)||proto \\tcp"),
            [
                (Not, "!"),
                (Open, "("),
                (Word, "src"),
                (Word, "net"),
                (Word, "fe80::"),
                (Slash, "/"),
                (Word, "10"),
                (And, "&&"),
                (Word, "portrange"),
                (Word, "ftp-data-99"),
                (Close, ")"),
                (Or, "||"),
                (Word, "proto"),
                (Escaped, "\\tcp"),
            ]
        );
        assert_eq!(
            tokens("android ::1 x!=y"),
            [(Word, "android"), (Word, "::1"), (Word, "x"), (Arithmetic, "!="), (Word, "y")]
        );
    }

    #[test]
    fn other_characters_are_tokens() {
        let mut lexer = Lexer::new(" \t\u{a0}\\ ä-1\n");
        let all: Vec<_> = std::iter::repeat_with(|| lexer.next()).take(6).collect();
        let seen: Vec<_> = all.iter().map(|token| (token.kind, token.text, token.start)).collect();
        use TokenKind::*;
        assert_eq!(
            seen,
            [
                (Other, "\u{a0}", 2),
                (Other, "\\", 4),
                (Other, "ä", 6),
                (Arithmetic, "-", 8),
                (Word, "1", 9),
                (End, "", 11)
            ]
        );
        assert_eq!(lexer.next().end(), 11);
    }
}
