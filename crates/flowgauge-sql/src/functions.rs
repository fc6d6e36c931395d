//! Scalar functions for addresses, ports and flows.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionImplementation, ScalarUDF, Volatility, create_udf,
};
use flowgauge::base::{FlowKey, IpProtocol};
use flowgauge::{Protocols as _, Standard};

/// Name of the function that tests whether an address is in a network.
pub(crate) const CIDR_CONTAINS: &str = "cidr_contains";

/// Returns all functions.
pub(crate) fn all() -> [ScalarUDF; 3] {
    let (text, number) = (DataType::Utf8, DataType::Int64);
    let ends = vec![text.clone(), number.clone(), text.clone(), number.clone(), number.clone()];
    [
        create("community_id", ends, text.clone(), community_id),
        create(CIDR_CONTAINS, vec![text.clone(), text.clone()], DataType::Boolean, cidr_contains),
        create("application_of_port", vec![number.clone(), number], text, application_of_port),
    ]
}

/// Creates a function of arrays.
fn create(
    name: &str,
    arguments: Vec<DataType>,
    result: DataType,
    function: fn(&[ArrayRef]) -> Result<ArrayRef>,
) -> ScalarUDF {
    let call: ScalarFunctionImplementation = Arc::new(move |values| {
        let is_scalar = values.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let result = function(&ColumnarValue::values_to_arrays(values)?)?;
        if is_scalar {
            return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&result, 0)?));
        }
        Ok(ColumnarValue::Array(result))
    });
    create_udf(name, arguments, result, Volatility::Immutable, call)
}

fn texts(array: &ArrayRef) -> &StringArray {
    array.as_string::<i32>()
}

fn numbers(array: &ArrayRef) -> &Int64Array {
    array.as_primitive::<Int64Type>()
}

/// Returns a value of an array; `None` if it is null.
macro_rules! at {
    ($array:expr, $row:expr) => {
        $array.is_valid($row).then(|| $array.value($row))
    };
}

/// `community_id(source_address, source_port, destination_address, destination_port, protocol)`: the Community ID, version
/// 1, seed 0. Without ports, that of the pair of addresses; null if an address or the protocol is none.
fn community_id(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [source, source_port, destination, destination_port, protocol] = arrays else {
        return exec_err!("community_id has five arguments");
    };
    let (source, destination) = (texts(source), texts(destination));
    let (source_port, destination_port, protocol) =
        (numbers(source_port), numbers(destination_port), numbers(protocol));
    let id = |row: usize| {
        let address = |text: &str| text.parse::<IpAddr>().ok();
        let [source, destination] = [at!(source, row)?, at!(destination, row)?].map(address);
        let protocol = IpProtocol(u8::try_from(at!(protocol, row)?).ok()?);
        let ports = [at!(source_port, row), at!(destination_port, row)];
        let key = match ports {
            [Some(from), Some(to)] => {
                let end = |address, port: i64| Some((address, u16::try_from(port).ok()?));
                FlowKey::new(protocol, end(source?, from)?, end(destination?, to)?).0
            }
            _ => FlowKey::pair(protocol, source?, destination?).0,
        };
        Some(key.community_id(0))
    };
    Ok(Arc::new((0..source.len()).map(id).collect::<StringArray>()))
}

/// A network of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    len: u8,
}

impl Network {
    /// Parses a network, such as `10.0.0.0/8`; an address alone is the network of this address. Bits behind the length are
    /// not compared.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let len_max = if address.is_ipv4() { 32 } else { 128 };
        let len = len.map_or(Some(len_max), |len| len.parse().ok()).filter(|len| *len <= len_max)?;
        let address = match address {
            IpAddr::V4(address) => IpAddr::V4(
                (address.to_bits() & u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)).into(),
            ),
            IpAddr::V6(address) => IpAddr::V6(
                (address.to_bits() & u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0)).into(),
            ),
        };
        Some(Self { address, len })
    }

    /// Returns whether an address is in the network.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let len = u32::from(self.len);
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= len
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= len
            }
            _ => false,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

/// `cidr_contains(network, address)`: whether the address is in the network. A network of the other family contains no
/// address; null if the address is none, an error if the network is none.
fn cidr_contains(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [networks, addresses] = arrays else { return exec_err!("{CIDR_CONTAINS} has two arguments") };
    let (networks, addresses) = (texts(networks), texts(addresses));
    let mut last: Option<(&str, Network)> = None;
    let mut contained = Vec::with_capacity(addresses.len());
    for row in 0..addresses.len() {
        let Some(text) = at!(networks, row) else {
            contained.push(None);
            continue;
        };
        let network = match last {
            Some((known, network)) if known == text => network,
            _ => match Network::parse(text) {
                Some(network) => network,
                None => return exec_err!("{CIDR_CONTAINS}: {text:?} is no network, such as '10.0.0.0/8'"),
            },
        };
        last = Some((text, network));
        let address = at!(addresses, row).and_then(|address| address.parse().ok());
        contained.push(address.map(|address| network.contains(address)));
    }
    Ok(Arc::new(BooleanArray::from(contained)))
}

/// `application_of_port(port, protocol)`: the application protocol that the library expects on a port of TCP (6) or UDP
/// (17); null if there is none.
fn application_of_port(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let [ports, protocols] = arrays else { return exec_err!("application_of_port has two arguments") };
    let (ports, protocols) = (numbers(ports), numbers(protocols));
    let name = |row: usize| {
        let port = u16::try_from(at!(ports, row)?).ok()?;
        let protocol = at!(protocols, row)?;
        let found = Standard::TABLE.iter().map(|entry| entry.protocol).find(|known| match protocol {
            6 => known.stream_ports().contains(&port),
            17 => known.datagram_ports().contains(&port),
            _ => false,
        });
        Some(found?.name())
    };
    Ok(Arc::new((0..ports.len()).map(name).collect::<StringArray>()))
}
