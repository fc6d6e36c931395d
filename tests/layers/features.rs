//! Features of flows, compared with the textbook formulas over a list of all packets.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use flowgauge::base::{FlowKey, IpProtocol, Packet, SeqNum, Side, TcpFlags, Timestamp, Transport};
use flowgauge::features::{FeatureSet, Features, FlowFeatures, Length, Moment};
use flowgauge::row::{Column, ColumnSet, Row as _, RowType as _, Value};
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
    packet.wire_len = (packet.ip_len + 14).max(60);
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

fn is_equal(found: Option<f64>, expected: Option<f64>) -> bool {
    match (found, expected) {
        // The formula itself has an error where two large numbers are nearly equal.
        (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * expected.abs().max(1e3),
        (found, expected) => found == expected,
    }
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

/// Returns packets and octets of each bulk, and their seconds: runs of packets with payload of one side, or of either side.
fn bulks(packets: &[(Model, f64)], side: Option<Side>) -> Vec<(f64, f64, f64)> {
    let data: Vec<&(Model, f64)> = packets.iter().filter(|(packet, _)| packet.payload_len > 0).collect();
    let is_same_run =
        |a: &&(Model, f64), b: &&(Model, f64)| (a.0.side == b.0.side || side.is_none()) && b.1 - a.1 <= 1e9;
    data.chunk_by(is_same_run)
        .filter(|run| side.is_none_or(|side| run[0].0.side == side) && run.len() >= 4)
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

/// Returns the expected number of each column of numbers; `is_published` states that the vector of CICFlowMeter has its
/// errors, all that can be chosen.
fn expected(packets: &[Model], initiator: Side, is_published: bool) -> Vec<(String, Option<f64>)> {
    // E6.
    let divided = |quotient: f64| if is_published { quotient.trunc() } else { quotient };
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
    // E5: the first packet counts twice, but not as a packet.
    let mut twice = lengths.clone();
    twice.extend(is_published.then_some(lengths[0]));
    put("Packet Length Variance", variance(&twice));
    put("Average Packet Size", Some(twice.iter().sum::<f64>() / lengths.len() as f64));
    for (bit, name) in ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"].iter().enumerate() {
        put(&format!("{name} Flag Count"), Some(with_flag(&whole, bit as u32)));
    }
    // E7.
    let subflow_count = gaps(&times).iter().filter(|gap| **gap > 1e9).count() + usize::from(!is_published);
    let (forward, backward) = (of(Some(initiator)), of(Some(initiator.other())));
    let up = forward.len() as f64;
    put("Down/Up Ratio", (up > 0.0).then(|| divided(backward.len() as f64 / up)));
    let periods: Vec<&[(Model, f64)]> = timed.chunk_by(|a, b| b.1 - a.1 <= 5e9).collect();
    // E18.
    let period_count = periods.len() - usize::from(is_published);
    let lengths_of = periods.iter().take(period_count).map(|period| period[period.len() - 1].1 - period[0].1);
    let active: Vec<f64> = lengths_of.collect();
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
        // E9.
        let is_missing = is_published && whole[0].0.side == side && whole[0].0.payload_len > 0;
        let with_data = lengths.iter().filter(|len| **len > 0.0).count() - usize::from(is_missing);
        put(&format!("{name} Act Data Pkts"), Some(with_data as f64));
        for (bit, flag) in [(3, "PSH"), (5, "URG"), (2, "RST")] {
            // E4.
            let first: Vec<(Model, f64)> =
                packets.iter().filter(|packet| packet.1 == 0.0).take(1).copied().collect();
            let is_first_only = is_published && flag != "RST";
            let is_own = whole[0].0.side == side;
            let counted = match (is_first_only, is_own) {
                (false, _) => with_flag(packets, bit),
                (true, true) => with_flag(&first, bit),
                (true, false) => 0.0,
            };
            put(&format!("{name} {flag} Flags"), Some(counted));
        }
        // E8.
        let window = if is_published && name == "Bwd" { packets.last() } else { packets.first() };
        let window = window.map(|(packet, _)| f64::from(packet.window));
        put(if name == "Fwd" { "FWD Init Win Bytes" } else { "Bwd Init Win Bytes" }, window);
        let per_subflow = |sum: f64| (subflow_count > 0).then(|| divided(sum / subflow_count as f64));
        put(&format!("Subflow {name} Packets"), per_subflow(lengths.len() as f64));
        put(&format!("Subflow {name} Bytes"), per_subflow(sum));
        // E3.
        let bulks = match (is_published, name) {
            (false, _) => bulks(&timed, Some(side)),
            (true, "Fwd") => Vec::new(),
            (true, _) => bulks(&timed, None),
        };
        let sums = bulks.iter().fold((0.0, 0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
        let count = bulks.len() as f64;
        put(&format!("{name} Packet/Bulk Avg"), (count > 0.0).then(|| divided(sums.0 / count)));
        put(&format!("{name} Bytes/Bulk Avg"), (count > 0.0).then(|| divided(sums.1 / count)));
        put(&format!("{name} Bulk Rate Avg"), (sums.2 > 0.0).then(|| divided(sums.1 / sums.2)));
        let times: Vec<f64> = packets.iter().map(|(_, time)| *time).collect();
        let own = gaps(&times);
        put(&format!("{name} IAT Total"), (!own.is_empty()).then(|| own.iter().sum::<f64>() / 1e3));
    }
    let names = |prefix: &str| ["Max", "Min", "Mean", "Std"].map(|name| format!("{prefix} {name}"));
    let side_times = |packets: &[(Model, f64)]| packets.iter().map(|(_, time)| *time).collect::<Vec<f64>>();
    statistics(&mut all, names("Packet Length"), &twice, (None, 1.0));
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
        for (name, expected) in expected(&packets, initiator, false) {
            let found = number(&found, &name);
            prop_assert!(is_equal(found, expected), "{} is {:?}, not {:?}", name, found, expected);
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
    fn errors_of_the_published_program_are_those_that_are_chosen(packets in packets(), is_a_initiator: bool) {
        let initiator = if is_a_initiator { Side::A } else { Side::B };
        let record = FlowRecord::new(key(), initiator, Timestamp::from_nanos(packets[0].time_ns));
        let found = values(&record, &counted(&"cic_compat".parse().expect("features"), &packets));
        // E12: padding of frames with less than 60 octets is payload. E14: the source is the first sender.
        let padded: Vec<Model> = packets.iter().map(|packet| {
            let padded_len = 26_u32.saturating_sub(packet.header_len);
            Model { payload_len: packet.payload_len.max(padded_len), ..*packet }
        }).collect();
        let of_cic = |(name, _): &(String, Option<f64>)| name.starts_with(char::is_uppercase);
        for (name, expected) in expected(&padded, packets[0].side, true).into_iter().filter(of_cic) {
            let found = number(&found, &name);
            // What is not defined is zero, but for rates without a duration (E13).
            let is_rate = name.starts_with("Flow ") && name.ends_with("/s");
            let expected = if is_rate { expected } else { expected.or(Some(0.0)) };
            prop_assert!(is_equal(found, expected), "{} is {:?}, not {:?}", name, found, expected);
        }
        // No error, and one alone.
        let correct = values(&record, &counted(&"cic".parse().expect("features"), &packets));
        let one = values(&record, &counted(&"cic_compat=e8".parse().expect("features"), &packets));
        for (name, value) in &correct {
            prop_assert!(*name == "Bwd Init Win Bytes" || one.get(name) == Some(value), "{}", name);
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
        "cic_compat=",
        "cic_compat=e1",
        "cic_compat=e3,e4",
        "tcp=1",
        "CIC",
        "payload",
        "entropy=0",
    ] {
        let error = text.parse::<FeatureSet>().expect_err(text).to_string();
        assert!(error.contains("is no feature; the features are cic, cic_compat"), "{error}");
    }
    for text in ["", "packets", "packets=0", "octets=-1", "s=1", "ms=x"] {
        assert!(text.parse::<Moment>().is_err(), "{text}");
    }
}

#[test]
fn other_protocols_are_zero_in_the_published_vector() {
    let ends = [10_u8, 11].map(|last| Ipv4Addr::new(10, 0, 0, last).into());
    let key = FlowKey::new(IpProtocol::ICMP, (ends[0], 0), (ends[1], 0)).0;
    let record = FlowRecord::new(key, Side::A, Timestamp::from_nanos(5));
    let packet = Packet::new(key, Side::A, Timestamp::from_nanos(5), &[]);
    for (text, expected) in [("cic", 1.0), ("cic_compat=e15", 0.0), ("cic_compat=e14+e3", 1.0)] {
        let mut features = FlowFeatures::default();
        features.count(&text.parse().expect("features"), &packet);
        assert_eq!(number(&values(&record, &features), "Protocol"), Some(expected), "{text}");
    }
}

/// A TCP segment: sender, milliseconds, sequence number, acknowledgment, payload, window, flags and options.
type Segment = (Side, u64, u32, u32, u32, u16, u16, &'static [u8]);

/// Returns the features `tcp` of segments, for the initiator A.
fn tcp_values(segments: &[Segment]) -> Values {
    let set: FeatureSet = "tcp".parse().expect("features");
    let mut features = FlowFeatures::default();
    for &(side, ms, seq, ack, payload_len, window, flags, options) in segments {
        let mut frame = vec![0; 54];
        frame[46] = ((20 + options.len()) as u8 / 4) << 4;
        frame.extend(options);
        let payload_offset = frame.len() as u32;
        frame.extend(vec![0; payload_len as usize]);
        let mut packet = Packet::new(key(), side, Timestamp::from_nanos(ms * 1_000_000), &frame);
        packet.transport = Transport::Tcp;
        (packet.tcp.seq, packet.tcp.ack) = (SeqNum(seq), SeqNum(ack));
        (packet.tcp.flags, packet.tcp.window) = (TcpFlags(flags), window);
        (packet.transport_offset, packet.payload_offset) = (34, payload_offset);
        (packet.payload_len, packet.hop_limit) = (payload_len, if side == Side::A { 57 } else { 129 });
        features.count(&set, &packet);
    }
    let record = FlowRecord::new(key(), Side::A, Timestamp::from_nanos(segments[0].1 * 1_000_000));
    values(&record, &features)
}

const SYN: u16 = 2;
const ACK: u16 = 16;

#[test]
fn tcp_times_windows_and_options_are_those_of_the_segments() {
    // MSS 1460, SACK, timestamps 1000, NOP, window scale 7; the responder has scale 2 and the timestamps 50.
    const OF_A: &[u8] = &[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 3, 232, 0, 0, 0, 0, 1, 3, 3, 7];
    const OF_B: &[u8] = &[2, 4, 2, 24, 8, 10, 0, 0, 0, 50, 0, 0, 3, 232, 3, 3, 2, 0, 0, 0];
    // Timestamps 1010 and the echo 50; 60 and 1010; 60 and 1010 again.
    const DATA: &[u8] = &[1, 1, 8, 10, 0, 0, 3, 242, 0, 0, 0, 50];
    const ANSWER: &[u8] = &[1, 1, 8, 10, 0, 0, 0, 60, 0, 0, 3, 242];
    let found = tcp_values(&[
        (Side::A, 0, 999, 0, 0, 64000, SYN, OF_A),
        (Side::B, 40, 4999, 1000, 0, 30000, SYN | ACK, OF_B),
        (Side::A, 41, 1000, 5000, 0, 500, ACK, DATA),
        (Side::A, 45, 1000, 5000, 100, 510, ACK, DATA),
        (Side::B, 95, 5000, 1100, 0, 0, ACK, ANSWER),
        (Side::B, 145, 5000, 1100, 20, 1000, ACK, ANSWER),
        (Side::A, 146, 1100, 5020, 0, 520, ACK, &[]),
    ]);
    let number = |name: &str| number(&found, name);
    let time = |name: &str| match found.get(name) {
        Some(Value::Duration(time)) => Some(time.as_micros()),
        None => None,
        other => panic!("{name} is {other:?}"),
    };
    // From the SYN to the SYN-ACK 40 ms, from the data to its acknowledgment 50 ms.
    assert_eq!(
        (number("ack_rtt_count"), time("ack_rtt_min"), time("ack_rtt_max")),
        (Some(2.0), Some(40_000), Some(50_000))
    );
    assert_eq!((time("ack_rtt_mean"), time("ack_rtt_jitter")), (Some(45_000), Some(10_000)));
    assert_eq!(time("ack_rtt_deviation"), Some(7_071));
    // The SYN-ACK and the octets of the responder were acknowledged in 1 ms.
    assert_eq!((number("reverse_ack_rtt_count"), time("reverse_ack_rtt_mean")), (Some(2.0), Some(1000)));
    // The timestamp 1010 was first sent at 41 ms and echoed at 95 ms.
    assert_eq!((number("timestamp_rtt_count"), time("timestamp_rtt_max")), (Some(2.0), Some(54_000)));
    assert_eq!(
        (number("reverse_timestamp_rtt_count"), time("reverse_timestamp_rtt_min")),
        (Some(1.0), Some(1000))
    );
    // Windows are scaled by 2^7 and 2^2, but for those of SYNs.
    assert_eq!((number("window_min"), number("window_max")), (Some(500.0 * 128.0), Some(520.0 * 128.0)));
    assert_eq!((number("window_mean"), number("reverse_window_mean")), (Some(510.0 * 128.0), Some(2000.0)));
    assert_eq!((time("zero_window_duration"), time("reverse_zero_window_duration")), (Some(0), Some(50_000)));
    assert_eq!((number("mss"), number("reverse_mss")), (Some(1460.0), Some(536.0)));
    assert_eq!((number("window_scale"), number("reverse_window_scale")), (Some(7.0), Some(2.0)));
    assert_eq!((number("initial_hop_limit"), number("reverse_initial_hop_limit")), (Some(64.0), Some(255.0)));
    let kinds = |name: &str| match found.get(name) {
        Some(Value::List(kinds)) => kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        other => panic!("{name} is {other:?}"),
    };
    assert_eq!(
        (kinds("tcp_options"), kinds("reverse_tcp_options")),
        ("2,4,8,1,3".to_owned(), "2,8,3".to_owned())
    );
}

#[test]
fn retransmissions_of_tcp_are_counted_by_kind() {
    let data = |ms, seq, len| (Side::A, ms, seq, 1, len, 100, ACK, &[][..]);
    let ack = |ms, ack| (Side::B, ms, 1, ack, 0, 100, ACK, &[][..]);
    let found = tcp_values(&[
        data(0, 100, 100),
        data(1, 200, 100),
        data(2, 300, 100),
        ack(10, 200),
        // Three copies of the acknowledgment, behind which the segment is sent again.
        ack(11, 200),
        ack(12, 200),
        ack(13, 200),
        data(14, 200, 100),
        ack(20, 400),
        // All octets were acknowledged.
        data(21, 300, 100),
        // Nothing for 300 ms, then again; and once more without a reason.
        data(30, 400, 50),
        data(330, 400, 50),
        data(340, 400, 50),
        ack(350, 450),
        // A skipped segment that arrives late is none, and neither are keep-alives with and without an octet.
        data(360, 500, 50),
        data(361, 450, 50),
        data(400, 549, 1),
        data(500, 549, 0),
        ack(501, 550),
    ]);
    let count = |name: &str| number(&found, name);
    for kind in ["spurious", "fast", "timeout", "other"] {
        assert_eq!(count(&format!("{kind}_retransmitted_count")), Some(1.0), "{kind}");
        assert_eq!(count(&format!("reverse_{kind}_retransmitted_count")), Some(0.0), "{kind}");
    }
    assert_eq!((count("keep_alive_count"), count("reverse_duplicate_ack_count")), (Some(2.0), Some(3.0)));
    // Segments that were sent again have no time to their acknowledgment: only 100, and 500 from 360 to 501 ms.
    assert_eq!(count("ack_rtt_count"), Some(2.0));
    assert!(!found.contains_key("window_min") && !found.contains_key("mss"), "no SYN was seen");
}
