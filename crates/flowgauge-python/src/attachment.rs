//! Attachment of the current thread to Python.

#![allow(unsafe_code, reason = "a function of CPython that is not in its stable ABI")]

#[cfg(unix)]
use std::ffi::c_int;
#[cfg(unix)]
use std::sync::OnceLock;

/// Returns whether the current thread is attached to Python; `None` if CPython has no function for this. Does not wait for
/// Python.
#[cfg(unix)]
pub(crate) fn is_attached() -> Option<bool> {
    static CHECK: OnceLock<Option<unsafe extern "C" fn() -> c_int>> = OnceLock::new();
    let check = CHECK.get_or_init(|| {
        // SAFETY: the name ends with NUL. The symbol, if there is one, is the function of CPython, which has had this
        // signature since version 3.4; a pointer to data and one to a function have the same representation on all
        // systems with `dlsym`, and null is `None`.
        unsafe {
            let symbol = libc::dlsym(libc::RTLD_DEFAULT, c"PyGILState_Check".as_ptr());
            std::mem::transmute::<*mut libc::c_void, Option<unsafe extern "C" fn() -> c_int>>(symbol)
        }
    });
    // SAFETY: the function has no arguments, and reads the state of the current thread only, which need not be attached.
    check.map(|check| unsafe { check() } == 1)
}

/// Returns `None`: other systems have other functions to find a symbol.
#[cfg(not(unix))]
pub(crate) const fn is_attached() -> Option<bool> {
    None
}
