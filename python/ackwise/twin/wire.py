# SPDX-License-Identifier: MIT
"""One flow of a run as captures at both its hosts show it: every packet that an end sent, and
whether it was lost on the way."""

from collections.abc import Sequence
from dataclasses import dataclass

from ackwise.engine.both_ends import RunCaptures
from ackwise.engine.result import FlowResult


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet where it was sent. Time counts from the flow's first packet with data, numbers from
    the first byte of data of either end."""

    time_ns: int
    by_sender: bool  # of the data; else by its receiver
    seq: int
    payload_bytes: int
    ack: int
    sacks: tuple[tuple[int, int], ...]
    again: bool  # starts below what was sent before
    lost: bool  # was sent before another that arrived, and did not arrive itself
    reason: str  # of a pure ACK; "" where the world does not tell

    @property
    def content(self) -> tuple[int, int, int, tuple[tuple[int, int], ...]]:
        """What tells it from another packet, whenever it was sent."""
        return self.seq, self.payload_bytes, self.ack, self.sacks


@dataclass(frozen=True)
class Flow:
    """The packets of both ends, each end's in the order in which it sent them."""

    packets: Sequence[Packet]
    first_data_ns: int  # since the start of the run
    end_ns: int  # last time that counts, since the first data: end of the run, or a FIN
    cwnd: Sequence[tuple[int, int]]  # time and bytes

    def sent_by(self, sender: bool) -> list[Packet]:
        """Those of one end."""
        return [p for p in self.packets if p.by_sender is sender]


def read(
    captures: RunCaptures, number: int, *, down: bool, duration_ns: int, flow: FlowResult
) -> Flow | None:
    """The flow of that number; None if it sent no data.

    `down`: the server sends the data; `flow`: what the run's result has of it, with series and
    trace. Raises RunError for a capture that is not complete.
    """
    trace = flow.trace
    if trace is None or not trace.data_time_ns:
        return None
    found = captures.follow(
        number, down=down, first_data_ns=trace.data_time_ns[0], duration_ns=duration_ns
    )
    if found is None:
        return None
    # the trace has times since the start of the run
    since_ns = found.first_data_ns
    reasons = dict(zip(trace.ack_time_ns, trace.ack_reason, strict=True))
    packets = [
        Packet(*row, "" if row[3] else reasons.get(row[0] + since_ns, "")) for row in found.packets
    ]
    cwnd = []
    if flow.series:
        points = zip(flow.series.time_ns, flow.series.cwnd_bytes, strict=True)
        cwnd = [(time_ns - since_ns, size) for time_ns, size in points]
    return Flow(packets, since_ns, found.end_ns, cwnd)
