# SPDX-License-Identifier: MIT
"""What policies cost on an emulated machine: instructions for each megabyte that arrives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ackwise import plans
from ackwise.engine import Cancel
from ackwise.engine.pool import run_all
from ackwise.lab import compare, device
from ackwise.lab.device import Load
from ackwise.lab.machine import Kernel
from ackwise.lab.target import Target
from ackwise.plans.policy import PolicyChoice
from ackwise.results import provenance

LINK, WORKLOAD = "lan-1g", "bulk"
SEGMENT_BYTES = 1448  # Ethernet, timestamps
# They differ in nothing but the number of segments for each ACK.
EACH, ONE_PER_TWO = "every", "delayed:segments=2"
_SEGMENTS = {EACH: 1, ONE_PER_TWO: 2}
_NEARLY = 1.25
SCHEMA_VERSION = 1
KEYS = {
    "schema_version": "version of these keys; increases when one is removed or changes meaning",
    **provenance.KEYS,
    "machine": "the emulated machine: x86 or mips",
    "instruction_ns": "time that each instruction takes",
    "duration_ns": "length of each run",
    "pace_bps": "the sender's pace; 0: as fast as the processor allows",
    "ack_instructions": "an ACK's, of both ends; null without `every` and `delayed:segments=2`",
    "policies[].policy": "with its parameters; `linux` is the kernel's own code",
    "policies[].goodput_bps": "payload read by the application per second",
    "policies[].instructions_per_mb": "of both ends, for 10^6 bytes read by the application",
    "policies[].busy_share": "share of the run in which the processor executed instructions",
    "policies[].segments": "data segments that the receiver got",
    "policies[].acks": "pure ACKs that it sent",
    "policies[].segments_per_ack": "the quotient of both",
    "policies[].srtt_p50_ns": "median of the sender's smoothed RTT, sampled 100 times",
}


@dataclass(frozen=True)
class Cost:
    """One policy's run."""

    policy: str
    goodput_bps: float
    instructions_per_mb: float | None
    busy_share: float
    segments: int
    acks: int
    segments_per_ack: float
    srtt_p50_ns: float


@dataclass(frozen=True)
class Price:
    """Instructions at both ends: `segment` without any ACK, `ack` for each."""

    segment: float
    ack: float

    @property
    def bound_percent(self) -> float:
        """How much faster a saturated machine is without any ACKs than with one per two."""
        return 100 * self.ack / 2 / self.segment


def price(each: tuple[float, float], two: tuple[float, float]) -> Price:
    """From runs with one ACK for each segment and one for two: instructions for each 10^6 bytes,
    and segments for each ACK."""
    per_segment, acks = zip(
        *((per_mb * SEGMENT_BYTES / 1e6, 1 / segments_per_ack)
          for per_mb, segments_per_ack in (each, two)),
        strict=True,
    )  # fmt: skip
    ack = (per_segment[0] - per_segment[1]) / (acks[0] - acks[1])
    return Price(per_segment[1] - ack * acks[1], ack)


def ack_instructions(costs: Sequence[Cost]) -> float | None:
    """What an ACK costs, if the two policies that show it ran and sent as many as they are named
    for: a receiver whose reader holds the socket sends fewer."""
    found = {
        cost.policy: (cost.instructions_per_mb, cost.segments_per_ack)
        for cost in costs
        for segments in (_SEGMENTS.get(cost.policy, 0),)
        if cost.instructions_per_mb
        and segments / _NEARLY <= cost.segments_per_ack <= segments * _NEARLY
    }
    if _SEGMENTS.keys() - found:
        return None
    return price(found[EACH], found[ONE_PER_TWO]).ack


def scenario(chosen: PolicyChoice, duration_ns: int, seed: int) -> dict[str, Any]:
    """One long transfer over the machine's wire."""
    workload = replace(plans.load_workload(WORKLOAD), duration_ns=duration_ns)
    return plans.scenario_of(plans.load_link(LINK), workload, chosen, seed)


def of(result: dict[str, Any], policy: str) -> Cost:
    """The costs of a run's first group."""
    group, processor = result["groups"][0], result["processor"]
    return Cost(
        policy,
        float(group["goodput_bps"]),
        processor["instructions_per_mb"],
        float(processor["busy_share"]),
        int(group["segments_received"]),
        int(group["acks_sent"]),
        float(group["segments_per_ack"]),
        float(group["rtt_ns"]["p50"]),
    )


def measure(
    policies: Sequence[PolicyChoice],
    kernel: Kernel,
    target: Target,
    load: Load,
    *,
    duration_ns: int,
    seed: int,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Cost]:
    """A run of each policy, in their order. Raises InputError, RunError, Interrupted."""

    def one(chosen: PolicyChoice, cancel: Cancel) -> Cost:
        made = scenario(chosen, duration_ns, seed)
        names = (f"link {LINK}", f"workload {WORKLOAD}")
        return of(device.simulate(made, *names, kernel, target, load, cancel=cancel), chosen.label)

    return run_all(one, policies, workers=workers, on_progress=on_progress)


def document(
    costs: Sequence[Cost],
    policies: Sequence[PolicyChoice],
    kernel: Kernel,
    target: Target,
    load: Load,
    *,
    duration_ns: int,
    seed: int,
) -> dict[str, Any]:
    """Everything, as KEYS describes."""
    world = compare.world(kernel, "device")
    return {
        "schema_version": SCHEMA_VERSION,
        "provenance": provenance.record(world, world.rails_of(policies, "network"), [seed]),
        "machine": target.name,
        "instruction_ns": device.INSTRUCTION_NS,
        "duration_ns": duration_ns,
        "pace_bps": load.pace_bps,
        "ack_instructions": ack_instructions(costs),
        "policies": [vars(cost) for cost in costs],
    }
