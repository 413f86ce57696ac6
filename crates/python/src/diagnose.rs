// SPDX-License-Identifier: MIT
//! Connections of captures, diagnosed.

use crate::{reading, Cancel, EngineError};
use ackwise_capture::Source;
use pyo3::prelude::*;
use std::num::NonZeroUsize;

/// Diagnoses the connections of all captures together and returns them (JSON); `-` is the standard
/// input.
#[pyfunction]
#[pyo3(signature = (paths, threads=NonZeroUsize::MIN, cancel=None))]
pub fn diagnose(
    py: Python<'_>,
    paths: Vec<String>,
    threads: NonZeroUsize,
    cancel: Option<&Cancel>,
) -> PyResult<String> {
    let flag = cancel.map(|c| c.0.as_ref());
    py.allow_threads(|| {
        let sources = paths.iter().map(Source::named);
        let diagnosis = reading(flag, |options| ackwise_diagnose::diagnose(sources, options, threads))?;
        serde_json::to_string(&diagnosis).map_err(|e| EngineError::new_err(e.to_string()))
    })
}
