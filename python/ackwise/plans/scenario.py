# SPDX-License-Identifier: MIT
"""Links, workloads and plans in memory, and the scenario for each run of the engine."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ackwise.engine.scenario import (
    App,
    Bulk,
    Channel,
    FlowGroup,
    OddWrites,
    ParetoBulk,
    Policy,
    RandomSpacing,
    Record,
    RequestResponse,
    Scenario,
)
from ackwise.errors import InputError, quoted
from ackwise.plans import policy, schema
from ackwise.plans.policy import PolicyChoice
from ackwise.plans.schema import DEVICES

# A 2-core machine simulates a few million packets per second: refuse plans that would take most of
# an hour, and warn about those that take minutes.
PACKETS_WARN = 300_000_000
PACKETS_REFUSE = 5_000_000_000

# Where nothing else is random, a seed at least determines the start of flows. 100 ms: an RTT or
# more on nearly every shipped link; 1% of a run: too little to change its mean.
START_JITTER_MAX_NS = 100_000_000
START_JITTER_OF_RUN = 100


@dataclass(frozen=True)
class Link:
    """A path: a scenario without flows and duration."""

    name: str
    title: str
    source: str
    device: str
    scenario: Scenario


@dataclass(frozen=True)
class Flows:
    """A group of flows of a workload."""

    group: FlowGroup
    measured: bool = True  # otherwise background traffic
    has_policy: bool = False  # otherwise the group uses the policy being compared
    has_jitter: bool = False  # otherwise a comparison chooses the group's `start_jitter_ns`

    def changed(self, **changes: Any) -> "Flows":
        """The group with other values, which count as set by the group."""
        return replace(
            self,
            group=replace(self.group, **changes),
            has_policy=self.has_policy or "policy" in changes,
            has_jitter=self.has_jitter or "start_jitter_ns" in changes,
        )


@dataclass(frozen=True)
class Workload:
    """The flows of a run."""

    name: str
    title: str
    source: str
    duration_ns: int
    flows: tuple[Flows, ...]
    ping_interval_ns: int = 0

    @property
    def groups(self) -> list[FlowGroup]:
        """The groups of all flows."""
        return [flows.group for flows in self.flows]

    @property
    def measured_names(self) -> list[str]:
        """Names of the groups that tables show."""
        return [flows.group.name for flows in self.flows if flows.measured]


@dataclass(frozen=True)
class Plan:
    """Everything that `ackwise compare` runs."""

    title: str
    source: str
    file: str
    links: list[Link]
    workloads: list[Workload]
    policies: list[PolicyChoice]
    baseline: PolicyChoice
    runs: int = 3
    seed: int = 1
    clamp: str = policy.CLAMPED  # for policies that choose none
    notes: list[str] = field(default_factory=list)
    device: str = DEVICES[0]  # the machine of `ackwise device compare`

    @property
    def seeds(self) -> list[int]:
        """One seed per run."""
        return [self.seed + i for i in range(self.runs)]


def build(
    *,
    title: str,
    source: str,
    file: str,
    links: Sequence[Link],
    workloads: Sequence[Workload],
    policies: Sequence[PolicyChoice],
    baseline: str,
    runs: int,
    seed: int,
    where: str,
    clamp: str = policy.CLAMPED,
    device: str = DEVICES[0],
) -> Plan:
    """A consistent plan in which each policy has its clamp; adds the baseline if it is not among
    the policies."""
    for word, parts in (("link", links), ("workload", workloads)):
        names = [part.name for part in parts]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"{where}: the {word} {quoted(name)} is given twice")
    base = policy.parse(baseline, f"{where}: baseline")
    chosen = list(policies)
    if base.label not in [p.label for p in chosen]:
        chosen.insert(0, base)
    base, *chosen = (replace(p, clamp=p.clamp or clamp) for p in (base, *chosen))
    loads = [_clamped(workload, clamp) for workload in workloads]
    return Plan(
        title, source, file, list(links), loads, chosen, base, runs, seed, clamp, device=device
    )


def _clamped(workload: Workload, word: str) -> Workload:
    """The workload with the plan's clamp applied to the policies that its groups set themselves."""

    def clamped(choice: Policy) -> Policy:
        return replace(choice, clamp=choice.clamp and word == policy.CLAMPED)

    def of(flows: Flows) -> Flows:
        group = replace(flows.group, peer_policy=clamped(flows.group.peer_policy))
        if flows.has_policy:
            group = replace(group, policy=clamped(group.policy))
        return replace(flows, group=group)

    return replace(workload, flows=tuple(map(of, workload.flows)))


def with_duration(plan: Plan, duration_ns: int) -> Plan:
    """The plan with the duration of every workload set to `duration_ns`."""
    return replace(plan, workloads=[replace(w, duration_ns=duration_ns) for w in plan.workloads])


def start_jitter_ns(workload: Workload) -> int:
    """Range of start times of flows in a comparison if their group does not set it."""
    return min(START_JITTER_MAX_NS, workload.duration_ns // START_JITTER_OF_RUN)


def scenario_of(
    link: Link,
    workload: Workload,
    chosen: PolicyChoice,
    seed: int,
    *,
    start_jitter_ns: int = 0,
    series_interval_ns: int = 0,
    trace_limit: int = 0,
) -> Scenario:
    """The engine's input for one link, workload, policy and seed; `start_jitter_ns` applies to
    groups that set none."""
    compared = replace(chosen, path=None).for_engine()

    def group(flows: Flows) -> FlowGroup:
        return replace(
            flows.group,
            policy=flows.group.policy if flows.has_policy else compared,
            start_jitter_ns=flows.group.start_jitter_ns if flows.has_jitter else start_jitter_ns,
        )

    return replace(
        link.scenario,
        up=_with_element(link.scenario.up, chosen.path),
        seed=seed,
        duration_ns=workload.duration_ns,
        series_interval_ns=series_interval_ns,
        ping_interval_ns=workload.ping_interval_ns,
        groups=tuple(map(group, workload.flows)),
        record=Record(trace=trace_limit > 0, trace_limit=trace_limit),
    )


def _with_element(up: Channel, path: str | None) -> Channel:
    """The uplink with what a policy has on its path. A discipline comes with its own keys, as where
    `tc` replaces another one."""
    changes: dict[str, Any] = dict(policy.PATHS[path]) if path else {}
    if "discipline" in changes:
        of_old = {key.engine_name for key in schema.keys_of("channel") if key.disciplines}
        default = Channel(rate_bps=up.rate_bps, delay_ns=up.delay_ns)
        changes = {**{name: getattr(default, name) for name in of_old}, **changes}
    return replace(up, **changes)


def _app_bytes(app: App) -> int | None:
    """Payload of one flow; None: until the run ends."""
    match app:
        case Bulk():
            return app.bytes or None
        case RequestResponse():
            return app.count * (app.request_bytes + app.response_bytes) or None
        case RandomSpacing():
            return app.packets * app.bytes
        case OddWrites():
            return app.count * app.writes * app.write_bytes or None
        case ParetoBulk():
            return app.mean_bytes
        case _:
            return sum(app.bytes)


def packets_estimate(link: Link, workload: Workload) -> int:
    """Upper estimate of one run's packets, from the rates or, if that is less, the flows' sizes."""
    shape = link.scenario
    total = 0
    seconds = workload.duration_ns / 10**9
    payload = shape.mtu_bytes - shape.ip_tcp_header_bytes
    for side, pipe in (("down", shape.down), ("up", shape.up)):
        room = pipe.rate_bps * seconds / 8 / shape.mtu_bytes
        wanted = 0.0
        for group in workload.groups:
            if group.direction != side:
                continue
            one = _app_bytes(group.app)
            wanted += room if one is None else group.count * (one / payload + 1)
        total += int(min(room, wanted) * 2)  # each segment and its ACK
    return total + sum(group.count for group in workload.groups)


def check_work(plan: Plan, allow_long: bool = False, remedy: str = "--allow-long") -> str:
    """A warning if the plan takes minutes, otherwise ""; InputError if it takes hours."""
    packets = (
        sum(packets_estimate(link, workload) for link in plan.links for workload in plan.workloads)
        * len(plan.policies)
        * plan.runs
    )
    if packets > PACKETS_REFUSE and not allow_long:
        raise InputError(
            f"{plan.file or 'plan'}: about {packets:.2g} packets to simulate (limit "
            f"{PACKETS_REFUSE:.0e}); shorten the duration, use fewer links, policies or runs, "
            f"or give {remedy}"
        )
    if packets > PACKETS_WARN:
        return f"about {packets:.2g} packets to simulate: this takes minutes"
    return ""
