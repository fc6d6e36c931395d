//! Crafted hostile input: each outcome has its own counter, and memory is bounded.

use std::time::Duration;

use flowgauge::base::{Account, Budget, ConfigProblem, Limits, Resources, Timestamp};
use flowgauge::decode::fragment::{
    Cap, Discard, EndReason, Malformed, Outcome, OverlapPolicy, Pool, PoolConfig,
};

use super::{fragment, key};

fn pool(policy: OverlapPolicy) -> Pool<u32> {
    let mut config = PoolConfig::default();
    config.policy = policy;
    Pool::new(config, &Resources::default()).expect("a valid configuration")
}

/// Returns a pool with the default configuration and other limits.
fn pool_with_limits(set: impl FnOnce(&mut Limits)) -> Pool<u32> {
    let mut limits = Limits::DEFAULT;
    set(&mut limits);
    Pool::new(PoolConfig::default(), &Resources::new(limits)).expect("a valid configuration")
}

#[test]
fn teardrop_is_an_end_conflict() {
    for policy in OverlapPolicy::ALL {
        let mut pool = pool(policy);
        // The second fragment is within the first and has no flag for more fragments (1997).
        assert!(matches!(pool.push(&fragment(key(1), 0, 0, true, &[0; 40]), 1, |_| {}), Outcome::Held(_)));
        let mut tags = vec![];
        let outcome = pool.push(&fragment(key(1), 0, 24, false, &[1; 4]), 2, |ended| {
            assert_eq!(ended.reason, EndReason::Discarded(Discard::EndConflict));
            assert!(ended.head.is_some());
            tags.extend(ended.tags);
        });
        assert!(matches!(outcome, Outcome::Discarded(Discard::EndConflict)));
        assert_eq!((tags, pool.stats().end_conflict_count), (vec![1], 1));
        // Other policies leave a tombstone; current Linux does not.
        let later = pool.push(&fragment(key(1), 0, 40, true, &[0; 8]), 3, |_| {});
        match policy {
            OverlapPolicy::Linux => assert!(matches!(later, Outcome::Held(_))),
            _ => assert!(matches!(later, Outcome::AlreadyDiscarded)),
        }
        pool.check_invariants();
    }
}

#[test]
fn ping_of_death_and_other_malformed_fragments_are_rejected() {
    let mut pool = pool(OverlapPolicy::Discard);
    let mut malformed = |offset, more, len: usize, wanted| {
        let bytes = vec![0; len];
        match pool.push(&fragment(key(1), 0, offset, more, &bytes), 1, |_| {}) {
            Outcome::Malformed(found) => assert_eq!(found, wanted),
            other => panic!("{other:?}"),
        }
        assert!(pool.is_empty());
    };
    malformed(65_528, false, 1480, Malformed::BeyondMaximum);
    malformed(65_512, false, 4, Malformed::BeyondMaximum);
    malformed(8, true, 7, Malformed::Unaligned);
    malformed(4, true, 8, Malformed::Unaligned);
    malformed(8, true, 0, Malformed::Empty);
    let stats = *pool.stats();
    assert_eq!((stats.beyond_maximum_count, stats.unaligned_count, stats.empty_count), (2, 2, 1));
    // The longest possible payload behind a header of 20 octets is accepted.
    assert!(matches!(pool.push(&fragment(key(1), 0, 65_512, false, &[0; 3]), 1, |_| {}), Outcome::Held(_)));
}

/// A fragment of 12 octets that is not the last: Linux keeps eight octets, 4.4BSD and RFC 8200 drop it.
#[test]
fn an_unaligned_length_is_rounded_down_by_linux_policies() {
    use OverlapPolicy::{Discard, Linux, Linux2};
    let v6 = flowgauge::decode::fragment::DatagramKey::v6(1_u128.into(), 2_u128.into(), 1, 0);
    for policy in OverlapPolicy::ALL {
        for (key, is_rounded) in [(key(1), [Discard, Linux, Linux2].contains(&policy)), (v6, false)] {
            let mut pool = pool(policy);
            let is_held =
                matches!(pool.push(&fragment(key, 0, 0, true, &[1; 12]), 1, |_| {}), Outcome::Held(_));
            assert_eq!(is_held, is_rounded, "{policy}");
            let stats = *pool.stats();
            assert_eq!(
                (stats.rounded_count, stats.unaligned_count),
                (is_rounded.into(), (!is_rounded).into())
            );
            assert_eq!(stats.outcome_count(), 1);
            // The next one, at the rounded end, completes the datagram, or is held without a first fragment.
            match pool.push(&fragment(key, 0, 8, false, &[2; 4]), 2, |_| {}) {
                Outcome::Completed(it) => {
                    assert_eq!((it.payload, is_rounded), (&[1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2][..], true))
                }
                Outcome::Held(held) => assert!(held.head().is_none() && !is_rounded),
                other => panic!("{other:?}"),
            }
            pool.check_invariants();
        }
    }
}

/// A held fragment of AAA from 16 to 40, and a new one of BB.. in several positions; then fragments that fill the rest.
#[test]
fn overlaps_are_resolved_by_policy_in_every_position() {
    let at = |start: u16, end: u16| (start * 8, vec![b'B'; usize::from(end - start) * 8]);
    for (start, end, first, bsd) in [
        (1, 3, ".BAAA.", ".BBAA."),
        (1, 6, ".BAAAB", ".BBBBB"),
        (2, 6, "..AAAB", "..AAAB"),
        (1, 5, ".BAAA.", ".BBBB."),
        (3, 4, "..AAA.", "..AAA."),
        (4, 6, "..AAAB", "..AAAB"),
    ] {
        for (policy, wanted) in [(OverlapPolicy::First, first), (OverlapPolicy::Bsd, bsd)] {
            let mut pool = pool(policy);
            let (offset, bytes) = at(start, end);
            let _ = pool.push(&fragment(key(1), 0, 16, true, &[b'A'; 24]), 1, |_| {});
            let outcome = pool.push(&fragment(key(1), 0, offset, true, &bytes), 2, |_| {});
            assert!(matches!(outcome, Outcome::Held(held) if held.overlaps()));
            let mut payload = None;
            for (position, _) in (0_u16..).zip(wanted.bytes()).filter(|(_, sign)| *sign == b'.') {
                if let Outcome::Completed(it) =
                    pool.push(&fragment(key(1), 0, position * 8, position < 5, b"........"), 3, |_| {})
                {
                    payload = Some(it.payload.to_vec());
                }
            }
            if payload.is_none()
                && let Outcome::Completed(it) = pool.push(&fragment(key(1), 0, 48, false, b"."), 4, |_| {})
            {
                payload = Some(it.payload[..48].to_vec());
            }
            let payload = payload.expect("the datagram is complete");
            let found: String = payload.chunks(8).map(|unit| char::from(unit[0])).collect();
            assert_eq!(found, wanted, "{policy}: {start}..{end}");
        }
        let mut pool = pool(OverlapPolicy::Discard);
        let (offset, bytes) = at(start, end);
        let _ = pool.push(&fragment(key(1), 0, 16, true, &[b'A'; 24]), 1, |_| {});
        let outcome = pool.push(&fragment(key(1), 0, offset, true, &bytes), 2, |_| {});
        assert!(matches!(outcome, Outcome::Discarded(Discard::Overlap)));
        assert_eq!(pool.stats().overlap_discarded_count, 1);
        for position in 0..6 {
            let outcome = pool.push(&fragment(key(1), 1, position * 8, position < 5, b"........"), 3, |_| {});
            assert!(matches!(outcome, Outcome::AlreadyDiscarded));
        }
    }
}

#[test]
fn endless_fragments_reach_the_limit_of_a_datagram() {
    let mut pool = pool_with_limits(|limits| limits.fragment_per_datagram_count_max = 100);
    let mut reported_count = 0;
    for number in 0..10_000_u32 {
        let offset = (number % 8000) as u16 * 8;
        let outcome = pool.push(&fragment(key(1), 0, offset, true, &[0; 8]), number, |ended| {
            assert_eq!(ended.reason, EndReason::Discarded(Discard::TooManyFragments));
            reported_count += ended.tags.len();
        });
        match number {
            0..100 => assert!(matches!(outcome, Outcome::Held(_))),
            100 => assert!(matches!(outcome, Outcome::Discarded(Discard::TooManyFragments))),
            _ => assert!(matches!(outcome, Outcome::AlreadyDiscarded)),
        }
    }
    assert_eq!((reported_count, pool.stats().already_discarded_count), (100, 10_000 - 101));
    pool.check_invariants();
}

#[test]
fn a_million_first_fragments_stay_within_the_limits() {
    let count = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
    let bytes_max = 8 << 20;
    for (datagram_max, cap) in [(1000, Cap::Datagrams), (65_536, Cap::Bytes)] {
        let mut limits = Limits::DEFAULT;
        limits.fragment_datagram_count_max = datagram_max;
        limits.fragment_bytes_max = bytes_max;
        let budget = Budget::new(1 << 30);
        let resources = Resources::new(limits).with_budget(budget.clone());
        let mut pool: Pool<u32> =
            Pool::new(PoolConfig::default(), &resources).expect("a valid configuration");
        let (mut reported_count, mut evicted_count) = (0_u64, 0_u64);
        for number in 0..count {
            let mut key = key(number as u16);
            if number > 0xffff {
                key = flowgauge::decode::fragment::DatagramKey::v6(
                    u128::from(number).into(),
                    1_u128.into(),
                    number,
                    0,
                );
            }
            let outcome = pool.push(&fragment(key, number.into(), 0, true, &[7; 1480]), number, |ended| {
                assert_eq!(ended.reason, EndReason::Evicted(cap));
                assert_eq!(ended.tags, [evicted_count as u32], "the oldest datagram is evicted");
                reported_count += ended.tags.len() as u64;
                evicted_count += 1;
            });
            assert!(matches!(outcome, Outcome::Held(_)));
        }
        pool.check_invariants();
        assert!(budget.peak() <= bytes_max, "{} bytes", budget.peak());
        let left = pool.len() as u64;
        pool.finish(|ended| reported_count += ended.tags.len() as u64);
        assert_eq!((reported_count, evicted_count + left), (count.into(), count.into()));
        let stats = pool.stats();
        assert_eq!(stats.evicted_by_datagrams_count + stats.evicted_by_bytes_count, evicted_count);
        drop(pool);
        assert_eq!(budget.held_by(Account::Fragments), 0);
    }
}

#[test]
fn an_exhausted_budget_refuses_fragments_with_its_own_counter() {
    let budget = Budget::new(1 << 20);
    let resources = Resources::default().with_budget(budget.clone());
    let mut pool: Pool<u32> = Pool::new(PoolConfig::default(), &resources).expect("a valid configuration");
    assert!(budget.charge(Account::Flows, budget.limit() - budget.held()));
    let outcome = pool.push(&fragment(key(1), 0, 0, true, &[0; 8]), 1, |_| {});
    assert!(matches!(outcome, Outcome::Refused(Cap::Budget)));
    assert_eq!((pool.len(), pool.stats().refused_by_budget_count), (0, 1));
    pool.check_invariants();
    let mut limits = Limits::DEFAULT;
    limits.fragment_bytes_max = 1000;
    let error = Pool::<u32>::new(PoolConfig::default(), &Resources::new(limits)).expect_err("too few bytes");
    assert_eq!((error.layer, error.field), ("fragment", "fragment_bytes_max"));
    assert!(matches!(error.problem, ConfigProblem::TooSmall { .. }), "{error}");
}

#[test]
fn refused_fragments_of_a_single_datagram_lose_no_others() {
    // Memory for an empty pool, the slots, and some pages.
    let mut pool = pool_with_limits(|limits| {
        limits.fragment_datagram_count_max = 64;
        limits.fragment_bytes_max = 65_536 + 64 * 4 + 64 * 200 + 20_000;
    });
    let (mut held_count, mut refused_count, mut reported_count) = (0, 0, 0);
    for number in 0..60_u16 {
        match pool.push(&fragment(key(1), 0, number * 1024, true, &[0; 1024]), 1, |_| {
            panic!("another datagram ended")
        }) {
            Outcome::Held(_) => held_count += 1,
            Outcome::Refused(Cap::Bytes) => refused_count += 1,
            other => panic!("{other:?}"),
        }
        pool.check_invariants();
    }
    assert!(held_count > 5 && refused_count > 5, "{held_count} held, {refused_count} refused");
    pool.finish(|ended| reported_count += ended.tags.len());
    assert_eq!(reported_count, held_count);
}

#[test]
fn deadlines_follow_packet_time_and_are_counted_separately_without_a_first_fragment() {
    let mut config = PoolConfig::default();
    config.timeout = Duration::from_nanos(100);
    let mut pool: Pool<u32> = Pool::new(config, &Resources::default()).expect("a valid configuration");
    let _ = pool.push(&fragment(key(1), 1000, 8, true, &[0; 8]), 1, |_| {});
    let _ = pool.push(&fragment(key(2), 1010, 0, true, &[0; 8]), 2, |_| {});
    // A later fragment does not move the deadline, nor does a time that steps back.
    let _ = pool.push(&fragment(key(1), 900, 16, true, &[0; 8]), 3, |_| {});
    assert_eq!(pool.next_deadline(), Some(Timestamp::from_nanos(1100)));
    let mut ended = vec![];
    pool.advance(Timestamp::from_nanos(1099), |_| panic!("not yet"));
    pool.advance(Timestamp::from_nanos(1100), |it| ended.push((it.key, it.head.is_some(), it.tags.to_vec())));
    assert_eq!(ended, [(key(1), false, vec![1, 3])]);
    let _ = pool.push(&fragment(key(3), 2000, 8, true, &[0; 8]), 4, |it| {
        assert_eq!((it.key, it.reason, it.tags), (key(2), EndReason::Expired, &[2][..]));
    });
    let stats = pool.stats();
    assert_eq!((stats.expired_count, stats.expired_without_first_count, stats.late_count), (2, 1, 1));
    assert_eq!(pool.len(), 1);
}

#[test]
fn tags_are_returned_once() {
    let mut pool = pool(OverlapPolicy::Discard);
    let mut counted = vec![];
    for (offset, more, tag) in [(16, true, 1), (8, true, 2), (0, true, 3), (0, true, 4)] {
        match pool.push(&fragment(key(1), 0, offset, more, &[9; 8]), tag, |_| {}) {
            Outcome::Held(mut held) | Outcome::Duplicate(mut held) => {
                if held.head().is_some() {
                    counted.extend(held.take_tags());
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(counted, [1, 2, 3, 4]);
    match pool.push(&fragment(key(1), 0, 24, false, &[9; 3]), 5, |_| {}) {
        Outcome::Completed(it) => {
            assert_eq!((it.tags, it.fragment_count, it.payload), (&[5][..], 5, &[9; 27][..]))
        }
        other => panic!("{other:?}"),
    }
    pool.finish(|_| panic!("nothing is left"));
}

#[test]
fn atomic_fragments_do_not_affect_held_fragments() {
    let mut pool = pool(OverlapPolicy::Discard);
    let _ = pool.push(&fragment(key(1), 0, 0, true, &[1; 8]), 1, |_| {});
    assert!(matches!(pool.push(&fragment(key(1), 0, 0, false, &[2; 5]), 2, |_| {}), Outcome::Atomic));
    let outcome = pool.push(&fragment(key(1), 0, 8, false, &[1; 5]), 3, |_| {});
    assert!(matches!(outcome, Outcome::Completed(it) if it.payload == [1; 13]));
}

/// The end of a datagram is within its last unit of eight octets. A fragment that fills the unit conflicts with this
/// end, also if the capture lacks the octets that differ.
#[test]
fn a_fragment_that_fills_the_last_unit_is_not_a_duplicate() {
    for is_truncated in [false, true] {
        let mut pool = pool(OverlapPolicy::default());
        let bytes = [7; 16];
        let mut last = fragment(key(1), 0, 8, false, &bytes[..15]);
        if is_truncated {
            last.bytes = &bytes[..4];
        }
        assert!(matches!(pool.push(&last, 1, |_| {}), Outcome::Held(_)));
        let mut ended_count = 0;
        let longer = fragment(key(1), 1, 8, true, &bytes);
        let outcome = pool.push(&longer, 2, |ended| ended_count += ended.tags.len());
        assert!(matches!(outcome, Outcome::Discarded(Discard::EndConflict)), "truncated {is_truncated}");
        assert_eq!(ended_count, 1);
    }
}
