# SPDX-License-Identifier: MIT
"""The metrics of a comparison: tables, files, report and docs are generated from this list."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from ackwise.engine.result import (
    ChannelResult,
    GroupResult,
    HostResult,
    PingResult,
    Quantiles,
)


class Better(Enum):
    """Whether high or low values are good."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"


@dataclass(frozen=True)
class Metric:
    """One metric of a group of flows in a run."""

    key: str  # name in JSON, CSV and Parquet, including the unit
    title: str  # column heading
    unit: str  # unit of the value: bit/s, ns, s/GB, or "" for counts and ratios
    better: Better
    text: str
    take: "Take"
    shown: bool = True  # whether the text table has a column for it


@dataclass(frozen=True)
class Measured:
    """Source of a metric: a group of a run, the link's device, the run's echo requests, and the
    link's directions that carry the group's data and its ACKs (None: the lab does not see them)."""

    group: GroupResult
    host: HostResult
    ping: PingResult | None
    data_way: ChannelResult | None
    ack_way: ChannelResult | None


Take = Callable[[Measured], float | None]


def _plain(name: str) -> Take:
    def take(of: Measured) -> float | None:
        found = getattr(of.group, name)  # None: the lab cannot measure it
        return None if found is None else float(found)

    return take


def _of_queue(name: str) -> Take:
    return lambda of: float(getattr(of.data_way, name)) if of.data_way else None


def _filtered(of: Measured) -> float | None:
    return float(of.ack_way.acks_filtered) or None if of.ack_way else None


def _quantile(found: Quantiles, which: str) -> float | None:
    return float(getattr(found, which)) if found.samples else None


def _cpu(of: Measured) -> float | None:
    return of.host.cpu_s_per_gb if of.host.cpu_busy_ns else None


def _segments_per_ack(of: Measured) -> float | None:
    answered = of.group.acks_sent + of.group.acks_piggybacked
    return of.group.segments_per_ack if answered else None


def _pings_lost(of: Measured) -> float | None:
    return float(of.ping.lost) if of.ping else None


def _of_group(name: str, which: str) -> Take:
    return lambda of: _quantile(getattr(of.group, name), which)


def _of_pings(name: str, which: str) -> Take:
    return lambda of: _quantile(getattr(of.ping, name), which) if of.ping else None


def _quantiles(
    name: str,
    title: str,
    text: str,
    shown: tuple[str, ...],
    take: Callable[[str, str], Take] = _of_group,
) -> list[Metric]:
    base = name.removesuffix("_ns")
    key = name.removeprefix("ping_")
    return [
        Metric(
            f"{base}_{which}_ns",
            f"{title} {which}",
            "ns",
            Better.LOWER,
            f"{text}: {'mean' if which == 'mean' else which[1:] + '% are at most this'}",
            take(key, which),
            which in shown,
        )
        for which in ("mean", "p50", "p95", "p99")
    ]


METRICS: list[Metric] = [
    Metric("goodput_bps", "goodput", "bit/s", Better.HIGHER,
           "payload read by the application per second, from first byte sent to last delivered",
           _plain("goodput_bps")),
    Metric("fairness", "fairness", "", Better.HIGHER,
           "Jain's index of the flows' goodputs, 1 for a single flow", _plain("fairness")),
    Metric("acks", "ACKs", "", Better.LOWER, "pure ACKs sent by the data receiver",
           _plain("acks_sent")),
    Metric("acks_filtered", "filtered", "", Better.NEITHER,
           "pure ACKs of all groups that the path dropped as redundant, where the group's ACKs "
           "travel; absent if none was, and in the lab", _filtered),
    Metric("acks_piggybacked", "piggybacked", "", Better.NEITHER,
           "ACKs piggybacked on the receiver's data", _plain("acks_piggybacked"), False),
    Metric("segments_per_ack", "segs/ACK", "", Better.HIGHER,
           "segments received per ACK, pure or piggybacked", _segments_per_ack),
    *_quantiles("rtt_ns", "RTT", "round-trip time measured by the data sender",
                ("p50", "p95", "p99")),
    *_quantiles("ack_latency_ns", "ACK lat.",
                "from a segment's arrival to the ACK that covers it", ("mean", "p99")),
    *_quantiles("message_latency_ns", "message",
                "from a message's first write to its last byte delivered", ("p50", "p99")),
    *_quantiles("ping_rtt_ns", "ping", "round-trip time of the run's echo requests, all groups",
                ("p50", "p95", "p99"), _of_pings),
    Metric("pings_lost", "pings lost", "", Better.LOWER,
           "echo requests of the run without a reply; absent if the workload has no pings",
           _pings_lost),
    Metric("stalls", "stalls", "", Better.LOWER,
           "times a sender with data could not send until a delayed-ACK timer expired",
           _plain("stalls")),
    Metric("stalled_ns", "stalled", "ns", Better.LOWER, "total time in stalls, all flows",
           _plain("stalled_ns"), False),
    Metric("retransmitted_segments", "retrans", "", Better.LOWER, "retransmitted segments",
           _plain("retransmitted_segments")),
    Metric("queue_peak_packets", "queue peak packets", "", Better.LOWER,
           "most packets of all groups that waited at a time where the group's data enters the "
           "link, without the one in transmission; absent in the lab",
           _of_queue("max_queue_packets"), False),
    Metric("queue_peak_bytes", "queue peak", "B", Better.LOWER,
           "most bytes that waited there at a time", _of_queue("max_queue_bytes"), False),
    Metric("timeouts", "timeouts", "", Better.LOWER, "retransmission timeouts",
           _plain("timeouts"), False),
    Metric("delivered_bytes", "delivered", "B", Better.NEITHER,
           "payload read by the receiving application, all flows", _plain("delivered_bytes"),
           False),
    Metric("segments_received", "segments", "", Better.NEITHER,
           "data segments that reached the receiving TCP", _plain("segments_received"), False),
    Metric("flows_completed", "completed", "", Better.NEITHER,
           "flows whose last byte was delivered", _plain("flows_completed"), False),
    Metric("cpu_s_per_gb", "CPU s/GB", "s/GB", Better.LOWER,
           "processor seconds of the link's device per 10^9 bytes delivered by all groups; "
           "absent if the link sets no processor cost for its device", _cpu),
]  # fmt: skip

GOODPUT = "goodput_bps"
ACKS = "acks"
