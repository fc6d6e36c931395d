//! Errors of reads and writes.

use std::error::Error;
use std::fmt;

/// Error of a read; the read consumed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadError {
    /// Offset of the value in the input of the outermost reader, in octets.
    pub offset: usize,
    /// Number of octets that the value occupies, as far as it is known.
    pub required: usize,
    /// Number of octets that are left in the input or in the section.
    pub available: usize,
    /// What is wrong with these octets.
    pub problem: ReadProblem,
}

/// What is wrong with octets that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadProblem {
    /// There are fewer octets than required.
    Truncated,
    /// An octet that encodes a boolean is neither 0 nor 1.
    InvalidBool,
    /// A text is not UTF-8.
    InvalidUtf8,
    /// A number of variable length has more than 64 bits.
    TooLarge,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            ReadProblem::Truncated => "truncated",
            ReadProblem::InvalidBool => "a boolean that is neither 0 nor 1",
            ReadProblem::InvalidUtf8 => "a text that is not UTF-8",
            ReadProblem::TooLarge => "a number of more than 64 bits",
        };
        let Self { offset, required, available, .. } = self;
        write!(f, "{problem} at offset {offset}: {required} octets required, {available} available")
    }
}

impl Error for ReadError {}

/// Error of a write; the write changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteError {
    /// Number of octets that the writer had written before.
    pub offset: usize,
    /// Number of octets that the value occupies.
    pub required: usize,
    /// Number of octets that the buffer, the prefix or the padded field can contain.
    pub available: usize,
    /// Why the value cannot be written.
    pub problem: WriteProblem,
}

/// Why a value cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteProblem {
    /// The buffer of the caller is full.
    Full,
    /// The value is longer than its length prefix can express, or than its padded field.
    TooLong,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.problem {
            WriteProblem::Full => "buffer full",
            WriteProblem::TooLong => "value too long",
        };
        let Self { offset, required, available, .. } = self;
        write!(f, "{problem} at offset {offset}: {required} octets required, {available} available")
    }
}

impl Error for WriteError {}
