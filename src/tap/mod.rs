//! Ethernet frames and IP packets for programs on TAP and TUN devices.
//!
//! [`ethernet_to_ip`] and [`ip_to_ethernet`] convert between frames and packets in place. A [`NeighborTable`] resolves the hardware
//! address of a next hop and answers requests for the local addresses.
//!
//! A program that forwards packets from a TUN device to a TAP device writes the Ethernet header in front of each
//! packet:
//!
//! ```
//! use flowgauge::base::VlanIds;
//! use flowgauge::tap::{EthernetHeader, ethernet_to_ip, ip_to_ethernet};
//!
//! // The packet is read to an offset, so that the header fits in front of it.
//! let mut buffer = [0; 64];
//! let offset = EthernetHeader::LEN_MAX;
//! buffer[offset..offset + 4].copy_from_slice(&[0x45, 0, 0, 20]);
//! let header = EthernetHeader::new([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], VlanIds::NONE);
//! let frame = ip_to_ethernet(&mut buffer, offset, &header)?;
//! assert_eq!(frame.len(), 14 + 20);
//! assert_eq!(ethernet_to_ip(frame)?.len(), 20);
//! # Ok::<(), flowgauge::tap::NoFrame>(())
//! ```

mod ethernet_header;
mod neighbor;
mod translate;

pub use ethernet_header::EthernetHeader;
pub use neighbor::{
    NeighborConfig, NeighborError, NeighborEvent, NeighborFrame, NeighborStats, NeighborTable, Resolution,
};
pub use translate::{NoFrame, NotIp, ethernet_to_ip, ip_to_ethernet};
