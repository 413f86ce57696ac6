// SPDX-License-Identifier: MIT
//! Deterministic discrete-event simulator around the ACK policy core.
//!
//! [`run`] turns a [`scenario::Scenario`] into a [`result::RunResult`]; the same scenario gives the
//! same bytes. Time comes from the event heap, randomness only from [`rng`].

#![forbid(unsafe_code)]

mod access;
mod app;
mod channel;
mod check;
mod classes;
mod coalescer;
mod congestion;
mod discipline;
mod echo;
mod emulator;
mod endpoint;
mod engine;
mod fifo;
mod flow;
mod heap;
mod host;
mod keys;
mod named_losses;
mod packet;
mod ping;
mod receive_buffer;
mod receiver;
mod record;
pub mod result;
pub mod rng;
mod round_trip;
pub mod scenario;
mod sender;
mod stats;
pub mod tap;

#[cfg(test)]
use ackwise_link as _;
pub use app::pareto;
pub use classes::{classes, scenario_keys, Class, Tables};
pub use engine::{run, run_tapped, SimError};
pub use keys::{Bounds, Key};
