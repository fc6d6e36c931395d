//! The interface on which frames were captured.

use super::pcapng::TimeResolution;
use crate::base::LinkType;

/// Description of an interface on which frames were captured, as recorded in the capture.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Interface {
    /// Name of the interface, such as `eth0` (pcapng if_name); truncated to 255 octets.
    pub name: Option<String>,
    /// Description of the interface (pcapng if_description); truncated to 255 octets.
    pub description: Option<String>,
    /// Type of the link header at the start of the interface's frames. Unregistered values are kept
    /// unchanged.
    pub link_type: LinkType,
    /// Unit of the interface's timestamps in the file. The timestamps of [frames](crate::base::Frame) are
    /// always in nanoseconds.
    pub resolution: TimeResolution,
    /// Maximum number of octets per frame that the capture kept (the snap length), if it is recorded.
    pub snap_len: Option<u32>,
    /// Length of the frame check sequence at the end of each frame, in octets, if a classic pcap header
    /// contains it. The frame check sequence remains in the frames: the lengths of the inner protocols
    /// distinguish it from payload.
    pub fcs_len: Option<u8>,
}

impl Interface {
    /// Creates an interface with a link type and timestamps in microseconds, without a name and other fields.
    #[must_use]
    pub const fn new(link_type: LinkType) -> Self {
        Self {
            name: None,
            description: None,
            link_type,
            resolution: TimeResolution::MICROSECONDS,
            snap_len: None,
            fcs_len: None,
        }
    }
}
