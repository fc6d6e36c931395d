//! Fragments pushed to a pool, compared with a naive model: every tag is returned once, and each outcome equals that of
//! the model.
#[path = "../../../tests/fragment/naive.rs"]
mod naive;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use flowgauge::base::{IpProtocol, Limits, Resources, Timestamp};
use flowgauge::decode::fragment::{DatagramKey, Fragment, Outcome, OverlapPolicy, Pool, PoolConfig};
use naive::{Expected, Model};

const OCTETS: [u8; 4096] = {
    let mut octets = [0; 4096];
    let mut at = 0;
    while at < octets.len() {
        octets[at] = (at / 8 % 3) as u8;
        at += 1;
    }
    octets
};

fn key(which: u8) -> DatagramKey {
    match which {
        3 => DatagramKey::v6(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 1, 0),
        which => {
            let address = Ipv4Addr::LOCALHOST;
            DatagramKey::v4(address, address, which.into(), IpProtocol::UDP, 0)
        }
    }
}

pub fn run(data: &[u8]) {
    let Some((head, steps)) = data.split_first() else { return };
    let policy = OverlapPolicy::ALL[usize::from(*head) % OverlapPolicy::ALL.len()];
    // Long fragments cross pages. The model has no limits: with limits, only invariants of the pool are checked.
    let scale = [1, 43, 128, 1024][usize::from(*head >> 4) % 4];
    let has_limits = *head >> 7 != 0;
    let mut config = PoolConfig::default();
    (config.policy, config.timeout) = (policy, Duration::from_nanos(64));
    let mut limits = Limits::DEFAULT;
    limits.fragment_per_datagram_count_max = 12;
    if has_limits {
        limits.fragment_datagram_count_max = 2;
        limits.fragment_bytes_max = 65_536 + 30_000;
    }
    let resources = Resources::new(limits).with_seeds([1, 2, 3, 4]);
    let mut pool: Pool<u32> = Pool::new(config, &resources).expect("a valid configuration");
    let mut model = Model::new(policy, 64, 12);
    let (mut now, mut kept, mut returned) = (1000_u64, 0, 0);
    for (tag, step) in (0..).zip(steps.chunks_exact(4).take(200)) {
        let [choice, offset, len, time] = [step[0], step[1], step[2], step[3]];
        now = if time == 255 { now - 1 } else { now + u64::from(time / 16) };
        if choice & 0x1f == 0x1f {
            pool.advance(Timestamp::from_nanos(now), |ended| returned += ended.tags.len());
            model.advance(now);
            continue;
        }
        let octet_count = (usize::from(len >> 3) * 8 * scale).min(3000) & !7;
        let octet_count = octet_count + usize::from(if choice & 4 == 0 { 0 } else { len & 7 });
        let begin = usize::from(choice >> 3 & 3) * 8;
        let bytes = &OCTETS[begin..begin + octet_count];
        let fragment = Fragment {
            key: key(choice & 3),
            timestamp: Timestamp::from_nanos(now),
            protocol: IpProtocol::UDP,
            offset: (usize::from(offset & 63) * 8 * scale) as u16,
            more_fragments: offset & 64 == 0,
            header_len: 20,
            len: octet_count as u32,
            bytes: if offset & 128 == 0 { bytes } else { &bytes[..octet_count / 2] },
        };
        let outcome = pool.push(&fragment, tag, |ended| returned += ended.tags.len());
        kept += usize::from(matches!(
            outcome,
            Outcome::Held(_) | Outcome::Duplicate(_) | Outcome::Completed(_) | Outcome::CompletedTruncated(_)
        ));
        if let Outcome::Completed(it) | Outcome::CompletedTruncated(it) = &outcome {
            returned += it.tags.len();
        }
        if !has_limits {
            check(outcome, model.push(&fragment, tag));
        }
        pool.check_invariants();
    }
    pool.finish(|ended| returned += ended.tags.len());
    assert_eq!(kept, returned);
    model.finish();
    if !has_limits {
        let ended_count: usize = model.ended.iter().map(|(_, _, tags)| tags.len()).sum();
        assert!(ended_count <= returned);
    }
}

fn check(outcome: Outcome<'_, u32>, expected: Expected) {
    match (outcome, expected) {
        (Outcome::Atomic, Expected::Atomic) | (Outcome::AlreadyDiscarded, Expected::AlreadyDiscarded) => {}
        (Outcome::Held(held), Expected::Held { tags, has_first, overlaps }) => {
            assert_eq!(
                (held.tags(), held.head().is_some(), held.overlaps()),
                (&tags[..], has_first, overlaps)
            );
        }
        (Outcome::Duplicate(held), Expected::Duplicate { tags }) => assert_eq!(held.tags(), tags),
        (Outcome::Completed(it), Expected::Completed { payload, payload_len, tags, is_truncated: false })
        | (
            Outcome::CompletedTruncated(it),
            Expected::Completed { payload, payload_len, tags, is_truncated: true },
        ) => {
            assert_eq!((it.payload, it.payload_len, it.tags), (&payload[..], payload_len, &tags[..]));
        }
        (Outcome::Discarded(found), Expected::Discarded(expected)) => assert_eq!(found, expected),
        (Outcome::Malformed(found), Expected::Malformed(expected)) => assert_eq!(found, expected),
        (outcome, expected) => panic!("{outcome:?}, expected {expected:?}"),
    }
}
