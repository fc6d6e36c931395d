//! The figures of a run beside those of a reference: what grew, what came, what went.

mod compare;
mod figures;

pub use compare::{Change, Comparison, PERCENT_MAX};
pub use figures::{Environment, Figures, Run};
