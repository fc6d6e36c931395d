//! From a frame to the IP packet in it.
//!
//! [`decapsulate`] walks the headers of one frame, through links and tunnels in any order, and says where its innermost
//! IP packet begins and what encloses it, or why there is none. It keeps nothing and allocates nothing; the cost is
//! linear in the number of headers, which [`Limits`](crate::base::Limits) bounds.

mod addresses;
mod encapsulation;
mod ip;
mod layer2;
mod outcome;
mod policy;
mod start;
mod tunnels;
mod walk;

pub use addresses::MacAddresses;
pub use encapsulation::{Encapsulation, EncapsulationHeader, HeaderKind};
pub use ip::{IpHeader, ip_header};
pub use outcome::{Decapsulated, IpPacket, LinkInfo, Unsupported};
pub(crate) use policy::PortSet;
pub use policy::{Decapsulation, TunnelPorts, UdpTunnel};
pub use walk::decapsulate;
