//! Rows of gopacket: a Go program that runs the work on request and measures its time.

use std::cell::RefCell;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use crate::interleave::Contender;

/// The compiled program, which is started for each row.
#[derive(Debug)]
pub struct Gopacket {
    program: PathBuf,
    folder: PathBuf,
}

/// The running program for one row.
struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Sends a command and returns the answer.
    fn request(&mut self, command: &str) -> io::Result<String> {
        writeln!(self.input, "{command}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn number(&mut self, command: &str) -> u64 {
        let answer = self.request(command).unwrap_or_default();
        answer.parse().unwrap_or_else(|_| panic!("the Go program answered `{answer}` to `{command}`"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program would end with its standard input, but must not block this process.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Gopacket {
    /// Compiles the program into a folder.
    ///
    /// # Errors
    ///
    /// If Go is not installed, or cannot compile the program.
    pub fn build(folder: &Path) -> io::Result<Self> {
        let program = folder.join("gopacket");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("gopacket");
        let output =
            Command::new("go").args(["build", "-o"]).arg(&program).arg(".").current_dir(source).output()?;
        if !output.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(Self { program, folder: folder.to_owned() })
    }

    fn start(&self) -> io::Result<Running> {
        let mut child = Command::new(&self.program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        Ok(Running { child, input, output: BufReader::new(output) })
    }

    /// Creates a contender for these frames; the first `flow_count` frames are processed before the timed part.
    pub(crate) fn contender(&self, work: &'static str, frames: &[Vec<u8>], flow_count: u64) -> Contender {
        let path = self.folder.join("frames");
        let octets: Vec<u8> = frames
            .iter()
            .flat_map(|frame| [&(frame.len() as u32).to_be_bytes()[..], frame].concat())
            .collect();
        fs::write(&path, octets).expect("a temporary folder");
        let mut running = self.start().expect("the program was built");
        let opened = running.request(&format!("open {work} {} {flow_count}", path.display()));
        assert_eq!(opened.expect("it runs"), "opened");
        let running = Rc::new(RefCell::new(running));
        let own = running.clone();
        let turn = move |count| Duration::from_nanos(own.borrow_mut().number(&format!("run {count}")));
        Contender::in_other_process("gopacket", turn, move |done| {
            let per_step_count = match work {
                "assemble_in_order" => 1500,
                "assemble_out_of_order" => 3000,
                _ => 1,
            };
            assert_eq!(running.borrow_mut().number("check"), flow_count + done * per_step_count);
        })
    }
}
