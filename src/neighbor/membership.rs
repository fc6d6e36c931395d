//! Members of multicast groups: IGMP (RFC 1112, RFC 2236, RFC 3376) and MLD (RFC 2710, RFC 3810).

use std::net::IpAddr;
use std::time::Duration;

use super::reading::{Reading, add, counted, v4, v6, whole};
use crate::codec::{ReadError, Reader};
use crate::row::Group;
use crate::session::kit::names;

names! {
    /// Kind of a message: the type of IGMP, or that of MLD.
    pub struct MembershipKind: u8 {
        0x11 => "query", 0x12 => "report_v1", 0x13 => "dvmrp", 0x14 => "pim_v1", 0x16 => "report_v2", 0x17 => "leave",
        0x1e => "mtrace_reply", 0x1f => "mtrace", 0x22 => "report_v3", 0x30 => "router_advertisement",
        0x31 => "router_solicitation", 0x32 => "router_termination", 130 => "mld_query", 131 => "mld_report_v1",
        132 => "mld_done", 143 => "mld_report_v2", 0xfc => "rgmp_leave", 0xfd => "rgmp_join", 0xfe => "rgmp_bye",
        0xff => "rgmp_hello",
    }
}

names! {
    /// Kind of a record about a group (RFC 3376 section 4.2.12).
    pub struct RecordKind: u8 {
        1 => "is_include", 2 => "is_exclude", 3 => "to_include", 4 => "to_exclude", 5 => "allow_new", 6 => "block_old",
    }
}

crate::message! {
    /// A message of IGMP or MLD.
    #[derive(Clone, Debug, Default)]
    "neighbor.membership" pub struct Membership {
        /// Kind of the message, such as `query` or `report_v2`.
        pub membership_type: MembershipKind,
        /// Version of IGMP or MLD.
        pub membership_version: Option<u8>,
        /// Group; null in a query about all groups.
        pub group_address: Option<IpAddr>,
        /// Time within which members answer a query.
        pub answer_time: Option<Duration>,
        /// Sources about which a query asks.
        pub group_sources: Vec<IpAddr> [sparse],
        /// Records of a report of IGMPv3 or MLDv2.
        pub group_records: Vec<Group<GroupRecord>> [sparse],
    }
}

/// A record of a report about a group.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupRecord {
    /// Kind of the record.
    pub kind: RecordKind,
    /// The group.
    pub address: IpAddr,
    /// Sources that the record lists.
    pub sources: Vec<IpAddr>,
}

crate::table! {
    /// A record of a report about a group.
    impl "neighbor.group_record" for GroupRecord as record {
        /// Kind of the record, such as `to_exclude`.
        "record_type": RecordKind = record.kind;
        /// The group.
        "address": IpAddr = record.address;
        /// Sources that the record lists.
        "sources": Vec<IpAddr> => record.sources.clone();
    }
}

/// Types of IGMP with a group at the fifth octet, of those that are no reports of version 3.
const HAS_GROUP: [u8; 10] = [QUERY, 0x12, 0x16, 0x17, 0x1e, 0x1f, 0xfc, 0xfd, 0xfe, 0xff];
const QUERY: u8 = 0x11;
const REPORT_V3: u8 = 0x22;
const MLD_QUERY: u8 = 130;
const MLD_REPORT_V2: u8 = 143;

/// Returns the number that an octet or 16 bits encode as mantissa and exponent (RFC 3376 section 4.1.1, RFC 3810 section
/// 5.1.3). `mantissa_len` is the number of bits of the mantissa; the highest bit of the code marks an exponent.
const fn decoded(code: u16, mantissa_len: u32) -> u64 {
    if code >> (mantissa_len + 3) == 0 {
        return code as u64;
    }
    let mantissa = (code & ((1 << mantissa_len) - 1) | 1 << mantissa_len) as u64;
    mantissa << ((code >> mantissa_len & 7) + 3)
}

impl Membership {
    /// Reads a message of IGMP.
    pub(super) fn read_igmp(octets: &[u8]) -> Reading<Self> {
        let mut reader = Reader::new(octets);
        whole(|| {
            let [kind, code] = reader.array()?;
            reader.skip(2)?;
            let mut message = Self { membership_type: MembershipKind(kind), ..Self::default() };
            if kind == REPORT_V3 {
                message.membership_version = Some(3);
                let is_whole = message.records(&mut reader, false)?;
                return Ok((message, is_whole));
            }
            if !HAS_GROUP.contains(&kind) {
                return Ok((message, true));
            }
            let group = v4(reader.array()?);
            message.group_address = Some(group).filter(|group| !group.is_unspecified());
            message.membership_version = match kind {
                QUERY if octets.len() >= 12 => Some(3),
                QUERY if code > 0 => Some(2),
                QUERY | 0x12 => Some(1),
                0x16 | 0x17 => Some(2),
                _ => None,
            };
            let mut is_whole = true;
            if kind == QUERY {
                let is_v3 = message.membership_version == Some(3);
                let tenths = if is_v3 { decoded(code.into(), 4) } else { code.into() };
                message.answer_time = (tenths > 0).then(|| Duration::from_millis(100 * tenths));
                if is_v3 {
                    is_whole = message.sources(&mut reader, false)?;
                }
            }
            Ok((message, is_whole))
        })
    }

    /// Reads a message of MLD.
    pub(super) fn read_mld(octets: &[u8]) -> Reading<Self> {
        let mut reader = Reader::new(octets);
        whole(|| {
            let kind: u8 = reader.be()?;
            reader.skip(3)?;
            let mut message = Self { membership_type: MembershipKind(kind), ..Self::default() };
            if kind == MLD_REPORT_V2 {
                message.membership_version = Some(2);
                let is_whole = message.records(&mut reader, true)?;
                return Ok((message, is_whole));
            }
            let code: u16 = reader.be()?;
            reader.skip(2)?;
            let group = v6(reader.array()?);
            message.group_address = Some(group).filter(|group| !group.is_unspecified());
            let is_v2 = kind == MLD_QUERY && octets.len() >= 28;
            message.membership_version = Some(1 + u8::from(is_v2));
            let mut is_whole = true;
            if kind == MLD_QUERY {
                let millis = if is_v2 { decoded(code, 12) } else { code.into() };
                message.answer_time = Some(Duration::from_millis(millis));
                if is_v2 {
                    is_whole = message.sources(&mut reader, true)?;
                }
            }
            Ok((message, is_whole))
        })
    }

    /// Reads the end of a query with sources. Returns whether it is whole.
    fn sources(&mut self, reader: &mut Reader<'_>, is_v6: bool) -> Result<bool, ReadError> {
        // Flags, and the interval between queries.
        reader.skip(2)?;
        let count = reader.be()?;
        let (sources, is_whole) = counted(reader, count, is_v6);
        self.group_sources = sources;
        Ok(is_whole)
    }

    /// Reads the records of a report. Returns whether all are whole.
    fn records(&mut self, reader: &mut Reader<'_>, is_v6: bool) -> Result<bool, ReadError> {
        reader.skip(2)?;
        let count: u16 = reader.be()?;
        for _ in 0..count {
            let Ok((record, is_whole)) = record(reader, is_v6) else { return Ok(false) };
            add(&mut self.group_records, Group(record));
            if !is_whole {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn record(reader: &mut Reader<'_>, is_v6: bool) -> Result<(GroupRecord, bool), ReadError> {
    let [kind, auxiliary_words] = reader.array()?;
    let count = reader.be()?;
    let address = if is_v6 { v6(reader.array()?) } else { v4(reader.array()?) };
    let (sources, is_whole) = counted(reader, count, is_v6);
    let is_whole = is_whole && reader.skip(usize::from(auxiliary_words) * 4).is_ok();
    Ok((GroupRecord { kind: RecordKind(kind), address, sources }, is_whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_decoded_as_in_rfc_3376_and_rfc_3810() {
        assert_eq!([100, 127, 128, 255].map(|code| decoded(code, 4)), [100, 127, 128, 31_744]);
        assert_eq!(
            [1000, 32_767, 32_768, 65_535].map(|code| decoded(code, 12)),
            [1000, 32_767, 32_768, 8_387_584]
        );
    }
}
