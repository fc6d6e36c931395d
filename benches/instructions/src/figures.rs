//! Figures of each bench, and the environment that they depend on besides the code.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Error message for the user.
pub type Reason = Box<dyn std::error::Error>;

/// Cost of one bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Number of instructions, counted by Callgrind.
    pub instructions: u64,
    /// Number of allocated blocks, counted by DHAT, including reallocations.
    pub allocations: u64,
}

/// Name and version of everything that instruction counts depend on besides the code.
pub type Environment = BTreeMap<String, String>;

/// The figures of all benches of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Environment of the run.
    pub environment: Environment,
    /// Figures by `layer/function/case`.
    pub benches: BTreeMap<String, Figures>,
}

impl Run {
    /// Reads a run from the JSON of [`to_json`](Self::to_json).
    ///
    /// # Errors
    ///
    /// If the text is not JSON, or a figure is missing.
    pub fn from_json(text: &str) -> Result<Self, Reason> {
        let value: Value = serde_json::from_str(text)?;
        let object = |name: &str| value[name].as_object().ok_or(format!("no object `{name}`"));
        let mut run = Self::default();
        for (name, version) in object("environment")? {
            let version = version.as_str().ok_or(format!("`{name}` is not a string"))?;
            run.environment.insert(name.clone(), version.to_owned());
        }
        for (id, figures) in object("benches")? {
            let figure = |name: &str| figures[name].as_u64().ok_or(format!("`{id}` has no `{name}`"));
            let (instructions, allocations) = (figure("instructions")?, figure("allocations")?);
            run.benches.insert(id.clone(), Figures { instructions, allocations });
        }
        Ok(run)
    }

    /// Returns JSON with one line per bench, sorted by id, so that a change of the reference is a readable diff.
    #[must_use]
    pub fn to_json(&self) -> String {
        let string = |text: &str| Value::from(text).to_string();
        let environment = self.environment.iter();
        let environment = environment.map(|(name, version)| format!("{}: {}", string(name), string(version)));
        let benches = self.benches.iter().map(|(id, figures)| {
            let Figures { instructions, allocations } = figures;
            let id = string(id);
            format!("{id}: {{\"instructions\": {instructions}, \"allocations\": {allocations}}}")
        });
        let mut text = String::from("{\n");
        let lines = |lines: Vec<String>| lines.join(",\n    ");
        let _ = writeln!(text, "  \"environment\": {{\n    {}\n  }},", lines(environment.collect()));
        let _ = writeln!(text, "  \"benches\": {{\n    {}\n  }}\n}}", lines(benches.collect()));
        text
    }

    /// Reads all summaries that gungraun wrote below a folder.
    ///
    /// # Errors
    ///
    /// If a summary cannot be read, or does not have the format of gungraun 0.20.
    pub fn read_summaries(&mut self, folder: &Path) -> Result<(), Reason> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.read_summaries(&path)?;
            } else if path.file_name().is_some_and(|name| name == "summary.json") {
                let (id, figures) = summary(&fs::read_to_string(&path)?)
                    .map_err(|reason| format!("{}: {reason}", path.display()))?;
                if self.benches.insert(id.clone(), figures).is_some() {
                    return Err(format!("two benches have the id {id}").into());
                }
            }
        }
        Ok(())
    }
}

/// Returns the id and the figures of a summary.
fn summary(text: &str) -> Result<(String, Figures), Reason> {
    let value: Value = serde_json::from_str(text)?;
    let name = |field: &str| value[field].as_str().ok_or(format!("no `{field}`"));
    let group = name("group")?;
    let layer = group.strip_suffix("_group").unwrap_or(group);
    let id = format!("{layer}/{}/{}", name("function_name")?, name("id")?);
    let metric = |tool: &str, metric: &str| {
        let profiles = value["profiles"].as_array().ok_or("no `profiles`")?;
        let of_tool = |profile: &&Value| profile["tool"].as_str().is_some_and(|it| it == tool);
        let profile = profiles.iter().find(of_tool).ok_or(format!("no profile of {tool}"))?;
        let figure = &profile["data"]["total"]["metrics"][metric]["values"]["new"];
        figure.as_u64().ok_or_else(|| Reason::from(format!("no figure `{metric}` of {tool}")))
    };
    let (instructions, allocations) = (metric("Callgrind", "Ir")?, metric("DHAT", "TotalBlocks")?);
    Ok((id, Figures { instructions, allocations }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_equal_after_a_round_trip() {
        let mut run = Run::default();
        run.environment.insert("rustc".into(), "rustc 1.95.0 (\"quoted\")".into());
        run.benches.insert("a/b/c".into(), Figures { instructions: u64::MAX, allocations: 0 });
        run.benches.insert("a/b/d".into(), Figures { instructions: 0, allocations: 7 });
        let text = run.to_json();
        assert_eq!(Run::from_json(&text).expect("valid"), run);
        assert_eq!(text.lines().filter(|line| line.contains("instructions")).count(), 2);
        assert!(Run::from_json(&text.replace("allocations", "allocation")).is_err());
    }

    #[test]
    fn a_summary_without_a_figure_is_an_error() {
        let profile = |tool: &str, metric: &str, figure: u32| {
            format!(
                r#"{{"tool":"{tool}","data":{{"total":{{"metrics":{{"{metric}":{{"values":{{"new":{figure}}}}}}}}}}}}}"#
            )
        };
        let text = format!(
            r#"{{"group":"link_group","function_name":"walk","id":"plain","profiles":[{},{}]}}"#,
            profile("Callgrind", "Ir", 123),
            profile("DHAT", "TotalBlocks", 4)
        );
        let (id, figures) = summary(&text).expect("valid");
        assert_eq!((id.as_str(), figures.instructions, figures.allocations), ("link/walk/plain", 123, 4));
        assert!(summary(&text.replace("TotalBlocks", "Other")).is_err());
        assert!(summary(&text.replace("DHAT", "Other")).is_err());
    }
}
