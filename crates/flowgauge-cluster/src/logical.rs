//! Tables of captures in logical plans, from the client to the scheduler.

use std::path::Path;
use std::sync::Arc;

use ballista_core::serde::BallistaLogicalExtensionCodec;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::{TableReference, plan_err};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use flowgauge_sql::CaptureTable;

use crate::functions::functions_of_others;
use crate::messages::{RowsMessage, TableMessage, decode, encode, is_envelope};

/// Encodes and decodes logical plans with tables of captures: their kind, options, and patterns of captures, which the
/// scheduler expands. Relative patterns become absolute ones of the process that encodes them.
#[derive(Debug, Default)]
pub struct LogicalCodec {
    others: BallistaLogicalExtensionCodec,
}

impl LogicalExtensionCodec for LogicalCodec {
    fn try_decode(&self, octets: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        self.others.try_decode(octets, inputs, context)
    }

    fn try_encode(&self, node: &Extension, octets: &mut Vec<u8>) -> Result<()> {
        self.others.try_encode(node, octets)
    }

    fn try_decode_table_provider(
        &self,
        octets: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        if !is_envelope(octets) {
            return self.others.try_decode_table_provider(octets, name, schema, context);
        }
        let TableMessage { rows, patterns } = decode(octets)?;
        let Some(rows) = rows else { return plan_err!("a table of captures has no rows") };
        let (table, config) = rows.table()?;
        let table = CaptureTable::new(table, patterns, config);
        if table.schema() != schema {
            return plan_err!(
                "{} has other columns here than where the query was planned; client, scheduler and executors must be of one \
                 version of flowgauge",
                table.table().function()
            );
        }
        Ok(Arc::new(table))
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        octets: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(captures) = table.downcast_ref::<CaptureTable>() else {
            return match self.others.try_encode_table_provider(name, table, octets) {
                Ok(()) => Ok(()),
                Err(_) => plan_err!(
                    "the table {name} is in the memory of the client, so that a cluster cannot read it"
                ),
            };
        };
        let patterns = captures.patterns().iter().map(|pattern| absolute(pattern)).collect::<Result<_>>()?;
        let rows = Some(RowsMessage::new(captures.table(), captures.config())?);
        encode(&TableMessage { rows, patterns }, octets);
        Ok(())
    }

    fn try_decode_file_format(
        &self,
        octets: &[u8],
        context: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        self.others.try_decode_file_format(octets, context)
    }

    fn try_encode_file_format(&self, octets: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.others.try_encode_file_format(octets, format)
    }

    functions_of_others!();
}

/// Returns a pattern that means the same in every working directory. Standard input and URLs remain, which are errors.
fn absolute(pattern: &str) -> Result<String> {
    if pattern == "-" || pattern.contains("://") || Path::new(pattern).is_absolute() {
        return Ok(pattern.to_owned());
    }
    let failure =
        |problem: String| DataFusionError::Execution(format!("{pattern}: the working directory {problem}"));
    let folder = std::env::current_dir().map_err(|error| failure(format!("is unknown: {error}")))?;
    let Some(folder) = folder.to_str() else { return Err(failure("is not Unicode".to_owned())) };
    // A file whose name contains characters of patterns is that file.
    let is_pattern = pattern.contains(['*', '?', '[']) && !Path::new(pattern).exists();
    let folder = if is_pattern { glob::Pattern::escape(folder) } else { folder.to_owned() };
    Ok(format!("{}/{pattern}", folder.trim_end_matches('/')))
}
