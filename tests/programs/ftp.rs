//! curl and vsftpd in passive and active mode: the messages match curl's log, and the data connections match the
//! announced addresses.

use serde_json::Value;

use crate::lab::record;
use crate::observe::{Dialogue, dialogues};

const SERVER: &str = "
listen=YES
listen_address=127.0.0.1
listen_port=2121
background=NO
anonymous_enable=YES
no_anon_password=NO
port_enable=YES
connect_from_port_20=NO
seccomp_sandbox=NO
";

const SCRIPT: &str = r#"
mkdir root empty
head -c 123456 /dev/zero >root/a.bin
chmod 755 . root
chmod 555 empty
echo "anon_root=$PWD/root" >>server
echo "secure_chroot_dir=$PWD/empty" >>server
$(command -v vsftpd) "$PWD/server" >vsftpd.log 2>&1 &
waited listens 2121
fetch() { curl -sSv --max-time 10 --ftp-skip-pasv-ip -u anonymous:someone@example.org "$@"; }
fetch ftp://127.0.0.1:2121/a.bin -o passive.out 2>passive.txt
fetch --disable-epsv ftp://127.0.0.1:2121/ -o list.out 2>list.txt
fetch --ftp-port 127.0.0.1 -C 456 ftp://127.0.0.1:2121/a.bin -o active.out 2>active.txt
fetch ftp://127.0.0.1:2121/none -o none.out 2>none.txt || true
wc -c <passive.out
"#;

fn lines(dialogue: &Dialogue, message: &str) -> Vec<String> {
    let all = dialogue.all("ftp", message).into_iter().map(|value| match message {
        // What an anonymous user states with PASS is no secret.
        "command" => match value["argument"].as_str() {
            Some(argument) => format!("{} {argument}", value["verb"].as_str().unwrap_or_default()),
            None => value["verb"].as_str().unwrap_or_default().to_owned(),
        },
        _ => format!("{} {}", value["code"], value["text"].as_str().unwrap_or_default()),
    });
    all.collect()
}

#[test]
fn ftp_messages_match_the_logs_of_curl() {
    let Some(recorded) = record("ftp", &["curl", "vsftpd"], &[("server", SERVER)], SCRIPT) else { return };
    assert_eq!(recorded.output.trim_start_matches("joined").trim(), "123456");
    let all = dialogues(&recorded.capture());
    let control: Vec<&Dialogue> = all.iter().filter(|dialogue| dialogue.server_port == 2121).collect();
    assert_eq!(control.len(), 4);
    for (dialogue, log) in control.iter().zip(["passive.txt", "list.txt", "active.txt", "none.txt"]) {
        assert_eq!(dialogue.recognized, [("ftp", "content")]);
        // curl does not always send QUIT and does not log it.
        let (mut commands, mut replies) = (lines(dialogue, "command"), lines(dialogue, "greeting"));
        replies.extend(lines(dialogue, "reply"));
        commands.pop_if(|last| last == "QUIT");
        replies.pop_if(|last| last.starts_with("221 "));
        assert_eq!(commands, recorded.lines(log, "> "));
        assert_eq!(replies, recorded.lines(log, "< "));
    }
    // There is a data connection to each announced port.
    let data = |dialogue: &Dialogue| dialogue.only("ftp", "data_connection").clone();
    let is_opened = |expected: &Value| {
        all.iter().any(|dialogue| Some(u64::from(dialogue.server_port)) == expected["port"].as_u64())
    };
    assert!(control[..3].iter().all(|dialogue| is_opened(&data(dialogue))));
    let opened_by: Vec<_> = control.iter().map(|dialogue| data(dialogue)["opened_by"].clone()).collect();
    assert_eq!(opened_by, ["client", "client", "server", "client"]);
    assert_eq!(data(control[1])["address"], "127.0.0.1");

    let transfer = |dialogue: &Dialogue| {
        dialogue.all("ftp", "transfer").first().map(|value| (*value).clone()).unwrap_or_default()
    };
    let [passive, list, active, none] = [0, 1, 2, 3].map(|position| transfer(control[position]));
    assert_eq!(
        (&passive["verb"], &passive["name"], &passive["announced_len"]),
        (&"RETR".into(), &"a.bin".into(), &123_456.into())
    );
    assert_eq!((&list["verb"], &list["is_complete"]), (&"LIST".into(), &true.into()));
    assert_eq!((&active["restart_offset"], &active["is_complete"]), (&456.into(), &true.into()));
    assert!(none.is_null() || none["code"] == 550, "{none}");
}
