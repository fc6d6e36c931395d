//! NetFlow: version 5, and version 9 as tshark decodes it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use flowgauge::base::IpProtocol;
use flowgauge::ipfix::collector::{Collector, CollectorConfig};
use flowgauge::{FileSource, Flow, FlowRecord, Flows, Interest, Packet, Pipeline, RunOptions, Sink};

use super::collect;

/// A message of NetFlow version 5 with an HTTP connection and an ICMP echo request, as the format's description defines it.
fn version5() -> Vec<u8> {
    let mut message = Vec::new();
    message.extend(5_u16.to_be_bytes());
    message.extend(2_u16.to_be_bytes());
    // Uptime in milliseconds, seconds, nanoseconds, sequence number, engine, sampling.
    message.extend(100_000_u32.to_be_bytes());
    message.extend(1_700_000_000_u32.to_be_bytes());
    message.extend(500_000_000_u32.to_be_bytes());
    message.extend(42_u32.to_be_bytes());
    message.extend([0, 0, 0, 0]);
    for (ports, protocol, flags) in [([40_000_u16, 80], 6, 0x1b), ([0, 8 << 8], 1, 0)] {
        message.extend([192, 0, 2, 1, 192, 0, 2, 2, 0, 0, 0, 0]);
        message.extend([0, 3, 0, 4]);
        message.extend(10_u32.to_be_bytes());
        message.extend(5000_u32.to_be_bytes());
        message.extend(90_000_u32.to_be_bytes());
        message.extend(99_000_u32.to_be_bytes());
        message.extend(ports.into_iter().flat_map(u16::to_be_bytes));
        message.extend([0, flags, protocol, 0xb8]);
        message.extend([0xfc, 0, 0, 7, 0, 0, 0, 0]);
    }
    message
}

#[test]
fn version_5_has_the_fields_of_its_format() {
    let (records, stats) = collect([version5().as_slice()]);
    assert_eq!((records.len(), stats.malformed_message_count), (2, 0));
    let tcp = &records[0];
    assert_eq!((tcp.source_port(), tcp.destination_port()), (Some(40_000), Some(80)));
    assert_eq!(tcp.source_address(), Ipv4Addr::new(192, 0, 2, 1));
    assert_eq!((tcp.packet_count(), tcp.forward.counters.ip_octet_count), (10, 5000));
    // The message was sent when the uptime was 100 s, at 1,700,000,000.5 s.
    assert_eq!(tcp.start.as_nanos(), 1_699_999_990_500_000_000);
    assert_eq!(tcp.end.as_nanos(), 1_699_999_999_500_000_000);
    assert_eq!((tcp.forward.tcp_flags.0, tcp.forward.dscp, tcp.interface), (0x1b, Some(46), 3));
    let exported = tcp.exported.as_deref().unwrap();
    assert_eq!(
        (exported.egress_interface, exported.source_as, exported.destination_as),
        (Some(4), Some(64_512), Some(7))
    );
    assert_eq!(
        (exported.exporter_address, exported.observation_domain),
        (Some([192, 0, 2, 1].into()), Some(0))
    );
    let icmp = &records[1];
    assert_eq!((icmp.protocol(), icmp.icmp), (IpProtocol::ICMP, Some((8, 0))));
    assert_eq!(icmp.key.port(icmp.initiator), None);
}

#[test]
fn a_truncated_message_of_version_5_is_malformed() {
    let message = version5();
    let (records, stats) = collect([&message[..message.len() - 1]]);
    assert_eq!((records.len(), stats.malformed_message_count), (1, 1));
    let (_, stats) = collect([version5().as_slice(), version5().as_slice()]);
    assert_eq!(stats.reordered_message_count, 1, "the same sequence number again");
}

/// Collects the messages to a UDP port in a capture.
struct Collecting {
    collector: Collector,
    records: Vec<FlowRecord>,
}

impl Sink for Collecting {
    type State = ();
    type Stage = Flows;

    fn interest(&self) -> Interest {
        Interest::PACKETS
    }

    fn packet(&mut self, _: &mut Flow<'_, ()>, packet: &Packet<'_>) {
        let sender = (packet.key.address(packet.side), packet.key.port(packet.side).unwrap());
        let Self { collector, records } = self;
        collector.message(SocketAddr::from(sender), packet.payload(), packet.timestamp, |collected| {
            records.extend(collected.record().cloned());
        });
    }
}

/// The only capture of the corpus with exported flows.
#[test]
fn version_9_agrees_with_tshark_on_a_capture() {
    let Some(corpus) = std::env::var_os("FLOWGAUGE_CORPUS").map(PathBuf::from) else {
        return eprintln!("FLOWGAUGE_CORPUS is not set: the test is skipped");
    };
    let path = corpus.join("captures/scapy/netflowv9.pcap");
    let sink =
        Collecting { collector: Collector::new(CollectorConfig::default()).unwrap(), records: Vec::new() };
    let mut pipeline = Pipeline::builder().build(sink).unwrap();
    pipeline.run(&mut FileSource::open(&path).unwrap(), &RunOptions::default()).unwrap();
    let Collecting { collector, records } = pipeline.into_sink();
    assert_eq!(collector.stats().options_record_count, 1);

    let fields = ["cflow.srcaddr", "cflow.dstaddr", "cflow.packets", "cflow.protocol"];
    let output = Command::new("tshark")
        .args(["-n", "-r", path.to_str().unwrap(), "-d", "udp.port==2055,cflow", "-T", "fields"])
        .args(fields.iter().flat_map(|field| ["-e", field]))
        .output()
        .expect("tshark");
    let mut expected = Vec::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let columns: Vec<Vec<&str>> = line.split('\t').map(|column| column.split(',').collect()).collect();
        let [sources, destinations, packets, protocols] = columns.as_slice() else { continue };
        for (((source, destination), packets), protocol) in
            sources.iter().zip(destinations).zip(packets).zip(protocols)
        {
            if !source.is_empty() {
                expected.push(format!("{source} {destination} {packets} {protocol}"));
            }
        }
    }
    let found = records.iter().map(|record| {
        let addresses = (record.source_address(), record.destination_address());
        format!("{} {} {} {}", addresses.0, addresses.1, record.packet_count(), record.protocol().0)
    });
    let found: Vec<_> = found.collect();
    assert_eq!(found.len(), 24);
    assert_eq!(found, expected);
}
