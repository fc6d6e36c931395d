//! Every cap in the crate in one place.

/// Every cap, with its default. What happens when one is reached is said beside it, and counted there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Memory of all layers together in bytes, as the [`Budget`](super::Budget) accounts it. Nearly reached: layers give
    /// way in the order of [`Account`](super::Account). Reached: the tracker evicts a flow for each new one. Default 1 GiB.
    pub total_bytes_max: u64,
    /// Open flows. Reached: each new flow evicts one, in the order that the tracker documents. A flow costs 248
    /// bytes and the caller's state (1 byte for none), and its place in the index 6 to 13 bytes. Default 1,048,576:
    /// some 260 MiB.
    pub flow_count_max: u32,
    /// Flow records of TCP with retransmissions, holes or resets keep 160 bytes more, taken from
    /// `total_bytes_max`; without room for them those segments are still counted as packets and octets.
    pub tcp_extra_count_max: u32,
    /// Open flows of which the encapsulation is kept, or what they carry, if that was asked for. Each costs 184 bytes, 16
    /// and 40 a header for either side that is in a tunnel, and a TCP extra as above. Reached: the packets of further flows
    /// count, and their encapsulation is not known. Default 1,048,576.
    pub enclosure_count_max: u32,
    /// Datagrams of which fragments wait, and tombstones of discarded ones. Reached: the oldest goes for each new one.
    /// Each costs about 700 bytes, and a kibibyte per kibioctet of payload that fragments touch; its place 128 bytes.
    /// Default 8192.
    pub fragment_datagram_count_max: u32,
    /// Memory of the fragments that wait, in bytes as allocated. Reached: the oldest datagrams go. Default 32 MiB.
    pub fragment_bytes_max: u64,
    /// Fragments of one datagram, duplicates too. Reached: the datagram is discarded. Costs the size of the caller's tag
    /// each. Default 2048; the longest datagram at the least MTU of IPv4 has 1365.
    pub fragment_per_datagram_count_max: u32,
    /// Memory of the segments that wait behind holes, of all streams together, in bytes as allocated. Nearly reached: the
    /// stream that waits longest gives up its hole. Reached: the overflow policy. Default 256 MiB.
    pub stream_bytes_max: u64,
    /// The same of one side of a connection: blocks of 2 KiB and 48 bytes per piece. Reached: the overflow policy, by default
    /// the first hole is given up as a gap. Default 4 MiB.
    pub stream_side_bytes_max: u64,
    /// Pieces of segments that one side holds. Reached: the overflow policy. Default 2048.
    pub stream_side_segment_count_max: u32,
    /// Memory of sessions in bytes as allocated: parsers, what they keep, octets of incomplete messages. Reached: the parser that
    /// asks for more is dropped, and the flow goes on without; from seven eighths on, one that waits for more than 4 KiB. Default
    /// 128 MiB.
    pub session_bytes_max: u64,
    /// Octets of an incomplete message that are kept for a parser, of one direction. Beyond: the parser is dropped. Default
    /// 64 KiB; the longest record of TLS is 16 KiB and 261 octets.
    pub session_side_bytes_max: u32,
    /// Frames that a window of [`dedup`](crate::dedup) remembers. Reached: the oldest goes for each new one. Each costs 56
    /// bytes, and 24 more if octets are compared, in a ring of a power of two. Default 16,384: 896 KiB.
    pub dedup_frame_count_max: u32,
    /// Octets that such a window keeps to compare, if that is asked for. Reached: the oldest go, and what repeats them is kept
    /// and counted. Costs itself. Default 4 MiB.
    pub dedup_bytes_max: u64,
    /// VLAN tags walked in a frame. Reached: the frame is malformed (`too_deep`). Default 8.
    pub vlan_tag_count_max: u32,
    /// MPLS labels walked in one stack. Reached: the frame is malformed (`too_deep`), or inside a tunnel the enclosing
    /// packet counts. Default 16.
    pub mpls_label_count_max: u32,
    /// Encapsulations walked in a frame, one inside the other: IP in IP, VXLAN, PPPoE, a label stack, each is one.
    /// Reached: the innermost IP packet so far counts, marked `TOO_DEEP`; without one, the frame is malformed
    /// (`too_deep`). Default 8.
    pub encapsulation_depth_max: u32,
    /// IPv6 extension headers walked in a packet. Reached: malformed (`too_deep`). Default 16.
    pub ip_extension_count_max: u32,
    /// Octets of a captured frame that a file may claim. Beyond: the block is bad and reading ends with a
    /// warning there. Default 262,144, which is libpcap's own; jumbo frames and loopback fit.
    pub frame_len_max: u32,
    /// Octets that a source reads at once: small enough for the second-level cache. A block of a pcapng file
    /// that exceeds it makes the batch grow up to `block_len_max`. Default 256 KiB.
    pub batch_len: u32,
    /// Octets of one pcapng block. Beyond: bad block, reading ends with a warning there. Default 16 MiB.
    pub block_len_max: u32,
    /// Interfaces that one section of a pcapng file may describe, and different ones of all captures that are read together.
    /// Beyond, in a section: as a bad block. Beyond, of all: all further ones are one without a name. Default 65,536.
    pub interface_count_max: u32,
    /// Memory of the captures that are read together, in bytes as allocated: blocks, windows of decompressors, descriptions of
    /// interfaces. At most a quarter of the budget. Nearly reached: shorter blocks, and interfaces without their names. Reached:
    /// an error for the capture that needs more. Default 256 MiB.
    pub source_bytes_max: u64,
    /// The longest window of a zstd frame, in bytes: what its decoder has to keep of what it wrote. Beyond: an error for the
    /// capture. Default 8 MiB, which RFC 8878 section 3.1.1.1.2 asks decoders to support.
    pub zstd_window_len_max: u32,
    /// Files that a merge of several keeps open at once. Reached: an uncompressed file is closed and opened again
    /// where it was left; a compressed one cannot be, and the merge ends with an error. Default 128.
    pub open_file_count_max: u32,
    /// Neighbours that a [`NeighbourTable`](crate::link::NeighbourTable) knows. Reached: the least recently used
    /// makes room. A neighbour costs about 120 bytes. Default 1024: 120 KiB.
    pub neighbour_count_max: u32,
    /// Requests of a neighbour table that wait for a reply. Reached: the oldest makes room, and its reply comes too
    /// late. A request costs about 120 bytes. Default 1024: 120 KiB.
    pub neighbour_request_count_max: u32,
}

impl Limits {
    /// The defaults named at each field.
    pub const DEFAULT: Self = Self {
        total_bytes_max: 1 << 30,
        flow_count_max: 1 << 20,
        tcp_extra_count_max: 1 << 20,
        enclosure_count_max: 1 << 20,
        fragment_datagram_count_max: 8192,
        fragment_bytes_max: 32 << 20,
        fragment_per_datagram_count_max: 2048,
        stream_bytes_max: 256 << 20,
        stream_side_bytes_max: 4 << 20,
        stream_side_segment_count_max: 2048,
        session_bytes_max: 128 << 20,
        session_side_bytes_max: 64 << 10,
        dedup_frame_count_max: 16_384,
        dedup_bytes_max: 4 << 20,
        vlan_tag_count_max: 8,
        mpls_label_count_max: 16,
        encapsulation_depth_max: 8,
        ip_extension_count_max: 16,
        frame_len_max: 262_144,
        batch_len: 256 << 10,
        block_len_max: 16 << 20,
        interface_count_max: 65_536,
        source_bytes_max: 256 << 20,
        zstd_window_len_max: 8 << 20,
        open_file_count_max: 128,
        neighbour_count_max: 1024,
        neighbour_request_count_max: 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
