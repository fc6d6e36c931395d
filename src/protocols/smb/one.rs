//! Messages of SMB 1 (MS-CIFS section 2.2).

use std::cell::Cell;

use super::connection::{Octets, Row, Smb, request};
use super::known::FileId;
use super::rows::{Connection, Exchange};
use super::status::{
    BUFFER_OVERFLOW, Command, CreateAction, Dialect, Disposition, Function, MORE_DATA,
    MORE_PROCESSING_REQUIRED, ShareType, Status,
};
use crate::base::Timestamp;
use crate::protocols::dcerpc::Uuid;
use crate::session::Role;
use crate::session::kit::{Kept, Malformed, Reply, Rows};

/// Length of a header.
const HEAD_LEN: usize = 32;

/// Maximum number of commands of a chain that are read.
const CHAIN_LEN_MAX: usize = 16;

/// Commands.
mod command {
    pub(super) const CREATE_DIRECTORY: u8 = 0;
    pub(super) const DELETE_DIRECTORY: u8 = 1;
    pub(super) const CLOSE: u8 = 4;
    pub(super) const FLUSH: u8 = 5;
    pub(super) const DELETE: u8 = 6;
    pub(super) const RENAME: u8 = 7;
    pub(super) const QUERY_INFORMATION: u8 = 8;
    pub(super) const CHECK_DIRECTORY: u8 = 0x10;
    pub(super) const LOCKING_ANDX: u8 = 0x24;
    pub(super) const TRANS: u8 = 0x25;
    pub(super) const OPEN_ANDX: u8 = 0x2D;
    pub(super) const READ_ANDX: u8 = 0x2E;
    pub(super) const WRITE_ANDX: u8 = 0x2F;
    pub(super) const TRANS2: u8 = 0x32;
    pub(super) const TREE_DISCONNECT: u8 = 0x71;
    pub(super) const NEGOTIATE: u8 = 0x72;
    pub(super) const SESSION_SETUP_ANDX: u8 = 0x73;
    pub(super) const LOGOFF_ANDX: u8 = 0x74;
    pub(super) const TREE_CONNECT_ANDX: u8 = 0x75;
    pub(super) const NT_CREATE_ANDX: u8 = 0xA2;
    pub(super) const NT_CANCEL: u8 = 0xA4;

    /// Returns whether another command may follow in the message.
    pub(super) const fn has_next(command: u8) -> bool {
        matches!(
            command,
            LOCKING_ANDX
                | OPEN_ANDX
                | READ_ANDX
                | WRITE_ANDX
                | SESSION_SETUP_ANDX
                | LOGOFF_ANDX
                | TREE_CONNECT_ANDX
                | NT_CREATE_ANDX
        )
    }

    /// Returns whether the command continues another one, or has no response.
    pub(super) const fn is_secondary(command: u8) -> bool {
        matches!(command, 0x26 | 0x33 | 0xA1 | NT_CANCEL)
    }
}

/// A header, with what the commands of its chain have in common.
struct Head {
    status: Status,
    is_response: bool,
    is_unicode: bool,
    tree: u16,
    user: u16,
    /// Numbers of process and message.
    message: u64,
    /// True if the data of a command of the chain was passed on: all of them may name the same octets.
    has_data: Cell<bool>,
}

/// A command: its words and its octets, at their offset in the message.
#[derive(Clone, Copy)]
struct Body<'p> {
    words: Octets<'p>,
    octets: &'p [u8],
    /// Offset of the octets in the message.
    at: usize,
    is_unicode: bool,
}

/// Processes a message with its chain of commands.
pub(super) fn message(smb: &mut Smb, octets: Octets<'_>, rows: &mut Rows<'_, Row>) -> Result<(), Malformed> {
    let (flags, flags2): (u8, u16) =
        (octets.number(9).ok_or(Malformed)?, octets.number(10).ok_or(Malformed)?);
    let number = |at| octets.number::<u16>(at).ok_or(Malformed);
    let (tree, process, user, message) = (number(24)?, number(26)?, number(28)?, number(30)?);
    let head = Head {
        status: Status(octets.number(5).ok_or(Malformed)?),
        is_response: flags & 0x80 != 0,
        is_unicode: flags2 & 0x8000 != 0,
        tree,
        user,
        message: u64::from(process) << 16 | u64::from(message),
        has_data: Cell::new(false),
    };
    // A server breaks a lock without a request.
    if message == 0xFFFF {
        return Ok(());
    }
    rows.acts_as(if head.is_response { Role::Server } else { Role::Client });
    let mut command: u8 = octets.number(4).ok_or(Malformed)?;
    let mut at = HEAD_LEN;
    for _ in 0..CHAIN_LEN_MAX {
        let words_len = 2 * usize::from(octets.number::<u8>(at).ok_or(Malformed)?);
        let words = Octets(octets.part(at + 1, words_len));
        let count: u16 = octets.number(at + 1 + words_len).unwrap_or_default();
        let body_at = at + 1 + words_len + 2;
        let body = Body {
            words,
            octets: octets.part(body_at, count.into()),
            at: body_at,
            is_unicode: head.is_unicode,
        };
        if !command::is_secondary(command) {
            if head.is_response {
                smb.answered(&head, command, octets, body, rows);
            } else {
                smb.asked(&head, command, octets, body, rows);
            }
        }
        let next = words.number::<u8>(0).filter(|next| command::has_next(command) && *next != 0xFF);
        let Some(next) = next else { break };
        // A chain only goes forward.
        let next_at: u16 = words.number(2).unwrap_or_default();
        if usize::from(next_at) <= at || usize::from(next_at) >= octets.0.len() {
            break;
        }
        (command, at) = (next, next_at.into());
    }
    Ok(())
}

/// Returns the identifier of a file, whose number is used again in other shares.
fn file_id(number: u16, tree: u16) -> FileId {
    let both = u128::from(tree) << 16 | u128::from(number);
    FileId { octets: both.to_le_bytes() }
}

/// Returns the place of the number of a file among the words of a request.
const fn file_at(command: u8) -> Option<usize> {
    match command {
        command::CLOSE | command::FLUSH => Some(0),
        command::READ_ANDX | command::WRITE_ANDX | command::LOCKING_ANDX => Some(4),
        _ => None,
    }
}

impl Head {
    fn key(&self, command: u8) -> u64 {
        1 << 62 | u64::from(command) << 48 | self.message
    }
}

impl<'p> Body<'p> {
    /// Reads a text that ends with a null character, at an offset of the octets. Returns the offset after it.
    fn text<const N: usize>(self, at: usize) -> (Kept<N>, usize) {
        self.text_as(self.is_unicode, at)
    }

    fn text_as<const N: usize>(self, is_unicode: bool, at: usize) -> (Kept<N>, usize) {
        if !is_unicode {
            let rest = self.octets.get(at..).unwrap_or_default();
            let len = rest.iter().position(|octet| *octet == 0).unwrap_or(rest.len());
            return (Kept::new(rest.get(..len).unwrap_or_default()), at + len + 1);
        }
        // Characters of 16 bits are aligned in the message.
        let at = at + (self.at + at) % 2;
        let rest = self.octets.get(at..).unwrap_or_default();
        let (units, _) = rest.as_chunks::<2>();
        let count = units.iter().position(|unit| *unit == [0, 0]).unwrap_or(units.len());
        (Kept::of_utf16(rest), at + 2 * count + 2)
    }

    /// Reads a path, in front of which old commands have a format.
    fn path<const N: usize>(self, at: usize) -> (Kept<N>, usize) {
        let has_format = self.octets.get(at) == Some(&4);
        let (path, end): (Kept<N>, _) = self.text(at + usize::from(has_format));
        (relative(&path), end)
    }
}

/// Reads a number in two words.
fn long(words: Octets<'_>, low_at: usize, high_at: usize) -> Option<u64> {
    let high: u16 = words.number(high_at).unwrap_or_default();
    words.number::<u16>(low_at).map(|low| u64::from(high) << 16 | u64::from(low))
}

/// Returns a class of information: those of Windows are levels from 1000 on (MS-SMB section 2.2.2.3.5).
const fn class(level: u16) -> u16 {
    if level < 1000 { level } else { level - 1000 }
}

/// Returns a text unless it is empty.
fn stated<const N: usize>(text: Kept<N>) -> Option<Kept<N>> {
    Some(text).filter(|text| !text.text().0.is_empty())
}

/// Removes the separator in front of a path.
fn relative<const N: usize>(path: &Kept<N>) -> Kept<N> {
    let octets = path.text().0;
    Kept::new(octets.strip_prefix(b"\\").unwrap_or(octets))
}

impl Smb {
    fn asked(
        &mut self,
        head: &Head,
        command: u8,
        octets: Octets<'_>,
        body: Body<'_>,
        rows: &mut Rows<'_, Row>,
    ) {
        let has_tree = !matches!(
            command,
            command::NEGOTIATE
                | command::SESSION_SETUP_ANDX
                | command::TREE_CONNECT_ANDX
                | command::LOGOFF_ANDX
        );
        let mut row =
            self.row(0x100 | u16::from(command), head.user.into(), has_tree.then_some(head.tree.into()));
        row.message_number = head.message & 0xFFFF;
        let asked = row.ask_one(command, octets, body);
        let number = file_at(command).and_then(|at| body.words.number(at)).or(asked);
        let file = number.map(|number| file_id(number, head.tree));
        if let Some(file) = file {
            self.name(&mut row, file);
        }
        if row.new_file_name.is_some() || row.is_deletion && file.is_some() {
            self.describe(&mut row);
        }
        let share_type = row.share_type;
        match command {
            command::NEGOTIATE => {
                self.negotiation = Some(head.key(command));
                let dialects = row.client_dialects.clone();
                rows.flow(|row: &mut Connection| row.client_dialects = dialects);
            }
            command::SESSION_SETUP_ANDX => {
                if let Some(os) = row.client_os.clone() {
                    rows.flow(|row: &mut Connection| row.client_os = Some(os));
                }
                if body.words.0.len() == 24 {
                    let len: u16 = body.words.number(14).unwrap_or_default();
                    self.logs_on(head.message, body.octets.get(..len.into()).unwrap_or(body.octets), rows);
                }
            }
            _ => {}
        }
        let offset = row.offset;
        request(head.key(command), row, rows);
        if matches!(command, command::WRITE_ANDX | command::TRANS) && head.has_data.replace(true) {
            return;
        }
        match (command, file) {
            (command::WRITE_ANDX, Some(file)) => {
                let at: u16 = body.words.number(22).unwrap_or_default();
                let len = long(body.words, 20, 18).unwrap_or_default();
                let tree = (head.user.into(), Some(head.tree.into()));
                self.data((file, share_type), tree, (offset, len), (octets, at.into()), rows);
            }
            (command::CLOSE, Some(file)) => self.contents.end(file, rows),
            (command::TRANS, Some(file)) => {
                let (at, len) = (body.words.number::<u16>(24), body.words.number::<u16>(22));
                let data = octets.part(at.unwrap_or_default().into(), len.unwrap_or_default().into());
                self.piped(file, share_type, data, rows);
            }
            _ => {}
        }
    }

    fn answered(
        &mut self,
        head: &Head,
        command: u8,
        octets: Octets<'_>,
        body: Body<'_>,
        rows: &mut Rows<'_, Row>,
    ) {
        let (message, user) = (head.message, u64::from(head.user));
        if command == command::SESSION_SETUP_ANDX {
            let len: u16 = if body.words.0.len() == 8 { body.words.number(6).unwrap_or_default() } else { 0 };
            let token = body.octets.get(..len.into()).unwrap_or(body.octets);
            self.logged_on((message, user), head.status, token, rows);
        }
        if command == command::NEGOTIATE {
            self.negotiation = None;
            self.negotiated_one(body, rows);
        }
        let (dialect, now) = (self.dialect, rows.now());
        let is_filled =
            matches!(head.status, Status(0) | MORE_PROCESSING_REQUIRED | BUFFER_OVERFLOW | MORE_DATA);
        // Further parts of a response, and one that only asks for more of the request.
        let is_part = |at: usize| body.words.number::<u16>(at).is_some_and(|displacement| displacement > 0);
        let is_interim = body.words.0.is_empty() && head.status == Status(0);
        if matches!(command, command::TRANS | command::TRANS2) && (is_interim || is_part(10) || is_part(16)) {
            return;
        }
        let tree = head.tree;
        let (mut share, mut is_opened) = (None, false);
        let (mut file, mut share_type, mut new_name, mut function) = (None, None, None, None);
        let (mut user_name, mut server_os, mut offset) = (None, None, None);
        rows.response(head.key(command), |row: &mut Exchange| {
            row.command = Command(0x100 | u16::from(command));
            (row.result, row.dialect) = (Some(head.status), dialect);
            (row.message_number, row.session_number) = (message & 0xFFFF, user);
            if !is_filled && matches!(command, command::READ_ANDX | command::WRITE_ANDX) {
                row.data_len = None;
            }
            if is_filled {
                let opened = row.answer_one(command, body);
                match command {
                    command::TREE_CONNECT_ANDX => {
                        row.tree_number = Some(tree.into());
                        share = row.share.clone();
                    }
                    command::SESSION_SETUP_ANDX => {
                        (user_name, server_os) = (row.user_name.clone(), row.server_os.clone());
                    }
                    _ => {}
                }
                if let Some(number) = opened {
                    let id = file_id(number, tree);
                    row.file_id = Some(id.uuid());
                    self.opened(row, id, now);
                    is_opened = true;
                }
                if row.new_file_name.is_some() {
                    new_name = row.new_file_name.clone();
                }
            }
            (file, share_type, function) = (row.file_id, row.share_type, row.function);
            offset = row.offset;
            Reply::Last
        });
        if server_os.is_some() {
            rows.flow(|row: &mut Connection| row.server_os = server_os);
        }
        let file = file.map(|id| FileId { octets: id.little() });
        if let Some(file) = file.filter(|_| is_opened) {
            self.begins(file, rows);
        }
        if matches!(command, command::READ_ANDX | command::TRANS) && head.has_data.replace(true) {
            return;
        }
        match (command, file) {
            (command::TREE_CONNECT_ANDX, _) if head.status == Status(0) => {
                self.connected(user, tree.into(), share.unwrap_or_default(), share_type);
            }
            (command::TREE_DISCONNECT, _) => self.disconnected(user, tree.into()),
            (command::LOGOFF_ANDX, _) => self.logged_off(user),
            (command::SESSION_SETUP_ANDX, _) if head.status == Status(0) => {
                if let Some(name) = user_name {
                    self.knows(user, name);
                }
            }
            (command::CLOSE, Some(file)) => {
                self.contents.end(file, rows);
                self.closed(file);
            }
            (command::READ_ANDX, Some(file)) if is_filled => {
                let at: u16 = body.words.number(12).unwrap_or_default();
                let len = long(body.words, 10, 14).unwrap_or_default();
                let tree = (user, Some(tree.into()));
                self.data((file, share_type), tree, (offset, len), (octets, at.into()), rows);
            }
            (command::TRANS, Some(file)) => {
                let (len, at): (Option<u16>, Option<u16>) = (body.words.number(12), body.words.number(14));
                let data = octets.part(at.unwrap_or_default().into(), len.unwrap_or_default().into());
                self.piped(file, share_type, data, rows);
            }
            (command::TRANS2, Some(file)) if head.status == Status(0) && function == Some(Function(8)) => {
                if let Some(name) = new_name {
                    self.renamed(file, name);
                }
            }
            _ => {}
        }
    }

    /// Reads the response to a negotiation (section 2.2.4.52.2).
    fn negotiated_one(&mut self, body: Body<'_>, rows: &mut Rows<'_, Row>) {
        let Some(_) = body.words.number::<u16>(0).filter(|place| *place != 0xFFFF) else { return };
        if body.words.0.len() != 34 {
            return;
        }
        self.dialect = Some(Dialect(0x0100));
        let mode: u8 = body.words.number(2).unwrap_or_default();
        let capabilities: u32 = body.words.number(19).unwrap_or_default();
        rows.flow(|row: &mut Connection| {
            row.dialect = Some(Dialect(0x0100));
            row.is_signing_required_by_server = Some(mode & 8 != 0);
            row.server_timestamp = body.words.time(23);
            if capabilities & EXTENDED_SECURITY != 0 {
                row.server_guid = Octets(body.octets).array(0).map(Uuid::of_little);
            }
        });
    }
}

/// Capability: tokens as of SPNEGO.
const EXTENDED_SECURITY: u32 = 1 << 31;

impl Exchange {
    /// Reads a request. Returns the number of the file of a transaction.
    fn ask_one(&mut self, command: u8, octets: Octets<'_>, body: Body<'_>) -> Option<u16> {
        let words = body.words;
        match command {
            command::NEGOTIATE => {
                let dialects = body.octets.split(|octet| *octet == 0).take(16);
                for dialect in dialects.filter_map(|dialect| dialect.strip_prefix(b"\x02")) {
                    self.client_dialects.push(&String::from_utf8_lossy(dialect));
                }
            }
            command::SESSION_SETUP_ANDX => self.sets_up(body),
            command::TREE_CONNECT_ANDX => {
                let password_len: u16 = words.number(6)?;
                self.share = Some(body.text(password_len.into()).0);
            }
            command::NT_CREATE_ANDX => {
                self.file_name = Some(body.path(0).0);
                self.desired_access = words.number(15);
                self.disposition = words.number(35).map(Disposition);
                self.is_deletion = words.number::<u32>(39)? & 0x1000 != 0;
            }
            command::OPEN_ANDX
            | command::CREATE_DIRECTORY
            | command::CHECK_DIRECTORY
            | command::QUERY_INFORMATION => {
                self.file_name = Some(body.path(0).0);
            }
            command::DELETE | command::DELETE_DIRECTORY => {
                (self.file_name, self.is_deletion) = (Some(body.path(0).0), true);
            }
            command::RENAME => {
                let (old, end) = body.path(0);
                (self.file_name, self.new_file_name) = (Some(old), Some(body.path(end).0));
            }
            command::READ_ANDX | command::WRITE_ANDX => {
                // With two more words, the offset has 64 bits.
                let high_at = if command == command::READ_ANDX { 20 } else { 24 };
                let high: u32 = words.number(high_at).unwrap_or_default();
                self.offset = words.number::<u32>(6).map(|low| u64::from(high) << 32 | u64::from(low));
            }
            command::TRANS => {
                // Transactions of pipes have two words: function and file. Those of mailslots have others.
                if words.number(26) != Some(2_u8) {
                    return None;
                }
                let function: u16 = words.number(28)?;
                self.function = Some(Function(0x100 | u32::from(function)));
                return words.number(30).filter(|_| !matches!(function, 0x53 | 0x54));
            }
            command::TRANS2 => return self.transacts(octets, body),
            _ => {}
        }
        None
    }

    /// Reads a transaction of files (MS-CIFS section 2.2.6).
    fn transacts(&mut self, octets: Octets<'_>, body: Body<'_>) -> Option<u16> {
        let words = body.words;
        let function: u16 = words.number(28)?;
        self.function = Some(Function(function.into()));
        let [parameters, data] = [(18, 20), (22, 24)].map(|(len_at, at)| {
            let [len, at] = [len_at, at].map(|at| words.number::<u16>(at).unwrap_or_default());
            (Octets(octets.part(at.into(), len.into())), usize::from(at))
        });
        let texts = Body { octets: parameters.0.0, at: parameters.1, ..body };
        match function {
            // The pattern of files that are listed.
            1 => self.pattern = Some(texts.path(12).0),
            5 | 6 => {
                self.information_class = parameters.0.number(0).map(class);
                self.file_name = Some(texts.path(6).0);
            }
            7 => {
                self.information_class = parameters.0.number(2).map(class);
                return parameters.0.number(0);
            }
            8 => {
                let level: u16 = parameters.0.number(2)?;
                self.information_class = Some(class(level));
                match level {
                    0x102 => self.is_deletion = data.0.number::<u8>(0)? != 0,
                    0x104 => self.file_len = data.0.number(0),
                    1000.. => {
                        let _ = self.set(data.0, (8, 12));
                    }
                    _ => {}
                }
                return parameters.0.number(0);
            }
            16 => self.file_name = Some(texts.path(2).0),
            _ => {}
        }
        None
    }

    /// Reads a logon: with a token, or with passwords and names.
    fn sets_up(&mut self, body: Body<'_>) {
        let len = |at: usize| usize::from(body.words.number::<u16>(at).unwrap_or_default());
        let mut end = match body.words.0.len() {
            24 => len(14),
            26 => {
                let (name, end): (Kept<128>, _) = body.text(len(14) + len(16));
                let (domain, end): (Kept<128>, _) = body.text(end);
                let [domain, name] = [domain.text().0, name.text().0];
                let user = if domain.is_empty() { name.to_vec() } else { [domain, b"\\", name].concat() };
                self.user_name = stated(Kept::new(&user));
                end
            }
            _ => return,
        };
        let (os, software);
        (os, end) = body.text(end);
        (software, _) = body.text(end);
        (self.client_os, self.client_software) = (stated(os), stated(software));
    }

    /// Reads a response. Returns the number of a file that was opened.
    fn answer_one(&mut self, command: u8, body: Body<'_>) -> Option<u16> {
        let words = body.words;
        match command {
            command::NEGOTIATE => {
                let capabilities: u32 = words.number(19)?;
                self.server_guid = Octets(body.octets).array(0).map(Uuid::of_little);
                self.server_guid.take_if(|_| capabilities & EXTENDED_SECURITY == 0);
            }
            command::SESSION_SETUP_ANDX => {
                let token_len: u16 = if words.0.len() == 8 { words.number(6)? } else { 0 };
                let (os, end) = body.text(token_len.into());
                (self.server_os, self.server_software) = (stated(os), stated(body.text(end).0));
            }
            command::TREE_CONNECT_ANDX => {
                let (service, end): (Kept<16>, _) = body.text_as(false, 0);
                self.share_type = Some(ShareType(match service.text().0 {
                    b"IPC" => 2,
                    b"LPT1:" => 3,
                    _ => 1,
                }));
                (self.share_service, self.file_system) = (stated(service), stated(body.text(end).0));
            }
            command::NT_CREATE_ANDX => {
                self.create_action = words.number(7).map(CreateAction);
                self.times(words, 11);
                self.file_len = words.number(55);
                return words.number(5);
            }
            command::OPEN_ANDX => {
                self.file_len = words.number::<u32>(12).map(u64::from);
                let seconds: u32 = words.number(8)?;
                self.modified_timestamp = (seconds > 0).then(|| Timestamp::from_parts(seconds.into(), 0));
                return words.number(4);
            }
            command::READ_ANDX => self.data_len = long(words, 10, 14),
            command::WRITE_ANDX => self.data_len = long(words, 4, 8),
            _ => {}
        }
        None
    }
}
