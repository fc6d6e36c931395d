//! Encoding of values that several layers save.

use super::error::Invalid;
use super::state::StateWriter;
use crate::base::{FlowKey, Side};
use crate::codec::Reader;

pub(crate) fn write_key(out: &mut StateWriter<'_>, key: &FlowKey) -> Result<(), Invalid> {
    let [a_high, a_low, b_high, b_low, ports, rest] = key.words();
    out.varint(rest)?;
    out.be((ports >> 32) as u32)?;
    out.varint(ports & 0xffff_ffff)?;
    if key.is_ipv6() {
        for word in [a_high, a_low, b_high, b_low] {
            out.be(word)?;
        }
    } else {
        out.be(a_low as u32)?;
        out.be(b_low as u32)?;
    }
    Ok(())
}

pub(crate) fn read_key(reader: &mut Reader<'_>) -> Result<FlowKey, Invalid> {
    let rest = reader.varint()?;
    let ports = u64::from(reader.be::<u32>()?) << 32 | u64::from(number::<u32>(reader)?);
    let is_ipv6 = FlowKey::from_words([0, 0, 0, 0, 0, rest]).is_some_and(|key| key.is_ipv6());
    let addresses = if is_ipv6 {
        [reader.be()?, reader.be()?, reader.be()?, reader.be()?]
    } else {
        [0, reader.be::<u32>()?.into(), 0, reader.be::<u32>()?.into()]
    };
    let [a_high, a_low, b_high, b_low] = addresses;
    FlowKey::from_words([a_high, a_low, b_high, b_low, ports, rest])
        .ok_or(Invalid::new("a flow key that no packet has"))
}

pub(crate) fn write_side(out: &mut StateWriter<'_>, side: Side) -> Result<(), Invalid> {
    Ok(out.bool(side == Side::B)?)
}

pub(crate) fn read_side(reader: &mut Reader<'_>) -> Result<Side, Invalid> {
    Ok(if reader.bool()? { Side::B } else { Side::A })
}

/// Reads a number of variable length that must fit its type.
pub(crate) fn number<T: TryFrom<u64>>(reader: &mut Reader<'_>) -> Result<T, Invalid> {
    T::try_from(reader.varint()?).map_err(|_| Invalid::new("a number that is too large"))
}

/// Returns a checksum of names in an order.
pub(crate) fn checksum<'n>(names: impl Iterator<Item = &'n str>) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for name in names {
        crc.update(name.as_bytes());
        crc.update(&[0]);
    }
    crc.finalize()
}
