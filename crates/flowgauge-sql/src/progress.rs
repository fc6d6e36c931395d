//! Progress of the scans of captures in a plan.

use std::any::Any;

use datafusion::datasource::physical_plan::{FileScanConfig, FileSource as _};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;

use crate::capture::Captures;
use crate::source::{CaptureSource, FRAMES, OCTETS};

/// What all scans of captures in a plan have read so far, while the plan is executed or after it.
///
/// ```
/// use datafusion::physical_plan::collect;
/// use datafusion::prelude::SessionContext;
/// use flowgauge_sql::ScanProgress;
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
/// # runtime.block_on(async {
/// let context = SessionContext::new();
/// flowgauge_sql::register(&context)?;
/// let frame = context.sql("SELECT count(*) FROM flows('../../examples/data/web.pcap')").await?;
/// let task = std::sync::Arc::new(frame.task_ctx());
/// let plan = frame.create_physical_plan().await?;
/// assert_eq!(ScanProgress::of(plan.as_ref()).unwrap().octet_count, 0);
/// collect(plan.clone(), task).await?;
/// let progress = ScanProgress::of(plan.as_ref()).unwrap();
/// assert_eq!((progress.frame_count, progress.octet_count), (1286, progress.len));
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanProgress {
    /// Number of frames that were read.
    pub frame_count: u64,
    /// Number of octets that were read; of a compressed file, compressed octets.
    pub octet_count: u64,
    /// Number of octets of all captures. A query may end before it has read them.
    pub len: u64,
}

impl ScanProgress {
    /// Returns the progress of the scans in a plan; `None` if it has none, such as one that another process executes.
    #[must_use]
    pub fn of(plan: &dyn ExecutionPlan) -> Option<Self> {
        let own = Self::of_scan(plan);
        plan.children().into_iter().filter_map(|child| Self::of(child.as_ref())).fold(own, |sum, one| {
            let sum = sum.unwrap_or_default();
            Some(Self {
                frame_count: sum.frame_count + one.frame_count,
                octet_count: sum.octet_count + one.octet_count,
                len: sum.len.saturating_add(one.len),
            })
        })
    }

    /// Returns the progress of a scan.
    fn of_scan(plan: &dyn ExecutionPlan) -> Option<Self> {
        let exec = plan.downcast_ref::<DataSourceExec>()?;
        let source: &dyn Any = exec.data_source().as_ref();
        let config = source.downcast_ref::<FileScanConfig>()?;
        let source: &dyn Any = config.file_source.as_ref();
        let metrics = source.downcast_ref::<CaptureSource>()?.metrics().clone_inner();
        let sum = |name| metrics.sum_by_name(name).map_or(0, |sum| sum.as_usize() as u64);
        let files = config.file_groups.iter().flat_map(|group| group.iter());
        let lens = files.filter_map(|file| file.extension::<Captures>()).map(|captures| captures.len);
        Some(Self {
            frame_count: sum(FRAMES),
            octet_count: sum(OCTETS),
            len: lens.fold(0, u64::saturating_add),
        })
    }
}
