//! Comparison of the figures of a run with a reference, and of the work per octet of expensive inputs with benign
//! inputs.

mod compare;
mod figures;
mod padding;
mod work;

pub use compare::{Change, Comparison, PERCENT_MAX};
pub use figures::{Environment, Figures, Run};
pub use padding::padding;
pub use work::{EXEMPTIONS, Exemption, FACTOR_MAX, Fault, WorkRow, work_rows};
