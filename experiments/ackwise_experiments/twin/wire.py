# SPDX-License-Identifier: MIT
"""One flow of a run, from the captures at both of its hosts: every packet that an end sent, and
whether it was lost."""

from collections.abc import Sequence
from dataclasses import dataclass

from ackwise.engine.both_ends import RunCaptures
from ackwise.engine.result import FlowResult


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet at its sender. Times are relative to the flow's first packet with data, sequence
    numbers to the first byte of data of either end."""

    time_ns: int
    by_sender: bool  # sent by the data sender; otherwise by its receiver
    seq: int
    payload_bytes: int
    ack: int
    sacks: tuple[tuple[int, int], ...]
    again: bool  # starts below data sent before
    lost: bool  # sent before another packet that arrived, without arriving itself
    reason: str  # reason of a pure ACK; "" if the world does not report it

    @property
    def content(self) -> tuple[int, int, int, tuple[tuple[int, int], ...]]:
        """The properties that distinguish it from another packet, apart from time."""
        return self.seq, self.payload_bytes, self.ack, self.sacks


@dataclass(frozen=True)
class Flow:
    """The packets of both ends, each in the order of sending."""

    packets: Sequence[Packet]
    first_data_ns: int  # since the start of the run
    end_ns: int  # last relevant time since the first data: end of the run, or a FIN
    cwnd: Sequence[tuple[int, int]]  # (time, bytes)

    def sent_by(self, sender: bool) -> list[Packet]:
        """The packets of one end."""
        return [p for p in self.packets if p.by_sender is sender]


def read(
    captures: RunCaptures, number: int, *, down: bool, duration_ns: int, flow: FlowResult
) -> Flow | None:
    """The flow with this number; None if it sent no data.

    `down`: the server sends the data; `flow`: the flow in the run's result, with series and trace.
    Raises RunError for an incomplete capture.
    """
    trace = flow.trace
    if trace is None or not trace.data_time_ns:
        return None
    found = captures.follow(
        number, down=down, first_data_ns=trace.data_time_ns[0], duration_ns=duration_ns
    )
    if found is None:
        return None
    # the trace's times are relative to the start of the run
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
