//! From a frame to the IP packet in it.
//!
//! [`decapsulate`] walks the headers of one frame, through links and tunnels in any order, and says where its innermost
//! IP packet begins and what encloses it, or why there is none. It keeps nothing and allocates nothing; the cost is
//! linear in the number of headers, which [`Limits`](crate::base::Limits) bounds.
//!
//! For programs on TAP and TUN devices, [`ethernet_to_ip`] and [`ip_to_ethernet`] go between frames and packets in place,
//! and [`NeighbourTable`] finds the hardware address of a next hop, and answers those who look for ours.

mod addresses;
mod checksum;
mod encapsulation;
mod ethernet_header;
mod fragment_header;
mod ip;
mod layer2;
mod neighbour;
mod outcome;
mod policy;
mod start;
mod translate;
mod tunnels;
mod walk;

pub use addresses::MacAddresses;
pub use checksum::{Checksum, Checksums, checksums};
pub use encapsulation::{Encapsulation, EncapsulationHeader};
pub use ethernet_header::EthernetHeader;
pub use fragment_header::{FragmentHeader, fragment_header};
pub use ip::{IpHeader, ip_header};
pub use neighbour::{
    Heard, NeighbourConfig, NeighbourError, NeighbourFrame, NeighbourStats, NeighbourTable, Resolution,
};
pub(crate) use outcome::NoPacket;
pub use outcome::{Decapsulated, IpPacket, LinkInfo, Unsupported};
pub(crate) use policy::PortSet;
pub use policy::{Decapsulation, TunnelPorts, UdpTunnel};
pub use translate::{NoFrame, NotIp, ethernet_to_ip, ip_to_ethernet};
pub use walk::decapsulate;
pub(crate) use walk::{Entry, decapsulate_at, find_packet};

pub use crate::base::HeaderKind;
