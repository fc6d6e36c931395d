//! The tests, benchmarks, and fuzz targets that the threat model names must exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the texts between backticks in the threat model.
fn names() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/threats.md")).expect("readable");
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns true if a text defines a function with the given name.
fn has_function(text: &str, name: &str) -> bool {
    text.match_indices(&format!("fn {name}")).any(|(at, found)| text[at + found.len()..].starts_with('('))
}

#[test]
fn every_named_test_exists() {
    let names = names();
    let mut count = 0;
    for (path, function) in names.iter().filter_map(|name| name.split_once("::")) {
        if !path.ends_with(".rs") {
            continue;
        }
        // A packaged crate has no folder with other packages.
        if path.starts_with("crates/") && !root().join("crates").exists() {
            continue;
        }
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(has_function(&text, function), "{path} has no test {function}");
        count += 1;
    }
    assert!(count > 60, "{count} tests are named");
}

#[test]
fn every_named_work_row_exists() {
    // A packaged crate has no folder with other packages.
    let Ok(text) = fs::read_to_string(root().join("benches/instructions/work/main.rs")) else { return };
    // Each function is a subject, and the attributes before it are its inputs.
    let subjects: Vec<_> = text
        .split("#[library_benchmark(")
        .skip(1)
        .map(|block| {
            let (_, rest) = block.split_once("\nfn ").expect("a function");
            (rest.split('(').next().expect("a name"), block)
        })
        .collect();
    let names = names();
    let rows: Vec<_> = names
        .iter()
        .filter_map(|name| name.strip_prefix("work/"))
        .filter_map(|row| row.split_once('/'))
        .collect();
    for (subject, input) in &rows {
        // `work/LAYER/INPUT` explains the form.
        if *subject == "LAYER" {
            continue;
        }
        let has_row =
            |(name, block): &(&str, &str)| name == subject && block.contains(&format!("bench::{input}("));
        assert!(subjects.iter().any(has_row), "work/{subject}/{input}");
    }
    assert!(rows.len() > 40, "{} rows are named", rows.len());
    for (subject, _) in &subjects {
        assert!(
            rows.iter().any(|(named, _)| named == subject),
            "the threat model names no row of work/{subject}"
        );
    }
}

#[test]
fn every_exemption_from_the_bound_on_work_is_named() {
    let Ok(text) = fs::read_to_string(root().join("benches/instructions/src/work.rs")) else { return };
    let (_, list) = text.split_once("EXEMPTIONS: &[Exemption] = &[").expect("the table of exemptions");
    let (list, _) = list.split_once("\n];").expect("the end of the table");
    let names = names();
    let ids: Vec<_> = list.split("id: \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(ids.len(), list.matches("factor_max").count());
    for id in ids {
        assert!(names.contains(id), "{id} is not in the threat model");
    }
}

#[test]
fn every_named_fuzz_target_exists() {
    let folder = root().join("fuzz/fuzz_targets");
    if !folder.exists() {
        return;
    }
    let names = names();
    let targets: Vec<_> = names.iter().filter_map(|name| name.strip_prefix("fuzz:")).collect();
    for target in targets.iter().filter(|target| **target != "NAME") {
        assert!(folder.join(target).with_extension("rs").exists(), "fuzz:{target}");
    }
    assert!(targets.len() > 15, "{} targets are named", targets.len());
}
