//! A simple model of the neighbor table, and a function that runs operations on both and compares them. The fuzz target
//! `neighbor` uses it too.

use std::net::IpAddr;
use std::time::Duration;

use flowgauge::base::Timestamp;
use flowgauge::tap::{NeighborConfig, NeighborEvent, NeighborStats, NeighborTable, Resolution};

use super::frames::NeighborMessage;

pub(crate) const OWN: [u8; 6] = [2, 0, 0, 0, 0, 0xaa];

/// Returns the address with a number. The first two of each family are local; the two of IPv6 have different scopes.
pub(crate) fn address(number: u8) -> IpAddr {
    let host = number >> 2 & 7;
    match (number & 1, (number >> 1 ^ host) & 1) {
        (0, _) => [10, 0, 0, host].into(),
        (_, 0) => [0xfe80, 0, 0, 0, 0, 0, 0, u16::from(host)].into(),
        (_, _) => [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host)].into(),
    }
}

pub(crate) fn local() -> [IpAddr; 4] {
    [
        [10, 0, 0, 0].into(),
        [10, 0, 0, 1].into(),
        [0xfe80, 0, 0, 0, 0, 0, 0, 1].into(),
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(),
    ]
}

fn hardware(number: u8) -> [u8; 6] {
    match number & 7 {
        6 => OWN,
        7 => [3, 0, 0, 0, 0, 1], // a group address
        station => [2, 0, 0, 0, 0, station],
    }
}

#[derive(Clone, Copy, Debug)]
struct Known {
    address: IpAddr,
    hardware: [u8; 6],
    expires: u64,
    requested: u64,
}

#[derive(Clone, Copy, Debug)]
struct Requested {
    address: IpAddr,
    source: IpAddr,
    at: u64,
}

/// A neighbor table that consists of lists. They are in order of use, the most recent last.
#[derive(Debug)]
struct Naive {
    now: u64,
    known: Vec<Known>,
    requested: Vec<Requested>,
    known_max: usize,
    requested_max: usize,
    lifetime: u64,
    interval: u64,
    requests: u64,
    changes: u64,
    evicted: u64,
    expired: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Answered,
    Learned,
    Gratuitous,
    Spoofed,
    Conflict,
    NotForUs,
    Malformed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolved {
    Known { hardware: [u8; 6], is_refreshed: bool },
    Request,
    Waiting,
    Local,
    Unreachable,
}

impl Naive {
    fn forget_expired(&mut self, address: IpAddr) {
        let before = self.known.len();
        let now = self.now;
        self.known.retain(|known| known.address != address || known.expires > now);
        self.expired += (before - self.known.len()) as u64;
    }

    fn request(&mut self, address: IpAddr) {
        let is_link_local = |address: IpAddr| matches!(address, IpAddr::V6(v6) if v6.segments()[0] == 0xfe80);
        let source = match address {
            IpAddr::V4(_) => local()[0],
            v6 if is_link_local(v6) => local()[2],
            _ => local()[3],
        };
        match self.requested.iter().position(|requested| requested.address == address) {
            Some(position) => drop(self.requested.remove(position)),
            None if self.requested.len() == self.requested_max => drop(self.requested.remove(0)),
            None => {}
        }
        self.requested.push(Requested { address, source, at: self.now });
        self.requests += 1;
    }

    fn resolve(&mut self, address: IpAddr) -> Resolved {
        if local().contains(&address) {
            return Resolved::Local;
        }
        self.forget_expired(address);
        let is_waiting = self
            .requested
            .iter()
            .any(|requested| requested.address == address && requested.at + self.interval > self.now);
        if let Some(position) = self.known.iter().position(|known| known.address == address) {
            let known = self.known.remove(position);
            self.known.push(known);
            let is_late = known.expires - self.now <= self.lifetime / 4;
            let is_refreshed = is_late && !is_waiting && known.requested + self.interval <= self.now;
            if is_refreshed {
                self.request(address);
            }
            return Resolved::Known { hardware: known.hardware, is_refreshed };
        }
        if is_waiting {
            return Resolved::Waiting;
        }
        self.request(address);
        Resolved::Request
    }

    fn process(&mut self, message: &NeighborMessage) -> Verdict {
        let is_arp = message.sender.is_ipv4();
        let is_ours = |address: IpAddr| local().contains(&address);
        if message.frame_source == OWN {
            return Verdict::NotForUs;
        }
        let is_contradictory =
            message.link_address.is_some_and(|link_address| link_address != message.frame_source);
        if is_contradictory || message.frame_source[0] & 1 == 1 {
            return Verdict::Spoofed;
        }
        if is_ours(message.sender) {
            return Verdict::Conflict;
        }
        if is_arp && message.sender == message.target || !is_arp && message.is_reply && !message.is_solicited
        {
            return Verdict::Gratuitous;
        }
        if !message.is_reply {
            return if is_ours(message.target) { Verdict::Answered } else { Verdict::NotForUs };
        }
        if message.frame_destination != OWN || is_arp && message.target_link_address != OWN {
            return if is_ours(message.target) { Verdict::Spoofed } else { Verdict::NotForUs };
        }
        let Some(hardware) = message.link_address else { return Verdict::Malformed };
        let position = self.requested.iter().position(|requested| {
            requested.address == message.sender
                && requested.source == message.target
                && requested.at + self.interval > self.now
        });
        let Some(position) = position else { return Verdict::Spoofed };
        self.forget_expired(message.sender);
        let before = self.known.iter().position(|known| known.address == message.sender);
        let is_change = before.is_some_and(|position| self.known[position].hardware != hardware);
        if is_change && !is_arp && !message.is_override {
            return Verdict::Spoofed;
        }
        let requested = self.requested.remove(position).at;
        match before {
            Some(position) => drop(self.known.remove(position)),
            None if self.known.len() == self.known_max => {
                let oldest = self.known.remove(0);
                if oldest.expires > self.now { self.evicted += 1 } else { self.expired += 1 }
            }
            None => {}
        }
        self.changes += u64::from(is_change);
        let expires = self.now + self.lifetime.max(self.interval);
        self.known.push(Known { address: message.sender, hardware, expires, requested });
        Verdict::Learned
    }

    fn advance(&mut self) {
        let (now, interval, before) = (self.now, self.interval, self.known.len());
        self.known.retain(|known| known.expires > now);
        self.expired += (before - self.known.len()) as u64;
        self.requested.retain(|requested| requested.at + interval > now);
    }
}

/// Runs operations of eight octets each on a table and on the model, and compares everything that is observable.
/// Returns the statistics of the table.
pub(crate) fn run(setup: u8, operations: &[[u8; 8]]) -> NeighborStats {
    const MS: u64 = 1_000_000;
    let mut config = NeighborConfig::new(OWN);
    config.lifetime = Duration::from_millis([4000, 300, 0, 60_000][usize::from(setup >> 6)]);
    config.limits.neighbor_count_max = 1 + u32::from(setup & 3);
    config.limits.neighbor_request_count_max = 1 + u32::from(setup >> 2 & 3);
    let mut naive = Naive {
        now: 0,
        known: Vec::new(),
        requested: Vec::new(),
        known_max: config.limits.neighbor_count_max as usize,
        requested_max: config.limits.neighbor_request_count_max as usize,
        lifetime: config.lifetime.as_nanos() as u64,
        interval: config.request_interval.as_nanos() as u64,
        requests: 0,
        changes: 0,
        evicted: 0,
        expired: 0,
    };
    let mut table = NeighborTable::new(config).expect("a valid configuration");
    local().into_iter().for_each(|own| table.add_local(own).expect("a host"));
    let mut verdict_counts = [0_u64; 7];
    let mut clock = 0_u64;
    for [operation, sender_number, target, from, stated, flags, time, to] in operations {
        // The clock advances by up to 2.5 s and rarely steps back.
        clock = if *time > 250 { clock.saturating_sub(700 * MS) } else { clock + u64::from(*time) * 10 * MS };
        naive.now = naive.now.max(clock);
        let now = Timestamp::from_nanos(clock);
        let sender = address(*sender_number);
        match operation % 8 {
            0..3 => {
                let resolved = match table.resolve(sender, now) {
                    Resolution::Known { hardware_address: hardware, refresh } => {
                        Resolved::Known { hardware, is_refreshed: refresh.is_some() }
                    }
                    Resolution::Request(_) => Resolved::Request,
                    Resolution::Waiting => Resolved::Waiting,
                    Resolution::Local => Resolved::Local,
                    _ => Resolved::Unreachable,
                };
                assert_eq!(resolved, naive.resolve(sender));
            }
            3 => {
                table.advance(now);
                naive.advance();
            }
            4 => {
                let was_known = naive.known.iter().any(|known| known.address == sender);
                naive.known.retain(|known| known.address != sender);
                naive.requested.retain(|requested| requested.address != sender);
                assert_eq!(table.forget(sender), was_known);
                table.advance(now);
                naive.advance();
            }
            _ => {
                // Mostly a valid reply to the last request; each bit of `flags` breaks one rule.
                let is_broken = |bit: u8| flags >> bit & 1 == 1 && flags % 3 == 0;
                let requested = naive.requested.last().copied();
                let valid = requested
                    .filter(|_| !is_broken(0))
                    .map(|requested| (requested.address, requested.source));
                let other =
                    if address(*target).is_ipv4() == sender.is_ipv4() { address(*target) } else { sender };
                let (sender, target) = valid.unwrap_or((sender, other));
                let frame_source = hardware(*from);
                let is_arp = sender.is_ipv4();
                let has_no_link_address = is_broken(3) && !is_arp;
                let message = NeighborMessage {
                    is_reply: !is_broken(1),
                    sender,
                    target,
                    frame_source,
                    frame_destination: if is_broken(2) { hardware(*to) } else { OWN },
                    link_address: (!has_no_link_address)
                        .then(|| if is_broken(4) { hardware(*stated) } else { frame_source }),
                    target_link_address: if is_broken(5) { hardware(*to) } else { OWN },
                    is_solicited: !is_broken(6),
                    is_override: !is_broken(7),
                };
                let verdict = match table.process(&message.frame(), now) {
                    NeighborEvent::Request(_) => Verdict::Answered,
                    NeighborEvent::Learned { address, hardware_address } => {
                        assert_eq!((address, Some(hardware_address)), (sender, message.link_address));
                        Verdict::Learned
                    }
                    NeighborEvent::Gratuitous => Verdict::Gratuitous,
                    NeighborEvent::Spoofed => Verdict::Spoofed,
                    NeighborEvent::Conflict => Verdict::Conflict,
                    NeighborEvent::NotForUs => Verdict::NotForUs,
                    NeighborEvent::Malformed => Verdict::Malformed,
                    other => panic!("{other:?}"),
                };
                assert_eq!(verdict, naive.process(&message), "{message:?}");
                verdict_counts[verdict as usize] += 1;
            }
        }
        table.check_invariants();
        let known: Vec<_> = table.iter().collect();
        let expected = naive.known.iter().rev().filter(|known| known.expires > naive.now);
        let expected: Vec<_> = expected.map(|known| (known.address, known.hardware)).collect();
        assert_eq!(known, expected);
        for (address, hardware) in known {
            assert_eq!(table.lookup(address), Some(hardware));
        }
        assert_eq!(table.len(), naive.known.len());
        let stats = table.stats();
        let observed = [
            stats.answered_count,
            stats.learned_count,
            stats.gratuitous_count,
            stats.spoofed_count,
            stats.conflict_count,
            stats.not_for_us_count,
            stats.malformed_count,
        ];
        assert_eq!(observed, verdict_counts);
        assert_eq!(
            [stats.request_count, stats.changed_count, stats.evicted_count, stats.expired_count],
            [naive.requests, naive.changes, naive.evicted, naive.expired]
        );
    }
    *table.stats()
}
