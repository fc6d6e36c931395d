//! Recognition of protocols without a parser, each in a capture that contains it.

use std::collections::BTreeMap;

use super::{applications, corpus};

/// A protocol, a capture, and the number of flows with the protocol. The number comes from tshark (display filters such
/// as `db-lsp-disc`, counted by stream) or, if it has no dissector, from the suite that contains the capture.
const KNOWN: &[(&str, &str, usize)] = &[
    ("bacnet", "zeek/q-in-q.pcap", 1),
    ("bgp", "arkime/cloudshark-bgp-md5.pcap", 1),
    // One flow of DHT and one of uTP.
    ("bittorrent", "nDPI/bittorrent_utp.pcap", 2),
    // Four of these flows use a port of Dropbox, which tshark reports instead.
    ("coap", "nDPI/coap_mqtt.pcap", 12),
    ("dcerpc", "arkime/imap.pcap", 2),
    ("dhcp", "merged/iot-public.pcap", 13),
    ("dhcpv6", "nDPI/1kxun.pcap", 3),
    ("dnp3", "nDPI/dnp3.pcap", 8),
    ("dropbox", "nDPI/tor.pcap", 1),
    ("enip", "suricata-verify/enip-alert/enip_test1.pcap", 1),
    ("iec104", "nDPI/iec60780-5-104.pcap", 6),
    ("imap", "arkime/imap.pcap", 1),
    ("ipsec", "nDPI/ah.pcapng", 1),
    // ESP as a protocol of IP.
    ("ipsec", "arkime/ah-esp.pcap", 1),
    ("irc", "suricata-verify/irc/input.pcap", 1),
    ("kerberos", "zeek/krb/optional-service-name.pcap", 1),
    ("ldap", "zeek/ldap/ldap-who-am-i.pcap", 1),
    ("modbus", "nDPI/modbus.pcap", 1),
    ("mqtt", "ipfixprobe/mqtt.pcap", 5),
    ("mysql", "nDPI/mysql.pcapng", 2),
    ("nbdgm", "nDPI/1kxun.pcap", 2),
    ("nbns", "nDPI/1kxun.pcap", 6),
    ("netflow", "scapy/netflowv9.pcap", 2),
    ("ntp", "merged/iot-public.pcap", 329),
    ("openflow", "tcpdump/of13_ericsson.pcapng", 20),
    ("openvpn", "mercury/unit_tests/pcaps/openvpn_tcp_single.pcap", 1),
    ("pop3", "nDPI/pop3_stls.pcap", 1),
    ("radius", "libtrace/test/traces/radius.pcap", 2),
    ("rdp", "zeek/rdp/rdpeudp-handshake-success.pcap", 1),
    ("redis", "zeek/redis/pubsub.pcap", 4),
    ("rtcp", "nDPI/sip.pcap", 1),
    ("rtp", "nDPI/sip.pcap", 1),
    ("rtsp", "nDPI/rtsp.pcap", 7),
    ("sip", "nDPI/sip.pcap", 2),
    ("smb", "arkime/smb-smb1-ascii.pcap", 1),
    ("smb", "arkime/wireshark-smb-on-windows10.pcap", 8),
    ("snmp", "nDPI/snmp.pcap", 17),
    ("someip", "nDPI/someip_sd_sample.pcap", 2),
    ("spotify", "nDPI/whatsapp_login_chat.pcap", 1),
    ("ssdp", "merged/iot-public.pcap", 108),
    ("stun", "merged/iot-public.pcap", 28),
    ("syslog", "tcpdump/syslog_udp.pcap", 3),
    ("tftp", "merged/iot-public.pcap", 3),
    ("tftp", "wireshark/tools/dftestfiles/tftp.pcap", 1),
    ("whatsapp", "nDPI/whatsapp_login_chat.pcap", 1),
    ("wireguard", "mercury/unit_tests/pcaps/openvpn_tcp_single.pcap", 1),
    ("wireguard", "nDPI/wireguard.pcap", 2),
];

#[test]
fn each_protocol_is_recognized_in_a_capture_that_contains_it() {
    let Some(captures) = corpus::captures() else { return };
    let mut found = BTreeMap::<(&str, String), usize>::new();
    for capture in &captures {
        for named in applications::of(&capture.path()) {
            if let Some((name, "content")) = named.application {
                *found.entry((name, capture.name.clone())).or_default() += 1;
            }
        }
    }
    for ((name, capture), count) in &found {
        println!("{name} {count} {capture}");
    }
    let mut failures = Vec::new();
    for (name, capture, expected) in KNOWN {
        let count = found.get(&(*name, (*capture).to_owned())).copied().unwrap_or_default();
        if count != *expected {
            failures.push(format!("{name} in {capture}: {count} flows, not {expected}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
