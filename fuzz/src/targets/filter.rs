//! Any text is a filter or an error. The printed form of a filter is parsed into an equal filter, and the properties of
//! a filter agree with its matches.
use flowgauge::base::{FlowKey, IpProtocol, VlanIds};
use flowgauge::filter::{Filter, Subject, TERM_COUNT_MAX};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let filter = match Filter::parse(text) {
        Ok(filter) => filter,
        Err(error) => {
            assert!(error.column() <= text.chars().count() + 1);
            assert_eq!(error.render(text).lines().count(), 3);
            return;
        }
    };
    assert!(filter.term_count() <= TERM_COUNT_MAX);
    let printed = filter.to_string();
    assert_eq!(Filter::parse(&printed).as_ref(), Ok(&filter));

    let ends = [(["10.0.0.1", "10.0.0.2"], IpProtocol::TCP), (["fe80::1", "::1"], IpProtocol::UDP)];
    for ([source, destination], protocol) in ends {
        let end = |address: &str, port| (address.parse().unwrap(), port);
        let (key, side) = FlowKey::new(protocol, end(source, 80), end(destination, 53));
        let mut matched = [false; 2];
        for (matched, source) in matched.iter_mut().zip([side, side.other()]) {
            for vlan_ids in [VlanIds::NONE, VlanIds::NONE.push(1).push(9)] {
                *matched |= filter.matches(&Subject::new(&key, source).with_vlan_ids(vlan_ids));
            }
        }
        assert!(filter.may_match(&key) || matched == [false; 2]);
        assert!(filter.is_directional() || matched[0] == matched[1]);
        assert!(!filter.is_final() || filter.may_match(&key) == matched[0]);
    }
}
