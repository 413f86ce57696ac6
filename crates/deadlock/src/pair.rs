// SPDX-License-Identifier: MIT
//! What is asked about: a sender, a receiver and the path between them.

use ackwise_core::PolicyChoice;
use serde::{Deserialize, Serialize};

/// Both ends and the path between them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    pub mss_bytes: u32,
    pub send_buffer_bytes: u64,
    pub recv_buffer_bytes: u64,
    pub nagle: Nagle,
    /// The sender's socket layer; the receiver's window behaviour follows from it.
    pub socket: Socket,
    /// Size of the application's messages, each written after the previous one was delivered; 0:
    /// one endless stream.
    #[serde(default)]
    pub write_bytes: u64,
    /// What the application does over and over, in place of `write_bytes`; empty: as that says.
    #[serde(default)]
    pub script: Vec<Call>,
    pub policy: PolicyChoice,
    /// Whether segments carry timestamps (RFC 7323). Without them a Linux receiver uses the time of
    /// a whole window as the RTT (tcp_rcv_rtt_measure), an overestimate where the sender keeps less
    /// than a window outstanding.
    #[serde(default = "yes")]
    pub timestamps: bool,
    /// RTT of the empty path.
    pub rtt_ns: u64,
    /// Rate of the path in both directions, bit/s; 0: unlimited.
    #[serde(default)]
    pub rate_bps: u64,
    /// Header bytes of every packet on the wire.
    #[serde(default)]
    pub header_bytes: u32,
    /// Bytes to transfer; 0: as many as the answer needs.
    #[serde(default)]
    pub transfer_bytes: u64,
    /// Rules to switch off, to see which one decides.
    #[serde(default)]
    pub without: Vec<Rule>,
}

fn yes() -> bool {
    true
}

/// One call of the application, bytes. The server reads all that was written so far, and answers a
/// `Read` at once, in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    Write(u64),
    Read(u64),
}

/// A rule of the endpoints that the source's equations leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A short segment may leave when it is half of the largest window ever offered.
    HalfWindow,
    /// The socket layer runs TCP output after each 4096 bytes.
    Push,
    /// Free space of less than half a cluster is not used.
    Cluster,
    /// TCP output runs before the writer that an ACK has woken.
    OutputFirst,
    /// The receiver learns the MSS from arriving segments.
    LearntMss,
    /// An ACK caused by an arrival leaves before the application has read the data.
    AckBeforeRead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    Bsd43,
    Minshall,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Socket {
    Linux,
    Bsd43,
}
