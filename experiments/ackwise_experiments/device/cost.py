# SPDX-License-Identifier: MIT
"""Cost of policies on an emulated machine: instructions per megabyte received."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any

from ackwise import plans
from ackwise.engine import Cancel
from ackwise.engine.pool import run_all
from ackwise.engine.scenario import Scenario
from ackwise.errors import RunError
from ackwise.lab import compare, device, machine
from ackwise.lab.device import Load
from ackwise.lab.extras import NOTHING, Extras
from ackwise.lab.machine import Kernel
from ackwise.lab.measure import LabResult
from ackwise.lab.target import Target
from ackwise.plans.policy import PolicyChoice
from ackwise.results import provenance
from ackwise_experiments.device import pair

LINK, WORKLOAD = "lan-1g", "bulk"
SEGMENT_BYTES = 1448  # Ethernet, timestamps
# These differ only in the number of segments per ACK.
EACH, ONE_PER_TWO = "every", "delayed:segments=2"
_SEGMENTS = {EACH: 1, ONE_PER_TWO: 2}
_NEARLY = 1.25
# While its reader holds a socket, Linux queues segments and sends one ACK for all of them, whatever
# the policy, and an ACK that would not advance the window waits for the reader. A baseline of one
# ACK for two segments must avoid both.
EXACT = Extras(sysctls={"tcp_backlog_ack_defer": 0}, steady_window_bytes=3_000_000)
SCHEMA_VERSION = 2
KEYS = {
    "schema_version": "version of these keys; increases when one is removed or changes meaning",
    **provenance.KEYS,
    "machine": "the emulated machine: x86 or mips",
    "instruction_ns": "time that each instruction takes",
    "duration_ns": "length of each run",
    "pace_bps": "the sender's pace; 0: as fast as the processor allows",
    "link": "gives the delays of the wire; with `role` the peer delays by both",
    "exact": "whether segments that came while a reader held the socket were acknowledged as "
    "others, with a window that it did not narrow",
    "role": "the machine's, `sender` or `receiver`, of two; null: it has both ends",
    "runs": "of each policy",
    "ack_instructions": "an ACK's, of the ends counted; null without `every` and "
    "`delayed:segments=2`",
    "policies[].policy": "with its parameters; `linux` is the kernel's own code",
    "policies[].goodput_bps": "payload read by the application per second",
    "policies[].instructions_per_mb": "of both ends, or that of `role`, for 10^6 bytes read by the "
    "application",
    "policies[].busy_share": "share of the run in which the processor executed instructions",
    "policies[].segments": "data segments that the receiver got",
    "policies[].acks": "pure ACKs that it sent",
    "policies[].segments_per_ack": "the quotient of both",
    "policies[].srtt_p50_ns": "median of the sender's smoothed RTT, sampled 100 times; null with "
    "`role`",
    "policies[].runs": "with `role`: each run; what is above are means of those without a flaw",
    "policies[].runs[].goodput_bps": "payload acknowledged or read per second, of that run",
    "policies[].runs[].delivered_bytes": "payload",
    "policies[].runs[].instructions": "of the machine that has the role",
    "policies[].runs[].busy_share": "its",
    "policies[].runs[].segments": "data segments that it sent or got",
    "policies[].runs[].acks": "pure ACKs that it got or sent",
    "policies[].runs[].peer_idle_share": "of the other machine, while they were connected",
    "policies[].runs[].clock_ratio": "its time in the run by the host's",
    "policies[].runs[].flaw": "why the run does not count; empty if it does",
}


@dataclass(frozen=True)
class Cost:
    """The run of one policy."""

    policy: str
    goodput_bps: float
    instructions_per_mb: float | None
    busy_share: float
    segments: int
    acks: int
    segments_per_ack: float
    srtt_p50_ns: float | None
    runs: tuple[pair.PairRun, ...] = ()  # with two machines

    @property
    def sound(self) -> list[pair.PairRun]:
        """The valid runs."""
        return [run for run in self.runs if not run.flaw]

    def document(self) -> dict[str, Any]:
        """The result in the format of KEYS."""
        runs = [asdict(run) | {"flaw": run.flaw} for run in self.runs]
        return {**vars(self), "runs": runs}


@dataclass(frozen=True)
class PacketCosts:
    """Instructions at both ends: `segment` without ACKs, `ack` per ACK."""

    segment: float
    ack: float

    @property
    def bound_percent(self) -> float:
        """Gain in rate of a saturated machine without ACKs over one ACK per two segments, in
        percent."""
        return 100 * self.ack / 2 / self.segment


def price(each: tuple[float, float], two: tuple[float, float]) -> PacketCosts:
    """Costs from runs with one ACK per segment and one per two: instructions per 10^6 bytes, and
    segments per ACK."""
    per_segment, acks = zip(
        *((per_mb * SEGMENT_BYTES / 1e6, 1 / segments_per_ack)
          for per_mb, segments_per_ack in (each, two)),
        strict=True,
    )  # fmt: skip
    ack = (per_segment[0] - per_segment[1]) / (acks[0] - acks[1])
    return PacketCosts(per_segment[1] - ack * acks[1], ack)


def price_of(costs: Sequence[Cost]) -> PacketCosts | None:
    """The costs, if both reference policies ran and sent as many ACKs as their names say: a
    receiver whose reader holds the socket sends fewer."""
    found = {
        cost.policy: (cost.instructions_per_mb, cost.segments_per_ack)
        for cost in costs
        for segments in (_SEGMENTS.get(cost.policy, 0),)
        if cost.instructions_per_mb
        and segments / _NEARLY <= cost.segments_per_ack <= segments * _NEARLY
    }
    if _SEGMENTS.keys() - found:
        return None
    return price(found[EACH], found[ONE_PER_TWO])


@dataclass(frozen=True)
class Transfer:
    """One long transfer."""

    duration_ns: int
    seed: int
    link: str = LINK  # name or file of the link
    exact: bool = False  # see EXACT

    def scenario(self, chosen: PolicyChoice) -> Scenario:
        """The scenario with a policy. Raises InputError."""
        workload = replace(plans.load_workload(WORKLOAD), duration_ns=self.duration_ns)
        return plans.scenario_of(plans.load_link(self.link), workload, chosen, self.seed)

    @property
    def extras(self) -> Extras:
        """Additional settings of the run."""
        return EXACT if self.exact else NOTHING


def of(result: LabResult, policy: str) -> Cost:
    """Costs of the first group of a run on a device."""
    group, processor = result.groups[0], result.processor
    assert processor is not None
    return Cost(
        policy,
        group.goodput_bps,
        processor.instructions_per_mb,
        processor.busy_share,
        group.segments_received,
        group.acks_sent,
        group.segments_per_ack,
        group.rtt_ns.p50,
    )


def measure(
    policies: Sequence[PolicyChoice],
    kernel: Kernel,
    target: Target,
    load: Load,
    transfer: Transfer,
    *,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Cost]:
    """One run of each policy, in order. Raises InputError, RunError, Interrupted."""
    names = (f"link {transfer.link}", f"workload {WORKLOAD}")

    def one(chosen: PolicyChoice, cancel: Cancel) -> Cost:
        made = transfer.scenario(chosen)
        whole = replace(load, extras=transfer.extras)
        return of(device.simulate(made, *names, kernel, target, whole, cancel=cancel), chosen.label)

    return run_all(one, policies, workers=workers, on_progress=on_progress)


def measure_role(
    policies: Sequence[PolicyChoice],
    kernel: Kernel,
    target: Target,
    peer_kernel: Kernel,
    role: str,
    transfer: Transfer,
    *,
    runs: int,
    on_progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> list[Cost]:
    """Runs with two machines, of which `target` has the role `role`. Policies take turns, so that
    other load on the host affects all of them. Raises InputError, RunError, Interrupted."""
    jobs = [(chosen, number) for number in range(runs) for chosen in policies]

    def one(job: tuple[PolicyChoice, int], cancel: Cancel) -> pair.PairRun:
        chosen, number = job
        made = replace(transfer, seed=transfer.seed + number).scenario(chosen)
        groups = tuple(replace(group, direction=pair.ROLES[role]) for group in made.groups)
        made = replace(made, groups=groups)
        name, load = f"workload {WORKLOAD}", Load(extras=transfer.extras)
        try:
            return pair.simulate(made, name, role, kernel, target, peer_kernel, load, cancel=cancel)
        except machine.Hung:
            return pair.PairRun.hung()  # keeps the results of other runs

    # one after the other: they occupy the host
    found = run_all(one, jobs, workers=1, on_progress=on_progress)
    return [
        of_runs(chosen.label, tuple(found[index :: len(policies)]))
        for index, chosen in enumerate(policies)
    ]


def of_runs(policy: str, runs: tuple[pair.PairRun, ...]) -> Cost:
    """Means of the valid runs. Raises RunError if there is none."""
    sound = [run for run in runs if not run.flaw]
    if not sound:
        raise RunError(f"{policy}: no run counts: {runs[0].flaw}; try again while the host idles")
    segments, acks = (round(fmean(values)) for values in
                      zip(*((run.segments, run.acks) for run in sound), strict=True))  # fmt: skip
    return Cost(
        policy,
        fmean(run.goodput_bps for run in sound),
        1e6 * sum(run.instructions for run in sound) / sum(run.delivered_bytes for run in sound),
        fmean(run.busy_share for run in sound),
        segments,
        acks,
        segments / acks if acks else float(segments),
        None,
        runs,
    )


def spread_percent(values: Sequence[float]) -> float | None:
    """Standard deviation of a sample relative to its mean, in percent."""
    return 100 * stdev(values) / fmean(values) if len(values) > 1 else None


def document(
    costs: Sequence[Cost],
    policies: Sequence[PolicyChoice],
    kernel: Kernel,
    target: Target,
    load: Load,
    transfer: Transfer,
    role: str | None = None,
) -> dict[str, Any]:
    """The document in the format of KEYS."""
    world = compare.world(kernel, "device")
    paid = price_of(costs)
    runs = max(1, *(len(cost.runs) for cost in costs))
    seeds = [transfer.seed + number for number in range(runs)]
    return {
        "schema_version": SCHEMA_VERSION,
        "provenance": provenance.record(world, world.clamp_of(policies, "flight"), seeds),
        "machine": target.name,
        "instruction_ns": pair.INSTRUCTION_NS if role else device.INSTRUCTION_NS,
        "duration_ns": transfer.duration_ns,
        "pace_bps": load.pace_bps,
        "link": transfer.link,
        "exact": transfer.exact,
        "role": role,
        "runs": runs,
        "ack_instructions": paid.ack if paid else None,
        "policies": [cost.document() for cost in costs],
    }
