//! Transactions, compared with a program that reads all messages of a capture twice: first to group them by flow and number,
//! then to join each group.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flowgauge::export::{Style, write_json};
use flowgauge::protocols::{ftp_data, http1, http2, smtp, tftp};
use flowgauge::row::{Row, Union};
use flowgauge::session::{MessageHead, MessageMeta};
use flowgauge::transaction::{Transaction, TransactionConfig, TransactionHead};
use flowgauge::{
    FileSource, FlowView, Message, Pipeline, RunOptions, Sink, Standard, on_message, on_transaction,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::corpus;
use crate::mail::{NaiveMail, NaivePart};

/// Flow and number of a transaction.
type Key = (String, String, String, u64);

fn key(row: &Value, number: &Value) -> Option<Key> {
    let flow = [&row["community_id"], &row["start"], &row["protocol"]].map(ToString::to_string);
    let [community_id, start, protocol] = flow;
    Some((format!("{community_id} {}", row["source_port"]), start, protocol, number.as_u64()?))
}

/// Returns flow and number of the mail in a message.
fn mail_key(row: &Value) -> Option<Key> {
    key(row, &row["mail"])
}

/// What the test compares of a transaction, by name; absent values are not in it.
type Facts = BTreeMap<&'static str, Value>;

fn put(facts: &mut Facts, name: &'static str, value: &Value) {
    if !value.is_null() {
        facts.insert(name, value.clone());
    }
}

/// Copies values with these names.
fn copy(facts: &mut Facts, row: &Value, names: &[&'static str]) {
    names.iter().for_each(|name| put(facts, name, &row[name]));
}

fn is(row: &Value, role: &str, message: &str) -> bool {
    row["message"] == message && (role.is_empty() || row["role"] == role)
}

fn http(group: &[&Value]) -> Option<Facts> {
    let first = |role: &str, message: &str| group.iter().find(|row| is(row, role, message));
    let request = first("", "request");
    let is_final =
        |row: &&&Value| row["status"].as_u64().is_some_and(|status| status >= 200 || status == 101);
    let response = group.iter().filter(|row| is(row, "", "response")).find(is_final);
    if request.is_none() && !group.iter().any(|row| is(row, "", "response")) {
        return None;
    }
    let mut facts = Facts::new();
    if let Some(row) = request {
        copy(&mut facts, row, &["method", "host", "user_agent", "referer", "scheme", "grpc_method"]);
        let target = &row["target"];
        put(&mut facts, "target", target);
    }
    if let Some(row) = response {
        copy(
            &mut facts,
            row,
            &["status", "reason", "server", "location", "content_type", "content_encoding"],
        );
        put(&mut facts, "response_timestamp", &row["timestamp"]);
    }
    let (request_end, response_end) = (first("client", "end"), first("server", "end"));
    let is_pushed = request.is_some_and(|row| row["pushed"] == true);
    for (end, len, missing_len) in [
        (request_end, "request_body_len", "request_missing_len"),
        (response_end, "response_body_len", "response_missing_len"),
    ] {
        if let Some(end) = end {
            put(&mut facts, len, &end["body_len"]);
            put(&mut facts, missing_len, &end["missing_len"]);
        }
    }
    let incomplete: Vec<_> =
        group.iter().filter(|row| is(row, "", "end") && row["complete"] == false).collect();
    let is_open = response_end.is_none() || request_end.is_none() && request.is_some() && !is_pushed;
    let lacks = if request.is_none() {
        Some("request")
    } else if is_open && response.is_none() {
        Some("response")
    } else if is_open || incomplete.iter().any(|row| row["missing_len"] == 0) {
        Some("end")
    } else if incomplete.is_empty() {
        None
    } else {
        Some("body")
    };
    facts.extend(lacks.map(|lacks| ("lacks", lacks.into())));
    Some(facts)
}

fn dns(group: &[&Value]) -> Option<Facts> {
    let find = |message: &str| group.iter().find(|row| is(row, "", message));
    let (query, response, unanswered) = (find("query"), find("response"), find("unanswered"));
    let asked = query.or(response)?;
    let mut facts = Facts::new();
    copy(&mut facts, asked, &["id"]);
    if let Some(question) = asked["questions"].as_array().and_then(|questions| questions.first()) {
        put(&mut facts, "query", &question["name"]);
        put(&mut facts, "query_type", &question["type"]);
    }
    if let Some(row) = response {
        copy(&mut facts, row, &["rcode", "response_time"]);
        let answers = row["answers"].as_array().into_iter().flatten();
        // A record without data has no value in a row, and RFC 3597 has a text for it.
        let data = |answer: &Value| match &answer["data"] {
            Value::Null => "\\# 0".into(),
            data => data.clone(),
        };
        facts.insert("answers", answers.map(data).collect());
    } else {
        facts.insert("answers", Vec::<Value>::new().into());
        facts.insert("lacks", "response".into());
        if let Some(row) = unanswered {
            copy(&mut facts, row, &["waited"]);
        }
    }
    if query.is_none() {
        facts.insert("lacks", "request".into());
    }
    Some(facts)
}

/// Names of the facts in the header of a mail that are texts, with the names of their fields.
const MAIL_FIELDS: [(&str, &[&str]); 7] = [
    ("date", &["date"]),
    ("from", &["from"]),
    ("reply_to", &["reply-to"]),
    ("message_id", &["message-id"]),
    ("in_reply_to", &["in-reply-to"]),
    ("subject", &["subject"]),
    ("user_agent", &["user-agent", "x-mailer"]),
];

/// Splits a list of addresses at commas. Those in quotes and comments are replaced before.
fn addresses(list: &str) -> Vec<String> {
    let (mut plain, mut is_quoted, mut depth) = (String::new(), false, 0);
    for letter in list.chars() {
        match letter {
            '"' if depth == 0 => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ => {}
        }
        plain.push(if letter == ',' && (is_quoted || depth > 0) { '\0' } else { letter });
    }
    let addresses = plain.split(',').map(|address| address.trim().replace('\0', ","));
    addresses.filter(|address| !address.is_empty()).collect()
}

/// Adds what the header of a mail and its parts state.
fn add_header(facts: &mut Facts, content: &[u8]) {
    let mail = NaiveMail::read(content);
    let values = |name: &str| {
        let fields = mail.fields.iter().filter(|(other, _)| other == name);
        fields.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect::<Vec<_>>()
    };
    for (name, fields) in MAIL_FIELDS {
        let value = fields.iter().find_map(|field| values(field).into_iter().next());
        facts.extend(value.map(|value| (name, value.into())));
    }
    let list = |name| addresses(&values(name).into_iter().next().unwrap_or_default());
    let attachments = mail.parts.iter().filter(|part| part.is_attachment).map(|part| {
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        let mut members = serde_json::Map::new();
        members.extend(part.name.as_deref().map(|name| ("name".to_owned(), text(name).into())));
        members.insert("content_type".to_owned(), text(&part.content_type).into());
        Value::from(members)
    });
    let lists: [(&str, Vec<Value>); 4] = [
        ("to", list("to").into_iter().map(Value::from).collect()),
        ("cc", list("cc").into_iter().map(Value::from).collect()),
        ("received", values("received").into_iter().take(2).map(Value::from).collect()),
        ("attachments", attachments.collect()),
    ];
    facts.extend(
        lists.into_iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| (name, list.into())),
    );
    let ip = values("x-originating-ip").into_iter().next();
    let ip = ip.map(|text| text.trim_matches(['[', ']']).to_owned());
    let ip = ip.filter(|text| text.parse::<std::net::IpAddr>().is_ok());
    facts.extend(ip.map(|ip| ("originating_ip", ip.into())));
}

fn mail(group: &[&Value], content: Option<&MailContent>) -> Option<Facts> {
    let row = group.iter().find(|row| is(row, "", "mail"))?;
    let mut facts = Facts::new();
    let content = content.filter(|content| !content.has_gap);
    add_header(&mut facts, content.map(|content| content.octets.as_slice()).unwrap_or_default());
    put(&mut facts, "sender", &row["reverse_path"]);
    copy(&mut facts, row, &["recipient_count", "content_len", "code", "is_accepted", "declared_len"]);
    let recipients = row["recipients"].as_array().into_iter().flatten();
    facts.insert("recipients", recipients.map(|recipient| recipient["address"].clone()).collect());
    Some(facts)
}

/// The file of one direction of a data connection of FTP.
struct Data {
    /// The row before which its first octets arrived, and the row with its end.
    begin: usize,
    end: Option<usize>,
    octets: Vec<u8>,
    missing_len: u64,
    /// The command to which it belongs: its row, and the flow and number.
    command: Option<(usize, Key)>,
}

const TRANSFERS: [&str; 7] = ["RETR", "STOR", "STOU", "APPE", "LIST", "NLST", "MLSD"];

/// Returns the ends of the flow of a row.
fn ends(row: &Value) -> [(&Value, &Value); 2] {
    [(&row["source_address"], &row["source_port"]), (&row["destination_address"], &row["destination_port"])]
}

/// Finds the command to which each data connection belongs: the first one that transfers something and has no last reply
/// before the first octets, in the control connection that last announced the port, or else the last one that was complete.
fn find_commands(rows: &[Value], data: &mut BTreeMap<(String, String), (Value, Data)>) {
    for (head, data) in data.values_mut() {
        let before = rows.get(..data.begin).expect("rows before the octets");
        let hosts = |row: &Value| {
            let mut hosts = ends(row).map(|(address, _)| address.to_string());
            hosts.sort();
            hosts
        };
        let announced = before.iter().rfind(|row| {
            is(row, "", "data_connection")
                && hosts(row) == hosts(head)
                && ends(head).iter().any(|(_, port)| **port == row["port"])
        });
        let Some(control) = announced else { continue };
        let flow = |row: &Value| key(row, &0.into()).map(|(flow, start, ..)| (flow, start));
        let all: Vec<_> = before.iter().enumerate().filter(|(_, row)| flow(row) == flow(control)).collect();
        let is_transfer = |row: &Value| {
            let verb = row["verb"].as_str().unwrap_or_default().to_ascii_uppercase();
            is(row, "", "command") && TRANSFERS.contains(&verb.as_str())
        };
        let replied = |number: &Value| {
            all.iter().find(|(_, row)| is(row, "", "transfer") && row["transaction"] == *number)
        };
        let open = all.iter().find(|(_, row)| is_transfer(row) && replied(&row["transaction"]).is_none());
        let last = || {
            let (_, end) = all.iter().rfind(|(_, row)| is(row, "", "transfer"))?;
            let is_of = |row: &Value| is_transfer(row) && row["transaction"] == end["transaction"];
            all.iter().find(|(_, row)| end["is_complete"] == true && is_of(row))
        };
        let command = open.or_else(last);
        data.command = command.and_then(|(index, row)| Some((*index, key(row, &row["transaction"])?)));
    }
}

/// Compares the files of data connections. Returns what differs.
fn differing_transfers(rows: &[Value], messages: &Messages) -> Vec<String> {
    let mut files: BTreeMap<_, _> = rows
        .iter()
        .filter(|row| row["kind"] == "file" && row["protocol"] == "ftp_data")
        .map(|row| (data_key(row), row))
        .collect();
    let mut different = Vec::new();
    for (key, (_, data)) in &messages.data {
        let number = data.command.as_ref().map_or(0, |(_, (.., number))| *number);
        let path = data.command.as_ref().and_then(|(index, _)| messages.rows[*index]["argument"].as_str());
        let name = path.map(|path| path.rsplit('/').next().unwrap_or_default());
        let digest: String =
            Sha256::digest(&data.octets).iter().map(|octet| format!("{octet:02x}")).collect();
        let is_same = |row: &Value| {
            row["number"] == number
                && row["name"].as_str() == name
                && row["seen_len"] == data.octets.len()
                && row["missing_len"] == data.missing_len
                && (row["sha256"] == digest) == (row["is_complete"] == true)
        };
        match files.remove(key) {
            Some(row) if is_same(row) => {}
            row => different.push(format!("{key:?}: {number}, {name:?}, {}: {row:?}", data.octets.len())),
        }
    }
    different.extend(files.keys().map(|key| format!("{key:?}: a file without octets")));
    different
}

/// Compares the files of TFTP. Returns what differs.
fn differing_files_of_tftp(rows: &[Value], messages: &Messages) -> Vec<String> {
    let files = rows.iter().filter(|row| row["kind"] == "file" && row["protocol"] == "tftp");
    let files: BTreeMap<_, _> = files.map(|row| (data_key(row), row)).collect();
    let is_same = |key: &(String, String), (octets, missing_len): &Body| {
        let Some(row) = files.get(key) else { return false };
        let is_request = |other: &&Value| {
            let is_of = |name| other[name] == row[name];
            is(other, "client", "request")
                && other["protocol"] == "tftp"
                && is_of("source_address")
                && is_of("source_port")
        };
        let path = messages.rows.iter().rfind(is_request).and_then(|request| request["file_name"].as_str());
        let digest: String = Sha256::digest(octets).iter().map(|octet| format!("{octet:02x}")).collect();
        row["name"].as_str() == path.map(|path| path.rsplit(['/', '\\']).next().unwrap_or_default())
            && row["seen_len"] == octets.len()
            && row["missing_len"] == *missing_len
            && (row["sha256"] == digest) == (row["is_complete"] == true)
    };
    let different = messages.tftp.iter().filter(|(key, body)| !is_same(key, body));
    let mut different: Vec<_> = different.map(|(key, _)| format!("{key:?}: {:?}", files.get(key))).collect();
    if files.len() != messages.tftp.len() {
        different.push(format!("{} files of {}", files.len(), messages.tftp.len()));
    }
    different
}

/// Returns flow and sender of a file in a data connection.
fn data_key(row: &Value) -> (String, String) {
    (format!("{} {}", row["community_id"], row["start"]), row["role"].to_string())
}

/// Adds what the data connection of a command transferred, if it ended before the next command.
fn add_transfer(facts: &mut Facts, key: &Key, messages: &Messages) {
    let is_of = |data: &&Data| data.command.as_ref().is_some_and(|(_, command)| command == key);
    let Some(data) = messages.data.values().map(|(_, data)| data).find(is_of) else { return };
    let (index, _) = data.command.as_ref().expect("a command");
    let is_control = |row: &Value| {
        self::key(row, &row["transaction"]).is_some_and(|(flow, ..)| flow == key.0)
            && row["protocol"] == "ftp"
    };
    let last_reply = |row: &Value| is(row, "", "reply") && row["code"].as_u64() >= Some(200);
    let rows = || messages.rows.iter().enumerate().skip(index + 1).filter(|(_, row)| is_control(row));
    let replied = rows().find(|(_, row)| last_reply(row)).map(|(index, _)| index);
    // The next message of the control connection behind the last reply, other than what belongs to it.
    let next = replied.and_then(|replied| {
        rows().find(|(index, row)| *index > replied && (is(row, "", "command") || is(row, "", "reply")))
    });
    let is_in_time = data.end.is_some_and(|end| next.is_none_or(|(next, _)| end <= next));
    if is_in_time {
        facts.insert("seen_len", data.octets.len().into());
        facts.insert("missing_len", data.missing_len.into());
    }
}

fn ftp(group: &[&Value]) -> Option<Facts> {
    let command = group.iter().find(|row| is(row, "", "command"))?;
    let mut facts = Facts::new();
    put(&mut facts, "command", &command["verb"]);
    copy(&mut facts, command, &["argument"]);
    let replies: Vec<_> = group.iter().filter(|row| is(row, "", "reply")).collect();
    let last = replies.iter().find(|row| row["code"].as_u64() >= Some(200)).or(replies.last());
    if let Some(reply) = last {
        copy(&mut facts, reply, &["code"]);
        put(&mut facts, "reply", &reply["text"]);
    }
    if let Some(row) = group.iter().find(|row| is(row, "", "data_connection")) {
        put(&mut facts, "data_address", &row["address"]);
        put(&mut facts, "data_port", &row["port"]);
    }
    if let Some(row) = group.iter().find(|row| is(row, "", "transfer")) {
        put(&mut facts, "file_len", &row["announced_len"]);
        put(&mut facts, "is_transferred", &row["is_complete"]);
        let data = &row["data"];
        put(&mut facts, "data_address", &data["address"]);
        put(&mut facts, "data_port", &data["port"]);
    }
    Some(facts)
}

/// A connection of TLS, DTLS or QUIC.
fn tls(group: &[&Value]) -> Option<Facts> {
    let mut facts = Facts::new();
    let of = |message: &str| group.iter().filter(|row| is(row, "", message)).collect::<Vec<_>>();
    let (offers, answers) = (of("client_hello"), of("server_hello"));
    let selected = answers.iter().rfind(|row| row["is_hello_retry_request"] != true);
    if let Some(offer) = offers.first() {
        copy(&mut facts, offer, &["ja3", "ja4"]);
    }
    if let Some(offer) = offers.last() {
        copy(&mut facts, offer, &["server_name"]);
    }
    if let Some(row) = selected {
        copy(&mut facts, row, &["version", "cipher_suite", "ja3s"]);
    }
    let is_13 = selected.is_some_and(|row| row["version"] == "TLS 1.3");
    let encrypts = |role: &str| {
        let is_sign = |row: &&Value| match is_13 {
            true => is(row, role, "step") && row["handshake_type"].is_null(),
            false => is(row, role, "change_cipher_spec"),
        };
        selected.is_some() && group.iter().any(is_sign)
    };
    if encrypts("client") && encrypts("server") {
        facts.insert("is_established", true.into());
    }
    let is_offered = !offers.is_empty() || !of("ssl2_client_hello").is_empty();
    let lacks = if is_offered { selected.is_none().then_some("response") } else { Some("request") };
    facts.extend(lacks.map(|lacks| ("lacks", lacks.into())));
    Some(facts)
}

fn ssh(group: &[&Value]) -> Option<Facts> {
    let mut facts = Facts::new();
    let find = |role: &str, message: &str| group.iter().find(|row| is(row, role, message));
    for (role, fingerprint) in [("client", "hassh"), ("server", "hassh_server")] {
        if let Some(row) = find(role, "identification") {
            let text = |name: &str| row[name].as_str().map(str::to_owned);
            let (version, software) = (text("protocol_version")?, text("software_version")?);
            let comments = text("comments").map(|comments| format!(" {comments}")).unwrap_or_default();
            facts.insert(role, format!("SSH-{version}-{software}{comments}").into());
        }
        if let Some(row) = find(role, "kex_init") {
            let hassh = if row["hassh"].is_null() { &row["hassh_server"] } else { &row["hassh"] };
            put(&mut facts, fingerprint, hassh);
        }
    }
    match find("", "negotiated") {
        Some(row) => {
            copy(&mut facts, row, &["kex_algorithm"]);
            match find("server", "host_key") {
                Some(row) => put(&mut facts, "host_key_fingerprint", &row["fingerprint"]),
                None => drop(facts.insert("lacks", "end".into())),
            }
        }
        None => {
            let is_answered = find("server", "identification").is_some();
            facts.insert("lacks", if is_answered { "end" } else { "response" }.into());
        }
    }
    Some(facts)
}

/// Protocols with one transaction per flow.
const CONNECTIONS: [&str; 3] = ["tls", "dtls", "ssh"];

/// Joins the messages of a capture, in two passes.
fn naive(all: &Messages) -> BTreeMap<Key, Vec<Facts>> {
    let Messages { rows: messages, contents, .. } = all;
    let mut groups: BTreeMap<Key, Vec<&Value>> = BTreeMap::new();
    for row in messages {
        let number = if row["message"] == "mail" { &row["mail"] } else { &row["transaction"] };
        let is_connection = CONNECTIONS.iter().any(|name| row["protocol"] == *name);
        let number = if is_connection { &Value::from(0) } else { number };
        groups.extend(
            key(row, number).map(|key| (key, Vec::new())).filter(|(key, _)| !groups.contains_key(key)),
        );
        if let Some(group) = key(row, number).and_then(|key| groups.get_mut(&key)) {
            group.push(row);
        }
    }
    let mut joined: BTreeMap<Key, Vec<Facts>> = BTreeMap::new();
    for (key, group) in groups {
        let facts = match key.2.trim_matches('"') {
            "http" | "http2" => http(&group),
            "dns" | "llmnr" => dns(&group),
            "smtp" => mail(&group, contents.get(&key)),
            "ftp" => ftp(&group).map(|mut facts| {
                add_transfer(&mut facts, &key, all);
                facts
            }),
            "tls" | "dtls" | "quic" => tls(&group),
            "ssh" => ssh(&group),
            _ => None,
        };
        joined.entry(key).or_default().extend(facts);
    }
    joined.retain(|_, all| !all.is_empty());
    joined
}

/// Returns what the program wrote, reduced to the names that the naive join has.
fn written(rows: &[Value]) -> BTreeMap<Key, Vec<Facts>> {
    const TLS: &[&str] =
        &["server_name", "ja3", "ja4", "version", "cipher_suite", "ja3s", "is_established", "lacks"];
    const NAMES: [(&str, &[&str]); 7] = [
        ("tls", TLS),
        ("quic", TLS),
        (
            "ssh",
            &["client", "server", "hassh", "hassh_server", "kex_algorithm", "host_key_fingerprint", "lacks"],
        ),
        (
            "http",
            &[
                "method",
                "host",
                "user_agent",
                "referer",
                "scheme",
                "grpc_method",
                "target",
                "status",
                "reason",
                "server",
                "location",
                "content_type",
                "content_encoding",
                "response_timestamp",
                "request_body_len",
                "request_missing_len",
                "response_body_len",
                "response_missing_len",
                "lacks",
            ],
        ),
        ("dns", &["id", "query", "query_type", "rcode", "response_time", "answers", "waited", "lacks"]),
        (
            "mail",
            &[
                "sender",
                "recipient_count",
                "content_len",
                "code",
                "is_accepted",
                "declared_len",
                "recipients",
                "date",
                "from",
                "to",
                "cc",
                "reply_to",
                "message_id",
                "in_reply_to",
                "subject",
                "received",
                "user_agent",
                "originating_ip",
                "attachments",
            ],
        ),
        (
            "ftp",
            &[
                "command",
                "argument",
                "code",
                "reply",
                "data_address",
                "data_port",
                "file_len",
                "is_transferred",
                "seen_len",
                "missing_len",
            ],
        ),
    ];
    let mut out: BTreeMap<Key, Vec<Facts>> = BTreeMap::new();
    for row in rows {
        let Some((_, names)) = NAMES.iter().find(|(kind, _)| row["kind"] == *kind) else { continue };
        let is_connection = CONNECTIONS.iter().any(|name| row["protocol"] == *name);
        let number = if is_connection { &Value::from(0) } else { &row["number"] };
        let Some(key) = key(row, number) else { continue };
        let mut facts = Facts::new();
        copy(&mut facts, row, names);
        out.entry(key).or_default().push(facts);
    }
    out
}

fn message_row(view: &FlowView<'_>, meta: &MessageMeta, message: &impl Union) -> Value {
    let row = message.row();
    object(&(MessageHead::new(view, view.community_id(), meta, row.table), row))
}

fn transaction_row(view: &FlowView<'_>, transaction: &Transaction) -> Value {
    let row = transaction.content.row();
    object(&(TransactionHead::new(view, view.community_id(), transaction, row.table), row))
}

fn object(row: &impl Row) -> Value {
    let mut line = Vec::new();
    write_json(&mut line, row, Style::default());
    serde_json::from_slice(&line).expect("an object")
}

/// Passes a capture to a sink; one that is damaged up to its damage.
fn pass(path: &Path, sink: impl Sink) {
    let mut pipeline = Pipeline::builder().build(sink).expect("defaults");
    let _ = pipeline.run(&mut FileSource::open(path).expect("a capture"), &RunOptions::default());
}

/// The body of a message: its octets, and the number of missing ones.
type Body = (Vec<u8>, u64);

/// The content of a mail.
#[derive(Default)]
struct MailContent {
    octets: Vec<u8>,
    has_gap: bool,
}

/// The messages of a capture.
#[derive(Default)]
struct Messages {
    rows: Vec<Value>,
    /// Bodies of HTTP by flow, number and sender.
    bodies: BTreeMap<(Key, String), Body>,
    contents: BTreeMap<Key, MailContent>,
    /// Files in data connections of FTP by flow and sender, each with the row of a message.
    data: BTreeMap<(String, String), (Value, Data)>,
    /// Files of TFTP by flow and sender.
    tftp: BTreeMap<(String, String), Body>,
}

fn messages(path: &Path) -> Messages {
    let mut all = Messages::default();
    let Messages { rows, bodies, contents, data, tftp: of_tftp } = &mut all;
    pass(
        path,
        on_message::<Standard>(|view, meta, message| {
            let row = message_row(view, meta, message);
            if let Message::FtpData(message) = message {
                let (begin, of) = (rows.len(), data_key(&row));
                let new = Data { begin, end: None, octets: Vec::new(), missing_len: 0, command: None };
                let (_, file) = data.entry(of).or_insert_with(|| (row.clone(), new));
                match message {
                    ftp_data::Message::Octets(piece) => file.octets.extend(piece.bytes),
                    ftp_data::Message::Gap(gap) => file.missing_len += gap.len,
                    _ => file.end = Some(begin),
                }
                return;
            }
            if let Message::Tftp(message) = message {
                match message {
                    tftp::Message::Octets(piece) => {
                        of_tftp.entry(data_key(&row)).or_default().0.extend(piece.bytes);
                    }
                    tftp::Message::Gap(gap) => of_tftp.entry(data_key(&row)).or_default().1 += gap.len,
                    _ => rows.push(row),
                }
                return;
            }
            let is_step =
                matches!(message, Message::Tls(message) | Message::Dtls(message) if message.is_step());
            if !message.is_content() || is_step {
                return rows.push(row);
            }
            if let Message::Smtp(message) = message {
                let key = key(&row, &row["mail"]).expect("the number of a mail");
                let content = contents.entry(key).or_default();
                match message {
                    smtp::Message::Content(piece) => content.octets.extend(piece.bytes),
                    _ => content.has_gap = true,
                }
                return;
            }
            let key = key(&row, &row["transaction"]).expect("the number of a body");
            let body = bodies.entry((key, row["role"].to_string())).or_default();
            match message {
                Message::Http1(http1::Message::Body(piece)) | Message::Http2(http2::Message::Body(piece)) => {
                    body.0.extend(piece.bytes);
                }
                _ => body.1 += row["len"].as_u64().expect("the length of a gap"),
            }
        }),
    );
    find_commands(rows, data);
    all
}

/// Compares the files of mails with the parts of their contents. Returns what differs.
fn differing_parts(rows: &[Value], messages: &Messages) -> Vec<String> {
    let mut found: BTreeMap<Key, Vec<&Value>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row["kind"] == "file" && !row["part"].is_null()) {
        found.entry(key(row, &row["number"]).expect("a number")).or_default().push(row);
    }
    let mut different = Vec::new();
    for (key, content) in &messages.contents {
        let files = found.remove(key).unwrap_or_default();
        if content.has_gap {
            let is_wrong = |row: &&&Value| row["is_complete"] == true && row["missing_len"] != 0;
            different.extend(files.iter().find(is_wrong).map(|row| format!("{key:?}: {row}")));
            continue;
        }
        let is_mail = |row: &&Value| is(row, "", "mail") && mail_key(row).as_ref() == Some(key);
        let is_ended = messages
            .rows
            .iter()
            .find(is_mail)
            .is_some_and(|row| row["is_complete"] == true && row["content_len"] == content.octets.len());
        let expected =
            NaiveMail::read(&content.octets).parts.into_iter().map(|part| facts_of(&part, is_ended));
        let written = files.iter().map(|row| {
            let mut facts = Facts::new();
            copy(
                &mut facts,
                row,
                &["name", "content_type", "seen_len", "missing_len", "is_complete", "sha256"],
            );
            facts
        });
        let (expected, written) = (expected.collect::<Vec<_>>(), written.collect::<Vec<_>>());
        let is_in_order = files.iter().enumerate().all(|(index, row)| row["part"] == index);
        if expected != written || !is_in_order {
            different.push(format!("{key:?}\n  {expected:?}\n  {written:?}"));
        }
    }
    different.extend(found.keys().map(|key| format!("{key:?}: files without a mail")));
    different
}

/// Returns what the row of a part states.
fn facts_of(part: &NaivePart, is_ended: bool) -> Facts {
    let text = |octets: &[u8]| Value::from(String::from_utf8_lossy(octets));
    let is_complete = part.is_delimited || is_ended && part.is_complete;
    let mut facts = Facts::from([
        ("content_type", text(&part.content_type)),
        ("seen_len", part.octets.len().into()),
        ("missing_len", 0.into()),
        ("is_complete", is_complete.into()),
    ]);
    facts.extend(part.name.as_deref().map(|name| ("name", text(name))));
    let digest: String = Sha256::digest(&part.octets).iter().map(|octet| format!("{octet:02x}")).collect();
    facts.extend(is_complete.then(|| ("sha256", digest.into())));
    facts
}

/// Compares files with the bodies of messages. Returns what differs.
fn differing_files(rows: &[Value], bodies: &BTreeMap<(Key, String), Body>) -> Vec<String> {
    let is_body = |row: &&Value| {
        let is_other = row["protocol"] == "ftp_data" || row["protocol"] == "tftp";
        row["kind"] == "file" && row["part"].is_null() && !is_other
    };
    let files: Vec<_> = rows.iter().filter(is_body).collect();
    let mut different = Vec::new();
    if files.len() != bodies.len() {
        different.push(format!("{} files, {} bodies", files.len(), bodies.len()));
    }
    for row in files {
        let key = (key(row, &row["number"]).expect("a number"), row["role"].to_string());
        let Some((octets, missing_len)) = bodies.get(&key) else {
            different.push(format!("{key:?}: no body"));
            continue;
        };
        let digest: String = Sha256::digest(octets).iter().map(|octet| format!("{octet:02x}")).collect();
        let is_same = row["seen_len"] == octets.len()
            && row["missing_len"] == *missing_len
            && (row["sha256"] == digest) == (row["is_complete"] == true);
        if !is_same {
            different.push(format!("{key:?}: {} and {missing_len} octets, {digest}: {row}", octets.len()));
        }
    }
    different
}

fn transactions(path: &Path) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut config = TransactionConfig::default();
    config.has_hashes = true;
    let sink = on_transaction(|view, transaction| {
        rows.push(transaction_row(view, transaction));
    });
    pass(path, sink.config(config));
    rows
}

fn check(paths: impl Iterator<Item = PathBuf>) -> usize {
    let (mut count, mut different) = (0, Vec::new());
    for path in paths {
        let name = path.display();
        let (messages, rows) = (messages(&path), transactions(&path));
        let (expected, mut found) = (naive(&messages), written(&rows));
        // The header of a mail with a gap is compared by the tests of the reader.
        for (_, facts) in found
            .iter_mut()
            .filter(|(key, _)| messages.contents.get(*key).is_some_and(|content| content.has_gap))
        {
            let names = MAIL_FIELDS.map(|(name, _)| name);
            facts.iter_mut().for_each(|facts| facts.retain(|name, _| !names.contains(name)));
        }
        let bodies = &messages.bodies;
        count += expected.len() + bodies.len() + messages.contents.len() + messages.data.len();
        count += messages.tftp.len();
        let parts = differing_parts(&rows, &messages);
        different.extend(parts.into_iter().map(|part| format!("{name} {part}")));
        let transfers = differing_transfers(&rows, &messages);
        different.extend(transfers.into_iter().map(|transfer| format!("{name} {transfer}")));
        let of_tftp = differing_files_of_tftp(&rows, &messages);
        different.extend(of_tftp.into_iter().map(|file| format!("{name} {file}")));
        different.extend(differing_files(&rows, bodies).into_iter().map(|file| format!("{name} {file}")));
        for (key, expected) in &expected {
            if found.get(key) != Some(expected) {
                different.push(format!("{name} {key:?}\n  {expected:?}\n  {:?}", found.get(key)));
            }
        }
        let surplus = found.keys().filter(|key| !expected.contains_key(*key));
        different.extend(surplus.map(|key| format!("{name} {key:?}: only written")));
    }
    let shown = different.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{} of {count}:\n{shown}", different.len());
    count
}

#[test]
fn transactions_are_those_of_two_passes_over_all_messages() {
    let examples = ["web", "dns", "mail", "ssh", "lossy", "transfer"]
        .map(|name| format!("examples/data/{name}.pcap").into());
    assert!(check(examples.into_iter()) > 80);
    assert_eq!(messages(Path::new("examples/data/transfer.pcap")).tftp.len(), 1);
    let Some(captures) = corpus::captures() else { return };
    let count = check(captures.iter().map(corpus::Capture::path));
    println!("{count} transactions");
    assert!(count > 1000, "{count}");
}
