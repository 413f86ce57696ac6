// SPDX-License-Identifier: MIT
//! `ackwise._engine`: crates/module, linked with the C core. Nothing is compiled here, so that a changed policy costs a
//! link.

use ackwise_link as _;
use pyo3::prelude::*;

#[pymodule]
fn _engine(m: &Bound<'_, PyModule>) -> PyResult<()> {
    ackwise_module::fill(m)
}
