//! Selection of flows by a condition as of `--where`, and the columns that a condition can name.

use flowgauge::FlowRecord;

use flowgauge_condition::{Condition, Problem};

/// The name of a flow, as columns of a row.
struct Name<'a>(Option<&'a str>);

flowgauge::table! {
    /// What the view adds to a flow record.
    impl['a] "view" for Name<'a> as name {
        /// Name of the server, or the name that was queried.
        "server_name": Option<&'a str> = name.0;
    }
}

/// A condition on flows, and its text.
#[derive(Clone, Debug)]
pub(super) struct FlowCondition {
    pub(super) text: String,
    condition: Condition,
}

impl FlowCondition {
    /// Parses a condition.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let condition = Condition::parse::<(&FlowRecord, Name<'_>)>(text)?;
        Ok(Self { text: text.to_owned(), condition })
    }

    /// Returns whether a flow meets the condition.
    pub(super) fn matches(&mut self, record: &FlowRecord, name: Option<&str>) -> bool {
        self.condition.matches(&(record, Name(name)))
    }
}
