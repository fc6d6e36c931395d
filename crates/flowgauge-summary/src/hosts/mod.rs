//! What is known of each host: its MAC address, names, operating system, services and users, with where each comes from.

mod host;
mod learn;
mod row;
mod system;
mod vendor;

pub use host::{Host, HostName, HostService, HostSystem, HostUser, Hosts, Source};
pub use row::HostRow;
pub use vendor::vendor;
