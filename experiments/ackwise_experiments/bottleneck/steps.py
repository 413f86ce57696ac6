# SPDX-License-Identifier: MIT
"""The steps of the story as an experiment: each is run, captured, diagnosed from each capture alone
and set beside what was published."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ackwise import engine
from ackwise.diagnosis import advice
from ackwise.diagnosis.advice import Advice
from ackwise.diagnosis.transfer import transfers
from ackwise.engine import Cancel
from ackwise.host.leftovers import temporary_folder
from ackwise_experiments import check
from ackwise_experiments.bottleneck.build import Made
from ackwise_experiments.bottleneck.case import Case
from ackwise_experiments.bottleneck.story import (
    TOLERANCE_PERCENT,
    Step,
    as_case,
    reached_mbit_s,
    story,
)
from ackwise_experiments.bottleneck.truth import ENOUGH
from ackwise_experiments.check import Basis, Check, Kind, Origin
from ackwise_experiments.experiment import Outcome
from ackwise_experiments.figure import Figure, Grid, Panel, Series
from ackwise_experiments.runner import Ran, Runner

SOURCE = "spec page 4"
LABEL = "the steps of the story"
PLACES = ("sender", "router", "receiver")
# The receive memory with which the source reached the full rate.
FULL_RATE_MB = 24
# What the slowest step meets when its buffers are set as advised, and how many changes it may take.
FOLLOWED = ("send-buffer", "receive-window", "link")
ROUNDS = 4
# The tolerance was committed before the first run; limits and their order are those of the source.
PREDICTED = Basis(Kind.PREDICTED, Origin.BEFORE)
SETTLED_WITH = Basis(Kind.FITTED, Origin.BEFORE)
SET_UP = Basis(Kind.INJECTED, Origin.BEFORE)
NAMED = Basis(Kind.PREDICTED, Origin.PUBLISHED)

Make = Callable[[Case, Path, Cancel], Made]


@dataclass(frozen=True)
class Named:
    """What a diagnosis says of a step: its limits with their shares, and the advice."""

    limits: Sequence[tuple[str, float]]
    advice: Advice

    @property
    def limit(self) -> str:
        """The one that holds for most of the time."""
        return self.limits[0][0]


@dataclass(frozen=True)
class StepResult:
    """A step that was run: its throughput, how much of the time its own account confirms the
    limit, and what each capture says."""

    step: Step
    mbit_s: float
    share: float
    named: Mapping[str, Named]


def named_by(capture: Path) -> Named:
    """What the diagnosis of a capture says."""
    (connection,) = engine.diagnose([str(capture)])["connections"]
    (transfer,) = transfers(connection)
    return Named(transfer.limits, advice.of(transfer, transfer.limits[0][0]))


def _run_step(make: Make, one: tuple[Step, Case], cancel: Cancel) -> StepResult:
    step, case = one
    with temporary_folder() as folder:
        made = make(case, folder, cancel)
        named = {place: named_by(made.captures[place]) for place in PLACES}
    return StepResult(step, reached_mbit_s(made.account), made.truth.share, named)


def _checks(results: Sequence[StepResult], witness: str) -> list[Check]:
    throughput = [
        check.within(
            one.step.name,
            one.step.published_mbit_s,
            one.mbit_s,
            percent=TOLERANCE_PERCENT,
            basis=SETTLED_WITH if one.step.fitted else PREDICTED,
            unit="Mbit/s",
            source=SOURCE,
        )
        for one in results
    ]
    account = [
        check.at_least(
            f"{one.step.name}: share of the time, {one.step.limit}", ENOUGH, one.share, basis=SET_UP
        )
        for one in results
    ]
    capture = [
        check.same(
            f"{one.step.name}: capture at the {place}",
            one.step.limit,
            one.named[place].limit,
            basis=NAMED,
            source=SOURCE,
        )
        for one in results
        for place in PLACES
    ]
    return [
        *check.grouped("throughput", throughput),
        *check.grouped(f"the limit, as {witness} has it", account),
        *check.grouped("the limit, as the diagnosis names it", capture),
        *check.grouped("what to change", _remedies(results)),
    ]


def _remedies(results: Sequence[StepResult]) -> list[Check]:
    """The link decides what to advise: the steps that the window limits are one question."""
    advised = [
        rmem_mb(one.named["sender"]) for one in results if one.step.limit == "receive-window"
    ]
    if not advised:
        return []
    known = [mb for mb in advised if mb is not None]
    furthest = max(known, key=lambda mb: abs(mb - FULL_RATE_MB)) if known == advised else None
    return [
        check.within(
            f"tcp_rmem advised, furthest of {len(advised)} steps",
            FULL_RATE_MB,
            furthest,
            percent=TOLERANCE_PERCENT,
            basis=PREDICTED,
            unit="MB",
            source=SOURCE,
        )
    ]


def rmem_mb(named: Named) -> float | None:
    """The receive buffer that a diagnosis advises; None where it advises none."""
    advised = advised_by(named.advice.line)
    return advised[1] / 1e6 if advised and advised[0] == "tcp_rmem" else None


def advised_by(line: str) -> tuple[str, int] | None:
    """The buffer's sysctl that a line sets, and the largest of its three values."""
    found = re.fullmatch(r'sysctl -w net\.ipv4\.(tcp_[rw]mem)="\d+ \d+ (\d+)"', line)
    return (found[1], int(found[2])) if found else None


def _followed(runner: Runner, make: Make, world: str, results: Sequence[StepResult]) -> list[Check]:
    """The slowest step with each buffer that the sender's capture asks for, until none is left."""
    now = min(results, key=lambda one: one.step.published_mbit_s)
    limits: list[str] = []
    while (advised := advised_by(now.named["sender"].advice.line)) and len(limits) < ROUNDS:
        limits.append(now.named["sender"].limit)
        step = now.step.allowing(*advised)
        case = as_case(f"followed-{len(limits)}", step, world)
        runner.ran.append(
            Ran(f"{LABEL}, with {advised[0]} as advised", None, [case.scenario], world)
        )
        (now,) = runner.map(LABEL, partial(_run_step, make), [(step, case)])
    limits.append(now.named["sender"].limit)
    return [
        check.same(
            "limits, one after another",
            ", ".join(FOLLOWED),
            ", ".join(limits),
            basis=NAMED,
            source=SOURCE,
        ),
        check.within(
            "with all that was advised",
            results[-1].step.published_mbit_s,
            now.mbit_s,
            percent=TOLERANCE_PERCENT,
            basis=PREDICTED,
            unit="Mbit/s",
            source=SOURCE,
        ),
    ]


def _figures(results: Sequence[StepResult], prefix: str, measured: str) -> list[Figure]:
    names = [one.step.name for one in results]
    published = [one.step.published_mbit_s for one in results]
    broken = [name.replace(" ", "\n") for name in names]
    bars = [
        Series("published", broken, published, "bars", published=True),
        Series(measured, broken, [one.mbit_s for one in results], "bars"),
    ]

    def cell(one: StepResult, place: str) -> str:
        limit, share = one.named[place].limits[0]
        return f"{limit} {share:.0%}"

    grid = Grid(
        "",
        "captured at",
        names,
        PLACES,
        [[cell(one, place) for place in PLACES] for one in results],
        [
            ["right" if one.named[place].limit == one.step.limit else "wrong" for place in PLACES]
            for one in results
        ],
        "the largest limit and its share of the time",
    )
    return [
        Figure(
            f"{prefix}bottleneck-throughput",
            "Throughput of each step",
            [Panel("", "Mbit/s", bars)],
            SOURCE,
        ),
        Figure(f"{prefix}bottleneck-limits", "What each capture says", [grid]),
    ]


def run_steps(runner: Runner, make: Make, world: str, witness: str, prefix: str) -> Outcome:
    """Every step, in `world`; `witness` is the account that a limit is confirmed with."""
    steps = story(world)
    runner.ran.append(Ran(LABEL, None, [case.scenario for _, case in steps], runner.on))
    results = runner.map(LABEL, partial(_run_step, make), steps)
    followed = check.grouped("the advice, followed", _followed(runner, make, world, results))
    return Outcome([*_checks(results, witness), *followed], _figures(results, prefix, world))
