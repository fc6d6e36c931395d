//! The encoding of tables and scans of captures: an envelope with a version and a checksum, and a message of Protocol
//! Buffers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion_proto::protobuf::PhysicalExprNode;
use flowgauge::features::FeatureSet;
use flowgauge::{Decapsulation, Filter};
use flowgauge_arrow::scan::{ScanConfig, Table, Times};
use flowgauge_sql::{Capture, ObjectVersion};
use prost::Message;

/// The first octets of a message of this crate. No message of Protocol Buffers begins with them, because they are a key
/// with a wire type that does not exist.
const MAGIC: [u8; 3] = [0xff, b'F', b'G'];

/// The version of the encoding.
const VERSION: u8 = 1;

/// A table of captures, as a client names it.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct TableMessage {
    #[prost(message, optional, tag = "1")]
    pub(crate) rows: Option<RowsMessage>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) patterns: Vec<String>,
}

/// A scan of captures in a physical plan.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScanMessage {
    #[prost(message, optional, tag = "1")]
    pub(crate) rows: Option<RowsMessage>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) groups: Vec<GroupMessage>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) projection: Vec<ProjectedMessage>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) batch_size: Option<u64>,
}

/// The captures of a partition.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct GroupMessage {
    #[prost(message, repeated, tag = "1")]
    pub(crate) captures: Vec<CaptureMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CaptureMessage {
    /// Octets of the path of a file, or of the URL of an object.
    #[prost(bytes = "vec", tag = "1")]
    path: Vec<u8>,
    #[prost(uint64, tag = "2")]
    len: u64,
    /// Present for an object.
    #[prost(message, optional, tag = "3")]
    object: Option<ObjectMessage>,
}

/// The version of an object in object storage.
#[derive(Clone, PartialEq, Message)]
struct ObjectMessage {
    #[prost(string, optional, tag = "1")]
    e_tag: Option<String>,
    #[prost(string, optional, tag = "2")]
    version: Option<String>,
}

/// A column of the result.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProjectedMessage {
    #[prost(message, optional, tag = "1")]
    pub(crate) expr: Option<PhysicalExprNode>,
    #[prost(string, tag = "2")]
    pub(crate) alias: String,
}

/// The kind of rows, and the options.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct RowsMessage {
    /// `flows`, `packets`, `messages`, `transactions` or `findings`.
    #[prost(string, tag = "1")]
    function: String,
    #[prost(string, optional, tag = "2")]
    kind: Option<String>,
    /// Names of features; empty for none.
    #[prost(string, tag = "3")]
    features: String,
    #[prost(message, optional, tag = "4")]
    idle_timeout: Option<DurationMessage>,
    #[prost(message, optional, tag = "5")]
    active_timeout: Option<DurationMessage>,
    /// `innermost`, `outermost` or `both`.
    #[prost(string, tag = "6")]
    tunnels: String,
    #[prost(string, optional, tag = "7")]
    filter: Option<String>,
    /// The earliest and the latest time in nanoseconds since 1970.
    #[prost(uint64, tag = "8")]
    first: u64,
    #[prost(uint64, tag = "9")]
    last: u64,
    #[prost(bool, tag = "10")]
    is_joined: bool,
    #[prost(uint64, optional, tag = "11")]
    limit: Option<u64>,
    /// Memory of a pipeline in octets.
    #[prost(uint64, tag = "12")]
    memory: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct DurationMessage {
    #[prost(uint64, tag = "1")]
    seconds: u64,
    #[prost(uint32, tag = "2")]
    nanos: u32,
}

impl From<Duration> for DurationMessage {
    fn from(duration: Duration) -> Self {
        Self { seconds: duration.as_secs(), nanos: duration.subsec_nanos() }
    }
}

impl DurationMessage {
    fn duration(self) -> Result<Duration> {
        match self.nanos {
            nanos @ 0..1_000_000_000 => Ok(Duration::new(self.seconds, nanos)),
            nanos => plan_err!("a duration has {nanos} nanoseconds"),
        }
    }
}

impl RowsMessage {
    /// Describes the rows of a table with these options.
    pub(crate) fn new(table: Table, config: &ScanConfig) -> Result<Self> {
        if config.is_conditional() {
            return plan_err!("a table with conditions of its own cannot be sent; the query must have them");
        }
        Ok(Self {
            function: table.function().to_owned(),
            kind: table.kind().map(str::to_owned),
            features: config.features.to_string(),
            idle_timeout: config.idle_timeout.map(DurationMessage::from),
            active_timeout: config.active_timeout.map(DurationMessage::from),
            tunnels: match config.tunnels {
                Decapsulation::Innermost => "innermost",
                Decapsulation::Outermost => "outermost",
                Decapsulation::Both => "both",
                other => return plan_err!("the option tunnels has an unknown value: {other:?}"),
            }
            .to_owned(),
            filter: config.filter.as_ref().map(Filter::to_string),
            first: config.times.first.as_nanos(),
            last: config.times.last.as_nanos(),
            is_joined: config.is_joined,
            limit: config.limit,
            memory: config.memory,
        })
    }

    /// Returns the table and the options.
    pub(crate) fn table(self) -> Result<(Table, ScanConfig)> {
        let failure = |error: &dyn std::fmt::Display| DataFusionError::Plan(error.to_string());
        let table = match (&*self.function, self.kind.as_deref()) {
            ("flows", None) => Table::Flows,
            ("packets", None) => Table::Packets,
            ("findings", None) => Table::Findings,
            ("messages", Some(kind)) => Table::messages(kind).map_err(|error| failure(&error))?,
            ("transactions", Some(kind)) => Table::transactions(kind).map_err(|error| failure(&error))?,
            (function, kind) => return plan_err!("there is no table {function:?} of kind {kind:?}"),
        };
        let mut config = ScanConfig::default();
        if !self.features.is_empty() {
            config.features = self.features.parse::<FeatureSet>().map_err(|error| failure(&error))?;
        }
        config.idle_timeout = self.idle_timeout.map(DurationMessage::duration).transpose()?;
        config.active_timeout = self.active_timeout.map(DurationMessage::duration).transpose()?;
        config.tunnels = match &*self.tunnels {
            "innermost" => Decapsulation::Innermost,
            "outermost" => Decapsulation::Outermost,
            "both" => Decapsulation::Both,
            other => return plan_err!("the option tunnels has an unknown value: {other:?}"),
        };
        config.filter = match self.filter {
            Some(filter) => Some(filter.parse::<Filter>().map_err(|error| failure(&error))?),
            None => None,
        };
        config.times = Times::new(self.first, self.last);
        config.is_joined = self.is_joined;
        config.limit = self.limit;
        config.memory = self.memory;
        Ok((table, config))
    }
}

impl CaptureMessage {
    pub(crate) fn new(capture: &Capture) -> Result<Self> {
        let object = capture
            .object
            .clone()
            .map(|ObjectVersion { e_tag, version, .. }| ObjectMessage { e_tag, version });
        Ok(Self { path: octets(&capture.path)?, len: capture.len, object })
    }

    pub(crate) fn capture(self) -> Result<Capture> {
        let Some(ObjectMessage { e_tag, version }) = self.object else {
            return Ok(Capture::new(path(self.path)?, self.len));
        };
        match String::from_utf8(self.path) {
            Ok(url) => Capture::in_storage(url, self.len, ObjectVersion::new(e_tag, version)),
            Err(_) => plan_err!("the URL of an object is not UTF-8"),
        }
    }
}

#[cfg(unix)]
fn octets(path: &Path) -> Result<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt as _;
    Ok(path.as_os_str().as_bytes().to_vec())
}

#[cfg(not(unix))]
fn octets(path: &Path) -> Result<Vec<u8>> {
    match path.to_str() {
        Some(text) => Ok(text.as_bytes().to_vec()),
        None => plan_err!("the path {} is not Unicode", path.display()),
    }
}

#[cfg(unix)]
fn path(octets: Vec<u8>) -> Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    Ok(std::ffi::OsString::from_vec(octets).into())
}

#[cfg(not(unix))]
fn path(octets: Vec<u8>) -> Result<PathBuf> {
    match String::from_utf8(octets) {
        Ok(text) => Ok(text.into()),
        Err(_) => plan_err!("a path is not Unicode"),
    }
}

/// Appends the envelope of a message.
pub(crate) fn encode(message: &impl Message, octets: &mut Vec<u8>) {
    let content = message.encode_to_vec();
    octets.extend(MAGIC);
    octets.push(VERSION);
    octets.extend(crc32fast::hash(&content).to_le_bytes());
    octets.extend(content);
}

/// Returns whether octets are an envelope of this crate.
pub(crate) fn is_envelope(octets: &[u8]) -> bool {
    octets.starts_with(&MAGIC)
}

/// Returns the message of an envelope; fails if the octets are none, or another process has another version of this crate.
pub(crate) fn decode<M: Message + Default>(octets: &[u8]) -> Result<M> {
    let Some((version, rest)) = octets.strip_prefix(&MAGIC).and_then(<[u8]>::split_first) else {
        return plan_err!("a plan has a table that is not one of captures");
    };
    if *version != VERSION {
        return plan_err!(
            "a plan has version {version} of tables of captures, but this process has version {VERSION}; client, scheduler and \
             executors must be of one version of flowgauge"
        );
    }
    match rest.split_first_chunk::<4>() {
        Some((checksum, content)) if crc32fast::hash(content).to_le_bytes() == *checksum => {
            M::decode(content)
                .map_err(|error| DataFusionError::Plan(format!("a table of captures is damaged: {error}")))
        }
        _ => plan_err!("a table of captures is damaged: its checksum is wrong"),
    }
}
