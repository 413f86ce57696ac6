# SPDX-License-Identifier: MIT
"""The steps of the story over what the source leaves open: what a send buffer holds, and the hosts'
own delay."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ackwise.engine import Cancel
from ackwise.host.leftovers import temporary_folder
from ackwise.results.stats import Estimate, mean_of
from ackwise_experiments.band import GROUP, Headline, bands, over, shown
from ackwise_experiments.bottleneck.case import Case
from ackwise_experiments.bottleneck.steps import (
    FULL_RATE_MB,
    NAMED,
    PREDICTED,
    SETTLED_WITH,
    SOURCE,
    Make,
    Named,
    named_by,
    rmem_mb,
)
from ackwise_experiments.bottleneck.story import (
    OWN_RTT_MS,
    STEPS,
    TOLERANCE_PERCENT,
    Step,
    as_case,
    reached_mbit_s,
)
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.runner import Ran, Runner

NEAR = f"steps within {TOLERANCE_PERCENT}% of the published throughput"
HEADLINES = (
    Headline("steps whose limit the sender's capture names", len(STEPS), None, NAMED, "", SOURCE),
    Headline(NEAR, len(STEPS), None, SETTLED_WITH, "", SOURCE),
    Headline("tcp_rmem advised, off by", None, TOLERANCE_PERCENT, PREDICTED, "%", SOURCE),
)

Variant = Callable[[Step], Step]


def _own_delay(factor: float) -> Variant:
    more_ms = OWN_RTT_MS * (factor - 1)
    return lambda step: replace(step, delay_ms=step.delay_ms + more_ms)


def _held(factor: float) -> Variant:
    return lambda step: replace(step, send_memory=round(step.send_memory * factor))


VARIANTS: dict[str, Variant] = {
    "hosts' delay -20%": _own_delay(0.8),
    "hosts' delay +20%": _own_delay(1.2),
    "send buffer holds -20%": _held(0.8),
    "send buffer holds +20%": _held(1.2),
}


def _off_percent(named: Named) -> float:
    """How far the advised receive buffer is from the source's; 100 where none is advised."""
    advised_mb = rmem_mb(named)
    return 100.0 if advised_mb is None else 100 * abs(advised_mb / FULL_RATE_MB - 1)


def _read(told: Sequence[tuple[float, Named]]) -> list[Estimate]:
    by_step = list(zip(STEPS, told, strict=True))
    right = sum(named.limit == step.limit for step, (_, named) in by_step)
    near = sum(
        100 * abs(mbit_s / step.published_mbit_s - 1) <= TOLERANCE_PERCENT
        for step, (mbit_s, _) in by_step
    )
    off = max(_off_percent(named) for step, (_, named) in by_step if step.limit == "receive-window")
    return [mean_of([value]) for value in (right, near, off)]


def band(
    runner: Runner,
    make: Make,
    world: str,
    name: str,
    variants: Mapping[str, Variant] = VARIANTS,
) -> Outcome:
    """All three in each setting, of the experiment `name` in `world`."""

    def told(case: Case, cancel: Cancel) -> tuple[float, Named]:
        with temporary_folder() as folder:
            made = make(case, folder, cancel)
            return reached_mbit_s(made.account), named_by(made.captures["sender"])

    def run(steps: list[Step]) -> list[tuple[float, Named]]:
        cases = [as_case(number, step, world) for number, step in enumerate(steps, 1)]
        runner.ran.append(Ran(GROUP, None, [case.scenario for case in cases], runner.on))
        return runner.map(GROUP, told, cases)

    return shown(name, bands(HEADLINES, over(variants, STEPS, _read, run)))
