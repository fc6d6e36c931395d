//! Configuration of a TUN or TAP device.

use crate::base::Limits;

/// Kind of packets that a device carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TunLayer {
    /// TUN: IP packets. This is the default.
    #[default]
    Ip,
    /// TAP: Ethernet frames.
    Ethernet,
}

crate::base::configuration! {
    /// Configuration of a TUN or TAP device.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TunConfig {
        /// Kind of packets: TUN or TAP. The default is TUN.
        pub layer: TunLayer,
        /// True to exchange super-packets with the kernel (`IFF_VNET_HDR` with segmentation offload), of up to 64 KiB each.
        /// The default is true.
        pub offload: bool,
        /// Number of queues, from 1 to 256. With more than one, the kernel distributes flows over them by a hash
        /// (`IFF_MULTI_QUEUE`). The default is 1.
        pub queue_count: u16,
        /// True to create the interface if there is none with the name; it exists until it is closed. If false, an unknown
        /// interface is an error. The default is true.
        pub create: bool,
        /// MTU to set, in octets. The default is `None`, which leaves it unchanged.
        pub mtu: Option<u16>,
        /// True to set the interface up. The default is false, because an interface is usually given addresses, or moved to
        /// another network namespace, before.
        pub up: bool,
        /// Maximum length of a packet or frame in octets, without the virtio-net header, up to 1 MiB. A longer one is
        /// dropped and counted ([`SourceStats::oversized_frame_count`](crate::source::SourceStats::oversized_frame_count)).
        /// The default is 65,597: the longest IPv6 packet that is not a jumbogram, and an Ethernet header with two VLAN
        /// tags.
        pub packet_len_max: u32,
        /// Number of octets after which a batch is full, up to 64 MiB. A batch holds at least one packet of the maximum
        /// length. The default is that of [`Limits`].
        pub batch_len: u32,
    }
}

impl Default for TunConfig {
    fn default() -> Self {
        Self {
            layer: TunLayer::Ip,
            offload: true,
            queue_count: 1,
            create: true,
            mtu: None,
            up: false,
            packet_len_max: 40 + 65_535 + 22,
            batch_len: Limits::DEFAULT.batch_len,
        }
    }
}
