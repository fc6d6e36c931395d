//! A network namespace in which programs run, and the capture of their packets.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Beginning of each script: it configures the loopback device, starts a capture, and defines functions. All processes
/// run in a separate PID namespace and always end with its first process.
const PREAMBLE: &str = r#"
set -eu
cd "$1"
ip link set lo up
# Programs may write below /run, so it is not that of the machine.
mount -t tmpfs none /run
waited() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ $tries -ge 200 ]; then echo "timeout while waiting for: $*" >&2; cat ./*.log >&2; exit 1; fi
        sleep 0.05
    done
}
listens() { ss -Hltn "sport = :$1" | grep -q .; }
listens_udp() { ss -Hlun "sport = :$1" | grep -q .; }
tcpdump -i lo -Z root -U -B 16384 -w capture.pcap 2>tcpdump.err &
tcpdump=$!
waited grep -q 'listening on' tcpdump.err
echo joined
. ./script
# The kernel delivers packets once a second.
sleep 1.2
kill -INT $tcpdump
wait $tcpdump || true
if ! grep -q '^0 packets dropped by kernel' tcpdump.err; then cat tcpdump.err >&2; exit 1; fi
"#;

/// Time limit in seconds.
const SECONDS_MAX: &str = "40";

/// The results of a script, in a folder that is removed after the test.
pub(crate) struct Recorded {
    folder: PathBuf,
    /// Standard output of the script.
    pub(crate) output: String,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Recorded {
    /// Returns the path of the capture.
    pub(crate) fn capture(&self) -> PathBuf {
        self.folder.join("capture.pcap")
    }

    /// Returns the content of a file that the script wrote.
    pub(crate) fn file(&self, name: &str) -> String {
        let bytes = std::fs::read(self.folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the lines of such a file that begin with a prefix, without the prefix.
    pub(crate) fn lines(&self, name: &str, prefix: &str) -> Vec<String> {
        self.file(name).lines().filter_map(|line| Some(line.strip_prefix(prefix)?.to_owned())).collect()
    }
}

/// Runs a script in a folder with files that it needs. Returns `None` and prints the reason if that is not possible.
pub(crate) fn record(
    name: &str,
    programs: &[&str],
    files: &[(&str, &str)],
    script: &str,
) -> Option<Recorded> {
    let is_required = std::env::var("FLOWGAUGE_PROGRAMS").is_ok_and(|value| value == "required");
    let skip = |why: String| {
        assert!(!is_required, "{why}");
        println!("skipped: {why}");
        None
    };
    for program in ["unshare", "ip", "ss", "tcpdump", "timeout"].iter().chain(programs) {
        if !is_installed(program) {
            return skip(format!("{program} is not installed"));
        }
    }
    let folder = std::env::temp_dir().join(format!("flowgauge-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let mut recorded = Recorded { folder, output: String::new() };
    for (name, text) in files.iter().chain(&[("preamble", PREAMBLE), ("script", script)]) {
        std::fs::write(recorded.folder.join(name), text).expect("a temporary file");
    }
    let output = Command::new("timeout")
        .args([
            "-k",
            "1",
            SECONDS_MAX,
            "unshare",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
        ])
        .args([&recorded.folder.join("preamble"), &recorded.folder])
        .env("PATH", path())
        .env("LC_ALL", "C")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return skip(format!("timeout: {error}")),
    };
    recorded.output = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    if !recorded.output.starts_with("joined") {
        return skip(format!("cannot create a namespace: {}, {}", output.status, error.trim()));
    }
    // A script that has started must succeed.
    assert!(output.status.success(), "{}\n{error}\n{}", output.status, recorded.output);
    Some(recorded)
}

/// Returns a search path that includes the folders of servers, which a user's path may lack.
fn path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("/usr/sbin:/usr/bin:/sbin:/bin:{own}")
}

fn is_installed(program: &str) -> bool {
    path().split(':').any(|folder| Path::new(folder).join(program).is_file())
}
