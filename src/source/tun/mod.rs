//! TUN and TAP devices (feature `tun`, Linux).

mod config;
mod device;
mod offload;
mod source;

use std::convert::Infallible;

use crate::wire::virtio_net::VirtioNet;

pub use config::{TunConfig, TunLayer};
pub use device::TunDevice;
pub use source::TunSource;

pub(crate) use device::{HEADROOM, Queue};
pub(crate) use offload::{SuperPacket, complete_checksum, ip_offset};

/// Calls `each` with the segments of a TUN packet behind the virtio-net header `header`. Returns false if the packet is
/// not a super-packet. For benchmarks.
#[doc(hidden)]
pub fn split_super_packet(
    header: &[u8],
    packet: &[u8],
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]),
) -> bool {
    let header = VirtioNet::read(header);
    let Some(segments) = header.and_then(|header| SuperPacket::new(packet, &header, false)) else {
        return false;
    };
    let each = |segment: &mut Vec<u8>| {
        each(segment);
        Ok::<_, Infallible>(())
    };
    segments.split(packet, buffer, each).is_some()
}
