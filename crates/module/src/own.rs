// SPDX-License-Identifier: MIT
//! Policies of the user: from a shared object into the engine's list.

use crate::reading::EngineError;
use ackwise_core::Policy;
use pyo3::prelude::*;
use std::ffi::{c_char, c_int, c_void, CStr, CString};

const RTLD_NOW: c_int = 2;

extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, symbol: *const c_char) -> *const c_void;
    fn dlerror() -> *const c_char;
}

fn last_error() -> PyErr {
    // SAFETY: NULL, or a string that is valid until the next call of dl*() in this thread.
    let text = unsafe { dlerror().as_ref().map(|text| CStr::from_ptr(text).to_string_lossy().into_owned()) };
    EngineError::new_err(text.unwrap_or_else(|| "the symbol is NULL".into()))
}

/// Loads the shared object `file` and adds its `aw_policy_NAME` to the list, until the process ends.
#[pyfunction]
pub fn add_policy(file: &str, name: &str) -> PyResult<()> {
    let file = CString::new(file)?;
    let symbol = CString::new(format!("aw_policy_{name}"))?;
    // SAFETY: valid strings. What the object does when it is loaded, and later, is its author's, which
    // is whoever runs this.
    let policy = unsafe {
        let library = dlopen(file.as_ptr(), RTLD_NOW);
        if library.is_null() {
            return Err(last_error());
        }
        dlsym(library, symbol.as_ptr())
    };
    if policy.is_null() {
        return Err(last_error());
    }
    // SAFETY: the object was compiled with the core's headers, and is never unloaded.
    unsafe { Policy::add(policy, name) }.map_err(EngineError::new_err)?;
    Ok(())
}
