//! Names of types and functions that were replaced are used nowhere any more: neither in code nor in the code spans of comments
//! and pages. Only the changelog names them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[path = "support/rust_tokens.rs"]
mod rust_tokens;

use rust_tokens::{Token, tokens};

const REMOVED: &[&str] = &[
    "StreamPipeline",
    "SessionPipeline",
    "SessionSlot",
    "Delivery",
    "Hearing",
    "NamedRecords",
    "NamedFeed",
    "FlowSink",
    "StreamSink",
    "SessionSink",
    "Whose",
    "About",
    "Shards",
    "Shard",
    "with_streams",
    "with_sessions",
    "Enclosure",
    "SideEnclosure",
    "EnclosingHeader",
    "EncapsulationStack",
    "OuterHeader",
    "OuterHeaders",
    "FlowEncapsulation",
    "SideEncapsulation",
    "NeighbourTable",
    "NeighbourConfig",
    "enclosing_count",
    "Flavour",
    "NOT_SPOKEN",
    "CompletedCut",
    "completed_cut_count",
    "cut_frame_count",
    "cut_count",
    "given_up_count",
    "is_cut",
    "LostPart",
    "WholeReply",
    "NoRoom",
    "Heard",
    "Resynchronised",
    "told_len",
    "asked_by",
    "wants_unicast",
    "line_before_count",
    "is_whole",
    "hand_over",
    "has_heard",
    "make_room",
    "give_way",
];

/// One adapter connects the stages, and it is not named so.
const REMOVED_SUFFIX: &str = "Adapter";

fn is_removed(word: &str) -> bool {
    REMOVED.contains(&word) || word.ends_with(REMOVED_SUFFIX)
}

/// Lines of code spans and fenced blocks, with their numbers.
fn code_of_prose<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<(usize, String)> {
    let (mut is_fenced, mut out) = (false, Vec::new());
    for (number, line) in lines {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            out.push((number, line.to_owned()));
        } else {
            out.extend(line.split('`').skip(1).step_by(2).map(|span| (number, span.to_owned())));
        }
    }
    out
}

/// Lines with removed names, of a Rust file or a page.
fn findings(path: &Path, text: &str) -> Vec<(usize, String)> {
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_start()));
    let (code, prose) = if is_rust {
        let comments = lines.filter_map(|(number, line)| Some((number, line.strip_prefix("//")?)));
        let comments =
            comments.map(|(number, line)| (number, line.trim_start_matches(['/', '!']).trim_start()));
        (tokens(text), code_of_prose(comments))
    } else {
        (Vec::new(), code_of_prose(lines))
    };
    let words = code.into_iter().filter_map(|(number, token)| match token {
        Token::Word(word) => Some((number, word)),
        _ => None,
    });
    let spans = prose.into_iter().flat_map(|(number, code)| {
        let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        words.map(|word| (number, word.to_owned())).collect::<Vec<_>>()
    });
    words.chain(spans).filter(|(_, word)| is_removed(word)).collect()
}

fn files_below(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                files_below(&path, out);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            out.push(path);
        }
    }
}

#[test]
fn removed_names_are_used_nowhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("README.md")];
    for folder in ["src", "crates", "tests", "benches", "fuzz", "examples", "docs"] {
        // A package has no folder of fuzz targets or other packages.
        if root.join(folder).is_dir() {
            files_below(&root.join(folder), &mut files);
        }
    }
    assert!(files.len() > 200, "the sources are found");
    let mut report = String::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a readable file");
        for (line, word) in findings(file, &text) {
            let _ = writeln!(report, "{}:{line}: `{word}` was removed", file.display());
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
fn names_are_found_as_identifiers_only() {
    for (path, text, count) in [
        ("a.rs", "struct Shard;", 1),
        ("a.rs", "// Whose packet it is, and a Shard of it\nconst A: &str = \"About\";", 0),
        ("a.rs", "/// A [`StreamPipeline`] with `Pipeline::with_streams`.\nfn f() {}", 2),
        ("a.rs", "/// ```\n/// let sink: Box<FlowSink>;\n/// ```\nfn with_shards() {}", 1),
        ("a.rs", "struct SinkAdapter;", 1),
        ("a.md", "Whose flows? `NamedFeed` and Shards.", 1),
        ("a.md", "```rust\nimpl SessionSink for A {}\n```\nAbout.", 1),
    ] {
        assert_eq!(findings(Path::new(path), text).len(), count, "{text}");
    }
}
