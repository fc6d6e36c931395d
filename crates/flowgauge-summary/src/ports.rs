//! Ports that applications have by assignment, beside those by which they are recognized.

/// Ports that IANA assigned to services over an application, and 5223 and 5228, on which phones receive messages over TLS.
const ASSIGNED: [(&str, &[u16]); 9] = [
    ("http", HTTP),
    ("http2", HTTP),
    ("websocket", HTTP),
    ("tls", TLS),
    ("quic", &[853, 8443]),
    ("ssh", &[830, 4334, 5161, 5162]),
    ("smtp", &[366]),
    ("rtsp", &[8554]),
    ("irc", &[194, 6665, 6666, 6668, 6669]),
];

/// Services over HTTP, such as http-alt, ipp, http-rpc-epmap, icslap, daap, cwmp, wsdapi, couchdb, wsman, wbem-http, docker and
/// hkp.
const HTTP: &[u16] = &[
    80, 280, 488, 591, 593, 631, 777, 1184, 1900, 2375, 2379, 2380, 2688, 2869, 3128, 3689, 4180, 4848, 5357,
    5984, 5985, 5988, 6788, 6842, 7547, 7627, 8000, 8008, 8080, 8081, 8088, 8118, 8280, 8800, 8990, 11371,
    16992, 47001,
];

/// Services over TLS, such as pcsync-https, ipps, sun-sr-https, wsmans, docker-s, radsec, syslog-tls and netconf-tls.
const TLS: &[u16] = &[
    261, 271, 324, 443, 448, 465, 563, 614, 631, 636, 684, 695, 832, 853, 989, 990, 992, 993, 994, 995, 2083,
    2252, 2376, 2478, 2484, 2679, 2762, 3077, 3078, 3183, 3220, 3269, 3410, 3424, 3471, 3496, 3509, 3529,
    3539, 3660, 3661, 3713, 3747, 3766, 3864, 3885, 3896, 3995, 4031, 4036, 4062, 4064, 4081, 4083, 4116,
    4335, 4336, 4536, 4590, 4740, 4843, 4849, 5007, 5061, 5223, 5228, 5321, 5349, 5671, 5783, 5868, 5986,
    5989, 5990, 6209, 6251, 6443, 6513, 6514, 6619, 6697, 6771, 7443, 7673, 7674, 7677, 8243, 8443, 8883,
    8991, 9295, 9443, 9444, 9802, 10161, 10162, 11751, 12109, 15002, 16993, 16995, 20003,
];

/// Returns whether a port is one that an application has.
pub(crate) fn is_assigned(application: &str, port: u16) -> bool {
    ASSIGNED.iter().any(|(name, ports)| *name == application && ports.contains(&port))
}

#[cfg(test)]
mod tests {
    use flowgauge::{Protocols as _, Standard};

    use super::*;

    #[test]
    fn assigned_ports_belong_to_known_applications() {
        for (name, ports) in ASSIGNED {
            assert!(Standard::of_name(name).is_some(), "{name}");
            assert!(ports.is_sorted_by(|one, other| one < other), "{name}");
        }
        for (name, port) in [("http", 631), ("http2", 8080), ("tls", 8443), ("tls", 853), ("ssh", 830)] {
            assert!(is_assigned(name, port), "{name} {port}");
        }
        // Ports of other applications remain foreign.
        for (name, port) in [
            ("http", 22),
            ("http", 53),
            ("http", 443),
            ("http", 4444),
            ("ssh", 443),
            ("tls", 80),
            ("tls", 25),
        ] {
            assert!(!is_assigned(name, port), "{name} {port}");
        }
    }

    /// An entry of the list of services that the system has: names, port, transport protocol and comment.
    struct Service {
        names: Vec<String>,
        port: u16,
        is_tcp: bool,
        comment: String,
    }

    /// The list of services of the system, which follows the registry of IANA; `None` without one.
    fn services() -> Option<Vec<Service>> {
        let list = std::fs::read_to_string("/etc/services").ok()?;
        let services = list.lines().filter_map(|line| {
            let (entry, comment) = line.split_once('#').unwrap_or((line, ""));
            let mut words = entry.split_whitespace();
            let (name, place) = (words.next()?, words.next()?);
            let (port, transport) = place.split_once('/')?;
            // Names of protocols have underscores.
            let names = std::iter::once(name).chain(words).map(|name| name.replace('-', "_"));
            Some(Service {
                names: names.collect(),
                port: port.parse().ok()?,
                is_tcp: transport == "tcp",
                comment: comment.to_owned(),
            })
        });
        Some(services.collect())
    }

    /// Returns whether the table, or the declaration of a protocol, has a port.
    fn has_port(name: &str, port: u16, is_tcp: bool) -> bool {
        let mut protocols = Standard::TABLE.iter().map(|entry| entry.protocol);
        is_assigned(name, port)
            || protocols.find(|protocol| protocol.name() == name).is_some_and(|protocol| {
                let ports = if is_tcp { protocol.stream_ports() } else { protocol.datagram_ports() };
                ports.contains(&port)
            })
    }

    #[test]
    fn services_of_the_system_have_their_ports() {
        let Some(services) = services() else { return };
        let (mut checked_count, mut missing) = (0, Vec::new());
        for Service { names, port, is_tcp, comment } in &services {
            let is_over_tls = *is_tcp && (comment.contains("TLS") || comment.contains("SSL"));
            let names = names.iter().map(String::as_str);
            let is_own = |name: &&str| {
                let mut protocols = Standard::TABLE.iter().map(|entry| entry.protocol);
                protocols.any(|protocol| {
                    let ports = if *is_tcp { protocol.stream_ports() } else { protocol.datagram_ports() };
                    protocol.name() == *name && !ports.is_empty()
                })
            };
            let applications = names.filter(is_own).chain(is_over_tls.then_some("tls"));
            for application in applications {
                checked_count += 1;
                if !has_port(application, *port, *is_tcp) {
                    missing.push((application.to_owned(), *port, *is_tcp));
                }
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
        // Other protocols carry no other ones.
        const CARRIERS: [&str; 5] = ["http", "http2", "websocket", "tls", "quic"];
        for (name, ports) in ASSIGNED.iter().filter(|(name, _)| !CARRIERS.contains(name)) {
            for Service { names, port, .. } in services.iter().filter(|service| ports.contains(&service.port))
            {
                let other = Standard::TABLE.iter().map(|entry| entry.protocol.name());
                let other: Vec<_> = other.filter(|other| names.iter().any(|name| name == other)).collect();
                assert!(other.is_empty() || other.contains(name), "{name} {port}: {other:?}");
            }
        }
        // A short list, as in some containers, names few of them.
        assert!(services.len() < 200 || checked_count > 20, "{checked_count} of {} services", services.len());
    }
}
