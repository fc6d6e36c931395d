//! Names of protocols in events.

use std::borrow::Cow;

use crate::base::IpProtocol;

/// Returns EVE's name of an IP protocol.
pub(super) fn ip_name(protocol: IpProtocol) -> Cow<'static, str> {
    match protocol.0 {
        1 => "ICMP".into(),
        2 => "IGMP".into(),
        6 => "TCP".into(),
        17 => "UDP".into(),
        47 => "GRE".into(),
        50 => "ESP".into(),
        51 => "AH".into(),
        58 => "IPv6-ICMP".into(),
        132 => "SCTP".into(),
        number => number.to_string().into(),
    }
}

/// Returns EVE's name of an application protocol; `None` for those that Suricata does not know.
pub(super) fn application_name(name: &str) -> Option<&'static str> {
    const SAME: [&str; 24] = [
        "dcerpc", "dhcp", "dnp3", "dns", "enip", "ftp", "http", "http2", "imap", "ldap", "mdns", "modbus",
        "mqtt", "nfs", "ntp", "pop3", "quic", "rdp", "sip", "smb", "smtp", "snmp", "ssh", "telnet",
    ];
    Some(match name {
        "ftp_data" => "ftp-data",
        "ipsec" => "ike",
        "kerberos" => "krb5",
        "postgresql" => "pgsql",
        "vnc" => "rfb",
        "irc" => "irc",
        "tftp" => "tftp",
        "tls" => "tls",
        "websocket" => "websocket",
        other => return SAME.into_iter().find(|name| *name == other),
    })
}
