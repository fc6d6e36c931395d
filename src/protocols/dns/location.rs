//! Geographical locations of DNS LOC records.

use std::fmt;

/// Latitude of the equator and longitude of the prime meridian, as encoded on the wire.
const MIDDLE: i64 = 1 << 31;

/// A quarter of a circle in thousandths of an arcsecond.
const QUARTER: i64 = 90 * 3_600_000;

/// Centimeters below the reference spheroid of the altitude that is encoded as zero.
const BASE_CM: i64 = 10_000_000;

/// Geographical location of a LOC record (RFC 1876). Displayed as latitude, longitude, altitude, size, and horizontal
/// and vertical precision: `42 21 54.000 N 71 06 18.000 W -24.00m 30.00m 10000.00m 10.00m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Location {
    /// Latitude in thousandths of an arcsecond; north is positive.
    pub latitude: i64,
    /// Longitude in thousandths of an arcsecond; east is positive.
    pub longitude: i64,
    /// Altitude in centimeters above the GPS reference spheroid.
    pub altitude_cm: i64,
    /// Diameter in centimeters of a sphere around the described entity.
    pub size_cm: u64,
    /// Diameter in centimeters of the horizontal circle of error.
    pub horizontal_precision_cm: u64,
    /// Total vertical error in centimeters.
    pub vertical_precision_cm: u64,
}

impl Location {
    /// Parses the data of a LOC record; `None` for a version other than 0, and for values out of range.
    pub(super) fn read(octets: [u8; 16]) -> Option<Self> {
        let [version, size, horizontal, vertical, rest @ ..] = octets;
        let [la, lb, lc, ld, oa, ob, oc, od, aa, ab, ac, ad] = rest;
        let angle = |octets: [u8; 4], limit: i64| {
            let angle = i64::from(u32::from_be_bytes(octets)) - MIDDLE;
            (-limit..=limit).contains(&angle).then_some(angle)
        };
        let place = Self {
            latitude: angle([la, lb, lc, ld], QUARTER)?,
            longitude: angle([oa, ob, oc, od], 2 * QUARTER)?,
            altitude_cm: i64::from(u32::from_be_bytes([aa, ab, ac, ad])) - BASE_CM,
            size_cm: centimeters(size)?,
            horizontal_precision_cm: centimeters(horizontal)?,
            vertical_precision_cm: centimeters(vertical)?,
        };
        (version == 0).then_some(place)
    }
}

/// Decodes a length in centimeters: a digit in the upper four bits, and a power of ten in the lower four bits.
const fn centimeters(octet: u8) -> Option<u64> {
    match (octet >> 4, octet & 15) {
        (digit @ 0..=9, power @ 0..=9) => Some(digit as u64 * 10_u64.pow(power as u32)),
        _ => None,
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let angle = |f: &mut fmt::Formatter<'_>, angle: i64, [positive, negative]: [char; 2]| {
            let sign = if angle < 0 { negative } else { positive };
            let thousandths = angle.unsigned_abs();
            let (seconds, fraction) = (thousandths / 1000, thousandths % 1000);
            let (degrees, minutes) = (seconds / 3600, seconds / 60 % 60);
            write!(f, "{degrees} {minutes:02} {:02}.{fraction:03} {sign} ", seconds % 60)
        };
        angle(f, self.latitude, ['N', 'S'])?;
        angle(f, self.longitude, ['E', 'W'])?;
        let (sign, altitude) = (if self.altitude_cm < 0 { "-" } else { "" }, self.altitude_cm.unsigned_abs());
        write!(f, "{sign}{}.{:02}m", altitude / 100, altitude % 100)?;
        for len in [self.size_cm, self.horizontal_precision_cm, self.vertical_precision_cm] {
            write!(f, " {}.{:02}m", len / 100, len % 100)?;
        }
        Ok(())
    }
}
