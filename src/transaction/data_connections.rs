//! What control connections and data connections of FTP know of each other.

use std::collections::VecDeque;

use super::open::allocated;
use super::transfer::{FlowOrigin, Transfer, Transferred};
use crate::base::{FlowKey, Side};
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::protocols::ftp::DataEnd;
use crate::session::{AnnouncedEnds, MessageMeta, Role};

/// Maximum number of control connections that are known. At the limit, the one that was known first is forgotten.
const CONNECTIONS_MAX: usize = 256;

/// Maximum number of commands of a control connection that are known, and of their files.
const TRANSFERS_MAX: usize = 16;

/// What is known of a control connection.
#[derive(Debug)]
struct Control {
    flow: FlowOrigin,
    /// The data connection that was announced last.
    ends: Option<AnnouncedEnds>,
    /// Commands without a last reply, oldest first.
    open: VecDeque<Transfer>,
    /// The last command with a reply that its transfer is complete: octets may arrive behind it.
    last: Option<Transfer>,
    /// Files with the numbers of their commands, oldest first.
    files: VecDeque<(u64, Transferred)>,
}

state! {
    struct Control { flow, ends, open, last, files }
    if |control| control.open.len().max(control.files.len()) <= TRANSFERS_MAX
}

/// The control connections that announced data connections or transfer files.
#[derive(Debug, Default)]
pub(super) struct DataConnections(VecDeque<Control>);

impl Saved for DataConnections {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.0.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let controls = VecDeque::load(reader)?;
        if controls.len() > CONNECTIONS_MAX {
            return Err(Invalid::new("too many control connections of FTP"));
        }
        Ok(Self(controls))
    }
}

impl Control {
    fn heap_len(&self) -> usize {
        let transfers: usize = self.open.iter().chain(&self.last).map(Transfer::heap_len).sum();
        allocated(self.files.capacity() * size_of::<(u64, Transferred)>())
            + allocated(self.open.capacity() * size_of::<Transfer>())
            + transfers
    }
}

impl DataConnections {
    /// Returns the memory of all connections in bytes. Takes linear time.
    pub(super) fn heap_len(&self) -> usize {
        let controls: usize = self.0.iter().map(Control::heap_len).sum();
        allocated(self.0.capacity() * size_of::<Control>()) + controls
    }

    /// Returns what is known of a control connection, which is added if it is not.
    fn control(&mut self, flow: FlowOrigin) -> Option<&mut Control> {
        let known = self.0.iter().rposition(|known| known.flow == flow);
        if known.is_none() {
            if self.0.len() >= CONNECTIONS_MAX {
                self.0.pop_front();
            }
            self.0.push_back(Control {
                flow,
                ends: None,
                open: VecDeque::new(),
                last: None,
                files: VecDeque::new(),
            });
        }
        match known {
            Some(place) => self.0.get_mut(place),
            None => self.0.back_mut(),
        }
    }

    /// Notes a data connection, which replaces an earlier one of the same control connection.
    pub(super) fn announce(&mut self, flow: FlowOrigin, meta: &MessageMeta, end: DataEnd) {
        let opener = if end.opened_by == meta.from { meta.side } else { meta.side.other() };
        if let Some(control) = self.control(flow) {
            control.ends = Some(AnnouncedEnds::new(&flow.key, opener, end.address, end.port));
        }
    }

    /// Forgets a control connection.
    pub(super) fn close(&mut self, flow: FlowOrigin) {
        if let Some(place) = self.0.iter().rposition(|known| known.flow == flow) {
            self.0.remove(place);
        }
    }

    /// Notes a command that transfers something.
    pub(super) fn transfer(&mut self, transfer: Transfer) {
        if let Some(control) = self.control(transfer.control) {
            if control.open.len() >= TRANSFERS_MAX {
                control.open.pop_front();
            }
            control.open.push_back(transfer);
        }
    }

    /// Notes the last reply to a command that transfers something: the next octets belong to another one.
    pub(super) fn replied(&mut self, flow: FlowOrigin, number: u64, is_complete: bool) {
        let Some(control) = self.0.iter_mut().rfind(|known| known.flow == flow) else { return };
        if let Some(place) = control.open.iter().position(|transfer| transfer.number == number) {
            control.last = control.open.remove(place).filter(|_| is_complete);
        }
    }

    /// Returns the command to which the file of a data connection belongs: the oldest one without a last reply, or else the last one without a
    /// file.
    pub(super) fn of_data(&self, key: &FlowKey) -> Option<Transfer> {
        let is_data = |known: &&Control| {
            known.ends.is_some_and(|ends| [Side::A, Side::B].iter().any(|side| ends.are_of(key, *side)))
        };
        let control = self.0.iter().rfind(is_data)?;
        let has_file =
            |transfer: &&Transfer| control.files.iter().any(|(number, _)| *number == transfer.number);
        control.open.front().or_else(|| control.last.as_ref().filter(|last| !has_file(last))).cloned()
    }

    /// Notes a file that was transferred. Octets of the other direction are no file of the command.
    pub(super) fn transferred(&mut self, transfer: &Transfer, file: Transferred) {
        let sender = if transfer.is_upload() { Role::Client } else { Role::Server };
        if file.role == sender
            && let Some(control) = self.0.iter_mut().rfind(|known| known.flow == transfer.control)
        {
            if control.files.len() >= TRANSFERS_MAX {
                control.files.pop_front();
            }
            control.files.push_back((transfer.number, file));
        }
    }

    /// Returns the file that a command of a control connection transferred.
    pub(super) fn file(&self, flow: FlowOrigin, number: u64) -> Option<Transferred> {
        let control = self.0.iter().rfind(|known| known.flow == flow)?;
        control.files.iter().rfind(|(known, _)| *known == number).map(|(_, file)| *file)
    }
}
