//! Comparison with the expectations of CESNET's FlowTest: IP packets and octets in each direction, of the inner flow if
//! there is a tunnel.

use std::net::IpAddr;
use std::path::Path;

use flowgauge::record::FlowRecord;

use super::corpus;

/// A flow in a file with expectations.
#[derive(Default)]
struct ExpectedFlow {
    fields: Vec<(String, String)>,
}

impl ExpectedFlow {
    fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> u64 {
        self.get(name).map_or(0, |text| text.parse().expect("a number"))
    }

    fn address(&self, name: &str) -> IpAddr {
        self.get(name).and_then(|text| text.parse().ok()).expect("an address")
    }

    fn sums(&self) -> String {
        format!(
            "packets {}+{}, octets {}+{}",
            self.number("packets"),
            self.number("packets@rev"),
            self.number("bytes"),
            self.number("bytes@rev")
        )
    }

    /// Returns the packets and octets of the records with the endpoints of this flow, in its direction.
    fn sums_of(&self, records: &[FlowRecord]) -> String {
        let ends = [self.address("src_ip"), self.address("dst_ip")];
        let ports =
            self.get("src_port").map(|_| ["src_port", "dst_port"].map(|name| self.number(name) as u16));
        let (mut packets, mut octets) = ([0; 2], [0; 2]);
        for record in
            records.iter().filter(|record| u64::from(record.protocol().0) == self.number("protocol"))
        {
            let own = [record.source_address(), record.destination_address()];
            let own_ports = [record.source_port(), record.destination_port()];
            let [is_forward, is_reverse] = [[0, 1], [1, 0]].map(|[first, second]: [usize; 2]| {
                [own[first], own[second]] == ends
                    && ports.is_none_or(|ports| [own_ports[first], own_ports[second]] == ports.map(Some))
            });
            if is_forward || is_reverse {
                for (side, of_side) in [&record.forward, &record.reverse].into_iter().enumerate() {
                    let position = if is_forward { side } else { 1 - side };
                    packets[position] += of_side.counters.packet_count;
                    octets[position] += of_side.counters.ip_octet_count;
                }
            }
        }
        format!("packets {}+{}, octets {}+{}", packets[0], packets[1], octets[0], octets[1])
    }
}

/// Returns the flows of a file, which contains a list of flat maps.
fn expected_flows(path: &Path) -> Vec<ExpectedFlow> {
    let text = std::fs::read_to_string(path).expect("a file");
    let mut flows = Vec::<ExpectedFlow>::new();
    for line in text.lines().skip_while(|line| *line != "flows:").skip(1) {
        let (line, is_first) = match line.trim_start().strip_prefix("- ") {
            Some(rest) => (rest, true),
            None => (line.trim_start(), false),
        };
        if is_first {
            flows.push(ExpectedFlow::default());
        }
        if let (Some((name, value)), Some(flow)) = (line.split_once(": "), flows.last_mut()) {
            flow.fields.push((name.to_owned(), value.to_owned()));
        }
    }
    flows
}

#[test]
fn flows_match_flowtest() {
    let Some(captures) = corpus::captures() else { return };
    let (mut equal, mut failures) = (0, Vec::new());
    for capture in &captures {
        let paths: Vec<_> = capture.oracles("flowtest").collect();
        if paths.is_empty() {
            continue;
        }
        let records = corpus::flows_of(&capture.path()).records;
        for path in paths {
            let name = path.file_stem().unwrap_or_default().display();
            for flow in expected_flows(&path) {
                let found = flow.sums_of(&records);
                let expected = flow.sums();
                equal += usize::from(found == expected);
                if found != expected {
                    failures.push(format!("{name}: {found}, expected {expected}"));
                }
            }
        }
    }
    println!("{equal} flows equal");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(equal > 0, "nothing was compared");
}
