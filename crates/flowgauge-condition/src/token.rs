//! The words, values and symbols of conditions.

use crate::problem::{Problem, Span};

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or keyword.
    Word,
    /// A name in backticks.
    Quoted,
    Number,
    /// A text in single or double quotes.
    Text,
    /// An operator, parenthesis, comma or period.
    Symbol,
}

/// A part of a condition. The text is that between quotes, in which a doubled quote is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    pub(crate) text: String,
}

impl Token {
    pub(crate) fn is_keyword(&self, keyword: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(keyword)
    }

    pub(crate) fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    /// Returns the problem of the token, which the text describes.
    pub(crate) fn problem(&self, text: &str) -> Problem {
        Problem::at(self.span, format!("`{}` {text}", self.text))
    }
}

/// Operators of several characters, longest first, so that those that are not supported are named as a whole.
const LONG_SYMBOLS: [&str; 10] = ["<=>", "==", "!=", "<>", "<=", ">=", "<<", ">>", "&&", "||"];

/// Splits a condition into tokens.
///
/// # Errors
///
/// Returns the problem of a text without its closing quote, or of a number with letters.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, Problem> {
    let letters: Vec<char> = text.chars().collect();
    let mut tokens: Vec<Token> = Vec::new();
    let mut place = 0;
    while let Some(&letter) = letters.get(place) {
        if letter.is_whitespace() {
            place += 1;
            continue;
        }
        let rest = letters.get(place..).unwrap_or_default();
        let (kind, text, len) = match letter {
            '\'' | '"' | '`' => quoted(rest, letter).ok_or_else(|| {
                let span = Span { start: place + 1, end: place + 2 };
                Problem::at(span, format!("the text has no closing {letter}"))
            })?,
            letter
                if starts_number(
                    letter,
                    rest.get(1),
                    tokens.last().filter(|last| last.span.end == place + 1),
                ) =>
            {
                let len = number_len(rest);
                (Kind::Number, rest.iter().take(len).collect(), len)
            }
            letter if is_in_word(letter) => {
                let len = rest.iter().take_while(|letter| is_in_word(**letter)).count();
                (Kind::Word, rest.iter().take(len).collect(), len)
            }
            letter => {
                let is_next = |symbol: &&&str| symbol.chars().eq(rest.iter().take(symbol.len()).copied());
                let long = LONG_SYMBOLS.iter().find(is_next);
                let symbol = long.map_or_else(|| letter.to_string(), |symbol| (*symbol).to_owned());
                (Kind::Symbol, symbol, long.map_or(1, |symbol| symbol.len()))
            }
        };
        let span = Span { start: place + 1, end: place + len + 1 };
        place += len;
        if kind == Kind::Number && letters.get(place).copied().is_some_and(is_in_word) {
            let unit = letters.get(place..).unwrap_or_default();
            let unit: String = unit.iter().take_while(|letter| is_in_word(**letter)).collect();
            let text = format!("a number with a unit needs quotes: '{text}{unit}'");
            return Err(Problem::at(Span { end: span.end + unit.chars().count(), ..span }, text));
        }
        tokens.push(Token { kind, span, text });
    }
    Ok(tokens)
}

fn is_in_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns whether a number begins here, directly after another token. The period after a name is not one.
fn starts_number(letter: char, next: Option<&char>, before: Option<&Token>) -> bool {
    let is_after_name = before.is_some_and(|token| matches!(token.kind, Kind::Word | Kind::Quoted));
    letter.is_ascii_digit() || letter == '.' && next.is_some_and(char::is_ascii_digit) && !is_after_name
}

/// Returns the number of characters of a number: digits with a period, and an exponent.
fn number_len(letters: &[char]) -> usize {
    let digits = |from: usize| {
        let rest = letters.get(from..).unwrap_or_default();
        rest.iter().take_while(|letter| letter.is_ascii_digit()).count()
    };
    let mut len = digits(0);
    if letters.get(len) == Some(&'.') {
        len += 1 + digits(len + 1);
    }
    if matches!(letters.get(len), Some('e' | 'E')) {
        let sign = usize::from(matches!(letters.get(len + 1), Some('+' | '-')));
        let exponent = digits(len + 1 + sign);
        len += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    len
}

/// Returns the content of a text or name in quotes, and the number of characters with the quotes; `None` without an end.
fn quoted(letters: &[char], quote: char) -> Option<(Kind, String, usize)> {
    let mut text = String::new();
    let mut place = 1;
    loop {
        let letter = *letters.get(place)?;
        place += 1;
        if letter == quote {
            if letters.get(place) != Some(&quote) {
                break;
            }
            place += 1;
        }
        text.push(letter);
    }
    Some((if quote == '`' { Kind::Quoted } else { Kind::Text }, text, place))
}
