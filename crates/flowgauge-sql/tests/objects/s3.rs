//! Captures in a bucket of S3. The environment of a process cannot be changed safely, so that each test runs itself again as a
//! process with the environment that it needs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use datafusion::physical_plan::collect;
use flowgauge::export::RecordWriter;
use flowgauge::{FileSource, FlowRecord};
use flowgauge_arrow::{Options, ParquetWriter};

use super::bucket::Bucket;
use super::{CAPTURES, assert_equal_rows, context, error, example, listed, local, plan, rows};

/// Variable with which a test runs itself again.
const INNER: &str = "FLOWGAUGE_OBJECTS_INNER";

/// Runs a test again with other variables of the environment. Returns true in the inner process.
fn is_inner(test: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var(INNER).as_deref() == Ok(test) {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(INNER, test);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(name);
        }
    }
    let status = command.envs(variables.iter().copied()).status().unwrap();
    assert!(status.success(), "{test}: {status}");
    false
}

/// Replaces an object of the bucket.
fn replace(name: &str, octets: &[u8]) {
    let endpoint = std::env::var("AWS_ENDPOINT").unwrap();
    let mut stream = TcpStream::connect(endpoint.trim_start_matches("http://")).unwrap();
    // The server does not check signatures, but refuses a request without one.
    let signature = "AWS4-HMAC-SHA256 Credential=access/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
    let head = format!(
        "PUT /captures/{name} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: {signature}\r\n\
         Content-Length: {}\r\n\r\n",
        octets.len()
    );
    stream.write_all(&[head.as_bytes(), octets].concat()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// Writes the flow records of a capture to a Parquet file, and returns its path.
fn parquet(name: &str) -> String {
    let path = std::env::temp_dir().join(format!("flowgauge-objects-{}.parquet", std::process::id()));
    let file = fs::File::create(&path).unwrap();
    let mut writer = Box::new(ParquetWriter::new::<FlowRecord>(file, Options::default()).unwrap());
    for record in flowgauge::records(FileSource::open(example(name)).unwrap()) {
        writer.write(&record.unwrap()).unwrap();
    }
    let writer: Box<dyn RecordWriter<FlowRecord>> = writer;
    writer.finish().unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn rows_over_s3_are_those_of_the_files() {
    let test = "s3::rows_over_s3_are_those_of_the_files";
    if std::env::var_os(INNER).is_some() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(inner());
        return;
    }
    let records = parquet("data/web.pcap");
    let mut objects: Vec<_> = CAPTURES
        .iter()
        .map(|name| (format!("day/{name}"), example(name).to_str().unwrap().to_owned()))
        .collect();
    let copy = |name: &str, of: &str| (name.to_owned(), example(of).to_str().unwrap().to_owned());
    objects.push(copy("zip/web.pcap.gz", "data/web.pcap"));
    objects.push(copy("names/a-1.pcap", "data/dns.pcap"));
    objects.push(copy("names/a-2.pcap", "data/dns.pcap"));
    objects.push(copy("names/b-1.pcap", "data/dns.pcap"));
    objects.push(copy("names/deep/a-3.pcap", "data/dns.pcap"));
    objects.push(copy("names/100% [x] é.pcap", "data/dns.pcap"));
    objects.push(copy("changing.pcap", "data/dns.pcap"));
    objects.push(("records/web.parquet".to_owned(), records.clone()));
    let bucket = Bucket::start(&objects);
    fs::remove_file(&records).unwrap();
    let Some(bucket) = bucket else { return };
    let endpoint = format!("http://127.0.0.1:{}", bucket.port);
    let variables = [
        ("AWS_ENDPOINT", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "identifier-of-key"),
        ("AWS_SECRET_ACCESS_KEY", "hidden-key"),
    ];
    assert!(!is_inner(test, &variables));
}

/// The test with the environment of the server.
async fn inner() {
    let urls = CAPTURES.map(|name| format!("s3://captures/day/{name}"));
    assert_equal_rows("'s3://captures/day/**/*.p*'", &local(), &[1, 4]).await;
    let flows = |captures: &str| format!("SELECT * EXCEPT (file) FROM flows({captures})");
    assert_eq!(rows(&context(2), &flows(&listed(&urls))).await, rows(&context(2), &flows(&local())).await);
    let gzip = rows(&context(1), "SELECT * EXCEPT (file) FROM packets('s3://captures/zip/*')").await;
    let plain = format!("SELECT * EXCEPT (file) FROM packets('{}')", example("data/web.pcap").display());
    assert_eq!(gzip, rows(&context(1), &plain).await);
    let of_records =
        "SELECT count(*), sum(octet_count), max(start) FROM flows('s3://captures/records/*.parquet')";
    let of_capture = of_records.replace("s3://captures/records/*.parquet", "s3://captures/day/data/web.pcap");
    assert_eq!(rows(&context(1), of_records).await, rows(&context(1), &of_capture).await);

    // The objects of a pattern, in the order of their names.
    for (pattern, expected) in [
        ("*.pcap", &["100% [x] é", "a-1", "a-2", "b-1"][..]),
        ("a-*.pcap", &["a-1", "a-2"]),
        ("a-?.pcap", &["a-1", "a-2"]),
        ("[ab]-1.pcap", &["a-1", "b-1"]),
        ("**/a-*.pcap", &["a-1", "a-2", "deep/a-3"]),
        ("*/a-*.pcap", &["deep/a-3"]),
        ("a-1.pcap*", &["a-1"]),
        ("100% [[]x] é.pcap", &["100% [x] é"]),
    ] {
        let query = format!("SELECT DISTINCT file FROM packets('s3://captures/names/{pattern}')");
        let expected: Vec<_> =
            expected.iter().map(|name| format!("s3://captures/names/{name}.pcap")).collect();
        assert_eq!(rows(&context(2), &query).await, expected, "{pattern}");
    }
    for (url, expected) in [
        ("s3://captures/names/c*.pcap", "no object with octets has a name of this pattern"),
        ("s3://captures/missing.pcap", "does not exist"),
        ("s3://missing/a.pcap", "does not exist"),
        ("s3://missing/*.pcap", "does not exist: NoSuchBucket"),
        ("s3://captures/names/[a.pcap", "invalid range pattern"),
        ("s3://captures/names/", "is no object"),
        ("s3://captures", "is no object"),
    ] {
        let problem = error(&format!("SELECT * FROM flows('{url}')")).await;
        assert!(problem.contains(&format!("{url}: ")) && problem.contains(expected), "{problem}");
        assert!(!problem.contains("hidden-key") && !problem.contains("identifier-of-key"), "{problem}");
    }

    // An object without octets that has the name of a folder marks it.
    replace("marked/2026/", &[]);
    replace("marked/2026/a.pcap", &fs::read(example("data/dns.pcap")).unwrap());
    let query = "SELECT DISTINCT file FROM packets('s3://captures/marked/**')";
    assert_eq!(rows(&context(1), query).await, ["s3://captures/marked/2026/a.pcap"]);
    let problem = error("SELECT * FROM packets('s3://captures/marked/*')").await;
    assert!(problem.contains("no object with octets"), "{problem}");

    let context = context(1);
    let query = "SELECT count(*) FROM packets('s3://captures/changing.pcap')";
    let text = plan(&context, query).await;
    assert!(text.contains("captures/changing.pcap") && !text.contains("hidden-key"), "{text}");
    let frame = context.sql(query).await.unwrap();
    let changing = frame.create_physical_plan().await.unwrap();
    replace("changing.pcap", &fs::read(example("data/web.pcap")).unwrap());
    let problem = collect(changing, context.task_ctx()).await.unwrap_err().to_string();
    let expected = "s3://captures/changing.pcap: has changed since it was listed";
    assert!(problem.contains(expected), "{problem}");
}

#[test]
fn missing_credentials_are_named() {
    let test = "s3::missing_credentials_are_named";
    // No metadata service of a machine in a cloud.
    let variables = [("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1"), ("AWS_REGION", "us-east-1")];
    if is_inner(test, &variables) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let problem = runtime.block_on(error("SELECT * FROM flows('s3://captures/*.pcap')"));
        assert!(problem.contains("s3://captures/*.pcap: "), "{problem}");
        assert!(problem.contains("the environment has no credentials (AWS_ACCESS_KEY_ID"), "{problem}");
    }
}
