//! Conditions of `--where`, parsed by `flowgauge-condition` and by `sqlparser`.

use flowgauge_condition::outline;
use sqlparser::ast::{BinaryOperator, Expr, InTarget, UnaryOperator, Value};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

/// Parts of which conditions are made: each octet of the input selects one.
pub(crate) const PARTS: [&str; 64] = [
    "octet_count",
    "protocol",
    "a",
    "b",
    "id.orig_h",
    "`a b`",
    "b_1",
    "1",
    "2.5",
    "1e3",
    "'text'",
    "'it''s'",
    "\"name\"",
    "true",
    "FALSE",
    "null",
    "=",
    "==",
    "!=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "(",
    ")",
    ",",
    " and ",
    " AND ",
    " or ",
    " not ",
    " in ",
    " between ",
    " like ",
    " ilike ",
    " is ",
    " is null",
    " is not null",
    " is true",
    " is not unknown",
    " escape ",
    "'!'",
    "'10.0.0.0/8'",
    " not in (",
    " not between 1 and 2",
    " not like ",
    "(1, 2)",
    "a = 1",
    "b > 2",
    "(a = 1)",
    "not a",
    "-1",
    "- ",
    " ",
    ".",
    "%",
    "&",
    "||",
    "&&",
    "\u{e4}",
];

/// Words that are no names of columns here, although sqlparser accepts them where an expression begins.
const KEYWORDS: [&str; 3] = ["and", "not", "or"];

/// Compares the structure of what both accept. `flowgauge-condition` accepts every condition that `sqlparser` accepts and that has
/// only supported expressions.
pub fn run(data: &[u8]) {
    let text: String = data.iter().filter_map(|octet| PARTS.get(usize::from(octet % 64))).copied().collect();
    // A comment for sqlparser, two signs here.
    if text.contains("--") || text.contains("/*") || text.len() > 1000 {
        return;
    }
    let ours = outline(&text);
    let Some(theirs) = parse(&text) else { return };
    match (ours, structure(&theirs)) {
        (Ok(ours), Some(theirs)) => assert_eq!(ours, theirs, "{text}"),
        (Err(problem), Some(theirs)) => {
            let is_keyword = |word: &&str| theirs.to_ascii_lowercase().contains(&format!("[\"{word}\""));
            // `a NOT NULL` is that of sqlparser only.
            let is_by_design = problem.text.starts_with("too many")
                || problem.text.contains("write NOT IN")
                || KEYWORDS.iter().any(is_keyword);
            assert!(is_by_design, "{text}: {}", problem.text);
        }
        (Ok(_), None) => {}
        (Err(problem), None) => assert!(problem.column <= text.chars().count() + 1, "{text}: {problem:?}"),
    }
}

fn parse(text: &str) -> Option<Expr> {
    // At its limit, it reads a keyword as a column instead.
    let mut parser = Parser::new(&GenericDialect).with_recursion_limit(200).try_with_sql(text).ok()?;
    let expression = parser.parse_expr().ok()?;
    (parser.peek_token().token == Token::EOF).then_some(expression)
}

/// Returns the structure of an expression in the form of `outline`; `None` if conditions do not support it.
fn structure(expression: &Expr) -> Option<String> {
    let negated = |is_negated: bool, text: String| if is_negated { format!("(not {text})") } else { text };
    let test = |inner: &Expr, test: &str| Some(format!("({test} {})", structure(inner)?));
    Some(match expression {
        Expr::Nested(inner) => structure(inner)?,
        Expr::Identifier(name) if name.quote_style == Some('"') => format!("{:?}", name.value),
        Expr::Identifier(name) => format!("{:?}", [&name.value]),
        Expr::CompoundIdentifier(path) => {
            if path.iter().any(|name| !matches!(name.quote_style, None | Some('`'))) {
                return None;
            }
            format!("{:?}", path.iter().map(|name| &name.value).collect::<Vec<_>>())
        }
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.clone(),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => format!("{text:?}"),
            Value::Boolean(value) => value.to_string(),
            Value::Null => "null".to_owned(),
            _ => return None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => format!("(- {})", structure(expr)?),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => format!("(not {})", structure(expr)?),
        Expr::BinaryOp { left, op, right } => {
            let name = match op {
                BinaryOperator::And => "And",
                BinaryOperator::Or => "Or",
                BinaryOperator::Eq => "Equal",
                BinaryOperator::NotEq => "NotEqual",
                BinaryOperator::Lt => "Less",
                BinaryOperator::LtEq => "LessOrEqual",
                BinaryOperator::Gt => "Greater",
                BinaryOperator::GtEq => "GreaterOrEqual",
                BinaryOperator::Plus => "Add",
                BinaryOperator::Minus => "Subtract",
                BinaryOperator::Multiply => "Multiply",
                BinaryOperator::Divide => "Divide",
                _ => return None,
            };
            format!("({name} {} {})", structure(left)?, structure(right)?)
        }
        Expr::IsNull(inner) => test(inner, "Null")?,
        Expr::IsNotNull(inner) => negated(true, test(inner, "Null")?),
        Expr::IsTrue(inner) => test(inner, "Truth(Some(true))")?,
        Expr::IsNotTrue(inner) => negated(true, test(inner, "Truth(Some(true))")?),
        Expr::IsFalse(inner) => test(inner, "Truth(Some(false))")?,
        Expr::IsNotFalse(inner) => negated(true, test(inner, "Truth(Some(false))")?),
        Expr::IsUnknown(inner) => test(inner, "Truth(None)")?,
        Expr::IsNotUnknown(inner) => negated(true, test(inner, "Truth(None)")?),
        // A comparison without parentheses as the lower bound is that of sqlparser only.
        Expr::Between { low, .. } if structure(low).is_none_or(|low| is_comparison(&low)) => return None,
        Expr::Between { expr, negated: is_negated, low, high } => negated(
            *is_negated,
            format!("(between {} {} {})", structure(expr)?, structure(low)?, structure(high)?),
        ),
        Expr::In { expr, target: InTarget::List(list), negated: is_negated, .. } if !list.is_empty() => {
            let items: Vec<_> = list.iter().map(structure).collect::<Option<_>>()?;
            negated(*is_negated, format!("(in {} {})", structure(expr)?, items.join(" ")))
        }
        Expr::Like { negated: is_negated, any: false, expr, pattern, escape_char } => {
            let escape = escape_char.as_deref().map(structure);
            negated(*is_negated, like("like", structure(expr)?, structure(pattern)?, escape)?)
        }
        Expr::ILike { negated: is_negated, any: false, expr, pattern, escape_char } => {
            let escape = escape_char.as_deref().map(structure);
            negated(*is_negated, like("ilike", structure(expr)?, structure(pattern)?, escape)?)
        }
        _ => return None,
    })
}

/// Returns whether a structure is that of a comparison.
fn is_comparison(structure: &str) -> bool {
    ["(Equal", "(NotEqual", "(Less", "(Greater"].iter().any(|operator| structure.starts_with(operator))
}

fn like(name: &str, operand: String, pattern: String, escape: Option<Option<String>>) -> Option<String> {
    let escape = match escape {
        None => String::new(),
        Some(escape) => format!(" {}", escape?),
    };
    Some(format!("({name} {operand} {pattern}{escape})"))
}
