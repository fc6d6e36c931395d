//! The queries of `queries.sql`, and rows of results as text.

use std::sync::Arc;

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::array_value_to_string;

/// Returns the queries, in which a table is a name in braces.
pub(crate) fn queries() -> Vec<String> {
    let lines = include_str!("queries.sql").lines().filter(|line| !line.starts_with("--"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let queries = text.split(';').map(str::trim).filter(|query| !query.is_empty());
    queries.map(str::to_owned).collect()
}

/// Returns the query with each table in braces replaced.
pub(crate) fn replaced(query: &str, table: impl Fn(&str, Option<&str>) -> String) -> String {
    let mut parts = query.split('{');
    let mut result = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap();
        let (name, kind) = name.split_once(':').map_or((name, None), |(name, kind)| (name, Some(kind)));
        result += &table(name, kind);
        result += rest;
    }
    result
}

/// Returns the rows of a result as text, sorted. Each column is converted to the type that `types` has for it.
pub(crate) fn rows(batches: &[RecordBatch], types: &[DataType]) -> Vec<String> {
    let mut rows = lines(batches, types);
    rows.sort();
    rows
}

/// Returns the rows of a result as text. Each column is converted to the type that `types` has for it.
pub(crate) fn lines(batches: &[RecordBatch], types: &[DataType]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .zip(types)
            .map(|(column, wanted)| cast(column, wanted).unwrap_or_else(|error| panic!("{wanted}: {error}")))
            .collect();
        for row in 0..batch.num_rows() {
            let value = |column: &Arc<dyn Array>| match column.data_type() {
                DataType::Float64 if column.is_valid(row) => {
                    let text = array_value_to_string(column, row).unwrap();
                    format!("{:.6e}", text.parse::<f64>().unwrap())
                }
                _ => array_value_to_string(column, row).unwrap(),
            };
            rows.push(columns.iter().map(value).collect::<Vec<_>>().join("|"));
        }
    }
    rows
}
