//! The size of the public API, counted in the list that `.ci/public-api` writes.

use std::collections::BTreeSet;

/// Maximum number of public functions of the library without `protocols`, counted over all modules, with one setter for
/// each of the 59 fields of configurations. Raise it only for a function that users need.
const FUNCTION_COUNT_MAX: usize = 662;

/// Returns a text without generic arguments (the parts in angle brackets).
fn without_generics(text: &str) -> String {
    let (mut depth, mut out, mut last) = (0, String::new(), ' ');
    for letter in text.chars() {
        match letter {
            '<' => depth += 1,
            '>' if last == '-' => {}
            '>' => depth -= 1,
            letter if depth == 0 => out.push(letter),
            _ => {}
        }
        last = letter;
    }
    out
}

/// Returns the paths of the functions and methods that a list of public items declares: free functions, inherent
/// methods, and methods of traits, each once. Methods in implementations of traits are not counted, because the traits
/// declare them.
fn functions(list: &str) -> BTreeSet<String> {
    let (mut is_of_trait, mut out) = (false, BTreeSet::new());
    for line in list.lines() {
        if line.starts_with("impl") {
            is_of_trait = without_generics(line).contains(" for ");
            continue;
        }
        let item = line.trim_start_matches("pub ").trim_start_matches("const ").trim_start_matches("unsafe ");
        let Some(signature) = item.strip_prefix("fn ") else {
            // Associated types and constants are listed between the functions of an implementation.
            is_of_trait &= line.starts_with("pub type ") || line.starts_with("pub const ");
            continue;
        };
        let signature = without_generics(signature);
        let path = signature.trim_start_matches("()").split('(').next().unwrap_or_default();
        let owner = path.rsplit("::").nth(1).unwrap_or_default();
        let is_free =
            path.starts_with("flowgauge") && owner.starts_with(|letter: char| letter.is_lowercase());
        if is_free || !is_of_trait {
            out.insert(path.to_owned());
        }
    }
    // A trait that is re-exported at the root is also listed in its module.
    let at_root: Vec<&str> = out.iter().map(|path| path.trim_start_matches("flowgauge::")).collect();
    let is_listed_at_root = |path: &str| {
        let tail = path.split("::").skip(2).collect::<Vec<_>>().join("::");
        at_root.binary_search(&tail.as_str()).is_ok() && !tail.is_empty()
    };
    out.iter().filter(|path| !is_listed_at_root(path)).cloned().collect()
}

#[test]
fn the_public_api_stays_small() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/public-api.txt");
    let list = std::fs::read_to_string(path).expect("the list of public items");
    let functions = functions(&list);
    assert!(functions.contains("flowgauge::Pipeline::run") && functions.contains("flowgauge::records"));
    let count = functions.len();
    assert!(count <= FUNCTION_COUNT_MAX, "{count} public functions are more than {FUNCTION_COUNT_MAX}");
}

#[test]
fn functions_are_counted_once() {
    let list = "\
pub mod flowgauge
pub struct flowgauge::base::Timestamp
impl flowgauge::Timestamp
pub const fn flowgauge::Timestamp::as_nanos(self) -> u64
impl core::fmt::Display for flowgauge::Timestamp
pub fn flowgauge::Timestamp::fmt(&self, &mut core::fmt::Formatter<'_>) -> core::fmt::Result
pub fn flowgauge::base::free(u8)
pub trait flowgauge::pipeline::Sink
pub fn flowgauge::pipeline::Sink::ended(&mut self)
impl<F: for<'a> core::ops::function::Fn(&'a u8) -> u8> flowgauge::pipeline::Records<F>
pub fn flowgauge::pipeline::Records<F>::new(F) -> Self
impl flowgauge::Sink for ()
pub type ()::State = ()
pub fn ()::ended(&mut self)
pub trait flowgauge::Sink
pub fn flowgauge::Sink::ended(&mut self)
pub struct flowgauge::Timestamp
impl flowgauge::Timestamp
pub const fn flowgauge::Timestamp::as_nanos(self) -> u64
";
    let found: Vec<String> = functions(list).into_iter().collect();
    assert_eq!(
        found,
        [
            "flowgauge::Sink::ended",
            "flowgauge::Timestamp::as_nanos",
            "flowgauge::base::free",
            "flowgauge::pipeline::Records::new",
        ]
    );
}
