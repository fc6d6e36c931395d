//! FTP: the reports of commands and replies do not depend on the pieces of the input.

use flowgauge::protocols::ftp::FtpParser;
use flowgauge::session::MessageMeta;

use super::dialogue::{Expectations, Line, json, run_all_variants};

crate::one_parser!(FtpParser, "ftp", 21);

fn describe(meta: &MessageMeta, Report::One(message): Report<'_>) -> Line {
    let json = json(&message);
    Line::Whole(format!("{} {json} {message:?}", meta.from.name()))
}

const WORDS: &[&[u8]] = &[
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

/// Maximum number of held octets: the queue with its names, and incomplete lines of both directions.
const HELD_MAX: u64 = 65 * 1100 + 32 * 1024;

pub fn run(data: &[u8]) {
    run_all_variants::<Set>(data, || Expectations::<Set>::tcp(21, WORDS, describe, HELD_MAX));
}
