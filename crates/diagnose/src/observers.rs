// SPDX-License-Identifier: MIT
//! What watches the steps of one half. To add a statistic: one file, and its line below.

use crate::acks;
use crate::counts::Counts;
use crate::limits::Limits;
use crate::rate::Rate;
use crate::rtt::Rtt;
use crate::step::Step;
use crate::window::Window;
use serde::Serialize;

/// Watches one half in bounded memory. Every step of the connection comes to it once, in one of
/// two ways.
pub trait Observer: Default {
    type Report: Serialize;
    /// Reads [`Step::queued_ns`], which is worked out for nobody else.
    const READS_QUEUES: bool = false;

    /// The data sender of this half sent a packet: [`Step::data`] is about this half.
    fn sent(&mut self, _step: &Step) {}

    /// Its receiver sent one: [`Step::ack`] is about this half.
    fn acked(&mut self, _step: &Step) {}

    fn finish(self, end: &End) -> Self::Report;
}

/// A half at the end of its connection, or of the capture.
#[derive(Clone, Debug)]
pub struct End {
    /// The last packet of the connection.
    pub time_ns: u64,
    /// The first number of data; none where no number was seen.
    pub first: Option<u64>,
    /// Highest numbers sent and acknowledged.
    pub nxt: u64,
    pub una: u64,
    /// The receiver acknowledged something.
    pub is_answered: bool,
    pub mss_bytes: u32,
    /// Smallest RTT between the capture point and the data sender, and the receiver.
    pub distance_ns: [Option<u64>; 2],
    /// How long the receiver took for its answer in the handshake.
    pub handshake_ns: Option<u64>,
}

/// Steps alone.
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
    /// What one endpoint sent, and how the other acknowledged it.
    All -> Half {
        /// Packets, segments, bytes, ACKs by kind.
        counts: Counts,
        /// Throughput, goodput, idle gaps.
        rate: Rate,
        /// From data to its ACK.
        rtt: Rtt,
        /// How ACKs are made.
        acking: acks::Watch,
        /// Bytes in flight and the advertised window.
        window: Window,
        /// What limits it, and when.
        limits: Limits,
    }
}

observers! {
    /// The same without judgments: what tcptrace and tshark count, too.
    Counted -> Statistics {
        /// As in [`Half`].
        counts: Counts,
        /// As in [`Half`].
        rate: Rate,
        /// As in [`Half`].
        rtt: Rtt,
        /// As in [`Half`].
        window: Window,
    }
}
