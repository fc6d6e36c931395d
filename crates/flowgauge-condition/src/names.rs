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

/// Columns of names without case: those of applications, and those of hosts in DNS (RFC 4343) and what uses them.
const CASELESS: [&[&str]; 5] = [&["application"], &["dns_names"], &["host"], &["query"], &["server_name"]];

/// Lists of questions and records of DNS, each of which has a name.
const DNS_LISTS: [&str; 4] = ["questions", "answers", "authorities", "additionals"];

/// Returns whether the texts of a column are compared without case. The names of the column are those from the row inward.
pub(crate) fn is_caseless(path: &[&str]) -> bool {
    CASELESS.contains(&path) || matches!(path, [list, "name"] if DNS_LISTS.contains(list))
}

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
    use flowgauge::row::{Column, RowType as _, Type, Union as _};

    use super::*;

    #[test]
    fn names_without_case_are_columns_of_text() {
        let tables =
            flowgauge::Message::tables().into_iter().chain(flowgauge::transaction::Content::tables());
        let columns: Vec<&Column> =
            FlowRecord::columns().into_iter().chain(tables.flat_map(|table| table.columns)).collect();
        let types = |name: &'static str| {
            let named = columns.iter().filter(move |column| column.name == name);
            named.map(|column| match column.column_type {
                Type::List(item) => item.column_type,
                column_type => column_type,
            })
        };
        for path in CASELESS {
            let [name] = path else { panic!("{path:?}") };
            assert!(types(name).count() > 0, "{name}");
            assert!(types(name).all(|column_type| column_type == Type::Text), "{name}");
        }
        for list in DNS_LISTS {
            let has_name = |column_type| {
                let Type::Group(members) = column_type else { return false };
                members.iter().any(|member| (member.name, member.column_type) == ("name", Type::Text))
            };
            assert!(types(list).any(has_name), "{list}");
        }
        assert!(!is_caseless(&["method"]) && !is_caseless(&["name"]) && !is_caseless(&["questions", "type"]));
    }

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
