//! Scans of captures in physical plans, from the scheduler to the executors.

use std::fmt;
use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use flowgauge_arrow::scan::{Notify, Warning};
use flowgauge_sql::{Capture, CaptureScan};

use crate::functions::functions_of_others;
use crate::messages::{
    CaptureMessage, GroupMessage, ProjectedMessage, RowsMessage, ScanMessage, decode, encode, is_envelope,
};

/// Memory of the pipelines of an executor.
#[derive(Clone, Debug)]
struct Memory {
    pool: Arc<dyn MemoryPool>,
    /// Maximum number of octets of one pipeline.
    part: u64,
}

/// Encodes and decodes physical plans with scans of captures: the captures of each partition, the columns, and what the
/// query needs of them.
#[derive(Default)]
pub struct PhysicalCodec {
    others: BallistaPhysicalExtensionCodec,
    warning: Option<Notify<Warning>>,
    memory: Option<Memory>,
    stores: Stores,
}

/// The object stores of a process, which all of its tasks share.
struct Stores(Arc<dyn ObjectStoreRegistry>);

impl Default for Stores {
    fn default() -> Self {
        Self(Arc::new(DefaultObjectStoreRegistry::new()))
    }
}

impl fmt::Debug for PhysicalCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PhysicalCodec").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl PhysicalCodec {
    /// Calls a function with the damage at which reading of a capture ended, on the thread that reads.
    #[must_use]
    pub fn with_warning(mut self, warning: Notify<Warning>) -> Self {
        self.warning = Some(warning);
        self
    }

    /// Charges what pipelines hold to a pool, not to that of the task, and permits each at most `part` octets.
    #[must_use]
    pub fn with_memory(mut self, pool: Arc<dyn MemoryPool>, part: u64) -> Self {
        self.memory = Some(Memory { pool, part });
        self
    }

    /// Reads objects from these stores. Without them, and for other URLs, stores are created from the environment of the
    /// process.
    #[must_use]
    pub fn with_stores(mut self, stores: Arc<dyn ObjectStoreRegistry>) -> Self {
        self.stores = Stores(stores);
        self
    }

    fn decode_scan(
        &self,
        octets: &[u8],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ScanMessage { rows, groups, projection, batch_size } = decode(octets)?;
        let Some(rows) = rows else { return plan_err!("a scan of captures has no rows") };
        let (table, mut config) = rows.table()?;
        if let Some(memory) = &self.memory {
            config.memory = config.memory.min(memory.part);
        }
        let schema = CaptureScan::schema(table, &config);
        let decoding = PhysicalPlanDecodeContext::new(context, self);
        let column = |ProjectedMessage { expr, alias }| -> Result<ProjectionExpr> {
            let Some(expr) = expr else { return plan_err!("the column {alias} has no expression") };
            Ok(ProjectionExpr::new(converter.proto_to_physical_expr(&expr, &schema, &decoding)?, alias))
        };
        let columns = projection.into_iter().map(column).collect::<Result<Vec<_>>>()?;
        let group = |group: GroupMessage| group.captures.into_iter().map(CaptureMessage::capture).collect();
        let groups = groups.into_iter().map(group).collect::<Result<Vec<_>>>()?;
        let mut scan = CaptureScan::new(table, config, groups);
        scan.projection = ProjectionExprs::from(columns);
        scan.batch_size = match batch_size.map(usize::try_from).transpose() {
            Ok(Some(0)) | Err(_) => {
                return plan_err!("a scan of captures has batches of {batch_size:?} rows");
            }
            Ok(batch_size) => batch_size,
        };
        let pool = match &self.memory {
            Some(memory) => Arc::clone(&memory.pool),
            None => Arc::clone(&context.runtime_env().memory_pool),
        };
        scan.into_plan(pool, Arc::clone(&self.stores.0), self.warning.clone())
    }

    fn encode_scan(
        &self,
        scan: CaptureScan,
        octets: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let column = |column: &ProjectionExpr| -> Result<ProjectedMessage> {
            let expr = Some(converter.physical_expr_to_proto(&column.expr, self)?);
            Ok(ProjectedMessage { expr, alias: column.alias.clone() })
        };
        let projection = scan.projection.iter().map(column).collect::<Result<_>>()?;
        let group = |captures: &Vec<Capture>| -> Result<GroupMessage> {
            let captures = captures.iter().map(CaptureMessage::new).collect::<Result<_>>()?;
            Ok(GroupMessage { captures })
        };
        let groups = scan.groups.iter().map(group).collect::<Result<_>>()?;
        let rows = Some(RowsMessage::new(scan.table, &scan.config)?);
        let batch_size = scan.batch_size.map(|count| count as u64);
        encode(&ScanMessage { rows, groups, projection, batch_size }, octets);
        Ok(())
    }
}

impl PhysicalExtensionCodec for PhysicalCodec {
    fn try_decode(
        &self,
        octets: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if is_envelope(octets) {
            self.decode_scan(octets, context, converter)
        } else {
            self.others.try_decode(octets, inputs, context, converter)
        }
    }

    fn try_encode(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        octets: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        match CaptureScan::of(plan.as_ref()) {
            Some(scan) => self.encode_scan(scan, octets, converter),
            None => self.others.try_encode(plan, octets, converter),
        }
    }

    functions_of_others!();
}
