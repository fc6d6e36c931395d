//! Imports point down only: every path in `src` that names another layer names one below it.
//!
//! Comments and string literals are left out, since a link in a doc comment may point up; test code counts. A folder
//! that the table does not know is a failure, so that a new layer is placed here before it is used.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Each layer, and the layers that it may name.
const LAYERS: [(&str, &[&str]); 16] = [
    ("base", &[]),
    ("wire", &["base"]),
    ("link", &["base", "wire"]),
    ("fragment", &["base", "wire", "link"]),
    ("extractor", &["base", "wire", "link", "fragment"]),
    ("dedup", &["base", "wire"]),
    ("record", &["base"]),
    ("codec", &["base"]),
    ("tracker", &["base", "wire", "link", "fragment", "extractor", "record"]),
    ("reassembler", &["base", "wire", "link", "fragment", "extractor", "record", "tracker"]),
    ("session", &["base", "wire", "link", "fragment", "extractor", "record", "tracker", "reassembler"]),
    ("filter", &["base"]),
    ("source", &["base"]),
    ("export", &["base", "record", "codec", "session"]),
    ("bus", &["base", "record", "codec", "session"]),
    (
        "pipeline",
        &[
            "base",
            "wire",
            "link",
            "fragment",
            "extractor",
            "dedup",
            "record",
            "codec",
            "tracker",
            "reassembler",
            "session",
            "filter",
            "source",
            "export",
            "bus",
        ],
    ),
];

/// Macros lie at the root; each belongs to a layer.
const MACROS: [(&str, &str); 1] = [("protocols", "session")];

fn allowed(layer: &str) -> Option<&'static [&'static str]> {
    LAYERS.iter().find(|(name, _)| *name == layer).map(|(_, below)| *below)
}

/// What the rules need of a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `::`
    Colons,
    Sign(char),
}

/// Words and signs with their line numbers; comments, literals and lifetimes left out.
fn tokens(text: &str) -> Vec<(usize, Token)> {
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

/// The names that follow the crate's root in a text, with their lines. `depth` is how many modules deep the file lies:
/// 1 for `tracker/mod.rs`, 2 for `tracker/update.rs`.
fn names_at_root(text: &str, depth: usize) -> Vec<(usize, String)> {
    let tokens = tokens(text);
    let token = |place: usize| tokens.get(place).map(|(_, token)| token);
    let is_word = |place: usize, word: &str| token(place) == Some(&Token::Word(word.to_owned()));
    let (mut out, mut braces) = (Vec::new(), Vec::new());
    let mut place = 0;
    while place < tokens.len() {
        let is_path_start = place == 0 || token(place - 1) != Some(&Token::Colons);
        if token(place) == Some(&Token::Sign('{')) {
            let is_module = place >= 2 && is_word(place - 2, "mod");
            braces.push(is_module);
        } else if token(place) == Some(&Token::Sign('}')) {
            braces.pop();
        } else if is_path_start && is_word(place, "crate") && token(place + 1) == Some(&Token::Colons) {
            names_after(&tokens, place + 2, &mut out);
        } else if is_path_start && is_word(place, "super") {
            let mut super_count = 0;
            let mut end = place;
            while is_word(end, "super") && token(end + 1) == Some(&Token::Colons) {
                super_count += 1;
                end += 2;
            }
            let inner = braces.iter().filter(|is_module| **is_module).count();
            if super_count >= depth + inner {
                names_after(&tokens, end, &mut out);
            }
        }
        place += 1;
    }
    out
}

/// The first segments of the path, or of the group of paths, at a place.
fn names_after(tokens: &[(usize, Token)], start: usize, out: &mut Vec<(usize, String)>) {
    let mut depth = 0;
    let mut is_first = true;
    for (line, token) in &tokens[start..] {
        match token {
            Token::Word(word) if is_first => {
                out.push((*line, word.clone()));
                is_first = false;
            }
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => depth -= 1,
            // Only at the outermost level of a group does a comma begin another path from the root.
            Token::Sign(',') if depth == 1 => is_first = true,
            _ => {}
        }
        if depth <= 0 && !is_first {
            return;
        }
    }
}

fn files_below(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            files_below(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
    out.sort();
}

/// What is wrong with a file, given by its path below `src`.
fn violations(path: &str, text: &str) -> Vec<String> {
    let modules: Vec<&str> = path.trim_end_matches(".rs").split('/').filter(|name| *name != "mod").collect();
    let layer = modules[0];
    if layer == "bin" || layer == "lib" {
        return Vec::new();
    }
    let Some(below) = allowed(layer) else {
        return vec![format!("{path}: layer `{layer}` has no place in tests/layering.rs")];
    };
    let mut out = Vec::new();
    for (line, name) in names_at_root(text, modules.len()) {
        let home = MACROS.iter().find(|(known, _)| *known == name).map(|(_, home)| (*home).to_owned());
        let name = home.unwrap_or(name);
        if name == layer || below.contains(&name.as_str()) {
            continue;
        }
        out.push(if allowed(&name).is_some() {
            format!("{path}:{line}: `{layer}` may not use `{name}`")
        } else {
            format!("{path}:{line}: `crate::{name}` is no layer; name the layer that it comes from")
        });
    }
    out
}

#[test]
fn imports_point_down() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    files_below(&source, &mut files);
    assert!(files.len() > 20, "the sources are found");
    let mut report = String::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a readable file");
        let path = file.strip_prefix(&source).expect("a path below src").to_string_lossy().replace('\\', "/");
        for violation in violations(&path, &text) {
            let _ = writeln!(report, "{violation}");
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn the_command_line_uses_the_public_crate_only() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let mut files = Vec::new();
    files_below(&folder, &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let is_word = |token: &Token, word: &str| *token == Token::Word(word.to_owned());
        let reaches_out = tokens(&text).windows(2).any(|pair| {
            is_word(&pair[0].1, "include") && pair[1].1 == Token::Sign('!')
                || pair[0].1 == Token::Sign('[') && is_word(&pair[1].1, "path")
        });
        assert!(!reaches_out, "{} takes in a file by its path", file.display());
    }
}

#[test]
fn no_layer_is_allowed_to_use_one_that_uses_it() {
    for (layer, below) in LAYERS {
        for name in below {
            let of_name =
                allowed(name).unwrap_or_else(|| panic!("{layer} may use {name}, which is no layer"));
            assert!(!of_name.contains(&layer), "{layer} and {name} may use each other");
            assert!(*name != layer);
        }
    }
}

#[test]
fn the_rules_see_what_they_forbid() {
    for (path, text, count) in [
        ("base/key.rs", "use crate::tracker::Tracker;", 1),
        ("base/key.rs", "/// [`T`](crate::tracker::T)\n// crate::tracker\nfn f() {}", 0),
        ("base/key.rs", "const A: &str = \"crate::tracker\"; const B: &str = r#\"crate::link\"#;", 0),
        ("link/walk.rs", "use crate::{base::{Frame, Limits}, extractor::Packet, wire};", 1),
        ("link/walk.rs", "fn f<'a>(x: &'a str) -> crate::extractor::Packet<'a> { 'x' }", 1),
        ("link/walk.rs", "use super::super::tracker;", 1),
        ("link/walk.rs", "use super::Unsupported;", 0),
        ("link/walk.rs", "mod tests { use super::super::super::tracker::T; }", 1),
        ("link/walk.rs", "mod tests { use super::super::MacAddresses; }", 0),
        ("link/mod.rs", "use super::tracker;", 1),
        ("link/mod.rs", "#[cfg(test)] mod tests { use crate::tracker::T; }", 1),
        ("tracker/update.rs", "use crate::record::FlowRecord; use crate::pipeline::Records;", 1),
        ("tracker/update.rs", "use crate::Tracker;", 1),
        ("unheard/of.rs", "fn f() {}", 1),
        ("session/standard.rs", "crate::protocols! {}", 0),
        ("link/walk.rs", "crate::protocols! {}", 1),
        ("record/mod.rs", "use crate::base; use crate::codec::Writer;", 1),
    ] {
        let found = violations(path, text);
        assert_eq!(found.len(), count, "{path}: {text}: {found:?}");
    }
}
