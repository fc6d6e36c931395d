//! Records of other exporters: messages over each transport in captures, counts of few layers, and events.

use super::{Folder, Run, objects, run};

/// Returns a message of IPFIX with a template of fixed lengths, and its records.
fn message(fields: &[(u16, u16)], records: &[&[u8]]) -> Vec<u8> {
    let set = |id: u16, body: Vec<u8>| {
        [&id.to_be_bytes()[..], &(4 + body.len() as u16).to_be_bytes(), &body].concat()
    };
    let words = [256, fields.len() as u16].into_iter().chain(fields.iter().flat_map(|(id, len)| [*id, *len]));
    let sets = [set(2, words.flat_map(u16::to_be_bytes).collect()), set(256, records.concat())].concat();
    let mut message = [10_u16, 16 + sets.len() as u16].map(u16::to_be_bytes).concat();
    message.extend([1_700_000_000_u32, 0, 7].map(u32::to_be_bytes).concat());
    message.extend(sets);
    message
}

/// Addresses and ports of a record, and the octets of its IP packets.
const FLOW: [(u16, u16); 6] = [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 4)];

fn flow(port: u16) -> Vec<u8> {
    let ends = [10, 0, 0, 1, 10, 0, 0, 2];
    [&ends[..], &port.to_be_bytes(), &[1, 187, 6], &300_u32.to_be_bytes()].concat()
}

/// Returns an IPv4 packet from 192.0.2.1 to 192.0.2.9.
fn packet(protocol: u8, transport: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + transport.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 9]);
    packet.extend(transport);
    packet
}

pub(super) fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let head = [40_000, port, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    packet(17, &[&head, payload].concat())
}

pub(super) fn tcp(port: u16, seq: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut segment = [40_000, port].map(u16::to_be_bytes).concat();
    segment.extend([seq, 1].map(u32::to_be_bytes).concat());
    segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    packet(6, &[&segment, payload].concat())
}

/// Returns an SCTP packet with a chunk of data for each fragment: flags, sequence number, octets.
fn sctp(port: u16, fragments: &[(u8, u32, &[u8])]) -> Vec<u8> {
    let mut octets = [40_000, port].map(u16::to_be_bytes).concat();
    octets.extend([0; 8]);
    for (flags, tsn, data) in fragments {
        octets.extend([0, *flags]);
        octets.extend((16 + data.len() as u16).to_be_bytes());
        octets.extend(tsn.to_be_bytes());
        octets.extend([0; 8]);
        octets.extend(*data);
        octets.resize(octets.len().next_multiple_of(4), 0);
    }
    packet(132, &octets)
}

/// Returns a capture of raw IP packets, a millisecond apart.
pub(super) fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 0x4_0000, 101] {
        capture.extend(word.to_le_bytes());
    }
    for (number, packet) in packets.iter().enumerate() {
        let len = packet.len() as u32;
        for word in [1_700_000_000, 1000 * number as u32, len, len] {
            capture.extend(word.to_le_bytes());
        }
        capture.extend(packet);
    }
    capture
}

fn collect(packets: &[Vec<u8>], args: &[&str]) -> Run {
    let folder = Folder::new();
    let path = folder.file("capture.pcap", &capture(packets));
    run(&[&["collect", &path], args].concat())
}

/// Returns the source ports of the collected records.
fn ports(run: &Run) -> Vec<u64> {
    objects(&run.out).iter().map(|record| record["source_port"].as_u64().unwrap()).collect()
}

#[test]
fn messages_over_each_transport_are_read_from_a_capture() {
    let messages: Vec<_> = (1..=6).map(|port| message(&FLOW, &[&flow(port)])).collect();
    let stream = messages.concat();
    let [first, second, third] = [40, stream.len() / 2, stream.len() - 10];
    // Segments out of order, one of them twice.
    let segment = |from: usize, to: usize| tcp(4739, 1001 + from as u32, 0x18, &stream[from..to]);
    let segments = [
        tcp(4739, 1000, 2, &[]),
        segment(0, first),
        segment(second, third),
        segment(first, second),
        segment(first, second),
        segment(third, stream.len()),
    ];
    let (start, end) = messages[1].split_at(50);
    let chunks = [
        sctp(4739, &[(3, 1, &messages[0]), (2, 2, start)]),
        sctp(4739, &[(1, 3, end), (3, 4, &messages[2])]),
        sctp(4739, &[(3, 4, &messages[2])]),
    ];
    let datagrams: Vec<_> = messages.iter().map(|message| udp(2055, message)).collect();
    for (packets, count) in [(&segments[..], 6), (&chunks[..], 3), (&datagrams[..], 6)] {
        let collected = collect(packets, &["--format", "ndjson"]);
        assert_eq!((collected.status, ports(&collected)), (0, (1..=count).collect()), "{}", collected.err);
        assert!(collected.out.lines().all(|line| line.contains("\"exporter_address\":\"192.0.2.1\"")));
    }
    // Octets that are missing cost the messages that they belong to.
    let cut = |from: usize, to: usize| tcp(4739, 1001 + from as u32, 0x18, &stream[from..to]);
    let len = messages[0].len();
    let gap = [tcp(4739, 1000, 2, &[]), cut(0, len + 20), cut(len + 40, stream.len())];
    assert_eq!(ports(&collect(&gap, &["--format", "ndjson"])), [1, 3, 4, 5, 6]);
}

/// Templates are valid in one connection or association (RFC 7011 section 8), whose ports may be used again, also over
/// another transport protocol.
#[test]
fn templates_end_with_their_session() {
    let with_template = |port| message(&FLOW, &[&flow(port)]);
    let data = |port| {
        let set =
            [&256_u16.to_be_bytes()[..], &(4 + flow(0).len() as u16).to_be_bytes(), &flow(port)].concat();
        let mut message = [10_u16, 16 + set.len() as u16].map(u16::to_be_bytes).concat();
        message.extend([1_700_000_000_u32, 1, 7].map(u32::to_be_bytes).concat());
        [message, set].concat()
    };
    let (first, second, third) = (with_template(1), data(2), data(3));
    let connection = |seq: u32, messages: &[&[u8]], end: &[u8]| {
        let octets = messages.concat();
        let mut packets = vec![tcp(4739, seq, 2, &[]), tcp(4739, seq + 1, 0x18, &octets)];
        packets.extend(end.iter().map(|flags| tcp(4739, seq + 1 + octets.len() as u32, *flags, &[])));
        packets
    };
    const RST: u8 = 4;
    let init = |tsn: u32| {
        let chunk =
            [u32::from_be_bytes([1, 0, 0, 20]), 7, 65_536, 0x1_0001, tsn].map(u32::to_be_bytes).concat();
        packet(132, &[&[0x9c, 0x40, 18, 131][..], &[0; 8], &chunk].concat())
    };
    let end = second.len() / 2;
    let interleaved =
        [(2, 9, 0, &second[..end]), (1, 10, 1, &second[end..])].map(|(flags, tsn, part, octets)| {
            let mut chunk = vec![64, flags];
            chunk.extend((20 + octets.len() as u16).to_be_bytes());
            chunk.extend([tsn, 0, 3, part].map(u32::to_be_bytes).concat());
            packet(132, &[&[0x9c, 0x40, 18, 131][..], &[0; 8], &chunk, octets].concat())
        });
    type Case<'c> = (&'c str, Vec<Vec<u8>>, &'c [u64]);
    let cases: [Case<'_>; 5] = [
        ("one connection", connection(10, &[&first, &second, &third], &[RST]), &[1, 2, 3]),
        (
            "closed",
            [connection(10, &[&first, &second], &[RST]), connection(90_000, &[&third], &[])].concat(),
            &[1, 2],
        ),
        (
            "two transports",
            [vec![udp(4739, &first)], connection(10, &[&second], &[RST]), vec![udp(4739, &third)]].concat(),
            &[1, 3],
        ),
        (
            "associations",
            vec![
                init(5),
                sctp(4739, &[(3, 5, &first), (3, 6, &second)]),
                init(900_000),
                sctp(4739, &[(3, 7, &second)]),
                sctp(4739, &[(3, 900_000, &third)]),
            ],
            &[1, 2, 2],
        ),
        (
            "interleaved",
            [vec![init(5), sctp(4739, &[(3, 5, &first)])], interleaved.to_vec()].concat(),
            &[1, 2],
        ),
    ];
    for (name, packets, expected) in cases {
        let collected = collect(&packets, &["--format", "ndjson"]);
        assert_eq!(
            (collected.status, ports(&collected)),
            (0, expected.to_vec()),
            "{name}: {}",
            collected.err
        );
    }
}

#[test]
fn messages_to_other_ports_are_named_with_the_option_that_reads_them() {
    let ipfix = message(&FLOW, &[&flow(1)]);
    let mut version5 = [5_u16, 1].map(u16::to_be_bytes).concat();
    version5.resize(24 + 48, 0);
    let sflow: Vec<u8> = [5_u32, 1, 0, 0, 0, 0, 1, 1, 0].into_iter().flat_map(u32::to_be_bytes).collect();
    let packets = [
        udp(2055, &ipfix),
        udp(9000, &version5),
        udp(9000, &version5),
        udp(9001, &sflow),
        tcp(9002, 1, 0x18, &ipfix),
        // Other content.
        udp(9003, b"GET / HTTP/1.1"),
        udp(9004, &version5[..40]),
        udp(9005, &ipfix[..30]),
    ];
    let collected = collect(&packets, &["--format", "ndjson"]);
    assert_eq!((collected.status, ports(&collected)), (0, vec![1]));
    let lines: Vec<_> = collected.err.lines().filter_map(|line| line.split_once(".pcap: ")).collect();
    let expected = [
        "2 datagrams to port 9000 look like NetFlow version 5; `--port 2055 --port 9000` reads them",
        "1 datagram to port 9001 looks like sFlow version 5; `--port 2055 --port 9001` reads it",
        "1 segment to port 9002 looks like IPFIX; `--port 2055 --port 9002` reads it",
    ];
    assert_eq!(lines.iter().map(|(_, line)| *line).collect::<Vec<_>>(), expected);
    let both = collect(&packets, &["--format", "ndjson", "--port", "2055", "--port", "9002"]);
    assert_eq!(ports(&both), [1, 1]);
    assert!(!collect(&packets, &["--quiet"]).err.contains("--port"));
}

/// The systems of a sampled packet are those of the flow's ends, also if the responder sent the packet.
#[test]
fn flows_of_sampled_packets_have_systems() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    let sampled = |frame: &[u8], [source, destination]: [u32; 2]| {
        let len = frame.len() as u32;
        let header = [words(&[1, 16 + len, 11, len, 0, len]), frame.to_vec()].concat();
        let gateway = words(&[1003, 40, 0, 64_499, source, 0, 1, 2, 1, destination, 0, 100]);
        let body = [words(&[1, 5, 10, 0, 0, 9, 0, 2]), header, gateway].concat();
        let datagram = words(&[5, 1, 0xc000_0201, 3, 0, 1000, 1, 1, body.len() as u32]);
        udp(6343, &[datagram, body].concat())
    };
    let request = tcp(443, 1, 2, &[]);
    // The same connection in the other direction: SYN and ACK.
    let mut answer = tcp(443, 1, 0x12, &[]);
    for (first, second, len) in [(12, 16, 4), (20, 22, 2)] {
        (0..len).for_each(|at| answer.swap(first + at, second + at));
    }
    for packets in [
        vec![sampled(&answer, [64_501, 64_500])],
        vec![sampled(&request, [64_500, 64_501]), sampled(&answer, [64_501, 64_500])],
        vec![sampled(&answer, [64_501, 64_500]), sampled(&request, [64_500, 64_501])],
    ] {
        let collected = collect(&packets, &["--format", "ndjson"]);
        let [record] = &objects(&collected.out)[..] else { panic!("{}", collected.out) };
        assert_eq!((&record["source_port"], &record["destination_port"]), (&40_000.into(), &443.into()));
        assert_eq!((&record["source_as"], &record["destination_as"]), (&64_500.into(), &64_501.into()));
    }
}

/// An exporter sends only the octets of IP packets.
#[test]
fn octets_of_ip_packets_are_in_sums() {
    let times = [1_700_000_000_000_u64, 1_700_000_060_000].map(u64::to_be_bytes).concat();
    let record = [&flow(1)[..13], &6_000_000_u32.to_be_bytes(), &6000_u32.to_be_bytes(), &times].concat();
    let fields = [&FLOW[..], &[(2, 4), (152, 8), (153, 8)]].concat();
    let packets = [udp(2055, &message(&fields, &[&record]))];
    let rows = objects(&collect(&packets, &["--time-series", "30s", "--format", "ndjson"]).out);
    let octets: Vec<_> = rows.iter().map(|row| row["octet_count"].as_u64().unwrap()).collect();
    // From 22:13:20 to 22:14:20.
    assert_eq!(octets, [999_999, 3_000_000, 2_000_001]);
    let events = objects(&collect(&packets, &["--format", "eve"]).out);
    assert_eq!(events[0]["flow"]["bytes_toserver"], 6_000_000);
    let folder = Folder::new();
    assert_eq!(collect(&packets, &["--format", "zeek", "--out", &folder.path("logs")]).status, 0);
    let log = std::fs::read_to_string(folder.path("logs/conn.log")).unwrap();
    let of = |name: &str| {
        let fields = log.lines().find_map(|line| line.strip_prefix("#fields\t")).unwrap();
        let place = fields.split('\t').position(|field| field == name).unwrap();
        let row = log.lines().find(|line| !line.starts_with('#')).unwrap();
        row.split('\t').nth(place).unwrap().to_owned()
    };
    // The payload is not known.
    assert_eq!((of("orig_bytes").as_str(), of("orig_ip_bytes").as_str()), ("-", "6000000"));
}

/// A firewall reports the beginning of a connection, its counts so far and its end, and a connection that it denied.
#[test]
fn events_count_as_flows_only_on_request() {
    let fields = [&FLOW[..], &[(2, 4), (233, 1), (323, 8)]].concat();
    let event = |number: u8, count: u32| {
        let time = 1_700_000_000_000_u64.to_be_bytes();
        let counts = [100 * count, count].map(u32::to_be_bytes).concat();
        [&flow(1)[..13], &counts, &[number], &time].concat()
    };
    let records = [event(1, 0), event(5, 2), event(2, 1), event(3, 0)];
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let packets = [udp(2055, &message(&fields, &records))];
    let collected = collect(&packets, &["--format", "ndjson"]);
    assert!(collected.err.contains("3 records of events, which are not flows"), "{}", collected.err);
    let found = objects(&collected.out);
    let events: Vec<_> = found.iter().map(|record| record["firewall_event"].as_u64().unwrap()).collect();
    assert_eq!(events, [1, 5, 2, 3]);
    let groups = ["--group-by", "source_address", "--sum", "packet_count", "--format", "ndjson"];
    let series = ["--time-series", "1h", "--format", "ndjson"];
    for (args, count) in [(&groups[..], "packet_count_sum"), (&series[..], "packet_count")] {
        for (option, expected) in [(None, 1), (Some("--count-events"), 4)] {
            let args: Vec<_> = args.iter().copied().chain(option).collect();
            let rows = objects(&collect(&packets, &args).out);
            assert_eq!(rows.len(), 1, "{rows:?}");
            assert_eq!((&rows[0]["flow_count"], &rows[0][count]), (&expected.into(), &3.into()), "{args:?}");
        }
    }
    let alone = collect(&packets, &["--count-events"]);
    assert!(alone.status == 2 && alone.err.contains("--count-events requires"), "{}", alone.err);
}
