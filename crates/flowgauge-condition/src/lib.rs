//! Conditions on the columns of rows: `--where` of the command, and `where` of the Python package.
//!
//! A condition is an expression of SQL: comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, ILIKE, IS NULL, IS TRUE and
//! `+ - * /`. A comparison is true, false, or unknown if a value is absent; a row is selected if the condition is true. A
//! literal is compared by the type of the value, so that a text can be an address, a network, a time or a size. Names of a
//! closed set, such as those of response codes, are compared without case.
//!
//! ```
//! use flowgauge::{FileSource, FlowRecord, records};
//! use flowgauge_condition::Condition;
//!
//! let mut condition = Condition::of_row::<FlowRecord>("octet_count > '10kB' AND source_address = '10.0.0.0/8'")?;
//! let mut count = 0;
//! for record in records(FileSource::open("../../examples/data/web.pcap")?) {
//!     count += usize::from(condition.matches(&record?));
//! }
//! assert!(count > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::expect_used)
)]

mod compile;
mod condition;
mod literal;
mod names;
mod node;
mod pattern;
mod problem;
mod quantity;
mod seen;
mod syntax;
mod token;

pub use condition::{Condition, RowFilter};
pub use literal::{compare_values, number};
pub use names::{ALIASES, field_name};
pub use problem::{Problem, nearest};
pub use quantity::{parse_duration, parse_size};
#[doc(hidden)]
pub use syntax::outline;
