//! The same records after changes of a capture that must not change them: other formats, compressions, units and divisions
//! of the input, headers around each packet, fragments, other addresses, filters. Also the records of parts of a capture,
//! merged.
//!
//! `docs/scoreboard.md` has the number of captures of the corpus for which each relation holds, and the number of merged
//! records that differ. The test fails if a number is worse; `UPDATE_DOCS=1` writes the page:
//!
//! ```text
//! UPDATE_DOCS=1 FLOWGAUGE_CORPUS=../corpus cargo test --test metamorphic --features compression,protocols,serde
//! ```
//!
//! Without `FLOWGAUGE_CORPUS`, the relations are checked for the captures of the examples only.
#![cfg(all(feature = "compression", feature = "protocols", feature = "serde"))]

mod agreement;
mod capture;
#[path = "../oracle/corpus.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod corpus;
mod flows;
#[path = "../support/memory.rs"]
mod memory;
mod merging;
mod packets;
mod pairs;
mod relations;
mod scoreboard;

use std::thread;

use capture::{Capture, Checked};
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
fn merged_records_are_those_of_one_pass_in_the_examples() {
    let mut comparisons = merging::empty();
    for path in capture::examples() {
        merging::check(&Capture::read(&path), &mut comparisons);
    }
    comparisons.iter().for_each(merging::Comparison::check_causes);
    let record_counts: Vec<_> = comparisons.iter().map(|comparison| comparison.record_count).collect();
    assert!(record_counts[0] > 400 && record_counts[1] > 20, "{record_counts:?}");
}

#[test]
fn relations_hold_for_the_corpus_as_before() {
    let Some(captures) = corpus::captures() else { return };
    let (mut scores, mut comparisons) = (scoreboard::empty(), merging::empty());
    let (mut swapped_counts, mut checked) = ([0; 2], Checked::default());
    let read = || {
        captures
            .iter()
            .map(|capture| Capture { name: capture.name.clone(), ..Capture::read(&capture.path()) })
    };
    thread::scope(|scope| {
        scope.spawn(|| read().for_each(|capture| merging::check(&capture, &mut comparisons)));
        read().for_each(|capture| {
            check(&capture, &mut scores);
            checked.add(capture.checked.get());
            let counts = pairs::swapped_counts(&capture);
            swapped_counts = [0, 1].map(|index| swapped_counts[index] + counts[index]);
        });
    });
    pairs::check_known(pairs::KNOWN, &[pairs::EXPECTED], &scores);
    pairs::check_known(flows::KNOWN, &flows::EXPECTED, &scores);
    comparisons.iter().for_each(merging::Comparison::check_causes);
    let Checked { answer_count, divided_count, record_count, row_count } = checked;
    assert!(answer_count > 1000 && divided_count > 100, "{checked:?}");
    assert!(record_count > 5000 && row_count > 5000, "{checked:?}");
    scoreboard::compare(&scores, &comparisons, (swapped_counts, checked));
}
