//! Features of flows, compared with the textbook formulas over a list of all packets.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use flowgauge::base::{FlowKey, IpProtocol, Packet, Side, TcpFlags, Timestamp, Transport};
use flowgauge::features::{FeatureSet, Features, FlowFeatures, Length, Moment};
use flowgauge::row::{Column, ColumnSet, Row as _, Value};
use flowgauge::{FileSource, Flow, FlowRecord, Flows, Pipeline, RunOptions, Sink};
use proptest::prelude::*;

const SET: &str = "cic,nfstream=ip,splt=5,histogram,entropy=2000,payload=50";

/// A packet of the model.
#[derive(Clone, Copy, Debug)]
struct Model {
    side: Side,
    time_ns: u64,
    payload_len: u32,
    header_len: u32,
    flags: u16,
    window: u16,
}

/// Returns packets whose times may step back, and have gaps of all lengths.
fn packets() -> impl Strategy<Value = Vec<Model>> {
    let gap = prop_oneof![
        -2_000_000_i64..5_000_000,
        0_i64..3_000_000_000,
        4_900_000_000_i64..20_000_000_000,
        Just(0_i64),
        Just(1_000_000_000_i64),
        Just(5_000_000_000_i64),
    ];
    let len = prop_oneof![Just(0_u32), 1_u32..1500, Just(1460_u32)];
    let packet = (any::<bool>(), gap, len, 20_u32..60, 0_u16..256, any::<u16>());
    prop::collection::vec(packet, 1..40).prop_map(|packets| {
        let mut time_ns = 1_700_000_000_123_456_789_i64;
        packets
            .into_iter()
            .map(|(is_a, gap, payload_len, header_len, flags, window)| {
                time_ns += gap;
                let side = if is_a { Side::A } else { Side::B };
                Model { side, time_ns: time_ns as u64, payload_len, header_len, flags, window }
            })
            .collect()
    })
}

fn key() -> FlowKey {
    let ends = [10_u8, 11].map(|last| Ipv4Addr::new(10, 0, 0, last).into());
    FlowKey::new(IpProtocol::TCP, (ends[0], 4000), (ends[1], 80)).0
}

/// Returns the octets of a frame with the packet.
fn frame(model: Model) -> Vec<u8> {
    let payload = (0..model.payload_len).map(|index| (index * model.payload_len % 251) as u8);
    std::iter::repeat_n(0xff, 34 + model.header_len as usize).chain(payload).collect()
}

fn packet(model: Model, frame: &[u8]) -> Packet<'_> {
    let mut packet = Packet::new(key(), model.side, Timestamp::from_nanos(model.time_ns), frame);
    packet.transport = Transport::Tcp;
    packet.tcp.flags = TcpFlags(model.flags);
    packet.tcp.window = model.window;
    (packet.transport_offset, packet.payload_offset) = (34, 34 + model.header_len);
    packet.payload_len = model.payload_len;
    packet.ip_len = 20 + model.header_len + model.payload_len;
    packet.wire_len = packet.ip_len + 14;
    packet
}

fn counted(set: &FeatureSet, packets: &[Model]) -> FlowFeatures {
    let mut features = FlowFeatures::default();
    packets.iter().for_each(|model| features.count(set, &packet(*model, &frame(*model))));
    features
}

/// Values by column; absent ones are not in the map.
type Values = BTreeMap<&'static str, Value>;

fn values(record: &FlowRecord, features: &FlowFeatures) -> Values {
    let columns: Vec<&Column> = Features::columns();
    let all: ColumnSet = (0..columns.len()).collect();
    let values = Features::new(record, features, Some(7)).values(&all);
    assert_eq!(columns.len(), values.len());
    columns.iter().map(|column| column.name).zip(values).filter(|(_, value)| *value != Value::Null).collect()
}

fn number(values: &Values, name: &str) -> Option<f64> {
    values.get(name).map(|value| match value {
        Value::Unsigned(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Timestamp(time) => time.as_nanos() as f64,
        other => panic!("{name} is {other:?}"),
    })
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The sample variance, in two passes.
fn variance(values: &[f64]) -> Option<f64> {
    let center = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::min)
}

fn greatest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

/// Returns the differences of consecutive times.
fn gaps(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Returns packets and octets of each bulk, and their seconds: runs of packets with payload of one side.
fn bulks(packets: &[(Model, f64)], side: Side) -> Vec<(f64, f64, f64)> {
    let data: Vec<&(Model, f64)> = packets.iter().filter(|(packet, _)| packet.payload_len > 0).collect();
    let is_same_run = |a: &&(Model, f64), b: &&(Model, f64)| a.0.side == b.0.side && b.1 - a.1 <= 1e9;
    data.chunk_by(is_same_run)
        .filter(|run| run[0].0.side == side && run.len() >= 4)
        .map(|run| {
            let octets = run.iter().map(|(packet, _)| f64::from(packet.payload_len)).sum();
            (run.len() as f64, octets, (run[run.len() - 1].1 - run[0].1) / 1e9)
        })
        .collect()
}

/// The four statistics of a group of columns.
fn statistics(
    expected: &mut Vec<(String, Option<f64>)>,
    names: [String; 4],
    samples: &[f64],
    (absent, scale): (Option<f64>, f64),
) {
    let [max, min, center, deviation] = names;
    let scaled = |value: Option<f64>| value.map(|value| value / scale).or(absent);
    expected.push((max, scaled(greatest(samples))));
    expected.push((min, scaled(least(samples))));
    expected.push((center, scaled(mean(samples))));
    expected.push((deviation, scaled(variance(samples).map(f64::sqrt))));
}

/// Returns the expected number of each column of numbers.
fn expected(packets: &[Model], initiator: Side) -> Vec<(String, Option<f64>)> {
    let mut all: Vec<(String, Option<f64>)> = Vec::new();
    // A time before the latest one is the latest one.
    let start = packets[0].time_ns;
    let mut latest = start;
    let timed: Vec<(Model, f64)> = packets
        .iter()
        .map(|packet| {
            latest = latest.max(packet.time_ns);
            (*packet, (latest - start) as f64)
        })
        .collect();
    let milliseconds = |time: f64| ((time as u64 + start) / 1_000_000) as f64;
    let times: Vec<f64> = timed.iter().map(|(_, time)| *time).collect();
    let duration = times[times.len() - 1];
    let per_second = |amount: f64| (duration > 0.0).then(|| amount / (duration / 1e9));
    let of = |side: Option<Side>| -> Vec<(Model, f64)> {
        timed.iter().filter(|(packet, _)| side.is_none_or(|side| packet.side == side)).copied().collect()
    };
    let payloads = |packets: &[(Model, f64)]| -> Vec<f64> {
        packets.iter().map(|(packet, _)| f64::from(packet.payload_len)).collect()
    };
    let with_flag = |packets: &[(Model, f64)], bit: u32| {
        packets.iter().filter(|(packet, _)| packet.flags >> bit & 1 == 1).count() as f64
    };
    let mut put = |name: &str, value: Option<f64>| all.push((name.to_owned(), value));

    let whole = of(None);
    let lengths = payloads(&whole);
    put("Flow Duration", Some(duration / 1e3));
    put("Flow Bytes/s", per_second(lengths.iter().sum()));
    put("Flow Packets/s", per_second(lengths.len() as f64));
    put("Packet Length Variance", variance(&lengths));
    put("Average Packet Size", mean(&lengths));
    for (bit, name) in ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"].iter().enumerate() {
        put(&format!("{name} Flag Count"), Some(with_flag(&whole, bit as u32)));
    }
    let subflow_count = 1 + gaps(&times).iter().filter(|gap| **gap > 1e9).count();
    let (forward, backward) = (of(Some(initiator)), of(Some(initiator.other())));
    let up = forward.len() as f64;
    put("Down/Up Ratio", (up > 0.0).then(|| backward.len() as f64 / up));
    let periods: Vec<&[(Model, f64)]> = timed.chunk_by(|a, b| b.1 - a.1 <= 5e9).collect();
    let active: Vec<f64> = periods.iter().map(|period| period[period.len() - 1].1 - period[0].1).collect();
    let idle: Vec<f64> = gaps(&times).into_iter().filter(|gap| *gap > 5e9).collect();
    for (side, name, packets) in [(initiator, "Fwd", &forward), (initiator.other(), "Bwd", &backward)] {
        let lengths = payloads(packets);
        let sum: f64 = lengths.iter().sum();
        let headers: Vec<f64> = packets.iter().map(|(packet, _)| f64::from(packet.header_len)).collect();
        let total_name = if name == "Fwd" { "Total Fwd Packet" } else { "Total Bwd packets" };
        put(total_name, Some(lengths.len() as f64));
        put(&format!("Total Length of {name} Packet"), Some(sum));
        put(&format!("{name} Packets/s"), per_second(lengths.len() as f64));
        put(&format!("{name} Segment Size Avg"), mean(&lengths));
        put(&format!("{name} Header Length"), Some(headers.iter().sum()));
        put(&format!("{name} Seg Size Min"), least(&headers));
        put(&format!("{name} Act Data Pkts"), Some(lengths.iter().filter(|len| **len > 0.0).count() as f64));
        for (bit, flag) in [(3, "PSH"), (5, "URG"), (2, "RST")] {
            put(&format!("{name} {flag} Flags"), Some(with_flag(packets, bit)));
        }
        let window = packets.first().map(|(packet, _)| f64::from(packet.window));
        put(if name == "Fwd" { "FWD Init Win Bytes" } else { "Bwd Init Win Bytes" }, window);
        put(&format!("Subflow {name} Packets"), Some(lengths.len() as f64 / subflow_count as f64));
        put(&format!("Subflow {name} Bytes"), Some(sum / subflow_count as f64));
        let bulks = bulks(&timed, side);
        let sums = bulks.iter().fold((0.0, 0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
        let count = bulks.len() as f64;
        put(&format!("{name} Packet/Bulk Avg"), (count > 0.0).then(|| sums.0 / count));
        put(&format!("{name} Bytes/Bulk Avg"), (count > 0.0).then(|| sums.1 / count));
        put(&format!("{name} Bulk Rate Avg"), (sums.2 > 0.0).then(|| sums.1 / sums.2));
        let times: Vec<f64> = packets.iter().map(|(_, time)| *time).collect();
        let own = gaps(&times);
        put(&format!("{name} IAT Total"), (!own.is_empty()).then(|| own.iter().sum::<f64>() / 1e3));
    }
    let names = |prefix: &str| ["Max", "Min", "Mean", "Std"].map(|name| format!("{prefix} {name}"));
    let side_times = |packets: &[(Model, f64)]| packets.iter().map(|(_, time)| *time).collect::<Vec<f64>>();
    statistics(&mut all, names("Packet Length"), &lengths, (None, 1.0));
    statistics(&mut all, names("Fwd Packet Length"), &payloads(&forward), (None, 1.0));
    statistics(&mut all, names("Bwd Packet Length"), &payloads(&backward), (None, 1.0));
    statistics(&mut all, names("Flow IAT"), &gaps(&times), (None, 1e3));
    statistics(&mut all, names("Fwd IAT"), &gaps(&side_times(&forward)), (None, 1e3));
    statistics(&mut all, names("Bwd IAT"), &gaps(&side_times(&backward)), (None, 1e3));
    statistics(&mut all, names("Active"), &active, (None, 1e3));
    statistics(&mut all, names("Idle"), &idle, (None, 1e3));

    // NFStream: the source is the sender of the first packet, times are milliseconds without fractions, and zero is absent.
    let first = packets[0].side;
    for (prefix, side) in
        [("bidirectional", None), ("src2dst", Some(first)), ("dst2src", Some(first.other()))]
    {
        let packets = of(side);
        let ip_lengths: Vec<f64> =
            packets.iter().map(|(p, _)| f64::from(20 + p.header_len + p.payload_len)).collect();
        let times: Vec<f64> = packets.iter().map(|(_, time)| milliseconds(*time)).collect();
        let ends = (times.first().copied().unwrap_or(0.0), times.last().copied().unwrap_or(0.0));
        let mut put = |name: &str, value: f64| all.push((format!("{prefix}_{name}"), Some(value)));
        put("packets", packets.len() as f64);
        put("bytes", ip_lengths.iter().sum());
        put("first_seen_ms", ends.0);
        put("last_seen_ms", ends.1);
        put("duration_ms", ends.1 - ends.0);
        for (bit, name) in ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"].iter().enumerate() {
            put(&format!("{name}_packets"), with_flag(&packets, bit as u32));
        }
        let names =
            |kind: &str| ["max", "min", "mean", "stddev"].map(|name| format!("{prefix}_{name}_{kind}"));
        statistics(&mut all, names("ps"), &ip_lengths, (Some(0.0), 1.0));
        statistics(&mut all, names("piat_ms"), &gaps(&times), (Some(0.0), 1.0));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]
    #[test]
    fn each_number_is_that_of_the_formula(packets in packets(), is_a_initiator: bool) {
        let set: FeatureSet = SET.parse().expect("features");
        let initiator = if is_a_initiator { Side::A } else { Side::B };
        let features = counted(&set, &packets);
        let record = FlowRecord::new(key(), initiator, Timestamp::from_nanos(packets[0].time_ns));
        let found = values(&record, &features);
        for (name, expected) in expected(&packets, initiator) {
            let found = number(&found, &name);
            let is_equal = match (found, expected) {
                (Some(found), Some(expected)) => {
                    // The formula itself has an error where two large numbers are nearly equal.
                    (found - expected).abs() <= 1e-9 * expected.abs().max(1e3)
                }
                (found, expected) => found == expected,
            };
            prop_assert!(is_equal, "{} is {:?}, not {:?}", name, found, expected);
        }
        let list = |name: &str| match found.get(name) {
            Some(Value::List(items)) => items.clone(),
            other => panic!("{name} is {other:?}"),
        };
        let first: Vec<&Model> = packets.iter().take(5).collect();
        let lengths: Vec<Value> = first.iter().map(|p| Value::Unsigned(p.payload_len.into())).collect();
        prop_assert_eq!(list("splt_length"), lengths);
        let directions: Vec<Value> =
            first.iter().map(|p| Value::Unsigned(u64::from(p.side != initiator))).collect();
        prop_assert_eq!(list("splt_direction"), directions);
        for (name, side) in [("histogram_length", initiator), ("reverse_histogram_length", initiator.other())] {
            let mut bins = [0; 17];
            for packet in packets.iter().filter(|packet| packet.side == side) {
                // 0, 1, 2 to 3, 4 to 7 octets and so on.
                let bin = (0..17).find(|bin| u64::from(packet.payload_len) < 1 << bin).unwrap_or(16);
                bins[bin] += 1;
            }
            prop_assert_eq!(list(name), bins.map(Value::Unsigned).to_vec(), "{}", name);
        }
        for (prefix, side) in [("", initiator), ("reverse_", initiator.other())] {
            let of_side = packets.iter().filter(|packet| packet.side == side);
            let octets: Vec<u8> = of_side.flat_map(|model| frame(*model).split_off(34 + model.header_len as usize)).collect();
            let first = &octets[..octets.len().min(50)];
            prop_assert_eq!(found.get(format!("{prefix}payload").as_str()), Some(&Value::Octets(first.to_vec())));
            let counted = &octets[..octets.len().min(2000)];
            let counts: Vec<usize> = (0..=255).map(|octet| counted.iter().filter(|own| **own == octet).count()).collect();
            let shares = counts.iter().map(|count| *count as f64 / counted.len() as f64).filter(|share| *share > 0.0);
            let bits: f64 = shares.map(|share| share * (1.0 / share).log2()).sum();
            let entropy = number(&found, &format!("{prefix}entropy"));
            if counted.is_empty() {
                prop_assert_eq!(entropy, None);
            } else {
                prop_assert!((entropy.expect("octets") - bits).abs() < 1e-9);
                let counts: Vec<Value> = counts.into_iter().map(|count| Value::Unsigned(count as u64)).collect();
                prop_assert_eq!(list(&format!("{prefix}octet_distribution")), counts);
            }
        }
    }

    #[test]
    fn an_early_decision_has_the_features_of_the_flow_up_to_there(
        packets in packets(),
        count in 1_u64..20,
        octets in 1_u64..5000,
        ms in 1_u64..20_000,
    ) {
        let set: FeatureSet = SET.parse().expect("features");
        let record = FlowRecord::new(key(), Side::A, Timestamp::from_nanos(packets[0].time_ns));
        let start = packets[0].time_ns;
        let mut octet_count = 0;
        let with_octets = packets.iter().take_while(|packet| {
            let is_before = octet_count < octets;
            octet_count += u64::from(packet.payload_len);
            is_before
        });
        let in_time = packets.iter().take_while(|packet| packet.time_ns.saturating_sub(start) <= ms * 1_000_000);
        let cases = [
            (format!("packets={count}"), packets.len().min(count as usize)),
            (format!("octets={octets}"), with_octets.count()),
            (format!("ms={ms}"), in_time.count()),
        ];
        for (moment, len) in cases {
            let parsed: Moment = moment.parse().expect("a moment");
            let mut features = FlowFeatures::default();
            for model in &packets {
                if features.count_until(parsed, &set, &packet(*model, &frame(*model))) {
                    break;
                }
            }
            let part = counted(&set, &packets[..len]);
            prop_assert_eq!(values(&record, &features), values(&record, &part), "{}", moment);
        }
    }
}

#[test]
fn features_of_a_capture_agree_with_its_records() {
    struct Compare(FeatureSet, u64);

    impl Sink for Compare {
        type State = FlowFeatures;
        type Stage = Flows;

        fn packet(&mut self, flow: &mut Flow<'_, FlowFeatures>, packet: &Packet<'_>) {
            flow.state.count(&self.0, packet);
        }

        fn record(&mut self, flow: &mut Flow<'_, FlowFeatures>, reason: flowgauge::EndReason) {
            let record = flow.view.record(reason);
            let values = values(&record, &std::mem::take(flow.state));
            let sum = |names: [&str; 2]| names.map(|name| number(&values, name).expect("a number") as u64);
            let sides = [&record.forward, &record.reverse];
            assert_eq!(
                sum(["Total Fwd Packet", "Total Bwd packets"]),
                sides.map(|side| side.counters.packet_count)
            );
            let payload = sides.map(|side| side.counters.payload_octet_count);
            assert_eq!(sum(["Total Length of Fwd Packet", "Total Length of Bwd Packet"]), payload);
            assert_eq!(number(&values, "bidirectional_bytes"), Some(record.octet_count() as f64));
            let microseconds = record.duration().as_nanos() as f64 / 1e3;
            assert!((number(&values, "Flow Duration").expect("a number") - microseconds).abs() < 1e-6);
            self.1 += 1;
        }
    }

    for (name, active) in
        [("web.pcap", None), ("ssh.pcap", Some(2)), ("dns.pcap", None), ("mail.pcap", Some(1))]
    {
        let mut builder = Pipeline::builder();
        if let Some(seconds) = active {
            builder = builder.active_timeout(std::time::Duration::from_secs(seconds));
        }
        let mut pipeline =
            builder.build(Compare("cic,nfstream=wire".parse().expect("features"), 0)).expect("defaults");
        let mut source = FileSource::open(format!("examples/data/{name}")).expect("a capture");
        pipeline.run(&mut source, &RunOptions::default()).expect("a complete capture");
        assert!(pipeline.sink().1 > 0, "{name}");
    }
}

#[test]
fn what_was_not_counted_is_absent_or_zero_and_bad_names_are_refused() {
    let record = FlowRecord::new(key(), Side::A, Timestamp::from_nanos(5));
    let none = values(&record, &FlowFeatures::default());
    assert_eq!(number(&none, "Total Fwd Packet"), Some(0.0));
    assert!(!none.contains_key("Flow IAT Mean") && !none.contains_key("Fwd Packet Length Mean"));
    let set: FeatureSet = "nfstream=transport, splt=1024".parse().expect("features");
    assert_eq!((set.nfstream, set.splt, set.columns().len()), (Some(Length::Transport), Some(1024), 79));
    for text in [
        "",
        "cic,",
        "splt",
        "splt=0",
        "splt=1025",
        "splt=-1",
        "nfstream=frames",
        "cic=1",
        "CIC",
        "payload",
        "entropy=0",
    ] {
        let error = text.parse::<FeatureSet>().expect_err(text).to_string();
        assert!(error.contains("is no feature; the features are cic, nfstream"), "{error}");
    }
    for text in ["", "packets", "packets=0", "octets=-1", "s=1", "ms=x"] {
        assert!(text.parse::<Moment>().is_err(), "{text}");
    }
}
