//! Identifiers and punctuation of Rust source files.

/// A token of a source file, as detailed as the checks need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// `::`
    Colons,
    Sign(char),
}

/// Returns identifiers and punctuation with their line numbers, without comments, literals and lifetimes.
pub(crate) fn tokens(text: &str) -> Vec<(usize, Token)> {
    let chars: Vec<char> = text.chars().collect();
    let at = |position: usize| chars.get(position).copied().unwrap_or('\0');
    let (mut out, mut position, mut line) = (Vec::new(), 0, 1);
    while position < chars.len() {
        let start = position;
        match (at(position), at(position + 1)) {
            ('/', '/') => {
                while position < chars.len() && at(position) != '\n' {
                    position += 1;
                }
            }
            ('/', '*') => position = block_comment_end(&chars, position),
            ('"', _) => position = string_end(&chars, position),
            ('r', '"' | '#') if raw_string_end(&chars, position).is_some() => {
                position = raw_string_end(&chars, position).unwrap_or(position + 1);
            }
            ('\'', '\\') => {
                position += 3;
                while position < chars.len() && at(position - 1) != '\'' {
                    position += 1;
                }
            }
            ('\'', _) if at(position + 2) == '\'' => position += 3,
            ('\'', _) => position += 1,
            (':', ':') => {
                out.push((line, Token::Colons));
                position += 2;
            }
            (letter, _) if letter.is_alphanumeric() || letter == '_' => {
                while at(position).is_alphanumeric() || at(position) == '_' {
                    position += 1;
                }
                out.push((line, Token::Word(chars[start..position].iter().collect())));
            }
            (sign, _) => {
                if !sign.is_whitespace() {
                    out.push((line, Token::Sign(sign)));
                }
                position += 1;
            }
        }
        line += chars[start..position.min(chars.len())].iter().filter(|letter| **letter == '\n').count();
    }
    out
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut depth, mut position) = (0, start);
    while position < chars.len() {
        match (chars[position], chars.get(position + 1)) {
            ('/', Some('*')) => (depth, position) = (depth + 1, position + 2),
            ('*', Some('/')) if depth == 1 => return position + 2,
            ('*', Some('/')) => (depth, position) = (depth - 1, position + 2),
            _ => position += 1,
        }
    }
    position
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut position = start + 1;
    while position < chars.len() && chars[position] != '"' {
        position += if chars[position] == '\\' { 2 } else { 1 };
    }
    position + 1
}

fn raw_string_end(chars: &[char], start: usize) -> Option<usize> {
    let hash_count = chars[start + 1..].iter().take_while(|letter| **letter == '#').count();
    let mut position = start + 1 + hash_count;
    if chars.get(position) != Some(&'"') {
        return None;
    }
    position += 1;
    loop {
        if *chars.get(position)? == '"'
            && chars[position + 1..].iter().take(hash_count).filter(|letter| **letter == '#').count()
                == hash_count
        {
            return Some(position + 1 + hash_count);
        }
        position += 1;
    }
}
