//! The grammar of conditions, parsed by precedence. Operators bind in this order, the first one closest:
//!
//! ```text
//! -                                               before a value
//! *  /
//! +  -
//! =  ==  !=  <>  <  <=  >  >=  [NOT] BETWEEN  [NOT] IN
//! [NOT] LIKE  [NOT] ILIKE
//! IS [NOT] NULL, TRUE, FALSE, UNKNOWN
//! NOT
//! AND
//! OR
//! ```

use std::fmt;

use crate::problem::{Problem, Span};
use crate::token::{Kind, Token, tokens};

/// Maximum number of parentheses and operators before a value inside each other.
const DEPTH_MAX: usize = 50;

/// Maximum length of a condition in bytes.
const LEN_MAX: usize = 10_000;

/// An expression, and the place of its first part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expr {
    pub(crate) span: Span,
    pub(crate) content: Content,
}

/// The content of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// The name of a column, from the row inward.
    Column(Vec<Name>),
    Number(String),
    Text(String),
    Bool(bool),
    Null,
    Negative(Box<Expr>),
    Not(Box<Expr>),
    Binary(Box<Expr>, Operator, Box<Expr>),
    Is(Box<Expr>, Test),
    Between {
        operand: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
    },
    In(Box<Expr>, Vec<Expr>),
    Like {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        ignores_case: bool,
    },
}

/// A part of the name of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) span: Span,
    pub(crate) value: String,
}

/// An operator between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
}

/// What IS tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Null,
    /// The truth of a condition; `None` for unknown.
    Truth(Option<bool>),
}

/// How close an operator binds its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    Lowest,
    Or,
    And,
    Not,
    Is,
    Like,
    Comparison,
    Sum,
    Product,
    Sign,
}

/// An operator after an expression.
#[derive(Clone, Copy)]
enum Infix {
    Binary(Operator),
    Is,
    /// BETWEEN, IN, LIKE or ILIKE, of which the first word is NOT if it is negated.
    Word(Word),
}

#[derive(Clone, Copy)]
enum Word {
    Between,
    In,
    Like,
    ILike,
}

type Parsed<T> = Result<T, Problem>;

/// Parses a whole condition. Takes time in proportion to its length.
///
/// # Errors
///
/// Returns the problem of a text that is not a condition, or is too long or too deep.
pub(crate) fn parse(text: &str) -> Parsed<Expr> {
    if text.len() > LEN_MAX {
        return Err(Problem { column: 0, len: 1, text: format!("longer than {LEN_MAX} bytes") });
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, end: text.chars().count() + 1, depth: 0 };
    let expression = parser.expression(Precedence::Lowest)?;
    match parser.peek() {
        None => Ok(expression),
        Some(next) => Err(next.problem("is not expected here; join conditions by AND or OR")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    /// Index of the next token.
    next: usize,
    /// Place after the last character.
    end: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next)
    }

    /// Takes the next token if it is this keyword, in any case.
    fn takes(&mut self, keyword: &str) -> bool {
        let is_next = self.peek().is_some_and(|token| token.is_keyword(keyword));
        self.next += usize::from(is_next);
        is_next
    }

    /// Takes the next token if it is this symbol.
    fn takes_symbol(&mut self, symbol: &str) -> bool {
        let is_next = self.peek().is_some_and(|token| token.is_symbol(symbol));
        self.next += usize::from(is_next);
        is_next
    }

    /// Returns the problem that the next token is not what is expected.
    fn unexpected(&self, expected: &str) -> Problem {
        match self.peek() {
            Some(token) => Problem::at(token.span, format!("expected {expected}, found `{}`", token.text)),
            None => Problem { column: self.end, len: 1, text: format!("expected {expected}, found the end") },
        }
    }

    fn inside<T>(&mut self, call: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_MAX {
            let text = "too many parentheses and operators inside of each other".to_owned();
            return Err(Problem { column: 0, len: 1, text });
        }
        self.depth += 1;
        let parsed = call(self);
        self.depth -= 1;
        parsed
    }

    /// Parses an expression up to an operator that does not bind closer than `outer`.
    fn expression(&mut self, outer: Precedence) -> Parsed<Expr> {
        let mut left = self.inside(Self::prefix)?;
        loop {
            let Some((infix, precedence)) = self.infix()?.filter(|(_, inner)| *inner > outer) else {
                return Ok(left);
            };
            left = self.joined(left, infix, precedence)?;
        }
    }

    /// Parses a value, a name, an expression in parentheses, or one after NOT or a sign.
    fn prefix(&mut self) -> Parsed<Expr> {
        const EXPECTED: &str = "a column or a value";
        let Some(token) = self.peek().cloned() else { return Err(self.unexpected(EXPECTED)) };
        let span = token.span;
        let content = match token.kind {
            Kind::Number => Content::Number(token.text),
            Kind::Text => Content::Text(token.text),
            Kind::Symbol if token.text == "(" => {
                self.next += 1;
                let inner = self.expression(Precedence::Lowest)?;
                if !self.takes_symbol(")") {
                    return Err(self.unexpected("`)`"));
                }
                return Ok(inner);
            }
            Kind::Symbol if token.text == "-" => {
                self.next += 1;
                let inner = self.expression(Precedence::Sign)?;
                return Ok(Expr { span, content: Content::Negative(Box::new(inner)) });
            }
            Kind::Symbol => return Err(self.unexpected(EXPECTED)),
            Kind::Word if token.is_keyword("NOT") => {
                self.next += 1;
                let inner = self.expression(Precedence::Not)?;
                return Ok(Expr { span, content: Content::Not(Box::new(inner)) });
            }
            Kind::Word if token.is_keyword("TRUE") => Content::Bool(true),
            Kind::Word if token.is_keyword("FALSE") => Content::Bool(false),
            Kind::Word if token.is_keyword("NULL") => Content::Null,
            Kind::Word if ["AND", "OR"].iter().any(|keyword| token.is_keyword(keyword)) => {
                return Err(self.unexpected(EXPECTED));
            }
            Kind::Word | Kind::Quoted => return self.column(),
        };
        self.next += 1;
        Ok(Expr { span, content })
    }

    /// Parses the name of a column, and of columns inside of it after periods.
    fn column(&mut self) -> Parsed<Expr> {
        let mut path: Vec<Name> = Vec::new();
        loop {
            match self.peek() {
                Some(Token { kind: Kind::Word | Kind::Quoted, span, text }) => {
                    path.push(Name { span: *span, value: text.clone() });
                    self.next += 1;
                }
                _ => return Err(self.unexpected("a column")),
            }
            if !self.takes_symbol(".") {
                break;
            }
        }
        let span = path.first().map_or(Span::default(), |first| first.span);
        if self.peek().is_some_and(|token| token.is_symbol("(")) {
            return Err(Problem::at(span, "functions are not supported as a value".to_owned()));
        }
        Ok(Expr { span, content: Content::Column(path) })
    }

    /// Returns the next operator after an expression, which it does not take, and its precedence.
    fn infix(&self) -> Parsed<Option<(Infix, Precedence)>> {
        let Some(token) = self.peek() else { return Ok(None) };
        let binary = |operator, precedence| Ok(Some((Infix::Binary(operator), precedence)));
        match token.kind {
            Kind::Symbol => match token.text.as_str() {
                "=" | "==" => binary(Operator::Equal, Precedence::Comparison),
                "!=" | "<>" => binary(Operator::NotEqual, Precedence::Comparison),
                "<" => binary(Operator::Less, Precedence::Comparison),
                "<=" => binary(Operator::LessOrEqual, Precedence::Comparison),
                ">" => binary(Operator::Greater, Precedence::Comparison),
                ">=" => binary(Operator::GreaterOrEqual, Precedence::Comparison),
                "+" => binary(Operator::Add, Precedence::Sum),
                "-" => binary(Operator::Subtract, Precedence::Sum),
                "*" => binary(Operator::Multiply, Precedence::Product),
                "/" => binary(Operator::Divide, Precedence::Product),
                ")" | "(" | "," | "." => Ok(None),
                other => {
                    let instead = match other {
                        "&&" => "join comparisons by AND",
                        "||" => "join comparisons by OR",
                        _ => "use + - * / and AND, OR, NOT",
                    };
                    Err(token.problem(&format!("is not supported; {instead}")))
                }
            },
            Kind::Word => {
                let is_negated = token.is_keyword("NOT");
                let word = self.tokens.get(self.next + usize::from(is_negated));
                let is = |keyword| word.is_some_and(|word| word.is_keyword(keyword));
                let infix = |word, precedence| Ok(Some((Infix::Word(word), precedence)));
                if is("BETWEEN") {
                    infix(Word::Between, Precedence::Comparison)
                } else if is("IN") {
                    infix(Word::In, Precedence::Comparison)
                } else if is("LIKE") {
                    infix(Word::Like, Precedence::Like)
                } else if is("ILIKE") {
                    infix(Word::ILike, Precedence::Like)
                } else if is_negated {
                    self.not_alone()
                } else if is("AND") {
                    binary(Operator::And, Precedence::And)
                } else if is("OR") {
                    binary(Operator::Or, Precedence::Or)
                } else if is("IS") {
                    Ok(Some((Infix::Is, Precedence::Is)))
                } else {
                    Ok(None)
                }
            }
            Kind::Number | Kind::Text | Kind::Quoted => Ok(None),
        }
    }

    /// Returns the problem of a NOT after an expression, without the operator that it negates.
    fn not_alone(&self) -> Parsed<Option<(Infix, Precedence)>> {
        let Some(token) = self.peek() else { return Ok(None) };
        Err(token.problem(
            "is not expected here; write NOT IN, NOT BETWEEN or NOT LIKE, or join conditions by AND",
        ))
    }

    /// Parses the rest of an expression from its operator on.
    fn joined(&mut self, left: Expr, infix: Infix, precedence: Precedence) -> Parsed<Expr> {
        let span = left.span;
        let is_negated = self.takes("NOT");
        self.next += 1;
        let content = match infix {
            Infix::Binary(operator) => {
                Content::Binary(Box::new(left), operator, Box::new(self.expression(precedence)?))
            }
            Infix::Is => {
                let is_negated = self.takes("NOT");
                let content = Content::Is(Box::new(left), self.test()?);
                return Ok(negated_if(is_negated, Expr { span, content }));
            }
            Infix::Word(Word::Between) => {
                let low = Box::new(self.expression(precedence)?);
                if !self.takes("AND") {
                    return Err(self.unexpected("AND"));
                }
                let high = Box::new(self.expression(precedence)?);
                Content::Between { operand: Box::new(left), low, high }
            }
            Infix::Word(Word::In) => Content::In(Box::new(left), self.list(span)?),
            Infix::Word(word @ (Word::Like | Word::ILike)) => {
                let pattern = Box::new(self.expression(precedence)?);
                let escape =
                    self.takes("ESCAPE").then(|| self.expression(precedence)).transpose()?.map(Box::new);
                let ignores_case = matches!(word, Word::ILike);
                Content::Like { operand: Box::new(left), pattern, escape, ignores_case }
            }
        };
        Ok(negated_if(is_negated, Expr { span, content }))
    }

    fn test(&mut self) -> Parsed<Test> {
        for (keyword, test) in [
            ("NULL", Test::Null),
            ("TRUE", Test::Truth(Some(true))),
            ("FALSE", Test::Truth(Some(false))),
            ("UNKNOWN", Test::Truth(None)),
        ] {
            if self.takes(keyword) {
                return Ok(test);
            }
        }
        Err(self.unexpected("NULL, TRUE, FALSE or UNKNOWN"))
    }

    /// Parses the list of IN, whose left operand is at `operand`.
    fn list(&mut self, operand: Span) -> Parsed<Vec<Expr>> {
        if !self.takes_symbol("(") {
            return Err(self.unexpected("`(`"));
        }
        if self.peek().is_some_and(|token| token.is_keyword("SELECT")) {
            return Err(Problem::at(
                operand,
                "subqueries are not supported; list values after IN".to_owned(),
            ));
        }
        let mut items = vec![self.expression(Precedence::Lowest)?];
        while self.takes_symbol(",") {
            items.push(self.expression(Precedence::Lowest)?);
        }
        if self.takes_symbol(")") { Ok(items) } else { Err(self.unexpected("`,` or `)`")) }
    }
}

fn negated_if(is_negated: bool, expression: Expr) -> Expr {
    if is_negated {
        Expr { span: expression.span, content: Content::Not(Box::new(expression)) }
    } else {
        expression
    }
}

/// Returns the structure of a condition as one text, for a comparison with another parser.
///
/// # Errors
///
/// Returns the problem of a text that is not a condition.
#[doc(hidden)]
pub fn outline(text: &str) -> Result<String, Problem> {
    parse(text).map(|expression| expression.to_string())
}

/// The structure: operands in parentheses after their operator, and texts in quotes.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Column(path) => {
                let names: Vec<_> = path.iter().map(|name| name.value.as_str()).collect();
                write!(f, "{names:?}")
            }
            Content::Number(number) => f.write_str(number),
            Content::Text(text) => write!(f, "{text:?}"),
            Content::Bool(value) => write!(f, "{value}"),
            Content::Null => f.write_str("null"),
            Content::Negative(inner) => write!(f, "(- {inner})"),
            Content::Not(inner) => write!(f, "(not {inner})"),
            Content::Binary(left, operator, right) => write!(f, "({operator:?} {left} {right})"),
            Content::Is(inner, test) => write!(f, "({test:?} {inner})"),
            Content::Between { operand, low, high } => write!(f, "(between {operand} {low} {high})"),
            Content::In(operand, list) => {
                write!(f, "(in {operand}")?;
                list.iter().try_for_each(|item| write!(f, " {item}"))?;
                f.write_str(")")
            }
            Content::Like { operand, pattern, escape, ignores_case } => {
                write!(f, "({} {operand} {pattern}", if *ignores_case { "ilike" } else { "like" })?;
                escape.iter().try_for_each(|escape| write!(f, " {escape}"))?;
                f.write_str(")")
            }
        }
    }
}
