//! Conditions on rows.

use std::collections::HashMap;

use flowgauge::row::{Column, Row, RowType, TableInfo, Value};

use crate::compile::Compiler;
use crate::node::Node;
use crate::problem::Problem;
use crate::seen::Seen;
use crate::syntax;

/// A condition on the columns of rows.
#[derive(Clone, Debug)]
pub struct Condition {
    root: Node,
    /// The columns of the condition: the names from the row inward.
    columns: Vec<Vec<&'static str>>,
    /// For each shape of rows, the indices of the columns.
    places: HashMap<usize, Vec<Option<usize>>>,
    values: Vec<Value>,
    seen: Seen,
}

impl Condition {
    /// Parses a condition on rows of a type.
    ///
    /// # Errors
    ///
    /// Returns the problem, with the text in which its place is marked.
    pub fn of_row<R: RowType>(text: &str) -> Result<Self, String> {
        Self::new(text, &R::columns())
    }

    /// Parses a condition on rows of a type, for a caller that shows the position of a problem.
    ///
    /// # Errors
    ///
    /// Returns the problem and its place.
    pub fn parse<R: RowType>(text: &str) -> Result<Self, Problem> {
        Self::compiled(text, &R::columns())
    }

    /// Parses a condition on rows of several tables, all with the columns of another one in front.
    ///
    /// # Errors
    ///
    /// Same as for [`of_row`](Self::of_row).
    pub fn of_tables(
        text: &str,
        head: &[&'static Column],
        tables: &[&'static TableInfo],
    ) -> Result<Self, String> {
        let columns = tables.iter().flat_map(|table| table.columns);
        Self::new(text, &head.iter().copied().chain(columns).collect::<Vec<_>>())
    }

    /// Parses a condition on rows with these columns.
    ///
    /// # Errors
    ///
    /// Same as for [`of_row`](Self::of_row).
    pub fn new(text: &str, known: &[&'static Column]) -> Result<Self, String> {
        Self::compiled(text, known).map_err(|problem| problem.describe(text))
    }

    fn compiled(text: &str, known: &[&'static Column]) -> Result<Self, Problem> {
        let mut compiler = Compiler::new(known);
        let root = compiler.condition(&syntax::parse(text)?)?;
        let columns = compiler.columns.into_iter().map(|(path, _)| path).collect();
        Ok(Self { root, columns, places: HashMap::new(), values: Vec::new(), seen: Seen::default() })
    }

    /// Returns the names of the columns of the condition, some of which may be repeated.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().filter_map(|path| path.first().copied())
    }

    /// Returns whether a row meets the condition. Linear in the number of columns of the row, for each column of the
    /// condition.
    pub fn matches(&mut self, row: &impl Row) -> bool {
        self.matches_named(row, || row.own_columns().iter().map(|column| column.name).collect())
    }

    /// Returns whether a row meets the condition, for rows whose columns have other names in the condition. `names` returns
    /// those of all columns of the row, and is called for the first row with these columns.
    pub fn matches_named(&mut self, row: &impl Row, names: impl FnOnce() -> Vec<&'static str>) -> bool {
        let Self { root, columns, places, values, seen } = self;
        let places = places.entry(row.shape_id()).or_insert_with(|| {
            let known = names();
            let place = |name: &&'static str| known.iter().position(|known| known == name);
            columns.iter().map(|path| path.first().and_then(place)).collect()
        });
        values.clear();
        values.extend(columns.iter().zip(places.iter()).map(|(path, place)| {
            let value = place.map_or(Value::Null, |index| row.value(index));
            path.iter().skip(1).fold(value, |value, name| member(value, name))
        }));
        let is_match = root.evaluate(values) == Some(true);
        seen.add(values, is_match);
        is_match
    }

    /// Returns why no row met the condition: the number of rows, and values that its columns had. `None` if a row met it, or
    /// there were no rows.
    #[must_use]
    pub fn unmatched(&self) -> Option<String> {
        self.seen.describe(self.columns.iter().map(|path| path.join(".")))
    }
}

/// Conditions that a row must meet.
#[derive(Clone, Debug, Default)]
pub struct RowFilter {
    conditions: Vec<Condition>,
    has_match: bool,
}

impl RowFilter {
    /// Creates the filter of all of these conditions.
    pub fn new(conditions: impl IntoIterator<Item = Condition>) -> Self {
        Self { conditions: conditions.into_iter().collect(), has_match: false }
    }

    /// Adds a condition.
    pub fn add(&mut self, condition: Condition) {
        self.conditions.push(condition);
    }

    /// Returns whether there are no conditions.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Returns whether a row meets all conditions.
    #[inline]
    pub fn matches(&mut self, row: &impl Row) -> bool {
        let is_match = self.conditions.iter_mut().all(|condition| condition.matches(row));
        self.has_match |= is_match;
        is_match
    }

    /// Returns whether a row meets all conditions, for rows whose columns have other names in the conditions, as
    /// [`Condition::matches_named`] does.
    #[inline]
    pub fn matches_named(&mut self, row: &impl Row, names: impl Fn() -> Vec<&'static str>) -> bool {
        let mut conditions = self.conditions.iter_mut();
        let is_match = conditions.all(|condition| condition.matches_named(row, &names));
        self.has_match |= is_match;
        is_match
    }

    /// Returns why no row met all conditions, as [`Condition::unmatched`] does.
    #[must_use]
    pub fn unmatched(&self) -> Option<String> {
        let row_count = self.conditions.first().filter(|_| !self.has_match)?.seen.row_count;
        let unmatched = self.conditions.iter().find_map(Condition::unmatched);
        unmatched.or_else(|| (row_count > 0).then(|| format!("0 of {row_count} rows matched all conditions")))
    }

    /// Returns the names of the columns of all conditions, some of which may be repeated.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.conditions.iter().flat_map(Condition::columns)
    }
}

/// Returns the value of a column inside of a group, or those inside of the groups of a list.
fn member(value: Value, name: &str) -> Value {
    match value {
        Value::Group(members) => members
            .into_iter()
            .find(|(column, _)| column.name == name)
            .map_or(Value::Null, |(_, value)| value),
        Value::List(items) => Value::List(items.into_iter().map(|item| member(item, name)).collect()),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use flowgauge::row::Type;
    use flowgauge::{FileSource, FlowRecord, records};

    use super::*;

    fn all() -> Vec<FlowRecord> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/web.pcap");
        records(FileSource::open(path).unwrap()).map(Result::unwrap).collect()
    }

    fn count(condition: &str) -> usize {
        let mut condition = Condition::of_row::<FlowRecord>(condition).unwrap();
        all().iter().filter(|record| condition.matches(*record)).count()
    }

    fn expected(is_expected: impl Fn(&FlowRecord) -> bool) -> usize {
        let count = all().into_iter().filter(is_expected).count();
        assert!(count > 0 && count < all().len(), "the condition selects");
        count
    }

    #[test]
    fn conditions_select_what_a_program_selects() {
        let octets = |record: &FlowRecord| record.forward.counters.octet_count;
        let packets = |record: &FlowRecord| record.forward.counters.packet_count;
        let cases: [(&str, usize); 22] = [
            ("octet_count > 10000", expected(|record| octets(record) > 10_000)),
            ("10000 < octet_count", expected(|record| octets(record) > 10_000)),
            ("octet_count >= '10kB'", expected(|record| octets(record) >= 10_000)),
            (
                "octet_count <= 10000 and packet_count != 1",
                expected(|record| octets(record) <= 10_000 && packets(record) != 1),
            ),
            (
                "not (octet_count > 10000 or protocol = 'udp')",
                expected(|record| octets(record) <= 10_000 && record.protocol().to_string() != "udp"),
            ),
            ("conn_state = \"SF\"", expected(|record| record.conn_state.name() == "SF")),
            ("conn_state == 'SF'", expected(|record| record.conn_state.name() == "SF")),
            (
                "conn_state in ('S0', 'REJ')",
                expected(|record| ["S0", "REJ"].contains(&record.conn_state.name())),
            ),
            (
                "conn_state not in ('S0', 'REJ')",
                expected(|record| !["S0", "REJ"].contains(&record.conn_state.name())),
            ),
            ("conn_state like 'S%'", expected(|record| record.conn_state.name().starts_with('S'))),
            ("conn_state ilike 's_'", expected(|record| record.conn_state.name().starts_with('S'))),
            (
                "source_address = '10.77.0.0/16'",
                expected(|record| matches!(record.source_address(), std::net::IpAddr::V4(_))),
            ),
            ("source_address != '10.77.0.0/16'", expected(|record| record.source_address().is_ipv6())),
            ("destination_address in ('::/0')", expected(|record| record.destination_address().is_ipv6())),
            (
                "destination_port between 443 and 8080",
                expected(|record| record.destination_port().is_some_and(|port| (443..=8080).contains(&port))),
            ),
            ("destination_port is null", expected(|record| record.destination_port().is_none())),
            (
                "destination_port <> 443",
                expected(|record| record.destination_port().is_some_and(|port| port != 443)),
            ),
            ("duration > '100ms'", expected(|record| record.duration().as_millis() > 100)),
            ("duration > 0.1", expected(|record| record.duration().as_millis() > 100)),
            (
                "octet_count / packet_count > 500 + 2 * -50",
                expected(|record| octets(record) as f64 / packets(record) as f64 > 400.0),
            ),
            (
                "reverse_octet_count > octet_count - reverse_octet_count",
                expected(|record| 2 * record.reverse.counters.octet_count > octets(record)),
            ),
            ("flow_end_reason is not null and packet_count < 2", expected(|record| packets(record) < 2)),
        ];
        for (condition, expected) in cases {
            assert_eq!(count(condition), expected, "{condition}");
        }
        let (start, last) = (all()[0].start, all().last().unwrap().start);
        let both = count(&format!("start >= '{}'", start.rfc3339()))
            - count(&format!("start > '{}'", last.rfc3339()));
        assert!(both > 1, "{both}");
        assert_eq!(count("start > '2000-01-01'"), all().len());
        assert_eq!(count("start < 1"), 0);
    }

    #[test]
    fn tests_of_truth_are_true_or_false() {
        let all = all().len();
        let (is_true, is_false) = (count("destination_port = 80"), count("destination_port != 80"));
        assert!(is_true > 0 && is_false > 0 && is_true + is_false < all);
        for (condition, expected) in [
            ("(destination_port = 80) is true", is_true),
            ("(destination_port = 80) is not true", all - is_true),
            ("not ((destination_port = 80) is true)", all - is_true),
            ("(destination_port = 80) is false", is_false),
            ("(destination_port = 80) is unknown", all - is_true - is_false),
            ("(destination_port = 80) is not unknown", is_true + is_false),
        ] {
            assert_eq!(count(condition), expected, "{condition}");
        }
    }

    #[test]
    fn lists_and_texts_are_compared_by_item_and_type() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/vlan.pcapng");
        let all: Vec<_> = records(FileSource::open(path).unwrap()).map(Result::unwrap).collect();
        let count = |condition: &str| {
            let mut condition = Condition::of_row::<FlowRecord>(condition).unwrap();
            all.iter().filter(|record| condition.matches(*record)).count()
        };
        assert!(count("vlan_ids = 100") > 0);
        assert_eq!(count("vlan_ids between 30 and 90"), 0);
        assert_eq!(count("vlan_ids between 90 and 110"), count("vlan_ids = 100"));
        assert_eq!(count("vlan_ids <> 100"), all.len() - count("vlan_ids = 100"));
        let mac = all[0].forward.mac.unwrap();
        let upper = mac.map(|octet| format!("{octet:02X}")).join(":");
        assert!(count(&format!("source_mac_address = '{upper}'")) > 0);
    }

    #[test]
    fn absent_values_are_neither_equal_nor_different() {
        let absent = count("destination_port is null");
        assert!(absent > 0);
        for condition in ["destination_port = 1", "destination_port != 1"] {
            let both = count(condition) + count(&format!("not ({condition})")) + absent;
            assert_eq!(both, all().len(), "{condition}");
        }
        assert_eq!(count("destination_port / 0 > 1 or destination_port / 0 <= 1"), 0);
    }

    #[test]
    fn names_are_compared_without_case_and_texts_with_it() {
        assert_eq!(count("conn_state = 'sf'"), count("conn_state = 'SF'"));
        assert_eq!(count("conn_state in ('sf', 'ReJ')"), count("conn_state in ('SF', 'REJ')"));
        assert_eq!(count("conn_state <> 'sf'"), count("conn_state <> 'SF'"));
        assert_eq!(
            count("flow_end_reason = 'END_OF_FLOW_DETECTED'"),
            count("flow_end_reason = 'end_of_flow_detected'")
        );
        assert!(count("conn_state = 'sf'") > 0 && count("flow_end_reason = 'END_OF_FLOW_DETECTED'") > 0);
        // The letters of a history differ by direction.
        let histories: Vec<_> = all().iter().map(|record| record.history.to_string()).collect();
        let history = histories.iter().find(|history| history.to_ascii_uppercase() != **history).unwrap();
        assert!(count(&format!("history = '{history}'")) > 0);
        assert_eq!(count(&format!("history = '{}'", history.to_ascii_uppercase())), 0);
    }

    #[test]
    fn conditions_that_no_row_matches_say_what_there_was() {
        let records = all();
        let unmatched = |conditions: &[&str]| {
            let conditions = conditions.iter().map(|text| Condition::of_row::<FlowRecord>(text).unwrap());
            let mut filter = RowFilter::new(conditions);
            records.iter().for_each(|record| {
                filter.matches(record);
            });
            filter.unmatched()
        };
        let states: std::collections::BTreeSet<_> =
            records.iter().map(|record| record.conn_state.name()).collect();
        let states: Vec<_> = states.into_iter().collect();
        let count = records.len();
        assert_eq!(
            unmatched(&["conn_state = 'S9'"]).unwrap(),
            format!("0 of {count} rows matched; conn_state values seen: {}", states.join(", "))
        );
        let packets = records.iter().map(|record| record.forward.counters.packet_count);
        assert_eq!(
            unmatched(&["packet_count > 100000"]).unwrap(),
            format!(
                "0 of {count} rows matched; packet_count values seen: {} to {}",
                packets.clone().min().unwrap(),
                packets.max().unwrap()
            )
        );
        let absent = unmatched(&["application = 'x' and packet_count > 0"]).unwrap();
        assert!(
            absent.contains("; no row has a value of application; packet_count values seen: "),
            "{absent}"
        );
        assert!(unmatched(&["duration > '1h'"]).unwrap().contains("duration values seen: 0s to "));
        let distinct = unmatched(&["community_id = 'x'"]).unwrap();
        assert!(distinct.ends_with(" and others") && distinct.matches("1:").count() == 8, "{distinct}");
        assert_eq!(unmatched(&["packet_count > 0"]), None);
        assert_eq!(
            unmatched(&["protocol = 'tcp'", "protocol <> 'tcp'"]).unwrap().split(';').next().unwrap(),
            format!("0 of {} rows matched", records.iter().filter(|record| record.protocol().0 == 6).count())
        );
        assert_eq!(RowFilter::default().unmatched(), None);
        assert_eq!(
            RowFilter::new([Condition::of_row::<FlowRecord>("packet_count > 0").unwrap()]).unmatched(),
            None
        );
    }

    /// A name that the grammar reserves could not be used.
    #[test]
    fn all_columns_can_be_named() {
        use flowgauge::row::Union as _;
        let columns = FlowRecord::columns();
        let mut tables = flowgauge::Message::tables();
        tables.extend(flowgauge::transaction::Content::tables());
        tables.extend(flowgauge::SessionEvent::tables());
        let all = columns.iter().copied().chain(tables.iter().flat_map(|table| table.columns));
        let all: Vec<&'static Column> = all.collect();
        for column in &all {
            let condition = format!("{} IS NOT NULL", column.name);
            assert!(Condition::new(&condition, &all).is_ok(), "{condition}");
            if column.column_type == Type::Bool {
                assert!(Condition::new(column.name, &all).is_ok(), "{}", column.name);
            }
        }
    }

    #[test]
    fn problems_are_explained_at_their_place() {
        for (condition, column, text) in [
            ("octet_conut > 1", 1, "`octet_conut` is not a column; did you mean `octet_count`?"),
            ("packet_count > 1 and src_addr = '::1'", 22, "`src_addr` is not a column"),
            ("octet_count = 'many'", 15, "`octet_count` is compared with a number"),
            ("start > 'yesterday'", 9, "seconds since 1970"),
            ("duration > 'long'", 12, "a text such as '10ms'"),
            ("source_address = 10", 18, "an address or network"),
            ("source_address = '10.0.0.0/33'", 18, "an address or network"),
            ("octet_count", 1, "not true or false"),
            ("octet_count >", 14, "found the end"),
            ("octet_count > 1 packet_count", 17, "join conditions by AND or OR"),
            ("octet_count = null", 15, "IS NULL"),
            ("'a' = \"octet_count\"", 7, "columns have no quotes"),
            ("octet_count in (select 1)", 1, "subqueries are not supported"),
            ("count(*) > 1", 1, "not supported as a value"),
            ("history like 5", 14, "a text in quotes on its right"),
            ("octet_count + packet_count > '1kB'", 30, "write a number"),
            ("destination_port like '80%'", 1, "LIKE needs a column of texts"),
            ("source_address = octet_count", 18, "values of different types are compared"),
            ("\"destination_port\" is null", 1, "columns have no quotes"),
            ("'a' = 'a'", 7, "two values are compared"),
            ("tcp_flags & 2 = 2", 11, "`&` is not supported"),
            ("packet_count > 1 && octet_count > 1", 18, "join comparisons by AND"),
            ("protocol = 'http'", 12, "a name such as 'tcp'"),
            ("application = http", 15, "texts need quotes"),
            ("1", 1, "a value alone is not a condition"),
            ("'a'", 1, "a text alone is not a condition"),
            ("octet_count + history > 1", 15, "not a number"),
            ("octet_count.first > 1", 13, "`first` is not a column in `octet_count`; it has no columns"),
            ("", 1, "found the end"),
            ("duration > 10ms", 12, "a number with a unit needs quotes: '10ms'"),
            ("octet_count not > 1", 13, "write NOT IN"),
            ("octet_count is 1", 16, "expected NULL, TRUE, FALSE or UNKNOWN"),
            ("octet_count between 1 or 2", 23, "expected AND"),
            ("octet_count in 1", 16, "expected `(`"),
            ("octet_count in (1 2)", 19, "expected `,` or `)`"),
            ("(octet_count > 1", 17, "expected `)`, found the end"),
            ("octet_count > 1 and", 20, "expected a column or a value, found the end"),
            ("octet_count + 1", 1, "a computed number is not a condition"),
            ("conn_state = 'S0", 14, "no closing '"),
        ] {
            let error = Condition::of_row::<FlowRecord>(condition).expect_err(condition);
            assert!(error.contains(text), "{condition}: {error}");
            assert!(error.contains(&format!("column {column}:")), "{condition}: {error}");
        }
    }

    #[test]
    fn deep_and_long_conditions_are_refused_or_work() {
        let deep = format!("{}packet_count > 0{}", "(".repeat(5000), ")".repeat(5000));
        assert!(Condition::of_row::<FlowRecord>(&deep).is_err());
        let nots = format!("{}packet_count > 0", "not ".repeat(2000));
        assert!(Condition::of_row::<FlowRecord>(&nots).is_err());
        let long = vec!["packet_count >= 0"; 400].join(" and ");
        assert_eq!(count(&long), all().len());
        let list = format!("packet_count in ({})", vec!["1"; 3000].join(","));
        assert_eq!(count(&list), count("packet_count = 1"));
        for refused in [
            vec!["packet_count > 0"; 4000].join(" or "),
            format!("packet_count > {}", vec!["1"; 4000].join("+")),
            vec!["protocol"; 900].join("||"),
            format!("packet_count > {}1", "- ".repeat(3000)),
        ] {
            assert!(Condition::of_row::<FlowRecord>(&refused).is_err());
        }
    }
}
