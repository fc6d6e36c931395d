//! Numbers of the IANA registry "Domain Name System (DNS) Parameters", with their registered names.

use std::fmt;

macro_rules! numbers {
    (
        $(#[$meta:meta])* $type:ident($repr:ty), $other:literal;
        $( $value:literal = $text:literal, )*
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(pub $repr);

        impl $type {
            /// Returns the name of the number in the IANA registry, if there is one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $value => Some($text), )*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $type {
            #[doc = concat!("The name, or `", $other, "` and the number.")]
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!($other, "{}"), self.0),
                }
            }
        }

        crate::row::cells! { registered $type; }
        crate::checkpoint::state! { numbers $type }
    };
}

numbers! {
    /// Type of a DNS record or question: `A`, `HTTPS`, `ANY`; types without a name are displayed as `TYPE64000` (RFC
    /// 3597 section 5).
    RecordType(u16), "TYPE";
    1 = "A", 2 = "NS", 3 = "MD", 4 = "MF", 5 = "CNAME", 6 = "SOA", 7 = "MB", 8 = "MG", 9 = "MR", 10 = "NULL",
    11 = "WKS", 12 = "PTR", 13 = "HINFO", 14 = "MINFO", 15 = "MX", 16 = "TXT", 17 = "RP", 18 = "AFSDB", 19 = "X25",
    20 = "ISDN", 21 = "RT", 22 = "NSAP", 23 = "NSAP-PTR", 24 = "SIG", 25 = "KEY", 26 = "PX", 27 = "GPOS",
    28 = "AAAA", 29 = "LOC", 30 = "NXT", 31 = "EID", 32 = "NIMLOC", 33 = "SRV", 34 = "ATMA", 35 = "NAPTR",
    36 = "KX", 37 = "CERT", 38 = "A6", 39 = "DNAME", 40 = "SINK", 41 = "OPT", 42 = "APL", 43 = "DS", 44 = "SSHFP",
    45 = "IPSECKEY", 46 = "RRSIG", 47 = "NSEC", 48 = "DNSKEY", 49 = "DHCID", 50 = "NSEC3", 51 = "NSEC3PARAM",
    52 = "TLSA", 53 = "SMIMEA", 55 = "HIP", 56 = "NINFO", 57 = "RKEY", 58 = "TALINK", 59 = "CDS", 60 = "CDNSKEY",
    61 = "OPENPGPKEY", 62 = "CSYNC", 63 = "ZONEMD", 64 = "SVCB", 65 = "HTTPS", 66 = "DSYNC", 67 = "HHIT",
    68 = "BRID", 99 = "SPF", 100 = "UINFO", 101 = "UID", 102 = "GID", 103 = "UNSPEC", 104 = "NID", 105 = "L32",
    106 = "L64", 107 = "LP", 108 = "EUI48", 109 = "EUI64", 128 = "NXNAME", 249 = "TKEY", 250 = "TSIG",
    251 = "IXFR", 252 = "AXFR", 253 = "MAILB", 254 = "MAILA", 255 = "ANY", 256 = "URI", 257 = "CAA", 258 = "AVC",
    259 = "DOA", 260 = "AMTRELAY", 261 = "RESINFO", 262 = "WALLET", 263 = "CLA", 264 = "IPN", 32768 = "TA",
    32769 = "DLV",
}

impl RecordType {
    /// Type of a record with an IPv4 address.
    pub const A: Self = Self(1);
    /// Type of a record with an IPv6 address.
    pub const AAAA: Self = Self(28);
    /// Type of the EDNS pseudo-record (RFC 6891).
    pub const OPT: Self = Self(41);

    /// Returns whether a query of this type requests a zone transfer: AXFR, IXFR. The response to it may consist of
    /// many messages.
    #[must_use]
    pub const fn is_transfer(self) -> bool {
        matches!(self.0, 251 | 252)
    }
}

numbers! {
    /// Class of a DNS record or question: usually `IN`; `NONE` and `ANY` in updates (RFC 2136); classes without a name
    /// are displayed as `CLASS7`.
    Class(u16), "CLASS";
    1 = "IN", 3 = "CH", 4 = "HS", 254 = "NONE", 255 = "ANY",
}

impl Class {
    /// Class of the Internet.
    pub const IN: Self = Self(1);
}

numbers! {
    /// Operation code of a DNS message: `Query`, `Notify`, `Update`.
    Opcode(u8), "OPCODE";
    0 = "Query", 1 = "IQuery", 2 = "Status", 4 = "Notify", 5 = "Update", 6 = "DSO",
}

numbers! {
    /// Response code of a DNS message: `NoError`, `NXDomain`. Codes above 15 need EDNS.
    Rcode(u16), "RCODE";
    0 = "NoError", 1 = "FormErr", 2 = "ServFail", 3 = "NXDomain", 4 = "NotImp", 5 = "Refused", 6 = "YXDomain",
    7 = "YXRRSet", 8 = "NXRRSet", 9 = "NotAuth", 10 = "NotZone", 11 = "DSOTYPENI", 16 = "BADVERS", 17 = "BADKEY",
    18 = "BADTIME", 19 = "BADMODE", 20 = "BADNAME", 21 = "BADALG", 22 = "BADTRUNC", 23 = "BADCOOKIE",
}

numbers! {
    /// Code of an EDNS option: `COOKIE`, `edns-client-subnet`; codes without a name are displayed as `OPT65001`.
    OptionCode(u16), "OPT";
    1 = "LLQ", 2 = "Update Lease", 3 = "NSID", 5 = "DAU", 6 = "DHU", 7 = "N3U", 8 = "edns-client-subnet",
    9 = "EDNS EXPIRE", 10 = "COOKIE", 11 = "edns-tcp-keepalive", 12 = "Padding", 13 = "CHAIN", 14 = "edns-key-tag",
    15 = "Extended DNS Error", 16 = "EDNS-Client-Tag", 17 = "EDNS-Server-Tag", 18 = "Report-Channel",
    19 = "ZONEVERSION", 20292 = "Umbrella Ident", 26946 = "DeviceID",
}

impl OptionCode {
    /// Code of the EDNS option with the network of the client on whose behalf a query is sent (RFC 7871).
    pub const CLIENT_SUBNET: Self = Self(8);
    /// Code of the EDNS option with additional information about an error (RFC 8914).
    pub const EXTENDED_ERROR: Self = Self(15);
}
