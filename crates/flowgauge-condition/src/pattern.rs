//! Patterns of LIKE: `%` is any text, `_` any character.

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    letters: Vec<Letter>,
    ignores_case: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letter {
    Any,
    AnyText,
    Exactly(char),
}

/// Returns a character in lower case, if that is one character.
fn folded(letter: char) -> char {
    let mut lower = letter.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => letter,
    }
}

impl Pattern {
    /// Parses a pattern. The character behind `escape` stands for itself.
    pub(crate) fn new(text: &str, escape: Option<char>, ignores_case: bool) -> Self {
        let mut letters = Vec::new();
        let mut rest = text.chars();
        while let Some(letter) = rest.next() {
            letters.push(match letter {
                letter if Some(letter) == escape => Letter::Exactly(rest.next().unwrap_or(letter)),
                '%' => Letter::AnyText,
                '_' => Letter::Any,
                letter => Letter::Exactly(letter),
            });
        }
        Self { letters, ignores_case }
    }

    /// Returns whether a whole text matches. Takes time in proportion to the product of both lengths at most.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut place, mut index) = (0, 0);
        // Where the last `%` is, and how much of the text it covers.
        let mut retry = None;
        loop {
            match (self.letters.get(index), text.get(place)) {
                (None, None) => return true,
                (Some(Letter::AnyText), _) => {
                    retry = Some((index, place));
                    index += 1;
                }
                (Some(Letter::Any), Some(_)) => (index, place) = (index + 1, place + 1),
                (Some(Letter::Exactly(expected)), Some(letter)) if self.is_same(*expected, *letter) => {
                    (index, place) = (index + 1, place + 1);
                }
                _ => match retry {
                    Some((star, covered)) if covered < text.len() => {
                        retry = Some((star, covered + 1));
                        (index, place) = (star + 1, covered + 1);
                    }
                    _ => return false,
                },
            }
        }
    }

    fn is_same(&self, expected: char, letter: char) -> bool {
        expected == letter || self.ignores_case && folded(expected) == folded(letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("%.example.org", "www.example.org", true),
            ("%.example.org", "example.org", false),
            ("www.%", "www.", true),
            ("%a%b%", "xxaxxbxx", true),
            ("%a%b%", "xxbxxaxx", false),
            ("_", "\u{20ac}", true),
            ("_", "", false),
            ("a_c", "abc", true),
            ("%aab", "aaaab", true),
            ("10!%", "10%", true),
            ("10!%", "100", false),
            ("A%", "abc", false),
        ] {
            assert_eq!(Pattern::new(pattern, Some('!'), false).matches(text), expected, "{pattern} {text}");
        }
        assert!(Pattern::new("A%\u{c4}", None, true).matches("abc\u{e4}"));
    }

    #[test]
    fn hostile_patterns_take_bounded_time() {
        let text = "a".repeat(5000);
        assert!(!Pattern::new(&("%a".repeat(500) + "b"), None, false).matches(&text));
    }
}
