// SPDX-License-Identifier: MIT
//! What is said about one connection.

use crate::observers::Half;
use serde::Serialize;
use std::net::SocketAddr;

/// How a connection ended within the capture.
pub use ackwise_capture::Ending;
/// Times of the three packets that open it.
pub use ackwise_capture::Handshake;

/// What the SYN of an endpoint offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Options {
    pub mss_bytes: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: bool,
}

/// A connection; half 0 is what endpoint 0 sends and endpoint 1 acknowledges.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// Rises in the order of first packets; without gaps from [`crate::diagnose`].
    pub index: u64,
    /// 0 sent the SYN; without handshake, 0 sent the first packet.
    pub endpoints: [SocketAddr; 2],
    /// Endpoint 0 is known to have opened the connection.
    pub initiator_known: bool,
    /// First and last packet, since the start of the capture.
    pub start_ns: u64,
    pub end_ns: u64,
    pub ending: Ending,
    pub packets: u64,
    /// Copies of packets, by sender; nothing else counts them.
    pub repeated_packets: [u64; 2],
    /// By sender; none where the SYN was not captured.
    pub options: [Option<Options>; 2],
    pub syn_flags: [Option<u16>; 2],
    pub handshake: Option<Handshake>,
    /// Smallest RTT between the capture point and each endpoint.
    pub distance_ns: [Option<u64>; 2],
    pub halves: [Half; 2],
}
