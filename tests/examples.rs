//! The examples import only items at the root of the crate and the standard library.

use std::path::Path;

fn source(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).with_extension("rs");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the lines that are neither empty nor comments.
fn code_lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).collect()
}

#[test]
fn examples_use_only_the_root_of_the_crate() {
    let names = [
        "count_flows",
        "print_records",
        "largest_gap",
        "stream_bytes",
        "names",
        "live",
        "live_shards",
        "length_prefixed",
    ];
    for name in names {
        let code = code_lines(&source(name)).join(" ");
        for import in code.split("use ").skip(1) {
            let import = import.split(';').next().unwrap_or_default();
            assert!(import.starts_with("flowgauge::") || import.starts_with("std::"), "{name}: use {import}");
        }
        // The crate's name must be followed by an item at the root or a group of items: a second `::` would follow a
        // module.
        for path in code.split("flowgauge::").skip(1) {
            let end = match path.strip_prefix('{') {
                Some(group) => 1 + group.find('}').expect("the end of the group"),
                None => {
                    path.find(|letter: char| letter != '_' && !letter.is_alphanumeric()).unwrap_or(path.len())
                }
            };
            let (first, rest) = path.split_at(end);
            let is_item = !first.contains("::") && (first.starts_with(['{', 'F']) || !rest.starts_with("::"));
            assert!(is_item, "{name}: flowgauge::{first} is not at the root");
        }
    }
}
