//! Files in data connections of FTP.

use super::file::{BodyHead, File, FilesOpen};
use super::joins::Joins;
use super::open::Pending;
use super::transfer::{FlowOrigin, Transfer, Transferred};
use crate::checkpoint::state;
use crate::protocols::ftp_data::Message;
use crate::protocols::http1::{Body, BodyGap};
use crate::session::{MessageMeta, Role};

/// The files of a data connection, at most one of each direction.
#[derive(Debug, Default)]
pub(super) struct DataOpen {
    files: FilesOpen,
    is_begun: bool,
    /// The command to which the files belong.
    transfer: Option<Box<Transfer>>,
}

state! { struct DataOpen { files, is_begun, transfer } }

impl DataOpen {
    pub(super) fn heap_len(&self) -> usize {
        // A file that ended has left; the names are those of the command.
        self.files.heap_len() + self.transfer.as_ref().map_or(0, |transfer| transfer.heap_len())
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
        }
        let Self { files, transfer, .. } = self;
        let number = transfer.as_ref().map_or(0, |transfer| transfer.number);
        let name = || transfer.as_ref().and_then(|transfer| transfer.name.clone());
        let head = || BodyHead { name: name(), ..BodyHead::default() };
        let config = joins.config;
        let mut ended = |file| out(attributed(file, transfer.as_deref(), flow, joins));
        match message {
            Message::Octets(octets) => {
                let body = Body { transaction: number, offset: octets.offset, bytes: octets.bytes };
                files.body(meta, (&body, config), head, &mut ended);
            }
            Message::Gap(gap) => {
                let gap = BodyGap { transaction: number, offset: gap.offset, len: gap.len };
                files.gap(meta, &gap, head, &mut ended);
            }
            Message::End(end) => files.end(meta, number, end.is_complete, &mut ended),
        }
    }

    pub(super) fn finish(
        &mut self,
        (joins, flow): (&mut Joins, FlowOrigin),
        out: &mut dyn FnMut(Pending<File>),
    ) {
        let Self { files, transfer, .. } = self;
        files.finish(&mut |file| out(attributed(file, transfer.as_deref(), flow, joins)));
    }
}

/// Returns a file that ended, with its command, for which it is noted.
fn attributed(
    mut file: Pending<File>,
    transfer: Option<&Transfer>,
    flow: FlowOrigin,
    joins: &mut Joins,
) -> Pending<File> {
    let content = &mut file.content;
    if let Some(transfer) = transfer {
        let transferred = Transferred {
            flow,
            role: content.role.unwrap_or(Role::Server),
            seen_len: content.seen_len,
            missing_len: content.missing_len,
            detected_type: content.detected_type,
        };
        joins.connections.transferred(transfer, transferred);
        content.transfer = Some(Box::new(transfer.clone()));
    }
    file
}
