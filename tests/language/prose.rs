//! Text for readers in source files: comments and string literals of Rust, comments of TOML and shell files, and pages.
//!
//! A file is first masked: everything that is not such text becomes [`BREAK`], and line breaks stay, so that positions
//! still have their line numbers. The words of the rest are then compared with the list.

use std::path::Path;

/// Replaces a character that is not text. A phrase does not extend over it.
const BREAK: char = '\0';

/// One word in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: String,
    pub line: usize,
    /// Only spaces, hyphens or one line break separate it from the word before it.
    pub is_joined: bool,
}

/// Words of the text for readers in a file, according to its name.
pub(crate) fn words_of_file(path: &Path, text: &str) -> Vec<Word> {
    let mut chars: Vec<char> = text.chars().collect();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("md") => {}
        Some("rs") => mask_rust(&mut chars),
        _ => mask_script(&mut chars),
    }
    mask_fences(&mut chars);
    mask_code_spans(&mut chars);
    mask_links(&mut chars);
    words(&chars)
}

/// Words of an identifier: `FlowKey` and `flow_key` are "flow" and "key".
pub(crate) fn words_of_name(name: &str, line: usize) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut was_lower = false;
    let mut begins = true;
    for letter in name.chars() {
        if letter == '_' {
            begins = true;
            continue;
        }
        if begins || (letter.is_uppercase() && was_lower) {
            out.push(Word { text: String::new(), line, is_joined: !out.is_empty() });
        }
        begins = false;
        was_lower = letter.is_lowercase() || letter.is_numeric();
        if let Some(word) = out.last_mut() {
            word.text.extend(letter.to_lowercase());
        }
    }
    out
}

fn words(chars: &[char]) -> Vec<Word> {
    let (mut out, mut line, mut position) = (Vec::new(), 1, 0);
    let (mut is_joined, mut line_breaks) = (false, 0);
    while let Some(&letter) = chars.get(position) {
        if letter.is_alphanumeric() {
            let start = position;
            while is_in_word(chars, position) {
                position += 1;
            }
            let text = chars[start..position].iter().flat_map(|letter| letter.to_lowercase()).collect();
            out.push(Word { text, line, is_joined });
            (is_joined, line_breaks) = (true, 0);
            continue;
        }
        if letter == '\n' {
            line += 1;
            line_breaks += 1;
        }
        // A blank line ends a paragraph.
        is_joined &= (letter.is_whitespace() || letter == '-' || letter == '_') && line_breaks < 2;
        position += 1;
    }
    out
}

fn is_in_word(chars: &[char], position: usize) -> bool {
    let is_letter = |position: usize| chars.get(position).is_some_and(|letter| letter.is_alphanumeric());
    let is_apostrophe = matches!(chars.get(position), Some('\'' | '’'));
    is_letter(position) || (is_apostrophe && is_letter(position + 1))
}

fn mask(chars: &mut [char], from: usize, to: usize) {
    let to = to.min(chars.len());
    for letter in chars.iter_mut().take(to).skip(from).filter(|letter| !letter.is_whitespace()) {
        *letter = BREAK;
    }
}

/// Keeps comments and the contents of string literals. Byte strings contain data, not text.
fn mask_rust(chars: &mut [char]) {
    let mut position = 0;
    while position < chars.len() {
        let start = position;
        let next = chars.get(position + 1).copied();
        match (chars[position], next) {
            ('/', Some('/')) => {
                while chars.get(position).is_some_and(|letter| matches!(letter, '/' | '!')) {
                    chars[position] = ' ';
                    position += 1;
                }
                while chars.get(position).is_some_and(|letter| *letter != '\n') {
                    position += 1;
                }
            }
            ('/', Some('*')) => {
                position += 2;
                let mut depth = 1;
                while depth > 0 && position < chars.len() {
                    match (chars[position], chars.get(position + 1)) {
                        ('/', Some('*')) => (depth, position) = (depth + 1, position + 2),
                        ('*', Some('/')) => (depth, position) = (depth - 1, position + 2),
                        _ => position += 1,
                    }
                }
                mask(chars, start, start + 2);
                mask(chars, position.saturating_sub(2), position);
            }
            ('"', _) => {
                let end = string_end(chars, position);
                mask_string(chars, position, end);
                position = end;
            }
            ('r', Some('"' | '#')) if raw_string_end(chars, position).is_some() => {
                let end = raw_string_end(chars, position).unwrap_or(position + 1);
                mask_placeholders(chars, position, end);
                mask(chars, start, start + 1);
                position = end;
            }
            ('\'', Some('\\')) => {
                position += 3;
                while position < chars.len() && chars[position - 1] != '\'' {
                    position += 1;
                }
                mask(chars, start, position);
            }
            ('\'', _) if chars.get(position + 2) == Some(&'\'') => {
                position += 3;
                mask(chars, start, position);
            }
            (letter, _) if letter.is_alphanumeric() || letter == '_' => {
                while chars.get(position).is_some_and(|letter| letter.is_alphanumeric() || *letter == '_') {
                    position += 1;
                }
                match (&chars[start..position], chars.get(position)) {
                    (['b'], Some('"')) => position = string_end(chars, position),
                    (['b', 'r'], Some('"' | '#')) => {
                        position = raw_string_end(chars, position - 1).unwrap_or(position);
                    }
                    _ => {}
                }
                mask(chars, start, position);
            }
            _ => {
                position += 1;
                mask(chars, start, position);
            }
        }
    }
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut position = start + 1;
    while position < chars.len() && chars[position] != '"' {
        position += if chars[position] == '\\' { 2 } else { 1 };
    }
    (position + 1).min(chars.len())
}

fn raw_string_end(chars: &[char], start: usize) -> Option<usize> {
    let hash_count = chars[start + 1..].iter().take_while(|letter| **letter == '#').count();
    let mut position = start + 1 + hash_count;
    if chars.get(position) != Some(&'"') {
        return None;
    }
    loop {
        position += 1;
        let hashes = chars[position..].iter().skip(1).take_while(|letter| **letter == '#').count();
        if *chars.get(position)? == '"' && hashes >= hash_count {
            return Some(position + 1 + hash_count);
        }
    }
}

/// Masks quotes and placeholders, and replaces escapes by spaces.
fn mask_string(chars: &mut [char], start: usize, end: usize) {
    mask(chars, start, start + 1);
    mask(chars, end - 1, end);
    let mut position = start + 1;
    while position + 1 < end {
        if chars[position] == '\\' {
            chars[position] = ' ';
            if chars[position + 1] != '\n' {
                chars[position + 1] = ' ';
            }
            position += 1;
        }
        position += 1;
    }
    mask_placeholders(chars, start, end);
}

fn mask_placeholders(chars: &mut [char], start: usize, end: usize) {
    let mut position = start;
    while position < end {
        if chars[position] == '{'
            && let Some(length) = chars[position..end].iter().position(|letter| *letter == '}')
        {
            mask(chars, position, position + length + 1);
            position += length;
        }
        position += 1;
    }
}

/// Keeps comments of TOML and shell files: `#` at the start of a line or after a space, outside of quotes.
fn mask_script(chars: &mut [char]) {
    let mut line_start = 0;
    while line_start < chars.len() {
        let length = chars[line_start..].iter().position(|letter| *letter == '\n');
        let line_end = length.map_or(chars.len(), |length| line_start + length);
        let (mut quote, mut position) = (None, line_start);
        while position < line_end {
            let letter = chars[position];
            let is_after_space = position == line_start || chars[position - 1].is_whitespace();
            match (letter, quote) {
                ('#', None) if is_after_space => break,
                ('"' | '\'', None) => quote = Some(letter),
                (_, Some(opening)) if opening == letter => quote = None,
                _ => {}
            }
            position += 1;
        }
        mask(chars, line_start, position);
        if let Some(sign) = chars.get_mut(position)
            && *sign == '#'
        {
            *sign = ' ';
        }
        line_start = line_end + 1;
    }
}

/// Masks fenced blocks: the lines between two lines that begin with three backticks.
fn mask_fences(chars: &mut [char]) {
    let (mut line_start, mut is_fenced) = (0, false);
    while line_start < chars.len() {
        let length = chars[line_start..].iter().position(|letter| *letter == '\n');
        let line_end = length.map_or(chars.len(), |length| line_start + length);
        let line = &chars[line_start..line_end];
        let first = line.iter().position(|letter| !letter.is_whitespace()).unwrap_or(0);
        let is_fence = line[first..].starts_with(&['`'; 3]);
        is_fenced ^= is_fence;
        if is_fenced || is_fence {
            mask(chars, line_start, line_end);
        }
        line_start = line_end + 1;
    }
}

/// Masks code spans. A span does not extend over the end of its paragraph.
fn mask_code_spans(chars: &mut [char]) {
    let mut position = 0;
    while position < chars.len() {
        let ticks = tick_count(chars, position);
        if ticks == 0 {
            position += 1;
            continue;
        }
        let (mut end, mut line_breaks) = (position + ticks, 0);
        let closing = loop {
            match chars.get(end) {
                None | Some(&BREAK) => break None,
                Some('`') if tick_count(chars, end) == ticks => break Some(end + ticks),
                Some('`') => end += tick_count(chars, end),
                Some('\n') if line_breaks == 1 => break None,
                Some(letter) => {
                    line_breaks = match letter {
                        '\n' => line_breaks + 1,
                        letter if letter.is_whitespace() => line_breaks,
                        _ => 0,
                    };
                    end += 1;
                }
            }
        };
        let end = closing.unwrap_or(position + ticks);
        mask(chars, position, end);
        position = end;
    }
}

fn tick_count(chars: &[char], position: usize) -> usize {
    chars[position..].iter().take_while(|letter| **letter == '`').count()
}

/// Masks addresses, the targets of links, and names of files and hosts: words with a dot between them.
fn mask_links(chars: &mut [char]) {
    let mut position = 0;
    while position < chars.len() {
        let rest = &chars[position..];
        let is_target = rest.starts_with(&[']', '(']);
        let is_address = rest.starts_with(&[':', '/', '/']);
        let length = if is_target || is_address {
            length_until(rest, |letter| letter.is_whitespace() || letter == ')')
        } else {
            let length = length_until(rest, |letter| !is_in_name(letter));
            let is_dotted = rest[..length].windows(3).any(|letters| {
                letters[1] == '.' && letters[0].is_alphanumeric() && letters[2].is_alphanumeric()
            });
            if is_dotted { length } else { 0 }
        };
        mask(chars, position, position + length);
        position += length.max(1);
        // A name is not looked for within itself.
        while length == 0
            && is_in_name(chars[position - 1])
            && chars.get(position).is_some_and(|letter| is_in_name(*letter))
        {
            position += 1;
        }
    }
}

fn is_in_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | '/')
}

fn length_until(chars: &[char], is_end: impl Fn(char) -> bool) -> usize {
    chars.iter().position(|letter| is_end(*letter)).unwrap_or(chars.len())
}
