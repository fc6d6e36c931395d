//! Conditions of a query that choose what is read: keys of flows, as a filter, and times.
//!
//! All conditions are evaluated again for each row, so that a condition here may be weaker than that of the query, but never
//! stronger.

use std::net::IpAddr;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use flowgauge::Decapsulation;
use flowgauge_arrow::scan::{Scan, ScanConfig, Times};

use crate::functions::{CIDR_CONTAINS, Network};

/// Maximum number of values in a list that becomes a filter. A filter has at most 1024 terms.
const LIST_LEN_MAX: usize = 64;

/// Maximum number of terms of all conditions together.
const TERM_COUNT_MAX: usize = 512;

/// Conditions that choose what is read.
#[derive(Debug)]
pub(crate) struct Predicates {
    /// A term of the filter language for each condition.
    terms: Vec<Term>,
    times: Times,
}

/// A condition on keys in the filter language, and the number of its terms.
#[derive(Debug)]
struct Term {
    text: String,
    count: usize,
}

impl Predicates {
    /// Returns what follows from conditions that hold together.
    pub(crate) fn of<'e>(scan: &Scan, filters: impl IntoIterator<Item = &'e Expr>) -> Self {
        let (mut terms, mut times) = (Vec::new(), Times::default());
        // A row without a time depends on the packets of other flows.
        let Some(time_column) = scan.table().time_column() else { return Self { terms, times } };
        let config = scan.config();
        // A flow of outer packets counts inner ones; and two filters cannot be joined.
        let has_keys = config.tunnels == Decapsulation::Innermost && config.filter.is_none();
        let mut count = 0;
        for filter in filters {
            narrow(&mut times, time_column, filter);
            if let Some(term) = key(filter).filter(|term| has_keys && count + term.count <= TERM_COUNT_MAX) {
                count += term.count;
                terms.push(term);
            }
        }
        Self { terms, times }
    }

    /// Returns whether nothing follows.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.times == Times::default()
    }

    /// Adds the conditions to the settings of a scan. Keys choose packets only if rows do not depend on the packets of other
    /// flows (`is_alone`).
    pub(crate) fn apply(self, config: &mut ScanConfig, is_alone: bool) {
        config.times = self.times;
        if self.terms.is_empty() || !is_alone {
            return;
        }
        let text = self.terms.iter().map(|term| term.text.as_str()).collect::<Vec<_>>().join(" and ");
        // Terms are valid; if one is not, all is read.
        config.filter = text.parse().ok().or(config.filter.take());
    }
}

/// Returns the name of a column of an expression that is one.
fn column(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        _ => None,
    }
}

/// Returns the condition on keys that follows from an expression.
fn key(expr: &Expr) -> Option<Term> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => match (key(left), key(right)) {
                (Some(left), Some(right)) => Some(join(&left, "and", &right)),
                (left, right) => left.or(right),
            },
            Operator::Or => Some(join(&key(left)?, "or", &key(right)?)),
            Operator::Eq => match (column(left), column(right)) {
                (Some(name), None) => equal(name, right),
                (None, Some(name)) => equal(name, left),
                _ => None,
            },
            _ => None,
        },
        Expr::InList(list) if !list.negated && (1..=LIST_LEN_MAX).contains(&list.list.len()) => {
            let name = column(&list.expr)?;
            let terms: Option<Vec<_>> = list.list.iter().map(|value| equal(name, value)).collect();
            terms?.into_iter().reduce(|first, second| join(&first, "or", &second))
        }
        Expr::ScalarFunction(function) if function.name() == CIDR_CONTAINS => {
            let [Expr::Literal(network, _), address] = function.args.as_slice() else { return None };
            let ("source_address" | "destination_address") = column(address)? else { return None };
            let network = Network::parse(network.try_as_str()??)?;
            Some(Term { text: format!("net {network}"), count: 1 })
        }
        _ => None,
    }
}

fn join(left: &Term, joint: &str, right: &Term) -> Term {
    Term { text: format!("({} {joint} {})", left.text, right.text), count: left.count + right.count }
}

/// Returns the condition on keys that follows from a column with a value.
fn equal(name: &str, value: &Expr) -> Option<Term> {
    let Expr::Literal(value, _) = value else { return None };
    let text = match name {
        "source_address" | "destination_address" => {
            let text = value.try_as_str()??;
            let address: IpAddr = text.parse().ok()?;
            // Another spelling of an address equals no text of a row.
            if address.to_string() != text {
                return None;
            }
            format!("host {address}")
        }
        "source_port" | "destination_port" => format!("port {}", u16::try_from(unsigned(value)?).ok()?),
        "protocol" => format!("proto {}", u8::try_from(unsigned(value)?).ok()?),
        _ => return None,
    };
    Some(Term { text, count: 1 })
}

fn unsigned(value: &ScalarValue) -> Option<u64> {
    match value {
        ScalarValue::UInt8(value) => value.map(u64::from),
        ScalarValue::UInt16(value) => value.map(u64::from),
        ScalarValue::UInt32(value) => value.map(u64::from),
        ScalarValue::UInt64(value) => *value,
        ScalarValue::Int64(value) => value.and_then(|value| value.try_into().ok()),
        _ => None,
    }
}

/// Narrows a range of times to what follows from an expression.
fn narrow(times: &mut Times, name: &str, expr: &Expr) {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        if let Expr::Between(between) = expr
            && !between.negated
            && column(&between.expr) == Some(name)
        {
            bound(times, Operator::GtEq, &between.low);
            bound(times, Operator::LtEq, &between.high);
        }
        return;
    };
    match op {
        Operator::And => {
            narrow(times, name, left);
            narrow(times, name, right);
        }
        op if column(left) == Some(name) => bound(times, *op, right),
        op if column(right) == Some(name) => {
            if let Some(op) = op.swap() {
                bound(times, op, left);
            }
        }
        _ => {}
    }
}

/// Narrows a range of times to those that have an order to a value. A time after the last one of Arrow's is that one, so
/// that it is no bound.
fn bound(times: &mut Times, op: Operator, value: &Expr) {
    let Expr::Literal(ScalarValue::TimestampNanosecond(Some(value), _), _) = value else { return };
    let at = u64::try_from(*value).unwrap_or(0);
    let (first, last) = (times.first.as_nanos(), times.last.as_nanos());
    let last_at = if *value == i64::MAX { u64::MAX } else { at };
    *times = match op {
        Operator::Gt | Operator::GtEq => Times::new(first.max(at), last),
        Operator::Lt | Operator::LtEq => Times::new(first, last.min(last_at)),
        Operator::Eq => Times::new(first.max(at), last.min(last_at)),
        _ => *times,
    };
}
