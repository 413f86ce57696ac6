// SPDX-License-Identifier: MIT
//! What a review of a judgment finds: limits that cannot have held, and doubts about the largest.

use super::limit::Limit;
use serde::Serialize;

/// Why a limit cannot have held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Because {
    /// The time is longer than the packets of the handshake took.
    HandshakeWasShorter,
    /// Flight doubles too rarely for the time.
    GrewTooLittle,
    /// No loss, and no congestion mark.
    NothingLost,
    /// The RTT was never longer than on an empty path, and no spacing of packets shows a rate.
    NoQueue,
    /// The window always had room for another segment, or its scale is unknown.
    WindowHadRoom,
    /// The window neither closed nor shrank.
    WindowStayedOpen,
    /// No RTT was measured.
    NoRtt,
    /// The time is too short to show a constant flight.
    FewRtts,
    /// Less than two segments were in flight: no send buffer is as small.
    FewBytesInFlight,
    /// No ACK was late, or not often enough for the time.
    NoLateAck,
    /// Too few messages came back to grant more data.
    FewMessages,
    /// Nothing was retransmitted or probed.
    NothingRetransmitted,
    /// The time is longer than timers run for this number of retransmissions.
    TimersWereShorter,
    /// The capture was taken at the sender.
    FarFromReceiver,
    /// The numbers of IP packets show that more was sent, which never arrived.
    PacketsVanished,
    /// Neither did the sender close nor its peer answer, and what the sender did next did not reach
    /// the capture point.
    Unfinished,
}

/// A limit that the other figures contradict, and the time it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Refuted {
    /// The limit.
    pub limit: Limit,
    /// Its time, nanoseconds.
    pub ns: u64,
    /// What contradicts it.
    pub because: Because,
}

/// How sure a verdict is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Its figures allow no other limit.
    Sure,
    /// The best explanation of several, or of few packets.
    Likely,
    /// The capture does not show the limit.
    #[default]
    Undecided,
}

/// Why a verdict is not sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// It has less than half of the time, or another limit has half as much as it.
    AnotherIsClose,
    /// It lasted a few RTTs.
    FewRtts,
    /// It alternated with others within a few RTTs.
    ChangesOften,
    /// It rests on one or two losses, timers or late ACKs.
    FewEvents,
    /// The capture lost packets.
    LostPackets,
    /// The capture starts within the connection.
    NoHandshake,
    /// The application was seldom silent with nothing in flight.
    FewPauses,
    /// The RTT shows no standing queue.
    NoQueue,
    /// For a while, more passed than while the link was busy.
    UnevenRate,
    /// The sender had not closed when the capture ended: it holds only the start.
    Unfinished,
}

/// What would tell a limit from those that look like it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// A capture at the sender.
    CaptureAtSender,
    /// A capture at the receiver.
    CaptureAtReceiver,
    /// A capture that starts before the connection.
    CaptureFromStart,
    /// The sender's kernel accounts for its limits (`ackwise live`).
    CountersAtSender,
    /// A sender that is shaped to less than the rate: a policer then drops nothing.
    SlowerSender,
}

/// A limit that would look the same in this capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rival {
    /// The limit.
    pub limit: Limit,
    /// What tells them apart.
    pub told_by: Evidence,
}
