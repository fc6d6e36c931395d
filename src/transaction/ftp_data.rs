//! Files in data connections of FTP.

use super::file::{BodyHead, File, FilesOpen};
use super::joins::Joins;
use super::open::{Pending, allocated};
use super::transfer::{FlowOrigin, Transfer, Transferred};
use crate::checkpoint::state;
use crate::protocols::ftp_data::Message;
use crate::session::{MessageMeta, Piece, Role};

/// The files of a data connection, at most one of each direction.
#[derive(Debug, Default)]
pub(super) struct DataOpen {
    files: FilesOpen,
    is_begun: bool,
    /// The command to which the files belong.
    transfer: Option<Box<Transfer>>,
    /// The number of the command if it was known at the first octets, or else zero.
    number: u64,
    /// Files that ended before their command was captured, at most one of each direction. They wait for the end of the flow.
    waiting: Vec<Pending<File>>,
}

/// Maximum number of files that wait for their command.
const WAITING_MAX: usize = 2;

state! {
    struct DataOpen { files, is_begun, transfer, number, waiting }
    if |open| open.waiting.len() <= WAITING_MAX
}

impl DataOpen {
    pub(super) fn heap_len(&self) -> usize {
        // A file that ended has left; the names are those of the command.
        let waiting: usize = self.waiting.iter().map(|pending| pending.content.heap_len()).sum();
        self.files.heap_len()
            + self.transfer.as_ref().map_or(0, |transfer| transfer.heap_len())
            + allocated(self.waiting.capacity() * size_of::<Pending<File>>())
            + waiting
    }

    pub(super) fn message(
        &mut self,
        (joins, flow): (&mut Joins, FlowOrigin),
        meta: &MessageMeta,
        message: &Message<'_>,
        out: &mut dyn FnMut(Pending<File>),
    ) {
        // A command precedes the octets of its file.
        if !std::mem::replace(&mut self.is_begun, true) {
            self.transfer = joins.connections.of_data(&flow.key).map(Box::new);
            self.number = self.transfer.as_ref().map_or(0, |transfer| transfer.number);
        }
        let Self { files, transfer, waiting, number, .. } = self;
        let piece = Piece { file: *number, ..message.piece() };
        let name = || transfer.as_ref().and_then(|transfer| transfer.name.clone());
        let head = || BodyHead { name: name(), ..BodyHead::default() };
        // With one file of each direction, at most one ends.
        let mut ended = None;
        files.add(meta, (piece, joins.config), head, &mut |file| ended = Some(file));
        if let Some(file) = ended {
            end((joins, flow), (transfer, waiting), file, out);
        }
    }

    pub(super) fn finish(
        &mut self,
        (joins, flow): (&mut Joins, FlowOrigin),
        out: &mut dyn FnMut(Pending<File>),
    ) {
        let Self { files, transfer, waiting, .. } = self;
        files.finish(&mut |file| end((joins, flow), (transfer, waiting), file, out));
        let claim = if waiting.is_empty() { None } else { joins.connections.take_claim(flow) };
        for mut file in waiting.drain(..) {
            if let Some(transfer) = &claim {
                attribute(&mut file, transfer);
            }
            out(file);
        }
    }
}

/// Ends a file: passes it on with its command, or lets it wait until the command is captured.
fn end(
    (joins, flow): (&mut Joins, FlowOrigin),
    (transfer, waiting): (&mut Option<Box<Transfer>>, &mut Vec<Pending<File>>),
    mut file: Pending<File>,
    out: &mut dyn FnMut(Pending<File>),
) {
    if transfer.is_none() {
        *transfer = joins.connections.of_data(&flow.key).map(Box::new);
    }
    let content = &file.content;
    let transferred = Transferred {
        flow,
        role: content.role.unwrap_or(Role::Server),
        seen_len: content.seen_len,
        missing_len: content.missing_len,
        detected_type: content.detected_type,
    };
    match transfer {
        Some(transfer) => {
            joins.connections.transferred(transfer, transferred);
            attribute(&mut file, transfer);
            out(file);
        }
        None if waiting.len() < WAITING_MAX => {
            joins.connections.await_command(transferred, file.span.end);
            waiting.push(file);
        }
        None => out(file),
    }
}

/// Adds its command to a file that ended.
fn attribute(file: &mut Pending<File>, transfer: &Transfer) {
    let content = &mut file.content;
    content.number = transfer.number;
    if content.name.is_none() {
        content.name.clone_from(&transfer.name);
    }
    content.transfer = Some(Box::new(transfer.clone()));
}
