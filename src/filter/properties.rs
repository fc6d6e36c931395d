//! Random expressions: the program gives the same results as the tree, and printed filters parse back.

use proptest::prelude::*;

use super::expr::{Chain, Joint, Operand, OperandKind};
use super::names::{Family, LINK_WORDS};
use super::term::{Direction, Term};
use super::*;
use crate::base::{IpProtocol, VlanIds};

fn directions() -> impl Strategy<Value = Direction> {
    prop_oneof![
        Just(Direction::Either),
        Just(Direction::Source),
        Just(Direction::Destination),
        Just(Direction::Both)
    ]
}

fn families() -> impl Strategy<Value = Family> {
    prop_oneof![Just(Family::V4), Just(Family::V6)]
}

fn protocols() -> impl Strategy<Value = IpProtocol> {
    prop_oneof![3 => prop::sample::select(vec![1, 2, 6, 17, 47, 50, 51, 58, 132]), 1 => any::<u8>()]
        .prop_map(IpProtocol)
}

/// Generates IPv4 addresses that differ in few bits, so that terms match often.
fn address4() -> impl Strategy<Value = u32> {
    prop_oneof![4 => (0u32..4, 0u32..4).prop_map(|(high, low)| 10 << 24 | high << 16 | low), 1 => any::<u32>()]
}

fn address6() -> impl Strategy<Value = u128> {
    prop_oneof![4 => (0u128..4, 0u128..4).prop_map(|(high, low)| 0xfe80 << 112 | high << 64 | low), 1 => any::<u128>()]
}

fn ports() -> impl Strategy<Value = u16> {
    prop_oneof![3 => 0u16..4, 1 => any::<u16>()]
}

fn terms() -> impl Strategy<Value = Term> {
    let transports = prop::option::of(prop::sample::select(vec![6, 17, 132]).prop_map(IpProtocol));
    prop_oneof![
        families().prop_map(Term::Family),
        (protocols(), prop::option::of(families()))
            .prop_map(|(protocol, family)| Term::Protocol { protocol, family }),
        (directions(), address4(), prop_oneof![4 => (0u32..=32).prop_map(Term::mask4), 1 => any::<u32>()])
            .prop_map(|(direction, address, mask)| Term::Net4 { direction, address: address & mask, mask }),
        (directions(), address6(), (0u32..=128).prop_map(Term::mask6))
            .prop_map(|(direction, address, mask)| Term::Net6 { direction, address: address & mask, mask }),
        (directions(), transports, ports(), ports()).prop_map(|(direction, protocol, a, b)| Term::Ports {
            direction,
            protocol,
            first: a.min(b),
            last: a.max(b)
        }),
        prop::option::of(1u16..4).prop_map(Term::Vlan),
        prop::sample::select(LINK_WORDS.map(|(_, protocol)| protocol).to_vec()).prop_map(Term::Link),
    ]
}

fn operands() -> impl Strategy<Value = Operand> {
    let leaf = (terms(), any::<bool>()).prop_map(|(term, negated)| Operand::term(term).negated_if(negated));
    leaf.prop_recursive(5, 40, 5, |inner| {
        let joint = prop_oneof![Just(Joint::And), Just(Joint::Or)];
        (inner.clone(), prop::collection::vec((joint, inner), 0..5), any::<bool>()).prop_map(
            |(first, rest, negated)| {
                let mut chain = Chain::from(first);
                for (joint, operand) in rest {
                    chain.join(joint, operand);
                }
                Operand::group(chain).negated_if(negated)
            },
        )
    })
}

fn filters() -> impl Strategy<Value = Filter> {
    operands().prop_map(|operand| Filter::from_chain(Chain::from(operand)))
}

fn keys() -> impl Strategy<Value = (FlowKey, Side)> {
    let ends = prop_oneof![
        (Just(false), address4().prop_map(u128::from), address4().prop_map(u128::from)),
        (Just(true), address6(), address6()),
    ];
    (protocols(), ends, ports(), ports(), any::<bool>()).prop_map(
        |(protocol, (is_ipv6, source, destination), source_port, destination_port, has_ports)| {
            FlowKey::ordered(
                protocol,
                is_ipv6,
                (source, source_port),
                (destination, destination_port),
                has_ports,
            )
        },
    )
}

fn vlan_ids() -> impl Strategy<Value = VlanIds> {
    (0u16..4, 0u16..4).prop_map(|(outer, inner)| VlanIds::NONE.push(outer).push(inner))
}

/// Evaluates an expression tree in the simplest way, for comparison with the program.
fn naive(chain: &Chain, subject: &Subject<'_>) -> bool {
    let value = |operand: &Operand| {
        operand.negated
            ^ match &operand.kind {
                OperandKind::Term(term) => term.holds(subject),
                OperandKind::Group(chain) => naive(chain, subject),
            }
    };
    chain.rest.iter().fold(value(&chain.first), |left, (joint, right)| match joint {
        Joint::And => left & value(right),
        Joint::Or => left | value(right),
    })
}

proptest! {
    #[test]
    fn a_printed_filter_parses_back(filter in filters()) {
        let printed = filter.to_string();
        let parsed = Filter::parse(&printed);
        prop_assert_eq!(parsed.as_ref(), Ok(&filter));
        prop_assert_eq!(parsed.unwrap().to_string(), printed);
    }

    #[test]
    fn the_program_gives_the_same_results_as_the_tree(filter in filters(), (key, source) in keys(), ids in vlan_ids(), back in vlan_ids()) {
        let subject = Subject::new(&key, source).with_vlan_ids(ids).with_reverse_vlan_ids(back);
        prop_assert_eq!(filter.matches(&subject), naive(filter.chain.as_ref().unwrap(), &subject));
    }

    #[test]
    fn early_exclusion_never_drops_a_match(filter in filters(), (key, source) in keys(), ids in vlan_ids(), back in vlan_ids()) {
        let subject = Subject::new(&key, source).with_vlan_ids(ids).with_reverse_vlan_ids(back);
        let swapped = Subject { source: source.other(), ..subject };
        let (there, back) = (filter.matches(&subject), filter.matches(&swapped));
        prop_assert!(filter.may_match(&key) || !there && !back);
        if !filter.is_directional() {
            prop_assert_eq!(there, back);
        }
        if !filter.has_vlan() {
            prop_assert_eq!(filter.may_match(&key), there || back);
        }
        if filter.is_final() {
            prop_assert_eq!(filter.may_match(&key), there);
        }
    }

    #[test]
    fn no_text_causes_a_panic(text in "[ -~\\n\u{e4}]{0,60}") {
        if let Err(error) = Filter::parse(&text) {
            prop_assert!(error.column() <= text.chars().count() + 1);
            prop_assert!(!error.render(&text).is_empty());
        }
    }

    #[test]
    fn filters_from_random_words_parse_back(words in prop::collection::vec(prop::sample::select(vec![
        "tcp", "ip", "ip6", "src", "dst", "host", "net", "port", "portrange", "proto", "vlan", "and", "or", "not",
        "(", ")", "/", "10", "80", "10.0.0.0", "::1", "8", "mask", "1-2", "\\tcp", "gre", "ether", "[",
    ]), 0..16)) {
        let text = words.join(" ");
        if let Ok(filter) = Filter::parse(&text) {
            prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter));
        }
    }
}
