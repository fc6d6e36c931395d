//! Queries, and their execution.

use std::any::Any;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt as _;
use futures::future::{AbortHandle, Abortable};
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::Settings;
use super::context::{Planned, plan};
use super::input::Input;
use crate::failure::Failure;
use crate::worker::{Receive, Run, SIGNAL_INTERVAL, Work};

/// A query, which each consumer of its stream executes.
#[derive(Debug)]
pub(crate) struct Query {
    text: String,
    inputs: Vec<(String, Input)>,
    settings: Settings,
    schema: SchemaRef,
    /// The plan that was created when the query was opened, for the first consumer. Those of others are created later,
    /// because files may have changed, and because a plan can be executed only once.
    planned: Mutex<Option<Planned>>,
}

impl Query {
    /// Plans a query, detached from Python, and processes signals.
    pub(crate) fn open(
        py: Python<'_>,
        text: String,
        tables: Vec<(String, Bound<'_, PyAny>)>,
        settings: Settings,
    ) -> PyResult<Self> {
        let read = |(name, object): (String, Bound<'_, PyAny>)| {
            let input = Input::read(&name, &object)?;
            Ok((name, input))
        };
        let inputs = tables.into_iter().map(read).collect::<PyResult<Vec<_>>>()?;
        let runtime = Builder::new_current_thread().enable_time().build().map_err(no_thread(py))?;
        let mut planning = Box::pin(plan(&text, &inputs, settings, Arc::default()));
        let planned = loop {
            py.check_signals()?;
            let step = || runtime.block_on(async { timeout(SIGNAL_INTERVAL, &mut planning).await });
            if let Ok(planned) = py.detach(step) {
                break planned;
            }
        };
        drop(planning);
        py.detach(|| drop(runtime));
        let planned = planned.map_err(|error| Failure::Query(error.into()).exception(py))?;
        let schema = planned.plan.schema();
        Ok(Self { text, inputs, settings, schema, planned: Mutex::new(Some(planned)) })
    }

    /// Returns the columns of the result.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Returns an execution, and the run to which it reports.
    pub(crate) fn work(self: &Arc<Self>) -> (Arc<Run>, Box<dyn Work>) {
        let planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner).take();
        let run = planned.as_ref().map_or_else(Arc::default, |planned| Arc::clone(&planned.run));
        (run, Box::new(Execution { query: Arc::clone(self), planned }))
    }

    /// Creates the threads of an execution.
    fn runtime(&self) -> io::Result<Runtime> {
        let mut threads = Builder::new_multi_thread();
        if let Some(count) = self.settings.threads {
            threads.worker_threads(count.get());
        }
        threads.thread_name("flowgauge").enable_time().build()
    }
}

fn no_thread(py: Python<'_>) -> impl Fn(io::Error) -> PyErr {
    move |error| Failure::Thread(error).exception(py)
}

/// The execution of a query.
#[derive(Debug)]
struct Execution {
    query: Arc<Query>,
    planned: Option<Planned>,
}

impl Work for Execution {
    /// Returns the query, which holds rows of Python.
    fn kept(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::clone(&self.query) as Arc<dyn Any + Send + Sync>)
    }

    /// Executes the query. All of its threads have ended then.
    fn run(self: Box<Self>, run: &Arc<Run>, receive: Receive<'_>) -> Result<(), Failure> {
        let Self { query, planned } = *self;
        let runtime = query.runtime().map_err(Failure::Thread)?;
        let (handle, registration) = AbortHandle::new_pair();
        run.on_stop(move || handle.abort());
        let run = Arc::clone(run);
        let execution = async {
            let Planned { plan, task, .. } = match planned {
                Some(planned) => planned,
                None => plan(&query.text, &query.inputs, query.settings, run).await?,
            };
            // The consumer knows the columns since the query was opened.
            if plan.schema().fields() != query.schema.fields() {
                let text = "the columns of the result have changed since the query was opened";
                return Err(DataFusionError::Execution(text.to_owned()));
            }
            let mut batches = execute_stream(plan, task)?;
            while let Some(batch) = batches.next().await {
                let batch = batch?;
                if batch.num_rows() > 0 && receive(batch).is_break() {
                    break;
                }
            }
            Ok::<(), DataFusionError>(())
        };
        match runtime.block_on(Abortable::new(execution, registration)) {
            Ok(result) => result.map_err(|error| Failure::Query(error.into())),
            // The run was stopped, which its consumer knows.
            Err(futures::future::Aborted) => Ok(()),
        }
    }
}
