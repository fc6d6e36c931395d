//! A network namespace where programs run for a while, and the capture of what they said.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What each script begins with: the loopback device, a capture, and helpers. All processes live in a namespace of their own and
/// end with its first one, whatever becomes of them.
const PREAMBLE: &str = r#"
set -eu
cd "$1"
ip link set lo up
# Programs may write below /run, which is not the machine's own here.
mount -t tmpfs none /run
waited() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        if [ $tries -ge 200 ]; then echo "waited in vain for: $*" >&2; cat ./*.log >&2; exit 1; fi
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
# Packets are handed over once a second.
sleep 1.2
kill -INT $tcpdump
wait $tcpdump || true
if ! grep -q '^0 packets dropped by kernel' tcpdump.err; then cat tcpdump.err >&2; exit 1; fi
"#;

/// Seconds after which all is over.
const SECONDS_MAX: &str = "40";

/// A folder that goes when the test is over.
pub(crate) struct Recorded {
    folder: PathBuf,
    /// What the script wrote.
    pub(crate) output: String,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Recorded {
    /// The capture.
    pub(crate) fn capture(&self) -> PathBuf {
        self.folder.join("capture.pcap")
    }

    /// A file that the script wrote.
    pub(crate) fn file(&self, name: &str) -> String {
        let bytes = std::fs::read(self.folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The lines of such a file that begin with a prefix, without it.
    pub(crate) fn lines(&self, name: &str, prefix: &str) -> Vec<String> {
        self.file(name).lines().filter_map(|line| Some(line.strip_prefix(prefix)?.to_owned())).collect()
    }
}

/// Runs a script among files that it needs. None, with a word, where that cannot be.
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
        if !is_there(program) {
            return skip(format!("no {program} here"));
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
        return skip(format!("no namespace: {}, {}", output.status, error.trim()));
    }
    // What began must end well.
    assert!(output.status.success(), "{}\n{error}\n{}", output.status, recorded.output);
    Some(recorded)
}

/// Where servers are is not on everybody's path.
fn path() -> String {
    let own = std::env::var("PATH").unwrap_or_default();
    format!("/usr/sbin:/usr/bin:/sbin:/bin:{own}")
}

fn is_there(program: &str) -> bool {
    path().split(':').any(|folder| Path::new(folder).join(program).is_file())
}
