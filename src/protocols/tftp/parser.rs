//! Parser of TFTP.

use super::PROTOCOL;
use super::message::{Error, Message, Operation, OptionAcknowledgment, Request};
use crate::checkpoint::{COUNT_MAX, state};
use crate::protocols::ftp_data::{End, FileGap, Octets};
use crate::session::{Datagram, End as Ended, Expectation, Fault, Out, Parser, Piece, Progress, Role, Text};

/// Block size without the option (RFC 1350 section 2).
const BLOCK_LEN: u64 = 512;

/// Greatest distance of a block from the last one that is ahead of it, not behind.
const AHEAD_MAX: u16 = u16::MAX / 2;

/// Operation codes (RFC 1350 section 5, RFC 2347).
mod opcode {
    pub(super) const READ: u16 = 1;
    pub(super) const WRITE: u16 = 2;
    pub(super) const DATA: u16 = 3;
    pub(super) const ACKNOWLEDGMENT: u16 = 4;
    pub(super) const ERROR: u16 = 5;
    pub(super) const OPTION_ACKNOWLEDGMENT: u16 = 6;
}

/// Parser of TFTP; see the [module](super).
#[derive(Debug, Default)]
pub struct TftpParser {
    request_count: u64,
    transfer: Transfer,
    /// True if the flow was announced again since the transfer began.
    is_announced: bool,
}

/// The transfer of a file.
#[derive(Debug)]
struct Transfer {
    /// Sender of the file, as soon as a block was captured.
    sender: Option<Role>,
    block_len: u64,
    window_len: u16,
    /// Number of the last block.
    last: u16,
    /// Length of the file so far, including missing octets.
    len: u64,
    missing_len: u64,
    /// True if the last block was captured.
    has_last: bool,
    /// True if no more blocks are expected: after the last one, or an error.
    is_over: bool,
    /// True if the end was reported.
    is_ended: bool,
    /// Checksum of the first block, by which a repetition of a file of one block is recognized.
    first: u32,
}

state! { struct TftpParser { request_count, transfer, is_announced } if |parser| parser.request_count < COUNT_MAX }
state! {
    struct Transfer {
        sender, block_len, window_len, last, len, missing_len, has_last, is_over, is_ended, first,
    }
    // A block is a datagram.
    if |transfer| transfer.block_len <= u64::from(u16::MAX)
}

impl Default for Transfer {
    fn default() -> Self {
        Self {
            sender: None,
            block_len: BLOCK_LEN,
            window_len: 1,
            last: 0,
            len: 0,
            missing_len: 0,
            has_last: false,
            is_over: false,
            is_ended: false,
            first: 0,
        }
    }
}

impl Transfer {
    /// Reports missing octets.
    fn skip(&mut self, len: u64, out: Out<'_, TftpParser>) {
        if len > 0 {
            out(Message::Gap(FileGap { offset: self.len, len }));
            self.len = self.len.saturating_add(len);
            self.missing_len = self.missing_len.saturating_add(len);
        }
    }

    /// Returns how many blocks a block is ahead of the last one; `None` if it is not.
    fn ahead(&self, block: u16) -> Option<u16> {
        Some(block.wrapping_sub(self.last)).filter(|ahead| (1..=AHEAD_MAX).contains(ahead))
    }

    /// Adds a block, of which `len` octets were sent.
    fn block(&mut self, from: Role, (block, bytes, len): (u16, &[u8], u64), out: Out<'_, TftpParser>) {
        if self.is_over || *self.sender.get_or_insert(from) != from {
            return;
        }
        // An acknowledgment of options was not captured.
        self.block_len = self.block_len.max(len);
        let Some(ahead) = self.ahead(block) else { return };
        if ahead > 1 {
            // The sender will repeat the blocks, unless the receiver acknowledges them.
            if self.window_len > 1 {
                return;
            }
            self.skip(u64::from(ahead - 1) * self.block_len, out);
        }
        if self.last == 0 && block == 1 {
            self.first = checksum_of(bytes);
        }
        self.last = block;
        if !bytes.is_empty() {
            out(Message::Octets(Octets { offset: self.len, bytes }));
            self.len = self.len.saturating_add(bytes.len() as u64);
        }
        self.skip(len - bytes.len() as u64, out);
        if len < self.block_len {
            (self.has_last, self.is_over) = (true, true);
            self.end(out);
        }
    }

    /// Adds an acknowledgment of a block by the receiver, which proves that blocks before it were sent.
    fn acknowledgment(&mut self, from: Role, block: u16, out: Out<'_, TftpParser>) {
        let is_of_receiver = self.sender.is_some_and(|sender| sender != from);
        if is_of_receiver
            && self.window_len > 1
            && !self.is_over
            && let Some(ahead) = self.ahead(block)
        {
            self.skip(u64::from(ahead) * self.block_len, out);
            self.last = block;
        }
    }

    /// Reports the end of a file.
    fn end(&mut self, out: Out<'_, TftpParser>) {
        let Self { len, missing_len, has_last, .. } = *self;
        if !std::mem::replace(&mut self.is_ended, true) {
            out(Message::End(End { len, missing_len, is_complete: has_last && missing_len == 0 }));
        }
    }
}

/// Returns a checksum of a block (FNV-1a).
fn checksum_of(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, octet| (hash ^ u32::from(*octet)).wrapping_mul(0x0100_0193))
}

/// Returns texts that are terminated by zeros; the last one may be truncated.
fn texts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|octet| *octet == 0)
}

/// Returns the known options in a list of names and values.
fn options<'b>(mut texts: impl Iterator<Item = &'b [u8]>) -> OptionAcknowledgment {
    fn number<N: std::str::FromStr>(value: &[u8]) -> Option<N> {
        std::str::from_utf8(value).ok()?.parse().ok()
    }
    let mut options = OptionAcknowledgment::default();
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("blksize") {
            options.block_len = number(value);
        } else if is("tsize") {
            options.file_len = number(value);
        } else if is("timeout") {
            options.timeout_s = number(value);
        } else if is("windowsize") {
            options.window_len = number(value);
        }
    }
    options
}

impl TftpParser {
    fn request(&mut self, operation: Operation, rest: &[u8], out: Out<'_, Self>) {
        let mut texts = texts(rest);
        let (file_name, mode) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
        let OptionAcknowledgment { block_len, file_len, timeout_s, window_len } = options(texts);
        let transaction = self.request_count;
        self.request_count += 1;
        (self.transfer, self.is_announced) = (Transfer::default(), false);
        out(Message::Request(Request {
            transaction,
            operation,
            file_name: Text(file_name),
            mode: Text(mode),
            block_len,
            file_len,
            timeout_s,
            window_len,
        }));
    }
}

impl TftpParser {
    /// Begins another transfer between the same ports, if `is_other` states that a packet with which transfers begin is not
    /// a repeated one of the current transfer.
    fn begin_anew(&mut self, from: Role, is_other: bool, out: Out<'_, Self>) {
        if !is_other {
            return;
        }
        // The message has the role of the sender of the file.
        if self.transfer.sender == Some(from) && self.transfer.len > 0 {
            self.transfer.end(out);
        }
        (self.transfer, self.is_announced) = (Transfer::default(), false);
    }

    /// Returns whether a first block is not the repeated one of the current transfer: it follows the last one, and the
    /// transfer had more blocks, it has other octets, or the file was requested again.
    fn is_of_another(&self, bytes: &[u8]) -> bool {
        let Transfer { is_over, last, first, .. } = self.transfer;
        let is_repeated = last <= 1 && first == checksum_of(bytes);
        (is_over && last > 0 && (self.is_announced || !is_repeated)) || (self.is_announced && last > 1)
    }
}

impl Parser for TftpParser {
    type Message<'m> = Message<'m>;

    crate::session::saved!();

    fn datagram(&mut self, datagram: &Datagram<'_>, out: Out<'_, Self>) -> Result<Progress, Fault> {
        let Some((&[high, low], rest)) = datagram.bytes.split_first_chunk() else {
            return Ok(Progress::Took(0));
        };
        self.is_announced |= datagram.is_announced && self.transfer.last > 0;
        let number = || rest.split_first_chunk().map(|(number, rest)| (u16::from_be_bytes(*number), rest));
        match u16::from_be_bytes([high, low]) {
            opcode::READ if datagram.from == Role::Client => self.request(Operation::Read, rest, out),
            opcode::WRITE if datagram.from == Role::Client => self.request(Operation::Write, rest, out),
            opcode::DATA => {
                if let Some((block, bytes)) = number() {
                    let is_other = block == 1 && self.is_of_another(bytes);
                    self.begin_anew(datagram.from, is_other, out);
                    let truncated_len = datagram.len.saturating_sub(datagram.bytes.len());
                    let len = (bytes.len() + truncated_len) as u64;
                    self.transfer.block(datagram.from, (block, bytes, len), out);
                }
            }
            opcode::ACKNOWLEDGMENT => {
                if let Some((block, _)) = number() {
                    self.transfer.acknowledgment(datagram.from, block, out);
                }
            }
            opcode::ERROR => {
                if let Some((code, rest)) = number() {
                    self.transfer.is_over = true;
                    out(Message::Error(Error { code, text: Text(texts(rest).next().unwrap_or_default()) }));
                }
            }
            opcode::OPTION_ACKNOWLEDGMENT if datagram.from == Role::Server => {
                let options = options(texts(rest));
                let is_other = self.transfer.is_over && self.transfer.last > 0;
                self.begin_anew(datagram.from, is_other, out);
                let transfer = &mut self.transfer;
                // A block size is at least 8 (RFC 2348).
                if let Some(len) = options.block_len.filter(|len| *len >= 8) {
                    transfer.block_len = len.into();
                }
                transfer.window_len = options.window_len.unwrap_or(1);
                out(Message::OptionAcknowledgment(options));
            }
            _ => {}
        }
        Ok(Progress::Took(datagram.bytes.len()))
    }

    fn end(&mut self, end: &Ended<'_>, out: Out<'_, Self>) {
        // The message has the role of the sender of the file.
        if self.transfer.sender == Some(end.from) && self.transfer.len > 0 {
            self.transfer.end(out);
        }
    }

    #[inline]
    fn piece<'m>(message: &'m Message<'_>) -> Option<Piece<'m>> {
        message.piece()
    }

    fn expectation(message: &Message<'_>) -> Option<Expectation> {
        // The server answers from another port to the one of the request.
        let is_request = matches!(message, Message::Request(_));
        is_request.then_some(Expectation {
            protocol: &PROTOCOL,
            opened_by: Role::Server,
            address: None,
            port: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Timestamp;
    use crate::session::EndKind;

    /// Returns what a parser reports of datagrams, of which the last octets may not be captured.
    fn reports<'d>(datagrams: impl IntoIterator<Item = (Role, &'d [u8], usize)>) -> Vec<String> {
        let (mut parser, mut reports) = (TftpParser::default(), Vec::new());
        let mut note = |message: Message<'_>| {
            reports.push(match message {
                Message::Request(request) => {
                    let Request { transaction, operation, file_name, .. } = request;
                    format!("{transaction}: {operation:?} {file_name}")
                }
                Message::OptionAcknowledgment(options) => format!("{:?}", options.block_len),
                Message::Octets(octets) => format!("{}+{}", octets.offset, octets.bytes.len()),
                Message::Gap(gap) => format!("{}+{} missing", gap.offset, gap.len),
                Message::End(end) => format!("{} - {} {}", end.len, end.missing_len, end.is_complete),
                Message::Error(error) => format!("error {} {}", error.code, error.text),
            });
        };
        for (from, bytes, missing_len) in datagrams {
            let mut datagram = Datagram::new(bytes, from, Timestamp::ZERO);
            datagram.len += missing_len;
            parser.datagram(&datagram, &mut note).expect("no fault");
        }
        for from in [Role::Client, Role::Server] {
            let end = Ended { rest: &[], offset: 0, from, kind: EndKind::Flow, timestamp: Timestamp::ZERO };
            parser.end(&end, &mut note);
        }
        reports
    }

    fn block(number: u16, len: usize) -> Vec<u8> {
        [&[0, 3], &number.to_be_bytes()[..], &vec![b'x'; len]].concat()
    }

    fn acknowledgment(number: u16) -> Vec<u8> {
        [&[0, 4], &number.to_be_bytes()[..]].concat()
    }

    /// Returns what is reported of blocks that the server sends, with acknowledgments of the client.
    fn of_server(first: &[u8], packets: &[Vec<u8>]) -> Vec<String> {
        let from = |packet: &[u8]| if packet.get(1) == Some(&4) { Role::Client } else { Role::Server };
        let packets = packets.iter().map(|packet| (from(packet), packet.as_slice(), 0));
        reports([(Role::Server, first, 0)].into_iter().chain(packets))
    }

    const NONE: &[u8] = b"";
    const WINDOW: &[u8] = b"\0\x06blksize\x008\0windowsize\x004\0";

    #[test]
    fn a_file_is_read_in_blocks_and_repeated_blocks_are_ignored() {
        let request = b"\0\x01a/b.txt\0octet\0blksize\x00600\0tsize\x000\0";
        let found = reports([
            (Role::Client, &request[..], 0),
            (Role::Server, b"\0\x06blksize\x00600\0tsize\x00601\0", 0),
            (Role::Client, &acknowledgment(0), 0),
            (Role::Server, &block(1, 600), 0),
            (Role::Server, &block(1, 600), 0),
            (Role::Client, &acknowledgment(1), 0),
            (Role::Server, &block(2, 1), 0),
            (Role::Server, &block(2, 1), 0),
            (Role::Client, &acknowledgment(2), 0),
        ]);
        assert_eq!(found, ["0: Read a/b.txt", "Some(600)", "0+600", "600+1", "601 - 0 true"]);
    }

    #[test]
    fn a_file_is_written_by_the_client() {
        let found = reports([
            (Role::Client, &b"\0\x02c\0netascii\0"[..], 0),
            (Role::Server, &acknowledgment(0), 0),
            (Role::Client, &block(1, 512), 0),
            (Role::Server, &acknowledgment(1), 0),
            // Octets of the other side are no part of the file.
            (Role::Server, &block(2, 512), 0),
            (Role::Client, &block(2, 0), 0),
        ]);
        assert_eq!(found, ["0: Write c", "0+512", "512 - 0 true"]);
    }

    #[test]
    fn missing_blocks_are_gaps() {
        let found = of_server(NONE, &[block(1, 512), block(4, 512), block(5, 3)]);
        assert_eq!(found, ["0+512", "512+1024 missing", "1536+512", "2048+3", "2051 - 1024 false"]);
        // The first block, and the last one.
        let found = of_server(NONE, &[block(2, 512)]);
        assert_eq!(found, ["0+512 missing", "512+512", "1024 - 512 false"]);
        // Octets behind the snap length.
        let found = reports([(Role::Server, &block(1, 100)[..], 412), (Role::Server, &block(2, 1), 0)]);
        assert_eq!(found, ["0+100", "100+412 missing", "512+1", "513 - 412 false"]);
    }

    #[test]
    fn blocks_of_a_window_that_were_lost_on_the_way_are_repeated() {
        let blocks =
            [block(1, 8), block(3, 8), block(4, 8), acknowledgment(1), block(2, 8), block(3, 8), block(4, 2)];
        assert_eq!(of_server(WINDOW, &blocks), ["Some(8)", "0+8", "8+8", "16+8", "24+2", "26 - 0 true"]);
        // The receiver has the blocks that were not captured.
        let blocks = [block(1, 8), block(3, 8), acknowledgment(3), block(4, 2)];
        let expected = ["Some(8)", "0+8", "8+16 missing", "24+2", "26 - 16 false"];
        assert_eq!(of_server(WINDOW, &blocks), expected);
    }

    #[test]
    fn another_transfer_between_the_same_ports_begins_with_its_first_block() {
        // A repeated block is none; other octets are, and a first block after more than one.
        let other = [b"\0\x03\0\x01".as_slice(), b"other"].concat();
        let found = of_server(NONE, &[block(1, 5), block(1, 5), other.clone(), other]);
        assert_eq!(found, ["0+5", "5 - 0 true", "0+5", "5 - 0 true"]);
        let blocks = [block(1, 512), block(1, 512), block(2, 1), block(2, 1), block(1, 512), block(2, 0)];
        let expected = ["0+512", "512+1", "513 - 0 true", "0+512", "512 - 0 true"];
        assert_eq!(of_server(NONE, &blocks), expected);
        // An acknowledgment of options, with another size.
        let options = b"\0\x06blksize\x00600\0".to_vec();
        let found = of_server(NONE, &[block(1, 9), options, block(1, 600), block(2, 0)]);
        assert_eq!(found, ["0+9", "9 - 0 true", "Some(600)", "0+600", "600 - 0 true"]);
    }

    #[test]
    fn a_file_that_is_requested_again_is_another_one() {
        let (mut parser, mut count) = (TftpParser::default(), 0);
        let mut send = |bytes: &[u8], is_announced| {
            let mut note = |message: Message<'_>| count += usize::from(matches!(message, Message::End(_)));
            let datagram = Datagram { is_announced, ..Datagram::new(bytes, Role::Server, Timestamp::ZERO) };
            parser.datagram(&datagram, &mut note).expect("no fault");
            count
        };
        let file = block(1, 5);
        let counts = [(&file, true), (&file, false), (&file, true), (&file, false)];
        assert_eq!(counts.map(|(bytes, is_announced)| send(bytes, is_announced)), [1, 1, 2, 2]);
        // The announcement came with another packet, and a transfer was not finished.
        assert_eq!(send(&acknowledgment(1), true), 2);
        assert_eq!([block(1, 512), block(2, 512), block(1, 9)].map(|bytes| send(&bytes, false)), [2, 2, 2]);
        assert_eq!(send(&acknowledgment(1), true), 2);
        assert_eq!(send(&block(1, 8), false), 4);
    }

    #[test]
    fn numbers_of_blocks_begin_again_after_the_last_one() {
        let blocks: Vec<_> = (1..=65_537_u32)
            .map(|number| block(number as u16, if number == 65_537 { 0 } else { 512 }))
            .collect();
        let found = of_server(NONE, &blocks);
        assert_eq!(found.len(), 65_537);
        assert_eq!(found.last().map(String::as_str), Some("33554432 - 0 true"));
    }

    #[test]
    fn an_error_ends_a_transfer() {
        let error = b"\0\x05\0\x03disk full\0".to_vec();
        let found = of_server(NONE, &[block(1, 512), error.clone(), block(2, 1)]);
        assert_eq!(found, ["0+512", "error 3 disk full", "512 - 0 false"]);
        assert_eq!(of_server(&error, &[]), ["error 3 disk full"]);
    }

    #[test]
    fn longer_blocks_prove_an_option_that_was_not_captured() {
        let found = of_server(NONE, &[block(1, 1024), block(2, 1024), block(3, 600)]);
        assert_eq!(found, ["0+1024", "1024+1024", "2048+600", "2648 - 0 true"]);
    }

    #[test]
    fn short_and_unknown_datagrams_are_ignored() {
        for bytes in [&b"\0"[..], b"\0\x03\0", b"\0\x04", b"\0\x05\0", b"\0\x09abc", b"\xff\xff\xff\xff"] {
            assert_eq!(reports([(Role::Client, bytes, 0), (Role::Server, bytes, 0)]), Vec::<String>::new());
        }
        // A request without an end, and an option without a value.
        assert_eq!(reports([(Role::Client, &b"\0\x01name"[..], 0)]), ["0: Read name"]);
        assert_eq!(of_server(b"\0\x06blksize", &[]), ["None"]);
        // A server sends no request.
        assert_eq!(of_server(b"\0\x01name\0octet\0", &[]), Vec::<String>::new());
    }
}
