//! Values of columns as Python objects.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, DurationNanosecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::{DataType, TimeUnit};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyNotImplementedError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// Returns the value in a row that exists. Times are integers in nanoseconds, because those of Python are in
/// microseconds.
pub(crate) fn value<'py>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    match array.data_type() {
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
        DataType::Timestamp(TimeUnit::Nanosecond, _) => number::<TimestampNanosecondType>(py, array, row),
        DataType::Duration(TimeUnit::Nanosecond) => number::<DurationNanosecondType>(py, array, row),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_bound_py_any(py),
        DataType::Binary => Ok(PyBytes::new(py, array.as_binary::<i32>().value(row)).into_any()),
        DataType::FixedSizeBinary(_) => {
            Ok(PyBytes::new(py, array.as_fixed_size_binary().value(row)).into_any())
        }
        DataType::Dictionary(key, _) if **key == DataType::Int32 => {
            let names = array.as_dictionary::<Int32Type>();
            match names.key(row) {
                Some(key) => value(py, names.values(), key),
                None => Ok(py.None().into_bound(py)),
            }
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            let list = PyList::empty(py);
            for index in 0..items.len() {
                list.append(value(py, &items, index)?)?;
            }
            Ok(list.into_any())
        }
        DataType::Struct(fields) => {
            let group = PyDict::new(py);
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                group.set_item(field.name(), value(py, column, row)?)?;
            }
            Ok(group.into_any())
        }
        other => Err(PyNotImplementedError::new_err(format!("values of the Arrow type {other}"))),
    }
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
