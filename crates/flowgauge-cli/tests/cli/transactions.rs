//! Tests of `sessions --transactions`; `tests/oracle/transactions.rs` compares transactions with messages.

use super::{objects, run};

#[test]
fn requests_state_who_authenticates_with_ntlm_and_kerberos() {
    let capture = super::repository().join("examples/findings/login-intranet.pcap.zst");
    let run = run(&["sessions", capture.to_str().unwrap(), "-q", "--transactions", "-p", "http"]);
    let all = objects(&run.out);
    let of = |target: &str| {
        all.iter().find(|row| row["target"] == target && row["status"] == 200).expect("an accepted request")
    };
    let ntlm = of("/ntlm");
    assert_eq!((&ntlm["user_name"], &ntlm["client_host"]), (&r"EXAMPLE\alice".into(), &"WORKSTATION".into()));
    assert_eq!(of("/report")["service_name"], "HTTP/files.lab.example@LAB.EXAMPLE");
}

#[test]
fn connections_and_certificates_have_one_transaction() {
    let web = objects(&run(&["sessions", "web.pcap", "-q", "--transactions"]).out);
    let of = |kind: &str| web.iter().filter(|row| row["kind"] == kind).collect::<Vec<_>>();
    let tls = of("tls");
    assert_eq!((tls.len(), of("x509").len()), (7, 2));
    for row in of("x509") {
        // The certificate was made with: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256.
        let key = ["key_algorithm", "key_type", "curve", "signature_algorithm"]
            .map(|name| row[name].as_str().unwrap());
        assert_eq!(key, ["id-ecPublicKey", "ecdsa", "prime256v1", "ecdsa-with-SHA256"]);
        assert_eq!((&row["key_len"], &row["version"], &row["is_ca"]), (&256.into(), &3.into(), &true.into()));
        let shown = tls.iter().filter(|tls| tls["certificates"].as_array().unwrap().contains(&row["sha256"]));
        assert_eq!(shown.count(), 2);
    }
    let ssh = objects(&run(&["sessions", "ssh.pcap", "-q", "--transactions", "-p", "ssh"]).out);
    assert!(ssh.len() == 4 && ssh.iter().all(|row| row["version"] == 2 && row.get("lacks").is_none()));
    let only = objects(&run(&["sessions", "web.pcap", "-q", "--transactions", "-p", "http"]).out);
    assert!(
        !only.is_empty() && only.iter().all(|row| row["protocol"] == "http" || row["protocol"] == "http2")
    );
    let hashed = objects(&run(&["sessions", "web.pcap", "-q", "--transactions", "--hashes"]).out);
    let page = hashed
        .iter()
        .find(|row| row["kind"] == "file" && row["seen_len"] == 48)
        .expect("the page of the server");
    // echo '<!doctype html><title>Start</title><p>It works.' | sha256sum, as in examples/data/record.sh
    assert_eq!((&page["detected_type"], &page["content_type"]), (&"text/html".into(), &"text/html".into()));
    assert_eq!(page["sha256"], "56700ee695ef8e243eedc6f24c08ae209b66e5e6a3c64e285a3f4894bb7a38c9");
    assert!(web.iter().all(|row| row.get("sha256").is_none() || row["kind"] == "x509"));
    let table = run(&["sessions", "dns.pcap", "-q", "--transactions", "-f", "table"]);
    assert!(table.out.lines().nth(1).is_some_and(|line| line.contains("dns  ") && line.contains(" query=")));
    let refused = run(&["sessions", "dns.pcap", "--transactions", "--credentials"]);
    assert_eq!(refused.status, 2);
}
