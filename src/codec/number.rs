//! Numbers of a fixed width.

use super::buffer::Buffer;
use super::error::{ReadError, WriteError};
use super::reader::Reader;
use super::writer::Writer;

/// A number of a fixed width: `u8` to `u64`, `i8` to `i64`, `f32` or `f64`.
///
/// This trait is sealed.
pub trait Number: Copy + sealed::Sealed {
    /// Length of the encoding in octets.
    const LEN: usize;

    #[doc(hidden)]
    fn read_be(reader: &mut Reader<'_>) -> Result<Self, ReadError>;

    #[doc(hidden)]
    fn read_le(reader: &mut Reader<'_>) -> Result<Self, ReadError>;

    #[doc(hidden)]
    fn write_be<B: Buffer>(self, writer: &mut Writer<B>) -> Result<(), WriteError>;

    #[doc(hidden)]
    fn write_le<B: Buffer>(self, writer: &mut Writer<B>) -> Result<(), WriteError>;

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
            fn read_be(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
                reader.array().map(Self::from_be_bytes)
            }

            #[inline(always)]
            fn read_le(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
                reader.array().map(Self::from_le_bytes)
            }

            #[inline(always)]
            fn write_be<B: Buffer>(self, writer: &mut Writer<B>) -> Result<(), WriteError> {
                writer.array(self.to_be_bytes())
            }

            #[inline(always)]
            fn write_le<B: Buffer>(self, writer: &mut Writer<B>) -> Result<(), WriteError> {
                writer.array(self.to_le_bytes())
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
