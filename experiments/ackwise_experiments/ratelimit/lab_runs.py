# SPDX-License-Identifier: MIT
"""Runs of spec page 1 on the real kernel: a link, a policy, a sender; and what is asked of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ackwise import plans
from ackwise.engine.typed import put
from ackwise.plans import Link, policy
from ackwise_experiments import documents
from ackwise_experiments.check import Basis, Kind, Origin

SECOND = 10**9
STOCK = "linux"
LIMITED = "ratelimit"
SENDERS = ("cubic", "reno", "bbr")
SEGMENT_BYTES = 1448  # Ethernet, timestamps
DEEP_QUEUE = 10_000  # packets: more than the receive window can fill

CUT_PERCENT = 80
KEPT_CLEAN = 0.99
KEPT_FAULTY = 0.98

CLEAN_WAN, CLEAN_WAN_S = "wan-10ms", 10.0
SMALL_QUEUE, SMALL_S = "wan-10ms", 5.0
ANSWERED, ANSWER_S = ("lan-100m", "wan-10ms"), 5.0

ASKED = Basis(Kind.PREDICTED, Origin.ASKED)
# The share that is asked of ratelimit; that the others have to keep as much is our demand.
AS_MUCH = Basis(Kind.PREDICTED, Origin.AFTER)


@dataclass(frozen=True)
class KernelRun:
    """The first group of one run."""

    mbit_s: float
    acks: int
    segments_per_ack: float
    late_segments_per_ack: float | None  # second half of the run; None without a series
    message_p99_ms: float


def kernel_run(result: Mapping[str, Any]) -> KernelRun:
    """The figures of a run."""
    group = result["groups"][0]
    series = group["flows"][0].get("series")
    late = None
    if series:
        half = result["duration_ns"] / 2
        rows = [
            (n, acks)
            for t, n, acks in zip(
                series["time_ns"], series["delivered_bytes"], series["acks"], strict=True
            )
            if t > half
        ]
        acks = sum(a for _, a in rows)
        late = sum(n for n, _ in rows) / SEGMENT_BYTES / acks if acks else None
    return KernelRun(
        float(group["goodput_bps"]) / 1e6,
        int(group["acks_sent"]),
        float(group["segments_per_ack"]),
        late,
        float(group["message_latency_ns"]["p99"]) / 1e6,
    )


def with_way(link: Link, **keys: Any) -> Link:
    """The link with deep queues both ways, and `keys` of the engine set for the way down."""
    shape = link.scenario
    for way in ("down", "up"):
        shape = put(shape, way, {"queue_packets": DEEP_QUEUE, "queue_bytes": 0})
    return replace(link, scenario=put(shape, "down", keys))


def deep(name: str, **faults: Any) -> Link:
    """A shipped link whose queues never overflow, with faults towards the client."""
    return with_way(plans.load_link(name), **faults)


def scenario(
    link: Link,
    spec: str,
    seconds: float,
    sender: str = "cubic",
    *,
    seed: int = 1,
    workload: str = "bulk",
    series: bool = False,
) -> dict[str, Any]:
    """One run: a link, a policy, a sender."""
    made = documents.scenario_of(
        link,
        replace(plans.load_workload(workload), duration_ns=round(seconds * SECOND)),
        policy.parse(spec, "reproduce ratelimit"),
        seed,
        series_interval_ns=1 if series else 0,
    )
    for group in made["groups"]:
        group.setdefault("sender", {})["congestion_control"] = sender
    return made


def pair(link: Link, seconds: float, sender: str = "cubic") -> list[dict[str, Any]]:
    """Stock, then ratelimit."""
    return [scenario(link, spec, seconds, sender) for spec in (STOCK, LIMITED)]


def answers() -> list[dict[str, Any]]:
    """Requests and responses on each link, stock, then ratelimit."""
    return [
        scenario(plans.load_link(name), spec, ANSWER_S, workload="request-response")
        for name in ANSWERED
        for spec in (STOCK, LIMITED)
    ]


def fewer_percent(stock: KernelRun, limited: KernelRun) -> float:
    """ACKs saved."""
    return 100 * (1 - limited.acks / stock.acks)


def goodput_kept(stock: KernelRun, limited: KernelRun) -> float:
    """Goodput as a share of the stock kernel's."""
    return limited.mbit_s / stock.mbit_s


def later_ns(stock: KernelRun, limited: KernelRun) -> int:
    """Increase of the 99th percentile of response times."""
    return round((limited.message_p99_ms - stock.message_p99_ms) * 1e6)


def fixed(segments: int) -> str:
    """The policy that sends one ACK for so many segments."""
    return f"delayed:segments={segments}"
