//! Decapsulation: finds the IP packet in a frame.
//!
//! [`decapsulate`] walks the headers of one frame, through links and tunnels in any order, and returns the
//! position of its innermost IP packet, or the reason that there is none. It keeps no state and does not
//! allocate; the cost is linear in the number of headers, which [`Limits`](crate::base::Limits) bounds.
//! [`encapsulation`](fn@encapsulation) returns the headers around that packet.

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
pub(crate) use encapsulation::{FrameEncapsulation, HeaderPosition, HeaderRecorder};
pub(crate) use fragment_header::fragment_header;
pub use ip::IpHeader;
pub(crate) use ip::ip_header;
pub use outcome::{Decapsulated, IpPacket, LinkInfo, Unsupported};
pub(crate) use outcome::{NoPacket, Walked};
pub(crate) use policy::PortSet;
pub use policy::{Decapsulation, TunnelPorts, UdpTunnel};
pub(crate) use walk::{Entry, WalkSettings, find_packet};
pub use walk::{decapsulate, encapsulation};

pub use crate::base::HeaderKind;
