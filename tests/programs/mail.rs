//! swaks sends mails to aiosmtpd: the messages match the client's transcript and the mails that the server logs.

use serde_json::Value;

use crate::lab::{Recorded, record};
use crate::observe::{Dialogue, to_port};

/// A server that accepts mails for all recipients except one, and writes each envelope as a line of JSON.
const SERVER: &str = r#"
import asyncio, json, ssl, sys
from aiosmtpd.smtp import SMTP, AuthResult

class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith('nobody@'):
            return '550 5.1.1 nobody of this name'
        envelope.rcpt_tos.append(address)
        return '250 2.1.5 taken'
    async def handle_DATA(self, server, session, envelope):
        with open('taken', 'a') as file:
            print(json.dumps([envelope.mail_from.strip('<>'), envelope.rcpt_tos, len(envelope.original_content)]), file=file)
        return '250 2.0.0 thanks'

tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
tls.load_cert_chain('cert', 'key')
good = lambda *_: AuthResult(success=True)
make = lambda: SMTP(Handler(), hostname='mail.example', tls_context=tls, authenticator=good, auth_require_tls=False)
loop = asyncio.new_event_loop()
loop.run_until_complete(loop.create_server(make, '127.0.0.1', 1025))
loop.run_forever()
"#;

/// Sends mails with lines that begin with dots, and with more octets than the buffers hold.
const SCRIPT: &str = r#"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -out cert -days 2 \
    -subj /CN=mail.example 2>openssl.log
/usr/bin/python3 server >server.log 2>&1 &
waited listens 1025
{ printf 'Subject: dots\n\n.\n..\n.a\n'; seq 1 20000; printf '.end\n'; } >letter
common="--server 127.0.0.1:1025 --helo client.example --data @letter"
swaks $common --from a@client.example --to b@mail.example,nobody@mail.example,c@mail.example \
    --auth PLAIN --auth-user somebody --auth-password opensesame >first.txt 2>&1 || true
swaks $common --from '<>' --to b@mail.example --auth LOGIN --auth-user somebody --auth-password opensesame >second.txt 2>&1
swaks $common --from a@client.example --to b@mail.example --tls >third.txt 2>&1
"#;

/// Returns the unencrypted command lines of a transcript, without mail content and responses to AUTH challenges.
fn sent(recorded: &Recorded, transcript: &str) -> Vec<String> {
    let (mut lines, mut is_content, mut is_answer) = (Vec::new(), false, false);
    for line in recorded.file(transcript).lines() {
        if line.starts_with("<-") || line.starts_with("<**") {
            is_answer = line.contains("  334 ");
        }
        let Some(line) = line.strip_prefix(" -> ") else { continue };
        if !is_content && !is_answer {
            lines.push(line.to_owned());
        }
        is_content = (is_content || line == "DATA") && line != ".";
    }
    lines
}

/// Returns a command as a line. For AUTH, only the mechanism is reported.
fn line(command: &Value) -> String {
    let text = |key: &str| command[key].as_str().map(|text| format!(" {text}"));
    let verb = command["verb"].as_str().expect("a verb");
    let keyword = if verb == "MAIL" { "FROM" } else { "TO" };
    let path = command["address"].as_str().map(|address| format!(" {keyword}:<{address}>"));
    let rest = [path, text("parameters"), text("argument")];
    rest.into_iter().flatten().fold(verb.to_owned(), |all, part| all + &part)
}

fn replies(dialogue: &Dialogue) -> Vec<String> {
    let greeting = dialogue.only("smtp", "greeting");
    let all = std::iter::once(greeting).chain(dialogue.all("smtp", "reply"));
    let lines = all.flat_map(|reply| {
        let lines: Vec<_> = reply["text"].as_str().expect("text").lines().collect();
        let last = lines.len() - 1;
        let line =
            |(position, text)| format!("{}{}{text}", reply["code"], if position == last { ' ' } else { '-' });
        lines.into_iter().enumerate().map(line).collect::<Vec<_>>()
    });
    lines.collect()
}

#[test]
fn smtp_messages_match_the_logs_of_swaks_and_aiosmtpd() {
    let programs = ["swaks", "openssl", "aiosmtpd"];
    let Some(recorded) = record("mail", &programs, &[("server", SERVER)], SCRIPT) else { return };
    let dialogues = to_port(&recorded.capture(), 1025);
    assert_eq!(dialogues.len(), 3);
    for (dialogue, transcript) in dialogues.iter().zip(["first.txt", "second.txt", "third.txt"]) {
        let commands: Vec<String> = dialogue.all("smtp", "command").into_iter().map(line).collect();
        let sent: Vec<String> = sent(&recorded, transcript)
            .into_iter()
            .map(|line| match line.strip_prefix("AUTH ") {
                Some(rest) => format!("AUTH {}", rest.split(' ').next().unwrap_or_default()),
                None => line,
            })
            .collect();
        assert_eq!(commands, sent);
        let reported: Vec<String> = recorded
            .file(transcript)
            .lines()
            .filter_map(|line| Some(line.strip_prefix("<-  ").or(line.strip_prefix("<** "))?.to_owned()))
            .collect();
        assert_eq!(replies(dialogue), reported);
        // Each command has a reply.
        let numbers = |message| -> Vec<_> {
            dialogue.all("smtp", message).iter().map(|value| value["transaction"].as_u64()).collect()
        };
        let mut answered = numbers("reply");
        answered.dedup();
        assert_eq!(numbers("command"), answered);
        let text = serde_json::to_string(&dialogue.messages).expect("objects");
        for word in ["opensesame", "b3BlbnNlc2FtZQ", "c29tZWJvZHk", "AHNvbWVib2R5AG9wZW5zZXNhbWU"] {
            assert!(!text.contains(word), "{word}");
        }
    }
    let kinds = |dialogue: &Dialogue| -> Vec<Value> {
        dialogue
            .messages
            .iter()
            .map(|value| value["credentials"].clone())
            .filter(|kind| !kind.is_null())
            .collect()
    };
    assert_eq!(
        dialogues.iter().map(kinds).collect::<Vec<_>>(),
        [vec![Value::from("plain")], vec!["login".into()], vec![]]
    );

    let taken: Vec<Value> =
        recorded.file("taken").lines().map(|line| serde_json::from_str(line).expect("a list")).collect();
    assert_eq!(taken.len(), 3);
    for (dialogue, taken) in dialogues[..2].iter().zip(&taken) {
        assert_eq!(dialogue.recognized, [("smtp", "content")]);
        let mail = dialogue.only("smtp", "mail");
        let accepted: Vec<_> = mail["recipients"]
            .as_array()
            .expect("recipients")
            .iter()
            .filter(|recipient| recipient["code"] == 250)
            .map(|recipient| recipient["address"].clone())
            .collect();
        assert_eq!(serde_json::json!([mail["reverse_path"], accepted, mail["content_len"]]), *taken);
        assert_eq!((&mail["is_accepted"], &mail["is_complete"]), (&true.into(), &true.into()));
        assert!(mail["content_len"].as_u64() > Some(70_000));
    }
    assert_eq!(
        dialogues[0].only("smtp", "mail")["recipients"][1],
        serde_json::json!({"address": "nobody@mail.example", "code": 550})
    );
    assert_eq!(dialogues[2].recognized, [("smtp", "content"), ("tls", "content")]);
    assert_eq!(dialogues[2].all("smtp", "mail").len(), 0);
}
