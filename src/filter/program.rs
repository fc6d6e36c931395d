//! A filter expression as a list of steps, each with the indexes of the steps that may follow it.

use super::expr::{Chain, Joint, Operand, OperandKind, TERM_COUNT_MAX};
#[cfg(feature = "protocols")]
use super::subject::LinkSubject;
use super::subject::Subject;
use super::term::Term;
use crate::base::NeighborProtocol;

/// Target of a step after which the filter matches, in place of the index of a next step.
const ACCEPT: u16 = u16::MAX;
/// Target of a step after which the filter does not match, in place of the index of a next step.
const REJECT: u16 = u16::MAX - 1;

/// One condition, and the indexes of the next steps if it is satisfied and if it is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    term: Term,
    yes: u16,
    no: u16,
}

/// The steps of a filter expression, first to last. The targets of a step are later steps, so every evaluation ends.
///
/// Negation costs nothing (it swaps the targets), and evaluation needs no stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Program {
    steps: Box<[Step]>,
    is_directional: bool,
    has_vlan: bool,
}

impl Program {
    /// Compiles a chain of at most [`TERM_COUNT_MAX`] terms to a program.
    pub(super) fn new(chain: &Chain) -> Self {
        // A step can be created only after those that follow it, so the list is created from its end.
        let mut backwards = Vec::new();
        emit(chain, ACCEPT, REJECT, &mut backwards);
        debug_assert!(backwards.len() <= TERM_COUNT_MAX);
        let last = backwards.len().saturating_sub(1) as u16;
        let forward = |to: u16| if to >= REJECT { to } else { last - to };
        let steps: Box<[Step]> = backwards
            .into_iter()
            .rev()
            .map(|step: Step| Step { yes: forward(step.yes), no: forward(step.no), ..step })
            .collect();
        Self {
            is_directional: steps.iter().any(|step| step.term.is_directional()),
            has_vlan: steps.iter().any(|step| matches!(step.term, Term::Vlan(_))),
            steps,
        }
    }

    pub(super) const fn is_directional(&self) -> bool {
        self.is_directional
    }

    pub(super) const fn has_vlan(&self) -> bool {
        self.has_vlan
    }

    /// Returns whether the filter may accept a frame of a protocol without an IP packet because it is of this protocol.
    pub(super) fn selects_link(&self) -> bool {
        self.steps.iter().any(|step| match step.term {
            Term::Link(protocol) => self.accepts_link(protocol, step.yes),
            _ => false,
        })
    }

    /// Returns whether the steps from `at` on accept a frame of a protocol without an IP packet, with suitable addresses and
    /// tags.
    fn accepts_link(&self, protocol: NeighborProtocol, at: u16) -> bool {
        let mut reached = vec![at];
        // Targets are later steps.
        for (index, step) in (0_u16..).zip(&self.steps) {
            if !reached.contains(&index) {
                continue;
            }
            match step.term {
                Term::Family(_) | Term::Protocol { .. } | Term::Ports { .. } => reached.push(step.no),
                Term::Link(known) if known == protocol => reached.push(step.yes),
                Term::Link(_) => reached.push(step.no),
                Term::Net4 { .. } | Term::Net6 { .. } | Term::Vlan(_) => reached.extend([step.yes, step.no]),
            }
        }
        reached.contains(&ACCEPT)
    }

    pub(super) const fn term_count(&self) -> usize {
        self.steps.len()
    }

    /// Returns whether a packet or flow matches the filter. A program without steps matches everything.
    #[inline]
    pub(super) fn run(&self, subject: &Subject<'_>) -> bool {
        let mut at = if self.steps.is_empty() { ACCEPT } else { 0 };
        while let Some(step) = self.steps.get(usize::from(at)) {
            at = if step.term.holds(subject) { step.yes } else { step.no };
        }
        at == ACCEPT
    }

    /// Returns whether a frame without an IP packet matches the filter.
    #[cfg(feature = "protocols")]
    pub(super) fn run_link(&self, subject: &LinkSubject) -> bool {
        let mut at = if self.steps.is_empty() { ACCEPT } else { 0 };
        while let Some(step) = self.steps.get(usize::from(at)) {
            at = if step.term.holds_for(subject) { step.yes } else { step.no };
        }
        at == ACCEPT
    }

    /// Returns whether the filter could match for some results of its VLAN terms, given the other properties of
    /// `subject`.
    pub(super) fn may_accept(&self, subject: &Subject<'_>) -> bool {
        let mut reached = Reached::default();
        let mut accepts = self.steps.is_empty();
        reached.insert(0);
        for (at, step) in self.steps.iter().enumerate() {
            if !reached.contains(at) {
                continue;
            }
            let (yes, no) = match step.term {
                Term::Vlan(_) => (true, true),
                term => {
                    let holds = term.holds(subject);
                    (holds, !holds)
                }
            };
            for to in [yes.then_some(step.yes), no.then_some(step.no)].into_iter().flatten() {
                accepts |= to == ACCEPT;
                reached.insert(usize::from(to));
            }
        }
        accepts
    }
}

/// Appends the steps of a chain, last step first; the indexes in their targets count from the end of the program.
fn emit(chain: &Chain, accept: u16, reject: u16, out: &mut Vec<Step>) {
    let (mut accept, mut reject) = (accept, reject);
    for (joint, operand) in chain.rest.iter().rev() {
        emit_operand(operand, accept, reject, out);
        let begin = out.len().saturating_sub(1) as u16;
        // The operands on the left either determine the result, or the operand just written is evaluated.
        match joint {
            Joint::And => accept = begin,
            Joint::Or => reject = begin,
        }
    }
    emit_operand(&chain.first, accept, reject, out);
}

fn emit_operand(operand: &Operand, accept: u16, reject: u16, out: &mut Vec<Step>) {
    let (yes, no) = if operand.negated { (reject, accept) } else { (accept, reject) };
    match &operand.kind {
        OperandKind::Term(term) => out.push(Step { term: *term, yes, no }),
        OperandKind::Group(chain) => emit(chain, yes, no, out),
    }
}

/// Set of indexes of program steps.
#[derive(Default)]
struct Reached([u64; TERM_COUNT_MAX / 64]);

impl Reached {
    fn insert(&mut self, step: usize) {
        if let Some(word) = self.0.get_mut(step / 64) {
            *word |= 1 << (step % 64);
        }
    }

    fn contains(&self, step: usize) -> bool {
        self.0.get(step / 64).is_some_and(|word| word >> (step % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{FlowKey, IpProtocol, VlanIds};

    fn chain(first: u16, rest: &[(Joint, u16)]) -> Chain {
        let vlan = |id| Operand::term(Term::Vlan(Some(id)));
        let mut chain = Chain::from(vlan(first));
        for (joint, id) in rest {
            chain.join(*joint, vlan(*id));
        }
        chain
    }

    #[test]
    fn and_and_or_have_equal_precedence_from_the_left() {
        let end = ("10.0.0.1".parse().unwrap(), 8);
        let (key, source) = FlowKey::new(IpProtocol::UDP, end, end);
        let run = |program: &Program, id| {
            program.run(&Subject::new(&key, source).with_vlan_ids(VlanIds::NONE.push(id).push(9)))
        };
        let program = Program::new(&chain(1, &[(Joint::Or, 2), (Joint::And, 3)]));
        assert!(!run(&program, 1) && !run(&program, 2) && !run(&program, 3));
        let program = Program::new(&chain(1, &[(Joint::And, 2), (Joint::Or, 9)]));
        assert!(run(&program, 3));
        assert!(run(&Program::default(), 1));
        assert_eq!(program.term_count(), 3);
        assert_eq!(size_of::<Step>(), 64);
    }

    #[test]
    fn unknown_vlans_leave_the_result_undetermined() {
        let end = ("10.0.0.1".parse().unwrap(), 8);
        let (key, source) = FlowKey::new(IpProtocol::UDP, end, end);
        let subject = Subject::new(&key, source);
        let tcp = Operand::term(Term::Protocol { protocol: IpProtocol::TCP, family: None });
        let mut with_tcp = chain(1, &[]);
        with_tcp.join(Joint::And, tcp.clone());
        assert!(!Program::new(&with_tcp).may_accept(&subject));
        let mut without = chain(1, &[]);
        without.join(Joint::And, tcp.negated_if(true));
        assert!(Program::new(&without).may_accept(&subject));
        assert!(!Program::new(&without).run(&subject));
        assert!(Program::default().may_accept(&subject));
    }
}
