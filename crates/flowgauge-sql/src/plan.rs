//! Scans of captures in plans: how they are created, and what another process needs to create them.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Statistics, plan_err, stats::Precision};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::object_store::{ObjectStoreRegistry, ObjectStoreUrl};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::ExecutionPlan;

use flowgauge_arrow::scan::{Notify, Scan, ScanConfig, Table, Warning};
use flowgauge_arrow::{Addresses, Durations, Names, Options};

use crate::capture::{Capture, Captures};
use crate::source::{CaptureSource, Shared};

/// A scan of captures in a physical plan, as values that can be sent to another process.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::prelude::SessionContext;
/// use flowgauge_sql::CaptureScan;
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
/// # runtime.block_on(async {
/// let context = SessionContext::new();
/// flowgauge_sql::register(&context)?;
/// let frame = context.sql("SELECT octet_count FROM flows('../../examples/data/web.pcap')").await?;
/// let plan = frame.create_physical_plan().await?;
/// let scan = CaptureScan::of(plan.as_ref()).expect("the plan is a scan");
/// assert_eq!(scan.groups.len(), 1);
/// let environment = context.runtime_env();
/// let (pool, stores) = (Arc::clone(&environment.memory_pool), Arc::clone(&environment.object_store_registry));
/// let other = scan.into_plan(pool, stores, None)?;
/// assert_eq!(other.schema(), plan.schema());
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CaptureScan {
    /// The kind of rows.
    pub table: Table,
    /// The options, with the packets, times and number of rows that the query needs.
    pub config: ScanConfig,
    /// The captures of each partition, which one thread reads one after the other.
    pub groups: Vec<Vec<Capture>>,
    /// The columns of the plan, as expressions over the columns of the table.
    pub projection: ProjectionExprs,
    /// Maximum number of rows in a batch; `None` for that of the session.
    pub batch_size: Option<usize>,
}

impl CaptureScan {
    /// Creates a scan of all columns of a table.
    #[must_use]
    pub fn new(table: Table, config: ScanConfig, groups: Vec<Vec<Capture>>) -> Self {
        let schema = Self::schema(table, &config);
        let indices: Vec<_> = (0..schema.fields().len()).collect();
        let projection = ProjectionExprs::from_indices(&indices, &schema);
        Self { table, config, groups, projection, batch_size: None }
    }

    /// Returns the columns of a table, which the expressions of a projection refer to.
    #[must_use]
    pub fn schema(table: Table, config: &ScanConfig) -> SchemaRef {
        all_columns(table, config.clone()).schema()
    }

    /// Returns the scan that a plan is; `None` if it is another one. Inputs of the plan are not searched.
    #[must_use]
    pub fn of(plan: &dyn ExecutionPlan) -> Option<Self> {
        let exec = plan.downcast_ref::<DataSourceExec>()?;
        let source: &dyn Any = exec.data_source().as_ref();
        let config = source.downcast_ref::<FileScanConfig>()?;
        let source: &dyn Any = config.file_source.as_ref();
        let source = source.downcast_ref::<CaptureSource>()?;
        let group = |group: &FileGroup| {
            let captures = group.iter().filter_map(|file| file.extension::<Captures>());
            captures.flat_map(|captures| captures.files.iter().cloned()).collect()
        };
        let mut settings = source.scan().config().clone();
        settings.limit = config.limit.map(|limit| limit as u64);
        Some(Self {
            table: source.scan().table(),
            config: settings,
            groups: config.file_groups.iter().map(group).collect(),
            projection: source.expressions().clone(),
            batch_size: config.batch_size,
        })
    }

    /// Creates the plan of the scan. What its pipelines hold is charged to `pool`; objects are read from `stores`, or from
    /// stores that are created from the environment and added to them; `warning` is called with the damage at which reading
    /// of a capture ended.
    ///
    /// # Errors
    ///
    /// Returns an error if the projection refers to a column that the table does not have, or has no type.
    pub fn into_plan(
        self,
        pool: Arc<dyn MemoryPool>,
        stores: Arc<dyn ObjectStoreRegistry>,
        warning: Option<Notify<Warning>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = all_columns(self.table, self.config);
        let schema = scan.schema();
        for projected in self.projection.iter() {
            projected.expr.apply(|expr| {
                let Some(column) = expr.downcast_ref::<Column>() else {
                    return Ok(TreeNodeRecursion::Continue);
                };
                match schema.fields().get(column.index()) {
                    Some(field) if field.name() == column.name() => Ok(TreeNodeRecursion::Continue),
                    _ => plan_err!("the table has no column {column}"),
                }
            })?;
            projected.expr.return_field(&schema)?;
        }
        let source =
            CaptureSource::new(scan, Shared { pool, stores, warning }).with_projection(&self.projection);
        Ok(plan(source, self.groups.into_iter().map(Captures::from).collect(), self.batch_size))
    }
}

/// Returns the scan of all columns of a table, with the types of SQL.
pub(crate) fn all_columns(table: Table, config: ScanConfig) -> Scan {
    let options =
        Options::default().addresses(Addresses::Text).durations(Durations::Integers).names(Names::Text);
    Scan::new(table, &options, config)
}

/// Creates the plan that reads each group of captures as a partition.
pub(crate) fn plan(
    source: CaptureSource,
    groups: Vec<Captures>,
    batch_size: Option<usize>,
) -> Arc<dyn ExecutionPlan> {
    let total_len = groups.iter().fold(0, |len: u64, group| len.saturating_add(group.len));
    let mut statistics = Statistics::new_unknown(&source.scan().schema());
    statistics.total_byte_size = Precision::Inexact(usize::try_from(total_len).unwrap_or(usize::MAX));
    // A file stands for all captures of a group, which one thread reads: batches go on from one to the next.
    let file_groups = groups.into_iter().map(|group| {
        let name = match group.files.as_slice() {
            [only] => only.path.display().to_string(),
            all => format!("{} captures", all.len()),
        };
        FileGroup::new(vec![PartitionedFile::new(name, group.len).with_extension(group)])
    });
    let limit = source.scan().config().limit;
    let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
        .with_file_groups(file_groups.collect())
        .with_statistics(statistics)
        .with_limit(limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)))
        .with_batch_size(batch_size)
        .build();
    DataSourceExec::from_data_source(config)
}
