//! File names of streams.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use flowgauge::base::Side;
use flowgauge::tracker::FlowView;

/// A file name with placeholders for properties of the flow. Not a path: generated names contain no separators, and are
/// not hidden files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Fact(Fact),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fact {
    Number,
    Source,
    SourcePort,
    Destination,
    DestinationPort,
    Side,
}

impl Fact {
    const ALL: [(&'static str, Self); 6] = [
        ("number", Self::Number),
        ("source", Self::Source),
        ("source_port", Self::SourcePort),
        ("destination", Self::Destination),
        ("destination_port", Self::DestinationPort),
        ("side", Self::Side),
    ];
}

impl Pattern {
    pub(crate) const DEFAULT: &'static str =
        "{number}-{source}.{source_port}-{destination}.{destination_port}";

    fn has(&self, fact: Fact) -> bool {
        self.0.contains(&Part::Fact(fact))
    }

    /// Returns the file name for the octets sent by a side of a flow.
    pub(super) fn name(&self, view: &FlowView<'_>, number: u64, side: Side) -> String {
        let mut name = String::new();
        for part in &self.0 {
            let written = match part {
                Part::Text(text) => name.write_str(text),
                Part::Fact(Fact::Number) => write!(name, "{number:06}"),
                Part::Fact(Fact::Source) => write!(name, "{}", address(view, side)),
                Part::Fact(Fact::Destination) => write!(name, "{}", address(view, side.other())),
                Part::Fact(Fact::SourcePort) => write_port(&mut name, view, side),
                Part::Fact(Fact::DestinationPort) => write_port(&mut name, view, side.other()),
                Part::Fact(Fact::Side) => name.write_str(if side == Side::A { "a" } else { "b" }),
            };
            debug_assert!(written.is_ok(), "writing to a string cannot fail");
        }
        name
    }
}

/// Appends the port of a side; nothing if the flow has no ports.
fn write_port(name: &mut String, view: &FlowView<'_>, side: Side) -> std::fmt::Result {
    view.key().port(side).map_or(Ok(()), |port| write!(name, "{port}"))
}

/// Returns an address as text that is valid on any file system.
fn address(view: &FlowView<'_>, side: Side) -> String {
    view.address(side).to_string().replace(':', "_")
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let Some((before, after)) = rest.split_once('{') else {
                parts.push(Part::Text(rest.to_owned()));
                break;
            };
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let (name, after) = after.split_once('}').ok_or("a `{` has no `}`")?;
            let fact = Fact::ALL.into_iter().find(|(known, _)| *known == name).ok_or_else(|| {
                let names: Vec<_> = Fact::ALL.iter().map(|(known, _)| format!("{{{known}}}")).collect();
                format!("`{{{name}}}` is not known; there are {}", names.join(", "))
            })?;
            parts.push(Part::Fact(fact.1));
            rest = after;
        }
        let pattern = Self(parts);
        if text.contains(|c: char| c.is_control() || "/\\:".contains(c)) {
            return Err("a name, not a path: no slashes, colons or control characters".to_owned());
        }
        if text.starts_with('.') {
            return Err("names that begin with a dot are hidden".to_owned());
        }
        let is_ambiguous = |pair: &[Part]| match pair {
            [Part::Fact(_), Part::Fact(_)] => true,
            [Part::Fact(Fact::Number), Part::Text(text)] => text.starts_with(|c: char| c.is_ascii_digit()),
            [Part::Text(text), Part::Fact(Fact::Number)] => text.ends_with(|c: char| c.is_ascii_digit()),
            _ => false,
        };
        if pattern.0.windows(2).any(is_ambiguous) {
            return Err("two streams could get one name: put something between, and no digits".to_owned());
        }
        let has_side =
            pattern.has(Fact::Side) || (pattern.has(Fact::Source) && pattern.has(Fact::SourcePort));
        if !pattern.has(Fact::Number) || !has_side {
            return Err(
                "two streams could get one name: it needs {number}, and {side} or both {source} and {source_port}"
                    .to_owned(),
            );
        }
        Ok(pattern)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(text) => f.write_str(text),
            Part::Fact(fact) => {
                let name = Fact::ALL.iter().find(|(_, known)| known == fact).map_or("", |(name, _)| name);
                write!(f, "{{{name}}}")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_makes_names_of_one_folder() {
        for text in [
            Pattern::DEFAULT,
            "{number}{side}".replace("}{", "}-{").as_str(),
            "tcp {number}_{source}_{source_port}.bin",
        ] {
            assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
        }
        for (text, why) in [
            ("{number}", "{side}"),
            ("{side}", "{number}"),
            ("{number}-{source}-{destination_port}", "{source_port}"),
            ("{number}{source_port}-{source}", "between"),
            ("{number}7{side}", "no digits"),
            ("7{number}-{side}", "no digits"),
            ("../{number}-{side}", "path"),
            ("a/{number}{side}", "path"),
            ("a\\{number}{side}", "path"),
            ("{number}{side}\n", "control"),
            (".{number}{side}", "hidden"),
            ("{number}{side", "no `}`"),
            ("{number}{side}{path}", "{path}"),
            ("", "{number}"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
