//! Rows of results as text.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;

/// Returns the rows of a result, sorted; columns are separated by `|`.
pub(crate) fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
            rows.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    rows.sort();
    rows
}
