//! Why a condition is invalid.

use flowgauge::row::Column;

use crate::names::suggested;

/// A place in a condition: characters, from 1, and the end is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Why a condition is invalid, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Number of the first character, from 1; 0 if it is not known.
    pub column: usize,
    /// Number of characters.
    pub len: usize,
    /// The reason.
    pub text: String,
}

impl Problem {
    pub(crate) fn at(span: Span, text: String) -> Self {
        Self { column: span.start, len: span.end.saturating_sub(span.start).max(1), text }
    }

    /// Returns the problem of an unknown column inside of a group, or of a row.
    pub(crate) fn unknown_column(
        (name, span): (&str, Span),
        path: &[&str],
        candidates: &[&'static Column],
    ) -> Self {
        let within = if path.is_empty() { String::new() } else { format!(" in `{}`", path.join(".")) };
        let hint = match nearest(name, candidates.iter().map(|column| column.name)) {
            Some(meant) => format!("; did you mean `{meant}`?"),
            None if candidates.is_empty() => "; it has no columns".to_owned(),
            None => "; texts need quotes".to_owned(),
        };
        Self::at(span, format!("`{name}` is not a column{within}{hint}"))
    }

    /// Returns the problem with the text of the condition, in which the place is marked.
    #[must_use]
    pub fn describe(&self, condition: &str) -> String {
        let Self { column, len, text } = self;
        // A condition of several lines, or of characters of other widths, is not shown.
        let is_shown = *column > 0 && condition.chars().all(|letter| (' '..='~').contains(&letter));
        if !is_shown || condition.len() > 100 {
            return format!("column {column}: {text}");
        }
        let (indent, mark) = (" ".repeat(column - 1), "^".repeat(*len));
        format!("invalid condition:\n  {condition}\n  {indent}{mark}\n  column {column}: {text}")
    }
}

/// Returns the name that was probably meant.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<_> = known.collect();
    if let Some(suggested) = suggested(name).filter(|name| known.contains(name)) {
        return Some(suggested);
    }
    let (distance, nearest) = known.into_iter().map(|known| (distance(name, known), known)).min()?;
    (distance <= name.len() / 3).then_some(nearest)
}

/// Returns the number of letters to insert, remove or replace in order to make one name of another.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        for (place, above) in row.iter_mut().enumerate() {
            if place == 0 {
                diagonal = std::mem::replace(above, index + 1);
                continue;
            }
            let replaced = diagonal + usize::from(other.get(place - 1) != Some(&letter));
            diagonal = *above;
            left = replaced.min(*above + 1).min(left + 1);
            *above = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_numbers_of_edits() {
        for (one, other, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("octet_conut", "octet_count", 2),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
