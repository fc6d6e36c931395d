//! Reasons for which a header block cannot be decoded.

/// Reason for which a header block, and all later ones of the same direction, cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocols::http2) enum HpackError {
    /// The block ends within a field.
    Truncated,
    /// A number is longer than any valid length, index or size.
    Integer,
    /// A string is not valid in the Huffman code.
    Huffman,
    /// An index is neither in the static nor in the dynamic table.
    Index,
    /// A change of the dynamic table's size follows a field of the block.
    LateResize,
    /// The new size of the dynamic table exceeds its maximum.
    TableTooLong,
    /// The decoded fields exceed [`Limits::list_len_max`](super::Limits::list_len_max), or their maximum number.
    ListTooLong,
}
