//! Selection of rows and columns: names of columns, and the options `--where` and `--community-id`.

use clap::Args;
use flowgauge::FlowRecord;
use flowgauge::export::Selection;
use flowgauge::row::RowType;

use crate::args::parse_community_id;
use crate::console::Failure;
use crate::names::field_names;
use flowgauge_condition::{Condition, RowFilter, nearest};

/// Parses names of columns of a row, separated by commas.
pub(crate) fn parse_columns<R: RowType>(text: &str) -> Result<Selection, String> {
    let columns = R::columns();
    let names: Vec<_> = text.split(',').map(str::trim).collect();
    let names = field_names(&names, &columns);
    Selection::of::<R>(names.iter().copied()).map_err(|name| {
        if names.iter().filter(|known| **known == name).count() > 1 {
            format!("`{name}` is listed twice")
        } else {
            let near = nearest(name, columns.iter().map(|column| column.name));
            let hint = near.map_or_else(|| ";".to_owned(), |near| format!("; did you mean `{near}`?"));
            format!("`{name}` is not a field{hint} `help` lists all of them")
        }
    })
}

/// Options that select flow records by their values.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Write only flows that meet a condition: 'octet_count > 1000'
    ///
    /// The condition is an expression of SQL over the fields in docs/fields.md, with comparisons, AND, OR, NOT, IN, BETWEEN,
    /// LIKE, ILIKE, IS NULL and + - * /. Texts have quotes. A text can be a network ('10.0.0.0/8'), a time
    /// ('2026-11-26T12:00:00Z'), a length of time ('10ms'), a size ('1MiB') or an IP protocol ('tcp'); a number is compared
    /// with times in seconds. A comparison with an absent value is not true.
    #[arg(id = "condition", long = "where", value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) condition: Option<String>,

    /// Write only flows with this Community ID; may be repeated
    #[arg(long, value_name = "ID", value_parser = parse_community_id)]
    pub(crate) community_id: Vec<String>,
}

impl SelectionArgs {
    /// Returns whether flows are selected.
    pub(crate) const fn is_used(&self) -> bool {
        self.condition.is_some() || !self.community_id.is_empty()
    }

    /// Returns the conditions on rows that contain the columns of a flow record.
    pub(crate) fn filter_of<R: RowType>(&self) -> Result<RowFilter, Failure> {
        let ids = (!self.community_id.is_empty()).then(|| {
            let ids: Vec<_> = self.community_id.iter().map(|id| format!("'{id}'")).collect();
            format!("community_id in ({})", ids.join(", "))
        });
        let failure = |error| Failure::Usage(format!("--where: {error}"));
        let conditions = self.condition.iter().chain(&ids).map(|text| Condition::of_row::<R>(text));
        Ok(RowFilter::new(conditions.collect::<Result<Vec<_>, _>>().map_err(failure)?))
    }

    /// Returns the conditions on flow records.
    pub(crate) fn filter(&self) -> Result<RowFilter, Failure> {
        self.filter_of::<FlowRecord>()
    }

    /// Returns whether the condition contains a part of a name, so that columns with such names have to be computed.
    pub(crate) fn mentions(&self, part: &str) -> bool {
        self.condition.as_ref().is_some_and(|condition| condition.contains(part))
    }
}
