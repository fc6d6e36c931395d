//! Other names of columns.

/// Other names of columns: short ones, and those of Zeek.
pub const ALIASES: [(&str, &str); 28] = [
    ("app", "application"),
    ("dport", "destination_port"),
    ("dst", "destination_address"),
    ("dst_ip", "destination_address"),
    ("dst_mac", "destination_mac_address"),
    ("dst_port", "destination_port"),
    ("flags", "tcp_flags"),
    ("proto", "protocol"),
    ("rtt", "handshake_rtt"),
    ("sport", "source_port"),
    ("src", "source_address"),
    ("src_ip", "source_address"),
    ("src_mac", "source_mac_address"),
    ("src_port", "source_port"),
    ("state", "conn_state"),
    ("vlan", "vlan_ids"),
    ("id.orig_h", "source_address"),
    ("id.orig_p", "source_port"),
    ("id.resp_h", "destination_address"),
    ("id.resp_p", "destination_port"),
    ("orig_bytes", "payload_octet_count"),
    ("orig_ip_bytes", "ip_octet_count"),
    ("orig_pkts", "packet_count"),
    ("resp_bytes", "reverse_payload_octet_count"),
    ("resp_ip_bytes", "reverse_ip_octet_count"),
    ("resp_pkts", "reverse_packet_count"),
    ("service", "application"),
    ("ts", "start"),
];

/// Names that could mean both directions or one of them, with the column that is suggested for them.
const AMBIGUOUS: [(&str, &str); 3] =
    [("bytes", "octet_count"), ("octets", "octet_count"), ("packets", "packet_count")];

/// Returns the name of a column that another name stands for, or the name itself. A name of a column stands for itself.
#[must_use]
pub fn field_name(name: &str, is_field: impl Fn(&str) -> bool) -> &str {
    let alias = || ALIASES.iter().find(|(alias, field)| *alias == name && is_field(field));
    if is_field(name) { name } else { alias().map_or(name, |(_, field)| field) }
}

/// Returns the name of a column that was probably meant, if it is one that people expect.
pub(crate) fn suggested(name: &str) -> Option<&'static str> {
    AMBIGUOUS.iter().find(|(ambiguous, _)| *ambiguous == name).map(|(_, field)| *field)
}

#[cfg(test)]
mod tests {
    use flowgauge::FlowRecord;
    use flowgauge::row::RowType as _;

    use super::*;

    #[test]
    fn aliases_are_names_of_columns() {
        let columns = FlowRecord::columns();
        let is_field = |name: &str| columns.iter().any(|column| column.name == name);
        for (alias, field) in ALIASES {
            assert!(is_field(field) && !is_field(alias), "{alias} {field}");
            assert_eq!(field_name(alias, is_field), field);
        }
        assert_eq!(field_name("nothing", is_field), "nothing");
    }
}
