// SPDX-License-Identifier: MIT
//! The report on one connection.

use crate::observers::Half;
use serde::Serialize;
use std::net::SocketAddr;

/// Version of ECN negotiated in the handshake.
pub use crate::ecn::Ecn;
/// How a connection ended within the capture.
pub use ackwise_capture::Ending;
/// Times of the three packets that open a connection.
pub use ackwise_capture::Handshake;

/// Options offered by an endpoint's SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Options {
    /// Maximum segment size (RFC 9293, 3.7.1); None without the option.
    pub mss_bytes: Option<u16>,
    /// Window shift, at most 14 (RFC 7323, 2); None without the option.
    pub window_scale: Option<u8>,
    /// Whether SACK was permitted (RFC 2018, 2).
    pub sack_permitted: bool,
    /// Whether the timestamps option was present (RFC 7323, 3).
    pub timestamps: bool,
    /// Whether the snap length cut them: those missing here may have been offered.
    pub is_cut: bool,
}

impl Options {
    /// The scale offered (RFC 7323, 2.2); None: unknown.
    pub(crate) fn scale(&self) -> Option<Scaling> {
        match self.window_scale {
            Some(shift) => Some(Scaling::Offered(shift)),
            None if self.is_cut => None,
            None => Some(Scaling::Off),
        }
    }
}

/// The window scale option of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scaling {
    Offered(u8),
    Off,
}

/// A connection; half 0 is the data of endpoint 0, acknowledged by endpoint 1.
#[derive(Clone, Debug, Serialize)]
pub struct Connection<H = Half> {
    /// Increases in the order of first packets; without gaps from [`crate::diagnose`].
    pub index: u64,
    /// Endpoint 0 sent the SYN; without a handshake, it sent the first packet.
    pub endpoints: [SocketAddr; 2],
    /// Whether endpoint 0 is known to have opened the connection.
    pub initiator_known: bool,
    /// Time of the first packet, nanoseconds since the start of the capture.
    pub start_ns: u64,
    /// Time of the last packet, counted in the same way.
    pub end_ns: u64,
    /// How the connection ended.
    pub ending: Ending,
    /// Number of packets of both endpoints, without [`Connection::repeated_packets`].
    pub packets: u64,
    /// Number of packet copies, by sender; they are not counted elsewhere.
    pub repeated_packets: [u64; 2],
    /// Options by sender; None where the SYN was not captured.
    pub options: [Option<Options>; 2],
    /// Version of ECN; None where a SYN was not captured.
    pub ecn: Option<Ecn>,
    /// Times of the handshake; None unless all three of its packets were captured.
    pub handshake: Option<Handshake>,
    /// Minimum RTT between the capture point and each endpoint, nanoseconds.
    pub distance_ns: [Option<u64>; 2],
    /// The findings on each direction of data.
    pub halves: [H; 2],
}
