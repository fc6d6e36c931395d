//! A table of captures.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::catalog::TableProvider;
use datafusion::common::{Statistics, stats::Precision};
use datafusion::datasource::TableType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use flowgauge_arrow::scan::{Notify, Scan, ScanConfig, Table, Warning};
use flowgauge_arrow::{Addresses, Durations, Names, Options};

use crate::arguments::Arguments;
use crate::inputs::{Captures, distribute, expand};
use crate::predicate::Predicates;
use crate::source::CaptureSource;

/// Columns of flows that depend on other flows: on their number, or because the messages of one flow announce another, as
/// those of FTP and TFTP do.
const DEPENDENT: [&str; 5] = [
    "sequence_number",
    "application",
    "application_evidence",
    "application_name",
    "application_category_name",
];

/// A table of captures, for sessions without the table functions: `context.register_table("flows", Arc::new(table))`.
#[derive(Clone)]
pub struct CaptureTable {
    scan: Scan,
    patterns: Vec<String>,
    warning: Option<Notify<Warning>>,
}

impl fmt::Debug for CaptureTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureTable")
            .field("scan", &self.scan)
            .field("patterns", &self.patterns)
            .finish_non_exhaustive()
    }
}

impl CaptureTable {
    /// Creates a table of captures at paths, which may be patterns.
    #[must_use]
    pub fn new(
        table: Table,
        patterns: impl IntoIterator<Item = impl Into<String>>,
        config: ScanConfig,
    ) -> Self {
        let patterns = patterns.into_iter().map(Into::into).collect();
        Self::of(Arguments { table, patterns, config }, None)
    }

    pub(crate) fn of(arguments: Arguments, warning: Option<Notify<Warning>>) -> Self {
        let Arguments { table, patterns, config } = arguments;
        let options =
            Options::default().addresses(Addresses::Text).durations(Durations::Integers).names(Names::Text);
        Self { scan: Scan::new(table, &options, config), patterns, warning }
    }
}

#[async_trait]
impl TableProvider for CaptureTable {
    fn schema(&self) -> SchemaRef {
        self.scan.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    /// Conditions on keys and times choose what is read; all conditions are evaluated again for each row.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let is_pushed = |filter: &&Expr| !Predicates::of(&self.scan, [*filter]).is_empty();
        Ok(filters
            .iter()
            .map(|filter| match is_pushed(filter) {
                true => TableProviderFilterPushDown::Inexact,
                false => TableProviderFilterPushDown::Unsupported,
            })
            .collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut scan = self.scan.clone();
        let all = self.schema();
        let is_dependent = |index: &usize| DEPENDENT.contains(&all.field(*index).name().as_str());
        let is_alone = match scan.table() {
            Table::Flows => projection.is_some_and(|indices| !indices.iter().any(is_dependent)),
            table => table == Table::Packets,
        };
        Predicates::of(&scan, filters).apply(scan.config_mut(), is_alone);
        let captures = expand(&self.patterns)?;
        let total_len = captures.iter().map(|capture| capture.len).sum::<u64>();
        let is_one = scan.config().is_joined || scan.table().is_joined();
        let groups = if is_one {
            // The order of captures decides between frames with equal times.
            vec![Captures { files: captures, len: total_len }]
        } else {
            distribute(captures, state.config().target_partitions())
        };
        let mut statistics = Statistics::new_unknown(&self.schema());
        statistics.total_byte_size = Precision::Inexact(total_len as usize);
        let source =
            CaptureSource::new(scan, Arc::clone(&state.runtime_env().memory_pool), self.warning.clone());
        // A file stands for all captures of a group, which one thread reads: batches go on from one to the next.
        let file_groups = groups.into_iter().map(|group| {
            let name = match group.files.as_slice() {
                [only] => only.path.display().to_string(),
                all => format!("{} captures", all.len()),
            };
            FileGroup::new(vec![PartitionedFile::new(name, group.len).with_extension(group)])
        });
        let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
            .with_file_groups(file_groups.collect())
            .with_projection_indices(projection.cloned())?
            .with_statistics(statistics)
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}
