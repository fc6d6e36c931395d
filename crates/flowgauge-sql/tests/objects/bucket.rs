//! A server of S3 with one bucket.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A process that serves a bucket, which ends with the pipe to its standard input.
pub(crate) struct Bucket {
    process: Child,
    pub(crate) port: u16,
}

impl Bucket {
    /// Starts a server; `None` if it is not installed.
    pub(crate) fn start(objects: &[(String, String)]) -> Option<Self> {
        let python = std::env::var_os("FLOWGAUGE_PYTHON").unwrap_or_else(|| "python3".into());
        let imports = "import boto3; from moto.server import ThreadedMotoServer";
        let has_moto =
            Command::new(&python).args(["-c", imports]).output().is_ok_and(|run| run.status.success());
        if !has_moto {
            let is_required = std::env::var("FLOWGAUGE_READERS").as_deref() == Ok("required");
            assert!(!is_required, "the package moto[server] is missing");
            eprintln!("skipped: Python has no package moto[server]");
            return None;
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../flowgauge-sql/tests/objects/s3.py");
        let mut process = Command::new(python)
            .arg(script)
            .args(objects.iter().map(|(name, path)| format!("{name}={path}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().expect("the port of the server");
        Some(Self { process, port })
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}
