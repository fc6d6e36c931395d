//! Decapsulation: finds the IP packet in a frame.
//!
//! [`decapsulate`] walks the headers of one frame, through links and tunnels in any order, and returns the
//! position of its innermost IP packet, or the reason that there is none. It keeps no state and does not
//! allocate; the cost is linear in the number of headers, which [`Limits`](crate::base::Limits) bounds.
//! [`encapsulation`](fn@encapsulation) returns the headers around that packet.
//!
//! A program that needs only the position of the IP packet, or the protocols of frames without one, can call it alone:
//!
//! ```
//! use flowgauge::base::{EtherType, FrameBatch, Limits};
//! use flowgauge::decode::link::{Decapsulated, Decapsulation, TunnelPorts, Unsupported, decapsulate};
//! use flowgauge::source::{FileSource, Source};
//!
//! let (mut packet_count, mut arp_count) = (0, 0);
//! let mut source = FileSource::open("examples/data/web.pcap")?;
//! let mut batch = FrameBatch::new();
//! while !source.next_batch(&mut batch)?.is_end() {
//!     for frame in batch.iter() {
//!         match decapsulate(&frame, Decapsulation::Innermost, &TunnelPorts::DEFAULT, &Limits::DEFAULT) {
//!             Decapsulated::Packet(packet) if packet.offset == 14 => packet_count += 1,
//!             Decapsulated::Unsupported(Unsupported::EtherType(EtherType::ARP)) => arp_count += 1,
//!             other => panic!("{other:?}"),
//!         }
//!     }
//! }
//! assert_eq!((packet_count, arp_count), (1284, 2));
//! # Ok::<(), flowgauge::source::Error>(())
//! ```

mod addresses;
mod aggregate;
mod checksum;
mod encapsulation;
mod fragment_header;
mod ip;
mod layer2;
mod other_tunnels;
mod outcome;
mod policy;
mod start;
mod tunnels;
mod walk;

pub use crate::base::MacAddresses;
pub use aggregate::{Aggregated, aggregated};
pub use checksum::{Checksum, Checksums, checksums};
pub(crate) use encapsulation::{FrameEncapsulation, HeaderPosition, HeaderRecorder};
pub(crate) use fragment_header::fragment_header;
pub use ip::IpHeader;
pub(crate) use ip::ip_header;
pub use outcome::{Decapsulated, IpPacket, LinkInfo, Unsupported};
pub(crate) use outcome::{NoPacket, OtherPayload, Walked};
pub(crate) use policy::PortSet;
pub use policy::{Decapsulation, TunnelPorts, UdpTunnel};
pub(crate) use walk::{Entry, WalkSettings, find_packet};
pub use walk::{decapsulate, encapsulation};

pub use crate::base::HeaderKind;
