//! Matching of replies to commands in text protocols when octets are missing.

use crate::checkpoint::state;
use crate::session::Role;

/// The order of commands and replies in a text protocol, which determines whether the queue of commands that wait for
/// replies is correct.
///
/// After a gap it is not known which of the missing commands were answered. Most clients wait for a reply before the
/// next command, so a command that follows a reply is answered by the reply that comes next.
#[derive(Debug, Default)]
pub(super) struct ReplyOrder {
    last_from: Option<Role>,
    is_unpaired: bool,
    /// Number of final replies since the last command that answer no captured command.
    orphan_count: u8,
    /// True if the client's last gap contained one command, and the reply to it was seen before the gap was reported.
    is_gap_answered: bool,
}

state! { struct ReplyOrder { last_from, is_unpaired, orphan_count, is_gap_answered } }

impl ReplyOrder {
    /// Returns whether replies are currently matched to no command, so that the queue of commands is empty and remains
    /// empty.
    pub(super) const fn is_unpaired(&self) -> bool {
        self.is_unpaired
    }

    /// Records that the client sent a command. Matching starts again if the command follows a reply.
    pub(super) fn command(&mut self) {
        if self.last_from == Some(Role::Server) {
            self.is_unpaired = false;
        }
        self.last_from = Some(Role::Client);
        (self.orphan_count, self.is_gap_answered) = (0, false);
    }

    /// Records a reply of the server; `is_orphan` is true for a final reply while no command is queued.
    pub(super) const fn reply(&mut self, is_orphan: bool) {
        self.last_from = Some(Role::Server);
        self.orphan_count = self.orphan_count.saturating_add(is_orphan as u8);
    }

    /// Stops matching replies to commands until the client sends a command after a reply.
    pub(super) const fn lose(&mut self) {
        self.is_unpaired = true;
    }

    /// Records that octets of a direction are missing, and stops matching replies to commands.
    pub(super) const fn gap(&mut self, from: Role) {
        // The reassembler reports a gap later than the replies that arrived in the meantime. One of them is the reply
        // to the missing command; if there are more, the last ones may answer commands that are held behind the gap.
        self.is_gap_answered = matches!(from, Role::Client) && !self.is_unpaired && self.orphan_count == 1;
        self.is_unpaired = true;
        self.last_from = Some(from);
    }

    /// Records that the octets after the client's gap begin with a complete command, so that the gap contained complete
    /// commands.
    pub(super) fn command_after_gap(&mut self) {
        if std::mem::take(&mut self.is_gap_answered) {
            self.last_from = Some(Role::Server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_after_a_reply_is_paired_again() {
        let mut reply_order = ReplyOrder::default();
        reply_order.command();
        reply_order.gap(Role::Server);
        assert!(reply_order.is_unpaired());
        reply_order.command();
        assert!(!reply_order.is_unpaired(), "the missing reply belongs to the previous command");
        reply_order.lose();
        reply_order.command();
        assert!(reply_order.is_unpaired(), "commands in a row may be any number");
        reply_order.reply(true);
        reply_order.command();
        assert!(!reply_order.is_unpaired());
    }

    #[test]
    fn a_missing_command_is_inferred_from_its_reply() {
        // Number of replies that were seen before the gap was reported, and whether the command after it is matched.
        for (reply_count, is_paired) in [(0, false), (1, true), (2, false)] {
            let mut reply_order = ReplyOrder::default();
            reply_order.command();
            reply_order.reply(false);
            (0..reply_count).for_each(|_| reply_order.reply(true));
            reply_order.gap(Role::Client);
            reply_order.command_after_gap();
            reply_order.command();
            assert_eq!(!reply_order.is_unpaired(), is_paired, "{reply_count} replies");
        }
    }
}
