//! The fragment pool against a naive model, and against hostile input.

mod hostile;
mod kernel;
mod naive;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use flowgauge::base::{IpProtocol, Limits, Resources, Timestamp};
use flowgauge::decode::fragment::{
    DatagramKey, EndReason, Fragment, Outcome, OverlapPolicy, Pool, PoolConfig,
};
use naive::{Expected, Model};
use proptest::prelude::*;

pub(crate) fn key(identification: u16) -> DatagramKey {
    let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    DatagramKey::v4(source, destination, identification, IpProtocol::UDP, 0)
}

pub(crate) fn fragment<'a>(
    key: DatagramKey,
    now: u64,
    offset: u16,
    more_fragments: bool,
    bytes: &'a [u8],
) -> Fragment<'a> {
    Fragment {
        key,
        timestamp: Timestamp::from_nanos(now),
        protocol: IpProtocol::UDP,
        offset,
        more_fragments,
        header_len: 20,
        len: bytes.len() as u32,
        bytes,
    }
}

/// A fragment of one of a few datagrams: datagram, time, offset in units, units, additional octets, last, fill octet,
/// octets not captured.
type Step = (u8, u8, u8, u8, u8, bool, u8, u8);

fn step() -> impl Strategy<Value = Step> {
    let odd = prop_oneof![8 => Just(0_u8), 1 => 1..8_u8];
    let truncated = prop_oneof![8 => Just(0_u8), 1 => 1..20_u8];
    (0..4_u8, 0..3_u8, 0..8_u8, 0..6_u8, odd, prop::bool::weighted(0.3), 0..3_u8, truncated)
}

/// Returns the outcome of the pool in the terms of the model.
fn summary(outcome: Outcome<'_, u32>) -> Expected {
    match outcome {
        Outcome::Atomic => Expected::Atomic,
        Outcome::Held(held) => Expected::Held {
            tags: held.tags().to_vec(),
            has_first: held.head().is_some(),
            overlaps: held.overlaps(),
        },
        Outcome::Duplicate(held) => Expected::Duplicate { tags: held.tags().to_vec() },
        Outcome::Completed(it) => Expected::Completed {
            payload: it.payload.to_vec(),
            payload_len: it.payload_len,
            tags: it.tags.to_vec(),
            is_truncated: false,
        },
        Outcome::CompletedTruncated(it) => Expected::Completed {
            payload: it.payload.to_vec(),
            payload_len: it.payload_len,
            tags: it.tags.to_vec(),
            is_truncated: true,
        },
        Outcome::Discarded(discard) => Expected::Discarded(discard),
        Outcome::AlreadyDiscarded => Expected::AlreadyDiscarded,
        Outcome::Malformed(malformed) => Expected::Malformed(malformed),
        other => panic!("{other:?} although no limit is reached"),
    }
}

/// Runs the same steps in the pool and the model. `scale` multiplies offsets, so that pieces cross pages.
fn compare(policy: OverlapPolicy, steps: &[Step], scale: u16) {
    let fragment_max = 12;
    let mut config = PoolConfig::default();
    config.policy = policy;
    config.timeout = Duration::from_nanos(20);
    let mut limits = Limits::DEFAULT;
    limits.fragment_per_datagram_count_max = fragment_max;
    let mut pool: Pool<u32> = Pool::new(config, &Resources::new(limits)).expect("a valid configuration");
    let mut model = Model::new(policy, 20, fragment_max);
    let mut now = 100_u64;
    let mut ended = vec![];
    for (tag, step) in steps.iter().enumerate() {
        let &(datagram, time, offset, units, odd, is_last, fill, truncated) = step;
        now = if time == 2 { now.saturating_sub(1) } else { now + u64::from(time) };
        let key = match datagram {
            3 => DatagramKey::v6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 1, 0),
            datagram => key(datagram.into()),
        };
        let len = usize::from(units) * usize::from(scale) * 8 + usize::from(odd);
        let octets: Vec<u8> =
            (0..len).map(|at| fill.wrapping_mul(100).wrapping_add((at / 8) as u8)).collect();
        let mut fragment = fragment(key, now, u16::from(offset) * scale * 8, !is_last, &octets);
        fragment.bytes = &octets[..len.saturating_sub(truncated.into())];
        let expected = model.push(&fragment, tag as u32);
        let outcome =
            pool.push(&fragment, tag as u32, |it| ended.push((it.key, it.reason, it.tags.to_vec())));
        assert_eq!(summary(outcome), expected, "{policy}: step {tag}, {step:?}");
        if tag % 16 == 15 {
            pool.check_invariants();
        }
    }
    pool.finish(|it| ended.push((it.key, it.reason, it.tags.to_vec())));
    pool.check_invariants();
    assert!(pool.is_empty());
    model.finish();
    let mut ended: Vec<_> = ended
        .into_iter()
        .map(|(key, reason, tags)| match reason {
            EndReason::Discarded(discard) => (key, Some(discard), tags),
            _ => (key, None, tags),
        })
        .collect();
    ended.sort_by(|a, b| a.2.cmp(&b.2));
    model.ended.sort_by(|a, b| a.2.cmp(&b.2));
    assert_eq!(ended, model.ended, "{policy}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(debug_assertions) { 32 } else { 1000 }, ..ProptestConfig::default() })]

    #[test]
    fn every_policy_agrees_with_the_model(steps in prop::collection::vec(step(), 1..60), scale in prop::sample::select(vec![1_u16, 1, 1, 43, 128])) {
        for policy in OverlapPolicy::ALL {
            compare(policy, &steps, scale);
        }
    }

    /// For any order and any sizes of fragments, a datagram without overlaps is reassembled correctly.
    #[test]
    fn fragments_in_any_order_give_the_datagram(
        len in 9..65_515_usize,
        mtu in 1..190_usize,
        seed in any::<u64>(),
        policy in prop::sample::select(OverlapPolicy::ALL.to_vec()),
    ) {
        let payload: Vec<u8> = (0..len).map(|at| (at as u64).wrapping_mul(seed | 1).to_be_bytes()[3]).collect();
        let size = (mtu * 8).max(len.div_ceil(2000).next_multiple_of(8)).min((len - 1) / 8 * 8);
        let mut order: Vec<usize> = (0..len.div_ceil(size)).collect();
        let mut random = seed;
        for position in (1..order.len()).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(position, (random >> 33) as usize % (position + 1));
        }
        let mut config = PoolConfig::default();
        config.policy = policy;
        let mut pool: Pool<u32> = Pool::new(config, &Resources::default()).expect("a valid configuration");
        let last = *order.last().expect("at least two fragments");
        for &position in &order {
            let bytes = &payload[position * size..len.min((position + 1) * size)];
            let is_last = (position + 1) * size >= len;
            let fragment = fragment(key(1), 1, (position * size) as u16, !is_last, bytes);
            match pool.push(&fragment, position as u32, |_| panic!("nothing ends")) {
                Outcome::Completed(it) => {
                    prop_assert_eq!(position, last);
                    prop_assert!(it.payload == payload);
                    prop_assert!(it.tags.iter().map(|tag| *tag as usize).eq(order.iter().copied()));
                }
                Outcome::Held(_) => prop_assert_ne!(position, last),
                other => panic!("{other:?}, {policy}"),
            }
        }
        prop_assert!(pool.is_empty());
        pool.check_invariants();
    }
}
