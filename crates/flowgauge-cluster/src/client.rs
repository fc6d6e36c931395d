//! A client of a scheduler: a session of DataFusion whose queries run on a cluster.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::BALLISTA_CLIENT_PULL;
use ballista_core::execution_plans::DistributedQueryExec;
use ballista_core::extension::{SessionConfigExt as _, SessionStateExt as _};
use ballista_core::serde::protobuf::CancelJobParams;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::utils::create_grpc_client_endpoint;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::protobuf::LogicalPlanNode;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::{LogicalCodec, MESSAGE_LEN_MAX, PhysicalCodec, SCHEDULER_PORT};

/// Time in which a scheduler must accept a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// The scheme of addresses.
const SCHEME: &str = "df://";

/// The address of a scheduler, such as `df://127.0.0.1:50050`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Host without brackets, and port.
    host: String,
    port: u16,
}

/// A text that is no address of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAddress(String);

impl fmt::Display for InvalidAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no address of a scheduler, such as df://127.0.0.1:50050", self.0)
    }
}

impl std::error::Error for InvalidAddress {}

impl From<InvalidAddress> for DataFusionError {
    fn from(error: InvalidAddress) -> Self {
        Self::Configuration(error.to_string())
    }
}

impl FromStr for Cluster {
    type Err = InvalidAddress;

    /// Parses `df://HOST:PORT`; without a port, it is 50050.
    fn from_str(text: &str) -> std::result::Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.to_owned());
        let (host, port) = split(text.strip_prefix(SCHEME).ok_or_else(invalid)?).ok_or_else(invalid)?;
        Ok(Self { host, port: port.unwrap_or(SCHEDULER_PORT) })
    }
}

/// Splits a host, which has brackets if it is an address of IPv6, from a port.
pub(crate) fn split(text: &str) -> Option<(String, Option<u16>)> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, ""))) => (host, None),
        Some(Some((host, rest))) => (host, Some(rest.strip_prefix(':')?)),
        Some(None) => return None,
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_letter =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_' | ':' | '%');
    let is_valid = !host.is_empty() && host.chars().all(is_letter);
    let port = match port {
        Some(port) => Some(port.parse::<u16>().ok().filter(|port| *port > 0)?),
        None => None,
    };
    is_valid.then(|| (host.to_owned(), port))
}

/// Returns a host as it is written before a port.
pub(crate) fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}:{}", bracketed(&self.host), self.port)
    }
}

impl Cluster {
    /// Returns the configuration of a session, to change it. A query has 16 partitions.
    #[must_use]
    pub fn config() -> SessionConfig {
        SessionConfig::new_with_ballista()
            // The id of a query is known when the scheduler has accepted it, not when it has ended, so that a client can
            // end it.
            .set_bool(BALLISTA_CLIENT_PULL, true)
            .with_ballista_grpc_client_max_message_size(MESSAGE_LEN_MAX as usize)
            .with_ballista_logical_extension_codec(Arc::new(LogicalCodec::default()))
            .with_ballista_physical_extension_codec(Arc::new(PhysicalCodec::default()))
    }

    /// Creates a session with the tables and functions of captures, and with files of other formats as tables. `config` is
    /// that of [`Cluster::config`].
    ///
    /// # Errors
    ///
    /// Returns an error if no scheduler accepts connections at the address.
    pub async fn connect(&self, config: SessionConfig) -> Result<SessionContext> {
        reach(&self.host, self.port)
            .await
            .map_err(|error| DataFusionError::Execution(format!("{self}: {error}")))?;
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        let context = SessionContext::new_with_state(state.upgrade_for_ballista(self.url())?);
        let context = flowgauge_sql::with_files(context);
        flowgauge_sql::register(&context)?;
        Ok(context)
    }

    /// Ends the query of a plan that was executed, so that executors do no more work for it. Without a query that the
    /// scheduler has accepted, nothing happens.
    ///
    /// # Errors
    ///
    /// Returns an error if the scheduler cannot be reached, or refuses.
    pub async fn cancel(&self, plan: &dyn ExecutionPlan) -> Result<()> {
        let Some(job_id) = job(plan) else { return Ok(()) };
        let failed = |error: &dyn fmt::Display| DataFusionError::Execution(format!("{self}: {error}"));
        let cancellation = async {
            let endpoint = create_grpc_client_endpoint(self.url(), None).map_err(|error| failed(&error))?;
            let connection = endpoint.connect().await.map_err(|error| failed(&error))?;
            let mut scheduler = SchedulerGrpcClient::new(connection);
            scheduler
                .cancel_job(CancelJobParams { job_id })
                .await
                .map_err(|error| failed(&error.message()))?;
            Ok::<(), DataFusionError>(())
        };
        match timeout(CONNECT_TIME_MAX, cancellation).await {
            Ok(outcome) => outcome,
            Err(_) => Err(failed(&"no answer to the end of a query")),
        }
    }

    fn url(&self) -> String {
        format!("http://{}:{}", bracketed(&self.host), self.port)
    }
}

/// Connects to a process, and closes the connection.
pub(crate) async fn reach(host: &str, port: u16) -> io::Result<()> {
    let connection = async {
        let mut failure = io::Error::other("the host has no address");
        for address in lookup_host((host, port)).await? {
            match TcpStream::connect(address).await {
                Ok(_) => return Ok(()),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    };
    match timeout(CONNECT_TIME_MAX, connection).await {
        Ok(outcome) => outcome,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no answer within 5 s")),
    }
}

/// Returns the id of the query of a plan.
fn job(plan: &dyn ExecutionPlan) -> Option<String> {
    if let Some(query) = plan.downcast_ref::<DistributedQueryExec<LogicalPlanNode>>() {
        return query.job_id().map(|id| id.to_string());
    }
    plan.children().into_iter().find_map(|child| job(child.as_ref()))
}

/// Returns the cause of an error of a query, without what Ballista adds to it.
#[must_use]
pub fn failure(error: &DataFusionError) -> String {
    let message = match error.find_root() {
        DataFusionError::External(error) => error.to_string(),
        root => root.message().into_owned(),
    };
    cause(&message).unwrap_or(message)
}

/// Returns the cause in a message of the scheduler about a plan or a task, which has nested values with their types, such
/// as `DataFusionError(Execution("..."))`.
fn cause(message: &str) -> Option<String> {
    let (_, mut value) = message.strip_prefix("Job ")?.split_once(" failed: ")?;
    let after = |text: &'static str| value.split_once(text).map(|(_, rest)| rest);
    if let Some(task) = after("runtime execution error: ") {
        value = task;
    } else if value.starts_with("Error planning job ") {
        value = after(": ")?;
    }
    value = value.trim();
    for kind in ["DataFusion error: ", "Execution error: "] {
        value = value.strip_prefix(kind).unwrap_or(value);
    }
    while let Some((name, inner)) = value.split_once('(') {
        if name.is_empty() || !name.chars().all(char::is_alphanumeric) {
            break;
        }
        if let Some(literal) = inner.strip_prefix('"') {
            return Some(unescaped(literal));
        }
        value = inner.strip_suffix(')').unwrap_or(inner);
    }
    Some(value.to_owned())
}

/// Returns the text of a literal, from after its first to its last quotation mark.
fn unescaped(literal: &str) -> String {
    let mut text = String::new();
    let mut letters = literal.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => match letters.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('t') => text.push('\t'),
                Some('0') => text.push('\0'),
                Some('u') => {
                    let digits: String =
                        letters.by_ref().skip(1).take_while(|letter| *letter != '}').collect();
                    text.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
                }
                other => text.extend(other),
            },
            letter => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_those_of_the_task_or_the_plan() {
        let task =
            "Job 0AB failed: Job failed due to stage 0 failed: Task failed due to runtime execution error: ";
        for (message, expected) in [
            (
                "Job 0AB failed: DataFusion error: Execution error: /a: No such file".to_owned(),
                "/a: No such file",
            ),
            (
                format!(
                    "{task}DataFusionError(Shared(External(ScanError(\"a \\\"b\\\" (\\u{{1b}}\\\\)\"))))\n"
                ),
                "a \"b\" (\x1b\\)",
            ),
            (format!("{task}DataFusionError(ArrowError(CastError(\"bad\"), Some(\"\")))"), "bad"),
            (format!("{task}Io {{ kind: Other }}"), "Io { kind: Other }"),
            (task.to_owned(), ""),
            ("No field named a.".to_owned(), "No field named a."),
        ] {
            assert_eq!(failure(&DataFusionError::Execution(message)), expected);
        }
    }

    #[test]
    fn addresses_have_a_host_and_a_port() {
        for (text, written) in [
            ("df://127.0.0.1:50050", "df://127.0.0.1:50050"),
            ("df://scheduler", "df://scheduler:50050"),
            ("df://scheduler.example.org:1/", "df://scheduler.example.org:1"),
            ("df://[::1]:5", "df://[::1]:5"),
            ("df://[fe80::1%eth0]", "df://[fe80::1%eth0]:50050"),
        ] {
            let cluster: Cluster = text.parse().unwrap();
            assert_eq!(cluster.to_string(), written);
            assert_eq!(written.parse(), Ok(cluster));
        }
        for text in [
            "",
            "127.0.0.1:50050",
            "http://a:1",
            "df://",
            "df://:1",
            "df://a:",
            "df://a:0",
            "df://a:65536",
            "df://a:b",
            "df://a:1:2",
            "df://[::1",
            "df://[::1]x",
            "df://a b",
            "df://a/b",
            "df://a\n:1",
        ] {
            let error = text.parse::<Cluster>().unwrap_err();
            assert!(error.to_string().contains("df://127.0.0.1:50050"), "{text}");
        }
    }
}
