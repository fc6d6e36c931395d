//! The view on a terminal, in tmux.

use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::Duration;

use etherparse::PacketBuilder;

use super::{Folder, free_port, wait_for};

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

/// Returns a query of DNS for `www.example` from 192.0.2.1, in Ethernet and VXLAN.
fn query(port: u16) -> Vec<u8> {
    let mut message = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    message.extend(b"\x03www\x07example\0\0\x01\0\x01");
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64)
        .udp(port, 53);
    let mut frame = vec![8, 0, 0, 0, 0, 0, 1, 0];
    builder.write(&mut frame, &message).unwrap();
    frame
}

#[test]
fn the_view_shows_traffic_and_obeys_keys() {
    for (width, height) in [(80, 24), (160, 50)] {
        let port = free_port();
        let program = env!("CARGO_BIN_EXE_flowgauge");
        let line =
            format!("{program} live --listen udp://127.0.0.1:{port}/vxlan; echo ended with $?; sleep 30");
        let Some(terminal) = Terminal::start(width, height, &line) else { return };
        terminal.wait("flowgauge live: udp://127.0.0.1:");
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let send = |source_port, count| {
            for _ in 0..count {
                sender.send_to(&query(source_port), ("127.0.0.1", port)).unwrap();
            }
        };
        send(40_000, 9);
        send(40_001, 1);
        terminal.wait("2 flows open");
        let screen = terminal.screen();
        for text in
            ["192.0.2.1:40000", "192.0.2.2:53", "www.example", "S0", "OUT▼bps", "kbit/s┤", "Drops none"]
        {
            assert!(screen.contains(text), "{text}: {screen}");
        }
        assert!(screen.contains("10 packets"), "{screen}");
        // The order is visible at once.
        terminal.press(&["s"]);
        terminal.wait("sorted by rate out");
        terminal.press(&["s", "s"]);
        terminal.wait("OCTETS▼");
        terminal.press(&["Tab"]);
        terminal.wait("HOST");
        terminal.press(&["Tab"]);
        terminal.wait("udp/dns");
        terminal.press(&["Tab", "p"]);
        terminal.wait("PAUSED");
        terminal.press(&["p", "/"]);
        terminal.wait("where: _");
        terminal.press(&["-l", "source_prt = 40001"]);
        terminal.press(&["Enter"]);
        terminal.wait("^ column 1: `source_prt` is not a column; did you mean `source_port`?");
        terminal.press(&["C-u"]);
        terminal.press(&["-l", "source_port = 40001 and server_name = 'www.example'"]);
        terminal.press(&["Enter"]);
        terminal.wait("1 of 2 where source_port = 40001");
        wait_for("a table of one flow", || !terminal.screen().contains("192.0.2.1:40000"));
        terminal.press(&["Enter"]);
        terminal.wait("── 1 message ─");
        let screen = terminal.screen();
        for text in
            ["Flow   dns  192.0.2.1:40001  → 192.0.2.2:53  www.example", "(no reply)", "→ query id=7 "]
        {
            assert!(screen.contains(text), "{text}: {screen}");
        }
        send(40_001, 2);
        terminal.wait("── 3 messages ─");
        // An escape may begin a sequence of a key.
        terminal.press(&["Escape"]);
        terminal.wait("[Flows]");
        thread::sleep(Duration::from_millis(700));
        terminal.press(&["Escape"]);
        terminal.wait("192.0.2.1:40000");
        terminal.press(&["?"]);
        terminal.wait("end the capture");
        terminal.press(&["x", "q"]);
        terminal.wait("ended with 0");
        assert!(terminal.screen().contains("12 packets"), "{}", terminal.screen());
    }
}

#[test]
fn the_view_is_readable_in_40_columns() {
    let port = free_port();
    let program = env!("CARGO_BIN_EXE_flowgauge");
    let line = format!("{program} live --listen udp://127.0.0.1:{port}/vxlan; sleep 30");
    let Some(terminal) = Terminal::start(40, 12, &line) else { return };
    terminal.wait("flowgauge live: ");
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(&query(40_000), ("127.0.0.1", port)).unwrap();
    terminal.wait("1 flow");
    let screen = terminal.screen();
    let title = screen.lines().find(|line| line.contains("SOURCE")).unwrap();
    let row = screen.lines().find(|line| line.contains("192.0.2.1")).unwrap();
    assert!(title.ends_with("BIT/S▼") && title.chars().count() == 40, "{screen}");
    assert!(row.contains("192.0.2.2:53") && row.chars().count() == 40, "{screen}");
    assert!(screen.contains("sorted by rate"), "{screen}");
}

/// The view writes no logs.
#[test]
fn outputs_are_written_instead_of_a_view() {
    let (port, folder) = (free_port(), Folder::new());
    let (program, logs) = (env!("CARGO_BIN_EXE_flowgauge"), folder.path("logs"));
    let line = format!("{program} live --listen udp://127.0.0.1:{port}/vxlan --write zeek={logs}; sleep 30");
    let Some(terminal) = Terminal::start(90, 20, &line) else { return };
    terminal.wait("flowgauge: capturing on udp://127.0.0.1:");
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(&query(40_000), ("127.0.0.1", port)).unwrap();
    thread::sleep(Duration::from_millis(300));
    terminal.press(&["C-c"]);
    let conn = std::path::Path::new(&logs).join("conn.log");
    wait_for("the log", || std::fs::read_to_string(&conn).is_ok_and(|log| log.contains("192.0.2.1")));
}
