//! Conditions as trees, and their evaluation.

use std::cmp::Ordering;

use flowgauge::row::Value;

use crate::literal::{Literal, compare, compare_values, number, text_of};
use crate::pattern::Pattern;

/// A condition, which is true, false, or unknown because a value is absent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    /// Whether a condition is true, false or unknown.
    Is(Box<Self>, Option<bool>),
    Compare(Operand, Comparison, Operand),
    Between(Operand, Operand, Operand),
    Like(Operand, Pattern),
    IsNull(Operand),
    /// A column of true or false.
    IsTrue(Operand),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// A column, by its number among those of the condition.
    Column(usize),
    Literal(Literal),
    Computed(Box<Self>, Operation, Box<Self>),
}

impl Comparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }

    /// Returns the comparison with both sides exchanged.
    const fn exchanged(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }
}

/// Evaluates conditions until one is `decisive`. Otherwise the result is unknown if one of them is.
fn joined(parts: &[Node], values: &[Value], decisive: bool) -> Option<bool> {
    let mut result = Some(!decisive);
    for part in parts {
        match part.evaluate(values) {
            Some(is_true) if is_true == decisive => return Some(decisive),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

/// Returns whether any item of a list, or the value itself, meets a condition; `None` if there is no value.
fn any(value: &Value, meets: &dyn Fn(&Value) -> Option<bool>) -> Option<bool> {
    match value {
        Value::Null => None,
        Value::List(items) => Some(items.iter().any(|item| any(item, meets) == Some(true))),
        value => meets(value),
    }
}

impl Operand {
    fn number(&self, values: &[Value]) -> Option<f64> {
        match self {
            Self::Column(index) => number(values.get(*index)?),
            Self::Literal(Literal::Number(number, _)) => Some(*number),
            Self::Literal(_) => None,
            Self::Computed(left, operation, right) => {
                let (left, right) = (left.number(values)?, right.number(values)?);
                Some(match operation {
                    Operation::Add => left + right,
                    Operation::Subtract => left - right,
                    Operation::Multiply => left * right,
                    // The result is unknown, as for an absent value.
                    Operation::Divide if right == 0.0 => return None,
                    Operation::Divide => left / right,
                })
            }
        }
    }
}

impl Node {
    /// Evaluates the condition with the values of its columns.
    pub(crate) fn evaluate(&self, values: &[Value]) -> Option<bool> {
        match self {
            Self::All(parts) => joined(parts, values, false),
            Self::Any(parts) => joined(parts, values, true),
            Self::Not(inner) => inner.evaluate(values).map(|is_true| !is_true),
            Self::Is(inner, value) => Some(inner.evaluate(values) == *value),
            Self::Between(operand, low, high) => {
                let within = |values: &[Value]| {
                    let low = Self::compare(operand, Comparison::GreaterOrEqual, low, values);
                    let high = Self::compare(operand, Comparison::LessOrEqual, high, values);
                    match (low, high) {
                        (Some(false), _) | (_, Some(false)) => Some(false),
                        (Some(true), Some(true)) => Some(true),
                        _ => None,
                    }
                };
                match operand {
                    // Both ends apply to the same item of a list.
                    Operand::Column(index) => any(values.get(*index)?, &|value| {
                        let mut own = values.to_vec();
                        own.get_mut(*index)?.clone_from(value);
                        within(&own)
                    }),
                    _ => within(values),
                }
            }
            Self::Compare(left, comparison, right) => Self::compare(left, *comparison, right, values),
            Self::Like(operand, pattern) => {
                let Operand::Column(index) = operand else { return None };
                any(values.get(*index)?, &|value| Some(pattern.matches(&text_of(value)?)))
            }
            Self::IsNull(operand) => Some(match operand {
                Operand::Column(index) => values.get(*index).is_none_or(|value| *value == Value::Null),
                Operand::Literal(literal) => *literal == Literal::Null,
                computed @ Operand::Computed(..) => computed.number(values).is_none(),
            }),
            Self::IsTrue(operand) => {
                let Operand::Column(index) = operand else { return None };
                any(values.get(*index)?, &|value| Some(*value == Value::Bool(true)))
            }
        }
    }

    fn compare(left: &Operand, comparison: Comparison, right: &Operand, values: &[Value]) -> Option<bool> {
        match (left, right) {
            (Operand::Column(index), Operand::Literal(literal)) => any(values.get(*index)?, &|value| {
                compare(value, literal).map(|ordering| comparison.holds(ordering))
            }),
            (Operand::Literal(_), Operand::Column(_)) => {
                Self::compare(right, comparison.exchanged(), left, values)
            }
            (Operand::Column(left), Operand::Column(right)) => {
                let (left, right) = (values.get(*left)?, values.get(*right)?);
                any(left, &|left| {
                    any(right, &|right| {
                        compare_values(left, right).map(|ordering| comparison.holds(ordering))
                    })
                })
            }
            _ => {
                let (left, right) = (left.number(values)?, right.number(values)?);
                left.partial_cmp(&right).map(|ordering| comparison.holds(ordering))
            }
        }
    }
}
