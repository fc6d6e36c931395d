//! Every path in `src` that names another layer names a layer below it.
//!
//! Comments and string literals are ignored, because a link in a doc comment may point up; test code is checked. A
//! folder that is not in the table is a failure, so that a new layer is added here before it is used.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

#[path = "support/imports.rs"]
mod imports;
#[path = "support/rust_tokens.rs"]
mod rust_tokens;

use imports::{Imports, files_below};
use rust_tokens::{Token, tokens};

/// Each layer, in the order of the architecture, and the layers that it imports directly. `base` has the items that all
/// layers share: keys, time, limits, resources, the stop handle, and the configuration error.
const LAYERS: [(&str, &[&str]); 22] = [
    ("base", &[]),
    ("codec", &[]),
    ("checkpoint", &["base", "codec"]),
    ("row", &["base"]),
    ("wire", &["base", "codec"]),
    ("record", &["base", "row"]),
    ("source", &["base", "wire"]),
    ("decode", &["base", "wire"]),
    ("tap", &["base", "wire", "decode"]),
    ("dedup", &["base", "wire"]),
    ("filter", &["base"]),
    ("tracker", &["base", "codec", "checkpoint", "row", "wire", "record", "decode"]),
    ("reassembler", &["base", "codec", "checkpoint", "row"]),
    ("session", &["base", "codec", "checkpoint", "row", "record", "tracker", "reassembler"]),
    ("protocols", &["base", "codec", "checkpoint", "row", "session"]),
    ("neighbor", &["base", "codec", "row", "session"]),
    ("transaction", &["base", "codec", "checkpoint", "row", "record", "tracker", "session", "protocols"]),
    ("features", &["base", "row", "wire", "record"]),
    ("ipfix", &["base", "codec", "row", "wire", "record", "tracker"]),
    (
        "export",
        &["base", "row", "record", "ipfix", "tracker", "session", "protocols", "neighbor", "transaction"],
    ),
    ("record_file", &["base", "record", "source", "ipfix", "export"]),
    (
        "pipeline",
        &[
            "base",
            "codec",
            "checkpoint",
            "row",
            "protocols",
            "neighbor",
            "transaction",
            "export",
            "wire",
            "record",
            "source",
            "decode",
            "tap",
            "dedup",
            "filter",
            "tracker",
            "reassembler",
            "session",
        ],
    ),
];

/// Macros are at the root of the crate; each belongs to a layer.
const MACROS: [(&str, &str); 5] = [
    ("configuration!", "base"),
    ("table!", "row"),
    ("message!", "row"),
    ("messages!", "row"),
    ("protocols!", "session"),
];

fn allowed(layer: &str) -> Option<&'static [&'static str]> {
    LAYERS.iter().find(|(name, _)| *name == layer).map(|(_, below)| *below)
}

/// Returns the names that follow the crate's root in a text, with their lines. `depth` is the module depth of the file:
/// 1 for `tracker/mod.rs`, 2 for `tracker/update.rs`.
fn names_at_root(text: &str, depth: usize) -> Vec<(usize, String)> {
    let tokens = tokens(text);
    let token = |position: usize| tokens.get(position).map(|(_, token)| token);
    let is_word = |position: usize, word: &str| token(position) == Some(&Token::Word(word.to_owned()));
    let (mut out, mut braces) = (Vec::new(), Vec::new());
    let mut position = 0;
    while position < tokens.len() {
        let is_path_start = position == 0 || token(position - 1) != Some(&Token::Colons);
        if token(position) == Some(&Token::Sign('{')) {
            let is_module = position >= 2 && is_word(position - 2, "mod");
            braces.push(is_module);
        } else if token(position) == Some(&Token::Sign('}')) {
            braces.pop();
        } else if is_path_start && is_word(position, "crate") && token(position + 1) == Some(&Token::Colons) {
            names_after(&tokens, position + 2, &mut out);
        } else if is_path_start && is_word(position, "super") {
            let mut super_count = 0;
            let mut end = position;
            while is_word(end, "super") && token(end + 1) == Some(&Token::Colons) {
                super_count += 1;
                end += 2;
            }
            let inner = braces.iter().filter(|is_module| **is_module).count();
            if super_count >= depth + inner {
                names_after(&tokens, end, &mut out);
            }
        }
        position += 1;
    }
    out
}

/// Collects the first segments of the path, or of the group of paths, at a position.
fn names_after(tokens: &[(usize, Token)], start: usize, out: &mut Vec<(usize, String)>) {
    let mut depth = 0;
    let mut is_first = true;
    for (position, (line, token)) in tokens.iter().enumerate().skip(start) {
        match token {
            Token::Word(word) if is_first => {
                let is_macro = tokens.get(position + 1).is_some_and(|(_, next)| *next == Token::Sign('!'));
                out.push((*line, if is_macro { format!("{word}!") } else { word.clone() }));
                is_first = false;
            }
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => depth -= 1,
            // A comma begins another path from the root only at the outermost level of a group.
            Token::Sign(',') if depth == 1 => is_first = true,
            _ => {}
        }
        if depth <= 0 && !is_first {
            return;
        }
    }
}

/// Returns the violations in a file, given by its path below `src`.
fn violations(path: &str, text: &str) -> Vec<String> {
    let modules: Vec<&str> = path.trim_end_matches(".rs").split('/').filter(|name| *name != "mod").collect();
    let layer = modules[0];
    if layer == "lib" {
        return Vec::new();
    }
    let Some(below) = allowed(layer) else {
        return vec![format!("{path}: layer `{layer}` is not in tests/layering.rs")];
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
            format!("{path}:{line}: `crate::{name}` is not a layer; use the path of its layer")
        });
    }
    out
}

#[test]
fn layers_import_only_layers_below_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    files_below(&source, &mut files);
    assert!(files.len() > 20, "the source files are found");
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

/// Returns the layers that a layer names, or `None` if it does not exist.
fn named_by(layer: &str) -> Option<BTreeSet<String>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folder = source.join(layer);
    if !folder.is_dir() {
        return None;
    }
    let mut files = Vec::new();
    files_below(&folder, &mut files);
    let mut names = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let path = file.strip_prefix(&source).expect("a path below src").with_extension("");
        let depth = path.iter().filter(|name| *name != "mod").count();
        names.extend(names_at_root(&text, depth).into_iter().map(|(_, name)| name));
    }
    Some(names)
}

#[test]
fn the_table_lists_only_imports_that_are_used() {
    for (layer, below) in LAYERS {
        let names = named_by(layer).unwrap_or_else(|| panic!("there is no layer {layer}"));
        for name in below {
            assert!(names.contains(*name), "{layer} does not use {name}");
        }
    }
}

#[test]
fn the_command_line_uses_only_the_public_api() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    // A packaged crate has no folder of other packages.
    if !crates.exists() {
        return;
    }
    let mut files = Vec::new();
    files_below(&crates.join("flowgauge-cli/src"), &mut files);
    assert!(files.len() > 10, "the source files are found");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a readable file");
        let is_word = |token: &Token, word: &str| *token == Token::Word(word.to_owned());
        let includes_by_path = tokens(&text).windows(2).any(|pair| {
            is_word(&pair[0].1, "include") && pair[1].1 == Token::Sign('!')
                || pair[0].1 == Token::Sign('[') && is_word(&pair[1].1, "path")
        });
        assert!(!includes_by_path, "{} includes a file by its path", file.display());
    }
}

#[test]
fn layers_use_only_layers_above_them_in_the_table() {
    let position = |layer: &str| LAYERS.iter().position(|(name, _)| *name == layer);
    for (layer, below) in LAYERS {
        for name in below {
            let of_name =
                position(name).unwrap_or_else(|| panic!("{layer} may use {name}, which is not a layer"));
            assert!(Some(of_name) < position(layer), "{layer} may use {name}, which comes later");
        }
    }
}

/// Folders of the crates of the repository, each of which has its sources in `src`.
const CRATES: [&str; 13] = [
    ".",
    "benches/instructions",
    "benches/peers",
    "benches/soak",
    "crates/flowgauge-arrow",
    "crates/flowgauge-bus",
    "crates/flowgauge-cli",
    "crates/flowgauge-cluster",
    "crates/flowgauge-condition",
    "crates/flowgauge-python",
    "crates/flowgauge-sql",
    "crates/flowgauge-summary",
    "fuzz",
];

#[test]
fn no_two_files_import_each_other_directly_or_through_others() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut report, mut file_count) = (String::new(), 0);
    // A packaged crate has no folders of other packages.
    for folder in CRATES.iter().filter(|folder| root.join(folder).join("src").is_dir()) {
        let imports = Imports::of_crate(&root.join(folder).join("src"));
        file_count += imports.file_count();
        for circle in imports.circles() {
            let _ = writeln!(report, "{folder}: {} files: {}", circle.len(), circle.join(", "));
            for line in imports.inside(&circle) {
                let _ = writeln!(report, "    {line}");
            }
        }
    }
    println!("{file_count} files; components:\n{report}");
    assert!(file_count > 300, "the source files are found");
    assert!(report.is_empty(), "\n{report}");
}

/// Layers whose octets are not those of the headers of a frame, and `wire`, which contains these headers.
const WITHOUT_HEADERS: [(&str, &str); 8] = [
    ("codec", "the next octets, at no fixed position: the reader that `wire` and the parsers share"),
    ("wire", "the headers"),
    ("ipfix", "messages of exporters"),
    ("source", "capture file formats"),
    ("session", "octets of streams, for the parsers"),
    ("protocols", "application protocols"),
    ("neighbor", "messages of neighbors"),
    ("transaction", "pairs of values, one per role"),
];

/// Files of other layers that index something else by a number or read words of memory, with what they index.
const OTHER_INDEXES: [(&str, &str); 13] = [
    ("base/key.rs", "words of a key"),
    ("decode/link/policy.rs", "entries of the table of ports"),
    ("dedup/window.rs", "words of a stored frame"),
    ("export/table.rs", "columns and rows of a table"),
    ("export/fixed_record.rs", "fields of a record of a fixed layout"),
    ("filter/lexer.rs", "text"),
    ("filter/subject.rs", "the two sets of VLAN ids"),
    ("pipeline/core.rs", "packets of a batch"),
    ("record/community_id.rs", "the two ends of a flow"),
    ("record_file/format.rs", "the first octets of files"),
    ("tracker/flow.rs", "VLAN ids of a flow, packed"),
    ("tracker/index.rs", "slots and tags of the hash table"),
    ("tracker/timing.rs", "words of a time"),
];

/// Functions that give octets at a position a type or a number.
const OCTET_FUNCTIONS: [&str; 12] = [
    "from_be_bytes",
    "from_le_bytes",
    "from_ne_bytes",
    "first_chunk",
    "first_chunk_mut",
    "last_chunk",
    "last_chunk_mut",
    "split_first_chunk",
    "split_last_chunk",
    "as_chunks",
    "array_chunks",
    "chunks_exact",
];

/// Returns whether the tokens from a bracket on are an index or a range of numbers: `[12]`, `[2..4]`, `[..6]`.
fn is_literal_index(tokens: &[(usize, Token)], open: usize, close: char) -> bool {
    let mut has_number = false;
    for (_, token) in tokens.iter().skip(open + 1) {
        match token {
            Token::Word(word) if word.starts_with(|letter: char| letter.is_ascii_digit()) => {
                has_number = true
            }
            Token::Sign('.' | '=') => {}
            Token::Sign(sign) => return *sign == close && has_number,
            _ => return false,
        }
    }
    false
}

/// The lines of a file outside of tests that read octets by their position: with a function for it, with a number as
/// the index, or with a slice pattern that skips elements.
fn positions_read(text: &str) -> BTreeSet<usize> {
    let tokens = tokens(text);
    let token = |position: usize| tokens.get(position).map(|(_, token)| token);
    let is_word = |position: usize, word: &str| token(position) == Some(&Token::Word(word.to_owned()));
    let is_sign = |position: usize, sign: char| token(position) == Some(&Token::Sign(sign));
    let (mut out, mut braces) = (BTreeSet::new(), Vec::new());
    for (position, (line, of_place)) in tokens.iter().enumerate() {
        match of_place {
            Token::Sign('{') => {
                let is_tests =
                    position >= 2 && is_word(position - 2, "mod") && is_word(position - 1, "tests");
                braces.push(is_tests);
            }
            Token::Sign('}') => drop(braces.pop()),
            _ => {}
        }
        if braces.contains(&true) {
            continue;
        }
        let before = position.checked_sub(1).and_then(token);
        let is_read = match of_place {
            Token::Word(word) if OCTET_FUNCTIONS.contains(&word.as_str()) => true,
            Token::Word(word) if word == "get" || word == "get_mut" => {
                before == Some(&Token::Sign('.'))
                    && is_sign(position + 1, '(')
                    && is_literal_index(&tokens, position + 1, ')')
            }
            Token::Sign('[') => {
                let is_index = matches!(before, Some(Token::Word(_) | Token::Sign(')' | ']')));
                let skips_first = is_word(position + 1, "_") && is_sign(position + 2, ',');
                let skips_many = (1..=3).all(|at| is_sign(position + at, if at == 3 { ',' } else { '.' }));
                is_index && is_literal_index(&tokens, position, ']') || skips_first || skips_many
            }
            // The end of a slice pattern, `, ..]`.
            Token::Sign(',') => {
                is_sign(position + 1, '.') && is_sign(position + 2, '.') && is_sign(position + 3, ']')
            }
            _ => false,
        };
        if is_read {
            out.insert(*line);
        }
    }
    out
}

#[test]
fn headers_are_read_in_wire_only() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    files_below(&source, &mut files);
    let mut report = String::new();
    let mut listed: BTreeSet<&str> = OTHER_INDEXES.iter().map(|(path, _)| *path).collect();
    for file in &files {
        let path = file.strip_prefix(&source).expect("a path below src").to_string_lossy().replace('\\', "/");
        let layer = path.split('/').next().unwrap_or_default();
        let is_test = file.file_name().is_some_and(|name| name == "tests.rs");
        if is_test || WITHOUT_HEADERS.iter().any(|(name, _)| *name == layer) {
            continue;
        }
        let lines = positions_read(&std::fs::read_to_string(file).expect("a readable file"));
        if !lines.is_empty() && listed.remove(path.as_str()) {
            continue;
        }
        for line in lines {
            let _ = writeln!(
                report,
                "src/{path}:{line} reads octets by their position; a header belongs to src/wire"
            );
        }
    }
    for path in listed {
        let _ = writeln!(report, "src/{path} is listed in OTHER_INDEXES, but indexes nothing by a number");
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn reads_by_position_are_seen_outside_of_tests() {
    for (text, is_read) in [
        ("let port = u16::from_be_bytes([a, b]);", true),
        ("let header = data.first_chunk::<20>()?;", true),
        ("let protocol = data[9];", true),
        ("let total_len = &data[2..4];", true),
        ("let addresses = &packet()[..=11];", true),
        ("let kind = data.get(12..14)?;", true),
        ("let kind = data.get(0x10)?;", true),
        ("let [_, _, high, low] = *tag;", true),
        ("let [first, ..] = *header;", true),
        ("let [.., high, low] = *header;", true),
        ("// data[9]\nlet text = \"data[9]\";", false),
        ("let header = Ipv4::read(data.get(offset..)?)?;", false),
        ("let octets = [0; 20]; let six = [1, 2, 3, 4, 5, 6];", false),
        ("let all = &octets[..]; let one = lists[class];", false),
        ("let key: [u8; 16] = key.get(name);", false),
        ("mod tests { fn f() { packet[9] = 17; } }", false),
        ("mod tests { fn f() {} } fn g() { packet[9] = 17; }", true),
    ] {
        assert_eq!(!positions_read(text).is_empty(), is_read, "{text}");
    }
}

#[test]
fn circles_are_found_through_other_files_and_re_exports() {
    let circles = |files: &[(&str, &str)]| {
        let texts = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Imports::of_files(texts).circles()
    };
    let three = [
        ("mod.rs", "mod a; mod b; mod c; pub use a::A; pub use b::B;"),
        ("a.rs", "use super::{b::helper, B}; pub struct A;"),
        ("b.rs", "pub struct B; pub fn helper() { super::c::call(); }"),
        ("c.rs", "pub fn call() { let _: super::A; }"),
    ];
    assert_eq!(circles(&three), [["a", "b", "c"]]);
    assert!(circles(&three[..3]).is_empty(), "a folder that exports the items of its files imports none");
    let defined_above =
        [("folder/mod.rs", "mod a; use a::A; fn f() {}"), ("folder/a.rs", "use super::f; pub struct A;")];
    assert_eq!(circles(&defined_above), [["folder", "folder::a"]]);
    let by_module = [("a.rs", "use crate::b; fn f() { b::g(); }"), ("b.rs", "pub fn g() { crate::a::f(); }")];
    assert_eq!(circles(&by_module), [["a", "b"]]);
    let in_tests = [
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "pub struct B; mod tests { use crate::a::A; }"),
    ];
    assert!(circles(&in_tests).is_empty());
}

#[test]
fn the_rules_detect_violations() {
    for (path, text, count) in [
        ("base/key.rs", "use crate::tracker::Tracker;", 1),
        ("base/key.rs", "/// [`T`](crate::tracker::T)\n// crate::tracker\nfn f() {}", 0),
        ("base/key.rs", "const A: &str = \"crate::tracker\"; const B: &str = r#\"crate::link\"#;", 0),
        ("decode/walk.rs", "use crate::{base::{Frame, Limits}, tracker::Tracker, wire};", 1),
        ("decode/walk.rs", "fn f<'a>(x: &'a str) -> crate::tracker::FlowView<'a> { 'x' }", 1),
        ("decode/walk.rs", "use super::super::tracker;", 1),
        ("decode/walk.rs", "use super::Unsupported;", 0),
        ("decode/walk.rs", "mod tests { use super::super::super::tracker::T; }", 1),
        ("decode/walk.rs", "mod tests { use super::super::MacAddresses; }", 0),
        ("decode/mod.rs", "use super::tracker;", 1),
        ("decode/mod.rs", "#[cfg(test)] mod tests { use crate::tracker::T; }", 1),
        ("tracker/update.rs", "use crate::record::FlowRecord; use crate::pipeline::Records;", 1),
        ("tracker/update.rs", "use crate::Tracker;", 1),
        ("unheard/of.rs", "fn f() {}", 1),
        ("session/standard.rs", "crate::protocols! {}", 0),
        ("decode/walk.rs", "crate::protocols! {}", 1),
        ("session/driver.rs", "crate::protocols! {} use crate::protocols::Standard;", 1),
        ("record/mod.rs", "use crate::base; use crate::codec::Writer;", 1),
        ("record/mod.rs", "use crate::base; use crate::tracker::FlowView;", 1),
        ("tracker/table.rs", "use crate::base::Limits; use crate::session;", 1),
        ("pipeline/builder.rs", "use crate::source::Source; use crate::record::FlowRecord;", 0),
    ] {
        let found = violations(path, text);
        assert_eq!(found.len(), count, "{path}: {text}: {found:?}");
    }
}
