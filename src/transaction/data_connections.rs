//! What control connections and data connections of FTP know of each other.

use std::collections::VecDeque;
use std::time::Duration;

use super::open::allocated;
use super::transfer::{FlowOrigin, Transfer, Transferred};
use crate::base::{FlowKey, Side, Timestamp};
use crate::checkpoint::{Invalid, Saved, StateWriter, state};
use crate::codec::Reader;
use crate::protocols::ftp::DataEnd;
use crate::session::{AWAITED_TIME, AnnouncedEnds, MessageMeta};

/// Maximum number of control connections that are known. At the limit, the one that was known first is forgotten.
const CONNECTIONS_MAX: usize = 256;

/// Maximum number of commands of a control connection that are known, and of their files.
const TRANSFERS_MAX: usize = 16;

/// Maximum number of files without a command, and of those with a command that was captured later.
const UNCLAIMED_MAX: usize = 64;

/// Time after the end of a file within which its command may be captured, if one direction of the capture is late.
const CLAIM_TIME: Duration = AWAITED_TIME;

/// A file that ended before its command was captured.
#[derive(Debug)]
struct Unclaimed {
    file: Transferred,
    ended: Timestamp,
}

state! { struct Unclaimed { file, ended } }

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
pub(super) struct DataConnections {
    controls: VecDeque<Control>,
    /// Files without a command, oldest first.
    unclaimed: VecDeque<Unclaimed>,
    /// Data connections whose files had no command at their end, with the commands that were captured later, oldest first.
    claimed: VecDeque<(FlowOrigin, Transfer)>,
}

impl Saved for DataConnections {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.controls.save(writer)?;
        self.unclaimed.save(writer)?;
        self.claimed.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let controls = VecDeque::load(reader)?;
        let (unclaimed, claimed) = (VecDeque::load(reader)?, VecDeque::load(reader)?);
        if controls.len() > CONNECTIONS_MAX || unclaimed.len().max(claimed.len()) > UNCLAIMED_MAX {
            return Err(Invalid::new("too many control connections or files of FTP"));
        }
        Ok(Self { controls, unclaimed, claimed })
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
        let Self { controls, unclaimed, claimed } = self;
        let control_lens: usize = controls.iter().map(Control::heap_len).sum();
        let claimed_lens: usize = claimed.iter().map(|(_, transfer)| transfer.heap_len()).sum();
        allocated(controls.capacity() * size_of::<Control>())
            + allocated(unclaimed.capacity() * size_of::<Unclaimed>())
            + allocated(claimed.capacity() * size_of::<(FlowOrigin, Transfer)>())
            + control_lens
            + claimed_lens
    }

    /// Returns what is known of a control connection, which is added if it is not.
    fn control(&mut self, flow: FlowOrigin) -> Option<&mut Control> {
        let known = self.controls.iter().rposition(|known| known.flow == flow);
        if known.is_none() {
            if self.controls.len() >= CONNECTIONS_MAX {
                self.controls.pop_front();
            }
            self.controls.push_back(Control {
                flow,
                ends: None,
                open: VecDeque::new(),
                last: None,
                files: VecDeque::new(),
            });
        }
        match known {
            Some(place) => self.controls.get_mut(place),
            None => self.controls.back_mut(),
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
        if let Some(place) = self.controls.iter().rposition(|known| known.flow == flow) {
            self.controls.remove(place);
        }
    }

    /// Notes a command that transfers something, captured at the time `now`. Its file may have ended before.
    pub(super) fn transfer(&mut self, transfer: Transfer, now: Timestamp) {
        if let Some(file) = self.take_unclaimed(&transfer, now) {
            if self.claimed.len() >= UNCLAIMED_MAX {
                self.claimed.pop_front();
            }
            self.claimed.push_back((file.flow, transfer.clone()));
            self.transferred(&transfer, file);
        }
        if let Some(control) = self.control(transfer.control) {
            if control.open.len() >= TRANSFERS_MAX {
                control.open.pop_front();
            }
            control.open.push_back(transfer);
        }
    }

    /// Removes the file that a command transferred from those that ended before the command was captured.
    fn take_unclaimed(&mut self, transfer: &Transfer, now: Timestamp) -> Option<Transferred> {
        let ends = self.controls.iter().rfind(|known| known.flow == transfer.control)?.ends?;
        let is_its = |unclaimed: &Unclaimed| {
            let Unclaimed { file, ended } = unclaimed;
            file.role == transfer.sender()
                && has_ends(&ends, &file.flow.key)
                && now.saturating_since(*ended) <= CLAIM_TIME
        };
        let place = self.unclaimed.iter().position(is_its)?;
        self.unclaimed.remove(place).map(|unclaimed| unclaimed.file)
    }

    /// Notes a file that ended before its command was captured.
    pub(super) fn await_command(&mut self, file: Transferred, ended: Timestamp) {
        if self.unclaimed.len() >= UNCLAIMED_MAX {
            self.unclaimed.pop_front();
        }
        self.unclaimed.push_back(Unclaimed { file, ended });
    }

    /// Returns the command of the files of a data connection that ended before the command was captured, and forgets them.
    pub(super) fn take_claim(&mut self, flow: FlowOrigin) -> Option<Transfer> {
        self.unclaimed.retain(|unclaimed| unclaimed.file.flow != flow);
        let place = self.claimed.iter().position(|(claimed, _)| *claimed == flow)?;
        self.claimed.remove(place).map(|(_, transfer)| transfer)
    }

    /// Notes the last reply to a command that transfers something: the next octets belong to another one.
    pub(super) fn replied(&mut self, flow: FlowOrigin, number: u64, is_complete: bool) {
        let Some(control) = self.controls.iter_mut().rfind(|known| known.flow == flow) else { return };
        if let Some(place) = control.open.iter().position(|transfer| transfer.number == number) {
            control.last = control.open.remove(place).filter(|_| is_complete);
        }
    }

    /// Returns the command to which the file of a data connection belongs: the oldest one without a last reply, or else the last one without a
    /// file.
    pub(super) fn of_data(&self, key: &FlowKey) -> Option<Transfer> {
        let is_data = |known: &&Control| known.ends.is_some_and(|ends| has_ends(&ends, key));
        let control = self.controls.iter().rfind(is_data)?;
        let has_file =
            |transfer: &&Transfer| control.files.iter().any(|(number, _)| *number == transfer.number);
        let open = control.open.iter().find(|transfer| !has_file(transfer));
        open.or_else(|| control.last.as_ref().filter(|last| !has_file(last))).cloned()
    }

    /// Notes a file that was transferred. Octets of the other direction are no file of the command.
    pub(super) fn transferred(&mut self, transfer: &Transfer, file: Transferred) {
        if file.role == transfer.sender()
            && let Some(control) = self.controls.iter_mut().rfind(|known| known.flow == transfer.control)
        {
            if control.files.len() >= TRANSFERS_MAX {
                control.files.pop_front();
            }
            control.files.push_back((transfer.number, file));
        }
    }

    /// Returns the file that a command of a control connection transferred.
    pub(super) fn file(&self, flow: FlowOrigin, number: u64) -> Option<Transferred> {
        let control = self.controls.iter().rfind(|known| known.flow == flow)?;
        control.files.iter().rfind(|(known, _)| *known == number).map(|(_, file)| *file)
    }
}

/// Returns whether a flow has announced ends, whichever side opened it.
fn has_ends(ends: &AnnouncedEnds, key: &FlowKey) -> bool {
    [Side::A, Side::B].iter().any(|side| ends.are_of(key, *side))
}
