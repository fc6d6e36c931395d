//! The cases of the protocols of the kit: messages with their answers.

use std::sync::LazyLock;

#[path = "../../../benches/cases/dialogues.rs"]
pub mod dialogues;

use dialogues::Cases;

/// The cases of all protocols, in the order of the names of their files.
pub static CASES: LazyLock<Vec<Cases>> = LazyLock::new(|| {
    let all = dialogues::read_all().expect("the files of the cases");
    all.into_iter().map(|(_, cases)| cases).collect()
});

/// Returns the cases whose port an input selects.
pub fn selected(choice: u8) -> &'static Cases {
    &CASES[usize::from(choice) % CASES.len()]
}
