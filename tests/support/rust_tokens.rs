//! Words and signs of Rust source texts.

/// What the rules need of a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// `::`
    Colons,
    Sign(char),
}

/// Words and signs with their line numbers; comments, literals and lifetimes left out.
pub(crate) fn tokens(text: &str) -> Vec<(usize, Token)> {
    let chars: Vec<char> = text.chars().collect();
    let at = |place: usize| chars.get(place).copied().unwrap_or('\0');
    let (mut out, mut place, mut line) = (Vec::new(), 0, 1);
    while place < chars.len() {
        let start = place;
        match (at(place), at(place + 1)) {
            ('/', '/') => {
                while place < chars.len() && at(place) != '\n' {
                    place += 1;
                }
            }
            ('/', '*') => place = block_comment_end(&chars, place),
            ('"', _) => place = string_end(&chars, place),
            ('r', '"' | '#') if raw_string_end(&chars, place).is_some() => {
                place = raw_string_end(&chars, place).unwrap_or(place + 1);
            }
            ('\'', '\\') => {
                place += 3;
                while place < chars.len() && at(place - 1) != '\'' {
                    place += 1;
                }
            }
            ('\'', _) if at(place + 2) == '\'' => place += 3,
            ('\'', _) => place += 1,
            (':', ':') => {
                out.push((line, Token::Colons));
                place += 2;
            }
            (letter, _) if letter.is_alphanumeric() || letter == '_' => {
                while at(place).is_alphanumeric() || at(place) == '_' {
                    place += 1;
                }
                out.push((line, Token::Word(chars[start..place].iter().collect())));
            }
            (sign, _) => {
                if !sign.is_whitespace() {
                    out.push((line, Token::Sign(sign)));
                }
                place += 1;
            }
        }
        line += chars[start..place.min(chars.len())].iter().filter(|letter| **letter == '\n').count();
    }
    out
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut depth, mut place) = (0, start);
    while place < chars.len() {
        match (chars[place], chars.get(place + 1)) {
            ('/', Some('*')) => (depth, place) = (depth + 1, place + 2),
            ('*', Some('/')) if depth == 1 => return place + 2,
            ('*', Some('/')) => (depth, place) = (depth - 1, place + 2),
            _ => place += 1,
        }
    }
    place
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut place = start + 1;
    while place < chars.len() && chars[place] != '"' {
        place += if chars[place] == '\\' { 2 } else { 1 };
    }
    place + 1
}

fn raw_string_end(chars: &[char], start: usize) -> Option<usize> {
    let hash_count = chars[start + 1..].iter().take_while(|letter| **letter == '#').count();
    let mut place = start + 1 + hash_count;
    if chars.get(place) != Some(&'"') {
        return None;
    }
    place += 1;
    loop {
        if *chars.get(place)? == '"'
            && chars[place + 1..].iter().take(hash_count).filter(|letter| **letter == '#').count()
                == hash_count
        {
            return Some(place + 1 + hash_count);
        }
        place += 1;
    }
}
