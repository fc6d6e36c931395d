//! The arguments of a table function.

use std::time::Duration;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    Array, Expr, FunctionArg, FunctionArgExpr, Ident, Value, ValueWithSpan,
};
use flowgauge::Decapsulation;
use flowgauge_arrow::scan::{ScanConfig, Table};

use crate::location::Location;

/// The functions that return tables.
pub(crate) const FUNCTIONS: [&str; 6] = ["flows", "packets", "messages", "transactions", "findings", "hosts"];

/// Returns the options of a table, in the order of the documentation.
const fn options_of(table: Table) -> &'static [&'static str] {
    match table {
        Table::Flows => &["features", "filter", "idle_timeout", "active_timeout", "tunnels", "joined"],
        Table::Packets => &["filter", "tunnels", "joined"],
        // They relate the flows of all captures.
        Table::Findings | Table::Hosts => &["filter", "idle_timeout", "tunnels"],
        _ => &["filter", "idle_timeout", "tunnels", "joined"],
    }
}

/// What a call of a table function states.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub(crate) table: Table,
    pub(crate) patterns: Vec<String>,
    pub(crate) config: ScanConfig,
}

/// A literal argument.
enum Literal {
    Text(String),
    Texts(Vec<String>),
    Bool(bool),
    /// A number, which no option has.
    Number,
}

impl Arguments {
    /// Reads the arguments of the function with this name.
    pub(crate) fn parse(function: &str, arguments: Vec<FunctionArg>) -> Result<Self> {
        let (mut texts, mut options) = (Vec::new(), Vec::new());
        for argument in arguments {
            match argument {
                FunctionArg::Unnamed(value) => match literal(function, value)? {
                    Literal::Text(text) => texts.push(text),
                    Literal::Texts(all) => texts.extend(all),
                    Literal::Bool(_) | Literal::Number => {
                        return plan_err!("{function}: an argument without a name must be a text");
                    }
                },
                FunctionArg::Named { name, arg, .. } => options.push((name, literal(function, arg)?)),
                FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => {
                    options.push((name, literal(function, arg)?));
                }
                FunctionArg::ExprNamed { name, .. } => {
                    return plan_err!("{function}: {name} is no name of an option");
                }
            }
        }
        let mut texts = texts.into_iter();
        let failure = |error: &dyn std::fmt::Display| DataFusionError::Plan(format!("{function}: {error}"));
        let table = match function {
            "flows" => Table::Flows,
            "packets" => Table::Packets,
            "findings" => Table::Findings,
            "hosts" => Table::Hosts,
            _ => {
                let Some(kind) = texts.next() else {
                    return plan_err!("{function}: the first argument is the kind of rows, such as 'http'");
                };
                let table =
                    if function == "messages" { Table::messages(&kind) } else { Table::transactions(&kind) };
                table.map_err(|error| failure(&error))?
            }
        };
        let patterns: Vec<_> = texts.collect();
        if patterns.is_empty() {
            return plan_err!("{function}: a path of a capture is required");
        }
        // A URL with credentials is not planned, so that it is not sent to other machines.
        for pattern in &patterns {
            Location::of(pattern)?;
        }
        let mut config = ScanConfig::default();
        let known = options_of(table);
        for (Ident { value: name, .. }, value) in options {
            let name = name.to_ascii_lowercase();
            if !known.contains(&name.as_str()) {
                let known = known.join(", ");
                return plan_err!("{function}: {name} is no option; options are {known}");
            }
            set(&mut config, &name, value).map_err(|problem| failure(&problem))?;
        }
        let is_of_flows = config.filter.as_ref().is_some_and(|filter| !filter.is_final());
        if is_of_flows && table != Table::Flows {
            return plan_err!("{function}: src, dst and vlan in a filter apply to whole flows; use WHERE");
        }
        Ok(Self { table, patterns, config })
    }
}

/// Sets an option.
fn set(config: &mut ScanConfig, name: &str, value: Literal) -> Result<(), String> {
    let text = |value: Literal| match value {
        Literal::Text(text) => Ok(text),
        _ => Err(format!("{name} must be a text")),
    };
    let duration = |value: Literal| -> Result<Duration, String> {
        let value = text(value)?;
        let duration =
            humantime::parse_duration(&value).map_err(|error| format!("{name} {value:?}: {error}"))?;
        if duration.is_zero() { Err(format!("{name} must be longer than zero")) } else { Ok(duration) }
    };
    match name {
        "features" => config.features = text(value)?.parse().map_err(|error| format!("{name}: {error}"))?,
        "filter" => config.filter = Some(text(value)?.parse().map_err(|error| format!("{name}: {error}"))?),
        "idle_timeout" => config.idle_timeout = Some(duration(value)?),
        "active_timeout" => config.active_timeout = Some(duration(value)?),
        "tunnels" => {
            config.tunnels = match text(value)?.as_str() {
                "innermost" => Decapsulation::Innermost,
                "outermost" => Decapsulation::Outermost,
                "both" => Decapsulation::Both,
                other => return Err(format!("{name} is innermost, outermost or both, not {other:?}")),
            }
        }
        "joined" => match value {
            Literal::Bool(is_joined) => config.is_joined = is_joined,
            _ => return Err(format!("{name} must be true or false")),
        },
        _ => return Err(format!("{name} is no option")),
    }
    Ok(())
}

/// Returns the value of an argument, which must be a literal: a table is planned before any row is read.
fn literal(function: &str, argument: FunctionArgExpr) -> Result<Literal> {
    let FunctionArgExpr::Expr(expr) = argument else {
        return plan_err!("{function}: {argument} is no path of a capture");
    };
    match value(&expr) {
        Some(value) => Ok(value),
        None => {
            plan_err!("{function}: an argument must be a text, an array of texts, true or false, not {expr}")
        }
    }
}

fn value(expr: &Expr) -> Option<Literal> {
    match expr {
        Expr::Value(ValueWithSpan { value, .. }) => match value {
            Value::SingleQuotedString(text) => Some(Literal::Text(text.clone())),
            Value::Boolean(value) => Some(Literal::Bool(*value)),
            Value::Number(..) => Some(Literal::Number),
            _ => None,
        },
        Expr::Array(Array { elem, .. }) => {
            let texts = elem.iter().map(|item| match value(item) {
                Some(Literal::Text(text)) => Some(text),
                _ => None,
            });
            texts.collect::<Option<Vec<_>>>().map(Literal::Texts)
        }
        _ => None,
    }
}
