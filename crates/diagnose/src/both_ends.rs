// SPDX-License-Identifier: MIT
//! A run captured at both its ends: what each flow sent, acknowledged and lost.
//!
//! [`measure`] counts in one pass over each capture; [`follow`] and [`losses`] keep the packets of one flow. The ends
//! have the same clock.
//!
//! Unlike in [`crate::diagnose`], which end a capture was made at is known, so nothing has to be inferred.

mod follow;
mod measure;
mod path;

pub use follow::{follow, losses, FollowedFlow, FollowedPacket, Lost};
pub use measure::{measure, AskedFlow, Measured, MeasuredFlow, Trace};
pub use path::AckPath;

use ackwise_capture::{segments, tcp_flag, CaptureError, ReadOptions, Source, TcpSegment};
use std::net::IpAddr;
use std::path::Path;

/// The captures of a run and where its flows are in them.
#[derive(Clone, Debug)]
pub struct Run {
    /// Of the client and of the server.
    pub captures: [String; 2],
    pub server: IpAddr,
    /// The server's port of the first flow; the next one has the next port.
    pub first_port: u16,
}

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Host {
    Client,
    Server,
}

const HOSTS: [Host; 2] = [Host::Client, Host::Server];

impl Host {
    fn peer(self) -> Host {
        match self {
            Host::Client => Host::Server,
            Host::Server => Host::Client,
        }
    }

    /// The host that sends the data of a flow that goes down to the client, or up from it.
    fn sender(down: bool) -> Host {
        match down {
            true => Host::Server,
            false => Host::Client,
        }
    }
}

/// A packet of a flow of the run.
struct Passing<'a> {
    time_ns: u64,
    flow: usize,
    by: Host,
    segment: &'a TcpSegment,
}

impl Run {
    /// Calls `take` with each packet that has a flow's port.
    fn read(
        &self,
        at: Host,
        options: &ReadOptions<'_>,
        mut take: impl FnMut(&Passing<'_>),
    ) -> Result<(), CaptureError> {
        let source = Source::file(Path::new(&self.captures[at as usize]));
        segments(source, options, |time_ns, segment| {
            let is_server = segment.src.ip() == self.server;
            let (by, port) = match is_server {
                true => (Host::Server, segment.src.port()),
                false => (Host::Client, segment.dst.port()),
            };
            if let Some(flow) = port.checked_sub(self.first_port) {
                take(&Passing { time_ns, flow: flow.into(), by, segment });
            }
        })
    }
}

fn is_pure_ack(segment: &TcpSegment) -> bool {
    let flags = segment.flags & (tcp_flag::ACK | tcp_flag::SYN | tcp_flag::FIN | tcp_flag::RST);
    segment.payload_len == 0 && flags == tcp_flag::ACK
}
