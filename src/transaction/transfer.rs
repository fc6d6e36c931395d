//! A transfer of FTP: its command, and the file in its data connection. The name of a file in a path.

use super::digests::media_type;
use super::open::allocated;
use crate::base::{FlowKey, Timestamp};
use crate::checkpoint::state;
use crate::session::Role;

/// What identifies a flow in all its records: its key, and the time of its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowOrigin {
    pub(crate) key: FlowKey,
    pub(crate) start: Timestamp,
}

state! { struct FlowOrigin { key, start } }

/// The command to which the file of a data connection belongs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transfer {
    /// The control connection.
    pub(crate) control: FlowOrigin,
    pub(crate) number: u64,
    pub(crate) command: Box<str>,
    /// The last part of the path in the argument.
    pub(crate) name: Option<Box<str>>,
}

state! { struct Transfer { control, number, command, name } }

impl Transfer {
    /// Returns the memory of a transfer in bytes, in a box.
    pub(super) fn heap_len(&self) -> usize {
        let name_len = self.name.as_ref().map_or(0, |name| allocated(name.len()));
        allocated(size_of::<Self>()) + allocated(self.command.len()) + name_len
    }

    /// Returns the role of the sender of the file.
    pub(super) fn sender(&self) -> Role {
        let is_upload = ["STOR", "STOU", "APPE"].iter().any(|known| self.command.eq_ignore_ascii_case(known));
        if is_upload { Role::Client } else { Role::Server }
    }
}

/// A file that was transferred in a data connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transferred {
    /// The data connection.
    pub(crate) flow: FlowOrigin,
    /// Role of the sender.
    pub(crate) role: Role,
    pub(crate) seen_len: u64,
    pub(crate) missing_len: u64,
    pub(crate) detected_type: Option<&'static str>,
}

state! { struct Transferred { flow, role, seen_len, missing_len, detected_type as media_type } }

/// Returns the part of a path behind the last separator.
pub(super) fn last_part(path: &str) -> Option<&str> {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())
}
