//! Numbers of a fixed width.

use super::error::{ReadError, WriteError};

/// What a number is read from: a [`Reader`](super::Reader).
pub trait ArraySource {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError>;
}

/// What a number is written to: a [`Writer`](super::Writer).
pub trait ArraySink {
    fn array<const N: usize>(&mut self, octets: [u8; N]) -> Result<(), WriteError>;
}

/// A number of a fixed width: `u8` to `u64`, `i8` to `i64`, `f32` or `f64`.
///
/// This trait is sealed.
pub trait Number: Copy + sealed::Sealed {
    /// Length of the encoding in octets.
    const LEN: usize;

    #[doc(hidden)]
    fn read_be(source: &mut impl ArraySource) -> Result<Self, ReadError>;

    #[doc(hidden)]
    fn read_le(source: &mut impl ArraySource) -> Result<Self, ReadError>;

    #[doc(hidden)]
    fn write_be(self, sink: &mut impl ArraySink) -> Result<(), WriteError>;

    #[doc(hidden)]
    fn write_le(self, sink: &mut impl ArraySink) -> Result<(), WriteError>;

    /// Writes the number to `octets` of exactly its length, in network order.
    #[doc(hidden)]
    fn put_be(self, octets: &mut [u8]);

    #[doc(hidden)]
    fn zero() -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty)+) => {$(
        impl sealed::Sealed for $number {}

        impl Number for $number {
            const LEN: usize = size_of::<Self>();

            #[inline(always)]
            fn read_be(source: &mut impl ArraySource) -> Result<Self, ReadError> {
                source.array().map(Self::from_be_bytes)
            }

            #[inline(always)]
            fn read_le(source: &mut impl ArraySource) -> Result<Self, ReadError> {
                source.array().map(Self::from_le_bytes)
            }

            #[inline(always)]
            fn write_be(self, sink: &mut impl ArraySink) -> Result<(), WriteError> {
                sink.array(self.to_be_bytes())
            }

            #[inline(always)]
            fn write_le(self, sink: &mut impl ArraySink) -> Result<(), WriteError> {
                sink.array(self.to_le_bytes())
            }

            #[inline(always)]
            fn put_be(self, octets: &mut [u8]) {
                octets.copy_from_slice(&self.to_be_bytes());
            }

            #[inline(always)]
            fn zero() -> Self {
                Self::default()
            }
        }
    )+};
}

numbers! { u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 }
