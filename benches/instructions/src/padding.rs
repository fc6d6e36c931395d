//! The same stack in any folder.

use std::env;

/// Length in octets of the path of a program up to which [`padding`] is exact.
const PATH_LEN_MAX: usize = 512;

/// Returns a value for a variable of the environment, so that the stack of a bench begins at the same address whichever folder
/// the repository is in. The path of the program is twice above the stack, and the routines of the C library that copy and fill
/// take a few instructions more or less by the alignment: up to 3 % of a bench.
#[must_use]
pub fn padding() -> String {
    let path_len = env::args_os().next().map_or(0, |path| path.len());
    "x".repeat(2 * PATH_LEN_MAX.saturating_sub(path_len))
}
