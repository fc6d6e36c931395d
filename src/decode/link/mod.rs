//! Decapsulation: finds the IP packet in a frame.
//!
//! [`decapsulate`] walks the headers of one frame, through links and tunnels in any order, and returns the
//! position of its innermost IP packet and its outer headers, or the reason that there is none. It keeps no
//! state and does not allocate; the cost is linear in the number of headers, which
//! [`Limits`](crate::base::Limits) bounds.

mod addresses;
mod checksum;
mod encapsulation;
mod fragment_header;
mod ip;
mod layer2;
mod outcome;
mod policy;
mod start;
mod tunnels;
mod walk;

pub use addresses::MacAddresses;
pub use checksum::{Checksum, Checksums, checksums};
pub use encapsulation::{Encapsulation, EncapsulationHeader};
pub(crate) use encapsulation::{Trail, Way};
pub(crate) use fragment_header::fragment_header;
pub use ip::IpHeader;
pub(crate) use ip::ip_header;
pub(crate) use outcome::NoPacket;
pub use outcome::{Decapsulated, IpPacket, LinkInfo, Unsupported};
pub(crate) use policy::PortSet;
pub use policy::{Decapsulation, TunnelPorts, UdpTunnel};
pub use walk::decapsulate;
pub(crate) use walk::{Entry, WalkSettings, find_packet};

pub use crate::base::HeaderKind;
