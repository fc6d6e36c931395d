//! File names of stream output.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use flowgauge::base::Side;
use flowgauge::tracker::FlowView;

/// A pattern for file names, with placeholders for properties of the flow. Generated names are not paths: they contain
/// no separators, and do not begin with a dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder(Placeholder),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder {
    Number,
    Source,
    SourcePort,
    Destination,
    DestinationPort,
    Side,
}

impl Placeholder {
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

    fn has(&self, placeholder: Placeholder) -> bool {
        self.0.contains(&Part::Placeholder(placeholder))
    }

    /// Returns the file name for the octets sent by a side of a flow.
    pub(super) fn name(&self, view: &FlowView<'_>, number: u64, side: Side) -> String {
        let mut name = String::new();
        for part in &self.0 {
            let written = match part {
                Part::Text(text) => name.write_str(text),
                Part::Placeholder(Placeholder::Number) => write!(name, "{number:06}"),
                Part::Placeholder(Placeholder::Source) => write!(name, "{}", address(view, side)),
                Part::Placeholder(Placeholder::Destination) => {
                    write!(name, "{}", address(view, side.other()))
                }
                Part::Placeholder(Placeholder::SourcePort) => write_port(&mut name, view, side),
                Part::Placeholder(Placeholder::DestinationPort) => write_port(&mut name, view, side.other()),
                Part::Placeholder(Placeholder::Side) => {
                    name.write_str(if side == Side::A { "a" } else { "b" })
                }
            };
            debug_assert!(written.is_ok(), "writing to a string cannot fail");
        }
        name
    }
}

/// Appends the port of a side to a file name; nothing if the flow has no ports.
fn write_port(name: &mut String, view: &FlowView<'_>, side: Side) -> std::fmt::Result {
    view.key().port(side).map_or(Ok(()), |port| write!(name, "{port}"))
}

/// Returns the address of a side as text that is valid in a file name on any file system.
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
            let (name, after) = after.split_once('}').ok_or("a `{` has no matching `}`")?;
            let placeholder =
                Placeholder::ALL.into_iter().find(|(known, _)| *known == name).ok_or_else(|| {
                    let names: Vec<_> =
                        Placeholder::ALL.iter().map(|(known, _)| format!("{{{known}}}")).collect();
                    format!("unknown placeholder `{{{name}}}`; the placeholders are {}", names.join(", "))
                })?;
            parts.push(Part::Placeholder(placeholder.1));
            rest = after;
        }
        let pattern = Self(parts);
        if text.contains(|c: char| c.is_control() || "/\\:".contains(c)) {
            return Err(
                "must be a file name, not a path: remove slashes, colons and control characters".to_owned()
            );
        }
        if text.starts_with('.') {
            return Err("must not start with a dot, because the files would be hidden".to_owned());
        }
        let is_ambiguous = |pair: &[Part]| match pair {
            [Part::Placeholder(_), Part::Placeholder(_)] => true,
            [Part::Placeholder(Placeholder::Number), Part::Text(text)] => {
                text.starts_with(|c: char| c.is_ascii_digit())
            }
            [Part::Text(text), Part::Placeholder(Placeholder::Number)] => {
                text.ends_with(|c: char| c.is_ascii_digit())
            }
            _ => false,
        };
        if pattern.0.windows(2).any(is_ambiguous) {
            return Err("file names may not be unique: separate the placeholders by text, and put no digits next to {number}".to_owned());
        }
        let has_side = pattern.has(Placeholder::Side)
            || (pattern.has(Placeholder::Source) && pattern.has(Placeholder::SourcePort));
        if !pattern.has(Placeholder::Number) || !has_side {
            return Err(
                "file names may not be unique: add {number}, and {side} or both {source} and {source_port}"
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
            Part::Placeholder(placeholder) => {
                let name = Placeholder::ALL
                    .iter()
                    .find(|(_, known)| known == placeholder)
                    .map_or("", |(name, _)| name);
                write!(f, "{{{name}}}")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_creates_unique_names_in_one_folder() {
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
            ("{number}{source_port}-{source}", "separate"),
            ("{number}7{side}", "no digits"),
            ("7{number}-{side}", "no digits"),
            ("../{number}-{side}", "path"),
            ("a/{number}{side}", "path"),
            ("a\\{number}{side}", "path"),
            ("{number}{side}\n", "control"),
            (".{number}{side}", "hidden"),
            ("{number}{side", "no matching `}`"),
            ("{number}{side}{path}", "{path}"),
            ("", "{number}"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
