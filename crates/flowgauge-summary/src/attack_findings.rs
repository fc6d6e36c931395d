//! Findings about attacks on a link and floods.

use std::collections::BTreeSet;
use std::net::IpAddr;

use flowgauge::export::human;

use crate::attacks::{Attacks, Offers};
use crate::counts::Attempts;
use crate::facts::Facts;
use crate::finding::{FINDING_MAX, Finding, FindingCommand, FindingKind, mac_text};
use crate::text::plural;

/// Connections that a flood has at least, and the part of all connections to the service that nobody completes.
const FLOOD_COUNT_MIN: u64 = 200;
const FLOOD_PART: u64 = 4;
/// Sources of a flood at least, or connections of one of them.
const FLOOD_SOURCE_MIN: usize = 16;
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
        for (address, claims) in self.claims.first(FINDING_MAX) {
            if claims.change_count == 0 {
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
        for (source, requests) in self.requests.first(FINDING_MAX) {
            if requests.is_scan() && requests.hosts.len() >= REQUEST_TARGET_MIN {
                let name = if source.is_ipv6() { "neighbor solicitations" } else { "requests of ARP" };
                let text = sweep(source, requests, name, self.requests.at_least());
                all.push(Finding {
                    source: Some(*source),
                    command: neighbors(source, &format!("source_address = '{source}'")),
                    ..finding(FindingKind::Scan, requests.flow_count, text)
                });
            }
        }
        for (source, pings) in self.pings.first(FINDING_MAX) {
            if pings.is_scan() {
                let text = sweep(source, pings, "flows of echo requests", self.pings.at_least());
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
            let is_most = half_open.count >= half_open.completed_count.saturating_mul(FLOOD_PART);
            // A client that tries again and again is one source.
            let is_flood = half_open.sources.len() >= FLOOD_SOURCE_MIN || half_open.count >= FLOOD_COUNT_MANY;
            if half_open.count < FLOOD_COUNT_MIN || !is_most || !is_flood {
                continue;
            }
            let port_text = port.map(|port| format!(" port {port}")).unwrap_or_default();
            let text = format!(
                "{host}{port_text}: {}{} that nobody completed, from {} addresses",
                self.half_open.at_least(),
                plural(half_open.count, "connection"),
                half_open.sources.count()
            );
            let port_condition = port.map(|port| format!(" and dst port {port}")).unwrap_or_default();
            all.push(Finding {
                destination: Some(*host),
                port: *port,
                command: FindingCommand::filtered(format!("tcp and dst host {host}{port_condition}")),
                ..finding(FindingKind::SynFlood, half_open.count, text)
            });
        }
    }

    fn answers(&self, all: &mut Vec<Finding>) {
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
            if answers.received < AMPLIFIED_LEN_MIN || !is_amplified {
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
            if !contradict(offers) {
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

/// Returns whether two servers offered something different to a client.
fn contradict(offers: &Offers) -> bool {
    let all: Vec<_> = offers.all.iter().collect();
    all.iter().any(|(server, address, options)| {
        all.iter().any(|(other, other_address, other_options)| {
            server != other && (address != other_address || options != other_options)
        })
    })
}

fn sweep(source: &IpAddr, attempts: &Attempts, what: &str, at_least: &str) -> String {
    format!("{source}: {at_least}{} {what} for {} addresses", attempts.flow_count, attempts.hosts.count())
}

fn plural_of(count: &str, len: usize, one: &str) -> String {
    if len == 1 { format!("{count} {one}") } else { format!("{count} {one}s") }
}
