//! Texts of a limited width.

use std::borrow::Cow;
use std::time::Duration;

use flowgauge::export::human::octets;
use ratatui::text::Span;

use crate::escape;

/// Returns the number of columns of a text.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// Returns a text from the network with all characters escaped that control the terminal or have no defined width.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape::push_printable(&mut out, text);
    out
}

/// Returns the longest start of the characters that has at most a number of columns, as their number.
fn fitting_count(letters: impl Iterator<Item = char>, width_max: usize) -> usize {
    let mut octets = [0; 4];
    let widths = letters.map(|letter| width(letter.encode_utf8(&mut octets)));
    let mut sum = 0;
    widths
        .take_while(|width| {
            sum += width;
            sum <= width_max
        })
        .count()
}

/// Shortens a text to a number of columns: its middle is omitted, since the ends distinguish addresses and names.
pub(super) fn fit(text: &str, width_max: usize) -> Cow<'_, str> {
    if width(text) <= width_max {
        return Cow::Borrowed(text);
    }
    let Some(rest) = width_max.checked_sub(1) else { return Cow::Borrowed("") };
    let head = fitting_count(text.chars(), rest - rest / 2);
    let tail = fitting_count(text.chars().rev(), rest / 2);
    let tail_start = text.chars().count().saturating_sub(tail);
    let mut out: String = text.chars().take(head).collect();
    out.push('…');
    out.extend(text.chars().skip(tail_start));
    Cow::Owned(out)
}

/// Splits a text into lines of a number of columns, at most `count_max`; the last one ends with an ellipsis if the text is
/// longer.
pub(super) fn split(text: &str, width_max: usize, count_max: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && lines.len() < count_max {
        // A character that is wider than a line is omitted.
        let count = fitting_count(rest.chars(), width_max).max(1);
        let end = rest.char_indices().nth(count).map_or(rest.len(), |(end, _)| end);
        let (line, after) = rest.split_at(end);
        // A space in the second half of the line ends it.
        let space = line.rfind(' ').filter(|space| !after.is_empty() && 2 * space > end);
        let (line, after) = space.map_or((line, after), |space| rest.split_at(space));
        lines.push(line.to_owned());
        rest = after.trim_start_matches(' ');
    }
    if let Some(last) = lines.last_mut().filter(|_| !rest.is_empty()) {
        while width(last) >= width_max && last.pop().is_some() {}
        last.push('…');
    }
    lines
}

/// Formats a rate in at most six characters, for a column with a unit.
pub(super) fn short_rate(per_second: f64) -> String {
    octets(per_second.round() as u64)
}

/// Formats a length of time that passes on the screen: `7s`, `3m05s`, `2h03m`, `12d03h`.
pub(super) fn age(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shortened_to_columns_in_the_middle() {
        assert_eq!(fit("192.0.2.1:443", 13), "192.0.2.1:443");
        assert_eq!(fit("[2001:db8::1234:5678]:443", 15), "[2001:d…78]:443");
        assert_eq!((fit("abc", 1), fit("abc", 0), fit("", 0)), ("…".into(), "".into(), "".into()));
        // Each character has two columns.
        assert_eq!(fit("日本語日本語", 8), "日本…語");
        for width_max in 0..30 {
            assert!(width(&fit("日本語a日本語b日本語", width_max)) <= width_max);
        }
    }

    #[test]
    fn long_texts_become_lines() {
        assert_eq!(split("abcdefgh", 3, 9), ["abc", "def", "gh"]);
        assert_eq!(split("abcdefgh", 3, 2), ["abc", "de…"]);
        assert_eq!(split("abc defgh", 5, 1), ["abc…"]);
        assert_eq!(split("日本", 3, 9), ["日", "本"]);
        assert_eq!(split("a bcdef gh i", 8, 9), ["a bcdef", "gh i"]);
        assert_eq!(split("a bcdefghi", 8, 9), ["a bcdefg", "hi"]);
        assert!(split("", 3, 9).is_empty());
        assert_eq!(split("日本", 0, 9).len(), 2, "no endless loop");
    }

    #[test]
    fn ages_are_short() {
        for (seconds, text) in [(7, "7s"), (185, "3m05s"), (7380, "2h03m"), (1_047_600, "12d03h")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
