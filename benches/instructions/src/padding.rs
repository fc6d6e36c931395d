//! The same stack in any folder.

use std::env;

/// Length in octets that the paths on the stack and [`padding`] have together, if the paths are shorter.
const LEN: usize = 8192;

/// Returns a value for a variable of the environment, so that the stack of a bench begins at the same address whichever folder
/// the repository is in. The path of the program is twice above the stack, and the variable with the folders of libraries once,
/// which cargo sets and the runner passes on. The routines of the C library that copy and fill take a few instructions more or
/// less by the alignment: up to 3 % of a bench.
#[must_use]
pub fn padding() -> String {
    let path_len = env::args_os().next().map_or(0, |path| path.len());
    let libraries_len = env::var_os("LD_LIBRARY_PATH").map_or(0, |folders| folders.len());
    "x".repeat(LEN.saturating_sub(2 * path_len + libraries_len))
}
