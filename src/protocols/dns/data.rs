//! Data of DNS records: a table of the fields of each record type, and a reader for all of them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::location::Location;
use super::name::Name;
use super::numbers::RecordType;
use super::ports::PortSet;
use super::prefixes::AddressPrefixes;
use super::presentation;
use super::service::ServiceParameters;
use super::types::TypeSet;
use super::value::Value;

/// The data of a DNS record.
///
/// Displayed in presentation format (RFC 1035 section 5.1 and the RFCs of the record types) if the fields of the record
/// type are known and cover all octets of the data, otherwise in the generic format of RFC 3597 section 5:
/// `\# 4 0a000001`.
#[derive(Clone, Copy)]
pub struct RecordData<'m> {
    message: &'m [u8],
    start: usize,
    end: usize,
    record_type: RecordType,
}

/// Kind and length of a field in the data of a DNS record.
#[derive(Clone, Copy, Debug)]
enum Part {
    Name,
    U8,
    U16,
    U32,
    U48,
    A,
    Aaaa,
    Type,
    Time,
    /// A character string after a length of one octet.
    Text,
    Word,
    HexCounted,
    Base32Counted,
    /// Octets, displayed in hexadecimal, after a length of two octets.
    HexLongCounted,
    /// Character strings that fill all remaining octets, each after a length of one octet.
    Texts,
    TextRest,
    Hex,
    Base64,
    Types,
    Parameters,
    /// Total number of octets of the field, and number of octets in each displayed group: an identifier in groups of
    /// two octets, or a link-layer address in groups of one.
    Groups(u8, u8),
    Location,
    Prefixes,
    Ports,
    Nsap,
    /// The type of the gateway field that follows in the data (RFC 4025 section 2.3): none, an address or a name.
    GatewayKind,
    /// Discovery-optional flag of an AMTRELAY record: the top bit of the octet with the type of the relay field.
    RelayBit,
    RelayKind,
    Gateway,
    /// Three fields of a HIP record: length of the identity tag, algorithm, and length of the key.
    HostIdentity,
    IdentityTag,
    IdentityKey,
    /// Domain names up to the end of the data, possibly none.
    Names,
}

use Part::{A, Aaaa, Base64, Groups, Hex, HexCounted, HexLongCounted, Text, Time, Type, U8, U16, U32, U48};

/// Returns the fields of the data of a record type; `None` for record types with data that is displayed as octets.
const fn parts(record_type: RecordType) -> Option<&'static [Part]> {
    use Part::{
        Base32Counted, Gateway, GatewayKind, HostIdentity, IdentityKey, IdentityTag, Location, Name, Names,
        Nsap, Parameters, Ports, Prefixes, RelayBit, RelayKind, TextRest, Texts, Types, Word,
    };
    Some(match record_type.0 {
        1 => &[A],
        // NS, MD, MF, CNAME, MB, MG, MR, PTR, NSAP-PTR, DNAME
        2..=5 | 7..=9 | 12 | 23 | 39 => &[Name],
        // SOA
        6 => &[Name, Name, U32, U32, U32, U32, U32],
        // WKS
        11 => &[A, U8, Ports],
        // HINFO
        13 => &[Text, Text],
        // MINFO, RP, TALINK
        14 | 17 | 58 => &[Name, Name],
        // MX, AFSDB, RT, KX, LP
        15 | 18 | 21 | 36 | 107 => &[U16, Name],
        // TXT, ISDN, NINFO, SPF, AVC, RESINFO, WALLET, CLA
        16 | 20 | 56 | 99 | 258 | 261..=263 => &[Texts],
        // X25
        19 => &[Text],
        22 => &[Nsap],
        // SIG, RRSIG
        24 | 46 => &[Type, U8, U8, U32, Time, Time, U16, Name, Base64],
        // KEY, DNSKEY, RKEY, CDNSKEY
        25 | 48 | 57 | 60 => &[U16, U8, U8, Base64],
        // PX
        26 => &[U16, Name, Name],
        // GPOS
        27 => &[Text, Text, Text],
        28 => &[Aaaa],
        // LOC
        29 => &[Location],
        // SRV
        33 => &[U16, U16, U16, Name],
        // NAPTR
        35 => &[U16, U16, Text, Text, Text, Name],
        // CERT
        37 => &[U16, U16, U8, Base64],
        // APL
        42 => &[Prefixes],
        // DS, CDS, TA, DLV
        43 | 59 | 32768 | 32769 => &[U16, U8, U8, Hex],
        // SSHFP
        44 => &[U8, U8, Hex],
        // IPSECKEY
        45 => &[U8, GatewayKind, U8, Gateway, Base64],
        // NSEC
        47 => &[Name, Types],
        // DHCID, OPENPGPKEY
        49 | 61 => &[Base64],
        // NSEC3
        50 => &[U8, U8, U16, HexCounted, Base32Counted, Types],
        // NSEC3PARAM
        51 => &[U8, U8, U16, HexCounted],
        // TLSA, SMIMEA
        52 | 53 => &[U8, U8, U8, Hex],
        // HIP
        55 => &[HostIdentity, IdentityTag, IdentityKey, Names],
        // CSYNC
        62 => &[U32, U16, Types],
        // ZONEMD
        63 => &[U32, U8, U8, Hex],
        // SVCB, HTTPS
        64 | 65 => &[U16, Name, Parameters],
        // DSYNC
        66 => &[Type, U8, U16, Name],
        // NID, L64
        104 | 106 => &[U16, Groups(8, 2)],
        // L32
        105 => &[U16, A],
        // EUI48, EUI64
        108 => &[Groups(6, 1)],
        109 => &[Groups(8, 1)],
        // TKEY, TSIG
        249 => &[Name, Time, Time, U16, U16, HexLongCounted, HexLongCounted],
        250 => &[Name, U48, U16, HexLongCounted, U16, U16, HexLongCounted],
        // URI
        256 => &[U16, U16, TextRest],
        // CAA
        257 => &[U8, Word, TextRest],
        // AMTRELAY
        260 => &[U8, RelayBit, RelayKind, Gateway],
        _ => return None,
    })
}

impl<'m> RecordData<'m> {
    /// Creates the record data from octets `start..end` of a message, which must exist.
    pub(super) const fn new(
        message: &'m [u8],
        (start, end): (usize, usize),
        record_type: RecordType,
    ) -> Self {
        Self { message, start, end, record_type }
    }

    /// Returns the octets of the record data as they are in the message; names in them may be compressed.
    #[must_use]
    pub fn octets(&self) -> &'m [u8] {
        self.message.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns whether the record data has no octets, as in updates.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the fields of the record data in their order; `None` if the record type is not known, or if the data
    /// does not match it.
    #[must_use]
    pub fn values(&self) -> Option<Values<'m>> {
        let parts = parts(self.record_type)?;
        let values = Values {
            message: self.message,
            at: self.start,
            end: self.end,
            parts,
            gateway_kind: 0,
            identity_lens: (0, 0),
            names: Default::default(),
            name_count: 0,
            is_sound: true,
        };
        let mut trial = values.clone();
        trial.by_ref().for_each(drop);
        // The names were validated above, which takes time if they have many pointers.
        (trial.is_sound && trial.at == trial.end).then_some(Values { names: trial.names, ..values })
    }

    /// Returns the address of an A or AAAA record.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match (self.record_type, self.octets()) {
            (RecordType::A, octets) => <[u8; 4]>::try_from(octets).ok().map(IpAddr::from),
            (RecordType::AAAA, octets) => <[u8; 16]>::try_from(octets).ok().map(IpAddr::from),
            _ => None,
        }
    }

    /// Returns the first name in the record data: the target of CNAME, NS, PTR and DNAME, the host of MX and SRV, the
    /// first server of SOA.
    #[must_use]
    pub fn name(&self) -> Option<Name<'m>> {
        self.values()?.find_map(|value| if let Value::Name(name) = value { Some(name) } else { None })
    }
}

impl PartialEq for RecordData<'_> {
    /// Compares the record types and the octets of two record data, or the fields if the octets differ, because names
    /// may be compressed.
    fn eq(&self, other: &Self) -> bool {
        self.record_type == other.record_type
            && match (self.values(), other.values()) {
                (Some(one), Some(another)) => one.eq(another),
                _ => self.octets() == other.octets(),
            }
    }
}

impl fmt::Display for RecordData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(values) = self.values() else {
            return presentation::write_generic(f, self.octets());
        };
        for (place, value) in values.enumerate() {
            let is_empty = match &value {
                Value::Types(set) => set.is_empty(),
                Value::Parameters(list) => list.is_empty(),
                Value::Prefixes(list) => list.is_empty(),
                Value::Ports(set) => set.is_empty(),
                _ => false,
            };
            if place > 0 && !is_empty {
                f.write_str(" ")?;
            }
            value.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for RecordData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {self}", self.record_type)
    }
}

/// Iterator over the fields of a DNS record's data, [`RecordData`].
#[derive(Clone, Debug)]
pub struct Values<'m> {
    message: &'m [u8],
    at: usize,
    end: usize,
    parts: &'static [Part],
    /// Type of the gateway or relay field, from an earlier field of the data.
    gateway_kind: u8,
    identity_lens: (usize, usize),
    /// Names in the data that were read, in their order, each with the offset after the name.
    names: [Option<(Name<'m>, usize)>; 2],
    /// Number of names read so far in this pass through the data.
    name_count: usize,
    is_sound: bool,
}

impl<'m> Values<'m> {
    fn octets(&mut self, len: usize) -> Option<&'m [u8]> {
        let octets = self.message.get(self.at..self.end)?.get(..len)?;
        self.at += len;
        Some(octets)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.octets(N)?.try_into().ok()
    }

    fn number(&mut self, len: usize) -> Option<u64> {
        let octets = self.octets(len)?;
        Some(octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet)))
    }

    /// Returns the octets that follow a length field of `prefix_len` octets, and moves past them.
    fn counted(&mut self, prefix_len: usize) -> Option<&'m [u8]> {
        let len = self.number(prefix_len)?;
        self.octets(len as usize)
    }

    fn rest(&mut self) -> Option<&'m [u8]> {
        self.octets(self.end.checked_sub(self.at)?)
    }

    /// Returns the next name in the data. The first two names are cached; only HIP may have more, which are parsed
    /// again.
    fn name(&mut self) -> Option<Name<'m>> {
        let known = self.names.get_mut(self.name_count);
        let (name, at) = match &known {
            Some(Some(known)) => *known,
            _ => Name::read(self.message, self.at).ok()?,
        };
        if let Some(known) = known {
            *known = Some((name, at));
        }
        self.name_count += 1;
        // A name may end after the data, which is malformed in that case.
        self.at = at;
        Some(name)
    }

    fn read(&mut self, part: Part) -> Option<Value<'m>> {
        Some(match part {
            Part::Name | Part::Names => Value::Name(self.name()?),
            U8 => Value::Number(self.number(1)?),
            U16 => Value::Number(self.number(2)?),
            U32 => Value::Number(self.number(4)?),
            U48 => Value::Number(self.number(6)?),
            A => Value::Address(Ipv4Addr::from(self.array::<4>()?).into()),
            Aaaa => Value::Address(Ipv6Addr::from(self.array::<16>()?).into()),
            Type => Value::Type(RecordType(u16::from_be_bytes(self.array()?))),
            Time => Value::Time(u32::from_be_bytes(self.array()?)),
            Text | Part::Texts => Value::Text(self.counted(1)?),
            Part::Word => Value::Word(self.counted(1)?),
            HexCounted => Value::Hex(self.counted(1)?),
            Part::Base32Counted => Value::Base32(self.counted(1)?),
            HexLongCounted => Value::Hex(self.counted(2)?),
            Part::TextRest => Value::Text(self.rest()?),
            Hex => Value::Hex(self.rest()?),
            Base64 => Value::Base64(self.rest()?),
            Part::Types => Value::Types(TypeSet::read(self.rest()?)?),
            Part::Parameters => Value::Parameters(ServiceParameters::read(self.rest()?)?),
            Groups(len, group_len) => Value::Groups(self.octets(usize::from(len))?, usize::from(group_len)),
            Part::Location => Value::Location(Location::read(self.array()?)?),
            Part::Prefixes => Value::Prefixes(AddressPrefixes::read(self.rest()?)?),
            Part::Ports => Value::Ports(PortSet::read(self.rest()?)?),
            Part::Nsap => Value::Nsap(self.rest()?),
            Part::RelayBit => Value::Number(u64::from(self.message.get(self.at..self.end)?.first()? >> 7)),
            Part::GatewayKind | Part::RelayKind => {
                let mask = if matches!(part, Part::RelayKind) { 0x7f } else { 0xff };
                let [kind] = self.array()?;
                self.gateway_kind = kind & mask;
                Value::Number(self.gateway_kind.into())
            }
            Part::Gateway => match self.gateway_kind {
                0 => Value::Word(b"."),
                1 => Value::Address(Ipv4Addr::from(self.array::<4>()?).into()),
                2 => Value::Address(Ipv6Addr::from(self.array::<16>()?).into()),
                3 => Value::Name(self.name()?),
                _ => return None,
            },
            Part::HostIdentity => {
                let [tag_len, algorithm, key_len @ ..] = self.array::<4>()?;
                self.identity_lens = (tag_len.into(), u16::from_be_bytes(key_len).into());
                Value::Number(algorithm.into())
            }
            Part::IdentityTag => Value::Hex(self.octets(self.identity_lens.0)?),
            Part::IdentityKey => Value::Base64(self.octets(self.identity_lens.1)?),
        })
    }
}

impl<'m> Iterator for Values<'m> {
    type Item = Value<'m>;

    fn next(&mut self) -> Option<Value<'m>> {
        let (part, after) = self.parts.split_first()?;
        if matches!(part, Part::Names) && self.at >= self.end {
            self.parts = &[];
            return None;
        }
        let value = self.read(*part);
        // Strings and names repeat up to the end.
        if !matches!(part, Part::Texts | Part::Names) || self.at >= self.end {
            self.parts = after;
        }
        if value.is_none() {
            self.is_sound = false;
            self.parts = &[];
        }
        value
    }
}
