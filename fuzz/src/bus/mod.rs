//! Targets of the bus, which is a crate of its own: its peers without the sockets.

mod router;
mod subscriber;

use crate::targets::Target;

pub const ALL: &[Target] = &[("subscriber", subscriber::run), ("router", router::run)];
