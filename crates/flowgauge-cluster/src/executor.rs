//! An executor of a cluster.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;

use ballista_core::registry::BallistaFunctionRegistry;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::executor_server::TERMINATING;
use ballista_executor::health::ExecutorHealth;
use clap::Parser;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::client::{bracketed, reach, split};
use crate::process::{self, LogLevel, ProcessError};
use crate::{Cluster, LogicalCodec, MESSAGE_LEN_MAX, PhysicalCodec, SCHEDULER_PORT, scheduler};

/// Time between two attempts to reach the scheduler.
const RETRY_TIME: Duration = Duration::from_secs(1);

/// Number of attempts from one message about a scheduler that cannot be reached to the next.
const ATTEMPT_COUNT: u32 = 60;

/// Time for tasks to end after a signal.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// Memory of a thread at the least, in octets.
const THREAD_MEMORY_MIN: u64 = 32 << 20;

/// Age in seconds of rows of a query that no scheduler deleted.
const FORGOTTEN_AGE: u64 = 24 * 60 * 60;

/// Time in seconds between two searches for such rows.
const FORGOTTEN_INTERVAL: u64 = 10 * 60;

/// Execute tasks of queries over captures for a scheduler.
///
/// An executor reads captures under the same paths as the scheduler, and writes rows for other tasks to files in a folder of
/// its own, which it deletes at its end. It waits for a scheduler that cannot be reached, and returns to one that was
/// restarted. Damage of captures is logged to standard error.
#[derive(Debug, Parser)]
#[command(
    name = "flowgauge-executor",
    version,
    max_term_width = 100,
    after_long_help = "Examples:
  flowgauge-executor                                           for a scheduler on this machine
  flowgauge-executor --port 0 --control-port 0                 one more on this machine
  flowgauge-executor --scheduler 10.0.0.1 --bind 10.0.0.2 --memory 8GiB --work-dir /scratch

Exit status:
  0    SIGINT or SIGTERM ended the executor.
  1    It could not listen, or failed.
  2    The command line is invalid."
)]
pub struct ExecutorArgs {
    /// Address of the scheduler
    #[arg(long, value_name = "HOST[:PORT]", default_value = "127.0.0.1:50050")]
    scheduler: SchedulerAddress,

    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,

    /// Port for rows, which executors and clients read; 0 for any free port
    #[arg(long, value_name = "PORT", default_value_t = 50051)]
    port: u16,

    /// Port for tasks, which the scheduler sends; 0 for any free port
    #[arg(long, value_name = "PORT", default_value_t = 50052)]
    control_port: u16,

    /// Name or address at which others reach the executor [default: the address that the scheduler sees]
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,

    /// Partitions that are processed at once [default: one for each processor]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,

    /// Memory limit, such as 8GiB, at least 32MiB per thread
    ///
    /// Flows of captures use at most half of it, and sorts, joins and groups the other half, beyond which they use temporary
    /// files or fail. Without a limit, sorts, joins and groups use at most 70 % of the memory of the machine or container, and
    /// the flows of each thread 1 GiB.
    #[arg(long, value_name = "SIZE", value_parser = process::parse_size)]
    memory: Option<u64>,

    /// Folder for temporary files [default: that of the system]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,

    /// Time between two signs of life to the scheduler
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = process::parse_seconds)]
    heartbeat: u64,

    /// What is logged to standard error
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    log: LogLevel,
}

/// Host and port of a scheduler.
#[derive(Clone, Debug)]
struct SchedulerAddress {
    host: String,
    port: u16,
}

impl FromStr for SchedulerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = split(text.strip_prefix("df://").unwrap_or(text))
            .ok_or_else(|| "must be the host of a scheduler, such as 10.0.0.1:50050".to_owned())?;
        Ok(Self { host, port: port.unwrap_or(SCHEDULER_PORT) })
    }
}

/// What is the same each time that the executor connects to a scheduler.
struct Setup<'a> {
    args: &'a ExecutorArgs,
    port: u16,
    control_port: u16,
    threads: usize,
    folder: String,
    codec: Arc<PhysicalCodec>,
    functions: Arc<BallistaFunctionRegistry>,
}

/// Runs an executor until a signal ends it.
///
/// # Errors
///
/// Returns an error if it cannot listen, has no folder for temporary files, or too little memory.
pub fn run(args: &ExecutorArgs) -> Result<(), ProcessError> {
    process::log_to_stderr(args.log);
    let threads = match args.threads {
        Some(count) => count.get(),
        None => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    if let Some(memory) = args.memory.filter(|memory| memory / THREAD_MEMORY_MIN < threads as u64) {
        let problem =
            format!("is less than 32MiB for each of {threads} threads; --threads chooses fewer of them");
        return Err(ProcessError::new(format_args!("--memory {memory}"), problem));
    }
    let parent = args.work_dir.clone().unwrap_or_else(std::env::temp_dir);
    let failure = |problem: &dyn std::fmt::Display| ProcessError::new(parent.display(), problem);
    let folder = tempfile::Builder::new().prefix("flowgauge-executor-").tempdir_in(&parent);
    let folder: TempDir = folder.map_err(|error| failure(&error))?;
    let path = std::path::absolute(folder.path()).map_err(|error| failure(&error))?;
    let functions = scheduler::session(Cluster::config()).map_err(|error| failure(&error))?;
    let port = process::free_port(args.bind, args.port)?;
    let mut control_port = process::free_port(args.bind, args.control_port)?;
    while args.control_port == 0 && control_port == port {
        control_port = process::free_port(args.bind, 0)?;
    }
    let setup = Setup {
        args,
        port,
        control_port,
        threads,
        folder: path.to_str().ok_or_else(|| failure(&"is not Unicode"))?.to_owned(),
        codec: Arc::new(codec(args.memory, threads)),
        functions: Arc::new(BallistaFunctionRegistry::from(&functions)),
    };
    let runtime = process::runtime()?;
    let outcome = runtime.block_on(setup.serve());
    runtime.shutdown_background();
    outcome
}

/// Returns the codec of an executor, which decides what a pipeline may hold.
fn codec(memory: Option<u64>, threads: usize) -> PhysicalCodec {
    let codec = PhysicalCodec::default().with_warning(Arc::new(|damage| log::warn!("{damage}")));
    match memory {
        Some(memory) => {
            let half = memory / 2;
            let pool: Arc<dyn MemoryPool> =
                Arc::new(GreedyMemoryPool::new(usize::try_from(half).unwrap_or(usize::MAX)));
            codec.with_memory(pool, half / threads as u64)
        }
        None => codec,
    }
}

impl Setup<'_> {
    /// Executes tasks until a signal is received; connects again after the scheduler was gone.
    async fn serve(&self) -> Result<(), ProcessError> {
        let mut signal = pin!(process::signal());
        let received =
            |outcome: std::io::Result<()>| outcome.map_err(|error| ProcessError::new("signals", error));
        loop {
            tokio::select! {
                () = self.reach() => {}
                outcome = &mut signal => return received(outcome),
            }
            TERMINATING.store(false, Release);
            let health = ExecutorHealth::new();
            let mut process = pin!(start_executor_process(Arc::new(self.config(health.clone()))));
            let outcome = tokio::select! {
                outcome = &mut process => outcome,
                () = self.registered(&health) => tokio::select! {
                    outcome = &mut process => outcome,
                    outcome = &mut signal => {
                        // The process receives the signal too, and waits for its tasks.
                        let _ = timeout(DRAIN_TIME, process).await;
                        return received(outcome);
                    }
                },
                outcome = &mut signal => return received(outcome),
            };
            match outcome {
                Ok(()) => log::warn!("the executor ended; it connects to the scheduler again"),
                Err(error) => log::warn!("the executor ended: {error}; it connects to the scheduler again"),
            }
            tokio::select! {
                () = sleep(RETRY_TIME) => {}
                outcome = &mut signal => return received(outcome),
            }
        }
    }

    /// Waits until the scheduler accepts connections.
    async fn reach(&self) {
        let SchedulerAddress { host, port } = &self.args.scheduler;
        let mut attempt_count = 0;
        while let Err(error) = reach(host, *port).await {
            if attempt_count % ATTEMPT_COUNT == 0 {
                log::warn!("the scheduler {}:{port} cannot be reached: {error}", bracketed(host));
            }
            attempt_count += 1;
            sleep(RETRY_TIME).await;
        }
    }

    /// Waits until the scheduler has answered.
    async fn registered(&self, health: &ExecutorHealth) {
        while !health.is_ready() {
            sleep(Duration::from_millis(20)).await;
        }
        let SchedulerAddress { host, port } = &self.args.scheduler;
        process::announce(&format!(
            "executes tasks of df://{}:{port}; ports {} and {}",
            bracketed(host),
            self.port,
            self.control_port
        ));
    }

    fn config(&self, health: ExecutorHealth) -> ExecutorProcessConfig {
        ExecutorProcessConfig {
            bind_host: bracketed(&self.args.bind.to_string()),
            external_host: self.args.advertise.clone(),
            port: self.port,
            grpc_port: self.control_port,
            scheduler_host: bracketed(&self.args.scheduler.host),
            scheduler_port: self.args.scheduler.port,
            vcores: self.threads,
            work_dir: Some(self.folder.clone()),
            job_data_ttl_seconds: FORGOTTEN_AGE,
            job_data_clean_up_interval_seconds: FORGOTTEN_INTERVAL,
            grpc_max_decoding_message_size: MESSAGE_LEN_MAX,
            grpc_max_encoding_message_size: MESSAGE_LEN_MAX,
            executor_heartbeat_interval_seconds: self.args.heartbeat,
            memory_pool_size: self.args.memory.map(|memory| memory / 2),
            override_function_registry: Some(Arc::clone(&self.functions)),
            override_config_producer: Some(Arc::new(Cluster::config)),
            override_logical_codec: Some(Arc::new(LogicalCodec::default())),
            override_physical_codec: Some(self.codec.clone()),
            health,
            ..ExecutorProcessConfig::default()
        }
    }
}
