//! A scheduler and executors as processes on the loopback interface.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use flowgauge_cluster::Cluster;

use crate::process::Process;

/// Maximum time in which a process writes that it is ready.
const READY_TIME_MAX: Duration = Duration::from_secs(60);

/// A process with the lines of its output.
pub(crate) struct Machine {
    pub(crate) process: Process,
    lines: Receiver<String>,
    /// The log.
    log: Arc<Mutex<String>>,
}

impl Machine {
    fn start(path: &str, args: &[&str], environment: &[(&str, String)]) -> Self {
        let mut command = Command::new(path);
        command
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = Process::start(&mut command);
        let (sender, lines) = channel();
        let out = BufReader::new(process.0.stdout.take().unwrap());
        thread::spawn(move || {
            for line in out.lines() {
                let Ok(line) = line else { break };
                let _ = sender.send(line);
            }
        });
        let log = Arc::new(Mutex::new(String::new()));
        let (text, err) = (Arc::clone(&log), BufReader::new(process.0.stderr.take().unwrap()));
        thread::spawn(move || {
            for line in err.lines() {
                let Ok(line) = line else { break };
                text.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        Self { process, lines, log }
    }

    /// Returns the next line of standard output.
    fn line(&self) -> String {
        self.lines
            .recv_timeout(READY_TIME_MAX)
            .unwrap_or_else(|_| panic!("no line; the log is {}", self.log()))
    }

    /// Returns what was logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }
}

/// A cluster on this machine.
pub(crate) struct Machines {
    pub(crate) scheduler: Option<Machine>,
    pub(crate) executors: Vec<Machine>,
    pub(crate) cluster: Cluster,
    pub(crate) folder: PathBuf,
    environment: Vec<(&'static str, String)>,
    port: String,
}

impl Machines {
    /// Starts a scheduler that loses executors after five seconds, and executors with two threads each.
    pub(crate) fn start(name: &str, executor_count: usize) -> Self {
        Self::start_with(name, executor_count, Vec::new())
    }

    /// Starts processes with these variables of the environment.
    pub(crate) fn start_with(
        name: &str,
        executor_count: usize,
        environment: Vec<(&'static str, String)>,
    ) -> Self {
        let folder = std::env::temp_dir().join(format!("flowgauge-cluster-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (scheduler, url) = scheduler("0", &environment);
        let port = url.rsplit(':').next().unwrap().to_owned();
        let cluster: Cluster = url.parse().unwrap();
        let scheduler = Some(scheduler);
        let mut machines = Self { scheduler, executors: Vec::new(), cluster, folder, environment, port };
        for _ in 0..executor_count {
            machines.add_executor();
        }
        machines
    }

    pub(crate) fn add_executor(&mut self) {
        let folder = self.folder.to_str().unwrap();
        let address = format!("127.0.0.1:{}", self.port);
        let args = ["--scheduler", &address, "--port", "0", "--control-port", "0", "--threads", "2"];
        let more = ["--work-dir", folder, "--heartbeat", "1s", "--log", "info"];
        let args = [&args[..], &more].concat();
        let executor = Machine::start(env!("CARGO_BIN_EXE_flowgauge-executor"), &args, &self.environment);
        let line = executor.line();
        assert!(line.starts_with(&format!("executes tasks of df://{address}")), "{line}");
        self.executors.push(executor);
    }

    /// Starts the scheduler again at its port.
    pub(crate) fn start_scheduler(&mut self) {
        let started = Instant::now();
        self.scheduler = None;
        let (scheduler, url) = scheduler(&self.port, &self.environment);
        assert_eq!(url, self.cluster.to_string());
        assert!(started.elapsed() < READY_TIME_MAX);
        self.scheduler = Some(scheduler);
    }

    /// Connects a session whose queries have this number of partitions.
    pub(crate) async fn connect(&self, partition_count: usize) -> Result<SessionContext> {
        self.cluster.connect(Cluster::config().with_target_partitions(partition_count)).await
    }
}

fn scheduler(port: &str, environment: &[(&str, String)]) -> (Machine, String) {
    let args = ["--port", port, "--executor-timeout", "5s"];
    let scheduler = Machine::start(env!("CARGO_BIN_EXE_flowgauge-scheduler"), &args, environment);
    let url = scheduler.line();
    (scheduler, url)
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.executors.clear();
        self.scheduler = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
