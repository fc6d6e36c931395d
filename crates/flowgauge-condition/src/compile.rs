//! Translation of parsed expressions to conditions.

use flowgauge::row::{Column, Type};
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArguments, Ident, InTarget, ObjectName, Spanned as _,
    UnaryOperator, Value as SqlValue,
};

use sqlparser::tokenizer::Span;

use crate::literal::Literal;
use crate::names::field_name;
use crate::node::{Comparison, Node, Operand, Operation};
use crate::pattern::Pattern;
use crate::problem::Problem;

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

/// Returns the place of an expression: the part on its left, without recursion.
fn place(expression: &Expr) -> Span {
    let mut first = expression;
    loop {
        first = match first {
            Expr::BinaryOp { left, .. } => left,
            Expr::Nested(inner) | Expr::IsNull(inner) | Expr::IsNotNull(inner) => inner,
            Expr::In { expr, .. } | Expr::Between { expr, .. } | Expr::UnaryOp { expr, .. } => expr,
            first => return first.span(),
        }
    }
}

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
        let problem = |text: String| Problem::at(place(expression), text);
        match expression {
            Expr::Nested(inner) => self.condition(inner),
            Expr::BinaryOp { left, op, right } => match op {
                BinaryOperator::And => Ok(Node::All(self.chain(expression, op)?)),
                BinaryOperator::Or => Ok(Node::Any(self.chain(expression, op)?)),
                BinaryOperator::NotEq => {
                    Ok(Node::Not(Box::new(self.comparison(left, Comparison::Equal, right)?)))
                }
                op => {
                    let comparison = match op {
                        BinaryOperator::Eq => Comparison::Equal,
                        BinaryOperator::Lt => Comparison::Less,
                        BinaryOperator::LtEq => Comparison::LessOrEqual,
                        BinaryOperator::Gt => Comparison::Greater,
                        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
                        other => {
                            return Err(problem(format!("`{other}` is no comparison")));
                        }
                    };
                    self.comparison(left, comparison, right)
                }
            },
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => Ok(Node::Not(Box::new(self.condition(expr)?))),
            Expr::IsNull(inner) => self.null(inner),
            Expr::IsNotNull(inner) => Ok(Node::Not(Box::new(self.null(inner)?))),
            Expr::IsTrue(inner) => Ok(Node::Is(Box::new(self.condition(inner)?), Some(true))),
            Expr::IsNotTrue(inner) => self.is_not(inner, Some(true)),
            Expr::IsFalse(inner) => Ok(Node::Is(Box::new(self.condition(inner)?), Some(false))),
            Expr::IsNotFalse(inner) => self.is_not(inner, Some(false)),
            Expr::IsUnknown(inner) => Ok(Node::Is(Box::new(self.condition(inner)?), None)),
            Expr::IsNotUnknown(inner) => self.is_not(inner, None),
            Expr::Between { expr, negated, low, high } => {
                let operand = self.operand(expr)?;
                let (lowest, highest) = (self.operand(low)?, self.operand(high)?);
                self.check_pair((&operand, expr), (&lowest, low))?;
                self.check_pair((&operand, expr), (&highest, high))?;
                let lowest = self.checked(lowest, low, &operand)?;
                let highest = self.checked(highest, high, &operand)?;
                Ok(negated_if(*negated, Node::Between(operand, lowest, highest)))
            }
            Expr::In { expr, target: InTarget::List(list), negated, .. } => {
                let any = list.iter().map(|item| self.comparison(expr, Comparison::Equal, item));
                let any: Vec<_> = any.collect::<Compiled<_>>()?;
                Ok(negated_if(*negated, Node::Any(any)))
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, (pattern, escape_char.as_deref()), (*negated, false))
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, (pattern, escape_char.as_deref()), (*negated, true))
            }
            Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::Function(Function { args: FunctionArguments::None, .. }) => {
                let operand = self.operand(expression)?;
                let is_bool = |types: &[Type]| types.contains(&Type::Bool);
                match &operand {
                    Operand::Column(index)
                        if self.columns.get(*index).is_some_and(|(_, types)| is_bool(types)) =>
                    {
                        Ok(Node::IsTrue(operand))
                    }
                    Operand::Literal(_) => {
                        Err(problem("a text alone is no condition; compare a column with it".to_owned()))
                    }
                    _ => Err(problem("not true or false; compare it with a value".to_owned())),
                }
            }
            Expr::Value(_) => Err(problem("a value alone is no condition".to_owned())),
            _ => Err(problem(
                "not supported; use comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, ILIKE, IS NULL and + - * /"
                    .to_owned(),
            )),
        }
    }

    /// Returns the conditions that a chain of the same operator joins, which the parser nests to the left.
    fn chain(&mut self, expression: &Expr, operator: &BinaryOperator) -> Compiled<Vec<Node>> {
        let (mut last, mut parts) = (expression, Vec::new());
        while let Expr::BinaryOp { left, op, right } = last
            && op == operator
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
            Operand::Literal(_) => Err(Problem::at(place(inner), QUOTED.to_owned())),
            operand => Ok(Node::IsNull(operand)),
        }
    }

    fn is_not(&mut self, inner: &Expr, value: Option<bool>) -> Compiled<Node> {
        Ok(Node::Not(Box::new(Node::Is(Box::new(self.condition(inner)?), value))))
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
        let problem = |at: &Expr, text: &str| Err(Problem::at(place(at), text.to_owned()));
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
        let problem = |text: String| Err(Problem::at(place(at), text));
        if literal == Literal::Null {
            return problem("nothing equals NULL; write IS NULL or IS NOT NULL".to_owned());
        }
        if let Operand::Column(index) = other
            && let Some((path, types)) = self.columns.get(*index)
        {
            if path == &["protocol"] && types.contains(&Type::Unsigned(8)) {
                literal.name_protocol();
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
        (is_negated, ignores_case): (bool, bool),
    ) -> Compiled<Node> {
        let problem = |at: &Expr, text: &str| Problem::at(place(at), text.to_owned());
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
        Ok(negated_if(is_negated, Node::Like(column, pattern)))
    }

    fn operand(&mut self, expression: &Expr) -> Compiled<Operand> {
        self.inside(|inner| inner.operand_inside(expression))
    }

    fn operand_inside(&mut self, expression: &Expr) -> Compiled<Operand> {
        let problem = |text: &str| Problem::at(place(expression), text.to_owned());
        Ok(match expression {
            Expr::Nested(inner) => self.operand(inner)?,
            // A text in double quotes.
            Expr::Identifier(Ident { value, quote_style: Some('"'), .. }) => {
                Operand::Literal(Literal::text(value.clone()))
            }
            Expr::Identifier(name) => self.column(std::slice::from_ref(name))?,
            Expr::CompoundIdentifier(path) => self.column(path)?,
            // A name that is also that of a function without arguments, such as `user`.
            Expr::Function(Function { name: ObjectName(path), args: FunctionArguments::None, .. }) => {
                let path: Option<Vec<_>> = path.iter().map(|part| part.as_ident().cloned()).collect();
                self.column(&path.ok_or_else(|| problem("not supported as a value"))?)?
            }
            Expr::Value(value) => Operand::Literal(match &value.value {
                SqlValue::Number(text, _) => Literal::number(text).ok_or_else(|| problem("no number"))?,
                SqlValue::SingleQuotedString(text) | SqlValue::DoubleQuotedString(text) => {
                    Literal::text(text.clone())
                }
                SqlValue::Boolean(value) => Literal::Bool(*value),
                SqlValue::Null => Literal::Null,
                _ => return Err(problem("no number, and no text in quotes")),
            }),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match self.operand(expr)? {
                Operand::Literal(literal) => {
                    Operand::Literal(literal.negative().ok_or_else(|| problem("no number"))?)
                }
                other => {
                    let zero = Operand::Literal(Literal::Number(0.0, Some(0)));
                    Operand::Computed(Box::new(zero), Operation::Subtract, Box::new(other))
                }
            },
            Expr::BinaryOp { left, op, right } => {
                let operation = match op {
                    BinaryOperator::Plus => Operation::Add,
                    BinaryOperator::Minus => Operation::Subtract,
                    BinaryOperator::Multiply => Operation::Multiply,
                    BinaryOperator::Divide => Operation::Divide,
                    BinaryOperator::And | BinaryOperator::Or => {
                        return Err(problem("a condition is no value"));
                    }
                    BinaryOperator::Eq
                    | BinaryOperator::NotEq
                    | BinaryOperator::Lt
                    | BinaryOperator::LtEq
                    | BinaryOperator::Gt
                    | BinaryOperator::GtEq => {
                        return Err(problem("a comparison is no value; join comparisons by AND or OR"));
                    }
                    other => {
                        let text = format!("`{other}` is not supported; use + - * / and AND, OR, NOT");
                        return Err(Problem::at(place(expression), text));
                    }
                };
                let (left, right) = (self.number(left)?, self.number(right)?);
                Operand::Computed(Box::new(left), operation, Box::new(right))
            }
            _ => return Err(problem("not supported as a value")),
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
            Err(Problem::at(place(expression), "no number to compute with".to_owned()))
        }
    }

    /// Returns the column with a name, or the one inside of a group.
    fn column(&mut self, path: &[Ident]) -> Compiled<Operand> {
        let mut candidates: Vec<&'static Column> = self.known.to_vec();
        // Another name of a column may have a period, as `id.orig_h`.
        let whole = path.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join(".");
        let known = field_name(&whole, |name| candidates.iter().any(|column| column.name == name));
        let alias = (known != whole).then(|| path.first().map(|first| Ident::with_span(first.span, known)));
        let path = alias.as_ref().and_then(Option::as_ref).map_or(path, std::slice::from_ref);
        let mut names: Vec<&'static str> = Vec::new();
        for part in path {
            let found: Vec<_> =
                candidates.iter().copied().filter(|column| column.name == part.value).collect();
            let Some(first) = found.first() else {
                return Err(Problem::unknown_column(part, &names, &candidates));
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

fn negated_if(is_negated: bool, node: Node) -> Node {
    if is_negated { Node::Not(Box::new(node)) } else { node }
}
