//! Values in a checkpoint: of common types, and structs and enums by their parts.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::error::Invalid;
use super::state::StateWriter;
use super::value::{number, read_key, read_side, write_key, write_side};
use crate::base::{FlowKey, Side, Timestamp};
use crate::codec::Reader;

/// Maximum number of elements of a list, so that a short checkpoint does not take much memory.
const LIST_LEN_MAX: usize = 1 << 17;

/// A value in a checkpoint. It has the methods of [`State`](super::State), which is for types of the caller.
pub(crate) trait Saved: Sized {
    /// Writes the value.
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid>;

    /// Reads the value, which may be anything.
    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid>;
}

/// Upper bound of a number that its owner increments without a check for an overflow.
#[cfg(feature = "protocols")]
pub(crate) const COUNT_MAX: u64 = 1 << 60;

/// Implements [`Saved`] for a struct by its fields, or for an enum by the numbers of its variants and their fields.
///
/// All fields must be listed, in the order in which they are saved. `field as module` names the module with the functions
/// `save` and `load` for it. Fields behind `..` are not saved; they are restored as their defaults. A function behind `if`
/// may correct what was read, and returns whether it is possible.
macro_rules! state {
    (
        struct $name:ident { $($field:ident $(as $with:ident)?),* $(,)? $(.. $($skipped:ident),+ $(,)?)? }
        $(if $check:expr)?
    ) => {
        impl $crate::checkpoint::Saved for $name {
            fn save(&self, _out: &mut $crate::checkpoint::StateWriter<'_>) -> Result<(), $crate::checkpoint::Invalid> {
                let Self { $($field,)* $($($skipped: _,)+)? } = self;
                $($crate::checkpoint::state!(@save $field, _out $(, $with)?)?;)*
                Ok(())
            }

            fn load(_reader: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::checkpoint::Invalid> {
                #[allow(unused_mut, reason = "not all are corrected")]
                let mut value = Self {
                    $($field: $crate::checkpoint::state!(@load _reader $(, $with)?)?,)*
                    $($($skipped: Default::default(),)+)?
                };
                $(
                    let check: fn(&mut Self) -> bool = $check;
                    if !check(&mut value) {
                        return Err($crate::checkpoint::Invalid::new(concat!("impossible values of ", stringify!($name))));
                    }
                )?
                Ok(value)
            }
        }
    };
    (enum $name:ident {
        $($number:literal = $variant:ident $(($($part:ident),+))? $({ $($field:ident),+ })?),+ $(,)?
    }) => {
        impl $crate::checkpoint::Saved for $name {
            fn save(&self, out: &mut $crate::checkpoint::StateWriter<'_>) -> Result<(), $crate::checkpoint::Invalid> {
                match self {
                    $(Self::$variant $(($($part),+))? $({ $($field),+ })? => {
                        out.array([$number])?;
                        $($($crate::checkpoint::Saved::save($part, out)?;)+)?
                        $($($crate::checkpoint::Saved::save($field, out)?;)+)?
                    })+
                }
                Ok(())
            }

            fn load(reader: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::checkpoint::Invalid> {
                Ok(match reader.be::<u8>()? {
                    $($number => {
                        $($(let $part = $crate::checkpoint::Saved::load(reader)?;)+)?
                        $($(let $field = $crate::checkpoint::Saved::load(reader)?;)+)?
                        Self::$variant $(($($part),+))? $({ $($field),+ })?
                    })+
                    _ => return Err($crate::checkpoint::Invalid::new(concat!("an unknown ", stringify!($name)))),
                })
            }
        }
    };
    (@save $field:ident, $out:ident) => { $crate::checkpoint::Saved::save($field, $out) };
    (@save $field:ident, $out:ident, $with:ident) => { $with::save(*$field, $out) };
    (@load $reader:ident) => { $crate::checkpoint::Saved::load($reader) };
    (@load $reader:ident, $with:ident) => { $with::load($reader) };
    (numbers $($name:ident),+) => {$(
        impl $crate::checkpoint::Saved for $name {
            fn save(&self, out: &mut $crate::checkpoint::StateWriter<'_>) -> Result<(), $crate::checkpoint::Invalid> {
                $crate::checkpoint::Saved::save(&self.0, out)
            }

            fn load(reader: &mut $crate::codec::Reader<'_>) -> Result<Self, $crate::checkpoint::Invalid> {
                $crate::checkpoint::Saved::load(reader).map(Self)
            }
        }
    )+};
}
pub(crate) use state;

macro_rules! integers {
    ($($type:ty),+) => {$(
        impl Saved for $type {
            fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
                Ok(writer.varint(*self as u64)?)
            }

            fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
                number(reader)
            }
        }
    )+};
}

integers! { u16, u32, u64, usize }

/// The number of 32 bits with the same octets.
#[cfg(feature = "protocols")]
impl Saved for i32 {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.cast_unsigned().save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        u32::load(reader).map(u32::cast_signed)
    }
}

#[cfg(feature = "protocols")]
impl Saved for f64 {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Ok(writer.be(self.to_bits())?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(Self::from_bits(reader.be()?))
    }
}

impl Saved for u8 {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Ok(writer.be(*self)?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(reader.be()?)
    }
}

impl Saved for bool {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Ok(writer.bool(*self)?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(reader.bool()?)
    }
}

impl Saved for Timestamp {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Ok(writer.be(self.as_nanos())?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(Self::from_nanos(reader.be()?))
    }
}

/// At most 584 years, with nanoseconds.
impl Saved for Duration {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        Ok(writer.varint(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX))?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(Self::from_nanos(reader.varint()?))
    }
}

impl Saved for IpAddr {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        writer.bool(self.is_ipv6())?;
        match self {
            Self::V4(address) => writer.array(address.octets())?,
            Self::V6(address) => writer.array(address.octets())?,
        }
        Ok(())
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(if reader.bool()? {
            Ipv6Addr::from(reader.array::<16>()?).into()
        } else {
            Ipv4Addr::from(reader.array::<4>()?).into()
        })
    }
}

impl Saved for Side {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        write_side(writer, *self)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        read_side(reader)
    }
}

impl Saved for FlowKey {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        write_key(writer, self)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        read_key(reader)
    }
}

impl Saved for String {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        writer.varint(self.len() as u64)?;
        Ok(writer.bytes(self)?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let len = number(reader)?;
        Ok(reader.str(len)?.to_owned())
    }
}

impl Saved for Box<str> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        writer.varint(self.len() as u64)?;
        Ok(writer.bytes(&**self)?)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        String::load(reader).map(Into::into)
    }
}

impl<T: Saved> Saved for Option<T> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        writer.bool(self.is_some())?;
        self.as_ref().map_or(Ok(()), |value| value.save(writer))
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok(if reader.bool()? { Some(T::load(reader)?) } else { None })
    }
}

impl<T: Saved> Saved for Box<T> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        T::save(self, writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        T::load(reader).map(Self::new)
    }
}

/// Writes a list.
fn save_list<'t, T: Saved + 't>(
    list: impl ExactSizeIterator<Item = &'t T>,
    writer: &mut StateWriter<'_>,
) -> Result<(), Invalid> {
    if list.len() > LIST_LEN_MAX {
        return Err(Invalid::new("a list that is too long"));
    }
    writer.varint(list.len() as u64)?;
    list.into_iter().try_for_each(|value| value.save(writer))
}

/// At most 131,072 elements.
impl<T: Saved> Saved for Vec<T> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        save_list(self.iter(), writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let len: usize = number(reader)?;
        if len > LIST_LEN_MAX {
            return Err(Invalid::new("a list that is too long"));
        }
        (0..len).map(|_| T::load(reader)).collect()
    }
}

/// At most 131,072 elements.
impl<T: Saved> Saved for VecDeque<T> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        save_list(self.iter(), writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Vec::load(reader).map(Into::into)
    }
}

/// At most 131,072 elements.
impl<T: Saved> Saved for Box<[T]> {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        save_list(self.iter(), writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Vec::load(reader).map(Into::into)
    }
}

impl<A: Saved, B: Saved> Saved for (A, B) {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.0.save(writer)?;
        self.1.save(writer)
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        Ok((A::load(reader)?, B::load(reader)?))
    }
}

impl<T: Saved, const N: usize> Saved for [T; N] {
    fn save(&self, writer: &mut StateWriter<'_>) -> Result<(), Invalid> {
        self.iter().try_for_each(|value| value.save(writer))
    }

    fn load(reader: &mut Reader<'_>) -> Result<Self, Invalid> {
        let all = (0..N).map(|_| T::load(reader)).collect::<Result<Vec<_>, _>>()?;
        all.try_into().map_err(|_| Invalid::new("an array of another length"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Parts {
        numbers: Vec<u16>,
        name: Option<Box<str>>,
        kind: Kind,
        cached: u64,
    }

    #[derive(Debug, PartialEq)]
    enum Kind {
        Plain,
        Pair(u64, bool),
        Timed { at: Timestamp },
    }

    state! { struct Parts { numbers, name, kind, .. cached } if |parts| parts.numbers.len() < 3 }
    state! { enum Kind { 0 = Plain, 1 = Pair(left, right), 2 = Timed { at } } }

    fn saved(value: &impl Saved) -> Vec<u8> {
        let mut octets = Vec::new();
        value.save(&mut StateWriter::growing(&mut octets)).expect("a vector");
        octets
    }

    fn loaded<T: Saved>(octets: &[u8]) -> Result<T, Invalid> {
        let mut reader = Reader::new(octets);
        let value = T::load(&mut reader)?;
        assert!(reader.is_empty());
        Ok(value)
    }

    #[test]
    fn structs_and_enums_are_read_as_they_were_written() {
        for kind in [Kind::Plain, Kind::Pair(u64::MAX, true), Kind::Timed { at: Timestamp::from_nanos(7) }] {
            let parts = Parts { numbers: vec![1, 65_535], name: Some("a".into()), kind, cached: 9 };
            let octets = saved(&parts);
            assert_eq!(loaded::<Parts>(&octets), Ok(Parts { cached: 0, ..parts }));
            for len in 0..octets.len() {
                assert!(loaded::<Parts>(&octets[..len]).is_err());
            }
        }
        assert!(loaded::<Kind>(&[3]).is_err());
        let long = Parts { numbers: vec![1; 3], name: None, kind: Kind::Plain, cached: 0 };
        let error = loaded::<Parts>(&saved(&long)).expect_err("three numbers");
        assert_eq!(error.to_string(), "impossible values of Parts");
    }

    #[test]
    fn common_types_are_read_as_they_were_written() {
        let addresses: Vec<IpAddr> = vec![[192, 0, 2, 1].into(), [0x2001; 8].into()];
        assert_eq!(loaded(&saved(&addresses)), Ok(addresses));
        let wait = Some(Duration::from_nanos(1_500));
        assert_eq!(loaded(&saved(&wait)), Ok(wait));
        let pair = [Some(Side::A), None];
        assert_eq!(loaded(&saved(&pair)), Ok(pair));
        let queue: VecDeque<(u64, bool)> = [(1, true), (2, false)].into();
        assert_eq!(loaded(&saved(&queue)), Ok(queue));
        assert!(loaded::<u16>(&saved(&70_000_u32)).is_err());
        assert!(loaded::<String>(&[1, 0xff]).is_err());
    }

    #[test]
    fn the_length_of_a_list_is_bounded() {
        let count = LIST_LEN_MAX as u64 + 1;
        let mut octets = saved(&count);
        octets.resize(octets.len() + LIST_LEN_MAX + 1, 0);
        assert!(loaded::<Vec<u8>>(&octets).is_err());
        assert!(vec![0_u8; LIST_LEN_MAX + 1].save(&mut StateWriter::growing(&mut Vec::new())).is_err());
    }
}
