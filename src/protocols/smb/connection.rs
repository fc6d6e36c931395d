//! What is known of a connection, and how its rows are filled.

use std::time::Duration;

use super::contents::{Contents, Transfer};
use super::known::{File, FileId, Known, Session, Tree};
use super::rows::{Connection, Exchange, TICKS_TO_1970};
use super::status::{Command, Dialect, MORE_PROCESSING_REQUIRED, ShareType, Status};
use crate::base::{Timestamp, fnv1a};
use crate::checkpoint::{COUNT_MAX, state};
use crate::codec::{Number, Reader};
use crate::protocols::dcerpc::{Binding, Call, Dcerpc, Endpoint, Uuid};
use crate::protocols::gss::Logons;
use crate::protocols::kerberos::Exchange as Ticket;
use crate::protocols::ntlm::Authentication;
use crate::session::Role;
use crate::session::kit::{Kept, PduParser as _, Rows, open};

open! {
    /// Rows of SMB.
    pub(crate) enum Row { 0 = Exchange, 1 = Connection in Box, 2 = Authentication in Box, 3 = Call, 4 = Binding, 5 = Transfer in Box, 6 = Endpoint, 7 = Ticket in Box }
}

/// Maximum number of pipes whose calls are read at a time.
const PIPE_COUNT_MAX: usize = 8;

/// Number of opened files whose digests are kept, to mark rows that Zeek leaves out as repeated.
const RECENT_COUNT_MAX: usize = 32;
/// Time for which a digest is kept.
const RECENT_TIME: Duration = Duration::from_secs(180);

/// Parser of SMB.
#[derive(Debug, Default)]
pub(crate) struct Smb {
    pub(super) dialect: Option<Dialect>,
    /// Number of requests.
    request_count: u64,
    /// Key of a negotiation of SMB 1, which a server may answer with SMB 2.
    pub(super) negotiation: Option<u64>,
    logons: Logons,
    sessions: Known<Session>,
    trees: Known<Tree>,
    files: Known<File>,
    pipes: Vec<Pipe>,
    recent: Vec<Recent>,
    /// Files that are read and written.
    pub(super) contents: Contents,
}

/// An open pipe with its calls.
#[derive(Debug)]
struct Pipe {
    file: FileId,
    calls: Box<Dcerpc>,
}

/// Digest and time of the row of a file.
#[derive(Clone, Copy, Debug)]
struct Recent {
    digest: u64,
    time: Timestamp,
}

state! { struct Pipe { file, calls } }
state! { struct Recent { digest, time } }
state! {
    struct Smb { dialect, request_count, negotiation, logons, sessions, trees, files, pipes, recent, contents }
    if |smb| smb.pipes.len() <= PIPE_COUNT_MAX && smb.recent.len() <= RECENT_COUNT_MAX && smb.request_count < COUNT_MAX
}

/// A message, whose numbers have their least significant octet first.
#[derive(Clone, Copy)]
pub(super) struct Octets<'p>(pub(super) &'p [u8]);

impl<'p> Octets<'p> {
    /// Reads a number at an offset.
    pub(super) fn number<N: Number>(self, at: usize) -> Option<N> {
        Reader::new(self.0.get(at..)?).le().ok()
    }

    /// Returns octets, as far as they were captured.
    pub(super) fn part(self, at: usize, len: usize) -> &'p [u8] {
        let rest = self.0.get(at..).unwrap_or_default();
        rest.get(..len).unwrap_or(rest)
    }

    /// Returns octets at an offset.
    pub(super) fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    /// Reads a time at an offset: units of 100 ns since 1601 (MS-DTYP section 2.3.3).
    pub(super) fn time(self, at: usize) -> Option<Timestamp> {
        let ticks: u64 = self.number(at)?;
        Some(Timestamp::from_nanos(ticks.checked_sub(TICKS_TO_1970)?.checked_mul(100)?))
    }
}

impl Smb {
    /// Returns the number of octets that were allocated.
    pub(super) fn allocated_len(&self) -> usize {
        let pipes_len: usize =
            self.pipes.iter().map(|pipe| size_of::<Dcerpc>() + pipe.calls.heap_len()).sum();
        let own_len =
            self.pipes.capacity() * size_of::<Pipe>() + self.recent.capacity() * size_of::<Recent>();
        own_len
            + pipes_len
            + self.logons.heap_len()
            + self.sessions.heap_len()
            + self.trees.heap_len()
            + self.files.heap_len()
            + self.contents.heap_len()
    }

    /// Returns a row with what is known of the connection, the session and the share.
    pub(super) fn row(&mut self, command: u16, session: u64, tree: Option<u32>) -> Exchange {
        self.request_count += 1;
        let mut row = Exchange::default();
        row.set_number(self.request_count);
        (row.command, row.dialect) = (Command(command), self.dialect);
        (row.session_number, row.tree_number) = (session, tree);
        row.user_name = self.sessions.find(|known| known.number == session).map(|known| known.user.clone());
        let tree =
            tree.and_then(|tree| self.trees.find(|known| (known.session, known.number) == (session, tree)));
        if let Some(tree) = tree {
            (row.share, row.share_type) = (Some(tree.share.clone()), tree.share_type);
        }
        row
    }

    /// Adds name and identifier of an open file to a row.
    pub(super) fn name(&self, row: &mut Exchange, id: FileId) {
        row.file_id = Some(id.uuid());
        row.file_name = self.files.find(|file| file.id == id).map(|file| file.name.clone());
    }

    /// Adds to a row what was last stated of its file.
    pub(super) fn describe(&self, row: &mut Exchange) {
        let Some(file) = self.files.find(|file| Some(file.id.uuid()) == row.file_id) else { return };
        row.file_len = file.len;
        [row.created_timestamp, row.accessed_timestamp, row.modified_timestamp, row.changed_timestamp] =
            file.times;
    }

    /// Remembers the file that a row opens. Marks the row if it repeats one.
    pub(super) fn opened(&mut self, row: &mut Exchange, id: FileId, now: Timestamp) {
        let digest = row.digest();
        self.recent.retain(|recent| now.saturating_since(recent.time) < RECENT_TIME);
        match self.recent.iter_mut().find(|recent| recent.digest == digest) {
            Some(recent) => {
                recent.time = now;
                row.set_repeated();
            }
            None => {
                if self.recent.len() == RECENT_COUNT_MAX {
                    self.recent.remove(0);
                }
                self.recent.push(Recent { digest, time: now });
            }
        }
        let times =
            [row.created_timestamp, row.accessed_timestamp, row.modified_timestamp, row.changed_timestamp];
        let name = row.file_name.clone().unwrap_or_default();
        self.files.insert(File { id, name, len: row.file_len, times }, |file| file.id == id);
    }

    /// Forgets what an earlier file with the identifier of a file that was opened transferred.
    pub(super) fn begins(&mut self, id: FileId, rows: &mut Rows<'_, Row>) {
        self.pipes.retain(|pipe| pipe.file != id);
        self.contents.forget(id, rows);
    }

    /// Forgets a file that was closed.
    pub(super) fn closed(&mut self, id: FileId) {
        self.files.remove(|file| file.id == id);
        self.pipes.retain(|pipe| pipe.file != id);
    }

    /// Reads calls that a file transfers, if it is a pipe.
    pub(super) fn piped(
        &mut self,
        id: FileId,
        share_type: Option<ShareType>,
        octets: &[u8],
        rows: &mut Rows<'_, Row>,
    ) {
        let is_pipe = share_type == Some(ShareType(2)) || share_type.is_none() && Dcerpc::is_whole(octets);
        if !is_pipe || octets.is_empty() {
            return;
        }
        let place = match self.pipes.iter().position(|pipe| pipe.file == id) {
            Some(place) => place,
            None => {
                if self.pipes.len() == PIPE_COUNT_MAX {
                    self.pipes.remove(0);
                }
                self.pipes.push(Pipe { file: id, calls: Box::default() });
                self.pipes.len() - 1
            }
        };
        if let Some(pipe) = self.pipes.get_mut(place) {
            pipe.calls.piped(octets, fnv1a(&id.octets) << 32, rows);
        }
    }

    /// Processes data of a file: calls of a pipe, or a length of octets at an offset of the file, which begin at an offset of the message.
    pub(super) fn data(
        &mut self,
        (id, share_type): (FileId, Option<ShareType>),
        tree: (u64, Option<u32>),
        (offset, len): (Option<u64>, u64),
        (octets, at): (Octets<'_>, usize),
        rows: &mut Rows<'_, Row>,
    ) {
        let data = octets.part(at, usize::try_from(len).unwrap_or(usize::MAX));
        self.piped(id, share_type, data, rows);
        // If the first octet was not kept, a later one cannot be placed.
        if let Some(offset) = offset
            && at <= octets.0.len()
        {
            self.transfer(id, tree, (offset, len), data, rows);
        }
    }

    /// Passes on data of a file, unless it is a pipe: octets at an offset, of which the first ones are given.
    fn transfer(
        &mut self,
        id: FileId,
        (session, tree): (u64, Option<u32>),
        place: (u64, u64),
        octets: &[u8],
        rows: &mut Rows<'_, Row>,
    ) {
        let Self { files, sessions, trees, pipes, contents, .. } = self;
        let tree = trees.find(|known| known.session == session && Some(known.number) == tree);
        let is_pipe = tree.is_some_and(|tree| tree.share_type == Some(ShareType(2)));
        if is_pipe || pipes.iter().any(|pipe| pipe.file == id) {
            return;
        }
        let describe = || {
            let file = files.find(|file| file.id == id);
            let user = sessions.find(|known| known.number == session);
            let mut transfer = Transfer::default();
            transfer.user_name = user.map(|known| known.user.clone());
            transfer.share = tree.map(|tree| tree.share.clone());
            transfer.file_name = file.map(|file| file.name.clone());
            transfer.file_len = file.and_then(|file| file.len);
            transfer
        };
        contents.begin(id, place, octets, describe, rows);
    }

    /// Returns whether calls of a file were read.
    pub(super) fn has_calls(&self, id: Uuid) -> bool {
        self.pipes.iter().any(|pipe| pipe.file.uuid() == id)
    }

    /// Reads the token of a request of a logon.
    pub(super) fn logs_on(&mut self, message: u64, token: &[u8], rows: &mut Rows<'_, Row>) {
        self.logons.requested(message, token, rows);
    }

    /// Processes the response to a request of a logon.
    pub(super) fn logged_on(
        &mut self,
        (message, session): (u64, u64),
        status: Status,
        token: &[u8],
        rows: &mut Rows<'_, Row>,
    ) {
        let is_accepted = (status != MORE_PROCESSING_REQUIRED).then_some(status == Status(0));
        if let Some(user) = self.logons.answered(message, token, is_accepted, rows) {
            self.knows(session, user);
        }
    }

    /// Remembers the user of a session.
    pub(super) fn knows(&mut self, session: u64, user: Kept<256>) {
        self.sessions.insert(Session { number: session, user }, |known| known.number == session);
    }

    /// Remembers a share to which a client is connected.
    pub(super) fn connected(
        &mut self,
        session: u64,
        number: u32,
        share: Kept<256>,
        share_type: Option<ShareType>,
    ) {
        self.trees.insert(Tree { session, number, share, share_type }, |known| {
            (known.session, known.number) == (session, number)
        });
    }

    /// Forgets a share.
    pub(super) fn disconnected(&mut self, session: u64, number: u32) {
        self.trees.remove(|known| (known.session, known.number) == (session, number));
    }

    /// Changes the name of an open file.
    pub(super) fn renamed(&mut self, id: FileId, name: Kept<512>) {
        if let Some(file) = self.files.find(|file| file.id == id).cloned() {
            self.files.insert(File { name, ..file }, |file| file.id == id);
        }
    }

    /// Forgets a session with its shares.
    pub(super) fn logged_off(&mut self, session: u64) {
        self.sessions.remove(|known| known.number == session);
        self.trees.remove(|known| known.session == session);
    }
}

/// Opens the row of a request.
pub(super) fn request(key: u64, row: Exchange, rows: &mut Rows<'_, Row>) {
    rows.acts_as(Role::Client);
    rows.request(key, |open: &mut Exchange| {
        let exchange = std::mem::take(&mut open.exchange);
        *open = row;
        open.exchange = exchange;
    });
}
