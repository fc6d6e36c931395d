//! Remote mirroring by switches of HP, which carries Ethernet frames over UDP.

/// Length in octets of the header before the frame, whose fields are not published.
pub(crate) const HEADER_LEN: usize = 12;
