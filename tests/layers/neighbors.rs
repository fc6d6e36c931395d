//! Messages between neighbors: a pipeline delivers each once, whatever the threads, and only those that the filter permits.

use flowgauge::neighbor::Neighbor;
use flowgauge::pipeline::boxed;
use flowgauge::{FileSource, Filter, Flows, Interest, Pipeline, RunOptions, Sink};

/// Collects what identifies a message.
#[derive(Default)]
struct Messages(Vec<String>);

impl Sink for Messages {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::NEIGHBORS
    }

    fn neighbor(&mut self, neighbor: &Neighbor<'_>) {
        let head = &neighbor.head;
        let ends = (head.source_mac.is_some(), head.source_address, head.destination_address);
        self.0.push(format!("{} {} {ends:?}", head.timestamp.as_nanos(), head.protocol));
    }
}

impl Messages {
    fn sorted(mut self) -> Vec<String> {
        self.0.sort();
        self.0
    }
}

fn of(capture: &str, filter: Option<&str>, options: &RunOptions) -> Vec<String> {
    let mut source = FileSource::open(capture).unwrap();
    let mut builder = Pipeline::builder();
    if let Some(filter) = filter {
        builder = builder.filter(filter.parse::<Filter>().unwrap());
    }
    let mut messages = Messages::default();
    let mut pipeline = builder.build(boxed(&mut messages)).unwrap();
    pipeline.run(&mut source, options).unwrap();
    drop(pipeline);
    messages.sorted()
}

#[test]
fn each_message_is_delivered_once() {
    for (capture, count) in [("dns.pcap", 6), ("transfer.pcap", 13), ("vlan.pcapng", 16), ("web.pcap", 16)] {
        let capture = format!("examples/data/{capture}");
        let alone = of(&capture, None, &RunOptions::default());
        assert_eq!(alone.len(), count, "{capture}");
        assert_eq!(of(&capture, None, &RunOptions::default().extract_ahead(true)), alone);
        for shard_count in [1, 2, 5] {
            let mut sinks: Vec<_> = (0..shard_count).map(|_| Messages::default()).collect();
            let mut source = FileSource::open(&capture).unwrap();
            Pipeline::builder().run_shards(&mut sinks, &mut source, &RunOptions::default()).unwrap();
            let together = Messages(sinks.into_iter().flat_map(|sink| sink.0).collect());
            assert_eq!(together.sorted(), alone, "{capture}: {shard_count} shards");
        }
    }
}

#[test]
fn a_filter_applies_to_messages() {
    let count = |filter| of("examples/data/dns.pcap", Some(filter), &RunOptions::default()).len();
    let address = of("examples/data/dns.pcap", Some("arp"), &RunOptions::default());
    assert_eq!(address.len(), 2);
    for (filter, expected) in [
        ("not arp", 4),
        ("tcp or udp", 0),
        ("icmp6", 4),
        ("arp or icmp6", 6),
        ("rarp or stp", 0),
        ("ip", 0),
        ("ip6", 4),
        ("port 53", 0),
        ("arp and net 0.0.0.0/0", 2),
        ("arp and vlan", 0),
    ] {
        assert_eq!(count(filter), expected, "{filter}");
    }
}

#[test]
fn messages_are_not_read_without_interest() {
    struct Others;

    impl Sink for Others {
        type State = ();
        type Stage = Flows;

        fn interest(&self) -> Interest {
            Interest::RECORDS | Interest::VARIES
        }

        fn neighbor(&mut self, _: &Neighbor<'_>) {
            panic!("not wanted");
        }
    }

    let mut source = FileSource::open("examples/data/dns.pcap").unwrap();
    Pipeline::builder().build(Others).unwrap().run(&mut source, &RunOptions::default()).unwrap();
}
