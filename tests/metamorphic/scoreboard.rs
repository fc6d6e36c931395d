//! The page with the numbers of captures for which each relation holds.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use flowgauge::FlowRecord;
use flowgauge::row::Table as _;

use super::capture::Checked;
use super::merging::{CAUSES, COUNT, Comparison, DIVISIONS};
use super::relations::RELATIONS;
use super::{flows, pairs};

/// Results of a relation.
#[derive(Default)]
pub(crate) struct Score {
    pub(crate) equal_count: usize,
    /// Captures with other records, and the first difference of each.
    pub(crate) different: Vec<(String, String)>,
    pub(crate) not_applicable_count: usize,
}

pub(crate) fn empty() -> Vec<Score> {
    RELATIONS.iter().map(|_| Score::default()).collect()
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/scoreboard.md")
}

/// Numbers of neighboring frames that were swapped and that were not, and what other relations checked.
type Counts = ([usize; 2], Checked);

/// Returns the page.
fn page(scores: &[Score], comparisons: &[Comparison], (swapped_counts, checked): Counts) -> String {
    let mut page = String::from(
        "# Scoreboard\n\n\
         Some changes of a capture must not change its records, or only in a known way. This page has the number of captures\n\
         of the test corpus for which that holds, at most the first 20,000 frames of each. A change applies to a capture if\n\
         all of its frames can be changed: a VLAN tag needs Ethernet, and pcap one link type.\n\
         The row that lists outputs changes nothing: it compares all outputs of each flow.\n\n\
         `tests/metamorphic` makes the changes, and fails if a number is worse than here. This command writes the page:\n\n\
         ```sh\n\
         UPDATE_DOCS=1 FLOWGAUGE_CORPUS=../corpus cargo test --test metamorphic --features compression,protocols,serde\n\
         ```\n\n\
         | change | compared | captures | equal | different |\n\
         |---|---|--:|--:|--:|\n",
    );
    for (relation, score) in RELATIONS.iter().zip(scores) {
        let different = score.different.len();
        let total = score.equal_count + different;
        let _ = writeln!(
            page,
            "| {} | {} | {total} | {} | {different} |",
            relation.name, relation.expected, score.equal_count
        );
    }
    let different: Vec<_> = RELATIONS
        .iter()
        .zip(scores)
        .flat_map(|(relation, score)| score.different.iter().map(move |one| (relation, one)))
        .collect();
    if !different.is_empty() {
        page.push_str(
            "\n## Differences\n\n\
             A frame without a valid packet belongs to no flow; with a tunnel around it, the packet of the tunnel does. In\n\
             captures of mutated frames, the lengths in headers contradict each other, and headers around them or a\n\
             fragment decide which of them counts.\n\n\
             | change | capture | first difference |\n|---|---|---|\n");
        for (relation, (capture, difference)) in different {
            let _ = writeln!(page, "| {} | `{capture}` | {} |", relation.name, difference.replace('|', "/"));
        }
    }
    pairs::write(&mut page, swapped_counts);
    flows::write(&mut page, checked);
    merged(&mut page, comparisons);
    page
}

/// Appends the numbers of merged records that differ.
fn merged(page: &mut String, comparisons: &[Comparison]) {
    let names: Vec<_> = DIVISIONS.iter().map(|division| division.name).collect();
    let divided = DIVISIONS.iter().zip(comparisons).map(|(division, comparison)| {
        let Comparison { position_count, record_count, .. } = comparison;
        format!("- {}: {record_count} records of divided flows, {position_count} runs\n", division.name)
    });
    let _ = write!(
        page,
        "\n## Merged records\n\n\
         Each capture is split in two parts, at each packet if it has at most 200 packets and at 20 random ones otherwise.\n\
         The parts are tracked separately, and the records of a flow are merged if the second one\n\
         [continues](design/record.md#merging) the first one. Records of active timeouts are merged too. The table has the\n\
         numbers of records that differ from those of one pass, for each column in which any may differ.\n\n\
         {}\n\
         | column | merge | {} | cause |\n|---|---|{}---|\n",
        divided.collect::<String>(),
        names.join(" | "),
        "--:|".repeat(names.len())
    );
    for (name, cause) in CAUSES {
        let column = FlowRecord::COLUMNS.iter().find(|column| column.name == *name);
        let rule = column.map_or("", |column| column.merge.name());
        let counts: Vec<_> =
            comparisons.iter().map(|comparison| comparison.count(name).to_string()).collect();
        let name = if *name == COUNT { COUNT.to_owned() } else { format!("`{name}`") };
        let _ = writeln!(page, "| {name} | {rule} | {} | {cause} |", counts.join(" | "));
    }
}

/// Returns the numbers of merged records that differ, by the name of the column.
fn differing(page: &str) -> Vec<(String, Vec<usize>)> {
    let (_, section) = page.split_once("## Merged records").unwrap_or_default();
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, counts @ .., _] = cells.as_slice() else { return None };
        let counts: Option<Vec<_>> = counts.iter().map(|count| count.parse().ok()).collect();
        Some(((*name).to_owned(), counts.filter(|counts| !counts.is_empty())?))
    });
    rows.collect()
}

/// Returns the numbers of captures, and of those with equal records, by the name of the change.
fn numbers(page: &str) -> Vec<(String, usize, usize)> {
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, total, equal, _] = cells[..] else { return None };
        Some((name.to_owned(), total.parse().ok()?, equal.parse().ok()?))
    });
    rows.collect()
}

/// Compares the results with the page, or writes it.
pub(crate) fn compare(scores: &[Score], comparisons: &[Comparison], counts: Counts) {
    let page = page(scores, comparisons, counts);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path(), page).expect("a page");
        return;
    }
    let current = fs::read_to_string(path()).expect("the scoreboard");
    let (before, now) = (differing(&current), differing(&page));
    assert_eq!(before.len(), now.len(), "UPDATE_DOCS=1 writes the new rows");
    for ((name, before), (now_name, now)) in before.iter().zip(&now) {
        assert_eq!(name, now_name, "UPDATE_DOCS=1 writes the page");
        let is_worse = before.iter().zip(now).any(|(before, now)| now > before);
        assert!(!is_worse, "{name}: {now:?} instead of {before:?} merged records differ:\n{page}");
    }
    let (before, now) = (numbers(&current), numbers(&page));
    assert_eq!(before.len(), RELATIONS.len(), "UPDATE_DOCS=1 writes the new rows");
    for ((name, total, equal), (now_name, now_total, now_equal)) in before.iter().zip(&now) {
        assert_eq!((name, total), (now_name, now_total), "UPDATE_DOCS=1 writes the page");
        assert!(now_equal >= equal, "{name}: {now_equal} instead of {equal} captures are equal:\n{page}");
        if now_equal > equal {
            println!(
                "{name}: {now_equal} instead of {equal} captures are equal; UPDATE_DOCS=1 writes the page"
            );
        }
    }
}

#[test]
fn numbers_are_read_from_the_page() {
    let mut scores = empty();
    scores[0].equal_count = 7;
    scores[1].different.push(("a.pcap".to_owned(), "x | y".to_owned()));
    let mut comparisons = super::merging::empty();
    comparisons[1].different.insert("start".to_owned(), 5);
    let page = page(&scores, &comparisons, ([3, 1], Checked::default()));
    let differing = differing(&page);
    assert_eq!(differing.len(), CAUSES.len());
    assert_eq!(differing[1], ("`start`".to_owned(), vec![0, 5, 0]));
    let numbers = numbers(&page);
    assert_eq!(numbers.len(), RELATIONS.len());
    assert_eq!((numbers[0].1, numbers[0].2), (7, 7));
    assert_eq!((numbers[1].1, numbers[1].2), (1, 0));
}
