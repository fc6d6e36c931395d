//! Recognition of protocols without a parser in the traffic of real programs, on ports other than the registered ones.

use std::collections::BTreeMap;

use flowgauge::base::EndReason;
use flowgauge::pipeline::{Sessions, Sink};
use flowgauge::protocols::Standard;
use flowgauge::session::SessionEvent;
use flowgauge::tracker::{Flow, FlowView, TrackerConfig};

use crate::lab::record;
use crate::support::run_capture;

/// Answers curl first as a SOCKS proxy of version 4 or 5 and then as a web server. Rejects the TLS request of psql.
const SERVERS: &str = r#"
import socket, threading

def serve(port, answer):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        connection, _ = listener.accept()
        with connection:
            answer(connection)

def socks(connection):
    if connection.recv(512)[0] == 5:
        connection.sendall(b"\x05\x00")
        connection.recv(512)
        connection.sendall(b"\x05\x00\x00\x01" + bytes(6))
    else:
        connection.sendall(b"\x00\x5a" + bytes(6))
    connection.recv(4096)
    connection.sendall(b"HTTP/1.0 204 No Content\r\n\r\n")

def postgresql(connection):
    if len(connection.recv(512)) == 8:
        connection.sendall(b"N")
        connection.recv(512)

for port, answer in (9150, socks), (5433, postgresql):
    threading.Thread(target=serve, args=(port, answer)).start()
"#;

const SCRIPT: &str = r#"
python3 servers.py 2>servers.log &
waited listens 9150
waited listens 5433
for version in socks4 socks4a socks5 socks5-hostname; do
    curl -s --max-time 5 --$version 127.0.0.1:9150 http://127.0.0.1:8008/ >curl.log 2>&1
done
for mode in disable prefer; do
    psql "host=127.0.0.1 port=5433 user=nemo sslmode=$mode gssencmode=disable connect_timeout=5" -c '' >psql.log 2>&1 || true
done
mosquitto -p 1884 >mosquitto.log 2>&1 &
waited listens 1884
mosquitto_sub -p 1884 -t flows/+ -C 1 -W 10 >received &
waited sh -c 'mosquitto_pub -p 1884 -t flows/one -m hello && [ -s received ]'
git init -q --bare repository.git
git daemon --port=9419 --base-path="$PWD" --export-all --listen=127.0.0.1 "$PWD" >git.log 2>&1 &
waited listens 9419
git ls-remote git://127.0.0.1:9419/repository.git >remote 2>&1
"#;

/// The recognized protocols of flows and the evidence, by server port.
#[derive(Default)]
struct Names(BTreeMap<u16, Vec<(&'static str, &'static str)>>);

impl Sink for Names {
    type State = Option<(&'static str, &'static str)>;
    type Stage = Sessions<Standard>;

    fn ended(&mut self, view: &FlowView<'_>, _: EndReason, name: Option<(&'static str, &'static str)>) {
        let port = view.key().port(view.initiator().other()).expect("a port");
        self.0.entry(port).or_default().push(name.unwrap_or_default());
    }

    fn session(&mut self, flow: &mut Flow<'_, Option<(&'static str, &'static str)>>, event: &SessionEvent) {
        if let SessionEvent::Recognized { protocol, evidence } = event {
            flow.state.get_or_insert((protocol.name(), evidence.name()));
        }
    }
}

#[test]
fn curl_psql_mosquitto_and_git_are_recognized_by_content() {
    let programs = ["curl", "git", "mosquitto", "mosquitto_pub", "mosquitto_sub", "psql", "python3"];
    let Some(recorded) = record("recognized", &programs, &[("servers.py", SERVERS)], SCRIPT) else { return };
    let (names, _) = run_capture(&recorded.capture(), TrackerConfig::default(), Names::default());

    let of = |port| names.0.get(&port).cloned().unwrap_or_default();
    assert_eq!(of(9150), [("socks", "content"); 4]);
    assert_eq!(of(5433), [("postgresql", "content"); 2]);
    // There are the subscriber and at least one publisher.
    assert!(
        of(1884).len() >= 2 && of(1884).iter().all(|name| *name == ("mqtt", "content")),
        "{:?}",
        of(1884)
    );
    assert_eq!(recorded.file("received").trim(), "hello");
    assert_eq!(of(9419), [("git", "content")]);
}
