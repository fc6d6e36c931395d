//! SMTP: the reports of commands and replies do not depend on the pieces of the input.

use flowgauge::protocols::smtp::{Message, SmtpParser};
use flowgauge::session::{MessageMeta, Role};

use super::dialogue::{Expectations, Input, Line, Step, json, run_all_variants};
use super::input::structured;

crate::one_parser!(SmtpParser, "smtp", 25);

fn describe(meta: &MessageMeta, Report::One(message): Report<'_>) -> Line {
    if let Message::Content(content) = message {
        return Line::Part(format!("content {}", content.mail), content.bytes.to_vec());
    }
    let json = json(&message);
    Line::Whole(format!("{} {json} {message:?}", meta.from.name()))
}

const WORDS: &[&[u8]] = &[
    b"EHLO a\r\n",
    b"LHLO a\r\n",
    b"MAIL FROM:<a@b> SIZE=9\r\n",
    b"RCPT TO:<c@d>\r\n",
    b"RCPT TO:<eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee@d>\r\n",
    b"DATA\r\n",
    b"DATA\n",
    b"BDAT 9\r\n",
    b"BDAT 3 LAST\r\n",
    b"BURL x LAST\r\n",
    b"AUTH LOGIN\r\n",
    b"AUTH PLAIN c2VjcmV0\r\n",
    b"c2VjcmV0\r\n",
    b"STARTTLS\r\n",
    b"RSET\r\n",
    b"QUIT\r\n",
    b"what\r\n",
    b".",
    b"\r",
    b"\n",
    b"\r\n.\r\n",
    b"text\r\n",
    b"\x16\x03",
    b"x",
    b"220 ok\r\n",
    b"220-ok\r\n",
    b"250 ok\r\n",
    b"250-ok\r\n",
    b"250",
    b"334 VXNlcg==\r\n",
    b"354 go\r\n",
    b"421 bye\r\n",
    b"550 no\r\n",
    b"235 yes\r\n",
    b" ",
    b"454 no\r\n",
];

/// Maximum number of held octets: four mails with their recipients, the queue, and incomplete lines of both directions.
const HELD_MAX: u64 = 4 * 128 * 640 + 64 * 1024;

/// Number of leading words of the client that are commands or answers of AUTH.
const COMMAND_COUNT: usize = 17;

pub fn run(data: &[u8]) {
    let lines = run_all_variants::<Set>(data, || Expectations::<Set>::tcp(25, WORDS, describe, HELD_MAX));
    check_secrets(data, &lines);
}

/// Checks that no answer of an AUTH exchange is reported. Only dialogues of complete commands without DATA are checked,
/// because octets of the input or a mail could contain the text of the answer, and so could a reply of the server.
fn check_secrets(data: &[u8], lines: &[String]) {
    let Some(input) = structured::<Input<'_>>(data) else { return };
    let is_plain = input.steps.iter().all(|step| match *step {
        Step::Word { from, number, .. } => {
            let number = usize::from(number) % WORDS.len();
            let is_content = (5..10).contains(&number);
            let is_answer = (11..13).contains(&number);
            match from {
                Role::Client => number < COMMAND_COUNT && !is_content,
                Role::Server => !is_answer,
            }
        }
        _ => false,
    });
    assert!(!is_plain || !lines.concat().contains("c2VjcmV0"));
}
