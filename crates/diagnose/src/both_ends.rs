// SPDX-License-Identifier: MIT
//! A run captured at both ends: data, ACKs and losses of each flow.
//!
//! [`measure`] counts in one pass over each capture; [`follow`] and [`losses`] keep the packets of one flow. The ends
//! have the same clock.
//!
//! Unlike in [`crate::diagnose`], the end at which a capture was made is known, so nothing has to
//! be inferred.

mod follow;
mod measure;
mod path;

pub use follow::{follow, losses, FollowedFlow, FollowedPacket, Lost};
pub use measure::{measure, AskedFlow, Measured, MeasuredFlow, Trace};
pub use path::AckPath;

use ackwise_capture::{segments, tcp_flag, CaptureError, ReadOptions, Source, TcpSegment};
use std::net::IpAddr;
use std::path::Path;

/// The captures of a run, and the ports of its flows.
#[derive(Clone, Debug)]
pub struct Run {
    /// Files of the client's and the server's capture.
    pub captures: [String; 2],
    /// Address of the server; every other address is the client's.
    pub server: IpAddr,
    /// The server's port for the first flow; each further flow has the next port.
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

    /// The host that sends the data: the server if it flows down to the client, otherwise the
    /// client.
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
    /// Calls `take` with each packet on a flow's port.
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
