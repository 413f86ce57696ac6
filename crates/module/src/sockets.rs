// SPDX-License-Identifier: MIT
//! The table of this host's sockets for Python, which does the communication with the kernel.

use crate::reading::EngineError;
use ackwise_sockets::{Answer, Chosen, Filter, Table};
use pyo3::prelude::*;
use std::collections::HashSet;

/// Sockets sampled repeatedly, from the kernel's datagrams.
#[pyclass]
pub struct Sockets(Table);

#[pymethods]
impl Sockets {
    #[new]
    #[pyo3(signature = (uid=None, inodes=None, bytecode=Vec::new()))]
    fn new(uid: Option<u32>, inodes: Option<HashSet<u32>>, bytecode: Vec<u8>) -> Self {
        Sockets(Table::new(Chosen { uid, inodes, filter: Filter::new(bytecode) }))
    }

    /// Reads a datagram. None: more follows; 0: the list is complete; otherwise the errno of a
    /// refusal.
    fn take(&mut self, py: Python<'_>, datagram: &[u8], time_us: u64) -> PyResult<Option<i32>> {
        let table = &mut self.0;
        let answer = py
            .allow_threads(|| table.take(datagram, time_us))
            .map_err(|e| EngineError::new_err(e.to_string()))?;
        Ok(match answer {
            Answer::More => None,
            Answer::Done => Some(0),
            Answer::Refused(errno) => Some(errno),
        })
    }

    /// Forgets sockets that are missing from a complete list.
    fn end_round(&mut self) {
        self.0.end_round();
    }

    /// Whether a socket was reported as idle that has to be described in full.
    fn needs_all(&mut self) -> bool {
        self.0.needs_all()
    }

    fn choose_inodes(&mut self, inodes: HashSet<u32>) {
        self.0.choose_inodes(inodes);
    }

    /// Active sockets as lines of JSON, sorted by time lost, at most `most`. Starts the next
    /// interval.
    fn rows(&mut self, py: Python<'_>, most: usize) -> PyResult<String> {
        let table = &mut self.0;
        py.allow_threads(|| {
            let mut lines = Vec::new();
            let mut written = Ok(());
            table.rows(most, |row| {
                if written.is_ok() {
                    written = serde_json::to_writer(&mut lines, &row);
                    lines.push(b'\n');
                }
            });
            written.map_err(|e| e.to_string())?;
            String::from_utf8(lines).map_err(|e| e.to_string())
        })
        .map_err(EngineError::new_err)
    }

    /// Sums over all sockets since the start, as JSON.
    fn totals(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.totals()).map_err(|e| EngineError::new_err(e.to_string()))
    }
}

/// Names of the limits.
#[pyfunction]
pub fn limits() -> Vec<&'static str> {
    ackwise_sockets::Limit::ALL.iter().map(|l| l.name()).collect()
}
