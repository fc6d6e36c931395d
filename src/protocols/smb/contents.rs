//! Contents of files: what is read and written, in order.
//!
//! The octets of a file that follow each other are pieces of it. What is read or written again is left out, and what was left out or
//! not captured is a gap: of octets that are transferred in another order, those that come late are missing.

use super::known::{FileId, Item, Known};
use crate::checkpoint::{COUNT_MAX, state};
use crate::session::kit::{Kept, Measured, Open, Rows, exchange};
use crate::session::{Piece, Role};

exchange! {
    /// What was read from a file, or written into it, between its opening and its end.
    "smb_file" pub struct Transfer {
        /// User of the session, with the domain; null if the logon was not captured or does not show it.
        pub user_name: Option<Kept<256>>,
        /// Path of the share; null if the connection to it was not captured.
        pub share: Option<Kept<256>>,
        /// Path of the file in the share; null if the opening was not captured.
        pub file_name: Option<Kept<512>>,
        /// Length of the file when it was opened.
        pub file_len: Option<u64> [octets],
        /// True if the file was written.
        pub is_written: bool [sparse],
        /// Octets that were captured.
        pub seen_len: u64 [octets],
        /// Octets before others that were left out, or not captured.
        pub missing_len: u64 [octets],
        /// True if no octets are missing: of a file that was read, up to its length; of others, until it was closed.
        pub is_complete: bool,
        ..
        /// Identifier of the open file.
        id: FileId,
        /// Number of the file in its connection.
        number: u64,
        /// Offset of the next octet.
        position: u64,
        /// True if the octets are in the direction of the server.
        is_of_server: bool,
    }
}

impl Transfer {
    const fn is_of(&self, id: FileId, from: Role) -> bool {
        u128::from_le_bytes(self.id.octets) == u128::from_le_bytes(id.octets)
            && self.is_of_server == matches!(from, Role::Server)
    }
}

impl Measured for FileId {}

/// The greatest end of what is transferred (MS-FSCC section 2.4.13).
const OFFSET_MAX: u64 = i64::MAX as u64;

impl Item for Transfer {
    const COUNT_MAX: usize = 16;

    fn heap_len(&self) -> usize {
        [self.user_name.heap_len(), self.share.heap_len(), self.file_name.heap_len()].iter().sum()
    }
}

/// The data of a message whose octets arrive.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    id: FileId,
    /// Number of octets that were transferred before.
    known_len: u64,
    /// Number of octets that are missing up to the end of the data.
    left_len: u64,
    /// Number of octets that are missing up to the end of the message.
    tail_len: u64,
}

/// The files of a connection that are read and written.
#[derive(Debug, Default)]
pub(super) struct Contents {
    transfers: Known<Transfer>,
    incoming: [Option<Incoming>; 2],
    /// Number of files.
    count: u64,
    /// Direction of the message that is processed: by its flags, a message may claim the other one.
    direction: Option<Role>,
    /// Number of octets of the message that is processed which were not kept.
    pub(super) tail_len: u64,
}

state! { struct Incoming { id, known_len, left_len, tail_len } }
state! {
    struct Contents { transfers, incoming, count, tail_len, .. direction }
    if |contents| {
        let numbers = || contents.transfers.iter().map(|transfer| transfer.number);
        let is_known = |number: u64| number >= 1 && number <= contents.count && numbers().filter(|other| *other == number).count() == 1;
        contents.count < COUNT_MAX && numbers().all(is_known)
    }
}

impl Contents {
    /// Begins a message or its rest.
    pub(super) const fn set_direction(&mut self, from: Role) {
        self.direction = Some(from);
    }

    fn from(&self) -> Role {
        self.direction.unwrap_or(Role::Client)
    }

    pub(super) fn heap_len(&self) -> usize {
        self.transfers.heap_len()
    }

    /// Begins the data of a message: octets of a file at an offset, of which the first ones are given. `describe` returns the row of
    /// a new file.
    pub(super) fn begin<R: Open>(
        &mut self,
        id: FileId,
        (offset, len): (u64, u64),
        octets: &[u8],
        describe: impl FnOnce() -> Transfer,
        rows: &mut Rows<'_, R>,
    ) {
        let (from, is_written) = (self.from(), rows.from() == Role::Client);
        // Beyond, a file ends, or a client appends.
        let is_place = offset.checked_add(len).is_some_and(|end| end <= OFFSET_MAX);
        if len == 0 || !is_place {
            return;
        }
        if self.transfers.find(|transfer| transfer.is_of(id, from)).is_none() {
            if let Some(displaced) = self.transfers.displace() {
                rows.kept(&displaced);
            }
            self.count += 1;
            let (is_of_server, number) = (from == Role::Server, self.count);
            let mut transfer = describe();
            (transfer.id, transfer.is_written, transfer.number) = (id, is_written, number);
            transfer.is_of_server = is_of_server;
            transfer.exchange = rows.head();
            self.transfers.insert(transfer, |_| false);
        }
        let Some(transfer) = self.transfers.find_mut(|transfer| transfer.is_of(id, from)) else { return };
        transfer.miss(offset.saturating_sub(transfer.position), rows);
        let known_len = transfer.position.saturating_sub(offset).min(len);
        let tail_len = self.tail_len.saturating_add(octets.len() as u64);
        *from.of_mut(&mut self.incoming) = Some(Incoming { id, known_len, left_len: len, tail_len });
        self.octets(octets, tail_len, rows);
    }

    /// Adds octets, with the number of octets from the first one to the end of the message.
    pub(super) fn octets<R: Open>(&mut self, octets: &[u8], tail_len: u64, rows: &mut Rows<'_, R>) {
        let from = self.from();
        let Some(incoming) = from.of_mut(&mut self.incoming) else { return };
        let id = incoming.id;
        let Some(transfer) = self.transfers.find_mut(|transfer| transfer.is_of(id, from)) else { return };
        incoming.miss(incoming.tail_len.saturating_sub(tail_len), transfer, rows);
        let len = octets.len().min(usize::try_from(incoming.left_len).unwrap_or(usize::MAX));
        let known_len = len.min(usize::try_from(incoming.known_len).unwrap_or(usize::MAX));
        let new = octets.get(known_len..len).unwrap_or_default();
        if !new.is_empty() {
            rows.piece(transfer, Piece::octets(transfer.number, transfer.position, new));
            transfer.position = transfer.position.saturating_add(new.len() as u64);
            transfer.seen_len = transfer.seen_len.saturating_add(new.len() as u64);
            transfer.exchange.end = rows.now();
        }
        incoming.known_len -= known_len as u64;
        incoming.left_len -= len as u64;
        incoming.tail_len = tail_len.saturating_sub(octets.len() as u64);
        if incoming.left_len == 0 {
            *from.of_mut(&mut self.incoming) = None;
        }
    }

    /// Begins another message of the sender: what is missing of the data before was not captured.
    pub(super) fn next<R: Open>(&mut self, rows: &mut Rows<'_, R>) {
        let from = self.from();
        let Some(mut incoming) = from.of_mut(&mut self.incoming).take() else { return };
        if let Some(transfer) = self.transfers.find_mut(|transfer| transfer.is_of(incoming.id, from)) {
            incoming.miss(incoming.left_len, transfer, rows);
        }
    }

    /// Ends a file: nothing more follows of the sender.
    pub(super) fn end<R: Open>(&mut self, id: FileId, rows: &mut Rows<'_, R>) {
        let from = self.from();
        if let Some(transfer) = self.transfers.take(|transfer| transfer.is_of(id, from)) {
            report(transfer, true, rows);
        }
    }

    /// Ends the files of a direction that ended.
    pub(super) fn ended<R: Open>(&mut self, rows: &mut Rows<'_, R>) {
        let is_of_server = self.from() == Role::Server;
        self.next(rows);
        while let Some(transfer) = self.transfers.take(|transfer| transfer.is_of_server == is_of_server) {
            report(transfer, false, rows);
        }
    }

    /// Reports the files with an identifier, which have no end: it now stands for another file.
    pub(super) fn forget<R: Open>(&mut self, id: FileId, rows: &mut Rows<'_, R>) {
        while let Some(transfer) = self.transfers.take(|transfer| transfer.id == id) {
            rows.kept(&transfer);
        }
    }

    /// Reports all files, which have no end.
    pub(super) fn finish<R: Open>(&mut self, rows: &mut Rows<'_, R>) {
        while let Some(transfer) = self.transfers.take(|_| true) {
            rows.kept(&transfer);
        }
    }
}

impl Incoming {
    /// Leaves out octets that were not captured.
    fn miss<R: Open>(&mut self, len: u64, transfer: &mut Transfer, rows: &mut Rows<'_, R>) {
        let len = len.min(self.left_len);
        let known_len = len.min(self.known_len);
        transfer.miss(len - known_len, rows);
        (self.left_len, self.known_len) = (self.left_len - len, self.known_len - known_len);
    }
}

impl Transfer {
    /// Leaves out octets of the file.
    fn miss<R: Open>(&mut self, len: u64, rows: &mut Rows<'_, R>) {
        if len > 0 {
            rows.piece(self, Piece::gap(self.number, self.position, len));
            self.position = self.position.saturating_add(len);
            self.missing_len = self.missing_len.saturating_add(len);
        }
    }
}

/// Reports the end of a file.
fn report<R: Open>(mut transfer: Transfer, is_closed: bool, rows: &mut Rows<'_, R>) {
    let is_whole = match transfer.file_len {
        Some(len) if !transfer.is_written => transfer.position >= len,
        _ => is_closed,
    };
    transfer.is_complete = is_whole && transfer.missing_len == 0;
    rows.piece(&transfer, Piece::end(transfer.number, transfer.position, transfer.is_complete));
}
