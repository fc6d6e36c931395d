//! Arguments of a scan.

use std::path::PathBuf;
use std::time::Duration;

use flowgauge::{Decapsulation, Protocols as _, Standard, source};
use flowgauge_arrow::scan::{Scan, ScanConfig, ScanError, Table};
use flowgauge_arrow::{Addresses, Options};
use pyo3::FromPyObject;

use crate::failure::Failure;

/// Beginning of the names of columns that need the application protocol of a flow.
const APPLICATION: &str = "application";

/// Maximum number of octets of a batch.
const OCTET_COUNT_MAX: usize = 8 << 20;

/// Returns an error if the metadata of a file cannot be read.
pub(crate) fn exists(path: PathBuf) -> Result<(), Failure> {
    match std::fs::metadata(&path) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Scan(source::Error::Io { path, error: error.into() }.into())),
    }
}

/// Returns the condition that selects flows of these applications.
fn of_applications(names: &[String]) -> Result<String, String> {
    if names.is_empty() {
        return Err("application must contain at least one name".to_owned());
    }
    let mut known: Vec<_> = Standard::TABLE.iter().map(|entry| entry.protocol.name()).collect();
    known.sort_unstable();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("unknown application: {unknown:?}; known are {}", known.join(", ")));
    }
    let names: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
    Ok(format!("{APPLICATION} in ({})", names.join(", ")))
}

/// Arguments of a scan, from a mapping that the Python package has checked for types and ranges. Times are in
/// nanoseconds, sizes in octets.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Arguments {
    table: String,
    kind: Option<String>,
    features: Option<String>,
    columns: Option<Vec<String>>,
    filter: Option<String>,
    active_timeout: Option<u64>,
    idle_timeout: Option<u64>,
    tunnels: Option<String>,
    joined: bool,
    limit: Option<u64>,
    batch_size: usize,
    application: bool,
    applications: Option<Vec<String>>,
    condition: Option<String>,
    interval: Option<u64>,
    memory: Option<u64>,
    addresses: String,
}

impl Arguments {
    /// Returns the scan, or the reason why an argument is invalid.
    pub(crate) fn scan(&self) -> Result<Scan, String> {
        let table = self.table()?;
        let config = self.config(table)?;
        let addresses = match self.addresses.as_str() {
            "text" => Addresses::Text,
            "octets" => Addresses::Octets,
            other => return Err(format!("addresses must be 'text' or 'octets', not {other:?}")),
        };
        let options = Options::default().addresses(addresses).limits(self.batch_size, OCTET_COUNT_MAX);
        self.restrict(self.choose(Scan::new(table, &options, config))?)
    }

    /// Adds the conditions on rows.
    fn restrict(&self, mut scan: Scan) -> Result<Scan, String> {
        if let Some(names) = &self.applications {
            scan = scan.condition(&of_applications(names)?)?;
        }
        if let Some(condition) = &self.condition {
            scan = scan.condition(condition).map_err(|problem| format!("where: {problem}"))?;
        }
        Ok(scan)
    }

    /// Returns the table, or the reason why there is none of this name.
    pub(crate) fn table(&self) -> Result<Table, String> {
        let table = match (self.table.as_str(), self.kind.as_deref()) {
            ("flows", None) => Ok(Table::Flows),
            ("packets", None) => Ok(Table::Packets),
            ("findings", None) => Ok(Table::Findings),
            ("hosts", None) => Ok(Table::Hosts),
            ("messages", Some(kind)) => Table::messages(kind),
            ("transactions", Some(kind)) => Table::transactions(kind),
            (other, _) => return Err(format!("unknown table: {other:?}")),
        };
        table.map_err(|error| error.to_string())
    }

    /// Returns the settings of a scan of a table, or the reason why an argument is invalid.
    pub(crate) fn config(&self, table: Table) -> Result<ScanConfig, String> {
        let mut config = ScanConfig::default();
        if let Some(features) = &self.features {
            config.features = features.parse().map_err(|error| format!("features: {error}"))?;
        }
        if let Some(filter) = &self.filter {
            let filter: flowgauge::Filter = filter.parse().map_err(|error| format!("filter: {error}"))?;
            if table != Table::Flows && !filter.is_final() {
                return Err(ScanError::Filter.to_string());
            }
            config.filter = Some(filter);
        }
        config.active_timeout = self.active_timeout.map(Duration::from_nanos);
        config.idle_timeout = self.idle_timeout.map(Duration::from_nanos);
        config.tunnels = match self.tunnels.as_deref() {
            None | Some("innermost") => Decapsulation::Innermost,
            Some("outermost") => Decapsulation::Outermost,
            Some("both") => Decapsulation::Both,
            Some(other) => {
                return Err(format!("tunnels must be 'innermost', 'outermost' or 'both', not {other:?}"));
            }
        };
        config.is_joined = self.joined;
        config.interval = self.interval.map(Duration::from_nanos);
        config.limit = self.limit;
        config.memory = self.memory.unwrap_or(config.memory);
        Ok(config)
    }

    /// Chooses the columns.
    fn choose(&self, scan: Scan) -> Result<Scan, String> {
        let schema = scan.schema();
        let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let chosen: Vec<&str> = match &self.columns {
            Some(columns) => columns.iter().map(String::as_str).collect(),
            None if self.application => return Ok(scan),
            None => known.iter().copied().filter(|name| !name.starts_with(APPLICATION)).collect(),
        };
        if chosen.is_empty() {
            return Err("columns must contain at least one name".to_owned());
        }
        if let Some(unknown) = chosen.iter().find(|name| !known.contains(name)) {
            return Err(format!("unknown column: {unknown:?}; known are {}", known.join(", ")));
        }
        scan.columns(chosen).map_err(|name| format!("column {name:?} is repeated"))
    }
}
