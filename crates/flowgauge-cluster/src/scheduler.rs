//! The scheduler of a cluster.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ballista_core::utils::default_session_builder;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use clap::Parser;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{FunctionRegistry as _, SessionState};
use datafusion::prelude::SessionConfig;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tokio::net::TcpListener;

use crate::client::bracketed;
use crate::process::{self, LogLevel, ProcessError};
use crate::{Cluster, LogicalCodec, MESSAGE_LEN_MAX, PhysicalCodec, SCHEDULER_PORT};

/// Plan queries over captures and distribute their tasks to executors.
///
/// The address at which clients reach the scheduler is written to standard output when it listens. It needs the captures
/// only to list them and to know their lengths. There is no authentication: whoever reaches the port can read every file that
/// the scheduler and the executors can read.
#[derive(Debug, Parser)]
#[command(
    name = "flowgauge-scheduler",
    version,
    max_term_width = 100,
    after_long_help = "Examples:
  flowgauge-scheduler                                          for this machine only
  flowgauge-scheduler --bind 10.0.0.1                          for a network
  flowgauge-scheduler --bind 0.0.0.0 --advertise scheduler     behind a name
  flowgauge sql --cluster df://10.0.0.1:50050 \"SELECT count(*) FROM flows('/captures/*.pcap')\"

Exit status:
  0    SIGINT or SIGTERM ended the scheduler.
  1    It could not listen, or failed.
  2    The command line is invalid."
)]
pub struct SchedulerArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    bind: IpAddr,

    /// Port to listen on; 0 for any free port
    #[arg(long, value_name = "PORT", default_value_t = SCHEDULER_PORT)]
    port: u16,

    /// Name or address at which executors reach the scheduler [default: that of --bind]
    #[arg(long, value_name = "HOST")]
    advertise: Option<String>,

    /// Time without a sign of life after which an executor is lost, and its tasks run elsewhere
    ///
    /// It must be longer than --heartbeat of the executors.
    #[arg(long, value_name = "TIME", default_value = "12s", value_parser = process::parse_seconds)]
    executor_timeout: u64,

    /// Time for which the rows of a query remain on the executors
    ///
    /// A client that reads them later fails.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = process::parse_seconds)]
    keep: u64,

    /// Send rows to clients through the scheduler, for clients that cannot reach the executors
    #[arg(long)]
    proxy: bool,

    /// What is logged to standard error
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t)]
    log: LogLevel,
}

/// Runs a scheduler until a signal ends it.
///
/// # Errors
///
/// Returns an error if it cannot listen, or fails.
pub fn run(args: &SchedulerArgs) -> Result<(), ProcessError> {
    process::log_to_stderr(args.log);
    if args.bind.is_unspecified() && args.advertise.is_none() {
        let problem = "executors need a name or an address of this machine; specify --advertise";
        return Err(ProcessError::new(format_args!("--bind {}", args.bind), problem));
    }
    let runtime = process::runtime()?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = serve(args) => outcome,
            signal = process::signal() => signal.map_err(|error| ProcessError::new("signals", error)),
        }
    });
    runtime.shutdown_background();
    outcome
}

async fn serve(args: &SchedulerArgs) -> Result<(), ProcessError> {
    let address = SocketAddr::new(args.bind, args.port);
    let failure = |error: &dyn std::fmt::Display| ProcessError::new(address, error);
    let listener = TcpListener::bind(address).await.map_err(|error| failure(&error))?;
    let port = listener.local_addr().map_err(|error| failure(&error))?.port();
    let host = bracketed(&args.advertise.clone().unwrap_or_else(|| args.bind.to_string()));
    let config = SchedulerConfig {
        external_host: host.clone(),
        bind_host: bracketed(&args.bind.to_string()),
        bind_port: port,
        task_distribution: TaskDistributionPolicy::RoundRobin,
        executor_timeout_seconds: args.executor_timeout,
        expire_dead_executor_interval_seconds: (args.executor_timeout / 4).max(1),
        no_executors_grace_period_seconds: args.executor_timeout,
        finished_job_data_clean_up_interval_seconds: args.keep,
        enable_embedded_flight_proxy: args.proxy,
        grpc_server_max_decoding_message_size: MESSAGE_LEN_MAX,
        grpc_server_max_encoding_message_size: MESSAGE_LEN_MAX,
        grpc_client_max_message_size: MESSAGE_LEN_MAX,
        override_config_producer: Some(Arc::new(Cluster::config)),
        override_session_builder: Some(Arc::new(session)),
        override_logical_codec: Some(Arc::new(LogicalCodec::default())),
        override_physical_codec: Some(Arc::new(PhysicalCodec::default())),
        ..SchedulerConfig::default()
    };
    config.validate().map_err(|error| failure(&error))?;
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(|error| failure(&error))?;
    let scheduler = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config));
    let scheduler = scheduler.await.map_err(|error| failure(&error))?;
    process::announce(&format!("df://{host}:{port}"));
    start_grpc_service_with_listener(listener, scheduler).await.map_err(|error| failure(&error))
}

/// Creates the session of a client, with the functions of captures.
pub(crate) fn session(config: SessionConfig) -> PlanResult<SessionState> {
    let mut state = default_session_builder(config)?;
    for function in flowgauge_sql::functions() {
        state.register_udf(Arc::new(function))?;
    }
    Ok(state)
}
