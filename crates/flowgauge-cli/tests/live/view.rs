//! The view on a terminal, in tmux.

use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::{free_port, wait_for};

/// A tmux server with one session, which ends with the test.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs a command line in a terminal of the given size; `None`, with a note, if tmux is not installed and not
    /// required.
    fn start(width: u16, height: u16, line: &str) -> Option<Self> {
        let socket = format!("flowgauge-{}-{width}", std::process::id());
        let (width, height) = (width.to_string(), height.to_string());
        let args = ["-L", &socket, "-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, line];
        let started = Command::new("tmux").args(args).status();
        if !started.is_ok_and(|status| status.success()) {
            let is_required = std::env::var("FLOWGAUGE_ROOT_TESTS").is_ok_and(|value| value == "required");
            assert!(!is_required, "tmux is required, but cannot be run");
            eprintln!("tmux is not installed: the test is skipped");
            return None;
        }
        Some(Self { socket })
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    fn wait(&self, text: &str) {
        wait_for(text, || self.screen().contains(text));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// The terminal is closed, for example by the end of a remote session, or SIGHUP is sent otherwise.
#[test]
fn a_hangup_restores_the_terminal_and_writes_the_summary() {
    let program = env!("CARGO_BIN_EXE_flowgauge");
    let port = free_port();
    let pid = std::env::temp_dir().join(format!("flowgauge-view-{}", std::process::id()));
    let line = format!(
        "sh -c 'echo $$ >{}; exec {program} live --listen udp://127.0.0.1:{port}/vxlan'; echo ended with $?; sleep 30",
        pid.display()
    );
    let Some(terminal) = Terminal::start(100, 30, &line) else { return };
    terminal.wait("flowgauge live: udp://127.0.0.1:");
    let id = std::fs::read_to_string(&pid).unwrap();
    assert!(Command::new("kill").args(["-HUP", id.trim()]).status().unwrap().success());
    terminal.wait("ended with 129");
    assert!(terminal.screen().contains("0 packets"), "{}", terminal.screen());
    std::fs::remove_file(&pid).unwrap();
}

#[test]
fn the_view_shows_traffic_and_obeys_keys() {
    for (width, height) in [(80, 24), (132, 43)] {
        let port = free_port();
        let program = env!("CARGO_BIN_EXE_flowgauge");
        let line =
            format!("{program} live --listen udp://127.0.0.1:{port}/vxlan; echo ended with $?; sleep 30");
        let Some(terminal) = Terminal::start(width, height, &line) else { return };
        terminal.wait("flowgauge live: udp://127.0.0.1:");
        // A UDP datagram to port 53 in Ethernet and IPv4.
        let mut frame = vec![8, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
        frame.extend([0x9c, 0x40, 0, 53, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..10 {
            sender.send_to(&frame, ("127.0.0.1", port)).unwrap();
        }
        terminal.wait("192.0.2.1:40000");
        assert!(terminal.screen().contains("1 flow open, 10 packets"), "{}", terminal.screen());
        terminal.press(&["Tab"]);
        terminal.wait("HOST");
        terminal.press(&["Tab"]);
        terminal.wait("PROTOCOL");
        terminal.press(&["Tab", "p"]);
        terminal.wait("PAUSED");
        terminal.press(&["p", "/"]);
        terminal.wait("filter: _");
        terminal.press(&["tcp prt", "Enter"]);
        terminal.wait("column 5");
        terminal.press(&["BSpace", "BSpace", "BSpace", "port 1", "Enter"]);
        terminal.wait("FILTERED");
        wait_for("an empty table", || !terminal.screen().contains("192.0.2.1:40000"));
        terminal.press(&["Escape"]);
        // An escape may begin a sequence of a key.
        thread::sleep(Duration::from_millis(700));
        terminal.wait("192.0.2.1:40000");
        terminal.press(&["q"]);
        terminal.wait("ended with 0");
        assert!(terminal.screen().contains("10 packets"), "{}", terminal.screen());
    }
}
