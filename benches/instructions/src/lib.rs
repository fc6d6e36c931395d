//! The figures of a run beside those of a reference: what grew, what came, what went; and beside each other: what costs far more
//! for its octets than it should.

mod compare;
mod figures;
mod work;

pub use compare::{Change, Comparison, PERCENT_MAX};
pub use figures::{Environment, Figures, Run};
pub use work::{EXEMPTIONS, Exemption, FACTOR_MAX, Fault, WorkRow, work_rows};
