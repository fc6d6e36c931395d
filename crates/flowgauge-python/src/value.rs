//! Values of columns as Python objects.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_schema::{DataType, TimeUnit};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// Number of the day 1970-01-01 in the calendar of Python.
const EPOCH_ORDINAL: i64 = 719_163;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Returns the value in a row that exists. Times are integers in nanoseconds, because those of Python are in
/// microseconds.
pub(crate) fn value<'py>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
        DataType::Null => Ok(py.None().into_bound(py)),
        DataType::Boolean => array.as_boolean().value(row).into_bound_py_any(py),
        DataType::Int8 => number::<Int8Type>(py, array, row),
        DataType::Int16 => number::<Int16Type>(py, array, row),
        DataType::Int32 => number::<Int32Type>(py, array, row),
        DataType::Int64 => number::<Int64Type>(py, array, row),
        DataType::UInt8 => number::<UInt8Type>(py, array, row),
        DataType::UInt16 => number::<UInt16Type>(py, array, row),
        DataType::UInt32 => number::<UInt32Type>(py, array, row),
        DataType::UInt64 => number::<UInt64Type>(py, array, row),
        DataType::Float32 => number::<Float32Type>(py, array, row),
        DataType::Float64 => number::<Float64Type>(py, array, row),
        DataType::Timestamp(..) | DataType::Duration(_) | DataType::Time32(_) | DataType::Time64(_) => {
            match time_ns(array, row) {
                Some(time) => time.into_bound_py_any(py),
                None => Err(unsupported(array.data_type())),
            }
        }
        DataType::Date32 => date(py, i64::from(array.as_primitive::<Date32Type>().value(row))),
        DataType::Date64 => date(py, array.as_primitive::<Date64Type>().value(row).div_euclid(DAY_MS)),
        DataType::Decimal32(..) => decimal(py, &array.as_primitive::<Decimal32Type>().value_as_string(row)),
        DataType::Decimal64(..) => decimal(py, &array.as_primitive::<Decimal64Type>().value_as_string(row)),
        DataType::Decimal128(..) => decimal(py, &array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Decimal256(..) => decimal(py, &array.as_primitive::<Decimal256Type>().value_as_string(row)),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into_bound_py_any(py),
        DataType::Utf8View => array.as_string_view().value(row).into_bound_py_any(py),
        DataType::Binary => octets(py, array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => octets(py, array.as_binary::<i64>().value(row)),
        DataType::BinaryView => octets(py, array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => octets(py, array.as_fixed_size_binary().value(row)),
        DataType::Dictionary(..) => {
            let names = array.as_any_dictionary();
            match key(names.keys(), row) {
                Some(key) => value(py, names.values(), key),
                None => Err(unsupported(array.data_type())),
            }
        }
        DataType::List(_) => list(py, &array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(py, &array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => list(py, &array.as_fixed_size_list().value(row)),
        DataType::Map(..) => list(py, &array.as_map().value(row)),
        DataType::Struct(fields) => {
            let group = PyDict::new(py);
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                group.set_item(field.name(), value(py, column, row)?)?;
            }
            Ok(group.into_any())
        }
        other => Err(unsupported(other)),
    }
}

fn unsupported(kind: &DataType) -> PyErr {
    PyNotImplementedError::new_err(format!("values of the Arrow type {kind}"))
}

fn number<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &dyn Array,
    row: usize,
) -> PyResult<Bound<'py, PyAny>>
where
    T::Native: IntoPyObject<'py>,
{
    array.as_primitive::<T>().value(row).into_bound_py_any(py)
}

/// Returns a time or a duration in nanoseconds.
fn time_ns(array: &dyn Array, row: usize) -> Option<i128> {
    fn of<T: ArrowPrimitiveType>(array: &dyn Array, row: usize, unit: TimeUnit) -> Option<i128>
    where
        T::Native: Into<i64>,
    {
        let unit_ns = match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        };
        Some(i128::from(array.as_primitive::<T>().value(row).into()) * unit_ns)
    }
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    match array.data_type() {
        DataType::Timestamp(Second, _) => of::<TimestampSecondType>(array, row, Second),
        DataType::Timestamp(Millisecond, _) => of::<TimestampMillisecondType>(array, row, Millisecond),
        DataType::Timestamp(Microsecond, _) => of::<TimestampMicrosecondType>(array, row, Microsecond),
        DataType::Timestamp(Nanosecond, _) => of::<TimestampNanosecondType>(array, row, Nanosecond),
        DataType::Duration(Second) => of::<DurationSecondType>(array, row, Second),
        DataType::Duration(Millisecond) => of::<DurationMillisecondType>(array, row, Millisecond),
        DataType::Duration(Microsecond) => of::<DurationMicrosecondType>(array, row, Microsecond),
        DataType::Duration(Nanosecond) => of::<DurationNanosecondType>(array, row, Nanosecond),
        DataType::Time32(Second) => of::<Time32SecondType>(array, row, Second),
        DataType::Time32(Millisecond) => of::<Time32MillisecondType>(array, row, Millisecond),
        DataType::Time64(Microsecond) => of::<Time64MicrosecondType>(array, row, Microsecond),
        DataType::Time64(Nanosecond) => of::<Time64NanosecondType>(array, row, Nanosecond),
        _ => None,
    }
}

/// Returns the date of a number of days since 1970-01-01.
fn date(py: Python<'_>, day: i64) -> PyResult<Bound<'_, PyAny>> {
    py.import("datetime")?.getattr("date")?.call_method1("fromordinal", (EPOCH_ORDINAL.saturating_add(day),))
}

fn decimal<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("decimal")?.getattr("Decimal")?.call1((text,))
}

fn octets<'py>(py: Python<'py>, octets: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyBytes::new(py, octets).into_any())
}

fn list<'py>(py: Python<'py>, items: &dyn Array) -> PyResult<Bound<'py, PyAny>> {
    let list = PyList::empty(py);
    for index in 0..items.len() {
        list.append(value(py, items, index)?)?;
    }
    Ok(list.into_any())
}

/// Returns the index of a value in a dictionary.
fn key(keys: &dyn Array, row: usize) -> Option<usize> {
    match keys.data_type() {
        DataType::Int8 => keys.as_primitive::<Int8Type>().value(row).try_into().ok(),
        DataType::Int16 => keys.as_primitive::<Int16Type>().value(row).try_into().ok(),
        DataType::Int32 => keys.as_primitive::<Int32Type>().value(row).try_into().ok(),
        DataType::Int64 => keys.as_primitive::<Int64Type>().value(row).try_into().ok(),
        DataType::UInt8 => Some(keys.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Some(keys.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => keys.as_primitive::<UInt32Type>().value(row).try_into().ok(),
        DataType::UInt64 => keys.as_primitive::<UInt64Type>().value(row).try_into().ok(),
        _ => None,
    }
}
