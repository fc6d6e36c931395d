//! A filter expression as a tree, in a canonical form that equal expressions share.

use std::fmt;

use super::term::Term;

/// Maximum number of terms in a filter; each term is one condition. A filter takes 64 octets per term for evaluation,
/// and about as many again for printing.
pub const TERM_COUNT_MAX: usize = 1024;

/// Maximum nesting depth of parentheses in a filter.
pub const DEPTH_MAX: usize = 64;

/// Operator between two operands of a filter expression. `and` and `or` have the same precedence, from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    And,
    Or,
}

/// A term, or a group in parentheses, that may be negated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    pub(super) negated: bool,
    pub(super) kind: OperandKind,
}

/// An operand of a filter expression without its negation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OperandKind {
    Term(Term),
    Group(Chain),
}

/// Operands joined from left to right: `a or b and c` is `(a or b) and c`.
///
/// A chain follows the written expression, so the depth of the tree is the depth of the parentheses, regardless of
/// the length of the expression. It contains no group whose parentheses are redundant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) first: Box<Operand>,
    pub(super) rest: Vec<(Joint, Operand)>,
}

impl Operand {
    pub(super) const fn term(term: Term) -> Self {
        Self { negated: false, kind: OperandKind::Term(term) }
    }

    /// Converts a chain to one operand; redundant parentheses around a single operand are dropped.
    pub(super) fn group(chain: Chain) -> Self {
        if chain.rest.is_empty() {
            *chain.first
        } else {
            Self { negated: false, kind: OperandKind::Group(chain) }
        }
    }

    /// Returns the operand, negated if `negated` is true.
    pub(super) const fn negated_if(mut self, negated: bool) -> Self {
        self.negated ^= negated;
        self
    }
}

impl From<Operand> for Chain {
    fn from(operand: Operand) -> Self {
        match operand {
            Operand { negated: false, kind: OperandKind::Group(chain) } => chain,
            operand => Self { first: Box::new(operand), rest: Vec::new() },
        }
    }
}

impl Chain {
    /// Appends an operand to the chain. A group is appended without its parentheses if all of its operators equal
    /// `joint`.
    pub(super) fn join(&mut self, joint: Joint, operand: Operand) {
        match operand {
            Operand { negated: false, kind: OperandKind::Group(chain) }
                if chain.rest.iter().all(|(inner, _)| *inner == joint) =>
            {
                self.rest.push((joint, *chain.first));
                self.rest.extend(chain.rest);
            }
            operand => self.rest.push((joint, operand)),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negated {
            f.write_str("not ")?;
        }
        match &self.kind {
            OperandKind::Term(term) => term.fmt(f),
            OperandKind::Group(chain) => write!(f, "({chain})"),
        }
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        for (joint, operand) in &self.rest {
            let word = match joint {
                Joint::And => "and",
                Joint::Or => "or",
            };
            write!(f, " {word} {operand}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vlan(id: u16) -> Operand {
        Operand::term(Term::Vlan(Some(id)))
    }

    fn pair(joint: Joint, negated: bool) -> Operand {
        let mut chain = Chain::from(vlan(2));
        chain.join(joint, vlan(3));
        Operand::group(chain).negated_if(negated)
    }

    #[test]
    fn only_necessary_parentheses_are_kept() {
        let joined = |joint, operand| {
            let mut chain = Chain::from(vlan(1));
            chain.join(joint, operand);
            chain.to_string()
        };
        assert_eq!(joined(Joint::And, pair(Joint::And, false)), "vlan 1 and vlan 2 and vlan 3");
        assert_eq!(joined(Joint::Or, pair(Joint::And, false)), "vlan 1 or (vlan 2 and vlan 3)");
        assert_eq!(joined(Joint::And, pair(Joint::And, true)), "vlan 1 and not (vlan 2 and vlan 3)");
    }

    #[test]
    fn double_negations_and_unnecessary_groups_are_simplified() {
        let twice = Operand::group(Chain::from(vlan(1).negated_if(true))).negated_if(true);
        assert_eq!(twice, vlan(1));
        let mut chain = Chain::from(pair(Joint::Or, false));
        chain.join(Joint::And, vlan(4));
        assert_eq!(chain.to_string(), "vlan 2 or vlan 3 and vlan 4");
    }
}
