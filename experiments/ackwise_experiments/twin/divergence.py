# SPDX-License-Identifier: MIT
"""The point at which two runs of one flow diverge.

Each end's packets are compared one by one, in the order in which it sent them, from the flow's
first packet with data. The runs diverge

- in content, at the first packet whose sequence number, length, ACK or SACK blocks differ, or that
  only one of them sends;
- in time, at the first packet that leaves at times further apart than a tolerance.

The end that diverges first counts, because the other's later behaviour follows from it. The
handshake and the end of a connection are left out: only data and ACKs are compared.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from ackwise_experiments.twin.wire import Flow, Packet

TOLERANCE_NS = 100_000  # less than the transmission time of a full frame at 100 Mbit/s, 121 us
CONTENT, TIME = "content", "time"


@dataclass(frozen=True)
class Divergence:
    """The first packet of an end that differs between the runs."""

    how: str  # CONTENT or TIME
    by_sender: bool  # whether the data sender sent it; otherwise its receiver
    number: int  # number among that end's packets, from 1
    simulator: Packet | None  # None: it sends no further packet
    linux: Packet | None

    @property
    def time_ns(self) -> int:
        """Time since the first data: that of the earlier packet."""
        return min(p.time_ns for p in (self.simulator, self.linux) if p is not None)


def divergences(simulator: Flow, linux: Flow, tolerance_ns: int = TOLERANCE_NS) -> list[Divergence]:
    """The first divergence in content and the first in time, in order of time; empty if all packets
    agree."""
    end_ns = min(simulator.end_ns, linux.end_ns) - tolerance_ns
    found = [
        divergence
        for sender in (True, False)
        for divergence in _of_end(simulator, linux, sender, tolerance_ns, end_ns)
    ]
    found.sort(key=lambda p: p.time_ns)
    firsts = [next((p for p in found if p.how == how), None) for how in (CONTENT, TIME)]
    return sorted((p for p in firsts if p is not None), key=lambda p: p.time_ns)


def agreed(simulator: Flow, linux: Flow, diverged: Sequence[Divergence]) -> int:
    """Number of packets of both ends that are equal up to the first divergence."""
    until_ns = diverged[0].time_ns if diverged else None
    return sum(
        1
        for sender in (True, False)
        for a, _ in zip(simulator.sent_by(sender), linux.sent_by(sender), strict=False)
        if until_ns is None or a.time_ns < until_ns
    )


def _of_end(
    simulator: Flow, linux: Flow, sender: bool, tolerance_ns: int, end_ns: int
) -> Iterator[Divergence]:
    timed = False
    pairs = zip_longest(simulator.sent_by(sender), linux.sent_by(sender))
    for number, (a, b) in enumerate(pairs, 1):
        if a is None or b is None or a.content != b.content:
            divergence = Divergence(CONTENT, sender, number, a, b)
            if divergence.time_ns <= end_ns:
                yield divergence
            return
        if not timed and abs(a.time_ns - b.time_ns) > tolerance_ns:
            timed = True
            yield Divergence(TIME, sender, number, a, b)


def words(packet: Packet | None) -> str:
    """Description of a packet."""
    if packet is None:
        return "nothing more"
    at = f" at {packet.time_ns / 1e9:.6f} s"
    gone = ", lost" if packet.lost else ""
    if packet.payload_bytes:
        kind = "retransmits" if packet.again else "sends"
        end = packet.seq + packet.payload_bytes
        return f"{kind} bytes {packet.seq} to {end}{at}{gone}"
    blocks = ", ".join(f"{left} to {right}" for left, right in packet.sacks)
    sack = f", SACK {blocks}" if blocks else ""
    reason = f" ({packet.reason})" if packet.reason else ""
    return f"acknowledges {packet.ack}{sack}{reason}{at}{gone}"
