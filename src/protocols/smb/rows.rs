//! The rows of SMB, with those of Zeek and Suricata.

use std::time::Duration;

use super::status::{
    Cipher, Command, CreateAction, Dialect, Disposition, Function, MORE_PROCESSING_REQUIRED, ShareType,
    Status,
};
use crate::base::{Timestamp, fnv1a};
use crate::protocols::dcerpc::Uuid;
use crate::row::{Displayed, Group, Name};
use crate::session::kit::{Kept, KeptList, exchange};
use crate::session::{Lack, Text};

/// Time from 1601 to 1970 in units of 100 ns (MS-DTYP section 2.3.3).
pub(super) const TICKS_TO_1970: u64 = 116_444_736_000_000_000;

exchange! {
    /// A connection, as client and server negotiated it.
    "smb_connection" pub struct Connection {
        /// Dialects that the client offers.
        pub client_dialects: KeptList<256> [sparse],
        /// Dialect that the server selects.
        pub dialect: Option<Dialect>,
        /// Identifier of the client.
        pub client_guid: Option<Uuid>,
        /// Identifier of the server.
        pub server_guid: Option<Uuid>,
        /// True if the client requires signatures.
        pub is_signing_required_by_client: Option<bool>,
        /// True if the server requires signatures.
        pub is_signing_required_by_server: Option<bool>,
        /// Cipher that the server selects (dialect 3.11).
        pub cipher: Option<Cipher>,
        /// Clock of the server.
        pub server_timestamp: Option<Timestamp>,
        /// Time at which the server was started.
        pub server_start_timestamp: Option<Timestamp>,
        /// Operating system of the client, as it states it (SMB 1).
        pub client_os: Option<Kept<64>>,
        /// Operating system of the server, as it states it (SMB 1).
        pub server_os: Option<Kept<64>>,
        /// Number of encrypted messages, of which no more is known.
        pub encrypted_message_count: u64 [sparse],
        /// Number of compressed messages, which are not read.
        pub compressed_message_count: u64 [sparse],
    }
}

exchange! {
    /// A request with its response.
    "smb" pub struct Exchange {
        /// Command.
        pub command: Command,
        /// Status of the response.
        pub result: Option<Status>,
        /// Dialect of the connection; null if its negotiation was not captured.
        pub dialect: Option<Dialect>,
        /// User of the session, with the domain; null if the logon was not captured or does not show it.
        pub user_name: Option<Kept<256>>,
        /// Path of the share; null if the connection to it was not captured.
        pub share: Option<Kept<256>>,
        /// Kind of the share.
        pub share_type: Option<ShareType>,
        /// Service of the share, as a server of SMB 1 states it.
        pub share_service: Option<Kept<16>>,
        /// File system of the share, as a server of SMB 1 states it.
        pub file_system: Option<Kept<32>>,
        /// Path of the file in the share; empty for the share itself.
        pub file_name: Option<Kept<512>>,
        /// Path that the file is renamed to.
        pub new_file_name: Option<Kept<512>>,
        /// True if the file is to be deleted.
        pub is_deletion: bool [sparse],
        /// Pattern of the files that are listed.
        pub pattern: Option<Kept<128>>,
        /// Identifier of the open file.
        pub file_id: Option<Uuid>,
        /// Length of the file.
        pub file_len: Option<u64> [octets],
        /// What the server does if the file exists, or does not.
        pub disposition: Option<Disposition>,
        /// What the server did with the file.
        pub create_action: Option<CreateAction>,
        /// Rights that the client asks for (MS-SMB2 section 2.2.13.1).
        pub desired_access: Option<u32>,
        /// Time at which the file was created.
        pub created_timestamp: Option<Timestamp>,
        /// Time of the last access to the file.
        pub accessed_timestamp: Option<Timestamp>,
        /// Time of the last change of the contents.
        pub modified_timestamp: Option<Timestamp>,
        /// Time of the last change of contents or attributes.
        pub changed_timestamp: Option<Timestamp>,
        /// Offset in the file of what is read or written.
        pub offset: Option<u64> [octets],
        /// Number of octets that were read or written.
        pub data_len: Option<u64> [octets],
        /// Function of a control request, or of a transaction.
        pub function: Option<Function>,
        /// Class of the information that is read or set (MS-FSCC section 2.4), or level of SMB 1 (MS-CIFS section 2.2.2.3).
        pub information_class: Option<u16>,
        /// Dialects that the client offers.
        pub client_dialects: KeptList<256> [sparse],
        /// Identifier of the client.
        pub client_guid: Option<Uuid>,
        /// Identifier of the server.
        pub server_guid: Option<Uuid>,
        /// Operating system of the client, as it states it (SMB 1).
        pub client_os: Option<Kept<64>>,
        /// Software of the client, as it states it (SMB 1).
        pub client_software: Option<Kept<64>>,
        /// Operating system of the server, as it states it (SMB 1).
        pub server_os: Option<Kept<64>>,
        /// Software of the server, as it states it (SMB 1).
        pub server_software: Option<Kept<64>>,
        /// Number of the message.
        pub message_number: u64,
        /// Number of the session.
        pub session_number: u64,
        /// Number of the share in its session.
        pub tree_number: Option<u32>,
        ..
        /// Number of the exchange in its connection, from 1.
        number: u64,
        /// True if the same row was reported shortly before.
        is_repeated: bool,
        /// True if the file is a pipe with calls.
        is_piped: bool,
    }
    /// Files that are opened, renamed or deleted.
    zeek "smb_files" ['a] as row if (row.zeek_action().is_some()) {
        /// Files have no identifier here.
        "fuid": Option<Name> = None;
        /// `command`, `new_file_name` and `is_deletion`.
        "action": Option<Name> = row.zeek_action().map(Name);
        /// `share`.
        "path": Option<Text<'a>> = row.share.as_ref().map(Kept::text);
        /// `new_file_name`, or else `file_name`.
        "name": Option<Text<'a>> = row.zeek_name();
        /// `file_len`.
        "size": u64 = row.file_len.unwrap_or_default();
        /// `file_name` of a file that is renamed.
        "prev_name": Option<Text<'a>> = row.new_file_name.as_ref().and(row.file_name.as_ref()).map(Kept::text);
        /// `modified_timestamp`.
        "times.modified": Option<Timestamp> = row.modified_timestamp.map(in_zeek);
        /// `accessed_timestamp`.
        "times.accessed": Option<Timestamp> = row.accessed_timestamp.map(in_zeek);
        /// `created_timestamp`.
        "times.created": Option<Timestamp> = row.created_timestamp.map(in_zeek);
        /// `changed_timestamp`.
        "times.changed": Option<Timestamp> = row.changed_timestamp.map(in_zeek);
    }
    /// Shares to which a client connects.
    zeek "smb_mapping" ['a] as row if (row.is_connection() && row.is_successful()) {
        /// `share`.
        "path": Option<Text<'a>> = row.share.as_ref().map(Kept::text);
        /// `share_service`.
        "service": Option<Text<'a>> = row.share_service.as_ref().map(Kept::text);
        /// `file_system`.
        "native_file_system": Option<Text<'a>> = row.file_system.as_ref().map(Kept::text);
        /// `share_type`.
        "share_type": Option<Name> = row.share_type_name().map(Name);
    }
    /// All requests with their responses, as of Zeek's script `policy/protocols/smb/log-cmds`; not steps of a logon.
    zeek "smb_cmd" ['a] as row if (row.result.is_some_and(|result| result != MORE_PROCESSING_REQUIRED)) {
        /// `command`.
        "command": Displayed<String> = Displayed(row.zeek_command());
        /// `function` of a transaction of SMB 1.
        "sub_command": Option<Displayed<String>> = row.zeek_function().map(Displayed);
        /// `dialect` of a negotiation.
        "argument": Option<Displayed<String>> = row.zeek_dialect().map(Displayed);
        /// `result`.
        "status": Option<Displayed<String>> =
            row.result.map(|status| Displayed(status.to_string().trim_start_matches("STATUS_").to_owned()));
        /// `response_time`.
        "rtt": Option<Duration> = row.exchange.response_time;
        /// `SMB1` or `SMB2`.
        "version": Displayed<&'static str> = Displayed(if row.command.0 & 0x100 == 0 { "SMB2" } else { "SMB1" });
        /// `user_name`.
        "username": Option<Text<'a>> = row.user_name.as_ref().map(Kept::text);
        /// `share`.
        "tree": Option<Text<'a>> = row.share.as_ref().map(Kept::text);
        /// `share_service`.
        "tree_service": Option<Text<'a>> = row.share_service.as_ref().map(Kept::text);
        /// As `action` in `smb_files.log`.
        "referenced_file.action": Option<Name> = row.zeek_action().map(Name);
        /// `share` of a file.
        "referenced_file.path": Option<Text<'a>> = row.file_name.as_ref().and(row.share.as_ref()).map(Kept::text);
        /// `new_file_name`, or else `file_name`.
        "referenced_file.name": Option<Text<'a>> = row.zeek_name();
        /// `file_len`.
        "referenced_file.size": Option<u64> = row.file_len;
        /// `file_name` of a file that is renamed.
        "referenced_file.prev_name": Option<Text<'a>> =
            row.new_file_name.as_ref().and(row.file_name.as_ref()).map(Kept::text);
    }
    /// Requests with their responses.
    eve "smb" ['a] as (row, from) if (from == row.exchange.from && row.is_in_eve()) {
        /// Number of the exchange in its connection.
        "id": u64 = row.number;
        /// `dialect`, or `unknown`.
        "dialect": Displayed<String> = Displayed(row.dialect.map_or_else(|| "unknown".to_owned(), |dialect| dialect.to_string()));
        /// `command`.
        "command": Displayed<String> = Displayed(row.eve_command());
        /// `result`.
        "status": Option<Displayed<String>> = row.result.map(|status| Displayed(status.to_string()));
        /// `result`, in hexadecimal digits.
        "status_code": Option<Displayed<String>> = row.result.map(|status| Displayed(row.eve_status(status)));
        /// `session_number`.
        "session_id": u64 = row.session_number;
        /// `tree_number`.
        "tree_id": u32 = row.eve_tree();
        /// `client_dialects`.
        "client_dialects": Option<KeptList<256>> = Some(row.client_dialects.clone()).filter(|dialects| !dialects.is_empty());
        /// `client_guid`.
        "client_guid": Option<Displayed<String>> = row.client_guid.map(|guid| Displayed(fuid(guid)));
        /// `server_guid`.
        "server_guid": Option<Displayed<String>> = row.server_guid.map(|guid| Displayed(fuid(guid)));
        /// What the client says of itself.
        "request": Option<Group<Program<'a>>> = Program::of(&row.client_os, &row.client_software).map(Group);
        /// What the server says of itself.
        "response": Option<Group<Program<'a>>> = Program::of(&row.server_os, &row.server_software).map(Group);
        /// `share`, of a disk or printer.
        "share": Option<Text<'a>> = row.connected_to(false);
        /// `share`, of pipes.
        "named_pipe": Option<Text<'a>> = row.connected_to(true);
        /// `share_type`.
        "share_type": Option<Name> = row.share_type_name().filter(|_| row.is_connection()).map(Name);
        /// `share_service`.
        "service": Option<Text<'a>> = row.share_service.as_ref().map(Kept::text);
        /// `file_name`.
        "filename": Option<Text<'a>> = row.file_name.as_ref().map(Kept::text);
        /// `disposition`.
        "disposition": Option<Displayed<String>> =
            row.disposition.map(|disposition| Displayed(format!("FILE_{}", disposition.to_string().to_uppercase())));
        /// `normal` for files.
        "access": Option<Name> = row.disposition.map(|_| Name("normal"));
        /// `created_timestamp` in seconds.
        "created": Option<u64> = row.seconds(row.created_timestamp);
        /// `accessed_timestamp` in seconds.
        "accessed": Option<u64> = row.seconds(row.accessed_timestamp);
        /// `modified_timestamp` in seconds.
        "modified": Option<u64> = row.seconds(row.modified_timestamp);
        /// `changed_timestamp` in seconds.
        "changed": Option<u64> = row.seconds(row.changed_timestamp);
        /// `file_len` of a file that is opened.
        "size": Option<u64> = row.create_action.map(|_| row.file_len.unwrap_or_default());
        /// `file_id`.
        "fuid": Option<Displayed<String>> = row.file_id.map(|id| Displayed(fuid(id)));
        /// `function`.
        "function": Option<Displayed<String>> =
            row.function.map(|function| Displayed(function.to_string().to_uppercase()));
        /// A file that is renamed.
        "rename": Option<Group<Renaming<'a>>> = row.new_file_name.as_ref().map(|_| Group(Renaming(row)));
    }
}

/// What a side says of itself, as in events of EVE.
#[derive(Clone, Copy)]
struct Program<'a>(Option<&'a Kept<64>>, Option<&'a Kept<64>>);

impl<'a> Program<'a> {
    fn of(os: &'a Option<Kept<64>>, software: &'a Option<Kept<64>>) -> Option<Self> {
        (os.is_some() || software.is_some()).then_some(Self(os.as_ref(), software.as_ref()))
    }
}

crate::table! {
    /// What a side of SMB 1 says of itself.
    impl['a] "eve.smb.smb.request" for Program<'a> as program {
        /// `client_os` or `server_os`.
        "native_os": Option<Text<'a>> = program.0.map(Kept::text);
        /// `client_software` or `server_software`.
        "native_lm": Option<Text<'a>> = program.1.map(Kept::text);
    }
}

/// A file that is renamed, as in events of EVE.
#[derive(Clone, Copy)]
struct Renaming<'a>(&'a Exchange);

crate::table! {
    /// Paths of a file that is renamed.
    impl['a] "eve.smb.smb.rename" for Renaming<'a> as renaming {
        /// `file_name`.
        "from": Option<Text<'a>> = renaming.0.file_name.as_ref().map(Kept::text);
        /// `new_file_name`.
        "to": Option<Text<'a>> = renaming.0.new_file_name.as_ref().map(Kept::text);
    }
}

/// Rounds a time as Zeek does, which computes with seconds since 1601 in floating-point numbers.
fn in_zeek(time: Timestamp) -> Timestamp {
    const SECONDS_TO_1970: f64 = 11_644_473_600.0;
    let ticks = time.as_nanos() / 100 + TICKS_TO_1970;
    let seconds = ticks as f64 / 1e7 - SECONDS_TO_1970;
    let micros = (seconds.fract() * 1e6).round_ties_even() as u64;
    Timestamp::from_parts(seconds as u64, 0).saturating_add(Duration::from_micros(micros))
}

/// Writes an identifier as Suricata does.
fn fuid(id: Uuid) -> String {
    let [a @ .., h0, h1, h2, h3, h4, h5, h6, h7] = id.octets();
    let [a0, a1, a2, a3, b0, b1, c0, c1] = a;
    format!(
        "{a0:02x}{a1:02x}{a2:02x}{a3:02x}-{b0:02x}{b1:02x}-{c0:02x}{c1:02x}-{h1:02x}{h0:02x}-\
         {h3:02x}{h2:02x}{h7:02x}{h6:02x}{h5:02x}{h4:02x}"
    )
}

impl Exchange {
    /// Sets the number of the exchange in its connection.
    pub(super) const fn set_number(&mut self, number: u64) {
        self.number = number;
    }

    /// Says that the same row was reported shortly before.
    pub(super) const fn set_repeated(&mut self) {
        self.is_repeated = true;
    }

    /// Says that the file is a pipe with calls.
    pub(super) const fn set_piped(&mut self) {
        self.is_piped = true;
    }

    /// Returns a digest of what Zeek compares to leave out repeated rows.
    pub(super) fn digest(&self) -> u64 {
        let text = |kept: Option<Text<'_>>| kept.map_or(0, |text| fnv1a(text.0));
        let times = [
            self.created_timestamp,
            self.accessed_timestamp,
            self.modified_timestamp,
            self.changed_timestamp,
        ];
        let times = times.map(|time| time.map_or(0, Timestamp::as_nanos));
        let [share, name] =
            [text(self.share.as_ref().map(Kept::text)), text(self.file_name.as_ref().map(Kept::text))];
        let [created, accessed, modified, changed] = times;
        let values = [share, name, self.file_len.unwrap_or_default(), created, accessed, modified, changed];
        fnv1a(values.map(u64::to_le_bytes).as_flattened())
    }

    fn is_successful(&self) -> bool {
        self.result == Some(Status(0)) && self.exchange.lacks != Some(Lack::Request)
    }

    /// Returns whether the client connects to a share.
    const fn is_connection(&self) -> bool {
        matches!(self.command.0, 3 | 0x0175)
    }

    /// Returns whether the client opens a file.
    pub(super) const fn is_opening(&self) -> bool {
        matches!(self.command.0, 5 | 0x01A2 | 0x012D)
    }

    const fn is_of_pipe(&self) -> bool {
        matches!(self.share_type, Some(ShareType(2)))
    }

    fn zeek_action(&self) -> Option<&'static str> {
        let is_print = self.share_type == Some(ShareType(3));
        if self.is_of_pipe() || self.is_repeated {
            None
        } else if self.is_opening() && self.is_successful() {
            Some(if is_print { "SMB::PRINT_OPEN" } else { "SMB::FILE_OPEN" })
        } else if self.new_file_name.is_some() {
            Some("SMB::FILE_RENAME")
        } else if self.is_deletion && !self.is_opening() {
            Some("SMB::FILE_DELETE")
        } else {
            (self.command == Command(6) && is_print).then_some("SMB::PRINT_CLOSE")
        }
    }

    fn zeek_name(&self) -> Option<Text<'_>> {
        let name = self.new_file_name.as_ref().or(self.file_name.as_ref()).map(Kept::text)?;
        Some(if name.0.is_empty() { Text(b"<share_root>") } else { name })
    }

    fn share_type_name(&self) -> Option<&'static str> {
        match self.share_type? {
            ShareType(1) => Some("DISK"),
            ShareType(2) => Some("PIPE"),
            ShareType(3) => Some("PRINT"),
            ShareType(_) => None,
        }
    }

    fn connected_to(&self, is_pipe: bool) -> Option<Text<'_>> {
        let share = self.share.as_ref().filter(|_| self.is_connection());
        share.filter(|_| self.is_of_pipe() == is_pipe).map(Kept::text)
    }

    /// Returns whether Suricata writes an event: not for attributes that were read, and results of calls.
    fn is_in_eve(&self) -> bool {
        let is_left_out = match self.command {
            Command(8) => self.is_piped || self.is_of_pipe(),
            command => command == Command(16),
        };
        !is_left_out || !self.is_successful()
    }

    /// Returns the number of the share in the header of a request.
    fn eve_tree(&self) -> u32 {
        let none = if self.command.0 & 0x100 == 0 { 0 } else { 0xFFFF };
        self.tree_number.unwrap_or(none)
    }

    fn zeek_command(&self) -> String {
        match self.command.name() {
            Some("negotiate") => "NEGOTIATE_PROTOCOL".to_owned(),
            Some(name) => name.trim_start_matches("smb1_").to_uppercase(),
            None => format!("unknown-{}", self.command),
        }
    }

    /// Returns the function of a transaction, whose name is that of the command.
    fn zeek_function(&self) -> Option<String> {
        let is_first = self.command.0 & 0x100 != 0;
        self.function.filter(|_| is_first).map(|function| function.to_string().to_uppercase())
    }

    fn zeek_dialect(&self) -> Option<String> {
        let is_negotiation =
            self.command.name().is_some_and(|name| name.trim_start_matches("smb1_") == "negotiate");
        self.dialect.filter(|_| is_negotiation).map(|dialect| dialect.to_string())
    }

    fn eve_command(&self) -> String {
        let name = match self.command.0 {
            0 => "NEGOTIATE_PROTOCOL",
            2 => "SESSION_LOGOFF",
            13 => "KEEPALIVE",
            14 => "FIND",
            16 => "GET_INFO",
            0x0172 => "SMB1_COMMAND_NEGOTIATE_PROTOCOL",
            _ => "",
        };
        match (name, self.command.name()) {
            ("", Some(name)) => match name.strip_prefix("smb1_") {
                Some(name) => format!("SMB1_COMMAND_{}", name.to_uppercase()),
                None => format!("SMB2_COMMAND_{}", name.to_uppercase()),
            },
            ("", None) => format!("UNKNOWN_{}", self.command),
            (name, _) if name.starts_with("SMB1") => name.to_owned(),
            (name, _) => format!("SMB2_COMMAND_{name}"),
        }
    }

    fn eve_status(&self, Status(status): Status) -> String {
        let has_class = status >> 16 != 0 && matches!(status & 0xFFFF, 1..=3) && status >> 30 == 0;
        if self.command.0 & 0x100 != 0 && has_class {
            format!("0x{:04x}", status >> 16)
        } else {
            format!("0x{status:x}")
        }
    }

    /// Returns a time of a file that is opened, in seconds.
    fn seconds(&self, time: Option<Timestamp>) -> Option<u64> {
        self.create_action?;
        Some(time.map_or(0, |time| time.as_nanos() / 1_000_000_000))
    }
}
