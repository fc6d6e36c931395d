//! A table of captures.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::catalog::TableProvider;
use datafusion::datasource::TableType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::ExecutionPlan;
use flowgauge_arrow::scan::{Notify, Scan, ScanConfig, Table, Warning};

use crate::arguments::Arguments;
use crate::inputs::{distribute, expand};
use crate::plan::{all_columns, plan};
use crate::predicate::Predicates;
use crate::source::{CaptureSource, Shared};

/// Columns of flows that depend on other flows: numbers in the order of records.
const DEPENDENT: [&str; 2] = ["id", "sequence_number"];

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
    /// Creates a table of captures at paths or URLs, which may be patterns.
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
        Self { scan: all_columns(table, config), patterns, warning }
    }

    /// Calls a function, on the thread that reads, with the damage at which reading of a capture ended.
    #[must_use]
    pub fn with_warning(mut self, warning: Notify<Warning>) -> Self {
        self.warning = Some(warning);
        self
    }

    /// Returns the kind of rows.
    #[must_use]
    pub const fn table(&self) -> Table {
        self.scan.table()
    }

    /// Returns the paths, URLs and patterns.
    #[must_use]
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// Returns the options.
    #[must_use]
    pub const fn config(&self) -> &ScanConfig {
        self.scan.config()
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
        scan.config_mut().limit = limit.map(|limit| limit as u64);
        let stores = Arc::clone(&state.runtime_env().object_store_registry);
        let captures = expand(&self.patterns, &stores).await?;
        let groups = if scan.config().is_joined || scan.table().is_joined() {
            // The order of captures decides between frames with equal times.
            vec![captures.into()]
        } else {
            distribute(captures, state.config().target_partitions())
        };
        let thread_count = state.config().target_partitions() / groups.len().max(1);
        let pool = Arc::clone(&state.runtime_env().memory_pool);
        let source = CaptureSource::new(scan, Shared { pool, stores, warning: self.warning.clone() })
            .with_threads(thread_count);
        let source = match projection {
            Some(indices) => source.with_projection(&ProjectionExprs::from_indices(indices, &all)),
            None => source,
        };
        Ok(plan(source, groups, None))
    }
}
