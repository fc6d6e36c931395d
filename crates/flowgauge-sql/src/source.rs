//! The source of batches of a scan: one thread for each group of captures.

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::projection::{ProjectionOpener, SplitProjection};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use flowgauge::StopHandle;
use flowgauge_arrow::scan::{Control, Notify, Scan, ScanError, Times, Warning};
use futures::StreamExt as _;

use crate::capture::{Capture, Captures, OpenedObjects};

/// Number of batches that wait for the query.
const WAITING_COUNT: usize = 2;

/// Part of the memory limit of a query that the pipelines of a table may hold.
const MEMORY_PART: u64 = 2;

/// Memory of a pipeline at the least, in bytes.
const MEMORY_MIN: u64 = 16 << 20;

/// Metrics: the numbers of frames and octets that were read.
pub(crate) const FRAMES: &str = "frames";
pub(crate) const OCTETS: &str = "octets";

/// Part of the memory limit of a query that the ranges of objects of a table may hold, and their memory at most, in bytes.
const RANGES_PART: u64 = 8;
const RANGES_MAX: u64 = 64 << 20;

/// What the scans of a table share with the session.
#[derive(Clone)]
pub(crate) struct Shared {
    /// The pool to which memory is charged.
    pub(crate) pool: Arc<dyn MemoryPool>,
    /// The object stores.
    pub(crate) stores: Arc<dyn ObjectStoreRegistry>,
    /// Called with damage.
    pub(crate) warning: Option<Notify<Warning>>,
}

/// Reads groups of captures.
#[derive(Clone)]
pub(crate) struct CaptureSource {
    scan: Scan,
    schema: TableSchema,
    projection: SplitProjection,
    batch_size: Option<usize>,
    /// Number of threads for each group of captures.
    thread_count: usize,
    shared: Shared,
    metrics: ExecutionPlanMetricsSet,
}

impl CaptureSource {
    /// Creates the source of all columns of a scan.
    pub(crate) fn new(scan: Scan, shared: Shared) -> Self {
        let schema = TableSchema::from(scan.schema());
        let projection = SplitProjection::unprojected(&schema);
        let metrics = ExecutionPlanMetricsSet::new();
        Self { scan, schema, projection, batch_size: None, thread_count: 1, shared, metrics }
    }

    /// Sets the number of threads for each group of captures; several track parts of a long capture.
    pub(crate) fn with_threads(self, thread_count: usize) -> Self {
        Self { thread_count, ..self }
    }

    /// Returns the source of expressions over the columns of the scan.
    pub(crate) fn with_projection(mut self, projection: &ProjectionExprs) -> Self {
        self.projection = SplitProjection::new(self.schema.file_schema(), projection);
        self
    }

    /// Returns the scan of all columns.
    pub(crate) const fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Returns the expressions over the columns of the scan.
    pub(crate) const fn expressions(&self) -> &ProjectionExprs {
        &self.projection.source
    }

    /// Returns the scan of the columns that the projection reads.
    fn projected(&self) -> Result<Scan> {
        let all = self.scan.schema();
        let names = self.projection.file_indices.iter().map(|index| all.field(*index).name().as_str());
        self.scan.clone().columns(names).or_else(|name| internal_err!("the column {name} is unknown"))
    }
}

impl FileSource for CaptureSource {
    fn create_file_opener(
        &self,
        _: Arc<dyn ObjectStore>,
        config: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let mut scan = self.projected()?;
        if let Some(batch_size) = self.batch_size {
            scan = scan.batch_size(batch_size);
        }
        let group_count = config.file_groups.len().max(1);
        let settings = scan.config_mut();
        settings.limit = config.limit.map(|limit| limit as u64);
        let mut range_bytes_max = RANGES_MAX;
        if let MemoryLimit::Finite(limit) = self.shared.pool.memory_limit() {
            let limit = limit as u64 / group_count as u64;
            settings.memory = settings.memory.min((limit / MEMORY_PART).max(MEMORY_MIN));
            range_bytes_max = range_bytes_max.min(limit / RANGES_PART);
        }
        let count = |name: &'static str| MetricBuilder::new(&self.metrics).counter(name, partition);
        let opener: Arc<dyn FileOpener> = Arc::new(CaptureOpener {
            scan,
            // The threads of several groups use all processors.
            is_ahead: group_count == 1,
            thread_count: self.thread_count,
            shared: self.shared.clone(),
            range_bytes_max,
            frame_count: count(FRAMES),
            octet_count: count(OCTETS),
            warning_count: count("warnings"),
        });
        ProjectionOpener::try_new(self.projection.clone(), opener, self.schema.file_schema())
    }

    fn table_schema(&self) -> &TableSchema {
        &self.schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_size: Some(batch_size), ..self.clone() })
    }

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        let merged = self.projection.source.try_merge(projection)?;
        Ok(Some(Arc::new(self.clone().with_projection(&merged))))
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(self.expressions())
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "captures"
    }

    fn fmt_extra(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = self.scan.config();
        write!(f, ", table={}", self.scan.table().function())?;
        if let Some(kind) = self.scan.table().kind() {
            write!(f, "({kind})")?;
        }
        if let Some(filter) = &config.filter {
            write!(f, ", packets={filter:?}")?;
        }
        if self.thread_count > 1 {
            write!(f, ", threads={}", self.thread_count)?;
        }
        if config.times != Times::default() {
            write!(f, ", times={}..{}", config.times.first.as_nanos(), config.times.last.as_nanos())?;
        }
        Ok(())
    }

    /// A group of captures is read by one thread.
    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn repartitioned(
        &self,
        _: usize,
        _: usize,
        _: Option<LexOrdering>,
        _: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        Ok(None)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        datafusion::physical_plan::apply_expression_roots(self.projection.source.iter(), f)
    }
}

/// Reads the captures of a group.
struct CaptureOpener {
    scan: Scan,
    is_ahead: bool,
    /// Number of threads that track parts of a capture.
    thread_count: usize,
    shared: Shared,
    /// Memory of the ranges of objects, in bytes.
    range_bytes_max: u64,
    frame_count: Count,
    octet_count: Count,
    warning_count: Count,
}

/// Stops the thread of a scan whose stream is dropped.
struct StopOnDrop(StopHandle);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl FileOpener for CaptureOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let Some(captures) = file.extension::<Captures>() else {
            return internal_err!("{} is no group of captures", file.object_meta.location);
        };
        let paths: Vec<PathBuf> = captures.files.iter().map(|capture| capture.path.clone()).collect();
        let scan = self.scan.clone();
        let stop = StopHandle::new();
        let refused = Arc::new(Mutex::new(None));
        let mut control = self.control(&stop, &refused);
        let mut builder = RecordBatchReceiverStreamBuilder::new(scan.schema(), WAITING_COUNT);
        if let Some(OpenedObjects { storage, requests }) = self.objects(&captures.files, &stop)? {
            control.storage = Some(storage);
            builder.spawn(async move {
                requests.await;
                Ok(())
            });
        }
        let sender = builder.tx();
        builder.spawn_blocking(move || {
            let run = scan.run(paths, &control, |batch| match sender.blocking_send(Ok(batch)) {
                Ok(()) => ControlFlow::Continue(()),
                // The query has ended.
                Err(_) => ControlFlow::Break(()),
            });
            let refused = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
            match refused {
                Some(error) => Err(error),
                None => run.map_err(failure),
            }
        });
        let (stream, guard) = (builder.build(), StopOnDrop(stop));
        let stream = stream.map(move |batch| {
            let _ = &guard;
            batch
        });
        Ok(Box::pin(async move { Ok(stream.boxed()) }))
    }
}

/// Returns the error of a scan, with the setting that avoids it.
fn failure(error: ScanError) -> DataFusionError {
    match error {
        ScanError::Pipeline(flowgauge::Error::Parts) => DataFusionError::ResourcesExhausted(format!(
            "{error}; more memory, or SET datafusion.execution.target_partitions = 1, reads the capture in a single pass"
        )),
        error => DataFusionError::External(Box::new(error)),
    }
}

impl CaptureOpener {
    /// Opens the objects among captures.
    #[cfg(feature = "object-store")]
    fn objects(&self, captures: &[Capture], stop: &StopHandle) -> Result<Option<OpenedObjects>> {
        let memory = (&self.shared.pool, self.range_bytes_max);
        crate::objects::Objects::open(captures, self.shared.stores.as_ref(), memory, stop)
    }

    /// Refuses captures that are objects.
    #[cfg(not(feature = "object-store"))]
    fn objects(&self, captures: &[Capture], _: &StopHandle) -> Result<Option<OpenedObjects>> {
        let _ = (&self.shared.stores, self.range_bytes_max);
        match captures.iter().find(|capture| capture.object.is_some()) {
            Some(Capture { path, .. }) => datafusion::common::exec_err!(
                "{}: this build does not read object storage; build it with the feature `object-store`",
                path.display()
            ),
            None => Ok(None),
        }
    }

    /// Returns the control of a scan, which charges the memory of its pipeline to the pool and ends it if that refuses.
    fn control(&self, stop: &StopHandle, refused: &Arc<Mutex<Option<DataFusionError>>>) -> Control {
        let reservation = MemoryConsumer::new("flowgauge").register(&self.shared.pool);
        let mut control = Control::default();
        control.stop = stop.clone();
        control.is_ahead = self.is_ahead;
        control.thread_count = self.thread_count;
        let (stop, refused) = (stop.clone(), Arc::clone(refused));
        let frames = (AtomicU64::new(0), self.frame_count.clone());
        let octets = (AtomicU64::new(0), self.octet_count.clone());
        control.progress = Some(Arc::new(move |progress| {
            // Each capture begins with zero.
            let add = |(before, total): &(AtomicU64, Count), count: u64| {
                total.add(count.saturating_sub(before.swap(count, Relaxed)) as usize);
            };
            add(&frames, progress.frame_count);
            add(&octets, progress.input_octet_count);
            if let Err(error) = reservation.try_resize(progress.held_bytes as usize) {
                refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                stop.stop();
            }
        }));
        let (warning, warning_count) = (self.shared.warning.clone(), self.warning_count.clone());
        control.warning = Some(Arc::new(move |damage| {
            warning_count.add(1);
            if let Some(warning) = &warning {
                warning(damage);
            }
        }));
        control
    }
}
