//! The part of the grammar of pcap-filter(7) that applies to flows.
//!
//! ```text
//! chain     = operand { ("and" | "or") operand }
//! operand   = { "not" } ( "(" chain ")" | term | value )      the qualifiers before a value apply to it
//! term      = qualifiers values | protocol | "arp" | "rarp" | "stp" | "vlan" [ id ]
//! values    = { "not" } ( "(" values { ("and" | "or") values } ")" | value )
//! ```

use crate::base::NeighborProtocol;

use super::error::{FilterError, FilterErrorKind as Kind};
use super::expr::{Chain, DEPTH_MAX, Joint, Operand, TERM_COUNT_MAX};
use super::lexer::{Lexer, Token, TokenKind};
use super::names::Family;
use super::names::{GRE, LINK_WORDS, PROTOCOL_WORDS, is_unsupported, protocol_of};
use super::qualifier::{Protocol, Qualifier, Type};
use super::term::{Direction, Term};
use super::value::{self, Address};

/// Returns the protocol of frames without an IP packet that a keyword denotes.
fn link_protocol(word: &str) -> Option<NeighborProtocol> {
    LINK_WORDS.iter().find(|(known, _)| *known == word).map(|(_, protocol)| *protocol)
}

/// Parses a whole filter expression; returns no chain if the expression is only white space.
pub(super) fn parse(expression: &str) -> Result<Option<Chain>, FilterError> {
    let mut parser = Parser::new(expression);
    if parser.ahead.kind == TokenKind::End {
        return Ok(None);
    }
    let chain = parser.chain(None)?;
    match parser.ahead.kind {
        TokenKind::End => Ok(Some(chain)),
        _ => Err(parser.unexpected()),
    }
}

struct Parser<'e> {
    expression: &'e str,
    lexer: Lexer<'e>,
    ahead: Token<'e>,
    depth: usize,
    term_count: usize,
}

type Result<T, E = FilterError> = std::result::Result<T, E>;

impl<'e> Parser<'e> {
    fn new(expression: &'e str) -> Self {
        let mut lexer = Lexer::new(expression);
        let ahead = lexer.next();
        Self { expression, lexer, ahead, depth: 0, term_count: 0 }
    }

    fn bump(&mut self) -> Token<'e> {
        std::mem::replace(&mut self.ahead, self.lexer.next())
    }

    /// Returns the token after the next one, without consuming any token.
    fn second(&self) -> Token<'e> {
        let mut lexer = self.lexer;
        lexer.next()
    }

    fn at_word(&self, word: &str) -> bool {
        self.ahead.kind == TokenKind::Word && self.ahead.text == word
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump();
        }
        found
    }

    fn error(&self, kind: Kind, token: Token<'_>) -> FilterError {
        FilterError::new(kind, self.expression, token.start, token.end())
    }

    /// Returns the error for a next token that is not allowed at its position; the kind of the error depends on the
    /// token.
    fn unexpected(&self) -> FilterError {
        let kind = match self.ahead.kind {
            TokenKind::End => Kind::UnexpectedEnd,
            TokenKind::Arithmetic => Kind::PacketBytes,
            TokenKind::Word if is_unsupported(self.ahead.text) => Kind::Unsupported,
            _ => Kind::Unexpected,
        };
        self.error(kind, self.ahead)
    }

    fn take_joint(&mut self) -> Option<Joint> {
        let joint = match self.ahead.kind {
            TokenKind::And => Joint::And,
            TokenKind::Or => Joint::Or,
            _ => return None,
        };
        self.bump();
        Some(joint)
    }

    fn take_negations(&mut self) -> bool {
        let mut negated = false;
        while self.ahead.kind == TokenKind::Not {
            self.bump();
            negated = !negated;
        }
        negated
    }

    /// Parses a group: an opening parenthesis, the content with `inside`, and the closing parenthesis.
    fn in_parentheses(&mut self, inside: impl FnOnce(&mut Self) -> Result<Chain>) -> Result<Operand> {
        let open = self.bump();
        if self.depth == DEPTH_MAX {
            return Err(self.error(Kind::TooDeep, open));
        }
        self.depth += 1;
        let chain = inside(self)?;
        self.depth -= 1;
        match self.ahead.kind {
            TokenKind::Close => {
                self.bump();
                Ok(Operand::group(chain))
            }
            TokenKind::End => Err(self.error(Kind::UnclosedParenthesis, open)),
            _ => Err(self.unexpected()),
        }
    }

    /// Parses operands joined by `and` and `or`. `carried` are the qualifiers of the previous term, which also apply
    /// to values without qualifiers of their own.
    fn chain(&mut self, carried: Option<Qualifier>) -> Result<Chain> {
        let (first, mut carried) = self.operand(carried)?;
        let mut chain = Chain::from(first);
        while let Some(joint) = self.take_joint() {
            let (operand, next) = self.operand(carried)?;
            carried = next;
            chain.join(joint, operand);
        }
        Ok(chain)
    }

    /// Parses an operand. Returns it with the qualifiers that also apply to later values without qualifiers of their
    /// own.
    fn operand(&mut self, carried: Option<Qualifier>) -> Result<(Operand, Option<Qualifier>)> {
        let negated = self.take_negations();
        let (operand, next) = match self.ahead.kind {
            TokenKind::Open => (self.in_parentheses(|parser| parser.chain(carried))?, carried),
            TokenKind::Word if self.begins_term(carried) => self.term()?,
            TokenKind::Word | TokenKind::Escaped => (self.carried_value(carried)?, carried),
            _ => return Err(self.unexpected()),
        };
        Ok((operand.negated_if(negated), next))
    }

    fn begins_term(&self, carried: Option<Qualifier>) -> bool {
        let word = self.ahead.text;
        // `gre` is a name in libpcap, so it is a value wherever a value is allowed.
        let is_value = word == GRE && carried.is_some_and(|carried| carried.kind == Type::Proto);
        !is_value
            && (matches!(word, "src" | "dst" | "vlan")
                || link_protocol(word).is_some()
                || Type::of(word).is_some()
                || Protocol::of(word).is_some()
                || is_unsupported(word))
    }

    fn carried_value(&mut self, carried: Option<Qualifier>) -> Result<Operand> {
        match carried {
            Some(qualifier) => self.value(qualifier).map(Operand::term),
            None => {
                let text = self.ahead.text;
                let is_value =
                    value::address(text) != Err(Kind::HostName) || value::port_range(text).is_some();
                Err(self.error(if is_value { Kind::BareValue } else { Kind::UnknownWord }, self.ahead))
            }
        }
    }

    /// Parses a term that starts with a keyword. Returns it with the qualifiers that also apply to later values
    /// without qualifiers of their own.
    fn term(&mut self) -> Result<(Operand, Option<Qualifier>)> {
        let first = self.ahead;
        if is_unsupported(first.text) {
            return Err(self.error(Kind::Unsupported, first));
        }
        if self.take_word("vlan") {
            return Ok((Operand::term(self.vlan()?), None));
        }
        if let Some(protocol) = link_protocol(first.text) {
            self.count_term(first)?;
            self.bump();
            return Ok((Operand::term(Term::Link(protocol)), None));
        }
        let protocol = Protocol::of(first.text);
        if protocol.is_some() {
            self.bump();
            if self.ahead.text == "[" {
                return Err(FilterError::new(
                    Kind::PacketBytes,
                    self.expression,
                    first.start,
                    self.ahead.end(),
                ));
            }
        }
        let direction = self.direction();
        let kind = Type::of(self.ahead.text).filter(|_| self.ahead.kind == TokenKind::Word);
        if kind.is_some() {
            self.bump();
        }
        match (protocol, direction, kind) {
            (Some(protocol), None, None) => {
                self.count_term(first)?;
                Ok((Operand::term(protocol.term()), None))
            }
            (_, Some(_), Some(Type::Proto)) => Err(self.error(Kind::DirectedProtocol, first)),
            _ => {
                let kind = kind.unwrap_or(Type::Host);
                let direction = direction.unwrap_or(Direction::Either);
                let Some(qualifier) = Qualifier::new(protocol, direction, kind) else {
                    return Err(self.error(Kind::Modifier, first));
                };
                Ok((self.values(qualifier)?, Some(qualifier)))
            }
        }
    }

    fn vlan(&mut self) -> Result<Term> {
        let token = self.ahead;
        self.count_term(token)?;
        if token.kind != TokenKind::Word || !token.text.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(Term::Vlan(None));
        }
        self.bump();
        match value::number(token.text) {
            Some(id @ 1..=4095) => Ok(Term::Vlan(Some(id as u16))),
            _ => Err(self.error(Kind::VlanId, token)),
        }
    }

    /// Parses a direction: `src`, `dst`, or both with an operator between them; `None` if the next word is neither.
    fn direction(&mut self) -> Option<Direction> {
        let (one, other) = if self.take_word("src") {
            (Direction::Source, "dst")
        } else if self.take_word("dst") {
            (Direction::Destination, "src")
        } else {
            return None;
        };
        let second = self.second();
        if second.kind == TokenKind::Word
            && second.text == other
            && let Some(joint) = self.take_joint()
        {
            self.bump();
            return Some(match joint {
                Joint::And => Direction::Both,
                Joint::Or => Direction::Either,
            });
        }
        Some(one)
    }

    /// Parses one value, or several values in parentheses, to all of which `qualifier` applies.
    fn values(&mut self, qualifier: Qualifier) -> Result<Operand> {
        let negated = self.take_negations();
        let operand = match self.ahead.kind {
            TokenKind::Open => self.in_parentheses(|parser| {
                let mut chain = Chain::from(parser.values(qualifier)?);
                while let Some(joint) = parser.take_joint() {
                    let operand = parser.values(qualifier)?;
                    chain.join(joint, operand);
                }
                Ok(chain)
            })?,
            _ => Operand::term(self.value(qualifier)?),
        };
        Ok(operand.negated_if(negated))
    }

    fn count_term(&mut self, token: Token<'_>) -> Result<()> {
        if self.term_count == TERM_COUNT_MAX {
            return Err(self.error(Kind::TooLong, token));
        }
        self.term_count += 1;
        Ok(())
    }

    fn value(&mut self, qualifier: Qualifier) -> Result<Term> {
        let token = self.ahead;
        self.count_term(token)?;
        match (token.kind, qualifier.kind) {
            (TokenKind::Word, Type::Host | Type::Net) => self.address(qualifier),
            (TokenKind::Word | TokenKind::Escaped, kind) if !self.is_misplaced_keyword(kind) => {
                self.bump();
                let text = token.text.strip_prefix('\\').unwrap_or(token.text);
                match kind {
                    Type::Port => match value::port(text) {
                        Some(port) => Ok(qualifier.ports(port, port)),
                        None => Err(self.error(Kind::Port, token)),
                    },
                    Type::PortRange => match value::port_range(text) {
                        Some((first, last)) => Ok(qualifier.ports(first, last)),
                        None => Err(self.error(Kind::PortRange, token)),
                    },
                    _ => self.protocol(qualifier, token, text),
                }
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Returns whether the next word is a keyword where a port is expected, which means that the port is missing.
    fn is_misplaced_keyword(&self, kind: Type) -> bool {
        let word = self.ahead.text;
        kind != Type::Proto && (Type::of(word).is_some() || matches!(word, "src" | "dst"))
    }

    fn protocol(&self, qualifier: Qualifier, token: Token<'_>, name: &str) -> Result<Term> {
        let number = match value::number(name) {
            Some(number) => u8::try_from(number).ok().map(crate::base::IpProtocol),
            None => protocol_of(name),
        };
        let Some(protocol) = number else { return Err(self.error(Kind::Protocol, token)) };
        // In `ip proto tcp or udp`, the second name would be a term that includes IPv6, which is not what it looks
        // like.
        let is_keyword = name != GRE && PROTOCOL_WORDS.iter().any(|word| word.0 == name);
        if is_keyword && token.kind == TokenKind::Word && qualifier.protocol.is_some() {
            return Err(self.error(Kind::UnescapedProtocol, token));
        }
        Ok(Term::Protocol { protocol, family: qualifier.family() })
    }

    /// Parses an address or network, with its mask if one follows.
    fn address(&mut self, qualifier: Qualifier) -> Result<Term> {
        let token = self.ahead;
        let address = match value::address(token.text) {
            Err(Kind::HostName) if self.begins_term(None) => return Err(self.unexpected()),
            result => result.map_err(|kind| self.error(kind, token))?,
        };
        self.bump();
        let is_net = qualifier.kind == Type::Net;
        if !is_net && (self.ahead.kind == TokenKind::Slash || self.at_word("mask")) {
            return Err(self.error(Kind::MaskWithoutNet, self.ahead));
        }
        let family = match address {
            Address::V4 { .. } => Family::V4,
            Address::V6(_) => Family::V6,
        };
        if qualifier.family().is_some_and(|required| required != family) {
            return Err(self.error(Kind::AddressFamily, token));
        }
        let direction = qualifier.direction;
        let term = match address {
            Address::V4 { bits, len } if is_net => {
                let mask = self.mask4()?.unwrap_or(Term::mask4(len));
                (bits & !mask == 0).then_some(Term::Net4 { direction, address: bits, mask })
            }
            Address::V4 { bits, len: 32 } => Some(Term::Net4 { direction, address: bits, mask: u32::MAX }),
            Address::V4 { .. } => return Err(self.error(Kind::PartialAddress, token)),
            Address::V6(bits) => {
                let mask = self.mask6()?.unwrap_or(u128::MAX);
                (bits & !mask == 0).then_some(Term::Net6 { direction, address: bits, mask })
            }
        };
        term.ok_or_else(|| self.error(Kind::HostBits, token))
    }

    fn mask4(&mut self) -> Result<Option<u32>> {
        if self.take_word("mask") {
            let token = self.bump();
            return match value::address(token.text) {
                Ok(Address::V4 { bits, .. }) => Ok(Some(bits)),
                _ => Err(self.mask_error(token)),
            };
        }
        Ok(self.prefix_len(32)?.map(Term::mask4))
    }

    fn mask6(&mut self) -> Result<Option<u128>> {
        if self.at_word("mask") {
            return Err(self.error(Kind::Mask, self.ahead));
        }
        Ok(self.prefix_len(128)?.map(Term::mask6))
    }

    fn prefix_len(&mut self, max: u32) -> Result<Option<u32>> {
        if self.ahead.kind != TokenKind::Slash {
            return Ok(None);
        }
        self.bump();
        let token = self.bump();
        match value::number(token.text).filter(|len| token.kind == TokenKind::Word && *len <= max) {
            Some(len) => Ok(Some(len)),
            None => Err(self.mask_error(token)),
        }
    }

    fn mask_error(&self, token: Token<'_>) -> FilterError {
        let kind = if token.kind == TokenKind::End { Kind::UnexpectedEnd } else { Kind::Mask };
        self.error(kind, token)
    }
}
