//! Rare tags, tunnels and mirror sessions, with octets written from their specifications or, without one, from what
//! tshark decodes; tshark finds the packet in the same frames. Aggregates of 802.11.

use std::process::Command;

use flowgauge::base::{EtherType, Frame, FrameBatch, HeaderKind, LinkType, Timestamp};
use flowgauge::decode::extractor::{Extractor, Skip};
use flowgauge::decode::link::{Unsupported, aggregated};
use flowgauge::pipeline::{Builder, Pipeline, PipelineStats, Records, RunOptions};
use flowgauge::record::FlowRecord;
use flowgauge::source::{End, Next, PcapngWriter};

use crate::decapsulation::{
    assert_decapsulated, assert_not_decapsulated, ethernet, in_ip, in_udp, inner, inner_ethernet, inner_ipv6,
    join, udp, walk,
};
use crate::fn_source::FnSource;

/// A frame, the headers around its innermost packet, and whether tshark reads as far.
struct Case {
    name: &'static str,
    frame: Vec<u8>,
    headers: Vec<(HeaderKind, u32)>,
    is_read_by_tshark: bool,
}

/// A data frame of 802.11 from a station, with LLC.
fn wireless(packet: &[u8]) -> Vec<u8> {
    let header = join(&[&[0x08, 0x01, 0, 0], &[2; 6], &[4; 6], &[6; 6], &[0x10, 0]]);
    join(&[&header, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], packet])
}

fn in_gre(header: &[u8], payload: &[u8]) -> Vec<u8> {
    in_ip(47, &join(&[header, payload]))
}

/// Returns a frame of an access point with a CAPWAP header of `len` octets, radio 1, binding 1.
fn capwap(flags: [u8; 2], len: u8, payload: &[u8]) -> Vec<u8> {
    let header = [&[0, len << 1, 0x42 | flags[0], flags[1]][..], &vec![0; usize::from(len) - 4]].concat();
    in_ip(17, &udp(5247, 40_000, &join(&[&header, payload])))
}

fn ayiya(operation: u8, next: u8, payload: &[u8]) -> Vec<u8> {
    join(&[&[0x41, 0x52, 0x10 | operation, next], &[0; 4], &[1; 16], &[2; 20], payload])
}

fn gtpu(flags: u8, optional: &[u8], payload: &[u8]) -> Vec<u8> {
    let len = (optional.len() + payload.len()) as u16;
    join(&[&[flags, 255], &len.to_be_bytes(), &[0, 0, 0, 77], optional, payload])
}

fn cases() -> Vec<Case> {
    use HeaderKind::{
        AristaTime, Ayiya, Capwap, CiscoMetadata, Eoip, Erspan, Ethernet, FabricPath, Geneve, Gre, GtpU,
        HpErm, Hsr, Ip, Lisp, Macsec, ProviderBackbone, RedundancyTag, TimeTag, Trill, Tzsp, Vlan, Vxlan,
        Wlan,
    };
    let case =
        |name, frame, headers: &[_]| Case { name, frame, headers: headers.to_vec(), is_read_by_tshark: true };
    let own = |case: Case| Case { is_read_by_tshark: false, ..case };
    let packet = inner();
    let bridged = inner_ethernet(&packet);
    let tagged = |tag: &[u8]| join(&[tag, &[8, 0], &packet]);
    let time = [0x65, 0x53, 0xf1, 0, 0, 5];
    let tzsp = |kind: u8, frame: &[u8]| in_udp(37_008, &join(&[&[1, 0, 0, kind, 1], frame]));
    let prism = join(&[&[0x44, 0, 0, 0, 144, 0, 0, 0], &[0; 136]]);
    let eoip_len = (bridged.len() as u16).to_be_bytes();
    let eoip = [0x20, 1, 0x64, 0, eoip_len[0], eoip_len[1], 7, 0];
    let exchanged = |frame: &[u8]| join(&[&[frame[1], frame[0]], &frame[2..]]);
    let secure = |control: u8, channel: &[u8]| {
        ethernet(0x88e5, &join(&[&[control, 0, 0, 0, 0, 1], channel, &[8, 0], &packet, &[0xcc; 16]]))
    };
    vec![
        case("TTag", ethernet(0x8988, &tagged(&time)), &[(TimeTag, 0)]),
        case(
            "TTag in a VLAN",
            ethernet(0x8100, &join(&[&[0, 5, 0x89, 0x88], &tagged(&time)])),
            &[(Vlan, 5), (TimeTag, 0)],
        ),
        case(
            "TTag before a VLAN tag",
            ethernet(0x8988, &join(&[&time, &[0x81, 0, 0, 5], &tagged(&[])])),
            &[(TimeTag, 0), (Vlan, 5)],
        ),
        case(
            "TTag in ERSPAN",
            in_gre(
                &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 5, 0, 0, 0, 0],
                &ethernet(0x8988, &tagged(&time)),
            ),
            &[(Ip, 0), (Gre, 0), (Erspan, 5), (Ethernet, 0), (TimeTag, 0)],
        ),
        case("MetaData", ethernet(0x8909, &tagged(&[1, 1, 0, 1, 0, 5])), &[(CiscoMetadata, 5)]),
        case("HSR", ethernet(0x892f, &tagged(&[0x10, 0x2a, 0, 1])), &[(Hsr, 0)]),
        case(
            "HSR in VXLAN",
            in_udp(
                4789,
                &join(&[&[8, 0, 0, 0, 0, 0, 42, 0], &ethernet(0x892f, &tagged(&[0x10, 0x2a, 0, 1]))]),
            ),
            &[(Ip, 0), (Vxlan, 42), (Ethernet, 0), (Hsr, 0)],
        ),
        case("R-TAG", ethernet(0xf1c1, &tagged(&[0, 0, 0, 1])), &[(RedundancyTag, 0)]),
        case(
            "64 bits of TAI",
            ethernet(0xd28b, &tagged(&[0, 1, 0, 0x10, 0x65, 0x53, 0xf1, 0, 0, 0, 0, 5])),
            &[(AristaTime, 0)],
        ),
        case(
            "48 bits of UTC",
            ethernet(0xd28b, &tagged(&[0, 1, 1, 0x20, 0xf1, 0, 0, 0, 0, 5])),
            &[(AristaTime, 0)],
        ),
        case(
            "FabricPath",
            ethernet(0x8903, &join(&[&[0x04, 0x60], &bridged])),
            &[(FabricPath, 17), (Ethernet, 0)],
        ),
        case(
            "TRILL",
            ethernet(0x22f3, &join(&[&[0, 5, 0, 1, 0, 2], &bridged])),
            &[(Trill, 0x1_0002), (Ethernet, 0)],
        ),
        case(
            "TRILL with two words of options",
            ethernet(0x22f3, &join(&[&[0, 0x85, 0, 1, 0, 2], &[9; 8], &bridged])),
            &[(Trill, 0x1_0002), (Ethernet, 0)],
        ),
        case(
            "802.1ah",
            ethernet(0x88e7, &join(&[&[0, 1, 2, 3], &bridged])),
            &[(ProviderBackbone, 0x1_0203), (Ethernet, 0)],
        ),
        case("MACsec in clear", secure(0, &[]), &[(Macsec, 0)]),
        case("MACsec with a channel", secure(0x23, &[7; 8]), &[(Macsec, 0)]),
        case("TZSP", tzsp(1, &bridged), &[(Ip, 0), (Tzsp, 0), (Ethernet, 0)]),
        case(
            "TZSP with tags",
            in_udp(37_008, &join(&[&[1, 1, 0, 1, 0, 10, 1, 0xd0, 1], &bridged])),
            &[(Ip, 0), (Tzsp, 0), (Ethernet, 0)],
        ),
        case("TZSP with 802.11", tzsp(18, &wireless(&packet)), &[(Ip, 0), (Tzsp, 0), (Wlan, 0)]),
        case(
            "TZSP with Prism",
            tzsp(119, &join(&[&prism, &wireless(&packet)])),
            &[(Ip, 0), (Tzsp, 0), (Wlan, 0)],
        ),
        case("EoIP", in_gre(&eoip, &bridged), &[(Ip, 0), (Eoip, 7), (Ethernet, 0)]),
        case(
            "GRE of Aruba",
            in_gre(&[0, 0, 0x82, 0x10], &wireless(&packet)),
            &[(Ip, 0), (Gre, 0), (Wlan, 0)],
        ),
        case("GRE in UDP", in_udp(4754, &join(&[&[0, 0, 8, 0], &packet])), &[(Ip, 0), (Gre, 0)]),
        case(
            "GRE in UDP with Ethernet",
            in_udp(4754, &join(&[&[0, 0, 0x65, 0x58], &bridged])),
            &[(Ip, 0), (Gre, 0), (Ethernet, 0)],
        ),
        case(
            "LISP",
            in_udp(4341, &join(&[&[0x08, 0, 0, 0, 0, 0, 0x0b, 0], &packet])),
            &[(Ip, 0), (Lisp, 11)],
        ),
        case(
            "LISP without an instance",
            in_udp(4341, &join(&[&[0xc0, 0, 0, 1, 0, 0, 0, 1], &inner_ipv6()])),
            &[(Ip, 0), (Lisp, 0)],
        ),
        own(case(
            "LISP with a next protocol",
            in_udp(4341, &join(&[&[0x0c, 0, 0, 3, 0, 0, 0x0b, 0], &bridged])),
            &[(Ip, 0), (Lisp, 11), (Ethernet, 0)],
        )),
        case(
            "mirroring of HP",
            in_udp(7932, &join(&[&[0; 12], &bridged])),
            &[(Ip, 0), (HpErm, 0), (Ethernet, 0)],
        ),
        case("AYIYA", in_udp(5072, &ayiya(1, 41, &inner_ipv6())), &[(Ip, 0), (Ayiya, 0)]),
        case("AYIYA of a broker", in_ip(17, &udp(5072, 9, &ayiya(1, 4, &packet))), &[(Ip, 0), (Ayiya, 0)]),
        case(
            "GTP-U by source port",
            in_ip(17, &udp(2152, 9, &gtpu(0x30, &[], &packet))),
            &[(Ip, 0), (GtpU, 77)],
        ),
        case(
            "GTP-U with Ethernet",
            in_udp(2152, &gtpu(0x34, &[0, 0, 0, 0x85, 1, 0, 9, 0], &bridged)),
            &[(Ip, 0), (GtpU, 77), (Ethernet, 0)],
        ),
        own(case(
            "GTP-U with a VLAN tag",
            in_udp(2152, &gtpu(0x30, &[], &ethernet(0x8100, &join(&[&[0, 5], &tagged(&[])])))),
            &[(Ip, 0), (GtpU, 77), (Ethernet, 0), (Vlan, 5)],
        )),
        case(
            "GENEVE for operation",
            in_udp(6081, &join(&[&[0, 0x80, 0x65, 0x58, 0, 0, 42, 0], &bridged])),
            &[(Ip, 0), (Geneve, 42), (Ethernet, 0)],
        ),
        case("CAPWAP", capwap([0, 0], 8, &bridged), &[(Ip, 0), (Capwap, 0), (Ethernet, 0)]),
        case(
            "CAPWAP with wireless information",
            capwap([0, 0x20], 16, &bridged),
            &[(Ip, 0), (Capwap, 0), (Ethernet, 0)],
        ),
        case(
            "CAPWAP with 802.11",
            capwap([1, 0], 8, &exchanged(&wireless(&packet))),
            &[(Ip, 0), (Capwap, 0), (Wlan, 0)],
        ),
        // tshark expects the order of Cisco unless it is configured.
        own(case(
            "CAPWAP with 802.11 in the order of its specification",
            capwap([1, 0], 8, &wireless(&packet)),
            &[(Ip, 0), (Capwap, 0), (Wlan, 0)],
        )),
    ]
}

#[test]
fn rare_tags_and_tunnels_are_decapsulated() {
    for Case { name, frame, headers, .. } in cases() {
        println!("{name}");
        assert_decapsulated(LinkType::ETHERNET, &frame, &headers);
    }
}

/// Returns the protocols and UDP ports of each frame according to tshark.
fn fields_of_tshark(cases: &[Case]) -> Option<Vec<(String, String)>> {
    let path = std::env::temp_dir().join(format!("flowgauge-rare-links-{}.pcapng", std::process::id()));
    let mut writer = PcapngWriter::new(std::fs::File::create(&path).expect("a file")).expect("a header");
    for (number, case) in (1..).zip(cases) {
        let frame = Frame::ethernet(Timestamp::from_parts(number, 0), &case.frame);
        writer.write(&frame, &[]).expect("a frame");
    }
    writer.finish().expect("a complete file");
    let output = Command::new("tshark")
        .args(["-n", "-d", "udp.port==7932,hp_erm", "-T", "fields", "-e", "frame.protocols"])
        .args(["-e", "udp.srcport", "-r"])
        .arg(&path)
        .output();
    std::fs::remove_file(&path).expect("a file of our own");
    let lines = String::from_utf8(output.ok()?.stdout).expect("text");
    let fields = |line: &str| line.split_once('\t').map(|(left, right)| (left.to_owned(), right.to_owned()));
    Some(lines.lines().filter_map(fields).collect())
}

#[test]
fn tshark_finds_the_packet_in_the_same_frames() {
    let cases = cases();
    let Some(fields) = fields_of_tshark(&cases) else {
        assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
        println!("skipped: tshark is not installed");
        return;
    };
    assert_eq!(fields.len(), cases.len());
    for (case, (protocols, ports)) in cases.iter().zip(fields) {
        let is_found = ports.split(',').next_back() == Some("1000");
        assert_eq!(is_found, case.is_read_by_tshark, "{}: {protocols} {ports}", case.name);
    }
}

#[test]
fn what_is_no_tunnel_belongs_to_the_outer_flow() {
    let (packet, bridged) = (inner(), inner_ethernet(&inner()));
    let random: Vec<u8> = (0..60_u8).map(|octet| octet.wrapping_mul(37) ^ 0x5a).collect();
    for port in [37_008, 4341, 4754, 7932, 5072, 5247, 2152] {
        assert_not_decapsulated(&in_udp(port, &random));
        assert_not_decapsulated(&in_ip(17, &udp(port, 40_000, &random)));
    }
    // By source port only those are recognized whose servers answer from their port.
    let lisp = join(&[&[0x08, 0, 0, 0, 0, 0, 0x0b, 0], &packet]);
    assert_not_decapsulated(&in_ip(17, &udp(4341, 9, &lisp)));
    assert_not_decapsulated(&in_ip(17, &udp(37_008, 9, &join(&[&[1, 0, 0, 1, 1], &bridged]))));
    // LISP and AYIYA with an inner length beyond the outer one, or no packet.
    let mut long = join(&[&[0x08, 0, 0, 0, 0, 0, 0x0b, 0], &packet]);
    long[8 + 3] += 1;
    long[8 + 10] = 0xff;
    assert_not_decapsulated(&in_udp(4341, &long));
    assert_not_decapsulated(&in_udp(5072, &ayiya(2, 41, &inner_ipv6())));
    assert_not_decapsulated(&in_udp(5072, &ayiya(1, 59, &[])));
    // CAPWAP: a fragment, a keepalive, DTLS, a frame of another binding.
    assert_not_decapsulated(&capwap([0, 0x80], 8, &bridged));
    assert_not_decapsulated(&capwap([0, 0x08], 8, &bridged));
    assert_not_decapsulated(&in_udp(5247, &join(&[&[1, 0, 0, 0], &bridged])));
    assert_not_decapsulated(&in_udp(5247, &join(&[&[0, 0x10, 0x45, 0, 0, 0, 0, 0], &wireless(&packet)])));
    // ARP in a mirror session, and in a GTP-U tunnel.
    let arp = join(&[&bridged[..12], &[8, 6], &[0; 28]]);
    assert_not_decapsulated(&in_udp(37_008, &join(&[&[1, 0, 0, 1, 1], &arp])));
    assert_not_decapsulated(&in_udp(2152, &gtpu(0x30, &[], &arp)));
    // An unknown format of Arista is another protocol.
    let other = ethernet(0xd28b, &join(&[&[0, 1, 0, 0x30], &[0; 8], &[8, 0], &packet]));
    match walk(LinkType::ETHERNET, &other) {
        flowgauge::decode::link::Decapsulated::Unsupported(reason) => {
            assert_eq!(reason, Unsupported::EtherType(EtherType(0xd28b)));
        }
        other => panic!("{other:?}"),
    }
}

/// Returns an 802.11 frame that aggregates datagrams with these source ports, each in LLC; ARP for port zero.
fn aggregate(ports: &[u16], radio: &[u8]) -> Vec<u8> {
    let quality = join(&[&[0x88, 0x01, 0, 0], &[1; 6], &[2; 6], &[3; 6], &[0x10, 0, 0x80, 0]]);
    let mut data = join(&[radio, &quality]);
    let first = data.len();
    for port in ports {
        data.resize(first + (data.len() - first).next_multiple_of(4), 0);
        let mut packet = inner();
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        let protocol = if *port == 0 { [8, 6] } else { [8, 0] };
        let payload = join(&[&[0xaa, 0xaa, 3, 0, 0, 0], &protocol, &packet, &vec![0; usize::from(port % 3)]]);
        data.extend(join(&[&[4; 6], &[6; 6], &(payload.len() as u16).to_be_bytes(), &payload]));
    }
    data
}

fn wireless_frame(data: &[u8]) -> Frame<'_> {
    Frame { link_type: LinkType::IEEE802_11_RADIOTAP, ..Frame::ethernet(Timestamp::from_parts(1, 0), data) }
}

/// Returns the source port, packets and octets of each flow, and the counters; with shards if their count is not zero.
fn flows(frames: &[Vec<u8>], builder: &Builder, shard_count: usize) -> (Vec<(u16, u64, u64)>, PipelineStats) {
    let mut is_read = false;
    let mut source = FnSource(|batch: &mut FrameBatch| {
        if std::mem::replace(&mut is_read, true) {
            return Ok(Next::End(End::Complete));
        }
        frames.iter().for_each(|data| batch.push(&wireless_frame(data)));
        Ok(Next::Frames)
    });
    let mut lists: Vec<Vec<FlowRecord>> = vec![Vec::new(); shard_count.max(1)];
    let mut sinks: Vec<_> = lists.iter_mut().map(|list| Records::new(|record| list.push(record))).collect();
    let options = RunOptions::default();
    let stats = if shard_count == 0 {
        let mut pipeline = builder.build(sinks.remove(0)).expect("a valid configuration");
        pipeline.run(&mut source, &options).expect("no failure").stats
    } else {
        builder.run_shards(&mut sinks, &mut source, &options).expect("no failure").stats
    };
    drop(sinks);
    // Either side may be the initiator.
    let client_port = |record: &FlowRecord| record.source_port().min(record.destination_port());
    let flow = |record: &FlowRecord| {
        (client_port(record).unwrap_or_default(), record.packet_count(), record.octet_count())
    };
    let mut flows: Vec<_> = lists.iter().flatten().map(flow).collect();
    flows.sort_unstable();
    (flows, stats)
}

#[test]
fn each_part_of_an_aggregate_is_a_packet() {
    let radio = [0, 0, 8, 0, 0, 0, 0, 0];
    let frames = [aggregate(&[1000, 1001, 1002], &radio), aggregate(&[1001, 0, 1003], &radio)];
    let whole_len: u64 = frames.iter().map(|data| data.len() as u64).sum();
    for shard_count in [0, 1, 3] {
        for is_kept in [false, true] {
            let (flows, stats) = flows(&frames, &Pipeline::builder().encapsulation(is_kept), shard_count);
            let counts: Vec<_> = flows.iter().map(|(port, packets, _)| (*port, *packets)).collect();
            assert_eq!(counts, [(1000, 1), (1001, 2), (1002, 1), (1003, 1)]);
            // ARP is the only part that counts for no flow.
            let octets: u64 = flows.iter().map(|(_, _, octets)| octets).sum();
            let arp_len = (14 + 8 + inner().len() as u64).next_multiple_of(4);
            assert_eq!(octets, whole_len - arp_len);
            assert_eq!((stats.frame_count, stats.octet_count, stats.aggregated_count), (2, whole_len, 4));
            assert_eq!((stats.tracker.packet_count, stats.skipped.total()), (5, 1));
        }
    }
}

#[test]
fn lengths_of_parts_add_up_to_that_of_the_frame() {
    let data = aggregate(&[1000, 1001, 1002], &[0, 0, 8, 0, 0, 0, 0, 0]);
    let last_len = 14 + 8 + inner().len();
    for len in 0..=data.len() {
        let frame = Frame { wire_len: data.len() as u32, ..wireless_frame(&data[..len]) };
        let Some(parts) = aggregated(&frame) else {
            assert!(len < 8 + 26 + 14, "{len}");
            continue;
        };
        let parts: Vec<_> = parts.collect();
        assert_eq!(parts.iter().map(|part| part.wire_len as usize).sum::<usize>(), data.len(), "{len}");
        assert!(parts.iter().all(|part| part.data.len() >= 14 && part.link_type == LinkType::ETHERNET));
        let whole = if len == data.len() { 3 } else { parts.len() };
        assert_eq!(parts.len(), whole);
        assert_eq!(
            Extractor::default().extract(&frame).err(),
            Some(Skip::Unsupported(Unsupported::WlanAggregate))
        );
        if let [.., last] = &parts[..]
            && len == data.len()
        {
            assert_eq!(last.data.len(), last_len);
            assert_eq!(
                Extractor::default().extract(last).map(|packet| packet.payload().to_vec()),
                Ok(vec![1, 2, 3, 4])
            );
        }
    }
    // A check sequence behind a single part is no part.
    let single = [&aggregate(&[1000], &[0, 0, 8, 0, 0, 0, 0, 0])[..], &[9; 4]].concat();
    assert!(aggregated(&wireless_frame(&single)).is_none());
    assert!(Extractor::default().extract(&wireless_frame(&single)).is_ok());
    assert!(aggregated(&Frame::ethernet(Timestamp::ZERO, &data)).is_none());
}
