//! Exchanges whose messages are in several flows, as those of DHCP: a server answers by broadcast.

use std::net::IpAddr;

use super::message::Declared;

/// A value of an exchange that its messages may have.
pub(crate) trait TakeFrom {
    /// Sets the value to that of a message, if it has one.
    fn take_from(&mut self, value: &Self);
}

impl<T: Clone> TakeFrom for Option<T> {
    fn take_from(&mut self, value: &Self) {
        if value.is_some() {
            self.clone_from(value);
        }
    }
}

/// What a message is for its exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A message of the client that a server answers, with the number of its kind.
    Request(u8),
    /// A message of the client that is not answered.
    Statement,
    /// An answer, after which the client may send further requests.
    Answer,
    /// The last answer.
    Decision,
    /// A message with which the server begins.
    Announcement,
}

/// The row of an exchange across flows, which is made of the rows of its messages.
pub(crate) trait Crossing: Declared {
    /// The row of a message.
    type Part: 'static;

    /// Returns what the messages of an exchange have in common, as a number; `None` if a message states nothing of the kind.
    fn key(part: &Self::Part) -> Option<u64>;

    /// Returns what a message is for its exchange.
    fn turn(part: &Self::Part) -> Turn;

    /// Adds a message. `ends` are the addresses of client and server in the flow of the message.
    fn add(&mut self, part: &Self::Part, ends: [IpAddr; 2]);
}
