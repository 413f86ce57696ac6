// SPDX-License-Identifier: MIT
//! Limits of a capture's transfers, and their packets for plots.

use crate::reading::{reading, Cancel, EngineError};
use ackwise_capture::{in_order, CaptureNotes, ReadOptions, Source};
use ackwise_diagnose::{Effort, LeftOut};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use serde_json::json;
use std::num::NonZeroUsize;

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| EngineError::new_err(e.to_string()))
}

/// Statements about the captures themselves.
#[derive(serde::Serialize)]
struct Notes<'a> {
    #[serde(flatten)]
    notes: &'a CaptureNotes,
    dropped_packets: Option<u64>,
    left_out: LeftOut,
    cut_connections: u64,
}

/// A diagnosis whose connections are JSON texts, converted one by one: as Python objects they would
/// need ten times the memory.
#[pyclass(frozen, sequence)]
pub struct Diagnosis(ackwise_diagnose::Diagnosis);

#[pymethods]
impl Diagnosis {
    /// JSON of everything except the connections.
    fn notes(&self) -> PyResult<String> {
        let ackwise_diagnose::Diagnosis { notes, left_out, cut_connections, .. } = &self.0;
        let dropped_packets = notes.dropped_packets();
        json(&Notes { notes, dropped_packets, left_out: *left_out, cut_connections: *cut_connections })
    }

    fn __len__(&self) -> usize {
        self.0.connections.len()
    }

    /// JSON of one connection.
    fn __getitem__(&self, at: usize) -> PyResult<String> {
        json(self.0.connections.get(at).ok_or_else(|| PyIndexError::new_err(at))?)
    }

    /// JSON of the part of a connection that ranking needs: some of its keys, in the same
    /// structure.
    fn outline(&self, at: usize) -> PyResult<String> {
        let whole = self.0.connections.get(at).ok_or_else(|| PyIndexError::new_err(at))?;
        let halves = whole.halves.each_ref().map(|ackwise_diagnose::Half { counts, limits, .. }| {
            json!({
                "counts": {
                    "sent": { "new_bytes": counts.sent.new_bytes },
                    "acks": { "missed_bytes": counts.acks.missed_bytes },
                },
                "limits": {
                    "limits": limits.limits,
                    "confidence": limits.confidence,
                    "lost_ns": limits.lost_ns,
                },
            })
        });
        let outline = json!({
            "index": whole.index, "endpoints": whole.endpoints, "packets": whole.packets, "halves": halves,
        });
        Ok(outline.to_string())
    }
}

/// Diagnoses several captures together ("-": standard input), with this many threads. Keeps so many
/// connections, or as many as by default if that is more.
#[pyfunction]
#[pyo3(signature = (paths, threads=NonZeroUsize::MIN, cancel=None, progress=None, kept=0))]
pub fn diagnose(
    py: Python<'_>,
    paths: Vec<String>,
    threads: NonZeroUsize,
    cancel: Option<&Cancel>,
    progress: Option<Py<PyAny>>,
    kept: usize,
) -> PyResult<Diagnosis> {
    let flag = cancel.map(|c| c.0.as_ref());
    let default = Effort::default();
    let effort = Effort { threads, kept_most: default.kept_most.max(kept), ..default };
    py.allow_threads(|| {
        let once = paths.iter().any(|path| path == "-");
        let read = |options: &ReadOptions<'_>| {
            ackwise_diagnose::diagnose(paths.iter().map(Source::named), options, &effort)
        };
        let found = reading(flag, progress.as_ref(), |options| match once {
            true => read(options),
            false => in_order(options, read, |found| &found.notes),
        });
        found.map(Diagnosis)
    })
}

/// Reads captures again for the wanted transfers (JSON); returns a list of series (JSON).
#[pyfunction]
pub fn diagnosis_series(py: Python<'_>, paths: Vec<String>, wanted_json: &str) -> PyResult<String> {
    let wanted: Vec<_> =
        serde_json::from_str(wanted_json).map_err(|e| EngineError::new_err(format!("wanted: {e}")))?;
    py.allow_threads(|| {
        let read = |options: &ReadOptions<'_>| {
            ackwise_diagnose::series::series(paths.iter().map(Source::file), options, &wanted)
        };
        json(&reading(None, None, |options| in_order(options, read, |found| &found.0))?.1)
    })
}
