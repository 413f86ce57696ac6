// SPDX-License-Identifier: MIT
//! The engine for Python, as `ackwise._engine` (crates/python). Scenarios and results are exchanged as JSON text; long
//! calls release the interpreter's lock and can be cancelled from another thread.

mod both_ends;
mod diagnose;
mod own;
mod reading;
mod sockets;
mod tapped;

use ackwise_capture::{in_order, ReadOptions, Source, TcpSegment};
use ackwise_core::{Entry, Reason};
use ackwise_replay::optimum::{self as offline, Arrival};
use ackwise_replay::{ReplayError, Replayer};
use ackwise_sim::rng::Rng;
use ackwise_sim::SimError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use reading::{reading, Cancel, Cancelled, CaptureError, EngineError};
use serde_json::json;
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// The state of a connection grows in small pieces, interleaved with thousands of others and in
/// several threads. With glibc's allocator the statistics of 10 000 connections take a sixth more
/// time (bench/README.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One user's random numbers, selected by the run's seed and the user's index, as in the simulator.
#[pyclass]
struct RandomStream(Rng);

#[pymethods]
impl RandomStream {
    #[new]
    fn new(seed: u64, place: u64) -> Self {
        RandomStream(Rng::new(seed, place))
    }

    /// Uniform on [0, 1).
    fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// Uniform on [0, most]; draws nothing when that is 0.
    fn up_to(&mut self, most: u64) -> u64 {
        self.0.up_to(most)
    }

    /// Exponential with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        self.0.exponential(mean)
    }
}

/// Size at quantile `u` of the simulator's bounded Pareto distribution, bytes.
#[pyfunction]
fn pareto(u: f64, mean: f64, most: f64) -> u64 {
    ackwise_sim::pareto(u, mean, most)
}

/// The hosts, policies and rivals as JSON: kind ("host", "policy" or "rival"), name, summary, source,
/// state_bytes, params, values, asks (names of members of `struct aw_policy` that are set).
#[pyfunction]
fn policies() -> String {
    let list: Vec<_> = Entry::all()
        .map(|p| {
            let params: Vec<_> = p
                .params()
                .iter()
                .map(|q| {
                    json!({"name": q.name, "unit": q.unit, "text": q.text,
                           "min": q.min, "max": q.max, "initial": q.initial})
                })
                .collect();
            let values: Vec<_> =
                p.values().iter().map(|v| json!({"name": v.name, "unit": v.unit, "text": v.text})).collect();
            json!({"kind": p.kind(), "name": p.name(), "summary": p.summary(), "source": p.source(),
                   "state_bytes": p.state_bytes(), "params": params, "values": values,
                   "asks": p.asks()})
        })
        .collect();
    json!(list).to_string()
}

/// The reasons as JSON: label, source, text.
#[pyfunction]
fn reasons() -> String {
    let list: Vec<_> =
        Reason::all().map(|r| json!({"label": r.label(), "source": r.source(), "text": r.text()})).collect();
    json!(list).to_string()
}

/// The keys of a scenario by table, as JSON: name, kind, text, default (absent: required), choices,
/// low, high.
#[pyfunction]
fn scenario_keys() -> PyResult<String> {
    serde_json::to_string(&ackwise_sim::scenario_keys()).map_err(|e| EngineError::new_err(e.to_string()))
}

/// Every struct of a scenario and a result as JSON: name, text, table (a scenario's), keys.
#[pyfunction]
fn classes() -> PyResult<String> {
    serde_json::to_string(&ackwise_sim::classes()).map_err(|e| EngineError::new_err(e.to_string()))
}

/// Runs one scenario (JSON) and returns its result (JSON).
#[pyfunction]
#[pyo3(signature = (scenario_json, cancel=None))]
fn simulate(py: Python<'_>, scenario_json: &str, cancel: Option<&Cancel>) -> PyResult<String> {
    let scenario =
        serde_json::from_str(scenario_json).map_err(|e| EngineError::new_err(format!("scenario: {e}")))?;
    let flag = cancel.map(|c| Arc::clone(&c.0));
    py.allow_threads(|| {
        let result = ackwise_sim::run(&scenario, flag.as_deref()).map_err(|e| match e {
            SimError::Cancelled => Cancelled::new_err("cancelled"),
            SimError::Scenario(what) => EngineError::new_err(what),
        })?;
        serde_json::to_string(&result).map_err(|e| EngineError::new_err(e.to_string()))
    })
}

/// Runs one scenario and also returns its captures (pcap): client, server, router.
#[pyfunction]
fn simulate_captured<'py>(
    py: Python<'py>,
    scenario_json: &str,
) -> PyResult<(String, [Bound<'py, PyBytes>; 3])> {
    let scenario =
        serde_json::from_str(scenario_json).map_err(|e| EngineError::new_err(format!("scenario: {e}")))?;
    let (result, files) = py.allow_threads(|| {
        let mut captures = tapped::Captures::new();
        let result = ackwise_sim::run_tapped(&scenario, None, Some(&mut captures))
            .map_err(|e| EngineError::new_err(e.to_string()))?;
        let text = serde_json::to_string(&result).map_err(|e| EngineError::new_err(e.to_string()))?;
        PyResult::Ok((text, captures.into_bytes()))
    })?;
    Ok((result, files.map(|bytes| PyBytes::new(py, &bytes))))
}

/// Arrival times of new bytes in the largest direction of a capture, as JSON; times are relative to
/// its first data. More than `most` arrivals are refused before they are copied.
#[pyfunction]
fn arrivals(py: Python<'_>, path: &str, most: usize) -> PyResult<String> {
    py.allow_threads(|| {
        // (bytes, connection, direction); the last one wins a tie.
        let mut place = (0, 0, 0);
        let mut largest = None;
        let capture = reading(None, None, |options| {
            ackwise_capture::read_each(Source::file(path), options, |index, c| {
                for d in [0, 1] {
                    let this = (c.directions[d].payload_bytes, index, d);
                    if place <= this {
                        place = this;
                        largest = Some(([c.endpoints[d], c.endpoints[1 - d]], c.directions[d].new_data()));
                    }
                }
                ControlFlow::Continue(())
            })
        })?;
        let Some(([from, to], sent)) = largest.filter(|(_, sent): &(_, Vec<_>)| !sent.is_empty()) else {
            return Err(CaptureError::new_err(format!(
                "{path}: holds no TCP data; give the capture of a transfer"
            )));
        };
        if sent.len() > most {
            return Err(CaptureError::new_err(format!(
                "{path}: {} arrivals, more than {most}; cut the capture (`editcap -r`)",
                sent.len()
            )));
        }
        let start = sent[0].0;
        let (times, bytes): (Vec<u64>, Vec<u32>) = sent.iter().map(|(t, b)| (t - start, *b)).unzip();
        Ok(json!({"from": from.to_string(), "to": to.to_string(),
                  "truncated": capture.truncated, "times_ns": times, "bytes": bytes})
        .to_string())
    })
}

/// The TCP packets of a capture in order: (time_ns, source, source_port, destination,
/// destination_port, ip_ident, flags, seq, ack, payload_bytes, sack_blocks).
#[pyfunction]
fn tcp_packets<'py>(py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyList>> {
    let packets = py.allow_threads(|| {
        let mut packets = Vec::new();
        reading(None, None, |options| {
            let push = |time_ns, s: &TcpSegment| packets.push((time_ns, s.clone()));
            ackwise_capture::segments(Source::file(path), options, push)
        })?;
        PyResult::Ok(packets)
    })?;
    let no_blocks = PyTuple::empty(py);
    let mut names: HashMap<IpAddr, Bound<'_, PyString>> = HashMap::new();
    let mut name = |ip: IpAddr| names.entry(ip).or_insert_with(|| PyString::new(py, &ip.to_string())).clone();
    let rows = PyList::empty(py);
    for (time_ns, s) in packets {
        let blocks = match s.sack_blocks() {
            [] => no_blocks.clone(),
            blocks => PyTuple::new(py, blocks)?,
        };
        rows.append((
            time_ns,
            name(s.src.ip()),
            s.src.port(),
            name(s.dst.ip()),
            s.dst.port(),
            s.ip_ident,
            s.flags,
            s.seq,
            s.ack,
            s.payload_len,
            blocks,
        ))?;
    }
    Ok(rows)
}

/// Replays a capture's arrivals through policies: options (JSON) in, result (JSON) out.
#[pyfunction]
#[pyo3(signature = (path, options_json, cancel=None))]
fn replay(py: Python<'_>, path: &str, options_json: &str, cancel: Option<&Cancel>) -> PyResult<String> {
    let options: ackwise_replay::ReplayOptions =
        serde_json::from_str(options_json).map_err(|e| EngineError::new_err(format!("options: {e}")))?;
    let flag = cancel.map(|c| Arc::clone(&c.0));
    let cancelled = || flag.as_ref().is_some_and(|f| f.load(Ordering::Relaxed));
    let failed = |e| match e {
        ReplayError::Cancelled => Cancelled::new_err("cancelled"),
        ReplayError::Choice(what) => EngineError::new_err(what),
    };
    py.allow_threads(|| {
        let read = |read_options: &ReadOptions<'_>| {
            let mut replayer = Replayer::new(&options);
            let mut replayed = Ok(());
            let capture =
                ackwise_capture::read_each(Source::named(path), read_options, |index, connection| {
                    replayed = match &mut replayer {
                        Ok(replayer) => replayer.add(index, &connection, &cancelled),
                        Err(_) => return ControlFlow::Break(()),
                    };
                    if replayed.is_ok() {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                })?;
            Ok((capture, replayer.and_then(|replayer| replayed.map(|()| replayer))))
        };
        let (capture, replayer) = reading(flag.as_deref(), None, |options| match path {
            "-" => read(options),
            _ => in_order(options, read, |(capture, _)| &capture.notes),
        })?;
        let replayer = replayer.map_err(failed)?;
        serde_json::to_string(&replayer.finish(&capture)).map_err(|e| EngineError::new_err(e.to_string()))
    })
}

/// Whether a sender and a receiver can wait for each other: pair (JSON) in, verdict (JSON) out.
#[pyfunction]
fn deadlock(py: Python<'_>, pair_json: &str) -> PyResult<String> {
    let pair = serde_json::from_str(pair_json).map_err(|e| EngineError::new_err(format!("pair: {e}")))?;
    py.allow_threads(|| {
        let verdict = ackwise_deadlock::judge(&pair).map_err(EngineError::new_err)?;
        serde_json::to_string(&verdict).map_err(|e| EngineError::new_err(e.to_string()))
    })
}

/// Replays synthetic arrivals (JSON) through policies: options (JSON) in, result (JSON) out.
#[pyfunction]
fn replay_arrivals(py: Python<'_>, arrivals_json: &str, options_json: &str) -> PyResult<String> {
    py.allow_threads(|| {
        let arrivals = serde_json::from_str(arrivals_json)
            .map_err(|e| EngineError::new_err(format!("arrivals: {e}")))?;
        let options =
            serde_json::from_str(options_json).map_err(|e| EngineError::new_err(format!("options: {e}")))?;
        let result = ackwise_replay::replay_arrivals(&arrivals, &options)
            .map_err(|e| EngineError::new_err(e.to_string()))?;
        serde_json::to_string(&result).map_err(|e| EngineError::new_err(e.to_string()))
    })
}

/// The cheapest ACK schedule for packets that arrive at these times, as JSON: acks, latency_ns,
/// cost, schedule_ns.
#[pyfunction]
fn optimum(py: Python<'_>, times_ns: Vec<u64>, rho_permille: u16, unit_ns: u64) -> PyResult<String> {
    py.allow_threads(|| {
        let price = ackwise_replay::Price::new(rho_permille, unit_ns).map_err(EngineError::new_err)?;
        let arrivals: Vec<_> = times_ns.iter().map(|&time_ns| Arrival { time_ns, weight: 1 }).collect();
        let found =
            offline::optimum(&arrivals, &[], price).map_err(|e| EngineError::new_err(e.to_string()))?;
        Ok(json!({"acks": found.acks, "latency_ns": found.latency_ns, "cost": found.cost,
                  "schedule_ns": found.schedule_ns})
        .to_string())
    })
}

/// Adds everything visible to Python.
///
/// # Errors
/// Errors that Python raises.
pub fn fill(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("EngineError", m.py().get_type::<EngineError>())?;
    m.add("CaptureError", m.py().get_type::<CaptureError>())?;
    m.add("Cancelled", m.py().get_type::<Cancelled>())?;
    m.add_class::<Cancel>()?;
    m.add_class::<RandomStream>()?;
    m.add_class::<sockets::Sockets>()?;
    m.add_function(wrap_pyfunction!(sockets::limits, m)?)?;
    m.add_function(wrap_pyfunction!(policies, m)?)?;
    m.add_function(wrap_pyfunction!(own::add_policy, m)?)?;
    m.add_function(wrap_pyfunction!(reasons, m)?)?;
    m.add_function(wrap_pyfunction!(scenario_keys, m)?)?;
    m.add_function(wrap_pyfunction!(classes, m)?)?;
    m.add_function(wrap_pyfunction!(simulate, m)?)?;
    m.add_function(wrap_pyfunction!(simulate_captured, m)?)?;
    m.add("CAPTURE_START_NS", tapped::START_NS)?;
    m.add("AT_HOST_NS", ackwise_diagnose::AT_HOST_NS)?;
    m.add_function(wrap_pyfunction!(arrivals, m)?)?;
    m.add_function(wrap_pyfunction!(tcp_packets, m)?)?;
    m.add_function(wrap_pyfunction!(both_ends::measure_run, m)?)?;
    m.add_function(wrap_pyfunction!(both_ends::follow_flow, m)?)?;
    m.add_function(wrap_pyfunction!(both_ends::lost_packets, m)?)?;
    m.add_function(wrap_pyfunction!(both_ends::quantiles, m)?)?;
    m.add_function(wrap_pyfunction!(pareto, m)?)?;
    m.add_function(wrap_pyfunction!(deadlock, m)?)?;
    m.add_function(wrap_pyfunction!(diagnose::diagnosis_series, m)?)?;
    m.add_function(wrap_pyfunction!(replay, m)?)?;
    m.add_function(wrap_pyfunction!(diagnose::diagnose, m)?)?;
    m.add_class::<diagnose::Diagnosis>()?;
    m.add_function(wrap_pyfunction!(replay_arrivals, m)?)?;
    m.add_function(wrap_pyfunction!(optimum, m)?)
}
