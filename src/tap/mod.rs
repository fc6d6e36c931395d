//! Ethernet frames and IP packets for programs on TAP and TUN devices.
//!
//! [`ethernet_to_ip`] and [`ip_to_ethernet`] convert between frames and packets in place. A [`NeighborTable`] resolves the hardware
//! address of a next hop and answers requests for the local addresses.

mod ethernet_header;
mod neighbor;
mod translate;

pub use ethernet_header::EthernetHeader;
pub use neighbor::{
    NeighborConfig, NeighborError, NeighborEvent, NeighborFrame, NeighborStats, NeighborTable, Resolution,
};
pub use translate::{NoFrame, NotIp, ethernet_to_ip, ip_to_ethernet};
