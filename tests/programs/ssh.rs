//! OpenSSH's client and server: the messages match the algorithms in the client's log.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::lab::record;
use crate::observe::to_port;

const SERVER: &str = "
Port 2222
ListenAddress 127.0.0.1
UsePAM no
StrictModes no
PermitRootLogin yes
PidFile none
";

const SCRIPT: &str = r#"
mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N '' -f host
ssh-keygen -q -t ed25519 -N '' -f user
echo "HostKey $PWD/host" >>server
echo "AuthorizedKeysFile $PWD/user.pub" >>server
ssh-keygen -l -f host.pub >host.txt
$(command -v sshd) -D -f "$PWD/server" -E sshd.log &
waited listens 2222
common="-F none -i user -p 2222 -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -vv"
# Logins of root may be disabled on this machine. The test needs only the messages before authentication.
ssh $common root@127.0.0.1 'head -c 300000 /dev/zero' >first.out 2>first.err </dev/null || true
ssh $common -c aes192-ctr -m hmac-sha2-512 -o KexAlgorithms=ecdh-sha2-nistp384,curve25519-sha256 -C \
    root@127.0.0.1 true >second.out 2>second.err </dev/null || true
"#;

/// Returns the MD5 digest in hexadecimal, computed by `md5sum`.
fn md5(text: &str) -> String {
    let mut program =
        Command::new("md5sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("md5sum");
    program.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("an open pipe");
    let output = program.wait_with_output().expect("an end");
    String::from_utf8_lossy(&output.stdout).chars().take(32).collect()
}

#[test]
fn ssh_messages_match_the_log_of_openssh() {
    let programs = ["ssh", "sshd", "ssh-keygen", "md5sum"];
    let Some(recorded) = record("ssh", &programs, &[("server", SERVER)], SCRIPT) else { return };
    let dialogues = to_port(&recorded.capture(), 2222);
    assert_eq!(dialogues.len(), 2);
    for (dialogue, log) in dialogues.iter().zip(["first.err", "second.err"]) {
        assert_eq!(dialogue.recognized, [("ssh", "content")]);
        let one = |prefix: &str| {
            recorded.lines(log, prefix).into_iter().next().unwrap_or_else(|| panic!("{prefix}"))
        };
        let line = |from: &str| {
            let value = dialogue.of(from, "ssh", "identification");
            let comments =
                value["comments"].as_str().map(|comments| format!(" {comments}")).unwrap_or_default();
            (
                value["protocol_version"].clone(),
                value["software_version"].as_str().unwrap_or_default().to_owned() + &comments,
            )
        };
        assert_eq!(line("client"), ("2.0".into(), one("debug1: Local version string SSH-2.0-")));
        assert_eq!(
            line("server"),
            ("2.0".into(), one("debug1: Remote protocol version 2.0, remote software version "))
        );

        let key = dialogue.of("server", "ssh", "host_key");
        let line = recorded.lines("host.txt", "256 ").into_iter().next().expect("a key");
        assert_eq!(key["fingerprint"].as_str(), line.split(' ').next());
        assert_eq!(key["algorithm"], "ssh-ed25519");

        // The log contains the client's proposal, followed by the server's.
        let keys = [
            ("KEX algorithms", "kex_algorithms"),
            ("host key algorithms", "server_host_key_algorithms"),
            ("ciphers ctos", "encryption_algorithms_client_to_server"),
            ("ciphers stoc", "encryption_algorithms_server_to_client"),
            ("MACs ctos", "mac_algorithms_client_to_server"),
            ("MACs stoc", "mac_algorithms_server_to_client"),
            ("compression ctos", "compression_algorithms_client_to_server"),
            ("compression stoc", "compression_algorithms_server_to_client"),
            ("languages ctos", "languages_client_to_server"),
            ("languages stoc", "languages_server_to_client"),
        ];
        for (position, from) in ["client", "server"].into_iter().enumerate() {
            let proposal = dialogue.of(from, "ssh", "kex_init");
            let reported: Vec<String> = keys
                .iter()
                .map(|(name, _)| recorded.lines(log, &format!("debug2: {name}: "))[position].clone())
                .collect();
            for ((_, key), reported) in keys.iter().zip(&reported) {
                let names: Vec<_> = reported.split(',').filter(|name| !name.is_empty()).collect();
                assert_eq!(proposal[key], serde_json::json!(names), "{key} of {from}");
            }
            let [key, parts] = [("hassh", [0, 2, 4, 6]), ("hassh_server", [0, 3, 5, 7])]
                .map(|(key, positions)| {
                    (key, positions.map(|position| reported[position].as_str()).join(";"))
                })
                .map(|(key, text)| [key.to_owned(), md5(&text)])[position]
                .clone();
            assert_eq!(proposal[&key], parts);
        }

        let negotiated = dialogue.only("ssh", "negotiated");
        assert_eq!(negotiated["kex_algorithm"], one("debug1: kex: algorithm: "));
        assert_eq!(negotiated["server_host_key_algorithm"], one("debug1: kex: host key algorithm: "));
        for (direction, keys) in [
            (
                "client->server",
                [
                    "encryption_algorithm_client_to_server",
                    "mac_algorithm_client_to_server",
                    "compression_algorithm_client_to_server",
                ],
            ),
            (
                "server->client",
                [
                    "encryption_algorithm_server_to_client",
                    "mac_algorithm_server_to_client",
                    "compression_algorithm_server_to_client",
                ],
            ),
        ] {
            let [cipher, mac, compression] = keys.map(|key| negotiated[key].as_str().unwrap_or("<implicit>"));
            let reported = one(&format!("debug1: kex: {direction} cipher: "));
            assert_eq!(reported, format!("{cipher} MAC: {mac} compression: {compression}"));
        }
    }
    assert_eq!(dialogues[1].only("ssh", "negotiated")["kex_algorithm"], "ecdh-sha2-nistp384");
}
