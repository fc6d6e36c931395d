//! Numbers of the format of IPFIX messages, and of information elements.

/// Version number in the header of an IPFIX message (RFC 7011 section 3.1).
pub(super) const VERSION: u16 = 10;

/// Length of the header of an IPFIX message in octets (RFC 7011 section 3.1).
pub(super) const HEADER_LEN: usize = 16;

/// Length of a set header in octets (RFC 7011 section 3.3.2).
pub(super) const SET_HEADER_LEN: usize = 4;

/// Set identifier of a set of templates (RFC 7011 section 3.3.2).
pub(super) const TEMPLATE_SET_ID: u16 = 2;

/// Set identifier of a set of options templates (RFC 7011 section 3.3.2).
pub(super) const OPTIONS_TEMPLATE_SET_ID: u16 = 3;

/// The smallest identifier of a template (RFC 7011 section 3.4.1).
pub(super) const TEMPLATE_ID_MIN: u16 = 256;

/// Length of a field of variable length in a template (RFC 7011 section 7).
pub(super) const VARIABLE_LEN: u16 = 65_535;

/// Bit of an element identifier that indicates that an enterprise number follows (RFC 7011 section 3.2).
pub(super) const ENTERPRISE_BIT: u16 = 1 << 15;

/// Enterprise number of reverse elements (RFC 5103 section 6.1).
pub(super) const REVERSE_ENTERPRISE_NUMBER: u32 = 29_305;

/// Value of applicationName if the application is not known. Some collectors discard records with an empty text.
pub(super) const UNKNOWN_APPLICATION: &str = "unknown";

/// Seconds from 1900-01-01, the epoch of the NTP timestamp format, to 1970-01-01 (RFC 5905 appendix A.4).
pub(super) const NTP_TO_UNIX_SECONDS: u64 = 2_208_988_800;

/// Identifiers of elements in the IANA registry that are not in the schema, or that describe other elements.
pub(super) mod iana {
    pub(in crate::ipfix) const INGRESS_INTERFACE: u16 = 10;
    pub(in crate::ipfix) const SOURCE_IPV6_ADDRESS: u16 = 27;
    pub(in crate::ipfix) const DESTINATION_IPV6_ADDRESS: u16 = 28;
    pub(in crate::ipfix) const FLOW_DIRECTION: u16 = 61;
    pub(in crate::ipfix) const APPLICATION_NAME: u16 = 96;
    pub(in crate::ipfix) const EXPORTER_IPV4_ADDRESS: u16 = 130;
    pub(in crate::ipfix) const EXPORTER_IPV6_ADDRESS: u16 = 131;
    pub(in crate::ipfix) const FLOW_END_REASON: u16 = 136;
    pub(in crate::ipfix) const FLOW_START_MILLISECONDS: u16 = 152;
    pub(in crate::ipfix) const FLOW_END_MILLISECONDS: u16 = 153;
    pub(in crate::ipfix) const FLOW_START_NANOSECONDS: u16 = 156;
    pub(in crate::ipfix) const FLOW_END_NANOSECONDS: u16 = 157;
    pub(in crate::ipfix) const DOT1Q_CUSTOMER_VLAN_ID: u16 = 245;
    pub(in crate::ipfix) const SYSTEM_INIT_TIME_MILLISECONDS: u16 = 160;
    pub(in crate::ipfix) const POST_NAT_SOURCE_IPV4_ADDRESS: u16 = 225;
    pub(in crate::ipfix) const POST_NAT_DESTINATION_IPV4_ADDRESS: u16 = 226;
    pub(in crate::ipfix) const POST_NAT_SOURCE_IPV6_ADDRESS: u16 = 281;
    pub(in crate::ipfix) const POST_NAT_DESTINATION_IPV6_ADDRESS: u16 = 282;
    pub(in crate::ipfix) const INFORMATION_ELEMENT_ID: u16 = 303;
    pub(in crate::ipfix) const INFORMATION_ELEMENT_DATA_TYPE: u16 = 339;
    pub(in crate::ipfix) const INFORMATION_ELEMENT_NAME: u16 = 341;
    pub(in crate::ipfix) const INFORMATION_ELEMENT_SEMANTICS: u16 = 344;
    pub(in crate::ipfix) const INFORMATION_ELEMENT_UNITS: u16 = 345;
    pub(in crate::ipfix) const PRIVATE_ENTERPRISE_NUMBER: u16 = 346;
}
