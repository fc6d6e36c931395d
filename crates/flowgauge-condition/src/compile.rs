//! Translation of parsed expressions to conditions.

use flowgauge::row::{Column, Type};

use crate::literal::Literal;
use crate::names::{field_name, is_caseless};
use crate::node::{Comparison, Node, Operand, Operation};
use crate::pattern::Pattern;
use crate::problem::Problem;
use crate::syntax::{Content, Expr, Name, Operator, Test};

/// Translates an expression, and collects the columns that it names.
pub(crate) struct Compiler<'c> {
    /// All columns of the rows, of which several may have the same name.
    known: &'c [&'static Column],
    /// The columns of the condition: the names from the row inward, and the types.
    pub(crate) columns: Vec<(Vec<&'static str>, Vec<Type>)>,
    /// Number of operators around the current one.
    depth: usize,
}

/// Maximum number of operators inside of each other, but for chains of AND and OR.
const DEPTH_MAX: usize = 100;

type Compiled<T> = Result<T, Problem>;

/// The problem of a text that is the name of a column.
const QUOTED: &str = "a text; columns have no quotes, or backticks if there is a space in the name";

/// The problem of a text beside a computation.
const COMPUTED: &str = "a computed number is compared with a text; write a number";

/// Kinds of values that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Number,
    Address,
    Text,
}

fn kind(column_type: Type) -> Option<Kind> {
    Some(match column_type {
        Type::Bool => Kind::Bool,
        Type::Unsigned(_) | Type::Signed(_) | Type::Float | Type::Timestamp | Type::Duration => Kind::Number,
        Type::Address => Kind::Address,
        Type::List(item) => return kind(item.column_type),
        Type::Group(_) => return None,
        _ => Kind::Text,
    })
}

/// Returns whether values of a type are texts, or have one.
fn has_text(column_type: Type) -> bool {
    matches!(kind(column_type), Some(Kind::Text | Kind::Address))
}

/// Returns the columns of a type: those of a group, also if it is the item of a list.
fn members(column_type: Type) -> &'static [Column] {
    match column_type {
        Type::Group(members) => members,
        Type::List(item) => members(item.column_type),
        _ => &[],
    }
}

impl<'c> Compiler<'c> {
    pub(crate) const fn new(known: &'c [&'static Column]) -> Self {
        Self { known, columns: Vec::new(), depth: 0 }
    }

    /// Calls a function for an expression inside of another one.
    fn inside<T>(&mut self, call: impl FnOnce(&mut Self) -> Compiled<T>) -> Compiled<T> {
        if self.depth == DEPTH_MAX {
            return Err(Problem {
                column: 0,
                len: 1,
                text: "too many operators inside of each other".to_owned(),
            });
        }
        self.depth += 1;
        let compiled = call(self);
        self.depth -= 1;
        compiled
    }

    pub(crate) fn condition(&mut self, expression: &Expr) -> Compiled<Node> {
        self.inside(|inner| inner.condition_inside(expression))
    }

    fn condition_inside(&mut self, expression: &Expr) -> Compiled<Node> {
        let problem = |text: &str| Err(Problem::at(expression.span, text.to_owned()));
        match &expression.content {
            Content::Binary(left, operator, right) => {
                let comparison = match operator {
                    Operator::And => return Ok(Node::All(self.chain(expression, *operator)?)),
                    Operator::Or => return Ok(Node::Any(self.chain(expression, *operator)?)),
                    Operator::NotEqual => {
                        return Ok(Node::Not(Box::new(self.comparison(left, Comparison::Equal, right)?)));
                    }
                    Operator::Equal => Comparison::Equal,
                    Operator::Less => Comparison::Less,
                    Operator::LessOrEqual => Comparison::LessOrEqual,
                    Operator::Greater => Comparison::Greater,
                    Operator::GreaterOrEqual => Comparison::GreaterOrEqual,
                    Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide => {
                        return problem("a computed number is not a condition; compare it with a value");
                    }
                };
                self.comparison(left, comparison, right)
            }
            Content::Not(inner) => Ok(Node::Not(Box::new(self.condition(inner)?))),
            Content::Is(inner, Test::Null) => self.null(inner),
            Content::Is(inner, Test::Truth(truth)) => Ok(Node::Is(Box::new(self.condition(inner)?), *truth)),
            Content::Between { operand: at, low, high } => {
                let operand = self.operand(at)?;
                let (lowest, highest) = (self.operand(low)?, self.operand(high)?);
                self.check_pair((&operand, at), (&lowest, low))?;
                self.check_pair((&operand, at), (&highest, high))?;
                let lowest = self.checked(lowest, low, &operand)?;
                let highest = self.checked(highest, high, &operand)?;
                Ok(Node::Between(operand, lowest, highest))
            }
            Content::In(operand, list) => {
                let any = list.iter().map(|item| self.comparison(operand, Comparison::Equal, item));
                Ok(Node::Any(any.collect::<Compiled<_>>()?))
            }
            Content::Like { operand, pattern, escape, ignores_case } => {
                self.like(operand, (pattern, escape.as_deref()), *ignores_case)
            }
            Content::Column(path) => {
                let operand = self.column(path)?;
                match &operand {
                    Operand::Column(index)
                        if self.columns.get(*index).is_some_and(|(_, types)| types.contains(&Type::Bool)) =>
                    {
                        Ok(Node::IsTrue(operand))
                    }
                    _ => problem("not true or false; compare it with a value"),
                }
            }
            Content::Text(_) => problem("a text alone is not a condition; compare a column with it"),
            Content::Number(_) | Content::Bool(_) | Content::Null | Content::Negative(_) => {
                problem("a value alone is not a condition")
            }
        }
    }

    /// Returns the conditions that a chain of the same operator joins, which the parser nests to the left.
    fn chain(&mut self, expression: &Expr, operator: Operator) -> Compiled<Vec<Node>> {
        let (mut last, mut parts) = (expression, Vec::new());
        while let Content::Binary(left, same, right) = &last.content
            && *same == operator
        {
            parts.push(&**right);
            last = left;
        }
        parts.push(last);
        parts.into_iter().rev().map(|part| self.condition(part)).collect()
    }

    fn comparison(&mut self, left: &Expr, comparison: Comparison, right: &Expr) -> Compiled<Node> {
        let (first, second) = (self.operand(left)?, self.operand(right)?);
        self.check_pair((&first, left), (&second, right))?;
        let first = self.checked(first, left, &second)?;
        let second = self.checked(second, right, &first)?;
        Ok(Node::Compare(first, comparison, second))
    }

    fn null(&mut self, inner: &Expr) -> Compiled<Node> {
        match self.operand(inner)? {
            Operand::Literal(_) => Err(Problem::at(inner.span, QUOTED.to_owned())),
            operand => Ok(Node::IsNull(operand)),
        }
    }

    /// Returns the kind of values of an operand; `None` if there are several, or those of the other side decide.
    fn kind(&self, operand: &Operand) -> Option<Kind> {
        match operand {
            Operand::Column(index) => {
                let (_, types) = self.columns.get(*index)?;
                let mut kinds = types.iter().map(|column_type| kind(*column_type));
                let first = kinds.next()??;
                kinds.all(|other| other == Some(first)).then_some(first)
            }
            Operand::Computed(..) => Some(Kind::Number),
            Operand::Literal(_) => None,
        }
    }

    /// Returns the problem of two operands that can never be compared.
    fn check_pair(&self, (left, at): (&Operand, &Expr), (right, other): (&Operand, &Expr)) -> Compiled<()> {
        let problem = |at: &Expr, text: &str| Err(Problem::at(at.span, text.to_owned()));
        let is_text = |operand: &Operand| matches!(operand, Operand::Literal(Literal::Text(_)));
        match (left, right) {
            (Operand::Literal(Literal::Null), _) | (_, Operand::Literal(Literal::Null)) => Ok(()),
            (Operand::Literal(literal), Operand::Literal(second)) => {
                let is_column =
                    |literal: &Literal| self.known.iter().any(|column| literal.is_text(column.name));
                if is_column(literal) {
                    return problem(at, QUOTED);
                }
                problem(
                    other,
                    if is_column(second) { QUOTED } else { "two values are compared; name a column" },
                )
            }
            (Operand::Computed(..), text) if is_text(text) => problem(other, COMPUTED),
            (text, Operand::Computed(..)) if is_text(text) => problem(at, COMPUTED),
            (left, right) => match (self.kind(left), self.kind(right)) {
                (Some(left), Some(right)) if left != right => {
                    problem(other, "values of different types are compared")
                }
                _ => Ok(()),
            },
        }
    }

    /// Returns an operand that can be compared with another one.
    fn checked(&self, operand: Operand, at: &Expr, other: &Operand) -> Compiled<Operand> {
        let Operand::Literal(mut literal) = operand else { return Ok(operand) };
        let problem = |text: String| Err(Problem::at(at.span, text));
        if literal == Literal::Null {
            return problem("nothing equals NULL; write IS NULL or IS NOT NULL".to_owned());
        }
        if let Operand::Column(index) = other
            && let Some((path, types)) = self.columns.get(*index)
        {
            if path == &["protocol"] && types.contains(&Type::Unsigned(8)) {
                literal.name_protocol();
            }
            if is_caseless(path) {
                literal.ignore_case();
            }
            let misfits = types.iter().map(|column_type| literal.misfit(*column_type));
            if let Some(expected) = misfits.min().flatten() {
                let is_protocol = path == &["protocol"] && types.contains(&Type::Unsigned(8));
                let expected = if is_protocol { "a number, or a name such as 'tcp'" } else { expected };
                return problem(format!("`{}` is compared with {expected}", path.join(".")));
            }
        }
        Ok(Operand::Literal(literal))
    }

    fn like(
        &mut self,
        operand: &Expr,
        (pattern, escape): (&Expr, Option<&Expr>),
        ignores_case: bool,
    ) -> Compiled<Node> {
        let problem = |at: &Expr, text: &str| Problem::at(at.span, text.to_owned());
        let column = self.operand(operand)?;
        let is_text = match &column {
            Operand::Column(index) => {
                let types = self.columns.get(*index).map(|(_, types)| types.as_slice());
                types.unwrap_or_default().iter().any(|column_type| has_text(*column_type))
            }
            _ => false,
        };
        if !is_text {
            return Err(problem(operand, "LIKE needs a column of texts on its left"));
        }
        let Operand::Literal(Literal::Text(text)) = self.operand(pattern)? else {
            return Err(problem(pattern, "LIKE needs a text in quotes on its right"));
        };
        let escape = match escape.map(|at| Ok((at, self.operand(at)?))).transpose()? {
            None => None,
            Some((at, Operand::Literal(Literal::Text(text)))) => {
                let mut letters = text.text.chars();
                let escape = letters.next().filter(|_| letters.next().is_none());
                Some(escape.ok_or_else(|| problem(at, "ESCAPE needs one character"))?)
            }
            Some((at, _)) => return Err(problem(at, "ESCAPE needs one character")),
        };
        let pattern = Pattern::new(&text.text, escape, ignores_case);
        Ok(Node::Like(column, pattern))
    }

    fn operand(&mut self, expression: &Expr) -> Compiled<Operand> {
        self.inside(|inner| inner.operand_inside(expression))
    }

    fn operand_inside(&mut self, expression: &Expr) -> Compiled<Operand> {
        let problem = |text: &str| Problem::at(expression.span, text.to_owned());
        Ok(match &expression.content {
            Content::Column(path) => self.column(path)?,
            Content::Number(text) => {
                Operand::Literal(Literal::number(text).ok_or_else(|| problem("not a number"))?)
            }
            Content::Text(text) => Operand::Literal(Literal::text(text.clone())),
            Content::Bool(value) => Operand::Literal(Literal::Bool(*value)),
            Content::Null => Operand::Literal(Literal::Null),
            Content::Negative(inner) => match self.operand(inner)? {
                Operand::Literal(literal) => {
                    Operand::Literal(literal.negative().ok_or_else(|| problem("not a number"))?)
                }
                other => {
                    let zero = Operand::Literal(Literal::Number(0.0, Some(0)));
                    Operand::Computed(Box::new(zero), Operation::Subtract, Box::new(other))
                }
            },
            Content::Binary(left, operator, right) => {
                let operation = match operator {
                    Operator::Add => Operation::Add,
                    Operator::Subtract => Operation::Subtract,
                    Operator::Multiply => Operation::Multiply,
                    Operator::Divide => Operation::Divide,
                    Operator::And | Operator::Or => return Err(problem("a condition is not a value")),
                    _ => {
                        let text = "a comparison is not a value; join comparisons by AND or OR";
                        return Err(problem(text));
                    }
                };
                let (left, right) = (self.number(left)?, self.number(right)?);
                Operand::Computed(Box::new(left), operation, Box::new(right))
            }
            Content::Not(_)
            | Content::Is(..)
            | Content::Between { .. }
            | Content::In(..)
            | Content::Like { .. } => return Err(problem("a condition is not a value")),
        })
    }

    /// Returns an operand of a computation.
    fn number(&mut self, expression: &Expr) -> Compiled<Operand> {
        let operand = self.operand(expression)?;
        let is_number = match &operand {
            Operand::Column(index) => self.columns.get(*index).is_some_and(|(_, types)| {
                types.iter().any(|column_type| {
                    matches!(
                        column_type,
                        Type::Unsigned(_) | Type::Signed(_) | Type::Float | Type::Timestamp | Type::Duration
                    )
                })
            }),
            Operand::Literal(literal) => matches!(literal, Literal::Number(..)),
            Operand::Computed(..) => true,
        };
        if is_number {
            Ok(operand)
        } else {
            Err(Problem::at(expression.span, "not a number; nothing can be computed with it".to_owned()))
        }
    }

    /// Returns the column with a name, or the one inside of a group.
    fn column(&mut self, path: &[Name]) -> Compiled<Operand> {
        let mut candidates: Vec<&'static Column> = self.known.to_vec();
        // Another name of a column may have a period, as `id.orig_h`.
        let whole = path.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".");
        let known = field_name(&whole, |name| candidates.iter().any(|column| column.name == name));
        let alias = (known != whole)
            .then(|| path.first().map(|first| Name { span: first.span, value: known.to_owned() }));
        let path = alias.as_ref().and_then(Option::as_ref).map_or(path, std::slice::from_ref);
        let mut names: Vec<&'static str> = Vec::new();
        for part in path {
            let found: Vec<_> =
                candidates.iter().copied().filter(|column| column.name == part.value).collect();
            let Some(first) = found.first() else {
                return Err(Problem::unknown_column((&part.value, part.span), &names, &candidates));
            };
            names.push(first.name);
            candidates = found;
            if names.len() < path.len() {
                candidates = candidates.iter().flat_map(|column| members(column.column_type)).collect();
            }
        }
        let mut types: Vec<Type> = candidates.iter().map(|column| column.column_type).collect();
        types.dedup();
        let index = self.columns.iter().position(|(known, _)| *known == names);
        Ok(Operand::Column(index.unwrap_or_else(|| {
            self.columns.push((names, types));
            self.columns.len() - 1
        })))
    }
}
