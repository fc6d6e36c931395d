//! Declared formats: heads with fixed fields, and numbers with names.

use crate::codec::{ReadError, Reader};

/// A field of a declared head.
pub(crate) trait Wire: Sized {
    /// Reads the field in network order.
    fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError>;
}

macro_rules! numbers {
    ($($type:ty),+) => {$(
        impl Wire for $type {
            #[inline]
            fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
                reader.be()
            }
        }
    )+};
}

numbers! { u8, u16, u32, u64 }

impl<const N: usize> Wire for [u8; N] {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        reader.array()
    }
}

/// Declares a head: fields in their order, in network order, without padding.
macro_rules! wire {
    ($(#[$meta:meta])* struct $name:ident { $($field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        #[allow(dead_code, reason = "fields that nobody reads keep the format complete")]
        struct $name { $($field: $type),* }

        impl $crate::session::kit::Wire for $name {
            #[inline]
            fn read(reader: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::codec::ReadError> {
                Ok(Self { $($field: $crate::session::kit::Wire::read(reader)?),* })
            }
        }
    };
}
pub(crate) use wire;

/// Declares a number of which some values have names: a column has the name, or else the number.
macro_rules! names {
    ($(#[$meta:meta])* pub struct $name:ident: $type:ty { $($value:literal => $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name(pub $type);

        impl $name {
            /// Returns the name of the number, if it has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $value => Some($text), )+
                    _ => None,
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => self.0.fmt(f),
                }
            }
        }

        $crate::row::cells! { registered $name; }
        $crate::checkpoint::state! { numbers $name }
        impl $crate::session::kit::Measured for $name {}
    };
}
pub(crate) use names;
