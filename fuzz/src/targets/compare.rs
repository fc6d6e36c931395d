//! Comparison of two runs that must report the same.

use std::fmt::Debug;

/// Panics with the first items that differ, if any.
pub fn assert_same<T: PartialEq + Debug>(one: &[T], other: &[T], what: &str) {
    let end = one.len().max(other.len());
    if let Some(number) = (0..end).find(|number| one.get(*number) != other.get(*number)) {
        let (one, other) = (one.get(number), other.get(number));
        panic!("{what} differ in item {number} of {end}:\n{one:#?}\n{other:#?}");
    }
}
