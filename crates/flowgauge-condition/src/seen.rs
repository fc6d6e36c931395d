//! What a condition met, for a message about a condition that no row matched.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use flowgauge::row::Value;

use crate::literal::compare_values;

/// Maximum number of distinct texts of a column that are kept, and their length in characters.
const TEXT_MAX: usize = 8;
const TEXT_LEN_MAX: usize = 40;

/// Maximum number of columns that a message names.
const COLUMN_MAX: usize = 4;

/// The rows that a condition was evaluated for, and the values of its columns in those before the first one that matched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) row_count: u64,
    pub(crate) has_match: bool,
    /// Samples of the values of the columns of the condition.
    samples: Vec<Sample>,
}

/// Values of a column.
#[derive(Clone, Debug, Default)]
enum Sample {
    #[default]
    Nothing,
    /// Distinct texts, and whether there are others.
    Texts(BTreeSet<String>, bool),
    /// The least and the greatest number.
    Numbers(Value, Value),
}

impl Seen {
    /// Adds a row.
    #[inline]
    pub(crate) fn add(&mut self, values: &[Value], is_match: bool) {
        self.row_count += 1;
        if !self.has_match {
            self.sample(values, is_match);
        }
    }

    /// Adds the values of a row, unless it matches.
    #[cold]
    fn sample(&mut self, values: &[Value], is_match: bool) {
        if is_match {
            (self.has_match, self.samples) = (true, Vec::new());
            return;
        }
        self.samples.resize_with(values.len(), Sample::default);
        self.samples.iter_mut().zip(values).for_each(|(sample, value)| sample.add(value));
    }

    /// Returns the number of rows and the values of columns with these names, if no row matched.
    pub(crate) fn describe(&self, names: impl Iterator<Item = String>) -> Option<String> {
        if self.has_match || self.row_count == 0 {
            return None;
        }
        let mut text = format!("0 of {} rows matched", self.row_count);
        let mut named = BTreeSet::new();
        for (name, sample) in names.zip(&self.samples) {
            if named.len() < COLUMN_MAX && named.insert(name.clone()) {
                text.push_str("; ");
                text.push_str(&sample.describe(&name));
            }
        }
        Some(text)
    }
}

impl Sample {
    fn add(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Group(_) => {}
            Value::List(items) => items.iter().for_each(|item| self.add(item)),
            Value::Unsigned(_)
            | Value::Signed(_)
            | Value::Float(_)
            | Value::Timestamp(_)
            | Value::Duration(_) => self.add_number(value),
            value => self.add_text(value),
        }
    }

    fn add_number(&mut self, value: &Value) {
        match self {
            Self::Numbers(least, greatest) => {
                if compare_values(value, least) == Some(Ordering::Less) {
                    *least = value.clone();
                }
                if compare_values(value, greatest) == Some(Ordering::Greater) {
                    *greatest = value.clone();
                }
            }
            Self::Nothing => *self = Self::Numbers(value.clone(), value.clone()),
            Self::Texts(..) => self.add_text(value),
        }
    }

    fn add_text(&mut self, value: &Value) {
        if let Self::Numbers(least, greatest) = self {
            *self = Self::Texts([number(least), number(greatest)].into(), true);
        }
        if matches!(self, Self::Nothing) {
            *self = Self::Texts(BTreeSet::new(), false);
        }
        let Self::Texts(texts, has_more) = self else { return };
        let whole = value.to_string();
        let mut text: String = whole.chars().take(TEXT_LEN_MAX).collect();
        if text.len() < whole.len() {
            text.push('\u{2026}');
        }
        if texts.len() < TEXT_MAX {
            texts.insert(text);
        } else {
            *has_more |= !texts.contains(&text);
        }
    }

    fn describe(&self, name: &str) -> String {
        match self {
            Self::Nothing => format!("no row has a value of {name}"),
            Self::Texts(texts, has_more) => {
                let texts: Vec<_> = texts.iter().map(String::as_str).collect();
                let more = if *has_more { " and others" } else { "" };
                format!("{name} values seen: {}{more}", texts.join(", "))
            }
            Self::Numbers(least, greatest) if least == greatest => {
                format!("{name} values seen: {}", number(least))
            }
            Self::Numbers(least, greatest) => {
                format!("{name} values seen: {} to {}", number(least), number(greatest))
            }
        }
    }
}

/// Formats a number or time for people.
fn number(value: &Value) -> String {
    match value {
        Value::Timestamp(time) => time.rfc3339().to_string(),
        Value::Duration(duration) => humantime::format_duration(*duration).to_string().replace(' ', ""),
        value => value.to_string(),
    }
}
