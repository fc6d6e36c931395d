//! Comments, messages, pages and names use plain American English: no word or phrase of `tests/language/words.tsv`
//! occurs in them. A finding states file, line and the replacement.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[path = "language/prose.rs"]
mod prose;
#[path = "support/rust_tokens.rs"]
mod rust_tokens;

use prose::{Word, words_of_file, words_of_name};
use rust_tokens::{Token, tokens};

const WORDS: &str = include_str!("language/words.tsv");

/// Files and folders with texts for readers.
const SCANNED: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "Cargo.toml",
    "deny.toml",
    "rustfmt.toml",
    "typos.toml",
    ".ci",
    ".clusterfuzzlite",
    "docs",
    "examples",
    "src",
    "benches",
    "crates/flowgauge-cli",
    "crates/flowgauge-arrow",
    "crates/flowgauge-bus",
    "crates/flowgauge-cluster",
    "crates/flowgauge-condition",
    "crates/flowgauge-python",
    "crates/flowgauge-sql",
    "crates/flowgauge-summary",
    "fuzz",
    "tests",
];

/// Folders with names that users and maintainers read.
const SCANNED_NAMES: &[&str] = &[
    "src",
    "crates/flowgauge-cli/src",
    "crates/flowgauge-arrow/src",
    "crates/flowgauge-bus/src",
    "crates/flowgauge-cluster/src",
    "crates/flowgauge-condition/src",
    "crates/flowgauge-python/src",
    "crates/flowgauge-sql/src",
    "crates/flowgauge-summary/src",
];

/// Must quote old names.
const EXCLUDED: &[&str] = &["tests/language.rs"];

/// A row of the list, and one of its words or phrases.
#[derive(Clone, Debug)]
struct Entry {
    scope: Scope,
    phrase: Vec<&'static str>,
    replacement: &'static str,
    reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Text,
    Names,
    Both,
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    line: usize,
    found: String,
    replacement: &'static str,
    reason: &'static str,
}

/// The list, by the first two octets of the first word of a phrase.
struct WordList(HashMap<&'static [u8], Vec<Entry>>);

impl WordList {
    fn read() -> Self {
        let mut list = Self(HashMap::new());
        for (index, row) in WORDS.lines().enumerate() {
            if !row.is_empty() && !row.starts_with('#') {
                list.add_row(row, index + 1);
            }
        }
        list
    }

    fn add_row(&mut self, row: &'static str, number: usize) {
        let columns: Vec<&str> = row.split('\t').collect();
        let (scope, phrases, replacement, reason) = match columns[..] {
            [scope, phrases, replacement] => (scope, phrases, replacement, ""),
            [scope, phrases, replacement, reason] => (scope, phrases, replacement, reason),
            _ => panic!("words.tsv:{number}: a row has three or four columns"),
        };
        let scope = match scope {
            "text" => Scope::Text,
            "names" => Scope::Names,
            "both" => Scope::Both,
            _ => panic!("words.tsv:{number}: the scope is text, names or both"),
        };
        assert!(!replacement.is_empty(), "words.tsv:{number}: the replacement is missing");
        for phrase in phrases.split(", ") {
            let key =
                phrase.as_bytes().get(..2).unwrap_or_else(|| panic!("words.tsv:{number}: a short word"));
            let phrase = phrase.split(' ').collect();
            self.0.entry(key).or_default().push(Entry { scope, phrase, replacement, reason });
        }
    }

    fn findings_in(&self, words: &[Word], scope: Scope, out: &mut Vec<Finding>) {
        for start in 0..words.len() {
            let entries = words[start].text.as_bytes().get(..2).and_then(|key| self.0.get(key));
            for entry in entries.into_iter().flatten() {
                let is_in_scope = entry.scope == scope || entry.scope == Scope::Both;
                if is_in_scope && occurs_at(&entry.phrase, words, start) {
                    let words = &words[start..start + entry.phrase.len()];
                    let found: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                    let (line, found) = (words[0].line, found.join(" "));
                    let Entry { replacement, reason, .. } = *entry;
                    out.push(Finding { line, found, replacement, reason });
                }
            }
        }
    }

    fn findings(&self, path: &Path, text: &str, with_names: bool) -> Vec<Finding> {
        let mut out = Vec::new();
        self.findings_in(&words_of_file(path, text), Scope::Text, &mut out);
        if with_names && path.extension().is_some_and(|extension| extension == "rs") {
            for (line, token) in tokens(text) {
                if let Token::Word(name) = token {
                    self.findings_in(&words_of_name(&name, line), Scope::Names, &mut out);
                }
            }
        }
        out.sort_by_key(|finding| finding.line);
        out
    }
}

fn occurs_at(phrase: &[&str], words: &[Word], start: usize) -> bool {
    words.get(start..start + phrase.len()).is_some_and(|words| {
        phrase.iter().zip(words).all(|(pattern, word)| is_match(pattern, &word.text))
            && words.iter().skip(1).all(|word| word.is_joined)
    })
}

/// `pattern` is a word, or the start of words if it ends with `*`.
fn is_match(pattern: &str, word: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => word.starts_with(start),
        None => word == pattern,
    }
}

/// Adds the files with texts: pages, sources, TOML files and scripts.
fn add_files(path: &Path, out: &mut Vec<PathBuf>) {
    if path.is_dir() {
        if path.file_name().is_some_and(|name| name == "target") {
            return;
        }
        for entry in std::fs::read_dir(path).expect("a readable folder") {
            add_files(&entry.expect("a readable entry").path(), out);
        }
        return;
    }
    let is_text = match path.extension().and_then(|extension| extension.to_str()) {
        Some(extension) => matches!(extension, "md" | "rs" | "toml" | "sh"),
        None => std::fs::read(path).is_ok_and(|content| content.starts_with(b"#!")),
    };
    if is_text {
        out.push(path.to_owned());
    }
}

#[test]
fn texts_and_names_contain_no_replaced_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for part in SCANNED {
        // A package does not contain all of them.
        if root.join(part).exists() {
            add_files(&root.join(part), &mut files);
        }
    }
    assert!(files.len() > 200, "the files are found");
    files.sort();
    let (list, mut report) = (WordList::read(), String::new());
    for file in &files {
        let name = file.strip_prefix(root).unwrap_or(file);
        if EXCLUDED.iter().any(|excluded| name == Path::new(excluded)) {
            continue;
        }
        let with_names = SCANNED_NAMES.iter().any(|folder| name.starts_with(folder));
        let text = std::fs::read_to_string(file).expect("a readable file");
        for Finding { line, found, replacement, reason } in list.findings(name, &text, with_names) {
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            let _ = writeln!(report, "{}:{line}: \"{found}\": write {replacement}{reason}", name.display());
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

/// Lines, words and replacements that are found in a text.
fn found(list: &WordList, path: &str, text: &str) -> Vec<(usize, String, &'static str)> {
    let findings = list.findings(Path::new(path), text, true);
    findings.into_iter().map(|finding| (finding.line, finding.found, finding.replacement)).collect()
}

#[test]
fn findings_have_line_word_and_replacement() {
    const DUPLICATE: (&str, &str) = ("captured twice", "duplicate");
    const NEIGHBOR: (&str, &str) = ("neighbours", "neighbor");
    const CONTEXT: (&str, &str) = ("whose", "MessageMeta, FlowContext, or a noun for the contents");
    let list = WordList::read();
    for (path, text, expected) in [
        // Pages: phrases over line breaks, upper case, hyphens, headings, tables, text of links.
        ("a.md", "# Page\n\nFrames that were Captured\ntwice.\n", &[(3, DUPLICATE)][..]),
        (
            "a.md",
            "# Neighbours\n\n| a | neighbours |\n- [neighbours](a.md)\n",
            &[(1, NEIGHBOR), (3, NEIGHBOR), (4, NEIGHBOR)],
        ),
        ("a.md", "A captured-twice frame\n", &[(1, DUPLICATE)]),
        // No phrase extends over a paragraph, a sign or code.
        ("a.md", "captured\n\ntwice\n\ncaptured. Twice\n\ncaptured `at` twice\n", &[]),
        // Neither code nor addresses are text.
        ("a.md", "```\nneighbours\n```\n`neighbours` ``a ` neighbours``\n", &[]),
        ("a.md", "The file cut.pcap, tests/neighbours.rs; neighbours.\n", &[(1, NEIGHBOR)]),
        ("a.md", "[a](neighbours.md#neighbours), https://a.example/neighbours\n", &[]),
        // Relative pronouns and prepositions are banned as names only.
        ("a.md", "The flow whose packets are about it\n", &[]),
        // Comments of all kinds.
        (
            "a.rs",
            "//! neighbours\n/// Frames captured\n/// twice.\nfn f() {} // neighbours\n",
            &[(1, NEIGHBOR), (2, DUPLICATE), (4, NEIGHBOR)],
        ),
        ("a.rs", "/* a\n/* neighbours */ captured */ fn f() {} // twice\n", &[(2, NEIGHBOR)]),
        ("a.rs", "/// ```\n/// f(\"neighbours\");\n/// ```\n/// `neighbours`\nfn f() {}\n", &[]),
        // Messages, also over several lines; neither bytes nor placeholders.
        ("a.rs", "f(\"a\\\"neighbours\", r#\"\"neighbours\"#);\n", &[(1, NEIGHBOR), (1, NEIGHBOR)]),
        ("a.rs", "f(\n    \"captured \\\n     twice\",\n);\n", &[(2, DUPLICATE)]),
        (
            "a.rs",
            "f(b\"neighbours\", br\"neighbours\", '\"', \"{neighbours}\", '\\'', \"neighbours_len\");\n",
            &[(1, NEIGHBOR)],
        ),
        // Names.
        (
            "a.rs",
            "\n\nstruct FlowWhose<'a>;\nfn whose_flow() {}\nconst WHOSE: u8 = 0;\n",
            &[(3, CONTEXT), (4, CONTEXT), (5, CONTEXT)],
        ),
        ("a.rs", "fn captured() { twice(); }\n", &[]),
        // Comments of scripts and of TOML files.
        (
            "a.toml",
            "a = \"# neighbours\" # neighbours\n# captured\n# twice\n",
            &[(1, NEIGHBOR), (2, DUPLICATE)],
        ),
        ("run", "#!/bin/sh\necho neighbours $#\n# neighbours\n", &[(3, NEIGHBOR)]),
    ] {
        let expected =
            expected.iter().map(|&(line, (word, replacement))| (line, word.to_owned(), replacement));
        assert_eq!(found(&list, path, text), expected.collect::<Vec<_>>(), "{path}: {text}");
    }
}

#[test]
fn every_entry_is_found() {
    let list = WordList::read();
    let entries: Vec<&Entry> = list.0.values().flatten().collect();
    assert!(entries.len() > 500, "the list is read");
    for entry in entries {
        let phrase = entry.phrase.join(" ").replace('*', "s");
        let (path, text) = match entry.scope {
            Scope::Text => ("a.md", format!("A page\n\nwith {phrase} in it")),
            Scope::Names | Scope::Both => {
                ("a.rs", format!("\n\nfn is_{}_len() {{}}", phrase.replace(' ', "_")))
            }
        };
        let found = found(&list, path, &text);
        assert!(found.contains(&(3, phrase.clone(), entry.replacement)), "{phrase}: {found:?}");
    }
}
