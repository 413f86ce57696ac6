# SPDX-License-Identifier: MIT
"""What the two ends of a transfer and the link know about it, gathered without a capture: the
independent witness of what limited it."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

SECOND = 10**9


@dataclass(frozen=True, slots=True)
class Sample:
    """The judged connection at one time, counted from the start of the run."""

    time_ns: int
    delivered_bytes: int  # read by the receiving application so far
    cwnd_bytes: int
    ssthresh_bytes: int  # 0: not set yet
    in_flight_bytes: int
    window_bytes: int  # as the receiver advertises it


@dataclass(frozen=True, slots=True)
class Chronograph:
    """The kernel's own account of the sender: times so far, as `tcp_info` has them, and whether its
    send buffer is full of data in flight while the congestion window has room."""

    time_ns: int
    busy_ns: int
    receive_window_ns: int
    send_buffer_ns: int
    send_buffer_full: bool


@dataclass(frozen=True, slots=True)
class FlowTimes:
    """When a connection was asked for, first sent data and was read last; what it lost."""

    name: str  # of its group
    server_port: int
    client_port: int
    opened_ns: int
    first_ns: int
    last_ns: int
    retransmitted: int
    timeouts: int


@dataclass(frozen=True)
class Account:
    """A run, as its ends and its link saw it."""

    start_ns: int  # time of day of time 0 in the captures
    duration_ns: int
    flows: Sequence[FlowTimes]
    samples: Sequence[Sample]  # of the first flow
    chronographs: Sequence[Chronograph]  # of the sender of the first flow; none in the simulator
    messages_ns: Sequence[int]  # from write to delivery, shortest first, first group
    link_times_ns: Sequence[int]  # at which the way of the data was looked at
    link_busy_ns: Sequence[int]  # how long it had been busy by then
    down_bytes: int  # on the link, headers included
    up_bytes: int
    down_dropped: int  # by the queue or the token bucket
    processor_share: float  # of the data receiver's
    stalled_ns: int  # in Nagle / delayed-ACK stalls; only the simulator counts them

    @property
    def flow(self) -> FlowTimes:
        """The judged connection."""
        return self.flows[0]

    def delivered_at(self, time_ns: int) -> int:
        """Bytes read by then."""
        at = bisect_right(self.samples, time_ns, key=lambda s: s.time_ns)
        return self.samples[at - 1].delivered_bytes if at else 0

    def rate_bps(self, from_ns: int, to_ns: int) -> float:
        """What the application read, on average."""
        read = self.delivered_at(to_ns) - self.delivered_at(from_ns)
        return 8 * SECOND * read / (to_ns - from_ns) if to_ns > from_ns else 0.0

    def link_share(self, from_ns: int, to_ns: int) -> float:
        """The share of the time in which the link carried something."""
        times = self.link_times_ns
        first, last = bisect_left(times, from_ns), bisect_right(times, to_ns) - 1
        if first >= last:
            return 0.0
        return (self.link_busy_ns[last] - self.link_busy_ns[first]) / (times[last] - times[first])

    def kernel_share(self, field: str, from_ns: int, to_ns: int) -> float | None:
        """The share of the time that the kernel counts as `field`; None without its account."""
        inside = [c for c in self.chronographs if from_ns <= c.time_ns <= to_ns]
        if len(inside) < 2:
            return None
        first, last = inside[0], inside[-1]
        spent: int = getattr(last, field) - getattr(first, field)
        return spent / (last.time_ns - first.time_ns)
