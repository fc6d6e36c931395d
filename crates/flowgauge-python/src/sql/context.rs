//! The session of a query, and its plan.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use flowgauge_arrow::scan::{Notify, Warning};

use super::Settings;
use super::input::Input;
use crate::worker::Run;

/// Maximum number of rows of a batch, for which operators allocate memory in advance.
const BATCH_SIZE_MAX: usize = 1 << 20;

/// A query that can be executed once. What its threads find is reported to `run`.
pub(super) struct Planned {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    pub(super) task: Arc<TaskContext>,
    pub(super) run: Arc<Run>,
}

impl std::fmt::Debug for Planned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Planned").field("run", &self.run).finish_non_exhaustive()
    }
}

/// Plans a query in a session of its own. Statements that change something are refused, because each consumer of a stream
/// executes the query again.
pub(super) async fn plan(
    text: &str,
    inputs: &[(String, Input)],
    settings: Settings,
    run: Arc<Run>,
) -> Result<Planned> {
    // Files are found by the session, which has to exist until the plan does.
    let session = session(inputs, settings, &run)?;
    let state = session.state();
    let plan = state.create_logical_plan(text).await?;
    let queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    queries
        .verify_plan(&plan)
        .map_err(|error| DataFusionError::Plan(format!("{}; only queries are executed", error.message())))?;
    let frame = DataFrame::new(state, plan);
    let task = Arc::new(frame.task_ctx());
    Ok(Planned { plan: frame.create_physical_plan().await?, task, run })
}

/// Creates a session with the tables of captures, files and Python.
fn session(inputs: &[(String, Input)], settings: Settings, run: &Arc<Run>) -> Result<SessionContext> {
    let mut environment = RuntimeEnvBuilder::new();
    if let Some(memory) = settings.memory {
        environment = environment.with_memory_limit(usize::try_from(memory).unwrap_or(usize::MAX), 1.0);
    }
    let mut config = SessionConfig::new()
        .with_information_schema(true)
        .with_batch_size(settings.batch_size.get().min(BATCH_SIZE_MAX));
    // Text has one type, whether it is a column of a capture, of a file or a result.
    config.options_mut().execution.parquet.schema_force_view_types = false;
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    if let Some(count) = settings.threads {
        config = config.with_target_partitions(count.get());
    }
    let context = SessionContext::new_with_config_rt(config, environment.build_arc()?);
    let context = flowgauge_sql::with_files(context);
    let warned = Arc::clone(run);
    let warning: Notify<Warning> = Arc::new(move |warning| warned.warn(warning.to_string()));
    flowgauge_sql::register_with(&context, Some(Arc::clone(&warning)))?;
    for (name, input) in inputs {
        let table = input.provider(&warning);
        let folded = name.to_lowercase();
        // SQL folds a name without quotes, unless this is the name of another table.
        if folded != *name && inputs.iter().all(|(other, _)| *other != folded) {
            register(&context, folded, Arc::clone(&table))?;
        }
        register(&context, name.clone(), table)?;
    }
    Ok(context)
}

fn register(context: &SessionContext, name: String, table: Arc<dyn TableProvider>) -> Result<()> {
    context.register_table(TableReference::bare(name), table).map(drop)
}
