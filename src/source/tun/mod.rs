//! TUN and TAP devices (feature `tun`, Linux).

mod config;
mod device;
mod offload;
mod source;

pub use config::{TunConfig, TunLayer};
pub use device::TunDevice;
pub use source::TunSource;

pub(crate) use device::{HEADROOM, Queue, now};
pub(crate) use offload::{SuperPacket, complete_checksum, ip_offset};
