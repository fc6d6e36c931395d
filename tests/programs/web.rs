//! curl and nginx with unencrypted HTTP/1 and HTTP/2, and over TLS 1.2 and 1.3: the messages match the server's access
//! log and the client's log.

use serde_json::Value;

use crate::lab::{Recorded, record};
use crate::observe::{Dialogue, dialogues};

const SERVER: &str = "
daemon off;
worker_processes 1;
user root;
error_log nginx.err;
events {}
http {
    # Its count includes chunk framing and the response to Expect.
    map $sent_http_transfer_encoding$http_expect $octets { '' $body_bytes_sent; default -; }
    log_format lines '$server_port|$connection|$request_method|$request_uri|$http_host|$http_user_agent|$status|$octets';
    access_log access.log lines;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    root files;
    ssl_certificate cert;
    ssl_certificate_key key;
    server {
        listen 127.0.0.1:9080;
        location /moved { return 301 /small; }
        location /taken { client_max_body_size 10m; proxy_pass http://127.0.0.1:9081/; }
        location /parts { ssi on; ssi_types *; }
    }
    server {
        listen 127.0.0.1:9081;
        location / { return 201 thanks; }
    }
    server { listen 127.0.0.1:9082 http2; }
    server { listen 127.0.0.1:9442 ssl; ssl_protocols TLSv1.2; }
    server { listen 127.0.0.1:9443 ssl http2; ssl_protocols TLSv1.3; }
}
";

const SCRIPT: &str = r#"
openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj '/O=Houses and Gardens/CN=web.example' \
    -addext subjectAltName=DNS:web.example,DNS:www.web.example 2>openssl.log
openssl x509 -in cert -noout -fingerprint -sha256 >fingerprint
openssl x509 -in cert -noout -serial >serial
openssl x509 -in cert -noout -subject -nameopt RFC2253 >subject
openssl x509 -in cert -noout -startdate -dateopt iso_8601 >start
openssl x509 -in cert -noout -enddate -dateopt iso_8601 >end
openssl ciphers -stdname ALL >ciphers
mkdir files
echo small >files/small
seq 1 150000 >files/big
printf 'before <!--#echo var="request_uri" --> behind' >files/parts
chmod -R a+rX .
$(command -v nginx) -p "$PWD" -c server >nginx.out 2>&1 &
waited listens 9080
waited listens 9443
fetch() { curl -sSv --max-time 10 -A tester/1 -k --resolve web.example:9442:127.0.0.1 --resolve web.example:9443:127.0.0.1 "$@"; }
# curl sends these requests in one connection.
fetch http://127.0.0.1:9080/small http://127.0.0.1:9080/big http://127.0.0.1:9080/parts http://127.0.0.1:9080/none?a=b \
    >plain.out 2>plain.txt
fetch -I http://127.0.0.1:9080/big >head.out 2>head.txt
fetch -H 'Expect: 100-continue' -T files/big http://127.0.0.1:9080/taken >put.out 2>put.txt
fetch -L -u somebody:opensesame http://127.0.0.1:9080/moved >moved.out 2>moved.txt
fetch -r 100-299 http://127.0.0.1:9080/big >range.out 2>range.txt
fetch --http1.0 http://127.0.0.1:9080/small >old.out 2>old.txt
for name in small big none; do fetch --http2-prior-knowledge http://127.0.0.1:9082/$name >h2c.out 2>h2c.txt; done
fetch --tls-max 1.2 https://web.example:9442/big >first.out 2>first.txt
fetch --http2 https://web.example:9443/big >second.out 2>second.txt
"#;

/// Returns requests and responses in the format of the server's log, without the connection number.
fn exchanges(dialogue: &Dialogue) -> Vec<String> {
    let protocol = if dialogue.recognized == [("http2", "content")] { "http2" } else { "http" };
    let responses = dialogue.all(protocol, "response");
    let of = |all: Vec<&Value>, number: &Value, from: &str| {
        let is = |value: &&&Value| value["transaction"] == *number && value["from"] == from;
        all.iter().find(is).map(|value| (**value).clone()).unwrap_or_default()
    };
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let requests = dialogue.all(protocol, "request");
    let lines = requests.iter().map(|request| {
        let number = &request["transaction"];
        let is_final =
            |value: &&&Value| value["transaction"] == *number && value["status"].as_u64() >= Some(200);
        let response = responses.iter().find(is_final).map(|value| (**value).clone()).unwrap_or_default();
        let end = of(dialogue.all(protocol, "end"), number, "server");
        let keys = ["method", "target", "host", "user_agent"].map(|key| text(&request[key])).join("|");
        let is_interim = |value: &&Value| value["transaction"] == *number && value["status"] == 100;
        let is_counted = response["transfer_encoding"].is_null() && !responses.iter().any(is_interim);
        let octets = if is_counted { end["body_len"].to_string() } else { "-".to_owned() };
        format!("{keys}|{}|{octets}", response["status"])
    });
    lines.collect()
}

/// Returns the lines of the access log for a port, by connection.
fn logged(recorded: &Recorded, port: u16) -> Vec<Vec<String>> {
    let mut connections: Vec<(String, Vec<String>)> = Vec::new();
    for line in recorded.lines("access.log", &format!("{port}|")) {
        let (connection, rest) = line.split_once('|').expect("a connection");
        match connections.iter_mut().find(|(known, _)| known == connection) {
            Some((_, lines)) => lines.push(rest.to_owned()),
            None => connections.push((connection.to_owned(), vec![rest.to_owned()])),
        }
    }
    connections.into_iter().map(|(_, lines)| lines).collect()
}

#[test]
fn http_and_tls_messages_match_the_logs_of_curl_and_nginx() {
    let files = [("server", SERVER)];
    let Some(recorded) = record("web", &["curl", "nginx", "openssl"], &files, SCRIPT) else { return };
    let all = dialogues(&recorded.capture());
    let to = |port| all.iter().filter(|dialogue| dialogue.server_port == port).collect::<Vec<_>>();

    let plain = to(9080);
    let observed: Vec<_> = plain.iter().map(|dialogue| exchanges(dialogue)).collect();
    assert_eq!(observed, logged(&recorded, 9080));
    assert_eq!(observed.iter().map(Vec::len).sum::<usize>(), 10, "{observed:#?}");
    assert!(plain.iter().all(|dialogue| dialogue.recognized == [("http", "content")]));
    for (dialogue, name) in
        plain.iter().zip(["plain.out", "head.none", "put.out"]).filter(|(_, name)| *name != "head.none")
    {
        let ends = dialogue.all("http", "end").into_iter().filter(|value| value["from"] == "server");
        let lens = ends.map(|value| value["body_len"].as_u64().unwrap_or_default());
        assert_eq!(lens.sum::<u64>(), recorded.file(name).len() as u64, "{name}");
    }
    // The connections between the servers, and the body that a client sends.
    assert_eq!(
        to(9081).iter().map(|dialogue| exchanges(dialogue)).collect::<Vec<_>>(),
        logged(&recorded, 9081)
    );
    let len = recorded.file("files/big").len();
    let put =
        plain.iter().find(|dialogue| dialogue.all("http", "request")[0]["method"] == "PUT").expect("a PUT");
    assert_eq!(put.of("client", "http", "end")["body_len"], len);
    assert!(put.all("http", "response").iter().any(|value| value["status"] == 100));
    let h2c = to(9082);
    assert_eq!(h2c.iter().map(|dialogue| exchanges(dialogue)).collect::<Vec<_>>(), logged(&recorded, 9082));
    assert!(h2c.len() == 3 && h2c.iter().all(|dialogue| dialogue.recognized == [("http2", "content")]));
    // Only the kind of credentials is reported.
    let moved = plain
        .iter()
        .find(|dialogue| dialogue.all("http", "request")[0]["target"] == "/moved")
        .expect("a redirection");
    assert_eq!(moved.all("http", "request")[0]["credentials"], "basic");
    assert!(!serde_json::to_string(&moved.messages).expect("objects").contains("c29tZWJvZHk6"));

    for (port, log, version) in [(9442, "first.txt", "TLSv1.2"), (9443, "second.txt", "TLSv1.3")] {
        let dialogues = to(port);
        assert_eq!(dialogues.len(), 1);
        assert_eq!(dialogues[0].recognized, [("tls", "content")]);
        tls(dialogues[0], &recorded, (log, version));
    }
}

/// Compares a TLS connection with the client's log and with openssl's output for the certificate.
fn tls(dialogue: &Dialogue, recorded: &Recorded, (log, version): (&str, &str)) {
    let one = |name: &str, prefix: &str| {
        recorded.lines(name, prefix).into_iter().next().unwrap_or_else(|| panic!("{prefix} in {name}"))
    };
    let (client, server) = (dialogue.only("tls", "client_hello"), dialogue.only("tls", "server_hello"));
    assert_eq!(client["server_name"], "web.example");
    assert_eq!(client["alpn"], serde_json::json!(one(log, "* ALPN: offers ").split(',').collect::<Vec<_>>()));
    let reported = one(log, "* SSL connection using ");
    let (logged_version, logged_cipher) = reported.split_once(" / ").expect("a version and a cipher");
    assert_eq!((logged_version, &server["version"]), (version, &version.replace("TLSv", "TLS ").into()));
    // openssl has its own names for ciphers and lists them with the standard names.
    let standard = recorded.file("ciphers");
    let named = standard.lines().find(|line| line.split_whitespace().nth(2) == Some(logged_cipher));
    assert_eq!(server["cipher_suite"].as_str(), named.and_then(|line| line.split_whitespace().next()));
    let chains = dialogue.all("tls", "certificate_chain");
    if version == "TLSv1.3" {
        assert_eq!(chains.len(), 0, "the certificate is encrypted");
        return;
    }
    assert_eq!(server["alpn"], one(log, "* ALPN: server accepted "));
    let certificate = &chains[0]["certificates"][0];
    assert_eq!(
        certificate["sha256"],
        one("fingerprint", "sha256 Fingerprint=").replace(':', "").to_lowercase()
    );
    assert_eq!(certificate["serial"], one("serial", "serial=").to_lowercase());
    assert_eq!(certificate["subject"], one("subject", "subject="));
    assert_eq!(
        certificate["alt_names"],
        serde_json::json!([{"dns": "web.example"}, {"dns": "www.web.example"}])
    );
    let reported = [one("start", "notBefore="), one("end", "notAfter=")].map(|time| time.replace(' ', "T"));
    assert_eq!([&certificate["not_before"], &certificate["not_after"]], [&reported[0], &reported[1]]);
}
