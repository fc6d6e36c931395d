//! Every limit in the crate in one place.

/// Every limit, with its default. Each field documents the effect of reaching it; each effect is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Memory of all layers together in bytes, as charged to the [`Budget`](super::Budget). Nearly reached: layers
    /// release memory in the order of [`Account`](super::Account). Reached: the tracker evicts a flow for each new
    /// one. Default 1 GiB.
    pub total_bytes_max: u64,
    /// Open flows. Reached: each new flow evicts one, in the order that the tracker documents. A flow costs 248 bytes
    /// plus the caller's state (1 byte if empty), and 6 to 13 bytes in the index. Default 1,048,576: some 260 MiB.
    pub flow_count_max: u32,
    /// TCP flows with additional state for retransmissions, holes or resets. Each costs 160 bytes more, taken from
    /// `total_bytes_max`; without memory for the state, those segments are still counted as packets and octets.
    pub tcp_extra_count_max: u32,
    /// Open flows with a stored encapsulation, or counters of the tunneled packets that they carry, if requested.
    /// Each costs 176 bytes, plus 16 bytes and 40 per header for each side that is in a tunnel, plus the 160 bytes of
    /// [`tcp_extra_count_max`](Self::tcp_extra_count_max). Reached: the packets of further flows are counted, but
    /// their encapsulation is unknown. Default 1,048,576.
    pub encapsulation_count_max: u32,
    /// Incomplete datagrams, and tombstones of discarded ones. Reached: the oldest is discarded for each new one.
    /// Each costs about 700 bytes, plus a kibibyte per kibioctet of payload that fragments touch, plus 128 bytes for
    /// its table entry. Default 8192.
    pub fragment_datagram_count_max: u32,
    /// Memory of waiting fragments, in bytes as allocated. Reached: the oldest datagrams are discarded. Default 32
    /// MiB.
    pub fragment_bytes_max: u64,
    /// Fragments of one datagram, including duplicates. Reached: the datagram is discarded. Each costs the size of
    /// the caller's tag. Default 2048; the longest datagram at the minimum MTU of IPv4 has 1365.
    pub fragment_per_datagram_count_max: u32,
    /// Memory of the segments that wait behind holes, of all streams together, in bytes as allocated. Nearly reached:
    /// the hole of the stream that has waited longest is skipped. Reached: the overflow policy applies. Default 256
    /// MiB.
    pub stream_bytes_max: u64,
    /// Memory of the segments that wait behind holes of one side of a connection, in bytes: blocks of 2 KiB, and 48
    /// bytes per piece. Reached: the overflow policy applies; by default the first hole is skipped and reported as a
    /// gap. Default 4 MiB.
    pub stream_side_bytes_max: u64,
    /// Number of pieces of segments that wait behind holes of one side of a connection. Reached: the overflow policy
    /// applies. Default 2048.
    pub stream_side_segment_count_max: u32,
    /// Memory of sessions in bytes as allocated: parsers, their state, octets of incomplete messages. Above seven
    /// eighths: between groups of 32 packets, the sessions with the oldest charge are closed, and no incomplete
    /// message longer than 4 KiB is kept. Reached within a group: the parser that needs more is dropped, and the flow
    /// continues without it. Default 128 MiB.
    pub session_bytes_max: u64,
    /// Octets of an incomplete message that are kept for a parser, per direction, unless its
    /// [protocol](crate::session::Protocol::with_message_len_max) allows more. Exceeded: the parser is dropped. Default
    /// 64 KiB; the longest record of TLS is 16 KiB and 261 octets.
    pub session_side_bytes_max: u32,
    /// Frames that a window of [`dedup`](crate::dedup) remembers. Reached: the oldest is overwritten by each new one.
    /// Each costs 56 bytes, plus 24 if octets are compared, in a ring whose size is a power of two. Default 16,384:
    /// 896 KiB.
    pub dedup_frame_count_max: u32,
    /// Octets that a window of [`dedup`](crate::dedup) keeps for comparison, if requested. Reached: the oldest are
    /// overwritten, and frames that repeat them are kept and counted. Costs one byte per octet. Default 4 MiB.
    pub dedup_bytes_max: u64,
    /// VLAN tags parsed in a frame. Exceeded: the frame is malformed (`too_deep`). Default 8.
    pub vlan_tag_count_max: u32,
    /// MPLS labels parsed in one stack. Exceeded: the frame is malformed (`too_deep`), or, inside a tunnel, the outer
    /// packet is counted instead. Default 16.
    pub mpls_label_count_max: u32,
    /// Nested encapsulations parsed in a frame: IP in IP, VXLAN, PPPoE and a label stack are one each. Exceeded: the
    /// innermost IP packet so far is counted, marked `TOO_DEEP`; without one, the frame is malformed (`too_deep`).
    /// Default 8.
    pub encapsulation_depth_max: u32,
    /// IPv6 extension headers parsed in a packet. Exceeded: the frame is malformed (`too_deep`). Default 16.
    pub ip_extension_count_max: u32,
    /// Captured length of a frame in a file, in octets. Exceeded: the block is invalid, and reading ends there with a
    /// warning. Default 262,144, the limit of libpcap; jumbo frames and loopback frames fit.
    pub frame_len_max: u32,
    /// Octets that a source reads at once: small enough for the second-level cache. For a larger block of a pcapng
    /// file, the batch grows up to `block_len_max`. Default 256 KiB.
    pub batch_len: u32,
    /// Octets of one pcapng block. Exceeded: the block is invalid, and reading ends there with a warning. Default 16
    /// MiB.
    pub block_len_max: u32,
    /// Interfaces that one section of a pcapng file may describe, and distinct interfaces of all captures that are
    /// read together. Exceeded in a section: treated as an invalid block. Exceeded in total: all further interfaces
    /// share one number without a name. Default 65,536.
    pub interface_count_max: u32,
    /// Memory of the captures that are read together, in bytes as allocated: blocks, windows of decompressors,
    /// descriptions of interfaces. At most a quarter of the budget. Nearly reached: blocks are shorter, and
    /// interfaces have no names. Reached: an error for the capture that needs more. Default 256 MiB.
    pub source_bytes_max: u64,
    /// The longest window of a zstd frame, in bytes: the decompressed data that the decoder must keep. Exceeded: an
    /// error for the capture. Default 8 MiB, the size that RFC 8878 section 3.1.1.1.2 recommends decoders to support.
    pub zstd_window_len_max: u32,
    /// Files that a merge keeps open at once. Reached: an uncompressed file is closed, and later opened again at the
    /// same offset; this is impossible for a compressed one, so the merge ends with an error. Default 128.
    pub open_file_count_max: u32,
    /// Entries of a [`NeighborTable`](crate::tap::NeighborTable). Reached: the least recently used one is evicted. A
    /// neighbor costs up to 160 bytes. Default 1024: 160 KiB.
    pub neighbor_count_max: u32,
    /// Requests of a neighbor table that wait for a reply. Reached: the oldest is evicted, and its reply is treated
    /// as late. A request costs up to 160 bytes. Default 1024: 160 KiB.
    pub neighbor_request_count_max: u32,
}

impl Limits {
    /// The limits with the default that each field documents.
    pub const DEFAULT: Self = Self {
        total_bytes_max: 1 << 30,
        flow_count_max: 1 << 20,
        tcp_extra_count_max: 1 << 20,
        encapsulation_count_max: 1 << 20,
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
        neighbor_count_max: 1024,
        neighbor_request_count_max: 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
