// SPDX-License-Identifier: MIT
//! Observers of the steps of one half. A new statistic needs one file, and its line below.

use crate::acks;
use crate::counts::Counts;
use crate::limits::Limits;
use crate::rate::Rate;
use crate::rtt::Rtt;
use crate::step::Step;
use crate::window::Window;
use serde::Serialize;

/// Watches one half in bounded memory. Every step of the connection is passed to it once, in one of
/// two ways.
pub trait Observer: Default {
    type Report: Serialize;
    /// Whether it reads [`Step::queued_ns`], which is computed only on demand.
    const READS_QUEUES: bool = false;

    /// The data sender of this half sent a packet; [`Step::data`] refers to this half.
    fn sent(&mut self, _step: &Step) {}

    /// The receiver of this half sent a packet; [`Step::ack`] refers to this half.
    fn acked(&mut self, _step: &Step) {}

    fn finish(self, end: &End) -> Self::Report;
}

/// State of a half at the end of its connection or of the capture.
#[derive(Clone, Debug)]
pub struct End {
    /// Time of the connection's last packet.
    pub time_ns: u64,
    /// First sequence number of data; None where no number was seen.
    pub first: Option<u64>,
    /// Highest sequence numbers sent and acknowledged.
    pub nxt: u64,
    pub una: u64,
    /// Whether the receiver acknowledged anything.
    pub is_answered: bool,
    pub mss_bytes: u32,
    /// Minimum RTT between the capture point and the data sender, and the receiver.
    pub distance_ns: [Option<u64>; 2],
    /// Time that the receiver took for its answer in the handshake.
    pub handshake_ns: Option<u64>,
}

/// Steps without an observer.
impl Observer for () {
    type Report = ();

    fn finish(self, _end: &End) {}
}

macro_rules! observers {
    ($(#[$set:meta])* $all:ident -> $report:ident { $($(#[$about:meta])* $name:ident: $observer:ty,)* }) => {
        #[derive(Debug, Default)]
        pub(crate) struct $all {
            $($name: $observer,)*
        }

        impl Observer for $all {
            type Report = $report;
            const READS_QUEUES: bool = $(<$observer as Observer>::READS_QUEUES)||*;

            fn sent(&mut self, step: &Step) {
                $(self.$name.sent(step);)*
            }

            fn acked(&mut self, step: &Step) {
                $(self.$name.acked(step);)*
            }

            fn finish(self, end: &End) -> $report {
                $report { $($name: self.$name.finish(end),)* }
            }
        }

        $(#[$set])*
        #[derive(Clone, Debug, Serialize)]
        pub struct $report {
            $($(#[$about])* pub $name: <$observer as Observer>::Report,)*
        }
    };
}

observers! {
    /// Data of one endpoint, and its acknowledgment by the other.
    All -> Half {
        /// Counts of packets, segments, bytes and ACKs by type.
        counts: Counts,
        /// Throughput, goodput, idle gaps.
        rate: Rate,
        /// RTT from data to its ACK.
        rtt: Rtt,
        /// How the receiver acknowledges.
        acking: acks::Watch,
        /// Bytes in flight and the advertised window.
        window: Window,
        /// The limits over time.
        limits: Limits,
    }
}

observers! {
    /// Statistics without judgments: the figures that tcptrace and tshark also count.
    Counted -> Statistics {
        /// Same as in [`Half`].
        counts: Counts,
        /// Same as in [`Half`].
        rate: Rate,
        /// Same as in [`Half`].
        rtt: Rtt,
        /// Same as in [`Half`].
        window: Window,
    }
}
