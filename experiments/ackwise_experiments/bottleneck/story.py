# SPDX-License-Identifier: MIT
"""The transfer of spec page 4, step by step: one at 1 Gbit/s, slow over distance, and what each
larger buffer gives.

The source names its sysctls and the throughput of each step, not how much payload a buffer holds
nor the hosts' own delay. Two of its figures settle both: 94 Mbit/s over 100 ms are 1.175 MB in
flight, 28% of `tcp_wmem`; the same in 758 Mbit/s make a round trip of 12.4 ms, 2.4 ms more than was
added. Its receive window of 3 145 728 bytes is half of `tcp_rmem`. All other figures follow.
"""

from dataclasses import dataclass, replace
from typing import Any

from ackwise_experiments import documents
from ackwise_experiments.bottleneck import proof
from ackwise_experiments.bottleneck.account import Account
from ackwise_experiments.bottleneck.case import JUDGING, Case
from ackwise_experiments.bottleneck.kinds import BULK, Kind
from ackwise_experiments.bottleneck.scenario import (
    KIB,
    LINUX,
    MSS_BYTES,
    SIMULATOR,
    build,
    group,
    way,
)

TOLERANCE_PERCENT = 15
RATE_BPS = 1_000_000_000
FRAME_BYTES = 38  # of Ethernet around each packet: preamble, header, checksum, gap
MIB = 1024 * KIB
OWN_RTT_MS = 2.4
SEND_SHARE = 0.28  # of tcp_wmem: payload in flight
RECEIVE_SHARE = 0.5  # of tcp_rmem: the window
# A writer wakes when a third of its buffer is free.
MEAN_FILL = 5 / 6
# What a kernel's buffers hold depends on the memory that it counts for a segment: Linux 6.12 counts
# 2304 bytes for 1448, for both buffers.
LAB_SHARE = 1448 / 2304
# The application's default for the first buffer, as in the kernel.
FIRST_RECEIVE_BYTES = 131_072
# Linux asks for room only where a segment begins: writes of whole segments.
WRITES = {"kind": "odd-writes", "write_bytes": 6 * MSS_BYTES, "writes": 100_000, "count": 1}
QUEUE_PACKETS = 20_000  # nothing is dropped, as the source made sure


@dataclass(frozen=True)
class Step:
    """One step: what was set, what came out, and what limited it."""

    name: str
    delay_ms: float
    send_memory: int  # tcp_wmem, largest
    receive_memory: int  # tcp_rmem, largest
    published_mbit_s: float
    limit: str
    fitted: bool = False  # what the source leaves open was settled with this throughput

    @property
    def rtt_ms(self) -> float:
        """With the hosts' own delay."""
        return self.delay_ms + OWN_RTT_MS

    @property
    def in_flight_bytes(self) -> float:
        """What the send buffer lets be in flight, on average."""
        return self.send_memory * SEND_SHARE

    @property
    def window_bytes(self) -> float:
        """The largest receive window."""
        return self.receive_memory * RECEIVE_SHARE

    def allowing(self, sysctl: str, largest_bytes: int) -> "Step":
        """The step with `tcp_wmem` or `tcp_rmem` of a Linux host set to this."""
        payload = largest_bytes * LAB_SHARE
        if sysctl == "tcp_wmem":
            return replace(self, send_memory=round(payload * MEAN_FILL / SEND_SHARE))
        return replace(self, receive_memory=round(payload / RECEIVE_SHARE))

    def scenario(self, world: str) -> dict[str, Any]:
        """For the simulator or the lab, whose buffers hold the same payload."""
        link = way(RATE_BPS, self.rtt_ms, QUEUE_PACKETS)
        seconds = 3 if self.rtt_ms < 50 else 6
        if world == SIMULATOR:
            # A third of it is whole segments: else the writer, which writes whole segments, wakes
            # only after two thirds are free.
            thirds = round(self.in_flight_bytes / MEAN_FILL / (3 * MSS_BYTES))
            sender = {"send_buffer_bytes": thirds * 3 * MSS_BYTES}
            receiver = {
                "recv_buffer_bytes": FIRST_RECEIVE_BYTES,
                "recv_buffer_max_bytes": round(self.window_bytes / LAB_SHARE),
            }
            groups = [group(BULK, sender, receiver)]
            made = build(world, seconds, link, link, groups)
        else:
            made = build(world, seconds, link, link, [group(WRITES, {"nagle": "off"})])
            sysctls = {
                "tcp_wmem": f"4096 16384 {round(self.in_flight_bytes / MEAN_FILL / LAB_SHARE)}",
                "tcp_rmem": f"4096 {FIRST_RECEIVE_BYTES} {round(self.window_bytes / LAB_SHARE)}",
            }
            made[documents.EXTRAS] = {"sysctls": sysctls}
        return made | {"link_overhead_bytes": FRAME_BYTES}


STEPS: tuple[Step, ...] = (
    Step("no delay added", 0, 4 * MIB, 6 * MIB, 927, "link"),
    Step("10 ms", 10, 4 * MIB, 6 * MIB, 758, "send-buffer", fitted=True),
    Step("100 ms", 100, 4 * MIB, 6 * MIB, 94, "send-buffer", fitted=True),
    Step("tcp_wmem 6 MiB", 100, 6 * MIB, 6 * MIB, 143, "send-buffer"),
    Step("tcp_wmem 60 MiB", 100, 60 * MIB, 6 * MIB, 239, "receive-window"),
    Step("tcp_rmem 12.5 MB", 100, 60 * MIB, 12_500_000, 456, "receive-window"),
    Step("tcp_rmem 24 MB", 100, 60 * MIB, 24_000_000, 927, "link"),
)


_SHARES: dict[str, proof.Share] = {
    "link": proof.full_link,
    "send-buffer": proof.send_buffer,
    "receive-window": proof.receive_window,
}
WORLDS = (SIMULATOR, LINUX)


def _as_kind(number: int | str, step: Step) -> Kind:
    return Kind(
        f"story-{number}",
        step.limit,
        step.name,
        lambda draw: step.scenario(draw.world),
        _SHARES[step.limit],
        proof.full_rate,
        WORLDS,
    )


def story(world: str) -> list[tuple[Step, Case]]:
    """Each step as a case, to be made like any other."""
    return [(step, as_case(number, step, world)) for number, step in enumerate(STEPS, 1)]


def as_case(number: int | str, step: Step, world: str) -> Case:
    """A step, to be made like any case."""
    return Case(_as_kind(number, step), WORLDS.index(world) + 1, JUDGING)


def reached_mbit_s(account: Account) -> float:
    """What a step came to, slow start left out: the rate of the second half of its time."""
    return account.rate_bps(account.duration_ns // 2, account.duration_ns) / 1e6
