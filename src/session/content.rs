//! Contents: the pieces of files that messages transfer, described in the same way by all protocols.

/// A piece of a file that a message transfers: of a body, a mail, or a file. The pieces of a file are in order, and each octet
/// is in one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'m> {
    /// Number of the file among those of its direction, such as that of the request with the body. 0 where the files of a
    /// direction follow each other, such as in a data connection of FTP.
    pub file: u64,
    /// Number of octets of the file before this piece, including missing ones.
    pub offset: u64,
    /// What the piece consists of.
    pub content: PieceContent<'m>,
}

/// What a [`Piece`] consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceContent<'m> {
    /// Octets of the file.
    Octets(&'m [u8]),
    /// This number of octets that were not captured.
    Gap(u64),
    /// The end of the file.
    End {
        /// True if the file ended as its framing specifies, and no octets are missing.
        is_complete: bool,
    },
}

impl<'m> Piece<'m> {
    /// Returns octets of a file.
    #[must_use]
    pub const fn octets(file: u64, offset: u64, octets: &'m [u8]) -> Self {
        Self { file, offset, content: PieceContent::Octets(octets) }
    }

    /// Returns octets of a file that were not captured.
    #[must_use]
    pub const fn gap(file: u64, offset: u64, len: u64) -> Self {
        Self { file, offset, content: PieceContent::Gap(len) }
    }

    /// Returns the end of a file of this length.
    #[must_use]
    pub const fn end(file: u64, len: u64, is_complete: bool) -> Self {
        Self { file, offset: len, content: PieceContent::End { is_complete } }
    }

    /// Returns whether the piece is not the end of its file.
    #[inline]
    #[must_use]
    pub const fn is_content(&self) -> bool {
        !matches!(self.content, PieceContent::End { .. })
    }
}
