//! Direction of a pair of queues.

use std::sync::Arc;

use super::handler::DeviceSide;
use crate::source::tun::Queue;

/// Two queues, and the side of the first one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route<'a> {
    pub(super) from: &'a Arc<Queue>,
    pub(super) to: &'a Queue,
    pub(super) side: DeviceSide,
}
