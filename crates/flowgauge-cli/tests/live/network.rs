//! Network namespaces that tests make and remove.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A network namespace, removed on drop.
pub(super) struct Network {
    name: String,
}

impl Network {
    /// Creates a namespace without IPv6, whose hosts would send packets of their own. `None`, with a note, if the
    /// process is not root or a program is missing, unless the tests are required.
    pub(super) fn new(programs: &[&str]) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let missing = programs.iter().find(|name| !is_installed(name));
        let name = format!("fg{}x{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let is_created = missing.is_none()
            && Command::new("ip")
                .args(["netns", "add", &name])
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success());
        if !is_created {
            let reason = missing
                .map_or("no permission to create a network namespace".to_owned(), |program| {
                    format!("{program} is not installed")
                });
            let is_required = std::env::var("FLOWGAUGE_ROOT_TESTS").is_ok_and(|value| value == "required");
            assert!(!is_required, "{reason}");
            eprintln!("{reason}: the test is skipped");
            return None;
        }
        let network = Self { name };
        for kind in ["all", "default"] {
            network.run(&["sysctl", "-qw", &format!("net.ipv6.conf.{kind}.disable_ipv6=1")]);
        }
        network.run(&["ip", "link", "set", "lo", "up"]);
        Some(network)
    }

    /// Creates a pair of connected interfaces, which are up. Both ends can be in another namespace.
    pub(super) fn pair(&self, near: &str, far: &str, other: &Self) {
        self.run(&["ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", &other.name]);
        // Frames of captures may be longer than 1500 octets.
        self.run(&["ip", "link", "set", near, "mtu", "9000", "up"]);
        other.run(&["ip", "link", "set", far, "mtu", "9000", "up"]);
    }

    /// Returns a command that runs a program in the namespace.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs a program in the namespace, and returns its standard output.
    pub(super) fn run(&self, words: &[&str]) -> String {
        let output = self.command(words[0]).args(&words[1..]).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {err}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns a counter of an interface, such as `rx_packets`.
    pub(super) fn counter(&self, interface: &str, name: &str) -> u64 {
        let path = format!("/sys/class/net/{interface}/statistics/{name}");
        // `ip netns exec` mounts the namespace's own /sys.
        self.run(&["cat", &path]).trim().parse().unwrap()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.name]).status();
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.into_iter().any(|folder| folder.join(program).is_file())
}
