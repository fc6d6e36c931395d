//! Comparison with the baselines of the Community ID specification.

use flowgauge::base::{Ports, Side};

use super::corpus;

/// Returns the numbers that the baselines use as ports: for ICMP, the type and its counterpart.
fn numbers(ports: Ports) -> Option<[u16; 2]> {
    match ports {
        Ports::Transport(a, b) => Some([a, b]),
        Ports::Icmp { kind, counterpart, .. } => Some([kind.into(), counterpart.into()]),
        _ => None,
    }
}

#[test]
fn baselines_of_the_specification_match() {
    let (Some(captures), Some(root)) = (corpus::captures(), corpus::root()) else { return };
    let mut found = Vec::new();
    for capture in captures.iter().filter(|capture| capture.name.starts_with("community-id-spec/")) {
        found.extend(corpus::flows_of(&capture.path()).records);
    }
    let path = root.join("oracles/corelight+community-id-spec/baseline/baseline_deflt.json");
    let text = std::fs::read_to_string(&path).expect("the baseline");
    let baseline: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rows = baseline.as_array().expect("rows");
    let mut is_used = vec![false; found.len()];
    for row in rows {
        let text = |name: &str| row[name].as_str().expect("text");
        let ends: [std::net::IpAddr; 2] =
            [text("saddr"), text("daddr")].map(|address| address.parse().expect("an address"));
        let ports = ["sport", "dport"].map(|name| row[name].as_u64().expect("a port") as u16);
        let expected = (row["proto"].as_u64(), text("communityid"));
        let position = found.iter().position(|record| {
            let own_ends = [Side::A, Side::B].map(|side| record.key.address(side));
            let Some(own_ports) = numbers(record.key.ports()) else { return false };
            let (same, crossed) = ([0, 1], [1, 0]);
            let is_same = |order: [usize; 2]| {
                order.map(|position| own_ends[position]) == ends
                    && order.map(|position| own_ports[position]) == ports
            };
            Some(record.protocol().0.into()) == expected.0
                && (is_same(same) || (!record.key.is_one_way_icmp() && is_same(crossed)))
        });
        let position = position.unwrap_or_else(|| panic!("no flow for {row}"));
        assert_eq!(found[position].community_id(), expected.1, "{row}");
        is_used[position] = true;
    }
    println!("{} rows, {} flows", rows.len(), found.len());
    assert!(!rows.is_empty(), "nothing was compared");
    assert!(is_used.iter().all(|used| *used), "a flow has no row");
}
