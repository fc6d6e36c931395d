//! Names of fields: those of rows, groups of fields, and the list that `help` prints.

use std::fmt::Write as _;

use clap::builder::{PossibleValue, TypedValueParser};
use flowgauge::neighbor::NeighborMessage;
use flowgauge::row::{Column, RowType as _, Union as _};
use flowgauge::transaction::Content;
use flowgauge::{FlowRecord, Message, Packet, Protocols as _, Standard};
use flowgauge_condition::{ALIASES, field_name};
use flowgauge_summary::HostRow;

/// Groups of fields of flow records.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "basic",
        &[
            "start",
            "duration",
            "protocol",
            "source_address",
            "source_port",
            "destination_address",
            "destination_port",
            "packet_count",
            "octet_count",
            "reverse_packet_count",
            "reverse_octet_count",
            "conn_state",
        ],
    ),
    (
        "tcp",
        &[
            "tcp_state",
            "conn_state",
            "history",
            "handshake_rtt",
            "tcp_flags",
            "retransmitted_count",
            "out_of_order_count",
            "zero_window_count",
            "reverse_tcp_flags",
            "reverse_retransmitted_count",
            "reverse_out_of_order_count",
            "reverse_zero_window_count",
        ],
    ),
    ("link", &["interface", "source_mac_address", "destination_mac_address", "vlan_ids", "reverse_vlan_ids"]),
    (
        "tunnel",
        &[
            "encapsulation",
            "outer_flow",
            "outer_community_id",
            "reverse_encapsulation",
            "reverse_outer_flow",
            "reverse_outer_community_id",
            "inner_flow_count",
            "carried_packet_count",
            "carried_octet_count",
        ],
    ),
    (
        "exporter",
        &[
            "exporter_address",
            "observation_domain",
            "interface",
            "egress_interface",
            "flow_direction",
            "source_as",
            "destination_as",
            "post_nat_source_address",
            "post_nat_source_port",
            "post_nat_destination_address",
            "post_nat_destination_port",
            "firewall_event",
            "nat_event",
        ],
    ),
];

/// Options whose value `help` prints the names of fields.
const FIELD_OPTIONS: [&str; 7] =
    ["--fields", "--group-by", "--by", "--sum", "--aggregate", "--sort", "--where"];

/// Returns the names of the fields that a list of names of fields and groups stands for. A field that a group repeats is omitted.
pub(crate) fn field_names<'n>(list: &[&'n str], columns: &[&'static Column]) -> Vec<&'n str> {
    let is_field = |name: &str| columns.iter().any(|column| column.name == name);
    let mut names: Vec<&'n str> = Vec::new();
    let mut grouped: Vec<&str> = Vec::new();
    for name in list {
        let group =
            GROUPS.iter().find(|(group, fields)| group == name && fields.iter().all(|field| is_field(field)));
        match group {
            Some((_, fields)) => {
                let new: Vec<_> = fields.iter().filter(|field| !names.contains(*field)).copied().collect();
                grouped.extend(*fields);
                names.extend(new);
            }
            None => {
                let name = field_name(name, is_field);
                if !grouped.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    names
}

/// Appends names with their descriptions, in lines of at most 100 columns.
fn describe<'a>(list: &mut String, entries: impl IntoIterator<Item = (&'a str, &'a str)>) {
    const INDENT: usize = 34;
    const WIDTH: usize = 100;
    for (name, description) in entries {
        let mut line = format!("  {name:<width$}", width = INDENT - 2);
        for word in description.split_whitespace() {
            if line.trim_start() != "" && line.chars().count() + 1 + word.chars().count() > WIDTH {
                let _ = writeln!(list, "{}", line.trim_end());
                line = " ".repeat(INDENT);
            }
            if !line.ends_with(' ') {
                line.push(' ');
            }
            line.push_str(word);
        }
        let _ = writeln!(list, "{}", line.trim_end());
    }
}

/// Returns the list of fields, if the arguments of a command contain an option such as `--fields help`.
pub(crate) fn help(arguments: &[String]) -> Option<String> {
    let has_word = |option: &str| {
        arguments.windows(2).any(|pair| pair == [option, "help"])
            || arguments.iter().any(|word| word.strip_prefix(option) == Some("=help"))
    };
    FIELD_OPTIONS.iter().find(|option| has_word(option))?;
    let mut list = String::new();
    let command = arguments.get(1).map(String::as_str).unwrap_or_default();
    let mut tables = match command {
        "sessions" if arguments.iter().any(|word| word == "--transactions" || word == "-t") => {
            Content::tables()
        }
        "sessions" => Message::tables(),
        _ => Vec::new(),
    };
    if command == "sessions" {
        tables.extend(NeighborMessage::tables());
    }
    if !tables.is_empty() {
        for table in tables {
            let _ = writeln!(list, "Fields of {}", table.name);
            describe(&mut list, table.columns.iter().map(|column| (column.name, column.description)));
        }
        return Some(list);
    }
    let columns = match command {
        "packets" => <Packet<'static> as flowgauge::row::RowType>::columns(),
        "hosts" => HostRow::columns(),
        _ => flow_columns(),
    };
    list.push_str("Fields\n");
    describe(&mut list, columns.iter().map(|column| (column.name, column.description)));
    if !["packets", "hosts"].contains(&command) {
        list.push_str("\nGroups of fields, for --fields, --by and --group-by\n");
        let groups: Vec<_> = GROUPS.iter().map(|(name, fields)| (*name, fields.join(", "))).collect();
        describe(&mut list, groups.iter().map(|(name, fields)| (*name, fields.as_str())));
        list.push_str("\nOther names of fields\n");
        describe(&mut list, ALIASES);
    }
    Some(list)
}

fn flow_columns() -> Vec<&'static Column> {
    <FlowRecord as flowgauge::row::RowType>::columns()
}

/// A parser of values of which a shell completes some.
#[derive(Clone)]
pub(crate) struct Completed<P> {
    parser: P,
    names: fn() -> Vec<&'static str>,
}

impl<P: TypedValueParser> TypedValueParser for Completed<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<P::Value, clap::Error> {
        self.parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

/// Returns a parser of fields of flow records, which a shell completes.
pub(crate) fn completed_fields<P: TypedValueParser>(parser: P) -> Completed<P> {
    let names = || {
        let fields = flow_columns().into_iter().map(|column| column.name);
        GROUPS.iter().map(|(name, _)| *name).chain(fields).collect()
    };
    Completed { parser, names }
}

/// Returns a parser of protocols that have a parser, which a shell completes.
pub(crate) fn completed_protocols<P: TypedValueParser>(parser: P) -> Completed<P> {
    let names = || {
        let parsed = Standard::TABLE.iter().filter(|entry| entry.has_parser);
        parsed
            .map(|entry| entry.protocol.name())
            .chain(flowgauge::neighbor::protocol_names())
            .chain(["neighbor"])
            .collect()
    };
    Completed { parser, names }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_are_those_of_fields() {
        let columns = flow_columns();
        let is_field = |name: &str| columns.iter().any(|column| column.name == name);
        for (group, fields) in GROUPS {
            assert!(!is_field(group) && fields.iter().all(|field| is_field(field)), "{group}");
            assert_eq!(field_names(&[group], &columns), fields);
        }
        assert_eq!(field_names(&["history", "tcp", "src_ip"], &columns).len(), 13);
    }

    #[test]
    fn lists_fit_the_screen() {
        for words in [
            "flowgauge flows --fields help",
            "flowgauge packets --fields=help",
            "flowgauge sessions -t --where help",
            "flowgauge hosts --fields help",
        ] {
            let words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            let list = help(&words).unwrap();
            assert!(
                list.lines().count() > 10 && list.lines().all(|line| line.chars().count() <= 100),
                "{list}"
            );
        }
        let list = |words: &str| help(&words.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap();
        assert!(list("flowgauge hosts --fields help").contains("mac_vendor"));
        assert!(list("flowgauge sessions -p arp --where help").contains("arp_operation"));
        assert_eq!(help(&["flowgauge".to_owned(), "flows".to_owned(), "help".to_owned()]), None);
    }
}
