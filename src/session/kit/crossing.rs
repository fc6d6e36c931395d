//! Exchanges whose messages are in several flows, as those of DHCP: a server answers by broadcast.

use std::net::IpAddr;

use super::message::Declared;
use crate::session::Lack;

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

/// The row of an exchange across flows, which is made of the rows of its messages.
pub(crate) trait Crossing: Declared {
    /// The row of a message.
    type Part: 'static;

    /// Returns what the messages of an exchange have in common, as a number.
    fn key(part: &Self::Part) -> u64;

    /// Adds a message. `ends` are the addresses of client and server in the flow of the message.
    fn add(&mut self, part: &Self::Part, ends: [IpAddr; 2]);

    /// Returns what was not captured.
    fn lack(&self) -> Option<Lack>;
}
