//! From a frame to the IP packet in it.
//!
//! [`decapsulate`] walks the link-layer headers of one frame and says where its IP packet begins, or why there is
//! none. It keeps nothing and allocates nothing; the cost is linear in the number of headers, which
//! [`Limits::vlan_tag_count_max`](crate::base::Limits) bounds.

mod walk;

pub use walk::{Decapsulated, IpPacket, LinkInfo, MacAddresses, Unsupported, decapsulate};
