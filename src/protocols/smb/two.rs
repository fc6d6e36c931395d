//! Messages of SMB 2 and 3 (MS-SMB2 section 2.2).

use super::connection::{Octets, Row, Smb, request};
use super::known::FileId;
use super::rows::{Connection, Exchange};
use super::status::{
    BUFFER_OVERFLOW, Cipher, CreateAction, Dialect, Disposition, Function, ShareType, Status,
};
use crate::protocols::dcerpc::Uuid;
use crate::session::kit::{Kept, Malformed, Reply, Rows};
use crate::session::{Role, Search};

/// Length of a header.
const HEAD_LEN: usize = 64;

/// Status of an interim response.
const PENDING: Status = Status(0x103);

/// Commands.
mod command {
    pub(super) const NEGOTIATE: u16 = 0;
    pub(super) const SESSION_SETUP: u16 = 1;
    pub(super) const LOGOFF: u16 = 2;
    pub(super) const TREE_CONNECT: u16 = 3;
    pub(super) const TREE_DISCONNECT: u16 = 4;
    pub(super) const CREATE: u16 = 5;
    pub(super) const CLOSE: u16 = 6;
    pub(super) const FLUSH: u16 = 7;
    pub(super) const READ: u16 = 8;
    pub(super) const WRITE: u16 = 9;
    pub(super) const LOCK: u16 = 10;
    pub(super) const IOCTL: u16 = 11;
    pub(super) const CANCEL: u16 = 12;
    pub(super) const QUERY_DIRECTORY: u16 = 14;
    pub(super) const CHANGE_NOTIFY: u16 = 15;
    pub(super) const QUERY_INFO: u16 = 16;
    pub(super) const SET_INFO: u16 = 17;
}

/// Flags of a header.
const RESPONSE: u32 = 1;
const ASYNC: u32 = 2;
const RELATED: u32 = 4;

/// What a transceive function of a pipe is called with.
const PIPE_TRANSCEIVE: u32 = 0x0011_C017;

/// Searches the next message after a gap.
pub(super) fn search(octets: &[u8]) -> Search {
    let is_head = |window: &[u8]| {
        matches!(
            window,
            [0, _, _, _, 0xFE, b'S', b'M', b'B', 64, 0] | [0, _, _, _, 0xFD | 0xFF, b'S', b'M', b'B', ..]
        )
    };
    match octets.windows(10).position(is_head) {
        Some(place) => Search::Found(place),
        None => Search::From(octets.len().saturating_sub(9)),
    }
}

/// The fixed part of a header.
struct Head {
    status: Status,
    command: u16,
    flags: u32,
    next: usize,
    message: u64,
    tree: Option<u32>,
    session: u64,
}

impl Head {
    fn read(octets: Octets<'_>) -> Option<Self> {
        let flags = octets.number(16)?;
        let head = Self {
            status: Status(octets.number(8)?),
            command: octets.number(12)?,
            flags,
            next: usize::try_from(octets.number::<u32>(20)?).ok()?,
            message: octets.number(24)?,
            tree: if flags & ASYNC == 0 { Some(octets.number(36)?) } else { None },
            session: octets.number(40)?,
        };
        let is_head = octets.number(4) == Some(HEAD_LEN as u16) && octets.0.len() >= HEAD_LEN;
        Some(head).filter(|_| is_head)
    }
}

/// What the messages of a compound have in common.
#[derive(Default)]
struct Compound {
    session: u64,
    tree: Option<u32>,
    file: Option<FileId>,
    name: Option<Kept<512>>,
}

/// What a row knows of a request when it is answered.
#[derive(Default)]
struct Answered {
    is_opened: bool,
    file: Option<FileId>,
    share: Option<Kept<256>>,
    share_type: Option<ShareType>,
    function: Option<Function>,
    offset: Option<u64>,
    tree: Option<u32>,
    new_file_name: Option<Kept<512>>,
}

/// Processes the messages of a compound.
pub(super) fn messages(smb: &mut Smb, octets: Octets<'_>, rows: &mut Rows<'_, Row>) -> Result<(), Malformed> {
    let mut rest = octets;
    let mut compound = Compound::default();
    loop {
        let mut head = Head::read(rest).ok_or(Malformed)?;
        let message = Octets(if head.next > 0 { rest.part(0, head.next) } else { rest.0 });
        if head.flags & RELATED != 0 {
            (head.session, head.tree) = (compound.session, compound.tree);
        }
        (compound.session, compound.tree) = (head.session, head.tree);
        if head.flags & RESPONSE == 0 {
            smb.request(&head, message, &mut compound, rows);
        } else if head.status != PENDING {
            smb.response(&head, message, &mut compound, rows);
        }
        rest = match rest.0.get(head.next..) {
            Some(next) if head.next >= HEAD_LEN && next.len() >= HEAD_LEN => Octets(next),
            _ => return Ok(()),
        };
    }
}

/// Returns the offset of the identifier of a file in a request.
const fn file_at(command: u16) -> Option<usize> {
    Some(match command {
        command::CLOSE
        | command::FLUSH
        | command::LOCK
        | command::IOCTL
        | command::CHANGE_NOTIFY
        | command::QUERY_DIRECTORY => 8,
        command::READ | command::WRITE | command::SET_INFO => 16,
        command::QUERY_INFO => 24,
        _ => return None,
    })
}

impl Smb {
    fn request(
        &mut self,
        head: &Head,
        octets: Octets<'_>,
        compound: &mut Compound,
        rows: &mut Rows<'_, Row>,
    ) {
        rows.acts_as(Role::Client);
        if head.command == command::CANCEL {
            return;
        }
        let tree = head.tree.filter(|_| {
            !matches!(head.command, command::NEGOTIATE | command::SESSION_SETUP | command::TREE_CONNECT)
        });
        let mut row = self.row(head.command, head.session, tree);
        row.message_number = head.message;
        let file =
            file_at(head.command).and_then(|at| octets.array(HEAD_LEN + at)).map(|octets| FileId { octets });
        let file = match file {
            Some(FileId::RELATED) => {
                row.file_id = compound.file.map(FileId::uuid);
                row.file_name = compound.name.clone();
                compound.file
            }
            Some(file) => {
                self.name(&mut row, file);
                (compound.file, compound.name) = (Some(file), row.file_name.clone());
                Some(file)
            }
            None => None,
        };
        let share_type = row.share_type;
        // What is missing of a body that was not captured whole is left out.
        let _ = row.ask(head.command, octets);
        if head.command == command::CREATE {
            (compound.file, compound.name) = (None, row.file_name.clone());
        } else if let (command::SET_INFO, true) =
            (head.command, row.is_deletion || row.new_file_name.is_some())
        {
            self.describe(&mut row);
        }
        match head.command {
            command::NEGOTIATE => {
                let mode: u16 = octets.number(HEAD_LEN + 4).unwrap_or_default();
                let (dialects, guid) = (row.client_dialects.clone(), row.client_guid);
                rows.flow(|row: &mut Connection| {
                    (row.client_dialects, row.client_guid) = (dialects, guid);
                    row.is_signing_required_by_client = Some(mode & 2 != 0);
                });
            }
            command::SESSION_SETUP => self.logs_on(head.message, octets.buffer(12), rows),
            _ => {}
        }
        let offset = row.offset;
        request(head.message, row, rows);
        let Some(file) = file else { return };
        match head.command {
            command::WRITE => {
                let at: u16 = octets.number(HEAD_LEN + 2).unwrap_or_default();
                let len: u32 = octets.number(HEAD_LEN + 4).unwrap_or_default();
                let tree = (head.session, head.tree);
                self.data((file, share_type), tree, (offset, len.into()), (octets, at.into()), rows);
            }
            command::IOCTL if octets.number(HEAD_LEN + 4) == Some(PIPE_TRANSCEIVE) => {
                self.piped(file, share_type, octets.data_of_control(24), rows);
            }
            command::CLOSE => self.contents.end(file, rows),
            _ => {}
        }
    }

    fn response(
        &mut self,
        head: &Head,
        octets: Octets<'_>,
        compound: &mut Compound,
        rows: &mut Rows<'_, Row>,
    ) {
        rows.acts_as(Role::Server);
        // A notification that a client did not ask for.
        if head.message == u64::MAX {
            return;
        }
        let is_logon = head.command == command::SESSION_SETUP;
        if is_logon {
            self.logged_on((head.message, head.session), head.status, octets.buffer(4), rows);
        }
        let is_filled = matches!(head.status, Status(0) | BUFFER_OVERFLOW);
        if head.command == command::NEGOTIATE && is_filled {
            self.negotiated(octets, rows);
        }
        let key = self.negotiation.take_if(|_| head.command == command::NEGOTIATE).unwrap_or(head.message);
        let (dialect, now) = (self.dialect, rows.now());
        let mut answered = Answered::default();
        rows.response(key, |row: &mut Exchange| {
            row.command.0 = if row.command.0 & 0x100 == 0 { head.command } else { row.command.0 };
            (row.result, row.dialect) = (Some(head.status), dialect);
            (row.message_number, row.session_number) = (head.message, head.session);
            if head.command == command::TREE_CONNECT {
                row.tree_number = head.tree;
            }
            if row.file_id.is_none() && file_at(head.command).is_some() {
                row.file_id = compound.file.map(FileId::uuid);
            }
            if !is_filled && matches!(head.command, command::READ | command::WRITE) {
                row.data_len = None;
            }
            if is_filled {
                let file = row.answer(head.command, octets);
                if let Some(file) = file {
                    self.opened(row, file, now);
                    answered.is_opened = true;
                }
            }
            if row.file_id.is_some_and(|id| self.has_calls(id)) {
                row.set_piped();
            }
            compound.file = row.file_id.map(|id| FileId { octets: id.little() }).or(compound.file);
            answered.file = row.file_id.map(|id| FileId { octets: id.little() });
            (answered.share_type, answered.function) = (row.share_type, row.function);
            (answered.offset, answered.tree) = (row.offset, row.tree_number);
            match head.command {
                command::TREE_CONNECT => answered.share = row.share.clone(),
                command::SET_INFO => answered.new_file_name = row.new_file_name.clone(),
                _ => {}
            }
            Reply::Last
        });
        if let Some(file) = answered.file.filter(|_| answered.is_opened) {
            self.begins(file, rows);
        }
        match (head.command, answered.file) {
            (command::TREE_CONNECT, _) if head.status == Status(0) => {
                let share = answered.share.unwrap_or_default();
                self.connected(head.session, head.tree.unwrap_or_default(), share, answered.share_type);
            }
            (command::TREE_DISCONNECT, _) => {
                self.disconnected(head.session, head.tree.unwrap_or_default());
            }
            (command::LOGOFF, _) => self.logged_off(head.session),
            (command::CLOSE, Some(file)) => {
                self.contents.end(file, rows);
                self.closed(file);
            }
            (command::SET_INFO, Some(file)) if head.status == Status(0) => {
                if let Some(name) = answered.new_file_name {
                    self.renamed(file, name);
                }
            }
            (command::READ, Some(file)) if is_filled => {
                let len = octets.number::<u32>(HEAD_LEN + 4).unwrap_or_default();
                let at = octets.number::<u8>(HEAD_LEN + 2).unwrap_or_default();
                let (file, tree) = ((file, answered.share_type), (head.session, answered.tree));
                self.data(file, tree, (answered.offset, len.into()), (octets, at.into()), rows);
            }
            (command::IOCTL, Some(file))
                if is_filled && answered.function == Some(Function(PIPE_TRANSCEIVE)) =>
            {
                self.piped(file, answered.share_type, octets.data_of_control(32), rows);
            }
            _ => {}
        }
    }

    /// Reads the response to a negotiation (section 2.2.4).
    fn negotiated(&mut self, octets: Octets<'_>, rows: &mut Rows<'_, Row>) {
        let Some(dialect) = octets.number(HEAD_LEN + 4).map(Dialect) else { return };
        let mode: u16 = octets.number(HEAD_LEN + 2).unwrap_or_default();
        self.dialect = Some(dialect);
        rows.flow(|row: &mut Connection| {
            row.dialect = Some(dialect);
            row.server_guid = octets.array(HEAD_LEN + 8).map(Uuid::of_little);
            row.is_signing_required_by_server = Some(mode & 2 != 0);
            row.server_timestamp = octets.time(HEAD_LEN + 40);
            row.server_start_timestamp = octets.time(HEAD_LEN + 48);
            row.cipher = if dialect.0 == 0x0311 { octets.cipher() } else { None };
        });
    }
}

impl<'p> Octets<'p> {
    /// Returns the octets whose offset and length are two numbers of 16 bits at an offset in the body.
    fn buffer(self, at: usize) -> &'p [u8] {
        let place: u16 = self.number(HEAD_LEN + at).unwrap_or_default();
        let len: u16 = self.number(HEAD_LEN + at + 2).unwrap_or_default();
        if place == 0 { &[] } else { self.part(place.into(), len.into()) }
    }

    /// Returns the octets of a control request or its response: offset and length have 32 bits.
    fn data_of_control(self, at: usize) -> &'p [u8] {
        let [place, len] = [at, at + 4].map(|at| self.number::<u32>(HEAD_LEN + at).unwrap_or_default());
        let [place, len] = [place, len].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        self.part(place, len)
    }

    /// Finds the cipher in the contexts of a response (section 2.2.4.1.2).
    fn cipher(self) -> Option<Cipher> {
        let count: u16 = self.number(HEAD_LEN + 6)?;
        let mut at = usize::try_from(self.number::<u32>(HEAD_LEN + 60)?).ok()?;
        for _ in 0..count.min(16) {
            let (kind, len): (u16, u16) = (self.number(at)?, self.number(at.checked_add(2)?)?);
            if kind == 2 {
                return self.number(at.checked_add(10)?).map(Cipher);
            }
            at = at.checked_add(8)?.checked_add(len.into())?.checked_next_multiple_of(8)?;
        }
        None
    }
}

impl Exchange {
    /// Reads the body of a request, which begins with its length.
    fn ask(&mut self, command: u16, octets: Octets<'_>) -> Option<()> {
        let at = |place: usize| HEAD_LEN + place;
        match command {
            command::NEGOTIATE => {
                self.client_guid = octets.array(at(12)).map(Uuid::of_little);
                let count: u16 = octets.number(at(2))?;
                let (dialects, _) = octets.part(at(36), 2 * usize::from(count)).as_chunks();
                for dialect in dialects.iter().take(16) {
                    self.client_dialects.push(&Dialect(u16::from_le_bytes(*dialect)).to_string());
                }
            }
            command::TREE_CONNECT => self.share = Some(Kept::of_utf16(octets.buffer(4))),
            command::CREATE => {
                self.file_name = Some(Kept::of_utf16(octets.buffer(44)));
                self.desired_access = octets.number(at(24));
                self.disposition = octets.number(at(36)).map(Disposition);
                self.is_deletion = octets.number::<u32>(at(40))? & DELETE_ON_CLOSE != 0;
            }
            command::READ | command::WRITE => {
                self.data_len = octets.number::<u32>(at(4)).map(u64::from);
                self.offset = octets.number(at(8));
            }
            command::IOCTL => self.function = octets.number(at(4)).map(Function),
            command::QUERY_DIRECTORY => {
                self.information_class = octets.number::<u8>(at(2)).map(u16::from);
                self.pattern = Some(Kept::of_utf16(octets.buffer(24)));
            }
            command::QUERY_INFO => self.information_class = octets.number::<u8>(at(3)).map(u16::from),
            command::SET_INFO => {
                self.information_class = octets.number::<u8>(at(3)).map(u16::from);
                let place: u16 = octets.number(at(8))?;
                let information = Octets(octets.part(place.into(), octets.number::<u32>(at(4))? as usize));
                if octets.number(at(2)) == Some(1_u8) {
                    self.set(information, (16, 20))?;
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Reads information of a file that is set (MS-FSCC section 2.4). A new name has its length and octets at offsets that differ by
    /// the version.
    pub(super) fn set(&mut self, information: Octets<'_>, (len_at, name_at): (usize, usize)) -> Option<()> {
        match self.information_class? {
            4 => {
                self.created_timestamp = information.time(0);
                self.accessed_timestamp = information.time(8);
                self.modified_timestamp = information.time(16);
                self.changed_timestamp = information.time(24);
            }
            10 | 65 => {
                let len = usize::try_from(information.number::<u32>(len_at)?).ok()?;
                self.new_file_name = Some(Kept::of_utf16(information.part(name_at, len)));
            }
            13 => self.is_deletion = information.number::<u8>(0)? != 0,
            64 => self.is_deletion = information.number::<u32>(0)? & 1 != 0,
            20 => self.file_len = information.number(0),
            _ => {}
        }
        Some(())
    }

    /// Reads the body of a response. Returns the identifier of a file that was opened.
    fn answer(&mut self, command: u16, octets: Octets<'_>) -> Option<FileId> {
        let at = |place: usize| HEAD_LEN + place;
        match command {
            command::NEGOTIATE => self.server_guid = octets.array(at(8)).map(Uuid::of_little),
            command::TREE_CONNECT => self.share_type = octets.number(at(2)).map(ShareType),
            command::CREATE => {
                self.create_action = octets.number(at(4)).map(CreateAction);
                self.times(octets, at(8));
                self.file_len = octets.number(at(48));
                let file = FileId { octets: octets.array(at(64))? };
                self.file_id = Some(file.uuid());
                return Some(file);
            }
            // With the attributes that the client asked for.
            command::CLOSE if octets.number::<u16>(at(2))? & 1 != 0 => {
                self.times(octets, at(8));
                self.file_len = octets.number(at(48));
            }
            command::READ | command::WRITE => self.data_len = octets.number::<u32>(at(4)).map(u64::from),
            _ => {}
        }
        None
    }

    /// Reads the times of creation, access, modification and change.
    pub(super) fn times(&mut self, octets: Octets<'_>, at: usize) {
        self.created_timestamp = octets.time(at);
        self.accessed_timestamp = octets.time(at + 8);
        self.modified_timestamp = octets.time(at + 16);
        self.changed_timestamp = octets.time(at + 24);
    }
}

/// Option of an opening: the file is deleted when it is closed.
const DELETE_ON_CLOSE: u32 = 0x1000;
