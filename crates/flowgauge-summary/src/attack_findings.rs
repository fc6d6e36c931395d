//! Findings about attacks on a link and floods.

use std::collections::BTreeSet;
use std::net::IpAddr;

use flowgauge::export::human;

use crate::attacks::{Attacks, Handshakes, Requests, SNMP};
use crate::facts::Facts;
use crate::few::Few;
use crate::finding::{FINDING_MAX, Finding, FindingCommand, FindingKind, mac_text};
use crate::text::plural;

/// Connections that a flood has at least, and the part of all connections to the service that nobody completes.
const FLOOD_COUNT_MIN: u64 = 200;
const FLOOD_PART: u64 = 4;
/// Sources of a flood at least, which are also a quarter of its connections; or connections of few sources at least that begin in
/// two minutes.
const FLOOD_SOURCE_MIN: u64 = 16;
const FLOOD_COUNT_MANY: u64 = 1000;

/// Addresses for which a host asks at least: one that talks with many others asks for their addresses too.
const REQUEST_TARGET_MIN: usize = 64;

/// Hosts that answer a victim at least, and flows from them.
const REFLECTOR_COUNT_MIN: usize = 15;

/// Octets that a victim of amplification receives at least, and how many times those that it sent.
const AMPLIFIED_LEN_MIN: u64 = 100_000;
const AMPLIFICATION_MIN: u64 = 10;

impl Facts {
    /// Appends the findings about attacks.
    pub(crate) fn attacks(&self, all: &mut Vec<Finding>) {
        let attacks = &self.attacks;
        attacks.claims(all);
        attacks.sweeps(all);
        attacks.floods(all);
        attacks.answers(all);
        attacks.offers(all);
    }
}

fn finding(kind: FindingKind, count: u64, text: String) -> Finding {
    Finding { kind, source: None, destination: None, port: None, count, text, command: None }
}

/// Returns the command that shows the messages of neighbors about an address.
fn neighbors(address: &IpAddr, condition: &str) -> Option<FindingCommand> {
    let protocol = if address.is_ipv6() { "ndp" } else { "arp" };
    Some(FindingCommand::messages(protocol, condition))
}

impl Attacks {
    fn claims(&self, all: &mut Vec<Finding>) {
        for ((_, address), claims) in self.claims.first(FINDING_MAX) {
            // One change is that of an address which another host got.
            if claims.change_count < 2 {
                continue;
            }
            let macs: Vec<_> = claims.macs.iter().take(4).map(|mac| mac_text(*mac)).collect();
            let text = format!(
                "{address}: claimed by {}, which took turns {}",
                macs.join(", "),
                plural(claims.change_count, "time")
            );
            let column = if address.is_ipv6() { "target_address" } else { "sender_address" };
            all.push(Finding {
                source: Some(*address),
                command: neighbors(address, &format!("{column} = '{address}'")),
                ..finding(FindingKind::AddressConflict, claims.change_count, text)
            });
        }
    }

    fn sweeps(&self, all: &mut Vec<Finding>) {
        for ((_, source), Requests { attempts, answered }) in self.requests.first(FINDING_MAX) {
            if attempts.is_scan() && attempts.hosts.len() >= REQUEST_TARGET_MIN {
                let name = if source.is_ipv6() { "neighbor solicitations" } else { "requests of ARP" };
                let mut asked = answered.clone();
                asked.add(&attempts.hosts);
                let text = sweep(source, attempts.flow_count, name, &asked, self.requests.at_least());
                all.push(Finding {
                    source: Some(*source),
                    command: neighbors(source, &format!("source_address = '{source}'")),
                    ..finding(FindingKind::Scan, attempts.flow_count, text)
                });
            }
        }
        for (source, pings) in self.pings.first(FINDING_MAX) {
            if pings.is_scan() {
                let what = "unanswered flows of echo requests";
                let text = sweep(source, pings.flow_count, what, &pings.hosts, self.pings.at_least());
                let protocol = if source.is_ipv6() { "icmp6" } else { "icmp" };
                all.push(Finding {
                    source: Some(*source),
                    command: FindingCommand::filtered(format!("{protocol} and src host {source}")),
                    ..finding(FindingKind::Scan, pings.flow_count, text)
                });
            }
        }
    }

    fn floods(&self, all: &mut Vec<Finding>) {
        for ((host, port), half_open) in self.half_open.first(FINDING_MAX) {
            let is_most = |counts: Handshakes| counts.open >= counts.completed.saturating_mul(FLOOD_PART);
            let (all_counts, fastest) = (half_open.handshakes, half_open.fastest());
            let source_count = half_open.sources.len() as u64;
            // Clients that try again and again are a few sources, and do so in seconds.
            let is_spread = half_open.sources.has_more()
                || source_count >= FLOOD_SOURCE_MIN && source_count * FLOOD_PART >= all_counts.open;
            let is_slow = is_spread && is_most(all_counts) && all_counts.open >= FLOOD_COUNT_MIN;
            let is_fast = is_most(fastest) && fastest.open >= FLOOD_COUNT_MANY;
            if !is_slow && !is_fast {
                continue;
            }
            let port_text = port.map(|port| format!(" port {port}")).unwrap_or_default();
            let text = format!(
                "{host}{port_text}: {}{} that nobody completed, from {} addresses",
                self.half_open.at_least(),
                plural(all_counts.open, "connection"),
                half_open.sources.count()
            );
            let port_condition = port.map(|port| format!(" and dst port {port}")).unwrap_or_default();
            all.push(Finding {
                destination: Some(*host),
                port: *port,
                command: FindingCommand::filtered(format!("tcp and dst host {host}{port_condition}")),
                ..finding(FindingKind::SynFlood, all_counts.open, text)
            });
        }
    }

    fn answers(&self, all: &mut Vec<Finding>) {
        if self.is_one_way() {
            return;
        }
        for (victim, answers) in self.reflected.first(FINDING_MAX) {
            let is_reflection = answers.senders.len() >= REFLECTOR_COUNT_MIN && answers.flow_count >= 25;
            if is_reflection {
                let text = format!(
                    "{victim}: {}{} of connections that it did not begin, from {} hosts",
                    self.reflected.at_least(),
                    plural(answers.flow_count, "answer"),
                    answers.senders.count()
                );
                all.push(Finding {
                    destination: Some(*victim),
                    command: FindingCommand::filtered(format!("tcp and host {victim}")),
                    ..finding(FindingKind::Reflection, answers.flow_count, text)
                });
            }
        }
        for ((victim, port), answers) in self.amplified.first(FINDING_MAX) {
            let is_amplified = answers.received >= answers.sent.saturating_mul(AMPLIFICATION_MIN);
            let is_regular = answers.has_asked_group || *port == SNMP && answers.sent > 0;
            if answers.received < AMPLIFIED_LEN_MIN || !is_amplified || is_regular {
                continue;
            }
            let text = format!(
                "{victim}: {}{} received from UDP port {port} of {}, {} sent",
                self.amplified.at_least(),
                human::octets(answers.received),
                plural_of(&answers.senders.count(), answers.senders.len(), "host"),
                human::octets(answers.sent)
            );
            all.push(Finding {
                destination: Some(*victim),
                port: Some(*port),
                command: FindingCommand::filtered(format!("udp port {port} and host {victim}")),
                ..finding(FindingKind::Amplification, answers.flow_count, text)
            });
        }
    }

    fn offers(&self, all: &mut Vec<Finding>) {
        for (client, offers) in self.offers.first(FINDING_MAX) {
            if !offers.contradict() {
                continue;
            }
            let servers: BTreeSet<_> = offers.all.iter().map(|(server, ..)| *server).collect();
            let names: Vec<_> = servers.iter().take(4).map(ToString::to_string).collect();
            let text =
                format!("DHCP servers {} offer different addresses or options to {client}", names.join(", "));
            all.push(Finding {
                source: servers.first().copied(),
                destination: None,
                command: Some(FindingCommand::messages(
                    "dhcp",
                    &format!("client_hardware_address = '{client}'"),
                )),
                ..finding(FindingKind::DhcpServers, servers.len() as u64, text)
            });
        }
    }
}

fn sweep(source: &IpAddr, count: u64, what: &str, hosts: &Few<IpAddr>, at_least: &str) -> String {
    format!("{source}: {at_least}{count} {what} for {} addresses", hosts.count())
}

fn plural_of(count: &str, len: usize, one: &str) -> String {
    if len == 1 { format!("{count} {one}") } else { format!("{count} {one}s") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use flowgauge::{FlowKey, FlowRecord, IpProtocol, TcpFlags, Timestamp};

    use super::*;

    /// Returns the record of a flow between two hosts and ports that began at a time in milliseconds.
    fn record(protocol: IpProtocol, ends: [(&str, u16); 2], milliseconds: u64) -> FlowRecord {
        let [source, destination] = ends.map(|(address, port)| (address.parse().unwrap(), port));
        let (key, initiator) = FlowKey::new(protocol, source, destination);
        FlowRecord::new(key, initiator, Timestamp::from_nanos(milliseconds * 1_000_000))
    }

    /// Returns a record with these octets of payload in both directions.
    fn carrying(mut record: FlowRecord, [there, back]: [u64; 2]) -> FlowRecord {
        for (side, len) in [(&mut record.forward, there), (&mut record.reverse, back)] {
            side.counters.payload_octet_count = len;
            side.counters.octet_count = len;
            side.counters.packet_count = len.div_ceil(1000);
        }
        record
    }

    fn kinds(records: impl IntoIterator<Item = FlowRecord>) -> Vec<FindingKind> {
        let (mut attacks, mut all) = (Attacks::default(), Vec::new());
        records.into_iter().for_each(|record| attacks.record(&record));
        attacks.floods(&mut all);
        attacks.answers(&mut all);
        all.into_iter().map(|finding| finding.kind).collect()
    }

    /// Returns connections that nobody completed: their number, the number of clients, and the time between two of them in
    /// milliseconds.
    fn attempts(count: u16, client_count: u16, interval: u64) -> impl Iterator<Item = FlowRecord> {
        (0..count).map(move |number| {
            let client = format!("10.{}.0.{}", number % client_count / 200, number % client_count % 200 + 1);
            let ends = [(&*client, 40_000 + number), ("192.0.2.1", 80)];
            let mut record = record(IpProtocol::TCP, ends, u64::from(number) * interval);
            record.forward.tcp_flags = TcpFlags::SYN;
            record
        })
    }

    #[test]
    fn a_flood_has_many_sources_or_is_fast() {
        assert_eq!(kinds(attempts(600, 600, 5)), [FindingKind::SynFlood]);
        assert_eq!(kinds(attempts(2000, 1, 5)), [FindingKind::SynFlood]);
        // Clients that try to reach a dead server again and again.
        assert_eq!(kinds(attempts(2000, 16, 1000)), []);
        assert_eq!(kinds(attempts(240, 16, 5)), []);
    }

    #[test]
    fn what_happens_at_other_times_hides_no_flood() {
        let delayed = |mut record: FlowRecord, minutes: u64| {
            record.start = record.start.saturating_add(Duration::from_secs(60 * minutes));
            record
        };
        // One attempt an hour before or after.
        let fast = || attempts(2000, 1, 5).map(move |record| delayed(record, 60));
        assert_eq!(kinds(attempts(1, 1, 0).chain(fast())), [FindingKind::SynFlood]);
        assert_eq!(kinds(fast().chain(attempts(1, 1, 0))), [FindingKind::SynFlood]);
        // A day of connections that were completed, which records of all minutes interrupt.
        let regular = |count| {
            attempts(count, 50, 3000).map(|mut record| {
                record.forward.tcp_flags |= TcpFlags::ACK;
                carrying(record, [100, 100])
            })
        };
        assert_eq!(kinds(regular(20_000).chain(fast()).chain(regular(100))), [FindingKind::SynFlood]);
        assert_eq!(kinds(regular(20_000)), []);
    }

    /// Returns answers of servers to a host of which no request was captured.
    fn answers(count: u16, payload_len: u64) -> impl Iterator<Item = FlowRecord> {
        (0..count).map(move |number| {
            let server = format!("198.51.100.{}", number % 250 + 1);
            let ends = [(&*server, 443), ("10.0.0.1", 50_000 + number)];
            let mut record = carrying(record(IpProtocol::TCP, ends, number.into()), [payload_len, 0]);
            record.forward.tcp_flags = TcpFlags::SYN | TcpFlags::ACK;
            record
        })
    }

    #[test]
    fn reflected_answers_carry_nothing() {
        assert_eq!(kinds(answers(100, 0)), [FindingKind::Reflection]);
        assert_eq!(kinds(answers(100, 5)), [], "one direction of ordinary connections");
        assert_eq!(kinds(answers(100, 0).chain(answers(40, 5))), [], "a capture of one direction");
    }

    #[test]
    fn amplified_answers_are_those_that_nobody_asked_for() {
        let of = |ends, octets| carrying(record(IpProtocol::UDP, ends, 0), octets);
        let (victim, server) = (("10.0.0.1", 50_000), ("192.0.2.1", 53));
        assert_eq!(kinds([of([victim, server], [0, 200_000])]), [FindingKind::Amplification]);
        assert_eq!(kinds([of([server, victim], [200_000, 0])]), [FindingKind::Amplification]);
        assert_eq!(kinds([of([victim, server], [50_000, 200_000])]), []);
        // Requests whose answers were not captured count too, in any order.
        let (answer, request) =
            (of([victim, server], [0, 200_000]), of([("10.0.0.1", 50_001), server], [50_000, 0]));
        assert_eq!(kinds([answer.clone(), request.clone()]), []);
        assert_eq!(kinds([request, answer]), []);
        let search = of([victim, ("239.255.255.250", 1900)], [200, 0]);
        assert_eq!(kinds([search, of([("10.0.0.2", 1900), victim], [200_000, 0])]), []);
        assert_eq!(kinds([of([victim, ("10.0.0.2", 161)], [2000, 200_000])]), []);
    }
}
