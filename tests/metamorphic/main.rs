//! The same records after changes of a capture that must not change them: other formats, compressions, units and divisions
//! of the input, headers around each packet, fragments, other addresses, filters.
//!
//! `docs/scoreboard.md` has the number of captures of the corpus for which each relation holds. The test fails if a number
//! is lower; `UPDATE_DOCS=1` writes the page:
//!
//! ```text
//! UPDATE_DOCS=1 FLOWGAUGE_CORPUS=../corpus cargo test --test metamorphic --features compression,protocols,serde
//! ```
//!
//! Without `FLOWGAUGE_CORPUS`, the relations are checked for the captures of the examples only.
#![cfg(all(feature = "compression", feature = "protocols", feature = "serde"))]

mod capture;
#[path = "../oracle/corpus.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod corpus;
mod packets;
mod relations;
mod scoreboard;

use capture::Capture;
use relations::{Outcome, RELATIONS};
use scoreboard::Score;

/// Checks all relations for a capture, and counts the results.
fn check(capture: &Capture, scores: &mut [Score]) {
    for (relation, score) in RELATIONS.iter().zip(scores) {
        match (relation.check)(capture) {
            Outcome::Equal => score.equal_count += 1,
            Outcome::Different(difference) => score.different.push((capture.name.clone(), difference)),
            Outcome::NotApplicable => score.not_applicable_count += 1,
        }
    }
}

#[test]
fn relations_hold_for_the_examples() {
    let mut scores = scoreboard::empty();
    for path in capture::examples() {
        check(&Capture::read(&path), &mut scores);
    }
    for (relation, score) in RELATIONS.iter().zip(&scores) {
        assert!(score.equal_count + score.different.len() >= 3, "{}: too few captures", relation.name);
        assert!(score.different.is_empty(), "{}: {:?}", relation.name, score.different);
    }
}

#[test]
fn relations_hold_for_the_corpus_as_before() {
    let Some(captures) = corpus::captures() else { return };
    let mut scores = scoreboard::empty();
    for capture in captures {
        let mut read = Capture::read(&capture.path());
        read.name = capture.name;
        check(&read, &mut scores);
    }
    scoreboard::compare(&scores);
}
