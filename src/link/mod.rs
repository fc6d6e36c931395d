//! From a frame to the IP packet in it.
//!
//! [`decapsulate`] walks the link-layer headers of one frame and says where its IP packet begins, or why there is
//! none. It keeps nothing and allocates nothing; the cost is linear in the number of headers, which
//! [`Limits::vlan_tag_count_max`](crate::base::Limits) bounds.
//!
//! For programs on TAP and TUN devices, [`ethernet_to_ip`] and [`ip_to_ethernet`] go between frames and packets in place,
//! and [`NeighbourTable`] finds the hardware address of a next hop, and answers those who look for ours.

mod ethernet_header;
mod neighbour;
mod translate;
mod walk;

pub use ethernet_header::EthernetHeader;
pub use neighbour::{
    Heard, NeighbourConfig, NeighbourError, NeighbourFrame, NeighbourStats, NeighbourTable, Resolution,
};
pub use translate::{NoFrame, NotIp, ethernet_to_ip, ip_to_ethernet};
pub use walk::{Decapsulated, IpPacket, LinkInfo, MacAddresses, Unsupported, decapsulate};
