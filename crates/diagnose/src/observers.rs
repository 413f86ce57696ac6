// SPDX-License-Identifier: MIT
//! Observers of the steps of one half. A new statistic needs one file, and its line below.

use crate::acks;
use crate::counts::Counts;
use crate::hops::Origins;
use crate::limits::{review, Limits, Seen};
use crate::observer::{End, Observer};
use crate::rate::Rate;
use crate::rtt::Rtt;
use crate::step::Step;
use crate::window::Window;
use serde::Serialize;

macro_rules! observers {
    ($(#[$set:meta])* $all:ident -> $report:ident $(, $review:path)? { $($(#[$about:meta])* $name:ident: $observer:ty,)* }) => {
        #[derive(Debug, Default)]
        pub(crate) struct $all {
            $($name: $observer,)*
        }

        impl Observer for $all {
            type Report = $report;
            const READS_QUEUES: bool = $(<$observer as Observer>::READS_QUEUES)||*;

            fn watch(&mut self, of: usize, steps: &[Step]) {
                $(self.$name.watch(of, steps);)*
            }

            fn finish(self, end: &End) -> $report {
                let report = $report { $($name: self.$name.finish(end),)* };
                $(let report = $review(report, end);)?
                report
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
    All -> Half, reviewed {
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
        /// Packets that somebody else sent in its place.
        hops: Origins,
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

impl Half {
    /// What its judgment is compared with.
    pub(crate) fn seen(&mut self) -> Seen<'_> {
        Seen {
            counts: &self.counts,
            rate: &self.rate,
            acking: &self.acking,
            window: &self.window,
            limits: &mut self.limits,
        }
    }
}

fn reviewed(mut half: Half, end: &End) -> Half {
    // Only the limits recognize these as retransmissions.
    half.counts.sent.add_unseen(half.limits.unseen_timers, half.limits.unseen_bytes);
    review(&mut half.seen(), end);
    half
}
