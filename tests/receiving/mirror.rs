//! Frames inside datagrams of mirror sessions.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, SystemTime};

use flowgauge::base::{FrameBatch, Limits, LinkType};
use flowgauge::source::{
    DatagramSocket, End, Error, MirrorConfig, MirrorEncapsulation, MirrorSource, Next, Source, SourceConfig,
};
use flowgauge::{StopHandle, Timestamp};

use super::{OwnedFrame, frames_of, read_until, totals};

fn source(encapsulation: MirrorEncapsulation) -> (MirrorSource, UdpSocket) {
    source_with(encapsulation, MirrorConfig::default())
}

fn source_with(encapsulation: MirrorEncapsulation, config: MirrorConfig) -> (MirrorSource, UdpSocket) {
    let source = MirrorSource::udp("127.0.0.1:0", encapsulation, config).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.connect(source.local_addr().unwrap()).unwrap();
    (source, sender)
}

/// Sends frames behind a header in small groups, and receives each group before the next is sent.
fn receive(encapsulation: MirrorEncapsulation, header: &[u8], frames: &[OwnedFrame]) -> Vec<OwnedFrame> {
    let (mut source, sender) = source(encapsulation);
    let mut received = Vec::new();
    for group in frames.chunks(16) {
        for frame in group {
            sender.send(&[header, &frame.data].concat()).unwrap();
        }
        received.extend(read_until(&mut source, |frames, _| frames.len() >= group.len()));
    }
    assert_eq!(source.stats().frame_count, frames.len() as u64);
    assert_eq!(source.stats().kernel_drop_count + source.stats().invalid_datagram_count, 0);
    received
}

/// Headers as the RFCs draw them, with the name of the interface that they lead to.
const HEADERS: [(MirrorEncapsulation, &[u8], &str); 9] = [
    (MirrorEncapsulation::Vxlan, &[8, 0, 0, 0, 0, 1, 0x2c, 0], "vxlan-300"),
    (MirrorEncapsulation::VxlanGpe, &[0x0c, 0, 0, 3, 0, 0, 5, 0], "vxlan-gpe-5"),
    (MirrorEncapsulation::Geneve, &[1, 0, 0x65, 0x58, 0, 0, 9, 0, 1, 2, 3, 0], "geneve-9"),
    (MirrorEncapsulation::Tzsp, &[1, 0, 0, 1, 10, 1, 0xd0, 1], "tzsp"),
    (MirrorEncapsulation::Gre, &[0, 0, 0x65, 0x58], "gre"),
    (MirrorEncapsulation::Gre, &[0x20, 0, 0x65, 0x58, 0, 0, 7, 1], "gre-7"),
    (MirrorEncapsulation::Gre, &[0, 0, 0x88, 0xbe], "gre"),
    (MirrorEncapsulation::Gre, &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 4, 0, 0, 0, 2], "gre-4"),
    (
        MirrorEncapsulation::Gre,
        &[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0],
        "gre-4",
    ),
];

#[test]
fn frames_of_each_encapsulation_give_the_flows_of_the_capture() {
    let frames = frames_of("dns.pcap");
    let expected = totals(&frames);
    let now = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64;
    for (encapsulation, header, _) in HEADERS {
        let start = now();
        let received = receive(encapsulation, header, &frames);
        assert!(received.iter().all(|frame| (start..=now()).contains(&frame.timestamp)), "{encapsulation}");
        assert!(received.iter().zip(&frames).all(|(received, sent)| received.data == sent.data));
        assert_eq!(totals(&received), expected, "{encapsulation}");
    }
}

/// Needs root, as the raw socket does.
#[cfg(target_os = "linux")]
#[test]
fn frames_in_gre_directly_over_ip_give_the_flows_of_the_capture() {
    use socket2::{Domain, Protocol, Socket, Type};
    for address in ["127.0.0.1", "::1"] {
        let address = SocketAddr::new(address.parse().unwrap(), 0);
        let mut source = match MirrorSource::gre(address.ip(), MirrorConfig::default()) {
            Ok(source) => source,
            Err(Error::Permission { name }) => return println!("skipped: no permission for {name}"),
            Err(error) => panic!("{error}"),
        };
        let gre = Some(Protocol::from(47));
        let sender = Socket::new(Domain::for_address(address), Type::from(3), gre).unwrap();
        let frames = frames_of("dns.pcap");
        let mut received = Vec::new();
        for group in frames.chunks(16) {
            for frame in group {
                let header = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 4, 0, 0, 0, 2];
                sender.send_to(&[&header[..], &frame.data].concat(), &address.into()).unwrap();
            }
            received.extend(read_until(&mut source, |frames, _| frames.len() >= group.len()));
        }
        assert_eq!(totals(&received), totals(&frames));
        assert_eq!(source.interfaces()[0].name.as_deref(), Some("gre-4"));
    }
}

#[test]
fn each_session_is_an_interface() {
    for (encapsulation, header, name) in HEADERS {
        let (mut source, sender) = source(encapsulation);
        sender.send(&[header, &[0; 60]].concat()).unwrap();
        read_until(&mut source, |frames, _| frames.len() == 1);
        let interface = &source.interfaces()[0];
        assert_eq!((interface.name.as_deref(), interface.link_type), (Some(name), LinkType::ETHERNET));
        let address = source.local_addr().unwrap();
        assert_eq!(interface.description, Some(format!("udp {address}")));
    }
    let (mut source, sender) = source(MirrorEncapsulation::Vxlan);
    for vni in [1, 2, 1, 3] {
        sender.send(&[&[8, 0, 0, 0, 0, 0, vni, 0][..], &[0; 60]].concat()).unwrap();
    }
    let frames = read_until(&mut source, |frames, _| frames.len() == 4);
    assert_eq!(frames.iter().map(|frame| frame.interface).collect::<Vec<_>>(), [0, 1, 0, 2]);
}

#[test]
fn ip_packets_and_truncated_frames_keep_their_type_and_length() {
    let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    for (encapsulation, header) in [
        (MirrorEncapsulation::Geneve, &[0, 0, 8, 0, 0, 0, 1, 0][..]),
        (MirrorEncapsulation::Gre, &[0, 0, 8, 0]),
        (MirrorEncapsulation::VxlanGpe, &[0x0c, 0, 0, 1, 0, 0, 1, 0]),
    ] {
        let (mut source, sender) = source(encapsulation);
        sender.send(&[header, &packet].concat()).unwrap();
        assert_eq!(read_until(&mut source, |frames, _| frames.len() == 1)[0].data, packet);
        assert_eq!(source.interfaces()[0].link_type, LinkType::RAW);
    }
    let (mut source, sender) = source(MirrorEncapsulation::Tzsp);
    sender.send(&[&[1, 0, 0, 1, 41, 2, 5, 0xdc, 1][..], &[0; 60]].concat()).unwrap();
    assert_eq!(read_until(&mut source, |frames, _| frames.len() == 1)[0].wire_len, 1500);
    assert_eq!(source.stats().truncated_frame_count, 1);
}

#[test]
fn datagrams_without_a_frame_are_counted() {
    for (encapsulation, header, _) in HEADERS {
        let (mut source, sender) = source(encapsulation);
        // Truncated headers, and headers without a frame.
        for len in 0..=header.len() {
            sender.send(&header[..len]).unwrap();
        }
        sender.send(&[0xff; 200]).unwrap();
        let expected = header.len() as u64 + 2;
        read_until(&mut source, |_, source| {
            source.stats().invalid_datagram_count + source.stats().frame_count == expected
        });
        // Any octets are a frame behind the flags of VXLAN.
        let is_vxlan = encapsulation == MirrorEncapsulation::Vxlan;
        assert_eq!(source.stats().frame_count, u64::from(is_vxlan), "{encapsulation}");
    }
}

#[test]
fn sessions_beyond_the_limit_share_an_interface() {
    let mut limits = Limits::DEFAULT;
    limits.interface_count_max = 4;
    let mut config = MirrorConfig::default();
    config.source = SourceConfig::from(limits);
    let (mut source, sender) = source_with(MirrorEncapsulation::Vxlan, config);
    for vni in 0..20 {
        sender.send(&[&[8, 0, 0, 0, 0, 0, vni, 0][..], &[0; 60]].concat()).unwrap();
    }
    let frames = read_until(&mut source, |frames, _| frames.len() == 20);
    assert_eq!(source.interfaces().len(), 4);
    assert!(frames[3..].iter().all(|frame| frame.interface == 3));
    assert_eq!(source.interfaces()[3].name, None);
}

#[test]
fn an_idle_source_returns_the_time_and_ends_at_its_stop_handle() {
    let stop = StopHandle::new();
    let mut config = MirrorConfig::default();
    config.source.stop = Some(stop.clone());
    let (mut source, _sender) = source_with(MirrorEncapsulation::Vxlan, config);
    let mut batch = FrameBatch::new();
    let Next::Idle(time) = source.next_batch(&mut batch).unwrap() else { panic!("nothing was sent") };
    assert!(time > Timestamp::from_parts(1_600_000_000, 0));
    stop.stop();
    assert_eq!(source.next_batch(&mut batch).unwrap(), Next::End(End::Stopped));
}

#[test]
fn a_port_in_use_is_an_error_that_names_it() {
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let error = MirrorSource::udp(address, MirrorEncapsulation::Vxlan, MirrorConfig::default()).unwrap_err();
    assert!(error.to_string().starts_with(&format!("udp {address}: ")), "{error}");
    let unknown = "fd00::1".parse().unwrap();
    let error = MirrorSource::gre(unknown, MirrorConfig::default()).unwrap_err();
    assert!(error.to_string().starts_with("gre fd00::1: "), "{error}");
}

/// Every datagram that was sent is received or counted as dropped once another one follows the loss.
#[cfg(target_os = "linux")]
#[test]
fn datagrams_that_the_kernel_drops_are_counted() {
    let mut socket = DatagramSocket::bind("127.0.0.1:0", 1).unwrap();
    assert!(socket.buffer_len().unwrap() < 1 << 16);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let payload = [7; 1000];
    (0..100).for_each(|_| assert_eq!(sender.send_to(&payload, address).unwrap(), 1000));
    let mut received_count = 0;
    let mut drain = |socket: &mut DatagramSocket| {
        let wait = Duration::from_millis(100);
        loop {
            let count = socket.receive(wait, |datagram| {
                assert_eq!((datagram.payload, datagram.sender), (&payload[..], sender.local_addr().unwrap()));
            });
            match count.unwrap() {
                0 => return received_count,
                count => received_count += count as u64,
            }
        }
    };
    let before = drain(&mut socket);
    assert!((1..100).contains(&before));
    sender.send_to(&payload, address).unwrap();
    let received_count = drain(&mut socket);
    assert_eq!(received_count, before + 1);
    assert_eq!(received_count + socket.drop_count(), 101);
}

#[test]
fn a_datagram_of_the_maximum_length_is_complete() {
    let mut socket = DatagramSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 1 << 20).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let payload = vec![3; 65_507];
    sender.send_to(&payload, socket.local_addr().unwrap()).unwrap();
    let mut lens = Vec::new();
    assert_eq!(
        socket.receive(Duration::from_secs(5), |datagram| lens.push(datagram.payload.len())).unwrap(),
        1
    );
    assert_eq!(lens, [65_507]);
}
