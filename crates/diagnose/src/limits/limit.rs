// SPDX-License-Identifier: MIT
//! What limits a transfer.

use serde::Serialize;

/// The reason why a transfer is not faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The connection is being established.
    Handshake,
    /// The congestion window still grows by the amount that is acknowledged.
    SlowStart,
    /// The congestion window, reduced by losses or marks.
    CongestionWindow,
    /// The path's slowest link is busy.
    Link,
    /// A policer or a shaper without a queue drops packets above a rate.
    Policer,
    /// The advertised window is full and at its maximum.
    ReceiveWindow,
    /// The advertised window is closed or shrinks: the application does not read.
    ReceivingApplication,
    /// The send buffer is full of unacknowledged data.
    SendBuffer,
    /// The application has nothing to send.
    SendingApplication,
    /// The receiver's application lets only so much be outstanding, by messages of its own.
    ApplicationWindow,
    /// ACKs arrive late, in bursts, or are lost on their way.
    ReturnPath,
    /// The sender waits for an ACK that the receiver delays.
    AckStall,
    /// A retransmission timer is running.
    Timeout,
    /// The processor of an endpoint.
    Processor,
    /// Undecided: the capture does not show the limit.
    Undecided,
}
