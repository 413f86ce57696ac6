// SPDX-License-Identifier: MIT
//! What limits the transfers of captures, and their packets for plots.

use crate::{reading, Cancel, EngineError};
use ackwise_capture::Source;
use pyo3::prelude::*;
use std::num::NonZeroUsize;

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| EngineError::new_err(e.to_string()))
}

/// Diagnoses captures together ("-": standard input) in as many threads; JSON out.
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
        let sources = || paths.iter().map(Source::named);
        json(&reading(flag, |options| ackwise_diagnose::diagnose(sources(), options, threads))?)
    })
}

/// Reads captures again for the transfers that are wanted (JSON); a list of series (JSON) out.
#[pyfunction]
pub fn diagnosis_series(py: Python<'_>, paths: Vec<String>, wanted_json: &str) -> PyResult<String> {
    let wanted: Vec<_> =
        serde_json::from_str(wanted_json).map_err(|e| EngineError::new_err(format!("wanted: {e}")))?;
    py.allow_threads(|| {
        let sources = || paths.iter().map(Source::file);
        json(&reading(None, |options| ackwise_diagnose::series::series(sources(), options, &wanted))?)
    })
}
