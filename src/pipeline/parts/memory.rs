//! Memory of the results of parts.

use crate::base::{Account, Budget};

/// Returns the number of bytes above which the budget requests memory of a layer.
pub(super) fn pressed_from(budget: &Budget) -> u64 {
    budget.limit() / 16 * 13
}

/// Charges bytes for the results of a part, at most half of the budget, so that no layer lacks them. Returns whether they
/// were charged.
pub(super) fn charge(budget: &Budget, bytes: u64) -> bool {
    budget.held() + bytes <= budget.limit() / 2 && budget.charge(Account::Queues, bytes)
}
