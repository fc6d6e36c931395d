//! FTP's words and any octets, with holes: nothing panics, the same is heard however the octets are cut, memory stays below its
//! caps and is given back.
#![no_main]

#[path = "dialogue.rs"]
mod dialogue;

use dialogue::{Step, hear, turns};
use flowgauge::base::Side;
use flowgauge::session::ftp::{FtpParser, PROTOCOL};
use libfuzzer_sys::fuzz_target;

one_parser!(FtpParser, &PROTOCOL);

const WORDS: [&[u8]; 32] = [
    b"USER a\r\n",
    b"PASS secret\r\n",
    b"AUTH TLS\r\n",
    b"PORT 1,2,3,4,5,6\r\n",
    b"EPRT |2|::1|99|\r\n",
    b"PASV\r\n",
    b"EPSV\r\n",
    b"SIZE name\r\n",
    b"REST 9\r\n",
    b"RETR name\r\n",
    b"LIST\r\n",
    b"SITE PSWD secret\r\n",
    b"QUIT\r\n",
    b"\xff\xf4\xff\xf2ABOR\r\n",
    b"\xff\xfd",
    b"RETR ",
    b"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn",
    b"\r\n",
    b"\x16\x03",
    b"220 ok\r\n",
    b"211-begin\r\n",
    b" between\r\n",
    b"211 end\r\n",
    b"213 77\r\n",
    b"227 Passive (1,2,3,4,5,6)\r\n",
    b"229 Extended (|||99|)\r\n",
    b"234 go\r\n",
    b"150 Opening (99 bytes)\r\n",
    b"226 done\r\n",
    b"350 more\r\n",
    b"200 ok\r\n",
    b"550 no\r\n",
];

fuzz_target!(|input: (u8, Vec<Step<'_>>)| {
    let turns = turns((Side::B, b"220 FTP\r\n"), &WORDS, &input.1);
    // The names of the queue, and what was left of both directions.
    let held_max = 65 * 1100 + 32 * 1024;
    let whole = hear::<Set, Said>(&turns, 21, usize::MAX, held_max);
    let pieces = hear::<Set, Said>(&turns, 21, usize::from(input.0 % 40) + 1, held_max);
    assert_eq!(whole, pieces);
});
