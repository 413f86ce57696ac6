// SPDX-License-Identifier: MIT
//! What ends a call: an error, or the user.

use ackwise_capture::{Progress, ReadOptions};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

create_exception!(_engine, EngineError, PyValueError, "The scenario cannot be run as it is.");
create_exception!(_engine, CaptureError, PyValueError, "The capture cannot be read.");
create_exception!(_engine, Cancelled, PyException, "The run was cancelled.");

/// Shared between the caller and a run: `cancel()` makes the run end soon.
#[pyclass(frozen)]
#[derive(Default)]
pub struct Cancel(pub(crate) Arc<AtomicBool>);

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Cancel::default()
    }

    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads a capture with `read`. The options stop the reading soon after `cancel` was called, or,
/// without one and in the interpreter's main thread, after Ctrl-C.
///
/// `progress` is called with the bytes read and, where it is known, their number in all.
pub fn reading<T>(
    cancel: Option<&AtomicBool>,
    progress: Option<&Py<PyAny>>,
    read: impl FnOnce(&ReadOptions<'_>) -> Result<T, ackwise_capture::CaptureError>,
) -> PyResult<T> {
    let stopped = Mutex::new(None);
    let watch = |at: Progress| {
        let why = match cancel {
            Some(cancel) => cancel.load(Ordering::Relaxed).then(|| Cancelled::new_err("cancelled")),
            None => Python::with_gil(|py| py.check_signals()).err(),
        };
        let tell =
            |to: &Py<PyAny>| Python::with_gil(|py| to.call1(py, (at.bytes_read, at.bytes_total))).err();
        let Some(why) = why.or_else(|| progress.and_then(tell)) else { return ControlFlow::Continue(()) };
        *stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        ControlFlow::Break(())
    };
    let options = ReadOptions { watch: Some(&watch), ..ReadOptions::default() };
    read(&options).map_err(|e| {
        let why = stopped.lock().unwrap_or_else(PoisonError::into_inner).take();
        why.unwrap_or_else(|| CaptureError::new_err(e.to_string()))
    })
}
