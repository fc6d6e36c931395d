//! Functions over the values of a field in a group of flows.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{BuildHasherDefault, Hash as _, Hasher as _};
use std::time::Duration;

use flowgauge::FlowRecord;
use flowgauge::row::{Column, RowType as _, Type, Value};
use hyperloglogplus::{HyperLogLog as _, HyperLogLogPlus};
use sketches_ddsketch::{Config, DDSketch};

use flowgauge_condition::field_name;
use flowgauge_condition::{compare_values, number};

/// Number of distinct values up to which they are counted exactly.
const EXACT_MAX: usize = 1024;

/// Logarithm of the number of registers with which more distinct values are counted: a standard error of 0.8 %.
const PRECISION: u8 = 14;

/// Number of values up to which percentiles are exact.
const RANKED_MAX: usize = 256;

/// Relative error of percentiles of more values.
const PERCENTILE_ERROR: f64 = 0.01;

/// Maximum number of bins of a sketch: values from nanoseconds to centuries are in fewer.
const BIN_MAX: u32 = 4096;

/// A function over the values of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Function {
    Sum,
    Mean,
    Min,
    Max,
    Distinct,
    /// A percentile, as a part of 1.
    Percentile(f64),
}

/// A function over a field of flow records.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Aggregate {
    pub(super) function: Function,
    pub(super) field: &'static Column,
    /// Index of the field in a record.
    pub(super) index: usize,
    /// Name of the function in the name of its column.
    name: String,
}

const FUNCTIONS: &str = "sum, mean, min, max, distinct, median and percentiles such as p95";

impl Aggregate {
    /// Parses a function of a field, such as `p95(duration)`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let unknown =
            || format!("`{text}` is no function of a field, such as mean(duration); there are {FUNCTIONS}");
        let (name, field) =
            text.strip_suffix(')').and_then(|text| text.split_once('(')).ok_or_else(unknown)?;
        let function = match name {
            "sum" => Function::Sum,
            "mean" => Function::Mean,
            "min" => Function::Min,
            "max" => Function::Max,
            "distinct" => Function::Distinct,
            "median" => Function::Percentile(0.5),
            name => {
                let percent: f64 =
                    name.strip_prefix('p').and_then(|text| text.parse().ok()).ok_or_else(unknown)?;
                if !(0.0..=100.0).contains(&percent) {
                    return Err(format!("`{name}`: a percentile is from p0 to p100"));
                }
                Function::Percentile(percent / 100.0)
            }
        };
        Self::new(function, name, field)
    }

    /// Returns the sum of a field.
    pub(super) fn sum(field: &str) -> Result<Self, String> {
        Self::new(Function::Sum, "sum", field)
    }

    fn new(function: Function, name: &str, field: &str) -> Result<Self, String> {
        let columns = FlowRecord::columns();
        let field = field_name(field, |name| columns.iter().any(|column| column.name == name));
        let index = columns.iter().position(|column| column.name == field);
        let Some((index, field)) = index.and_then(|index| Some((index, *columns.get(index)?))) else {
            return Err(format!("`{field}` is not a field"));
        };
        let is_counted =
            matches!(field.column_type, Type::Unsigned(_) | Type::Signed(_) | Type::Float | Type::Duration);
        let fits = match function {
            Function::Distinct => true,
            Function::Min | Function::Max => !matches!(field.column_type, Type::List(_) | Type::Group(_)),
            _ => is_counted,
        };
        if !fits {
            return Err(format!("`{}` is no number, of which there is a {name}", field.name));
        }
        Ok(Self { function, field, index, name: name.replace('.', "_") })
    }

    /// Returns the column of the results.
    pub(super) fn column(&self) -> Column {
        let Self { field, function, name, .. } = self;
        let column_name: &'static str = Box::leak(format!("{}_{name}", field.name).into_boxed_str());
        let column_type = match (function, field.column_type) {
            (Function::Distinct, _) => Type::Unsigned(64),
            (_, Type::Duration) => Type::Duration,
            (Function::Mean | Function::Percentile(_), _) => Type::Float,
            (Function::Sum, Type::Unsigned(_)) => Type::Unsigned(64),
            (_, column_type) => column_type,
        };
        let mut column = Column::new(column_name, field.description, column_type, true);
        if *function != Function::Distinct {
            column.unit = field.unit;
        }
        column
    }

    pub(super) fn state(&self) -> State {
        match self.function {
            Function::Sum => State::Sum(None),
            Function::Mean => State::Mean { sum: 0.0, count: 0 },
            Function::Min => State::Min(Value::Null),
            Function::Max => State::Max(Value::Null),
            Function::Distinct => State::Distinct(HashSet::new()),
            Function::Percentile(_) => State::Ranked(Vec::new()),
        }
    }

    /// Returns the result.
    pub(super) fn result(&self, state: &mut State) -> Value {
        let of_number = |value: f64| match self.field.column_type {
            Type::Duration => Duration::try_from_secs_f64(value).map_or(Value::Null, Value::Duration),
            _ => Value::Float(value),
        };
        match (state, self.function) {
            (State::Sum(sum), _) => sum.clone().unwrap_or(Value::Null),
            (State::Mean { count: 0, .. }, _) => Value::Null,
            (State::Mean { sum, count }, _) => of_number(*sum / *count as f64),
            (State::Min(value) | State::Max(value), _) => value.clone(),
            (State::Distinct(values), _) => Value::Unsigned(values.len() as u64),
            (State::Estimated(estimator), _) => Value::Unsigned(estimator.count().round() as u64),
            (State::Ranked(values), Function::Percentile(part)) => {
                values.sort_unstable_by(f64::total_cmp);
                rank(part, values.len())
                    .and_then(|rank| values.get(rank))
                    .copied()
                    .map_or(Value::Null, of_number)
            }
            (State::Percentile(sketch), Function::Percentile(part)) => {
                let (count, last) = (sketch.count(), sketch.count().saturating_sub(1).max(1));
                // The sketch rounds down; the middle between two ranks is far from both.
                let part = rank(part, count).map(|rank| ((rank as f64 + 0.5) / last as f64).min(1.0));
                part.and_then(|part| sketch.quantile(part).ok().flatten()).map_or(Value::Null, of_number)
            }
            _ => Value::Null,
        }
    }
}

type Estimator = HyperLogLogPlus<u64, BuildHasherDefault<DefaultHasher>>;

/// What is known of the values of a group.
pub(super) enum State {
    Sum(Option<Value>),
    Mean {
        sum: f64,
        count: u64,
    },
    Min(Value),
    Max(Value),
    /// Hashes of the values.
    Distinct(HashSet<u64>),
    Estimated(Box<Estimator>),
    /// The values of which a percentile is exact.
    Ranked(Vec<f64>),
    Percentile(Box<DDSketch>),
}

/// Returns the index of a percentile, as a part of 1, among sorted values: the least one that at least this part of the
/// values does not exceed (nearest rank). `None` if there are no values.
fn rank(part: f64, count: usize) -> Option<usize> {
    // 0.95 * 20 is 19 but for the rounding of binary fractions.
    let rank = (part * count as f64 - 1e-9).ceil().max(1.0) as usize;
    (count > 0).then(|| rank.min(count) - 1)
}

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

impl State {
    /// Adds a value. Absent values have no effect.
    pub(super) fn add(&mut self, value: &Value) {
        if *value == Value::Null {
            return;
        }
        match self {
            Self::Sum(sum) => {
                *sum = Some(match (sum.take(), value) {
                    (None, value) => value.clone(),
                    (Some(Value::Unsigned(sum)), Value::Unsigned(value)) => {
                        Value::Unsigned(sum.saturating_add(*value))
                    }
                    (Some(Value::Signed(sum)), Value::Signed(value)) => {
                        Value::Signed(sum.saturating_add(*value))
                    }
                    (Some(Value::Duration(sum)), Value::Duration(value)) => {
                        Value::Duration(sum.saturating_add(*value))
                    }
                    (Some(Value::Float(sum)), Value::Float(value)) => Value::Float(sum + value),
                    (Some(sum), _) => sum,
                });
            }
            Self::Mean { sum, count } => {
                if let Some(value) = number(value) {
                    (*sum, *count) = (*sum + value, *count + 1);
                }
            }
            Self::Min(least) => {
                if *least == Value::Null
                    || compare_values(value, least).is_some_and(std::cmp::Ordering::is_lt)
                {
                    *least = value.clone();
                }
            }
            Self::Max(greatest) => {
                if *greatest == Value::Null
                    || compare_values(value, greatest).is_some_and(std::cmp::Ordering::is_gt)
                {
                    *greatest = value.clone();
                }
            }
            Self::Distinct(values) => {
                values.insert(hash(value));
                if values.len() > EXACT_MAX
                    && let Ok(mut estimator) = Estimator::new(PRECISION, BuildHasherDefault::default())
                {
                    values.iter().for_each(|value| estimator.insert(value));
                    *self = Self::Estimated(Box::new(estimator));
                }
            }
            Self::Estimated(estimator) => estimator.insert(&hash(value)),
            Self::Ranked(values) => {
                values.extend(number(value));
                if values.len() > RANKED_MAX {
                    let mut sketch = DDSketch::new(Config::new(PERCENTILE_ERROR, BIN_MAX, 1e-9));
                    values.iter().for_each(|value| sketch.add(*value));
                    *self = Self::Percentile(Box::new(sketch));
                }
            }
            Self::Percentile(sketch) => {
                if let Some(value) = number(value) {
                    sketch.add(value);
                }
            }
        }
    }

    /// Returns about the number of octets that the state has allocated.
    pub(super) fn heap_len(&self) -> usize {
        match self {
            Self::Distinct(values) => values.capacity() * 9,
            // 6 bits for each register, or as many octets for a few values.
            Self::Estimated(_) => (1 << PRECISION) * 6 / 8 + 256,
            Self::Ranked(values) => size_of::<f64>() * values.capacity(),
            Self::Percentile(sketch) => size_of::<DDSketch>() + 8 * sketch.length() + 1024,
            Self::Sum(_) | Self::Mean { .. } | Self::Min(_) | Self::Max(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of the nearest rank, by counting: the least value that at least the part of all values does not exceed.
    fn by_counting(percent: usize, values: &[f64]) -> f64 {
        let fits = |bound: f64| {
            values.iter().filter(|value| **value <= bound).count() * 100 >= percent * values.len()
        };
        values.iter().copied().filter(|value| fits(*value)).min_by(f64::total_cmp).unwrap()
    }

    #[test]
    fn percentiles_have_the_nearest_rank_and_are_exact_for_few_values() {
        for count in (1..=40).chain([100, 255, 256, 257, 1000]) {
            // In another order than that of the values.
            let values: Vec<f64> = (0..count).map(|number| (number * 7919 % count + 1) as f64).collect();
            for percent in [0, 1, 5, 25, 50, 75, 90, 95, 99, 100] {
                let aggregate = Aggregate::parse(&format!("p{percent}(octet_count)")).unwrap();
                let mut state = aggregate.state();
                values.iter().for_each(|value| state.add(&Value::Unsigned(*value as u64)));
                let Value::Float(result) = aggregate.result(&mut state) else { panic!("a number") };
                let expected = by_counting(percent, &values);
                let error = if count <= RANKED_MAX { 0.0 } else { PERCENTILE_ERROR * 1.001 };
                assert!(
                    (result - expected).abs() <= expected * error,
                    "p{percent} of {count}: {result}, {expected}"
                );
            }
        }
    }
}
