//! Comparison of the rows of the protocols of the kit, and of some others, with the logs of Zeek, over captures of single protocols.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use flowgauge::base::Timestamp;
use flowgauge::protocols::{irc, kerberos, mqtt, nbdgm, nbns, ntp, radius, rtp, sip, stun};
use flowgauge::session::Lack;
use flowgauge::session::kit::{Kept, KitMessage};
use flowgauge::tracker::TrackerConfig;
use flowgauge::{FileSource, Message, Pipeline, RunOptions, Standard, on_message};

use super::corpus;
use super::zeek::{self, Row};

/// Returns the folder with captures of single protocols and the logs of Zeek for them, if there is one beside the corpus.
fn folder() -> Option<PathBuf> {
    let folder = corpus::root()?.join("../protocol-captures/zeek+zeek/testing/btest");
    folder.is_dir().then_some(folder)
}

/// Calls a function with each message of the kit in a capture, and the port of the client.
fn each(path: PathBuf, mut call: impl FnMut(&KitMessage<'_>, u16)) {
    let sink = on_message::<Standard>(|view, _, message| {
        if let Message::Kit(message) = message {
            call(message, view.key().port(view.initiator()).unwrap_or_default());
        }
    });
    let mut source = FileSource::open(path).expect("a capture");
    Pipeline::builder().build(sink).unwrap().run(&mut source, &RunOptions::default()).unwrap();
}

/// Returns the rows of a log as the values of these columns.
fn log(path: PathBuf, columns: &[&str]) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).expect("a log");
    let fields = text.lines().find_map(|line| line.strip_prefix("#fields\t")).expect("columns");
    let places: Vec<_> = columns
        .iter()
        .map(|column| fields.split('\t').position(|field| field == *column).expect("a column"))
        .collect();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let values: Vec<_> = line.split('\t').collect();
        places.iter().map(|place| values[*place].to_owned()).collect()
    })
    .collect()
}

/// Counts equal items.
fn counted<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeMap<T, i64> {
    let mut counts = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    counts
}

fn seconds(nanos: u64) -> String {
    // Zeek has times as floating-point numbers, and prints microseconds.
    format!("{:.6}", nanos as f64 / 1e9)
}

fn moment(time: Option<Timestamp>) -> String {
    seconds(time.map_or(0, Timestamp::as_nanos))
}

#[test]
fn exchanges_of_ntp_are_those_of_zeek() {
    let Some(folder) = folder() else { return println!("skipped: no captures of single protocols") };
    let columns = [
        "version",
        "mode",
        "stratum",
        "poll",
        "precision",
        "root_delay",
        "root_disp",
        "ref_id",
        "ref_time",
        "org_time",
        "rec_time",
        "xmt_time",
        "num_exts",
    ];
    for (capture, test) in [("misordered-ntp", "misordered-ntp"), ("ntp2", "ntp2"), ("NTP_sync", "ntp3")] {
        let log = log(folder.join(format!("Baseline/scripts.base.protocols.ntp.{test}/ntp.log")), &columns);
        let (mut rows, mut requests) = (Vec::new(), 0);
        each(folder.join(format!("Traces/ntp/{capture}.pcap")), |message, _| {
            let Some(row) = message.get::<ntp::Exchange>() else { return };
            let has_request = row.mode.0 == 4 && row.exchange.lacks != Some(Lack::Request);
            requests += i64::from(has_request) + i64::from(row.exchange.retransmission_count);
            let id = match row.reference_id {
                Some(id) => id.to_string(),
                None if row.stratum > 1 => "0.0.0.0".to_owned(),
                None => String::new(),
            };
            let [poll, precision, delay, dispersion] =
                [row.poll_interval, row.precision, row.root_delay, row.root_dispersion]
                    .map(|duration| seconds(duration.as_nanos() as u64));
            rows.push(vec![
                row.version.to_string(),
                row.mode.0.to_string(),
                row.stratum.to_string(),
                poll,
                precision,
                delay,
                dispersion,
                id,
                moment(row.reference_timestamp),
                moment(row.origin_timestamp),
                moment(row.receive_timestamp),
                moment(row.transmit_timestamp),
                row.extension_count.to_string(),
            ]);
        });
        // Requests that have a response are in its row.
        let of_clients = log.iter().filter(|row| row[1] == "3").count() as i64;
        let unanswered = rows.iter().filter(|row| row[1] == "3").count() as i64;
        assert_eq!(requests + unanswered, of_clients, "{capture}: requests");
        // Zeek pads identifiers with zeros, and has times as floating-point numbers, whose last digit may differ.
        let comparable = |row: &Vec<String>| {
            let mut row = row.clone();
            row[7] = row[7].trim_end_matches("\\x00").to_owned();
            row[8..12].iter_mut().for_each(|time| time.truncate(time.len() - 1));
            row
        };
        let others = |rows: &[Vec<String>]| counted(rows.iter().filter(|row| row[1] != "3").map(comparable));
        assert_eq!(others(&rows), others(&log), "{capture}");
        // Of the first one, the response was captured before its request.
        assert!(!rows.is_empty() && (capture != "misordered-ntp" || rows.len() == 1), "{capture}: {rows:?}");
    }
}

#[test]
fn control_and_private_messages_of_ntp_are_those_of_zeek() {
    let Some(folder) = folder() else { return println!("skipped: no captures of single protocols") };
    let logs = folder.join("Baseline/scripts.base.protocols.ntp.ntpmode67");
    let (mut control, mut private) = (Vec::new(), Vec::new());
    each(folder.join("Traces/ntp/ntpmode67.pcap"), |message, _| {
        if let Some(row) = message.get::<ntp::Control>() {
            let requests = 1 + row.exchange.retransmission_count;
            control.push((
                [
                    row.version.to_string(),
                    row.operation.0.to_string(),
                    row.sequence.to_string(),
                    row.association.to_string(),
                ],
                (requests, row.response_count),
            ));
        } else if let Some(row) = message.get::<ntp::Private>() {
            private.push((
                [row.version.to_string(), row.request_code.0.to_string(), row.implementation.to_string()],
                (1 + row.exchange.retransmission_count, row.response_count),
            ));
        }
    });
    let total =
        |counts: &[(u32, u32)]| counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    let of_log = |rows: &[Vec<String>], is_response: &dyn Fn(&[String]) -> bool| {
        let responses = rows.iter().filter(|row| is_response(row)).count() as u32;
        (rows.len() as u32 - responses, responses)
    };
    let log_of = |name: &str, columns: &[&str]| log(logs.join(name), columns);
    let rows = log_of("ntp_control.log", &["version", "op_code", "sequence", "association_id", "resp_bit"]);
    let counts: Vec<_> = control.iter().map(|(_, counts)| *counts).collect();
    assert_eq!(total(&counts), of_log(&rows, &|row| row[4] == "T"));
    let keys = rows.iter().map(|row| row[..4].to_vec()).collect::<std::collections::BTreeSet<_>>();
    assert!(control.iter().all(|(key, _)| keys.contains(&key[..])), "{control:?}");
    let rows = log_of("ntp_private.log", &["version", "req_code", "implementation"]);
    // The log has a row for each message.
    let counts: Vec<_> = private.iter().map(|(_, counts)| *counts).collect();
    let (request_count, response_count) = total(&counts);
    assert_eq!((request_count + response_count) as usize, rows.len());
    let keys = rows.iter().cloned().collect::<std::collections::BTreeSet<_>>();
    assert!(!private.is_empty() && private.iter().all(|(key, _)| keys.contains(&key[..])), "{private:?}");
}

#[test]
fn results_of_radius_are_those_of_zeek() {
    let Some(folder) = folder() else { return println!("skipped: no captures of single protocols") };
    let columns = ["id.orig_p", "username", "mac", "framed_addr", "reply_msg", "result", "ttl"];
    for (capture, test, expected_count) in
        [("radius", "auth", 1), ("radius_localhost", "radius-multiple-attempts", 7)]
    {
        let log =
            log(folder.join(format!("Baseline/scripts.base.protocols.radius.{test}/radius.log")), &columns);
        assert_eq!(log.len(), expected_count);
        let mut flows: BTreeMap<u16, Vec<radius::Exchange>> = BTreeMap::new();
        each(folder.join(format!("Traces/radius/{capture}.pcap")), |message, port| {
            flows.entry(port).or_default().push(message.get::<radius::Exchange>().expect("RADIUS").clone());
        });
        assert_eq!(flows.len(), log.len(), "{capture}: {flows:?}");
        // Zeek has a row for all exchanges between two ports: after a challenge, another request follows.
        for row in &log {
            let exchanges = &flows[&row[0].parse().unwrap()];
            let (first, last) = (exchanges.first().unwrap(), exchanges.last().unwrap());
            let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let first_of =
                |value: &dyn Fn(&radius::Exchange) -> Option<String>| text(exchanges.iter().find_map(value));
            assert_eq!(
                first_of(&|row| row.user_name.as_ref().map(|name| name.text().to_string())),
                row[1],
                "{row:?}"
            );
            assert_eq!(
                first_of(&|row| row.calling_station_id.as_ref().map(|id| id
                    .text()
                    .to_string()
                    .to_lowercase()
                    .replace('-', ":"))),
                row[2],
                "{row:?}"
            );
            // Zeek does not read that of an acceptance without a challenge.
            if row[3] != "-" {
                assert_eq!(
                    first_of(&|row| row.framed_address.map(|address| address.to_string())),
                    row[3],
                    "{row:?}"
                );
            }
            // The challenge may have a text, too.
            assert_eq!(
                first_of(&|row| row.reply_message.as_ref().map(|reply| reply.text().to_string())),
                row[4],
                "{row:?}"
            );
            let result = match last.response_code.map(|code| code.0) {
                Some(2) => "success",
                Some(3) => "failed",
                _ => "unknown",
            };
            assert_eq!(result, row[5], "{row:?}");
            if result != "unknown" {
                let elapsed = last.exchange.end.saturating_since(first.exchange.start);
                assert_eq!(seconds(elapsed.as_nanos() as u64), row[6], "{row:?}");
            }
        }
    }
}

/// Captures with a client of SMB, LDAP or DCE/RPC that uses a ticket of Kerberos.
const TICKETS: [&str; 8] = [
    "OISF+suricata-verify/tests/smb-length-5786/input.pcap",
    "OISF+suricata-verify/tests/smb2-06/20171220_smb_net_user.pcap",
    "OISF+suricata-verify/tests/dcerpc/dcerpc-dce-iface-01/20171220_smb_psexec_mimikatz_ticket_dump-s2.pcap",
    "zeek+zeek/testing/btest/Traces/dce-rpc/cs_window7-join_stream092.pcap",
    "zeek+zeek/testing/btest/Traces/ldap/gap-data-missing.pcapng",
    "zeek+zeek/testing/btest/Traces/ldap/krb5-sign-seal-01.pcap",
    "zeek+zeek/testing/btest/Traces/ldap/missing_krbtgt_ldap_request.pcapng",
    "zeek+zeek/testing/btest/Traces/ldap/modify-request.pcapng",
];

#[test]
fn tickets_that_clients_use_are_those_of_tshark() {
    let Some(folder) = folder() else { return println!("skipped: no captures of single protocols") };
    for capture in TICKETS {
        let path = folder.join("../../..").join(capture);
        let mut rows = Vec::new();
        each(path.clone(), |message, _| {
            let Some(row) = message.get::<kerberos::Exchange>().filter(|row| row.request_type.is_some())
            else {
                return;
            };
            let text = |kept: &Option<Kept<256>>| kept.as_ref().unwrap().text().to_string();
            assert_eq!(row.request_type.unwrap().0, 14, "{capture}");
            assert_eq!(row.reply_type.unwrap().0, 15, "{capture}");
            let encryption = row.ticket_encryption.unwrap().0.to_string();
            rows.push([text(&row.service_realm), text(&row.service_name).replace('/', ","), encryption]);
        });
        let mut command = Command::new("tshark");
        command.args(["-n", "-Y", "kerberos.msg_type == 14", "-T", "fields", "-e", "kerberos.realm"]);
        command.args(["-e", "kerberos.SNameString", "-e", "kerberos.etype", "-r"]).arg(path);
        let Ok(output) = command.output() else {
            assert!(std::env::var_os("CI").is_none(), "tshark is not installed");
            return println!("skipped: tshark is not installed");
        };
        let theirs: Vec<_> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| {
                let values: Vec<_> = line.split('\t').map(str::to_owned).collect();
                let [realm, service, encryption] = values.try_into().expect("three fields");
                // The authenticator is encrypted too.
                [realm, service, encryption.split(',').next().unwrap_or_default().to_owned()]
            })
            .collect();
        assert_eq!(rows, theirs, "{capture}");
        assert_eq!(rows.len(), 1, "{capture}");
    }
}

/// Logs of Zeek for captures: the capture, the test of Zeek, the log, the number of its rows that are equal, and of those that
/// are not.
const LOGS: &[(&str, &str, &str, usize, usize)] = &[
    ("ftp/ipv4.pcap", "protocols.ftp.ftp-ipv4", "ftp", 6, 0),
    ("ftp/ipv6.pcap", "protocols.ftp.ftp-ipv6", "ftp", 5, 2),
    // These tests have Zeek log all commands.
    ("ftp/ipv6-multiline-reply.pcap", "protocols.ftp.ftp-multiline-reply", "ftp", 1, 4),
    ("ftp/ipv6-retr-samba.pcap", "protocols.ftp.ftp-samba-retr", "ftp", 2, 2),
    ("ftp/ftp-auth-tls.pcap", "protocols.ftp.ftp-auth-tls", "ftp", 0, 2),
    ("ftp/ftp-invalid-reply-code.pcap", "protocols.ftp.ftp-invalid-reply-code", "ftp", 0, 3),
    ("ssh/ssh_kex_dh_group18.pcap", "protocols.ssh.dh_group18_kex", "ssh", 1, 0),
    ("ssh/ssh_version_199.pcap", "protocols.ssh.ssh_version_199", "ssh", 1, 0),
    ("ssh/ssh_kex_mlkem.pcap", "protocols.ssh.mlkem_kex", "ssh", 1, 0),
    ("ssh/ssh_kex_curve25519.pcap", "protocols.ssh.curve25519_kex", "ssh", 1, 0),
    ("ssh/ssh.client-side-half-duplex.pcap", "protocols.ssh.half-duplex-client", "ssh", 20, 0),
    ("ntp/misordered-ntp.pcap", "protocols.ntp.misordered-ntp", "ntp", 2, 0),
    ("ntp/ntp2.pcap", "protocols.ntp.ntp2", "ntp", 34, 0),
    ("ntp/NTP_sync.pcap", "protocols.ntp.ntp3", "ntp", 30, 0),
    ("ntp/ntpmode67.pcap", "protocols.ntp.ntpmode67", "ntp_control", 6, 0),
    ("ntp/ntpmode67.pcap", "protocols.ntp.ntpmode67", "ntp_private", 3, 0),
    ("syslog-single-udp.pcap", "protocols.syslog.trace", "syslog", 1, 0),
    ("syslog-missing-pri.pcap", "protocols.syslog.missing-pri", "syslog", 1, 0),
    ("tcp-syslog-nontransparent.pcap", "protocols.syslog.tcp-framing-nontransparent", "syslog", 2, 0),
    ("mqtt.pcap", "protocols.mqtt.mqtt", "mqtt_connect", 2, 0),
    ("mqtt.pcap", "protocols.mqtt.mqtt", "mqtt_publish", 3, 0),
    ("mqtt.pcap", "protocols.mqtt.mqtt", "mqtt_subscribe", 1, 0),
    ("sip/sip-junk-before-request.pcap", "protocols.sip.junk", "sip", 1, 0),
    // Zeek uses the state of a request without a final response for the next one, also that of ACK.
    ("sip/wireshark.pcap", "protocols.sip.wireshark", "sip", 28, 8),
    // The password, which is never written.
    ("socks-auth.pcap", "protocols.socks.socks-auth", "socks", 0, 1),
    ("modbus/fuzz-1011.pcap", "protocols.modbus.register_parsing", "modbus", 5, 0),
    ("krb/optional-service-name.pcap", "protocols.krb.krb-service-name", "kerberos", 1, 0),
    ("krb/error-preauth-padata.pcap", "protocols.krb.error-preauth-padata", "kerberos", 1, 0),
    ("ldap/simpleauth.pcap", "protocols.ldap.basic", "ldap", 2, 0),
    ("ldap/simpleauth.pcap", "protocols.ldap.basic", "ldap_search", 1, 0),
    ("ldap/simpleauth-diff-port.pcap", "protocols.ldap.diff_port", "ldap", 2, 0),
    ("ldap/simpleauth-diff-port.pcap", "protocols.ldap.diff_port", "ldap_search", 1, 0),
    ("ldap/ldap-who-am-i.pcap", "protocols.ldap.who-am-i", "ldap", 3, 0),
    ("ldap/modify-request.pcapng", "protocols.ldap.modify-request", "ldap", 3, 0),
    ("ldap/ldap_invalid_credentials.pcap", "protocols.ldap.invalid_credentials", "ldap", 25, 0),
    ("ldap/gap-data-missing.pcapng", "protocols.ldap.gap", "ldap", 1, 0),
    ("ldap/missing_krbtgt_ldap_request.pcapng", "protocols.ldap.sasl-signed-clear-2", "ldap", 2, 0),
    // Zeek writes a disjunction of more than two conditions as nested ones.
    ("ldap/missing_krbtgt_ldap_request.pcapng", "protocols.ldap.sasl-signed-clear-2", "ldap_search", 3, 1),
    ("ldap/krb5-sign-seal-01.pcap", "protocols.ldap.sasl-encrypted", "ldap", 1, 0),
    ("ldap/krb5-sign-seal-01.pcap", "protocols.ldap.sasl-encrypted", "ldap_search", 1, 0),
    // Zeek does not read the name of an entry that is added.
    ("ldap/pending-adds-10.pcap", "protocols.ldap.pending-messages-exceeded", "ldap", 0, 10),
    ("ldap/ctu-sme-11-win7ad-1-ldap-tcp-50041.pcap", "protocols.ldap.spnego-ntlmssp", "ldap", 4, 0),
    ("ldap/ldap_star_single.pcapng", "protocols.ldap.ldap_substring_search", "ldap_search", 1, 0),
    ("radius/radius.pcap", "protocols.radius.auth", "radius", 1, 0),
    ("radius/radius_localhost.pcap", "protocols.radius.radius-multiple-attempts", "radius", 7, 0),
    ("dce-rpc/cs_window7-join_stream092.pcap", "protocols.dce-rpc.context", "dce_rpc", 3, 0),
    // Zeek writes the last call twice at the end of a connection with an open one.
    ("dce-rpc/mapi.pcap", "protocols.dce-rpc.mapi", "dce_rpc", 11, 1),
    ("dce-rpc/mapi.pcap", "protocols.dce-rpc.mapi", "ntlm", 2, 0),
    (
        "dce-rpc/ntlm-unterminated-av-sequence.pcap",
        "protocols.dce-rpc.ntlm-unterminated-av-pair-seq",
        "ntlm",
        1,
        0,
    ),
    ("ldap/ctu-60387-63723-ldap.pcap", "protocols.ldap.sasl-gss-spnego-ntlm", "ntlm", 2, 0),
    ("rdp/rdp-x509.pcap", "protocols.rdp.rdp-x509", "rdp", 1, 0),
    ("rdp/rdp-unknown-keyboard.pcap", "protocols.rdp.rdp-unknown-keyboard", "rdp", 1, 0),
    ("rdp/rdp-no-cookie-mstshash.pcap", "protocols.rdp.rdp-no-cookie-msthash", "rdp", 1, 0),
    ("rdp/rdp-no-cookie-mstshash.pcap", "protocols.rdp.rdp-no-cookie-msthash", "ssl", 1, 0),
    ("smb/smb1.pcap", "protocols.smb.smb1", "smb_files", 3, 0),
    // This test has Zeek log files that are read and written, too.
    ("smb/smb2readwrite.pcap", "protocols.smb.smb2-read-write", "smb_files", 3, 4),
    ("smb/smb2readwrite.pcap", "protocols.smb.smb2-read-write", "files", 2, 0),
    ("smb/smb3.pcap", "protocols.smb.smb3", "smb_mapping", 2, 0),
    // Zeek writes the octets of a name that are not UTF-8 in hexadecimal digits.
    ("rfb/vncmac.pcap", "protocols.rfb.rfb-apple-remote-desktop", "rfb", 2, 1),
    ("dns/dns-binds.pcap", "protocols.dns.binds", "dns", 1, 0),
    ("dnssec/dnskey.pcap", "protocols.dns.dnskey", "dns", 1, 0),
    ("dnssec/ds.pcap", "protocols.dns.ds", "dns", 1, 0),
    ("dns/loc-29-trunc.pcap", "protocols.dns.loc", "dns", 1, 0),
    ("dnssec/nsec3.pcap", "protocols.dns.nsec3", "dns", 1, 0),
    ("dnssec/nsec3param.pcap", "protocols.dns.nsec3param", "dns", 1, 0),
    ("dnssec/rrsig.pcap", "protocols.dns.rrsig", "dns", 4, 0),
    ("dns/tkey.pcap", "protocols.dns.tkey", "dns", 1, 0),
    // Zeek reads the questions of queries only. Of the first, only the response was captured; of the second, Zeek ignores the query
    // because of its checksum.
    ("dns53.pcap", "protocols.dns.flip", "dns", 0, 1),
    ("dns-spf.pcap", "protocols.dns.spf", "dns", 0, 1),
    ("tls/tls1.2-late-protocol-error.pcap", "protocols.ssl.tls-1.2-late-protocol-error", "x509", 3, 0),
    (
        "dhcp/dhcp_ack_subscriber_id_and_agent_remote_id.pcap",
        "protocols.dhcp.dhcp-ack-msg-types",
        "dhcp",
        1,
        0,
    ),
];

/// Returns a row as text, without what Zeek's tests mask and what differs between runs.
fn comparable(row: &Row, columns: &[String]) -> String {
    let values = columns.iter().map(|column| {
        let value = row.get(column).unwrap_or("absent");
        // Zeek has times as floating-point numbers, whose last digit may differ.
        match value.parse::<f64>() {
            Ok(time) if column.ends_with("_time") => format!("{column}={time:.4}"),
            _ => format!("{column}={value}"),
        }
    });
    values.collect::<Vec<_>>().join(" ")
}

#[test]
fn logs_are_those_of_zeek() {
    let Some(folder) = folder() else { return println!("skipped: no captures of single protocols") };
    let mut found = Vec::new();
    for &(capture, test, log, ..) in LOGS {
        let path = folder.join(format!("Baseline/scripts.base.{test}/{log}.log"));
        let theirs = zeek::rows(&std::fs::read_to_string(path).expect("a log"));
        let logs = zeek::logs_of(&folder.join("Traces").join(capture), TrackerConfig::default());
        let ours = logs.get(log).cloned().unwrap_or_default();
        let Some(first) = ours.first() else {
            found.push((capture, test, log, 0, theirs.len()));
            continue;
        };
        let columns: Vec<_> = theirs[0]
            .columns()
            .filter(|column| !["ts", "uid", "uids", "fuid"].contains(column) && first.get(column).is_some())
            .map(str::to_owned)
            .collect();
        let mut counts = counted(theirs.iter().map(|row| comparable(row, &columns)));
        for row in &ours {
            *counts.entry(comparable(row, &columns)).or_default() -= 1;
        }
        counts.retain(|_, count| *count != 0);
        let missing_count = counts.values().filter(|count| **count > 0).sum::<i64>() as usize;
        for (row, count) in &counts {
            println!("{log} of {capture}: {count:+}: {row}");
        }
        found.push((capture, test, log, theirs.len() - missing_count, missing_count));
    }
    for (found, expected) in found.iter().zip(LOGS) {
        assert_eq!(found, expected);
    }
}

/// Returns the events of a type for a capture of Suricata's tests.
#[cfg(all(feature = "serde", feature = "compression"))]
fn events(capture: &str, kind: &str) -> Option<Vec<serde_json::Value>> {
    use flowgauge::export::eve::EveConfig;

    let path = corpus::root()?.join("../protocol-captures/OISF+suricata-verify/tests").join(capture);
    let events = super::eve_events::events_of(&path, EveConfig::default(), TrackerConfig::default());
    Some(events.into_iter().filter(|event| event["event_type"] == kind).collect())
}

/// What Suricata's tests expect of events of Kerberos.
#[cfg(all(feature = "serde", feature = "compression"))]
#[test]
fn events_of_kerberos_are_those_of_suricata() {
    let Some(weak) = events("krb5-kerberoasting/kerberoast.pcap", "krb5") else {
        return println!("skipped: no corpus");
    };
    let [weak] = weak.as_slice() else { panic!("{weak:?}") };
    let weak = &weak["krb5"];
    assert_eq!((&weak["msg_type"], &weak["ticket_encryption"]), (&"KRB_TGS_REP".into(), &"rc4-hmac".into()));
    assert_eq!(weak["ticket_weak_encryption"], true);
    let mut found = Vec::new();
    for event in events("krb5-request-frag-log/krb5-frag.pcap", "krb5").unwrap() {
        let text = |name: &str| event["krb5"][name].as_str().unwrap().to_owned();
        if event["krb5"]["msg_type"] != "KRB_ERROR" {
            found.push(["msg_type", "cname", "realm", "sname"].map(text));
        }
    }
    let realm = "dom.test.lo.com";
    assert_eq!(
        found,
        [
            ["KRB_AS_REP", "user01", realm, "krbtgt/dom.test.lo.com"],
            ["KRB_TGS_REP", "user01", realm, "HTTP/epgidvwman1088.epga.dom.lo.com"],
        ]
    );
}

/// What Suricata's tests expect of events of MQTT.
#[cfg(all(feature = "serde", feature = "compression"))]
#[test]
fn events_of_mqtt_are_those_of_suricata() {
    use serde_json::json;

    let answer = |number: u16, rest: serde_json::Value| {
        let mut answer = json!({"qos": 0, "retain": false, "dup": false, "message_id": number});
        let members = rest.as_object().unwrap().clone();
        answer.as_object_mut().unwrap().extend(members);
        answer
    };
    let publish = |number: u16, qos: u8, topic: &str, message: &str| {
        let rest = json!({"qos": qos, "topic": topic, "message": message});
        answer(number, rest)
    };
    let reason = || json!({"reason_code": 0});
    let expected = [
        (
            "mqtt5-pub-qos2/input.pcap",
            json!({
                "publish": publish(1, 2, "topicX", "baabaablacksheep"), "pubrec": answer(1, reason()),
                "pubrel": answer(1, json!({"qos": 1, "reason_code": 0})), "pubcomp": answer(1, reason())
            }),
        ),
        (
            "mqtt31-pub-qos2/input.pcap",
            json!({
                "publish": publish(1, 2, "topicX", "baabaablacksheep"), "pubrec": answer(1, json!({})),
                "pubrel": answer(1, json!({"qos": 1})), "pubcomp": answer(1, json!({}))
            }),
        ),
        (
            "mqtt5-sub-mosquittoprops/input.pcap",
            json!({
                "subscribe": answer(1, json!({
                    "qos": 1, "topics": [{"topic": "topicX", "qos": 0}, {"topic": "topicY", "qos": 0}]
                })),
                "suback": answer(1, json!({"qos_granted": [0, 0]}))
            }),
        ),
        (
            "mqtt5-unsub-userpass/input.pcap",
            json!({
                "unsubscribe": answer(3, json!({"qos": 1, "topics": ["topicY"]})),
                "unsuback": answer(3, json!({"reason_codes": [17]}))
            }),
        ),
        ("mqtt31-unsub-qos1/input.pcap", json!({"disconnect": {"qos": 0, "retain": false, "dup": false}})),
    ];
    for (capture, expected) in expected {
        let Some(events) = events(capture, "mqtt") else { return println!("skipped: no corpus") };
        let count = events.iter().filter(|event| event["mqtt"] == expected).count();
        assert_eq!(count, 1, "{capture}: {events:#?}");
    }
}

/// The captures in which tshark finds MQTT.
const CAPTURES_OF_MQTT: [&str; 4] = [
    "captures/nDPI/mqtt.pcap",
    "captures/nDPI/coap_mqtt.pcap",
    "captures/ipfixprobe/mqtt.pcap",
    "../protocol-captures/zeek+zeek/testing/btest/Traces/mqtt.pcap",
];

#[test]
fn packets_of_mqtt_are_those_of_tshark() {
    let Some(root) = corpus::root() else { return println!("skipped: no corpus") };
    let mut packet_count = 0;
    for capture in CAPTURES_OF_MQTT {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        each(root.join(capture), |message, _| {
            let text = |kept: &Kept<256>| kept.text().to_str_lossy().into_owned();
            if let Some(row) = message.get::<mqtt::Connect>() {
                let client = row.client_id.as_ref().map(text).unwrap_or_default();
                ours.extend(row.version.map(|_| format!("1 {client}")));
                ours.extend(row.reason.map(|_| String::from("2 ")));
            } else if let Some(row) = message.get::<mqtt::Publish>() {
                ours.push(format!("3 {}", row.topic.as_ref().map(text).unwrap_or_default()));
            } else if let Some(row) = message.get::<mqtt::Subscribe>() {
                ours.extend(row.topics.iter().map(|topic| format!("8 {topic}")));
            }
        });
        let mut tshark = Command::new("tshark");
        tshark.args([
            "-n",
            "-d",
            "tcp.port==17501,mqtt",
            "-Y",
            "mqtt",
            "-T",
            "json",
            "-J",
            "mqtt",
            "--no-duplicate-keys",
            "-r",
        ]);
        let Ok(output) = tshark.arg(root.join(capture)).output() else {
            return println!("skipped: tshark cannot be run");
        };
        let frames: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        for frame in frames {
            let layer = &frame["_source"]["layers"]["mqtt"];
            for packet in layer.as_array().map_or(std::slice::from_ref(layer), |all| all) {
                let kind = packet["mqtt.hdrflags_tree"]["mqtt.msgtype"].as_str().unwrap_or_default();
                let text = |name: &str| packet[name].as_str().unwrap_or_default();
                match kind {
                    "1" => theirs.push(format!("1 {}", text("mqtt.clientid"))),
                    "2" => theirs.push(String::from("2 ")),
                    "3" | "8" => theirs.push(format!("{kind} {}", text("mqtt.topic"))),
                    _ => {}
                }
            }
        }
        packet_count += theirs.len();
        assert_eq!(counted(ours), counted(theirs), "{capture}");
    }
    assert!(packet_count > 30, "{packet_count}");
}

/// What Suricata's tests expect of events of LDAP: requests and results, not the entries, which are not kept.
#[cfg(all(feature = "serde", feature = "compression"))]
#[test]
fn events_of_ldap_are_those_of_suricata() {
    use serde_json::json;

    let result = || json!({"result_code": "success", "matched_dn": "", "message": ""});
    let expected = [
        (
            "ldap-search/ldap.pcap",
            json!({
                "request": {"message_id": 2, "operation": "search_request", "search_request": {
                    "base_object": "dc=example,dc=com", "scope": 2, "deref_alias": 0, "size_limit": 1000, "time_limit": 30,
                    "types_only": false, "attributes": ["*", "+"]
                }},
                "responses": [{"operation": "search_result_done", "search_result_done": result()}]
            }),
        ),
        (
            "ldap-udp/cldap.pcap",
            json!({
                "request": {"message_id": 1, "operation": "search_request", "search_request": {
                    "base_object": "", "scope": 0, "deref_alias": 0, "size_limit": 0, "time_limit": 0,
                    "types_only": false, "attributes": ["Netlogon"]
                }},
                "responses": [{"operation": "search_result_done", "search_result_done": result()}]
            }),
        ),
        (
            "ldap-modify-dn/ldap.pcap",
            json!({
                "request": {"message_id": 2, "operation": "mod_dn_request", "mod_dn_request": {
                    "entry": "uid=jdoe,ou=People,dc=example,dc=com", "new_rdn": "uid=john.doe", "delete_old_rdn": true
                }},
                "responses": [{"operation": "mod_dn_response", "mod_dn_response": result()}]
            }),
        ),
        (
            "ldap-unbind/ldap.pcap",
            json!({"request": {"message_id": 3, "operation": "unbind_request"}, "responses": []}),
        ),
        (
            "ldap-abandon/ldap.pcap",
            json!({"request": {"message_id": 6, "operation": "abandon_request"}, "responses": []}),
        ),
    ];
    for (capture, expected) in expected {
        let Some(events) = events(capture, "ldap") else { return println!("skipped: no corpus") };
        let count = events.iter().filter(|event| event["ldap"] == expected).count();
        assert_eq!(count, 1, "{capture}: {events:#?}");
    }
}

/// What Suricata's tests expect of events of NTP.
#[cfg(all(feature = "serde", feature = "compression"))]
#[test]
fn events_of_ntp_are_those_of_suricata() {
    let Some(events) = events("ntp-keywords/input.pcap", "ntp") else {
        return println!("skipped: no corpus");
    };
    let count = |name: &str, value: serde_json::Value| {
        events.iter().filter(|event| event["ntp"][name] == value).count()
    };
    assert_eq!(events.len(), 4);
    for (name, value) in
        [("version", 3), ("version", 4), ("stratum", 0), ("stratum", 2), ("mode", 3), ("mode", 4)]
    {
        assert_eq!(count(name, value.into()), 2, "{name} {value}");
    }
    assert_eq!(count("reference_id", "00:00:00:00".into()), 2);
    assert_eq!(count("reference_id", "4c:4f:43:4c".into()), 2);
}

/// What Suricata's tests expect of events of DCE/RPC.
#[cfg(all(feature = "serde", feature = "compression"))]
#[test]
fn events_of_dcerpc_are_those_of_suricata() {
    let path = "dcerpc/dcerpc-dce-iface-01/20171220_smb_psexec_mimikatz_ticket_dump-s2.pcap";
    let Some(events) = events(path, "dcerpc") else { return println!("skipped: no corpus") };
    let mut counts = BTreeMap::new();
    for event in &events {
        let call = &event["dcerpc"]["interfaces"][0];
        if call["service"] == "svcctl" {
            *counts.entry(call["procedure"].as_str().expect("an operation")).or_insert(0) += 1;
        }
    }
    let expected = [
        ("CloseServiceHandle", 6),
        ("ControlService", 1),
        ("CreateServiceWOW64W", 1),
        ("DeleteService", 1),
        ("OpenSCManagerW", 2),
        ("OpenServiceW", 3),
        ("QueryServiceStatus", 4),
        ("StartServiceW", 1),
    ];
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
    let numbered = events.iter().filter(|event| event["dcerpc"]["call_id"] == 20).count();
    assert_eq!(numbered, 1);
}

/// What Suricata's tests expect of events of SMB. Calls over pipes have events of their own.
#[cfg(all(feature = "serde", feature = "compression"))]
#[test]
fn events_of_smb_are_those_of_suricata() {
    if corpus::root().is_none() {
        return println!("skipped: no corpus");
    }
    let of_smb = |path: &str| events(path, "smb").expect("a corpus");
    let files = of_smb("smb1-01/smb1.pcap");
    let count = |command: &str| {
        let is = |event: &&serde_json::Value| {
            let smb = &event["smb"];
            smb["command"] == command && smb["status"] == "STATUS_SUCCESS" && smb["dialect"] == "unknown"
        };
        files.iter().filter(is).count()
    };
    let counts =
        ["CREATE", "CLOSE", "GET_INFO", "FIND", "READ"].map(|name| count(&format!("SMB2_COMMAND_{name}")));
    assert_eq!((files.len(), counts), (17, [7, 7, 0, 2, 1]));
    let id = "00000065-0030-0000-0025-0020ffffffff";
    let of_file: Vec<_> = files.iter().map(|event| &event["smb"]).filter(|smb| smb["fuid"] == id).collect();
    assert_eq!(of_file[0]["disposition"], "FILE_OPEN");
    for smb in of_file {
        assert_eq!(smb["filename"], "Test\\2009-12 Payroll.xlsx");
        assert_eq!((&smb["session_id"], &smb["tree_id"]), (&4_398_046_511_153_u64.into(), &1.into()));
    }
    let old = of_smb("smb1-02/smb1_osx.pcap");
    let expected = [
        ("NEGOTIATE_PROTOCOL", "STATUS_SUCCESS", "0x0"),
        ("SESSION_SETUP_ANDX", "STATUS_MORE_PROCESSING_REQUIRED", "0xc0000016"),
        ("LOGOFF_ANDX", "SRV_BADUID", "0x005b"),
    ];
    for (number, (command, status, code)) in (1..).zip(expected) {
        let of_number: Vec<_> =
            old.iter().map(|event| &event["smb"]).filter(|smb| smb["id"] == number).collect();
        assert_eq!(of_number.len(), 3);
        for smb in of_number {
            assert_eq!(smb["command"], format!("SMB1_COMMAND_{command}"));
            assert_eq!((&smb["status"], &smb["status_code"]), (&status.into(), &code.into()));
            assert_eq!(smb["dialect"], "NT LM 0.12");
            match number {
                1 => {
                    assert_eq!(smb["client_dialects"][0], "NT LM 0.12");
                    assert_eq!(smb["server_guid"], "31347374-0032-0000-0000-000000000000");
                }
                2 => {
                    assert_eq!(smb["request"]["native_os"], "Mac OS X 10.10");
                    assert_eq!(smb["response"]["native_lm"], "Samba 4.4.16");
                    assert_eq!(smb["tree_id"], 65_535);
                }
                _ => assert_eq!(smb["tree_id"], 65_535),
            }
        }
    }
    let scheduled = of_smb("smb2-04/20171220_smb_at_schedule.pcap");
    assert_eq!(scheduled.len(), 6);
    assert_eq!(scheduled[0]["smb"]["filename"], "atsvc");
    assert_eq!(scheduled[0]["smb"]["fuid"], "0000004d-0000-0000-0005-0000ffffffff");
    let user = of_smb("smb2-06/20171220_smb_net_user.pcap");
    assert_eq!(user.len(), 65);
    let opened = user.iter().map(|event| &event["smb"]).find(|smb| smb["filename"] == "lsarpc");
    let opened = opened.expect("a pipe");
    assert_eq!((&opened["dialect"], &opened["session_id"]), (&"2.10".into(), &35_184_439_197_745_u64.into()));
    assert_eq!(
        (&opened["fuid"], &opened["size"]),
        (&"0000002a-0008-0000-0009-000000000008".into(), &0.into())
    );
    let calls = events("smb2-06/20171220_smb_net_user.pcap", "dcerpc").expect("a corpus");
    assert_eq!(calls.len(), 46);
    let files = events("smb-length-5786/input.pcap", "fileinfo").expect("a corpus");
    let is_written =
        |event: &&serde_json::Value| event["fileinfo"]["filename"] == "toto.txt" && event["dest_port"] == 445;
    assert_eq!(files.iter().filter(is_written).count(), 1);
    assert_eq!(events("smb1-01/smb1.pcap", "fileinfo").expect("a corpus").len(), 1);
    let encrypted = of_smb("smb3-01/input.pcap");
    let shares: Vec<_> = encrypted.iter().map(|event| &event["smb"]).collect();
    assert!(shares.iter().any(|smb| smb["share"] == r"\\WS2016\encrypted" && smb["dialect"] == "3.00"));
    assert!(shares.iter().any(|smb| smb["named_pipe"] == r"\\10.160.65.202\IPC$"));
}

/// What Suricata's tests expect of events of RFB.
#[cfg(all(feature = "serde", feature = "compression"))]
#[test]
fn events_of_rfb_are_those_of_suricata() {
    let Some(refused) = events("rfb-failure/rfb_failure_16.pcap", "rfb") else {
        return println!("skipped: no corpus");
    };
    assert_eq!(refused[0]["rfb"]["server_security_failure_reason"], "AAAAAAAAAAAAAAAA");
    let accepted = events("rfb-rules/00-vnc-openwall-3.7.pcap", "rfb").expect("a corpus");
    let rfb = &accepted[0]["rfb"];
    assert_eq!(
        (&rfb["authentication"]["security_type"], &rfb["authentication"]["security_result"]),
        (&2.into(), &"OK".into())
    );
    assert_eq!(
        (&rfb["framebuffer"]["name"], &rfb["framebuffer"]["width"]),
        (&"aneagles@localhost.localdomain".into(), &1280.into())
    );
    assert_eq!(
        (&rfb["server_protocol_version"]["major"], &rfb["screen_shared"]),
        (&"003".into(), &false.into())
    );
}

/// What Suricata's tests expect of events of DHCP.
#[cfg(all(feature = "serde", feature = "compression"))]
#[test]
fn events_of_dhcp_are_those_of_suricata() {
    if corpus::root().is_none() {
        return println!("skipped: no corpus");
    }
    let events = |test: &str| events(&format!("{test}/input.pcap"), "dhcp").unwrap();
    let discover = &events("dhcp-eve-extended-option-60")[0];
    assert_eq!((&discover["src_port"], &discover["dest_port"]), (&68.into(), &67.into()));
    let dhcp = &discover["dhcp"];
    assert_eq!((dhcp["id"].as_u64(), dhcp["type"].as_str()), (Some(3_759_982_360), Some("request")));
    assert_eq!(dhcp["vendor_class_identifier"], "MSFT 5.0");
    let params: Vec<_> = dhcp["params"].as_array().unwrap().iter().take(4).collect();
    assert_eq!(params, ["subnet_mask", "domain", "router", "dns_server"]);
    // Of two servers, one has its options in the field for its name.
    let overloaded = events("dhcp-option-52-overload");
    for kind in ["offer", "ack"] {
        let of_kind = overloaded.iter().filter(|event| event["dhcp"]["dhcp_type"] == kind);
        let mut found: Vec<_> = of_kind
            .map(|event| {
                [&event["dhcp"]["dns_servers"][0], &event["dhcp"]["routers"][0]]
                    .map(|at| at.as_str().unwrap())
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, [["10.100.0.1"; 2], ["10.100.0.2"; 2]], "{kind}");
    }
    let both = &events("dhcp-option-52-overload-both")[0]["dhcp"];
    assert_eq!((both["type"].as_str(), both["dhcp_type"].as_str()), (Some("request"), Some("discover")));
    assert_eq!((both["id"].as_u64(), both["lease_time"].as_u64()), (Some(2_888_761_343), Some(3600)));
    assert_eq!(both["client_mac"], "00:00:6c:82:dc:4e");
}

/// Datagrams of NetBIOS with the announcements in them, compared with the fields of tshark.
#[test]
fn datagrams_of_netbios_are_those_of_tshark() {
    const FIELDS: [&str; 7] = [
        "nbdgm.dgram_id",
        "nbdgm.src.ip",
        "nbdgm.source_name",
        "nbdgm.destination_name",
        "mailslot.name",
        "browser.command",
        "browser.server",
    ];
    let Some(root) = corpus::root() else { return println!("skipped: no corpus") };
    for (name, count) in [("nDPI/1kxun", 5), ("zeek/tunnels/Teredo", 2), ("zeek/smtp", 1), ("nDPI/tor", 1)] {
        let path = root.join(format!("captures/{name}.pcap"));
        let text =
            |kept: Option<flowgauge::session::Text<'_>>| kept.map(|text| text.to_str_lossy().into_owned());
        let mut ours = Vec::new();
        each(path.clone(), |message, _| {
            let Some(row) = message.get::<nbdgm::Datagram>() else { return };
            // tshark writes the kind of a name, and numbers of octets that are no letters.
            let named = |name: Option<String>, kind: Option<nbns::NameKind>| {
                let letters = name.unwrap_or_default();
                let letters = letters.chars().map(|letter| match letter {
                    '\u{1}'..='\u{1f}' => format!("<{:02x}>", u32::from(letter)),
                    letter => letter.to_string(),
                });
                format!("{}<{:02x}>", letters.collect::<String>(), kind.map_or(0, |kind| kind.0))
            };
            ours.push([
                format!("{:#06x}", row.identifier),
                row.stated_address.map(|address| address.to_string()).unwrap_or_default(),
                named(text(row.source_name.as_ref().map(Kept::text)), row.source_name_kind),
                named(text(row.destination_name.as_ref().map(Kept::text)), row.destination_name_kind),
                text(row.mailslot.as_ref().map(Kept::text)).unwrap_or_default(),
                row.browser_command.map(|command| format!("{:#04x}", command.0)).unwrap_or_default(),
                text(row.announced_name.as_ref().map(Kept::text)).unwrap_or_default(),
            ]);
        });
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&path).args(["-Y", "nbdgm", "-T", "fields"]);
        for field in FIELDS {
            tshark.args(["-e", field]);
        }
        let Ok(output) = tshark.output() else { return println!("skipped: no tshark") };
        let output = String::from_utf8(output.stdout).expect("text");
        let ours: Vec<_> = ours.iter().map(|row| row.join("\t")).collect();
        assert_eq!((ours.len(), ours), (count, output.lines().map(str::to_owned).collect()), "{name}");
    }
}

/// Answers of the endpoint mapper, compared with the fields of tshark.
#[test]
fn endpoints_of_dcerpc_are_those_of_tshark() {
    use flowgauge::protocols::dcerpc;

    let Some(root) = corpus::root() else { return println!("skipped: no corpus") };
    let path = root.join("../protocol-captures/zeek+zeek/testing/btest/Traces/dce-rpc/mapi.pcap");
    let mut ours = Vec::new();
    each(path.clone(), |message, _| {
        if let Some(row) = message.get::<dcerpc::Endpoint>() {
            let (port, address) = (row.mapped_port.unwrap(), row.mapped_address.unwrap());
            ours.push(format!("{port}\t{address}\t{}", row.interface_id.unwrap()));
        }
    });
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-Y", "epm.opnum == 3 && dcerpc.pkt_type == 2", "-T", "fields"]);
    // The second identifier is that of the transfer syntax.
    tshark.args(["-E", "occurrence=f", "-e", "epm.proto.tcp_port", "-e", "epm.proto.ip", "-e", "epm.uuid"]);
    let Ok(output) = tshark.output() else { return println!("skipped: no tshark") };
    let output = String::from_utf8(output.stdout).expect("text");
    assert_eq!((ours.len(), ours), (2, output.lines().map(str::to_owned).collect()));
}

/// Returns the texts after each occurrence of a prefix, up to a space or a parenthesis.
fn after<'l>(line: &'l str, prefix: &str) -> Vec<&'l str> {
    let parts = line.split(prefix).skip(1);
    parts.map(|rest| rest.split([' ', ')']).next().unwrap_or_default()).collect()
}

/// tcpdump's tests have the text of each packet.
#[test]
fn messages_of_dhcpv6_are_those_of_tcpdump() {
    use flowgauge::protocols::dhcpv6;

    let Some(folder) = corpus::root() else { return println!("skipped: no corpus") };
    let folder = folder.join("../protocol-captures/the-tcpdump-group+tcpdump/tests");
    let mut counts = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("captures").flatten() {
        let path = entry.path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let expected = path.with_extension("out");
        if !name.starts_with("dhcpv6") || !name.ends_with(".pcap") || !expected.exists() {
            continue;
        }
        let mut rows = Vec::new();
        each(path, |message, _| {
            let row = message.get::<dhcpv6::Entry>().expect("DHCPv6");
            let lease = row.lease_time.map_or(0, |time| time.as_secs());
            let all = |list: &mut dyn Iterator<Item = String>| list.collect::<Vec<_>>();
            rows.push((
                row.exchange.start,
                row.message_type.to_string(),
                format!("{:x}", row.identifier),
                all(&mut row.client_addresses.iter().map(|item| item.to_string())),
                all(&mut row.client_prefixes.iter().map(|item| item.to_string())),
                lease,
            ));
        });
        rows.sort();
        let text = std::fs::read_to_string(expected).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| line.contains("dhcp6 ")).collect();
        assert_eq!(rows.len(), lines.len(), "{name}");
        for ((_, kind, identifier, addresses, prefixes, lease), line) in rows.iter().zip(lines) {
            // Of relays, the message inside.
            let theirs = after(line, "dhcp6 ").pop().unwrap();
            assert_eq!(kind.replace("information_request", "inf-req"), theirs, "{name}: {line}");
            assert_eq!(Some(&&**identifier), after(line, "(xid=").last(), "{name}: {line}");
            assert_eq!(*addresses, after(line, "IA_ADDR "), "{name}: {line}");
            assert_eq!(*prefixes, after(line, "IA_PD-prefix "), "{name}: {line}");
            let valid = after(line, "vltime:").into_iter().map(|time| time.parse::<u64>().unwrap());
            assert_eq!(*lease, valid.max().unwrap_or_default(), "{name}: {line}");
            *counts.entry(kind.clone()).or_insert(0) += 1;
        }
    }
    println!("messages of DHCPv6 by kind: {counts:?}");
    assert!(counts.values().sum::<usize>() >= 20, "{counts:?}");
}

/// A capture of ARP, and one of ARP in ERSPAN.
#[cfg(all(feature = "serde", feature = "compression"))]
#[test]
fn events_of_arp_are_those_of_suricata() {
    let Some(plain) = events("decode-arp-2/arp.pcap", "arp") else {
        return println!("skipped: no captures of single protocols");
    };
    assert_eq!(plain.len(), 4);
    assert_eq!(
        plain[2]["arp"],
        serde_json::json!({
            "hw_type": "ethernet", "proto_type": "ipv4", "opcode": "request", "src_mac": "00:1d:09:f0:92:ab",
            "src_ip": "10.10.10.1", "dest_mac": "00:00:00:00:00:00", "dest_ip": "10.10.10.2"
        })
    );
    let mirrored = events("decode-arp-3/arp-encap.pcap", "arp").expect("a corpus");
    assert_eq!(mirrored.len(), 1);
    assert_eq!(mirrored[0]["arp"]["src_mac"], "bc:03:58:5a:d5:ca");
}

/// What Suricata's tests expect of events of SIP.
#[cfg(all(feature = "serde", feature = "compression"))]
#[test]
fn events_of_sip_are_those_of_suricata() {
    use serde_json::json;

    let request = json!({
        "method": "REGISTER", "uri": "sip:sip.cybercity.dk", "version": "SIP/2.0",
        "request_line": "REGISTER sip:sip.cybercity.dk SIP/2.0"
    });
    let response = json!({
        "version": "SIP/2.0", "code": "401", "reason": "Unauthorized", "response_line": "SIP/2.0 401 Unauthorized"
    });
    for capture in ["sip-pattern-matching/sip.pcap", "sip-tcp-pattern-matching/sip.pcap"] {
        let Some(events) = events(capture, "sip") else { return println!("skipped: no corpus") };
        let objects: Vec<_> = events.iter().map(|event| &event["sip"]).collect();
        assert_eq!(objects, [&request, &response], "{capture}");
    }
    assert_eq!(events("sip-options-method/input.pcap", "sip").unwrap().len(), 2);
    let events = events("sip-sdp/sdp.pcap", "sip").unwrap();
    let sdp = &events[0]["sip"]["sdp"];
    let expected = [
        ("/origin", "SIPPS 105015165 105015162 IN IP4 192.168.1.2"),
        ("/session_name", "SIP call"),
        ("/session_info", "Session Description Protocol"),
        ("/uri", "https://www.sdp.proto"),
        ("/email", "j.doe@example.com (Jane Doe)"),
        ("/phone_number", "+1 617 555-6011 (Jane Doe)"),
        ("/connection_data", "IN IP4 192.168.1.2"),
        ("/bandwidths/0", "AS:64"),
        ("/time_descriptions/0/time", "3034423619 3042462419"),
        ("/time_descriptions/0/repeat_time", "604800 3600 0 90000"),
        ("/timezone", "2882844526 -1h 2898848070 0"),
        ("/encryption_key", "prompt"),
        ("/attributes/0", "sendrecv"),
        ("/media_descriptions/0/media", "audio 30000 RTP/AVP 0 8 97 2 3"),
        ("/media_descriptions/0/media_info", "media info"),
        ("/media_descriptions/0/connection_data", "IN IP4 192.168.1.2"),
        ("/media_descriptions/0/encryption_key", "prompt"),
        ("/media_descriptions/0/attributes/0", "rtpmap:0 pcmu/8000"),
    ];
    for (place, value) in expected {
        assert_eq!(sdp.pointer(place), Some(&value.into()), "{place}: {sdp}");
    }
}

/// Runs tshark for a capture. Returns `None` if there is none.
fn tshark(capture: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("tshark").arg("-n").arg("-r").arg(capture).args(arguments).output().ok()?;
    Some(String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn messages_of_sip_are_those_of_tshark() {
    let Some(root) = corpus::root() else { return println!("skipped: no corpus") };
    let zeek = "../protocol-captures/zeek+zeek/testing/btest/Traces/sip/wireshark.pcap";
    for capture in [root.join("captures/nDPI/sip.pcap"), root.join(zeek), example("ordinary-call.pcap.zst")] {
        let mut ours = Vec::new();
        each(capture.clone(), |message, _| {
            let Some(row) = message.get::<sip::Exchange>() else { return };
            let text = |kept: &Kept<256>| kept.text().to_str_lossy().into_owned();
            let call = row.call_identifier.as_ref().map(text).unwrap_or_default();
            let number = row.sequence_number.unwrap_or_default();
            ours.extend(row.status.map(|status| format!("{status} {call} {number}")));
            let method = row.method.as_ref().map(|method| method.text().to_str_lossy().into_owned());
            ours.extend(method.map(|method| format!("{method} {call} {number}")));
        });
        let fields = ["sip.Method", "sip.Status-Code", "sip.Call-ID", "sip.CSeq.seq"];
        let arguments = fields.iter().flat_map(|field| ["-e", field]);
        let arguments: Vec<_> = ["-Y", "sip", "-T", "fields"].into_iter().chain(arguments).collect();
        let Some(theirs) = tshark(&capture, &arguments) else { return println!("skipped: no tshark") };
        let theirs = theirs.lines().filter_map(|line| {
            let [method, status, call, number] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
            Some(format!("{method}{status} {call} {number}"))
        });
        // Retransmissions have no rows, and a request has one for each response.
        let distinct =
            |messages: Vec<String>| messages.into_iter().collect::<std::collections::BTreeSet<_>>();
        let theirs = distinct(theirs.collect());
        assert!(theirs.len() > 5, "{theirs:?}");
        assert_eq!(distinct(ours), theirs, "{}", capture.display());
    }
}

#[test]
fn lines_of_irc_are_those_of_tshark() {
    let Some(root) = corpus::root() else { return println!("skipped: no corpus") };
    let capture = root.join("captures/suricata-verify/irc/input.pcap");
    let mut ours = Vec::new();
    each(capture.clone(), |message, _| {
        let Some(row) = message.get::<irc::Event>() else { return };
        ours.extend(row.command.as_ref().map(|command| command.text().to_str_lossy().into_owned()));
    });
    let arguments = ["-Y", "irc", "-T", "fields", "-e", "irc.request.command", "-e", "irc.response.command"];
    let Some(theirs) = tshark(&capture, &arguments) else { return println!("skipped: no tshark") };
    // Pings and most numeric replies have no rows.
    let has_row = |command: &&str| match command.parse::<u16>() {
        Ok(number) => matches!(number, 1 | 332 | 400..=599),
        Err(_) => !["", "PING", "PONG", "CAP"].contains(command),
    };
    let theirs = theirs.split(['\t', '\n', ',']).filter(has_row).map(str::to_owned);
    assert!(ours.len() > 30, "{ours:?}");
    assert_eq!(counted(ours), counted(theirs));
}

/// Streams of RTP: source port, SSRC, packets, lost ones, and mean and greatest jitter in milliseconds, if tshark knows the clock.
#[test]
fn streams_of_rtp_are_those_of_tshark() {
    let Some(root) = corpus::root() else { return println!("skipped: no corpus") };
    let captures =
        ["captures/nDPI/sip.pcap", "captures/nDPI/KakaoTalk_talk.pcap"].map(|path| root.join(path));
    let mut count = 0;
    for capture in captures.into_iter().chain(["ordinary-call.pcap.zst", "poor-media.pcap.zst"].map(example))
    {
        let mut ours = Vec::new();
        each(capture.clone(), |message, _| {
            let Some(row) = message.get::<rtp::Stream>() else { return };
            let milliseconds = |time: Option<std::time::Duration>| {
                format!("{:.3}", time.unwrap_or_default().as_nanos() as f64 / 1e6)
            };
            let jitter = [row.jitter_time, row.jitter_max_time].map(milliseconds);
            ours.push((format!("0x{:08X}", row.ssrc), row.packet_count, row.lost_count, jitter));
        });
        let arguments = ["-q", "--enable-heuristic", "rtp_udp", "-z", "rtp,streams"];
        let Some(report) = tshark(&capture, &arguments) else { return println!("skipped: no tshark") };
        let mut theirs = Vec::new();
        for line in report.lines().filter(|line| line.contains(" 0x")) {
            let words: Vec<_> = line.split_whitespace().collect();
            let numbers = |at: usize| words[at].parse().expect("a number");
            // Without a clock, the smallest jitter is -1.
            let has_clock = words[14] != "-1.000";
            let jitter = [15, 16].map(|at| words[at].to_owned());
            theirs.push((words[6].to_owned(), numbers(8), numbers(9), has_clock.then_some(jitter)));
        }
        ours.sort();
        theirs.sort();
        assert_eq!(ours.len(), theirs.len(), "{}: {report}", capture.display());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!((&ours.0, ours.1, ours.2), (&theirs.0, theirs.1, theirs.2), "{}", capture.display());
            if let Some(jitter) = &theirs.3 {
                assert_eq!(&ours.3, jitter, "{}", capture.display());
            }
        }
        count += theirs.len();
    }
    assert_eq!(count, 9);
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/findings").join(name)
}

/// Addresses that STUN maps, of all successful responses.
#[test]
fn addresses_of_stun_are_those_of_tshark() {
    let Some(root) = corpus::root() else { return println!("skipped: no corpus") };
    let mut count = 0;
    for capture in
        ["Malcolm-Test-Artifacts/protocols/STUN.pcap", "nDPI/KakaoTalk_talk.pcap", "merged/iot-public.pcap"]
    {
        let capture = root.join("captures").join(capture);
        let mut ours = std::collections::BTreeSet::new();
        each(capture.clone(), |message, _| {
            let Some(row) = message.get::<stun::Exchange>() else { return };
            let is_mapped = row.method.name() == Some("binding") && row.is_success == Some(true);
            if let Some((address, port)) = row.mapped_address.zip(row.mapped_port).filter(|_| is_mapped) {
                ours.insert(format!("{address} {port}"));
            }
        });
        let fields = ["-e", "stun.att.ipv4", "-e", "stun.att.ipv6", "-e", "stun.att.port"];
        let arguments: Vec<_> = ["-Y", "stun.type == 0x0101 && udp", "-T", "fields", "-E", "occurrence=f"]
            .into_iter()
            .chain(fields)
            .collect();
        let Some(theirs) = tshark(&capture, &arguments) else { return println!("skipped: no tshark") };
        let theirs = theirs.lines().map(|line| line.trim_start().replace("\t\t", " ").replace('\t', " "));
        let theirs: std::collections::BTreeSet<_> = theirs.filter(|place| !place.is_empty()).collect();
        count += theirs.len();
        assert_eq!(ours, theirs, "{}", capture.display());
    }
    assert!(count > 5, "{count}");
}
