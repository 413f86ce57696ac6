# SPDX-License-Identifier: MIT
"""Transfers with small buffers, large segments and odd writes between today's hosts, and how
stalls show in their captures."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from ackwise.engine import typed
from ackwise.plans import policy
from ackwise_experiments import documents

STOCK = "linux"
TEXTBOOK = "delayed:segments=2,delay_ms=40"  # RFC 1122, nothing else
A3, CSA3 = "a3", "csa3"
ADAPTIVE = "adaptive"
AS_PUBLISHED = "silence_samples=0"
A3_AS_PUBLISHED, CSA3_AS_PUBLISHED = f"{A3}:{AS_PUBLISHED}", f"{CSA3}:{AS_PUBLISHED}"

KIB = 1024
MTUS = (9180, 32_768, 65_535)  # ATM's, in between, and loopback's
SEND_KIB = (2, 6, 16, 32, 64)
RECEIVE_KIB = (8, 16, 24, 32, 64, 128, 256)
WRITES = (1000, 7000, 9500, 20_000)
WRITE_MTU = 9180
WRITE_BUFFERS_KIB = ((2, 16), (2, 64), (8, 64))  # send, receive

RATE_BPS = 1_000_000_000
DELAY_NS = 500_000
FLIGHTS = 600
DURATION_NS = 120 * 10**9
# The RTT is 1 ms and the writer always has data: a sender that is silent for half of Linux's
# minimum delayed-ACK timeout waits for a timer.
STALL_NS = 10_000_000
REPEATED = 2  # stalls in the second half of a transfer: from here on not by chance
HEADER_BYTES = 52  # with timestamps
TRACE_LIMIT = 40_000

REQUESTS = 100
ANSWER = {"request_bytes": 200, "response_bytes": 1200, "count": REQUESTS}
WRITE_BYTES = 800  # of an answer, in the lab
ANSWER_MTU = 1500
ANSWER_BUFFERS = {"send": 4096 * KIB, "receive": 1024 * KIB}


@dataclass(frozen=True)
class TransferSetup:
    """One transfer: buffers as the application requests them, and its write size (0: one write)."""

    mtu: int
    send_bytes: int
    receive_bytes: int
    write_bytes: int = 0
    nagle: str = "minshall"
    flights: int = FLIGHTS  # its length: segments, or windows where these are smaller

    @property
    def label(self) -> str:
        """Short, for an axis."""
        text = f"{self.mtu}: {self.send_bytes // KIB}/{self.receive_bytes // KIB}"
        return f"{text}, {self.write_bytes} B" if self.write_bytes else text


@dataclass(frozen=True)
class ObservedTransfer:
    """What a transfer's captures and counters show."""

    goodput_bps: float
    steady_bps: float  # of the second half of the bytes
    stalls: int
    stalls_late: int  # in that half
    acks: int
    segments: int
    timers: int  # ACKs that the delayed-ACK timer sent
    times_ms: tuple[float, ...]  # of data segments
    sent_kb: tuple[float, ...]

    @property
    def repeats(self) -> bool:
        """It stalls again and again until a timer fires."""
        return self.stalls_late >= REPEATED


def scenario(
    spec: str, app: Mapping[str, Any], mtu: int, sender: Mapping[str, Any], receive_bytes: int
) -> dict[str, Any]:
    """One flow down a path of 1 Gbit/s and 1 ms."""
    pipe = {"rate_bps": RATE_BPS, "delay_ns": DELAY_NS, "queue_packets": 1000}
    return {
        "seed": 1,
        "duration_ns": DURATION_NS,
        "mtu_bytes": mtu,
        "down": pipe,
        "up": pipe,
        "groups": [
            {
                "name": "pair",
                "count": 1,
                "direction": "down",
                "policy": typed.document(policy.parse(spec, "linux-deadlock").for_engine()),
                "app": dict(app),
                "sender": {"congestion_control": "cubic", **sender},
                "receiver": {"recv_buffer_bytes": receive_bytes, "recv_buffer_max_bytes": 0},
            }
        ],
        "record": {"trace": True, "trace_limit": TRACE_LIMIT},
    }


def transfer(cell: TransferSetup, spec: str) -> dict[str, Any]:
    """The scenario of a transfer, with a policy at its receiver."""
    total = cell.flights * min(cell.mtu - HEADER_BYTES, cell.receive_bytes)
    app: dict[str, Any] = {"kind": "bulk", "bytes": total}
    if cell.write_bytes:
        writes = total // cell.write_bytes
        app = {"kind": "odd-writes", "write_bytes": cell.write_bytes, "writes": writes, "count": 1}
    sender = {"nagle": cell.nagle, "send_buffer_bytes": cell.send_bytes}
    return scenario(spec, app, cell.mtu, sender, cell.receive_bytes)


def answer(spec: str, think_ms: int) -> dict[str, Any]:
    """Responses in two writes, to a client that waits so long before its next request."""
    app = {"kind": "request-response", "think_ns": think_ms * 10**6, **ANSWER}
    sender = {"nagle": "minshall", "send_buffer_bytes": ANSWER_BUFFERS["send"]}
    made = scenario(spec, app, ANSWER_MTU, sender, ANSWER_BUFFERS["receive"])
    return made | {documents.EXTRAS: {"write_bytes": WRITE_BYTES}}


def answered_ms(result: dict[str, Any]) -> float:
    """The median response time."""
    return float(result["groups"][0]["message_latency_ns"]["p50"]) / 1e6


def observed(result: dict[str, Any]) -> ObservedTransfer:
    """A transfer, from its result."""
    group = result["groups"][0]
    trace = group["flows"][0]["trace"]
    ends = [seq + size for seq, size in zip(trace["data_seq"], trace["data_bytes"], strict=True)]
    times = trace["data_time_ns"]
    half = next(i for i, end in enumerate(ends) if 2 * end >= ends[-1])
    waits = [i for i, (a, b) in enumerate(pairwise(times)) if b - a >= STALL_NS]
    counters = result.get("counters", {}).get("client", {})
    late_ns = times[-1] - times[half]
    return ObservedTransfer(
        goodput_bps=group["goodput_bps"],
        steady_bps=(ends[-1] - ends[half]) * 8e9 / late_ns if late_ns else 0.0,
        stalls=len(waits),
        stalls_late=sum(i >= half for i in waits),
        acks=group["acks_sent"],
        segments=group["segments_received"],
        timers=_by_timer(counters, group["acks_by_reason"]),
        times_ms=tuple(t / 1e6 for t in times),
        sent_kb=tuple(end / 1000 for end in ends),
    )


def _by_timer(counters: Mapping[str, int], reasons: Mapping[str, int]) -> int:
    """The kernel counts what its timer sends, whatever the reason; the simulator has reasons."""
    if counters:
        return counters.get("TcpExtDelayedACKs", 0)
    return reasons.get("delay-timer", 0) + reasons.get("max-delay", 0)


def pairs_of_buffers() -> list[TransferSetup]:
    """A writer that always has data, large MTUs, small buffers."""
    sizes = product(MTUS, SEND_KIB, RECEIVE_KIB)
    return [TransferSetup(mtu, send * KIB, recv * KIB) for mtu, send, recv in sizes]


def with_odd_writes() -> list[TransferSetup]:
    """Writes that are not a multiple of a segment: the paper's classes II and III."""
    sizes = product(WRITE_BUFFERS_KIB, WRITES)
    return [TransferSetup(WRITE_MTU, s * KIB, r * KIB, write) for (s, r), write in sizes]
