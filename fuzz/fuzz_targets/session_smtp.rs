//! SMTP's words and any octets, with holes: nothing panics, the same is heard however the octets are cut, memory stays below its
//! caps and is given back, and no answer of an AUTH exchange is ever given out.
#![no_main]

#[path = "dialogue.rs"]
mod dialogue;

use dialogue::{Step, hear, turns};
use flowgauge::base::Side;
use flowgauge::session::smtp::{PROTOCOL, SmtpParser};
use libfuzzer_sys::fuzz_target;

one_parser!(SmtpParser, &PROTOCOL);

const WORDS: [&[u8]; 36] = [
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

fuzz_target!(|input: (u8, Vec<Step<'_>>)| {
    let turns = turns((Side::B, b"220 a ESMTP\r\n"), &WORDS, &input.1);
    // Four mails with their recipients, the queue, and what was left of both directions.
    let held_max = 4 * 128 * 640 + 64 * 1024;
    let whole = hear::<Set, Said>(&turns, 25, usize::MAX, held_max);
    let pieces = hear::<Set, Said>(&turns, 25, usize::from(input.0 % 40) + 1, held_max);
    assert_eq!(whole, pieces);
    // The octets of a step may spell a command around it.
    let is_plain = input.1.iter().all(|step| matches!(step, Step::Word { of_server: false, place } if usize::from(*place) % WORDS.len() <= 16));
    let is_content = input.1.iter().any(|step| matches!(step, Step::Word { place, .. } if (5..9).contains(&(usize::from(*place) % WORDS.len()))));
    assert!(!is_plain || is_content || !whole.concat().contains("c2VjcmV0"));
});
