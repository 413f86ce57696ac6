# SPDX-License-Identifier: MIT
"""The runs of spec page 1: a MIPS router that sends, and a virtual machine that receives."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ackwise import plans
from ackwise.plans import policy
from ackwise_experiments import documents

# Links whose costs were fitted to the published gains, for illustrations of them. Nothing else uses
# them: the shipped links of slow machines have costs that were counted.
FITTED = Path(__file__).parent / "links"

SEED = 1
SECOND = 10**9
LONG_S = 100  # as published
SHORT_S = 20
POINT_NS = SECOND // 2

STOCK = "linux"
ONE_PER_TWO = "delayed:segments=2"

# The device starts to limit after 19 to 20 s: 15 600 segments/s make 300 000 in 19.2 s. 2000
# packets, the only count that is published, are 0.13 s: they can be an interval, not the start.
DEVICE = "fitted-writer"
DEVICE_POLICY = "ratelimit:settle_segments=300000,interval_segments=2000,guard=0,clamp=none"
DROP_S = 45
DROP_MS = 2
LIMITING_S = (30, DROP_S - 1)

# The virtual machine starts to raise its rate after 10 s, two intervals of 5 s at 26 000 packets/s.
# Half the ACKs with 30% more throughput make one ACK per 5 segments.
MACHINE = "fitted-machine"
MACHINE_POLICY = "ratelimit:interval_segments=130000,most_segments=4,guard=0,clamp=none"
DISTURBANCES_S = (30, 50, 80)
DISTURBANCE_BYTES = 20_000_000
LIMITED_S = (25, LONG_S)


@dataclass(frozen=True)
class FlowRun:
    """The flow of one run's first group."""

    result: dict[str, Any]

    @property
    def group(self) -> dict[str, Any]:
        """The summary."""
        found: dict[str, Any] = self.result["groups"][0]
        return found

    @property
    def series(self) -> dict[str, Any]:
        """The figures over time."""
        found: dict[str, Any] = self.group["flows"][0]["series"]
        return found

    @property
    def time_s(self) -> list[float]:
        """Ends of the intervals."""
        return [t / SECOND for t in self.series["time_ns"]]

    def _per_s(self, key: str) -> list[float]:
        return [n * SECOND / POINT_NS for n in self.series[key]]

    @property
    def mbit_s(self) -> list[float]:
        """Goodput of each interval."""
        return [8 * n / 1e6 for n in self._per_s("delivered_bytes")]

    @property
    def acks_s(self) -> list[float]:
        """ACKs a second of each interval."""
        return self._per_s("acks")

    @property
    def rtt_ms(self) -> list[float]:
        """Mean RTT of each interval; 0: none was measured."""
        return [n / 1e6 for n in self.series["rtt_ns"]]

    def mean(self, values: Sequence[float], start_s: float, end_s: float) -> float:
        """Mean over the intervals in between, without those that measured nothing."""
        kept = [
            v for t, v in zip(self.time_s, values, strict=True) if start_s < t <= end_s and v > 0
        ]
        return sum(kept) / len(kept) if kept else 0.0

    @property
    def goodput_mbit_s(self) -> float:
        """Goodput of the whole run."""
        return float(self.group["goodput_bps"]) / 1e6


def scenario(link: str, spec: str, seconds: float, *, series: bool = False) -> dict[str, Any]:
    """One long transfer over a shipped link, or one of FITTED."""
    fitted = FITTED / f"{link}.toml"
    workload = replace(plans.load_workload("bulk"), duration_ns=round(seconds * SECOND))
    return documents.scenario_of(
        plans.load_link(str(fitted) if fitted.exists() else link),
        workload,
        policy.parse(spec, "reproduce ratelimit"),
        SEED,
        series_interval_ns=POINT_NS if series else 0,
    )


def dropping(made: dict[str, Any], at_s: float) -> dict[str, Any]:
    """The scenario with a short outage."""
    outage = {"start_ns": round(at_s * SECOND), "length_ns": DROP_MS * 10**6}
    made["down"]["outages"] = [outage]
    return made


def disturbed(made: dict[str, Any]) -> dict[str, Any]:
    """The scenario with a few short transfers beside it."""
    for start_s in DISTURBANCES_S:
        other = copy.deepcopy(made["groups"][0])
        other |= {"name": f"disturbance at {start_s} s", "start_ns": start_s * SECOND}
        other["app"] = {"kind": "bulk", "bytes": DISTURBANCE_BYTES}
        made["groups"].append(other)
    return made


def gain_percent(after: float, before: float) -> float | None:
    """Increase in percent."""
    return 100 * (after / before - 1) if before else None


def device_scenarios() -> list[dict[str, Any]]:
    """The device that sends, without and with limiting."""
    specs = (STOCK, DEVICE_POLICY)
    return [dropping(scenario(DEVICE, s, LONG_S, series=True), DROP_S) for s in specs]


def machine_scenarios() -> list[dict[str, Any]]:
    """The virtual machine that receives, without and with limiting."""
    specs = (STOCK, MACHINE_POLICY)
    return [disturbed(scenario(MACHINE, s, LONG_S, series=True)) for s in specs]
