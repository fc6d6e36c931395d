//! curl through proxies of SOCKS, and with a header of the PROXY protocol: what follows is parsed as HTTP.

use crate::lab::record;
use crate::observe::to_port;

/// Answers first as a SOCKS proxy of version 4 or 5 and then as a web server; on another port as a web server only.
const SERVERS: &str = r#"
import socket, threading

def serve(port, answer):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        connection, _ = listener.accept()
        with connection:
            answer(connection)

def web(connection):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.0 204 No Content\r\n\r\n")

def socks(connection):
    methods = connection.recv(512)
    if methods[0] == 5:
        connection.sendall(b"\x05\x02" if 2 in methods[2:] else b"\x05\x00")
        if 2 in methods[2:]:
            connection.recv(512)
            connection.sendall(b"\x01\x00")
        connection.recv(512)
        connection.sendall(b"\x05\x00\x00\x01" + bytes([127, 0, 0, 1, 0x9c, 0x40]))
    else:
        connection.sendall(b"\x00\x5a\x9c\x40" + bytes([127, 0, 0, 1]))
    web(connection)

for port, answer in (9151, socks), (9152, web):
    threading.Thread(target=serve, args=(port, answer)).start()
"#;

const SCRIPT: &str = r#"
python3 servers.py 2>servers.log &
waited listens 9151
waited listens 9152
for version in socks4 socks4a socks5 socks5-hostname; do
    curl -s --max-time 5 --$version 127.0.0.1:9151 http://localhost:8008/$version >curl.log 2>&1
done
curl -s --max-time 5 --proxy-user alice:secret --socks5-hostname 127.0.0.1:9151 http://localhost:8008/user >curl.log 2>&1
curl -s --max-time 5 --haproxy-protocol http://127.0.0.1:9152/forwarded >curl.log 2>&1
"#;

#[test]
fn what_curl_sends_through_proxies_is_parsed() {
    let Some(recorded) = record("proxies", &["curl", "python3"], &[("servers.py", SERVERS)], SCRIPT) else {
        return;
    };
    let capture = recorded.capture();
    let connections = to_port(&capture, 9151);
    let expected = [
        ("/socks4", 4, "127.0.0.1", "target_address", "granted"),
        ("/socks4a", 4, "localhost", "target_name", "granted"),
        ("/socks5", 5, "127.0.0.1", "target_address", "succeeded"),
        ("/socks5-hostname", 5, "localhost", "target_name", "succeeded"),
        ("/user", 5, "localhost", "target_name", "succeeded"),
    ];
    assert_eq!(connections.len(), expected.len());
    for (dialogue, (path, version, target, column, answer)) in connections.iter().zip(expected) {
        let row = dialogue.only("socks", "socks");
        assert_eq!((&row["version"], &row["command"]), (&version.into(), &"connect".into()), "{path}");
        assert_eq!((&row[column], &row["target_port"]), (&target.into(), &8008.into()), "{path}");
        assert_eq!((&row["answer"], &row["bound_port"]), (&answer.into(), &40_000.into()), "{path}");
        assert_eq!(row["user_name"] == "alice", path == "/user");
        assert_eq!(dialogue.only("http", "request")["target"], path);
        assert_eq!(dialogue.only("http", "response")["status"], 204);
    }
    let [forwarded] = to_port(&capture, 9152).try_into().expect("a connection");
    assert_eq!(forwarded.only("http", "request")["target"], "/forwarded");
}
