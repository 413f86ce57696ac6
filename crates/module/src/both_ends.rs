// SPDX-License-Identifier: MIT
//! Measurements of runs captured at both ends: data, ACKs and losses of their flows.

use crate::reading::{reading, EngineError};
use ackwise_diagnose::both_ends::{self, AckPath, FollowedPacket, MeasuredFlow, Run};
use ackwise_sim::result::Quantiles;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde::Serialize;
use std::net::IpAddr;

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|e| EngineError::new_err(e.to_string()))
}

/// The run for these captures; `paths`: the client's and the server's.
fn run(paths: Vec<String>, server: &str, first_port: u16) -> PyResult<Run> {
    let captures = paths
        .try_into()
        .map_err(|paths: Vec<_>| EngineError::new_err(format!("{} captures, not 2", paths.len())))?;
    let server: IpAddr = server.parse().map_err(|e| EngineError::new_err(format!("{server}: {e}")))?;
    Ok(Run { captures, server, first_port })
}

#[derive(Serialize)]
struct Flow {
    #[serde(flatten)]
    found: MeasuredFlow,
    ack_path: Option<AckPath<Quantiles>>,
}

/// Samples of all flows of a group.
#[derive(Clone, Default)]
struct Samples {
    rtt_ns: Vec<u64>,
    ack_latency_ns: Vec<u64>,
}

#[derive(Serialize)]
struct Group {
    rtt_ns: Quantiles,
    ack_latency_ns: Quantiles,
}

#[derive(Serialize)]
struct Measurement {
    flows: Vec<Flow>,
    groups: Vec<Group>,
}

/// Measures all flows. `wanted` is JSON; `groups_of` gives the group of each flow, from 0 to
/// `groups` - 1. Returns JSON.
#[pyfunction]
pub fn measure_run(
    py: Python<'_>,
    paths: Vec<String>,
    server: &str,
    first_port: u16,
    wanted_json: &str,
    groups_of: Vec<usize>,
    groups: u16,
) -> PyResult<String> {
    let run = run(paths, server, first_port)?;
    let wanted =
        serde_json::from_str(wanted_json).map_err(|e| EngineError::new_err(format!("wanted: {e}")))?;
    py.allow_threads(|| {
        let found = reading(None, None, |options| both_ends::measure(&run, &wanted, options))?;
        let mut samples = vec![Samples::default(); groups.into()];
        let mut flows = Vec::new();
        for (mut found, group) in found.into_iter().zip(groups_of) {
            let none = || EngineError::new_err(format!("group {group} of {groups}"));
            let of = samples.get_mut(group).ok_or_else(none)?;
            of.rtt_ns.append(&mut found.rtt_ns);
            of.ack_latency_ns.append(&mut found.ack_latency_ns);
            let ack_path = found.ack_path.take().map(|path| path.with_delays(Quantiles::exact));
            flows.push(Flow { found, ack_path });
        }
        let groups = samples.into_iter().map(|of| Group {
            rtt_ns: Quantiles::exact(of.rtt_ns),
            ack_latency_ns: Quantiles::exact(of.ack_latency_ns),
        });
        json(&Measurement { flows, groups: groups.collect() })
    })
}

/// Exact quantiles of values as JSON, as in the results of a run.
#[pyfunction]
pub fn quantiles(values: Vec<u64>) -> PyResult<String> {
    json(&Quantiles::exact(values))
}

type PacketRow<'py> = (i64, bool, i64, u32, i64, Bound<'py, PyTuple>, bool, bool);

/// Follows one flow: time of its first data, its end, and its packets; None if it sent no data.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Python calls pass no structs
pub fn follow_flow<'py>(
    py: Python<'py>,
    paths: Vec<String>,
    server: &str,
    first_port: u16,
    flow: usize,
    down: bool,
    trace_first_ns: i64,
    duration_ns: u64,
) -> PyResult<Option<(i64, i64, Vec<PacketRow<'py>>)>> {
    let run = run(paths, server, first_port)?;
    let found = py.allow_threads(|| {
        reading(None, None, |options| {
            both_ends::follow(&run, flow, down, trace_first_ns, duration_ns, options)
        })
    })?;
    let Some(found) = found else { return Ok(None) };
    let no_sacks = PyTuple::empty(py);
    let row = |p: FollowedPacket| {
        let sacks = match p.sacks.is_empty() {
            true => no_sacks.clone(),
            false => PyTuple::new(py, p.sacks)?,
        };
        Ok((p.time_ns, p.by_sender, p.seq, p.payload_bytes, p.ack, sacks, p.again, p.lost))
    };
    let rows: PyResult<_> = found.packets.into_iter().map(row).collect();
    Ok(Some((found.first_data_ns, found.end_ns, rows?)))
}

/// Packets of the first flow that were lost, by sending host: client, server (JSON).
#[pyfunction]
pub fn lost_packets(py: Python<'_>, paths: Vec<String>, server: &str, first_port: u16) -> PyResult<String> {
    let run = run(paths, server, first_port)?;
    py.allow_threads(|| json(&reading(None, None, |options| both_ends::losses(&run, options))?))
}
