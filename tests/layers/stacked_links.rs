//! Each pair of link headers and tunnels, one within the other, leads to the inner packet. tshark is asked for the same
//! frames.

use std::process::Command;

use flowgauge::base::{Frame, HeaderKind, LinkType, Timestamp};
use flowgauge::source::PcapngWriter;

use crate::decapsulation::{assert_decapsulated, ethernet, in_ip, in_udp, inner, join};

/// Length of the header of Ethernet in octets.
const ETHERNET_LEN: usize = 14;

const IPV4: u16 = 0x0800;

/// What follows an EtherType.
#[derive(Clone)]
struct Typed {
    ether_type: u16,
    payload: Vec<u8>,
}

impl Typed {
    fn new(ether_type: u16, payload: &[&[u8]]) -> Self {
        Self { ether_type, payload: join(payload) }
    }

    /// The EtherType, and what follows it.
    fn with_type(&self) -> Vec<u8> {
        join(&[&self.ether_type.to_be_bytes(), &self.payload])
    }

    fn bridged(&self) -> Vec<u8> {
        ethernet(self.ether_type, &self.payload)
    }
}

/// A header, or the headers of a tunnel.
struct Layer {
    name: &'static str,
    headers: &'static [(HeaderKind, u32)],
    /// Returns the header with its content; `None` for content that it cannot have.
    wrap: fn(&Typed) -> Option<Typed>,
}

/// A tag of an EtherType: its octets, and the next EtherType.
fn tag(ether_type: u16, octets: &[u8], inner: &Typed) -> Option<Typed> {
    Some(Typed::new(ether_type, &[octets, &inner.with_type()]))
}

/// An IPv4 packet, which is in a frame.
fn outer(frame: &[u8]) -> Option<Typed> {
    Some(Typed::new(IPV4, &[&frame[ETHERNET_LEN..]]))
}

/// A datagram to a port of a tunnel with these octets of a header.
fn tunnel(port: u16, header: &[u8], payload: &[u8]) -> Option<Typed> {
    outer(&in_udp(port, &join(&[header, payload])))
}

fn layers() -> Vec<Layer> {
    use HeaderKind::{
        AristaTime, CiscoMetadata, Eoip, Ethernet, FabricPath, Geneve, Gre, GtpU, Hsr, Ip, Lisp, Macsec,
        Mpls, Nsh, Pppoe, ProviderBackbone, RedundancyTag, TimeTag, Trill, Tzsp, Vlan, Vxlan,
    };
    let layer = |name, headers, wrap| Layer { name, headers, wrap };
    vec![
        layer("VLAN", &[(Vlan, 5)], |inner| tag(0x8100, &[0, 5], inner)),
        layer("S-VLAN", &[(Vlan, 6)], |inner| tag(0x88a8, &[0, 6], inner)),
        layer("TTag", &[(TimeTag, 0)], |inner| tag(0x8988, &[0x65, 0x53, 0xf1, 0, 0, 5], inner)),
        layer("MetaData", &[(CiscoMetadata, 5)], |inner| tag(0x8909, &[1, 1, 0, 1, 0, 5], inner)),
        layer("HSR", &[(Hsr, 0)], |inner| tag(0x892f, &[0x10, 0x2a, 0, 1], inner)),
        layer("R-TAG", &[(RedundancyTag, 0)], |inner| tag(0xf1c1, &[0, 0, 0, 1], inner)),
        layer("time of Arista", &[(AristaTime, 0)], |inner| {
            tag(0xd28b, &[0, 1, 0, 0x10, 0x65, 0x53, 0xf1, 0, 0, 0, 0, 5], inner)
        }),
        layer("MACsec", &[(Macsec, 0)], |inner| {
            Some(Typed::new(0x88e5, &[&[0, 0, 0, 0, 0, 1], &inner.with_type(), &[0xcc; 16]]))
        }),
        layer("FabricPath", &[(FabricPath, 17), (Ethernet, 0)], |inner| {
            Some(Typed::new(0x8903, &[&[0x04, 0x60], &inner.bridged()]))
        }),
        layer("TRILL", &[(Trill, 0x1_0002), (Ethernet, 0)], |inner| {
            Some(Typed::new(0x22f3, &[&[0, 5, 0, 1, 0, 2], &inner.bridged()]))
        }),
        layer("PBB", &[(ProviderBackbone, 0x1_0203), (Ethernet, 0)], |inner| {
            Some(Typed::new(0x88e7, &[&[0, 1, 2, 3], &inner.bridged()]))
        }),
        layer("MPLS", &[(Mpls, 16)], |inner| {
            (inner.ether_type == IPV4).then(|| Typed::new(0x8847, &[&[0, 1, 1, 64], &inner.payload]))
        }),
        layer("pseudowire", &[(Mpls, 17), (Ethernet, 0)], |inner| {
            Some(Typed::new(0x8847, &[&[0, 1, 0x11, 64], &[0; 4], &inner.bridged()]))
        }),
        layer("pseudowire without a control word", &[(Mpls, 18), (Ethernet, 0)], |inner| {
            Some(Typed::new(0x8847, &[&[0, 1, 0x21, 64], &inner.bridged()]))
        }),
        layer("PPPoE", &[(Pppoe, 9)], |inner| {
            let len = (2 + inner.payload.len() as u16).to_be_bytes();
            let header = [0x11, 0, 0, 9, len[0], len[1], 0, 0x21];
            (inner.ether_type == IPV4).then(|| Typed::new(0x8864, &[&header, &inner.payload]))
        }),
        layer("NSH", &[(Nsh, 0x203), (Ethernet, 0)], |inner| {
            // Without metadata, to an Ethernet frame (RFC 8300 section 2.2).
            Some(Typed::new(0x894f, &[&[0x0f, 0xc2, 2, 3, 0, 2, 3, 255], &inner.bridged()]))
        }),
        layer("IP in IP", &[(Ip, 0)], |inner| {
            (inner.ether_type == IPV4).then(|| outer(&in_ip(4, &inner.payload)))?
        }),
        layer("GRE", &[(Ip, 0), (Gre, 0)], |inner| outer(&in_ip(47, &join(&[&[0, 0], &inner.with_type()])))),
        layer("GRE with Ethernet", &[(Ip, 0), (Gre, 0), (Ethernet, 0)], |inner| {
            outer(&in_ip(47, &join(&[&[0, 0, 0x65, 0x58], &inner.bridged()])))
        }),
        layer("GRE in UDP", &[(Ip, 0), (Gre, 0)], |inner| tunnel(4754, &[0, 0], &inner.with_type())),
        layer("EoIP", &[(Ip, 0), (Eoip, 7), (Ethernet, 0)], |inner| {
            let frame = inner.bridged();
            let len = (frame.len() as u16).to_be_bytes();
            outer(&in_ip(47, &join(&[&[0x20, 1, 0x64, 0, len[0], len[1], 7, 0], &frame])))
        }),
        layer("VXLAN", &[(Ip, 0), (Vxlan, 42), (Ethernet, 0)], |inner| {
            tunnel(4789, &[8, 0, 0, 0, 0, 0, 42, 0], &inner.bridged())
        }),
        layer("GENEVE", &[(Ip, 0), (Geneve, 42), (Ethernet, 0)], |inner| {
            tunnel(6081, &[0, 0, 0x65, 0x58, 0, 0, 42, 0], &inner.bridged())
        }),
        layer("LISP", &[(Ip, 0), (Lisp, 11)], |inner| {
            let header = [0x08, 0, 0, 0, 0, 0, 0x0b, 0];
            (inner.ether_type == IPV4).then(|| tunnel(4341, &header, &inner.payload))?
        }),
        layer("GTP-U", &[(Ip, 0), (GtpU, 77)], |inner| {
            let len = (inner.payload.len() as u16).to_be_bytes();
            let header = [0x30, 255, len[0], len[1], 0, 0, 0, 77];
            (inner.ether_type == IPV4).then(|| tunnel(2152, &header, &inner.payload))?
        }),
        layer("TZSP", &[(Ip, 0), (Tzsp, 0), (Ethernet, 0)], |inner| {
            tunnel(37_008, &[1, 0, 0, 1, 1], &inner.bridged())
        }),
    ]
}

/// Layers that are tags before an EtherType.
const TAGS: [&str; 8] = ["VLAN", "S-VLAN", "TTag", "MetaData", "HSR", "R-TAG", "time of Arista", "MACsec"];

/// Returns whether tshark goes on from one layer to another. It reads FabricPath in a frame only, before its VLAN tags, and
/// few EtherTypes in GRE.
fn is_read_by_tshark(outer: &str, inner: &str) -> bool {
    let is_gre = matches!(outer, "GRE" | "GRE in UDP");
    let is_in_gre = !TAGS.contains(&inner) && !matches!(inner, "FabricPath" | "TRILL" | "PBB" | "PPPoE");
    let is_frame = !TAGS.contains(&outer) && outer != "PBB" || outer.ends_with("VLAN");
    (!is_gre || is_in_gre) && (inner != "FabricPath" || is_frame)
}

/// A frame with two layers, and the headers around its packet.
struct Pair {
    name: String,
    is_read_by_tshark: bool,
    frame: Vec<u8>,
    headers: Vec<(HeaderKind, u32)>,
}

fn pairs() -> Vec<Pair> {
    let layers = layers();
    let packet = Typed::new(IPV4, &[&inner()]);
    let all = layers.iter().flat_map(|outer| layers.iter().map(move |inner| (outer, inner)));
    let pair = |(outer, inner): (&Layer, &Layer)| {
        let content = (outer.wrap)(&(inner.wrap)(&packet)?)?;
        let name = format!("{} in {}", inner.name, outer.name);
        let is_read_by_tshark = is_read_by_tshark(outer.name, inner.name);
        Some(Pair {
            name,
            is_read_by_tshark,
            frame: content.bridged(),
            headers: [outer.headers, inner.headers].concat(),
        })
    };
    all.filter_map(pair).collect()
}

#[test]
fn pairs_of_headers_lead_to_the_inner_packet() {
    let pairs = pairs();
    for Pair { name, frame, headers, .. } in &pairs {
        println!("{name}");
        assert_decapsulated(LinkType::ETHERNET, frame, headers);
    }
    assert!(pairs.len() > 500, "{}", pairs.len());
}

/// Returns the last UDP port of each frame, and its protocols, according to tshark.
fn of_tshark(pairs: &[Pair]) -> Option<Vec<(String, String)>> {
    let path = std::env::temp_dir().join(format!("flowgauge-stacked-links-{}.pcapng", std::process::id()));
    let mut writer = PcapngWriter::new(std::fs::File::create(&path).expect("a file")).expect("a header");
    for (number, pair) in (1..).zip(pairs) {
        writer.write(&Frame::ethernet(Timestamp::from_parts(number, 0), &pair.frame), &[]).expect("a frame");
    }
    writer.finish().expect("a complete file");
    let output = Command::new("tshark")
        .args([
            "-n",
            "-d",
            "mpls.label==17,pwethcw",
            "-d",
            "mpls.label==18,pwethnocw",
            "-T",
            "fields",
            "-e",
            "udp.srcport",
            "-e",
            "frame.protocols",
            "-r",
        ])
        .arg(&path)
        .output();
    std::fs::remove_file(&path).expect("a file of our own");
    let lines = String::from_utf8(output.ok()?.stdout).expect("text");
    let fields = lines.lines().filter_map(|line| line.split_once('\t'));
    Some(fields.map(|(ports, protocols)| (ports.to_owned(), protocols.to_owned())).collect())
}

#[test]
fn tshark_finds_the_packet_in_the_same_pairs() {
    let pairs = pairs();
    let Some(found) = of_tshark(&pairs) else {
        assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
        println!("skipped: tshark is not installed");
        return;
    };
    assert_eq!(found.len(), pairs.len());
    for (pair, (ports, protocols)) in pairs.iter().zip(&found) {
        let is_found = ports.split(',').next_back() == Some("1000");
        assert_eq!(is_found, pair.is_read_by_tshark, "{}: {protocols} {ports}", pair.name);
    }
}
