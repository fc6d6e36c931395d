//! The session of DataFusion that runs statements.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::error::DataFusionError;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use datafusion::sql::sqlparser::dialect::GenericDialect;
#[cfg(feature = "cluster")]
use flowgauge_cluster::Cluster;
use futures::StreamExt as _;
use futures::future::{Either, select};
use tokio::runtime::Runtime;

use super::args::{SqlArgs, SqlFormat};
use super::output::Output;
use super::progress::Progress;
use crate::console::{Console, Failure, is_stdout_closed};
use crate::interrupt;

/// Time between two checks whether a signal was received.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// Runs statements one after another.
pub(super) struct Session {
    context: SessionContext,
    runtime: Runtime,
    explain: bool,
    format: SqlFormat,
    /// Damage of captures, as the threads that read found it.
    warnings: Receiver<String>,
    /// The plan that was executed last.
    plan: Mutex<Option<Arc<dyn ExecutionPlan>>>,
    #[cfg(feature = "cluster")]
    cluster: Option<Cluster>,
}

impl Session {
    pub(super) fn new(args: &SqlArgs) -> Result<Self, Failure> {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        if let Some(count) = args.threads {
            threads.worker_threads(count.get());
        }
        #[cfg(feature = "cluster")]
        threads.enable_io();
        let runtime = threads.enable_time().build().map_err(|error| Failure::Other(error.to_string()))?;
        let (sender, warnings) = mpsc::channel();
        #[cfg(feature = "cluster")]
        let remote = match &args.cluster {
            Some(cluster) => {
                let connection = cluster.connect(configured(Cluster::config(), args));
                Some(runtime.block_on(connection).map_err(|error| failure(&error))?)
            }
            None => None,
        };
        #[cfg(not(feature = "cluster"))]
        let remote: Option<SessionContext> = None;
        let context = match remote {
            Some(context) => context,
            None => local(args, sender)?,
        };
        let format = args.format();
        Ok(Self {
            context,
            runtime,
            explain: args.explain,
            format,
            warnings,
            plan: Mutex::new(None),
            #[cfg(feature = "cluster")]
            cluster: args.cluster.clone(),
        })
    }

    /// Ends without waiting for threads, which may wait for octets of a pipe.
    pub(super) fn end(self) {
        self.runtime.shutdown_background();
    }

    pub(super) const fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Parses statements; fails if the format cannot hold the results of all queries among them.
    pub(super) fn parse(&self, text: &str) -> Result<VecDeque<Statement>, Failure> {
        let limit = self.context.state().config_options().sql_parser.recursion_limit;
        let parser =
            DFParserBuilder::new(text).with_dialect(&GenericDialect {}).with_recursion_limit(limit.into());
        let statements = parser.build().and_then(|mut parser| parser.parse_statements());
        let statements = statements.map_err(|error| failure(&error))?;
        let is_query = |statement: &&Statement| match statement {
            Statement::Statement(statement) => matches!(**statement, SqlStatement::Query(_)),
            Statement::Explain(_) => true,
            _ => false,
        };
        if self.format.is_binary() && statements.iter().filter(is_query).count() > 1 {
            return Err(super::output::several(self.format));
        }
        Ok(statements)
    }

    /// Runs a statement until it has ended or a signal is received.
    pub(super) fn run(
        &self,
        statement: Statement,
        output: &mut Output,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let is_standard = output.is_standard();
        *self.last_plan() = None;
        let progress = Progress::new(is_standard);
        let check = || {
            progress.suspend(|| self.warnings.try_iter().for_each(|warning| console.problem(warning)));
            if let Some(plan) = &*self.last_plan() {
                progress.update(plan.as_ref());
            }
            if is_standard && is_stdout_closed() { Err(Failure::ClosedPipe) } else { Ok(()) }
        };
        let outcome = self.until_signal(self.query(statement, output, &progress), check);
        progress.end();
        self.warnings.try_iter().for_each(|warning| console.problem(warning));
        match outcome {
            Ok(Some(result)) => {
                // After an error, other tasks of the plan may still read.
                self.last_plan().take();
                match result {
                    Ok(()) => output.end(),
                    Err(error) => output.abort().and(Err(error)),
                }
            }
            // What was read until the signal is a result too, and a complete file for those who read it.
            Ok(None) => {
                self.cancel(console);
                output.end()
            }
            Err(closed) => {
                self.cancel(console);
                Err(closed)
            }
        }
    }

    /// Ends the query: its plan, which has the tasks that read captures, and the query on the cluster, if there is one.
    #[cfg_attr(not(feature = "cluster"), allow(unused_variables, reason = "there is no cluster"))]
    fn cancel(&self, console: &mut Console) {
        let plan = self.last_plan().take();
        #[cfg(feature = "cluster")]
        if let (Some(cluster), Some(plan)) = (&self.cluster, plan)
            && let Err(error) = self.runtime.block_on(cluster.cancel(plan.as_ref()))
        {
            console.problem(format!("the query may continue on the cluster: {error}"));
        }
    }

    fn last_plan(&self) -> std::sync::MutexGuard<'_, Option<Arc<dyn ExecutionPlan>>> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the result of a future; `None` if a signal was received before. `check` is called in the meantime.
    pub(super) fn until_signal<T>(
        &self,
        future: impl Future<Output = T>,
        mut check: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Option<T>, Failure> {
        let stop = interrupt::stop();
        self.runtime.block_on(async {
            let mut future = pin!(future);
            while !stop.is_stopped() {
                match select(future, pin!(tokio::time::sleep(TICK))).await {
                    Either::Left((value, _)) => return Ok(Some(value)),
                    Either::Right(((), unfinished)) => future = unfinished,
                }
                check()?;
            }
            Ok(None)
        })
    }

    async fn query(
        &self,
        statement: Statement,
        output: &mut Output,
        progress: &Progress,
    ) -> Result<(), Failure> {
        let failed = |error: DataFusionError| failure(&error);
        let plan = self.context.state().statement_to_plan(statement).await.map_err(failed)?;
        let is_plan = self.explain || matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
        let frame = if self.explain && !matches!(plan, LogicalPlan::Ddl(_) | LogicalPlan::Statement(_)) {
            DataFrame::new(self.context.state(), plan).explain(false, false).map_err(failed)?
        } else {
            self.context.execute_logical_plan(plan).await.map_err(failed)?
        };
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.map_err(failed)?;
        *self.last_plan() = Some(Arc::clone(&plan));
        let mut batches = execute_stream(plan, task).map_err(failed)?;
        // Statements such as CREATE VIEW have no result.
        let schema = batches.schema();
        if !schema.fields().is_empty() {
            output.begin(&schema, is_plan)?;
        }
        while let Some(batch) = batches.next().await {
            progress.before_rows();
            output.rows(&batch.map_err(failed)?)?;
            // A stream that always has rows would not let a signal be noticed.
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Returns the configuration of a session with these options.
fn configured(mut config: SessionConfig, args: &SqlArgs) -> SessionConfig {
    config.options_mut().explain.physical_plan_only = args.explain;
    config = config.with_information_schema(true);
    // Text has one type, whether it is a column of a capture, of a file or a result.
    config.options_mut().execution.parquet.schema_force_view_types = false;
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    match args.threads {
        Some(count) => config.with_target_partitions(count.get()),
        None => config,
    }
}

/// Creates a session that executes queries in this process; damage of captures is sent to `sender`.
fn local(args: &SqlArgs, sender: Sender<String>) -> Result<SessionContext, Failure> {
    let mut environment = RuntimeEnvBuilder::new();
    if let Some(memory) = args.memory {
        environment = environment.with_memory_limit(usize::try_from(memory).unwrap_or(usize::MAX), 1.0);
    }
    let environment = environment.build_arc().map_err(|error| failure(&error))?;
    let config = configured(SessionConfig::new(), args);
    let context = flowgauge_sql::with_files(SessionContext::new_with_config_rt(config, environment));
    let warning: Arc<dyn Fn(&flowgauge_arrow::scan::Warning) + Send + Sync> = Arc::new(move |damage| {
        // The receiver lives as long as the session.
        let _ = sender.send(damage.to_string());
    });
    flowgauge_sql::register_with(&context, Some(warning)).map_err(|error| failure(&error))?;
    Ok(context)
}

/// Returns the failure for an error: one of the statement, or one of its execution.
pub(super) fn failure(error: &DataFusionError) -> Failure {
    let root = error.find_root();
    let is_usage = matches!(
        root,
        DataFusionError::SQL(..)
            | DataFusionError::Plan(_)
            | DataFusionError::SchemaError(..)
            | DataFusionError::NotImplemented(_)
            | DataFusionError::Configuration(_)
    );
    let message = match root {
        DataFusionError::SQL(error, _) => {
            error.to_string().trim_start_matches("sql parser error: ").to_owned()
        }
        #[cfg(feature = "cluster")]
        _ => flowgauge_cluster::failure(error),
        #[cfg(not(feature = "cluster"))]
        DataFusionError::External(error) => error.to_string(),
        #[cfg(not(feature = "cluster"))]
        root => root.message().into_owned(),
    };
    if is_usage { Failure::Usage(message) } else { Failure::Other(message) }
}
