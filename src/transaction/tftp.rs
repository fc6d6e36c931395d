//! Files of TFTP.

use super::file::{BodyHead, File, FilesOpen};
use super::joins::Joins;
use super::open::{Copier, Pending};
use super::requests::Request;
use super::transfer::{FlowOrigin, last_part};
use crate::checkpoint::state;
use crate::protocols::tftp::Message;
use crate::session::{AnnouncedEnds, MessageMeta, Piece};

/// The files of a flow.
#[derive(Debug, Default)]
pub(super) struct TftpOpen {
    files: FilesOpen,
    is_begun: bool,
    /// The request to which the next file belongs.
    request: Option<Box<Request>>,
}

state! { struct TftpOpen { files, is_begun, request } }

impl TftpOpen {
    pub(super) fn heap_len(&self) -> usize {
        self.files.heap_len() + self.request.as_ref().map_or(0, |request| request.heap_len())
    }

    pub(super) fn message(
        &mut self,
        (joins, flow): (&mut Joins, FlowOrigin),
        meta: &MessageMeta,
        message: &Message<'_>,
        out: &mut dyn FnMut(Pending<File>),
    ) {
        if let Message::Request(request) = message {
            let name = String::from_utf8_lossy(request.file_name.0);
            let name = last_part(&name).map(|name| Copier::default().display(name));
            let request = Request { number: request.transaction, name };
            let ends = AnnouncedEnds::new(&flow.key, meta.side.other(), None, flow.key.raw_port(meta.side));
            joins.requests.announce(ends, request.clone());
            (self.is_begun, self.request) = (true, Some(Box::new(request)));
            return;
        }
        if !std::mem::replace(&mut self.is_begun, true) {
            self.request = joins.requests.of_data(&flow.key, meta).map(Box::new);
        }
        let Some(piece) = message.piece() else { return };
        let Self { files, request, .. } = self;
        let number = request.as_ref().map_or(0, |request| request.number);
        let name = || request.as_ref().and_then(|request| request.name.clone());
        let head = || BodyHead { name: name(), ..BodyHead::default() };
        files.add(meta, (Piece { file: number, ..piece }, joins.config), head, out);
        // The next file in the flow belongs to a later request.
        self.is_begun = piece.is_content();
    }

    pub(super) fn finish(&mut self, out: &mut dyn FnMut(Pending<File>)) {
        self.files.finish(out);
    }
}
